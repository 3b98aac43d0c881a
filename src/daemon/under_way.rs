//! Taps that may be under way. Feishu takes back an edit that comes while a
//! tap on its card is; so edits wait until none can be.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

use crate::ids::MessageId;

/// A tap whose reply was lost is under way for Feishu's whole three seconds.
pub(super) const OVER_AFTER: Duration = Duration::from_millis(3_200);
const MAX: usize = 256;

#[derive(Default)]
pub(super) struct UnderWay(Mutex<VecDeque<(MessageId, Instant)>>);

impl UnderWay {
    pub(super) fn began(&self, message: &MessageId) {
        let mut taps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if taps.len() == MAX {
            taps.pop_front();
        }
        taps.push_back((message.clone(), Instant::now()));
    }

    /// When no tap on this message can be under way any more.
    pub(super) fn over_at(&self, message: &MessageId) -> Instant {
        let taps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = taps.iter().rev().find(|(of, _)| of == message);
        last.map_or_else(Instant::now, |(_, at)| *at + OVER_AFTER)
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
        let started = Instant::now();
        taps.began(&message(1));
        tokio::time::advance(Duration::from_secs(1)).await;
        taps.began(&message(1));
        let second = Instant::now() + OVER_AFTER;
        assert_eq!(taps.over_at(&message(1)), second);
        assert_eq!(taps.over_at(&message(2)), Instant::now());
        assert!(second > started + OVER_AFTER);
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_last_taps_are_remembered() {
        let taps = UnderWay::default();
        for n in 0..=MAX {
            taps.began(&message(n));
        }
        assert_eq!(taps.over_at(&message(0)), Instant::now());
        assert!(taps.over_at(&message(1)) > Instant::now());
    }
}
