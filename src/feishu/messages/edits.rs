//! Edits of sent messages: one at a time per message, far enough apart for
//! Feishu's limit, and only the newest of those that wait. An edit given up by
//! its caller never takes an older one down with it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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
pub(super) struct EditLanes {
    lanes: Arc<Mutex<HashMap<MessageId, Arc<EditLane>>>>,
}

#[derive(Debug, Default)]
struct EditLane {
    /// Held while an edit of this message is on its way.
    turn: tokio::sync::Mutex<()>,
    wanted: Mutex<WantedEdit>,
}

#[derive(Debug, Default)]
struct WantedEdit {
    /// The newest card that is not in place yet.
    newest: Option<Arc<str>>,
    last_sent: Option<Instant>,
}

impl EditLanes {
    /// Puts `card` in place by `send`, after the edits before it; returns once
    /// it or a newer card is there.
    pub(super) async fn apply<F>(
        &self,
        message: &MessageId,
        card: Arc<str>,
        send: impl FnOnce(Arc<str>) -> F,
    ) -> Result<(), ApiError>
    where
        F: Future<Output = Result<(), ApiError>>,
    {
        let lane = self.lane(message)?;
        lane.wanted().newest = Some(card);
        let _turn = lane.turn.lock().await;
        let free_at = lane.wanted().last_sent.map(|sent| sent + APART);
        if let Some(free_at) = free_at {
            tokio::time::sleep_until(free_at).await;
        }
        let Some(newest) = lane.wanted().newest.clone() else {
            return Ok(());
        };
        let outcome = send(Arc::clone(&newest)).await;
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

    fn lane(&self, message: &MessageId) -> Result<Arc<EditLane>, ApiError> {
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
        let lane = Arc::<EditLane>::default();
        lanes.insert(message.clone(), Arc::clone(&lane));
        Ok(lane)
    }
}

impl EditLane {
    fn wanted(&self) -> MutexGuard<'_, WantedEdit> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_idle(&self, now: Instant) -> bool {
        self.wanted()
            .last_sent
            .is_none_or(|sent| sent + APART <= now)
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Notify;

    use super::*;
    use crate::feishu::error::FeishuAnswer;

    type Log = Arc<Mutex<Vec<(Instant, String)>>>;

    fn id(text: &str) -> MessageId {
        MessageId::parse(text).expect("a message id")
    }

    fn note(log: &Log, card: &str) {
        let mut log = log.lock().expect("no test panicked");
        log.push((Instant::now(), card.to_owned()));
    }

    fn gone() -> ApiError {
        ApiError::Gone(FeishuAnswer::new(230_110, "", None))
    }

    #[tokio::test(start_paused = true)]
    async fn edits_keep_their_distance() {
        let (edits, log) = (EditLanes::default(), Log::default());
        for number in 0..5 {
            edits
                .apply(&id("om_1"), format!("{number}").into(), async |card| {
                    note(&log, &card);
                    Ok(())
                })
                .await
                .expect("edited");
        }
        let log = log.lock().expect("no test panicked");
        assert_eq!(log.len(), 5);
        for pair in log.windows(2) {
            assert!(pair[1].0 - pair[0].0 >= APART);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_edit_given_up_still_arrives_with_the_one_before_it() {
        let (edits, log) = (EditLanes::default(), Log::default());
        let started = Notify::new();
        let release = Notify::new();
        let send = async |card: Arc<str>| {
            note(&log, &card);
            started.notify_one();
            if &*card == "first" {
                release.notified().await;
            }
            Ok(())
        };
        let message = id("om_1");
        let first = edits.apply(&message, "first".into(), &send);
        let rest = async {
            started.notified().await;
            let second = edits.apply(&message, "second".into(), &send);
            let given_up = async {
                let third = edits.apply(&message, "third".into(), &send);
                let waited = tokio::time::timeout(APART / 10, third).await;
                assert!(waited.is_err());
                release.notify_one();
            };
            tokio::join!(second, given_up).0
        };
        let (first, second) = tokio::join!(first, rest);
        assert_eq!((first, second), (Ok(()), Ok(())));
        let log = log.lock().expect("no test panicked");
        let cards: Vec<_> = log.iter().map(|(_, card)| card.clone()).collect();
        assert_eq!(cards, ["first", "third"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_edit_is_told_to_its_caller_and_the_next_is_sent() {
        let edits = EditLanes::default();
        let message = id("om_1");
        let failed = edits
            .apply(&message, "1".into(), async |_| Err(gone()))
            .await;
        assert_eq!(failed, Err(gone()));
        let log = Log::default();
        let sent = edits
            .apply(&message, "2".into(), async |card| {
                note(&log, &card);
                Ok(())
            })
            .await;
        assert_eq!(sent, Ok(()));
        assert_eq!(log.lock().expect("no test panicked")[0].1, "2");
    }

    #[tokio::test(start_paused = true)]
    async fn idle_messages_are_forgotten() {
        let edits = EditLanes::default();
        for number in 0..MAX_MESSAGES * 2 {
            edits
                .apply(&id(&format!("om_{number}")), "1".into(), async |_| Ok(()))
                .await
                .expect("edited");
            tokio::time::advance(APART).await;
        }
        let lanes = edits.lanes.lock().expect("no test panicked").len();
        assert!(lanes <= TIDY_FROM, "{lanes} messages are remembered");
    }

    #[tokio::test(start_paused = true)]
    async fn too_many_messages_under_edit_are_refused() {
        let edits = EditLanes::default();
        let busy: Vec<_> = (0..MAX_MESSAGES)
            .map(|number| edits.lane(&id(&format!("om_{number}"))).expect("a lane"))
            .collect();
        let refused = edits
            .apply(&id("om_more"), "1".into(), async |_| Ok(()))
            .await;
        assert!(matches!(refused, Err(ApiError::Crowded { .. })));
        drop(busy);
        let sent = edits
            .apply(&id("om_more"), "1".into(), async |_| Ok(()))
            .await;
        assert_eq!(sent, Ok(()));
    }
}
