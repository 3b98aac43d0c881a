//! The sessions started from chat: where each lives, who owns it while it is
//! awake, and what is kept of it. One owner task per session that is awake;
//! an order to one that sleeps wakes it.

mod asks;
mod begin;
#[cfg(test)]
mod bench;
mod codex;
pub(crate) mod files;
mod folder;
mod hand;
mod owner;
mod voice;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

pub(crate) use self::begin::{SessionOpening, adopt, begin};
use self::owner::SessionOwner;
use self::voice::Voice;
use crate::approvals::request::Request;
use crate::cards::progress;
use crate::clock::{Millis, millis};
use crate::config::SessionSettings;
use crate::daemon::asking::codex::CodexLinks;
use crate::daemon::cards::courier::{self, Cards};
use crate::daemon::known::journal;
use crate::feishu::messages::SentMessage;
use crate::ids::{MessageId, SessionId};
use crate::sessions::command::Project;
use crate::sessions::route::{self, ChatPlace, Written};
use crate::sessions::state::{self, Session, SessionLimits, SessionStatus};
use crate::store::{Db, KeptSession};
use crate::text::{Lang, Text};
use crate::wording::task as words;

/// Orders that wait for one owner.
const MAX_ORDERS: usize = 64;
/// Children at the same time; each is a whole agent.
const MAX_AWAKE: usize = 16;
const MAX_KNOWN: usize = 256;
/// An answer given in time may be on its way this long.
const SLACK: Millis = 5_000;
const STOP_WITHIN: Duration = Duration::from_secs(3);

/// What a person wants of a session.
#[derive(Debug)]
pub(crate) enum SessionOrder {
    Text(String),
    Command(state::SessionCommand),
}

pub(crate) struct Sessions {
    pub(crate) cards: Arc<Cards>,
    codex: Arc<CodexLinks>,
    app_id: String,
    book: Mutex<HashMap<i64, KnownSession>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

struct KnownSession {
    kept: KeptSession,
    status: SessionStatus,
    /// `None` while it sleeps.
    owner: Option<mpsc::Sender<SessionOrder>>,
    /// The message its topic hangs on, as far as this run knows.
    root: Option<MessageId>,
}

impl KnownSession {
    fn listed(&self) -> ListedSession {
        ListedSession {
            kept: self.kept.clone(),
            status: self.status,
        }
    }
}

/// The session that words written somewhere are for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AddressedSession {
    One(i64),
    /// The words could be for any of several.
    Several,
    /// They reply to something that is no session's.
    Nobodys,
    None,
}

/// One session, for lists.
pub(crate) struct ListedSession {
    pub(crate) kept: KeptSession,
    pub(crate) status: SessionStatus,
}

impl Sessions {
    pub(crate) fn new(cards: Arc<Cards>, codex: Arc<CodexLinks>, app_id: String) -> Self {
        Self {
            cards,
            codex,
            app_id,
            book: Mutex::default(),
            tasks: TaskTracker::default(),
            stop: CancellationToken::default(),
        }
    }

    fn now(&self) -> Millis {
        self.cards.now()
    }

    fn lang(&self) -> Lang {
        self.cards.config.lang
    }

