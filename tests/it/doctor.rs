//! `nod doctor` against every fault it can name: in the settings, the files,
//! the daemon, the hooks, the app's console and the network.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use nod::simulator::{APP_ID, APP_SECRET, App, OWNER, Options, Press, Simulator};
use rustix::process::Signal;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::support::{Client, Daemon, Door, Home, LIMIT, settings, until, within};

const BIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/bin");

/// One run of the doctor.
struct Report {
    code: Option<i32>,
    json: Value,
}

impl Report {
    fn check(&self, name: &str) -> &Value {
        let checks = self.json["checks"].as_array().unwrap();
        let found = checks.iter().find(|check| check["check"] == name);
        found.unwrap_or_else(|| panic!("no `{name}` in {:#}", self.json))
    }

    /// The check has this level, and its words or steps hold `words`.
    fn says(&self, name: &str, level: &str, words: &str) {
        let check = self.check(name);
        assert_eq!(check["level"], level, "{check:#}");
        let said = format!("{} {}", check["text"], check["fix"]);
        assert!(said.contains(words), "`{words}` is not in {check:#}");
    }
}

fn secret_free(text: &str) {
    for secret in [APP_SECRET, "hunter2"] {
        assert!(!text.contains(secret), "{text}");
    }
}

async fn doctor(home: &Home, arguments: &[&str], settings: &[(&str, &str)]) -> Report {
    let mut all = vec!["doctor", "--json"];
    all.extend(arguments);
    let mut environment = vec![("PATH", BIN)];
    environment.extend(settings);
    let (code, out, err) = home.run(&all, &environment).await;
    secret_free(&out);
    secret_free(&err);
    let json = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}\n{err}"));
    Report { code, json }
}

/// A home that `nod setup` has set up, with its daemon running.
struct Healthy {
    feishu: Simulator,
    daemon: Daemon,
}

impl Healthy {
    async fn new() -> Self {
        let feishu = Simulator::start(Options::default()).await.unwrap();
        let daemon = Daemon::connected(&feishu).await;
        let home = &daemon.home;
        let secret = home.path().join("secret");
        fs::write(&secret, APP_SECRET).unwrap();
        let base = feishu.base_url();
        let flags = [
            "setup",
            "--yes",
            "--no-service",
            "--domain",
            &base,
            "--app-id",
            APP_ID,
            "--app-secret-file",
            secret.to_str().unwrap(),
            "--owner",
            OWNER,
        ];
        let (code, out, err) = home.run(&flags, &[]).await;
        assert_eq!(code, Some(0), "{out}{err}");
        assert!(out.contains("`nod doctor --click` proves"), "{out}");
        Self { feishu, daemon }
    }

