//! One thread that a session of a chat drives, without any I/O: words and
//! decisions go in, what is to be sent and told comes out.

mod items;
mod manner;
mod told;

use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;

use super::ask::{self, AskReading, CodexAsk, CodexDecision, FileChanges};
use super::wire::{self, CodexMessage, words};
use crate::talk::How;
use crate::text::secrets;
pub use manner::CodexManner;
pub use told::ChatTold;

/// Requests that may be open at once, and file changes remembered.
const MAX_OPEN: usize = 64;
const MAX_CHANGES: usize = 64;
const MAX_CALLS: usize = 256;
/// Orders that may wait until the thread is open.
const MAX_ORDERS: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatOpening {
    Fresh {
        cwd: String,
        manner: CodexManner,
    },
    /// Nobody else has it open.
    Resume {
        thread: String,
        cwd: String,
        manner: CodexManner,
    },
    /// It is open in a terminal, whose settings hold.
    Join {
        thread: String,
    },
}

#[derive(Debug)]
enum ChatCall {
    Initialize,
    Open,
    /// The manner it begins with; then the first words go out.
    Settle,
    Order(String),
    Start {
        tag: Option<String>,
    },
    Steer {
        tag: String,
        text: String,
    },
    Other,
}

#[derive(Debug)]
struct OpenChatAsk {
    id: Value,
    method: String,
    params: Value,
    ask: CodexAsk,
}

#[derive(Debug)]
pub struct CodexChat {
    opening: ChatOpening,
    manner: Option<CodexManner>,
    thread: Option<String>,
    model: Value,
    effort: Value,
    /// The turn that runs.
    turn: Option<String>,
    /// One was begun, and its name is not known yet.
    starting: bool,
    ready: bool,
    words: VecDeque<(String, String)>,
    /// Orders about the manner that came before the thread was open.
    orders: Vec<String>,
    calls: HashMap<i64, ChatCall>,
    made: i64,
    open: Vec<OpenChatAsk>,
    changes: FileChanges,
    plan: Option<String>,
    /// The plan's name, and how its turn ended.
    planned: Option<(String, How)>,
    out: Vec<ChatTold>,
}

impl CodexChat {
    pub fn new(opening: ChatOpening) -> Self {
        let manner = match &opening {
            ChatOpening::Fresh { manner, .. } | ChatOpening::Resume { manner, .. } => Some(*manner),
            ChatOpening::Join { .. } => None,
        };
        Self {
            opening,
            manner,
            thread: None,
            model: Value::Null,
            effort: Value::Null,
            turn: None,
            starting: false,
            ready: false,
            words: VecDeque::new(),
            orders: Vec::new(),
            calls: HashMap::new(),
            made: 0,
            open: Vec::new(),
            changes: FileChanges::default(),
            plan: None,
            planned: None,
            out: Vec::new(),
        }
    }

    /// The first thing to say.
    pub fn start(&mut self) -> Vec<ChatTold> {
        let mut params = wire::greeting();
        params["capabilities"]["experimentalApi"] = json!(true);
        self.call("initialize", &params, ChatCall::Initialize);
        self.told()
    }

    pub fn heard(&mut self, text: &str) -> Vec<ChatTold> {
        match wire::parse(text) {
            Some(CodexMessage::Request { id, method, params }) => self.asked(id, &method, &params),
            Some(CodexMessage::Notification { method, params }) => self.noted(&method, &params),
            Some(CodexMessage::Answer { id, result }) => {
                if let Some(call) = self.calls.remove(&id) {
                    self.answered(call, result);
                }
            }
            None => {}
        }
        self.told()
    }

    /// A person's words: into the running turn, or to begin one.
    pub fn say(&mut self, tag: String, text: String) -> Vec<ChatTold> {
        self.words.push_back((tag, text));
        self.speak();
        self.told()
    }

    /// A person's decision, or why nobody made one; a reason is for the model
    /// to read. Nothing is sent for a request that is no longer open, and none
    /// that has no such answer is allowed.
    pub fn decide(
        &mut self,
        name: &str,
        decision: &CodexDecision,
        reason: Option<&str>,
    ) -> Vec<ChatTold> {
        if self.planned.as_ref().is_some_and(|(plan, _)| plan == name) {
            self.refuse_plan(reason);
            return self.told();
        }
        let Some(at) = self.open.iter().position(|open| open.ask.name == name) else {
            return Vec::new();
        };
        let OpenChatAsk { id, ask, .. } = self.open.remove(at);
        let made = ask
            .result(decision)
            .map(|result| (decision.clone(), result));
        let (decision, result) = made.unwrap_or_else(|| {
            let deny = ask.result(&CodexDecision::Deny);
            (CodexDecision::Deny, deny.unwrap_or_else(|| json!({})))
        });
        self.out.push(ChatTold::Send(wire::reply(&id, &result)));
        if decision == CodexDecision::Interrupt && ask.interrupts_apart() {
            self.interrupt_turn(&ask.thread, ask.turn.as_deref());
        } else if decision == CodexDecision::Deny
            && let (Some(reason), Some(turn)) = (reason, &ask.turn)
        {
            let params = wire::steering(&ask.thread, turn, reason);
            self.call("turn/steer", &params, ChatCall::Other);
        }
        self.told()
    }

