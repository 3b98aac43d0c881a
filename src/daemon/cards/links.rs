//! The cards of a custom bot, whose buttons open pages of this machine.

use serde_json::json;
use tracing::warn;

use crate::approvals::request::Request;
use crate::cards::Action;
use crate::cards::linked::{self, LINKED};
use crate::daemon::cards::courier::Cards;
use crate::daemon::known::journal;
use crate::daemon::known::offers;
use crate::feishu::custom_bot::CustomBot;
use crate::feishu::messages::Content;
use crate::feishu::secret::Secret;
use crate::gateway::route::CallbackUrl;
use crate::gateway::seal::{self, SealPurpose, Sealed, Sealer};
use crate::gateway::tickets::PressTickets;
use crate::ids::RequestId;

/// Makes links and knows its own again.
pub(crate) struct PageLinks {
    base: CallbackUrl,
    sealer: Sealer,
    pub(crate) tickets: PressTickets,
}

impl PageLinks {
    pub(crate) fn new(base: CallbackUrl, secret: &Secret) -> Self {
        Self {
            base,
            sealer: Sealer::new(secret, SealPurpose::Link),
            tickets: PressTickets::default(),
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
    pub(crate) fn open(
        &self,
        id: &str,
        action: Action,
        token: &str,
    ) -> Option<(RequestId, Sealed)> {
        let request = RequestId::parse(id).ok()?;
        let mut claim = claim(&request, action);
        claim[seal::FIELD] = json!(token);
        let proof = self.sealer.proof(&claim)?;
        LINKED.contains(&action).then_some((request, proof))
    }
}

fn claim(request: &RequestId, action: Action) -> serde_json::Value {
    json!({"request_id": request.as_str(), "action": action.as_str()})
}

/// Sends a request's card by the custom bot, which can't edit it afterwards.
pub(crate) async fn send(cards: &Cards, webhook: &CustomBot, request: &Request) {
    let sent = match cards.courier.links() {
        Some(links) => {
            let denied = journal::denied_before(&cards.journal, request).await;
            let offer = offers::of(request).await;
            let link = |action| links.link(&request.id, action);
            let card = linked::waiting(request, &offer, denied, &link, cards.config.lang);
            let now = || cards.now() / 1_000;
            webhook.say(&Content::Card(card), now).await
        }
        None => Ok(()),
    };
    cards.courier.forget(&request.id);
    if let Err(why) = sent {
        warn!("a card could not be sent, the terminal decides: {why}");
        cards.desk.undeliverable(&request.id, Some(why.to_string()));
    }
}
