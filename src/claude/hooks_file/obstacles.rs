//! What in a settings file of Claude Code's keeps nod's hooks from being
//! called, whoever wrote the file. Pure.

use serde_json::Value;

use super::text::Parsed;
use super::{AskMode, text};
use crate::claude::json_text::Untouchable;

/// Hook types that Claude Code knows; any other makes it drop the file.
const TYPES: [&str; 5] = ["command", "prompt", "agent", "http", "mcp_tool"];
/// More broken entries than this nobody reads.
const MAX_NAMED: usize = 4;

/// What one settings file says about hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacles {
    /// `disableAllHooks` is on.
    pub hooks_off: bool,
    /// `allowManagedHooksOnly` is on; it counts in managed settings only.
    pub managed_only: bool,
    pub mode: AskMode,
    /// Entries for which Claude Code drops the whole file without a word.
    pub broken: Vec<String>,
    /// Commands in this file that start some nod's hook.
    pub own: Vec<String>,
}

pub(super) fn of(settings: Option<&[u8]>) -> Result<Obstacles, Untouchable> {
    let value = Parsed::read(settings)?.value;
    Ok(Obstacles {
        hooks_off: value["disableAllHooks"] == true,
        managed_only: value["allowManagedHooksOnly"] == true,
        mode: text::mode(&value),
        broken: broken(&value),
        own: text::commands(settings, text::is_ours)?,
    })
}

fn broken(settings: &Value) -> Vec<String> {
    let events = settings["hooks"].as_object().into_iter().flatten();
    let handlers = events.flat_map(|(event, entries)| {
        let entries = entries.as_array().into_iter().flatten();
        let handlers = entries.flat_map(|entry| entry["hooks"].as_array().into_iter().flatten());
        handlers.map(move |handler| (event, handler))
    });
    let named = handlers.filter_map(|(event, handler)| {
        let timeout = &handler["timeout"];
        let wrong = match timeout {
            Value::Null if handler.get("timeout").is_none() => {
                let kind = handler["type"].as_str();
                let known = kind.is_some_and(|kind| TYPES.contains(&kind));
                (!known).then(|| format!("\"type\": {}", handler["type"]))?
            }
            Value::Number(number) if number.as_f64().is_some_and(|n| n > 0.0) => return None,
            wrong => format!("\"timeout\": {wrong}"),
        };
        let text = format!("{event}: {wrong}");
        let shown = text.chars().filter(|c| !c.is_control() && *c != '`');
        Some(shown.take(80).collect())
    });
    named.take(MAX_NAMED).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Obstacles {
        of(Some(text.as_bytes())).unwrap()
    }

    #[test]
    fn what_keeps_hooks_from_being_called_is_found() {
        let found = read(r#"{"disableAllHooks": true, "permissions": {"defaultMode": "auto"}}"#);
        assert!(found.hooks_off && !found.managed_only);
        assert_eq!(found.mode, AskMode::Mode("auto".to_owned()));
        let found = read(r#"{"disableAllHooks": false, "allowManagedHooksOnly": true}"#);
        assert!(!found.hooks_off && found.managed_only);
        assert_eq!(found.mode, AskMode::Unset);
    }

    #[test]
    fn an_entry_that_costs_the_whole_file_is_named() {
        for (handler, broken) in [
            (
                r#"{"type": "command", "command": "x", "timeout": 0}"#,
                "Stop: \"timeout\": 0",
            ),
            (
                r#"{"type": "command", "command": "x", "timeout": -1}"#,
                "Stop: \"timeout\": -1",
            ),
            (
                r#"{"type": "command", "command": "x", "timeout": "60"}"#,
                "Stop: \"timeout\": \"60\"",
            ),
            (
                r#"{"type": "shell", "command": "x"}"#,
                "Stop: \"type\": \"shell\"",
            ),
        ] {
            let text = format!(r#"{{"hooks": {{"Stop": [{{"hooks": [{handler}]}}]}}}}"#);
            assert_eq!(read(&text).broken, [broken], "{text}");
        }
        for handler in [
            r#"{"type": "command", "command": "x"}"#,
            r#"{"type": "command", "command": "x", "timeout": 0.5}"#,
            r#"{"type": "http", "url": "x", "timeout": 43200}"#,
        ] {
            let text = format!(r#"{{"hooks": {{"Stop": [{{"hooks": [{handler}]}}]}}}}"#);
            assert_eq!(read(&text).broken, [] as [&str; 0], "{text}");
        }
    }

    #[test]
    fn hooks_of_nods_in_another_file_are_found() {
        let text = r#"{"hooks": {"PermissionRequest": [{"hooks": [
            {"type": "command", "command": "nod hook"}, {"type": "command", "command": "other"}]}]}}"#;
        assert_eq!(read(text).own, ["nod hook"]);
    }
}
