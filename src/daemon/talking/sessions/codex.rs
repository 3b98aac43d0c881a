//! A session of a chat with Codex: its messages in the words that sessions
//! know, and their orders in its own.

use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

use crate::agents::codex::ask::{CodexAsk, CodexDecision};
use crate::agents::codex::chat::{ChatOpening, ChatTold, CodexChat, CodexManner};
use crate::agents::codex::pipe::{self, PipeHeard};
use crate::child::process::{Child, Grace, Launch};
use crate::clock::until;
use crate::daemon::asking::codex::Hosted;
use crate::ids::SessionId;
use crate::sessions::questions;
use crate::talk::{
    AgentEvent, AgentMessage, AgentReply, AgentRequest, AgentSaid, AgentWants, Began, CallEnd,
    Exit, Filled, Form, MAX_SUMMARY, Mode, ModelRetry, Say, ShownCall, TextStage, ToolRequest,
    ToolVerdict, TurnEnd,
};
use crate::text::clean;

/// So long a turn may take to hear that it is interrupted.
const INTERRUPT: Duration = Duration::from_secs(5);
/// Stands for what no card can hold.
const UNSHOWN: &str = "codex-unshown";

pub(super) struct CodexDriver {
    wire: Child<PipeHeard>,
    chat: CodexChat,
    unsent: VecDeque<String>,
    ready: VecDeque<AgentEvent>,
    /// What it asked, by name, until it is answered.
    asked: HashMap<String, CodexAsk>,
    /// What a person decided on them.
    decided: HashMap<String, (CodexDecision, Option<String>)>,
    /// Why it ends, where its end does not say.
    exit: Option<Exit>,
    closing: Option<Instant>,
    /// While the thread is open in a terminal as well.
    hosted: Option<Hosted>,
    thread: Option<String>,
    /// Where Codex writes the thread down.
    path: Option<PathBuf>,
}

impl CodexDriver {
    /// By a child of its own.
    pub(super) fn child(launch: Launch, opening: ChatOpening) -> Self {
        Self::over(pipe::child(launch), opening, None)
    }

    /// Beside a terminal, by the daemon of that home.
    pub(super) fn beside(home: &Path, thread: String, hosted: Hosted) -> Self {
        let wire = pipe::daemon(home.to_owned());
        Self::over(wire, ChatOpening::Join { thread }, Some(hosted))
    }

    pub(super) fn over(
        wire: Child<PipeHeard>,
        opening: ChatOpening,
        hosted: Option<Hosted>,
    ) -> Self {
        let mut driver = Self {
            wire,
            chat: CodexChat::new(opening),
            unsent: VecDeque::new(),
            ready: VecDeque::new(),
            asked: HashMap::new(),
            decided: HashMap::new(),
            exit: None,
            closing: None,
            hosted,
            thread: None,
            path: None,
        };
        let first = driver.chat.start();
        driver.carry_out(first);
        driver
    }

