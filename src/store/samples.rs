//! Requests and endings for the store's tests.

use serde_json::json;

use super::{CardPlace, Db, Pending, Settlement, Subject};
use crate::ids::{ChatId, EventId, MessageId, RequestId, SessionId, UserId};

/// Stands for tool input: must be gone from the disk once it is settled.
pub(super) const SECRET: &str = "canary-5f2b8c";

pub(super) fn store() -> Db {
    Db::in_memory().expect("SQLite opens in memory")
}

pub(super) fn id(text: &str) -> RequestId {
    RequestId::parse(text).expect("a test's id")
}

fn subject() -> Subject {
    Subject {
        tool: "Bash".to_owned(),
        project: "/home/me/shop".to_owned(),
        machine: "laptop".to_owned(),
        session: SessionId::parse("s-1").ok(),
        digest: "ab".repeat(32),
    }
}

fn card(text: &str) -> CardPlace {
    CardPlace {
        message: MessageId::parse(&format!("om_{text}")).expect("a test's id"),
        chat: ChatId::parse("oc_1").expect("a test's id"),
    }
}

pub(super) fn pending(text: &str) -> Pending {
    Pending {
        id: id(text),
        token_hash: Some([7; 32]),
        subject: subject(),
        card: Some(card(text)),
        asked_at: 1_000,
        deadline: 301_000,
        request: json!({"input": {"command": SECRET}}).to_string(),
    }
}

pub(super) fn settlement(text: &str, kind: &str) -> Settlement {
    Settlement {
        id: id(text),
        subject: subject(),
        card: Some(card(text)),
        asked_at: 1_000,
        at: 2_000,
        kind: kind.to_owned(),
        ending: json!({"by": "ou_owner"}).to_string(),
        operator: UserId::parse("ou_owner").ok(),
        event: EventId::parse("ev-1").ok(),
        rule: None,
        source: "feishu".to_owned(),
        detail: Some(json!({"waited_ms": 1000})),
    }
}
