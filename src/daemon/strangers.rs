//! People who tap without being approvers: refused each time, and reported to
//! the owner when it happens again and again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::approvals::request::Millis;

const WINDOW: Millis = 10 * 60 * 1_000;
const REPORT_AT: usize = 3;
const MAX_PEOPLE: usize = 1_024;

#[derive(Default)]
pub(super) struct Strangers {
    taps: Mutex<HashMap<String, Vec<Millis>>>,
}

impl Strangers {
    /// Notes a refused tap; `true` when the owner should hear of it, once per
    /// window.
    pub(super) fn refused(&self, person: &str, now: Millis) -> bool {
        let mut taps = self.taps.lock().unwrap_or_else(PoisonError::into_inner);
        for times in taps.values_mut() {
            times.retain(|at| now - at < WINDOW);
        }
        taps.retain(|_, times| !times.is_empty());
        if taps.len() >= MAX_PEOPLE && !taps.contains_key(person) {
            return false;
        }
        let times = taps.entry(person.to_owned()).or_default();
        if times.len() > REPORT_AT {
            return false;
        }
        times.push(now);
        times.len() == REPORT_AT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_tap_in_ten_minutes_is_reported_once() {
        let strangers = Strangers::default();
        let reports: Vec<_> = (0..6).map(|n| strangers.refused("x", n)).collect();
        assert_eq!(reports, [false, false, true, false, false, false]);
        assert!(!strangers.refused("y", 9));
        assert!(!strangers.refused("x", WINDOW + 10));
    }
}
