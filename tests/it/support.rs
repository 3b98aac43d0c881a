//! What the tests of the whole share: the real daemon in a home of its own,
//! somebody at its hook socket, the client's own connection in process, and
//! waits that end when something is reported.

use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nod::for_tests::clock::Clock;
use nod::for_tests::feishu::clock::TheirClock;
use nod::for_tests::feishu::connection::{self, LinkView, Wiring};
use nod::for_tests::feishu::domain::Domain;
use nod::for_tests::feishu::endpoint::{DialLimits, Dialer};
use nod::for_tests::feishu::link::{PushAnswer, PushDelivery};
use nod::for_tests::feishu::outbound::{Outbound, Proxies};
use nod::for_tests::feishu::secret::Secret;
use nod::for_tests::hook::client;
use nod::for_tests::hook::wire::DaemonOrder;
use nod::for_tests::hook::wire::{Additions, HookMessage, Registration, unframe};
use nod::for_tests::ids::RequestId;
use nod::for_tests::simulator::{APP_ID, APP_SECRET, Connection, OWNER, Simulator};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Far longer than anything takes; only a failure waits for it.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);

pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(LIMIT, future).await;
    done.unwrap_or_else(|_| panic!("{what}: not in {LIMIT:?}"))
}

/// Looks again and again until there is something.
pub(crate) async fn until<T, F>(what: &str, mut look: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let looking = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within(what, looking).await
}

/// Measures up to three times and takes the first below `limit`: a bound on
/// the program must not fail because the machine was busy elsewhere.
pub(crate) async fn faster_than<F>(limit: Duration, mut measure: impl FnMut() -> F)
where
    F: Future<Output = Duration>,
{
    let mut all = Vec::new();
    for _ in 0..3 {
        let took = measure().await;
        if took < limit {
            return;
        }
        all.push(took);
    }
    panic!("never below {limit:?}: {all:?}");
}

/// What a process writes, as it comes.
#[derive(Clone)]
pub(crate) struct Log(watch::Receiver<String>);

impl Log {
    fn follow(stream: impl AsyncRead + Send + Unpin + 'static) -> Self {
        let (text, log) = watch::channel(String::new());
        tokio::spawn(async move {
            let mut lines = BufReader::new(stream).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                text.send_modify(|text| {
                    text.push_str(&line);
                    text.push('\n');
                });
            }
        });
        Self(log)
    }

    pub(crate) fn text(&self) -> String {
        self.0.borrow().clone()
    }

    /// Waits for a line that holds these words.
    pub(crate) async fn says(&self, words: &str) {
        let mut log = self.0.clone();
        let said = tokio::time::timeout(LIMIT, log.wait_for(|text| text.contains(words))).await;
        let said = said.is_ok_and(|said| said.is_ok());
        assert!(said, "`{words}` is not in the log:\n{}", self.text());
    }

    /// Everything, once the process has ended.
    pub(crate) async fn whole(mut self) -> String {
        let ended = async { while self.0.changed().await.is_ok() {} };
        within("the end of the log", ended).await;
        self.text()
    }
}

/// A home directory with nothing in it, and the real binary run from there
/// with no setting but those given.
pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("nod").tempdir();
        Self(dir.unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path().join("state")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.state().join("run/nod.sock")
    }

    pub(crate) fn nod(&self, arguments: &[&str], settings: &[(&str, &str)]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nod"));
        command.args(arguments);
        let state = self.state().display().to_string();
        let mut all = vec![("NOD_STATE_DIR", state.as_str()), ("NOD_LANG", "en")];
        all.extend_from_slice(settings);
        if arguments == ["hook"] {
            let file = settings_file(self.path(), all.iter().copied());
            command.arg("--config").arg(file);
        }
        command
            .current_dir(self.path())
            .env_clear()
            .env("HOME", self.path())
            .env("USER", "tester")
            .env("NOD_LOG", "debug")
            .envs(all)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Runs a command to its end: exit code, stdout, stderr.
    pub(crate) async fn run(
        &self,
        arguments: &[&str],
        settings: &[(&str, &str)],
    ) -> (Option<i32>, String, String) {
        let output = within("a command's end", self.nod(arguments, settings).output())
            .await
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    }
}

/// A settings file for a hook, which takes none from its environment. The last
/// of a name counts. Written whole or not at all, as hooks may be reading it.
pub(crate) fn settings_file<'a>(
    dir: &Path,
    settings: impl Iterator<Item = (&'a str, &'a str)>,
) -> PathBuf {
    let file = dir.join("hook.env");
    let lines: Vec<String> = settings
        .map(|(name, value)| format!("{name}=\"{value}\"\n"))
        .collect();
    let text = lines.concat();
    if std::fs::read_to_string(&file).is_ok_and(|known| known == text) {
        return file;
    }
    let mut new = tempfile::NamedTempFile::new_in(dir).unwrap();
    std::io::Write::write_all(&mut new, text.as_bytes()).unwrap();
    new.persist(&file).unwrap();
    file
}

