//! Requests and endings as JSON, for the store: written when they happen, read
//! back after a restart. An ending's record never holds the tool input.

use serde_json::{Value, json};
use std::path::PathBuf;

use super::request::{Digest, Dropped, Ending, Operator, Origin, Reach, Request};
use crate::ids::{RequestId, SessionId, UserId};
use crate::rules::Rule;

/// The whole request, tool input included; kept only while it is pending.
pub fn request_json(request: &Request) -> Value {
    let origin = &request.origin;
    json!({
        "id": request.id.as_str(),
        "tool": request.tool,
        "input": request.input,
        "suggested": rules_json(&request.suggested),
        "asked_at": request.asked_at,
        "deadline": request.deadline,
        "origin": {
            "machine": origin.machine,
            "user": origin.user,
            "project": origin.project.to_string_lossy(),
            "cwd": origin.cwd.to_string_lossy(),
            "branch": origin.branch,
            "session": origin.session.as_ref().map(SessionId::as_str),
            "agent": origin.agent,
            "pid": origin.pid,
            "hosted": origin.hosted,
        },
    })
}

pub fn read_request(value: &Value) -> Option<Request> {
    let origin = value.get("origin")?;
    let input = value.get("input")?.clone();
    Some(Request {
        id: RequestId::parse(value["id"].as_str()?).ok()?,
        tool: text(value, "tool")?,
        digest: Digest::of(&input),
        input,
        suggested: read_rules(&value["suggested"])?,
        asked_at: value["asked_at"].as_i64()?,
        deadline: value["deadline"].as_i64()?,
        origin: Origin {
            machine: text(origin, "machine")?,
            user: text(origin, "user")?,
            project: PathBuf::from(text(origin, "project")?),
            cwd: PathBuf::from(text(origin, "cwd")?),
            branch: text(origin, "branch"),
            session: origin["session"]
                .as_str()
                .and_then(|id| SessionId::parse(id).ok()),
            agent: text(origin, "agent"),
            pid: origin["pid"].as_u64().and_then(|pid| pid.try_into().ok()),
            hosted: origin["hosted"] == true,
        },
    })
}

/// The word for an ending, as the audit and `status` use it.
pub fn kind(ending: &Ending) -> &'static str {
    match ending {
        Ending::Allowed { reach, .. } => match reach {
            Reach::Once => "allow",
            Reach::Session(_) => "session",
            Reach::Always { .. } => "always",
        },
        Ending::Denied { interrupt, .. } => {
            if *interrupt {
                "interrupt"
            } else {
                "deny"
            }
        }
        Ending::Answered { .. } => "answer",
        Ending::Terminal { .. } => "terminal",
        Ending::TimedOut => "timeout",
        Ending::HookGone => "hook_gone",
        Ending::Orphaned => "orphaned",
        Ending::Undeliverable { .. } => "undeliverable",
        Ending::Dropped { why } => match why {
            Dropped::Command => "cancelled",
            Dropped::Over => "task_over",
            Dropped::Restart => "restarted",
        },
    }
}

pub fn ending_json(ending: &Ending) -> Value {
    let kind = kind(ending);
    match ending {
        Ending::Allowed { by, reach } => {
            let (rules, undone) = match reach {
                Reach::Once => (&[][..], false),
                Reach::Session(rules) => (rules.as_slice(), false),
                Reach::Always { rules, undone } => (rules.as_slice(), *undone),
            };
            json!({"kind": kind, "by": by.id.as_str(), "rules": rules_json(rules), "undone": undone})
        }
        Ending::Denied { by, reason, .. } => {
            json!({"kind": kind, "by": by.id.as_str(), "reason": reason})
        }
        Ending::Answered { by, answers } => {
            json!({"kind": kind, "by": by.id.as_str(), "answers": answers})
        }
        Ending::Terminal { allowed } => json!({"kind": kind, "allowed": allowed}),
        Ending::Undeliverable { why } => json!({"kind": kind, "why": why}),
        Ending::TimedOut | Ending::HookGone | Ending::Orphaned | Ending::Dropped { .. } => {
            json!({"kind": kind})
        }
    }
}