    /// Whether a terminal has the thread open as well.
    pub(super) fn is_beside(&self) -> bool {
        self.hosted.is_some()
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    pub(super) fn asked(&self, name: &str) -> Option<&CodexAsk> {
        self.asked.get(name)
    }

    pub(super) fn decided(&mut self, name: &str, decision: CodexDecision, reason: Option<String>) {
        self.decided.insert(name.to_owned(), (decision, reason));
    }

    pub(super) async fn next(&mut self) -> AgentEvent {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return event;
            }
            let closes = self.closing;
            let heard = tokio::select! {
                heard = self.wire.events.recv() => match heard {
                    Some(heard) => Some(heard),
                    None => std::future::pending().await,
                },
                room = self.wire.say.reserve(), if !self.unsent.is_empty() => {
                    match (room, self.unsent.pop_front()) {
                        (Ok(room), Some(line)) => room.send(line),
                        // It reads no more; its end will tell why.
                        _ => self.unsent.clear(),
                    }
                    None
                }
                () = until(closes), if closes.is_some() => {
                    self.closing = None;
                    self.wire.stop.cancel();
                    None
                }
            };
            if let Some(heard) = heard {
                self.heard(heard);
            }
            if self.closing.is_some() && !self.chat.works() && self.unsent.is_empty() {
                self.close();
            }
        }
    }

    fn close(&mut self) {
        self.closing = None;
        self.wire.stop.cancel();
    }

    pub(super) fn stop(&mut self) {
        let acts = self.chat.interrupt();
        self.carry_out(acts);
        // A turn that has no name yet can't be interrupted.
        let patience = if self.unsent.is_empty() {
            Duration::ZERO
        } else {
            INTERRUPT
        };
        self.closing = Some(Instant::now() + patience);
    }

    pub(super) fn tell(&mut self, say: Say) {
        let acts = match say {
            Say::Text { uuid, text } => self.chat.say(uuid, text),
            Say::Verdict { request, verdict } => self.verdict(&request, verdict),
            Say::Interrupt { .. } => self.chat.interrupt(),
            Say::SetMode { request, mode } => self.chat.order(request, manner(mode)),
            Say::Filled { request, answer } => {
                let verdict = match answer {
                    Filled::Accept(content) => ToolVerdict::Allow {
                        input: Value::Object(content),
                        updates: Vec::new(),
                    },
                    Filled::Decline | Filled::Cancel => ToolVerdict::deny(""),
                };
                self.verdict(&request, verdict)
            }
            Say::Unsupported { .. } => Vec::new(),
        };
        self.carry_out(acts);
    }

    /// Only what a person decided lets anything pass.
    fn verdict(&mut self, name: &str, verdict: ToolVerdict) -> Vec<ChatTold> {
        let is_plan = self.asked.remove(name).is_none();
        let decided = self.decided.remove(name);
        match (verdict, decided) {
            (ToolVerdict::Allow { .. }, Some((CodexDecision::Answers(words), _))) if is_plan => {
                let mode = questions::mode_after(&words).unwrap_or_default();
                let acts = self.chat.carry_out(name, manner(mode));
                // What was answered elsewhere a moment ago is no plan.
                if !acts.is_empty() {
                    let mode = AgentSaid::Mode(mode);
                    self.ready.push_back(AgentEvent::Said(mode));
                }
                acts
            }
            (ToolVerdict::Allow { .. }, Some((decision, reason))) => {
                self.chat.decide(name, &decision, reason.as_deref())
            }
            (ToolVerdict::Allow { .. }, None) => self.chat.decide(name, &CodexDecision::Deny, None),
            (ToolVerdict::Deny { .. }, Some((decision, reason))) if is_no(&decision) => {
                self.chat.decide(name, &decision, reason.as_deref())
            }
            (ToolVerdict::Deny { message, interrupt }, _) => {
                let decision = if interrupt {
                    CodexDecision::Interrupt
                } else {
                    CodexDecision::Deny
                };
                let message = Some(message.as_str());
                let message = message.filter(|message| !is_plan && !message.is_empty());
                self.chat.decide(name, &decision, message)
            }
        }
    }

    fn heard(&mut self, heard: PipeHeard) {
        match heard {
            PipeHeard::Text(text) => {
                let acts = self.chat.heard(&text);
                self.carry_out(acts);
            }
            PipeHeard::TooLong(bytes) => {
                let request = None;
                self.ready.push_back(AgentEvent::TooLong { bytes, request });
            }
            PipeHeard::Ended(ended) => {
                self.closing = None;
                let exit = self.exit.take().unwrap_or_else(|| ended.into());
                self.ready.push_back(AgentEvent::Ended(exit));
            }
        }
    }

    fn end(&mut self, exit: Exit) {
        self.exit = Some(exit);
        self.close();
    }

    fn carry_out(&mut self, acts: Vec<ChatTold>) {
        for act in acts {
            let line = match act {
                ChatTold::Send(text) => {
                    let end = if self.hosted.is_some() { "" } else { "\n" };
                    self.unsent.push_back(text + end);
                    continue;
                }
                ChatTold::Unknown => {
                    self.end(Exit::UnknownSession);
                    continue;
                }
                ChatTold::Failed(problem) => {
                    let problem = clean(&problem, MAX_SUMMARY);
                    self.end(Exit::NotStarted { problem });
                    continue;
                }
                ChatTold::Began {
                    thread,
                    model,
                    path,
                } => {
                    self.path = path;
                    let session = SessionId::parse(&thread).ok();
                    self.thread = Some(thread);
                    AgentSaid::Began(Began {
                        session,
                        model,
                        ..Began::default()
                    })
                }
                ChatTold::Asked(ask) => {
                    let line = asks(&ask, self.thread.as_deref());
                    self.asked.insert(ask.name.clone(), *ask);
                    line
                }
                ChatTold::Withdrawn(request) => {
                    self.asked.remove(&request);
                    AgentSaid::Withdrawn { request }
                }
                other => match line(other) {
                    Some(line) => line,
                    None => continue,
                },
            };
            self.ready.push_back(AgentEvent::Said(line));
        }
    }
}

