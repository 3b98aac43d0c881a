//! What happens in the thread: its turns and the steps of each, in the words a
//! progress card has room for.

use serde_json::Value;

use super::{ChatTold, CodexChat, CodexManner, plain};
use crate::agents::codex::ask::{NAMES, PATCH, script};
use crate::talk::How;

impl CodexChat {
    pub(super) fn noted(&mut self, method: &str, params: &Value) {
        let thread = params["threadId"].as_str();
        if method == "serverRequest/resolved" {
            return self.resolved(thread.unwrap_or_default(), &params["requestId"]);
        }
        let item = &params["item"];
        if method == "item/started" {
            self.changes.remember(item, super::MAX_CHANGES);
        }
        match method {
            "item/fileChange/outputDelta" => {}
            "item/fileChange/patchUpdated" => self.change_updated(params, true),
            _ if method.starts_with("item/fileChange/") => self.change_updated(params, false),
            _ => {}
        }
        // A subagent has a thread of its own.
        if thread.is_none() || thread != self.thread.as_deref() {
            return;
        }
        match method {
            "turn/started" => {
                self.starting = false;
                self.turn = params["turn"]["id"].as_str().map(str::to_owned);
                self.speak();
            }
            "item/started" => self.step(item),
            "item/completed" => self.done(item),
            "turn/plan/updated" => self.plan_step(&params["plan"]),
            "error" if params["willRetry"] == true => {
                let (attempt, most) = tries(params["error"]["message"].as_str());
                self.out.push(ChatTold::Retry { attempt, most });
            }
            "turn/completed" => self.turn_over(&params["turn"]),
            _ => {}
        }
    }

    /// Somebody else has answered.
    fn resolved(&mut self, thread: &str, id: &Value) {
        let mut open = self.open.iter();
        let at = open.position(|open| open.id == *id && open.ask.thread == thread);
        if let Some(at) = at {
            let open = self.open.remove(at);
            self.out.push(ChatTold::Withdrawn(open.ask.name));
        }
    }

    fn step(&mut self, item: &Value) {
        let text = |key: &str| item[key].as_str().unwrap_or_default().to_owned();
        let (name, summary) = match kind(item) {
            "commandExecution" => ("Bash".to_owned(), script(&text("command"))),
            "fileChange" => {
                let mut changes = item["changes"].as_array().into_iter().flatten();
                let path = changes.next().and_then(|change| change["path"].as_str());
                let path = path.unwrap_or_default();
                let others = changes.count();
                let more = if others > 0 {
                    format!(" +{others}")
                } else {
                    String::new()
                };
                (PATCH.to_owned(), format!("{path}{more}"))
            }
            "mcpToolCall" => (
                format!("mcp__{}__{}", text("server"), text("tool")),
                String::new(),
            ),
            "webSearch" => ("WebSearch".to_owned(), text("query")),
            "collabAgentToolCall" => ("Agent".to_owned(), text("prompt")),
            _ => return,
        };
        let id = text("id");
        self.out.push(ChatTold::Tool { id, name, summary });
    }

    fn done(&mut self, item: &Value) {
        match kind(item) {
            "agentMessage" => {
                let said = item["text"].as_str().unwrap_or_default();
                self.out.push(ChatTold::Words(said.to_owned()));
            }
            "plan" => self.plan = item["text"].as_str().map(str::to_owned),
            "commandExecution" | "fileChange" | "mcpToolCall" => {
                let code = item["exitCode"].as_i64();
                let failed = item["status"] == "failed" || code.is_some_and(|code| code != 0);
                if let (true, Some(id)) = (failed, item["id"].as_str()) {
                    self.out.push(ChatTold::ToolFailed(id.to_owned()));
                }
            }
            _ => {}
        }
    }

    /// The list of steps that Codex keeps: how far it is, and with what.
    fn plan_step(&mut self, plan: &Value) {
        let Some(steps) = plan.as_array() else { return };
        let is = |step: &&Value, word: &str| step["status"] == word;
        let done = steps.iter().filter(|step| is(step, "completed")).count();
        let now = steps.iter().find(|step| is(step, "inProgress"));
        let now = now.and_then(|step| step["step"].as_str());
        let summary = format!("{done}/{} {}", steps.len(), now.unwrap_or_default());
        self.out.push(ChatTold::Tool {
            id: String::new(),
            name: "Plan".to_owned(),
            summary,
        });
    }

    fn turn_over(&mut self, turn: &Value) {
        let id = turn["id"].as_str();
        // One that began after it goes on.
        if self.turn.is_some() && self.turn.as_deref() != id {
            return;
        }
        self.turn = None;
        self.starting = false;
        let thread = self.thread.clone();
        self.open
            .retain(|open| Some(&open.ask.thread) != thread.as_ref());
        let how = match turn["status"].as_str() {
            Some("completed") => How::Done,
            Some("interrupted") => How::Interrupted,
            _ => How::Failed,
        };
        let plan = self.plan.take().filter(|plan| !plan.trim().is_empty());
        let decides = how == How::Done && self.manner == Some(CodexManner::Plans);
        match plan {
            Some(plan) if decides => {
                let name = format!("{NAMES}plan-{}", id.unwrap_or_default());
                self.planned = Some((name.clone(), how));
                self.out.push(ChatTold::Planned { name, plan });
            }
            plan => {
                let error = turn["error"]["message"].as_str().map(plain);
                let text = error.or(plan);
                self.out.push(ChatTold::TurnOver { how, text });
                self.speak();
            }
        }
    }
}

fn kind(item: &Value) -> &str {
    item["type"].as_str().unwrap_or_default()
}

/// The numbers of `Reconnecting... 2/5`.
fn tries(message: Option<&str>) -> (u32, Option<u32>) {
    let message = message.unwrap_or_default();
    let found = message.split_whitespace().find_map(|word| {
        let (attempt, most) = word.split_once('/')?;
        Some((attempt.parse().ok()?, most.parse().ok()?))
    });
    found.map_or((1, None), |(attempt, most)| (attempt, Some(most)))
}
