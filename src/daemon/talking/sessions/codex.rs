//! A session of a chat with Codex: its messages in the words that sessions
//! know, and their orders in its own.

use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

use crate::agents::codex::ask::{Ask, Decision};
use crate::agents::codex::chat::{Chat, Manner, Opening, Told};
use crate::agents::codex::pipe::{self, Heard};
use crate::child::process::{Child, Grace, Launch};
use crate::daemon::asking::codex::Hosted;
use crate::ids::SessionId;
use crate::sessions::questions;
use crate::talk::{
    Began, Call, CallEnd, Event, Exit, Filled, Form, MAX_SUMMARY, Message, Mode, Reply, Request,
    Retry, Said, Say, Stage, ToolRequest, TurnEnd, Verdict, Wanted,
};
use crate::text::clean;

/// So long a turn may take to hear that it is interrupted.
const INTERRUPT: Duration = Duration::from_secs(5);
/// Stands for what no card can hold.
const UNSHOWN: &str = "codex-unshown";

pub(super) struct Driver {
    wire: Child<Heard>,
    chat: Chat,
    unsent: VecDeque<String>,
    ready: VecDeque<Event>,
    /// What it asked, by name, until it is answered.
    asked: HashMap<String, Ask>,
    /// What a person decided on them.
    decided: HashMap<String, (Decision, Option<String>)>,
    /// Why it ends, where its end does not say.
    exit: Option<Exit>,
    closing: Option<Instant>,
    /// While the thread is open in a terminal as well.
    hosted: Option<Hosted>,
    thread: Option<String>,
    /// Where Codex writes the thread down.
    path: Option<PathBuf>,
}

impl Driver {
    /// By a child of its own.
    pub(super) fn child(launch: Launch, opening: Opening) -> Self {
        Self::over(pipe::child(launch), opening, None)
    }

    /// Beside a terminal, by the daemon of that home.
    pub(super) fn beside(home: &Path, thread: String, hosted: Hosted) -> Self {
        let wire = pipe::daemon(home.to_owned());
        Self::over(wire, Opening::Join { thread }, Some(hosted))
    }

    fn over(wire: Child<Heard>, opening: Opening, hosted: Option<Hosted>) -> Self {
        let mut driver = Self {
            wire,
            chat: Chat::new(opening),
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

    pub(super) fn asked(&self, name: &str) -> Option<&Ask> {
        self.asked.get(name)
    }

    pub(super) fn decided(&mut self, name: &str, decision: Decision, reason: Option<String>) {
        self.decided.insert(name.to_owned(), (decision, reason));
    }

    pub(super) async fn next(&mut self) -> Event {
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
                    Filled::Accept(content) => Verdict::Allow {
                        input: Value::Object(content),
                        updates: Vec::new(),
                    },
                    Filled::Decline | Filled::Cancel => Verdict::deny(""),
                };
                self.verdict(&request, verdict)
            }
            Say::Unsupported { .. } => Vec::new(),
        };
        self.carry_out(acts);
    }

    /// Only what a person decided lets anything pass.
    fn verdict(&mut self, name: &str, verdict: Verdict) -> Vec<Told> {
        let is_plan = self.asked.remove(name).is_none();
        let decided = self.decided.remove(name);
        match (verdict, decided) {
            (Verdict::Allow { .. }, Some((Decision::Answers(words), _))) if is_plan => {
                let mode = questions::mode_after(&words).unwrap_or_default();
                self.ready.push_back(Event::Said(Said::Mode(mode)));
                self.chat.carry_out(name, manner(mode))
            }
            (Verdict::Allow { .. }, Some((decision, reason))) => {
                self.chat.decide(name, &decision, reason.as_deref())
            }
            (Verdict::Allow { .. }, None) => self.chat.decide(name, &Decision::Deny, None),
            (Verdict::Deny { .. }, Some((decision, reason))) if is_no(&decision) => {
                self.chat.decide(name, &decision, reason.as_deref())
            }
            (Verdict::Deny { message, interrupt }, _) => {
                let decision = if interrupt {
                    Decision::Interrupt
                } else {
                    Decision::Deny
                };
                let message = Some(message.as_str());
                let message = message.filter(|message| !is_plan && !message.is_empty());
                self.chat.decide(name, &decision, message)
            }
        }
    }

    fn heard(&mut self, heard: Heard) {
        match heard {
            Heard::Text(text) => {
                let acts = self.chat.heard(&text);
                self.carry_out(acts);
            }
            Heard::TooLong(bytes) => {
                let request = None;
                self.ready.push_back(Event::TooLong { bytes, request });
            }
            Heard::Ended(ended) => {
                self.closing = None;
                let exit = self.exit.take().unwrap_or_else(|| ended.into());
                self.ready.push_back(Event::Ended(exit));
            }
        }
    }

    fn end(&mut self, exit: Exit) {
        self.exit = Some(exit);
        self.close();
    }

    fn carry_out(&mut self, acts: Vec<Told>) {
        for act in acts {
            let line = match act {
                Told::Send(text) if self.hosted.is_some() => {
                    self.unsent.push_back(text);
                    continue;
                }
                Told::Send(text) => {
                    self.unsent.push_back(text + "\n");
                    continue;
                }
                Told::Unknown => {
                    self.end(Exit::UnknownSession);
                    continue;
                }
                Told::Failed(problem) => {
                    let problem = clean(&problem, MAX_SUMMARY);
                    self.end(Exit::NotStarted { problem });
                    continue;
                }
                Told::Began {
                    thread,
                    model,
                    path,
                } => {
                    self.path = path;
                    let session = SessionId::parse(&thread).ok();
                    self.thread = Some(thread);
                    Said::Began(Began {
                        session,
                        model,
                        ..Began::default()
                    })
                }
                Told::Asked(ask) => {
                    let line = asks(&ask, self.thread.as_deref());
                    self.asked.insert(ask.name.clone(), *ask);
                    line
                }
                Told::Withdrawn(request) => {
                    self.asked.remove(&request);
                    Said::Withdrawn { request }
                }
                other => match line(other) {
                    Some(line) => line,
                    None => continue,
                },
            };
            self.ready.push_back(Event::Said(line));
        }
    }
}

