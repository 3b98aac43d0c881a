//! A client's view of Codex's daemon, without any I/O: messages go in, what is
//! to be sent and told comes out. It watches the status of every thread, joins
//! one while it waits for a person or works, and leaves it when it is idle.

mod threads;

use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};

use super::act::{CodexAct, Doing, TurnOver};
use super::ask::{self, AskReading, CodexAsk, CodexDecision};
use super::wire::{self, CodexMessage, words};
use crate::approvals::request::weight;
use threads::FollowedThread;

/// More open requests or calls than this are not followed.
const MAX_OPEN: usize = 256;
const MAX_CALLS: usize = 1_024;
/// Bytes of one open request that a card could still show, and of all of them.
const MAX_ASKED: usize = 2 << 20;
const MAX_ALL_ASKED: usize = 16 << 20;
/// Bytes of all file changes that are remembered.
const MAX_REMEMBERED: usize = 16 << 20;
/// File changes remembered of one thread.
const MAX_ITEMS: usize = 16;
/// Answers whose outcome is still watched for.
const MAX_ANSWERED: usize = 256;

#[derive(Debug)]
enum FollowCall {
    Initialize,
    Settings,
    List,
    Read,
    Join(String),
    /// The whole of a thread's running turn, for the item of a request.
    Items(String),
    LastTurn(String),
    LastItems(TurnOver),
    Leave,
    Steer,
    Say {
        tag: u64,
        thread: String,
        text: String,
        joined: bool,
    },
}

#[derive(Debug)]
struct OpenRequest {
    id: Value,
    thread: String,
    method: String,
    params: Value,
    /// Once it was put to a person.
    ask: Option<CodexAsk>,
    answered: bool,
    looked_for_item: bool,
    /// It is the terminal's alone.
    left: bool,
}

/// A call whose request was answered, until its item is completed.
#[derive(Debug)]
struct AnsweredCall {
    item: String,
    thread: String,
    name: String,
}

#[derive(Debug, Default)]
pub struct Follower {
    calls: HashMap<i64, FollowCall>,
    made: i64,
    threads: HashMap<String, FollowedThread>,
    open: Vec<OpenRequest>,
    /// Calls whose request was answered, oldest first.
    answered: VecDeque<AnsweredCall>,
    acts: Vec<CodexAct>,
}

impl Follower {
    pub fn new() -> Self {
        Self::default()
    }

    /// The first thing to say.
    pub fn start(&mut self) -> Vec<CodexAct> {
        self.call("initialize", &wire::greeting(), FollowCall::Initialize);
        std::mem::take(&mut self.acts)
    }

    pub fn heard(&mut self, text: &str) -> Vec<CodexAct> {
        match wire::parse(text) {
            Some(CodexMessage::Request { id, method, params }) => self.asked(id, method, params),
            Some(CodexMessage::Notification { method, params }) => self.noted(&method, &params),
            Some(CodexMessage::Answer { id, result }) => {
                if let Some(call) = self.calls.remove(&id) {
                    self.answered_call(call, result);
                }
            }
            None => {}
        }
        std::mem::take(&mut self.acts)
    }

    /// Sends a person's decision. Nothing is sent for a request that is no
    /// longer open, or that has no such answer.
    pub fn decide(
        &mut self,
        name: &str,
        decision: &CodexDecision,
        reason: Option<&str>,
    ) -> Option<Vec<CodexAct>> {
        let is_it = |open: &&mut OpenRequest| open.ask.as_ref().is_some_and(|ask| ask.name == name);
        let open = self
            .open
            .iter_mut()
            .find(is_it)
            .filter(|open| !open.answered)?;
        let ask = open.ask.as_ref()?;
        let result = ask.result(decision)?;
        open.answered = true;
        let (thread, turn) = (ask.thread.clone(), ask.turn.clone());
        let apart = *decision == CodexDecision::Interrupt && ask.interrupts_apart();
        let sent = wire::reply(&open.id, &result);
        self.acts.push(CodexAct::Send(sent));
        if let Some(turn) = turn {
            if apart {
                let params = json!({"threadId": thread, "turnId": turn});
                self.call("turn/interrupt", &params, FollowCall::Steer);
            } else if let (Some(reason), CodexDecision::Deny) = (reason, decision) {
                let params = wire::steering(&thread, &turn, reason);
                self.call("turn/steer", &params, FollowCall::Steer);
            }
        }
        Some(std::mem::take(&mut self.acts))
    }

