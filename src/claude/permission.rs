//! Hook JSON, in and out. Reads what Claude Code writes to a hook's stdin and
//! builds the one object it accepts on stdout. Pure, and light enough for the
//! hook's fast path. Never turns something unreadable into a decision.

use std::borrow::Cow;
use std::path::PathBuf;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use crate::ids::SessionId;
use crate::talk::Mode;

/// What a hook was told: where it runs, and what happened.
#[derive(Debug, Clone, PartialEq)]
pub struct HookInput {
    pub common: Common,
    pub event: HookEvent,
}

/// Fields that come with every event. All optional: a version that leaves one
/// out must not cost the user their dialog.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Common {
    pub session: Option<SessionId>,
    /// Follows `cd`; the project is `CLAUDE_PROJECT_DIR`.
    pub cwd: Option<PathBuf>,
    pub transcript: Option<PathBuf>,
    /// The user's prompt that led here; the same for every call of a turn.
    pub prompt_id: Option<String>,
    pub permission_mode: Option<String>,
    pub agent_id: Option<String>,
    /// The subagent's type when a subagent asks.
    pub agent_type: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum HookEvent {
    PermissionRequest(PermissionAsk),
    PostToolUse(ToolCall),
    PostToolUseFailure(ToolCall),
    Stop {
        last_message: Option<String>,
    },
    /// The turn ended by an error of the model's service.
    StopFailure {
        last_message: Option<String>,
    },
    /// A subagent ended; which one, the common fields say.
    SubagentStop,
    UserPromptSubmit {
        prompt: Option<String>,
    },
    SessionStart {
        source: Option<String>,
    },
    SessionEnd {
        reason: Option<String>,
    },
    Notification {
        kind: Option<String>,
        message: Option<String>,
    },
    /// An event nod has nothing to do with.
    Other {
        name: String,
    },
}

