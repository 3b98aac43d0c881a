//! Where the connection stands, for `status` and for whoever waits on it.

use std::time::Instant;

use super::LinkState;
use crate::text::Text;

#[derive(Debug, Clone, PartialEq)]
pub enum Phase {
    Dialing {
        why: Option<Text>,
    },
    Up {
        since: Instant,
    },
    Waiting {
        until: Instant,
        why: Text,
    },
    /// Waiting, and only a person can change it.
    Degraded {
        until: Instant,
        why: Text,
    },
}

impl Phase {
    pub(super) fn of(state: &LinkState) -> Self {
        match state {
            LinkState::Dialing { why } => Self::Dialing { why: why.clone() },
            LinkState::Up(peer) => Self::Up { since: peer.since },
            LinkState::Waiting { until, why } => Self::Waiting {
                until: *until,
                why: why.clone(),
            },
            LinkState::Degraded { until, why } => Self::Degraded {
                until: *until,
                why: why.clone(),
            },
        }
    }
}
