//! `nod hook` when there is nobody to ask, or nothing to ask: it prints
//! nothing, exits 0 and is gone before anybody notices. And a daemon whose
//! store, secret or neighbours are not as they should be.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::chown;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::time::{Duration, Instant};

use nod::for_tests::simulator::{APP_SECRET, Options, Simulator};
use serde_json::json;

use crate::hooks::{Daemon, Home, Stage, bash, chmod, event, permission, report, toast};

const NOBODY: u32 = 65_534;

#[tokio::test(flavor = "multi_thread")]
async fn without_a_daemon_it_is_gone_at_once() {
    let mut home = Home::new("feishu");
    home.set("NOD_LANG", "en");
    let mut quickest = Duration::MAX;
    for _ in 0..10 {
        let started = Instant::now();
        let ended = home.hook(&bash("s", "ls")).ended().await;
        quickest = quickest.min(started.elapsed());
        ended.left_to_the_terminal();
        assert_eq!(ended.stderr, "nod: no daemon is running\n");
    }
    assert!(quickest < Duration::from_millis(250), "{quickest:?}");
    std::fs::create_dir(home.socket().parent().unwrap()).unwrap();
    drop(UnixListener::bind(home.socket()).unwrap());
    let stale = home.hook(&bash("s", "ls")).ended().await;
    stale.left_to_the_terminal();
    assert_eq!(stale.stderr, "nod: no daemon is running\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_setting_it_complains_in_the_terminals_language() {
    let home = Home::new("feishu");
    for (locale, said) in [
        ("en_US.UTF-8", "nod: no daemon is running\n"),
        ("zh_CN.UTF-8", "nod: 守护进程没有运行\n"),
    ] {
        let input = bash("s", "ls").to_string();
        let hook = home.hook_with(input.as_bytes(), &[("LANG", locale)]);
        let ended = hook.ended().await;
        ended.left_to_the_terminal();
        assert_eq!(ended.stderr, said);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_of_another_build_is_named_in_the_log() {
    let mut home = Home::new("feishu");
    home.set("NOD_LANG", "en");
    let run = home.socket().parent().unwrap().to_owned();
    std::fs::create_dir(&run).unwrap();
    chmod(&run, 0o700);
    let listener = UnixListener::bind(home.socket()).unwrap();
    let daemon = std::thread::spawn(move || {
        let (mut hook, _) = listener.accept().unwrap();
        assert!(hook.read(&mut [0; 8 << 10]).unwrap() > 0);
        let ack = json!({"success": true, "nod": {"version": 1, "server_version": "0.1.0"}});
        hook.write_all(ack.to_string().as_bytes()).unwrap();
    });
    let ended = home.hook(&bash("s", "ls")).ended().await;
    daemon.join().unwrap();
    ended.left_to_the_terminal();
    assert!(ended.stderr.contains("the daemon is 0.1.0"), "{ended:?}");
    assert!(ended.stderr.contains("nod service restart"), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_ours_hears_nothing() {
    let mut home = Home::new("feishu");
    home.set("NOD_LANG", "en");
    let run = home.socket().parent().unwrap().to_owned();
    std::fs::create_dir(&run).unwrap();
    let listener = UnixListener::bind(home.socket()).unwrap();
    listener.set_nonblocking(true).unwrap();
    chmod(&run, 0o777);
    let ended = home.hook(&bash("s", "ls")).ended().await;
    ended.left_to_the_terminal();
    assert!(ended.stderr.contains("is not ours alone"), "{ended:?}");
    chmod(&run, 0o700);
    if rustix::process::geteuid().is_root() {
        chown(home.socket(), Some(NOBODY), None).unwrap();
        let ended = home.hook(&bash("s", "ls")).ended().await;
        ended.left_to_the_terminal();
        assert!(ended.stderr.contains("belongs to uid"), "{ended:?}");
    }
    assert!(listener.accept().is_err(), "nobody connected");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_hangs_is_not_waited_for() {
    let mut home = Home::new("feishu");
    home.set("NOD_LANG", "en");
    std::fs::create_dir(home.socket().parent().unwrap()).unwrap();
    chmod(home.socket().parent().unwrap(), 0o700);
    let _silent = UnixListener::bind(home.socket()).unwrap();
    let started = Instant::now();
    let ended = home.hook(&bash("s", "ls")).ended().await;
    ended.left_to_the_terminal();
    assert_eq!(ended.stderr, "nod: the daemon does not answer\n");
    assert!(started.elapsed() < Duration::from_secs(10));
    let stop = event("s", "Stop", &json!({}));
    let started = Instant::now();
    home.hook(&stop).ended().await.left_to_the_terminal();
    assert!(started.elapsed() < Duration::from_secs(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_cannot_read_is_left_to_the_terminal() {
    let mut stage = Stage::new().await;
    let too_large = format!(r#"{{"a":"{}"}}"#, "x".repeat(8 * 1024 * 1024));
    let mut large = permission("s", "Write", &json!({"file_path": "x", "content": ""}));
    large["tool_input"]["content"] = json!("y".repeat(7 * 1024 * 1024));
    let cases: [&[u8]; 7] = [
        b"",
        b"{",
        b"null",
        b"\xff\xfe",
        b"{\"hook_event_name\":\"PermissionRequest\"}",
        too_large.as_bytes(),
        large.to_string().leak().as_bytes(),
    ];
    for input in cases {
        let ended = stage.home.hook_with(input, &[]).ended().await;
        ended.left_to_the_terminal();
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    }
    let own = bash("s", "ls").to_string();
    let marked = stage
        .home
        .hook_with(own.as_bytes(), &[("NOD_SESSION", "1")]);
    let marked = marked.ended().await;
    marked.left_to_the_terminal();
    assert_eq!(marked.stderr, "");
    for dir in ["relative", "/nowhere/at/all", "/tmp/../tmp"] {
        let ended = stage
            .home
            .hook_with(own.as_bytes(), &[("CLAUDE_PROJECT_DIR", dir)])
            .ended()
            .await;
        ended.left_to_the_terminal();
        assert!(ended.stderr.contains("项目目录"), "{ended:?}");
    }
    assert_eq!(stage.count(), 0, "nobody was asked");
    let (hook, card) = stage.ask_bash("make after").await;
    stage.tap(&card, "allow").await;
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
}

#[tokio::test(flavor = "multi_thread")]
async fn decisions_flow_without_a_store_and_status_says_so() {
    let mut stage = Stage::with(|_, home| {
        std::fs::create_dir(home.state().join("nod.db")).unwrap();
    })
    .await;
    let store = stage.home.status().await["store"].clone();
    assert_eq!(store["ok"], false, "{store}");
    assert!(
        store["cause"].as_str().unwrap().contains("nod.db"),
        "{store}"
    );
    // Nobody knows whether it was locked, so it is until somebody here says.
    assert_eq!(stage.home.run(&["unlock"]).await.code, Some(0));
    let (hook, card) = stage.ask_bash("make anyway").await;
    assert_eq!(toast(&stage.tap(&card, "allow").await).1, "已批准运行");
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
    stage.shows(&card, "已批准").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_others_can_read_is_refused_or_warned_of() {
    let sim = Simulator::start(Options::default()).await.unwrap();
    let mut home = Home::new(&sim.base_url());
    home.set("NOD_LANG", "en");
    home.unset("FEISHU_APP_SECRET");
    let own = home.path().join("home/.config/nod/.env");
    std::fs::create_dir_all(own.parent().unwrap()).unwrap();
    std::fs::write(&own, format!("FEISHU_APP_SECRET={APP_SECRET}\n")).unwrap();
    chmod(&own, 0o644);
    let refused = home.run(&["daemon"]).await;
    assert_eq!(refused.code, Some(78), "{refused:?}");
    assert!(refused.stderr.contains("`chmod 600` it"), "{refused:?}");
    assert!(!refused.stderr.contains(APP_SECRET));
    chmod(&own, 0o600);
    Daemon::start(&home).await.stop().await;

    let named = home.project().join("other.env");
    std::fs::rename(&own, &named).unwrap();
    chmod(&named, 0o640);
    let daemon = Daemon::start_by(&home, &["daemon", "--env-file", "other.env"]).await;
    let log = daemon.log();
    assert!(
        log.contains("other users can read the app's secret"),
        "{log}"
    );
}

/// Secrets in the input, the app's secret and the connection's ticket are in
/// no log, at any level, and the daemon leaves no core.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_secret_is_logged() {
    let mut stage = Stage::with(|_, home| home.set("NOD_LOG", "trace")).await;
    let (hook, card) = stage.ask_bash("echo CANARY-input").await;
    stage.tap(&card, "deny").await;
    hook.ended().await;
    stage.shows(&card, "已拒绝").await;
    let garbage = r#"{"header":{"event_id":"CANARY-event"},"event":{"CANARY":"CANARY"}}"#;
    stage.sim.push_click_raw(garbage).await;
    let pid = stage.daemon().pid();
    if cfg!(target_os = "linux") {
        let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        let core = limits.lines().find(|line| line.starts_with("Max core"));
        assert_eq!(
            core.unwrap().split_whitespace().nth(4),
            Some("0"),
            "{limits}"
        );
        let files = limits
            .lines()
            .find(|line| line.starts_with("Max open files"));
        let files: Vec<_> = files.unwrap().split_whitespace().skip(3).collect();
        assert_eq!(files[0], files[1], "{limits}");
    }
    let daemon = stage.take_daemon();
    let log = daemon.log();
    daemon.stop().await;
    for secret in ["CANARY", APP_SECRET, "ticket=", "device_id=", "t-g"] {
        assert!(!log.contains(secret), "{secret} in\n{log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_user_reads_nothing_and_reaches_nothing() {
    if !rustix::process::geteuid().is_root() {
        report("SKIPPED: only root can become another user, so nothing was shown about one");
        return;
    }
    let mut stage = Stage::new().await;
    let (hook, card) = stage.ask_bash("make private").await;
    chmod(stage.home.path(), 0o755);
    let nod = stage.home.path().join("nod");
    std::fs::copy(env!("CARGO_BIN_EXE_nod"), &nod).unwrap();
    let kept = stage.home.state();
    let as_nobody = |program: &str, arguments: &[&str]| {
        std::process::Command::new(program)
            .args(arguments)
            .env_clear()
            .env("NOD_STATE_DIR", &kept)
            .env("HOME", "/")
            .uid(NOBODY)
            .gid(NOBODY)
            .output()
            .unwrap()
    };
    for file in ["nod.db", "nod.db-wal", "nod.lock", "run/nod.sock"] {
        assert!(kept.join(file).exists(), "{file}");
        let path = kept.join(file).display().to_string();
        let read = as_nobody("cat", &[&path]);
        assert!(!read.status.success() && read.stdout.is_empty(), "{file}");
    }
    let listed = as_nobody("ls", &[&kept.display().to_string()]);
    assert!(!listed.status.success());
    // With every door left open by mistake, the socket still knows who knocks.
    chmod(&kept, 0o711);
    chmod(&kept.join("run"), 0o711);
    chmod(&stage.home.socket(), 0o666);
    for arguments in [&["status"][..], &["lock"], &["audit"], &["rules"]] {
        let told = as_nobody(&nod.display().to_string(), arguments);
        assert!(!told.status.success(), "{arguments:?}: {told:?}");
        assert_eq!(told.stdout, b"", "{arguments:?}");
    }
    assert_eq!(stage.home.status().await["locked"], false);
    assert_eq!(toast(&stage.tap(&card, "allow").await).1, "已批准运行");
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
}
