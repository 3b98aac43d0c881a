//! Who waits, and how many.

use std::sync::Arc;

use super::Desk;
use crate::approvals::request::Request;
use crate::ids::SessionId;

impl Desk {
    pub fn pending(&self) -> usize {
        self.lock().approvals.len()
    }

    pub fn all_pending(&self) -> Vec<Arc<Request>> {
        self.lock().approvals.in_order().cloned().collect()
    }

    /// At most so many of those that end by themselves soonest.
    pub fn soonest(&self, most: usize) -> Vec<Arc<Request>> {
        let state = self.lock();
        state.approvals.soonest().take(most).cloned().collect()
    }

    /// Requests that name no session count as one session's.
    pub fn waiting_of(&self, session: Option<&SessionId>) -> usize {
        let state = self.lock();
        let all = state.approvals.all_pending();
        all.filter(|request| request.origin.session.as_ref() == session)
            .count()
    }
}
