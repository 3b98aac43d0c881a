//! What a tap, a reply or a call led to, as whoever asked for it is told.
//! Comes from the ending and its delivery, never from a sentence about them.

use super::desk::Delivery;
use super::request::Ending;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The hook may go on, with an answer where it asked for one.
    Allowed,
    Denied,
    /// A rule was taken back.
    Undone,
    /// Nothing, or nobody knows yet.
    Nothing,
}

impl Outcome {
    /// Only what the hook is known to have counts.
    pub fn of(ending: &Ending, delivery: Delivery) -> Self {
        match delivery {
            Delivery::Confirmed | Delivery::Written => Self::recorded(ending),
            Delivery::Unconfirmed | Delivery::Lost => Self::Nothing,
        }
    }

    /// By the record, for a tap whose effect is past.
    pub fn recorded(ending: &Ending) -> Self {
        match ending {
            Ending::Allowed { .. } | Ending::Answered { .. } => Self::Allowed,
            Ending::Denied { .. } | Ending::Stopped { .. } => Self::Denied,
            Ending::Terminal { .. }
            | Ending::Ran(_)
            | Ending::TimedOut
            | Ending::HookGone
            | Ending::Orphaned
            | Ending::Undeliverable { .. }
            | Ending::Dropped { .. } => Self::Nothing,
        }
    }

    pub const fn is_success(self) -> bool {
        !matches!(self, Self::Nothing)
    }

    /// The protocol's word for what the hook was told.
    pub const fn decision(self) -> Option<&'static str> {
        match self {
            Self::Allowed => Some("allow"),
            Self::Denied => Some("deny"),
            Self::Undone | Self::Nothing => None,
        }
    }
}

/// Why a machine took no call of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotTaken {
    Secret,
    Clock,
    Version,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approvals::request::{Operator, Reach};
    use crate::rules::Rule;

    fn by() -> Operator {
        Operator::unnamed(Operator::CALLBACK)
    }

    fn allowed(reach: Reach) -> Ending {
        Ending::Allowed { by: by(), reach }
    }

    #[test]
    fn every_kind_of_allow_and_every_answer_is_a_success() {
        let always = Reach::Always {
            rules: vec![Rule::bare("WebSearch")],
            undone: false,
        };
        let session = Reach::Session(vec![Rule::bare("WebSearch")]);
        for ending in [allowed(Reach::Once), allowed(session), allowed(always)] {
            for delivery in [Delivery::Confirmed, Delivery::Written] {
                let outcome = Outcome::of(&ending, delivery);
                assert!(outcome.is_success());
                assert_eq!(outcome.decision(), Some("allow"));
            }
        }
    }

    #[test]
    fn a_denial_is_a_success_and_no_allow() {
        for ending in [
            Ending::Denied {
                by: by(),
                reason: None,
                interrupt: true,
            },
            Ending::Stopped { by: by(), since: 0 },
        ] {
            let outcome = Outcome::of(&ending, Delivery::Confirmed);
            assert!(outcome.is_success());
            assert_eq!(outcome.decision(), Some("deny"));
        }
    }

    #[test]
    fn what_the_hook_is_not_known_to_have_is_no_success() {
        for delivery in [Delivery::Unconfirmed, Delivery::Lost] {
            let outcome = Outcome::of(&allowed(Reach::Once), delivery);
            assert_eq!(outcome, Outcome::Nothing);
            assert!(!outcome.is_success());
            assert_eq!(outcome.decision(), None);
        }
        for ending in [
            Ending::TimedOut,
            Ending::HookGone,
            Ending::Terminal {
                allowed: Some(true),
            },
        ] {
            assert_eq!(Outcome::of(&ending, Delivery::Confirmed), Outcome::Nothing);
        }
    }

    #[test]
    fn a_rule_taken_back_decides_nothing() {
        assert!(Outcome::Undone.is_success());
        assert_eq!(Outcome::Undone.decision(), None);
    }
}