/// What needs no memory.
fn line(told: ChatTold) -> Option<AgentSaid> {
    Some(match told {
        ChatTold::Taken(uuid) => AgentSaid::Text {
            uuid,
            stage: TextStage::Started,
        },
        ChatTold::Ordered { tag, refused } => AgentSaid::Reply(AgentReply {
            request: tag,
            error: refused,
        }),
        ChatTold::Words(text) => AgentSaid::Message(AgentMessage {
            text,
            ..AgentMessage::default()
        }),
        ChatTold::Tool { id, name, summary } => AgentSaid::Message(AgentMessage {
            calls: vec![ShownCall {
                id,
                tool: name,
                summary: clean(&summary, MAX_SUMMARY),
            }],
            ..AgentMessage::default()
        }),
        ChatTold::ToolFailed(id) => AgentSaid::CallEnds(vec![CallEnd { id, failed: true }]),
        ChatTold::Retry { attempt, most } => AgentSaid::Retry(ModelRetry {
            attempt,
            most,
            status: None,
        }),
        // It has its refusal; the session tells of it.
        ChatTold::CannotAsk => AgentSaid::Request(AgentRequest {
            id: UNSHOWN.to_owned(),
            what: AgentWants::Form(Box::new(Form {
                server: None,
                message: String::new(),
                schema: Value::Null,
            })),
        }),
        ChatTold::Planned { name, plan } => AgentSaid::Request(AgentRequest {
            id: name,
            what: AgentWants::Tool(Box::new(call(
                questions::call::PLAN,
                json!({"plan": plan}),
                None,
            ))),
        }),
        ChatTold::TurnOver { how, text } => AgentSaid::TurnEnd(Box::new(TurnEnd {
            how,
            text,
            turns: 1,
            ..TurnEnd::default()
        })),
        ChatTold::Send(_)
        | ChatTold::Unknown
        | ChatTold::Failed(_)
        | ChatTold::Began { .. }
        | ChatTold::Asked(_)
        | ChatTold::Withdrawn(_) => return None,
    })
}

fn asks(ask: &CodexAsk, own: Option<&str>) -> AgentSaid {
    // A subagent has a thread of its own.
    let agent = Some(ask.thread.clone()).filter(|thread| own != Some(thread.as_str()));
    let form = ask.is_form().then(|| questions::form::read(&ask.input));
    AgentSaid::Request(AgentRequest {
        id: ask.name.clone(),
        what: match form.flatten() {
            Some(form) => AgentWants::Form(Box::new(form)),
            None => AgentWants::Tool(Box::new(call(&ask.tool, ask.input.clone(), agent))),
        },
    })
}

fn call(tool: &str, input: Value, agent: Option<String>) -> ToolRequest {
    ToolRequest {
        tool: tool.to_owned(),
        input,
        agent,
        wants_a_person: false,
    }
}

pub(super) fn manner(mode: Mode) -> CodexManner {
    match mode {
        Mode::Default => CodexManner::Reads,
        Mode::AcceptEdits => CodexManner::Edits,
        Mode::Plan => CodexManner::Plans,
    }
}

fn is_no(decision: &CodexDecision) -> bool {
    matches!(decision, CodexDecision::Deny | CodexDecision::Interrupt)
}

/// A child of this session's own.
pub(super) fn launch(
    program: &Path,
    project: &Path,
    environment: Vec<(std::ffi::OsString, std::ffi::OsString)>,
) -> Launch {
    Launch {
        program: program.to_owned(),
        arguments: vec!["app-server".to_owned()],
        project: project.to_owned(),
        environment,
        grace: Grace::default(),
        guard: std::env::current_exe().ok(),
    }
}

#[cfg(test)]
mod tests;
