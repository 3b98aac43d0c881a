//! The text of the user settings with and without nod's hooks. Pure. Comments,
//! order and layout stay; what could mean two things to two readers is not
//! touched.

use jsonc_parser::ast::Value as Node;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstRootNode};
use jsonc_parser::{CollectOptions, parse_to_ast};
use serde_json::{Value, json};

use super::{AskMode, Hooks, REPORT_WITHIN};
use crate::claude::json_text::{COMMENTED, Untouchable, at, check_keys, utf8};

const BOM: &str = "\u{feff}";
const ASK: &str = "PermissionRequest";
/// Every event nod listens to, and whether its entries are chosen by a
/// matcher.
const EVENTS: [(&str, bool); 8] = [
    (ASK, true),
    ("PostToolUse", true),
    ("PostToolUseFailure", true),
    ("Stop", false),
    ("SubagentStop", false),
    ("UserPromptSubmit", false),
    ("SessionEnd", false),
    ("Notification", true),
];
/// Modes in which every permission that would be prompted for reaches the
/// hook.
const ASKING_MODES: [&str; 3] = ["default", "acceptEdits", "plan"];

/// What may stand behind `hook`, each with a path.
const FLAGS: [&str; 2] = ["--config", "--socket"];

/// The command that starts nod's hook, for `/bin/sh -c`.
pub(super) fn command(program: &str, file: &str, socket: Option<&str>) -> String {
    let [config, at] = FLAGS;
    let command = format!("{} hook {config} {}", quoted(program), quoted(file));
    match socket {
        Some(socket) => format!("{command} {at} {}", quoted(socket)),
        None => command,
    }
}

fn quoted(word: &str) -> String {
    let mut quoted = String::from("\"");
    for c in word.chars() {
        if matches!(c, '"' | '\\' | '$' | '`') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted + "\""
}

/// The words of a command that is written as [`command`] does, or plainly.
fn words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = command.trim();
    while !rest.is_empty() {
        let mut word = String::new();
        if let Some(inside) = rest.strip_prefix('"') {
            let mut chars = inside.char_indices();
            let end = loop {
                match chars.next()? {
                    (at, '"') => break at,
                    (_, '\\') => word.push(chars.next()?.1),
                    (_, c) => word.push(c),
                }
            };
            rest = &inside[end + 1..];
        } else {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            word.push_str(&rest[..end]);
            if word.contains(['"', '\'', '\\', ';', '|', '&']) {
                return None;
            }
            rest = &rest[end..];
        }
        if !rest.is_empty() && !rest.starts_with(char::is_whitespace) {
            return None;
        }
        rest = rest.trim_start();
        words.push(word);
    }
    Some(words)
}

/// The program of a command that starts some nod's hook.
pub(super) fn program(command: &str) -> Option<String> {
    let words = words(command)?;
    let (program, rest) = words.split_first()?;
    let (verb, flags) = rest.split_first()?;
    let is_flag = |pair: &[String]| pair.len() == 2 && FLAGS.contains(&pair[0].as_str());
    let is_ours =
        program.rsplit('/').next() == Some("nod") && verb == "hook" && flags.chunks(2).all(is_flag);
    is_ours.then(|| program.clone())
}

/// Whether the command starts some nod's hook.
pub(super) fn is_ours(command: &str) -> bool {
    program(command).is_some()
}

