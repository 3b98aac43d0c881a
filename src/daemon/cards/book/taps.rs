//! Taps that may be under way: those that nod heard of, on their cards; and
//! those that were lost with a connection or the daemon before, on any card.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::ids::MessageId;

/// A tap whose reply was lost is under way for Feishu's whole three seconds.
pub const OVER_AFTER: Duration = Duration::from_millis(3_200);
const MAX: usize = 256;

#[derive(Debug)]
pub(super) struct HeardTaps {
    /// The last on each card.
    heard: VecDeque<(MessageId, Instant)>,
    lost_at: Instant,
}

impl HeardTaps {
    /// A daemon that starts knows nothing of the taps before.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            heard: VecDeque::new(),
            lost_at: now,
        }
    }

    pub(super) fn hear(&mut self, message: &MessageId, at: Instant) {
        let last = self.last_on(message).map_or(at, |last| last.max(at));
        self.heard.retain(|(of, _)| of != message);
        if self.heard.len() == MAX {
            self.heard.pop_front();
        }
        self.heard.push_back((message.clone(), last));
    }

    /// A connection is gone, and with it perhaps taps that nobody heard of.
    pub(super) fn lose(&mut self, now: Instant) {
        self.lost_at = now;
    }

    /// The taps that named one message were on another.
    pub(super) fn were_on(&mut self, claimed: &MessageId, message: &MessageId) {
        if let Some(at) = self.last_on(claimed).filter(|_| claimed != message) {
            self.hear(message, at);
        }
    }

    /// When no tap on this message that nod heard of is under way any more.
    pub(super) fn over_at(&self, message: &MessageId) -> Option<Instant> {
        Some(self.last_on(message)? + OVER_AFTER)
    }

    fn last_on(&self, message: &MessageId) -> Option<Instant> {
        let mut heard = self.heard.iter();
        Some(heard.find(|(of, _)| of == message)?.1)
    }

    /// When no tap that was lost can be.
    pub(super) fn losses_over_at(&self) -> Instant {
        self.lost_at + OVER_AFTER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(n: usize) -> MessageId {
        MessageId::parse(&format!("om_{n}")).unwrap()
    }

    #[test]
    fn an_edit_waits_for_the_last_tap_on_its_card_only() {
        let start = Instant::now();
        let later = start + Duration::from_secs(1);
        let mut taps = HeardTaps::new(start);
        taps.hear(&message(1), start);
        taps.hear(&message(1), later);
        assert_eq!(taps.over_at(&message(1)), Some(later + OVER_AFTER));
        assert_eq!(taps.over_at(&message(2)), None);
    }

    #[test]
    fn a_tap_under_another_name_counts_for_its_card_and_never_shortens_the_wait() {
        let start = Instant::now();
        let later = start + Duration::from_secs(1);
        let mut taps = HeardTaps::new(start);
        taps.hear(&message(8), start);
        taps.were_on(&message(8), &message(1));
        assert_eq!(taps.over_at(&message(1)), Some(start + OVER_AFTER));
        taps.hear(&message(2), later);
        taps.were_on(&message(8), &message(2));
        taps.were_on(&message(7), &message(2));
        assert_eq!(taps.over_at(&message(2)), Some(later + OVER_AFTER));
    }

    #[test]
    fn taps_nobody_heard_of_end_some_time_after_a_start_and_a_loss() {
        let start = Instant::now();
        let later = start + Duration::from_secs(1);
        let mut taps = HeardTaps::new(start);
        assert_eq!(taps.losses_over_at(), start + OVER_AFTER);
        taps.lose(later);
        assert_eq!(taps.losses_over_at(), later + OVER_AFTER);
    }

    #[test]
    fn only_the_last_taps_are_remembered() {
        let start = Instant::now();
        let mut taps = HeardTaps::new(start);
        for n in 0..=MAX {
            taps.hear(&message(n), start);
        }
        assert_eq!(taps.over_at(&message(0)), None);
        assert!(taps.over_at(&message(1)).is_some());
        assert_eq!(taps.heard.len(), MAX);
    }
}
