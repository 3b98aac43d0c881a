//! What a running task is doing, in the few words a card has room for, and how
//! often a card may say so.

use crate::clock::Millis;
use crate::talk::{AgentSaid, ModelRetry};
use crate::text::clean;

/// The least time between two updates of a card.
const EVERY: Millis = 1_500;
/// Elapsed time alone is news once in a while: a card that stands still looks
/// like a task that does.
const HEARTBEAT: Millis = 30_000;
/// Tools told apart by name; the rest counts as `…`.
const MAX_TOOLS: usize = 16;
const MAX_WORDS: usize = 200;

#[derive(Debug, Clone, PartialEq)]
pub struct ProgressView {
    pub step: Option<ProgressStep>,
    /// The agent's latest words, shortened to one line.
    pub words: Option<String>,
    /// In order of first use, with how often each was used.
    pub tools: Vec<(String, u32)>,
    pub failed_tools: u32,
    /// Of the whole task, over all its turns.
    pub elapsed: Millis,
    /// The model's API is being tried again.
    pub retry: Option<ModelRetry>,
    /// Of the whole session, known at the end of a turn.
    pub cost_usd: Option<f64>,
    pub model: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgressStep {
    pub tool: String,
    pub summary: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    started: Millis,
    shown: Option<Millis>,
    changed: bool,
    view: ProgressView,
}

impl Progress {
    /// Of a task that began then.
    pub fn new(now: Millis) -> Self {
        Self {
            started: now,
            shown: None,
            changed: true,
            view: ProgressView {
                step: None,
                words: None,
                tools: Vec::new(),
                failed_tools: 0,
                elapsed: 0,
                retry: None,
                cost_usd: None,
                model: None,
            },
        }
    }

    pub fn began(&self) -> Millis {
        self.started
    }

    pub fn see(&mut self, said: &AgentSaid) {
        match said {
            AgentSaid::Retry(retry) => {
                self.view.retry = Some(*retry);
                self.changed = true;
            }
            AgentSaid::Message(_)
            | AgentSaid::CallEnds(_)
            | AgentSaid::TurnEnd(_)
            | AgentSaid::Request(_) => {
                self.changed |= self.view.retry.take().is_some();
            }
            _ => {}
        }
        match said {
            AgentSaid::Began(began) => {
                self.changed |= self.view.model != began.model;
                self.view.model.clone_from(&began.model);
            }
            AgentSaid::Message(message) => {
                if !message.subagent && !message.text.trim().is_empty() {
                    self.view.words = Some(clean(&message.text, MAX_WORDS));
                    self.changed = true;
                }
                for call in &message.calls {
                    self.count(&call.tool);
                    self.view.step = Some(ProgressStep {
                        tool: call.tool.clone(),
                        summary: call.summary.clone(),
                    });
                    self.changed = true;
                }
            }
            AgentSaid::CallEnds(ends) => {
                let failed = ends.iter().filter(|end| end.failed).count();
                let failed = u32::try_from(failed).unwrap_or(u32::MAX);
                self.view.failed_tools = self.view.failed_tools.saturating_add(failed);
                self.changed |= failed > 0;
            }
            AgentSaid::TurnEnd(end) => {
                self.view.cost_usd = end.cost_usd.or(self.view.cost_usd);
                self.view.step = None;
                self.changed = true;
            }
            AgentSaid::Mode(_)
            | AgentSaid::Retry(_)
            | AgentSaid::Background(_)
            | AgentSaid::Request(_)
            | AgentSaid::Withdrawn { .. }
            | AgentSaid::Reply(_)
            | AgentSaid::Text { .. }
            | AgentSaid::Other { .. } => {}
        }
    }

    fn count(&mut self, tool: &str) {
        let tools = &mut self.view.tools;
        let name = if tools.len() < MAX_TOOLS || tools.iter().any(|(name, _)| name == tool) {
            tool
        } else {
            "…"
        };
        match tools.iter_mut().find(|(known, _)| known == name) {
            Some((_, times)) => *times = times.saturating_add(1),
            None => tools.push((name.to_owned(), 1)),
        }
    }

