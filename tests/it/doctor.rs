//! `nod doctor` against every fault it can name: in the settings, the files,
//! the daemon, the hooks, the app's console and the network. What it said in
//! all of them is every line it can say.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use nod::for_tests::hook::wire;
use nod::for_tests::simulator::{
    APP_ID, APP_SECRET, App, Armed, Fault, OWNER, Options, Press, Simulator,
};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixListener;
use tokio::sync::OnceCell;
use tokio_util::task::AbortOnDropHandle;

use super::support::{Client, Daemon, Door, Home, LIMIT, settings, until, within};

const BIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/bin");

/// Every line that any run here has printed.
static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
/// Each scene is played once: for its own test, or for the one that wants all.
static PLAYED: [OnceCell<()>; 7] = [const { OnceCell::const_new() }; 7];

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

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Value> {
        let checks = self.json["checks"].as_array().unwrap().iter();
        checks.filter(move |check| check["check"] == name)
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
    let json: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}\n{err}"));
    for check in json["checks"].as_array().unwrap() {
        let steps = check["fix"].as_array().unwrap().iter();
        let lines = steps.chain([&check["text"]]);
        let lines = lines.map(|line| line.as_str().unwrap().to_owned());
        SAID.lock().unwrap().extend(lines);
    }
    Report { code, json }
}

/// A home that `nod setup` has set up, with its daemon running.
struct Healthy {
    feishu: Simulator,
    daemon: Daemon,
}

impl Healthy {
    async fn new() -> Self {
        let options = Options {
            apps: vec![App::scanned()],
            ..Options::default()
        };
        let feishu = Simulator::start(options).await.unwrap();
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
        let no_file_before = "installed (`nod setup --uninstall` removes them)";
        assert!(out.contains(no_file_before), "{out}");
        Self { feishu, daemon }
    }

    async fn doctor(&self) -> Report {
        doctor(&self.daemon.home, &[], &[]).await
    }

    fn path(&self, name: &str) -> PathBuf {
        self.daemon.home.path().join(name)
    }
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// What is changed in the console; the check, level and words that tell; the
/// exit code.
type ConsoleFault = (
    fn(&mut App),
    &'static str,
    &'static str,
    &'static str,
    Option<i32>,
);

const CONSOLE_FAULTS: [ConsoleFault; 11] = [
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
        |app| app.scopes.retain(|scope| scope != "im:message:readonly"),
        "scopes",
        "warning",
        "/auth?q=im:message:readonly",
        Some(0),
    ),
    (
        |app| app.event_mode = Some("websocket".to_owned()),
        "events",
        "ok",
        "by long connection",
        Some(0),
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
        |app| "another".clone_into(&mut app.secret),
        "token",
        "problem",
        "FEISHU_APP_SECRET",
        Some(1),
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_healthy_nod_passes_and_each_fault_of_the_app_is_named() {
    PLAYED[0].get_or_init(faults_of_the_app).await;
}

async fn faults_of_the_app() {
    let nod = Healthy::new().await;
    let report = nod.doctor().await;
    assert_eq!(report.code, Some(0), "{:#}", report.json);
    assert_eq!(report.json["ok"], true);
    for check in report.json["checks"].as_array().unwrap() {
        assert_eq!(check["level"], "ok", "{check:#}");
    }
    let settings = report.json["settings"].to_string();
    assert!(settings.contains("~/.config/nod/.env"), "{settings}");

    for (fault, check, level, words, code) in CONSOLE_FAULTS {
        assert!(nod.feishu.edit_app(APP_ID, fault));
        let report = nod.doctor().await;
        report.says(check, level, words);
        assert_eq!(report.code, code, "{check}: {:#}", report.json);
        nod.feishu.edit_app(APP_ID, |app| *app = App::scanned());
    }
    nod.feishu.edit_app(APP_ID, |app| app.published = false);
    nod.doctor().await.says("bot", "problem", "/capability");
    nod.feishu.edit_app(APP_ID, |app| *app = App::scanned());
    an_owner_listed_by_a_user_id(&nod).await;
    let refused = Fault::RestError {
        path: "/bot/v3/info".to_owned(),
        code: 99_991_663,
        http: 400,
        msg: "no".to_owned(),
    };
    nod.feishu.set_fault(Armed::always(refused)).unwrap();
    nod.doctor().await.says("bot", "problem", "99991663");
}

async fn an_owner_listed_by_a_user_id(nod: &Healthy) {
    const SCOPE: &str = "contact:user.employee_id:readonly";
    let user_id = &Options::default().users[0].user_id;
    let cases = [
        (&["contact:contact.base:readonly"][..], "ok", OWNER),
        (&[], "problem", SCOPE),
        (&[SCOPE], "ok", "taps name user ids"),
    ];
    for (scopes, level, words) in cases {
        nod.feishu.edit_app(APP_ID, |app| {
            app.scopes.retain(|scope| !scope.starts_with("contact:"));
            app.scopes
                .extend(scopes.iter().map(|&scope| scope.to_owned()));
        });
        let owner = [("FEISHU_OWNER_ID", user_id.as_str())];
        let report = doctor(&nod.daemon.home, &[], &owner).await;
        report.says("people", level, words);
        nod.feishu.edit_app(APP_ID, |app| *app = App::scanned());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_of_this_machine_is_named() {
    PLAYED[1].get_or_init(faults_of_the_machine).await;
}

/// Settings of Claude Code's under which no card comes, or two hooks ask.
async fn settings_that_keep_cards_away(nod: &Healthy, file: &Path, good: &str) {
    let broken = good.replacen("\"timeout\": 5", "\"timeout\": \"5\"", 1);
    assert_ne!(broken, good);
    fs::write(file, broken).unwrap();
    nod.doctor()
        .await
        .says("hook-entry", "problem", "\\\"timeout\\\": \\\"5\\\"");
    fs::write(file, good).unwrap();

    // The project's local settings; the commands run in the home.
    let local = nod.path(".claude/settings.local.json");
    let second = r#"{"hooks": {"PermissionRequest": [{"hooks":
        [{"type": "command", "command": "nod hook"}]}]}}"#;
    for (text, check, level, words) in [
        (
            r#"{"disableAllHooks": true}"#,
            "hooks-off",
            "problem",
            "no card will come",
        ),
        (
            r#"{"permissions": {"defaultMode": "auto"}}"#,
            "project-mode",
            "warning",
            "settings.local.json` sets the mode to `auto`",
        ),
        (second, "second-hook", "warning", "starts two of them"),
    ] {
        fs::write(&local, text).unwrap();
        nod.doctor().await.says(check, level, words);
    }
    fs::remove_file(&local).unwrap();
}

