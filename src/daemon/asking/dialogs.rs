//! Dialogs in a terminal that no hook asks about, and plans that Codex's
//! terminal asks about: the owner is told that something waits there, and the
//! card says so once it is over.

use serde_json::Value;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::agents::codex::ask;
use crate::approvals::request::AskingAgent;
use crate::cards::notice::Why;
use crate::claude::status::Activity;
use crate::clock::Millis;
use crate::daemon::cards::courier::{self, Cards};
use crate::daemon::cards::notices;
use crate::daemon::known::journal;
use crate::daemon::terminals::mailboxes::{self, Mailboxes};
use crate::ids::{MessageId, SessionId};
use crate::rules::Leaves;
use crate::store::{About, Db, StoreError};

const MAX: usize = 64;
/// Of a plan; a card shows less.
const MAX_SHOWN: usize = 16_000;
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Nobody comes back to a dialog that stood open for so long.
const KEPT: Duration = Duration::from_secs(12 * 60 * 60);

pub(crate) struct Dialogs {
    pub(crate) cards: Arc<Cards>,
    pub(crate) mailboxes: Arc<Mailboxes>,
    open: Mutex<HashMap<SessionId, Arc<Notify>>>,
}

impl Dialogs {
    pub(crate) fn new(cards: Arc<Cards>, mailboxes: Arc<Mailboxes>) -> Self {
        Self {
            cards,
            mailboxes,
            open: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Notify>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` while one is told of, and where too many are.
    fn opens(&self, session: &SessionId) -> Option<Arc<Notify>> {
        let mut open = self.lock();
        if open.contains_key(session) || open.len() >= MAX {
            return None;
        }
        let over = Arc::new(Notify::new());
        open.insert(session.clone(), Arc::clone(&over));
        Some(over)
    }

    /// A plan takes the place of the one before in its session, which is over.
    /// `None` where too many wait.
    fn plans(&self, session: &SessionId) -> Option<Arc<Notify>> {
        if let Some(before) = self.lock().remove(session) {
            before.notify_one();
        }
        self.opens(session)
    }

    /// Nobody watches this one any more; another may have taken its place.
    fn forget(&self, session: &SessionId, over: &Arc<Notify>) {
        let mut open = self.lock();
        if open.get(session).is_some_and(|it| Arc::ptr_eq(it, over)) {
            open.remove(session);
        }
    }

    /// The session went on, or asks something else.
    pub(crate) fn over(&self, session: &SessionId) {
        if let Some(over) = self.lock().get(session) {
            over.notify_one();
        }
    }
}

/// Claude Code says that a dialog waits. Most have a card of their own.
pub(crate) fn told(dialogs: &Arc<Dialogs>, about: About, message: Option<String>) {
    let pending = dialogs.cards.desk.all_pending();
    let has_card = pending.iter().any(|request| {
        request.origin.session.as_ref() == Some(&about.session)
            && dialogs.cards.desk.running_since(&request.id).is_none()
    });
    if has_card {
        return;
    }
    if let Some(over) = dialogs.opens(&about.session) {
        tokio::spawn(show(Arc::clone(dialogs), about, message, over));
    }
}

async fn show(dialogs: Arc<Dialogs>, about: About, message: Option<String>, over: Arc<Notify>) {
    let session = about.session.clone();
    let known = waits(&dialogs, &session).await;
    if known != Some(false) {
        let card = drawn(&dialogs, &about, Why::Dialog, message.as_deref(), None);
        let uuid = format!("dialog-{session}-{}", dialogs.cards.now());
        let after = drawn(&dialogs, &about, Why::DialogOver, message.as_deref(), None);
        if let Some(sent) = notices::send(&dialogs.cards, card, uuid, about).await {
            keep(&dialogs, &sent, |db, sent| db.dialog_opened(sent, "")).await;
            wait(&dialogs, &session, &over, known.is_some()).await;
            say(&dialogs, sent, &after).await;
        }
    }
    dialogs.forget(&session, &over);
}

/// Codex's terminal asks whether to carry a plan out, and tells nobody what was
/// chosen there: the session's next step does. `went_on`: it has taken that.
pub(crate) fn planned(
    dialogs: &Arc<Dialogs>,
    about: About,
    plan: String,
    took: Millis,
    went_on: bool,
) {
    let over = dialogs.plans(&about.session);
    if let (Some(over), true) = (&over, went_on) {
        over.notify_one();
    }
    tokio::spawn(show_plan(Arc::clone(dialogs), about, plan, took, over));
}

async fn show_plan(
    dialogs: Arc<Dialogs>,
    about: About,
    plan: String,
    took: Millis,
    over: Option<Arc<Notify>>,
) {
    let face = |why| drawn(&dialogs, &about, why, Some(&plan), Some(took));
    let (card, after, unwatched) = (
        face(Why::Planned),
        face(Why::PlanOver),
        face(Why::PlanUnwatched),
    );
    let session = about.session.clone();
    let uuid = format!("{session}-{}", dialogs.cards.now());
    let sent = notices::send(&dialogs.cards, card, uuid, about).await;
    let Some(over) = over else { return };
    if let Some(sent) = sent {
        let shows: String = plan.chars().take(MAX_SHOWN).collect();
        keep(&dialogs, &sent, move |db, sent| {
            db.dialog_opened(sent, &shows)
        })
        .await;
        let went_on = timeout(KEPT, over.notified()).await.is_ok();
        say(&dialogs, sent, if went_on { &after } else { &unwatched }).await;
    }
    dialogs.forget(&session, &over);
}

/// Notices of the last daemon that say a dialog or a plan waits: nobody watched it since,
/// so they say just that.
pub(crate) async fn restore(dialogs: &Dialogs) {
    let open = dialogs.cards.journal.store.run(Db::open_dialogs).await;
    for (message, about, shows) in open.unwrap_or_default() {
        let shows = Some(shows.as_str()).filter(|shows| !shows.is_empty());
        let why = match shows {
            Some(_) => Why::PlanUnwatched,
            None => Why::DialogUnwatched,
        };
        let card = drawn(dialogs, &about, why, shows, None);
        say(dialogs, message, &card).await;
    }
}

async fn say(dialogs: &Dialogs, message: MessageId, card: &Value) {
    courier::queue_edit(&dialogs.cards, message.clone(), card.into(), Duration::ZERO).await;
    keep(dialogs, &message, Db::dialog_over).await;
}

async fn keep(
    dialogs: &Dialogs,
    message: &MessageId,
    change: impl FnOnce(&Db, &MessageId) -> Result<(), StoreError> + Send + 'static,
) {
    let (message, journal) = (message.clone(), &dialogs.cards.journal);
    let otherwise = "whether a notice is still true was not kept";
    journal::run(journal, otherwise, move |db| change(db, &message)).await;
}

/// Waits until the dialog is gone: by the session's own word where there is
/// one, else by whatever happens next in it.
async fn wait(dialogs: &Dialogs, session: &SessionId, over: &Notify, is_told: bool) {
    let give_up = Instant::now() + KEPT;
    while Instant::now() < give_up {
        let stirred = timeout(LOOK_EVERY, over.notified()).await.is_ok();
        let waits = if is_told {
            waits(dialogs, session).await == Some(true)
        } else {
            !stirred
        };
        if !waits {
            return;
        }
    }
}

/// Whether a dialog is open in this session; unknown where it does not tell.
async fn waits(dialogs: &Dialogs, session: &SessionId) -> Option<bool> {
    let terminal = dialogs.mailboxes.find(session)?;
    let state = mailboxes::open_one(terminal).await?.state;
    Some(state == Activity::Waiting)
}

fn drawn(
    dialogs: &Dialogs,
    about: &About,
    why: Why,
    message: Option<&str>,
    took: Option<Millis>,
) -> Value {
    let project = PathBuf::from(&about.project);
    let thread = ask::thread(&about.session);
    let agent = match thread {
        Some(_) => AskingAgent::Codex(Leaves::default()),
        None => AskingAgent::ClaudeCode,
    };
    let session = Some(thread.as_ref().unwrap_or(&about.session));
    notices::drawn(
        &dialogs.cards,
        why,
        &agent,
        &project,
        session,
        took,
        message,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::cards::bench::Bench;

    async fn none() -> Dialogs {
        let cards = Bench::new().await.cards;
        Dialogs::new(cards, Arc::default())
    }

    #[tokio::test]
    async fn a_session_has_one_dialog_and_there_is_an_end_to_sessions() {
        let dialogs = none().await;
        let session = |n: usize| SessionId::parse(&format!("s{n}")).unwrap();
        assert!(dialogs.opens(&session(0)).is_some());
        assert!(dialogs.opens(&session(0)).is_none());
        for n in 1..MAX {
            assert!(dialogs.opens(&session(n)).is_some());
        }
        assert!(dialogs.opens(&session(MAX)).is_none());
        assert!(dialogs.plans(&session(MAX)).is_none());
    }

    #[tokio::test]
    async fn a_plan_takes_the_place_of_the_one_before() {
        let dialogs = none().await;
        let session = SessionId::parse("codex-t").unwrap();
        let before = dialogs.plans(&session).unwrap();
        let now = dialogs.plans(&session).unwrap();
        dialogs.forget(&session, &before);
        assert_eq!(dialogs.lock().len(), 1, "the second is watched");
        dialogs.forget(&session, &now);
        assert!(dialogs.lock().is_empty());
    }
}
