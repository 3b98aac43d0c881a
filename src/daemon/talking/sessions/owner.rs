//! The one task that owns a session while it is awake: its child, its asks,
//! its clock. What to do is decided by [`crate::sessions::state`]; this does it.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use super::asks::{self, SessionAsk};
use super::codex::{self, CodexDriver};
use super::hand::Hand;
use super::voice::{self, Voice};
use super::{SessionOrder, Sessions, files, keep, limits, uuid};
use crate::agents::codex::chat;
use crate::approvals::desk::{Delivery, Handover};
use crate::approvals::request::{AskingAgent, Digest, Request};
use crate::cards::progress::TaskEnd;
use crate::child::process::{Grace, Launch};
use crate::claude::launch::{Permissions, arguments};
use crate::claude::process;
use crate::claude::transcript::{self, LeftTranscript};
use crate::daemon::asking::codex as followed;
use crate::ids::RequestId;
use crate::sessions::agent::Agent;
use crate::sessions::command::Project;
use crate::sessions::state::{
    ChildNo, Effect, Finish, Notice, PersonText, Saved, Session, SessionInput, SessionStatus,
    TextFate, Unanswered,
};
use crate::talk::{AgentEvent, Mode, Opening};
use crate::wording::session as words;

/// tokio's clock stands still while a laptop sleeps.
const LONGEST_SLEEP: Duration = Duration::from_secs(5);

pub(super) struct SessionOwner {
    sessions: Arc<Sessions>,
    number: i64,
    project: Project,
    agent: Agent,
    session: Session,
    orders: mpsc::Receiver<SessionOrder>,
    voice: Voice,
    child: Option<(ChildNo, Hand)>,
    asks: JoinSet<(RequestId, Option<Handover>)>,
    asked: HashMap<RequestId, Arc<Request>>,
    saved: Saved,
    /// The transcript as the child left it that rests.
    left: Option<LeftTranscript>,
}

/// What woke the owner.
enum Woken {
    Input(SessionInput),
    Answered(RequestId, Option<Handover>),
    Stop,
}

impl SessionOwner {
    pub(super) fn new(
        sessions: Arc<Sessions>,
        number: i64,
        (project, agent): (Project, Agent),
        session: Session,
        orders: mpsc::Receiver<SessionOrder>,
        voice: Voice,
    ) -> Self {
        Self {
            saved: session.saved(),
            sessions,
            number,
            project,
            agent,
            session,
            orders,
            voice,
            child: None,
            asks: JoinSet::new(),
            asked: HashMap::new(),
            left: None,
        }
    }

    pub(super) async fn run(mut self, stop: CancellationToken) {
        loop {
            let rests = self.child.is_none()
                && self.asks.is_empty()
                && self.session.status() == SessionStatus::Idle;
            if rests && self.sessions.retire(self.number, &self.orders) {
                break;
            }
            match self.wait(&stop).await {
                Woken::Input(input) => {
                    if let SessionInput::Child {
                        event: AgentEvent::Ended(_),
                        ..
                    } = &input
                    {
                        self.child = None;
                    }
                    if matches!(input, SessionInput::Text(_)) && self.went_on().await {
                        info!(session = self.number, "the conversation went on elsewhere");
                        self.feed(SessionInput::WentOn).await;
                    }
                    self.feed(input).await;
                    self.note_rest();
                }
                Woken::Answered(ask, handed) => self.answered(ask, handed).await,
                Woken::Stop => {
                    self.shut_down().await;
                    break;
                }
            }
        }
        files::remove(&self.sessions, self.number).await;
        debug!(session = self.number, "a session sleeps");
    }

    /// Whether the conversation went on where the child that rests has not
    /// seen it: by its transcript, or in a terminal that has it open now.
    async fn went_on(&mut self) -> bool {
        if let (true, Some((_, Hand::Codex(driver)))) = (self.session.rests(), &self.child) {
            let opened = self
                .sessions
                .codex
                .open_in(self.session.conversation().as_str());
            if opened.is_some() != driver.is_beside() {
                return true;
            }
        }
        match self.left.take() {
            Some(left) => left.went_on().await,
            None => false,
        }
    }

    /// Remembers how far the conversation is when a child comes to rest.
    fn note_rest(&mut self) {
        if !self.session.rests() {
            self.left = None;
        } else if self.left.is_none() {
            self.left = match &self.child {
                // One beside a terminal hears what that one does.
                Some((_, Hand::Codex(driver))) if driver.is_beside() => None,
                Some((_, Hand::Codex(driver))) => driver
                    .path()
                    .map(|path| LeftTranscript::of(path.to_owned())),
                _ => {
                    let home = transcript::home(&self.sessions.settings().environment);
                    let session = self.session.conversation().clone();
                    home.map(|home| LeftTranscript::by(home, session))
                }
            };
        }
    }

