//! The answers to the last pushes, so that the same push delivered again, even
//! while the first is still at work, gets the same answer and nothing happens
//! twice.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

use crate::clock::Millis;
use crate::ids::EventId;

/// Each may hold a card of 30 KB.
const MAX: usize = 1_024;
/// What had an effect is remembered by the store for longer; this only saves
/// the work.
const AGE: Millis = 10 * 60 * 1_000;

/// One push's answer; whoever comes second waits for the first.
pub(crate) type AnswerSlot = Arc<OnceCell<Vec<u8>>>;

#[derive(Default)]
pub(crate) struct Recent {
    state: Mutex<AnsweredState>,
}

#[derive(Default)]
struct AnsweredState {
    answers: HashMap<EventId, AnswerSlot>,
    order: VecDeque<(Millis, EventId)>,
}

impl Recent {
    /// The place for this push's answer, the same one each time it comes.
    pub(crate) fn slot(&self, event: &EventId, now: Millis) -> AnswerSlot {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = now - AGE;
        state.forget(before, MAX);
        if let Some(slot) = state.answers.get(event) {
            return Arc::clone(slot);
        }
        state.forget(before, MAX - 1);
        let slot = AnswerSlot::default();
        state.answers.insert(event.clone(), Arc::clone(&slot));
        state.order.push_back((now, event.clone()));
        slot
    }

    /// Whether this push came before, lately.
    #[cfg(feature = "team")]
    pub(crate) fn knows(&self, event: &EventId, now: Millis) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.forget(now - AGE, MAX);
        state.answers.contains_key(event)
    }
}

impl AnsweredState {
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
        let ten_minutes = 600_000;
        let recent = Recent::default();
        recent.slot(&event(1), 0).set(b"a".to_vec()).unwrap();
        let kept = recent.slot(&event(1), ten_minutes);
        assert_eq!(kept.get().map(Vec::as_slice), Some(&b"a"[..]));
        assert_eq!(recent.slot(&event(2), ten_minutes).get(), None);
        assert_eq!(recent.slot(&event(1), ten_minutes + 1).get(), None);
    }

    #[test]
    fn memory_is_bounded() {
        let recent = Recent::default();
        for n in 0..3 * MAX {
            recent.slot(&event(n), 0);
        }
        let state = recent.state.lock().unwrap();
        assert_eq!(state.answers.len(), MAX);
        assert_eq!(state.order.len(), MAX);
    }
}
