//! What a session's transcript says of its tool calls: that one was made, and
//! what became of it. Pure. It never yields an allow: whoever could forge the
//! file can only end a request without one. What holds in which version is in
//! `docs/claude-code.md`.

use serde::Deserialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

use crate::clock::Millis;
use crate::talk::{CallFate, DecidedBy};

/// What one line says of one call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallNote {
    Made {
        id: String,
        tool: String,
        input: Value,
    },
    Ended {
        id: String,
        fate: CallFate,
    },
}

/// Where the calls of a subagent are written down: beside the transcript of
/// its session. The id becomes a file name, so it may hold no more than Claude
/// Code's own do.
pub fn of_agent(transcript: &Path, agent: Option<&str>) -> Option<PathBuf> {
    let Some(agent) = agent else {
        return Some(transcript.to_owned());
    };
    let harmless = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_name = agent.len() <= 64 && agent.bytes().all(harmless);
    let folder = transcript.with_extension("");
    is_name.then(|| folder.join(format!("subagents/agent-{agent}.jsonl")))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawLine {
    timestamp: Option<String>,
    message: Option<TranscriptMessage>,
    tool_denial_kind: Option<String>,
    #[serde(default)]
    tool_denial_before_run: bool,
    permission_decision: Option<RawDecision>,
}

#[derive(Deserialize)]
struct TranscriptMessage {
    content: Value,
}

#[derive(Deserialize)]
struct RawDecision {
    decision: Option<String>,
    source: Option<String>,
}

/// What a line says of calls, and when it was written.
pub fn read(line: &[u8]) -> Option<(Millis, Vec<CallNote>)> {
    let text = std::str::from_utf8(line).ok()?;
    let speaks = text.contains("\"tool_use\"") || text.contains("\"tool_result\"");
    // Large copies of what was sent to the model.
    if !speaks || text.starts_with("{\"type\":\"api-request") {
        return None;
    }
    let raw: RawLine = serde_json::from_str(text).ok()?;
    let at: jiff::Timestamp = raw.timestamp.as_ref()?.parse().ok()?;
    let fate = fate(&raw);
    let Value::Array(blocks) = raw.message?.content else {
        return None;
    };
    let notes = blocks.into_iter().filter_map(|block| note(block, fate));
    Some((at.as_millisecond(), notes.collect()))
}

fn note(mut block: Value, fate: Option<CallFate>) -> Option<CallNote> {
    let text = |block: &Value, field: &str| block[field].as_str().map(str::to_owned);
    match block["type"].as_str()? {
        "tool_use" => Some(CallNote::Made {
            id: text(&block, "id")?,
            tool: text(&block, "name")?,
            input: block["input"].take(),
        }),
        "tool_result" => {
            // A session that is resumed elsewhere notes an error for every call
            // that is still open: without a decision beside it, it says nothing.
            let went_well = block["is_error"] != true;
            let fate = fate.or_else(|| went_well.then_some(CallFate::Ran(None)))?;
            let id = text(&block, "tool_use_id")?;
            Some(CallNote::Ended { id, fate })
        }
        _ => None,
    }
}

fn fate(line: &RawLine) -> Option<CallFate> {
    let decision = line.permission_decision.as_ref();
    match (line.tool_denial_kind.as_deref(), decision) {
        (Some("user-rejected"), _) => Some(CallFate::Cancelled {
            before_run: line.tool_denial_before_run,
        }),
        (Some("permission-rule"), _) => Some(CallFate::Refused),
        (_, Some(decision)) => {
            let source = decision.source.as_deref().unwrap_or_default();
            let by = if source.starts_with("user") {
                DecidedBy::Terminal
            } else {
                DecidedBy::Other
            };
            match decision.decision.as_deref()? {
                "accept" => Some(CallFate::Ran(Some(by))),
                "reject" => Some(CallFate::Refused),
                _ => None,
            }
        }
        (_, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn result(more: &Value, is_error: bool) -> Option<CallFate> {
        let mut line = json!({"type": "user", "timestamp": "2026-11-18T14:12:21.878Z",
            "message": {"role": "user", "content": [{"type": "tool_result", "content": "x",
                "is_error": is_error, "tool_use_id": "toolu_1"}]}});
        for (key, value) in more.as_object().unwrap() {
            line[key] = value.clone();
        }
        let (at, notes) = read(line.to_string().as_bytes()).unwrap();
        assert_eq!(at, 1_795_011_141_878);
        let mut fate = notes.into_iter().map(|note| match note {
            CallNote::Ended { id, fate } if id == "toolu_1" => fate,
            other => panic!("{other:?}"),
        });
        fate.next_back()
    }

    #[test]
    fn an_observed_result_says_what_became_of_its_call() {
        let decided = |decision: &str, source: &str| json!({"permissionDecision": {"decision": decision, "source": source}});
        let denied = |kind: &str| json!({"toolDenialKind": kind});
        let in_terminal = CallFate::Ran(Some(DecidedBy::Terminal));
        for (more, is_error, fate) in [
            (
                decided("accept", "user_temporary"),
                false,
                Some(in_terminal),
            ),
            (decided("accept", "user_permanent"), true, Some(in_terminal)),
            (
                decided("accept", "hook"),
                false,
                Some(CallFate::Ran(Some(DecidedBy::Other))),
            ),
            (
                decided("accept", "config"),
                false,
                Some(CallFate::Ran(Some(DecidedBy::Other))),
            ),
            (decided("reject", "hook"), true, Some(CallFate::Refused)),
            (denied("permission-rule"), true, Some(CallFate::Refused)),
            (
                denied("user-rejected"),
                true,
                Some(CallFate::Cancelled { before_run: false }),
            ),
            (
                json!({"toolDenialKind": "user-rejected", "toolDenialBeforeRun": true}),
                true,
                Some(CallFate::Cancelled { before_run: true }),
            ),
            // Versions that write no decision down.
            (json!({}), false, Some(CallFate::Ran(None))),
            (json!({}), true, None),
            // What a second process of the session notes of an open call.
            (denied("interrupted"), true, None),
        ] {
            assert_eq!(result(&more, is_error), fate, "{more}");
        }
    }

    #[test]
    fn a_call_is_read_with_its_input() {
        let line = br#"{"type":"assistant","timestamp":"2026-11-18T14:12:19.728Z","message":
            {"role":"assistant","content":[{"type":"text","text":"so"},{"type":"tool_use",
            "id":"toolu_2","name":"Bash","input":{"command":"ls"}}]}}"#;
        let (at, notes) = read(line).unwrap();
        assert_eq!(at, 1_795_011_139_728);
        let (id, tool) = ("toolu_2".to_owned(), "Bash".to_owned());
        let input = json!({"command": "ls"});
        assert_eq!(notes, [CallNote::Made { id, tool, input }]);
    }

    #[test]
    fn other_lines_say_nothing() {
        for line in [
            "",
            "{}",
            r#"{"type":"user","timestamp":"2026-11-18T14:12:19.728Z","message":{"content":"a \"tool_use\""}}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t"}]}}"#,
            r#"{"type":"api-request-blob","timestamp":"2026-11-18T14:12:19.728Z","message":{"content":[{"type":"tool_result","tool_use_id":"t"}]}}"#,
            "\u{feff}",
        ] {
            assert_eq!(read(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn a_subagents_calls_stand_beside_its_sessions_transcript() {
        let of = |agent| of_agent(Path::new("/h/.claude/projects/-p/s1.jsonl"), agent);
        assert_eq!(of(None), Some("/h/.claude/projects/-p/s1.jsonl".into()));
        let beside = "/h/.claude/projects/-p/s1/subagents/agent-a1b2.jsonl";
        assert_eq!(of(Some("a1b2")), Some(beside.into()));
        for hostile in ["../../x", "a/b", "a b", &"a".repeat(65)] {
            assert_eq!(of(Some(hostile)), None, "{hostile}");
        }
    }
}
