//! Real daemons beside an in-process Feishu, and the least hook there can be.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nod::for_tests::simulator::{APP_ID, APP_SECRET, OWNER, Options, Simulator};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};

pub(crate) const LIMIT: Duration = Duration::from_secs(120);

pub(crate) async fn feishu() -> Simulator {
    feishu_ahead(0).await
}

/// A Feishu whose clock is so far ahead of everybody else's.
pub(crate) async fn feishu_ahead(ms: i64) -> Simulator {
    let options = Options {
        clock_ahead_ms: ms,
        chat_per_second: None,
        patch_per_second: None,
        api_per_second: None,
        history: 200_000,
        ..Options::default()
    };
    Simulator::start(options).await.unwrap()
}

/// An address nobody listens on.
pub(crate) fn free(ip: [u8; 4]) -> SocketAddr {
    let listener = TcpListener::bind((IpAddr::from(ip), 0)).unwrap();
    listener.local_addr().unwrap()
}

/// A daemon of its own, ended when dropped.
pub(crate) struct Machine {
    pub(crate) dir: tempfile::TempDir,
    settings: Vec<(String, String)>,
    verb: &'static str,
    child: Child,
}

impl Machine {
    #[cfg(feature = "team")]
    /// Whatever this verb runs, in a home that may have been made ready.
    pub(crate) fn run(verb: &'static str, dir: tempfile::TempDir, more: &[(&str, &str)]) -> Self {
        let home = dir.path().to_string_lossy().into_owned();
        let mut settings = vec![
            ("HOME".to_owned(), home.clone()),
            ("NOD_STATE_DIR".to_owned(), format!("{home}/state")),
            (
                "PERMISSION_SOCKET_PATH".to_owned(),
                format!("{home}/nod.sock"),
            ),
        ];
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        settings.extend(more.iter().map(owned));
        let child = spawn(&dir.path().join("log"), &settings, verb);
        Self {
            dir,
            settings,
            verb,
            child,
        }
    }

