//! What a session's agent says and is told, in words that are no agent's
//! format: the room of each agent turns its own messages into these and back.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::SessionId;

mod exit;
mod fate;

pub use exit::Exit;
pub use fate::{CallFate, DecidedBy};

/// A longer summary of a tool call than this tells a reader nothing more.
pub const MAX_SUMMARY: usize = 160;

/// What the owner of an agent reports about it.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentEvent {
    Said(AgentSaid),
    /// It said something that can't be read.
    Unreadable,
    /// It said more than there is room for, which was dropped; `request` if it
    /// waits for an answer to that.
    TooLong {
        bytes: usize,
        request: Option<String>,
    },
    /// The last one.
    Ended(Exit),
}

#[derive(Debug, Clone, PartialEq)]
pub enum AgentSaid {
    /// Comes at the start of every turn.
    Began(Began),
    /// Its mode changed, by our order or its own.
    Mode(Mode),
    Message(AgentMessage),
    CallEnds(Vec<CallEnd>),
    TurnEnd(Box<TurnEnd>),
    Request(AgentRequest),
    /// It does not wait for this answer any more.
    Withdrawn {
        request: String,
    },
    Reply(AgentReply),
    /// The model's API is tried again.
    Retry(ModelRetry),
    /// What runs on beside the turns now, by the names it was given.
    Background(Vec<String>),
    /// How far a person's words came.
    Text {
        uuid: String,
        stage: TextStage,
    },
    /// A sign of life that means nothing to a session.
    Other {
        kind: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Began {
    pub session: Option<SessionId>,
    pub model: Option<String>,
    pub mode: Option<Mode>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentMessage {
    pub text: String,
    pub calls: Vec<ShownCall>,
    /// Said by a subagent, to the main agent.
    pub subagent: bool,
}

/// A tool call as a progress card shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownCall {
    pub id: String,
    pub tool: String,
    /// The part of the input a reader recognises, on one line.
    pub summary: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallEnd {
    pub id: String,
    pub failed: bool,
}

/// A call to the model that failed and is made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelRetry {
    pub attempt: u32,
    /// How many there will be at most.
    pub most: Option<u32>,
    /// The HTTP status of the failure, if there was an answer.
    pub status: Option<u16>,
}

/// The end of one turn; the agent lives on and waits for the next words.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TurnEnd {
    pub how: How,
    pub text: Option<String>,
    /// Of the whole session so far, not of this turn.
    pub cost_usd: Option<f64>,
    pub turns: u32,
    /// Turns that follow at once, for words that came too late for this one.
    pub queued: u32,
    /// It ended because there is no such conversation.
    pub is_unknown_session: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum How {
    #[default]
    Done,
    Interrupted,
    ApiError,
    Failed,
}

/// Something the agent waits for. Every one must be answered, or the turn
/// stands still for ever.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRequest {
    pub id: String,
    pub what: AgentWants,
}

#[derive(Debug, Clone, PartialEq)]
pub enum AgentWants {
    Tool(Box<ToolRequest>),
    Form(Box<Form>),
    Other { kind: String },
}

/// A tool call that wants leave, with its whole input.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolRequest {
    pub tool: String,
    pub input: Value,
    /// The subagent that asks.
    pub agent: Option<String>,
    /// A plain yes is no answer to it: it wants a person's words.
    pub wants_a_person: bool,
}

/// A form of an MCP server's, for a person to fill in, under the names that
/// stand for it in records.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Form {
    #[serde(rename = "mcp_server_name")]
    pub server: Option<String>,
    pub message: String,
    /// What is to be filled in, as the MCP specification has it.
    #[serde(rename = "requested_schema")]
    pub schema: Value,
}

/// The agent's answer to an order of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentReply {
    pub request: String,
    pub error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextStage {
    Queued,
    Started,
    Completed,
    Cancelled,
}

/// How an agent takes up the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    Fresh(SessionId),
    Resume(SessionId),
}

/// How the agent may act without asking. Letting everything pass is left out on
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

    /// The word that people type and records keep.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
        }
    }

    /// Whether it lets the agent do more without asking.
    pub fn is_wider_than(self, other: Self) -> bool {
        let width = |mode| match mode {
            Self::Plan => 0,
            Self::Default => 1,
            Self::AcceptEdits => 2,
        };
        width(self) > width(other)
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.as_str().eq_ignore_ascii_case(text))
    }
}

/// The answer to a tool request.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolVerdict {
    Allow {
        /// The whole input the tool runs with.
        input: Value,
        /// What the agent itself applies along with it, in its own words:
        /// carried from its room and back, and read by nobody in between.
        updates: Vec<Value>,
    },
    Deny {
        /// The model reads this, unless the turn is interrupted.
        message: String,
        interrupt: bool,
    },
}

impl ToolVerdict {
    pub fn deny(message: impl Into<String>) -> Self {
        Self::Deny {
            message: message.into(),
            interrupt: false,
        }
    }
}

/// The answer to a form.
#[derive(Debug, Clone, PartialEq)]
pub enum Filled {
    Accept(Map<String, Value>),
    Decline,
    Cancel,
}

/// What an agent is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Say {
    /// A person's words, delivered verbatim.
    Text {
        uuid: String,
        text: String,
    },
    Verdict {
        request: String,
        verdict: ToolVerdict,
    },
    Filled {
        request: String,
        answer: Filled,
    },
    /// For a request nod cannot serve; the agent must not wait for it.
    Unsupported {
        request: String,
        kind: String,
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
