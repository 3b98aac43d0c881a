//! A decision as it travels to the hook, and how the hook reads it. Pure.
//! Whatever is not clearly an allow or a deny is the terminal's to decide.

use serde_json::{Value, json};
use std::time::Duration;

use super::error_word::ErrorWord;
use super::{VERSION, WireError, frame};
use crate::approvals::answer::{Answer, Extras};
use crate::approvals::request::{Digest, Ending};
use crate::text::Text;

/// What the model reads when the person gave no reason.
pub static DENIED: Text = Text::new("用户通过飞书拒绝", "The user denied this from Feishu");
/// A reason is one person's sentence; more would not fit the reply.
const MAX_REASON_CHARS: usize = 4000;

/// Writes the decision frame. `for_nod` adds what only nod's own client reads.
pub fn encode(answer: &Answer, session: &str, for_nod: bool) -> Result<Vec<u8>, WireError> {
    let decided =
        |decision: Value| json!({"success": true, "session_id": session, "decision": decision});
    let deny = |reason: Option<&str>, interrupt: bool| {
        let message = message(reason);
        decided(json!({"behavior": "deny", "message": message, "interrupt": interrupt}))
    };
    let terminal = |error, message: &str| fallback(session, error, message);
    let mut value = match &answer.ending {
        Ending::Allowed { .. } | Ending::Answered { .. } => {
            let mut allow = json!({"behavior": "allow"});
            // claude-notify's client hands this to Claude Code as `updatedInput`.
            if let (Some(input), false) = (&answer.extras.updated_input, for_nod) {
                allow["updated_input"] = input.clone();
            }
            decided(allow)
        }
        Ending::Denied {
            reason, interrupt, ..
        } => deny(reason.as_deref(), *interrupt),
        Ending::TimedOut => terminal(ErrorWord::ServerTimeout, &timed_out(answer.patience)),
        // Claude Code takes a late interrupt, and a late one only.
        Ending::Stopped { .. } => deny(None, true),
        Ending::Terminal { .. } | Ending::Ran(_) | Ending::DeniedElsewhere => {
            terminal(ErrorWord::AnsweredInTerminal, "已在终端处理，请在终端操作")
        }
        Ending::HookGone => terminal(ErrorWord::HookGone, "请求已失效，请在终端操作"),
        Ending::Orphaned => terminal(ErrorWord::DaemonRestarted, "服务已重启，请在终端操作"),
        // A session's own asks never wait behind a hook.
        Ending::Dropped { .. } => terminal(ErrorWord::Dropped, "请求已失效，请在终端操作"),
        Ending::Undeliverable { .. } => terminal(
            ErrorWord::CardUndeliverable,
            "飞书卡片无法送达，请在终端操作",
        ),
    };
    if for_nod {
        let mut nod = json!({
            "version": VERSION,
            "digest": answer.digest.hex(),
            "ack": true,
        });
        if matches!(
            answer.ending,
            Ending::Allowed { .. } | Ending::Answered { .. }
        ) {
            let Extras {
                updated_permissions,
                updated_input,
            } = &answer.extras;
            if let Some(permissions) = updated_permissions {
                nod["updated_permissions"] = permissions.clone();
            }
            if let Some(input) = updated_input {
                nod["updated_input"] = input.clone();
            }
        }
        if let Ending::Undeliverable { why: Some(why) } = &answer.ending {
            nod["why"] = json!(why.chars().take(MAX_REASON_CHARS).collect::<String>());
        }
        value["nod"] = nod;
    }
    frame(&value)
}

/// Tells a hook that the terminal decides, for a reason that is no ending.
pub fn encode_fallback(
    session: &str,
    error: ErrorWord,
    message: &str,
) -> Result<Vec<u8>, WireError> {
    frame(&fallback(session, error, message))
}

pub(super) fn fallback(session: &str, error: ErrorWord, message: &str) -> Value {
    json!({
        "success": false,
        "fallback_to_terminal": true,
        "error": error,
        "session_id": session,
        "message": message,
    })
}