    #[cfg(feature = "team")]
    /// What a command says beside it, and how it ends.
    pub(crate) fn nod(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let done = Command::new(env!("CARGO_BIN_EXE_nod"))
            .args(arguments)
            .env_clear()
            .envs(self.settings.iter().cloned())
            .env("NOD_LANG", "en")
            .output()
            .unwrap();
        let said = [done.stdout, done.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        (done.status.code(), said)
    }

    #[cfg(feature = "team")]
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// One of the app's machines.
    pub(crate) fn of_app(feishu: &Simulator, at: SocketAddr, peers: &str) -> Self {
        Self::start(
            at,
            &[
                ("FEISHU_APP_ID", APP_ID),
                ("FEISHU_APP_SECRET", APP_SECRET),
                ("FEISHU_DOMAIN", &feishu.base_url()),
                ("FEISHU_OWNER_ID", OWNER),
                ("NOD_CHAT_RATE", "1000"),
                ("CALLBACK_PEERS", peers),
            ],
        )
    }

    pub(crate) fn start(at: SocketAddr, settings: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut settings: Vec<_> = settings
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let home = dir.path().to_string_lossy().into_owned();
        for (name, value) in [
            ("HOME", home.clone()),
            ("NOD_STATE_DIR", format!("{home}/state")),
            ("PERMISSION_SOCKET_PATH", format!("{home}/nod.sock")),
            ("CALLBACK_LISTEN", at.to_string()),
            ("CALLBACK_SERVER_URL", format!("http://{at}")),
        ] {
            settings.push((name.to_owned(), value));
        }
        let child = spawn(&dir.path().join("log"), &settings, "daemon");
        Self {
            dir,
            settings,
            verb: "daemon",
            child,
        }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("nod.sock")
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// As a power cut ends it.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The exit code of a daemon that ends by itself.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    pub(crate) fn again(&mut self) {
        self.child = spawn(&self.dir.path().join("log"), &self.settings, self.verb);
    }

    /// How many decisions the audit holds for each request.
    pub(crate) fn decisions(&self) -> HashMap<String, usize> {
        let db = nod::for_tests::store::Db::open_read_only(&self.dir.path().join("state")).unwrap();
        let mut counts = HashMap::new();
        let mut before = None;
        loop {
            let page = db.audit(before, 500).unwrap();
            let Some(last) = page.last() else {
                return counts;
            };
            before = Some(last.seq);
            for line in page {
                if let (Some(id), Some(_)) = (line.entry.request, line.entry.decision) {
                    *counts.entry(id).or_default() += 1;
                }
            }
        }
    }
}

fn spawn(log: &std::path::Path, settings: &[(String, String)], verb: &str) -> Child {
    let log = std::fs::File::options()
        .create(true)
        .append(true)
        .open(log)
        .unwrap();
    Command::new(env!("CARGO_BIN_EXE_nod"))
        .arg(verb)
        .env_clear()
        .envs(settings.iter().cloned())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap()
}

impl Drop for Machine {
    fn drop(&mut self) {
        if std::thread::panicking() {
            crate::hooks::report(&format!("--- nod {}:\n{}---", self.verb, self.log()));
        }
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client of the socket's plain first version.
pub(crate) struct Hook {
    stream: UnixStream,
}

impl Hook {
    /// Asks for a command and comes back with the place it waits at.
    pub(crate) async fn ask(machine: &Machine, id: &str, command: &str) -> Self {
        Self::call(machine, id, "Bash", &json!({"command": command})).await
    }

    /// The same for any tool.
    pub(crate) async fn call(machine: &Machine, id: &str, tool: &str, input: &Value) -> Self {
        let input = json!({
            "hook_event_name": "PermissionRequest",
            "session_id": format!("session-of-{id}"),
            "cwd": machine.dir.path(),
            "tool_name": tool,
            "tool_input": input,
        });
        let request = json!({
            "request_id": id,
            "project_dir": machine.dir.path(),
            "raw_input_encoded": STANDARD.encode(input.to_string()),
        });
        let mut stream = connect(machine).await;
        stream
            .write_all(request.to_string().as_bytes())
            .await
            .unwrap();
        let mut ack = Vec::new();
        loop {
            ack.push(within(stream.read_u8()).await.unwrap());
            if let Ok(ack) = serde_json::from_slice::<Value>(&ack) {
                assert_eq!(ack["success"], true, "{ack}");
                return Self { stream };
            }
        }
    }

    /// The decision, or `None` if the daemon went away without one.
    pub(crate) async fn decision(mut self) -> Option<Value> {
        let length = within(self.stream.read_u32()).await.ok()?;
        let mut bytes = vec![0; length as usize];
        within(self.stream.read_exact(&mut bytes)).await.unwrap();
        Some(serde_json::from_slice(&bytes).unwrap())
    }
}

/// The socket is there once the daemon is.
async fn connect(machine: &Machine) -> UnixStream {
    let path = machine.socket();
    let dial = async {
        loop {
            match UnixStream::connect(&path).await {
                Ok(stream) => return stream,
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    tokio::time::timeout(LIMIT, dial)
        .await
        .unwrap_or_else(|_| panic!("no daemon:\n{}", machine.log()))
}

pub(crate) async fn within<T>(wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, wait)
        .await
        .expect("it comes in time")
}

/// Where each request's card is, read from the history as it grows.
#[derive(Default)]
pub(crate) struct Cards {
    seen: u64,
    pub(crate) of: HashMap<String, String>,
    /// The value of each card's button to allow.
    pub(crate) allows: HashMap<String, Value>,
}

impl Cards {
    /// Waits until this many requests have their card.
    pub(crate) async fn wait(&mut self, feishu: &Simulator, count: usize) {
        let arrived = feishu.wait_for(LIMIT, |feishu| {
            for entry in feishu.history(self.seen) {
                self.seen = entry.seq;
                if let (Some(id), Some(card)) =
                    (entry.detail.get("message_id"), entry.detail.get("card"))
                    && let Some(value) = allow_value(card)
                {
                    let request = value["request_id"].as_str().unwrap();
                    let message = id.as_str().unwrap().to_owned();
                    self.of.insert(request.to_owned(), message);
                    self.allows.insert(request.to_owned(), value.clone());
                }
            }
            (self.of.len() >= count).then_some(())
        });
        assert!(
            arrived.await.is_some(),
            "{} of {count} cards",
            self.of.len()
        );
    }
}

fn allow_value(card: &Value) -> Option<&Value> {
    match card {
        Value::Object(map) if map.get("action").is_some_and(|it| it == "allow") => Some(card),
        Value::Object(map) => map.values().find_map(allow_value),
        Value::Array(list) => list.iter().find_map(allow_value),
        _ => None,
    }
}

/// One HTTP exchange by hand: status, head, body.
pub(crate) async fn http(at: SocketAddr, line: &str, body: &str) -> (u16, String, String) {
    let mut stream = within(TcpStream::connect(at)).await.unwrap();
    let kind = if body.starts_with('{') {
        "application/json"
    } else {
        "application/x-www-form-urlencoded"
    };
    let request = format!(
        "{line} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\n\
         content-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    within(stream.read_to_string(&mut answer)).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head[9..12].parse().unwrap();
    (status, head.to_owned(), body.to_owned())
}
