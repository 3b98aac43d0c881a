//! A command that Codex asks about: what a shell would get, the permissions it
//! wants besides, and which rules a yes may leave.

use serde_json::{Map, Value, json};

use super::permissions::normal;
use super::{CodexAskKind, MadeAsk, text};
use crate::rules::Leaves;
use crate::rules::codex::GrantUntil;

/// What an approval holds besides what it asks for.
const AROUND: &[&str] = &[
    "threadId",
    "turnId",
    "itemId",
    "startedAtMs",
    "approvalId",
    "availableDecisions",
    "proposedExecpolicyAmendment",
    "proposedNetworkPolicyAmendments",
    "commandActions",
];

/// Whatever the request holds that nod does not know stands on the card, too.
pub(super) fn read(params: &Value) -> MadeAsk {
    let command = text(params, "command")?;
    let mut input = Map::new();
    if params["kind"] == "writeStdin" {
        let (session, chars) = typed(&command)?;
        input.insert("command".to_owned(), json!(chars));
        input.insert("typed_into".to_owned(), json!(session));
    } else {
        input.insert("command".to_owned(), json!(script(&command)));
    }
    if let Some(reason) = text(params, "reason") {
        input.insert("description".to_owned(), json!(reason));
    }
    for (key, value) in params.as_object()? {
        let usual = match key.as_str() {
            "command" | "reason" | "cwd" | "additionalPermissions" | "networkApprovalContext" => {
                true
            }
            "kind" => value == "command" || value == "writeStdin",
            "environmentId" => value == "local",
            key => AROUND.contains(&key),
        };
        if !usual && !value.is_null() {
            input.insert(key.clone(), value.clone());
        }
    }
    // What it would be granted besides is said in a sentence, or not asked here.
    if let Some(wanted) = params
        .get("additionalPermissions")
        .filter(|it| !it.is_null())
    {
        let granted = normal(wanted, GrantUntil::CallEnd)?;
        input.insert("permissions".to_owned(), granted);
    }
    if let Some(context) = params
        .get("networkApprovalContext")
        .filter(|it| !it.is_null())
    {
        let (host, protocol) = (text(context, "host")?, text(context, "protocol")?);
        input.insert(
            "connects_to".to_owned(),
            json!(format!("{host} ({protocol})")),
        );
    }
    let available = params["availableDecisions"].as_array();
    let offers = |decision: &Value| available.is_some_and(|all| all.contains(decision));
    let prefix: Vec<String> = params["proposedExecpolicyAmendment"]
        .as_array()
        .and_then(|words| {
            words
                .iter()
                .map(|word| word.as_str().map(str::to_owned))
                .collect()
        })
        .unwrap_or_default();
    let amended = json!({"acceptWithExecpolicyAmendment": {"execpolicy_amendment": prefix}});
    let leaves = Leaves {
        session: offers(&json!("acceptForSession")),
        prefix: if offers(&amended) { prefix } else { Vec::new() },
    };
    Some((
        "Bash".to_owned(),
        Value::Object(input),
        leaves,
        CodexAskKind::Command,
    ))
}

/// What a person reads of a command: its script, where a shell is called for it.
pub fn script(command: &str) -> String {
    unwrapped(command).unwrap_or_else(|| command.to_owned())
}

/// The script of `bash -lc 'script'`; `None` unless it is exactly that, and by a
/// shell of the system's: `./bash` may be any program.
fn unwrapped(command: &str) -> Option<String> {
    let [program, flag, script] = <[String; 3]>::try_from(words(command)?).ok()?;
    let shell = ["/bin/", "/usr/bin/"]
        .iter()
        .find_map(|place| program.strip_prefix(place))
        .unwrap_or(&program);
    let known = matches!(shell, "bash" | "sh" | "zsh" | "dash");
    (known && matches!(flag.as_str(), "-lc" | "-c")).then_some(script)
}

/// What Codex would type into a program that already runs, and its name for
/// that; it says so as a command of its own.
fn typed(command: &str) -> Option<(String, String)> {
    let words = words(command)?;
    let [program, flag, session, chars] = <[String; 4]>::try_from(words).ok()?;
    (program == "write_stdin" && flag == "--session-id").then_some((session, chars))
}

/// The words of a command line that was joined with quotes; `None` for one
/// that a shell would read otherwise.
fn words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = command.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '\\' => match chars.next()? {
                            c @ ('$' | '`' | '"' | '\\') => word.push(c),
                            _ => return None,
                        },
                        '$' | '`' => return None,
                        c => word.push(c),
                    }
                }
            }
            c if c.is_ascii_alphanumeric() || "_-./:=@%+,^".contains(c) => {
                word.get_or_insert_default().push(c);
            }
            _ => return None,
        }
    }
    words.extend(word);
    Some(words)
}
