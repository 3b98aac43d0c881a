//! The real daemon against the simulator: how fast it is there, how it comes
//! back, what it says when it can't, and how it stops.

use futures::future::join_all;
use nod::for_tests::simulator::{Armed, Fault, Options, Press, Simulator};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::support::{
    Asker, Client, Daemon, Door, Home, LIMIT, click_is_answered, faster_than, foreign_click,
    is_connected, next_connection, no_violations, settings, within,
};
use super::tls;

async fn start() -> Simulator {
    Simulator::start(Options::default()).await.unwrap()
}

/// Why the simulator's connection ended.
fn ends(simulator: &Simulator) -> Vec<String> {
    let history = simulator.history(0);
    let ends = history.iter().filter(|e| e.kind == "connection_down");
    ends.map(|e| e.detail["why"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn it_is_connected_within_a_second_and_back_within_two() {
    faster_than(Duration::from_secs(1), || async {
        let simulator = start().await;
        let daemon = Daemon::start(&settings(&simulator.base_url()));
        next_connection(&simulator, 0).await;
        daemon.started.elapsed()
    })
    .await;
    faster_than(Duration::from_secs(2), || async {
        let simulator = start().await;
        let daemon = Daemon::connected(&simulator).await;
        let first = next_connection(&simulator, 0).await;
        let lost = Instant::now();
        simulator.set_fault(Armed::once(Fault::Drop)).unwrap();
        next_connection(&simulator, first.id).await;
        click_is_answered(&simulator, "after").await;
        let took = lost.elapsed();
        let status = daemon.status_where("two connects", |s| s["connection"]["connects"] == 2);
        assert!(is_connected(&status.await));
        took
    })
    .await;
}

/// Something that keeps the daemon from connecting, and the words for it.
struct Trouble {
    fault: Option<Fault>,
    changed: Vec<(&'static str, String)>,
    words: String,
    /// Only the person can change it.
    degraded: bool,
}

fn fatal(fault: Fault, words: &str) -> Trouble {
    Trouble {
        fault: Some(fault),
        changed: Vec::new(),
        words: words.to_owned(),
        degraded: true,
    }
}

fn code(code: i64, words: &str) -> Trouble {
    let msg = "words of the server".to_owned();
    fatal(
        Fault::DiscoveryError {
            code,
            msg,
            with_data: false,
        },
        words,
    )
}

fn refused(status: i64, autherrcode: Option<i64>, words: &str) -> Trouble {
    fatal(
        Fault::RefuseHandshake {
            http: 403,
            status: Some(status),
            autherrcode,
            msg: String::new(),
        },
        words,
    )
}

/// What no sentence may call the person's own to change.
fn mends_itself(trouble: Trouble) -> Trouble {
    Trouble {
        degraded: false,
        ..trouble
    }
}

fn passing(changed: Vec<(&'static str, String)>, words: impl Into<String>) -> Trouble {
    Trouble {
        fault: None,
        changed,
        words: words.into(),
        degraded: false,
    }
}

async fn is_told(trouble: Trouble) {
    let simulator = start().await;
    if let Some(fault) = trouble.fault {
        simulator.set_fault(Armed::always(fault)).unwrap();
    }
    let base = simulator.base_url();
    let mut settings = settings(&base);
    settings.extend(trouble.changed.iter().map(|(k, v)| (*k, v.as_str())));
    let daemon = Daemon::start(&settings);
    let words = &trouble.words;
    let status = daemon.status_where(words, |status| {
        let cause = status["connection"]["cause"].as_str();
        cause.is_some_and(|cause| cause.contains(words))
    });
    let state = status.await["connection"]["state"].clone();
    assert_eq!(state == "degraded", trouble.degraded, "{words}: {state}");
    daemon.log.says(&format!("not connected: {words}")).await;
    let (exit, shown, _) = daemon.home.run(&["status"], &[]).await;
    assert!(shown.contains(words), "{shown}");
    assert_eq!(exit, Some(if trouble.degraded { 3 } else { 0 }), "{shown}");
}

const CREDENTIALS: &str = "127.0.0.1 does not accept this app id and secret";

#[tokio::test]
async fn every_fatal_code_leaves_it_alive_and_named_in_words() {
    let too_many = "the app has as many connections as 127.0.0.1 allows: nod tries again";
    join_all(
        [
            code(1_000_040_344, CREDENTIALS),
            code(1_000_040_345, CREDENTIALS),
            code(514, CREDENTIALS),
            mends_itself(code(1_000_040_350, too_many)),
            code(
                1_000_040_351,
                "this app does not live on 127.0.0.1: set `FEISHU_DOMAIN`",
            ),
            code(
                403,
                "127.0.0.1 refuses this app (code 403): it may be disabled or banned",
            ),
            mends_itself(code(
                77,
                "127.0.0.1 refused the connection with code 77 (words of the server)",
            )),
            mends_itself(refused(514, Some(1_000_040_350), too_many)),
            refused(403, None, "127.0.0.1 refuses this app (code 403)"),
        ]
        .map(is_told),
    )
    .await;
    faster_than(Duration::from_secs(1), || async {
        let started = Instant::now();
        is_told(code(1_000_040_345, CREDENTIALS)).await;
        started.elapsed()
    })
    .await;
}

#[tokio::test]
async fn every_common_trouble_has_one_clear_sentence() {
    let wrong = "a-secret-of-another-app";
    // A label over 63 bytes never reaches a resolver's network, and only a
    // proxy's name gets that far: a server's is checked for TLS first.
    let nowhere = format!("{}.invalid", "a".repeat(64));
    // Bound and not listening, so that no other test gets the port.
    let nobody = tokio::net::TcpSocket::new_v4().unwrap();
    nobody.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let closed = nobody.local_addr().unwrap();
    let untrusted = tls::Authority::new();
    let front = untrusted.front("localhost", closed).await;
    let proxy = |answer: &'static str| {
        Door::open(move |mut stream| async move {
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        })
    };
    let (no, login) = tokio::join!(
        proxy("HTTP/1.1 403 No\r\n\r\n"),
        proxy("HTTP/1.1 407 Who\r\n\r\n")
    );
    let page = |status| Fault::DiscoveryHttp {
        status,
        body: "<html>Welcome to the hotel</html>".to_owned(),
    };
    let portal = |status| Trouble {
        degraded: false,
        ..fatal(
            page(status),
            "a web page answered in place of 127.0.0.1 (HTTP",
        )
    };
    let through = |proxy: &str| {
        vec![
            ("FEISHU_DOMAIN", "https://open.feishu.test".to_owned()),
            ("HTTPS_PROXY", proxy.to_owned()),
        ]
    };
    let domain = |url: String| vec![("FEISHU_DOMAIN", url)];
    join_all(
        [
            Trouble {
                degraded: true,
                ..passing(vec![("FEISHU_APP_SECRET", wrong.to_owned())], CREDENTIALS)
            },
            passing(
                through(&format!("http://{nowhere}:3128")),
                format!("no address found for `{nowhere}`: check the network and DNS"),
            ),
            passing(
                domain(format!("http://{closed}")),
                "`127.0.0.1` refused the connection: check the address",
            ),
            portal(200),
            portal(302),
            passing(
                domain(format!("https://localhost:{}", front.address.port())),
                "no trusted encrypted connection to `localhost`: its certificate is not signed by a CA",
            ),
            passing(
                through(&format!("http://jo:hunter2@{}", no.address)),
                format!("the proxy `http://{}` did not connect to `open.feishu.test`", no.address),
            ),
            passing(
                through(&format!("http://{}", login.address)),
                format!("the proxy `http://{}` wants a user name", login.address),
            ),
        ]
        .map(is_told),
    )
    .await;
}

#[tokio::test]
async fn a_dead_line_is_noticed_while_somebody_waits_and_the_tap_counts() {
    let simulator = start().await;
    let mut daemon = Daemon::connected(&simulator).await;
    let first = next_connection(&simulator, 0).await;
    let mut asker = Asker::ask(&daemon.home, 1, "ls").await;
    let card = simulator.wait_messages(1, LIMIT).await.unwrap().remove(0);
    let dead = Fault::HalfOpen { ghost: false };
    simulator.set_fault(Armed::once(dead)).unwrap();
    let since = Instant::now();
    next_connection(&simulator, first.id).await;
    assert!(since.elapsed() < Duration::from_secs(12));
    daemon.log.says("the connection went dead").await;

    simulator.set_fault(Armed::once(Fault::Duplicate)).unwrap();
    let press = Press::action(&card.message_id, "allow");
    let hook = async {
        let decision = asker.decision().await;
        asker.confirm().await;
        decision
    };
    let (clicked, decision) = tokio::join!(simulator.click(press), hook);
    let clicked = clicked.unwrap();
    assert_eq!(clicked.popup, None, "{clicked:?}");
    assert_eq!(decision["decision"]["behavior"], "allow", "{decision}");
    let both = simulator.wait_for(LIMIT, |s| (s.replies() == 2).then_some(()));
    assert!(both.await.is_some(), "a repeated tap is answered too");
    for reply in simulator.history(0).iter().filter(|e| e.kind == "reply_in") {
        assert_eq!(reply.detail["code"], 200);
        assert!(reply.detail["data"]["toast"].is_object(), "{reply:?}");
    }
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.exit().await.code(), Some(0));

    let base = simulator.base_url();
    let again = Daemon::start_in(daemon.home, &settings(&base));
    again.status_where("connected again", is_connected).await;
    let history = simulator.history(0);
    let tap = history.iter().find(|e| e.kind == "event_out").unwrap();
    let tap = tap.detail["payload"].to_string();
    let (_, outcome) = simulator.push_click_raw(tap).await;
    assert_eq!(outcome.toast, clicked.toast, "the first answer again");
    no_violations(&simulator);
}

#[tokio::test]
async fn every_kind_of_push_gets_exactly_one_reply() {
    let simulator = start().await;
    let daemon = Daemon::connected(&simulator).await;
    let kind = |value: &str| Fault::TypeHeader {
        value: value.to_owned(),
    };
    let names = ["sum", "seq", "message_id", "trace_id"];
    let headless = Fault::MissingHeaders {
        names: names.map(str::to_owned).to_vec(),
    };
    let strange = json!({"schema": "2.0", "header": {"event_id": "e", "event_type": "x.y_v1"}});
    let cases = [
        (None, foreign_click("plain"), true),
        (Some(kind("card")), foreign_click("card"), true),
        (Some(headless), foreign_click("headless"), true),
        (Some(kind("foo")), foreign_click("foo"), false),
        (None, strange.to_string(), false),
        (None, "no json".to_owned(), false),
        (None, String::new(), false),
    ];
    let mut replies = 0;
    for (fault, body, shown) in cases {
        if let Some(fault) = fault {
            simulator.set_fault(Armed::once(fault)).unwrap();
        }
        let (pushed, _) = simulator.push_click_raw(body.clone()).await;
        replies += 1;
        assert_eq!(pushed.code, Some(200), "{body}");
        assert_eq!(pushed.data.is_some(), shown, "{body}");
        assert_eq!(simulator.replies(), replies, "{body}");
    }
    daemon.log.says("a frame of unknown type `foo`").await;
    daemon
        .log
        .says("acknowledged a push that is no event")
        .await;
    no_violations(&simulator);
}

#[tokio::test]
async fn a_signal_lets_a_tap_in_flight_be_answered_and_says_goodbye() {
    let simulator = start().await;
    let mut daemon = Daemon::connected(&simulator).await;
    let mut asker = Asker::ask(&daemon.home, 1, "ls").await;
    let card = simulator.wait_messages(1, LIMIT).await.unwrap().remove(0);
    // The hook has its answer and has not confirmed it yet: the tap is open.
    let stopping = async {
        asker.decision().await;
        daemon.signal(Signal::TERM);
    };
    let press = Press::action(&card.message_id, "allow");
    let (clicked, ()) = tokio::join!(simulator.click(press), stopping);
    let clicked = clicked.unwrap();
    assert_eq!(clicked.popup, None, "{clicked:?}");
    assert!(clicked.toast.is_some(), "{clicked:?}");
    assert_eq!(daemon.exit().await.code(), Some(0));
    assert!(simulator.wait_connections(0, LIMIT).await);
    let ends = ends(&simulator);
    assert!(
        ends[0].starts_with("closed by the client with 1000"),
        "{ends:?}"
    );
    assert!(!daemon.home.socket().exists());
    no_violations(&simulator);
}

/// Whether whoever runs these tests did so under `nohup`.
fn hangup_is_ignored_here() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() & 1 == 1)
}

#[tokio::test]
async fn a_hang_up_stops_in_order_and_under_nohup_changes_nothing() {
    let simulator = start().await;
    let mut daemon = Daemon::connected(&simulator).await;
    daemon.signal(Signal::HUP);
    if hangup_is_ignored_here() {
        daemon.status_where("still there", is_connected).await;
        daemon.signal(Signal::TERM);
    }
    assert_eq!(daemon.exit().await.code(), Some(0));
    let ends = ends(&simulator);
    assert!(
        ends[0].starts_with("closed by the client with 1000"),
        "{ends:?}"
    );
    let home = Home::new();
    let base = simulator.base_url();
    let plain = home.nod(&["daemon"], &settings(&base));
    let set = plain.as_std().get_envs();
    let mut apart = Command::new("/bin/sh")
        .args(["-c", "trap '' HUP; exec \"$0\" daemon"])
        .arg(env!("CARGO_BIN_EXE_nod"))
        .current_dir(home.path())
        .env_clear()
        .envs(set.filter_map(|(name, value)| Some((name, value?))))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    assert!(simulator.wait_connections(1, LIMIT).await);
    let pid = Pid::from_raw(i32::try_from(apart.id().unwrap()).unwrap()).unwrap();
    kill_process(pid, Signal::HUP).unwrap();
    let status = home.run(&["status"], &settings(&base)).await;
    assert_eq!(status.0, Some(0), "{status:?}");
    kill_process(pid, Signal::TERM).unwrap();
    let ended = within("the daemon's end", apart.wait()).await.unwrap();
    assert_eq!(ended.code(), Some(0));
}

#[tokio::test]
async fn a_daemon_with_its_own_state_says_which_clients_it_does_not_serve() {
    let daemon = Daemon::start(&settings("http://127.0.0.1:1"));
    let words = "clients of protocol v1 are not served at `/tmp/claude-permission.sock`";
    daemon.log.says(words).await;
}

#[tokio::test]
async fn a_misspelt_setting_is_named_in_the_log_and_its_value_is_not() {
    let given = [
        &settings("http://127.0.0.1:1")[..],
        &[("NOD_APPROVER", "canary")],
    ]
    .concat();
    let daemon = Daemon::start(&given);
    let words = "no such settings: `NOD_APPROVER` (did you mean `FEISHU_APPROVERS`?)";
    daemon.log.says(words).await;
    assert!(!daemon.log.text().contains("canary"));
}

#[tokio::test]
async fn an_app_from_two_places_is_named_in_the_log_and_its_values_are_not() {
    const APART: &str = "/nod/.env`: are they one app's?\n";
    let by_app = settings("http://127.0.0.1:1");
    let by_webhook = [
        ("FEISHU_SEND_MODE", "webhook"),
        (
            "FEISHU_WEBHOOK_URL",
            "http://127.0.0.1:1/open-apis/bot/v2/hook/x",
        ),
        ("CALLBACK_LISTEN", "127.0.0.1:0"),
        ("CALLBACK_SERVER_URL", "http://127.0.0.1:1"),
    ];
    for (mode, is_said) in [(&by_app[2..], true), (&by_webhook[..], false)] {
        let home = Home::new();
        let own = home.path().join(".config/nod/.env");
        std::fs::create_dir_all(own.parent().unwrap()).unwrap();
        let app = by_app[..2]
            .iter()
            .map(|(name, value)| format!("{name}={value}\n"));
        std::fs::write(&own, app.collect::<String>()).unwrap();
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o600)).unwrap();
        let theirs = [mode, &[("FEISHU_APP_ID", "cli_0000000000000000")]].concat();
        let mut daemon = Daemon::start_in(home, &theirs);
        daemon.status_where("running", |_| true).await;
        daemon.signal(Signal::TERM);
        daemon.exit().await;
        let log = daemon.log.whole().await;
        assert_eq!(log.contains(APART), is_said, "{log}");
        assert!(!log.contains("cli_0000000000000000"), "{log}");
    }
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    let mut codes = Vec::new();
    // A dead line keeps the orderly end busy for two seconds, which is the
    // time the second signal has to arrive in.
    for _ in 0..3 {
        let simulator = start().await;
        let mut daemon = Daemon::connected(&simulator).await;
        let dead = Fault::HalfOpen { ghost: false };
        simulator.set_fault(Armed::once(dead)).unwrap();
        let frozen = |s: &Simulator| s.connections()[0].frozen.then_some(());
        assert!(simulator.wait_for(LIMIT, frozen).await.is_some());
        daemon.signal(Signal::TERM);
        daemon.log.says("stopping").await;
        daemon.signal(Signal::INT);
        let code = daemon.exit().await.code();
        if code == Some(130) {
            return;
        }
        codes.push(code);
    }
    panic!("never ended by the second signal: {codes:?}");
}

