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
    // Machines that can call each other share an app on purpose.
    let alone = cards.config.callback.url.is_none();
    if let Some(count) = count.filter(|&count| count > 1 && alone) {
        warn!(
            "this app has {count} connections open: a tap reaches only one of them, so stop the other programs or give nod an app of its own"
        );
    }
}
