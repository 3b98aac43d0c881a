//! One edit of a message at a time: two that overtake each other leave the
//! older face. Bounded by how many edits are made at once.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

use crate::ids::MessageId;

#[derive(Default)]
pub(crate) struct OneByOne {
    busy: Mutex<HashSet<MessageId>>,
    free: Notify,
}

pub(super) struct Turn<'a> {
    of: &'a OneByOne,
    message: MessageId,
}

impl OneByOne {
    pub(super) async fn turn(&self, message: &MessageId) -> Turn<'_> {
        loop {
            let mut free = std::pin::pin!(self.free.notified());
            free.as_mut().enable();
            if self.lock().insert(message.clone()) {
                let message = message.clone();
                return Turn { of: self, message };
            }
            free.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<MessageId>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.of.lock().remove(&self.message);
        self.of.free.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_second_edit_of_a_message_waits_and_another_messages_does_not() {
        let turns = OneByOne::default();
        let message = |text: &str| MessageId::parse(text).unwrap();
        let first = turns.turn(&message("om_1")).await;
        let _other = turns.turn(&message("om_2")).await;
        let one = message("om_1");
        let mut second = std::pin::pin!(turns.turn(&one));
        let soon = std::time::Duration::from_millis(20);
        assert!(tokio::time::timeout(soon, &mut second).await.is_err());
        drop(first);
        second.await;
    }
}
