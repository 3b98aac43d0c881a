//! Requests and endings as JSON, for the store: written when they happen, read
//! back after a restart. An ending's record never holds the tool input.

use serde_json::{Value, json};
use std::path::PathBuf;

use super::request::{
    AskingAgent, Caller, Digest, Dropped, Ending, Facts, Operator, Origin, Ran, Reach, RealPath,
    Request, UntrueEnding,
};
use crate::ids::{RequestId, SessionId, UserId};
use crate::rules::{Leaves, Rule};
use crate::talk::DecidedBy;

/// The whole request, tool input included; kept only while it is pending. The
/// input may be large and is not copied but once.
pub fn request_text(request: &Request) -> String {
    #[derive(serde::Serialize)]
    struct Whole<'a> {
        #[serde(flatten)]
        around: Value,
        input: &'a Value,
    }
    let whole = Whole {
        around: around_input(request),
        input: &request.input,
    };
    serde_json::to_string(&whole).expect("keys are strings")
}

fn around_input(request: &Request) -> Value {
    let origin = &request.origin;
    json!({
        "id": request.id.as_str(),
        "tool": request.tool,
        "real": real_json(&request.real),
        // nod before 0.2.0 reads no request without it.
        "suggested": [],
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
            "by": agent_json(&origin.caller.agent),
            "agent_id": origin.caller.agent_id,
            "status_dir": origin.caller.status_dir.as_ref().map(|dir| dir.to_string_lossy()),
            "transcript": origin.caller.transcript.as_ref().map(|file| file.to_string_lossy()),
            "process": origin.caller.process,
            "unattended": origin.caller.unattended,
            "rules_in": origin.caller.rules_in.as_ref().map(|dir| dir.to_string_lossy()),
            "plain_v1": origin.caller.plain_v1,
        },
    })
}

pub fn read_request(value: &Value) -> Option<Request> {
    let origin = value.get("origin")?;
    let input = value.get("input")?.clone();
    Some(
        Facts {
            id: RequestId::parse(value["id"].as_str()?).ok()?,
            tool: text(value, "tool")?,
            digest: Digest::of(&input),
            input,
            real: read_real(&value["real"]),
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
                caller: Caller {
                    agent: read_agent(&origin["by"])?,
                    agent_id: text(origin, "agent_id"),
                    status_dir: text(origin, "status_dir").map(PathBuf::from),
                    transcript: text(origin, "transcript").map(PathBuf::from),
                    process: (origin["process"].as_u64()).and_then(|pid| pid.try_into().ok()),
                    unattended: origin["unattended"] == true,
                    rules_in: text(origin, "rules_in").map(PathBuf::from),
                    plain_v1: origin["plain_v1"] == true,
                },
            },
        }
        .read(),
    )
}

fn agent_json(agent: &AskingAgent) -> Value {
    match agent {
        AskingAgent::ClaudeCode => Value::Null,
        AskingAgent::Codex(leaves) => json!({
            "agent": agent.kind().word(),
            "session": leaves.session,
            "prefix": leaves.prefix,
        }),
    }
}

/// Requests of an older nod name none, and those were Claude Code's.
fn read_agent(value: &Value) -> Option<AskingAgent> {
    if value.is_null() {
        return Some(AskingAgent::ClaudeCode);
    }
    let words = value["prefix"].as_array()?.iter();
    let prefix = words.map(|word| word.as_str().map(str::to_owned));
    let leaves = Leaves {
        session: value["session"].as_bool()?,
        prefix: prefix.collect::<Option<_>>()?,
    };
    (value["agent"] == "codex").then_some(AskingAgent::Codex(leaves))
}

fn real_json(real: &RealPath) -> Value {
    match real {
        RealPath::Unasked => Value::Null,
        RealPath::Unknown => json!("unknown"),
        RealPath::Known { path, project } => json!({
            "path": path.to_str(),
            "project": project.to_str(),
        }),
    }
}

