//! The rights to touch messages: at hand for those of late, in the store for
//! the rest.

use std::sync::{Mutex, PoisonError};

use tracing::warn;

use crate::bounded::Bounded;
use crate::clock::Millis;
use crate::feishu::clock::TheirClock;
use crate::ids::MessageId;
use crate::store::{Db, Store};

const AT_HAND: usize = 1_024;

pub(crate) struct MessageTickets {
    store: Store,
    clock: TheirClock,
    at_hand: Mutex<Bounded<MessageId, (Millis, String)>>,
}

impl MessageTickets {
    pub(crate) fn new(store: Store, clock: TheirClock) -> Self {
        Self {
            store,
            clock,
            at_hand: Mutex::new(Bounded::new(AT_HAND)),
        }
    }

    /// Keeps one that came with a push; it is written down before whatever the
    /// push leads to.
    pub(crate) fn keep(&self, message: &MessageId, ticket: &str) {
        let now = self.clock.now();
        if self.is_news(message, ticket, now) {
            let (message, ticket) = (message.clone(), ticket.to_owned());
            let keep = move |db: &Db| db.keep_ticket(&message, &ticket, now);
            self.store.later("the right to change a card", keep);
        }
    }

    /// Keeps one of a message that was just sent. It is written down when this
    /// returns: nobody may know where a card is that can't be changed after a
    /// crash.
    pub(crate) async fn keep_sent(&self, message: &MessageId, ticket: &str) {
        let now = self.clock.now();
        if self.is_news(message, ticket, now) {
            let (message, ticket) = (message.clone(), ticket.to_owned());
            let kept = self
                .store
                .run(move |db| db.keep_ticket(&message, &ticket, now));
            if let Err(why) = kept.await {
                warn!("after a restart a card can't be changed: {why}");
            }
        }
    }

    /// Has it at hand; false where that was so before.
    fn is_news(&self, message: &MessageId, ticket: &str, now: Millis) -> bool {
        let mut at_hand = self.at_hand.lock().unwrap_or_else(PoisonError::into_inner);
        let place = at_hand.entry(message.clone(), |(at, _)| *at);
        place.0 = now;
        if place.1 == ticket {
            return false;
        }
        ticket.clone_into(&mut place.1);
        true
    }

    pub(crate) async fn of(&self, message: &MessageId) -> Option<String> {
        {
            let mut at_hand = self.at_hand.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, ticket)) = at_hand.get_mut(message) {
                return Some(ticket.clone());
            }
        }
        let message = message.clone();
        let found = self.store.run(move |db| db.ticket(&message));
        found.await.ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    fn tickets(store: &Store) -> MessageTickets {
        MessageTickets::new(store.clone(), TheirClock::new(Clock::start()))
    }

    fn message(n: usize) -> MessageId {
        MessageId::parse(&format!("om_{n}")).unwrap()
    }

    async fn stored(store: &Store, n: usize) -> Option<String> {
        store.run(move |db| db.ticket(&message(n))).await.unwrap()
    }

    #[tokio::test]
    async fn a_ticket_opens_its_own_message_and_the_newest_counts() {
        let tickets = tickets(&Store::in_memory().unwrap());
        tickets.keep(&message(1), "old");
        tickets.keep(&message(1), "new");
        tickets.keep_sent(&message(2), "other").await;
        assert_eq!(tickets.of(&message(1)).await.as_deref(), Some("new"));
        assert_eq!(tickets.of(&message(2)).await.as_deref(), Some("other"));
        assert_eq!(tickets.of(&message(3)).await, None);
    }

    #[tokio::test]
    async fn after_a_restart_every_card_can_still_be_changed() {
        let store = Store::in_memory().unwrap();
        let before = tickets(&store);
        before.keep_sent(&message(1), "sent").await;
        assert_eq!(stored(&store, 1).await.as_deref(), Some("sent"));
        before.keep(&message(2), "old");
        before.keep(&message(2), "brought");
        drop(before);
        let after = tickets(&store);
        assert_eq!(after.of(&message(1)).await.as_deref(), Some("sent"));
        assert_eq!(after.of(&message(2)).await.as_deref(), Some("brought"));
    }

    #[tokio::test]
    async fn what_is_no_longer_at_hand_is_found_in_the_store() {
        let store = Store::in_memory().unwrap();
        let tickets = tickets(&store);
        for n in 0..AT_HAND + 100 {
            tickets.keep(&message(n), &format!("t{n}"));
        }
        let at_hand = || tickets.at_hand.lock().unwrap().len();
        assert_eq!(at_hand(), AT_HAND, "a bus that brings more gets no more");
        for n in [0, 99, 100, AT_HAND + 99] {
            let found = tickets.of(&message(n)).await;
            assert_eq!(found, Some(format!("t{n}")));
        }
        assert_eq!(at_hand(), AT_HAND);
    }

    #[tokio::test]
    async fn a_ticket_that_comes_with_every_tap_is_written_once() {
        let store = Store::in_memory().unwrap();
        let tickets = tickets(&store);
        tickets.keep_sent(&message(1), "t").await;
        let gone = store.run(|db| db.keep_ticket(&message(1), "from elsewhere", 0));
        gone.await.unwrap();
        tickets.keep(&message(1), "t");
        tickets.keep_sent(&message(1), "t").await;
        let stored = stored(&store, 1).await;
        assert_eq!(stored.as_deref(), Some("from elsewhere"), "not again");
        tickets.keep_sent(&message(1), "another").await;
        assert_eq!(tickets.of(&message(1)).await.as_deref(), Some("another"));
    }
}