/// The new text, or `None` when the old one already is as wanted.
pub(super) fn installed(old: Option<&[u8]>, hooks: &Hooks) -> Result<Option<Vec<u8>>, Untouchable> {
    let parsed = Parsed::read(old)?;
    // What others wrote, reached by the same way as from the new text: lists
    // that stood there empty go with nod's entry on both sides.
    let mut others = parsed.value.clone();
    for (event, _) in EVENTS {
        let entries = &mut others["hooks"][event];
        if entries.is_null() {
            *entries = json!([]);
        }
        if let Value::Array(entries) = entries {
            entries.push(entry_value(event, hooks));
        }
    }
    strip(&mut others);
    parsed.rewritten(
        |root| {
            let settings = root.object_value_or_create()?;
            let all = settings.object_value_or_create("hooks")?;
            for list in all.properties() {
                let name = list.decoded_name()?;
                let wanted = EVENTS.iter().any(|(event, _)| *event == name);
                if !wanted {
                    remove_ours(&list.array_value()?, None)?;
                    if list.array_value()?.elements().is_empty() {
                        list.remove();
                    }
                }
            }
            for (event, _) in EVENTS {
                let list = all.array_value_or_create(event)?;
                let entry = entry_value(event, hooks);
                let kept = remove_ours(&list, Some(&entry))?;
                if !kept {
                    list.append(input(&entry)?);
                }
            }
            Some(())
        },
        |new| {
            let mut new = new.clone();
            let right = EVENTS.iter().all(|(event, _)| {
                let entries = new["hooks"][event].as_array();
                let ours = entries.into_iter().flatten().filter(|e| holds_ours(e));
                ours.eq([&entry_value(event, hooks)])
            });
            strip(&mut new);
            right && new == others
        },
    )
}

/// The text without nod's entries, or `None` when there were none.
pub(super) fn removed(old: Option<&[u8]>) -> Result<Option<Vec<u8>>, Untouchable> {
    if old.is_none() {
        return Ok(None);
    }
    let parsed = Parsed::read(old)?;
    let mut wanted = parsed.value.clone();
    if !strip(&mut wanted) {
        return Ok(None);
    }
    parsed.rewritten(
        |root| {
            let hooks = root.object_value()?.get("hooks")?;
            let all = hooks.object_value()?;
            for list in all.properties() {
                let Some(entries) = list.array_value() else {
                    continue;
                };
                let before = entries.elements().len();
                remove_ours(&entries, None)?;
                if before > 0 && entries.elements().is_empty() {
                    list.remove();
                }
            }
            if all.properties().is_empty() {
                hooks.remove();
            }
            Some(())
        },
        |new| *new == wanted,
    )
}

/// The text with `permissions.defaultMode` set, or without it.
pub(super) fn with_mode(
    old: Option<&[u8]>,
    mode: Option<&str>,
) -> Result<Option<Vec<u8>>, Untouchable> {
    let parsed = Parsed::read(old)?;
    let permissions = &parsed.value["permissions"];
    if permissions["defaultMode"].as_str() == mode {
        return Ok(None);
    }
    let mut wanted = parsed.value.clone();
    match mode {
        Some(mode) => wanted["permissions"]["defaultMode"] = mode.into(),
        None => {
            if let Some(permissions) = wanted["permissions"].as_object_mut() {
                permissions.shift_remove("defaultMode");
                if permissions.is_empty() {
                    remove_key(&mut wanted, "permissions");
                }
            }
        }
    }
    parsed.rewritten(
        |root| {
            let settings = root.object_value_or_create()?;
            let permissions = settings.object_value_or_create("permissions")?;
            match (mode, permissions.get("defaultMode")) {
                (Some(mode), Some(known)) => known.set_value(mode.into()),
                (Some(mode), None) => drop(permissions.append("defaultMode", mode.into())),
                (None, Some(known)) => known.remove(),
                (None, None) => {}
            }
            if permissions.properties().is_empty() {
                settings.get("permissions")?.remove();
            }
            Some(())
        },
        |new| *new == wanted,
    )
}

pub(super) fn asking(text: Option<&[u8]>) -> Result<AskMode, Untouchable> {
    let settings = Parsed::read(text)?.value;
    if settings["disableAllHooks"] == true {
        return Ok(AskMode::HooksOff);
    }
    Ok(mode(&settings))
}