/// What can't be read back is not known.
fn read_real(value: &Value) -> RealPath {
    let path = |name: &str| value[name].as_str().map(PathBuf::from);
    match (value, path("path"), path("project")) {
        (Value::Null, ..) => RealPath::Unasked,
        (_, Some(path), Some(project)) => RealPath::Known { path, project },
        _ => RealPath::Unknown,
    }
}

/// The word for an ending, as the audit and `status` use it.
pub fn kind(ending: &Ending) -> &'static str {
    match ending {
        Ending::Allowed { reach, .. } => match reach {
            Reach::Once | Reach::Unwritten => "allow",
            Reach::Turn(_) => "turn",
            Reach::Session(_) => "session",
            always if always.is_exact() => "always",
            Reach::Always { .. } => "wider",
        },
        Ending::Denied { interrupt, .. } => {
            if *interrupt {
                "interrupt"
            } else {
                "deny"
            }
        }
        Ending::Answered { .. } => "answer",
        Ending::Ran(Ran {
            by: Some(DecidedBy::Other),
            ..
        }) => "allowed_elsewhere",
        Ending::DeniedElsewhere => "denied_elsewhere",
        Ending::Terminal { .. } | Ending::Ran(_) => "terminal",
        Ending::Stopped { .. } => "stop",
        Ending::TimedOut => "timeout",
        Ending::HookGone => "hook_gone",
        Ending::Orphaned => "orphaned",
        Ending::Undeliverable { .. } => "undeliverable",
        Ending::Dropped { why } => match why {
            Dropped::Command => "cancelled",
            Dropped::Over => "task_over",
            Dropped::Restart => "restarted",
            Dropped::Changed => "changed",
            Dropped::CutOff => "cut_off",
        },
    }
}

pub fn ending_json(ending: &Ending) -> Value {
    let kind = kind(ending);
    match ending {
        Ending::Allowed {
            by,
            reach,
            cancelled,
        } => {
            let (rules, undone) = match reach {
                Reach::Once | Reach::Unwritten => (&[][..], false),
                Reach::Turn(rules) | Reach::Session(rules) => (rules.as_slice(), false),
                Reach::Always { rules, undone } => (rules.as_slice(), *undone),
            };
            json!({"kind": kind, "by": by.id.as_str(), "rules": rules_json(rules), "undone": undone,
                "cancelled": cancelled})
        }
        Ending::Denied { by, reason, .. } => {
            json!({"kind": kind, "by": by.id.as_str(), "reason": reason})
        }
        Ending::Answered { by, answers } => {
            json!({"kind": kind, "by": by.id.as_str(), "answers": answers})
        }
        Ending::Terminal { allowed } => json!({"kind": kind, "allowed": allowed}),
        Ending::Ran(ran) => {
            let corrects = ran.corrects.as_ref().map(|said| {
                let by = said.by.as_ref().map(|by| by.id.as_str());
                json!({"kind": said.kind, "by": by})
            });
            let by = ran.by.map(|by| match by {
                DecidedBy::Terminal => "terminal",
                DecidedBy::Other => "other",
            });
            let ran = json!({"by": by, "since": ran.since, "took": ran.took, "corrects": corrects});
            json!({"kind": kind, "allowed": true, "ran": ran})
        }
        Ending::Stopped { by, since } => {
            json!({"kind": kind, "by": by.id.as_str(), "since": since})
        }
        Ending::Undeliverable { why } => json!({"kind": kind, "why": why}),
        Ending::DeniedElsewhere
        | Ending::TimedOut
        | Ending::HookGone
        | Ending::Orphaned
        | Ending::Dropped { .. } => json!({"kind": kind}),
    }
}

