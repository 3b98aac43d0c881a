//! What Codex asks a person, in our own words, and a decision in Codex's words
//! again. What can't be shown whole is not asked here but named: then only the
//! terminal can answer it.

use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::path::PathBuf;

use crate::approvals::request::Digest;
use crate::ids::SessionId;
use crate::rules::Leaves;
use crate::sessions::questions::{self, call, form as filled};
use crate::talk::Form;

const COMMAND: &str = "item/commandExecution/requestApproval";
const FILE_CHANGE: &str = "item/fileChange/requestApproval";
const PERMISSIONS: &str = "item/permissions/requestApproval";
const USER_INPUT: &str = "item/tool/requestUserInput";
const ELICITATION: &str = "mcpServer/elicitation/request";

/// The calls that we make of a file change and of a wish for permissions.
pub const PATCH: &str = "Patch";
pub const PERMISSION_WISH: &str = "CodexPermissions";

/// What the name of each of its requests begins with.
pub const NAMES: &str = "codex-";

/// The name of a thread among all agents' sessions.
pub fn named(thread: &str) -> Option<SessionId> {
    SessionId::parse(&format!("{NAMES}{thread}")).ok()
}

/// The thread of such a name.
pub fn thread(session: &SessionId) -> Option<SessionId> {
    SessionId::parse(session.as_str().strip_prefix(NAMES)?).ok()
}

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

/// One request of Codex's as nod puts it to a person.
#[derive(Debug, Clone, PartialEq)]
pub struct CodexAsk {
    /// The same for the same request, also on another connection.
    pub name: String,
    pub thread: String,
    pub turn: Option<String>,
    pub item: Option<String>,
    pub cwd: Option<PathBuf>,
    pub tool: String,
    pub input: Value,
    pub leaves: Leaves,
    kind: CodexAskKind,
}

#[derive(Debug, Clone, PartialEq)]
enum CodexAskKind {
    Command,
    FileChange,
    Permissions(Value),
    /// The ids of the questions, in order.
    Questions(Vec<String>),
    Elicitation,
    /// A form of an MCP server's.
    Form,
}

/// What a person decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodexDecision {
    Once,
    Session,
    Prefix,
    Deny,
    Interrupt,
    Answers(Vec<String>),
}

/// What is to be made of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum AskReading {
    Ask(Box<CodexAsk>),
    /// Its content is in the item of this id, which has not been seen.
    NeedsItem(String),
    /// Only the terminal can answer it.
    TerminalOnly,
    /// It is not for a person, or of a kind nod does not know.
    Unknown,
}

/// Reads the request `id`. `changes` are those of the item it names, if known.
pub fn read(id: &Value, method: &str, params: &Value, changes: Option<&Value>) -> AskReading {
    let Some(thread) = text(params, "threadId") else {
        return AskReading::Unknown;
    };
    let made = match method {
        COMMAND => command(params),
        FILE_CHANGE => match (changes, text(params, "itemId")) {
            (Some(changes), Some(_)) => file_change(params, changes),
            (None, Some(item)) => return AskReading::NeedsItem(item),
            (_, None) => None,
        },
        PERMISSIONS => permissions(params),
        USER_INPUT => questions(params),
        ELICITATION => elicitation(params),
        _ => return AskReading::Unknown,
    };
    let Some((tool, input, leaves, kind)) = made else {
        return AskReading::TerminalOnly;
    };
    AskReading::Ask(Box::new(CodexAsk {
        name: name(id, method, params),
        turn: text(params, "turnId"),
        item: text(params, "itemId"),
        cwd: text(params, "cwd").map(PathBuf::from),
        thread,
        tool: tool.to_owned(),
        input,
        leaves,
        kind,
    }))
}

