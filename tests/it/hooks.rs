//! A stage for whole approvals: a local Feishu in this process, the real
//! `nod daemon`, real `nod hook` processes, and people who tap. Everything it
//! starts ends with it.

use std::any::Any;
use std::ffi::OsStr;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use nod::for_tests::simulator::{
    APP_ID, APP_SECRET, Clicked, HeldMessage, OWNER, Options, Press, Simulator,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

pub(crate) use crate::support::LIMIT;
use crate::support::{is_connected, settings_file};

pub(crate) struct Stage {
    pub(crate) sim: Simulator,
    pub(crate) home: Home,
    daemon: Option<Daemon>,
    seen: usize,
    team: Option<Box<dyn Any + Send>>,
}

/// A user's directories, apart from everybody else's.
pub(crate) struct Home {
    dir: tempfile::TempDir,
    settings: Vec<(String, String)>,
}

pub(crate) struct Daemon {
    child: Child,
    log: Log,
}

/// What a daemon wrote to stderr so far.
#[derive(Clone, Default)]
struct Log {
    lines: Arc<Mutex<String>>,
    grown: Arc<Notify>,
}

/// A running `nod hook`.
pub(crate) struct Hook {
    child: Child,
    stdout: JoinHandle<Vec<u8>>,
    stderr: JoinHandle<Vec<u8>>,
}

/// What a hook left behind.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// The decision in the one JSON object that was printed.
    pub(crate) fn decision(&self) -> Value {
        assert_eq!(self.code, Some(0), "{self:?}");
        let printed: Value = serde_json::from_str(&self.stdout).expect("one JSON object");
        let output = &printed["hookSpecificOutput"];
        assert_eq!(output["hookEventName"], "PermissionRequest", "{printed}");
        output["decision"].clone()
    }

    /// Exit 0 and nothing printed: Claude Code's own dialog decides.
    pub(crate) fn left_to_the_terminal(&self) {
        assert_eq!(self.code, Some(0), "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
    }
}

impl Home {
    pub(crate) fn new(feishu: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let made = std::fs::DirBuilder::new()
            .mode(0o700)
            .create(dir.path().join("state"));
        made.unwrap();
        std::fs::create_dir(dir.path().join("project")).unwrap();
        std::fs::create_dir(dir.path().join("home")).unwrap();
        let state = dir.path().join("state").display().to_string();
        let home = dir.path().join("home").display().to_string();
        let settings = [
            ("HOME", home.as_str()),
            ("USER", "tester"),
            ("NOD_STATE_DIR", &state),
            ("NOD_LOG", "debug"),
            ("NOD_CHAT_RATE", "1000"),
            ("FEISHU_DOMAIN", feishu),
            ("FEISHU_APP_ID", APP_ID),
            ("FEISHU_APP_SECRET", APP_SECRET),
            ("FEISHU_OWNER_ID", OWNER),
        ];
        Self {
            settings: settings
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            dir,
        }
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.unset(name);
        self.settings.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn unset(&mut self, name: &str) {
        self.settings.retain(|(known, _)| known != name);
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.state().join("run/nod.sock")
    }

    /// `nod` with these arguments and nothing of this process' environment.
    pub(crate) fn nod<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nod"));
        command.args(arguments);
        if let [verb] = arguments
            && verb.as_ref() == "hook"
        {
            let all = self.settings.iter();
            let all = all.map(|(name, value)| (name.as_str(), value.as_str()));
            let file = settings_file(self.path(), all);
            command.arg("--config").arg(file);
        }
        command
            .env_clear()
            .envs(self.settings.iter().cloned())
            .current_dir(self.project())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Runs a command of nod's to its end.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Ended {
        let output = within(self.nod(arguments).output()).await.unwrap();
        Ended {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    pub(crate) async fn status(&self) -> Value {
        let shown = self.run(&["status", "--json"]).await;
        serde_json::from_str(&shown.stdout).unwrap_or_else(|_| panic!("{shown:?}"))
    }

    /// The audit, oldest first, after its chain was found whole.
    pub(crate) async fn audit(&self) -> Vec<Value> {
        let verified = self.run(&["audit", "verify"]).await;
        assert_eq!(verified.code, Some(0), "{verified:?}");
        let shown = self.run(&["audit", "--json", "--last", "10000"]).await;
        shown
            .stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    pub(crate) fn hook_with(&self, stdin: &[u8], extra: &[(&str, &str)]) -> Hook {
        let mut command = self.nod(&["hook"]);
        command
            .env("CLAUDE_PROJECT_DIR", self.project())
            // The terminal speaks the language that Feishu does.
            .env("LANG", "zh_CN.UTF-8")
            .envs(extra.iter().copied())
            .stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let stdin = stdin.to_vec();
        tokio::spawn(async move {
            // A hook that refuses its input closes the pipe early.
            let _ = input.write_all(&stdin).await;
        });
        let stdout = collect(child.stdout.take().unwrap());
        let stderr = collect(child.stderr.take().unwrap());
        Hook {
            child,
            stdout,
            stderr,
        }
    }

    pub(crate) fn hook(&self, input: &Value) -> Hook {
        self.hook_with(input.to_string().as_bytes(), &[])
    }
}

fn collect(mut from: impl tokio::io::AsyncRead + Unpin + Send + 'static) -> JoinHandle<Vec<u8>> {
    tokio::spawn(async move {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).await.unwrap();
        bytes
    })
}

impl Hook {
    pub(crate) async fn ended(mut self) -> Ended {
        let status = within(self.child.wait()).await.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ended {
            code: status.code(),
            stdout: text(self.stdout.await.unwrap()),
            stderr: text(self.stderr.await.unwrap()),
        }
    }

    pub(crate) fn signal(&self, signal: &str) {
        send_signal(&self.child, signal);
    }
}

fn send_signal(child: &Child, signal: &str) {
    let pid = child.id().expect("still running").to_string();
    let sent = std::process::Command::new("kill")
        .args([signal, &pid])
        .status();
    assert!(sent.unwrap().success());
}

impl Daemon {
    pub(crate) async fn start(home: &Home) -> Self {
        Self::start_by(home, &["daemon"]).await
    }

    pub(crate) async fn start_by(home: &Home, arguments: &[&str]) -> Self {
        let daemon = Self::launch(home, arguments);
        daemon.logged("ready").await;
        daemon
    }

    fn launch(home: &Home, arguments: &[&str]) -> Self {
        let mut child = home.nod(arguments).spawn().unwrap();
        let log = Log::default();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let kept = log.clone();
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                let mut all = kept.lines.lock().unwrap();
                all.push_str(&line);
                all.push('\n');
                drop(all);
                kept.grown.notify_waiters();
            }
        });
        Self { child, log }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id().expect("the daemon runs")
    }

    pub(crate) fn log(&self) -> String {
        self.log.lines.lock().unwrap().clone()
    }

    pub(crate) async fn logged(&self, text: &str) {
        let wait = async {
            loop {
                let grown = self.log.grown.notified();
                if self.log().contains(text) {
                    return;
                }
                grown.await;
            }
        };
        let found = tokio::time::timeout(LIMIT, wait).await;
        assert!(found.is_ok(), "`{text}` was not logged:\n{}", self.log());
    }

    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Asks it to stop and waits until it did.
    pub(crate) async fn stop(mut self) {
        send_signal(&self.child, "-TERM");
        let status = within(self.child.wait()).await.unwrap();
        assert_eq!(status.code(), Some(0), "{}", self.log());
    }
}