fn timed_out(patience: Duration) -> String {
    format!("服务器超时（{}秒），请在终端操作", patience.as_secs())
}

fn message(reason: Option<&str>) -> String {
    let reason = reason.map(str::trim).filter(|reason| !reason.is_empty());
    reason.map_or_else(
        || DENIED.zh.to_string(),
        |reason| reason.chars().take(MAX_REASON_CHARS).collect(),
    )
}

/// A decision as the hook understands it.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    Allow(Extras),
    Deny {
        /// `None` where the person gave none.
        reason: Option<String>,
        interrupt: bool,
    },
    /// Nothing is printed; Claude Code's own dialog decides.
    Terminal {
        error: ErrorWord,
        message: String,
        /// What the daemon knows besides.
        why: Option<String>,
    },
}

/// Reads a decision. An allow counts only for the input it was given for: its
/// digest must be `own`, the one of this hook's stdin.
pub fn decode(value: &Value, own: &Digest) -> Decision {
    let text = |pointer: &str| {
        let text = value.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    if value.get("success") != Some(&Value::Bool(true)) {
        return Decision::Terminal {
            error: ErrorWord::parse(&text("/error")),
            message: text("/message"),
            why: Some(text("/nod/why")).filter(|why| !why.is_empty()),
        };
    }
    if text("/nod/digest") != own.hex() {
        return Decision::Terminal {
            error: ErrorWord::DigestMismatch,
            message: "the decision was made for another tool input".to_owned(),
            why: None,
        };
    }
    let extra = |name: &str| value.get("nod").and_then(|nod| nod.get(name)).cloned();
    match value.pointer("/decision/behavior").and_then(Value::as_str) {
        Some("allow") => Decision::Allow(Extras {
            updated_permissions: extra("updated_permissions"),
            updated_input: extra("updated_input"),
        }),
        Some("deny") => Decision::Deny {
            reason: Some(text("/decision/message")).filter(|message| *message != DENIED.zh),
            interrupt: value.pointer("/decision/interrupt") == Some(&Value::Bool(true)),
        },
        _ => Decision::Terminal {
            error: ErrorWord::UnknownDecision,
            message: "the daemon sent a decision this hook does not know".to_owned(),
            why: None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::unframe;
    use super::*;
    use crate::approvals::request::{Operator, Reach};
    use crate::ids::UserId;

    fn by() -> Operator {
        Operator {
            id: UserId::parse("ou_a").unwrap(),
        }
    }

    fn answer(ending: Ending) -> Answer {
        Answer {
            ending,
            digest: Digest::of(&json!({"command": "ls"})),
            patience: Duration::from_mins(5),
            extras: Extras::default(),
        }
    }

    fn denied(reason: Option<&str>, interrupt: bool) -> Answer {
        answer(Ending::Denied {
            by: by(),
            reason: reason.map(str::to_owned),
            interrupt,
        })
    }

    fn allowed() -> Answer {
        answer(Ending::Allowed {
            cancelled: false,
            by: by(),
            reach: Reach::Once,
        })
    }

    #[test]
    fn v1_decisions_are_the_documented_bytes() {
        let table = [
            (
                allowed(),
                r#"{"success":true,"session_id":"sess_123","decision":{"behavior":"allow"}}"#,
            ),
            (
                denied(None, false),
                r#"{"success":true,"session_id":"sess_123","decision":{"behavior":"deny","message":"用户通过飞书拒绝","interrupt":false}}"#,
            ),
            (
                denied(Some(" use the staging host\n"), true),
                r#"{"success":true,"session_id":"sess_123","decision":{"behavior":"deny","message":"use the staging host","interrupt":true}}"#,
            ),
            (
                answer(Ending::TimedOut),
                r#"{"success":false,"fallback_to_terminal":true,"error":"server_timeout","session_id":"sess_123","message":"服务器超时（300秒），请在终端操作"}"#,
            ),
        ];
        for (answer, json) in table {
            let bytes = encode(&answer, "sess_123", false).unwrap();
            let length = u32::try_from(json.len()).unwrap().to_be_bytes();
            assert_eq!(bytes[..4], length);
            assert_eq!(std::str::from_utf8(&bytes[4..]).unwrap(), json);
        }
    }

    fn over_the_wire(answer: &Answer) -> Decision {
        let bytes = encode(answer, "s", true).unwrap();
        for end in 0..bytes.len() {
            assert_eq!(unframe(&bytes[..end]), Ok(None), "a prefix of {end} bytes");
        }
        let (value, length) = unframe(&bytes).unwrap().unwrap();
        assert_eq!(length, bytes.len());
        decode(&value, &Digest::of(&json!({"command": "ls"})))
    }

    #[test]
    fn the_hook_reads_what_was_decided() {
        let mut always = allowed();
        always.extras.updated_permissions = Some(json!([{"type": "addRules"}]));
        assert_eq!(over_the_wire(&always), Decision::Allow(always.extras));
        assert_eq!(
            over_the_wire(&denied(Some("no"), true)),
            Decision::Deny {
                reason: Some("no".into()),
                interrupt: true
            }
        );
        for ending in [
            Ending::TimedOut,
            Ending::HookGone,
            Ending::Orphaned,
            Ending::Undeliverable { why: None },
            Ending::Terminal {
                allowed: Some(true),
            },
            Ending::Terminal { allowed: None },
        ] {
            let mut answer = answer(ending);
            answer.extras.updated_input = Some(json!({}));
            let told = over_the_wire(&answer);
            assert!(
                matches!(told, Decision::Terminal { why: None, .. }),
                "{told:?}"
            );
        }
        let why = Some("no such chat".to_owned());
        let unsent = answer(Ending::Undeliverable { why: why.clone() });
        let Decision::Terminal { why: told, .. } = over_the_wire(&unsent) else {
            panic!("nobody decided");
        };
        assert_eq!(told, why);
        let old = encode(&unsent, "s", false).unwrap();
        assert!(!String::from_utf8_lossy(&old).contains("no such chat"));
    }

    #[test]
    fn an_allow_for_another_input_is_no_allow() {
        let bytes = encode(&allowed(), "s", true).unwrap();
        let (value, _) = unframe(&bytes).unwrap().unwrap();
        let other = Digest::of(&json!({"command": "rm -rf /"}));
        assert!(matches!(decode(&value, &other), Decision::Terminal { .. }));
        let bytes = encode(&allowed(), "s", false).unwrap();
        let (value, _) = unframe(&bytes).unwrap().unwrap();
        assert!(matches!(decode(&value, &other), Decision::Terminal { .. }));
    }

    #[test]
    fn what_is_not_clearly_an_allow_is_the_terminals() {
        let digest = Digest::of(&json!({}));
        let nod = json!({"digest": digest.hex()});
        for value in [
            json!({}),
            json!(null),
            json!({"success": "true", "decision": {"behavior": "allow"}, "nod": nod}),
            json!({"success": true, "decision": {"behavior": "ALLOW"}, "nod": nod}),
            json!({"success": true, "decision": "allow", "nod": nod}),
            json!({"success": true, "behavior": "allow", "nod": nod}),
            json!({"success": false, "decision": {"behavior": "allow"}, "nod": nod}),
        ] {
            assert!(
                matches!(decode(&value, &digest), Decision::Terminal { .. }),
                "{value}"
            );
        }
    }

    #[test]
    fn a_reply_that_is_too_large_is_never_written() {
        let mut answer = allowed();
        answer.extras.updated_input = Some("x".repeat(70_000).into());
        assert!(matches!(
            encode(&answer, "s", true),
            Err(WireError::TooLarge(_))
        ));
        assert!(encode(&denied(Some(&"冗".repeat(100_000)), false), "s", true).is_ok());
    }
}
