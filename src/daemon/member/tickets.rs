//! The rights to touch messages: at hand for those of late, in the store for
//! the rest.

use std::sync::{Mutex, PoisonError};

use tracing::warn;

use crate::bounded::Bounded;
use crate::clock::Millis;
use crate::feishu::clock::TheirClock;
use crate::ids::MessageId;
use crate::store::Store;

const AT_HAND: usize = 1_024;

pub(super) struct Tickets {
    store: Store,
    clock: TheirClock,
    at_hand: Mutex<Bounded<MessageId, (Millis, String)>>,
}

impl Tickets {
    pub(super) fn new(store: Store, clock: TheirClock) -> Self {
        Self {
            store,
            clock,
            at_hand: Mutex::new(Bounded::new(AT_HAND)),
        }
    }

    /// Keeps one; it is written down in its own time.
    pub(super) fn keep(&self, message: &MessageId, ticket: &str) {
        let now = self.clock.now();
        {
            let mut at_hand = self.at_hand.lock().unwrap_or_else(PoisonError::into_inner);
            let place = at_hand.entry(message.clone(), |(at, _)| *at);
            if place.1 == ticket {
                place.0 = now;
                return;
            }
            *place = (now, ticket.to_owned());
        }
        let (store, message, ticket) = (self.store.clone(), message.clone(), ticket.to_owned());
        tokio::spawn(async move {
            let kept = store.run(move |db| db.keep_ticket(&message, &ticket, now));
            if let Err(why) = kept.await {
                warn!("after a restart a card can't be changed: {why}");
            }
        });
    }

    pub(super) async fn of(&self, message: &MessageId) -> Option<String> {
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
