//! From a choice to its effect. Claim first; then the record; then the hook;
//! then what the person is told.

use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::{info, warn};

use crate::approvals::action::Action as Choice;
use crate::approvals::desk::{Claim, Delivery};
use crate::approvals::outcome::Outcome;
use crate::approvals::request::{Agent, Ending, Operator, Reach};
use crate::approvals::{Settled, Unclaimed, record};
use crate::clock::Millis;
use crate::daemon::cards::courier::{self, AFTER_REPLY, Face};
use crate::daemon::cards::sure;
use crate::daemon::deciding::verdict;
use crate::daemon::known::journal::{self, CardEdit};
use crate::daemon::parts::Parts;
use crate::daemon::tapping::clicks::Shown;
use crate::daemon::terminals::watching;
use crate::feishu::event::Click;
use crate::ids::{EventId, RequestId};
use crate::rules::Rule;
use crate::sessions::questions;
use crate::wording::Toast;
use crate::wording::rule::{Until, sentences};

/// A hook that lost the daemon is back within this, or the tap is refused.
const RETURN_WITHIN_A_TAP: Duration = Duration::from_millis(1_800);

/// One compare-and-set decides who wins. The one door for taps and replies, so
/// the lock is here: an answer to a question or a plan lets work go on as much
/// as an allow does, and only a refusal passes.
pub(crate) async fn claim(
    parts: &Parts,
    id: &RequestId,
    action: Choice,
    operator: Operator,
) -> Result<Claim, Toast> {
    if let Some(locked) = parts.lock.toast()
        && !matches!(action, Choice::Deny { .. })
    {
        return Err(locked);
    }
    if let Some(since) = watching::left(parts, id).await {
        let stops = matches!(
            action,
            Choice::Deny {
                interrupt: true,
                ..
            }
        );
        if stops {
            parts.desk.runs(id, since);
        } else if parts.desk.running_since(id).is_none() && parts.desk.find(id).is_some() {
            let ago = parts.now() - since;
            return Err(Toast::SettledInTerminal { allowed: None, ago });
        }
    }
    let first = parts.desk.claim(id, action.clone(), operator.clone());
    let refusal = match first {
        Ok(claim) => return Ok(claim),
        Err(Unclaimed::Reconnecting) => {
            if !parts.desk.wait_attached(id, RETURN_WITHIN_A_TAP).await {
                return Err(Toast::Reconnecting);
            }
            match parts.desk.claim(id, action, operator) {
                Ok(claim) => return Ok(claim),
                Err(refusal) => refusal,
            }
        }
        Err(refusal) => refusal,
    };
    Err(match refusal {
        Unclaimed::Unknown => Toast::Unknown,
        Unclaimed::Reconnecting => Toast::Reconnecting,
        Unclaimed::Settled { ending, at } => late(&ending, parts.now() - at),
    })
}

/// The claim is ours: write it down, tell the hook, leave the rule.
pub(crate) async fn carry_out(parts: &Parts, click: &Click, claim: Claim) -> Shown {
    let since = Instant::now();
    let settled = claim.settled().clone();
    let (delivery, face) = settle(parts, claim, click.head.event_id.clone(), AFTER_REPLY).await;
    if delivery == Delivery::Confirmed {
        parts.figures.hook.note(since.elapsed());
    }
    let toast = match delivery {
        // The terminal's answer may have been there a moment before.
        Delivery::Lost => match parts.courier.decided(&settled.request.id) {
            Some(known) if known.settled.ending != settled.ending => late(&known.settled.ending, 0),
            Some(_) | None => Toast::HookGone,
        },
        Delivery::Unconfirmed => {
            // The hook may well have it, and then Claude Code leaves the rule.
            after_delivery(parts, &settled, delivery).await;
            Toast::StillChecking
        }
        Delivery::Confirmed | Delivery::Written => after_delivery(parts, &settled, delivery).await,
    };
    let outcome = Outcome::of(&settled.ending, delivery);
    Shown::Effect(outcome, toast, face)
}

