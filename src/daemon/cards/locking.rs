//! A lock is seen on every card that waits.

use std::sync::Arc;

use crate::daemon::cards::courier::{self, Cards};
use crate::daemon::known::lock;

/// Locks or unlocks, and makes the cards that wait say so.
pub(crate) async fn set(cards: &Arc<Cards>, closed: bool, by: Option<&str>) {
    if lock::set(&cards.lock, &cards.journal, closed, by).await {
        tokio::spawn(courier::redraw_waiting(Arc::clone(cards)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cards::sample;
    use crate::daemon::cards::bench::Bench;

    #[tokio::test]
    async fn a_lock_takes_the_allow_off_the_cards_that_wait_until_it_is_opened() {
        let bench = Bench::new().await;
        let (_waiting, request) = bench.asks(sample::bash("ls"));
        courier::send_now(&bench.cards, &request);
        bench.call(0).await;
        while bench.cards.courier.message_of(&request.id).is_none() {
            tokio::task::yield_now().await;
        }
        set(&bench.cards, true, None).await;
        let locked = bench.call(1).await;
        assert!(!locked.contains(r#""action":"allow""#));
        assert!(locked.contains(r#""action":"deny""#));
        set(&bench.cards, true, None).await;
        set(&bench.cards, false, None).await;
        let open = bench.call(2).await;
        assert!(open.contains(r#""action":"allow""#));
    }
}