impl Stage {
    pub(crate) async fn new() -> Self {
        Self::with(|_, _| {}).await
    }

    /// A stage whose Feishu and whose settings were changed first.
    pub(crate) async fn with(change: impl FnOnce(&mut Options, &mut Home)) -> Self {
        let mut options = Options {
            chat_per_second: None,
            patch_per_second: None,
            api_per_second: None,
            ..Options::default()
        };
        let mut home = Home::new("");
        change(&mut options, &mut home);
        let sim = Simulator::start(options).await.unwrap();
        home.set("FEISHU_DOMAIN", &sim.base_url());
        Self::on(sim, home, None).await
    }

    /// A stage with a home that was made ready.
    pub(crate) async fn of(home: Home) -> Self {
        Self::with(|_, ours| *ours = home).await
    }

    /// A stage on this Feishu; what is of its team has its connections and ends
    /// with it.
    pub(crate) async fn on(sim: Simulator, home: Home, team: Option<Box<dyn Any + Send>>) -> Self {
        let mut stage = Self {
            sim,
            home,
            daemon: None,
            seen: 0,
            team,
        };
        stage.start().await;
        stage
    }

    /// Starts the daemon and waits for its connection.
    pub(crate) async fn start(&mut self) {
        self.daemon = Some(Daemon::start(&self.home).await);
        assert!(self.sim.wait_connections(1, LIMIT).await);
        if self.team.is_some() {
            self.until_status(is_connected).await;
        }
    }

    /// A team's gateway stays when its machines go.
    async fn is_gone(&self) -> bool {
        let left = usize::from(self.team.is_some());
        self.sim.wait_connections(left, LIMIT).await
    }

