//! What a session's agent says and is told, in words that are no agent's
//! format: the room of each agent turns its own messages into these and back.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::ids::SessionId;

/// A longer summary of a tool call than this tells a reader nothing more.
pub const MAX_SUMMARY: usize = 160;

/// What the owner of a child reports about it.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    Line(Line),
    /// A line that was no JSON.
    Unreadable,
    /// A line over the cap was dropped; `request` if the child waits for its
    /// answer.
    TooLong {
        bytes: usize,
        request: Option<String>,
    },
    /// The last one.
    Ended(Exit),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// Comes at the start of every turn.
    Init(Init),
    /// The permission mode changed, by our order or the agent's own.
    Mode(String),
    Assistant(Assistant),
    ToolResults(Vec<ToolResult>),
    TurnEnd(Box<TurnEnd>),
    Request(Request),
    /// The child does not wait for this answer any more.
    Withdrawn {
        request: String,
    },
    Reply(Reply),
    /// The model's API is tried again.
    Retry(Retry),
    /// What runs on beside the turns now, by the names it was given.
    Background(Vec<String>),
    /// How far one of our user messages came.
    Text {
        uuid: String,
        stage: Stage,
    },
    Other {
        kind: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Init {
    pub session: Option<SessionId>,
    pub model: Option<String>,
    pub mode: Option<String>,
    pub version: Option<String>,
    pub tools: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Assistant {
    pub text: String,
    pub tools: Vec<ToolUse>,
    /// Said by a subagent, to the main agent.
    pub subagent: bool,
    /// The CLI's own words about a failed call to the model.
    pub api_error: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolUse {
    pub id: String,
    pub name: String,
    /// The part of the input a reader recognises, on one line.
    pub summary: String,
}

/// A call to the model that failed and is made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    pub attempt: u32,
    /// How many there will be at most.
    pub most: Option<u32>,
    /// The HTTP status of the failure, if there was an answer.
    pub status: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    pub id: String,
    pub is_error: bool,
}

/// The end of one turn; the child lives on and waits for the next text.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TurnEnd {
    pub subtype: String,
    pub is_error: bool,
    pub text: Option<String>,
    /// `completed`, `api_error`, `aborted_tools`, `aborted_streaming`, …
    pub reason: Option<String>,
    pub errors: Vec<String>,
    /// Of the whole session so far, not of this turn.
    pub cost_usd: Option<f64>,
    pub turns: u32,
    pub duration_ms: u64,
    pub session: Option<SessionId>,
    /// Turns that follow at once, for texts that came too late for this one.
    pub queued: u32,
}

impl TurnEnd {
    pub fn was_interrupted(&self) -> bool {
        self.reason
            .as_deref()
            .is_some_and(|r| r.starts_with("aborted"))
    }

    pub fn is_api_error(&self) -> bool {
        self.reason.as_deref() == Some("api_error")
    }

    pub fn is_unknown_session(&self) -> bool {
        self.errors
            .iter()
            .any(|e| e.starts_with("No conversation found"))
    }
}

/// Something the child waits for. Every one must be answered, or the turn
/// stands still for ever.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub id: String,
    pub what: Wanted,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Wanted {
    Tool(Box<ToolRequest>),
    Elicitation(Box<Elicitation>),
    Other { subtype: String },
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ToolRequest {
    #[serde(rename = "tool_name")]
    pub tool: String,
    #[serde(default)]
    pub input: Value,
    #[serde(default)]
    pub tool_use_id: Option<String>,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub decision_reason: Option<String>,
    /// The subagent that asks.
    #[serde(default)]
    pub agent_id: Option<String>,
    /// A plain allow is not enough: the tool wants words from a person.
    #[serde(default, rename = "requires_user_interaction")]
    pub wants_a_person: bool,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Elicitation {
    #[serde(default, rename = "mcp_server_name")]
    pub server: Option<String>,
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub mode: Option<String>,
    #[serde(default, rename = "requested_schema")]
    pub schema: Value,
}

/// The child's answer to an order of ours.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reply {
    pub request: String,
    pub error: Option<String>,
    pub error_code: Option<String>,
    pub mode: Option<String>,
    pub version: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Queued,
    Started,
    Completed,
    Cancelled,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// Its input was closed and it ended by itself.
    Finished,
    Crashed {
        /// `None` if a signal ended it.
        code: Option<i32>,
        /// Its last line on the error output, without anything secret-looking.
        words: Option<String>,
    },
    /// We made it end with a signal.
    Killed,
    NotInstalled,
    ProjectGone,
    /// It could not be started for another reason.
    NotStarted {
        problem: String,
    },
    /// `--resume` named a conversation Claude Code does not have.
    UnknownSession,
    /// `--session-id` named one it already has.
    InUse,
}

/// How a child takes up the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    Fresh(SessionId),
    Resume(SessionId),
}

/// How the agent may act without asking. `bypassPermissions` is left out on
/// purpose: it cannot be reached from a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    #[default]
    Default,
    AcceptEdits,
    Plan,
}

impl Mode {
    pub const ALL: [Self; 3] = [Self::Default, Self::AcceptEdits, Self::Plan];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.as_str().eq_ignore_ascii_case(text))
    }
}

/// The answer to a tool request.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    Allow {
        /// The whole input the tool runs with.
        input: Value,
        /// Rules or a mode for Claude Code to apply, in its own words.
        permissions: Vec<Value>,
    },
    Deny {
        /// The model reads this, unless the turn is interrupted.
        message: String,
        interrupt: bool,
    },
}

impl Verdict {
    pub fn deny(message: impl Into<String>) -> Self {
        Self::Deny {
            message: message.into(),
            interrupt: false,
        }
    }
}

/// The answer to an elicitation of an MCP server.
#[derive(Debug, Clone, PartialEq)]
pub enum Elicited {
    Accept(Map<String, Value>),
    Decline,
    Cancel,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Say {
    Initialize {
        request: String,
    },
    /// A person's words, delivered verbatim: no `@file`, no `/command`.
    Text {
        uuid: String,
        text: String,
    },
    Verdict {
        request: String,
        verdict: Verdict,
    },
    Elicited {
        request: String,
        answer: Elicited,
    },
    /// For a request nod cannot serve; the child must not wait for it.
    Unsupported {
        request: String,
        subtype: String,
    },
    Interrupt {
        request: String,
    },
    SetMode {
        request: String,
        mode: Mode,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_read_as_people_type_them_and_bypass_is_none() {
        assert_eq!(Mode::parse("acceptedits"), Some(Mode::AcceptEdits));
        assert_eq!(Mode::parse("PLAN"), Some(Mode::Plan));
        assert_eq!(Mode::parse("bypassPermissions"), None);
    }
}
