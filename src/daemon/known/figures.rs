//! How long taps took, over the last thousand of each kind: until the reply
//! for Feishu stood, and until the hook said that it has its decision. Keeps
//! spans only, never what was decided.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Enough for a 99th percentile that means something.
const KEPT: usize = 1_000;

#[derive(Debug, Default)]
pub(crate) struct Figures {
    /// Tap in, reply out.
    pub(crate) reply: Spans,
    /// Tap in, decision confirmed by its hook.
    pub(crate) hook: Spans,
}

#[derive(Debug, Default)]
pub(crate) struct Spans(Mutex<Ring>);

#[derive(Debug, Default)]
struct Ring {
    micros: Vec<u32>,
    next: usize,
    count: u64,
    sum: Duration,
    last: Duration,
}

/// What is known of one kind of span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Summary {
    /// All of them since the start.
    pub(crate) count: u64,
    pub(crate) sum: Duration,
    pub(crate) last: Duration,
    /// Of the last thousand.
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
}

impl Spans {
    pub(crate) fn note(&self, took: Duration) {
        let micros = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
        let mut ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = ring.next;
        if ring.micros.len() < KEPT {
            ring.micros.push(micros);
        } else {
            ring.micros[at] = micros;
        }
        ring.next = (at + 1) % KEPT;
        ring.count += 1;
        ring.sum = ring.sum.saturating_add(took);
        ring.last = took;
    }

    pub(crate) fn summary(&self) -> Summary {
        let ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = ring.micros.clone();
        kept.sort_unstable();
        Summary {
            count: ring.count,
            sum: ring.sum,
            last: ring.last,
            p50: percentile(&kept, 50),
            p99: percentile(&kept, 99),
        }
    }
}

/// The smallest of `sorted` that is not below `percent` of them.
fn percentile(sorted: &[u32], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    let micros = sorted.get(rank - 1).copied().unwrap_or_default();
    Duration::from_micros(u64::from(micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(micros: impl IntoIterator<Item = u64>) -> Summary {
        let spans = Spans::default();
        for micros in micros {
            spans.note(Duration::from_micros(micros));
        }
        spans.summary()
    }

    #[test]
    fn percentiles_are_spans_that_were_seen() {
        for (seen, p50, p99) in [
            (vec![], 0, 0),
            (vec![7], 7, 7),
            (vec![3, 1, 2], 2, 3),
            ((1..=100).rev().collect(), 50, 99),
            ((1..=1_000).collect(), 500, 990),
        ] {
            let summary = noted(seen);
            assert_eq!(summary.p50, Duration::from_micros(p50));
            assert_eq!(summary.p99, Duration::from_micros(p99));
        }
    }

    #[test]
    fn only_the_last_thousand_count_for_percentiles_and_all_for_the_sum() {
        let summary = noted((0..5_000).map(|n| if n < 4_000 { 1_000_000 } else { 5 }));
        assert_eq!(summary.count, 5_000);
        assert_eq!(summary.p99, Duration::from_micros(5));
        assert_eq!(summary.last, Duration::from_micros(5));
        assert_eq!(
            summary.sum,
            Duration::from_micros(4_000 * 1_000_000 + 5_000)
        );
    }

    #[test]
    fn memory_is_bounded() {
        let spans = Spans::default();
        for _ in 0..3 * KEPT {
            spans.note(Duration::ZERO);
        }
        assert_eq!(spans.0.lock().unwrap().micros.len(), KEPT);
    }
}
