//! What time it is at Feishu, by the date its web server puts into answers:
//! this machine's own clock may be wrong, and messages carry Feishu's time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use reqwest::header::{DATE, HeaderMap};

use crate::clock::Clock;
use crate::clock::Millis;

/// Two clocks that differ by no more are the same.
const ALIKE: Millis = 100;

/// Feishu's clock as far as it is known; until then, this machine's.
#[derive(Debug, Clone)]
pub struct TheirClock {
    own: Clock,
    ahead: Arc<AtomicI64>,
}

impl TheirClock {
    pub fn new(own: Clock) -> Self {
        Self {
            own,
            ahead: Arc::default(),
        }
    }

    pub fn now(&self) -> Millis {
        self.own.now() + self.ahead()
    }

    /// How far it is ahead of this machine's.
    pub fn ahead(&self) -> Millis {
        self.ahead.load(Ordering::Relaxed)
    }

    /// Learns from somebody who knows; a difference that no age depends on
    /// changes nothing.
    pub fn set(&self, theirs: Millis) {
        let ahead = theirs - self.own.now();
        if (ahead - self.ahead()).abs() > ALIKE {
            self.ahead.store(ahead, Ordering::Relaxed);
        }
    }

    /// Learns from an answer that has just come. Exact to a second and the
    /// answer's way, which is all that ages of minutes need.
    pub fn learn(&self, answer: &HeaderMap) {
        if let Some(theirs) = date(answer) {
            let ahead = theirs - self.own.now();
            self.ahead.store(ahead, Ordering::Relaxed);
        }
    }
}

/// The date of a web server's answer.
pub fn date(answer: &HeaderMap) -> Option<Millis> {
    let text = answer.get(DATE)?.to_str().ok()?;
    let date = jiff::fmt::rfc2822::parse(text).ok()?;
    Some(date.timestamp().as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderValue;

    fn dated(text: &str) -> HeaderMap {
        let date = HeaderValue::from_str(text).unwrap();
        HeaderMap::from_iter([(DATE, date)])
    }

    #[test]
    fn the_date_of_an_answer_sets_the_clock_and_nonsense_does_not() {
        let clock = TheirClock::new(Clock::start());
        clock.learn(&dated("Sun, 06 Nov 1994 08:49:37 GMT"));
        let told = 784_111_777_000;
        assert!((0..1_000).contains(&(clock.now() - told)));
        for nonsense in ["", "yesterday", "06 Nov"] {
            clock.learn(&dated(nonsense));
        }
        clock.learn(&HeaderMap::new());
        assert!((0..1_000).contains(&(clock.now() - told)));
    }
}
