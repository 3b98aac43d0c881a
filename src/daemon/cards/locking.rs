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
        let mut bench = Bench::new().await;
        let (_waiting, request) = bench.asks(sample::bash("ls"));
        courier::send_now(Arc::clone(&bench.cards), request).await;
        assert_eq!(bench.calls().len(), 1);
        set(&bench.cards, true, None).await;
        let locked = bench.edits.0.recv().await.unwrap();
        assert!(!locked.card.contains(r#""action":"allow""#));
        assert!(locked.card.contains(r#""action":"deny""#));
        set(&bench.cards, true, None).await;
        assert!(bench.edits.0.try_recv().is_err(), "nothing changed");
        set(&bench.cards, false, None).await;
        let open = bench.edits.0.recv().await.unwrap();
        assert!(open.card.contains(r#""action":"allow""#));
    }
}
