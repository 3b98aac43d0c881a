//! A place taken back by the daemon itself, for requests that no hook of nod's
//! own holds.

use std::sync::Arc;

use super::{Desk, Waiting};
use crate::approvals::Resumed;
use crate::ids::RequestId;

impl Desk {
    /// Gives a request of this daemon's own its place back after a restart. No
    /// token is asked for: nobody but the daemon itself can call this.
    pub fn take_back(self: &Arc<Self>, id: &RequestId) -> Option<Waiting> {
        let now = (self.clock)();
        let waiting = {
            let mut state = self.lock();
            let hash = state.approvals.token_of(id)?;
            let Ok(Resumed::Waiting(attachment, request)) = state.approvals.resume(id, hash) else {
                return None;
            };
            let waiting = state.seat(self, &request, attachment, None);
            state.let_go_if_closing(now);
            waiting
        };
        self.changed();
        self.attached.notify_waiters();
        Some(waiting)
    }
}
