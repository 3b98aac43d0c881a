//! An outcome in words: the toast of a tap, and the reply to a message.

use crate::approvals::desk::Delivery;
use crate::approvals::outcome::{Carried, Deed, NotTaken, Outcome, Refusal, Upshot};
use crate::approvals::request::{Ending, Origin, Reach};
use crate::clock::Millis;
use crate::rules::Rule;
use crate::text::{Text, Tone};
use crate::wording::rule::{Until, sentences};
use crate::wording::toast::Toast;
use crate::wording::{question, session, terminal};

impl Toast {
    pub fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Decided(it) => decided(it),
            Outcome::Undone => Self::RULE_UNDONE,
            Outcome::Done(deed) => done(*deed),
            Outcome::Refused(why) => refused(why),
            Outcome::Elsewhere { machine } => Self::other_machine(machine),
            Outcome::Relayed { tone, said, .. } => Self::said(*tone, said.clone()),
            Outcome::Unclear => Self::STILL_CHECKING,
            Outcome::ServiceUnclear(why) => Self::service_unclear(*why),
            Outcome::Waiting => Self::PROCESSING,
        }
    }
}

/// What a message that answers a request is told. It may have been long on its
/// way to the hook, so nobody is told how far the answer came.
pub fn in_chat(outcome: &Outcome) -> Text {
    let Outcome::Decided(it) = outcome else {
        return Toast::of(outcome).text;
    };
    let request = &it.settled.request;
    match request.question() {
        Some(_) if request.origin.hosted => session::RECEIVED,
        Some(_) => terminal::ANSWERED,
        None => terminal::denied_by_reply(request.origin.caller.agent.kind().short()),
    }
}

/// The words of a callback service that knows no English: the protocol's own
/// sentences are told in both languages, any other as it stands.
pub fn relayed(upshot: Upshot, message: &str) -> Toast {
    let fixed = [
        Toast::ALLOWED,
        Toast::ALLOWED_ALWAYS,
        Toast::DENIED,
        Toast::INTERRUPTED,
        Toast::UNKNOWN,
        Toast::ALREADY_HANDLED,
        Toast::HOOK_GONE,
        Toast::INVALID,
    ];
    let success = upshot.is_success();
    let same = |toast: &Toast| toast.text.zh == message && (toast.tone == Tone::Success) == success;
    let known = fixed.into_iter().find(same);
    let known = known.or(match (upshot, message.trim()) {
        (Upshot::Allowed, "") => Some(Toast::ALLOWED),
        (Upshot::Denied, "") => Some(Toast::DENIED),
        (Upshot::Nothing, "") => Some(Toast::UNKNOWN),
        _ => None,
    });
    let tone = if success { Tone::Success } else { Tone::Error };
    known.unwrap_or_else(|| Toast::made(tone, message.to_owned(), message.to_owned()))
}

fn decided(it: &Carried) -> Toast {
    match (it.delivery, &it.instead) {
        (Delivery::Lost, Some(ending)) => return over(ending, 0),
        (Delivery::Lost, None) => return Toast::HOOK_GONE,
        (Delivery::Unconfirmed, _) => return Toast::STILL_CHECKING,
        (Delivery::Confirmed | Delivery::Written, _) => {}
    }
    let request = &it.settled.request;
    match &it.settled.ending {
        Ending::Allowed { reach, .. } => allowed(reach, &request.origin, it.unsaved.as_ref()),
        Ending::Answered { .. } => Toast::ANSWERED,
        Ending::Denied {
            interrupt: true, ..
        } => Toast::INTERRUPTED,
        Ending::Denied { .. } => match request.question() {
            Some(_) => Toast::ANSWER_REFUSED,
            None => Toast::DENIED,
        },
        Ending::Stopped { .. } => Toast::STOPPED,
        Ending::Terminal { .. }
        | Ending::Ran(_)
        | Ending::DeniedElsewhere
        | Ending::TimedOut
        | Ending::HookGone
        | Ending::Orphaned
        | Ending::Undeliverable { .. }
        | Ending::Dropped { .. } => Toast::HOOK_GONE,
    }
}

fn allowed(reach: &Reach, origin: &Origin, unsaved: Option<&Text>) -> Toast {
    let (exact, rules, until) = match reach {
        Reach::Once | Reach::Unwritten => return Toast::ALLOWED,
        Reach::Turn(_) => return Toast::ALLOWED_FOR_TURN,
        Reach::Session(rules) => (Toast::ALLOWED_FOR_SESSION, rules, Until::SessionEnd),
        Reach::Always { rules, .. } => (Toast::ALLOWED_ALWAYS, rules, Until::Undone),
    };
    if let Some(why) = unsaved {
        return Toast::rule_not_saved(why);
    }
    match sentences(rules, origin, until).next() {
        // A file may be changed in any way: more than the same again.
        Some(sentence) if !rules.iter().all(Rule::is_same_call) => Toast::allowed_wider(&sentence),
        _ => exact,
    }
}