/// Records a won claim, hands the answer over and queues the card's edit.
pub(crate) async fn settle(
    parts: &Parts,
    claim: Claim,
    event: Option<EventId>,
    wait: Duration,
) -> (Delivery, Face) {
    let settled = claim.settled().clone();
    parts.terminals.denied(&settled);
    let face = courier::ended_face(parts, &settled, Delivery::Confirmed, true);
    let message = courier::take_down(parts, &settled, &face);
    let edit = message.map(|message| CardEdit {
        message,
        face: face.clone(),
    });
    let version = match journal::settle(parts, &settled, event, edit.as_ref()).await {
        Ok(version) => version,
        Err(why) => {
            warn!("a decision was recorded before: {why}");
            None
        }
    };
    let request = &settled.request;
    let extras = verdict::extras(&settled.ending, &request.tool, &request.input);
    let delivery = claim.deliver(extras).await;
    info!(
        request = %settled.request.id,
        decision = record::kind(&settled.ending),
        delivery = delivery.as_str(),
        "decided"
    );
    let face = match delivery {
        Delivery::Confirmed | Delivery::Written => face,
        Delivery::Unconfirmed | Delivery::Lost => {
            let mut told = settled.clone();
            // The terminal may have corrected it meanwhile.
            if let Some(known) = parts.courier.decided(&request.id) {
                told.ending = known.settled.ending;
            }
            let face = courier::ended_face(parts, &told, delivery, true);
            parts.courier.remember_ending(told, delivery);
            face
        }
    };
    if let Some(edit) = edit {
        match delivery {
            Delivery::Confirmed | Delivery::Written => {
                let (message, card) = (edit.message, Arc::clone(&face.shown));
                parts.courier.edit(message, card, version, wait);
            }
            // It says something else than what was written down.
            Delivery::Unconfirmed | Delivery::Lost => {
                parts.courier.redraw(&settled.request.id, &face);
                courier::queue_edit(parts, edit.message, face.clone(), wait).await;
            }
        }
    }
    sure::close(parts, &settled.request.id, &face).await;
    (delivery, face)
}

async fn after_delivery(parts: &Parts, settled: &Settled, delivery: Delivery) -> Toast {
    match &settled.ending {
        Ending::Allowed { by, reach } => {
            let request = &settled.request;
            let told = |exact, rules: &[Rule], until| {
                let mut sentences = sentences(rules, &request.origin, until);
                match sentences.next() {
                    // A file may be changed in any way: more than the same again.
                    Some(sentence) if !rules.iter().all(Rule::is_same_call) => {
                        Toast::AllowedWider { sentence }
                    }
                    _ => exact,
                }
            };
            match reach {
                Reach::Once | Reach::Unwritten => Toast::Allowed,
                Reach::Session(rules) => told(Toast::AllowedForSession, rules, Until::SessionEnd),
                Reach::Always { rules, .. } if request.origin.caller.agent != Agent::ClaudeCode => {
                    told(Toast::AllowedAlways, rules, Until::Undone)
                }
                Reach::Always { rules, .. } => {
                    let left = verdict::leave_rules(parts, request, by, rules, delivery).await;
                    if delivery != Delivery::Written {
                        parts.terminals.claimed(settled);
                    }
                    match left {
                        Ok(()) => told(Toast::AllowedAlways, rules, Until::Undone),
                        Err(why) => Toast::RuleNotSaved { why },
                    }
                }
            }
        }
        Ending::Answered { .. } => Toast::Answered,
        Ending::Denied {
            interrupt: true, ..
        } => Toast::Interrupted,
        Ending::Denied { .. } => {
            let request = &settled.request;
            match questions::of(&request.tool, &request.input) {
                Some(_) => Toast::AnswerRefused,
                None => Toast::Denied,
            }
        }
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

/// What a tap on a settled request is told. A choice made in Feishu has one
/// sentence, the protocol's, whoever taps and whatever was chosen.
pub(crate) fn late(ending: &Ending, ago: Millis) -> Toast {
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
