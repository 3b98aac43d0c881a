//! What a tap, a reply, a page's press or a call led to. Whatever anybody is
//! told of it is derived from this: the toast, the answer to another machine,
//! the reply in the chat, the page and the audit's word. Nothing is read out
//! of a sentence about it.

use super::desk::Delivery;
use super::request::Ending;
use super::{Settled, Unclaimed, record};
use crate::clock::Millis;
use crate::sessions::questions::ReplyProblem;
use crate::text::{Text, Tone};

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It decided its request.
    Decided(Box<Carried>),
    /// It took back the rule of an earlier "always".
    Undone,
    /// It did what it is for, which decides nothing.
    Done(Deed),
    /// It changed nothing.
    Refused(Refusal),
    /// Its request lives on a machine that can't be called from here.
    Elsewhere { machine: String },
    /// It was dealt with on its request's machine, or here when this very tap
    /// came before; these are the words that were said there.
    Relayed {
        upshot: Upshot,
        tone: Tone,
        said: Text,
    },
    /// It was taken to its request's machine, which did not say what came of it.
    Unclear,
    /// The same of a callback service that is not nod: nobody will tell, so
    /// the person has to look.
    ServiceUnclear(PeerSilence),
    /// Nobody has decided, and nobody tried to.
    Waiting,
}

/// A choice that was carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct Carried {
    pub settled: Settled,
    pub delivery: Delivery,
    /// Why the rule it should have left is in no file.
    pub unsaved: Option<Text>,
    /// How the terminal had ended the request a moment before.
    pub instead: Option<Ending>,
}

/// What a tap does that decides nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// A card that asks once more goes out.
    AskedOnceMore,
    /// A gathered request has, or gets, a card of its own.
    Opened,
    /// So many gathered requests are being denied.
    DenyingAll(usize),
    Stopping,
    /// A session begins, or goes on in the chat.
    Starting,
    /// What a menu's button stands for.
    CarriedOut,
}

/// Why something changed nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// No request of this id, here or anywhere we know.
    Unknown,
    /// It was over before.
    Over {
        ending: Ending,
        ago: Millis,
    },
    /// Somebody did it before; how does not matter.
    Handled,
    /// The hook lost the daemon and is on its way back.
    Reconnecting,
    /// No button of ours, or not on the card it was made for.
    Invalid,
    NotAnApprover,
    /// Only the owner steers sessions.
    NotTheOwner,
    /// The tap took too long to arrive to be trusted.
    Stale,
    /// No rule is safe for this request.
    NoSafeRule,
    /// The button isn't on the card that was shown.
    NotOffered,
    /// Nobody knows yet which message its card is.
    Nameless,
    /// A card that asked before a restart, and answers for nothing any more.
    AskAnew,
    /// Whatever it was for does not wait any more.
    Expired,
    /// The button of a menu that nod does not remember.
    MenuGone,
    /// The field for words is empty.
    SayWhat,
    NothingRuns,
    /// What was given is no answer; the question stays open.
    BadAnswer(ReplyProblem),
    /// Remote approval is locked; only a refusal is possible.
    Locked,
    /// The same, because the file that would tell is lost.
    LockedUnsure,
    /// The rule is still there.
    NotUndone(Text),
    /// Its request's machine could not be reached.
    Unreachable,
    /// Its request's machine was reached and took no call of ours.
    NotTaken(NotTaken),
    /// It answered with this HTTP status, which decides nothing.
    PeerStatus(u16),
}

/// Why nobody knows what a call that was written came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerSilence {
    /// It failed over it.
    Status(u16),
    /// It took longer than Feishu waits.
    Slow,
    /// The connection broke, or the answer made no sense.
    Broken,
}

/// Why a machine took no call of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotTaken {
    Secret,
    /// A service that is not nod wants another `X-Auth-Token`, or one at all.
    Token,
    Clock,
    Version,
}

/// What is known to have come of it, in the reference protocol's measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upshot {
    /// The hook may go on, with an answer where it asked for one.
    Allowed,
    Denied,
    /// Something that decides nothing.
    Other,
    /// Nothing, or nobody knows yet.
    Nothing,
}

impl Outcome {
    /// What the hook is known to have.
    pub fn upshot(&self) -> Upshot {
        match self {
            Self::Decided(it) => Upshot::of(&it.settled.ending, it.delivery),
            Self::Undone => Upshot::Other,
            Self::Relayed { upshot, .. } => *upshot,
            Self::Done(_)
            | Self::Refused(_)
            | Self::Elsewhere { .. }
            | Self::Unclear
            | Self::ServiceUnclear(_)
            | Self::Waiting => Upshot::Nothing,
        }
    }

    /// Whether it ended a request or took a rule back: the same tap, should it
    /// come again, is told the same.
    pub const fn lasts(&self) -> bool {
        matches!(self, Self::Decided(_) | Self::Undone)
    }

    /// The audit's word for it, where the audit has one.
    pub fn word(&self) -> Option<&'static str> {
        match self {
            Self::Decided(it) => Some(record::kind(&it.settled.ending)),
            Self::Undone => Some("rule_undone"),
            Self::Refused(why) => why.word(),
            Self::Done(_)
            | Self::Elsewhere { .. }
            | Self::Relayed { .. }
            | Self::Unclear
            | Self::ServiceUnclear(_)
            | Self::Waiting => None,
        }
    }
}

impl From<Refusal> for Outcome {
    fn from(why: Refusal) -> Self {
        Self::Refused(why)
    }
}

impl From<Deed> for Outcome {
    fn from(deed: Deed) -> Self {
        Self::Done(deed)
    }
}

