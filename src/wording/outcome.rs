//! An outcome in words: the toast of a tap, and the reply to a message.

use crate::approvals::desk::Delivery;
use crate::approvals::outcome::{Carried, Deed, Outcome, Refusal, Upshot};
use crate::approvals::request::{Ending, Origin, Reach};
use crate::clock::Millis;
use crate::rules::Rule;
use crate::text::{Text, Tone};
use crate::wording::rule::{Until, sentences};
use crate::wording::toast::Toast;
use crate::wording::{session, terminal};

impl Toast {
    pub fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Decided(it) => decided(it),
            Outcome::Undone => Self::RuleUndone,
            Outcome::Done(deed) => done(*deed),
            Outcome::Refused(why) => refused(why),
            Outcome::Elsewhere { machine } => Self::OtherMachine {
                machine: machine.clone(),
            },
            Outcome::Relayed { tone, said, .. } => Self::Said {
                tone: *tone,
                text: said.clone(),
            },
            Outcome::Unclear => Self::StillChecking,
            Outcome::Waiting => Self::Processing,
        }
    }
}

/// What a message that answers a request is told. It may have been long on its
/// way to the hook, so nobody is told how far the answer came.
pub fn in_chat(outcome: &Outcome) -> Text {
    let Outcome::Decided(it) = outcome else {
        return Toast::of(outcome).text();
    };
    let request = &it.settled.request;
    match request.question() {
        Some(_) if request.origin.hosted => session::RECEIVED,
        Some(_) => terminal::ANSWERED,
        None => terminal::denied_by_reply(request.origin.caller.agent.short()),
    }
}

/// The words of a callback service that knows no English: the protocol's own
/// sentences are told in both languages, any other as it stands.
pub fn relayed(upshot: Upshot, message: &str) -> (Tone, Text) {
    let fixed = [
        Toast::Allowed,
        Toast::AllowedAlways,
        Toast::Denied,
        Toast::Interrupted,
        Toast::Unknown,
        Toast::AlreadyHandled,
        Toast::HookGone,
        Toast::Invalid,
    ];
    let success = upshot.is_success();
    let same =
        |toast: &Toast| toast.text().zh == message && (toast.tone() == Tone::Success) == success;
    let known = fixed.into_iter().find(same);
    let known = known.or(match (upshot, message.trim()) {
        (Upshot::Allowed, "") => Some(Toast::Allowed),
        (Upshot::Denied, "") => Some(Toast::Denied),
        (Upshot::Nothing, "") => Some(Toast::Unknown),
        _ => None,
    });
    if let Some(toast) = known {
        return (toast.tone(), toast.text());
    }
    let tone = if success { Tone::Success } else { Tone::Error };
    (tone, Text::made(message.to_owned(), message.to_owned()))
}

fn decided(it: &Carried) -> Toast {
    match (it.delivery, &it.instead) {
        (Delivery::Lost, Some(ending)) => return over(ending, 0),
        (Delivery::Lost, None) => return Toast::HookGone,
        (Delivery::Unconfirmed, _) => return Toast::StillChecking,
        (Delivery::Confirmed | Delivery::Written, _) => {}
    }
    let request = &it.settled.request;
    match &it.settled.ending {
        Ending::Allowed { reach, .. } => allowed(reach, &request.origin, it.unsaved.as_ref()),
        Ending::Answered { .. } => Toast::Answered,
        Ending::Denied {
            interrupt: true, ..
        } => Toast::Interrupted,
        Ending::Denied { .. } => match request.question() {
            Some(_) => Toast::AnswerRefused,
            None => Toast::Denied,
        },
        Ending::Stopped { .. } => Toast::Stopped,
        Ending::Terminal { .. }
        | Ending::Ran(_)
        | Ending::TimedOut
        | Ending::HookGone
        | Ending::Orphaned
        | Ending::Undeliverable { .. }
        | Ending::Dropped { .. } => Toast::HookGone,
    }
}

fn allowed(reach: &Reach, origin: &Origin, unsaved: Option<&Text>) -> Toast {
    let (exact, rules, until) = match reach {
        Reach::Once | Reach::Unwritten => return Toast::Allowed,
        Reach::Session(rules) => (Toast::AllowedForSession, rules, Until::SessionEnd),
        Reach::Always { rules, .. } => (Toast::AllowedAlways, rules, Until::Undone),
    };
    if let Some(why) = unsaved {
        return Toast::RuleNotSaved { why: why.clone() };
    }
    match sentences(rules, origin, until).next() {
        // A file may be changed in any way: more than the same again.
        Some(sentence) if !rules.iter().all(Rule::is_same_call) => Toast::AllowedWider { sentence },
        _ => exact,
    }
}

const fn done(deed: Deed) -> Toast {
    match deed {
        Deed::AskedOnceMore => Toast::AskedOnceMore,
        Deed::Opened => Toast::Opened,
        Deed::DenyingAll(count) => Toast::DenyingAll { count },
        Deed::Stopping => Toast::Stopping,
        Deed::Starting => Toast::Starting,
        Deed::CarriedOut => Toast::CarriedOut,
    }
}

