//! From a choice to its effect. Claim first; then the record; then the hook;
//! then what the person is told.

use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::{info, warn};

use crate::approvals::choice::Choice;
use crate::approvals::desk::{Claim, Delivery};
use crate::approvals::outcome::{Carried, Outcome, Refusal};
use crate::approvals::request::{AskingAgent, Ending, Operator, Reach};
use crate::approvals::{Settled, Unclaimed, record};
use crate::daemon::cards::courier::{self, AFTER_REPLY, Face};
use crate::daemon::deciding::ruling::Ruling;
use crate::daemon::deciding::verdict;
use crate::daemon::known::figures::Figures;
use crate::daemon::known::journal;
use crate::daemon::terminals::watching::{self, Terminals};
use crate::feishu::event::Click;
use crate::gateway::seal::Sealed;
use crate::ids::{EventId, RequestId};
use crate::text::Text;

/// A hook that lost the daemon is back within this, or the tap is refused.
const RETURN_WITHIN_A_TAP: Duration = Duration::from_millis(1_800);

/// What gives a choice the right to decide. There is none for a button that
/// nobody sealed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Right {
    /// A button or a link that one of ours made.
    Sealed(Sealed),
    /// A person's own words in the chat.
    Words,
    /// A service on this machine, which the owner let speak without a seal.
    Service,
}

/// What a choice is carried out with.
pub(crate) struct Decider {
    pub(crate) terminals: Arc<Terminals>,
    pub(crate) figures: Arc<Figures>,
}

/// One compare-and-set decides who wins. The one door for taps and replies, so
/// the lock is here: an answer to a question or a plan lets work go on as much
/// as an allow does, and only a refusal passes.
pub(crate) async fn claim(
    decider: &Decider,
    id: &RequestId,
    action: Choice,
    operator: Operator,
    _: Right,
) -> Result<Claim, Refusal> {
    let cards = &decider.terminals.cards;
    let refuses = matches!(action, Choice::Deny { .. });
    if let (Some(locked), false) = (cards.lock.refusal(), refuses) {
        return Err(locked);
    }
    if let Some(since) = watching::left(&decider.terminals, id).await {
        if action.stops() {
            cards.desk.runs(id, since);
        } else if cards.desk.running_since(id).is_none() && cards.desk.find(id).is_some() {
            return Err(Refusal::Over {
                ending: Ending::Terminal { allowed: None },
                ago: cards.now() - since,
            });
        }
    }
    let mut won = cards.desk.claim(id, action.clone(), operator.clone());
    if let Err(Unclaimed::Reconnecting) = won {
        if !cards.desk.wait_attached(id, RETURN_WITHIN_A_TAP).await {
            return Err(Refusal::Reconnecting);
        }
        won = cards.desk.claim(id, action, operator);
    }
    won.map_err(|why| Refusal::of(why, cards.now()))
}

/// The claim is ours: write it down, tell the hook, leave the rule.
pub(crate) async fn carry_out(decider: &Decider, click: &Click, claim: Claim) -> Ruling {
    let since = Instant::now();
    let settled = claim.settled().clone();
    let (delivery, face) = settle(decider, claim, click.head.event_id.clone(), AFTER_REPLY).await;
    if delivery == Delivery::Confirmed {
        decider.figures.hook.note(since.elapsed());
    }
    let (mut unsaved, mut instead) = (None, None);
    match delivery {
        // The terminal's answer may have been there a moment before.
        Delivery::Lost => {
            let known = decider.terminals.cards.courier.decided(&settled.request.id);
            let known = known.map(|known| known.settled.ending);
            instead = known.filter(|ending| *ending != settled.ending);
        }
        // A hook that said nothing may well have it, and then the rule is left.
        Delivery::Confirmed | Delivery::Written | Delivery::Unconfirmed => {
            unsaved = leave_rule(decider, &settled, delivery).await;
        }
    }
    let carried = Carried {
        settled,
        delivery,
        unsaved,
        instead,
    };
    Ruling::with(Outcome::Decided(Box::new(carried)), Some(face))
}

/// As a tap decides, for words in the chat: nobody waits for a toast, and words
/// leave no rule.
pub(crate) async fn by_reply(
    decider: &Decider,
    id: &RequestId,
    action: Choice,
    operator: Operator,
    event: Option<EventId>,
) -> Outcome {
    let claim = match claim(decider, id, action, operator, Right::Words).await {
        Ok(claim) => claim,
        Err(why) => return why.into(),
    };
    let settled = claim.settled().clone();
    let (delivery, _) = settle(decider, claim, event, Duration::ZERO).await;
    Outcome::Decided(Box::new(Carried {
        settled,
        delivery,
        unsaved: None,
        instead: None,
    }))
}

/// Records a won claim, hands the answer over and queues the card's edit.
pub(crate) async fn settle(
    decider: &Decider,
    claim: Claim,
    event: Option<EventId>,
    wait: Duration,
) -> (Delivery, Face) {
    let settled = claim.settled().clone();
    decider.terminals.denied(&settled);
    let cards = &decider.terminals.cards;
    let face = courier::ended_face(cards, &settled, Delivery::Confirmed, None);
    let key = courier::take_down(cards, &settled, &face);
    let written = journal::settle(&cards.journal, &settled, event, face.kept_by(key.as_ref()));
    let version = match written.await {
        Ok(version) => version,
        Err(why) => {
            warn!("a decision was recorded before: {why}");
            None
        }
    };
    let request = &settled.request;
    let asker = request.question().map(|it| &it.asker);
    let extras = verdict::extras(&settled.ending, asker);
    let delivery = claim.deliver(extras).await;
    info!(
        request = %settled.request.id,
        decision = record::kind(&settled.ending),
        delivery = delivery.as_str(),
        "decided"
    );
    let face = match delivery {
        Delivery::Confirmed | Delivery::Written => {
            if let Some(key) = key {
                let card = Arc::clone(&face.shown);
                cards.courier.recorded(&key, card, version, wait);
            }
            face
        }
        // It says something else than what was written down.
        Delivery::Unconfirmed | Delivery::Lost => {
            let mut told = settled.clone();
            // The terminal may have corrected it meanwhile.
            if let Some(known) = cards.courier.decided(&request.id) {
                told.ending = known.settled.ending;
            }
            let face = courier::ended_face(cards, &told, delivery, None);
            cards.courier.remember_ending(told, delivery);
            if let Some(key) = key {
                cards.courier.redraw(&request.id, &face);
                courier::queue_ending(cards, key, face.clone(), wait).await;
            }
            face
        }
    };
    courier::close_asking(cards, &settled.request.id, &face).await;
    (delivery, face)
}

/// Sees to the rule of an "always"; says why it is in no file.
async fn leave_rule(decider: &Decider, settled: &Settled, delivery: Delivery) -> Option<Text> {
    let Ending::Allowed {
        by,
        reach: Reach::Always { rules, .. },
        ..
    } = &settled.ending
    else {
        return None;
    };
    // Any other agent keeps its rules itself.
    if settled.request.origin.caller.agent != AskingAgent::ClaudeCode {
        return None;
    }
    let (journal, request) = (&decider.terminals.cards.journal, &settled.request);
    let left = verdict::leave_rules(journal, request, by, rules, delivery).await;
    if delivery != Delivery::Written {
        decider.terminals.claimed(settled);
    }
    left.err()
}

#[cfg(test)]
mod tests;
