//! The threads of a daemon as its follower knows them: what each does, when to
//! join one and when to leave it, and that a turn is over.

use serde_json::{Value, json};

use super::{FollowCall, Follower};
use crate::agents::codex::act::{self, CodexAct, Doing, TurnOver};
use crate::agents::codex::ask::FileChanges;

/// More threads than this are not followed.
pub(super) const MAX_THREADS: usize = 512;
/// A plan is among these, whatever is said after it.
const LAST_ITEMS: usize = 4;

#[derive(Debug, Default)]
pub(super) struct FollowedThread {
    pub(super) cwd: Option<String>,
    /// Made by Codex for an errand of its own.
    pub(super) errand: bool,
    /// What a subagent is called, where this is one's thread.
    pub(super) agent: Option<String>,
    pub(super) stands: Stands,
    pub(super) changes: FileChanges,
    pub(super) told_terminal_only: bool,
    /// What was told of it last.
    told: Option<Doing>,
}

#[derive(Debug, Default)]
pub(super) struct Stands {
    pub(super) active: bool,
    /// We hear all that happens in it.
    pub(super) joined: bool,
}

/// The name of the subagent whose thread this is: its nickname and its role.
pub(in crate::agents::codex) fn subagent(thread: &Value) -> Option<String> {
    thread["parentThreadId"].as_str()?;
    let said = [&thread["agentNickname"], &thread["agentRole"]];
    let said = said.into_iter().filter_map(Value::as_str);
    let said: Vec<_> = said.filter(|word| !word.is_empty()).collect();
    Some(match said[..] {
        [] => "subagent".to_owned(),
        _ => said.join(" · "),
    })
}

impl Follower {
    pub(super) fn know(&mut self, thread: &str) -> &mut FollowedThread {
        if self.threads.len() >= MAX_THREADS && !self.threads.contains_key(thread) {
            let idle = self
                .threads
                .iter()
                .find(|(_, it)| !it.stands.active && !it.stands.joined);
            if let Some(idle) = idle.map(|(id, _)| id.clone()) {
                self.threads.remove(&idle);
            }
        }
        self.threads.entry(thread.to_owned()).or_default()
    }

    pub(super) fn met(&mut self, thread: &Value) {
        let Some(id) = thread["id"].as_str() else {
            return;
        };
        let errand = thread["ephemeral"] == true || thread["threadSource"] == "thread_title";
        let known = self.know(id);
        known.errand = errand;
        known.agent = subagent(thread);
        known.cwd = thread["cwd"].as_str().map(str::to_owned);
        self.status(id, &thread["status"]);
    }

    pub(super) fn status(&mut self, id: &str, status: &Value) {
        let Some(thread) = self.threads.get_mut(id) else {
            return;
        };
        let was_active = thread.stands.active;
        match status["type"].as_str() {
            Some("active") => {
                thread.stands.active = true;
                let flags = status["activeFlags"].as_array();
                let waits = flags.is_some_and(|flags| !flags.is_empty());
                let joins = waits && !thread.stands.joined;
                self.does(id, if waits { Doing::Waits } else { Doing::Works });
                if joins && let Some(thread) = self.threads.get_mut(id) {
                    thread.stands.joined = true;
                    let params = json!({"threadId": id, "excludeTurns": true});
                    self.call("thread/resume", &params, FollowCall::Join(id.to_owned()));
                }
            }
            Some(over @ ("idle" | "systemError" | "notLoaded")) => {
                thread.stands.active = false;
                thread.changes = FileChanges::default();
                thread.told_terminal_only = false;
                let errand = thread.errand;
                let joined = std::mem::take(&mut thread.stands.joined);
                self.drop_thread(id);
                self.does(
                    id,
                    if over == "notLoaded" {
                        Doing::Closed
                    } else {
                        Doing::Idle
                    },
                );
                if was_active && !errand {
                    let params = json!({"threadId": id, "limit": 1});
                    self.call(
                        "thread/turns/list",
                        &params,
                        FollowCall::LastTurn(id.to_owned()),
                    );
                }
                if joined {
                    self.call(
                        "thread/unsubscribe",
                        &json!({"threadId": id}),
                        FollowCall::Leave,
                    );
                }
            }
            _ => {}
        }
    }

    /// Tells what a thread does, where that is news.
    pub(super) fn does(&mut self, id: &str, doing: Doing) {
        let Some(thread) = self.threads.get_mut(id) else {
            return;
        };
        if thread.errand || thread.told.replace(doing) == Some(doing) {
            return;
        }
        self.acts.push(CodexAct::Thread(act::ScreenThread {
            id: id.to_owned(),
            cwd: thread.cwd.clone(),
            doing,
        }));
    }

    /// A turn's summary has no plan in it: its last items are asked for.
    pub(super) fn turn_over(&mut self, id: &str, turn: &Value) {
        let Some(cwd) = self.threads.get(id).map(|thread| thread.cwd.clone()) else {
            return;
        };
        let items = turn["items"].as_array();
        let mut messages = items.into_iter().flatten().rev();
        let last = messages.find(|item| item["type"] == "agentMessage");
        let failed = match turn["status"].as_str() {
            Some("completed") => false,
            Some("failed") => true,
            // Somebody at the keyboard stopped it, and knows.
            Some("interrupted") => return self.cut_off(id),
            _ => return,
        };
        let error = turn["error"]["message"].as_str();
        let said = last.and_then(|item| item["text"].as_str());
        let over = TurnOver {
            thread: id.to_owned(),
            cwd: cwd.unwrap_or_default(),
            took: turn["durationMs"].as_i64().unwrap_or_default(),
            failed,
            last: error.or(said).map(str::to_owned),
            plan: None,
        };
        match turn["id"].as_str() {
            Some(turn) if !failed => {
                let params = json!({"threadId": id, "turnId": turn,
                    "limit": LAST_ITEMS, "sortDirection": "desc"});
                self.call("thread/items/list", &params, FollowCall::LastItems(over));
            }
            _ => self.acts.push(CodexAct::TurnOver(over)),
        }
    }

    /// The last items of a turn that is over, the last first.
    pub(super) fn turn_ended(&mut self, mut over: TurnOver, items: &Value) {
        let mut items = items.as_array().into_iter().flatten();
        let plan = items.find(|entry| entry["item"]["type"] == "plan");
        let plan = plan.and_then(|entry| entry["item"]["text"].as_str());
        over.plan = plan.filter(|plan| !plan.is_empty()).map(str::to_owned);
        self.acts.push(CodexAct::TurnOver(over));
    }
}
