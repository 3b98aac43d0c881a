//! Codex for tests: a follower that was asked something, as its daemon asks.

use serde_json::{Value, json};
use std::path::Path;

use crate::agents::codex::act::CodexAct;
use crate::agents::codex::ask::CodexAsk;
use crate::agents::codex::follow::Follower;

/// What its daemon says to begin with, of one thread `T` that waits for a person.
pub(super) fn opening() -> Vec<String> {
    let thread = json!({"id": "T", "cwd": "/srv", "status": {"type": "idle"}, "ephemeral": false});
    let waits = json!({"type": "active", "activeFlags": ["waitingOnApproval"]});
    let all = [
        json!({"id": 1, "result": {"userAgent": "codex/0.166.0"}}),
        json!({"id": 2, "result": {"data": ["T"]}}),
        json!({"id": 4, "result": {"thread": thread}}),
        json!({"method": "thread/status/changed", "params": {"threadId": "T", "status": waits}}),
    ];
    all.map(|it| it.to_string()).into()
}

/// A command it wants to run in that directory.
pub(super) fn command(item: &str, cwd: &Path) -> String {
    let decisions = json!(["accept", "cancel"]);
    let params = json!({"threadId": "T", "turnId": "U", "itemId": item, "startedAtMs": 1,
        "command": "ls", "cwd": cwd, "availableDecisions": decisions});
    let method = "item/commandExecution/requestApproval";
    json!({"method": method, "id": 0, "params": params}).to_string()
}

/// A question it asks there.
pub(super) fn question(item: &str) -> String {
    let questions = json!([{"id": "q1", "header": "Port", "question": "Which port?",
        "options": [{"label": "80"}, {"label": "8080"}]}]);
    let params = json!({"threadId": "T", "turnId": "U", "itemId": item, "questions": questions});
    json!({"method": "item/tool/requestUserInput", "id": 0, "params": params}).to_string()
}

/// A follower that heard this.
pub(super) fn asked(request: &str) -> (Follower, CodexAsk) {
    let mut follower = Follower::new();
    follower.start();
    for said in opening() {
        follower.heard(&said);
    }
    let ask = follower
        .heard(request)
        .into_iter()
        .find_map(|act| match act {
            CodexAct::Asked(ask) => Some(*ask),
            _ => None,
        });
    (follower, ask.expect("it asks"))
}

/// What is sent to it.
pub(super) fn sent(acts: &[CodexAct]) -> Vec<Value> {
    let texts = acts.iter().filter_map(|act| match act {
        CodexAct::Send(text) => Some(serde_json::from_str(text).unwrap()),
        _ => None,
    });
    texts.collect()
}
