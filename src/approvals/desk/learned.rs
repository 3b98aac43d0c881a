//! What the agent's own record of its calls tells.

use super::Desk;
use crate::approvals::ToldCall;
use crate::clock::Millis;
use crate::ids::RequestId;
use crate::talk::CallFate;

impl Desk {
    /// The agent's own id of the call that this request asks for.
    pub fn call_is(&self, id: &RequestId, name: &str) {
        self.lock().approvals.call_is(id, name);
    }

    /// Whether what becomes of this call matters to anything that was asked.
    pub fn concerns(&self, call: &ToldCall, name: Option<&str>) -> bool {
        let now = (self.clock)();
        self.lock().approvals.concerns(call, name, now)
    }

    /// The agent wrote down, at `at`, what became of the call of this request.
    pub fn learned(&self, id: &RequestId, fate: CallFate, at: Millis) {
        let now = (self.clock)();
        self.end(|approvals| approvals.learned(id, fate, at, now));
    }
}
