//! What a Claude Code child says on its standard output, one JSON object a
//! line. Reads leniently: what nod does not know is told apart by name and
//! dropped, and no line is ever an error that ends a session by itself.

use serde::Deserialize;
use serde_json::Value;

use super::exit::Exit;
use crate::ids::SessionId;

pub mod say;
mod wire;

use crate::child::lines::Cut;
use wire::{
    WireBackground, WireCancel, WireInit, WireKind, WireLifecycle, WireMessage, WireReply,
    WireRequest, WireStatus, retry, turn_end,
};

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

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a line of the stream, column {column}")]
pub struct Unreadable {
    pub column: usize,
}

/// Reads one line without its newline.
pub fn parse(line: &[u8]) -> Result<Line, Unreadable> {
    let unreadable = |e: serde_json::Error| Unreadable { column: e.column() };
    let kind: WireKind = serde_json::from_slice(line).map_err(unreadable)?;
    let other = |kind: &WireKind| Line::Other {
        kind: clean(
            &match &kind.subtype {
                Some(subtype) => format!("{}/{subtype}", kind.kind),
                None => kind.kind.clone(),
            },
            80,
        ),
    };
    let read = match (kind.kind.as_str(), kind.subtype.as_deref()) {
        ("system", Some("init")) => serde_json::from_slice::<WireInit>(line).map(Into::into),
        ("system", Some("status")) => serde_json::from_slice::<WireStatus>(line)
            .map(|status| status.mode.map_or_else(|| other(&kind), Line::Mode)),
        ("system", Some("api_retry")) => {
            serde_json::from_slice::<Value>(line).map(|wire| Line::Retry(retry(&wire)))
        }
        ("system", Some("background_tasks_changed")) => {
            serde_json::from_slice::<WireBackground>(line).map(Into::into)
        }
        ("assistant", _) => serde_json::from_slice::<WireMessage>(line)
            .map(|message| Line::Assistant(message.into_assistant())),
        ("user", _) => serde_json::from_slice::<WireMessage>(line)
            .map(|message| Line::ToolResults(message.into_results())),
        ("result", _) => serde_json::from_slice::<Value>(line)
            .map(|wire| Line::TurnEnd(Box::new(turn_end(&wire)))),
        ("control_request", _) => serde_json::from_slice::<WireRequest>(line).map(Into::into),
        ("control_cancel_request", _) => serde_json::from_slice::<WireCancel>(line).map(
            |WireCancel {
                 request_id: request,
             }| Line::Withdrawn { request },
        ),
        ("control_response", _) => serde_json::from_slice::<WireReply>(line).map(Into::into),
        ("command_lifecycle", _) => serde_json::from_slice::<WireLifecycle>(line)
            .map(|life| life.into_line().unwrap_or_else(|| other(&kind))),
        _ => return Ok(other(&kind)),
    };
    // A known type in a shape we do not know: a newer child, not a broken one.
    Ok(read.unwrap_or_else(|_| other(&kind)))
}

/// Reads one cut of the child's output; `None` for an empty line.
pub fn event(cut: Cut) -> Option<Event> {
    match cut {
        Cut::Line(line) if line.iter().all(u8::is_ascii_whitespace) => None,
        Cut::Line(line) => Some(parse(&line).map_or(Event::Unreadable, Event::Line)),
        Cut::TooLong { bytes, head } => Some(Event::TooLong {
            bytes,
            request: request_in(&head),
        }),
    }
}

/// The id of a request whose line is too long to be read. The CLI writes the
/// two fields first.
fn request_in(head: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(head);
    let rest = text.strip_prefix(r#"{"type":"control_request","request_id":""#)?;
    let (id, _) = rest.split_once('"')?;
    Some(id.to_owned())
}

/// The part of a tool's input a reader recognises, on one line.
pub fn summary(tool: &str, input: &Value) -> String {
    let preferred: &[&str] = match tool {
        "Bash" => &["description", "command"],
        "Read" | "Edit" | "Write" | "MultiEdit" => &["file_path"],
        "NotebookEdit" => &["notebook_path"],
        "Glob" | "Grep" => &["pattern"],
        "WebFetch" => &["url"],
        "WebSearch" => &["query"],
        "Task" | "Agent" => &["description"],
        "Skill" => &["skill", "command"],
        _ => &[],
    };
    let named = preferred.iter().find_map(|field| input[field].as_str());
    let any = || input.as_object()?.values().find_map(Value::as_str);
    clean(named.or_else(any).unwrap_or_default(), MAX_SUMMARY)
}

/// One line without control characters, shortened with an ellipsis.
pub fn clean(text: &str, max: usize) -> String {
    let mut words = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect::<String>();
    words.truncate(words.trim_end().len());
    let words = words.trim_start();
    if words.chars().count() <= max {
        return words.to_owned();
    }
    words.chars().take(max - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests;
