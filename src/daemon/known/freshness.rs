//! Whether a tap took too long to arrive, by Feishu's clock as each dial tells
//! it: this machine's own may be wrong. Between dials the two clocks drift, so
//! the quickest delivery of the last hour or two stands for no delay at all.

use std::sync::{Mutex, PoisonError};

use crate::clock::Millis;

const STALE_AFTER: Millis = 30_000;
/// What a date without fractions of a second, and its way here, can be off by.
/// An event from further ahead says nothing about how quick deliveries are.
const MOST_AHEAD: Millis = 5_000;
/// No drift between two dials is followed further, so that no tap counts that
/// is older than this and the above together.
const MOST_DRIFT: Millis = 30_000;
const WINDOW: Millis = 3_600_000;

#[derive(Default)]
pub(crate) struct Freshness(Mutex<LeastDelays>);

/// The least delays of this window and of the one before; a dial makes both
/// nothing.
#[derive(Debug, Default, Clone, Copy)]
struct LeastDelays {
    /// How far Feishu's clock is ahead, as the last dial told.
    ahead: Millis,
    since: Millis,
    current: Millis,
    before: Millis,
}

impl Freshness {
    /// `now` is this machine's steady clock, and Feishu's is `ahead` of it.
    pub(crate) fn is_stale(&self, created: Millis, now: Millis, ahead: Millis) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.ahead != ahead {
            *seen = LeastDelays {
                ahead,
                since: now,
                ..LeastDelays::default()
            };
        }
        let delay = now.saturating_add(ahead).saturating_sub(created);
        let is_stale = delay - seen.current.min(seen.before) > STALE_AFTER;
        if !is_stale && delay >= -MOST_AHEAD {
            seen.note(delay.min(MOST_DRIFT), now);
        }
        is_stale
    }
}

impl LeastDelays {
    fn note(&mut self, delay: Millis, now: Millis) {
        if now.saturating_sub(self.since) >= WINDOW {
            self.before = self.current;
            self.current = delay;
            self.since = now;
        } else {
            self.current = self.current.min(delay);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Millis = 3_600_000;

    #[test]
    fn a_wrong_clock_does_not_make_taps_stale_but_a_slow_way_does() {
        for ahead in [-HOUR, 0, 25 * HOUR] {
            let freshness = Freshness::default();
            let stale = |created: Millis, now| freshness.is_stale(created + ahead, now, ahead);
            assert!(!stale(0, 200));
            assert!(!stale(1_000, 31_000));
            assert!(stale(2_000, 32_001));
            assert!(!stale(90_000, 90_300));
        }
    }

    #[test]
    fn the_first_tap_after_a_start_has_an_age() {
        let freshness = Freshness::default();
        assert!(freshness.is_stale(0, 6 * HOUR, 0));
        assert!(freshness.is_stale(-STALE_AFTER - 1, 0, 0));
        assert!(!freshness.is_stale(6 * HOUR, 6 * HOUR, 0));
    }

    #[test]
    fn an_event_from_the_future_makes_no_later_tap_late() {
        let freshness = Freshness::default();
        for ahead in [HOUR, 60_000, MOST_AHEAD + 1] {
            assert!(!freshness.is_stale(ahead, 0, 0));
        }
        assert!(!freshness.is_stale(0, STALE_AFTER, 0));
        assert!(!freshness.is_stale(Millis::MAX, 0, HOUR));
        assert!(freshness.is_stale(Millis::MIN, 0, HOUR));
        // What is only a rounding ahead costs later taps no more than that.
        assert!(!freshness.is_stale(MOST_AHEAD, 0, 0));
        assert!(!freshness.is_stale(0, STALE_AFTER - MOST_AHEAD, 0));
    }

    #[test]
    fn a_clock_that_drifts_is_followed_and_old_minima_age_out() {
        for ahead in [0, 700] {
            let freshness = Freshness::default();
            let stale = |after: Millis, now| freshness.is_stale(now + ahead - after, now, ahead);
            let mut drift = 0;
            for hour in 0..40 {
                drift += 1_000;
                assert!(!stale(drift, hour * HOUR), "{hour}");
            }
            let now = 40 * HOUR;
            assert!(!stale(50_000, now));
            assert!(stale(MOST_DRIFT + STALE_AFTER + 1, now));
            // One that is quick again shows that the others were slow.
            assert!(!stale(300, now));
            assert!(stale(50_000, now));
        }
    }

    #[test]
    fn a_dial_after_sleep_or_a_jump_starts_anew() {
        let freshness = Freshness::default();
        for hour in 0..3 {
            let now = hour * HOUR;
            freshness.is_stale(now - 20_000, now, 0);
        }
        let now = 9 * HOUR;
        assert!(!freshness.is_stale(now - 45_000, now, 0));
        assert!(freshness.is_stale(now + 700 - 45_000, now, 700));
        assert!(!freshness.is_stale(now + 700 - 300, now, 700));
    }

    #[test]
    fn a_slow_hour_after_a_dial_is_no_drift_yet() {
        let freshness = Freshness::default();
        for now in [9 * HOUR, 10 * HOUR] {
            assert!(!freshness.is_stale(now + 700 - 20_000, now, 700));
        }
        assert!(freshness.is_stale(10 * HOUR + 700 - 45_000, 10 * HOUR, 700));
    }
}
