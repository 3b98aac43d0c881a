use super::*;
use crate::approvals::outcome::sample;
use crate::approvals::request::{Ending, Request};
use crate::daemon::bench::DaemonBench;
use crate::daemon::terminals::endings;
use crate::text::Lang;
use crate::wording::card as words;
use std::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

fn session() -> SessionId {
    SessionId::parse("s1").unwrap()
}

async fn event(bench: &DaemonBench, raw: Value) -> Value {
    let notice = HookNotice {
        process: None,
        project: bench.shop(),
        raw_input: raw.to_string().into_bytes(),
        mailbox: None,
    };
    let peer = HookPeer {
        pid: None,
        since: Instant::now(),
    };
    take(Arc::clone(&bench.events), notice, peer).await
}

async fn of_session(bench: &DaemonBench, name: &str, more: Value) -> Value {
    let mut raw = json!({"hook_event_name": name, "session_id": "s1"});
    for (field, value) in more.as_object().into_iter().flatten() {
        raw[field] = value.clone();
    }
    event(bench, raw).await
}

/// Writes down what ends, as a daemon does.
fn writes_down(bench: &DaemonBench) -> DropGuard {
    let stop = CancellationToken::new();
    tokio::spawn(endings::run(Arc::clone(&bench.cards), stop.clone()));
    stop.drop_guard()
}

fn bash(id: &str, command: &str) -> Request {
    let mut request = sample::request("Bash", json!({"command": command}));
    request.id = crate::ids::RequestId::parse(id).unwrap();
    request.origin.session = Some(session());
    request
}

#[tokio::test]
async fn a_call_that_ran_ends_its_own_request_and_no_other() {
    let bench = DaemonBench::new().await;
    let _written = writes_down(&bench);
    let (mut ran, _) = bench.bench.asks(bash("r1", "npm test"));
    let (_other, _) = bench.bench.asks(bash("r2", "rm -rf /"));
    let call = json!({"tool_name": "Bash", "tool_input": {"command": "npm test"}});
    let told = of_session(&bench, "PostToolUse", call).await;
    assert_eq!(told, json!({"success": true, "withdrawn": 1}));
    let ending = ran.answered().await.unwrap().answer.ending;
    assert!(matches!(ending, Ending::Ran(_)), "{ending:?}");
    assert_eq!(bench.cards.desk.pending(), 1);
}