impl Refusal {
    /// Why a claim was not won, told at `now`.
    pub fn of(why: Unclaimed, now: Millis) -> Self {
        match why {
            Unclaimed::Unknown => Self::Unknown,
            Unclaimed::Reconnecting => Self::Reconnecting,
            Unclaimed::Settled { ending, at } => Self::Over {
                ending,
                ago: now - at,
            },
        }
    }

    /// The audit's word for people who may not do what they tried.
    pub const fn word(&self) -> Option<&'static str> {
        match self {
            Self::NotAnApprover => Some("not_an_approver"),
            Self::NotTheOwner => Some("not_the_owner"),
            _ => None,
        }
    }
}

impl Upshot {
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
            | Ending::DeniedElsewhere
            | Ending::TimedOut
            | Ending::HookGone
            | Ending::Orphaned
            | Ending::Undeliverable { .. }
            | Ending::Dropped { .. } => Self::Nothing,
        }
    }

    /// As the reference protocol's fields say it; a failure decided nothing,
    /// whatever else it says.
    pub fn told(success: bool, decision: Option<&str>) -> Self {
        match (success, decision) {
            (false, _) => Self::Nothing,
            (true, Some("allow")) => Self::Allowed,
            (true, Some("deny")) => Self::Denied,
            (true, _) => Self::Other,
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
            Self::Other | Self::Nothing => None,
        }
    }
}

#[cfg(test)]
pub(crate) mod sample;

#[cfg(test)]
mod tests {
    use super::sample::{allowed, always, answered, by, decided, denied};
    use super::*;
    use crate::approvals::request::Reach;
    use crate::rules::Rule;

    #[test]
    fn every_kind_of_allow_and_every_answer_is_a_success() {
        let search = || Rule::bare("WebSearch");
        for ending in [
            allowed(Reach::Once),
            allowed(Reach::Session(vec![search()])),
            allowed(always(search())),
            answered(),
        ] {
            for delivery in [Delivery::Confirmed, Delivery::Written] {
                let upshot = decided(ending.clone(), delivery).upshot();
                assert!(upshot.is_success());
                assert_eq!(upshot.decision(), Some("allow"));
            }
        }
    }

    #[test]
    fn a_denial_is_a_success_and_no_allow() {
        for ending in [denied(true), Ending::Stopped { by: by(), since: 0 }] {
            let upshot = decided(ending, Delivery::Confirmed).upshot();
            assert!(upshot.is_success());
            assert_eq!(upshot.decision(), Some("deny"));
        }
    }

    #[test]
    fn what_the_hook_is_not_known_to_have_is_no_success() {
        for delivery in [Delivery::Unconfirmed, Delivery::Lost] {
            let upshot = decided(allowed(Reach::Once), delivery).upshot();
            assert_eq!(upshot, Upshot::Nothing);
            assert!(!upshot.is_success());
            assert_eq!(upshot.decision(), None);
        }
        for ending in [
            Ending::TimedOut,
            Ending::HookGone,
            Ending::Terminal {
                allowed: Some(true),
            },
        ] {
            let upshot = decided(ending, Delivery::Confirmed).upshot();
            assert_eq!(upshot, Upshot::Nothing);
        }
    }

    #[test]
    fn what_decides_nothing_gives_no_decision() {
        assert!(Outcome::Undone.upshot().is_success());
        for outcome in [
            Outcome::Undone,
            Outcome::Done(Deed::Opened),
            Outcome::Refused(Refusal::Over {
                ending: allowed(Reach::Once),
                ago: 0,
            }),
            Outcome::Elsewhere {
                machine: "desk".to_owned(),
            },
            Outcome::Unclear,
            Outcome::Waiting,
        ] {
            assert_eq!(outcome.upshot().decision(), None, "{outcome:?}");
        }
        assert!(!Outcome::Unclear.upshot().is_success());
    }

    #[test]
    fn a_failure_that_claims_an_allow_allowed_nothing() {
        for (success, decision, upshot) in [
            (true, Some("allow"), Upshot::Allowed),
            (true, Some("deny"), Upshot::Denied),
            (true, None, Upshot::Other),
            (true, Some("maybe"), Upshot::Other),
            (false, Some("allow"), Upshot::Nothing),
            (false, None, Upshot::Nothing),
        ] {
            assert_eq!(Upshot::told(success, decision), upshot);
            assert_eq!(upshot.is_success(), success);
        }
    }

    #[test]
    fn the_audit_names_what_was_decided_and_who_was_turned_away() {
        for (outcome, word) in [
            (decided(denied(false), Delivery::Lost), Some("deny")),
            (Outcome::Undone, Some("rule_undone")),
            (Refusal::NotAnApprover.into(), Some("not_an_approver")),
            (Refusal::NotTheOwner.into(), Some("not_the_owner")),
            (Refusal::Stale.into(), None),
            (Deed::Stopping.into(), None),
        ] {
            assert_eq!(outcome.word(), word, "{outcome:?}");
        }
    }

    #[test]
    fn only_what_changed_something_for_good_is_told_the_same_again() {
        assert!(decided(denied(false), Delivery::Lost).lasts());
        assert!(Outcome::Undone.lasts());
        for outcome in [
            Outcome::from(Deed::Opened),
            Refusal::Reconnecting.into(),
            Outcome::Unclear,
            Outcome::Waiting,
        ] {
            assert!(!outcome.lasts(), "{outcome:?}");
        }
    }

    #[test]
    fn a_claim_that_was_lost_says_how_long_ago() {
        let why = Unclaimed::Settled {
            ending: Ending::TimedOut,
            at: 1_000,
        };
        let over = Refusal::Over {
            ending: Ending::TimedOut,
            ago: 500,
        };
        assert_eq!(Refusal::of(why, 1_500), over);
        assert_eq!(Refusal::of(Unclaimed::Unknown, 0), Refusal::Unknown);
    }
}