    /// Speaks to a thread: into its running turn, or to begin one.
    pub fn say(&mut self, tag: u64, thread: &str, text: &str) -> Vec<CodexAct> {
        self.say_to(tag, thread.to_owned(), text.to_owned(), false);
        std::mem::take(&mut self.acts)
    }

    fn say_to(&mut self, tag: u64, thread: String, text: String, joined: bool) {
        let params = json!({"threadId": thread, "input": words(&text)});
        let call = FollowCall::Say {
            tag,
            thread,
            text,
            joined,
        };
        self.call("turn/start", &params, call);
    }

    fn call(&mut self, method: &str, params: &Value, call: FollowCall) {
        if self.calls.len() >= MAX_CALLS {
            return;
        }
        self.made += 1;
        self.calls.insert(self.made, call);
        self.acts
            .push(CodexAct::Send(wire::call(self.made, method, params)));
    }

    fn look_at(&mut self, thread: &str) {
        let params = json!({"threadId": thread});
        self.call("thread/read", &params, FollowCall::Read);
    }

    fn answered_call(&mut self, call: FollowCall, result: Result<Value, String>) {
        match (call, result) {
            (FollowCall::Initialize, Ok(result)) => {
                let agent = result["userAgent"].as_str().unwrap_or_default();
                self.acts.push(CodexAct::Ready {
                    agent: agent.to_owned(),
                });
                self.acts.push(CodexAct::Send(wire::notify("initialized")));
                self.call("thread/loaded/list", &json!({}), FollowCall::List);
                self.call("config/read", &json!({}), FollowCall::Settings);
            }
            (FollowCall::Initialize | FollowCall::List, Err(why)) => {
                self.acts.push(CodexAct::Strange(why));
            }
            (FollowCall::Settings, Ok(result)) => {
                let word = |key: &str| result["config"][key].as_str().map(str::to_owned);
                self.acts.push(CodexAct::Asks {
                    reviewer: word("approvals_reviewer"),
                    policy: word("approval_policy"),
                });
            }
            (FollowCall::List, Ok(result)) if !result["data"].is_array() => {
                let why = "no list of threads".to_owned();
                self.acts.push(CodexAct::Strange(why));
            }
            (FollowCall::List, Ok(result)) => {
                for thread in result["data"].as_array().into_iter().flatten() {
                    if let Some(thread) = thread.as_str() {
                        self.look_at(thread);
                    }
                }
            }
            (FollowCall::Read | FollowCall::Join(_), Ok(result)) => self.met(&result["thread"]),
            (FollowCall::Join(thread), Err(_)) => {
                if let Some(known) = self.threads.get_mut(&thread) {
                    known.stands.joined = false;
                }
            }
            (FollowCall::Items(thread), result) => {
                if let Ok(result) = &result {
                    let turns = result["thread"]["turns"].as_array();
                    for turn in turns.into_iter().flatten() {
                        for item in turn["items"].as_array().into_iter().flatten() {
                            self.item(&thread, item);
                        }
                    }
                }
                self.look_again(&thread);
            }
            (FollowCall::LastTurn(thread), Ok(result)) => {
                self.turn_over(&thread, &result["data"][0]);
            }
            (FollowCall::LastItems(over), result) => {
                self.turn_ended(over, &result.unwrap_or_default()["data"]);
            }
            (
                FollowCall::Say {
                    tag,
                    thread,
                    text,
                    joined: false,
                },
                Err(_),
            ) => {
                // A thread that nobody has open is not loaded.
                let params = json!({"threadId": thread, "excludeTurns": true});
                self.call("thread/resume", &params, FollowCall::Join(thread.clone()));
                self.know(&thread).stands.joined = true;
                self.say_to(tag, thread, text, true);
            }
            (FollowCall::Say { tag, .. }, result) => {
                let refused = result.err();
                self.acts.push(CodexAct::Said { tag, refused });
            }
            (
                FollowCall::Settings
                | FollowCall::Read
                | FollowCall::LastTurn(_)
                | FollowCall::Leave
                | FollowCall::Steer,
                _,
            ) => {}
        }
    }

