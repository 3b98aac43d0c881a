//! Requests and readers for the tests of all cards.

use serde_json::{Value, json};

use super::Action;
use super::MAX_CARD;
use super::permission::pending;
use super::whole::Before;
use crate::approvals::request::{
    Caller, Digest, Dropped, Ending, Facts, Operator, Origin, Ran, Reach, Request, UntrueEnding,
};
use crate::ids::{RequestId, SessionId, UserId};
use crate::rules::{Rule, offer};
use crate::text::Lang;

pub(crate) fn request(tool: &str, input: Value) -> Request {
    Facts {
        id: RequestId::parse("r1").unwrap(),
        tool: tool.to_owned(),
        digest: Digest::of(&json!("not what these tests are about")),
        input,
        origin: Origin {
            machine: "mbp-lin".to_owned(),
            user: "lin".to_owned(),
            project: "/home/lin/shop".into(),
            cwd: "/home/lin/shop/src".into(),
            branch: Some("main".to_owned()),
            session: SessionId::parse("3f9c0000-aaaa-bbbb-cccc-123456789abc").ok(),
            agent: Some("reviewer".to_owned()),
            pid: None,
            hosted: false,
            caller: Caller::default(),
        },
        real: crate::approvals::request::RealPath::Unasked,
        asked_at: 1_793_922_600_000,
        deadline: 1_793_922_900_000,
    }
    .read()
}

pub(crate) fn bash(command: &str) -> Request {
    request(
        "Bash",
        json!({"command": command, "description": "does it"}),
    )
}

/// As large as a sealed value gets.
pub(super) fn values(action: Action) -> Value {
    json!({
        "v": 1,
        "action": action.as_str(),
        "request_id": "k7Qm2vXz9LrT4bYc8NpW1sHd6JfG3aEu",
        "callback_url": "http://127.0.0.1:8787",
        "machine": "m".repeat(64),
        "seal": "s".repeat(256),
    })
}

pub(super) fn waiting(request: &Request) -> Value {
    waiting_again(request, 0, Lang::Zh)
}

/// The card of a call that was denied so often before.
pub(super) fn waiting_again(request: &Request, denied: u32, lang: Lang) -> Value {
    let (offer, nothing) = (offer(request), Before::Nothing);
    pending(request, &offer, denied, &nothing, &values, MAX_CARD, lang).card
}

pub(super) fn operator() -> Operator {
    Operator {
        id: UserId::parse("ou_1").unwrap(),
    }
}

pub(super) fn endings() -> Vec<Ending> {
    let rules = vec![Rule::new("Bash", "npm run build")];
    let allowed = |reach| Ending::Allowed {
        cancelled: false,
        by: operator(),
        reach,
    };
    let denied = |reason: Option<&str>, interrupt| Ending::Denied {
        by: operator(),
        reason: reason.map(str::to_owned),
        interrupt,
    };
    vec![
        allowed(Reach::Once),
        allowed(Reach::Unwritten),
        allowed(Reach::Session(rules.clone())),
        allowed(Reach::Always {
            rules: rules.clone(),
            undone: false,
        }),
        allowed(Reach::Always {
            rules,
            undone: true,
        }),
        allowed(Reach::Always {
            rules: vec![Rule::new("Bash", "git count-objects *")],
            undone: false,
        }),
        denied(Some("**no** <at id=all></at>"), false),
        denied(None, true),
        Ending::Terminal {
            allowed: Some(true),
        },
        Ending::Terminal {
            allowed: Some(false),
        },
        Ending::Terminal { allowed: None },
        Ending::TimedOut,
        Ending::HookGone,
        Ending::Orphaned,
        Ending::Dropped {
            why: Dropped::Command,
        },
        Ending::Dropped { why: Dropped::Over },
        Ending::Dropped {
            why: Dropped::Restart,
        },
        Ending::Dropped {
            why: Dropped::CutOff,
        },
        Ending::Dropped {
            why: Dropped::Changed,
        },
        Ending::Undeliverable { why: None },
        Ending::Ran(Ran::default()),
        Ending::Ran(Ran {
            by: None,
            since: Some(1_793_922_661_000),
            took: None,
            corrects: None,
        }),
        Ending::Ran(Ran {
            by: None,
            since: None,
            took: Some(12_000),
            corrects: Some(UntrueEnding {
                kind: "deny".to_owned(),
                by: Some(operator()),
            }),
        }),
        Ending::Stopped {
            by: operator(),
            since: 1_793_922_661_000,
        },
    ]
}

/// Every string of the card with the object it stands in.
pub(super) fn strings<'a>(value: &'a Value, visit: &mut dyn FnMut(&'a str, &'a Value, &'a str)) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                if let Value::String(text) = inner {
                    visit(key, value, text);
                }
                strings(inner, visit);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| strings(item, visit)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// All that a person can read on the card.
pub(super) fn read(card: &Value) -> String {
    let mut out = String::new();
    strings(card, &mut |key, _, text| {
        if key == "content" {
            out.push_str(text);
            out.push('\n');
        }
    });
    out
}

pub(super) fn tags(card: &Value) -> usize {
    let mut count = 0;
    strings(card, &mut |key, _, _| count += usize::from(key == "tag"));
    count
}

pub(super) fn actions(card: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    strings(card, &mut |key, _, text| {
        if key == "action" {
            found.push(text);
        }
    });
    found
}
