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