fn done(deed: Deed) -> Toast {
    match deed {
        Deed::AskedOnceMore => Toast::ASKED_ONCE_MORE,
        Deed::Opened => Toast::OPENED,
        Deed::DenyingAll(count) => Toast::denying_all(count),
        Deed::Stopping => Toast::STOPPING,
        Deed::Starting => Toast::STARTING,
        Deed::CarriedOut => Toast::CARRIED_OUT,
    }
}

fn refused(why: &Refusal) -> Toast {
    match why {
        Refusal::Unknown => Toast::UNKNOWN,
        Refusal::Over { ending, ago } => over(ending, *ago),
        Refusal::Handled => Toast::ALREADY_HANDLED,
        Refusal::Reconnecting => Toast::RECONNECTING,
        Refusal::Invalid => Toast::INVALID,
        Refusal::NotAnApprover => Toast::NOT_AN_APPROVER,
        Refusal::NotTheOwner => Toast::NOT_THE_OWNER,
        Refusal::Stale => Toast::STALE,
        Refusal::NoSafeRule => Toast::ALWAYS_NOT_OFFERED,
        Refusal::NotOffered => Toast::NOT_OFFERED,
        Refusal::Nameless => Toast::NOTHING_DECIDED,
        Refusal::AskAnew => Toast::ASK_ANEW,
        Refusal::Expired => Toast::EXPIRED,
        Refusal::MenuGone => Toast::MENU_GONE,
        Refusal::SayWhat => Toast::SAY_WHAT,
        Refusal::NothingRuns => Toast::NOTHING_RUNS,
        Refusal::BadAnswer(problem) => Toast::said(Tone::Warning, question::problem(*problem)),
        Refusal::Locked => Toast::LOCKED,
        Refusal::LockedUnsure => Toast::LOCKED_UNSURE,
        Refusal::NotUndone(why) => Toast::undo_failed(why),
        Refusal::Unreachable => Toast::CALLBACK_UNREACHABLE,
        Refusal::NotTaken(NotTaken::Clock) => Toast::NO_CLOCK,
        Refusal::NotTaken(NotTaken::Secret) => Toast::NO_SECRET,
        Refusal::NotTaken(NotTaken::Version) => Toast::NO_VERSION,
        Refusal::NotTaken(NotTaken::Token) => Toast::NO_TOKEN,
        Refusal::PeerStatus(status) => Toast::peer_status(*status),
    }
}