pub fn read_ending(value: &Value) -> Option<Ending> {
    let by = || {
        Some(Operator {
            id: UserId::parse(value["by"].as_str()?).ok()?,
        })
    };
    let allowed = |reach| {
        Some(Ending::Allowed {
            by: by()?,
            reach,
            cancelled: value["cancelled"] == true,
        })
    };
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
        "turn" => allowed(Reach::Turn(read_rules(&value["rules"])?)),
        "session" => allowed(Reach::Session(read_rules(&value["rules"])?)),
        "always" | "wider" => allowed(Reach::Always {
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
        "terminal" | "allowed_elsewhere" if value["ran"].is_object() => {
            Some(Ending::Ran(read_ran(&value["ran"])))
        }
        "denied_elsewhere" => Some(Ending::DeniedElsewhere),
        "stop" => Some(Ending::Stopped {
            by: by()?,
            since: value["since"].as_i64()?,
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
        "changed" => dropped(Dropped::Changed),
        "cut_off" => dropped(Dropped::CutOff),
        _ => None,
    }
}

fn read_ran(value: &Value) -> Ran {
    let said = &value["corrects"];
    let by = || UserId::parse(said["by"].as_str()?).ok();
    Ran {
        by: match value["by"].as_str() {
            Some("terminal") => Some(DecidedBy::Terminal),
            Some("other") => Some(DecidedBy::Other),
            _ => None,
        },
        since: value["since"].as_i64(),
        took: value["took"].as_i64(),
        corrects: text(said, "kind").map(|kind| UntrueEnding {
            kind,
            by: by().map(|id| Operator { id }),
        }),
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
        let request = Facts {
            id: RequestId::parse("r1").unwrap(),
            tool: "Bash".to_owned(),
            digest: Digest::of(&input),
            input,
            real: RealPath::Known {
                path: "/p/a".into(),
                project: "/p".into(),
            },
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
                caller: Caller {
                    process: None,
                    transcript: None,
                    agent: AskingAgent::Codex(Leaves {
                        session: true,
                        prefix: vec!["git".to_owned(), "log".to_owned()],
                    }),
                    agent_id: Some("a1".to_owned()),
                    status_dir: Some("/h/.claude/sessions".into()),
                    unattended: true,
                    rules_in: Some("/repository".into()),
                    plain_v1: true,
                },
            },
        }
        .read();
        let text = request_text(&request);
        let value = serde_json::from_str(&text).unwrap();
        assert_eq!(read_request(&value), Some(request));
        assert_eq!(read_request(&json!({})), None);
    }

    #[test]
    fn every_ending_reads_back_as_it_was() {
        let by = Operator {
            id: UserId::parse("ou_1").unwrap(),
        };
        let allowed = |reach| Ending::Allowed {
            cancelled: false,
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
            Ending::Ran(Ran::default()),
            Ending::Ran(Ran {
                by: None,
                since: Some(3),
                took: Some(4),
                corrects: Some(UntrueEnding {
                    kind: "deny".to_owned(),
                    by: Some(by.clone()),
                }),
            }),
            Ending::Stopped {
                by: by.clone(),
                since: 5,
            },
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
            Ending::Dropped {
                why: Dropped::CutOff,
            },
            Ending::Dropped {
                why: Dropped::Changed,
            },
        ];
        for ending in endings {
            let json = ending_json(&ending);
            assert_eq!(json["kind"], kind(&ending));
            assert_eq!(read_ending(&json), Some(ending), "{json}");
        }
        assert_eq!(read_ending(&json!({"kind": "new"})), None);
    }

    #[test]
    fn what_is_not_known_of_a_path_reads_back_apart_from_what_nobody_asked() {
        for real in [
            RealPath::Unasked,
            RealPath::Unknown,
            RealPath::Known {
                path: "/p/a".into(),
                project: "/p".into(),
            },
        ] {
            assert_eq!(read_real(&real_json(&real)), real);
        }
        assert_eq!(read_real(&json!({"path": "/p/a"})), RealPath::Unknown);
    }

    #[test]
    fn a_rule_for_one_command_and_a_wider_one_have_words_of_their_own() {
        for (content, word) in [("ls", "always"), ("ls:*", "wider")] {
            let ending = Ending::Allowed {
                cancelled: false,
                by: Operator {
                    id: UserId::parse("ou_1").unwrap(),
                },
                reach: Reach::Always {
                    rules: vec![Rule {
                        content: Some(content.to_owned()),
                        ..rule()
                    }],
                    undone: false,
                },
            };
            assert_eq!(kind(&ending), word);
        }
    }
}
