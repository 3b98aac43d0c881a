//! How often a session may ask a person. Beyond that the terminal answers: a
//! person who gets a card every few seconds stops reading them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::approvals::request::Millis;
use crate::ids::SessionId;

pub(super) const MOST: usize = 10;
const WINDOW: Millis = 60 * 1_000;
const MAX_SESSIONS: usize = 1_024;

/// Requests that name no session count as one.
type Key = Option<SessionId>;

#[derive(Default)]
pub(super) struct Flood {
    sessions: Mutex<HashMap<Key, Window>>,
}

#[derive(Default)]
struct Window {
    asked: VecDeque<Millis>,
    told: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Fine,
    TooOften {
        /// Nobody was told of this flood yet.
        first: bool,
    },
}

impl Flood {
    pub(super) fn ask(&self, session: &Key, now: Millis) -> Verdict {
        let mut sessions = self.lock();
        if sessions.len() >= MAX_SESSIONS && !sessions.contains_key(session) {
            sessions.retain(|_, window| window.last().is_some_and(|at| now - at < WINDOW));
            if sessions.len() >= MAX_SESSIONS {
                let stalest = sessions.iter().min_by_key(|(_, window)| window.last());
                if let Some(key) = stalest.map(|(key, _)| key.clone()) {
                    sessions.remove(&key);
                }
            }
        }
        let window = sessions.entry(session.clone()).or_default();
        window.asked.retain(|at| now - at < WINDOW);
        if window.asked.len() >= MOST {
            let first = !window.told;
            window.told = true;
            return Verdict::TooOften { first };
        }
        window.asked.push_back(now);
        window.told = false;
        Verdict::Fine
    }

    /// A request was answered in the terminal before its card was sent: nobody
    /// was disturbed by it.
    pub(super) fn spared(&self, session: &Key, asked_at: Millis) {
        if let Some(window) = self.lock().get_mut(session)
            && let Some(place) = window.asked.iter().position(|at| *at == asked_at)
        {
            window.asked.remove(place);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Window>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Window {
    fn last(&self) -> Option<Millis> {
        self.asked.back().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(n: usize) -> Key {
        SessionId::parse(&format!("s{n}")).ok()
    }

    #[test]
    fn the_eleventh_in_a_minute_is_refused_and_told_once() {
        let flood = Flood::default();
        for at in 0..10 {
            assert_eq!(flood.ask(&session(1), at), Verdict::Fine);
        }
        let too_often = |first| Verdict::TooOften { first };
        assert_eq!(flood.ask(&session(1), 10), too_often(true));
        assert_eq!(flood.ask(&session(1), 11), too_often(false));
        assert_eq!(flood.ask(&session(2), 11), Verdict::Fine);
        assert_eq!(flood.ask(&None, 11), Verdict::Fine);
        assert_eq!(flood.ask(&session(1), WINDOW), Verdict::Fine);
        assert_eq!(flood.ask(&session(1), WINDOW), too_often(true));
    }

    #[test]
    fn what_disturbed_nobody_does_not_count() {
        let flood = Flood::default();
        for at in 0..100 {
            assert_eq!(flood.ask(&session(1), at), Verdict::Fine);
            flood.spared(&session(1), at);
        }
    }

    #[test]
    fn memory_is_bounded() {
        let flood = Flood::default();
        for n in 0..2 * MAX_SESSIONS {
            flood.ask(&session(n), 0);
        }
        assert_eq!(flood.lock().len(), MAX_SESSIONS);
    }
}