/// The settings that lead a daemon to this simulator.
pub(crate) fn settings(base: &str) -> Vec<(&str, &str)> {
    vec![
        ("FEISHU_APP_ID", APP_ID),
        ("FEISHU_APP_SECRET", APP_SECRET),
        ("FEISHU_DOMAIN", base),
        ("FEISHU_OWNER_ID", OWNER),
    ]
}

/// A running `nod daemon`; killed when dropped.
pub(crate) struct Daemon {
    pub(crate) home: Home,
    pub(crate) log: Log,
    pub(crate) out: Log,
    pub(crate) started: Instant,
    child: Child,
}

impl Daemon {
    pub(crate) fn start(settings: &[(&str, &str)]) -> Self {
        Self::start_in(Home::new(), settings)
    }

    pub(crate) fn start_in(home: Home, settings: &[(&str, &str)]) -> Self {
        let started = Instant::now();
        let mut child = home.nod(&["daemon"], settings).spawn().unwrap();
        let log = Log::follow(child.stderr.take().unwrap());
        let out = Log::follow(child.stdout.take().unwrap());
        Self {
            home,
            log,
            out,
            started,
            child,
        }
    }

    /// Against a simulator, once it is connected.
    pub(crate) async fn connected(simulator: &Simulator) -> Self {
        let daemon = Self::start(&settings(&simulator.base_url()));
        daemon.status_where("connected", is_connected).await;
        daemon
    }

    pub(crate) fn pid(&self) -> Pid {
        let id = self.child.id().expect("a running daemon");
        Pid::from_raw(i32::try_from(id).unwrap()).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// The next status that fits.
    pub(crate) async fn status_where(&self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let socket = self.home.socket();
        let last = Mutex::new(Value::Null);
        let looking = until(what, || async {
            let socket = socket.clone();
            let asking = tokio::task::spawn_blocking(move || {
                client::order(&socket, DaemonOrder::Status, LIMIT)
            });
            let status = asking.await.unwrap().ok()?;
            *last.lock().unwrap() = status.clone();
            fits(&status).then_some(status)
        });
        let found = tokio::time::timeout(LIMIT / 2, looking).await;
        found.unwrap_or_else(|_| {
            let (last, log) = (last.lock().unwrap(), self.log.text());
            panic!("{what}: the status was {last}; the log:\n{log}")
        })
    }

    pub(crate) async fn exit(&mut self) -> ExitStatus {
        within("the daemon's end", self.child.wait()).await.unwrap()
    }
}

pub(crate) fn is_connected(status: &Value) -> bool {
    status["connection"]["state"] == "connected"
}

/// Stands where a hook stands: asked, and waiting for the answer.
pub(crate) struct Asker(UnixStream);

impl Asker {
    /// Registers a request as nod's own hook does, with the home as its
    /// project, and reads the ack.
    pub(crate) async fn ask(home: &Home, number: usize, command: &str) -> Self {
        let raw_input = json!({
            "hook_event_name": "PermissionRequest",
            "session_id": "sess_it",
            "cwd": home.path(),
            "tool_name": "Bash",
            "tool_input": {"command": command},
        });
        let message = HookMessage::Register(Registration {
            id: RequestId::parse(&format!("{number:032x}")).unwrap(),
            project: home.path().to_owned(),
            raw_input: raw_input.to_string().into_bytes(),
            nod: Some(Additions::default()),
        });
        let mut stream = UnixStream::connect(home.socket()).await.unwrap();
        stream.write_all(&message.encode()).await.unwrap();
        let mut ack = Vec::new();
        while serde_json::from_slice::<Value>(&ack).is_err() {
            let read = within("an ack", stream.read_buf(&mut ack)).await.unwrap();
            assert!(read > 0, "no ack: {}", String::from_utf8_lossy(&ack));
        }
        let ack: Value = serde_json::from_slice(&ack).unwrap();
        assert_eq!(ack["success"], true, "{ack}");
        Self(stream)
    }

    pub(crate) async fn decision(&mut self) -> Value {
        let mut bytes = Vec::new();
        loop {
            if let Some((value, _)) = unframe(&bytes).unwrap() {
                return value;
            }
            let read = within("a decision", self.0.read_buf(&mut bytes)).await;
            assert!(read.unwrap() > 0, "the daemon hung up");
        }
    }

