//! One-time tickets: each page that can decide carries one, bound to its
//! request and action, good for one press. Forgets by age and number.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::cards::Action;
use crate::clock::Millis;
use crate::hex;
use crate::ids::RequestId;

const MAX: usize = 4_096;
const AGE: Millis = 30 * 60 * 1_000;

#[derive(Debug, Default)]
pub struct PressTickets {
    state: Mutex<TicketsState>,
}

#[derive(Debug, Default)]
struct TicketsState {
    open: HashMap<String, (RequestId, Action)>,
    order: VecDeque<(Millis, String)>,
}

impl PressTickets {
    /// Issues a ticket. `chance` makes it unguessable.
    pub fn issue(
        &self,
        request: &RequestId,
        action: Action,
        chance: [u8; 16],
        now: Millis,
    ) -> String {
        let ticket = hex::encode(&chance);
        let mut state = self.lock();
        state.forget(now - AGE, MAX - 1);
        state.order.push_back((now, ticket.clone()));
        state.open.insert(ticket.clone(), (request.clone(), action));
        ticket
    }

    /// Takes a ticket out of use; true for the first press of the very action
    /// it was issued for. A ticket presented for anything else is void too.
    pub fn redeem(&self, ticket: &str, request: &RequestId, action: Action, now: Millis) -> bool {
        let mut state = self.lock();
        state.forget(now - AGE, MAX);
        state
            .open
            .remove(ticket)
            .is_some_and(|issued| issued == (request.clone(), action))
    }

    fn lock(&self) -> MutexGuard<'_, TicketsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TicketsState {
    fn forget(&mut self, before: Millis, keep: usize) {
        while self.order.len() > keep || self.order.front().is_some_and(|(at, _)| *at < before) {
            if let Some((_, ticket)) = self.order.pop_front() {
                self.open.remove(&ticket);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_good_once_for_one_request_and_action_and_for_a_while() {
        let tickets = PressTickets::default();
        let (r, q) = (
            RequestId::parse("r").unwrap(),
            RequestId::parse("q").unwrap(),
        );
        let issue = |n| tickets.issue(&r, Action::Allow, [n; 16], 0);
        let ticket = issue(1);
        assert!(tickets.redeem(&ticket, &r, Action::Allow, 1));
        assert!(!tickets.redeem(&ticket, &r, Action::Allow, 1));
        let ticket = issue(2);
        assert!(!tickets.redeem(&ticket, &r, Action::Always, 1));
        assert!(!tickets.redeem(&ticket, &r, Action::Allow, 1));
        assert!(!tickets.redeem(&issue(3), &q, Action::Allow, 1));
        assert!(!tickets.redeem(&issue(4), &r, Action::Allow, AGE + 1));
        assert!(!tickets.redeem("", &r, Action::Allow, 1));
    }

    #[test]
    fn tickets_are_bounded() {
        let tickets = PressTickets::default();
        let request = RequestId::parse("r").unwrap();
        for n in 0..2 * MAX as u128 {
            tickets.issue(&request, Action::Deny, n.to_be_bytes(), 0);
        }
        let state = tickets.lock();
        assert_eq!((state.open.len(), state.order.len()), (MAX, MAX));
    }
}
