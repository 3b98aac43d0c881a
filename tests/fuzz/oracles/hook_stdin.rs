//! Any bytes as what Claude Code writes to a hook: only what asks is asked
//! about, word for word, and no text becomes another answer than was meant.

use nod::for_tests::claude::permission::{HookEvent, HookInput, PermissionAnswer, PermissionAsk};
use nod::for_tests::ids::SessionId;
use serde_json::{Value, json};

pub(crate) fn check(bytes: &[u8]) {
    answers_stay_what_they_are(&String::from_utf8_lossy(bytes));
    let Ok(input) = HookInput::parse(bytes) else {
        return;
    };
    let HookEvent::PermissionRequest(ask) = input.event else {
        return;
    };
    // A list of the fields has no names to look up.
    if let Ok(value @ Value::Object(_)) = serde_json::from_slice(bytes) {
        stands_there(&ask, &value);
        let session = input.common.session.as_ref().map(SessionId::as_str);
        assert!(session.is_none() || session == value["session_id"].as_str());
    }
}

fn stands_there(ask: &PermissionAsk, value: &Value) {
    let name = &value["hook_event_name"];
    assert!(name == "PermissionRequest" || name.is_null());
    assert_eq!(value["tool_name"], ask.tool.as_str());
    assert_eq!(value["tool_input"], ask.input);
}

fn answers_stay_what_they_are(text: &str) {
    let message = Some(text.to_owned());
    for (answer, behavior, interrupt) in [
        (
            PermissionAnswer::Deny {
                message: message.clone(),
            },
            "deny",
            Value::Null,
        ),
        (
            PermissionAnswer::DenyAndInterrupt { message },
            "deny",
            json!(true),
        ),
        (
            PermissionAnswer::Allow {
                input: Some(json!({"command": text})),
                updates: Vec::new(),
            },
            "allow",
            Value::Null,
        ),
    ] {
        let printed: Value = serde_json::from_str(&answer.to_stdout()).expect("one JSON object");
        let decision = &printed["hookSpecificOutput"]["decision"];
        assert_eq!(decision["behavior"], behavior);
        assert_eq!(decision["interrupt"], interrupt);
        if behavior == "deny" {
            assert_eq!(decision["message"], text);
            assert_eq!(decision.get("updatedInput"), None);
        } else {
            assert_eq!(decision["updatedInput"]["command"], text);
        }
    }
}
