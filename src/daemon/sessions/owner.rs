//! The one task that owns a session while it is awake: its child, its asks,
//! its clock. What to do is decided by [`crate::sessions::state`]; this does it.

use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use super::asks::{self, Ask};
use super::voice::Voice;
use super::{Order, files, keep, limits, uuid};
use crate::approvals::desk::{Delivery, Handover};
use crate::cards::progress::End;
use crate::claude::launch::{Grace, Launch, Opening, Permissions};
use crate::claude::process::{self, Child};
use crate::claude::stream::Event;
use crate::claude::stream::say::{Mode, Say};
use crate::daemon::parts::Parts;
use crate::ids::RequestId;
use crate::sessions::command::Project;
use crate::sessions::state::{
    ChildNo, Effect, Fate, Finish, Input, Notice, Saved, Session, Status, Text, Unanswered,
};
use crate::wording::session as words;

/// tokio's clock stands still while a laptop sleeps.
const LONGEST_SLEEP: Duration = Duration::from_secs(5);

pub(super) struct Owner {
    parts: Arc<Parts>,
    number: i64,
    project: Project,
    session: Session,
    orders: mpsc::Receiver<Order>,
    voice: Voice,
    child: Option<(ChildNo, Child)>,
    unsaid: VecDeque<Say>,
    asks: JoinSet<(RequestId, Option<Handover>)>,
    asked: HashMap<RequestId, (String, Value)>,
    saved: Saved,
}

/// What woke the owner.
enum Woken {
    Input(Input),
    Answered(RequestId, Option<Handover>),
    Stop,
}

impl Owner {
    pub(super) fn new(
        parts: Arc<Parts>,
        number: i64,
        project: Project,
        session: Session,
        orders: mpsc::Receiver<Order>,
        voice: Voice,
    ) -> Self {
        Self {
            saved: session.saved(),
            parts,
            number,
            project,
            session,
            orders,
            voice,
            child: None,
            unsaid: VecDeque::new(),
            asks: JoinSet::new(),
            asked: HashMap::new(),
        }
    }

    pub(super) async fn run(mut self, stop: CancellationToken) {
        loop {
            let rests = self.child.is_none()
                && self.asks.is_empty()
                && self.session.status() == Status::Idle;
            if rests && self.parts.sessions.retire(self.number, &self.orders) {
                break;
            }
            match self.wait(&stop).await {
                Woken::Input(input) => {
                    if let Input::Child {
                        event: Event::Ended(_),
                        ..
                    } = &input
                    {
                        self.child = None;
                        self.unsaid.clear();
                    }
                    self.feed(input).await;
                }
                Woken::Answered(ask, handed) => self.answered(ask, handed).await,
                Woken::Stop => {
                    self.shut_down().await;
                    break;
                }
            }
        }
        files::remove(&self.project, self.number).await;
        debug!(session = self.number, "a session sleeps");
    }

    async fn wait(&mut self, stop: &CancellationToken) -> Woken {
        loop {
            let wake = self.session.wake_at();
            let left = wake.map(|at| at.saturating_sub(self.parts.now()).max(0).unsigned_abs());
            let sleep = async {
                match left {
                    Some(left) => {
                        tokio::time::sleep(Duration::from_millis(left).min(LONGEST_SLEEP)).await;
                    }
                    None => std::future::pending().await,
                }
            };
            let (say, events) = match &mut self.child {
                Some((number, child)) => (Some(&child.say), Some((*number, &mut child.events))),
                None => (None, None),
            };
            tokio::select! {
                () = stop.cancelled() => return Woken::Stop,
                order = self.orders.recv() => match order {
                    Some(Order::Text(body)) => {
                        return Woken::Input(Input::Text(Text { uuid: uuid(), body }));
                    }
                    Some(Order::Command(order)) => return Woken::Input(Input::Command(order)),
                    None => return Woken::Stop,
                },
                event = next(events) => {
                    let (child, event) = event;
                    return Woken::Input(Input::Child { child, event });
                }
                Some(Ok((ask, handed))) = self.asks.join_next(), if !self.asks.is_empty() => {
                    return Woken::Answered(ask, handed);
                }
                room = room(say), if !self.unsaid.is_empty() => match room {
                    Some(room) => {
                        if let Some(say) = self.unsaid.pop_front() {
                            room.send(say);
                        }
                    }
                    // It reads no more; its end will tell why.
                    None => self.unsaid.clear(),
                },
                () = sleep => return Woken::Input(Input::Tick),
            }
        }
    }

    /// Whether anything was written to the child because of it.
    async fn feed(&mut self, input: Input) -> bool {
        let mut inputs = VecDeque::from([input]);
        let mut wrote = false;
        while let Some(input) = inputs.pop_front() {
            let effects = self.session.on(input, self.parts.now());
            for effect in effects {
                wrote |= matches!(effect, Effect::Write { .. });
                if let Some(ask) = self.carry_out(effect).await {
                    let why = Unanswered::NotShown;
                    inputs.push_back(Input::Unanswered { ask, why });
                }
            }
        }
        self.remember().await;
        wrote
    }

