//! A tap on a gathering card: one request gets its card, or all are denied.
//! Allows nothing.

use std::sync::Arc;
use std::time::Duration;
use tracing::warn;

use super::show::draw;
use crate::approvals::choice::Choice;
use crate::approvals::outcome::{Deed, Refusal};
use crate::approvals::request::Operator;
use crate::daemon::cards::courier::{self, Cards};
use crate::daemon::deciding::decision::{self, Decider, Right};
use crate::daemon::deciding::ruling::Ruling;
use crate::daemon::known::gathered::Group;
use crate::feishu::event::Click;
use crate::gateway::seal::Sealed;
use crate::ids::RequestId;
use crate::wording::Toast;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FloodTap {
    Open,
    DenyAll,
}

/// Somebody who may decide tapped a button that nod made.
pub(crate) fn tapped(
    decider: &Arc<Decider>,
    click: &Click,
    id: &RequestId,
    tap: FloodTap,
    by: Operator,
    proof: Sealed,
) -> Ruling {
    let cards = &decider.terminals.cards;
    let group = {
        let book = cards.flood.lock();
        let mut groups = book.groups.iter();
        let found = match tap {
            FloodTap::Open => groups.find(|group| group.waiting.contains(id)),
            FloodTap::DenyAll => groups.find(|group| group.id == *id),
        };
        found.cloned()
    };
    let Some(group) = group else {
        let is_open = tap == FloodTap::Open && cards.desk.find(id).is_some();
        return if is_open {
            Deed::Opened.into()
        } else {
            Refusal::Expired.into()
        };
    };
    if !names_its_card(cards, click, &group) {
        if let Some(left_out) = cards.journal.refused.may_log(cards.now()) {
            warn!(
                left_out,
                "refused a button that was lifted onto another card"
            );
        }
        return Refusal::Invalid.into();
    }
    match tap {
        FloodTap::Open => open(cards, id),
        FloodTap::DenyAll => {
            let count = group.waiting.len();
            tokio::spawn(deny_all(Arc::clone(decider), group.waiting, by, proof));
            Deed::DenyingAll(count).into()
        }
    }
}

/// The click comes from the message this list is on.
fn names_its_card(cards: &Cards, click: &Click, group: &Group) -> bool {
    let (Some(message), known) = (&click.message, &group.message) else {
        return false;
    };
    if let Some(known) = known {
        return known == message;
    }
    // A quick person is faster than Feishu's answer to the send.
    let mut book = cards.flood.lock();
    if let Some(group) = book.groups.iter_mut().find(|known| known.id == group.id) {
        group.message = Some(message.clone());
    }
    true
}

fn open(cards: &Cards, id: &RequestId) -> Ruling {
    let left = cards.flood.leaves(id, |tally| tally.opened += 1);
    let Some(request) = cards.desk.find(id) else {
        return Refusal::Expired.into();
    };
    courier::send_now(cards, &request);
    let face = left.map(|group| (&draw(cards, &group)).into());
    Ruling::with(Deed::Opened.into(), face)
}

async fn deny_all(decider: Arc<Decider>, all: Vec<RequestId>, by: Operator, proof: Sealed) {
    for id in all {
        let deny = Choice::Deny {
            reason: None,
            interrupt: false,
        };
        let right = Right::Sealed(proof);
        match decision::claim(&decider, &id, deny, by.clone(), right).await {
            Ok(claim) => {
                let flood = &decider.terminals.cards.flood;
                flood.leaves(&id, |tally| tally.denied += 1);
                decision::settle(&decider, claim, None, Duration::ZERO).await;
            }
            // The terminal was faster, or its hook is on the way back.
            Err(why) => {
                let why = Toast::of(&why.into()).text.en;
                warn!(request = %id, "one of many was not denied: {why}");
            }
        }
    }
}

#[cfg(test)]
mod tests;
