//! People whose taps and messages are refused. Reported to the owner when one
//! taps again and again; counted for the audit, so that nobody can push the
//! decisions out of it by being refused often.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::bounded::Bounded;
use crate::clock::Millis;

const WINDOW: Millis = 10 * 60 * 1_000;
const REPORT_AT: usize = 3;
const MAX_PEOPLE: usize = 1_024;
/// How often the audit gets a line about one person.
const SPAN: Millis = 3_600_000;
/// People with lines of their own; the others share one for each kind.
const MAX_TALLIED: usize = 64;

/// Log lines about refused taps in [`LOG_SPAN`]; the rest are counted.
const MAX_LOGGED: u32 = 10;
const LOG_SPAN: Millis = 60_000;

/// How many refused taps were logged lately, and how many were left out since.
#[derive(Debug, Default)]
struct LogLimit {
    since: Millis,
    logged: u32,
    left_out: u64,
}

pub(crate) struct Strangers {
    log: Mutex<LogLimit>,
    taps: Mutex<Bounded<String, Vec<Millis>>>,
    tallies: Mutex<HashMap<Whom, StrangerTally>>,
}

impl Default for Strangers {
    fn default() -> Self {
        Self {
            log: Mutex::default(),
            taps: Mutex::new(Bounded::new(MAX_PEOPLE)),
            tallies: Mutex::default(),
        }
    }
}

/// Who was refused, and for what. Without a name it is all the others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Whom {
    pub(crate) kind: &'static str,
    pub(crate) person: Option<String>,
}

#[derive(Debug)]
struct StrangerTally {
    /// When the last line was written.
    since: Millis,
    unwritten: u64,
}

/// Refusals that share one line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) whom: Whom,
    pub(crate) count: u64,
    pub(crate) since: Millis,
}

impl Strangers {
    /// Notes a refused tap; `true` when the owner should hear of it, once per
    /// window.
    pub(crate) fn refused(&self, person: &str, now: Millis) -> bool {
        let mut taps = self.taps.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |times: &Vec<Millis>| times.iter().all(|at| now - at >= WINDOW);
        let Some(times) = taps.live(person.to_owned(), is_over) else {
            return false;
        };
        times.retain(|at| now - at < WINDOW);
        if times.len() > REPORT_AT {
            return false;
        }
        times.push(now);
        times.len() == REPORT_AT
    }