pub fn read_ending(value: &Value) -> Option<Ending> {
    let by = || {
        Some(Operator {
            id: UserId::parse(value["by"].as_str()?).ok()?,
        })
    };
    let allowed = |reach| Some(Ending::Allowed { by: by()?, reach });
    let denied = |interrupt| {
        Some(Ending::Denied {
            by: by()?,
            reason: text(value, "reason"),
            interrupt,
        })
    };
    let dropped = |why| Some(Ending::Dropped { why });
    match value["kind"].as_str()? {
        "allow" => allowed(Reach::Once),
        "session" => allowed(Reach::Session(read_rules(&value["rules"])?)),
        "always" => allowed(Reach::Always {
            rules: read_rules(&value["rules"])?,
            undone: value["undone"].as_bool()?,
        }),
        "deny" => denied(false),
        "interrupt" => denied(true),
        "answer" => Some(Ending::Answered {
            by: by()?,
            answers: value["answers"]
                .as_array()?
                .iter()
                .map(|answer| answer.as_str().map(str::to_owned))
                .collect::<Option<_>>()?,
        }),
        "terminal" => Some(Ending::Terminal {
            allowed: value["allowed"].as_bool(),
        }),
        "timeout" => Some(Ending::TimedOut),
        "hook_gone" => Some(Ending::HookGone),
        "orphaned" => Some(Ending::Orphaned),
        "undeliverable" => Some(Ending::Undeliverable {
            why: text(value, "why"),
        }),
        "cancelled" => dropped(Dropped::Command),
        "task_over" => dropped(Dropped::Over),
        "restarted" => dropped(Dropped::Restart),
        _ => None,
    }
}

fn text(value: &Value, field: &str) -> Option<String> {
    value[field].as_str().map(str::to_owned)
}

fn rules_json(rules: &[Rule]) -> Value {
    rules
        .iter()
        .map(|rule| json!({"tool": rule.tool, "content": rule.content}))
        .collect()
}

fn read_rules(value: &Value) -> Option<Vec<Rule>> {
    value
        .as_array()?
        .iter()
        .map(|rule| {
            Some(Rule {
                tool: text(rule, "tool")?,
                content: text(rule, "content"),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule() -> Rule {
        Rule {
            tool: "Bash".to_owned(),
            content: Some("ls".to_owned()),
        }
    }

    #[test]
    fn a_request_reads_back_as_it_was() {
        let input = json!({"command": "ls", "n": 1});
        let request = Request {
            id: RequestId::parse("r1").unwrap(),
            tool: "Bash".to_owned(),
            digest: Digest::of(&input),
            input,
            suggested: vec![rule()],
            asked_at: 5,
            deadline: 6,
            origin: Origin {
                machine: "m".to_owned(),
                user: "u".to_owned(),
                project: "/p".into(),
                cwd: "/p/q".into(),
                branch: Some("main".to_owned()),
                session: Some(SessionId::parse("s").unwrap()),
                agent: None,
                pid: Some(7),
                hosted: true,
            },
        };
        assert_eq!(read_request(&request_json(&request)), Some(request));
        assert_eq!(read_request(&json!({})), None);
    }

    #[test]
    fn every_ending_reads_back_as_it_was() {
        let by = Operator {
            id: UserId::parse("ou_1").unwrap(),
        };
        let allowed = |reach| Ending::Allowed {
            by: by.clone(),
            reach,
        };
        let denied = |interrupt| Ending::Denied {
            by: by.clone(),
            reason: Some("no".to_owned()),
            interrupt,
        };
        let endings = [
            allowed(Reach::Once),
            allowed(Reach::Session(vec![rule()])),
            allowed(Reach::Always {
                rules: vec![rule()],
                undone: true,
            }),
            denied(false),
            denied(true),
            Ending::Answered {
                by: by.clone(),
                answers: vec!["a".to_owned(), String::new()],
            },
            Ending::Terminal {
                allowed: Some(true),
            },
            Ending::Terminal { allowed: None },
            Ending::TimedOut,
            Ending::HookGone,
            Ending::Orphaned,
            Ending::Undeliverable { why: None },
            Ending::Undeliverable {
                why: Some("no such chat".to_owned()),
            },
            Ending::Dropped {
                why: Dropped::Command,
            },
            Ending::Dropped { why: Dropped::Over },
            Ending::Dropped {
                why: Dropped::Restart,
            },
        ];
        for ending in endings {
            let json = ending_json(&ending);
            assert_eq!(json["kind"], kind(&ending));
            assert_eq!(read_ending(&json), Some(ending), "{json}");
        }
        assert_eq!(read_ending(&json!({"kind": "new"})), None);
    }
}