/// What `permissions.defaultMode` means for the hook.
pub(super) fn mode(settings: &Value) -> AskMode {
    match settings["permissions"]["defaultMode"].as_str() {
        None => AskMode::Unset,
        Some(mode) if ASKING_MODES.contains(&mode) => AskMode::Asks,
        Some(mode) => AskMode::Mode(mode.chars().filter(|c| !c.is_control()).take(40).collect()),
    }
}

/// The commands of hooks that `fit`, each once.
pub(super) fn commands(
    text: Option<&[u8]>,
    fit: impl Fn(&str) -> bool,
) -> Result<Vec<String>, Untouchable> {
    let settings = Parsed::read(text)?.value;
    let lists = settings["hooks"].as_object();
    let handlers = lists
        .into_iter()
        .flat_map(|lists| lists.values())
        .flat_map(|list| list.as_array().into_iter().flatten())
        .flat_map(|entry| entry["hooks"].as_array().into_iter().flatten());
    let mut commands: Vec<String> = handlers
        .filter_map(|handler| handler["command"].as_str())
        .filter(|command| fit(command))
        .map(str::to_owned)
        .collect();
    commands.dedup();
    Ok(commands)
}

fn entry_value(event: &str, hooks: &Hooks) -> Value {
    let within = if event == ASK {
        hooks.ask_within
    } else {
        REPORT_WITHIN
    };
    let handler = json!({
        "type": "command",
        "command": hooks.command,
        "timeout": within.as_secs(),
    });
    let matched = EVENTS
        .iter()
        .any(|(name, matched)| *name == event && *matched);
    if matched {
        json!({"matcher": "", "hooks": [handler]})
    } else {
        json!({"hooks": [handler]})
    }
}

fn input(value: &Value) -> Option<CstInputValue> {
    Some(match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(value) => CstInputValue::Number(value.to_string()),
        Value::String(value) => CstInputValue::String(value.clone()),
        Value::Array(values) => {
            CstInputValue::Array(values.iter().map(input).collect::<Option<_>>()?)
        }
        Value::Object(values) => CstInputValue::Object(
            values
                .iter()
                .map(|(name, value)| Some((name.clone(), input(value)?)))
                .collect::<Option<_>>()?,
        ),
    })
}

/// Takes nod's handlers out of a list of entries, and entries that held no
/// other. The first entry that already is `keep` stays; says whether one did.
fn remove_ours(list: &CstArray, keep: Option<&Value>) -> Option<bool> {
    let mut kept = false;
    for entry in list.elements() {
        let value = entry.to_serde_value()?;
        if !holds_ours(&value) {
            continue;
        }
        if !kept && keep == Some(&value) {
            kept = true;
            continue;
        }
        let handlers = entry.as_object()?.array_value("hooks")?;
        for handler in handlers.elements() {
            if is_ours_node(&handler) {
                handler.remove();
            }
        }
        if handlers.elements().is_empty() {
            entry.remove();
        }
    }
    Some(kept)
}

fn is_ours_node(handler: &CstNode) -> bool {
    let command = |handler: CstObject| {
        let value = handler.get("command")?.value()?;
        value.as_string_lit()?.decoded_value().ok()
    };
    handler
        .as_object()
        .and_then(command)
        .is_some_and(|command| is_ours(&command))
}

fn is_ours_value(handler: &Value) -> bool {
    handler["command"].as_str().is_some_and(is_ours)
}

fn holds_ours(entry: &Value) -> bool {
    entry["hooks"]
        .as_array()
        .is_some_and(|handlers| handlers.iter().any(is_ours_value))
}

/// Takes nod's handlers out of the meaning, and what that leaves empty; says
/// whether there were any.
fn strip(settings: &mut Value) -> bool {
    let Some(lists) = settings["hooks"].as_object_mut() else {
        return false;
    };
    let mut found = false;
    lists.retain(|_, list| {
        let Some(entries) = list.as_array_mut() else {
            return true;
        };
        let before = entries.len();
        entries.retain_mut(|entry| {
            if !holds_ours(entry) {
                return true;
            }
            found = true;
            let handlers = entry["hooks"].as_array_mut();
            handlers.is_none_or(|handlers| {
                handlers.retain(|handler| !is_ours_value(handler));
                !handlers.is_empty()
            })
        });
        before == entries.len() || !entries.is_empty()
    });
    if found && lists.is_empty() {
        remove_key(settings, "hooks");
    }
    found
}