fn refused(why: &Refusal) -> Toast {
    match why {
        Refusal::Unknown => Toast::Unknown,
        Refusal::Over { ending, ago } => over(ending, *ago),
        Refusal::Handled => Toast::AlreadyHandled,
        Refusal::Reconnecting => Toast::Reconnecting,
        Refusal::Invalid => Toast::Invalid,
        Refusal::NotAnApprover => Toast::NotAnApprover,
        Refusal::NotTheOwner => Toast::NotTheOwner,
        Refusal::Stale => Toast::Stale,
        Refusal::NoSafeRule => Toast::AlwaysNotOffered,
        Refusal::NotOffered => Toast::NotOffered,
        Refusal::Nameless => Toast::NothingDecided,
        Refusal::AskAnew => Toast::AskAnew,
        Refusal::Expired => Toast::Expired,
        Refusal::MenuGone => Toast::MenuGone,
        Refusal::SayWhat => Toast::SayWhat,
        Refusal::NothingRuns => Toast::NothingRuns,
        Refusal::BadAnswer(problem) => Toast::BadAnswer(*problem),
        Refusal::Locked => Toast::Locked,
        Refusal::LockedUnsure => Toast::LockedUnsure,
        Refusal::NotUndone(why) => Toast::UndoFailed { why: why.clone() },
        Refusal::Unreachable => Toast::CallbackUnreachable,
        Refusal::NotTaken(why) => Toast::CallbackRefused(*why),
    }
}

/// What a tap on a settled request is told. A choice made in Feishu has one
/// sentence, the protocol's, whoever taps and whatever was chosen.
fn over(ending: &Ending, ago: Millis) -> Toast {
    match ending {
        Ending::Allowed { .. }
        | Ending::Denied { .. }
        | Ending::Stopped { .. }
        | Ending::Answered { .. } => Toast::AlreadyHandled,
        Ending::Ran(ran) => Toast::SettledInTerminal {
            allowed: Some(true),
            ago: ran.took.unwrap_or_default() + ago,
        },
        // The protocol has one sentence for every hook that went.
        Ending::Terminal {
            allowed: Some(false),
        }
        | Ending::HookGone
        | Ending::Orphaned
        | Ending::Undeliverable { .. } => Toast::HookGone,
        Ending::Terminal { allowed } => Toast::SettledInTerminal {
            allowed: *allowed,
            ago,
        },
        Ending::TimedOut => Toast::TimedOut { ago },
        Ending::Dropped { .. } => Toast::Expired,
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
            (allowed(Reach::Once), Toast::Allowed),
            (allowed(Reach::Unwritten), Toast::Allowed),
            (
                allowed(Reach::Session(vec![exact()])),
                Toast::AllowedForSession,
            ),
            (allowed(always(exact())), Toast::AllowedAlways),
            (denied(false), Toast::Denied),
            (denied(true), Toast::Interrupted),
            (answered(), Toast::Answered),
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
            let Toast::AllowedWider { sentence } = toast(allowed(reach), Delivery::Confirmed)
            else {
                panic!("the same again");
            };
            assert!(sentence.en.starts_with(begins), "{}", sentence.en);
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
        assert_eq!(Toast::of(&outcome), Toast::RuleNotSaved { why });
    }

    #[test]
    fn a_choice_that_did_not_arrive_is_told_as_no_success() {
        for ending in [allowed(Reach::Once), denied(false), answered()] {
            assert_eq!(
                toast(ending.clone(), Delivery::Unconfirmed),
                Toast::StillChecking
            );
            assert_eq!(toast(ending, Delivery::Lost), Toast::HookGone);
        }
        let asked = request("Bash", json!({"command": "npm test"}));
        let it = Carried {
            instead: Some(Ending::Terminal {
                allowed: Some(true),
            }),
            ..carried(asked, denied(false), Delivery::Lost)
        };
        let told = Toast::SettledInTerminal {
            allowed: Some(true),
            ago: 0,
        };
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
            Toast::AnswerRefused
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
            (Refusal::NotTheOwner, Toast::NotTheOwner),
            (Refusal::Handled, Toast::AlreadyHandled),
            (Refusal::LockedUnsure, Toast::LockedUnsure),
        ] {
            assert_eq!(in_chat(&why.into()), toast.text());
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
            assert_eq!(over(ending), Toast::HookGone);
        }
        for ending in [allowed(Reach::Once), denied(true), answered()] {
            assert_eq!(over(ending), Toast::AlreadyHandled);
        }
        assert_eq!(over(Ending::TimedOut), Toast::TimedOut { ago: 7_000 });
        let why = Dropped::Over;
        assert_eq!(over(Ending::Dropped { why }), Toast::Expired);
        let ran = Ran {
            took: Some(2_000),
            ..Ran::default()
        };
        let told = Toast::SettledInTerminal {
            allowed: Some(true),
            ago: 9_000,
        };
        assert_eq!(over(Ending::Ran(ran)), told);
    }

    #[test]
    fn a_services_own_sentence_is_told_in_both_languages_and_decides_nothing() {
        let said = |upshot, message: &str| relayed(upshot, message);
        let known = |toast: Toast| (toast.tone(), toast.text());
        for (upshot, message, toast) in [
            (Upshot::Allowed, "已批准运行", Toast::Allowed),
            (
                Upshot::Nothing,
                "该请求已被处理，请勿重复操作",
                Toast::AlreadyHandled,
            ),
            (Upshot::Allowed, "", Toast::Allowed),
            (Upshot::Denied, " ", Toast::Denied),
            (Upshot::Nothing, "", Toast::Unknown),
        ] {
            assert_eq!(said(upshot, message), known(toast), "{message}");
        }
        // The words of an allow do not make a failure one.
        let (tone, text) = said(Upshot::Nothing, "已批准运行");
        assert_eq!((tone, &*text.en), (Tone::Error, "已批准运行"));
        let (tone, text) = said(Upshot::Other, "ok");
        assert_eq!((tone, &*text.zh), (Tone::Success, "ok"));
    }
}
