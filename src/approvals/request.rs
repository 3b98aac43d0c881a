//! What is asked: one tool call that waits for a person, with everything the
//! person needs to know about where it comes from.

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::path::PathBuf;

use crate::ids::{RequestId, SessionId, UserId};
use crate::rules::Rule;

/// Milliseconds since the Unix epoch, by the daemon's steady clock.
pub type Millis = i64;

#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub id: RequestId,
    /// `Bash`, `Edit`, `mcp__server__tool`, …: Claude Code's name for it.
    pub tool: String,
    pub input: Value,
    pub digest: Digest,
    pub origin: Origin,
    /// The allow rules Claude Code itself proposed for the project's local
    /// settings. Empty when it proposed none, or anything else besides.
    pub suggested: Vec<Rule>,
    pub asked_at: Millis,
    pub deadline: Millis,
}

impl Request {
    /// Takes a request that was asked in the future, because the clock was set
    /// back since, for one asked now. Whether it was.
    pub fn not_in_the_future(&mut self, now: Millis) -> bool {
        let ahead = self.asked_at - now;
        if ahead > 0 {
            self.asked_at -= ahead;
            self.deadline -= ahead;
        }
        ahead > 0
    }
}

/// Where a request comes from. Shown on the card, never trusted for a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub machine: String,
    pub user: String,
    pub project: PathBuf,
    pub cwd: PathBuf,
    pub branch: Option<String>,
    pub session: Option<SessionId>,
    /// The subagent's type when a subagent asks.
    pub agent: Option<String>,
    pub pid: Option<u32>,
    /// Asked by a session nod itself runs: no terminal could answer instead.
    pub hosted: bool,
}

/// SHA-256 of the tool input's canonical JSON: what was shown is what runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    pub fn of(input: &Value) -> Self {
        let mut hash = Sha256::new();
        feed(&mut hash, input);
        Self(hash.finalize().into())
    }

    pub fn hex(&self) -> String {
        use std::fmt::Write as _;
        self.0.iter().fold(String::with_capacity(64), |mut out, b| {
            let _ = write!(out, "{b:02x}");
            out
        })
    }

    /// Eight hex digits: enough for a person to compare two screens.
    pub fn short(&self) -> String {
        self.hex()[..8].to_owned()
    }

    pub fn parse_hex(text: &str) -> Option<Self> {
        if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        let mut bytes = [0; 32];
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()?;
        }
        Some(Self(bytes))
    }
}

/// Keys in sorted order, so that two writers of the same object agree.
fn feed(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<_> = map.iter().collect();
            keys.sort_by_key(|(key, _)| *key);
            hash.update(b"{");
            for (key, value) in keys {
                feed(hash, &Value::String(key.clone()));
                hash.update(b":");
                feed(hash, value);
                hash.update(b",");
            }
            hash.update(b"}");
        }
        Value::Array(items) => {
            hash.update(b"[");
            for item in items {
                feed(hash, item);
                hash.update(b",");
            }
            hash.update(b"]");
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            hash.update(value.to_string().as_bytes());
        }
    }
}

/// How a request ended. Every ending is shown on the card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    Allowed {
        by: Operator,
        reach: Reach,
    },
    Denied {
        by: Operator,
        reason: Option<String>,
        interrupt: bool,
    },
    /// A question's answers, in order, in words that can be kept.
    Answered {
        by: Operator,
        answers: Vec<String>,
    },
    /// Settled in the terminal; `allowed` is unknown when only the end of the
    /// turn told us.
    Terminal {
        allowed: Option<bool>,
    },
    TimedOut,
    /// The hook's process ended without an answer.
    HookGone,
    /// The daemon restarted and the hook did not come back.
    Orphaned,
    /// Feishu would not carry the card, so the terminal was told to decide.
    /// `why` is for the person at the terminal.
    Undeliverable {
        why: Option<String>,
    },
    /// The session that asked wants no answer any more.
    Dropped {
        why: Dropped,
    },
}

/// Why a session of nod's own stopped waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// A command came instead of an answer.
    Command,
    /// The task or its process ended first.
    Over,
    /// The daemon stopped, and the task with it.
    Restart,
}

/// How far an allow reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    Once,
    /// Until the Claude Code session ends.
    Session(Vec<Rule>),
    Always {
        rules: Vec<Rule>,
        /// Set once the rules were taken back from the decided card.
        undone: bool,
    },
}

/// The person who decided, as Feishu named them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operator {
    pub id: UserId,
}

impl Operator {
    /// Whoever held a link of the webhook mode.
    pub const LINK: &str = "(link)";
    /// A callback service that names nobody.
    pub const CALLBACK: &str = "(callback)";

    /// Somebody Feishu did not name.
    pub fn unnamed(word: &'static str) -> Self {
        Self {
            id: UserId::Tenant(word.into()),
        }
    }

    /// Where the decision came from, for the audit.
    pub fn source(&self) -> &'static str {
        match self.id.as_str() {
            Self::LINK => "link",
            Self::CALLBACK => "callback",
            _ => "feishu",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_digest_ignores_key_order_and_nothing_else() {
        let a = Digest::of(&json!({"command": "ls", "timeout": 1}));
        assert_eq!(a, Digest::of(&json!({"timeout": 1, "command": "ls"})));
        assert_ne!(a, Digest::of(&json!({"command": "ls ", "timeout": 1})));
        assert_ne!(
            Digest::of(&json!({"a": ["b", "c"]})),
            Digest::of(&json!({"a": ["b"], "c": 0})),
        );
    }

    #[test]
    fn the_digest_outlives_a_way_through_text() {
        for number in [
            "98446744073709551616",
            "0.1",
            "5e-324",
            "1.7976931348623157e308",
        ] {
            let input: Value = serde_json::from_str(number).unwrap();
            let again: Value = serde_json::from_str(&input.to_string()).unwrap();
            assert_eq!(Digest::of(&input), Digest::of(&again), "{number}");
        }
    }

    #[test]
    fn the_digest_reads_back_from_its_hex() {
        let digest = Digest::of(&json!({"command": "ls"}));
        assert_eq!(Digest::parse_hex(&digest.hex()), Some(digest));
        assert_eq!(digest.short().len(), 8);
        assert!(digest.hex().starts_with(&digest.short()));
        for bad in ["zz", &"é".repeat(32), &"+1".repeat(32)] {
            assert_eq!(Digest::parse_hex(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_audit_tells_a_named_person_from_a_link_and_a_callback() {
        let ann = Operator {
            id: UserId::parse("ou_ann").unwrap(),
        };
        for (by, source) in [
            (Operator::unnamed(Operator::LINK), "link"),
            (Operator::unnamed(Operator::CALLBACK), "callback"),
            (ann, "feishu"),
        ] {
            assert_eq!(by.source(), source);
        }
    }
}
