//! How fast one receiver may be written to: never more than so many messages
//! in any second, counted over a sliding window. Knows no clock and no network.

use std::collections::VecDeque;
use std::hash::Hash;
use std::time::{Duration, Instant};

use crate::bounded::Bounded;

/// Feishu takes five messages a second for one receiver; one is left for
/// other bots and for clocks that disagree.
pub const PER_SECOND: usize = 4;

const WINDOW: Duration = Duration::from_secs(1);

/// Receivers remembered at once; each holds at most a second's worth of times
/// unless messages are waiting.
const MAX_RECEIVERS: usize = 1024;

/// Why no slot is given: the receiver's queue, or the table, is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full {
    /// When asking again is worth it.
    pub again_in: Duration,
}

/// Hands out send times per receiver.
#[derive(Debug)]
pub struct Pace<K> {
    per_second: usize,
    longest_wait: Duration,
    slots: Bounded<K, VecDeque<Instant>>,
}

impl<K: Eq + Hash> Pace<K> {
    /// At most `per_second` slots in any second for one receiver, none
    /// further away than `longest_wait`.
    pub fn new(per_second: usize, longest_wait: Duration) -> Self {
        Self {
            per_second: per_second.max(1),
            longest_wait,
            slots: Bounded::new(MAX_RECEIVERS),
        }
    }

    /// Takes the next free slot of `receiver` and says how long to wait for
    /// it.
    pub fn next_slot(&mut self, receiver: K, now: Instant) -> Result<Duration, Full> {
        let is_idle =
            |slots: &VecDeque<Instant>| slots.back().is_none_or(|&slot| slot + WINDOW <= now);
        let Some(slots) = self.slots.live(receiver, is_idle) else {
            return Err(Full { again_in: WINDOW });
        };
        while slots.front().is_some_and(|&slot| slot + WINDOW <= now) {
            slots.pop_front();
        }
        let slot = match slots.len().checked_sub(self.per_second) {
            None => now,
            Some(place) => slots.get(place).map_or(now, |&earlier| earlier + WINDOW),
        };
        let wait = slot.saturating_duration_since(now);
        if wait > self.longest_wait {
            return Err(Full {
                again_in: wait.saturating_sub(self.longest_wait),
            });
        }
        slots.push_back(slot.max(now));
        Ok(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MILLI: Duration = Duration::from_millis(1);

    fn pace() -> Pace<&'static str> {
        Pace::new(PER_SECOND, Duration::from_secs(10))
    }

    #[test]
    fn a_burst_is_spread_over_seconds() {
        let mut pace = pace();
        let now = Instant::now();
        let waits: Vec<_> = (0..10)
            .map(|_| pace.next_slot("chat", now).expect("a slot").as_secs())
            .collect();
        assert_eq!(waits, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]);
    }

    #[test]
    fn one_receiver_does_not_slow_another() {
        let mut pace = pace();
        let now = Instant::now();
        for _ in 0..8 {
            pace.next_slot("busy", now).expect("a slot");
        }
        assert_eq!(pace.next_slot("quiet", now), Ok(Duration::ZERO));
    }

    #[test]
    fn a_full_queue_is_refused_and_takes_no_slot() {
        let mut pace: Pace<&str> = Pace::new(1, Duration::from_secs(2));
        let now = Instant::now();
        for _ in 0..3 {
            pace.next_slot("chat", now).expect("a slot");
        }
        let full = pace.next_slot("chat", now);
        assert_eq!(
            full,
            Err(Full {
                again_in: Duration::from_secs(1)
            })
        );
        assert_eq!(pace.next_slot("chat", now), full);
    }

    #[test]
    fn idle_receivers_make_room_for_new_ones() {
        let mut pace: Pace<usize> = Pace::new(1, Duration::ZERO);
        let now = Instant::now();
        for receiver in 0..MAX_RECEIVERS {
            pace.next_slot(receiver, now).expect("a slot");
        }
        assert!(pace.next_slot(MAX_RECEIVERS, now).is_err());
        let later = now + WINDOW;
        assert_eq!(pace.next_slot(MAX_RECEIVERS, later), Ok(Duration::ZERO));
        assert_eq!(pace.slots.len(), 1);
    }

    proptest! {
        #[test]
        fn no_window_of_a_second_holds_more_than_allowed(
            gaps in proptest::collection::vec(0u32..400, 1..80),
            per_second in 1usize..6,
        ) {
            let mut pace: Pace<()> = Pace::new(per_second, Duration::from_hours(1));
            let start = Instant::now();
            let mut now = start;
            let mut sent = Vec::new();
            for gap in gaps {
                now += MILLI * gap;
                sent.push(now + pace.next_slot((), now).expect("a slot"));
            }
            for pair in sent.windows(per_second + 1) {
                prop_assert!(pair[per_second] - pair[0] >= WINDOW);
            }
        }
    }
}
