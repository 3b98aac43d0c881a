//! The calls of the last half minute, so that one that a hostile bus repeats
//! is made once. Whoever finds it full is turned away and comes again.

use std::collections::{HashSet, VecDeque};

use crate::clock::Millis;

/// How far a call's time may be from the gateway's.
pub(super) const FRESH: Millis = 30_000;
pub(super) const MAX: usize = 100_000;
const MAX_NAME: usize = 64;

#[derive(Debug, Default)]
pub(super) struct SeenCalls {
    names: HashSet<String>,
    order: VecDeque<(Millis, String)>,
}

/// What to do with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SeenBefore {
    New,
    /// It came before, or is too old to tell.
    Repeated,
    Full,
}

impl SeenCalls {
    /// Judges a call by its name and the time it was made; a new one is kept
    /// for as long as it could be repeated.
    pub(super) fn judge(&mut self, name: &str, at: Millis, now: Millis) -> SeenBefore {
        let gone = |(until, _): &(Millis, String)| *until < now;
        while self.order.front().is_some_and(gone) {
            if let Some((_, name)) = self.order.pop_front() {
                self.names.remove(&name);
            }
        }
        let fresh = now.saturating_sub(at).saturating_abs() <= FRESH;
        if !fresh || name.len() > MAX_NAME || self.names.contains(name) {
            return SeenBefore::Repeated;
        }
        if self.names.len() >= MAX {
            return SeenBefore::Full;
        }
        self.names.insert(name.to_owned());
        self.order.push_back((now + 2 * FRESH, name.to_owned()));
        SeenBefore::New
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_counts_once_and_not_for_long() {
        let mut seen = SeenCalls::default();
        assert_eq!(seen.judge("a", 1_000, 1_000), SeenBefore::New);
        assert_eq!(seen.judge("a", 1_000, 2_000), SeenBefore::Repeated);
        assert_eq!(seen.judge("b", 1_000, 2_000), SeenBefore::New);
        // By the time it is forgotten, it is too old as well.
        for later in [FRESH, FRESH + 1, 2 * FRESH + 1, 10 * FRESH] {
            let verdict = seen.judge("a", 1_000, 1_000 + later);
            assert_eq!(verdict, SeenBefore::Repeated, "{later}");
        }
    }

    #[test]
    fn a_call_from_the_future_is_not_kept_for_later() {
        let mut seen = SeenCalls::default();
        assert_eq!(seen.judge("a", FRESH, 0), SeenBefore::New);
        // The same one, when its time has come.
        for now in [FRESH, 2 * FRESH] {
            assert_eq!(seen.judge("a", FRESH, now), SeenBefore::Repeated, "{now}");
        }
        assert_eq!(seen.judge("b", FRESH + 1, 0), SeenBefore::Repeated);
        assert_eq!(seen.judge("c", Millis::MIN, 0), SeenBefore::Repeated);
    }

    #[test]
    fn memory_is_bounded_and_a_long_name_is_not_kept() {
        let mut seen = SeenCalls::default();
        for n in 0..MAX {
            assert_eq!(seen.judge(&n.to_string(), 0, 0), SeenBefore::New);
        }
        assert_eq!(seen.judge("one more", 0, 0), SeenBefore::Full);
        let long = "x".repeat(MAX_NAME + 1);
        assert_eq!(
            SeenCalls::default().judge(&long, 0, 0),
            SeenBefore::Repeated
        );
    }
}
