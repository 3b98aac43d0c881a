//! Sliding one-second windows per key: how many calls Feishu takes.

use std::collections::{HashMap, VecDeque};

const MAX_KEYS: usize = 10_000;

#[derive(Debug, Default)]
pub(in crate::simulator) struct CallPace {
    windows: HashMap<String, VecDeque<u64>>,
}

impl CallPace {
    /// Counts a call at `now` (ms), or says that it is one too many.
    pub(in crate::simulator) fn take(&mut self, key: &str, limit: Option<u32>, now: u64) -> bool {
        let Some(limit) = limit else {
            return true;
        };
        if self.windows.len() >= MAX_KEYS {
            self.windows
                .retain(|_, window| window.back().is_some_and(|at| at + 1000 > now));
        }
        let window = self.windows.entry(key.to_owned()).or_default();
        while window.front().is_some_and(|at| at + 1000 <= now) {
            window.pop_front();
        }
        let room = u32::try_from(window.len()).is_ok_and(|count| count < limit);
        if room {
            window.push_back(now);
        }
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_slides() {
        let mut pace = CallPace::default();
        for now in [0, 10, 20] {
            assert!(pace.take("chat", Some(3), now));
        }
        assert!(!pace.take("chat", Some(3), 999));
        assert!(pace.take("other", Some(3), 999));
        assert!(pace.take("chat", Some(3), 1000));
        assert!(!pace.take("chat", Some(3), 1001));
        assert!(pace.take("chat", None, 1001));
    }
}
