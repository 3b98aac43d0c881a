//! The task that owns a Claude Code child, against a child of our own that
//! plays recorded lines.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use nod::for_tests::child::process::{Grace, Launch};
use nod::for_tests::claude::launch::{Permissions, arguments};
use nod::for_tests::claude::process::{ClaudeChild, start};
use nod::for_tests::ids::SessionId;
use nod::for_tests::talk::{
    AgentEvent, AgentSaid, AgentWants, Exit, Mode, Opening, Say, ToolVerdict,
};
use serde_json::json;
use tempfile::TempDir;
use tokio::time::timeout;

use crate::support::LIMIT;

const HEAR: &str = r#"> "subtype":"interrupt""#;
const HEARD: &str = r#"< {"type":"control_response","response":{"subtype":"success","request_id":"nod-stop","response":{"still_queued":[]}}}"#;

struct Stage {
    dir: TempDir,
    launch: Launch,
}

impl Stage {
    fn new(script: &[&str]) -> Self {
        let dir = TempDir::new().unwrap();
        let project = dir.path().join("project");
        fs::create_dir(&project).unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("script"), script.join("\n") + "\n").unwrap();
        let path = std::env::var_os("PATH").unwrap();
        let variables: [(&str, OsString); 4] = [
            ("PATH", path),
            ("HOME", "/nowhere".into()),
            ("FAKE_CLAUDE_SCRIPT", at("script").into()),
            ("FAKE_CLAUDE_LOG", at("log").into()),
        ];
        let opening = Opening::Fresh(SessionId::parse("6b5f").unwrap());
        let launch = Launch {
            program: PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/fake-claude"),
            arguments: arguments(&opening, &Permissions::Ask(Mode::Default)),
            project,
            environment: variables.map(|(name, value)| (name.into(), value)).into(),
            grace: Grace::default(),
            guard: None,
        };
        Self { dir, launch }
    }

    /// Steps that pass on their own, so that a test need not wait for them.
    fn impatient(mut self) -> Self {
        let soon = Duration::from_millis(50);
        self.launch.grace = Grace {
            interrupt: soon,
            input_closed: soon,
            terminate: soon,
            kill: LIMIT,
        };
        self
    }

    fn start(&self) -> ClaudeChild {
        start(self.launch.clone())
    }

    fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap()
    }
}

async fn next(child: &mut ClaudeChild) -> AgentEvent {
    timeout(LIMIT, child.events.recv())
        .await
        .expect("an event in time")
        .expect("an end before the end")
}

async fn rest(child: &mut ClaudeChild) -> (Vec<AgentEvent>, Exit) {
    let mut events = Vec::new();
    loop {
        match next(child).await {
            AgentEvent::Ended(exit) => return (events, exit),
            other => events.push(other),
        }
    }
}

fn other(kind: &str) -> AgentEvent {
    AgentEvent::Said(AgentSaid::Other {
        kind: kind.to_owned(),
    })
}

