//! What Codex asks a person, in our own words, and a decision in Codex's words
//! again. What can't be shown whole is not asked here but named: then only the
//! terminal can answer it.

mod command;
mod permissions;

use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::path::PathBuf;

use crate::approvals::request::{Digest, weight};
use crate::ids::SessionId;
use crate::rules::Leaves;
use crate::sessions::questions::{self, call, form as filled};
use crate::talk::Form;
pub use command::script;

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

/// One request of Codex's as nod puts it to a person.
#[derive(Debug, Clone, PartialEq)]
pub struct CodexAsk {
    /// The same for the same request, also on another connection.
    pub name: String,
    pub thread: String,
    pub turn: Option<String>,
    pub item: Option<String>,
    pub cwd: Option<PathBuf>,
    /// The subagent's name, where one asks.
    pub agent: Option<String>,
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
        COMMAND => command::read(params),
        FILE_CHANGE => match (changes, text(params, "itemId")) {
            (Some(changes), Some(_)) => file_change(params, changes),
            (None, Some(item)) => return AskReading::NeedsItem(item),
            (_, None) => None,
        },
        PERMISSIONS => permissions::read(params),
        USER_INPUT => questions(params),
        ELICITATION => elicitation(params),
        _ => return AskReading::Unknown,
    };
    let Some((tool, input, leaves, kind)) = made else {
        return AskReading::TerminalOnly;
    };
    AskReading::Ask(Box::new(CodexAsk {
        name: name(id, method, params, changes),
        turn: text(params, "turnId"),
        item: text(params, "itemId"),
        cwd: text(params, "cwd").map(PathBuf::from),
        agent: None,
        thread,
        tool,
        input,
        leaves,
        kind,
    }))
}

type MadeAsk = Option<(String, Value, Leaves, CodexAskKind)>;

fn file_change(params: &Value, changes: &Value) -> MadeAsk {
    let changes = changes.as_array()?;
    let whole = changes.iter().all(|change| {
        change["path"].is_string() && change["diff"].is_string() && change["kind"].is_object()
    });
    if changes.is_empty() || !whole {
        return None;
    }
    // With a root, a yes would grant more than the change that is shown.
    if !params["grantRoot"].is_null() {
        return None;
    }
    let mut input = json!({"changes": changes});
    if let Some(reason) = text(params, "reason") {
        input["reason"] = json!(reason);
    }
    let leaves = Leaves {
        session: true,
        prefix: Vec::new(),
    };
    Some((PATCH.to_owned(), input, leaves, CodexAskKind::FileChange))
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
        call::QUESTIONS.to_owned(),
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
    let (tool, input) = tool_call(params, &server).unwrap_or_else(|| {
        input.insert("serverName".to_owned(), json!(server));
        ("mcp__codex".to_owned(), Value::Object(input))
    });
    Some((tool, input, Leaves::default(), CodexAskKind::Elicitation))
}

/// The call of an MCP tool that Codex asks about, as the cards know one.
fn tool_call(params: &Value, server: &str) -> Option<(String, Value)> {
    let meta = params["_meta"].as_object()?;
    if meta.get("codex_approval_kind")? != "mcp_tool_call" {
        return None;
    }
    let known = |key: &str| {
        matches!(
            key,
            "codex_approval_kind"
                | "persist"
                | "tool_name"
                | "tool_title"
                | "tool_description"
                | "tool_params"
                | "tool_params_display"
        )
    };
    let mut input = json!({"arguments": meta.get("tool_params").unwrap_or(&Value::Null)});
    for (key, said) in [("description", "tool_description"), ("title", "tool_title")] {
        if let Some(said) = meta.get(said).filter(|said| !said.is_null()) {
            input[key] = said.clone();
        }
    }
    if let Some(message) = text(params, "message") {
        input["message"] = json!(message);
    }
    for (key, value) in meta.iter().filter(|(key, _)| !known(key)) {
        input["_meta"][key] = value.clone();
    }
    let tool = meta.get("tool_name")?.as_str()?;
    Some((format!("mcp__{server}__{tool}"), input))
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
    let tool = filled::CALL.to_owned();
    Some((tool, input, Leaves::default(), CodexAskKind::Form))
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
            CodexAskKind::Permissions(_)
                | CodexAskKind::Questions(_)
                | CodexAskKind::Elicitation
                | CodexAskKind::Form
        )
    }

    /// Whether a yes lets something run that ends by itself.
    pub fn runs(&self) -> bool {
        matches!(
            self.kind,
            CodexAskKind::Command | CodexAskKind::FileChange | CodexAskKind::Elicitation
        )
    }

    pub fn is_question(&self) -> bool {
        matches!(self.kind, CodexAskKind::Questions(_) | CodexAskKind::Form)
    }

    pub fn is_form(&self) -> bool {
        self.kind == CodexAskKind::Form
    }
}

/// Bytes of one item's changes that a card could still show, and of all that
/// are remembered of one thread.
const MAX_CHANGE: usize = 2 << 20;
const MAX_CHANGES: usize = 4 << 20;

/// What files were to become, by the item that a request names later: the
/// request itself does not tell.
#[derive(Debug, Default)]
pub struct FileChanges(VecDeque<(String, Value)>);

impl FileChanges {
    /// Only the newest are kept, at most so many, and no more bytes than cards
    /// could show. What is too large is known by its id alone.
    pub fn remember(&mut self, item: &Value, most: usize) {
        if let (Some(id), true) = (item["id"].as_str(), item["type"] == "fileChange") {
            self.update(id, &item["changes"], most);
        }
    }

    /// The item's changes are these now; says whether that is news.
    pub fn update(&mut self, id: &str, changes: &Value, most: usize) -> bool {
        let changes = if weight(changes) > MAX_CHANGE {
            Value::Null
        } else {
            changes.clone()
        };
        let known = self.0.iter().position(|(known, _)| known == id);
        let before = known.and_then(|at| self.0.remove(at));
        let is_news = before.is_some_and(|(_, before)| before != changes);
        self.0.push_back((id.to_owned(), changes));
        while self.0.len() > most || self.bytes() > MAX_CHANGES {
            self.0.pop_front();
        }
        is_news
    }

    pub fn bytes(&self) -> usize {
        self.0.iter().map(|(_, changes)| weight(changes)).sum()
    }

    pub fn of(&self, item: &Value) -> Option<&Value> {
        let mut all = self.0.iter();
        Some(&all.find(|(known, _)| item == known)?.1)
    }
}

/// A request is known again by all it says, and a file change by the newest of
/// its changes. An elicitation names no item, so two may say the same: Codex's
/// id for it counts besides.
fn name(id: &Value, method: &str, params: &Value, changes: Option<&Value>) -> String {
    let id = if method == ELICITATION {
        id
    } else {
        &Value::Null
    };
    let said = match changes.filter(|_| method == FILE_CHANGE) {
        Some(changes) => json!([id, method, params, changes]),
        None => json!([id, method, params]),
    };
    let digest = Digest::of(&said).hex();
    format!("{NAMES}{}", &digest[..40])
}

fn text(value: &Value, key: &str) -> Option<String> {
    let text = value.get(key)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests;