#[tokio::test]
async fn the_second_daemon_of_a_directory_is_turned_away() {
    let simulator = start().await;
    let daemon = Daemon::connected(&simulator).await;
    let base = simulator.base_url();
    let (code, out, err) = daemon.home.run(&["daemon"], &settings(&base)).await;
    assert_eq!(code, Some(75), "{err}");
    let pid = daemon.pid().as_raw_nonzero();
    assert!(
        err.contains(&format!("a daemon already runs here (process {pid})")),
        "{err}"
    );
    assert!(err.contains("hint: `nod status`"), "{err}");
    assert_eq!(out, "");
    assert_eq!(simulator.connections().len(), 1);
    daemon
        .status_where("the first one goes on", is_connected)
        .await;
}

#[tokio::test]
async fn other_programs_on_the_same_app_are_warned_about() {
    let simulator = start().await;
    let _rival = Client::answering(&simulator);
    next_connection(&simulator, 0).await;
    let crowded = Daemon::connected(&simulator).await;
    crowded
        .log
        .says("WARN this app has 2 connections open")
        .await;
}

#[tokio::test]
async fn it_goes_on_when_nobody_reads_its_log() {
    let simulator = start().await;
    let home = Home::new();
    let base = simulator.base_url();
    let mut command = home.nod(&["daemon"], &settings(&base));
    let mut child = command.env("NOD_LOG", "trace").spawn().unwrap();
    drop(child.stderr.take());
    let first = next_connection(&simulator, 0).await;
    simulator.set_fault(Armed::once(Fault::Drop)).unwrap();
    next_connection(&simulator, first.id).await;
    click_is_answered(&simulator, "after").await;
}

