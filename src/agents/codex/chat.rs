//! One thread that a session of a chat drives, without any I/O: words and
//! decisions go in, what is to be sent and told comes out.

mod items;
mod manner;
mod told;

use serde_json::{Map, Value, json};
use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;

use super::ask::{self, Ask, Decision, Reading};
use super::wire::{self, Incoming};
use crate::talk::How;
use crate::text::secrets;
pub use manner::Manner;
pub use told::Told;

/// Requests that may be open at once, and file changes remembered.
const MAX_OPEN: usize = 64;
const MAX_CHANGES: usize = 64;
const MAX_CALLS: usize = 256;

/// What nobody here needs to hear.
const OPT_OUT: &[&str] = &[
    "account/rateLimits/updated",
    "configWarning",
    "item/agentMessage/delta",
    "item/commandExecution/outputDelta",
    "item/fileChange/outputDelta",
    "item/reasoning/summaryPartAdded",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/textDelta",
    "thread/tokenUsage/updated",
    "turn/diff/updated",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    Fresh {
        cwd: String,
        manner: Manner,
    },
    /// Nobody else has it open.
    Resume {
        thread: String,
        cwd: String,
        manner: Manner,
    },
    /// It is open in a terminal, whose settings hold.
    Join {
        thread: String,
    },
}

#[derive(Debug)]
enum Call {
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
struct Open {
    id: Value,
    ask: Ask,
}

#[derive(Debug)]
pub struct Chat {
    opening: Opening,
    manner: Option<Manner>,
    thread: Option<String>,
    model: Value,
    effort: Value,
    /// The turn that runs.
    turn: Option<String>,
    /// One was begun, and its name is not known yet.
    starting: bool,
    ready: bool,
    words: VecDeque<(String, String)>,
    calls: HashMap<i64, Call>,
    made: i64,
    open: Vec<Open>,
    changes: VecDeque<(String, Value)>,
    plan: Option<String>,
    /// The plan's name, and how its turn ended.
    planned: Option<(String, How)>,
    out: Vec<Told>,
}

impl Chat {
    pub fn new(opening: Opening) -> Self {
        let manner = match &opening {
            Opening::Fresh { manner, .. } | Opening::Resume { manner, .. } => Some(*manner),
            Opening::Join { .. } => None,
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
            calls: HashMap::new(),
            made: 0,
            open: Vec::new(),
            changes: VecDeque::new(),
            plan: None,
            planned: None,
            out: Vec::new(),
        }
    }

    /// The first thing to say.
    pub fn start(&mut self) -> Vec<Told> {
        let info = json!({"name": "nod", "title": "nod", "version": env!("CARGO_PKG_VERSION")});
        let capabilities = json!({"experimentalApi": true, "optOutNotificationMethods": OPT_OUT});
        let params = json!({"clientInfo": info, "capabilities": capabilities});
        self.call("initialize", &params, Call::Initialize);
        self.told()
    }

    pub fn heard(&mut self, text: &str) -> Vec<Told> {
        match wire::parse(text) {
            Some(Incoming::Request { id, method, params }) => self.asked(id, &method, &params),
            Some(Incoming::Notification { method, params }) => self.noted(&method, &params),
            Some(Incoming::Answer { id, result }) => {
                if let Some(call) = self.calls.remove(&id) {
                    self.answered(call, result);
                }
            }
            None => {}
        }
        self.told()
    }

    /// A person's words: into the running turn, or to begin one.
    pub fn say(&mut self, tag: String, text: String) -> Vec<Told> {
        self.words.push_back((tag, text));
        self.speak();
        self.told()
    }

    /// A person's decision, or why nobody made one; a reason is for the model
    /// to read. Nothing is sent for a request that is no longer open, and none
    /// that has no such answer is allowed.
    pub fn decide(&mut self, name: &str, decision: &Decision, reason: Option<&str>) -> Vec<Told> {
        if self.planned.as_ref().is_some_and(|(plan, _)| plan == name) {
            self.refuse_plan(reason);
            return self.told();
        }
        let Some(at) = self.open.iter().position(|open| open.ask.name == name) else {
            return Vec::new();
        };
        let Open { id, ask } = self.open.remove(at);
        let made = ask
            .result(decision)
            .map(|result| (decision.clone(), result));
        let (decision, result) = made.unwrap_or_else(|| {
            let deny = ask.result(&Decision::Deny);
            (Decision::Deny, deny.unwrap_or_else(|| json!({})))
        });
        self.out.push(Told::Send(wire::reply(&id, &result)));
        if decision == Decision::Interrupt && ask.interrupts_apart() {
            self.interrupt_turn(&ask.thread, ask.turn.as_deref());
        } else if decision == Decision::Deny
            && let (Some(reason), Some(turn)) = (reason, &ask.turn)
        {
            let params = json!({
                "threadId": ask.thread, "expectedTurnId": turn, "input": input(reason),
            });
            self.call("turn/steer", &params, Call::Other);
        }
        self.told()
    }