    fn settings(&self) -> &SessionSettings {
        &self.cards.config.sessions
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i64, KnownSession>> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The one used last stands first.
    pub(crate) fn list(&self) -> Vec<ListedSession> {
        let mut all: Vec<_> = self.lock().values().map(KnownSession::listed).collect();
        all.sort_by_key(|one| std::cmp::Reverse((one.kept.used_at, one.kept.number)));
        all
    }

    /// The session that carries on this conversation of its agent's.
    pub(crate) fn of_conversation(&self, id: &SessionId) -> Option<i64> {
        let book = self.lock();
        let found = book.values().find(|it| it.kept.saved.conversation == *id);
        found.map(|entry| entry.kept.number)
    }

    pub(crate) fn find(&self, number: i64) -> Option<ListedSession> {
        self.lock().get(&number).map(KnownSession::listed)
    }

    /// The session of this thread, or whose card is replied to. Plain words
    /// outside of threads are for the one that runs in this chat, or the only
    /// one there is.
    pub(crate) fn here(&self, written: &Written) -> AddressedSession {
        let mut all = self.list();
        all.reverse();
        all.retain(|one| one.kept.place.chat == written.place.chat);
        let open: Vec<_> = all
            .iter()
            .map(|one| route::OpenSession {
                session: one.kept.number,
                place: one.kept.place.clone(),
                messages: vec![one.kept.anchor.clone()]
                    .into_iter()
                    .chain(one.kept.card.clone())
                    .collect(),
            })
            .collect();
        if let route::MessageRoute::Session(number) = route::route(written, &[], &open) {
            return AddressedSession::One(number);
        }
        if written.place.thread.is_some() {
            return AddressedSession::None;
        }
        if written.parent.is_some() {
            return AddressedSession::Nobodys;
        }
        let running: Vec<_> = all
            .iter()
            .filter(|one| one.status != SessionStatus::Idle)
            .collect();
        match (running.as_slice(), all.as_slice()) {
            ([one], _) => AddressedSession::One(one.kept.number),
            ([], [only]) => AddressedSession::One(only.kept.number),
            ([], []) => AddressedSession::None,
            _ => AddressedSession::Several,
        }
    }

    /// The topic of the session whose first message this hangs on, where the
    /// message itself names no topic.
    pub(crate) fn topic_of(&self, written: &Written) -> Option<ChatPlace> {
        let root = written.root.as_ref()?;
        if written.place.thread.is_some() {
            return None;
        }
        let entries = self.lock();
        let here = |kept: &KeptSession| kept.place.chat == written.place.chat;
        let mut entries = entries.values();
        let found = entries.find(|entry| entry.root.as_ref() == Some(root) && here(&entry.kept))?;
        Some(found.kept.place.clone())
    }

    /// Whether a session lives in this very thread, or this replies to what it
    /// shows.
    pub(crate) fn is_about_one(&self, written: &Written) -> bool {
        let replied = [&written.parent, &written.root];
        let is_reply_to = |id: &MessageId| replied.contains(&&Some(id.clone()));
        self.lock().values().map(|entry| &entry.kept).any(|kept| {
            (written.place.thread.is_some() && kept.place == written.place)
                || is_reply_to(&kept.anchor)
                || kept.card.as_ref().is_some_and(is_reply_to)
        })
    }

    /// Whether a session that waits lives exactly here, for commands that are
    /// carried out elsewhere and cancel its wait.
    pub(crate) fn awake_at(&self, place: &ChatPlace) -> Option<i64> {
        let book = self.lock();
        let found = book
            .values()
            .find(|entry| entry.owner.is_some() && entry.kept.place == *place);
        found.map(|entry| entry.kept.number)
    }

    /// Tells a session to stop what it does; false when it does nothing.
    pub(crate) fn stop_task(&self, number: i64) -> bool {
        let book = self.lock();
        let Some(entry) = book.get(&number) else {
            return false;
        };
        let owner = entry
            .owner
            .as_ref()
            .filter(|_| entry.status != SessionStatus::Idle);
        let order = SessionOrder::Command(state::SessionCommand::Stop);
        owner.is_some_and(|owner| owner.try_send(order).is_ok())
    }

    fn change(&self, number: i64, change: impl FnOnce(&mut KnownSession)) -> Option<KeptSession> {
        let mut book = self.lock();
        let entry = book.get_mut(&number)?;
        change(entry);
        Some(entry.kept.clone())
    }

    /// Lets an owner go, unless an order came meanwhile.
    fn retire(&self, number: i64, orders: &mpsc::Receiver<SessionOrder>) -> bool {
        let mut book = self.lock();
        let quiet = orders.is_empty();
        if quiet && let Some(entry) = book.get_mut(&number) {
            entry.owner = None;
            entry.status = SessionStatus::Idle;
        }
        quiet
    }

    fn add(&self, kept: KeptSession) {
        let mut book = self.lock();
        if book.len() >= MAX_KNOWN {
            let oldest = book
                .values()
                .filter(|entry| entry.owner.is_none())
                .min_by_key(|entry| entry.kept.used_at)
                .map(|entry| entry.kept.number);
            if let Some(oldest) = oldest {
                book.remove(&oldest);
            }
        }
        let entry = KnownSession {
            status: SessionStatus::Idle,
            owner: None,
            root: None,
            kept,
        };
        book.insert(entry.kept.number, entry);
    }

    /// Ends every task so that its card says why, in bounded time.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        if tokio::time::timeout(STOP_WITHIN, self.tasks.wait())
            .await
            .is_err()
        {
            warn!("sessions were still being ended when time was up");
        }
    }
}

