//! One session: what it does, what it waits for, and what every event means
//! for it. Pure: time is an argument, and every call returns what there is to
//! do. It never has two children, and it never answers "allow" by itself
//! except for tools that only read.

use crate::approvals::request::Millis;
use crate::claude::stream::say::{Mode, Say, Verdict};
use crate::claude::stream::{Event, Line};
use crate::ids::{RequestId, SessionId};

mod asks;
mod effect;
mod turn;

pub use effect::{
    AskEnding, ChildNo, Effect, Fate, Finish, How, Input, Notice, Order, Text, Unanswered,
};

use crate::claude::exit::Exit;
use crate::claude::launch::Opening;
use asks::Open;
use turn::Running;

/// Messages that wait for one child; more would be read by nobody.
const MAX_TEXTS: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub question: Millis,
    pub approval: Millis,
    /// How long a task may show no sign of life.
    pub quiet: Millis,
    /// How long a child is kept after its last turn.
    pub rest: Millis,
    /// The least time between two progress updates.
    pub progress: Millis,
    /// How long an answer given in time may be on its way.
    pub slack: Millis,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            question: 5 * 60_000,
            approval: 120_000,
            quiet: 30 * 60_000,
            rest: 10 * 60_000,
            progress: 1_500,
            slack: 0,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Idle,
    Executing,
    WaitingForInput,
    WaitingForConfirmation,
    Stopping,
}

/// What outlives the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    pub conversation: SessionId,
    /// Whether Claude Code has a conversation under this id.
    pub begun: bool,
    pub mode: Mode,
    pub running: bool,
    pub asks: Vec<RequestId>,
}

#[derive(Debug)]
pub struct Session {
    limits: Limits,
    conversation: SessionId,
    begun: bool,
    mode: Mode,
    state: State,
    children: ChildNo,
    orders: u32,
    /// The mode orders the child has not answered yet.
    mode_orders: Vec<(String, Mode)>,
}

#[derive(Debug)]
enum State {
    Idle,
    /// A child waits for words.
    Resting {
        child: ChildNo,
        since: Millis,
    },
    Running(Box<Running>),
    Stopping {
        child: ChildNo,
        /// Whether a person asked for it and is to be told.
        asked: bool,
        then: Vec<Text>,
    },
}

impl Session {
    pub fn new(conversation: SessionId, mode: Mode, limits: Limits) -> Self {
        Self {
            limits,
            conversation,
            begun: false,
            mode,
            state: State::Idle,
            children: 0,
            orders: 0,
            mode_orders: Vec::new(),
        }
    }

    /// Takes a session up after a restart of the daemon. Its child is gone.
    pub fn restored(saved: Saved, limits: Limits) -> (Self, Vec<Effect>) {
        let mut session = Self::new(saved.conversation, saved.mode, limits);
        session.begun = saved.begun;
        let mut effects = Vec::new();
        for ask in saved.asks {
            effects.push(Effect::Settle {
                ask,
                ending: AskEnding::Restarted,
            });
        }
        if saved.running {
            effects.push(Effect::Tell(Notice::Restarted));
        }
        (session, effects)
    }

    pub fn saved(&self) -> Saved {
        let asks = match &self.state {
            State::Running(run) => run.asks.iter().map(|open| open.id.clone()).collect(),
            State::Idle | State::Resting { .. } | State::Stopping { .. } => Vec::new(),
        };
        Saved {
            conversation: self.conversation.clone(),
            begun: self.begun,
            mode: self.mode,
            running: matches!(self.state, State::Running(_)),
            asks,
        }
    }

    pub fn status(&self) -> Status {
        match &self.state {
            State::Idle | State::Resting { .. } => Status::Idle,
            State::Stopping { .. } => Status::Stopping,
            State::Running(run) if run.asks.is_empty() => Status::Executing,
            State::Running(run) if run.asks.iter().any(Open::wants_text) => Status::WaitingForInput,
            State::Running(_) => Status::WaitingForConfirmation,
        }
    }

    pub fn conversation(&self) -> &SessionId {
        &self.conversation
    }

    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// When the next [`Input::Tick`] is worth sending.
    pub fn wake_at(&self) -> Option<Millis> {
        match &self.state {
            State::Idle | State::Stopping { .. } => None,
            State::Resting { since, .. } => Some(since + self.limits.rest),
            State::Running(run) => run
                .asks
                .iter()
                .map(|open| open.deadline + self.limits.slack)
                .chain([run.seen + self.limits.quiet, run.progress.due_at()])
                .min(),
        }
    }

