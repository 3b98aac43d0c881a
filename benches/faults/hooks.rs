//! Those who wait for a decision: real `nod hook` processes, nod's client in
//! this process, and old clients of the first protocol.

use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nod::for_tests::approvals::request::Digest;
use nod::for_tests::hook::client::{self, HookRequest, Patience};
use nod::for_tests::hook::wire::answer::Decision;
use nod::for_tests::ids::RequestId;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::oneshot;

use crate::histories::Said;
use crate::stage::{Home, REQUEST_TIMEOUT};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// nod's own client, in a thread of this process.
    Client,
    /// A `nod hook` as Claude Code starts it.
    Process,
    /// A client of the first protocol, which can't come back.
    Old,
}

/// What a hook asks.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) number: u64,
    pub(crate) kind: Kind,
    pub(crate) project: PathBuf,
    pub(crate) input: Value,
    pub(crate) id: RequestId,
}

impl Ask {
    pub(crate) fn new(home: &Home, seed: u64, number: u64, kind: Kind) -> Self {
        let project = home.project(number);
        let id = RequestId::parse(&format!("faults-{seed:012x}-{number:012x}"));
        Self {
            number,
            kind,
            input: json!({
                "hook_event_name": "PermissionRequest",
                "session_id": format!("session-{number}"),
                "cwd": project,
                "tool_name": "Bash",
                "tool_input": {"command": command(number)},
            }),
            project,
            id: id.expect("printable ASCII"),
        }
    }

    pub(crate) fn digest(&self) -> Digest {
        Digest::of(&self.input["tool_input"])
    }

    /// The event that tells nod that the terminal answered, at the end of a
    /// command that took so long.
    pub(crate) fn ran_anyway(&self, took: Duration) -> Value {
        let mut event = self.input.clone();
        event["hook_event_name"] = "PostToolUse".into();
        event["duration_ms"] = u64::try_from(took.as_millis()).unwrap_or_default().into();
        event
    }
}

fn command(number: u64) -> String {
    format!("make target-{number}-end")
}

/// What the tool input of this hook comes to.
pub(crate) fn digest_of(number: u64) -> Digest {
    Digest::of(&json!({"command": command(number)}))
}

/// Which hook a card is about.
pub(crate) fn number_on(card: &Value) -> Option<u64> {
    let text = card.to_string();
    let (_, rest) = text.split_once("make target-")?;
    rest.split_once("-end")?.0.parse().ok()
}

/// How a hook ended.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    pub(crate) printed: Vec<Said>,
    /// The rules that went with it.
    pub(crate) handed: Vec<String>,
    pub(crate) killed: bool,
    pub(crate) took: Duration,
}

/// Runs a hook to its end. `stop` ends it as its user would: Claude Code goes
/// away, or the process is killed.
pub(crate) async fn run(home: &Home, ask: Ask, stop: oneshot::Receiver<()>) -> Ended {
    let started = Instant::now();
    let socket = home.socket();
    let mut ended = match ask.kind {
        Kind::Client => {
            in_thread(ask, stop, move |ask, alive| {
                client_asks(&socket, ask, alive)
            })
            .await
        }
        Kind::Old => in_thread(ask, stop, move |ask, alive| old_asks(&socket, ask, alive)).await,
        Kind::Process => process(home, &ask, stop).await,
    };
    ended.took = started.elapsed();
    ended
}

/// The far end of the pipe is where Claude Code would read: dropping it is its
/// death.
async fn in_thread(
    ask: Ask,
    stop: oneshot::Receiver<()>,
    work: impl FnOnce(&Ask, &std::io::PipeWriter) -> Ended + Send + 'static,
) -> Ended {
    let Ok((reader, writer)) = std::io::pipe() else {
        return Ended::default();
    };
    let mut waiting = tokio::task::spawn_blocking(move || work(&ask, &writer));
    let ended = tokio::select! {
        ended = &mut waiting => ended,
        Ok(()) = stop => {
            drop(reader);
            waiting.await
        }
    };
    ended.unwrap_or_default()
}