    async fn doctor(&self) -> Report {
        doctor(&self.daemon.home, &[], &[]).await
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.daemon.home.path().join(name)
    }
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// What is changed in the console; the check, level and words that tell; the
/// exit code.
type Fault = (
    fn(&mut App),
    &'static str,
    &'static str,
    &'static str,
    Option<i32>,
);

#[tokio::test(flavor = "multi_thread")]
async fn a_healthy_nod_passes_and_each_fault_of_the_app_is_named() {
    let nod = Healthy::new().await;
    let report = nod.doctor().await;
    assert_eq!(report.code, Some(0), "{:#}", report.json);
    assert_eq!(report.json["ok"], true);
    for check in report.json["checks"].as_array().unwrap() {
        assert_eq!(check["level"], "ok", "{check:#}");
    }
    let settings = report.json["settings"].to_string();
    assert!(settings.contains("~/.config/nod/.env"), "{settings}");

    let faults: [Fault; 9] = [
        (
            |app| app.scopes.retain(|scope| scope != "im:message:send_as_bot"),
            "scopes",
            "problem",
            "/auth?q=im:message:send_as_bot",
            Some(1),
        ),
        (
            |app| {
                app.scopes
                    .retain(|s| s != "application:application:self_manage");
            },
            "scopes",
            "warning",
            "self_manage",
            Some(0),
        ),
        (
            |app| app.callbacks.clear(),
            "callbacks",
            "problem",
            "200340",
            Some(1),
        ),
        (
            |app| app.callback_mode = Some("webhook".to_owned()),
            "callbacks",
            "problem",
            "Callback Configuration",
            Some(1),
        ),
        (
            |app| app.callback_mode = None,
            "callbacks",
            "warning",
            "nod doctor --click",
            Some(0),
        ),
        (
            |app| app.event_mode = Some("webhook".to_owned()),
            "events",
            "problem",
            "Event Configuration",
            Some(1),
        ),
        (
            |app| app.events.clear(),
            "events",
            "problem",
            "im.message.receive_v1 is not subscribed",
            Some(1),
        ),
        (
            |app| app.published = false,
            "version",
            "problem",
            "Version Management",
            Some(1),
        ),
        (
            |app| app.secret = "another".to_owned(),
            "token",
            "problem",
            "FEISHU_APP_SECRET",
            Some(1),
        ),
    ];
    for (fault, check, level, words, code) in faults {
        assert!(nod.feishu.edit_app(APP_ID, fault));
        let report = nod.doctor().await;
        report.says(check, level, words);
        assert_eq!(report.code, code, "{check}: {:#}", report.json);
        nod.feishu.edit_app(APP_ID, |app| *app = App::default());
    }
    nod.feishu.edit_app(APP_ID, |app| app.published = false);
    nod.doctor().await.says("bot", "problem", "/capability");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_of_this_machine_is_named() {
    let mut nod = Healthy::new().await;

    let rival = Client::answering(&nod.feishu);
    assert!(nod.feishu.wait_connections(2, LIMIT).await);
    nod.doctor()
        .await
        .says("connections", "problem", "2 connections");
    rival.stopped().await;
    assert!(nod.feishu.wait_connections(1, LIMIT).await);

    for (name, open, closed, check, fix) in [
        (".config/nod/.env", 0o644, 0o600, "settings", "chmod 600"),
        ("state", 0o750, 0o700, "state-directory", "chmod 700"),
        ("state/nod.db", 0o640, 0o600, "store-file", "chmod 600"),
    ] {
        chmod(&nod.path(name), open);
        let report = nod.doctor().await;
        report.says(check, "problem", fix);
        assert_eq!(report.code, Some(1));
        chmod(&nod.path(name), closed);
    }

    let file = nod.path(".claude/settings.json");
    let good = fs::read_to_string(&file).unwrap();
    let program = env!("CARGO_BIN_EXE_nod");
    for (text, level, words) in [
        (
            good.replace(program, "/opt/other/nod"),
            "problem",
            "/opt/other/nod",
        ),
        ("{}".to_owned(), "problem", "never asks nod"),
        ("{ oops".to_owned(), "problem", "line 1"),
        (good.replace("360", "10"), "warning", "limits differ"),
    ] {
        assert_ne!(text, good);
        fs::write(&file, text).unwrap();
        nod.doctor().await.says("hooks", level, words);
    }
    for (mode, level, words) in [
        ("bypassPermissions", "warning", "bypassPermissions"),
        ("default", "ok", "asks"),
    ] {
        let text = format!("{{\"permissions\": {{\"defaultMode\": \"{mode}\"}}}}");
        fs::write(&file, text).unwrap();
        nod.doctor().await.says("mode", level, words);
    }
    fs::write(&file, r#"{"disableAllHooks": true}"#).unwrap();
    nod.doctor()
        .await
        .says("mode", "problem", "disableAllHooks");
    fs::write(&file, &good).unwrap();

    let (code, ..) = nod.daemon.home.run(&["lock"], &[]).await;
    assert_eq!(code, Some(0));
    nod.doctor().await.says("lock", "warning", "nod unlock");

    nod.daemon.signal(Signal::KILL);
    nod.daemon.exit().await;
    let report = nod.doctor().await;
    report.says("daemon", "problem", "left behind");
    assert_eq!(report.code, Some(1));
    fs::remove_file(nod.daemon.home.socket()).unwrap();
    nod.doctor().await.says("daemon", "problem", "nod daemon");
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_and_networks_that_cannot_work_are_named() {
    let home = Home::new();
    let report = doctor(&home, &[], &[]).await;
    report.says("settings", "problem", "FEISHU_APP_ID");
    report.says("owner", "problem", "FEISHU_OWNER_ID");
    report.says("claude", "ok", "2.1.300");
    assert_eq!(report.code, Some(1));
    let report = doctor(&home, &[], &[("NOD_CHAT_RATE", "fast")]).await;
    report.says("settings", "problem", "NOD_CHAT_RATE");
    let report = doctor(&home, &[], &[("PATH", "/nonexistent")]).await;
    report.says("claude", "warning", "no `claude`");

    let nobody = settings("http://127.0.0.1:1");
    let report = doctor(&home, &[], &nobody).await;
    report.says("token", "problem", "refused the connection");
    report.says("proxy", "ok", "directly");
    let mut proxied = settings("feishu");
    proxied.push(("HTTPS_PROXY", "http://me:hunter2@127.0.0.1:1"));
    let report = doctor(&home, &[], &proxied).await;
    report.says("proxy", "ok", "`http://127.0.0.1:1`");
    report.says("token", "problem", "the proxy `http://127.0.0.1:1` refused");

    let old = Door::open(|mut stream| async move {
        let mut request = [0; 4_096];
        while let Ok(1..) = stream.read(&mut request).await {
            let answer = b"HTTP/1.1 404 Not Found\r\ndate: Tue, 03 Mar 2015 10:00:00 GMT\r\ncontent-type: text/html\r\ncontent-length: 0\r\n\r\n";
            if stream.write_all(answer).await.is_err() {
                return;
            }
        }
    })
    .await;
    let base = format!("http://{}", old.address);
    let report = doctor(&home, &[], &settings(&base)).await;
    report.says("clock", "warning", "ahead of Feishu's");
    report.says("token", "problem", "portal");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tap_is_proven_through_the_daemon_and_without_one() {
    let mut nod = Healthy::new().await;
    let taps = async |nod: &Healthy, button: &str| {
        let before = nod.feishu.messages().len();
        let running = doctor(&nod.daemon.home, &["--click"], &[]);
        let tapping = async {
            let messages = nod.feishu.wait_messages(before + 1, LIMIT).await.unwrap();
            let press = Press::text(&messages[before].message_id, button).by(OWNER);
            until("a tap", || async {
                nod.feishu.click(press.clone()).await.ok()
            })
            .await
        };
        let (report, clicked) = tokio::join!(running, tapping);
        assert!(clicked.toast.is_some(), "{clicked:?}");
        report
    };
    let report = taps(&nod, "Confirm").await;
    report.says("click", "ok", "the tap arrived");
    let click = report.check("click");
    assert!(
        click["tap_to_hook_us"].as_u64().is_some_and(|us| us > 0),
        "{click:#}"
    );
    assert!(
        click["tap_to_reply_us"].as_u64().is_some_and(|us| us > 0),
        "{click:#}"
    );
    assert_eq!(report.code, Some(0), "{:#}", report.json);

    nod.feishu.edit_app(APP_ID, |app| app.callbacks.clear());
    let unheard = doctor(&nod.daemon.home, &["--click", "--wait", "1"], &[]).await;
    unheard.says("click", "problem", "Callback Configuration");
    nod.feishu.edit_app(APP_ID, |app| *app = App::default());

    nod.daemon.signal(Signal::TERM);
    within("the daemon's end", nod.daemon.exit()).await;
    let report = taps(&nod, "Tap me").await;
    report.says("click", "ok", "the tap arrived");
    report.says("daemon", "problem", "no daemon is running");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_report_for_people_holds_the_same_and_no_secret() {
    let home = Home::new();
    let mut all = settings("http://127.0.0.1:1");
    all.extend([
        ("PATH", BIN),
        ("HTTPS_PROXY", "http://me:hunter2@127.0.0.1:1"),
    ]);
    for (lang, words) in [("zh", "守护进程没有运行"), ("en", "no daemon is running")] {
        all.push(("NOD_LANG", lang));
        let (code, out, err) = home.run(&["doctor"], &all).await;
        assert_eq!(code, Some(1));
        assert!(out.contains(&format!("✗ {words}\n    → ")), "{out}");
        assert!(out.contains(APP_ID), "{out}");
        secret_free(&(out + &err));
    }
}
