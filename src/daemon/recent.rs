//! The answers to the last pushes, so that the same push delivered again gets
//! the same answer and nothing happens twice.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use crate::approvals::request::Millis;
use crate::ids::EventId;

const MAX: usize = 4_096;
/// What had an effect is remembered by the store for longer; this only saves
/// the work.
const AGE: Millis = 10 * 60 * 1_000;

#[derive(Default)]
pub(super) struct Recent {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    answers: HashMap<EventId, Arc<[u8]>>,
    order: VecDeque<(Millis, EventId)>,
}

impl Recent {
    pub(super) fn answer(&self, event: &EventId, now: Millis) -> Option<Arc<[u8]>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.forget(now - AGE, MAX);
        state.answers.get(event).cloned()
    }

    pub(super) fn remember(&self, event: EventId, answer: &[u8], now: Millis) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.forget(now - AGE, MAX - 1);
        if state.answers.insert(event.clone(), answer.into()).is_none() {
            state.order.push_back((now, event));
        }
    }
}

impl State {
    fn forget(&mut self, before: Millis, keep: usize) {
        while self.order.len() > keep || self.order.front().is_some_and(|(at, _)| *at < before) {
            if let Some((_, event)) = self.order.pop_front() {
                self.answers.remove(&event);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(n: usize) -> EventId {
        EventId::parse(&format!("e{n}")).unwrap()
    }

    #[test]
    fn the_same_push_gets_the_same_answer_for_a_while() {
        let recent = Recent::default();
        assert_eq!(recent.answer(&event(1), 0), None);
        recent.remember(event(1), b"a", 0);
        assert_eq!(recent.answer(&event(1), AGE).as_deref(), Some(&b"a"[..]));
        assert_eq!(recent.answer(&event(1), AGE + 1), None);
    }

    #[test]
    fn memory_is_bounded() {
        let recent = Recent::default();
        for n in 0..3 * MAX {
            recent.remember(event(n), b"a", 0);
        }
        let state = recent.state.lock().unwrap();
        assert_eq!(state.answers.len(), MAX);
        assert_eq!(state.order.len(), MAX);
    }
}