    fn noted(&mut self, method: &str, params: &Value) {
        let thread = params["threadId"].as_str().unwrap_or_default();
        match method {
            "thread/started" => self.met(&params["thread"]),
            "thread/status/changed" => {
                if self.threads.contains_key(thread) {
                    self.status(thread, &params["status"]);
                } else {
                    self.look_at(thread);
                }
            }
            "thread/closed" | "thread/deleted" => {
                self.does(thread, Doing::Closed);
                self.threads.remove(thread);
                self.drop_thread(thread);
            }
            "item/started" => self.item(thread, &params["item"]),
            "item/completed" => self.item_done(&params["item"]),
            "item/fileChange/patchUpdated" => self.patch_updated(thread, params),
            "turn/completed" if params["turn"]["status"] == "interrupted" => self.cut_off(thread),
            "item/fileChange/outputDelta" => {}
            _ if method.starts_with("item/fileChange/") => self.changed_somehow(params),
            "serverRequest/resolved" => self.resolved(thread, &params["requestId"]),
            _ => {}
        }
    }

    /// A thread whose turn is over waits for nobody.
    fn drop_thread(&mut self, thread: &str) {
        let (gone, open) = std::mem::take(&mut self.open)
            .into_iter()
            .partition(|open| open.thread == thread);
        self.open = open;
        for open in gone {
            self.gone(open);
        }
    }

    fn gone(&mut self, open: OpenRequest) {
        let Some(ask) = open.ask else { return };
        if let Some(item) = ask.item {
            if self.answered.len() >= MAX_ANSWERED {
                self.answered.pop_front();
            }
            self.answered.push_back(AnsweredCall {
                item,
                thread: open.thread,
                name: ask.name.clone(),
            });
        }
        self.acts.push(if open.answered {
            CodexAct::Taken(ask.name)
        } else {
            CodexAct::Resolved(ask.name)
        });
    }

    fn resolved(&mut self, thread: &str, id: &Value) {
        let is_it = |open: &OpenRequest| open.id == *id && open.thread == thread;
        if let Some(place) = self.open.iter().position(is_it) {
            let open = self.open.remove(place);
            self.gone(open);
        }
    }

    fn item(&mut self, thread: &str, item: &Value) {
        if let Some(thread) = self.threads.get_mut(thread) {
            thread.changes.remember(item, MAX_ITEMS);
        }
        self.forget_changes();
    }

    /// Many threads with large changes: what is forgotten is looked up again
    /// once it is asked about.
    fn forget_changes(&mut self) {
        let bytes = self.threads.values().map(|it| it.changes.bytes());
        if bytes.sum::<usize>() > MAX_REMEMBERED {
            let largest = self
                .threads
                .values_mut()
                .max_by_key(|it| it.changes.bytes());
            if let Some(thread) = largest {
                thread.changes = ask::FileChanges::default();
            }
        }
    }

    /// A patch grew: what was shown of it is not what would be written.
    fn patch_updated(&mut self, thread: &str, params: &Value) {
        let (Some(known), Some(item)) = (self.threads.get_mut(thread), params["itemId"].as_str())
        else {
            return;
        };
        if known.changes.update(item, &params["changes"], MAX_ITEMS) {
            self.ask_anew(item, true);
        }
    }

    /// Something nod does not know happened to a change that is asked about:
    /// only the terminal can tell what it is now.
    fn changed_somehow(&mut self, params: &Value) {
        if let Some(item) = params["itemId"].as_str() {
            self.ask_anew(item, false);
        }
    }