    /// A person likes the plan: it is carried out in that manner.
    pub fn carry_out(&mut self, name: &str, manner: Manner) -> Vec<Told> {
        if self.planned.take_if(|(plan, _)| plan == name).is_some() {
            self.manner = Some(manner);
            self.settle(Call::Other);
            // As Codex's own terminal says it.
            self.begin_turn(None, "Implement the plan.");
        }
        self.told()
    }

    pub fn order(&mut self, tag: String, manner: Manner) -> Vec<Told> {
        self.manner = Some(manner);
        if self.ready {
            self.settle(Call::Order(tag));
        } else {
            let refused = None;
            self.out.push(Told::Ordered { tag, refused });
        }
        self.told()
    }

    pub fn interrupt(&mut self) -> Vec<Told> {
        if let (Some(thread), Some(turn)) = (self.thread.clone(), self.turn.clone()) {
            self.interrupt_turn(&thread, Some(&turn));
        }
        self.told()
    }

    /// Whether a turn runs, or is about to.
    pub fn works(&self) -> bool {
        self.turn.is_some() || self.starting
    }

    fn told(&mut self) -> Vec<Told> {
        std::mem::take(&mut self.out)
    }

    fn interrupt_turn(&mut self, thread: &str, turn: Option<&str>) {
        let params = json!({"threadId": thread, "turnId": turn});
        self.call("turn/interrupt", &params, Call::Other);
    }

    fn call(&mut self, method: &str, params: &Value, call: Call) {
        if self.calls.len() >= MAX_CALLS {
            return;
        }
        self.made += 1;
        self.calls.insert(self.made, call);
        let sent = wire::call(self.made, method, params);
        self.out.push(Told::Send(sent));
    }

    fn answered(&mut self, call: Call, result: Result<Value, String>) {
        match (call, result) {
            (Call::Initialize, Ok(_)) => {
                self.out.push(Told::Send(wire::notify("initialized")));
                self.open_thread();
            }
            (Call::Open, Ok(result)) => self.opened(&result),
            (Call::Open, Err(why)) if why.contains("no rollout found") => {
                self.out.push(Told::Unknown);
            }
            (Call::Initialize | Call::Open, Err(why)) => {
                self.out.push(Told::Failed(plain(&why)));
            }
            (Call::Settle, Err(why)) if self.manner == Some(Manner::Plans) => {
                self.out.push(Told::Failed(plain(&why)));
            }
            (Call::Settle, _) => {
                self.ready = true;
                self.speak();
            }
            (Call::Order(tag), result) => {
                let refused = result.err().map(|why| plain(&why));
                self.out.push(Told::Ordered { tag, refused });
            }
            (Call::Start { tag }, Ok(result)) => {
                self.starting = false;
                self.turn = result["turn"]["id"].as_str().map(str::to_owned);
                self.out.extend(tag.map(Told::Taken));
                self.speak();
            }
            (Call::Start { tag }, Err(why)) => {
                self.starting = false;
                self.out.extend(tag.map(Told::Taken));
                let (how, text) = (How::Failed, Some(plain(&why)));
                self.out.push(Told::TurnOver { how, text });
            }
            (Call::Steer { tag, .. }, Ok(_)) => self.out.push(Told::Taken(tag)),
            // The turn ended a moment before: the words begin the next.
            (Call::Steer { tag, text }, Err(_)) => {
                self.turn = None;
                self.words.push_front((tag, text));
                self.speak();
            }
            (Call::Other, _) => {}
        }
    }

