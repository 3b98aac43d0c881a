//! Taps that may be under way. Feishu takes back an edit that comes while a
//! tap on its card is; so edits wait until none that nod knows of can be. A tap
//! that was lost with a connection, or with the daemon before this one, may be
//! on any card: edits made meanwhile are made again when it is over.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

use crate::ids::MessageId;

/// A tap whose reply was lost is under way for Feishu's whole three seconds.
pub(crate) const OVER_AFTER: Duration = Duration::from_millis(3_200);
const MAX: usize = 256;

pub(crate) struct UnderWay(Mutex<State>);

struct State {
    taps: VecDeque<(MessageId, Instant)>,
    lost_at: Instant,
}

impl Default for UnderWay {
    fn default() -> Self {
        Self(Mutex::new(State {
            taps: VecDeque::new(),
            lost_at: Instant::now(),
        }))
    }
}

impl UnderWay {
    pub(crate) fn began(&self, message: &MessageId) {
        let mut state = self.lock();
        if state.taps.len() == MAX {
            state.taps.pop_front();
        }
        state.taps.push_back((message.clone(), Instant::now()));
    }

    /// A connection is gone, and with it perhaps taps that nobody heard of.
    pub(crate) fn line_lost(&self) {
        self.lock().lost_at = Instant::now();
    }

    /// When no tap on this message that nod heard of is under way any more.
    pub(crate) fn over_at(&self, message: &MessageId) -> Option<Instant> {
        let state = self.lock();
        let last = state.taps.iter().rev().find(|(of, _)| of == message);
        last.map(|(_, at)| *at + OVER_AFTER)
    }

    /// When no tap that was lost with a connection can be.
    pub(crate) fn losses_over_at(&self) -> Instant {
        self.lock().lost_at + OVER_AFTER
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(n: usize) -> MessageId {
        MessageId::parse(&format!("om_{n}")).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn an_edit_waits_for_the_last_tap_on_its_card_only() {
        let taps = UnderWay::default();
        taps.began(&message(1));
        tokio::time::advance(Duration::from_secs(1)).await;
        taps.began(&message(1));
        assert_eq!(taps.over_at(&message(1)), Some(Instant::now() + OVER_AFTER));
        assert_eq!(taps.over_at(&message(2)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn taps_nobody_heard_of_end_some_time_after_a_start_and_a_loss() {
        let taps = UnderWay::default();
        assert_eq!(taps.losses_over_at(), Instant::now() + OVER_AFTER);
        tokio::time::advance(Duration::from_secs(1)).await;
        taps.line_lost();
        assert_eq!(taps.losses_over_at(), Instant::now() + OVER_AFTER);
        assert_eq!(taps.over_at(&message(1)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_last_taps_are_remembered() {
        let taps = UnderWay::default();
        for n in 0..=MAX {
            taps.began(&message(n));
        }
        assert_eq!(taps.over_at(&message(0)), None);
        assert!(taps.over_at(&message(1)).is_some());
    }
}
