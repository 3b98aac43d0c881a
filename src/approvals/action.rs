//! What a person can choose, and when choosing it again changes nothing.

use super::request::{Ending, Operator, Reach};

/// What a person chose on the card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Allow(Reach),
    Deny {
        reason: Option<String>,
        interrupt: bool,
    },
    /// A question's answers, in order.
    Answer(Vec<String>),
}

impl Action {
    pub(super) fn ending(self, by: Operator) -> Ending {
        match self {
            Self::Allow(reach) => Ending::Allowed { by, reach },
            Self::Deny { reason, interrupt } => Ending::Denied {
                by,
                reason,
                interrupt,
            },
            Self::Answer(answers) => Ending::Answered { by, answers },
        }
    }

    /// Whether `by` would only say once more what `past` already says.
    pub(super) fn repeats(&self, by: &Operator, past: &Ending) -> bool {
        match (self, past) {
            (
                Self::Allow(reach),
                Ending::Allowed {
                    by: who,
                    reach: was,
                },
            ) => by == who && std::mem::discriminant(reach) == std::mem::discriminant(was),
            (
                Self::Deny { interrupt, .. },
                Ending::Denied {
                    by: who,
                    interrupt: was,
                    ..
                },
            ) => by == who && interrupt == was,
            (
                Self::Answer(answers),
                Ending::Answered {
                    by: who,
                    answers: were,
                },
            ) => by == who && answers == were,
            _ => false,
        }
    }
}
