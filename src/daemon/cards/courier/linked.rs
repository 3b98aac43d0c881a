//! Sends the cards of a custom bot, whose buttons open pages of this machine.

use tracing::warn;

use super::Cards;
use crate::approvals::request::Request;
use crate::cards::linked;
use crate::daemon::known::{journal, offers};
use crate::feishu::custom_bot::CustomBot;
use crate::feishu::messages::Content;

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

#[cfg(test)]
mod tests;