type MadeAsk = Option<(&'static str, Value, Leaves, CodexAskKind)>;

/// Whatever the request holds that nod does not know stands on the card, too.
fn command(params: &Value) -> MadeAsk {
    let command = text(params, "command")?;
    let mut input = Map::new();
    let script = script(&command);
    input.insert("command".to_owned(), json!(script));
    if let Some(reason) = text(params, "reason") {
        input.insert("description".to_owned(), json!(reason));
    }
    for (key, value) in params.as_object()? {
        let usual = match key.as_str() {
            "command" | "reason" | "cwd" => true,
            "kind" => value == "command",
            "environmentId" => value == "local",
            key => AROUND.contains(&key),
        };
        if !usual && !value.is_null() {
            input.insert(key.clone(), value.clone());
        }
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
    Some(("Bash", Value::Object(input), leaves, CodexAskKind::Command))
}

fn file_change(params: &Value, changes: &Value) -> MadeAsk {
    let changes = changes.as_array()?;
    let whole = changes.iter().all(|change| {
        change["path"].is_string() && change["diff"].is_string() && change["kind"].is_object()
    });
    if changes.is_empty() || !whole {
        return None;
    }
    let mut input = json!({"changes": changes});
    for key in ["reason", "grantRoot"] {
        if let Some(said) = text(params, key) {
            input[key] = json!(said);
        }
    }
    // A root would be granted along with a yes for the session.
    let leaves = Leaves {
        session: params["grantRoot"].is_null(),
        prefix: Vec::new(),
    };
    Some((PATCH, input, leaves, CodexAskKind::FileChange))
}

fn permissions(params: &Value) -> MadeAsk {
    let wanted = params.get("permissions")?;
    let mut input = json!({"permissions": wanted});
    if let Some(reason) = text(params, "reason") {
        input["reason"] = json!(reason);
    }
    let leaves = Leaves {
        session: true,
        prefix: Vec::new(),
    };
    let kind = CodexAskKind::Permissions(wanted.clone());
    Some((PERMISSION_WISH, input, leaves, kind))
}

/// Codex's questions as the call that the cards know. A secret,
/// and what they can't hold, is for the terminal alone.
fn questions(params: &Value) -> MadeAsk {
    let mut ids = Vec::new();
    let mut asked = Vec::new();
    for question in params["questions"].as_array()? {
        if question["isSecret"] == true {
            return None;
        }
        let options = match question["options"].as_array() {
            Some(options) => options
                .iter()
                .map(|option| {
                    let label = text(option, "label")?;
                    let about = text(option, "description").unwrap_or_default();
                    Some(json!({"label": label, "description": about}))
                })
                .collect::<Option<Vec<_>>>()?,
            None => return None,
        };
        ids.push(text(question, "id")?);
        asked.push(json!({
            "question": text(question, "question")?,
            "header": text(question, "header").unwrap_or_default(),
            "options": options,
            "multiSelect": false,
        }));
    }
    let input = json!({"questions": asked});
    questions::of(call::QUESTIONS, &input)?;
    Some((
        call::QUESTIONS,
        input,
        Leaves::default(),
        CodexAskKind::Questions(ids),
    ))
}

/// One without a form is a yes or no, as Codex asks before an MCP tool runs.
fn elicitation(params: &Value) -> MadeAsk {
    let fields = params["requestedSchema"]["properties"].as_object()?;
    if params["mode"] != "form" {
        return None;
    }
    if !fields.is_empty() {
        return form(params);
    }
    let mut input = Map::new();
    for (key, value) in params.as_object()? {
        let around = matches!(
            key.as_str(),
            "threadId" | "turnId" | "mode" | "requestedSchema"
        );
        if !around && !value.is_null() {
            input.insert(key.clone(), value.clone());
        }
    }
    let server = text(params, "serverName")?;
    input.insert("serverName".to_owned(), json!(server));
    Some((
        "mcp__codex",
        Value::Object(input),
        Leaves::default(),
        CodexAskKind::Elicitation,
    ))
}

/// A form as the call that the cards know; what they can't hold,
/// and what holds more than a form, is for the terminal.
fn form(params: &Value) -> MadeAsk {
    let known = |key: &str| {
        matches!(
            key,
            "threadId" | "turnId" | "mode" | "requestedSchema" | "serverName" | "message"
        )
    };
    let mut all = params.as_object()?.iter();
    if !all.all(|(key, value)| known(key) || value.is_null()) {
        return None;
    }
    let input = filled::input(&Form {
        server: Some(text(params, "serverName")?),
        message: text(params, "message").unwrap_or_default(),
        schema: params["requestedSchema"].clone(),
    });
    questions::of(filled::CALL, &input)?;
    Some((filled::CALL, input, Leaves::default(), CodexAskKind::Form))
}

impl CodexAsk {
    /// The result that Codex takes for this decision; `None` when this kind of
    /// request has no such answer.
    pub fn result(&self, decision: &CodexDecision) -> Option<Value> {
        use CodexAskKind::{Command, Elicitation, FileChange, Form, Permissions, Questions};
        use CodexDecision::{Answers, Deny, Interrupt, Once, Prefix, Session};
        let plain = |word: &str| Some(json!({"decision": word}));
        match (&self.kind, decision) {
            (Command | FileChange, Once) => plain("accept"),
            (Command | FileChange, Session) if self.leaves.session => plain("acceptForSession"),
            (Command, Prefix) if !self.leaves.prefix.is_empty() => {
                let prefix = json!({"execpolicy_amendment": self.leaves.prefix});
                Some(json!({"decision": {"acceptWithExecpolicyAmendment": prefix}}))
            }
            (Command | FileChange, Deny) => plain("decline"),
            (Command | FileChange, Interrupt) => plain("cancel"),
            (Permissions(wanted), Once) => Some(json!({"permissions": wanted, "scope": "turn"})),
            (Permissions(wanted), Session) => {
                Some(json!({"permissions": wanted, "scope": "session"}))
            }
            (Permissions(_), Deny | Interrupt) => Some(json!({"permissions": {}, "scope": "turn"})),
            (Questions(ids), Answers(answers)) if ids.len() == answers.len() => {
                let pairs = ids.iter().zip(answers);
                let answers: Map<String, Value> = pairs
                    .map(|(id, answer)| (id.clone(), json!({"answers": [answer]})))
                    .collect();
                Some(json!({"answers": answers}))
            }
            // As the terminal does when its dialog is left without an answer.
            (Questions(_), Deny | Interrupt) => Some(json!({"answers": {}})),
            (Form, Answers(answers)) => {
                let (_, asked) = call::read(filled::CALL, &self.input)?;
                let call::AnswerShape::Fields(fields) = asked else {
                    return None;
                };
                let content = filled::content(&fields, answers);
                Some(json!({"action": "accept", "content": content}))
            }
            (Elicitation, Once) => Some(json!({"action": "accept", "content": {}})),
            (Elicitation | Form, Deny) => Some(json!({"action": "decline", "content": null})),
            (Elicitation | Form, Interrupt) => Some(json!({"action": "cancel", "content": null})),
            _ => None,
        }
    }

    /// Whether its "no" does not stop the turn, and an interrupt must be asked
    /// for besides.
    pub fn interrupts_apart(&self) -> bool {
        matches!(
            self.kind,
            CodexAskKind::Permissions(_) | CodexAskKind::Questions(_)
        )
    }

    pub fn is_question(&self) -> bool {
        matches!(self.kind, CodexAskKind::Questions(_) | CodexAskKind::Form)
    }

    pub fn is_form(&self) -> bool {
        self.kind == CodexAskKind::Form
    }
}

/// What files were to become, by the item that a request names later: the
/// request itself does not tell.
#[derive(Debug, Default)]
pub struct FileChanges(VecDeque<(String, Value)>);

impl FileChanges {
    /// Only the newest are kept, and at most so many.
    pub fn remember(&mut self, item: &Value, most: usize) {
        let (Some(id), true) = (item["id"].as_str(), item["type"] == "fileChange") else {
            return;
        };
        self.0.retain(|(known, _)| known != id);
        if self.0.len() >= most {
            self.0.pop_front();
        }
        self.0.push_back((id.to_owned(), item["changes"].clone()));
    }

    pub fn of(&self, item: &Value) -> Option<&Value> {
        let mut all = self.0.iter();
        Some(&all.find(|(known, _)| item == known)?.1)
    }
}

/// A request is known again by all it says. An elicitation names no item, so
/// two may say the same: Codex's id for it counts besides.
fn name(id: &Value, method: &str, params: &Value) -> String {
    let id = if method == ELICITATION {
        id
    } else {
        &Value::Null
    };
    let digest = Digest::of(&json!([id, method, params])).hex();
    format!("{NAMES}{}", &digest[..40])
}

fn text(value: &Value, key: &str) -> Option<String> {
    let text = value.get(key)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// What a person reads of a command: its script, where a shell is called for it.
pub fn script(command: &str) -> String {
    unwrapped(command).unwrap_or_else(|| command.to_owned())
}

/// The script of `bash -lc 'script'`; `None` unless it is exactly that.
fn unwrapped(command: &str) -> Option<String> {
    let [program, flag, script] = <[String; 3]>::try_from(words(command)?).ok()?;
    let shell = program.rsplit('/').next()?;
    let known = matches!(shell, "bash" | "sh" | "zsh" | "dash");
    (known && matches!(flag.as_str(), "-lc" | "-c")).then_some(script)
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

#[cfg(test)]
mod tests;
