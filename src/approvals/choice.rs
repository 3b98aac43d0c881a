//! What a person can choose, and what the choice makes of the request.

use super::request::{Ending, Operator, Reach};

/// What a person chose on the card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    Allow(Reach),
    Deny {
        reason: Option<String>,
        interrupt: bool,
    },
    /// A question's answers, in order.
    Answer(Vec<String>),
}

impl Choice {
    /// Whether it stops a call that runs already.
    pub fn stops(&self) -> bool {
        matches!(self, Self::Deny { interrupt, .. } if *interrupt)
    }

    pub(super) fn ending(self, by: Operator) -> Ending {
        match self {
            Self::Allow(reach) => Ending::Allowed {
                by,
                reach,
                cancelled: false,
            },
            Self::Deny { reason, interrupt } => Ending::Denied {
                by,
                reason,
                interrupt,
            },
            Self::Answer(answers) => Ending::Answered { by, answers },
        }
    }
}