    /// Whether one more refused tap may be logged, and then how many before it
    /// were not: a line for each would fill a disk.
    pub(crate) fn may_log(&self, now: Millis) -> Option<u64> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if now - log.since >= LOG_SPAN {
            (log.since, log.logged) = (now, 0);
        }
        if log.logged >= MAX_LOGGED {
            log.left_out += 1;
            return None;
        }
        log.logged += 1;
        Some(std::mem::take(&mut log.left_out))
    }

    /// Counts a refusal for the audit: whom it wants a line about at once, which
    /// is the first in a while. The rest comes with [`Self::sums`].
    pub(crate) fn counted(
        &self,
        kind: &'static str,
        person: Option<&str>,
        now: Millis,
    ) -> Option<Whom> {
        let mut tallies = self.tallies.lock().unwrap_or_else(PoisonError::into_inner);
        tallies.retain(|_, tally| tally.unwritten > 0 || now - tally.since < SPAN);
        let mut whom = Whom {
            kind,
            person: person.map(str::to_owned),
        };
        if tallies.len() >= MAX_TALLIED && !tallies.contains_key(&whom) {
            whom.person = None;
        }
        if let Some(tally) = tallies.get_mut(&whom) {
            tally.unwritten += 1;
            return None;
        }
        let tally = StrangerTally {
            since: now,
            unwritten: 0,
        };
        tallies.insert(whom.clone(), tally);
        Some(whom)
    }

    /// What has not been written since the last line and is due; all of it
    /// before a stop.
    pub(crate) fn sums(&self, now: Millis, stopping: bool) -> Vec<Sum> {
        let mut tallies = self.tallies.lock().unwrap_or_else(PoisonError::into_inner);
        let due = tallies
            .iter_mut()
            .filter(|(_, tally)| tally.unwritten > 0 && (stopping || now - tally.since >= SPAN));
        due.map(|(whom, tally)| Sum {
            whom: whom.clone(),
            count: std::mem::take(&mut tally.unwritten),
            since: std::mem::replace(&mut tally.since, now),
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixty_thousand_refused_taps_are_a_few_lines_of_the_log() {
        let strangers = Strangers::default();
        // A thousand a second.
        let lines = (0..60_000).filter_map(|now| strangers.may_log(now));
        assert_eq!(lines.collect::<Vec<_>>(), [0; MAX_LOGGED as usize]);
        let left_out = 60_000 - u64::from(MAX_LOGGED);
        assert_eq!(strangers.may_log(LOG_SPAN), Some(left_out));
        assert_eq!(strangers.may_log(LOG_SPAN + 1), Some(0));
    }

    #[test]
    fn the_third_tap_in_ten_minutes_is_reported_once() {
        let strangers = Strangers::default();
        let reports: Vec<_> = (0..6).map(|n| strangers.refused("x", n)).collect();
        assert_eq!(reports, [false, false, true, false, false, false]);
        assert!(!strangers.refused("y", 9));
        let ten_minutes = 600_000;
        for (third, is_reported) in [(ten_minutes - 1, true), (ten_minutes, false)] {
            let strangers = Strangers::default();
            let reports = [0, 1, third].map(|at| strangers.refused("x", at));
            assert_eq!(reports, [false, false, is_reported]);
        }
    }

    #[test]
    fn a_tap_after_the_report_counts_for_the_next_one() {
        let strangers = Strangers::default();
        let later = 600_002;
        let taps = [0, 1, 2, 3, later, later];
        let reports = taps.map(|at| strangers.refused("x", at));
        assert_eq!(reports, [false, false, true, false, false, true]);
    }

    #[test]
    fn what_is_not_written_yet_is_forgotten_by_nobody() {
        let strangers = Strangers::default();
        for _ in 0..2 {
            strangers.counted("k", Some("x"), 5);
        }
        strangers.counted("k", Some("y"), 5 + SPAN);
        assert_eq!(strangers.sums(5 + SPAN, false)[0].count, 1);
        // Who was quiet for a span has a line of their own again.
        assert!(strangers.counted("k", Some("y"), 5 + 2 * SPAN).is_some());
    }

    #[test]
    fn a_crowd_of_strangers_makes_nobody_forgotten() {
        let strangers = Strangers::default();
        for n in 0..MAX_PEOPLE {
            strangers.refused(&format!("p{n}"), 400_000);
        }
        strangers.refused("p0", 400_000);
        strangers.refused("one more", 400_001);
        assert!(strangers.refused("p0", 400_002));
    }

    #[test]
    fn the_first_refusal_has_a_line_and_the_rest_a_sum() {
        let strangers = Strangers::default();
        let whom = |person: &str| Whom {
            kind: "k",
            person: Some(person.to_owned()),
        };
        assert_eq!(strangers.counted("k", Some("x"), 5), Some(whom("x")));
        for n in 0..10 {
            assert_eq!(strangers.counted("k", Some("x"), 6 + n), None);
        }
        assert!(strangers.counted("other", Some("x"), 6).is_some());
        assert_eq!(strangers.sums(4 + SPAN, false), []);
        let sum = Sum {
            whom: whom("x"),
            count: 10,
            since: 5,
        };
        assert_eq!(strangers.sums(5 + SPAN, false), [sum]);
        assert_eq!(strangers.counted("k", Some("x"), 6 + SPAN), None);
        assert_eq!(strangers.sums(7 + SPAN, true)[0].count, 1);
        let later = 8 + 3 * SPAN;
        assert_eq!(strangers.counted("k", Some("x"), later), Some(whom("x")));
    }

    #[test]
    fn however_many_people_are_refused_the_lines_are_few() {
        let strangers = Strangers::default();
        let mut lines = 0;
        for n in 0..10_000 {
            let person = format!("p{n}");
            lines += usize::from(strangers.counted("k", Some(&person), n).is_some());
        }
        assert_eq!(lines, MAX_TALLIED + 1);
        let sums = strangers.sums(SPAN * 2, false);
        let all: u64 = sums.iter().map(|sum| sum.count).sum();
        assert_eq!(all + lines as u64, 10_000);
        assert_eq!(sums.len(), 1, "{sums:?}");
        assert_eq!(sums[0].whom.person, None);
    }
}
