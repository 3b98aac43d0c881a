//! From a choice to its effect. Claim first; then the record; then the hook;
//! then what the person is told.

use std::time::{Duration, Instant};
use tracing::{info, warn};

use super::clicks::Shown;
use super::courier::{self, AFTER_REPLY, Drawn};
use super::journal::{self, CardEdit};
use super::parts::Parts;
use super::verdict;
use crate::approvals::action::Action as Choice;
use crate::approvals::desk::{Claim, Delivery};
use crate::approvals::request::{Ending, Millis, Operator, Reach};
use crate::approvals::{Refusal, Settled, record};
use crate::feishu::event::Click;
use crate::ids::{EventId, RequestId};
use crate::sessions::questions;
use crate::wording::Toast;

/// A hook that lost the daemon is back within this, or the tap is refused.
const COMEBACK: Duration = Duration::from_millis(1_800);

/// One compare-and-set decides who wins. The one door for taps and replies, so
/// the lock is here: an answer to a question or a plan lets work go on as much
/// as an allow does, and only a refusal passes.
pub(super) async fn claim(
    parts: &Parts,
    id: &RequestId,
    action: Choice,
    operator: Operator,
) -> Result<Claim, Toast> {
    if parts.lock.is_closed() && !matches!(action, Choice::Deny { .. }) {
        return Err(Toast::Locked);
    }
    let first = parts.desk.claim(id, action.clone(), operator.clone());
    let refusal = match first {
        Ok(claim) => return Ok(claim),
        Err(Refusal::Reconnecting) => {
            if !parts.desk.wait_attached(id, COMEBACK).await {
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
        Refusal::Unknown => Toast::Unknown,
        Refusal::Reconnecting => Toast::Reconnecting,
        Refusal::Settled { ending, at } => late(&ending, parts.now() - at),
    })
}

/// The claim is ours: write it down, tell the hook, leave the rule.
pub(super) async fn carry_out(parts: &Parts, click: &Click, claim: Claim) -> Shown {
    let since = Instant::now();
    let settled = claim.settled().clone();
    let (delivery, card) = settle(parts, claim, click.head.event_id.clone(), AFTER_REPLY).await;
    if delivery == Delivery::Confirmed {
        parts.figures.hook.note(since.elapsed());
    }
    let toast = match delivery {
        Delivery::Lost => Toast::HookGone,
        Delivery::Unconfirmed => {
            // The hook may well have it, and then Claude Code leaves the rule.
            after_delivery(parts, &settled, delivery).await;
            Toast::StillChecking
        }
        Delivery::Confirmed | Delivery::Written => after_delivery(parts, &settled, delivery).await,
    };
    Shown::Effect(toast, card)
}

/// Records a won claim, hands the answer over and queues the card's edit.
pub(super) async fn settle(
    parts: &Parts,
    claim: Claim,
    event: Option<EventId>,
    wait: Duration,
) -> (Delivery, Drawn) {
    let settled = claim.settled().clone();
    let card = courier::ended_card(parts, &settled, Delivery::Confirmed);
    let message = courier::take_down(parts, &settled, &card);
    let edit = message.map(|message| CardEdit {
        message,
        card: card.clone(),
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
    let card = match delivery {
        Delivery::Confirmed | Delivery::Written => card,
        Delivery::Unconfirmed | Delivery::Lost => {
            parts.courier.decide(settled.clone(), delivery);
            courier::ended_card(parts, &settled, delivery)
        }
    };
    if let Some(edit) = edit {
        match delivery {
            Delivery::Confirmed | Delivery::Written => {
                let message = edit.message;
                parts.courier.edit(message, card.clone(), version, wait);
            }
            // It says something else than what was written down.
            Delivery::Unconfirmed | Delivery::Lost => {
                parts.courier.redraw(&settled.request.id, &card);
                courier::queue_edit(parts, edit.message, card.clone(), wait).await;
            }
        }
    }
    (delivery, card)
}

async fn after_delivery(parts: &Parts, settled: &Settled, delivery: Delivery) -> Toast {
    match &settled.ending {
        Ending::Allowed { by, reach } => match reach {
            Reach::Once => Toast::Allowed,
            Reach::Session(_) => Toast::AllowedForSession,
            Reach::Always { rules, .. } => {
                let left = verdict::leave_rules(parts, &settled.request, by, rules, delivery).await;
                match left {
                    Ok(()) => Toast::AllowedAlways,
                    Err(why) => Toast::RuleNotSaved { why },
                }
            }
        },
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
        Ending::Terminal { .. }
        | Ending::TimedOut
        | Ending::HookGone
        | Ending::Orphaned
        | Ending::Undeliverable { .. }
        | Ending::Dropped { .. } => Toast::HookGone,
    }
}

/// What a tap on a settled request is told. A choice made in Feishu has one
/// sentence, the protocol's, whoever taps and whatever was chosen.
pub(super) fn late(ending: &Ending, ago: Millis) -> Toast {
    match ending {
        Ending::Allowed { .. } | Ending::Denied { .. } | Ending::Answered { .. } => {
            Toast::AlreadyHandled
        }
        Ending::Terminal { allowed } => Toast::SettledInTerminal {
            allowed: *allowed,
            ago,
        },
        Ending::TimedOut => Toast::TimedOut { ago },
        Ending::Dropped { .. } => Toast::Expired,
        Ending::HookGone | Ending::Orphaned | Ending::Undeliverable { .. } => Toast::HookGone,
    }
}
