//! Chat messages that were written down and not yet dealt with.

use tracing::warn;

use crate::daemon::known::journal::Journal;
use crate::feishu::event::Message;
use crate::ids::MessageId;

/// Writes a message down. False for one that came before, and for a bot's.
pub(crate) async fn keep(journal: &Journal, message: &Message, push: &[u8]) -> bool {
    let Some(id) = message.id.clone().filter(|_| message.from_user) else {
        return false;
    };
    let (event, push, now) = (message.head.event_id.clone(), push.to_vec(), journal.now());
    let kept = journal
        .store
        .run(move |db| db.receive(&id, event.as_ref(), &push, now));
    kept.await.unwrap_or_else(|why| {
        warn!("cannot tell whether a message came before: {why}");
        true
    })
}

/// What follows must not happen twice, so a crash leaves it half done and the
/// person is told.
pub(crate) async fn begin(journal: &Journal, message: &Message) {
    if let Some(id) = message.id.clone()
        && let Err(why) = journal.store.run(move |db| db.begin(&id)).await
    {
        warn!("a message could be carried out again after a crash: {why}");
    }
}

/// It was dealt with.
pub(crate) async fn cross_out(journal: &Journal, id: MessageId) {
    if let Err(why) = journal.store.run(move |db| db.dealt_with(&id)).await {
        warn!("a message that was dealt with is kept: {why}");
    }
}
