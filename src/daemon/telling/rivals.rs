//! Warns when other programs hold connections of the same app: Feishu gives
//! each tap to one of them, chosen by chance. Asked once, after the first
//! connect.

use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::daemon::cards::courier::Cards;
use crate::feishu::link::Phase;

pub(crate) async fn look(cards: Arc<Cards>, in_team: bool, stop: CancellationToken) {
    // A team's gateways see to that.
    if in_team {
        return;
    }
    let mut link = cards.link.clone();
    let asked = async {
        let up = link.wait_for(|view| matches!(view.phase, Phase::Up { .. }));
        up.await.ok()?;
        match cards.courier.messages()?.online_connections().await {
            Ok(count) => count,
            Err(why) => {
                debug!("cannot tell whether other programs use this app: {why}");
                None
            }
        }
    };
    let count = tokio::select! {
        () = stop.cancelled() => return,
        count = asked => count,
    };
    if let Some(count) = told(count, cards.config.callback.url.is_some()) {
        warn!(
            "this app has {count} connections open: a tap reaches only one of them, so stop the other programs or give nod an app of its own"
        );
    }
}

/// How many there are, where that is worth a warning: machines that can call
/// each other share an app on purpose.
fn told(count: Option<u64>, shared: bool) -> Option<u64> {
    count.filter(|&count| count > 1 && !shared)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::cards::bench::Bench;
    use crate::feishu::connection::first_view;

    #[test]
    fn other_programs_are_warned_of_unless_the_machines_can_call_each_other() {
        assert_eq!(told(Some(2), false), Some(2));
        for (count, shared) in [(Some(2), true), (Some(1), false), (None, false)] {
            assert_eq!(told(count, shared), None);
        }
    }

    #[tokio::test]
    async fn nobody_is_asked_before_the_connection_stands_nor_in_a_team() {
        let bench = Bench::new().await;
        bench.view.send_modify(|view| *view = first_view());
        let stop = CancellationToken::new();
        let looking = tokio::spawn(look(Arc::clone(&bench.cards), false, stop.clone()));
        look(Arc::clone(&bench.cards), true, stop).await;
        assert!(bench.calls().is_empty());
        bench.connected();
        looking.await.unwrap();
        let [(path, _)] = &bench.calls()[..] else {
            panic!("one call");
        };
        assert!(path.ends_with("event/v1/connection"), "{path}");
    }
}
