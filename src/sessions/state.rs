//! One session: what it does, what it waits for, and what every event means
//! for it. Pure: time is an argument, and every call returns what there is to
//! do. It never has two children, and it never answers "allow" by itself
//! except for tools that only read.

use crate::clock::Millis;
use crate::ids::{RequestId, SessionId};

mod asks;
mod closing;
mod effect;
mod turn;

pub use effect::{
    AskEnding, ChildNo, Effect, Finish, Notice, PersonText, SessionCommand, SessionInput, TextFate,
    Unanswered,
};

use crate::talk::{AgentEvent, AgentSaid, Mode, Opening, Say, ToolVerdict};
use asks::OpenAsk;
use turn::RunningTurn;

/// Messages that wait for one child; more would be read by nobody.
const MAX_TEXTS: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimits {
    pub question: Millis,
    pub approval: Millis,
    /// How long a task may show no sign of life.
    pub quiet: Millis,
    /// How long a child is kept after its last turn.
    pub rest: Millis,
    /// As `rest`, while it runs something beside its turns.
    pub background: Millis,
    /// How long an answer given in time may be on its way.
    pub slack: Millis,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            question: 5 * 60_000,
            approval: 120_000,
            quiet: 30 * 60_000,
            rest: 10 * 60_000,
            background: 24 * 3_600_000,
            slack: 0,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionStatus {
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
    /// Whether the agent has a conversation under this id.
    pub begun: bool,
    pub mode: Mode,
    pub running: bool,
    pub asks: Vec<RequestId>,
}

#[derive(Debug)]
pub struct Session {
    limits: SessionLimits,
    conversation: SessionId,
    begun: bool,
    mode: Mode,
    state: SessionState,
    /// What its child waits for. A subagent's outlive the turn.
    asks: Vec<OpenAsk>,
    children: ChildNo,
    orders: u32,
    /// When the task began that runs, or ran last.
    task_began: Millis,
    /// What the child runs beside its turns, by name.
    background: Vec<String>,
    /// The mode orders the child has not answered yet.
    mode_orders: Vec<(String, Mode)>,
}

#[derive(Debug)]
enum SessionState {
    Idle,
    /// A child waits for words.
    Resting {
        child: ChildNo,
        since: Millis,
    },
    Running(Box<RunningTurn>),
    Stopping {
        child: ChildNo,
        /// Whether a person asked for it and is to be told.
        asked: bool,
        then: Vec<PersonText>,
    },
}

impl Session {
    pub fn new(conversation: SessionId, mode: Mode, limits: SessionLimits) -> Self {
        Self {
            limits,
            conversation,
            begun: false,
            mode,
            state: SessionState::Idle,
            asks: Vec::new(),
            children: 0,
            orders: 0,
            task_began: 0,
            background: Vec::new(),
            mode_orders: Vec::new(),
        }
    }

    /// Takes a session up after a restart of the daemon. Its child is gone.
    pub fn restored(saved: Saved, limits: SessionLimits) -> (Self, Vec<Effect>) {
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
        Saved {
            conversation: self.conversation.clone(),
            begun: self.begun,
            mode: self.mode,
            running: matches!(self.state, SessionState::Running(_)) || !self.background.is_empty(),
            asks: self.asks.iter().map(|open| open.id.clone()).collect(),
        }
    }

    pub fn status(&self) -> SessionStatus {
        match &self.state {
            SessionState::Stopping { .. } => SessionStatus::Stopping,
            _ if self.asks.iter().any(OpenAsk::wants_text) => SessionStatus::WaitingForInput,
            _ if !self.asks.is_empty() => SessionStatus::WaitingForConfirmation,
            SessionState::Idle | SessionState::Resting { .. } => SessionStatus::Idle,
            SessionState::Running(_) => SessionStatus::Executing,
        }
    }

    /// Whether a child waits for words.
    pub fn rests(&self) -> bool {
        matches!(self.state, SessionState::Resting { .. })
    }

    pub fn conversation(&self) -> &SessionId {
        &self.conversation
    }

    /// When the next [`SessionInput::Tick`] is worth sending.
    pub fn wake_at(&self) -> Option<Millis> {
        let asks = self
            .asks
            .iter()
            .map(|open| open.deadline + self.limits.slack);
        let asks = asks.min();
        match &self.state {
            SessionState::Idle | SessionState::Stopping { .. } => None,
            SessionState::Resting { since, .. } => asks.or(Some(since + self.rest())),
            SessionState::Running(run) => asks
                .into_iter()
                .chain([run.seen + self.limits.quiet, run.progress.due_at()])
                .min(),
        }
    }

    /// How long the child is kept after its last turn.
    fn rest(&self) -> Millis {
        if self.background.is_empty() {
            self.limits.rest
        } else {
            self.limits.background
        }
    }

    pub fn on(&mut self, input: SessionInput, now: Millis) -> Vec<Effect> {
        let mut out = Vec::new();
        match input {
            SessionInput::Text(text) => self.text(text, now, &mut out),
            SessionInput::Decided { ask, verdict } => self.decided(&ask, verdict, now, &mut out),
            SessionInput::Unanswered { ask, why } => self.unanswered(&ask, why, &mut out),
            SessionInput::WentOn => self.let_go(&mut out),
            SessionInput::Command(order) => self.command(order, &mut out),
            SessionInput::Child { child, event } => self.child(child, event, now, &mut out),
            SessionInput::Tick => self.tick(now, &mut out),
        }
        out
    }

    fn text(&mut self, text: PersonText, now: Millis, out: &mut Vec<Effect>) {
        let waiting = match &self.state {
            SessionState::Running(run) => run.texts.len(),
            SessionState::Stopping { then, .. } => then.len(),
            SessionState::Idle | SessionState::Resting { .. } => 0,
        };
        if waiting >= MAX_TEXTS {
            out.push(Effect::Fate {
                uuid: text.uuid,
                fate: TextFate::Lost,
            });
            out.push(Effect::Tell(Notice::TooManyTexts));
            return;
        }
        match &mut self.state {
            SessionState::Running(run) => run.send(text, out),
            SessionState::Stopping { then, .. } => then.push(text),
            SessionState::Resting { child, .. } => {
                self.task_began = now;
                let mut run = RunningTurn::new(*child, now, now);
                run.send(text, out);
                self.state = SessionState::Running(Box::new(run));
            }
            SessionState::Idle => self.start(vec![text], now, out),
        }
    }

    fn start(&mut self, texts: Vec<PersonText>, now: Millis, out: &mut Vec<Effect>) {
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
        self.task_began = now;
        let mut run = RunningTurn::new(self.children, now, now);
        for text in texts {
            run.send(text, out);
        }
        self.state = SessionState::Running(Box::new(run));
    }

    fn command(&mut self, order: SessionCommand, out: &mut Vec<Effect>) {
        if order == SessionCommand::Stop {
            return match &self.state {
                SessionState::Stopping { .. } => out.push(Effect::Tell(Notice::AlreadyStopping)),
                SessionState::Resting { .. }
                    if !self.asks.is_empty() || !self.background.is_empty() =>
                {
                    self.stop(true, out);
                }
                SessionState::Idle | SessionState::Resting { .. } => {
                    out.push(Effect::Tell(Notice::NothingRuns));
                }
                SessionState::Running(_) => self.stop(true, out),
            };
        }
        self.cancel_asks(out);
        if let SessionCommand::Mode(mode) = order {
            self.mode = mode;
            if let Some(child) = self.listening() {
                self.orders += 1;
                let request = format!("nod-{}", self.orders);
                self.mode_orders.push((request.clone(), mode));
                let say = Say::SetMode { request, mode };
                out.push(Effect::Write { child, say });
            }
            out.push(Effect::Tell(Notice::Mode(mode)));
        }
    }

    /// The child that takes what is written to it.
    fn listening(&self) -> Option<ChildNo> {
        match &self.state {
            SessionState::Resting { child, .. } => Some(*child),
            SessionState::Running(run) => Some(run.child),
            SessionState::Idle | SessionState::Stopping { .. } => None,
        }
    }

    fn child(&mut self, child: ChildNo, event: AgentEvent, now: Millis, out: &mut Vec<Effect>) {
        let current = match &self.state {
            SessionState::Idle => None,
            SessionState::Resting { child, .. } | SessionState::Stopping { child, .. } => {
                Some(*child)
            }
            SessionState::Running(run) => Some(run.child),
        };
        if current != Some(child) {
            return;
        }
        match event {
            AgentEvent::Ended(exit) => self.ended(exit, now, out),
            AgentEvent::Said(said) => self.said(child, said, now, out),
            AgentEvent::Unreadable => {}
            AgentEvent::TooLong { bytes, request } => {
                if matches!(self.state, SessionState::Stopping { .. }) {
                    return;
                }
                if let Some(request) = request {
                    let verdict = ToolVerdict::deny(
                        "This request is too large to be shown to the user, so it was not allowed.",
                    );
                    let say = Say::Verdict { request, verdict };
                    out.push(Effect::Write { child, say });
                }
                out.push(Effect::Tell(Notice::LineTooLong { bytes }));
            }
        }
    }

    fn said(&mut self, child: ChildNo, said: AgentSaid, now: Millis, out: &mut Vec<Effect>) {
        match &said {
            AgentSaid::Began(began) => {
                self.begun = true;
                if let Some(id) = &began.session {
                    self.conversation = id.clone();
                }
                self.take_mode(began.mode);
            }
            AgentSaid::Mode(mode) => self.take_mode(Some(*mode)),
            AgentSaid::Background(tasks) => {
                self.background.clone_from(tasks);
                // The turn about a task that ended begins a moment later.
                if let SessionState::Resting { since, .. } = &mut self.state {
                    *since = now;
                }
            }
            AgentSaid::Reply(reply) => {
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
            AgentSaid::Message(_)
            | AgentSaid::CallEnds(_)
            | AgentSaid::TurnEnd(_)
            | AgentSaid::Request(_)
            | AgentSaid::Withdrawn { .. }
            | AgentSaid::Retry(_)
            | AgentSaid::Text { .. }
            | AgentSaid::Other { .. } => {}
        }
        // A background task of the agent can begin a turn that nobody asked for.
        let wakes = matches!(
            &said,
            AgentSaid::Began(_)
                | AgentSaid::Message(_)
                | AgentSaid::Request(_)
                | AgentSaid::TurnEnd(_)
        );
        if wakes && matches!(self.state, SessionState::Resting { .. }) {
            let run = RunningTurn::new(child, self.task_began, now);
            self.state = SessionState::Running(Box::new(run));
        }
        let SessionState::Running(run) = &mut self.state else {
            return;
        };
        run.seen = now;
        run.progress.see(&said);
        match said {
            AgentSaid::Message(message) => {
                if !message.subagent && !message.text.trim().is_empty() {
                    run.words = Some(message.text);
                }
            }
            AgentSaid::Text { uuid, stage } => run.staged(&uuid, stage, out),
            AgentSaid::TurnEnd(end) => return self.turn_end(&end, now, out),
            AgentSaid::Request(request) => self.request(child, request, now, out),
            AgentSaid::Withdrawn { request } => self.withdrawn(&request, out),
            AgentSaid::Began(_)
            | AgentSaid::Mode(_)
            | AgentSaid::Retry(_)
            | AgentSaid::Background(_)
            | AgentSaid::CallEnds(_)
            | AgentSaid::Reply(_)
            | AgentSaid::Other { .. } => {}
        }
        self.show(now, out);
    }

    fn take_mode(&mut self, mode: Option<Mode>) {
        if let Some(mode) = mode
            && self.mode_orders.is_empty()
        {
            self.mode = mode;
        }
    }

    fn show(&mut self, now: Millis, out: &mut Vec<Effect>) {
        if let SessionState::Running(run) = &mut self.state
            && let Some(view) = run.progress.due(now)
        {
            out.push(Effect::Progress(view));
        }
    }

    fn tick(&mut self, now: Millis, out: &mut Vec<Effect>) {
        self.expire_asks(now, out);
        match &self.state {
            SessionState::Resting { child, since }
                if self.asks.is_empty() && now >= since + self.rest() =>
            {
                let child = *child;
                self.end_background(out);
                self.close(child, out);
            }
            SessionState::Running(run) if now >= run.seen + self.limits.quiet => {
                out.push(Effect::Tell(Notice::NoProgress {
                    minutes: self.limits.quiet / 60_000,
                }));
                self.stop(false, out);
            }
            SessionState::Idle
            | SessionState::Resting { .. }
            | SessionState::Running(_)
            | SessionState::Stopping { .. } => {}
        }
        self.show(now, out);
    }
}

#[cfg(test)]
mod tests;