    /// A person likes the plan: it is carried out in that manner.
    pub fn carry_out(&mut self, name: &str, manner: CodexManner) -> Vec<ChatTold> {
        if self.planned.take_if(|(plan, _)| plan == name).is_some() {
            self.manner = Some(manner);
            self.settle(ChatCall::Other);
            // As Codex's own terminal says it.
            self.begin_turn(None, "Implement the plan.");
        }
        self.told()
    }

    pub fn order(&mut self, tag: String, manner: CodexManner) -> Vec<ChatTold> {
        self.manner = Some(manner);
        if self.ready {
            self.settle(ChatCall::Order(tag));
        } else if self.orders.len() < MAX_ORDERS {
            self.orders.push(tag);
        } else {
            let refused = Some("too many orders at once".to_owned());
            self.out.push(ChatTold::Ordered { tag, refused });
        }
        self.told()
    }

    pub fn interrupt(&mut self) -> Vec<ChatTold> {
        if let (Some(thread), Some(turn)) = (self.thread.clone(), self.turn.clone()) {
            self.interrupt_turn(&thread, Some(&turn));
        }
        self.told()
    }

    /// Whether a turn runs, or is about to.
    pub fn works(&self) -> bool {
        self.turn.is_some() || self.starting
    }

    fn told(&mut self) -> Vec<ChatTold> {
        std::mem::take(&mut self.out)
    }

    fn interrupt_turn(&mut self, thread: &str, turn: Option<&str>) {
        let params = json!({"threadId": thread, "turnId": turn});
        self.call("turn/interrupt", &params, ChatCall::Other);
    }

    fn call(&mut self, method: &str, params: &Value, call: ChatCall) {
        if self.calls.len() >= MAX_CALLS {
            return;
        }
        self.made += 1;
        self.calls.insert(self.made, call);
        let sent = wire::call(self.made, method, params);
        self.out.push(ChatTold::Send(sent));
    }

    fn answered(&mut self, call: ChatCall, result: Result<Value, String>) {
        match (call, result) {
            (ChatCall::Initialize, Ok(_)) => {
                self.out.push(ChatTold::Send(wire::notify("initialized")));
                self.open_thread();
            }
            (ChatCall::Open, Ok(result)) => self.opened(&result),
            (ChatCall::Open, Err(why)) if why.contains("no rollout found") => {
                self.out.push(ChatTold::Unknown);
            }
            (ChatCall::Initialize | ChatCall::Open, Err(why)) => {
                self.out.push(ChatTold::Failed(plain(&why)));
            }
            (ChatCall::Settle, Err(why)) if self.manner == Some(CodexManner::Plans) => {
                self.out.push(ChatTold::Failed(plain(&why)));
            }
            (ChatCall::Settle, result) => {
                let refused = result.err().map(|why| plain(&why));
                for tag in std::mem::take(&mut self.orders) {
                    let refused = refused.clone();
                    self.out.push(ChatTold::Ordered { tag, refused });
                }
                self.ready = true;
                self.speak();
            }
            (ChatCall::Order(tag), result) => {
                let refused = result.err().map(|why| plain(&why));
                self.out.push(ChatTold::Ordered { tag, refused });
            }
            (ChatCall::Start { tag }, Ok(result)) => {
                self.starting = false;
                self.turn = result["turn"]["id"].as_str().map(str::to_owned);
                self.out.extend(tag.map(ChatTold::Taken));
                self.speak();
            }
            (ChatCall::Start { tag }, Err(why)) => {
                self.starting = false;
                self.out.extend(tag.map(ChatTold::Taken));
                let (how, text) = (How::Failed, Some(plain(&why)));
                self.out.push(ChatTold::TurnOver { how, text });
            }
            (ChatCall::Steer { tag, .. }, Ok(_)) => self.out.push(ChatTold::Taken(tag)),
            // The turn ended a moment before: the words begin the next.
            (ChatCall::Steer { tag, text }, Err(_)) => {
                self.turn = None;
                self.words.push_front((tag, text));
                self.speak();
            }
            (ChatCall::Other, _) => {}
        }
    }

    fn open_thread(&mut self) {
        let (method, params) = match &self.opening {
            ChatOpening::Fresh { cwd, manner } => ("thread/start", manner.opening(cwd)),
            ChatOpening::Resume {
                thread,
                cwd,
                manner,
            } => {
                let mut params = manner.opening(cwd);
                params["threadId"] = json!(thread);
                params["excludeTurns"] = json!(true);
                ("thread/resume", params)
            }
            ChatOpening::Join { thread } => ("thread/resume", json!({"threadId": thread})),
        };
        self.call(method, &params, ChatCall::Open);
    }

