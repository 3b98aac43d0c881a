//! Whether a tap took too long to arrive. The two clocks differ by some
//! unknown amount; the quickest delivery seen so far stands for it.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::approvals::request::Millis;

const STALE_AFTER: Millis = 30_000;

pub(super) struct Freshness {
    least: AtomicI64,
}

impl Default for Freshness {
    fn default() -> Self {
        Self {
            least: AtomicI64::new(Millis::MAX),
        }
    }
}

impl Freshness {
    pub(super) fn is_stale(&self, created: Millis, now: Millis) -> bool {
        let lag = now - created;
        let least = self.least.fetch_min(lag, Ordering::Relaxed).min(lag);
        lag - least > STALE_AFTER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_clock_does_not_make_taps_stale_but_a_slow_way_does() {
        let hour = 3_600_000;
        let freshness = Freshness::default();
        assert!(!freshness.is_stale(0, hour));
        assert!(!freshness.is_stale(1_000, hour + 1_200));
        assert!(!freshness.is_stale(2_000, hour + 32_000));
        assert!(freshness.is_stale(3_000, hour + 33_201));
        assert!(!freshness.is_stale(90_000, hour + 90_000));
    }
}