async fn faults_of_the_machine() {
    let mut nod = Healthy::new().await;

    let rival = Client::answering(&nod.feishu);
    assert!(nod.feishu.wait_connections(2, LIMIT).await);
    nod.doctor()
        .await
        .says("connections", "problem", "2 connections");
    for (name, level, words) in [
        ("CALLBACK_SERVER_URL", "ok", "passed on"),
        ("CALLBACK_PEERS", "warning", "set `CALLBACK_LISTEN`"),
    ] {
        let shared = [(name, "http://10.0.0.2:8080")];
        let report = doctor(&nod.daemon.home, &[], &shared).await;
        report.says("connections", level, words);
        assert_eq!(report.code, Some(0), "{:#}", report.json);
    }
    rival.stopped().await;
    assert!(nod.feishu.wait_connections(1, LIMIT).await);

    for (name, open, closed, check, fix) in [
        (".config/nod/.env", 0o644, 0o600, "settings", "`chmod 600`"),
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
    // What a set-up before this one wrote.
    let from = good.find(" --config").unwrap();
    let length = good[from..].find("\\\"\",").unwrap() + 2;
    let old = good.replace(&good[from..from + length], "");
    for (text, level, words) in [
        (old, "problem", "do not name this nod's settings file"),
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
    fs::write(&file, &good).unwrap();
    let report = doctor(
        &nod.daemon.home,
        &[],
        &[("PERMISSION_REQUEST_TIMEOUT", "abc")],
    )
    .await;
    report.says("settings", "problem", "PERMISSION_REQUEST_TIMEOUT");
    report.says("daemon", "ok", "the daemon is running");
    report.says("hooks", "ok", "limits are not checked");
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
    settings_that_keep_cards_away(&nod, &file, &good).await;

    let (code, ..) = nod.daemon.home.run(&["lock"], &[]).await;
    assert_eq!(code, Some(0));
    nod.doctor().await.says("lock", "warning", "nod unlock");

    nod.daemon.signal(Signal::KILL);
    nod.daemon.exit().await;
    let report = nod.doctor().await;
    report.says("daemon", "problem", "left behind");
    assert_eq!(report.code, Some(1));
    fs::remove_file(nod.daemon.home.socket()).unwrap();
    let report = nod.doctor().await;
    report.says("daemon", "problem", "nod daemon");
    report.says("connections", "ok", "no other program");
    let other = Client::answering(&nod.feishu);
    assert!(nod.feishu.wait_connections(1, LIMIT).await);
    nod.doctor()
        .await
        .says("connections", "warning", "would take taps");
    let keys = [("NOD_BUS_KEYS", "/srv/nod-bus/bus.keys")];
    let gateway = doctor(&nod.daemon.home, &[], &keys).await;
    gateway.says("connections", "ok", "one for each gateway");
    gateway.says("gateway", "ok", "`nod gateway status` tells");
    assert_eq!(gateway.all("daemon").count(), 0, "{:#}", gateway.json);
    other.stopped().await;
    nod.feishu.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_and_networks_that_cannot_work_are_named() {
    PLAYED[2].get_or_init(faults_of_settings_and_networks).await;
}

async fn faults_of_settings_and_networks() {
    let home = Home::new();
    let report = doctor(&home, &[], &[]).await;
    let missing =
        "`FEISHU_APP_ID`, `FEISHU_APP_SECRET`, who decides, Claude Code's hooks, the daemon";
    report.says("settings", "problem", missing);
    report.says("settings", "problem", "run `nod setup`");
    report.says("claude", "ok", "2.1.300");
    let crosses = report.json["checks"].as_array().unwrap().iter();
    let crosses = crosses.filter(|check| check["level"] == "problem");
    assert_eq!(crosses.count(), 1, "one cause is named once");
    assert_eq!(report.code, Some(1));
    let wrong = [("NOD_CHAT_RATE", "fast"), ("FEISHU_APP_ID", "me")];
    let report = doctor(&home, &[], &wrong).await;
    let named = report
        .all("settings")
        .map(|check| check["text"].to_string());
    let named: Vec<String> = named.collect();
    for (text, name) in named.iter().zip([
        "`FEISHU_APP_ID` is 2 characters",
        "`NOD_CHAT_RATE` is `fast`",
        "`FEISHU_APP_SECRET` is not set",
    ]) {
        assert!(text.contains(name), "{name}: {named:#?}");
    }
    assert_eq!(named.len(), 3, "{named:#?}");
    report.says("settings", "problem", "correct it in the environment");
    report.says("daemon", "problem", "correct the settings first");
    report.says("owner", "problem", "nobody is set to decide");
    let misspelt = [("NOD_APPROVER", "hunter2"), ("NOD_FROB", "hunter2")];
    let report = doctor(&home, &[], &misspelt).await;
    let told: Vec<String> = report
        .all("unknown-setting")
        .map(Value::to_string)
        .collect();
    let meant = "if `FEISHU_APPROVERS` is meant, rename it in the environment";
    for (told, words) in told.iter().zip([meant, "nod has no setting `NOD_FROB`"]) {
        assert!(told.contains(words) && told.contains("warning"), "{told}");
    }
    assert_eq!(told.len(), 2, "{told:#?}");
    let report = doctor(&home, &[], &[("FEISHU_CHAT_ID", "oc_1")]).await;
    assert_eq!(report.all("unknown-setting").count(), 0);
    report.says("owner", "warning", "no owner to decide");
    let report = doctor(&home, &[], &[("PERMISSION_SOCKET_PATH", "here")]).await;
    report.says("daemon", "warning", "not checked");
    let own = home.path().join(".config/nod/.env");
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    fs::write(&own, "FEISHU_APP_ID=cli_a1b2c3d4e5f60718\noops\n").unwrap();
    let report = doctor(&home, &[], &[]).await;
    report.says(
        "settings",
        "problem",
        "correct line 2 of `~/.config/nod/.env`",
    );
    assert_eq!(report.all("settings").count(), 1, "{:#}", report.json);
    assert_eq!(report.all("owner").count(), 0, "{:#}", report.json);
    fs::write(&own, "NOD_STATE_DIR=\"/s\n").unwrap();
    for (state, level, words) in [
        ("", "warning", "not checked"),
        ("/e", "problem", "no daemon is running"),
    ] {
        let report = doctor(&home, &[], &[("NOD_STATE_DIR", state)]).await;
        report.says("daemon", level, words);
    }
    fs::remove_file(&own).unwrap();
    let ours = format!("FEISHU_APP_ID={APP_ID}\nFEISHU_APP_SECRET={APP_SECRET}\n");
    fs::write(&own, ours).unwrap();
    chmod(&own, 0o600);
    let nowhere = ("FEISHU_DOMAIN", "http://127.0.0.1:1");
    let report = doctor(&home, &[], &[nowhere]).await;
    report.says("settings", "ok", "can be used");
    assert_eq!(report.all("mixed-app").count(), 0, "{:#}", report.json);
    let other = ("FEISHU_APP_ID", "cli_0000000000000000");
    let report = doctor(&home, &[], &[nowhere, other]).await;
    report.says("mixed-app", "warning", "put both into one place");
    fs::remove_file(&own).unwrap();
    let hook_only = [("FEISHU_SEND_MODE", "webhook")];
    let report = doctor(&home, &[], &hook_only).await;
    report.says("settings", "problem", "nod settings set FEISHU_WEBHOOK_URL");
    assert_eq!(report.all("owner").count(), 0, "{:#}", report.json);
    assert_eq!(report.all("mode").count(), 1, "{:#}", report.json);

    let foreign = home.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    // Only root can give a directory away; others have one that is root's.
    let given = std::os::unix::fs::chown(&foreign, Some(65_534), None);
    let foreign = given.map_or_else(|_| PathBuf::from("/usr"), |()| foreign);
    let foreign = [("NOD_STATE_DIR", foreign.to_str().unwrap())];
    let report = doctor(&home, &[], &foreign).await;
    report.says("state-directory", "problem", "belongs to somebody else");
    // A setting that has nothing to do with Feishu does not hide what it says.
    let mut unrelated = settings("http://127.0.0.1:1");
    unrelated.push(("NOD_CHAT_RATE", "fast"));
    let report = doctor(&home, &[], &unrelated).await;
    report.says("settings", "problem", "NOD_CHAT_RATE");
    report.says("token", "problem", "refused the connection");
    faults_of_networks(&home).await;
}

async fn faults_of_networks(home: &Home) {
    let nobody = settings("http://127.0.0.1:1");
    let report = doctor(home, &[], &nobody).await;
    report.says("token", "problem", "refused the connection");
    report.says("proxy", "ok", "directly");
    let mut proxied = settings("feishu");
    proxied.push(("HTTPS_PROXY", "http://me:hunter2@127.0.0.1:1"));
    let report = doctor(home, &[], &proxied).await;
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
    let report = doctor(home, &[], &settings(&base)).await;
    report.says("clock", "warning", "ahead of Feishu's");
    report.says("token", "problem", "portal");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tap_is_proven_through_the_daemon_and_without_one() {
    PLAYED[3].get_or_init(taps).await;
}

async fn taps() {
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
    let impatient = ["--click", "--wait", "1"];
    let unheard = doctor(&nod.daemon.home, &impatient, &[]).await;
    unheard.says("click", "problem", "Callback Configuration");
    nod.feishu.edit_app(APP_ID, |app| *app = App::scanned());
    let untapped = doctor(&nod.daemon.home, &impatient, &[]).await;
    untapped.says("click", "problem", "200341");
    assert_eq!(untapped.code, Some(1), "{:#}", untapped.json);
    let nobody = doctor(&Home::new(), &impatient, &[]).await;
    nobody.says("click", "problem", "run `nod setup` first");

    nod.daemon.signal(Signal::TERM);
    within("the daemon's end", nod.daemon.exit()).await;
    let report = taps(&nod, "Tap me").await;
    report.says("click", "ok", "the tap arrived");
    report.says("daemon", "problem", "no daemon is running");
}

/// Listens where the daemon would, and answers every order with this report, or
/// never.
struct Double(#[expect(dead_code, reason = "it listens until dropped")] AbortOnDropHandle<()>);

impl Double {
    fn listens(home: &Home, report: Option<Value>) -> Self {
        let dir = home.socket().parent().unwrap().to_owned();
        fs::create_dir_all(&dir).unwrap();
        for dir in [home.state(), dir] {
            chmod(&dir, 0o700);
        }
        let _ = fs::remove_file(home.socket());
        let listener = UnixListener::bind(home.socket()).unwrap();
        let task = tokio::spawn(async move {
            let mut silent = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut order = [0; 4_096];
                let read = stream.read(&mut order).await;
                match &report {
                    Some(report) if read.is_ok() => {
                        let frame = wire::frame(report).unwrap();
                        let _ = stream.write_all(&frame).await;
                    }
                    _ => silent.push(stream),
                }
            }
        });
        Self(AbortOnDropHandle::new(task))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_is_not_as_it_should_be_is_told() {
    PLAYED[4].get_or_init(doubles).await;
}

async fn doubles() {
    let home = Home::new();
    let report = |state: &str| {
        json!({
            "version": nod::for_tests::version::BUILD, "pid": 7, "platform": "Feishu",
            "connection": {"state": state, "cause": "no route", "cause_zh": "不通"},
            "store": {"ok": true}, "locked": false,
        })
    };
    let mut other = report("connected");
    other["version"] = json!("0.0.1");
    let mut full = report("waiting");
    full["store"] = json!({"ok": false, "cause": "the disk is full"});
    let mut plain = report("connected");
    plain["needs"] = json!([{"need": "plain", "code": 230_099, "log_id": "0217"}]);
    for (answer, check, level, words) in [
        (Some(other), "daemon", "warning", "the daemon is 0.0.1"),
        (
            Some(full.clone()),
            "connection",
            "problem",
            "not connected: no route",
        ),
        (Some(full), "store", "problem", "the disk is full"),
        (Some(plain), "cards", "warning", "code 230099, log id 0217"),
        (Some(report("webhook")), "connection", "ok", "webhook mode"),
        (None, "daemon", "problem", "does not answer"),
    ] {
        let double = Double::listens(&home, answer);
        let report = doctor(&home, &[], &[]).await;
        report.says(check, level, words);
        drop(double);
    }

    let feishu = Simulator::start(Options::default()).await.unwrap();
    let _double = Double::listens(&home, Some(report("connected")));
    let base = feishu.base_url();
    let report = doctor(&home, &[], &settings(&base)).await;
    report.says("connections", "problem", "Feishu sees no connection");
    chmod(home.socket().parent().unwrap(), 0o777);
    let report = doctor(&home, &[], &[]).await;
    report.says("daemon", "problem", "is not your daemon");
    feishu.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_code_and_the_service_are_asked() {
    PLAYED[5].get_or_init(programs).await;
}

async fn programs() {
    let home = Home::new();
    let report = doctor(&home, &[], &[("PATH", "/nonexistent")]).await;
    report.says("claude", "warning", "no `claude`");
    report.says("service", "ok", "no user service manager");
    assert_eq!(report.all("mode").count(), 0, "nothing is known of it");

    let bin = home.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let program = |name: &str, text: &str| {
        fs::write(bin.join(name), format!("#!/bin/sh\n{text}\n")).unwrap();
        chmod(&bin.join(name), 0o755);
    };
    let path = [("PATH", bin.to_str().unwrap())];
    program("claude", "echo 2.1.267 '(Claude Code)'");
    let state = bin.join("state");
    let answer = format!("/bin/cat '{}' 2>/dev/null || true", state.display());
    program("systemctl", &answer);
    program("launchctl", &answer);
    let report = doctor(&home, &[], &path).await;
    report.says("claude", "warning", "only since 2.1.268");
    report.says("mode", "warning", "~/.claude/settings.json` sets no");
    report.says("service", "ok", "no service is installed");

    program("claude", "exec /bin/sleep 60");
    for definition in [
        ".config/systemd/user/nod.service",
        "Library/LaunchAgents/nod.daemon.plist",
    ] {
        let file = home.path().join(definition);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "").unwrap();
    }
    let report = doctor(&home, &[], &path).await;
    report.says("claude", "warning", "did not answer");
    report.says("service", "warning", "does not run");
    // A wrong setting says nothing about the service.
    program("claude", "echo 2.1.300");
    fs::write(&state, "ActiveState=active\nstate = running\n").unwrap();
    let wrong = [path[0], ("NOD_CHAT_RATE", "fast")];
    let report = doctor(&home, &[], &wrong).await;
    report.says("service", "ok", "the service is running");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_keeps_codex_from_asking_is_named() {
    PLAYED[6].get_or_init(codexes).await;
}

async fn codexes() {
    let home = Home::new();
    let codex = home.path().join(".codex");
    let report = |told: Value| {
        let mut told = told;
        told["home"] = codex.to_str().unwrap().into();
        json!({
            "version": nod::for_tests::version::BUILD, "pid": 7, "platform": "Feishu",
            "connection": {"state": "connected"}, "store": {"ok": true}, "locked": false,
            "codex": [told],
        })
    };
    let none = doctor(&home, &[], &[]).await;
    assert_eq!(none.all("codex").count(), 0, "{:#}", none.json);
    fs::create_dir(&codex).unwrap();
    for (told, check, level, words) in [
        (
            json!({"state": "attached", "agent": "codex-tui/0.166.0"}),
            "codex",
            "ok",
            "is followed in `~/.codex` (codex-tui/0.166.0)",
        ),
        (
            json!({"state": "attached", "reviewer": "auto_review"}),
            "codex-asks",
            "warning",
            "you are not asked",
        ),
        (
            json!({"state": "attached", "policy": "never"}),
            "codex-asks",
            "warning",
            "set `approval_policy` to",
        ),
        (
            json!({"state": "refused", "cause": "the socket belongs to user 7"}),
            "codex",
            "problem",
            "belongs to user 7",
        ),
        (
            json!({"state": "away"}),
            "codex",
            "warning",
            "keeps no socket there",
        ),
    ] {
        let double = Double::listens(&home, Some(report(told)));
        let report = doctor(&home, &[], &[]).await;
        report.says(check, level, words);
        drop(double);
    }
    let _double = Double::listens(&home, Some(report(json!({"state": "away"}))));
    let elsewhere = doctor(&home, &[], &[("TMPDIR", "/nonexistent")]).await;
    elsewhere.says("codex", "ok", "no socket of Codex's");
    let off = doctor(&home, &[], &[("NOD_CODEX", "off")]).await;
    assert_eq!(off.all("codex").count(), 0, "nothing of it is to be seen");

    let bin = home.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let program = bin.join("codex");
    fs::copy("/bin/sh", &program).unwrap();
    let mut bare = std::process::Command::new(&program);
    bare.args(["-c", "read _", "--no-daemon"]);
    let mut bare = bare.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let without = doctor(&home, &[], &[]).await;
    bare.kill().unwrap();
    bare.wait().unwrap();
    if Path::new("/proc/self/cmdline").exists() {
        let named = format!("process {}", bare.id());
        without.says("codex", "warning", &named);
    }
    fs::remove_file(&program).unwrap();
    fs::write(&program, "#!/bin/sh\necho codex-cli 0.99.0\n").unwrap();
    chmod(&program, 0o755);
    let path = ("PATH", bin.to_str().unwrap());
    let old = doctor(&home, &[], &[path]).await;
    old.says("codex", "warning", "only since 0.166");
    let off = doctor(&home, &[], &[path, ("NOD_CODEX", "off")]).await;
    off.says("codex", "ok", "`NOD_CODEX=off`");
}

/// The English sentences in the rooms that judge: findings and what to do.
fn sentences() -> Vec<String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/doctor");
    let mut all = Vec::new();
    for room in [
        "machine.rs",
        "settings.rs",
        "feishu.rs",
        "click.rs",
        "codex.rs",
    ] {
        let text = fs::read_to_string(dir.join(room)).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        let lines = code.lines().map(str::trim_start);
        let code: String = lines.filter(|line| !line.starts_with("//")).collect();
        let literals = code.split('"').skip(1).step_by(2);
        let sentences = literals.filter(|text| {
            let fixed: String = parts(text).concat();
            let is_word = |word: &str| word.len() > 3 && word.is_ascii();
            text.contains(' ')
                && !text.chars().any(|c| ('\u{2e80}'..'\u{ff00}').contains(&c))
                && fixed.split(' ').any(is_word)
        });
        all.extend(sentences.map(str::to_owned));
    }
    assert!(all.len() > 80, "{all:#?}");
    all
}

/// What stands between the values of a format text.
fn parts(format: &str) -> Vec<&str> {
    let ends = format.split('{');
    ends.map(|part| part.split_once('}').map_or(part, |(_, rest)| rest))
        .collect()
}

fn is_made_from(line: &str, format: &str) -> bool {
    let mut rest = Some(line);
    for part in parts(format) {
        rest = rest
            .and_then(|rest| rest.split_once(part))
            .map(|(_, rest)| rest);
    }
    rest.is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_line_it_can_print_is_printed_above() {
    tokio::join!(
        PLAYED[0].get_or_init(faults_of_the_app),
        PLAYED[1].get_or_init(faults_of_the_machine),
        PLAYED[2].get_or_init(faults_of_settings_and_networks),
        PLAYED[3].get_or_init(taps),
        PLAYED[4].get_or_init(doubles),
        PLAYED[5].get_or_init(programs),
        PLAYED[6].get_or_init(codexes),
    );
    let said = SAID.lock().unwrap();
    let unsaid: Vec<String> = sentences()
        .into_iter()
        .filter(|format| !said.iter().any(|line| is_made_from(line, format)))
        .collect();
    assert!(unsaid.is_empty(), "no fault above makes it say {unsaid:#?}");
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
