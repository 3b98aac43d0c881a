//! Edits of sent messages: one at a time per message, far enough apart for
//! Feishu's limit, and only the newest of those that wait. An edit given up by
//! its caller never takes an older one down with it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::feishu::error::ApiError;
use crate::ids::MessageId;

/// Feishu takes five edits of one message a second; four leave room for
/// unsteady delivery.
const APART: Duration = Duration::from_millis(250);

/// Messages under edit at once.
const MAX_MESSAGES: usize = 1024;

/// From this many on, a new message first clears idle ones away.
const TIDY_FROM: usize = 64;

/// The edits under way; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Edits {
    lanes: Arc<Mutex<HashMap<MessageId, Arc<Lane>>>>,
}

#[derive(Debug, Default)]
struct Lane {
    /// Held while an edit of this message is on its way.
    turn: tokio::sync::Mutex<()>,
    wanted: Mutex<Wanted>,
}

#[derive(Debug, Default)]
struct Wanted {
    /// The newest card that is not in place yet.
    newest: Option<Arc<Value>>,
    last_sent: Option<Instant>,
}

impl Edits {
    /// Puts `card` in place by `send`, after the edits before it; returns once
    /// it or a newer card is there.
    pub(super) async fn apply(
        &self,
        message: &MessageId,
        card: Value,
        send: impl AsyncFn(&Value) -> Result<(), ApiError>,
    ) -> Result<(), ApiError> {
        let lane = self.lane(message)?;
        lane.wanted().newest = Some(Arc::new(card));
        let _turn = lane.turn.lock().await;
        let free_at = lane.wanted().last_sent.map(|sent| sent + APART);
        if let Some(free_at) = free_at {
            tokio::time::sleep_until(free_at).await;
        }
        let Some(newest) = lane.wanted().newest.clone() else {
            return Ok(());
        };
        let outcome = send(&newest).await;
        let mut wanted = lane.wanted();
        wanted.last_sent = Some(Instant::now());
        let unchanged = wanted
            .newest
            .as_ref()
            .is_some_and(|card| Arc::ptr_eq(card, &newest));
        if outcome.is_ok() && unchanged {
            wanted.newest = None;
        }
        outcome
    }

    fn lane(&self, message: &MessageId) -> Result<Arc<Lane>, ApiError> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lane) = lanes.get(message) {
            return Ok(Arc::clone(lane));
        }
        if lanes.len() >= TIDY_FROM {
            let now = Instant::now();
            lanes.retain(|_, lane| Arc::strong_count(lane) > 1 || !lane.is_idle(now));
        }
        if lanes.len() >= MAX_MESSAGES {
            return Err(ApiError::Crowded { after: APART });
        }
        let lane = Arc::<Lane>::default();
        lanes.insert(message.clone(), Arc::clone(&lane));
        Ok(lane)
    }
}

impl Lane {
    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_idle(&self, now: Instant) -> bool {
        self.wanted()
            .last_sent
            .is_none_or(|sent| sent + APART <= now)
    }
}