    fn open_thread(&mut self) {
        let (method, params) = match &self.opening {
            Opening::Fresh { cwd, manner } => {
                let mut params = manner.policy();
                params.insert("cwd".to_owned(), json!(cwd));
                ("thread/start", params)
            }
            Opening::Resume {
                thread,
                cwd,
                manner,
            } => {
                let mut params = manner.policy();
                params.insert("cwd".to_owned(), json!(cwd));
                params.insert("threadId".to_owned(), json!(thread));
                params.insert("excludeTurns".to_owned(), json!(true));
                ("thread/resume", params)
            }
            Opening::Join { thread } => {
                let mut params = Map::new();
                params.insert("threadId".to_owned(), json!(thread));
                ("thread/resume", params)
            }
        };
        self.call(method, &Value::Object(params), Call::Open);
    }

    fn opened(&mut self, result: &Value) {
        let Some(thread) = result["thread"]["id"].as_str() else {
            let why = "no thread in its answer".to_owned();
            return self.out.push(Told::Failed(why));
        };
        self.thread = Some(thread.to_owned());
        self.model = result["model"].clone();
        self.effort = result["reasoningEffort"].clone();
        self.out.push(Told::Began {
            thread: thread.to_owned(),
            model: self.model.as_str().map(str::to_owned),
            path: result["thread"]["path"].as_str().map(PathBuf::from),
        });
        self.take_up(&result["thread"]);
        match self.manner {
            Some(manner) if manner == Manner::Plans || !self.is_fresh() => {
                self.settle(Call::Settle);
            }
            _ => {
                self.ready = true;
                self.speak();
            }
        }
    }

    fn is_fresh(&self) -> bool {
        matches!(self.opening, Opening::Fresh { .. })
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
                self.remember_change(item);
            }
        }
    }

    fn settle(&mut self, call: Call) {
        let (Some(thread), Some(manner)) = (&self.thread, self.manner) else {
            return;
        };
        let mut params = manner.policy();
        params.remove("sandbox");
        params.insert("threadId".to_owned(), json!(thread));
        params.insert("sandboxPolicy".to_owned(), manner.sandbox());
        let mode = if manner == Manner::Plans {
            "plan"
        } else {
            "default"
        };
        let settings = json!({"model": self.model, "reasoning_effort": self.effort});
        params.insert(
            "collaborationMode".to_owned(),
            json!({"mode": mode, "settings": settings}),
        );
        self.call("thread/settings/update", &Value::Object(params), call);
    }

    /// Sends what waits, as far as it can be sent now.
    fn speak(&mut self) {
        while self.ready && !self.starting {
            let Some((tag, text)) = self.words.pop_front() else {
                return;
            };
            match (&self.thread, &self.turn) {
                (Some(thread), Some(turn)) => {
                    let params = json!({
                        "threadId": thread, "expectedTurnId": turn, "input": input(&text),
                    });
                    self.call("turn/steer", &params, Call::Steer { tag, text });
                }
                _ => self.begin_turn(Some(tag), &text),
            }
        }
    }

    fn begin_turn(&mut self, tag: Option<String>, text: &str) {
        let params = json!({"threadId": self.thread, "input": input(text)});
        self.starting = true;
        self.call("turn/start", &params, Call::Start { tag });
    }

    fn asked(&mut self, id: Value, method: &str, params: &Value) {
        let beside = matches!(self.opening, Opening::Join { .. });
        if beside && params["threadId"].as_str() != self.thread.as_deref() {
            return;
        }
        let item = params["itemId"].as_str();
        let mut changes = self.changes.iter();
        let changes = changes.find(|(known, _)| Some(known.as_str()) == item);
        let reading = ask::read(&id, method, params, changes.map(|(_, changes)| changes));
        let room = self.open.len() < MAX_OPEN;
        match reading {
            Reading::Ask(ask) if room => {
                if self.open.iter().all(|open| open.ask.name != ask.name) {
                    self.open.push(Open {
                        id,
                        ask: (*ask).clone(),
                    });
                    self.out.push(Told::Asked(ask));
                }
            }
            // The terminal can answer it.
            _ if beside => {}
            _ => {
                let why = "nod can't show this to the user, so nobody answered";
                self.out.push(Told::Send(wire::refuse(&id, why)));
                // What is for a program is no news to a person.
                if method.contains("request") {
                    self.out.push(Told::CannotAsk);
                }
            }
        }
    }

    /// Words instead of a yes go into the next turn; a bare no ends this one.
    fn refuse_plan(&mut self, reason: Option<&str>) {
        let Some((_, how)) = self.planned.take() else {
            return;
        };
        match reason {
            Some(reason) => self.begin_turn(None, reason),
            None => self.out.push(Told::TurnOver { how, text: None }),
        }
    }
}

fn input(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
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