    pub fn on(&mut self, input: Input, now: Millis) -> Vec<Effect> {
        let mut out = Vec::new();
        match input {
            Input::Text(text) => self.text(text, now, &mut out),
            Input::Decided { ask, verdict } => self.decided(&ask, verdict, now, &mut out),
            Input::Unanswered { ask, why } => self.unanswered(&ask, why, &mut out),
            Input::Command(order) => self.command(order, &mut out),
            Input::Child { child, event } => self.child(child, event, now, &mut out),
            Input::Tick => self.tick(now, &mut out),
        }
        out
    }

    fn text(&mut self, text: Text, now: Millis, out: &mut Vec<Effect>) {
        let waiting = match &self.state {
            State::Running(run) => run.texts.len(),
            State::Stopping { then, .. } => then.len(),
            State::Idle | State::Resting { .. } => 0,
        };
        if waiting >= MAX_TEXTS {
            out.push(Effect::Fate {
                uuid: text.uuid,
                fate: Fate::Lost,
            });
            out.push(Effect::Tell(Notice::TooManyTexts));
            return;
        }
        match &mut self.state {
            State::Running(run) => run.send(text, out),
            State::Stopping { then, .. } => then.push(text),
            State::Resting { child, .. } => {
                let mut run = Running::new(*child, now, self.limits.progress);
                run.send(text, out);
                self.state = State::Running(Box::new(run));
            }
            State::Idle => self.start(vec![text], now, out),
        }
    }

    fn start(&mut self, texts: Vec<Text>, now: Millis, out: &mut Vec<Effect>) {
        self.children += 1;
        self.mode_orders.clear();
        let id = self.conversation.clone();
        out.push(Effect::Start {
            child: self.children,
            opening: if self.begun {
                Opening::Resume(id)
            } else {
                Opening::Fresh(id)
            },
            mode: self.mode,
        });
        let mut run = Running::new(self.children, now, self.limits.progress);
        for text in texts {
            run.send(text, out);
        }
        self.state = State::Running(Box::new(run));
    }

    fn command(&mut self, order: Order, out: &mut Vec<Effect>) {
        if order == Order::Stop {
            return match &self.state {
                State::Idle | State::Resting { .. } => out.push(Effect::Tell(Notice::NothingRuns)),
                State::Stopping { .. } => out.push(Effect::Tell(Notice::AlreadyStopping)),
                State::Running(_) => self.stop(true, out),
            };
        }
        self.cancel_asks(out);
        if let Order::Mode(mode) = order {
            self.mode = mode;
            let child = match &self.state {
                State::Resting { child, .. } => Some(*child),
                State::Running(run) => Some(run.child),
                State::Idle | State::Stopping { .. } => None,
            };
            if let Some(child) = child {
                self.orders += 1;
                let request = format!("nod-{}", self.orders);
                self.mode_orders.push((request.clone(), mode));
                let say = Say::SetMode { request, mode };
                out.push(Effect::Write { child, say });
            }
            out.push(Effect::Tell(Notice::Mode(mode)));
        }
    }

    /// Ends what runs. The words it had are told to be lost.
    fn stop(&mut self, asked: bool, out: &mut Vec<Effect>) {
        let State::Running(run) = std::mem::replace(&mut self.state, State::Idle) else {
            return;
        };
        let child = run.child;
        turn::abandon(*run, &AskEnding::Cancelled, out);
        out.push(Effect::Close { child });
        self.state = State::Stopping {
            child,
            asked,
            then: Vec::new(),
        };
    }

    fn child(&mut self, child: ChildNo, event: Event, now: Millis, out: &mut Vec<Effect>) {
        let current = match &self.state {
            State::Idle => None,
            State::Resting { child, .. } | State::Stopping { child, .. } => Some(*child),
            State::Running(run) => Some(run.child),
        };
        if current != Some(child) {
            return;
        }
        match event {
            Event::Ended(exit) => self.ended(exit, now, out),
            Event::Line(line) => self.line(child, line, now, out),
            Event::Unreadable => {}
            Event::TooLong { bytes, request } => {
                if matches!(self.state, State::Stopping { .. }) {
                    return;
                }
                if let Some(request) = request {
                    let verdict = Verdict::deny(
                        "This request is too large to be shown to the user, so it was not allowed.",
                    );
                    let say = Say::Verdict { request, verdict };
                    out.push(Effect::Write { child, say });
                }
                out.push(Effect::Tell(Notice::LineTooLong { bytes }));
            }
        }
    }

