//! The lines as they stand on the wire, and how each becomes a [`Line`].

use serde::Deserialize;
use serde_json::Value;

use super::summary;
use crate::ids::SessionId;
use crate::talk::{
    Assistant, Init, Line, MAX_SUMMARY, Reply, Request, Retry, Stage, ToolResult, ToolUse, TurnEnd,
    Wanted,
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
    claude_code_version: Option<String>,
    #[serde(default)]
    tools: Vec<String>,
}

impl From<WireInit> for Line {
    fn from(wire: WireInit) -> Self {
        Self::Init(Init {
            session: session(wire.session_id),
            model: wire.model,
            mode: wire.mode,
            version: wire.claude_code_version,
            tools: wire.tools,
        })
    }
}

#[derive(Deserialize)]
pub(super) struct WireStatus {
    #[serde(rename = "permissionMode")]
    pub(super) mode: Option<String>,
}

/// Read field by field: whatever is missing, that it is tried again is known.
pub(super) fn retry(wire: &Value) -> Retry {
    let number = |field: &str| wire[field].as_u64();
    Retry {
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

impl From<WireBackground> for Line {
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
pub(super) struct WireMessage {
    message: WireContent,
    #[serde(default)]
    parent_tool_use_id: Option<String>,
    #[serde(default)]
    is_api_error_message: bool,
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

impl WireMessage {
    pub(super) fn into_assistant(self) -> Assistant {
        let mut said = Assistant {
            subagent: self.parent_tool_use_id.is_some(),
            api_error: self.is_api_error_message,
            ..Assistant::default()
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
                        ("tool_use", _, Some(name)) => said.tools.push(ToolUse {
                            id: block.id.unwrap_or_default(),
                            summary: summary(&name, &block.input),
                            name: clean(&name, MAX_SUMMARY),
                        }),
                        _ => {}
                    }
                }
            }
            WireBlocks::Other(_) => {}
        }
        said
    }

    pub(super) fn into_results(self) -> Vec<ToolResult> {
        let WireBlocks::Blocks(blocks) = self.message.content else {
            return Vec::new();
        };
        blocks
            .into_iter()
            .filter(|block| block.kind == "tool_result")
            .map(|block| ToolResult {
                id: block.tool_use_id.unwrap_or_default(),
                is_error: block.is_error.unwrap_or(false),
            })
            .collect()
    }
}

/// Read field by field: whatever else changes in it, the end of a turn must
/// be seen, or the session would wait for ever.
pub(super) fn turn_end(wire: &Value) -> TurnEnd {
    let text = |field: &str| wire[field].as_str().filter(|t| !t.is_empty());
    TurnEnd {
        subtype: text("subtype").unwrap_or_default().to_owned(),
        is_error: wire["is_error"].as_bool().unwrap_or(true),
        text: text("result").map(str::to_owned),
        reason: text("terminal_reason").map(str::to_owned),
        errors: wire["errors"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        cost_usd: wire["total_cost_usd"].as_f64(),
        turns: wire["num_turns"]
            .as_u64()
            .map_or(0, |n| u32::try_from(n).unwrap_or(u32::MAX)),
        duration_ms: wire["duration_ms"].as_u64().unwrap_or_default(),
        session: session(text("session_id").map(str::to_owned)),
        queued: wire["queued_turn_count"]
            .as_u64()
            .map_or(0, |n| u32::try_from(n).unwrap_or(u32::MAX)),
    }
}

#[derive(Deserialize)]
pub(super) struct WireRequest {
    request_id: String,
    request: Value,
}

impl From<WireRequest> for Line {
    fn from(wire: WireRequest) -> Self {
        let subtype = wire.request["subtype"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let what = match subtype.as_str() {
            "can_use_tool" => serde_json::from_value(wire.request)
                .ok()
                .map(|tool| Wanted::Tool(Box::new(tool))),
            "elicitation" => serde_json::from_value(wire.request)
                .ok()
                .map(|asked| Wanted::Elicitation(Box::new(asked))),
            _ => None,
        };
        Self::Request(Request {
            id: wire.request_id,
            what: what.unwrap_or_else(|| Wanted::Other {
                subtype: clean(&subtype, 80),
            }),
        })
    }
}

#[derive(Deserialize)]
pub(super) struct WireCancel {
    pub(super) request_id: String,
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
    #[serde(default)]
    error_code: Option<String>,
    #[serde(default)]
    response: Option<WireReplyFields>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WireReplyFields {
    mode: Option<String>,
    current_permission_mode: Option<String>,
    claude_code_version: Option<String>,
}

impl From<WireReply> for Line {
    fn from(wire: WireReply) -> Self {
        let fields = wire.response.response.unwrap_or_default();
        Self::Reply(Reply {
            request: wire.response.request_id,
            error: wire.response.error,
            error_code: wire.response.error_code,
            mode: fields.mode.or(fields.current_permission_mode),
            version: fields.claude_code_version,
        })
    }
}

#[derive(Deserialize)]
pub(super) struct WireLifecycle {
    command_uuid: String,
    state: String,
}

impl WireLifecycle {
    pub(super) fn into_line(self) -> Option<Line> {
        let stage = match self.state.as_str() {
            "queued" => Stage::Queued,
            "started" => Stage::Started,
            "completed" => Stage::Completed,
            "cancelled" => Stage::Cancelled,
            _ => return None,
        };
        Some(Line::Text {
            uuid: self.command_uuid,
            stage,
        })
    }
}

fn session(id: Option<String>) -> Option<SessionId> {
    SessionId::parse(&id?).ok()
}
