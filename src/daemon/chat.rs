//! Chat messages. A text reply to a pending card denies it with that text; a
//! reply to a card that is over is told so; `/lock` locks.

use std::sync::Arc;
use std::time::Duration;
use tracing::{debug, warn};

use super::parts::Parts;
use super::{clicks, decision, lock};
use crate::approvals::action::Action;
use crate::feishu::event::{Body, Message};
use crate::feishu::messages::Content;
use crate::ids::{EventId, MessageId};
use crate::sessions::questions::{self, Reply};
use crate::wording::{LOCKED, Text, Toast};

/// Longer than any reason that helps a model.
const MAX_REASON: usize = 4_000;

pub(super) async fn take(parts: Arc<Parts>, message: Message) {
    let Some(id) = &message.id else { return };
    let locks = asks_to_lock(&message);
    let is_for_us = locks || message.parent.is_some();
    if !is_for_us || !message.from_user || !first_time(&parts, id).await {
        return;
    }
    if locks {
        lock_up(&parts, &message).await;
        return;
    }
    let Some(parent) = &message.parent else {
        return;
    };
    let Some(request) = parts.courier.request_soon(parent).await else {
        if is_ours(&parts, parent).await && parts.approver(&message.by).is_some() {
            say(&parts, &message, &Toast::AlreadyHandled.text()).await;
        }
        return;
    };
    let operator = parts.approver(&message.by);
    let Some(operator) = operator.or_else(|| parts.addressee(&request, &message.by)) else {
        say(&parts, &message, &Toast::NotAnApprover.text()).await;
        return;
    };
    let Body::Text(text) = &message.body else {
        return;
    };
    let text = without_mentions(text, &message);
    if text.is_empty() {
        return;
    }
    let Some(asked) = parts.desk.find(&request) else {
        say(&parts, &message, &Toast::AlreadyHandled.text()).await;
        return;
    };
    let action = match questions::of(&asked.tool, &asked.input) {
        None => Action::Deny {
            reason: Some(text),
            interrupt: false,
        },
        Some((ask, _)) => match clicks::answer_by(&ask, &Reply::Text(text)) {
            Ok(action) => action,
            Err(toast) => {
                say(&parts, &message, &toast.text()).await;
                return;
            }
        },
    };
    match decision::claim(&parts, &request, action, operator).await {
        Ok(claim) => {
            decision::settle(&parts, claim, message.head.event_id.clone(), Duration::ZERO).await;
        }
        Err(toast) => say(&parts, &message, &toast.text()).await,
    }
}

/// `/lock`, alone or as a reply; never taken for a reason.
fn asks_to_lock(message: &Message) -> bool {
    matches!(&message.body, Body::Text(text) if without_mentions(text, message) == "/lock")
}

/// Whoever may allow may also see to it that nobody does.
async fn lock_up(parts: &Parts, message: &Message) {
    let Some(operator) = parts.approver(&message.by) else {
        return;
    };
    lock::set(parts, true, Some(operator.id.as_str())).await;
    say(parts, message, &LOCKED).await;
}

/// Feishu delivers a message at least once, for hours; it counts once.
async fn first_time(parts: &Parts, id: &MessageId) -> bool {
    let Ok(key) = EventId::parse(id.as_str()) else {
        return false;
    };
    let now = parts.now();
    match parts.store.run(move |db| db.first_sight(&key, now)).await {
        Ok(first) => first,
        Err(why) => {
            warn!("cannot tell whether a message came before: {why}");
            true
        }
    }
}

async fn is_ours(parts: &Parts, card: &MessageId) -> bool {
    let card = card.clone();
    let found = parts
        .store
        .run(move |db| db.settled_by_message(&card))
        .await;
    found.is_ok_and(|row| row.is_some())
}

fn without_mentions(text: &str, message: &Message) -> String {
    let mut text = text.to_owned();
    for mention in &message.mentions {
        text = text.replace(&mention.key, "");
    }
    text.trim().chars().take(MAX_REASON).collect()
}

async fn say(parts: &Parts, to: &Message, text: &Text) {
    let Some(id) = &to.id else { return };
    let text = text.get(parts.config.lang).to_owned();
    let uuid = format!("re-{id}");
    let Some(messages) = parts.courier.messages() else {
        return;
    };
    let sent = messages
        .reply(id, to.chat.as_ref(), &Content::Text(text), false, &uuid)
        .await;
    if let Err(why) = sent {
        debug!("a reply could not be sent: {why}");
    }
}