#[tokio::test]
async fn a_log_nobody_reads_does_not_delay_a_tap() {
    let simulator = start().await;
    let home = Home::new();
    let base = simulator.base_url();
    let _daemon = home
        .nod(&["daemon"], &settings(&base))
        .env("NOD_LOG", "trace")
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    assert!(simulator.wait_connections(1, LIMIT).await);
    // Far more log than a pipe holds, and nobody reads it.
    let kind = "im.chat.".to_owned() + &"x".repeat(70);
    for _ in 0..1_000 {
        assert!(simulator.push_event(&kind, json!({})).await.acknowledged());
    }
    let mut asker = Asker::ask(&home, 1, "echo hi").await;
    let card = simulator.wait_messages(1, LIMIT).await.unwrap().remove(0);
    let press = Press::action(&card.message_id, "allow");
    simulator.click(press).await.unwrap();
    assert_eq!(asker.decision().await["decision"]["behavior"], "allow");
}

/// The number behind "process " in what was said.
fn said_pid(said: &str) -> Pid {
    let (_, rest) = said.split_once("(process ").unwrap();
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Pid::from_raw(digits.parse().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn in_the_background_it_says_where_it_is_and_only_one_runs() {
    let simulator = start().await;
    let home = Home::new();
    let base = simulator.base_url();
    let given = settings(&base);
    let start = ["daemon", "--background"];
    let (code, out, err) = home.run(&start, &given).await;
    assert_eq!(code, Some(0), "{err}");
    let log = home.state().join("daemon.log");
    assert!(out.contains(log.to_str().unwrap()), "{out}");
    let pid = said_pid(&out);
    next_connection(&simulator, 0).await;
    let mode = log.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let (code, status, _) = home.run(&["status", "--json"], &given).await;
    assert_eq!(code, Some(0), "{status}");
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["pid"], pid.as_raw_nonzero().get());

    let (code, _, err) = home.run(&start, &given).await;
    assert_eq!(code, Some(75), "{err}");
    assert!(err.contains(&pid.as_raw_nonzero().to_string()), "{err}");

    kill_process(pid, Signal::TERM).unwrap();
    let until = Instant::now() + LIMIT;
    while std::os::unix::net::UnixStream::connect(home.socket()).is_ok() {
        assert!(Instant::now() < until, "it does not end");
        tokio::task::yield_now().await;
    }
    no_violations(&simulator);
    simulator.shutdown().await;
}

#[tokio::test]
async fn a_background_daemon_that_cannot_run_says_why_at_once() {
    let home = Home::new();
    let start = ["daemon", "--background"];
    let (code, _, err) = home.run(&start, &[]).await;
    assert_eq!(code, Some(78), "{err}");
    assert!(err.contains("`FEISHU_APP_ID` is not set"), "{err}");
    std::fs::write(home.path().join("other.env"), "NOD_LOG=off\n").unwrap();
    let named = ["--env-file", "other.env", "daemon", "--background"];
    let given = settings("http://127.0.0.1:1");
    let (code, _, err) = home.run(&named, &given).await;
    assert_eq!(code, Some(2), "{err}");
    // Somebody else's file in the place of the log is left alone.
    let theirs = home.path().join("theirs");
    std::fs::write(&theirs, "theirs").unwrap();
    std::fs::create_dir_all(home.state()).unwrap();
    std::fs::set_permissions(home.state(), std::fs::Permissions::from_mode(0o700)).unwrap();
    std::os::unix::fs::symlink(&theirs, home.state().join("daemon.log")).unwrap();
    let (code, _, err) = home.run(&start, &given).await;
    assert_eq!(code, Some(1), "{err}");
    assert_eq!(std::fs::read_to_string(&theirs).unwrap(), "theirs");
}