    /// When there will be something to show.
    pub fn due_at(&self) -> Millis {
        match self.shown {
            None => self.started,
            Some(shown) if self.changed => shown + EVERY,
            Some(shown) => shown + HEARTBEAT,
        }
    }

    /// What to show, if it is time. Counts as shown.
    pub fn due(&mut self, now: Millis) -> Option<ProgressView> {
        if now < self.due_at() {
            return None;
        }
        self.shown = Some(now);
        self.changed = false;
        Some(self.view(now))
    }

    pub fn view(&self, now: Millis) -> ProgressView {
        ProgressView {
            elapsed: (now - self.started).max(0),
            ..self.view.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claude::stream::parse;
    use serde_json::{Value, json};

    fn line(value: &Value) -> AgentSaid {
        parse(value.to_string().as_bytes()).expect("a line")
    }

    fn tool(name: &str) -> AgentSaid {
        line(
            &json!({"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":name,"input":{"command":"ls"}}]}}),
        )
    }

    #[test]
    fn a_turn_is_reduced_to_step_tools_words_and_cost() {
        let mut progress = Progress::new(1_000);
        progress.see(&line(
            &json!({"type":"system","subtype":"init","model":"opus"}),
        ));
        progress.see(&line(&json!({"type":"assistant","message":{"content":[{"type":"text","text":"First\nI look"}]}})));
        progress.see(&tool("Bash"));
        progress.see(&tool("Read"));
        progress.see(&tool("Bash"));
        progress.see(&line(&json!({"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","is_error":true}]}})));
        let view = progress.view(3_500);
        assert_eq!(view.elapsed, 2_500);
        assert_eq!(view.words.as_deref(), Some("First I look"));
        assert_eq!(view.tools, [("Bash".to_owned(), 2), ("Read".to_owned(), 1)]);
        assert_eq!(view.failed_tools, 1);
        let step = view.step.expect("a step");
        assert_eq!((step.tool.as_str(), step.summary.as_str()), ("Bash", "ls"));
        progress.see(&line(&json!({"type":"result","total_cost_usd":0.5})));
        let view = progress.view(4_000);
        assert_eq!((view.step, view.cost_usd), (None, Some(0.5)));
    }

    #[test]
    fn updates_keep_their_distance_and_stillness_is_shown_rarely() {
        let mut progress = Progress::new(0);
        assert!(progress.due(0).is_some(), "the first at once");
        progress.see(&tool("Bash"));
        assert!(progress.due(1_499).is_none());
        assert_eq!(progress.due_at(), 1_500);
        assert!(progress.due(1_500).is_some());
        assert!(progress.due(20_000).is_none(), "nothing changed");
        assert_eq!(progress.due_at(), 31_500);
        assert!(progress.due(31_500).is_some(), "but time passed");
    }

    #[test]
    fn a_retry_is_shown_until_the_model_answers() {
        let retry = json!({"type":"system","subtype":"api_retry","attempt":3,"error_status":500});
        let mut progress = Progress::new(0);
        progress.due(0);
        progress.see(&line(&retry));
        assert_eq!(progress.due_at(), 1_500, "it is news");
        let view = progress.due(1_500).expect("a view");
        assert_eq!(view.retry.map(|retry| retry.attempt), Some(3));
        progress.see(&tool("Bash"));
        assert_eq!(progress.view(2_000).retry, None);
    }

    #[test]
    fn a_subagents_words_are_not_the_agents() {
        let mut progress = Progress::new(0);
        progress.see(&line(&json!({"type":"assistant","parent_tool_use_id":"t","message":{"content":[{"type":"text","text":"inner"}]}})));
        assert_eq!(progress.view(0).words, None);
    }

    #[test]
    fn many_tools_are_counted_together() {
        let mut progress = Progress::new(0);
        for i in 0..1_000 {
            progress.see(&tool(&format!("mcp__{i}")));
        }
        let tools = progress.view(0).tools;
        assert_eq!(tools.len(), MAX_TOOLS + 1);
        assert_eq!(tools.last(), Some(&("…".to_owned(), 984)));
    }
}
