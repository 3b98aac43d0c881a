//! What a Claude Code child says on its standard output, one JSON object a
//! line. Reads leniently: what nod does not know is told apart by name and
//! dropped, and no line is ever an error that ends a session by itself.

use serde::de::DeserializeOwned;
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
    let said = match (kind.kind.as_str(), kind.subtype.as_deref()) {
        ("system", Some("init")) => read::<WireInit>(line).map(Into::into),
        ("system", Some("status")) => read::<WireStatus>(line)
            .and_then(|status| status.mode())
            .map(AgentSaid::Mode),
        ("system", Some("api_retry")) => read(line).map(|wire| AgentSaid::Retry(retry(&wire))),
        ("system", Some("background_tasks_changed")) => {
            read::<WireBackground>(line).map(Into::into)
        }
        ("assistant", _) => {
            read::<WireSaid>(line).map(|said| AgentSaid::Message(said.into_assistant()))
        }
        ("user", _) => read::<WireSaid>(line).map(|said| AgentSaid::CallEnds(said.into_results())),
        ("result", _) => read(line).map(|wire| AgentSaid::TurnEnd(Box::new(turn_end(&wire)))),
        ("control_request", _) => read::<WireRequest>(line).map(Into::into),
        ("control_cancel_request", _) => {
            read(line).map(|WireCancel { request }| AgentSaid::Withdrawn { request })
        }
        ("control_response", _) => read::<WireReply>(line).map(Into::into),
        ("command_lifecycle", _) => read(line).and_then(WireLifecycle::into_line),
        _ => None,
    };
    // A known type in a shape we do not know: a newer child, not a broken one.
    Ok(said.unwrap_or_else(|| {
        let name = match &kind.subtype {
            Some(subtype) => format!("{}/{subtype}", kind.kind),
            None => kind.kind,
        };
        AgentSaid::Other {
            kind: clean(&name, 80),
        }
    }))
}

fn read<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    serde_json::from_slice(line).ok()
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
