//! The lines as they stand on the wire, and how each becomes something [`AgentSaid`].

use serde::Deserialize;
use serde_json::Value;

use super::summary;
use crate::ids::SessionId;
use crate::talk::{
    AgentMessage, AgentReply, AgentRequest, AgentSaid, AgentWants, Began, CallEnd, Form, How,
    MAX_SUMMARY, Mode, ModelRetry, ShownCall, TextStage, ToolRequest, TurnEnd,
};
use crate::text::clean;

/// Tasks beside a turn that are told by name.
const MAX_TASKS: usize = 32;

#[derive(Deserialize)]
pub(super) struct WireKind {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) subtype: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct WireInit {
    session_id: Option<String>,
    model: Option<String>,
    #[serde(rename = "permissionMode")]
    mode: Option<String>,
}

impl From<WireInit> for AgentSaid {
    fn from(wire: WireInit) -> Self {
        Self::Began(Began {
            session: session(wire.session_id),
            model: wire.model,
            mode: wire.mode.as_deref().and_then(Mode::parse),
        })
    }
}

#[derive(Deserialize)]
pub(super) struct WireStatus {
    #[serde(rename = "permissionMode")]
    mode: Option<String>,
}

impl WireStatus {
    /// `None` for a mode that a session of nod's does not have.
    pub(super) fn mode(&self) -> Option<Mode> {
        self.mode.as_deref().and_then(Mode::parse)
    }
}

/// Read field by field: whatever is missing, that it is tried again is known.
pub(super) fn retry(wire: &Value) -> ModelRetry {
    let number = |field: &str| wire[field].as_u64();
    ModelRetry {
        attempt: number("attempt").map_or(1, |n| u32::try_from(n).unwrap_or(u32::MAX)),
        most: number("max_retries").and_then(|n| u32::try_from(n).ok()),
        status: number("error_status").and_then(|n| u16::try_from(n).ok()),
    }
}

#[derive(Deserialize)]
pub(super) struct WireBackground {
    tasks: Vec<WireTask>,
}

#[derive(Deserialize)]
struct WireTask {
    #[serde(default)]
    task_id: String,
    #[serde(default)]
    description: Option<String>,
}

impl From<WireBackground> for AgentSaid {
    fn from(wire: WireBackground) -> Self {
        let tasks = wire.tasks.into_iter().take(MAX_TASKS);
        let names = tasks.map(|task| {
            let named = task.description.filter(|name| !name.trim().is_empty());
            clean(&named.unwrap_or(task.task_id), MAX_SUMMARY)
        });
        Self::Background(names.collect())
    }
}

