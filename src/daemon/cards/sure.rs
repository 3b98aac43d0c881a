//! A button of the plainest layout that asks first: its tap decides nothing, but
//! brings a second card with the question and the same choice. That the second
//! card was tapped is the answer.

use serde_json::{Value, json};
use std::sync::Arc;
use tracing::warn;

use crate::approvals::outcome::{Deed, Outcome, Refusal};
use crate::approvals::request::Request;
use crate::cards::sure::once_more;
use crate::cards::whole::WentOut;
use crate::daemon::cards::courier::{self, Cards};
use crate::daemon::known::buttons::{ASK, SURE};
use crate::feishu::event::Click;
use crate::feishu::messages::Content;
use crate::ids::MessageId;
use crate::wording::need;

/// Sends the card that asks, as a reply to the one that was tapped.
pub(crate) fn ask(
    cards: &Arc<Cards>,
    click: &Click,
    request: Arc<Request>,
    went_out: WentOut,
) -> Outcome {
    let Some(message) = click.message.clone() else {
        return Refusal::Invalid.into();
    };
    let (cards, value) = (Arc::clone(cards), click.value.clone());
    cards.courier.asking();
    tokio::spawn(async move {
        let asked = send(&cards, &message, &request, &value, went_out).await;
        cards.courier.asked();
        if let Err(why) = asked {
            warn!(request = %request.id, "the question about a button could not be sent: {why}");
            let content = Content::Text(need::NOT_ASKED.get(cards.config.lang).to_owned());
            let uuid = format!("unasked-{}", request.id);
            courier::tell(&cards, content, &uuid).await;
        }
    });
    Deed::AskedOnceMore.into()
}

async fn send(
    cards: &Cards,
    tapped: &MessageId,
    request: &Request,
    value: &Value,
    went_out: WentOut,
) -> Result<(), Box<str>> {
    let mut sure = value.clone();
    if let Some(map) = sure.as_object_mut() {
        map.shift_remove(ASK);
    }
    sure[SURE] = json!(true);
    let sure = cards.buttons.seal(sure);
    let first = courier::redrawn(cards, request, went_out).await;
    let card = once_more(&first, value, sure, cards.config.lang);
    let card = card.ok_or("nothing on its card asks that")?;
    let messages = cards.courier.messages().ok_or("there is no app")?;
    let place = cards.courier.place_of(&request.id);
    let in_thread = place.as_ref().is_some_and(|place| place.thread.is_some());
    let chat = place.as_ref().map(|place| &place.chat);
    let wanted = [&value["action"], &value["tap"]].map(|part| part.as_str().unwrap_or_default());
    let uuid = format!("sure-{}-{}", wanted.concat(), request.id);
    let sent = messages
        .reply(tapped, chat, &Content::Card(card), in_thread, &uuid)
        .await
        .map_err(|why| why.to_string())?;
    let message = sent.message_id;
    if cards.courier.asked_by(&request.id, &message) && cards.desk.find(&request.id).is_some() {
        return Ok(());
    }
    // It ended while the question was on its way.
    if let Some(card) = courier::decided_card(cards, &request.id) {
        courier::queue_edit(cards, message, card.into(), courier::AFTER_REPLY).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
