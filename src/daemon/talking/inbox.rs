//! Chat messages from Feishu's push to their effect. A message is written down
//! before it is acknowledged, because Feishu repeats only what was not, and is
//! crossed out with its effect. What a crash left is taken up at the start.

use std::sync::Arc;
use tracing::warn;

use crate::daemon::machines::peers;
use crate::daemon::parts::Parts;
use crate::daemon::talking::chat;
use crate::feishu::event::{self, Message, Push};
use crate::ids::MessageId;
use crate::store::{Db, Received};
use crate::wording::task as words;

/// Returns once the message may be acknowledged; what it causes takes its time.
pub(crate) async fn receive(parts: &Arc<Parts>, message: Message, push: &[u8]) {
    if keep(parts, &message, push).await {
        tokio::spawn(deal_with(Arc::clone(parts), message, push.to_vec()));
    }
}

/// As [`receive`], from a machine that has asked around.
pub(crate) async fn receive_from_peer(parts: &Arc<Parts>, message: Message, push: &[u8]) {
    if keep(parts, &message, push).await {
        tokio::spawn(carry_out(Arc::clone(parts), message));
    }
}

/// Writes a message down. False for one that came before, and for a bot's.
async fn keep(parts: &Parts, message: &Message, push: &[u8]) -> bool {
    let Some(id) = message.id.clone().filter(|_| message.from_user) else {
        return false;
    };
    let (event, push, now) = (message.head.event_id.clone(), push.to_vec(), parts.now());
    let kept = parts
        .journal
        .store
        .run(move |db| db.receive(&id, event.as_ref(), &push, now));
    kept.await.unwrap_or_else(|why| {
        warn!("cannot tell whether a message came before: {why}");
        true
    })
}

/// What follows must not happen twice, so a crash leaves it half done and the
/// person is told.
pub(crate) async fn begin(parts: &Parts, message: &Message) {
    if let Some(id) = message.id.clone()
        && let Err(why) = parts.journal.store.run(move |db| db.begin(&id)).await
    {
        warn!("a message could be carried out again after a crash: {why}");
    }
}

/// Takes up what the last run acknowledged and did not finish.
pub(crate) async fn restore(parts: &Arc<Parts>) {
    match parts.journal.store.run(Db::inbox).await {
        Ok(left) => {
            for one in left {
                tokio::spawn(take_up(Arc::clone(parts), one));
            }
        }
        Err(why) => warn!("the messages of the last run cannot be read: {why}"),
    }
}

async fn take_up(parts: Arc<Parts>, left: Received) {
    match event::parse(&left.push) {
        Push::Message(message) if !left.begun => {
            return deal_with(parts, *message, left.push).await;
        }
        Push::Message(message) => chat::say(&parts, &message, &words::CUT_OFF).await,
        Push::Click(_) | Push::Other { .. } | Push::Unreadable { .. } => {}
    }
    cross_out(&parts, left.message).await;
}

async fn deal_with(parts: Arc<Parts>, message: Message, push: Vec<u8>) {
    if peers::messages::is_for_us(&parts, &message, &push).await {
        carry_out(parts, message).await;
    } else if let Some(id) = message.id {
        cross_out(&parts, id).await;
    }
}

async fn carry_out(parts: Arc<Parts>, message: Message) {
    chat::take(&parts, &message).await;
    if let Some(id) = message.id {
        cross_out(&parts, id).await;
    }
}

async fn cross_out(parts: &Parts, id: MessageId) {
    if let Err(why) = parts.journal.store.run(move |db| db.dealt_with(&id)).await {
        warn!("a message that was dealt with is kept: {why}");
    }
}