/// Takes up the sessions of the last run. Those that ran then get their ending.
pub(crate) async fn restore(sessions: &Arc<Sessions>) {
    files::remove_all(sessions).await;
    let otherwise = "the sessions of the last run cannot be read";
    let kept = journal::run(&sessions.cards.journal, otherwise, Db::sessions).await;
    for mut kept in kept.unwrap_or_default() {
        let number = kept.number;
        let card = kept.card.take();
        let (ran, agent) = (kept.saved.running || card.is_some(), kept.agent);
        kept.saved.running = false;
        kept.saved.asks.clear();
        sessions.add(kept.clone());
        if !ran {
            continue;
        }
        keep(sessions, kept).await;
        let voice = Voice::start(sessions, number, card);
        voice.ended(progress::TaskEnd::Restarted, None);
        let text = crate::wording::session::notice(&state::Notice::Restarted, agent);
        voice.text(text.get(sessions.lang()).to_owned());
        info!(session = number, "a task was cut off by the last stop");
    }
}

/// Has the card of an ask looked for that the last run may have sent without
/// learning where it is.
pub(crate) fn seek(sessions: &Sessions, request: &Request) {
    let all = sessions.list();
    let mut of_session = all
        .into_iter()
        .filter(|one| request.origin.session.as_ref() == Some(&one.kept.saved.conversation));
    if let Some(ListedSession { kept, .. }) = of_session.next() {
        let target = courier::CardTarget::Thread {
            anchor: kept.anchor,
            place: kept.place,
        };
        courier::seek(&sessions.cards, &request.id, target);
    }
}

fn limits(sessions: &Sessions) -> SessionLimits {
    let settings = sessions.settings();
    SessionLimits {
        question: millis(settings.question_timeout),
        approval: millis(settings.tool_timeout),
        quiet: millis(settings.task_timeout),
        slack: SLACK,
        ..SessionLimits::default()
    }
}

/// The project of a session, as the settings name it now.
fn project(sessions: &Sessions, number: i64) -> Option<Project> {
    let name = sessions.find(number)?.kept.project;
    sessions.settings().projects.find(&name).cloned()
}

/// Whether as many are awake as may be.
fn is_full(book: &HashMap<i64, KnownSession>) -> bool {
    let awake = book.values().filter(|entry| entry.owner.is_some());
    awake.count() >= MAX_AWAKE
}

/// Hands an order to a session's owner, waking it if it sleeps.
pub(crate) fn order(
    sessions: &Arc<Sessions>,
    number: i64,
    order: SessionOrder,
) -> Result<(), Text> {
    let Some(project) = project(sessions, number) else {
        return Err(words::PROJECT_UNKNOWN);
    };
    let mut book = sessions.lock();
    let is_full = is_full(&book);
    let entry = book.get_mut(&number).ok_or(words::NO_SUCH_SESSION)?;
    entry.kept.used_at = sessions.now();
    if let Some(owner) = &entry.owner {
        return owner.try_send(order).map_err(|_| words::BUSY);
    }
    if is_full {
        return Err(words::TOO_MANY_SESSIONS);
    }
    let (orders, inbox) = mpsc::channel(MAX_ORDERS);
    orders.try_send(order).map_err(|_| words::BUSY)?;
    entry.owner = Some(orders);
    let (session, _) = Session::restored(entry.kept.saved.clone(), limits(sessions));
    let (card, agent) = (entry.kept.card.clone(), entry.kept.agent);
    drop(book);
    let voice = Voice::start(sessions, number, card);
    let owner = SessionOwner::new(
        Arc::clone(sessions),
        number,
        (project, agent),
        session,
        inbox,
        voice,
    );
    let stop = sessions.stop.clone();
    sessions.tasks.spawn(owner.run(stop));
    Ok(())
}

