//! Dialogs in a terminal that no hook asks about: the owner is told that
//! something waits there, and the card says so once it is over.

use serde_json::Value;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tracing::warn;

use super::courier::Drawn;
use super::parts::Parts;
use super::{courier, mailboxes, notices};
use crate::approvals::request::Agent;
use crate::cards::notice::{self, Why};
use crate::claude::status::State;
use crate::ids::{MessageId, SessionId};
use crate::store::{About, Db, StoreError};

const MAX: usize = 64;
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Nobody comes back to a dialog that stood open for so long.
const KEPT: Duration = Duration::from_secs(12 * 60 * 60);

#[derive(Default)]
pub(super) struct Dialogs {
    open: Mutex<HashMap<SessionId, Arc<Notify>>>,
}

impl Dialogs {
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

    /// The session went on, or asks something else.
    pub(super) fn over(&self, session: &SessionId) {
        if let Some(over) = self.lock().get(session) {
            over.notify_one();
        }
    }
}

/// Claude Code says that a dialog waits. Most have a card of their own.
pub(super) fn told(parts: &Arc<Parts>, about: About, message: Option<String>) {
    let pending = parts.desk.all_pending();
    let has_card = pending.iter().any(|request| {
        request.origin.session.as_ref() == Some(&about.session)
            && parts.desk.running_since(&request.id).is_none()
    });
    if has_card {
        return;
    }
    if let Some(over) = parts.dialogs.opens(&about.session) {
        tokio::spawn(show(Arc::clone(parts), about, message, over));
    }
}

async fn show(parts: Arc<Parts>, about: About, message: Option<String>, over: Arc<Notify>) {
    let session = about.session.clone();
    let known = waits(&parts, &session).await;
    if known != Some(false) {
        let card = drawn(&parts, &about, Why::Dialog, message.as_deref());
        let uuid = format!("dialog-{session}-{}", parts.now());
        let after = drawn(&parts, &about, Why::DialogOver, message.as_deref());
        if let Some(sent) = notices::send(&parts, card, uuid, about).await {
            keep(&parts, &sent, Db::dialog_opened).await;
            wait(&parts, &session, &over, known.is_some()).await;
            say(&parts, sent, &after).await;
        }
    }
    parts.dialogs.lock().remove(&session);
}

/// Notices of the last daemon that say a dialog waits: nobody watched it since,
/// so they say just that.
pub(super) async fn restore(parts: &Parts) {
    let open = parts.store.run(Db::open_dialogs).await;
    for (message, about) in open.unwrap_or_default() {
        let card = drawn(parts, &about, Why::DialogUnwatched, None);
        say(parts, message, &card).await;
    }
}

async fn say(parts: &Parts, message: MessageId, card: &Value) {
    let face: Drawn = card.to_string().into();
    courier::queue_edit(parts, message.clone(), face.into(), Duration::ZERO).await;
    keep(parts, &message, Db::dialog_over).await;
}

async fn keep(
    parts: &Parts,
    message: &MessageId,
    change: fn(&Db, &MessageId) -> Result<(), StoreError>,
) {
    let message = message.clone();
    if let Err(why) = parts.store.run(move |db| change(db, &message)).await {
        warn!("whether a notice is still true was not kept: {why}");
    }
}

/// Waits until the dialog is gone: by the session's own word where there is
/// one, else by whatever happens next in it.
async fn wait(parts: &Parts, session: &SessionId, over: &Notify, is_told: bool) {
    let give_up = Instant::now() + KEPT;
    while Instant::now() < give_up {
        let stirred = timeout(LOOK_EVERY, over.notified()).await.is_ok();
        let waits = if is_told {
            waits(parts, session).await == Some(true)
        } else {
            !stirred
        };
        if !waits {
            return;
        }
    }
}

/// Whether a dialog is open in this session; unknown where it does not tell.
async fn waits(parts: &Parts, session: &SessionId) -> Option<bool> {
    let terminal = parts.mailboxes.find(session)?;
    let state = mailboxes::open_one(terminal).await?.state;
    Some(state == State::Waiting)
}

fn drawn(parts: &Parts, about: &About, why: Why, message: Option<&str>) -> Value {
    let project = PathBuf::from(&about.project);
    let card = notice::Notice {
        why,
        agent: &Agent::ClaudeCode,
        machine: &parts.machine.name,
        project: &project,
        session: Some(&about.session),
        took: None,
        message,
    };
    notice::notice(&card, parts.config.lang)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_one_dialog_and_there_is_an_end_to_sessions() {
        let dialogs = Dialogs::default();
        let session = |n: usize| SessionId::parse(&format!("s{n}")).unwrap();
        assert!(dialogs.opens(&session(0)).is_some());
        assert!(dialogs.opens(&session(0)).is_none());
        for n in 1..MAX {
            assert!(dialogs.opens(&session(n)).is_some());
        }
        assert!(dialogs.opens(&session(MAX)).is_none());
    }
}
