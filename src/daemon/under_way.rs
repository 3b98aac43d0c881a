//! Taps that may be under way. Feishu takes back an edit that comes while a
//! tap on its card is; so edits wait until none can be. A tap that was lost
//! with a connection, or with the daemon before this one, counts as one.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

use crate::ids::MessageId;

/// A tap whose reply was lost is under way for Feishu's whole three seconds.
pub(super) const OVER_AFTER: Duration = Duration::from_millis(3_200);
const MAX: usize = 256;

pub(super) struct UnderWay(Mutex<State>);

struct State {
    taps: VecDeque<(MessageId, Instant)>,
    lost_at: Instant,
    losses: u64,
}

impl Default for UnderWay {
    fn default() -> Self {
        Self(Mutex::new(State {
            taps: VecDeque::new(),
            lost_at: Instant::now(),
            losses: 0,
        }))
    }
}

impl UnderWay {
    pub(super) fn began(&self, message: &MessageId) {
        let mut state = self.lock();
        if state.taps.len() == MAX {
            state.taps.pop_front();
        }
        state.taps.push_back((message.clone(), Instant::now()));
    }

    /// A connection is gone, and with it perhaps taps that nobody heard of.
    pub(super) fn line_lost(&self) {
        let mut state = self.lock();
        state.lost_at = Instant::now();
        state.losses += 1;
    }

    pub(super) fn losses(&self) -> u64 {
        self.lock().losses
    }

    /// When no tap on this message can be under way any more.
    pub(super) fn over_at(&self, message: &MessageId) -> Instant {
        let state = self.lock();
        let last = state.taps.iter().rev().find(|(of, _)| of == message);
        last.map_or(state.lost_at, |(_, at)| state.lost_at.max(*at)) + OVER_AFTER
    }

    /// When no tap that was lost with a connection can be.
    pub(super) fn losses_over_at(&self) -> Instant {
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
        tokio::time::advance(OVER_AFTER).await;
        let started = Instant::now();
        taps.began(&message(1));
        tokio::time::advance(Duration::from_secs(1)).await;
        taps.began(&message(1));
        let second = Instant::now() + OVER_AFTER;
        assert_eq!(taps.over_at(&message(1)), second);
        assert_eq!(taps.over_at(&message(2)), started);
        assert!(second > started + OVER_AFTER);
    }

    #[tokio::test(start_paused = true)]
    async fn taps_nobody_heard_of_are_waited_for_after_a_start_and_a_loss() {
        let taps = UnderWay::default();
        let started = Instant::now();
        assert_eq!(taps.over_at(&message(1)), started + OVER_AFTER);
        tokio::time::advance(Duration::from_secs(1)).await;
        taps.began(&message(1));
        tokio::time::advance(Duration::from_secs(1)).await;
        taps.line_lost();
        let over = Instant::now() + OVER_AFTER;
        assert_eq!(taps.over_at(&message(1)), over);
        assert_eq!(taps.over_at(&message(2)), over);
        assert_eq!((taps.losses_over_at(), taps.losses()), (over, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_last_taps_are_remembered() {
        let taps = UnderWay::default();
        tokio::time::advance(OVER_AFTER).await;
        for n in 0..=MAX {
            taps.began(&message(n));
        }
        assert_eq!(taps.over_at(&message(0)), Instant::now());
        assert!(taps.over_at(&message(1)) > Instant::now());
    }
}