/// Gives a session a new place: the thread of the message that asked for it.
pub(crate) async fn move_to(sessions: &Sessions, number: i64, place: ChatPlace, sent: SentMessage) {
    let now = sessions.now();
    let moved = sessions.change(number, |entry| {
        entry.kept.place = place;
        entry.kept.anchor = sent.message_id;
        entry.root = sent.root;
        entry.kept.used_at = now;
    });
    if let Some(kept) = moved {
        keep(sessions, kept).await;
    }
}

async fn keep(sessions: &Sessions, kept: KeptSession) {
    let otherwise = "a session was not kept, a restart would lose it";
    let save = move |db: &Db| db.save_session(&kept);
    journal::run(&sessions.cards.journal, otherwise, save).await;
}

/// A random id in the form Claude Code takes for a session.
fn uuid() -> String {
    let bits: u128 = rand::random();
    let bits = bits & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{bits:032x}");
    let sessions = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    sessions.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::cards::bench::Bench;
    use crate::ids::ChatId;
    use crate::sessions::agent::Agent;
    use crate::sessions::state::Saved;
    use crate::talk::Mode;

    fn place(thread: Option<&str>) -> ChatPlace {
        ChatPlace {
            chat: ChatId::parse("oc_1").unwrap(),
            thread: thread.map(str::to_owned),
        }
    }

    fn written(thread: Option<&str>) -> Written {
        Written {
            place: place(thread),
            parent: None,
            root: None,
        }
    }

    async fn none() -> Sessions {
        let cards = Bench::new().await.cards;
        Sessions::new(cards, Arc::default(), String::new())
    }

    fn kept(number: i64, thread: Option<&str>) -> KeptSession {
        KeptSession {
            number,
            saved: Saved {
                conversation: SessionId::parse(&uuid()).unwrap(),
                begun: false,
                mode: Mode::Default,
                running: false,
                asks: Vec::new(),
            },
            agent: Agent::Claude,
            home: None,
            project: "shop".to_owned(),
            title: String::new(),
            place: place(thread),
            anchor: MessageId::parse(&format!("om_{number}")).unwrap(),
            card: None,
            began_at: number,
            used_at: number,
        }
    }

    #[tokio::test]
    async fn words_find_the_session_of_their_thread_or_the_one_that_matters_in_the_chat() {
        let sessions = none().await;
        assert_eq!(sessions.here(&written(None)), AddressedSession::None);
        sessions.add(kept(1, Some("a")));
        sessions.add(kept(2, Some("b")));
        assert_eq!(sessions.here(&written(Some("a"))), AddressedSession::One(1));
        assert_eq!(sessions.here(&written(Some("c"))), AddressedSession::None);
        assert_eq!(
            sessions.here(&written(None)),
            AddressedSession::Several,
            "never the newest"
        );
        sessions.change(1, |entry| entry.status = SessionStatus::Executing);
        assert_eq!(
            sessions.here(&written(None)),
            AddressedSession::One(1),
            "the one that runs"
        );
        sessions.change(2, |entry| entry.status = SessionStatus::WaitingForInput);
        assert_eq!(sessions.here(&written(None)), AddressedSession::Several);
        let mut reply = written(None);
        reply.parent = MessageId::parse("om_2").ok();
        assert_eq!(
            sessions.here(&reply),
            AddressedSession::One(2),
            "a reply names its session"
        );
        reply.parent = MessageId::parse("om_99").ok();
        assert_eq!(sessions.here(&reply), AddressedSession::Nobodys);
    }

    #[tokio::test]
    async fn memory_is_bounded_and_the_oldest_sleeper_goes() {
        let sessions = none().await;
        for number in 0..300 {
            sessions.add(kept(number, None));
        }
        assert_eq!(sessions.list().len(), MAX_KNOWN);
        assert!(sessions.find(0).is_none() && sessions.find(299).is_some());
    }

    #[test]
    fn a_uuid_has_the_form_that_is_asked_for() {
        let made = uuid();
        assert_eq!(made.len(), 36);
        assert_eq!(&made[14..15], "4");
        assert!(matches!(&made[19..20], "8" | "9" | "a" | "b"), "{made}");
        assert_ne!(made, uuid());
    }
}