#[tokio::test]
async fn an_event_is_answered_once_what_it_ended_is_on_disk() {
    let bench = DaemonBench::new().await;
    let (_ran, request) = bench.bench.asks(bash("r1", "npm test"));
    let call = json!({"tool_name": "Bash", "tool_input": {"command": "npm test"}});
    let told = async {
        of_session(&bench, "PostToolUse", call).await;
        let id = request.id.clone();
        let store = &bench.cards.journal.store;
        assert!(store.run(move |db| db.is_settled(&id)).await.unwrap());
    };
    // The disk takes its time.
    let late = async {
        while bench.cards.desk.pending() > 0 {
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        writes_down(&bench)
    };
    tokio::join!(told, late);
}

#[tokio::test]
async fn the_end_of_a_turn_and_of_a_session_end_what_they_asked() {
    for (name, withdrawn) in [
        ("Stop", 1),
        ("StopFailure", 1),
        ("UserPromptSubmit", 1),
        ("SessionEnd", 1),
        ("Notification", 0),
        ("SessionStart", 0),
        ("SomethingNew", 0),
    ] {
        let bench = DaemonBench::new().await;
        let _written = writes_down(&bench);
        let (_waiting, _) = bench.bench.asks(bash("r1", "ls"));
        let told = of_session(&bench, name, Value::Null).await;
        assert_eq!(told["withdrawn"], withdrawn, "{name}");
        let stranger = json!({"session_id": "s2"});
        let (_waiting, _) = bench.bench.asks(bash("r2", "ls"));
        let told = of_session(&bench, name, stranger).await;
        assert_eq!(told["withdrawn"], 0, "{name} of another session");
    }
}

#[tokio::test]
async fn no_event_decides_anything_whatever_it_says() {
    let bench = DaemonBench::new().await;
    let (_waiting, _) = bench.bench.asks(bash("r1", "ls"));
    let told = event(&bench, json!(["no", "event"])).await;
    assert_eq!(told["success"], false);
    let told = event(&bench, json!({"hook_event_name": "Stop"})).await;
    assert_eq!(told["withdrawn"], 0, "it names no session");
    let ask = json!({"tool_name": "Bash", "tool_input": {"command": "ls"}});
    let told = of_session(&bench, "PermissionRequest", ask).await;
    assert_eq!(told["withdrawn"], 0);
    assert_eq!(bench.cards.desk.pending(), 1);
}

#[tokio::test]
async fn the_end_of_a_turn_that_was_asked_for_is_told_once_and_says_how_it_ended() {
    for (name, state) in [("Stop", &words::FINISHED), ("StopFailure", &words::FAILED)] {
        let bench = DaemonBench::new().await;
        let now = bench.cards.now();
        bench.events.turns.reads(&session(), None, true, now);
        for _ in 0..2 {
            let last = json!({"last_assistant_message": "that is all"});
            of_session(&bench, name, last).await;
        }
        bench.until(|bench| !bench.sent().is_empty()).await;
        let [card] = &bench.sent()[..] else {
            panic!("told once");
        };
        let card = card.to_string();
        assert!(card.contains("that is all"), "{card}");
        assert!(card.contains(state.get(Lang::En)), "{name}: {card}");
    }
}

#[tokio::test]
async fn a_short_turn_that_nobody_asked_for_is_not_told() {
    let bench = DaemonBench::new().await;
    of_session(&bench, "UserPromptSubmit", json!({"prompt": "hi"})).await;
    of_session(&bench, "Stop", Value::Null).await;
    let idle = json!({"notification_type": "idle_prompt", "message": "waits"});
    of_session(&bench, "Notification", idle).await;
    tokio::task::yield_now().await;
    assert!(bench.bench.calls().is_empty());
}

#[tokio::test]
async fn a_dialog_of_the_terminal_is_told_unless_it_has_a_card() {
    let dialog = || json!({"notification_type": "permission_prompt", "message": "needs you"});
    let bench = DaemonBench::new().await;
    let (_waiting, _) = bench.bench.asks(bash("r1", "ls"));
    of_session(&bench, "Notification", dialog()).await;
    tokio::task::yield_now().await;
    assert!(bench.bench.calls().is_empty(), "its card tells");
    let bench = DaemonBench::new().await;
    of_session(&bench, "Notification", dialog()).await;
    bench.until(|bench| !bench.sent().is_empty()).await;
    assert!(bench.sent()[0].to_string().contains("needs you"));
}

/// A session's status file, which says this process is it.
fn status(dir: &std::path::Path, state: &str) {
    let pid = std::process::id();
    let sessions = dir.join("sessions");
    std::fs::create_dir_all(&sessions).unwrap();
    let text = json!({"pid": pid, "sessionId": "s1", "entrypoint": "cli", "status": state});
    std::fs::write(sessions.join(format!("{pid}.json")), text.to_string()).unwrap();
}

async fn said_finished(bench: &DaemonBench, message: &str, dir: &std::path::Path) {
    let transcript = dir.join("projects").join("p").join("s1.jsonl");
    let stop = json!({"last_assistant_message": message, "transcript_path": transcript});
    of_session(bench, "Stop", stop).await;
}

#[tokio::test]
async fn a_turn_that_another_stop_hook_sends_back_to_work_is_told_at_its_real_end() {
    let bench = DaemonBench::with(&[("NOD_NOTIFY_STOP_AFTER", "0")]).await;
    let dir = tempfile::tempdir().unwrap();
    let prompt = json!({"prompt": "go", "prompt_id": "p1"});
    of_session(&bench, "UserPromptSubmit", prompt).await;
    status(dir.path(), "busy");
    said_finished(&bench, "first", dir.path()).await;
    tokio::time::sleep(3 * LOOK_EVERY).await;
    let call = json!({"tool_name": "Bash", "tool_input": {"command": "npm test"}});
    of_session(&bench, "PostToolUse", call).await;
    said_finished(&bench, "second", dir.path()).await;
    tokio::time::sleep(UNKNOWN_FOR + 2 * LOOK_EVERY).await;
    assert!(
        bench.bench.calls().is_empty(),
        "hooks still run: nothing is told"
    );
    status(dir.path(), "idle");
    let card = bench.bench.call(0).await;
    assert!(card.contains("second") && !card.contains("first"), "{card}");
    // In print mode the end of the session tells it.
    let prompt = json!({"prompt": "go", "prompt_id": "p2"});
    of_session(&bench, "UserPromptSubmit", prompt).await;
    status(dir.path(), "busy");
    said_finished(&bench, "third", dir.path()).await;
    of_session(&bench, "SessionEnd", Value::Null).await;
    let card = bench.bench.call(1).await;
    assert!(card.contains("third"), "{card}");
}