/// What a tap on a settled request is told. A choice made in Feishu has one
/// sentence, the protocol's, whoever taps and whatever was chosen.
fn over(ending: &Ending, ago: Millis) -> Toast {
    match ending {
        Ending::Allowed { .. }
        | Ending::Denied { .. }
        | Ending::Stopped { .. }
        | Ending::Answered { .. } => Toast::ALREADY_HANDLED,
        Ending::Ran(ran) => {
            Toast::settled_in_terminal(Some(true), ran.took.unwrap_or_default() + ago)
        }
        // The protocol has one sentence for every hook that went.
        Ending::Terminal {
            allowed: Some(false),
        }
        | Ending::DeniedElsewhere
        | Ending::HookGone
        | Ending::Orphaned
        | Ending::Undeliverable { .. } => Toast::HOOK_GONE,
        Ending::Terminal { allowed } => Toast::settled_in_terminal(*allowed, ago),
        Ending::TimedOut => Toast::timed_out(ago),
        Ending::Dropped { .. } => Toast::EXPIRED,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::approvals::outcome::sample::{
        allowed, always, answered, carried, decided, denied, request,
    };
    use crate::approvals::request::{AskingAgent, Dropped, Ran};
    use crate::rules::Leaves;

    fn toast(ending: Ending, delivery: Delivery) -> Toast {
        Toast::of(&decided(ending, delivery))
    }

    #[test]
    fn a_choice_that_arrived_has_a_toast_of_its_own() {
        let exact = || Rule::new("Bash", "npm test");
        for (ending, told) in [
            (allowed(Reach::Once), Toast::ALLOWED),
            (allowed(Reach::Unwritten), Toast::ALLOWED),
            (
                allowed(Reach::Session(vec![exact()])),
                Toast::ALLOWED_FOR_SESSION,
            ),
            (allowed(always(exact())), Toast::ALLOWED_ALWAYS),
            (denied(false), Toast::DENIED),
            (denied(true), Toast::INTERRUPTED),
            (answered(), Toast::ANSWERED),
        ] {
            for delivery in [Delivery::Confirmed, Delivery::Written] {
                assert_eq!(toast(ending.clone(), delivery), told);
            }
        }
    }

    #[test]
    fn a_rule_that_covers_more_is_told_in_its_own_sentence() {
        for (reach, begins) in [
            (always(Rule::new("Bash", "npm *")), "From now on Claude may"),
            (
                Reach::Session(vec![Rule::bare("WebSearch")]),
                "Until this session ends",
            ),
            (always(Rule::new("Edit", "//a")), "From now on Claude may"),
        ] {
            let told = toast(allowed(reach), Delivery::Confirmed).text.en;
            let sentence = told.strip_prefix("Allowed. ").expect("more than the same");
            assert!(sentence.starts_with(begins), "{told}");
        }
    }

    #[test]
    fn a_rule_that_was_not_saved_is_told_with_the_reason() {
        let why = Text::new("只读", "read-only");
        let asked = request("Bash", json!({"command": "npm test"}));
        let ending = allowed(always(Rule::new("Bash", "npm test")));
        let it = Carried {
            unsaved: Some(why.clone()),
            ..carried(asked, ending, Delivery::Written)
        };
        let outcome = Outcome::Decided(Box::new(it));
        assert_eq!(Toast::of(&outcome), Toast::rule_not_saved(&why));
    }

    #[test]
    fn a_choice_that_did_not_arrive_is_told_as_no_success() {
        for ending in [allowed(Reach::Once), denied(false), answered()] {
            assert_eq!(
                toast(ending.clone(), Delivery::Unconfirmed),
                Toast::STILL_CHECKING
            );
            assert_eq!(toast(ending, Delivery::Lost), Toast::HOOK_GONE);
        }
        let asked = request("Bash", json!({"command": "npm test"}));
        let it = Carried {
            instead: Some(Ending::Terminal {
                allowed: Some(true),
            }),
            ..carried(asked, denied(false), Delivery::Lost)
        };
        let told = Toast::settled_in_terminal(Some(true), 0);
        assert_eq!(Toast::of(&Outcome::Decided(Box::new(it))), told);
    }

    #[test]
    fn a_question_is_answered_or_not_and_never_denied() {
        let asked = || request("nod_ask", json!({"question": "Go?", "kind": "confirm"}));
        let outcome = |hosted, ending| {
            let mut asked = asked();
            asked.origin.hosted = hosted;
            Outcome::Decided(Box::new(carried(asked, ending, Delivery::Confirmed)))
        };
        assert_eq!(
            Toast::of(&outcome(false, denied(false))),
            Toast::ANSWER_REFUSED
        );
        for ending in [answered(), denied(false)] {
            assert_eq!(in_chat(&outcome(true, ending.clone())), session::RECEIVED);
            assert_eq!(in_chat(&outcome(false, ending)), terminal::ANSWERED);
        }
    }

    #[test]
    fn a_reply_in_the_chat_says_who_was_told_and_refuses_in_the_toasts_words() {
        let mut asked = request("Bash", json!({"command": "npm test"}));
        asked.origin.caller.agent = AskingAgent::Codex(Leaves::default());
        let it = carried(asked, denied(false), Delivery::Lost);
        assert_eq!(
            in_chat(&Outcome::Decided(Box::new(it))),
            terminal::denied_by_reply("Codex")
        );
        for (why, toast) in [
            (Refusal::NotTheOwner, Toast::NOT_THE_OWNER),
            (Refusal::Handled, Toast::ALREADY_HANDLED),
            (Refusal::LockedUnsure, Toast::LOCKED_UNSURE),
        ] {
            assert_eq!(in_chat(&why.into()), toast.text);
        }
    }

    #[test]
    fn a_tap_after_the_end_learns_how_it_ended() {
        let gone = [
            Ending::HookGone,
            Ending::Orphaned,
            Ending::Undeliverable { why: None },
            Ending::Terminal {
                allowed: Some(false),
            },
        ];
        let over = |ending| Toast::of(&Refusal::Over { ending, ago: 7_000 }.into());
        for ending in gone {
            assert_eq!(over(ending), Toast::HOOK_GONE);
        }
        for ending in [allowed(Reach::Once), denied(true), answered()] {
            assert_eq!(over(ending), Toast::ALREADY_HANDLED);
        }
        assert_eq!(over(Ending::TimedOut), Toast::timed_out(7_000));
        let why = Dropped::Over;
        assert_eq!(over(Ending::Dropped { why }), Toast::EXPIRED);
        let ran = Ran {
            took: Some(2_000),
            ..Ran::default()
        };
        let told = Toast::settled_in_terminal(Some(true), 9_000);
        assert_eq!(over(Ending::Ran(ran)), told);
    }

    #[test]
    fn a_services_own_sentence_is_told_in_both_languages_and_decides_nothing() {
        for (upshot, message, toast) in [
            (Upshot::Allowed, "已批准运行", Toast::ALLOWED),
            (
                Upshot::Nothing,
                "该请求已被处理，请勿重复操作",
                Toast::ALREADY_HANDLED,
            ),
            (Upshot::Allowed, "", Toast::ALLOWED),
            (Upshot::Denied, " ", Toast::DENIED),
            (Upshot::Nothing, "", Toast::UNKNOWN),
        ] {
            assert_eq!(relayed(upshot, message), toast, "{message}");
        }
        // The words of an allow do not make a failure one.
        let Toast { tone, text } = relayed(Upshot::Nothing, "已批准运行");
        assert_eq!((tone, &*text.en), (Tone::Error, "已批准运行"));
        let Toast { tone, text } = relayed(Upshot::Other, "ok");
        assert_eq!((tone, &*text.zh), (Tone::Success, "ok"));
    }
}
