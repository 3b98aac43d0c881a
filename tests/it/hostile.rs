//! A repository that wants nod for itself: its `.env`, and the variables its
//! Claude Code settings hand to hooks. Everything that it names leads into a
//! trap, and nobody must ever arrive there.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nod::for_tests::simulator::{APP_ID, APP_SECRET, OWNER, Options, Press, Simulator};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixListener;
use tokio::process::{Child, Command};
use tokio_util::task::AbortOnDropHandle;

use crate::hooks::report;
use crate::support::{Door, LIMIT, within};

const NOT_READ: &str = "the `.env` in this directory is not read";
const NOBODY: u32 = 65_534;
const THEIR_APP: &str = "cli_badbadbadbad0000";
const THEIR_SECRET: &str = "theirSecretTheirSecret";
const THEIR_OWNER: &str = "ou_attacker";

/// As a settings file has them.
fn lines(settings: Vec<(&str, String)>) -> String {
    let line = |(name, value)| format!("{name}={value}\n");
    settings.into_iter().map(line).collect::<Vec<_>>().concat()
}

/// A home, a repository in it, and the trap.
struct Victim {
    dir: tempfile::TempDir,
    trap: Trap,
}

/// A server and several sockets that count who comes.
struct Trap {
    door: Door,
    came: Arc<AtomicUsize>,
    _sockets: Vec<AbortOnDropHandle<()>>,
}

impl Trap {
    async fn set(at: &Path) -> Self {
        let came = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&came);
        let door = Door::open(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            std::future::ready(())
        })
        .await;
        let places = [
            "chosen.sock",
            "state/run/nod.sock",
            "runtime/nod/nod.sock",
            "states/nod/run/nod.sock",
            "home/.local/state/nod/run/nod.sock",
        ];
        let sockets = places.map(|place| {
            let path = at.join(place);
            let dir = path.parent().unwrap();
            fs::create_dir_all(dir).unwrap();
            let listener = UnixListener::bind(&path).unwrap();
            let count = Arc::clone(&came);
            AbortOnDropHandle::new(tokio::spawn(async move {
                while listener.accept().await.is_ok() {
                    count.fetch_add(1, Ordering::SeqCst);
                }
            }))
        });
        Self {
            door,
            came,
            _sockets: sockets.into(),
        }
    }
}

