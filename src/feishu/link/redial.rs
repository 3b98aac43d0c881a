//! When the next dial begins: at once after a loss, ever later while nobody
//! waits, and every second while somebody does. Knows no clock and no socket.

use std::time::{Duration, Instant};

use super::DialRetry;
use crate::feishu::backoff;

/// While somebody waits a dial begins this often, whatever became of the one
/// before: one that was sent into a dead network learns late that it is back.
const HOT_EVERY: Duration = Duration::from_secs(1);
/// Dials under way at the same time; the first that gets through counts.
const MAX_DIALS: u8 = 10;
/// The pauses before a refusal is believed by an app that was let in before.
const IN_DOUBT: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
];
/// Our own lost connections count against the limit until Feishu notices.
const CROWDED: [Duration; 2] = [Duration::from_secs(10), backoff::LONGEST];
/// The longest pause after a refusal while somebody waits.
const HOT_REFUSED: Duration = Duration::from_secs(10);
/// A connection that lived this long counts as healthy: the next drop starts
/// the backoff afresh.
const HEALTHY_AFTER: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Redial {
    under_way: u8,
    /// When the last one began, and when another may join it.
    begun: Instant,
    join_at: Instant,
    failures: u32,
    /// Refusals in a row.
    refusals: usize,
    /// Whether this app was let in before.
    let_in: bool,
}

/// What follows a dial that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextDial {
    /// Others are still under way.
    Others,
    At(Instant),
    /// The refusal stands: only a person can change it.
    Standing(Instant),
}

impl Redial {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            under_way: 0,
            begun: now,
            join_at: now,
            failures: 0,
            refusals: 0,
            let_in: false,
        }
    }

    pub(super) fn begin(&mut self, now: Instant, roll: f64) {
        self.under_way += 1;
        self.begun = now;
        self.join_at = now + spread(HOT_EVERY, roll);
    }

    /// When a further dial joins those under way, while somebody waits.
    pub(super) fn join_at(&self) -> Option<Instant> {
        (self.under_way < MAX_DIALS).then_some(self.join_at)
    }

    pub(super) fn got_through(&mut self) {
        self.under_way = 0;
        self.refusals = 0;
        self.let_in = true;
    }

    /// What is behind us says nothing about now: the machine slept, somebody
    /// came to wait, or Feishu delivered something.
    pub(super) fn start_afresh(&mut self) {
        self.failures = 0;
    }

    /// The soonest that somebody who comes to wait is dialled for.
    pub(super) fn soonest(&self, now: Instant) -> Instant {
        let refused = self.begun + HOT_REFUSED;
        now.max(if self.refusals > 0 {
            refused
        } else {
            self.join_at
        })
    }

    pub(super) fn failed(
        &mut self,
        retry: DialRetry,
        ceiling: Duration,
        hot: bool,
        now: Instant,
        roll: f64,
    ) -> NextDial {
        self.under_way = self.under_way.saturating_sub(1);
        if self.under_way > 0 {
            return NextDial::Others;
        }
        if retry == DialRetry::Soon {
            self.refusals = 0;
            self.failures += 1;
            let at = now + backoff::delay(self.failures, ceiling, roll);
            return NextDial::At(if hot { at.min(self.soonest(now)) } else { at });
        }
        let doubts: &[Duration] = if self.let_in { &IN_DOUBT } else { &[] };
        let (pause, standing) = match (doubts.get(self.refusals), retry) {
            (Some(pause), _) => (*pause, false),
            (None, DialRetry::Slowly(pause)) => (pause, true),
            (None, DialRetry::Soon | DialRetry::Crowded) => {
                // The doubts of an app that was let in were the first of them.
                let longer = self.refusals + usize::from(self.let_in) - doubts.len();
                (CROWDED[longer.min(CROWDED.len() - 1)], false)
            }
        };
        self.refusals += 1;
        let pause = if hot { pause.min(HOT_REFUSED) } else { pause };
        let at = now + spread(pause, roll);
        if standing {
            NextDial::Standing(at)
        } else {
            NextDial::At(at)
        }
    }

    /// When to dial after a connection that stood `since` then was lost.
    pub(super) fn lost(
        &mut self,
        since: Instant,
        ceiling: Duration,
        hot: bool,
        now: Instant,
        roll: f64,
    ) -> Instant {
        if now.saturating_duration_since(since) >= HEALTHY_AFTER {
            self.failures = 0;
        }
        let wait = backoff::delay(self.failures, ceiling, roll);
        self.failures += 1;
        if hot {
            let first = now + backoff::delay(0, ceiling, roll);
            return (now + wait).min(first.max(self.join_at));
        }
        now + wait
    }
}

/// Up to a fifth less, so that a fleet does not return as one.
fn spread(pause: Duration, roll: f64) -> Duration {
    pause.mul_f64(0.8 + 0.2 * roll.clamp(0.0, 1.0))
}