fn client_asks(socket: &std::path::Path, ask: &Ask, alive: &std::io::PipeWriter) -> Ended {
    let question = HookRequest {
        process: None,
        id: ask.id.clone(),
        project: ask.project.clone(),
        raw_input: ask.input.to_string().into_bytes(),
        digest: ask.digest(),
        cwd: Some(ask.project.clone()),
        agent: None,
        pid: Some(std::process::id()),
        mailbox: None,
    };
    let patience = Patience::for_timeout(REQUEST_TIMEOUT);
    match client::ask(socket, &question, &patience, Some(alive.as_fd())) {
        Ok(Decision::Allow(extras)) => Ended {
            printed: vec![Said::Allow],
            handed: rules_in(&extras.updated_permissions.unwrap_or_default()),
            ..Ended::default()
        },
        Ok(Decision::Deny { interrupt, .. }) => Ended {
            printed: vec![Said::Deny { interrupt }],
            ..Ended::default()
        },
        Ok(Decision::Terminal { .. }) | Err(_) => Ended::default(),
    }
}

/// As the clients of the reference protocol do it: one write, one read for the
/// ack, then a length and the decision. They do not watch the listener.
fn old_asks(socket: &std::path::Path, ask: &Ask, _: &std::io::PipeWriter) -> Ended {
    let told = old_conversation(socket, ask).unwrap_or_default();
    Ended {
        printed: told.iter().filter_map(said).collect(),
        ..Ended::default()
    }
}

/// The rules of Claude Code's permission updates, as its settings spell them.
fn rules_in(updates: &Value) -> Vec<String> {
    let updates = updates.as_array().into_iter().flatten();
    let rules = updates.filter_map(|update| update["rules"].as_array());
    let spelled = |rule: &Value| {
        let (tool, content) = (rule["toolName"].as_str()?, rule["ruleContent"].as_str());
        Some(content.map_or_else(|| tool.to_owned(), |content| format!("{tool}({content})")))
    };
    rules.flatten().filter_map(spelled).collect()
}

fn old_conversation(socket: &std::path::Path, ask: &Ask) -> std::io::Result<Vec<Value>> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(REQUEST_TIMEOUT + Duration::from_secs(30)))?;
    let request = json!({
        "request_id": ask.id.as_str(),
        "project_dir": ask.project,
        "raw_input_encoded": STANDARD.encode(ask.input.to_string()),
    });
    stream.write_all(request.to_string().as_bytes())?;
    let mut ack = [0; 4096];
    let read = stream.read(&mut ack)?;
    let ack: Value = serde_json::from_slice(&ack[..read])?;
    if ack["success"] != true {
        return Ok(Vec::new());
    }
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest)?;
    let mut told = Vec::new();
    let mut left = rest.as_slice();
    while let Some((length, after)) = left.split_first_chunk::<4>() {
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        let Some((body, after)) = after.split_at_checked(length) else {
            break;
        };
        told.push(serde_json::from_slice(body)?);
        left = after;
    }
    Ok(told)
}

fn said(told: &Value) -> Option<Said> {
    match told["decision"]["behavior"].as_str()? {
        "allow" => Some(Said::Allow),
        _ => Some(Said::Deny {
            interrupt: told["decision"]["interrupt"] == true,
        }),
    }
}

async fn process(home: &Home, ask: &Ask, stop: oneshot::Receiver<()>) -> Ended {
    let spawned = home
        .nod("hook")
        .env("CLAUDE_PROJECT_DIR", &ask.project)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = spawned else {
        return Ended::default();
    };
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(ask.input.to_string().as_bytes()).await;
    }
    let killed = {
        tokio::select! {
            _ = child.wait() => false,
            Ok(()) = stop => child.kill().await.is_ok(),
        }
    };
    let Ok(output) = child.wait_with_output().await else {
        return Ended::default();
    };
    let printed: Vec<Value> = serde_json::Deserializer::from_slice(&output.stdout)
        .into_iter::<Value>()
        .filter_map(|object| Some(object.ok()?["hookSpecificOutput"].take()))
        .collect();
    let updates = |told: &Value| rules_in(&told["decision"]["updatedPermissions"]);
    Ended {
        handed: printed.iter().flat_map(updates).collect(),
        printed: printed.iter().filter_map(said).collect(),
        killed,
        took: Duration::ZERO,
    }
}