impl Victim {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["home/.claude", "repository", "trap"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        let trap = Trap::set(&dir.path().join("trap")).await;
        Self { dir, trap }
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    fn repository(&self) -> PathBuf {
        self.dir.path().join("repository")
    }

    fn own(&self) -> PathBuf {
        self.home().join(".config/nod/.env")
    }

    fn save(&self, text: &str) {
        fs::create_dir_all(self.own().parent().unwrap()).unwrap();
        fs::write(self.own(), text).unwrap();
        fs::set_permissions(self.own(), fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// Every setting as the repository would like it.
    fn wanted(&self) -> Vec<(&'static str, String)> {
        let base = format!("http://{}", self.trap.door.address);
        let place = |name: &str| {
            self.dir
                .path()
                .join("trap")
                .join(name)
                .display()
                .to_string()
        };
        vec![
            ("FEISHU_DOMAIN", base.clone()),
            ("FEISHU_APP_ID", THEIR_APP.to_owned()),
            ("FEISHU_APP_SECRET", THEIR_SECRET.to_owned()),
            ("FEISHU_OWNER_ID", THEIR_OWNER.to_owned()),
            ("FEISHU_APPROVERS", THEIR_OWNER.to_owned()),
            ("FEISHU_SEND_MODE", "webhook".to_owned()),
            (
                "FEISHU_WEBHOOK_URL",
                format!("{base}/open-apis/bot/v2/hook/x"),
            ),
            ("CALLBACK_LISTEN", "127.0.0.1:0".to_owned()),
            ("CALLBACK_SERVER_URL", base.clone()),
            ("CALLBACK_PEERS", base.clone()),
            ("CALLBACK_SECRET", "s".repeat(32)),
            ("PERMISSION_SOCKET_PATH", place("chosen.sock")),
            ("PERMISSION_REQUEST_TIMEOUT", "77".to_owned()),
            ("NOD_STATE_DIR", place("state")),
            ("NOD_CA_FILE", place("ca.pem")),
            ("NOD_LANG", "zh".to_owned()),
            ("NOD_LOG", "trace".to_owned()),
            ("HTTPS_PROXY", base.clone()),
            ("HTTP_PROXY", base.clone()),
            ("ALL_PROXY", base.clone()),
            ("NO_PROXY", "elsewhere.example".to_owned()),
            ("https_proxy", base.clone()),
            ("http_proxy", base.clone()),
            ("all_proxy", base),
            ("SSL_CERT_FILE", place("ca.pem")),
            ("SSL_CERT_DIR", place("certs")),
            ("HOME", place("home")),
            ("USER", "attacker".to_owned()),
            ("XDG_CONFIG_HOME", place("home/.config")),
            ("XDG_STATE_HOME", place("states")),
            ("XDG_RUNTIME_DIR", place("runtime")),
            ("TMPDIR", place("tmp")),
            ("CLAUDE_CONFIG_DIR", place("claude")),
        ]
    }

    /// The same as the text of a settings file.
    fn wanted_file(&self) -> String {
        lines(self.wanted())
    }

    /// What the victim types in the repository.
    fn nod(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nod"));
        command
            .args(arguments)
            .current_dir(self.repository())
            .env_clear()
            .env("HOME", self.home())
            .env("USER", "lin")
            .env("PATH", "/nonexistent")
            .env("NOD_LANG", "en")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    async fn run(&self, arguments: &[&str]) -> Output {
        within("a command's end", self.nod(arguments).output())
            .await
            .unwrap()
    }

    /// A daemon of the victim's, in the repository, once it is connected.
    async fn daemon(&self, feishu: &Simulator, arguments: &[&str]) -> Child {
        let mut daemon = self.nod(arguments);
        let daemon = daemon.stderr(Stdio::null()).spawn().unwrap();
        let connected = feishu.wait_connections(1, LIMIT).await;
        assert!(connected, "the daemon found its way");
        daemon
    }

    /// The command that `nod setup` gave Claude Code for `event`.
    fn installed(&self, event: &str) -> String {
        let text = fs::read_to_string(self.home().join(".claude/settings.json")).unwrap();
        let settings: Value = serde_json::from_str(&text).unwrap();
        let command = &settings["hooks"][event][0]["hooks"][0]["command"];
        command.as_str().unwrap().to_owned()
    }

    /// Has the command run as Claude Code does in this repository.
    fn hook(&self, command: &str, words: &str) -> Child {
        let mut hook = Command::new("/bin/sh");
        hook.args(["-c", command])
            .current_dir(self.repository())
            .env_clear()
            .envs(self.wanted())
            .env("PATH", "/nonexistent")
            .env("CLAUDE_PROJECT_DIR", self.repository())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut hook = hook.spawn().unwrap();
        let input = self.asks(words);
        let mut stdin = hook.stdin.take().unwrap();
        tokio::spawn(async move { stdin.write_all(input.as_bytes()).await });
        hook
    }

    fn asks(&self, command: &str) -> String {
        json!({
            "hook_event_name": "PermissionRequest",
            "session_id": "s-1",
            "cwd": self.repository(),
            "tool_name": "Bash",
            "tool_input": {"command": command},
        })
        .to_string()
    }

    #[track_caller]
    fn nobody_was_trapped(&self) {
        assert_eq!(self.trap.came.load(Ordering::SeqCst), 0, "dialled the trap");
    }

    /// No file of the victim's holds anything the repository wanted.
    #[track_caller]
    fn nothing_was_saved(&self) {
        let trap = self.trap.door.address.to_string();
        let place = self.dir.path().join("trap").display().to_string();
        let wanted = [THEIR_APP, THEIR_SECRET, THEIR_OWNER, &trap, &place];
        for (path, text) in files(&self.home()) {
            for value in wanted {
                assert!(!text.contains(value), "`{value}` in {}", path.display());
            }
        }
    }
}

/// Every file below a directory, and what it holds.
fn files(dir: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.is_file() {
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            found.push((path, text));
        }
    }
    found
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A user's own settings, leading to this local Feishu.
fn own_settings(feishu: &Simulator) -> String {
    let base = feishu.base_url();
    format!(
        "FEISHU_APP_ID={APP_ID}\nFEISHU_APP_SECRET={APP_SECRET}\n\
         FEISHU_DOMAIN={base}\nFEISHU_OWNER_ID={OWNER}\nNOD_LANG=en\n"
    )
}

const SET_UP: [&str; 4] = ["setup", "--yes", "--no-test-card", "--no-service"];

#[tokio::test(flavor = "multi_thread")]
async fn a_repositorys_env_file_takes_nobody_over() {
    let victim = Victim::new().await;
    fs::write(victim.repository().join(".env"), victim.wanted_file()).unwrap();
    for arguments in [
        &["doctor"][..],
        &["setup", "--dry-run"],
        &["setup", "--uninstall"],
        &["daemon"],
        &["service", "status"],
        &["service", "install", "--print"],
        &["status"],
        &["ask", "confirm", "Really?"],
        &["audit"],
        &["rules"],
        &["lock"],
        &["unlock"],
    ] {
        let run = victim.run(arguments).await;
        let said = told(&run);
        assert_eq!(said.matches(NOT_READ).count(), 1, "{arguments:?}: {said}");
        victim.nobody_was_trapped();
        let left = files(&victim.home());
        assert!(left.is_empty(), "{arguments:?}: {left:?}");
    }
    let printed = victim.run(&["service", "install", "--print"]).await;
    let unit = String::from_utf8(printed.stdout).unwrap();
    assert!(!unit.contains("/trap/"), "{unit}");

    let feishu = Simulator::start(Options::default()).await.unwrap();
    victim.save(&own_settings(&feishu));
    let doctor = victim.run(&["doctor", "--json"]).await;
    let report: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap().iter();
    let token = checks.clone().find(|one| one["check"] == "token");
    assert_eq!(token.unwrap()["level"], "ok", "{report:#}");
    assert_eq!(told(&doctor).matches(NOT_READ).count(), 1);
    let setup = victim.run(&SET_UP).await;
    assert!(setup.status.success(), "{setup:?}");
    assert_eq!(told(&setup).matches(NOT_READ).count(), 1);
    assert_eq!(
        fs::read_to_string(victim.own()).unwrap(),
        own_settings(&feishu)
    );
    let _daemon = victim.daemon(&feishu, &["daemon"]).await;
    let status = victim.run(&["status"]).await;
    assert!(status.status.success(), "{status:?}");
    victim.nobody_was_trapped();
    victim.nothing_was_saved();
    feishu.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_env_file_that_says_nothing_to_nod_is_nobodys_business() {
    let victim = Victim::new().await;
    let here = victim.repository().join(".env");
    for text in ["DATABASE_URL=x\nKEY=\"-----BEGIN\nMII\n-----END\"\n", ""] {
        fs::write(&here, text).unwrap();
        let said = told(&victim.run(&["status"]).await);
        assert!(!said.contains(NOT_READ), "{said}");
    }
    // One that never ends to be read, and one that nod may not read.
    fs::remove_file(&here).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&here).status();
    assert!(made.unwrap().success());
    let said = told(&victim.run(&["status"]).await);
    assert!(!said.contains(NOT_READ), "{said}");
    // nod's own file is read wherever it is run from.
    victim.save("NOD_LANG=en\n");
    let mut status = victim.nod(&["status"]);
    let status = status.current_dir(victim.own().parent().unwrap());
    let said = told(&status.output().await.unwrap());
    assert!(!said.contains(NOT_READ), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_file_that_was_named_is_read_and_nothing_of_it_is_saved() {
    let feishu = Simulator::start(Options::default()).await.unwrap();
    let victim = Victim::new().await;
    let named = victim.repository().join("other.env");
    fs::write(&named, own_settings(&feishu)).unwrap();
    fs::set_permissions(&named, fs::Permissions::from_mode(0o600)).unwrap();
    let read = "settings are read from `other.env` too";
    let daemon = victim
        .daemon(&feishu, &["daemon", "--env-file", "other.env"])
        .await;
    let status = victim.run(&["--env-file", "other.env", "status"]).await;
    assert!(status.status.success(), "{status:?}");
    assert_eq!(told(&status).matches(read).count(), 1, "{status:?}");
    drop(daemon);
    let absent = victim.run(&["--env-file", "absent.env", "status"]).await;
    assert_eq!(absent.status.code(), Some(78), "{absent:?}");
    assert!(told(&absent).contains("`absent.env`"), "{absent:?}");
    // No variable names one.
    let mut by_variable = victim.nod(&["status"]);
    for name in ["NOD_ENV_FILE", "ENV_FILE", "NOD_CONFIG"] {
        by_variable.env(name, &named);
    }
    let said = told(&by_variable.output().await.unwrap());
    assert!(!said.contains("other.env"), "{said}");

    // All that it names differs from what the flags say.
    let mut wanted = victim.wanted();
    wanted.retain(|(name, _)| {
        !name.to_lowercase().ends_with("_proxy")
            && !["NOD_CA_FILE", "FEISHU_SEND_MODE"].contains(name)
    });
    fs::write(&named, lines(wanted)).unwrap();
    let preview = victim
        .run(&["setup", "--dry-run", "--env-file", "other.env"])
        .await;
    let shown = String::from_utf8(preview.stdout.clone()).unwrap();
    assert!(preview.status.success(), "{preview:?}");
    assert!(!shown.contains("  ✓ "), "no step is done by it: {shown}");
    let secret = victim.home().join("secret");
    fs::write(&secret, APP_SECRET).unwrap();
    let base = feishu.base_url();
    let mut flags = SET_UP.to_vec();
    flags.extend(["--domain", &base, "--app-id", APP_ID, "--owner", OWNER]);
    flags.extend(["--app-secret-file", secret.to_str().unwrap()]);
    flags.extend(["--env-file", "other.env"]);
    let setup = victim.run(&flags).await;
    assert!(setup.status.success(), "{setup:?}");
    assert_eq!(told(&setup).matches(read).count(), 1, "{setup:?}");
    let saved = fs::read_to_string(victim.own()).unwrap();
    assert!(
        saved.contains(&format!("FEISHU_APP_ID={APP_ID}\n")),
        "{saved}"
    );
    let settings = fs::read_to_string(victim.home().join(".claude/settings.json")).unwrap();
    assert!(settings.contains("\"timeout\": 360"), "{settings}");
    let unit = ["--env-file", "other.env", "service", "install", "--print"];
    let unit = String::from_utf8(victim.run(&unit).await.stdout).unwrap();
    assert!(!unit.contains("/trap/"), "{unit}");
    let manifest = victim.dir.path().join("trap/state/setup.json");
    assert!(!manifest.exists(), "the record lies where it always does");
    victim.nothing_was_saved();
    victim.nobody_was_trapped();
    feishu.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repositorys_variables_lead_no_hook_astray() {
    let feishu = Simulator::start(Options::default()).await.unwrap();
    let victim = Victim::new().await;
    victim.save(&own_settings(&feishu));
    let trap = victim.dir.path().join("trap/home/.config/nod");
    fs::create_dir_all(&trap).unwrap();
    fs::write(trap.join(".env"), victim.wanted_file()).unwrap();
    let setup = victim.run(&SET_UP).await;
    assert!(setup.status.success(), "{setup:?}");
    let command = victim.installed("PermissionRequest");
    let own = victim.own().display().to_string();
    assert!(command.contains(&own), "{command}");
    // Run again, it says the same.
    let again = victim.run(&SET_UP).await;
    assert!(again.status.success(), "{again:?}");
    assert_eq!(victim.installed("PermissionRequest"), command);

    let mut daemon = victim.daemon(&feishu, &["daemon"]).await;
    let hook = victim.hook(&command, "make it so");
    let card = feishu.wait_messages(1, LIMIT).await.unwrap().remove(0);
    feishu
        .click(Press::action(&card.message_id, "allow"))
        .await
        .unwrap();
    let ended = within("the hook", hook.wait_with_output()).await.unwrap();
    let printed: Value = serde_json::from_slice(&ended.stdout).unwrap();
    let decision = &printed["hookSpecificOutput"]["decision"];
    assert_eq!(decision["behavior"], "allow", "{printed}");
    victim.nobody_was_trapped();

    daemon.kill().await.unwrap();
    let alone = victim.hook(&command, "make it alone");
    let alone = within("the hook", alone.wait_with_output()).await.unwrap();
    assert!(
        alone.status.success() && alone.stdout.is_empty(),
        "{alone:?}"
    );
    assert_eq!(told(&alone), "nod: no daemon is running\n");
    victim.nobody_was_trapped();

    // In webhook mode the notice goes to the user's own group.
    victim.save(&format!(
        "FEISHU_SEND_MODE=webhook\nFEISHU_WEBHOOK_URL={}\nFEISHU_WEBHOOK_SECRET={}\n\
         CALLBACK_LISTEN=127.0.0.1:8080\nCALLBACK_SERVER_URL=http://127.0.0.1:8080\n",
        feishu.webhook_url(),
        nod::for_tests::simulator::WEBHOOK_SECRET,
    ));
    let announced = victim.hook(&command, "make it known");
    let announced = within("the hook", announced.wait_with_output()).await;
    assert!(announced.unwrap().stdout.is_empty());
    let said = feishu.wait_for(LIMIT, |feishu| {
        let said = feishu.history(0);
        let said = said.iter().find(|entry| entry.kind == "webhook")?;
        Some(said.detail["said"].to_string())
    });
    let said = said.await.expect("a card in the user's own group");
    assert!(said.contains("make it known"), "{said}");
    assert!(!said.contains("attacker"), "{said}");
    victim.nobody_was_trapped();
    feishu.shutdown().await;
}

/// A hook's line of an older set-up names no file. The account's own home is
/// asked for it then, not a variable.
#[tokio::test(flavor = "multi_thread")]
async fn a_hook_without_a_file_asks_the_account_and_no_variable() {
    if !rustix::process::geteuid().is_root() {
        report("SKIPPED: only root can become a user without a home, so nothing was shown");
        return;
    }
    let victim = Victim::new().await;
    let trap = victim.dir.path().join("trap/home/.config/nod");
    fs::create_dir_all(&trap).unwrap();
    fs::write(trap.join(".env"), victim.wanted_file()).unwrap();
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(victim.dir.path(), open).unwrap();
    let nod = victim.dir.path().join("nod");
    fs::copy(env!("CARGO_BIN_EXE_nod"), &nod).unwrap();
    for arguments in [
        &["hook"][..],
        &["hook", "--config", "relative"],
        &["hook", "--x"],
    ] {
        let mut hook = std::process::Command::new(&nod);
        hook.args(arguments)
            .current_dir(victim.repository())
            .env_clear()
            .envs(victim.wanted())
            .uid(NOBODY)
            .gid(NOBODY)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let busy = |why: &std::io::Error| why.kind() == std::io::ErrorKind::ExecutableFileBusy;
        let mut hook = loop {
            match hook.spawn() {
                // A program that another test starts at this moment has the copy open, too.
                Err(why) if busy(&why) => tokio::task::yield_now().await,
                spawned => break spawned.unwrap(),
            }
        };
        let mut stdin = hook.stdin.take().unwrap();
        let input = victim.asks("make it so");
        // One that refuses its arguments does not read.
        let _ = std::io::Write::write_all(&mut stdin, input.as_bytes());
        drop(stdin);
        let ended = hook.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        assert!(ended.stdout.is_empty(), "{ended:?}");
        let said = told(&ended);
        assert_eq!(said.lines().count(), 1, "{said}");
        if arguments.len() == 1 {
            assert_eq!(said, "nod: no daemon is running\n");
        }
    }
    victim.nobody_was_trapped();
}