    fn opened(&mut self, result: &Value) {
        let Some(thread) = result["thread"]["id"].as_str() else {
            let why = "no thread in its answer".to_owned();
            return self.out.push(ChatTold::Failed(why));
        };
        self.thread = Some(thread.to_owned());
        self.model = result["model"].clone();
        self.effort = result["reasoningEffort"].clone();
        self.out.push(ChatTold::Began {
            thread: thread.to_owned(),
            model: self.model.as_str().map(str::to_owned),
            path: result["thread"]["path"].as_str().map(PathBuf::from),
        });
        self.take_up(&result["thread"]);
        match self.manner {
            Some(manner)
                if manner == CodexManner::Plans || !self.is_fresh() || !self.orders.is_empty() =>
            {
                self.settle(ChatCall::Settle);
            }
            _ => {
                self.ready = true;
                self.speak();
            }
        }
    }

    fn is_fresh(&self) -> bool {
        matches!(self.opening, ChatOpening::Fresh { .. })
    }

    /// A terminal's turn may be under way, with changes that wait.
    fn take_up(&mut self, thread: &Value) {
        if thread["status"]["type"] != "active" {
            return;
        }
        let turns = thread["turns"].as_array();
        if let Some(turn) = turns.and_then(|turns| turns.last()) {
            self.turn = turn["id"].as_str().map(str::to_owned);
            for item in turn["items"].as_array().into_iter().flatten() {
                self.changes.remember(item, MAX_CHANGES);
            }
        }
    }

    fn settle(&mut self, call: ChatCall) {
        let (Some(thread), Some(manner)) = (&self.thread, self.manner) else {
            return;
        };
        let mut params = manner.settings();
        params["threadId"] = json!(thread);
        let mode = if manner == CodexManner::Plans {
            "plan"
        } else {
            "default"
        };
        let settings = json!({"model": self.model, "reasoning_effort": self.effort});
        params["collaborationMode"] = json!({"mode": mode, "settings": settings});
        self.call("thread/settings/update", &params, call);
    }

    /// Sends what waits, as far as it can be sent now.
    fn speak(&mut self) {
        while self.ready && !self.starting {
            let Some((tag, text)) = self.words.pop_front() else {
                return;
            };
            match (&self.thread, &self.turn) {
                (Some(thread), Some(turn)) => {
                    let params = wire::steering(thread, turn, &text);
                    self.call("turn/steer", &params, ChatCall::Steer { tag, text });
                }
                _ => self.begin_turn(Some(tag), &text),
            }
        }
    }

    fn begin_turn(&mut self, tag: Option<String>, text: &str) {
        let params = json!({"threadId": self.thread, "input": words(text)});
        self.starting = true;
        self.call("turn/start", &params, ChatCall::Start { tag });
    }

    fn asked(&mut self, id: Value, method: &str, params: &Value) {
        let beside = matches!(self.opening, ChatOpening::Join { .. });
        if beside && params["threadId"].as_str() != self.thread.as_deref() {
            return;
        }
        let changes = self.changes.of(&params["itemId"]);
        let reading = ask::read(&id, method, params, changes);
        let room = self.open.len() < MAX_OPEN;
        match reading {
            AskReading::Ask(ask) if room => {
                if self.open.iter().all(|open| open.ask.name != ask.name) {
                    self.open.push(OpenChatAsk {
                        id,
                        method: method.to_owned(),
                        params: params.clone(),
                        ask: (*ask).clone(),
                    });
                    self.out.push(ChatTold::Asked(ask));
                }
            }
            // The terminal can answer it.
            _ if beside => {}
            _ => {
                let why = "nod can't show this to the user, so nobody answered";
                self.out.push(ChatTold::Send(wire::refuse(&id, why)));
                // What is for a program is no news to a person.
                if method.contains("request") {
                    self.out.push(ChatTold::CannotAsk);
                }
            }
        }
    }

    /// A change that is asked about became another one, or nobody knows what.
    fn change_updated(&mut self, params: &Value, known: bool) {
        let Some(item) = params["itemId"].as_str() else {
            return;
        };
        if known && !self.changes.update(item, &params["changes"], MAX_CHANGES) {
            return;
        }
        let asked = |open: &OpenChatAsk| open.ask.item.as_deref() == Some(item);
        while let Some(at) = self.open.iter().position(asked) {
            let open = self.open.remove(at);
            self.out.push(ChatTold::Withdrawn(open.ask.name));
            if known {
                self.asked(open.id, &open.method, &open.params);
                return;
            }
            let why = "nod can't show this to the user, so nobody answered";
            self.out.push(ChatTold::Send(wire::refuse(&open.id, why)));
            self.out.push(ChatTold::CannotAsk);
        }
    }

    /// Words instead of a yes go into the next turn; a bare no ends this one.
    fn refuse_plan(&mut self, reason: Option<&str>) {
        let Some((_, how)) = self.planned.take() else {
            return;
        };
        match reason {
            Some(reason) => self.begin_turn(None, reason),
            None => self.out.push(ChatTold::TurnOver { how, text: None }),
        }
    }
}

/// Codex's own words about a failure may quote a key.
fn plain(why: &str) -> String {
    let mut text = why.to_owned();
    for secret in secrets::every(why).into_iter().rev() {
        text.replace_range(secret.range, "***");
    }
    text
}

#[cfg(test)]
mod tests;