    pub(crate) async fn confirm(&mut self) {
        self.0
            .write_all(&HookMessage::Received.encode())
            .await
            .unwrap();
    }
}

/// A dialer that leads to this simulator.
pub(crate) fn dialer(simulator: &Simulator) -> Dialer {
    dialer_to(&simulator.base_url())
}

pub(crate) fn dialer_to(base: &str) -> Dialer {
    Dialer {
        outbound: Outbound::new(&Proxies::default(), None).unwrap(),
        domain: Domain::parse(base).unwrap(),
        app_id: APP_ID.to_owned(),
        app_secret: Secret::new(APP_SECRET),
        limits: DialLimits::default(),
        clock: TheirClock::new(Clock::start()),
    }
}

/// What a click in process is answered with.
pub(crate) const SHOWN: &[u8] = br#"{"toast":{"type":"info","content":"seen"}}"#;
pub(crate) const OVERDUE: &[u8] = br#"{"toast":{"type":"info","content":"overdue"}}"#;
pub(crate) const FAILED: &[u8] = br#"{"toast":{"type":"error","content":"failed"}}"#;

/// The long connection in process, with a handler of the test's own.
pub(crate) struct Client {
    pub(crate) view: watch::Receiver<LinkView>,
    pub(crate) hot: watch::Sender<bool>,
    pub(crate) stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Client {
    pub(crate) fn start<H, F>(dialer: Dialer, handler: H) -> Self
    where
        H: Fn(PushDelivery) -> F + Send + Sync + 'static,
        F: Future<Output = PushAnswer> + Send + 'static,
    {
        let (sender, view) = watch::channel(connection::first_view());
        let (hot, is_hot) = watch::channel(false);
        let stop = CancellationToken::new();
        let wiring = Wiring {
            handler,
            hot: is_hot,
            view: sender,
            overdue_answer: OVERDUE.to_vec(),
            failed_answer: FAILED.to_vec(),
            stop: stop.clone(),
        };
        Self {
            view,
            hot,
            stop,
            task: tokio::spawn(connection::run(dialer, wiring)),
        }
    }

    /// One that shows [`SHOWN`] for everything.
    pub(crate) fn answering(simulator: &Simulator) -> Self {
        Self::start(dialer(simulator), |_| async {
            PushAnswer::Show(SHOWN.to_vec())
        })
    }

    pub(crate) fn connects(&self) -> u64 {
        self.view.borrow().counts.connects
    }

    pub(crate) async fn stopped(self) {
        self.stop.cancel();
        within("the connection's end", self.task).await.unwrap();
    }
}

/// Waits for one connection with an id above `last`, and nothing beside it.
pub(crate) async fn next_connection(simulator: &Simulator, last: u64) -> Connection {
    let ready = |simulator: &Simulator| match &simulator.connections()[..] {
        [one] if one.id > last && one.app_pings > 0 => Some(one.clone()),
        _ => None,
    };
    let found = simulator.wait_for(LIMIT, ready).await;
    found.unwrap_or_else(|| panic!("no new connection: {:?}", simulator.connections()))
}

/// The body of a tap on a card that nod never made.
pub(crate) fn foreign_click(event_id: &str) -> String {
    json!({
        "schema": "2.0",
        "header": {
            "event_id": event_id, "token": "t", "create_time": "1718000000000000",
            "event_type": "card.action.trigger", "tenant_key": "t1", "app_id": APP_ID,
        },
        "event": {
            "operator": {"open_id": OWNER}, "token": "c-1",
            "action": {"value": {"a": 1}, "tag": "button"}, "host": "im_message",
            "context": {"open_message_id": "om_1", "open_chat_id": "oc_1"},
        },
    })
    .to_string()
}

/// Taps on a foreign card and expects a toast for it.
pub(crate) async fn click_is_answered(simulator: &Simulator, event_id: &str) {
    let (pushed, outcome) = simulator.push_click_raw(foreign_click(event_id)).await;
    assert_eq!(pushed.code, Some(200), "{pushed:?}");
    assert!(outcome.toast.is_some(), "{outcome:?}");
}

pub(crate) fn no_violations(simulator: &Simulator) {
    let violations = simulator.violations();
    assert!(violations.is_empty(), "{violations:?}");
}

/// A listener on loopback that runs one task per connection until dropped.
pub(crate) struct Door {
    pub(crate) address: SocketAddr,
    _task: AbortOnDropHandle<()>,
}

impl Door {
    pub(crate) async fn open<F>(work: impl Fn(TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            let mut guests = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                guests.spawn(work(stream));
            }
        });
        Self {
            address,
            _task: AbortOnDropHandle::new(task),
        }
    }
}

/// Leads to another address and remembers every byte in both directions.
pub(crate) struct Tap {
    door: Door,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl Tap {
    pub(crate) async fn before(server: SocketAddr) -> Self {
        let heard = Arc::<Mutex<Vec<u8>>>::default();
        let keep = Arc::clone(&heard);
        let door = Door::open(move |near| {
            let keep = Arc::clone(&keep);
            async move {
                let Ok(far) = TcpStream::connect(server).await else {
                    return;
                };
                let (near_read, near_write) = near.into_split();
                let (far_read, far_write) = far.into_split();
                tokio::join!(
                    pass(near_read, far_write, &keep),
                    pass(far_read, near_write, &keep)
                );
            }
        })
        .await;
        Self { door, heard }
    }

    pub(crate) fn base(&self) -> String {
        format!("http://{}", self.door.address)
    }

    pub(crate) fn heard(&self) -> String {
        String::from_utf8_lossy(&self.heard.lock().unwrap()).into_owned()
    }
}

async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl tokio::io::AsyncWrite + Unpin,
    keep: &Mutex<Vec<u8>>,
) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        keep.lock().unwrap().extend_from_slice(&buffer[..count]);
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
    let _ = to.shutdown().await;
}