/// What needs no memory.
fn line(told: Told) -> Option<Said> {
    Some(match told {
        Told::Taken(uuid) => Said::Text {
            uuid,
            stage: Stage::Started,
        },
        Told::Ordered { tag, refused } => Said::Reply(Reply {
            request: tag,
            error: refused,
        }),
        Told::Words(text) => Said::Message(Message {
            text,
            ..Message::default()
        }),
        Told::Tool { id, name, summary } => Said::Message(Message {
            calls: vec![Call {
                id,
                tool: name,
                summary: clean(&summary, MAX_SUMMARY),
            }],
            ..Message::default()
        }),
        Told::ToolFailed(id) => Said::CallEnds(vec![CallEnd { id, failed: true }]),
        Told::Retry { attempt, most } => Said::Retry(Retry {
            attempt,
            most,
            status: None,
        }),
        // It has its refusal; the session tells of it.
        Told::CannotAsk => Said::Request(Request {
            id: UNSHOWN.to_owned(),
            what: Wanted::Form(Box::new(Form {
                server: None,
                message: String::new(),
                schema: Value::Null,
            })),
        }),
        Told::Planned { name, plan } => Said::Request(Request {
            id: name,
            what: Wanted::Tool(Box::new(call(
                questions::call::PLAN,
                json!({"plan": plan}),
                None,
            ))),
        }),
        Told::TurnOver { how, text } => Said::TurnEnd(Box::new(TurnEnd {
            how,
            text,
            turns: 1,
            ..TurnEnd::default()
        })),
        Told::Send(_)
        | Told::Unknown
        | Told::Failed(_)
        | Told::Began { .. }
        | Told::Asked(_)
        | Told::Withdrawn(_) => return None,
    })
}

fn asks(ask: &Ask, own: Option<&str>) -> Said {
    // A subagent has a thread of its own.
    let agent = Some(ask.thread.clone()).filter(|thread| own != Some(thread.as_str()));
    let form = ask.is_form().then(|| questions::form::read(&ask.input));
    Said::Request(Request {
        id: ask.name.clone(),
        what: match form.flatten() {
            Some(form) => Wanted::Form(Box::new(form)),
            None => Wanted::Tool(Box::new(call(&ask.tool, ask.input.clone(), agent))),
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

pub(super) fn manner(mode: Mode) -> Manner {
    match mode {
        Mode::Default => Manner::Reads,
        Mode::AcceptEdits => Manner::Edits,
        Mode::Plan => Manner::Plans,
    }
}

fn is_no(decision: &Decision) -> bool {
    matches!(decision, Decision::Deny | Decision::Interrupt)
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
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
