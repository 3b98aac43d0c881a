//! The webhook mode: a card whose buttons open pages of this machine, and
//! what happens on them. Opening a page changes nothing; a press counts once.

use rand::random;
use serde_json::json;
use std::sync::Arc;
use tracing::{info, warn};

use crate::approvals::outcome::{Outcome, Refusal};
use crate::approvals::request::{Operator, Request};
use crate::cards::Action;
use crate::cards::linked::{self, LINKED};
use crate::daemon::known::journal;
use crate::daemon::known::offers;
use crate::daemon::parts::Parts;
use crate::daemon::tapping::clicks;
use crate::feishu::messages::Content;
use crate::feishu::secret::Secret;
use crate::feishu::webhook::Webhook;
use crate::gateway::pages::{self, Slip};
use crate::gateway::route::CallbackUrl;
use crate::gateway::seal::{Purpose, Sealer};
use crate::gateway::server::{Page, Press, Visit};
use crate::gateway::tickets::Tickets;
use crate::ids::RequestId;

/// Makes links and knows its own again.
pub(crate) struct Links {
    base: CallbackUrl,
    sealer: Sealer,
    tickets: Tickets,
}

impl Links {
    pub(crate) fn new(base: CallbackUrl, secret: &Secret) -> Self {
        Self {
            base,
            sealer: Sealer::new(secret, Purpose::Link),
            tickets: Tickets::default(),
        }
    }

    fn token(&self, request: &RequestId, action: Action) -> String {
        self.sealer.tag(&claim(request, action))
    }

    fn link(&self, request: &RequestId, action: Action) -> String {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("id", request.as_str())
            .append_pair("t", &self.token(request, action))
            .finish();
        format!("{}/{}?{query}", self.base, action.as_str())
    }

    /// The request a link of ours is for.
    fn open(&self, id: &str, action: Action, token: &str) -> Option<RequestId> {
        let request = RequestId::parse(id).ok()?;
        let ours = self.sealer.verifies(&claim(&request, action), token);
        (ours && LINKED.contains(&action)).then_some(request)
    }
}

fn claim(request: &RequestId, action: Action) -> serde_json::Value {
    json!({"request_id": request.as_str(), "action": action.as_str()})
}

/// Sends a request's card by the custom bot, which can't edit it afterwards.
pub(crate) async fn send(parts: &Parts, webhook: &Webhook, request: &Request) {
    let sent = match &parts.gate.links {
        Some(links) => {
            let denied = journal::denied_before(parts, request).await;
            let offer = offers::of(request).await;
            let link = |action| links.link(&request.id, action);
            let card = linked::waiting(request, &offer, denied, &link, parts.config.lang);
            let now = || parts.now() / 1_000;
            webhook.say(&Content::Card(card), now).await
        }
        None => Ok(()),
    };
    parts.courier.forget(&request.id);
    if let Err(why) = sent {
        warn!("a card could not be sent, the terminal decides: {why}");
        parts.desk.undeliverable(&request.id, Some(why.to_string()));
    }
}

/// A link was opened: the request in full, or what became of it.
pub(crate) async fn show(parts: Arc<Parts>, visit: Visit) -> Page {
    let lang = parts.config.lang;
    let links = parts.gate.links.as_ref();
    let known = links.and_then(|links| {
        let request = links.open(&visit.id, visit.action, &visit.token)?;
        Some((links, request))
    });
    let Some((links, id)) = known else {
        return ended(&parts, 404, &Refusal::Unknown.into());
    };
    let Some(request) = parts.desk.find(&id) else {
        let ruling = clicks::became(&parts, &id).await;
        let ruling = ruling.unwrap_or(Refusal::Reconnecting.into());
        return ended(&parts, 200, &ruling.outcome);
    };
    let ticket = links
        .tickets
        .issue(&id, visit.action, random(), parts.now());
    let slip = Slip {
        action: visit.action,
        token: &visit.token,
        ticket: &ticket,
    };
    Page {
        status: 200,
        html: pages::ask(&request, &offers::of(&request).await, &slip, lang),
    }
}

/// The button on a page was pressed.
pub(crate) async fn press(parts: Arc<Parts>, press: Press) -> Page {
    let links = parts.gate.links.as_ref();
    let known = links.and_then(|links| {
        let request = links.open(&press.id, press.action, &press.token)?;
        Some((links, request))
    });
    let Some((links, id)) = known else {
        return ended(&parts, 404, &Refusal::Unknown.into());
    };
    let now = parts.now();
    if !links.tickets.redeem(&press.ticket, &id, press.action, now) {
        // A page shown before: what it was for may be done already.
        let ruling = clicks::became(&parts, &id).await;
        let ruling = ruling.unwrap_or(Refusal::Stale.into());
        return ended(&parts, 200, &ruling.outcome);
    }
    info!(request = %id, action = press.action.as_str(), "a page's button was pressed");
    let by = Operator::unnamed(Operator::LINK);
    let ruling = clicks::decide(&parts, &id, press.action, by, press.reason, true).await;
    ended(&parts, 200, &ruling.outcome)
}

fn ended(parts: &Parts, status: u16, outcome: &Outcome) -> Page {
    Page {
        status,
        html: pages::outcome(outcome, parts.config.lang),
    }
}
