//! Whether taps in Feishu may allow anything. Locked by a command here or by
//! `/lock` in the chat, opened only by a command here; survives a restart.

use std::sync::atomic::{AtomicBool, Ordering};
use tracing::{info, warn};

use super::journal;
use super::parts::Parts;
use crate::store::Store;

const KEY: &str = "locked";

pub(super) struct Lock {
    closed: AtomicBool,
}

impl Lock {
    /// As the last daemon left it. A store that cannot tell leaves it closed:
    /// uncertainty never allows.
    pub(super) async fn restore(store: &Store) -> Self {
        let closed = match store.run(|db| db.meta(KEY)).await {
            Ok(kept) => kept.as_deref() == Some("yes"),
            Err(why) => {
                warn!("locked, because it cannot be told whether it was: {why}");
                true
            }
        };
        Self {
            closed: AtomicBool::new(closed),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }
}

/// Locks or unlocks, and writes down who did: an id of Feishu's, or `None` for
/// a command on this machine.
pub(super) async fn set(parts: &Parts, closed: bool, by: Option<&str>) {
    let before = parts.lock.closed.swap(closed, Ordering::SeqCst);
    let (value, word) = if closed {
        ("yes", "locked")
    } else {
        ("no", "unlocked")
    };
    if let Err(why) = parts.store.run(move |db| db.set_meta(KEY, value)).await {
        warn!("a restart would forget that nod is {word}: {why}");
    }
    if before != closed {
        info!("remote approval is {word}");
        journal::noted(parts, word, by).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_lock_is_as_it_was_left_and_closed_when_nobody_knows() {
        let store = Store::in_memory().unwrap();
        assert!(!Lock::restore(&store).await.is_closed());
        store.run(|db| db.set_meta(KEY, "yes")).await.unwrap();
        assert!(Lock::restore(&store).await.is_closed());
        store.clone().close().await;
        assert!(Lock::restore(&store).await.is_closed());
    }
}