#[tokio::test]
async fn a_child_is_started_asked_and_answered() {
    let stage = Stage::new(&[
        r#"> "content":"你好""#,
        r#"< {"type":"system","subtype":"init","session_id":"6b5f","model":"m"}"#,
        r#"< {"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"}}}"#,
        r#"> "behavior":"allow""#,
        r#"< {"type":"result","subtype":"success","is_error":false,"result":"done"}"#,
        HEAR,
        HEARD,
        "eof",
    ]);
    let mut child = stage.start();
    let text = Say::Text {
        uuid: "u1".to_owned(),
        text: "你好".to_owned(),
    };
    child.say.send(text.to_line()).await.unwrap();
    assert!(matches!(
        next(&mut child).await,
        AgentEvent::Said(AgentSaid::Began(_))
    ));
    let AgentEvent::Said(AgentSaid::Request(request)) = next(&mut child).await else {
        panic!("no request")
    };
    let AgentWants::Tool(tool) = request.what else {
        panic!("no tool")
    };
    let say = Say::Verdict {
        request: request.id,
        verdict: ToolVerdict::Allow {
            input: tool.input,
            updates: Vec::new(),
        },
    };
    child.say.send(say.to_line()).await.unwrap();
    let AgentEvent::Said(AgentSaid::TurnEnd(end)) = next(&mut child).await else {
        panic!("no end of the turn")
    };
    assert_eq!(end.text.as_deref(), Some("done"));
    child.stop.cancel();
    let (_, exit) = rest(&mut child).await;
    assert_eq!(exit, Exit::Finished);
    let log = stage.log();
    assert!(log.contains("--session-id 6b5f"), "{log}");
    assert!(log.contains("mark 1 home /nowhere secret \n"), "{log}");
    assert!(log.contains("project\n"), "{log}");
    assert!(log.contains(r#""subtype":"interrupt""#), "{log}");
}

#[tokio::test]
async fn a_heard_interrupt_closes_the_input_at_once() {
    let mut stage = Stage::new(&[HEAR, HEARD, "eof"]);
    stage.launch.grace.interrupt = Duration::from_secs(3_600);
    let mut child = stage.start();
    child.stop.cancel();
    assert_eq!(rest(&mut child).await.1, Exit::Finished);
}

#[tokio::test]
async fn a_deaf_child_and_what_it_left_behind_are_killed() {
    let fifo_dir = TempDir::new().unwrap();
    let fifo = fifo_dir.path().join("held");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let stage = Stage::new(&[
        "deaf",
        &format!("orphan {}", fifo.display()),
        r#"< {"type":"here"}"#,
        "wait",
    ])
    .impatient();
    let mut child = stage.start();
    // Reading ends when nobody holds the pipe any more.
    let held = tokio::task::spawn_blocking(move || fs::read(fifo));
    assert_eq!(next(&mut child).await, other("here"));
    child.stop.cancel();
    assert_eq!(rest(&mut child).await.1, Exit::Killed);
    let left = timeout(LIMIT, held).await.expect("all of it ended");
    assert_eq!(left.unwrap().unwrap(), b"");
}

#[tokio::test]
async fn dropping_a_child_ends_it() {
    let fifo_dir = TempDir::new().unwrap();
    let fifo = fifo_dir.path().join("held");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let stage = Stage::new(&[
        &format!("orphan {}", fifo.display()),
        r#"< {"type":"here"}"#,
        "wait",
    ])
    .impatient();
    let mut child = stage.start();
    let held = tokio::task::spawn_blocking(move || fs::read(fifo));
    assert_eq!(next(&mut child).await, other("here"));
    drop(child);
    let left = timeout(LIMIT, held).await.expect("all of it ended");
    assert_eq!(left.unwrap().unwrap(), b"");
}

#[tokio::test]
async fn endings_say_what_happened() {
    for (script, expected) in [
        (
            &["! loading", "! out of luck", "exit 3"][..],
            Exit::Crashed {
                code: Some(3),
                words: Some("out of luck".to_owned()),
            },
        ),
        (
            &["! No conversation found with session ID: 6b5f", "exit 1"][..],
            Exit::UnknownSession,
        ),
        (
            &["! Error: Session ID 6b5f is already in use.", "exit 1"][..],
            Exit::InUse,
        ),
        (&["exit 0"][..], Exit::Finished),
    ] {
        let stage = Stage::new(script);
        assert_eq!(rest(&mut stage.start()).await.1, expected);
    }
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    let mut stage = Stage::new(&["exit 0"]);
    stage.launch.program = stage.dir.path().join("no-such-claude");
    assert_eq!(rest(&mut stage.start()).await.1, Exit::NotInstalled);
    fs::remove_dir(&stage.launch.project).unwrap();
    assert_eq!(rest(&mut stage.start()).await.1, Exit::ProjectGone);
}

#[tokio::test]
async fn odd_lines_are_told_and_the_next_one_is_read() {
    let stage = Stage::new(&[
        "< no json",
        "<  ",
        "long 17000000",
        r#"< {"type":"after"}"#,
        "exit 0",
    ]);
    let (events, exit) = rest(&mut stage.start()).await;
    assert_eq!(exit, Exit::Finished);
    assert_eq!(
        events,
        [
            AgentEvent::Unreadable,
            AgentEvent::TooLong {
                bytes: 17_000_000,
                request: None
            },
            other("after"),
        ]
    );
}

#[tokio::test]
async fn a_reader_that_is_late_misses_nothing() {
    let line = json!({"type": "n"}).to_string();
    let step = format!("< {line}");
    let mut script = vec![step.as_str(); 500];
    script.push("exit 0");
    let stage = Stage::new(&script);
    let mut child = stage.start();
    // The child has long written everything when the first event is taken.
    tokio::task::yield_now().await;
    let (events, exit) = rest(&mut child).await;
    assert_eq!((events.len(), exit), (500, Exit::Finished));
}