    /// Takes back what was asked about this item and puts it again, if that can
    /// be shown.
    fn ask_anew(&mut self, item: &str, shown: bool) {
        for at in 0..self.open.len() {
            let open = &mut self.open[at];
            if open.answered || open.params["itemId"] != item {
                continue;
            }
            open.left |= !shown;
            let Some(ask) = open.ask.take() else { continue };
            self.acts.push(CodexAct::Changed(ask.name));
            self.put(at);
        }
    }

    /// The turn was interrupted: a call that has not ended may never have
    /// begun.
    pub(super) fn cut_off(&mut self, thread: &str) {
        let (cut, rest) = std::mem::take(&mut self.answered)
            .into_iter()
            .partition::<Vec<_>, _>(|call| call.thread == thread);
        self.answered = rest.into();
        let cut = cut.into_iter().map(|call| CodexAct::CutOff(call.name));
        self.acts.extend(cut);
    }

    /// Only a call that was let through has a length or an exit code.
    fn item_done(&mut self, item: &Value) {
        let Some(id) = item["id"].as_str() else {
            return;
        };
        let Some(place) = self.answered.iter().position(|call| call.item == id) else {
            return;
        };
        if let Some(call) = self.answered.remove(place) {
            self.acts.push(CodexAct::Became {
                name: call.name,
                declined: item["status"] == "declined",
                took: item["durationMs"].as_i64(),
            });
        }
    }

    fn asked(&mut self, id: Value, method: String, params: Value) {
        let thread = params["threadId"].as_str().unwrap_or_default().to_owned();
        let known = self
            .open
            .iter()
            .any(|open| open.id == id && open.thread == thread);
        if known || self.open.len() >= MAX_OPEN {
            return;
        }
        let asked: usize = self.open.iter().map(|open| weight(&open.params)).sum();
        let bytes = weight(&params);
        let left = bytes > MAX_ASKED || asked + bytes > MAX_ALL_ASKED;
        let params = if left { Value::Null } else { params };
        self.open.push(OpenRequest {
            id,
            thread,
            method,
            params,
            ask: None,
            answered: false,
            looked_for_item: false,
            left,
        });
        self.put(self.open.len() - 1);
    }

    /// The items of the thread's turn are known now, or can't be.
    fn look_again(&mut self, thread: &str) {
        for at in 0..self.open.len() {
            if self.open[at].thread == thread && self.open[at].ask.is_none() {
                self.put(at);
            }
        }
    }

    fn put(&mut self, at: usize) {
        let open = &mut self.open[at];
        let thread = self.threads.get_mut(&open.thread);
        let item = &open.params["itemId"];
        let changes = thread.as_ref().and_then(|thread| thread.changes.of(item));
        let reading = if open.left {
            AskReading::Unknown
        } else {
            ask::read(&open.id, &open.method, &open.params, changes)
        };
        let known = match reading {
            AskReading::Ask(mut ask) => {
                let cwd = thread.as_ref().and_then(|thread| thread.cwd.clone());
                ask.cwd = ask.cwd.or_else(|| cwd.map(Into::into));
                ask.agent = thread.and_then(|thread| thread.agent.clone());
                open.ask = Some((*ask).clone());
                self.acts.push(CodexAct::Asked(ask));
                return;
            }
            AskReading::NeedsItem(_) if !open.looked_for_item => {
                open.looked_for_item = true;
                let thread = open.thread.clone();
                let params = json!({"threadId": thread});
                self.call("thread/resume", &params, FollowCall::Items(thread));
                return;
            }
            AskReading::NeedsItem(_) | AskReading::TerminalOnly => true,
            AskReading::Unknown => false,
        };
        let Some(thread) = thread else { return };
        if !std::mem::replace(&mut thread.told_terminal_only, true) {
            let cwd = thread.cwd.clone();
            self.acts.push(CodexAct::TerminalOnly {
                thread: open.thread.clone(),
                cwd,
                known,
            });
        }
    }
}

#[cfg(test)]
mod tests;