/// A tool call that needs somebody's permission. It has no id of its own:
/// what ends it is found by session, tool and input.
#[derive(Debug, Clone, PartialEq)]
pub struct PermissionAsk {
    pub tool: String,
    pub input: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    pub tool: String,
    pub input: Value,
    pub id: Option<String>,
    /// How long the tool itself took.
    pub took_ms: Option<i64>,
    /// It looks like a refusal: hooks of managed settings are told of calls
    /// that did not run.
    pub looks_refused: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum BadHook {
    #[error("the hook's input is not the JSON it should be: {0}")]
    NotJson(#[from] serde_json::Error),
    #[error("the hook's input has no `{0}`")]
    Missing(&'static str),
}

/// `Value`s, so that a field of another type than today's is a missing field
/// and not an unreadable event. What is not named here is skipped unread.
#[derive(Deserialize)]
struct RawHookEvent {
    hook_event_name: Option<Value>,
    session_id: Option<Value>,
    transcript_path: Option<Value>,
    cwd: Option<Value>,
    prompt_id: Option<Value>,
    permission_mode: Option<Value>,
    agent_id: Option<Value>,
    agent_type: Option<Value>,
    tool_name: Option<Value>,
    tool_input: Option<Value>,
    tool_use_id: Option<Value>,
    duration_ms: Option<Value>,
    tool_response: Option<ToolResponse>,
    last_assistant_message: Option<Value>,
    prompt: Option<Value>,
    source: Option<Value>,
    reason: Option<Value>,
    notification_type: Option<Value>,
    message: Option<Value>,
}

/// What a tool answered: only whether it is one error text, and no more of it.
struct ToolResponse {
    is_error: bool,
}

impl<'de> Deserialize<'de> for ToolResponse {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either<'a> {
            #[serde(borrow)]
            Text(Cow<'a, str>),
            Other(IgnoredAny),
        }
        let is_error = match Either::deserialize(from)? {
            Either::Text(text) => text.starts_with("Error: "),
            Either::Other(_) => false,
        };
        Ok(Self { is_error })
    }
}

impl HookInput {
    pub fn parse(bytes: &[u8]) -> Result<Self, BadHook> {
        let raw: RawHookEvent = serde_json::from_slice(bytes)?;
        let name = match raw.hook_event_name {
            // Clients of the socket's first version send the call alone.
            None if raw.tool_name.is_some() => Some("PermissionRequest".to_owned()),
            name => text(name),
        };
        let name = name.ok_or(BadHook::Missing("hook_event_name"))?;
        let common = Common {
            session: text(raw.session_id).and_then(|id| SessionId::parse(&id).ok()),
            cwd: text(raw.cwd).map(PathBuf::from),
            transcript: text(raw.transcript_path).map(PathBuf::from),
            prompt_id: text(raw.prompt_id),
            permission_mode: text(raw.permission_mode),
            agent_id: text(raw.agent_id),
            agent_type: text(raw.agent_type),
        };
        let tool = text(raw.tool_name).ok_or(BadHook::Missing("tool_name"));
        let input = raw.tool_input.ok_or(BadHook::Missing("tool_input"));
        let is_error = raw.tool_response.is_some_and(|response| response.is_error);
        let looks_refused = is_error && raw.duration_ms.is_none();
        let call = |tool, input| -> Result<ToolCall, BadHook> {
            Ok(ToolCall {
                tool: tool?,
                input: input?,
                id: text(raw.tool_use_id),
                took_ms: raw
                    .duration_ms
                    .and_then(|ms| ms.as_i64())
                    .filter(|ms| *ms >= 0),
                looks_refused,
            })
        };
        let event = match name.as_str() {
            "PermissionRequest" => HookEvent::PermissionRequest(PermissionAsk {
                tool: tool?,
                input: input?,
            }),
            "PostToolUse" => HookEvent::PostToolUse(call(tool, input)?),
            "PostToolUseFailure" => HookEvent::PostToolUseFailure(call(tool, input)?),
            "Stop" => HookEvent::Stop {
                last_message: text(raw.last_assistant_message),
            },
            "StopFailure" => HookEvent::StopFailure {
                last_message: text(raw.last_assistant_message),
            },
            "SubagentStop" => HookEvent::SubagentStop,
            "UserPromptSubmit" => HookEvent::UserPromptSubmit {
                prompt: text(raw.prompt),
            },
            "SessionStart" => HookEvent::SessionStart {
                source: text(raw.source),
            },
            "SessionEnd" => HookEvent::SessionEnd {
                reason: text(raw.reason),
            },
            "Notification" => HookEvent::Notification {
                kind: text(raw.notification_type),
                message: text(raw.message),
            },
            _ => HookEvent::Other { name },
        };
        Ok(Self { common, event })
    }
}

fn text(value: Option<Value>) -> Option<String> {
    match value {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// A rule's two parts as Claude Code writes them: the tool, and what stands in
/// its parentheses, if anything.
pub type RuleParts = (String, Option<String>);

/// How long a granted rule holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// The project's `.claude/settings.local.json`.
    LocalSettings,
    /// Until the session ends.
    Session,
}

impl Destination {
    fn name(self) -> &'static str {
        match self {
            Self::LocalSettings => "localSettings",
            Self::Session => "session",
        }
    }
}

/// An update that allows these rules. `None` when there is nothing to allow or
/// Claude Code would drop the update.
pub fn allow_rules(rules: &[RuleParts], to: Destination) -> Option<Value> {
    let empty = |(tool, content): &RuleParts| tool.is_empty() || content.as_deref() == Some("");
    let sound = !rules.is_empty() && !rules.iter().any(empty);
    let rules: Vec<Value> = rules
        .iter()
        .map(|(tool, content)| match content {
            Some(content) => json!({"toolName": tool, "ruleContent": content}),
            None => json!({"toolName": tool}),
        })
        .collect();
    sound.then(|| {
        json!({
            "type": "addRules",
            "rules": rules,
            "behavior": "allow",
            "destination": to.name(),
        })
    })
}

/// An update after which the session goes on in this mode.
pub fn set_mode(mode: Mode) -> Value {
    json!({"type": "setMode", "mode": mode.as_str(), "destination": Destination::Session.name()})
}

/// The answer to a `PermissionRequest`. No answer is printed as nothing at all.
#[derive(Debug, Clone, PartialEq)]
pub enum PermissionAnswer {
    Allow {
        /// Takes the whole input's place. `AskUserQuestion` and `ExitPlanMode`
        /// ignore an allow without it.
        input: Option<Value>,
        /// Permission updates to apply, from [`allow_rules`] or [`set_mode`].
        updates: Vec<Value>,
    },
    Deny {
        /// What the model is told, word for word.
        message: Option<String>,
    },
    /// Ends the turn. Claude Code tells the model a sentence of its own.
    DenyAndInterrupt { message: Option<String> },
}

impl PermissionAnswer {
    pub const ALLOW: Self = Self::Allow {
        input: None,
        updates: Vec::new(),
    };

    /// The bytes for stdout, without a final newline.
    pub fn to_stdout(&self) -> String {
        let mut decision = Map::new();
        let mut put = |key: &str, value: Value| decision.insert(key.to_owned(), value);
        match self {
            Self::Allow { input, updates } => {
                put("behavior", "allow".into());
                if let Some(input) = input {
                    put("updatedInput", input.clone());
                }
                if !updates.is_empty() {
                    put("updatedPermissions", updates.clone().into());
                }
            }
            Self::Deny { message } | Self::DenyAndInterrupt { message } => {
                put("behavior", "deny".into());
                if let Some(message) = message {
                    put("message", message.as_str().into());
                }
                if matches!(self, Self::DenyAndInterrupt { .. }) {
                    put("interrupt", true.into());
                }
            }
        }
        json!({
            "hookSpecificOutput": {
                "hookEventName": "PermissionRequest",
                "decision": decision,
            }
        })
        .to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npm_run() -> Value {
        json!({"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "npm run *"}],
               "behavior": "allow", "destination": "localSettings"})
    }

    #[test]
    fn an_observed_request_is_read_whole() {
        let bytes = br#"{"session_id":"8dc2e48c-c040-4f3e-8b87-dd9186211ce1",
            "transcript_path":"/h/.claude/projects/-p/8dc2e48c.jsonl","cwd":"/box/proj",
            "prompt_id":"0e24a3b3","permission_mode":"default","effort":{"level":"medium"},
            "hook_event_name":"PermissionRequest","tool_name":"Bash",
            "tool_input":{"command":"npm run build","description":"run build"},
            "permission_suggestions":[{"type":"addRules","rules":[{"toolName":"Bash",
            "ruleContent":"npm run *"}],"behavior":"allow","destination":"localSettings"}]}
"#;
        let hook = HookInput::parse(bytes).unwrap();
        assert_eq!(
            hook.common,
            Common {
                session: SessionId::parse("8dc2e48c-c040-4f3e-8b87-dd9186211ce1").ok(),
                cwd: Some("/box/proj".into()),
                transcript: Some("/h/.claude/projects/-p/8dc2e48c.jsonl".into()),
                prompt_id: Some("0e24a3b3".to_owned()),
                permission_mode: Some("default".to_owned()),
                agent_id: None,
                agent_type: None,
            }
        );
        assert_eq!(
            hook.event,
            HookEvent::PermissionRequest(PermissionAsk {
                tool: "Bash".to_owned(),
                input: json!({"command": "npm run build", "description": "run build"}),
            })
        );
    }

    #[test]
    fn every_event_is_told_apart() {
        let call = || ToolCall {
            tool: "Bash".to_owned(),
            input: json!({"command": "ls"}),
            id: Some("toolu_1".to_owned()),
            took_ms: None,
            looks_refused: false,
        };
        let text = |text: &str| Some(text.to_owned());
        for (fields, event) in [
            (
                json!({"hook_event_name": "PostToolUse", "tool_name": "Bash",
                       "tool_input": {"command": "ls"}, "tool_use_id": "toolu_1",
                       "tool_response": {"stdout": "x"}, "duration_ms": 3}),
                HookEvent::PostToolUse(ToolCall {
                    took_ms: Some(3),
                    ..call()
                }),
            ),
            (
                json!({"hook_event_name": "PostToolUse", "tool_name": "Bash",
                       "tool_input": {"command": "ls"}, "tool_use_id": "toolu_1",
                       "tool_response": "Error: no way"}),
                HookEvent::PostToolUse(ToolCall {
                    looks_refused: true,
                    ..call()
                }),
            ),
            (
                json!({"hook_event_name": "PostToolUseFailure", "tool_name": "Bash",
                       "tool_input": {"command": "ls"}, "tool_use_id": "toolu_1",
                       "error": "exit 1", "is_interrupt": false}),
                HookEvent::PostToolUseFailure(call()),
            ),
            (
                json!({"hook_event_name": "Stop", "stop_hook_active": false,
                       "last_assistant_message": "done", "background_tasks": []}),
                HookEvent::Stop {
                    last_message: text("done"),
                },
            ),
            (
                json!({"hook_event_name": "StopFailure", "error": "overloaded"}),
                HookEvent::StopFailure { last_message: None },
            ),
            (
                json!({"hook_event_name": "SubagentStop", "agent_id": "a1"}),
                HookEvent::SubagentStop,
            ),
            (
                json!({"hook_event_name": "UserPromptSubmit", "prompt": "hello"}),
                HookEvent::UserPromptSubmit {
                    prompt: text("hello"),
                },
            ),
            (
                json!({"hook_event_name": "SessionStart", "source": "resume"}),
                HookEvent::SessionStart {
                    source: text("resume"),
                },
            ),
            (
                json!({"hook_event_name": "SessionEnd", "reason": "prompt_input_exit"}),
                HookEvent::SessionEnd {
                    reason: text("prompt_input_exit"),
                },
            ),
            (
                json!({"hook_event_name": "Notification", "message": "waiting",
                       "notification_type": "idle_prompt"}),
                HookEvent::Notification {
                    kind: text("idle_prompt"),
                    message: text("waiting"),
                },
            ),
            (
                json!({"hook_event_name": "FileChanged", "tool_name": 7}),
                HookEvent::Other {
                    name: "FileChanged".to_owned(),
                },
            ),
        ] {
            let hook = HookInput::parse(fields.to_string().as_bytes()).unwrap();
            assert_eq!(hook.event, event, "{fields}");
        }
    }

    #[test]
    fn a_call_without_an_event_name_is_a_request() {
        let hook = HookInput::parse(
            br#"{"session_id":"sess_123","tool_name":"Bash","tool_input":{"command":"ls"}}"#,
        )
        .unwrap();
        let HookEvent::PermissionRequest(ask) = hook.event else {
            panic!("a request")
        };
        assert_eq!(ask.tool, "Bash");
    }

    #[test]
    fn fields_of_an_unknown_shape_count_as_missing() {
        let hook = HookInput::parse(
            br#"{"hook_event_name":"PermissionRequest","tool_name":"X","tool_input":7,
                "session_id":"a b","cwd":["x"],"agent_type":3,"permission_suggestions":{"a":1}}"#,
        )
        .unwrap();
        assert_eq!(hook.common, Common::default());
        let HookEvent::PermissionRequest(ask) = hook.event else {
            panic!("a request")
        };
        assert_eq!(ask.input, json!(7));
    }

    #[test]
    fn what_can_not_be_read_is_an_error_and_never_a_request() {
        let deep = format!(
            r#"{{"hook_event_name":"PermissionRequest","tool_name":"X","tool_input":{}1{}}}"#,
            "[".repeat(10_000),
            "]".repeat(10_000)
        );
        for bad in [
            &b""[..],
            b"null",
            b"[]",
            b"{}",
            br#"{"hook_event_name":1}"#,
            br#"{"hook_event_name":"PermissionRequest","tool_name":"X"}"#,
            br#"{"hook_event_name":"PermissionRequest","tool_input":{}}"#,
            br#"{"hook_event_name":"PermissionRequest","tool_name":"X","tool_input":{}"#,
            b"{\"hook_event_name\":\"\xff\"}",
            br#"{"hook_event_name":"PermissionRequest","tool_name":"X","tool_input":"\ud800"}"#,
            br#"{"hook_event_name":"PermissionRequest","tool_name":"X","tool_input":1,"tool_input":2}"#,
            deep.as_bytes(),
        ] {
            assert!(HookInput::parse(bad).is_err(), "{}", bad.escape_ascii());
        }
    }

    #[test]
    fn our_own_rules_take_the_same_shape() {
        let rules = [("Bash".to_owned(), Some("npm run *".to_owned()))];
        assert_eq!(
            allow_rules(&rules, Destination::LocalSettings),
            Some(npm_run())
        );
        let bare = [("WebSearch".to_owned(), None)];
        let update = allow_rules(&bare, Destination::Session).unwrap();
        assert_eq!(update["rules"], json!([{"toolName": "WebSearch"}]));
        assert_eq!(allow_rules(&[], Destination::Session), None);
        let empty = [("Bash".to_owned(), Some(String::new()))];
        assert_eq!(allow_rules(&empty, Destination::LocalSettings), None);
    }

    #[test]
    fn answers_are_written_as_claude_code_accepts_them() {
        let around = |decision: &str| {
            format!(
                r#"{{"hookSpecificOutput":{{"hookEventName":"PermissionRequest","decision":{decision}}}}}"#
            )
        };
        for (answer, decision) in [
            (PermissionAnswer::ALLOW, r#"{"behavior":"allow"}"#),
            (
                PermissionAnswer::Allow {
                    input: None,
                    updates: vec![npm_run()],
                },
                concat!(
                    r#"{"behavior":"allow","updatedPermissions":[{"type":"addRules","#,
                    r#""rules":[{"toolName":"Bash","ruleContent":"npm run *"}],"#,
                    r#""behavior":"allow","destination":"localSettings"}]}"#
                ),
            ),
            (
                PermissionAnswer::Allow {
                    input: Some(json!({"answers": {"Which?": "S, L"}})),
                    updates: Vec::new(),
                },
                r#"{"behavior":"allow","updatedInput":{"answers":{"Which?":"S, L"}}}"#,
            ),
            (
                PermissionAnswer::Deny {
                    message: Some("use \"make\"\n".to_owned()),
                },
                r#"{"behavior":"deny","message":"use \"make\"\n"}"#,
            ),
            (
                PermissionAnswer::Deny { message: None },
                r#"{"behavior":"deny"}"#,
            ),
            (
                PermissionAnswer::DenyAndInterrupt { message: None },
                r#"{"behavior":"deny","interrupt":true}"#,
            ),
        ] {
            assert_eq!(answer.to_stdout(), around(decision));
        }
    }
}