fn remove_key(settings: &mut Value, name: &str) {
    if let Some(settings) = settings.as_object_mut() {
        settings.shift_remove(name);
    }
}

/// A settings text that was understood.
pub(super) struct Parsed<'a> {
    bom: bool,
    text: &'a str,
    pub(super) value: Value,
}

impl<'a> Parsed<'a> {
    pub(super) fn read(bytes: Option<&'a [u8]>) -> Result<Self, Untouchable> {
        let text = utf8(bytes.unwrap_or_default())?;
        let stripped = text.strip_prefix(BOM);
        let (bom, text) = (stripped.is_some(), stripped.unwrap_or(text));
        if text.trim().is_empty() {
            return Ok(Self {
                bom,
                text,
                value: json!({}),
            });
        }
        let wrong = |error: jsonc_parser::errors::ParseError| Untouchable {
            line: error.line_display(),
            column: error.column_display(),
            problem: format!(
                "it is not valid JSON: {}",
                lowered(&error.kind().to_string())
            ),
        };
        let tree = parse_to_ast(text, &CollectOptions::default(), &COMMENTED).map_err(wrong)?;
        let Some(root @ Node::Object(_)) = tree.value else {
            return Err(at(text, 0, "it is not an object"));
        };
        check_keys(text, &root)?;
        let value = meaning(text).ok_or_else(|| at(text, 0, "it is not valid JSON"))?;
        check_shape(text, &root, &value)?;
        Ok(Self { bom, text, value })
    }

    /// The text after `edit`, if it reads back as `right` says it must.
    fn rewritten(
        &self,
        edit: impl FnOnce(&CstRootNode) -> Option<()>,
        right: impl FnOnce(&Value) -> bool,
    ) -> Result<Option<Vec<u8>>, Untouchable> {
        let not_understood = || at(self.text, 0, "nod can't edit it without risk");
        let start = if self.text.trim().is_empty() {
            "{}\n"
        } else {
            self.text
        };
        let root = CstRootNode::parse(start, &COMMENTED).map_err(|_| not_understood())?;
        edit(&root).ok_or_else(not_understood)?;
        let new = root.to_string();
        if new == self.text {
            return Ok(None);
        }
        // Whatever the editor did to the text, this is what it has to mean.
        if !meaning(&new).is_some_and(|value| right(&value)) {
            return Err(not_understood());
        }
        let bom = if self.bom { BOM } else { "" };
        Ok(Some(format!("{bom}{new}").into_bytes()))
    }
}

fn meaning(text: &str) -> Option<Value> {
    CstRootNode::parse(text, &COMMENTED).ok()?.to_serde_value()
}

fn check_shape(text: &str, root: &Node<'_>, value: &Value) -> Result<(), Untouchable> {
    let place = |name: &str| match root {
        Node::Object(root) => root.get(name).map_or(0, |prop| prop.range.start),
        _ => 0,
    };
    let hooks = &value["hooks"];
    let lists_fit = match hooks {
        Value::Null => true,
        Value::Object(lists) => lists.values().all(Value::is_array),
        _ => false,
    };
    if !lists_fit {
        let problem = "`hooks` is not an object of lists";
        return Err(at(text, place("hooks"), problem));
    }
    let permissions = &value["permissions"];
    if !permissions.is_null() && !permissions.is_object() {
        let problem = "`permissions` is not an object";
        return Err(at(text, place("permissions"), problem));
    }
    Ok(())
}

fn lowered(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map(|first| first.to_lowercase().chain(chars).collect())
        .unwrap_or_default()
}
