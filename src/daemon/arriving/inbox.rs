//! Chat messages from Feishu's push to their effect. A message is written down
//! before it is acknowledged, because Feishu repeats only what was not, and is
//! crossed out with its effect. What a crash left is taken up at the start.

use std::sync::Arc;

use crate::daemon::arriving::whose;
use crate::daemon::known::inbox::{cross_out, keep};
use crate::daemon::known::journal;
use crate::daemon::machines::gate::Gate;
use crate::daemon::talking::chat::{self, Chat};
use crate::feishu::event::{self, Message, Push};
use crate::store::{Db, Received};
use crate::wording::task as words;

/// Returns once the message may be acknowledged; what it causes takes its time.
pub(crate) async fn receive(chat: &Arc<Chat>, gate: &Arc<Gate>, message: Message, push: &[u8]) {
    if keep(&chat.cards.journal, &message, push).await {
        tokio::spawn(deal_with(
            Arc::clone(chat),
            Arc::clone(gate),
            message,
            push.to_vec(),
        ));
    }
}

/// As [`receive`], from a machine that has asked around.
pub(crate) async fn receive_from_peer(chat: &Arc<Chat>, message: Message, push: &[u8]) {
    if keep(&chat.cards.journal, &message, push).await {
        tokio::spawn(carry_out(Arc::clone(chat), message));
    }
}

/// Takes up what the last run acknowledged and did not finish.
pub(crate) async fn restore(chat: &Arc<Chat>, gate: &Arc<Gate>) {
    let otherwise = "the messages of the last run cannot be read";
    let left = journal::run(&chat.cards.journal, otherwise, Db::inbox).await;
    for one in left.unwrap_or_default() {
        tokio::spawn(take_up(Arc::clone(chat), Arc::clone(gate), one));
    }
}

async fn take_up(chat: Arc<Chat>, gate: Arc<Gate>, left: Received) {
    match event::parse(&left.push) {
        Push::Message(message) if !left.begun => {
            return deal_with(chat, gate, *message, left.push).await;
        }
        Push::Message(message) => chat::say(&chat, &message, &words::CUT_OFF).await,
        Push::Click(_) | Push::Other { .. } | Push::Unreadable { .. } => {}
    }
    cross_out(&chat.cards.journal, left.message).await;
}

async fn deal_with(chat: Arc<Chat>, gate: Arc<Gate>, message: Message, push: Vec<u8>) {
    if whose::is_for_us(&chat, &gate, &message, &push).await {
        carry_out(chat, message).await;
    } else if let Some(id) = message.id {
        cross_out(&chat.cards.journal, id).await;
    }
}

async fn carry_out(chat: Arc<Chat>, message: Message) {
    chat::take(&chat, &message).await;
    if let Some(id) = message.id {
        cross_out(&chat.cards.journal, id).await;
    }
}

#[cfg(test)]
mod tests;
