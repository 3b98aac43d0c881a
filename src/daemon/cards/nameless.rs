//! Cards whose request ended before Feishu had named their message, because
//! its answer is missing or the daemon died. The edit is kept under the uuid of
//! the sending, and Feishu is asked for the name by sending once more under it.

use serde_json::Value;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::approvals::request::Request;
use crate::clock::Millis;
use crate::daemon::cards::courier;
use crate::daemon::cards::courier::Cards;
use crate::daemon::cards::courier::{CardText, Face};
use crate::daemon::cards::edits;
use crate::feishu::messages::Content;
use crate::ids::{MessageId, RequestId};
use crate::store::{CardEdit, CardPlace};

const PREFIX: &str = "perm-";
/// Feishu knows a uuid for an hour; later it would make a second card.
const KNOWN_FOR: Millis = 55 * 60 * 1_000;
const EVERY: Duration = Duration::from_secs(2);
const FRESH: Millis = 5_000;

/// What Feishu knows the sending of a request's card by.
pub(crate) fn uuid(id: &RequestId) -> String {
    format!("{PREFIX}{id}")
}

/// What stands in the outbox for the message. A script's card may be with
/// somebody else, who must not get a second one.
pub(crate) fn stand_in(request: &Request) -> Option<MessageId> {
    if request.question().is_some_and(|it| it.to.is_some()) {
        return None;
    }
    MessageId::parse(&uuid(&request.id)).ok()
}

pub(crate) fn is_stand_in(message: &MessageId) -> bool {
    message.as_str().starts_with(PREFIX)
}

/// Feishu has named the message, and its edit is kept under that name.
pub(crate) async fn named(cards: &Cards, id: &RequestId) {
    if let Ok(message) = MessageId::parse(&uuid(id)) {
        strike_off(cards, message).await;
    }
}

/// Asks for missing names until stopped, one card after the other.
pub(crate) async fn run(cards: Arc<Cards>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
        let kept = cards.journal.store.run(|db| db.edits_of(PREFIX)).await;
        for edit in kept.unwrap_or_default() {
            let age = cards.now() - edit.at;
            // The sending itself may be under way and bring the name.
            if (0..FRESH).contains(&age) {
                continue;
            }
            tokio::select! {
                () = stop.cancelled() => return,
                found = find(&cards, edit, age) => if found.is_break() { break },
            }
        }
    }
}

/// Learns the name and edits. Where the first sending never arrived, this one
/// does, with the ending on it. Breaks while Feishu is away.
async fn find(cards: &Cards, edit: CardEdit, age: Millis) -> ControlFlow<()> {
    let id = edit.message.as_str().strip_prefix(PREFIX);
    let id = id.and_then(|id| RequestId::parse(id).ok());
    let kept: CardText = edit.card.as_str().into();
    let shown = id.as_ref().and_then(|id| cards.courier.face_to_come(id));
    let face = Face {
        shown: shown.unwrap_or_else(|| Arc::clone(&kept)),
        kept,
    };
    let card = serde_json::from_str::<Value>(&face.shown).ok();
    if let Some(id) = id
        && let Some(card) = card
        && age < KNOWN_FOR
        && let Some(receiver) = cards.courier.receiver()
        && let Some(messages) = cards.courier.messages()
    {
        let content = Content::Card(card);
        match messages.send(receiver, &content, &uuid(&id)).await {
            Ok(sent) => {
                let message = sent.message_id.clone();
                if let Some(chat) = sent.chat_id {
                    let card = CardPlace { message, chat };
                    let noted = cards.journal.store.run(move |db| db.card_sent(&id, &card));
                    if let Err(why) = noted.await {
                        debug!("where a card is was not kept: {why}");
                    }
                }
                courier::queue_edit(cards, sent.message_id, face, courier::AFTER_REPLY).await;
            }
            Err(why) if edits::may_pass(&why) => {
                debug!("a card is looked for again later: {why}");
                return ControlFlow::Break(());
            }
            Err(why) => warn!("a card stays as it is: {why}"),
        }
    }
    strike_off(cards, edit.message).await;
    ControlFlow::Continue(())
}

async fn strike_off(cards: &Cards, message: MessageId) {
    if let Err(why) = cards
        .journal
        .store
        .run(move |db| db.drop_edit(&message))
        .await
    {
        debug!("an edit under a stand-in was not struck off: {why}");
    }
}
