//! `nod status` of a running daemon: what waits, with secrets masked, again and
//! again until told to stop, and the figures for Prometheus.

use nod::for_tests::simulator::{OWNER, Options, Press, Simulator};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::support::{Asker, Daemon, within};

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_watched_until_interrupted() {
    let feishu = Simulator::start(Options::default()).await.unwrap();
    let daemon = Daemon::connected(&feishu).await;
    let mut asker = Asker::ask(&daemon.home, 1, "mysql -pcanary shop").await;
    let mut watch = daemon
        .home
        .nod(&["status", "--watch"], &[])
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut page = async || {
        let mut page = String::new();
        while let Some(line) = within("a line", lines.next_line()).await.unwrap() {
            if line.is_empty() {
                break;
            }
            page = page + &line + "\n";
        }
        page
    };
    let first = page().await;
    assert!(
        first.contains("pending     1\n            mysql -p⟦secret password 6B⟧ shop · "),
        "{first}"
    );
    assert!(!first.contains("canary"), "{first}");
    let messages = feishu
        .wait_messages(1, super::support::LIMIT)
        .await
        .unwrap();
    let press = Press::action(&messages[0].message_id, "allow").by(OWNER);
    let (clicked, ()) = tokio::join!(feishu.click(press), async {
        asker.decision().await;
        asker.confirm().await;
    });
    clicked.unwrap();
    let mut now = page().await;
    while !now.contains("pending     0\n") {
        now = page().await;
    }
    assert!(now.contains("tap → hook p50 "), "{now}");
    let pid = i32::try_from(watch.id().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::INT).unwrap();
    let ended = within("the watch's end", watch.wait()).await.unwrap();
    assert_eq!(ended.code(), Some(0));

    let (code, metrics, _) = daemon.home.run(&["status", "--metrics"], &[]).await;
    assert_eq!(code, Some(0));
    for sample in ["nod_connected 1\n", "nod_tap_hook_seconds_count 1\n"] {
        assert!(metrics.contains(sample), "{metrics}");
    }
}