    fn line(&mut self, child: ChildNo, line: Line, now: Millis, out: &mut Vec<Effect>) {
        match &line {
            Line::Init(init) => {
                self.begun = true;
                if let Some(id) = &init.session {
                    self.conversation = id.clone();
                }
                self.take_mode(init.mode.as_deref());
            }
            Line::Mode(mode) => self.take_mode(Some(mode)),
            Line::Reply(reply) => {
                let order = self
                    .mode_orders
                    .iter()
                    .position(|(request, _)| *request == reply.request);
                if let Some(order) = order {
                    let (_, mode) = self.mode_orders.swap_remove(order);
                    if reply.error.is_some() {
                        out.push(Effect::Tell(Notice::ModeRefused(mode)));
                    }
                }
            }
            Line::Assistant(_)
            | Line::ToolResults(_)
            | Line::TurnEnd(_)
            | Line::Request(_)
            | Line::Withdrawn { .. }
            | Line::Text { .. }
            | Line::Other { .. } => {}
        }
        // A background task of the agent can begin a turn that nobody asked for.
        let wakes = matches!(
            &line,
            Line::Init(_) | Line::Assistant(_) | Line::Request(_) | Line::TurnEnd(_)
        );
        if wakes && matches!(self.state, State::Resting { .. }) {
            self.state = State::Running(Box::new(Running::new(child, now, self.limits.progress)));
        }
        let State::Running(run) = &mut self.state else {
            return;
        };
        run.seen = now;
        run.progress.see(&line);
        match line {
            Line::Assistant(said) => {
                if !said.subagent && !said.text.trim().is_empty() {
                    run.words = Some(said.text);
                }
            }
            Line::Text { uuid, stage } => run.staged(&uuid, stage, out),
            Line::TurnEnd(end) => return self.turn_end(&end, now, out),
            Line::Request(request) => self.request(child, request, now, out),
            Line::Withdrawn { request } => self.withdrawn(&request, out),
            Line::Init(_)
            | Line::Mode(_)
            | Line::ToolResults(_)
            | Line::Reply(_)
            | Line::Other { .. } => {}
        }
        self.show(now, out);
    }

    fn take_mode(&mut self, mode: Option<&str>) {
        if let Some(mode) = mode.and_then(Mode::parse)
            && self.mode_orders.is_empty()
        {
            self.mode = mode;
        }
    }

    fn show(&mut self, now: Millis, out: &mut Vec<Effect>) {
        if let State::Running(run) = &mut self.state
            && let Some(view) = run.progress.due(now)
        {
            out.push(Effect::Progress(view));
        }
    }

    fn ended(&mut self, exit: Exit, now: Millis, out: &mut Vec<Effect>) {
        match &exit {
            Exit::UnknownSession => self.begun = false,
            Exit::InUse => self.begun = true,
            Exit::Finished
            | Exit::Crashed { .. }
            | Exit::Killed
            | Exit::NotInstalled
            | Exit::ProjectGone
            | Exit::NotStarted { .. } => {}
        }
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Idle => {}
            // The only sign of an unknown conversation may be an error turn.
            State::Resting { .. } => {
                if exit == Exit::UnknownSession {
                    out.push(Effect::Tell(Notice::Expired));
                }
            }
            State::Stopping { asked, then, .. } => {
                if asked {
                    out.push(Effect::Tell(Notice::Stopped));
                }
                if !then.is_empty() {
                    self.start(then, now, out);
                }
            }
            State::Running(run) => {
                turn::abandon(*run, &AskEnding::ChildGone, out);
                out.push(Effect::Tell(match exit {
                    Exit::Finished | Exit::Killed => Notice::Crashed { words: None },
                    Exit::Crashed { words, .. } => Notice::Crashed { words },
                    Exit::NotInstalled => Notice::NotInstalled,
                    Exit::ProjectGone => Notice::ProjectGone,
                    Exit::NotStarted { problem } => Notice::NotStarted { problem },
                    Exit::UnknownSession => Notice::Expired,
                    Exit::InUse => Notice::InUse,
                }));
            }
        }
    }

    fn tick(&mut self, now: Millis, out: &mut Vec<Effect>) {
        self.expire_asks(now, out);
        match &self.state {
            State::Resting { child, since } if now >= since + self.limits.rest => {
                let child = *child;
                out.push(Effect::Close { child });
                self.state = State::Stopping {
                    child,
                    asked: false,
                    then: Vec::new(),
                };
            }
            State::Running(run) if now >= run.seen + self.limits.quiet => {
                out.push(Effect::Tell(Notice::NoProgress {
                    minutes: self.limits.quiet / 60_000,
                }));
                self.stop(false, out);
            }
            State::Idle | State::Resting { .. } | State::Running(_) | State::Stopping { .. } => {}
        }
        self.show(now, out);
    }
}

#[cfg(test)]
mod tests;
