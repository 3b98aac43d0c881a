//! Requests that end without a tap: by time, by the terminal or by a hook's
//! death. Their cards are closed with what the terminal tells of it.

use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::approvals::request::Ending;
use crate::approvals::{Settled, record};
use crate::daemon::cards::courier::{self, Cards};
use crate::daemon::terminals::watching::explained;

/// Closes what ends by time, by the terminal or by a hook's death.
pub(crate) async fn run(cards: Arc<Cards>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            settled = cards.desk.next_settled() => {
                if matches!(settled.ending, Ending::HookGone | Ending::TimedOut) {
                    let cards = Arc::clone(&cards);
                    tokio::spawn(async move { tell(&cards, &explained(settled).await).await });
                } else {
                    tell(&cards, &settled).await;
                }
            }
        }
    }
}

async fn tell(cards: &Cards, settled: &Settled) {
    info!(
        request = %settled.request.id,
        ending = record::kind(&settled.ending),
        "a request ended without a tap"
    );
    courier::close(cards, settled).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cards::sample;
    use crate::daemon::cards::bench::Bench;
    use crate::daemon::known::journal;

    #[tokio::test]
    async fn what_the_terminal_answered_is_written_down_and_shown() {
        let bench = Bench::new().await;
        let stop = CancellationToken::new();
        let running = tokio::spawn(run(Arc::clone(&bench.cards), stop.clone()));
        let (_waiting, request) = bench.asks(sample::bash("ls"));
        courier::send_now(&bench.cards, &request);
        bench.call(0).await;
        bench.cards.desk.answered_there(&request.id);
        let edit = bench.call(1).await;
        assert!(!edit.contains(r#""action":"allow""#));
        let kept = journal::remembered(&bench.cards.journal, &request.id).await;
        assert!(matches!(kept.unwrap().ending, Ending::Terminal { .. }));
        stop.cancel();
        running.await.unwrap();
    }
}
