//! Cards whose request ended before Feishu had named their message. If the
//! daemon dies then, nobody could correct them: the edit is kept under the
//! uuid of the sending, and the next daemon asks Feishu for the name by
//! sending once more under it.

use serde_json::Value;
use std::sync::Arc;
use tracing::{debug, warn};

use super::courier;
use super::parts::Parts;
use crate::approvals::request::{Millis, Request};
use crate::feishu::messages::Content;
use crate::ids::{MessageId, RequestId};
use crate::sessions::questions::script::Wishes;
use crate::store::{Card, CardEdit};

const PREFIX: &str = "perm-";
/// Feishu knows a uuid for an hour; later it would make a second card.
const KNOWN_FOR: Millis = 55 * 60 * 1_000;

/// What Feishu knows the sending of a request's card by.
pub(super) fn uuid(id: &RequestId) -> String {
    format!("{PREFIX}{id}")
}

/// What stands in the outbox for the message. A script's card may be with
/// somebody else, who must not get a second one.
pub(super) fn stand_in(request: &Request) -> Option<MessageId> {
    let wishes = Wishes::of(&request.tool, &request.input);
    if wishes.to.is_some() {
        return None;
    }
    MessageId::parse(&uuid(&request.id)).ok()
}

pub(super) fn is_stand_in(message: &MessageId) -> bool {
    message.as_str().starts_with(PREFIX)
}

/// Feishu has named the message, and its edit is kept under that name.
pub(super) async fn named(parts: &Parts, id: &RequestId) {
    let Ok(message) = MessageId::parse(&uuid(id)) else {
        return;
    };
    if let Err(why) = parts.store.run(move |db| db.drop_edit(&message)).await {
        debug!("an edit under a stand-in was not struck off: {why}");
    }
}

/// After a restart: learns the name and edits. Where the first sending never
/// arrived, this one does, with the ending on it.
pub(super) async fn find(parts: Arc<Parts>, edit: CardEdit, card: Value) {
    let id = edit.message.as_str().strip_prefix(PREFIX);
    let Some(id) = id.and_then(|id| RequestId::parse(id).ok()) else {
        return;
    };
    if parts.now() - edit.at < KNOWN_FOR
        && let Some(receiver) = parts.courier.receiver()
        && let Some(messages) = parts.courier.messages()
    {
        let content = Content::Card(card.clone());
        match messages.send(receiver, &content, &uuid(&id)).await {
            Ok(sent) => {
                let message = sent.message_id.clone();
                if let Some(chat) = sent.chat_id {
                    let (id, card) = (id.clone(), Card { message, chat });
                    let noted = parts.store.run(move |db| db.card_sent(&id, &card));
                    if let Err(why) = noted.await {
                        debug!("where a card is was not kept: {why}");
                    }
                }
                courier::queue_edit(&parts, sent.message_id, card, courier::AFTER_REPLY).await;
            }
            Err(why) => {
                warn!("a card stays uncorrected until the next start: {why}");
                return;
            }
        }
    }
    named(&parts, &id).await;
}