    async fn wait(&mut self, stop: &CancellationToken) -> Woken {
        let wake = self.session.wake_at();
        let left = wake.map(|at| at.saturating_sub(self.sessions.now()).max(0).unsigned_abs());
        let sleep = async {
            match left {
                Some(left) => {
                    tokio::time::sleep(Duration::from_millis(left).min(LONGEST_SLEEP)).await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop.cancelled() => Woken::Stop,
            order = self.orders.recv() => match order {
                Some(SessionOrder::Text(body)) => Woken::Input(SessionInput::Text(PersonText { uuid: uuid(), body })),
                Some(SessionOrder::Command(order)) => Woken::Input(SessionInput::Command(order)),
                None => Woken::Stop,
            },
            (child, event) = next(&mut self.child) => Woken::Input(SessionInput::Child { child, event }),
            Some(Ok((ask, handed))) = self.asks.join_next(), if !self.asks.is_empty() => Woken::Answered(ask, handed),
            () = sleep => Woken::Input(SessionInput::Tick),
        }
    }

    /// Whether anything was written to the child because of it.
    async fn feed(&mut self, input: SessionInput) -> bool {
        let mut inputs = VecDeque::from([input]);
        let mut wrote = false;
        while let Some(input) = inputs.pop_front() {
            let effects = self.session.on(input, self.sessions.now());
            for effect in effects {
                wrote |= matches!(effect, Effect::Write { .. });
                if let Some(ask) = self.carry_out(effect).await {
                    let why = Unanswered::NotShown;
                    inputs.push_back(SessionInput::Unanswered { ask, why });
                }
            }
        }
        self.remember().await;
        wrote
    }

    async fn answered(&mut self, ask: RequestId, handed: Option<Handover>) {
        let Some(mut handed) = handed else { return };
        let Some(asked) = self.asked.remove(&ask) else {
            return;
        };
        if let Some((_, hand)) = &mut self.child
            && let Some((decision, reason)) = followed::decision(&handed.answer.ending)
            && handed.answer.digest == Digest::of(&asked.input)
        {
            hand.decided(ask.as_str(), decision, reason);
        }
        let wrote = match asks::heard(&ask, &asked, &handed.answer, self.sessions.lang()) {
            Some(input) => self.feed(input).await,
            None => false,
        };
        handed.report(if wrote {
            Delivery::Confirmed
        } else {
            Delivery::Lost
        });
    }

    /// Returns an ask that could not be put to anybody.
    async fn carry_out(&mut self, effect: Effect) -> Option<RequestId> {
        match effect {
            Effect::Start {
                child,
                opening,
                mode,
            } => self.start(child, opening, mode).await,
            Effect::Write { child, say } => {
                if let Some(hand) = self.hand(child) {
                    hand.tell(say);
                }
            }
            Effect::Close { child } => {
                if let Some(hand) = self.hand(child) {
                    hand.stop();
                }
            }
            Effect::AskPermission {
                ask,
                request,
                deadline,
            } => {
                let ask = SessionAsk::permission(ask, *request, deadline);
                return self.ask(ask).await;
            }
            Effect::AskQuestion {
                ask,
                tool,
                input,
                deadline,
            } => {
                let ask = asks::question(ask, tool, input, deadline);
                return self.ask(ask).await;
            }
            Effect::Settle { ask, ending } => {
                self.asked.remove(&ask);
                if let Some(why) = asks::dropped(&ending)
                    && let Ok(id) = asks::desk_id(self.number, &ask)
                {
                    self.sessions.cards.desk.drop_one(&id, why);
                }
            }
            Effect::Progress(view) => self.voice.progress(view),
            Effect::Finished(finish) => self.finished(*finish),
            Effect::Fate { uuid, fate } => match fate {
                TextFate::Done => {}
                TextFate::Failed | TextFate::Lost => {
                    debug!(text = uuid, ?fate, "words were not carried out");
                }
            },
            Effect::Tell(notice) => self.tell(&notice),
        }
        None
    }

    fn hand(&mut self, child: ChildNo) -> Option<&mut Hand> {
        let (_, hand) = self.child.as_mut().filter(|(number, _)| *number == child)?;
        Some(hand)
    }

    async fn start(&mut self, number: ChildNo, opening: Opening, mode: Mode) {
        info!(
            session = self.number,
            child = number,
            agent = self.agent.word(),
            "an agent starts"
        );
        let hand = match self.agent {
            Agent::Claude => Hand::claude(process::start(self.claude_launch(&opening, mode))),
            Agent::Codex => self.start_codex(opening, mode).await,
        };
        self.child = Some((number, hand));
    }

    fn claude_launch(&self, opening: &Opening, mode: Mode) -> Launch {
        let settings = self.sessions.settings();
        let permissions = if settings.bypass {
            Permissions::Bypass
        } else {
            Permissions::Ask(mode)
        };
        Launch {
            program: settings.claude.clone(),
            arguments: arguments(opening, &permissions),
            project: self.project.path.clone(),
            environment: settings.environment.clone(),
            grace: Grace::default(),
            guard: std::env::current_exe().ok(),
        }
    }

    /// A thread that a terminal has open is joined there; any other gets a
    /// child of its own.
    async fn start_codex(&self, opening: Opening, mode: Mode) -> Hand {
        let links = &self.sessions.codex;
        let thread = match opening {
            Opening::Resume(id) => Some(id.as_str().to_owned()),
            Opening::Fresh(_) => None,
        };
        if let Some(thread) = &thread
            && let Some(home) = links.open_in(thread)
        {
            let hosted = links.host(thread).await;
            return Hand::Codex(Box::new(CodexDriver::beside(&home, thread.clone(), hosted)));
        }
        let (launch, opening) = self.codex_launch(thread, mode);
        Hand::Codex(Box::new(CodexDriver::child(launch, opening)))
    }

    fn codex_launch(&self, thread: Option<String>, mode: Mode) -> (Launch, chat::ChatOpening) {
        let settings = self.sessions.settings();
        let manner = if settings.bypass {
            chat::CodexManner::Free
        } else {
            codex::manner(mode)
        };
        let cwd = self.project.path.to_string_lossy().into_owned();
        let opening = match thread {
            Some(thread) => chat::ChatOpening::Resume {
                thread,
                cwd,
                manner,
            },
            None => chat::ChatOpening::Fresh { cwd, manner },
        };
        let mut environment = settings.codex_environment.clone();
        if let Some(home) = self.codex_home() {
            environment.retain(|(name, _)| name != "CODEX_HOME");
            environment.push(("CODEX_HOME".into(), home.into()));
        }
        let launch = codex::launch(&settings.codex, &self.project.path, environment);
        (launch, opening)
    }

    /// The home that holds the thread; the first, where nobody knows better.
    fn codex_home(&self) -> Option<PathBuf> {
        let homes = &self.sessions.cards.config.codex_homes;
        let kept = self.sessions.find(self.number)?.kept.home;
        let kept = kept.filter(|home| homes.contains(home));
        kept.or_else(|| homes.first().cloned())
    }

    async fn ask(&mut self, mut ask: SessionAsk) -> Option<RequestId> {
        let id = ask.id.clone();
        if self.agent == Agent::Codex {
            let hand = self.child.as_ref().map(|(_, hand)| hand);
            let asked = hand.and_then(|hand| hand.asked(id.as_str()));
            let leaves = asked.map(|asked| asked.leaves.clone());
            ask.by = AskingAgent::Codex(leaves.unwrap_or_default());
            followed::name_real_places(&mut ask.input, &self.project.path).await;
        }
        let (sessions, project) = (&self.sessions, &self.project);
        let conversation = self.session.conversation();
        let put_up = asks::put_up(sessions, self.number, project, conversation, ask).await;
        let Some((mut waiting, request)) = put_up else {
            return Some(id);
        };
        self.asked.insert(id.clone(), request);
        self.asks
            .spawn(async move { (id, waiting.answered().await) });
        None
    }

    fn finished(&mut self, finish: Finish) {
        self.voice
            .ended(TaskEnd::Turn(finish.how), Some(finish.view));
        if let Some(answer) = finish.answer.filter(|answer| !answer.trim().is_empty()) {
            self.voice.answer(answer);
        }
    }

    fn tell(&mut self, notice: &Notice) {
        let end = match notice {
            Notice::Stopped => Some(TaskEnd::Stopped),
            Notice::Crashed { .. } => Some(TaskEnd::Crashed),
            Notice::NoProgress { .. } => Some(TaskEnd::NoProgress),
            Notice::NotInstalled
            | Notice::ProjectGone
            | Notice::NotStarted { .. }
            | Notice::Expired
            | Notice::InUse => Some(TaskEnd::NotStarted),
            Notice::Restarted => Some(TaskEnd::Restarted),
            _ => None,
        };
        if let Some(end) = end {
            self.voice.ended(end, None);
        }
        let text = words::notice(&voice::quoted(notice), self.agent);
        self.voice.text(text.get(self.sessions.lang()).to_owned());
    }

    /// Writes down what a restart needs, when it has changed.
    async fn remember(&mut self) {
        let (saved, status) = (self.session.saved(), self.session.status());
        let changed = saved != self.saved;
        let renamed = saved.conversation != self.saved.conversation;
        let kept = self.sessions.change(self.number, |entry| {
            entry.status = status;
            entry.kept.saved = saved.clone();
        });
        if changed && let Some(kept) = kept {
            if renamed {
                // What it said so far is found under its new name.
                voice::remember(&self.sessions, &kept, &kept.anchor).await;
                if let Some(card) = &kept.card {
                    voice::remember(&self.sessions, &kept, card).await;
                }
            }
            keep(&self.sessions, kept).await;
        }
        self.saved = saved;
    }

    /// The daemon stops: what a restart would say is said now.
    async fn shut_down(&mut self) {
        let (session, effects) = Session::restored(self.session.saved(), limits(&self.sessions));
        self.session = session;
        for effect in effects {
            self.carry_out(effect).await;
        }
        self.child = None;
        self.remember().await;
    }
}

async fn next(child: &mut Option<(ChildNo, Hand)>) -> (ChildNo, AgentEvent) {
    match child {
        Some((number, hand)) => (*number, hand.next().await),
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
