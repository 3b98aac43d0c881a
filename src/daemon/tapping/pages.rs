//! The webhook mode: a card whose buttons open pages of this machine, and
//! what happens on them. Opening a page changes nothing; a press counts once.

use rand::random;
use std::sync::Arc;
use tracing::info;

use crate::approvals::outcome::{Outcome, Refusal};
use crate::approvals::request::Operator;
use crate::daemon::known::offers;
use crate::daemon::tapping::clicks::{self, Door, Taps};
use crate::gateway::pages::{self, Slip};
use crate::gateway::server::{PagePress, Visit, WebPage};

/// A link was opened: the request in full, or what became of it.
pub(crate) async fn show(taps: Arc<Taps>, visit: Visit) -> WebPage {
    let lang = taps.cards.config.lang;
    let links = taps.cards.courier.links();
    let known = links.and_then(|links| {
        let (request, _) = links.open(&visit.id, visit.action, &visit.token)?;
        Some((links, request))
    });
    let Some((links, id)) = known else {
        return ended(&taps, 404, &Refusal::Unknown.into());
    };
    let Some(request) = taps.cards.desk.find(&id) else {
        let ruling = clicks::became(&taps, &id).await;
        let ruling = ruling.unwrap_or(Refusal::Reconnecting.into());
        return ended(&taps, 200, &ruling.outcome);
    };
    let ticket = links
        .tickets
        .issue(&id, visit.action, random(), taps.cards.now());
    let slip = Slip {
        action: visit.action,
        token: &visit.token,
        ticket: &ticket,
    };
    WebPage {
        status: 200,
        html: pages::ask(&request, &offers::of(&request).await, &slip, lang),
    }
}

/// The button on a page was pressed.
pub(crate) async fn press(taps: Arc<Taps>, press: PagePress) -> WebPage {
    let links = taps.cards.courier.links();
    let known = links.and_then(|links| {
        let (request, proof) = links.open(&press.id, press.action, &press.token)?;
        Some((links, request, proof))
    });
    let Some((links, id, proof)) = known else {
        return ended(&taps, 404, &Refusal::Unknown.into());
    };
    let now = taps.cards.now();
    if !links.tickets.redeem(&press.ticket, &id, press.action, now) {
        // A page shown before: what it was for may be done already.
        let ruling = clicks::became(&taps, &id).await;
        let ruling = ruling.unwrap_or(Refusal::Stale.into());
        return ended(&taps, 200, &ruling.outcome);
    }
    info!(request = %id, action = press.action.as_str(), "a page's button was pressed");
    let by = Operator::unnamed(Operator::LINK);
    let door = Door::Page(proof, press.reason);
    let ruling = clicks::decide(&taps, &id, press.action, by, door).await;
    ended(&taps, 200, &ruling.outcome)
}

fn ended(taps: &Taps, status: u16, outcome: &Outcome) -> WebPage {
    WebPage {
        status,
        html: pages::outcome(outcome, taps.cards.config.lang),
    }
}
