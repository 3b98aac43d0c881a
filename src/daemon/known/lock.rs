//! Whether taps in Feishu may allow anything. Locked by a command here or by
//! `/lock` in the chat, opened only by a command here; survives a restart.
//! Locked when nobody knows.

use std::sync::{Mutex, MutexGuard, PoisonError};
use tracing::{info, warn};

use crate::approvals::outcome::Refusal;
use crate::daemon::known::journal::{self, Journal};
use crate::store::{LOCKED as KEY, NOBODY_KNOWS, Store};
use crate::text::Text;
use crate::wording::{LOCKED, LOCKED_UNSURE};

pub(crate) struct Lock {
    state: Mutex<LockState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LockState {
    is: Is,
    /// Whether the next daemon will know.
    kept: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Is {
    Open,
    Closed,
    /// The file that would tell was lost or can't be read.
    Unsure,
}

impl Lock {
    /// As the last daemon left it. A store that cannot tell leaves it closed:
    /// uncertainty never allows.
    pub(crate) async fn restore(store: &Store) -> Self {
        let is = match store.run(|db| db.meta(KEY)).await {
            Ok(Some(word)) if word == "no" => Is::Open,
            Ok(Some(word)) if word == "yes" => Is::Closed,
            Ok(_) => Is::Unsure,
            Err(why) => {
                warn!("the store cannot tell whether nod was locked: {why}");
                Is::Unsure
            }
        };
        if is == Is::Unsure {
            warn!("locked, because nobody knows whether it was: `nod unlock` opens it");
            let kept = store.run(|db| db.set_meta(KEY, NOBODY_KNOWS)).await;
            if let Err(why) = kept {
                warn!("a restart would have to find out anew: {why}");
            }
        }
        Self {
            state: Mutex::new(LockState { is, kept: true }),
        }
    }

    pub(crate) fn is(&self) -> Is {
        self.lock().is
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is() != Is::Open
    }

    /// False where a restart would forget what was set last.
    pub(crate) fn is_kept(&self) -> bool {
        self.lock().kept
    }

    /// What whoever may not go on is told.
    pub(crate) fn text(&self) -> Text {
        match self.is() {
            Is::Unsure => LOCKED_UNSURE.clone(),
            Is::Open | Is::Closed => LOCKED.clone(),
        }
    }

    /// The same to a tap; `None` when nothing is locked.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        match self.is() {
            Is::Open => None,
            Is::Closed => Some(Refusal::Locked),
            Is::Unsure => Some(Refusal::LockedUnsure),
        }
    }

    fn set(&self, is: Is) -> Is {
        std::mem::replace(&mut self.lock().is, is)
    }

    fn lock(&self) -> MutexGuard<'_, LockState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Locks or unlocks, and writes down who did: an id of Feishu's, or `None` for
/// a command on this machine. Whether it changed anything.
pub(crate) async fn set(lock: &Lock, journal: &Journal, closed: bool, by: Option<&str>) -> bool {
    let (is, value, word) = if closed {
        (Is::Closed, "yes", "locked")
    } else {
        (Is::Open, "no", "unlocked")
    };
    let before = lock.set(is);
    let kept = journal.store.run(move |db| db.set_meta(KEY, value)).await;
    if let Err(why) = &kept {
        warn!("a restart would forget that nod is {word}: {why}");
    }
    lock.lock().kept = kept.is_ok();
    if before != is {
        info!("remote approval is {word}");
        journal::noted(journal, word, by).await;
    }
    before != is
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_lock_is_as_it_was_left_and_closed_when_nobody_knows() {
        let store = Store::in_memory().unwrap();
        assert_eq!(Lock::restore(&store).await.is(), Is::Open);
        for (word, is) in [("yes", Is::Closed), ("no", Is::Open), ("nn", Is::Unsure)] {
            store.run(move |db| db.set_meta(KEY, word)).await.unwrap();
            let lock = Lock::restore(&store).await;
            assert_eq!(lock.is(), is);
            assert_eq!(lock.is_closed(), lock.refusal().is_some());
        }
        assert_eq!(Lock::restore(&store).await.is(), Is::Unsure, "still");
        store.clone().close().await;
        assert_eq!(Lock::restore(&store).await.is(), Is::Unsure);
    }

    #[tokio::test]
    async fn a_store_that_can_not_be_kept_leaves_it_closed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("not-a-directory");
        std::fs::write(&file, "").unwrap();
        let (store, _) = Store::open(&file, 1).unwrap();
        assert_eq!(Lock::restore(&store).await.is(), Is::Unsure);
        let (store, _) = Store::open(&dir.path().join("new"), 1).unwrap();
        assert_eq!(Lock::restore(&store).await.is(), Is::Open, "a first start");
    }
}
