//! Chat messages that were written down and not yet dealt with.

use crate::daemon::known::journal::{self, Journal};
use crate::feishu::event::Message;
use crate::ids::MessageId;
use crate::store::Db;

/// Writes a message down. False for one that came before, and for a bot's.
pub(crate) async fn keep(journal: &Journal, message: &Message, push: &[u8]) -> bool {
    let Some(id) = message.id.clone().filter(|_| message.from_user) else {
        return false;
    };
    let (event, push, now) = (message.head.event_id.clone(), push.to_vec(), journal.now());
    let receive = move |db: &Db| db.receive(&id, event.as_ref(), &push, now);
    let otherwise = "cannot tell whether a message came before";
    let kept = journal::run(journal, otherwise, receive).await;
    kept.unwrap_or(true)
}

/// What follows must not happen twice, so a crash leaves it half done and the
/// person is told.
pub(crate) async fn begin(journal: &Journal, message: &Message) {
    if let Some(id) = message.id.clone() {
        let otherwise = "a message could be carried out again after a crash";
        journal::run(journal, otherwise, move |db| db.begin(&id)).await;
    }
}

/// It was dealt with.
pub(crate) async fn cross_out(journal: &Journal, id: MessageId) {
    let otherwise = "a message that was dealt with is kept";
    journal::run(journal, otherwise, move |db| db.dealt_with(&id)).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::bench::{OWNER, push, writes};
    use crate::daemon::cards::bench::Bench;
    use crate::store::Db;
    use serde_json::Value;

    #[tokio::test]
    async fn a_message_counts_once_and_is_kept_until_it_was_dealt_with() {
        let journal = &Bench::new().await.cards.journal;
        let (message, bytes) = (
            writes(OWNER, "hi"),
            push(OWNER, "om_written", "hi", &Value::Null),
        );
        assert!(keep(journal, &message, &bytes).await);
        assert!(!keep(journal, &message, &bytes).await, "Feishu repeats it");
        let left = async || journal.store.run(Db::inbox).await.unwrap();
        assert_eq!((left().await.len(), left().await[0].begun), (1, false));
        begin(journal, &message).await;
        assert!(left().await[0].begun, "a crash now leaves it half done");
        cross_out(journal, message.id.clone().unwrap()).await;
        assert!(left().await.is_empty());
        assert!(!keep(journal, &message, &bytes).await, "it stays known");
    }

    #[tokio::test]
    async fn what_a_bot_says_is_nobodys_order() {
        let journal = &Bench::new().await.cards.journal;
        let mut message = writes(OWNER, "hi");
        message.from_user = false;
        assert!(!keep(journal, &message, b"{}").await);
    }
}
