//! What a Claude Code child says on its standard output, one JSON object a
//! line. Reads leniently: what nod does not know is told apart by name and
//! dropped, and no line is ever an error that ends a session by itself.

use serde_json::Value;

pub mod say;
mod wire;

use crate::child::lines::Cut;
use crate::talk::{AgentEvent, AgentSaid, MAX_SUMMARY};
use crate::text::clean;
use wire::{
    WireBackground, WireCancel, WireInit, WireKind, WireLifecycle, WireReply, WireRequest,
    WireSaid, WireStatus, retry, turn_end,
};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a line of the stream, column {column}")]
pub struct Unreadable {
    pub column: usize,
}

/// Reads one line without its newline.
pub fn parse(line: &[u8]) -> Result<AgentSaid, Unreadable> {
    let unreadable = |e: serde_json::Error| Unreadable { column: e.column() };
    let kind: WireKind = serde_json::from_slice(line).map_err(unreadable)?;
    let other = |kind: &WireKind| AgentSaid::Other {
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
            .map(|status| status.mode().map_or_else(|| other(&kind), AgentSaid::Mode)),
        ("system", Some("api_retry")) => {
            serde_json::from_slice::<Value>(line).map(|wire| AgentSaid::Retry(retry(&wire)))
        }
        ("system", Some("background_tasks_changed")) => {
            serde_json::from_slice::<WireBackground>(line).map(Into::into)
        }
        ("assistant", _) => serde_json::from_slice::<WireSaid>(line)
            .map(|message| AgentSaid::Message(message.into_assistant())),
        ("user", _) => serde_json::from_slice::<WireSaid>(line)
            .map(|message| AgentSaid::CallEnds(message.into_results())),
        ("result", _) => serde_json::from_slice::<Value>(line)
            .map(|wire| AgentSaid::TurnEnd(Box::new(turn_end(&wire)))),
        ("control_request", _) => serde_json::from_slice::<WireRequest>(line).map(Into::into),
        ("control_cancel_request", _) => serde_json::from_slice::<WireCancel>(line).map(
            |WireCancel {
                 request_id: request,
             }| AgentSaid::Withdrawn { request },
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
pub fn event(cut: Cut) -> Option<AgentEvent> {
    match cut {
        Cut::Line(line) if line.iter().all(u8::is_ascii_whitespace) => None,
        Cut::Line(line) => Some(parse(&line).map_or(AgentEvent::Unreadable, AgentEvent::Said)),
        Cut::TooLong { bytes, head } => Some(AgentEvent::TooLong {
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

#[cfg(test)]
mod tests;