#[derive(Deserialize)]
pub(super) struct WireSaid {
    message: WireContent,
    #[serde(default)]
    parent_tool_use_id: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct WireContent {
    #[serde(default)]
    content: WireBlocks,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum WireBlocks {
    Text(String),
    Blocks(Vec<WireBlock>),
    Other(serde::de::IgnoredAny),
}

impl Default for WireBlocks {
    fn default() -> Self {
        Self::Blocks(Vec::new())
    }
}

#[derive(Deserialize)]
pub(super) struct WireBlock {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    input: Value,
    #[serde(default)]
    tool_use_id: Option<String>,
    #[serde(default)]
    is_error: Option<bool>,
}

impl WireSaid {
    pub(super) fn into_assistant(self) -> AgentMessage {
        let mut said = AgentMessage {
            subagent: self.parent_tool_use_id.is_some(),
            ..AgentMessage::default()
        };
        match self.message.content {
            WireBlocks::Text(text) => said.text = text,
            WireBlocks::Blocks(blocks) => {
                for block in blocks {
                    match (block.kind.as_str(), block.text, block.name) {
                        ("text", Some(text), _) => {
                            if !said.text.is_empty() {
                                said.text.push_str("\n\n");
                            }
                            said.text.push_str(&text);
                        }
                        ("tool_use", _, Some(name)) => said.calls.push(ShownCall {
                            id: block.id.unwrap_or_default(),
                            summary: summary(&name, &block.input),
                            tool: clean(&name, MAX_SUMMARY),
                        }),
                        _ => {}
                    }
                }
            }
            WireBlocks::Other(_) => {}
        }
        said
    }

    pub(super) fn into_results(self) -> Vec<CallEnd> {
        let WireBlocks::Blocks(blocks) = self.message.content else {
            return Vec::new();
        };
        blocks
            .into_iter()
            .filter(|block| block.kind == "tool_result")
            .map(|block| CallEnd {
                id: block.tool_use_id.unwrap_or_default(),
                failed: block.is_error.unwrap_or(false),
            })
            .collect()
    }
}

/// Read field by field: whatever else changes in it, the end of a turn must
/// be seen, or the session would wait for ever.
pub(super) fn turn_end(wire: &Value) -> TurnEnd {
    let text = |field: &str| wire[field].as_str().filter(|t| !t.is_empty());
    let errors = wire["errors"].as_array().into_iter().flatten();
    TurnEnd {
        how: match text("terminal_reason") {
            Some(reason) if reason.starts_with("aborted") => How::Interrupted,
            Some("api_error") => How::ApiError,
            _ if wire["is_error"].as_bool().unwrap_or(true) => How::Failed,
            _ => How::Done,
        },
        text: text("result").map(str::to_owned),
        cost_usd: wire["total_cost_usd"].as_f64(),
        turns: wire["num_turns"]
            .as_u64()
            .map_or(0, |n| u32::try_from(n).unwrap_or(u32::MAX)),
        queued: wire["queued_turn_count"]
            .as_u64()
            .map_or(0, |n| u32::try_from(n).unwrap_or(u32::MAX)),
        is_unknown_session: errors
            .filter_map(Value::as_str)
            .any(|error| error.starts_with("No conversation found")),
    }
}

#[derive(Deserialize)]
pub(super) struct WireRequest {
    request_id: String,
    request: Value,
}

impl From<WireRequest> for AgentSaid {
    fn from(wire: WireRequest) -> Self {
        let subtype = wire.request["subtype"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let what = match subtype.as_str() {
            "can_use_tool" => WireTool::deserialize(wire.request).ok().map(Into::into),
            "elicitation" => {
                let form = Form::deserialize(wire.request).ok();
                form.map(|form| AgentWants::Form(Box::new(form)))
            }
            _ => None,
        };
        Self::Request(AgentRequest {
            id: wire.request_id,
            what: what.unwrap_or_else(|| AgentWants::Other {
                kind: clean(&subtype, 80),
            }),
        })
    }
}

#[derive(Deserialize)]
struct WireTool {
    tool_name: String,
    #[serde(default)]
    input: Value,
    #[serde(default)]
    agent_id: Option<String>,
    #[serde(default)]
    requires_user_interaction: Value,
}

impl From<WireTool> for AgentWants {
    fn from(wire: WireTool) -> Self {
        Self::Tool(Box::new(ToolRequest {
            tool: wire.tool_name,
            input: wire.input,
            agent: wire.agent_id,
            wants_a_person: wire.requires_user_interaction == true,
        }))
    }
}

#[derive(Deserialize)]
pub(super) struct WireCancel {
    #[serde(rename = "request_id")]
    pub(super) request: String,
}

#[derive(Deserialize)]
pub(super) struct WireReply {
    response: WireReplyBody,
}

#[derive(Deserialize)]
pub(super) struct WireReplyBody {
    request_id: String,
    #[serde(default)]
    error: Option<String>,
}

impl From<WireReply> for AgentSaid {
    fn from(wire: WireReply) -> Self {
        Self::Reply(AgentReply {
            request: wire.response.request_id,
            error: wire.response.error,
        })
    }
}

#[derive(Deserialize)]
pub(super) struct WireLifecycle {
    command_uuid: String,
    state: String,
}

impl WireLifecycle {
    pub(super) fn into_line(self) -> Option<AgentSaid> {
        let stage = match self.state.as_str() {
            "queued" => TextStage::Queued,
            "started" => TextStage::Started,
            "completed" => TextStage::Completed,
            "cancelled" => TextStage::Cancelled,
            _ => return None,
        };
        Some(AgentSaid::Text {
            uuid: self.command_uuid,
            stage,
        })
    }
}

fn session(id: Option<String>) -> Option<SessionId> {
    SessionId::parse(&id?).ok()
}