    async fn answered(&mut self, ask: RequestId, handed: Option<Handover>) {
        let Some(mut handed) = handed else { return };
        let Some((tool, input)) = self.asked.remove(&ask) else {
            return;
        };
        let wrote = match asks::heard(&ask, &tool, &input, &handed.answer) {
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
            } => self.start(child, opening, mode),
            Effect::Write { child, say } => {
                if self
                    .child
                    .as_ref()
                    .is_some_and(|(number, _)| *number == child)
                {
                    self.unsaid.push_back(say);
                }
            }
            Effect::Close { child } => {
                if let Some((number, running)) = &self.child
                    && *number == child
                {
                    running.stop.cancel();
                }
            }
            Effect::AskPermission {
                ask,
                request,
                deadline,
            } => {
                let ask = Ask::permission(ask, *request, deadline);
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
                    self.parts.desk.drop_one(&id, why);
                }
            }
            Effect::Progress(view) => self.voice.progress(view),
            Effect::Finished(finish) => self.finished(*finish),
            Effect::Fate { uuid, fate } => match fate {
                Fate::Done => {}
                Fate::Failed | Fate::Lost => {
                    debug!(text = uuid, ?fate, "words were not carried out");
                }
            },
            Effect::Tell(notice) => self.tell(&notice),
        }
        None
    }

    fn start(&mut self, number: ChildNo, opening: Opening, mode: Mode) {
        let settings = &self.parts.config.sessions;
        info!(session = self.number, child = number, "claude starts");
        self.unsaid.clear();
        let child = process::start(Launch {
            program: settings.claude.clone(),
            project: self.project.path.clone(),
            opening,
            permissions: if settings.bypass {
                Permissions::Bypass
            } else {
                Permissions::Ask(mode)
            },
            environment: settings.environment.clone(),
            grace: Grace::default(),
        });
        self.child = Some((number, child));
    }

    async fn ask(&mut self, ask: Ask) -> Option<RequestId> {
        let id = ask.id.clone();
        let call = (ask.tool.clone(), ask.input.clone());
        let conversation = self.session.conversation();
        let put_up = asks::put_up(&self.parts, self.number, &self.project, conversation, ask).await;
        let Some(mut waiting) = put_up else {
            return Some(id);
        };
        self.asked.insert(id.clone(), call);
        self.asks
            .spawn(async move { (id, waiting.answered().await) });
        None
    }

    fn finished(&mut self, finish: Finish) {
        self.voice.ended(End::Turn(finish.how), Some(finish.view));
        if let Some(answer) = finish.answer.filter(|answer| !answer.trim().is_empty()) {
            self.voice.answer(answer);
        }
    }

    fn tell(&mut self, notice: &Notice) {
        let end = match notice {
            Notice::Stopped => Some(End::Stopped),
            Notice::Crashed { .. } => Some(End::Crashed),
            Notice::NoProgress { .. } => Some(End::NoProgress),
            Notice::NotInstalled
            | Notice::ProjectGone
            | Notice::NotStarted { .. }
            | Notice::Expired
            | Notice::InUse => Some(End::NotStarted),
            Notice::Restarted => Some(End::Restarted),
            Notice::QuestionTimedOut
            | Notice::ApprovalTimedOut { .. }
            | Notice::NothingRuns
            | Notice::AlreadyStopping
            | Notice::NotCarriedOut { .. }
            | Notice::TooManyTexts
            | Notice::LineTooLong { .. }
            | Notice::CannotAsk
            | Notice::Mode(_)
            | Notice::ModeRefused(_) => None,
        };
        if let Some(end) = end {
            self.voice.ended(end, None);
        }
        let text = words::notice(notice);
        self.voice.text(text.get(self.parts.config.lang).to_owned());
    }

    /// Writes down what a restart needs, when it has changed.
    async fn remember(&mut self) {
        let (saved, status) = (self.session.saved(), self.session.status());
        let changed = saved != self.saved;
        let kept = self.parts.sessions.change(self.number, |entry| {
            entry.status = status;
            entry.kept.saved = saved.clone();
        });
        if changed && let Some(kept) = kept {
            keep(&self.parts, kept).await;
        }
        self.saved = saved;
    }

    /// The daemon stops: what a restart would say is said now.
    async fn shut_down(&mut self) {
        let (session, effects) = Session::restored(self.session.saved(), limits(&self.parts));
        self.session = session;
        for effect in effects {
            self.carry_out(effect).await;
        }
        self.child = None;
        self.remember().await;
    }
}

async fn next(events: Option<(ChildNo, &mut mpsc::Receiver<Event>)>) -> (ChildNo, Event) {
    if let Some((child, events)) = events
        && let Some(event) = events.recv().await
    {
        return (child, event);
    }
    std::future::pending().await
}

async fn room(say: Option<&mpsc::Sender<Say>>) -> Option<mpsc::Permit<'_, Say>> {
    say?.reserve().await.ok()
}