    pub(crate) fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().expect("the daemon runs")
    }

    pub(crate) fn take_daemon(&mut self) -> Daemon {
        self.daemon.take().expect("the daemon runs")
    }

    /// `kill -9`, and Feishu has noticed.
    pub(crate) async fn kill(&mut self) {
        self.take_daemon().kill().await;
        assert!(self.is_gone().await);
    }

    pub(crate) async fn stop(&mut self) {
        self.take_daemon().stop().await;
        assert!(self.is_gone().await);
    }

    /// The next card or text nod sends.
    pub(crate) async fn sent(&mut self) -> HeldMessage {
        let seen = self.seen;
        let next = |sim: &Simulator| {
            let own: Vec<_> = own_messages(sim);
            own.get(seen).cloned()
        };
        let message = self.sim.wait_for(LIMIT, next).await;
        self.seen += 1;
        message.unwrap_or_else(|| panic!("no card came:\n{}", self.daemon().log()))
    }

    /// How many messages nod has sent.
    pub(crate) fn count(&self) -> usize {
        own_messages(&self.sim).len()
    }

    /// Starts a hook and waits for its card.
    pub(crate) async fn ask(&mut self, input: &Value) -> (Hook, String) {
        let hook = self.home.hook(input);
        let card = self.sent().await;
        (hook, card.message_id)
    }

    pub(crate) async fn ask_bash(&mut self, command: &str) -> (Hook, String) {
        self.ask(&bash("s1", command)).await
    }

    pub(crate) async fn tap(&self, message: &str, action: &str) -> Clicked {
        self.press(Press::action(message, action)).await
    }

    pub(crate) async fn press(&self, press: Press) -> Clicked {
        within(self.sim.click(press)).await.unwrap()
    }

    /// The text of a message's card as people see it now.
    pub(crate) fn face(&self, message: &str) -> String {
        let message = self.sim.message(message).expect("the message exists");
        face(message.card.as_ref().expect("it shows a card"))
    }

    /// Waits until the card says this, and returns all it says.
    pub(crate) async fn shows(&self, message: &str, text: &str) -> String {
        let ready = |sim: &Simulator| {
            let card = sim.message(message)?.card?;
            Some(face(&card)).filter(|shown| shown.contains(text))
        };
        let shown = self.sim.wait_for(LIMIT, ready).await;
        shown.unwrap_or_else(|| {
            panic!(
                "the card never said `{text}` but\n{}\n{}",
                self.face(message),
                self.daemon.as_ref().map(Daemon::log).unwrap_or_default()
            )
        })
    }

    /// Waits until `nod status` says so.
    /// A daemon that is too busy to answer in time is asked again.
    pub(crate) async fn until_status(&self, ready: impl Fn(&Value) -> bool) -> Value {
        let wait = async {
            loop {
                let shown = self.home.run(&["status", "--json"]).await;
                if let Ok(status) = serde_json::from_str(&shown.stdout)
                    && ready(&status)
                {
                    return status;
                }
            }
        };
        within(wait).await
    }

    /// Nothing nod sent or answered broke a rule of Feishu's.
    pub(crate) fn no_violations(&self) {
        let violations = self.sim.violations();
        assert!(violations.is_empty(), "{violations:?}");
    }
}

fn own_messages(sim: &Simulator) -> Vec<HeldMessage> {
    let all = sim.messages();
    all.into_iter()
        .filter(|message| message.sender_type == "app")
        .collect()
}

pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, work)
        .await
        .expect("done in time")
}

/// What Claude Code writes to its permission hook.
pub(crate) fn bash(session: &str, command: &str) -> Value {
    permission(session, "Bash", &json!({"command": command}))
}

pub(crate) fn permission(session: &str, tool: &str, input: &Value) -> Value {
    json!({
        "session_id": session,
        "hook_event_name": "PermissionRequest",
        "permission_mode": "default",
        "tool_name": tool,
        "tool_input": input,
    })
}

/// Another event of the same session.
pub(crate) fn event(session: &str, name: &str, more: &Value) -> Value {
    let mut input = json!({"session_id": session, "hook_event_name": name});
    for (key, value) in more.as_object().expect("an object") {
        input[key] = value.clone();
    }
    input
}

/// All text on a card, in order.
pub(crate) fn face(card: &Value) -> String {
    fn walk(value: &Value, out: &mut String) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    match value {
                        Value::String(text) if key == "content" => {
                            out.push_str(text);
                            out.push('\n');
                        }
                        _ => walk(value, out),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, out)),
            _ => {}
        }
    }
    let mut out = String::new();
    walk(card, &mut out);
    out
}

/// The actions a card's buttons offer.
pub(crate) fn offered(card: &Value) -> Vec<String> {
    values(card)
        .iter()
        .filter_map(|value| Some(value["action"].as_str()?.to_owned()))
        .collect()
}

/// The callback values of a card's buttons.
pub(crate) fn values(card: &Value) -> Vec<Value> {
    fn walk(value: &Value, out: &mut Vec<Value>) {
        match value {
            Value::Object(map) => {
                if map.get("type").is_some_and(|kind| kind == "callback") {
                    out.extend(map.get("value").cloned());
                }
                map.values().for_each(|value| walk(value, out));
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, out)),
            _ => {}
        }
    }
    let mut out = Vec::new();
    walk(card, &mut out);
    out
}

/// A toast's kind and Chinese words.
pub(crate) fn toast(clicked: &Clicked) -> (&str, &str) {
    assert_eq!(clicked.popup, None, "{clicked:?}");
    let toast = clicked.toast.as_ref().expect("a toast");
    (&toast.kind, &toast.content)
}

pub(crate) fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// A figure, or what this machine could not show.
#[allow(clippy::print_stderr, reason = "this is what a test has to say")]
pub(crate) fn report(text: &str) {
    eprintln!("{text}");
}
