//! What a gateway says to all each few seconds: that it is there, whether Feishu
//! is within its reach, which calls it has had enough of, and, for a gateway
//! that was away, whose passes were taken back.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Gateway;
use crate::bus::letter::PushHead;
use crate::bus::line::BusLineState;
use crate::bus::subjects::BEACON;
use crate::clock::Millis;
use crate::feishu::link::Phase;

const EVERY: Duration = Duration::from_secs(5);
/// How long what a gateway says to all counts.
pub(super) const COUNTS_FOR: Millis = 12_000;
/// Machines hear this too, so it stays short.
const MOST_FORGOTTEN: usize = 16;

pub(super) async fn run(gateway: Arc<Gateway>, stop: CancellationToken) {
    let (mut bus, mut link) = (gateway.line.state(), gateway.link.clone());
    for round in 0.. {
        let up = matches!(*bus.borrow_and_update(), BusLineState::Up { .. });
        let feishu = matches!(link.borrow_and_update().phase, Phase::Up { .. });
        if up {
            say(&gateway, feishu, round).await;
        }
        // What changes is told at once, and each few seconds anyway.
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
            () = gateway.paused.notified() => {}
            changed = bus.changed() => if changed.is_err() { return },
            changed = link.changed() => if changed.is_err() { return },
        }
    }
}

async fn say(gateway: &Gateway, feishu: bool, round: usize) {
    let head = PushHead {
        once: gateway.id.clone(),
        ..gateway.head(COUNTS_FOR)
    };
    let (now, theirs) = (gateway.clock.now(), gateway.their_clock.now());
    let paused = gateway.shares().pauses(now);
    let paused = paused.into_iter().map(|(kind, wait)| (kind, theirs + wait));
    let paused: Vec<_> = paused.collect();
    let forgot = gateway.roster().some_forgotten(round, MOST_FORGOTTEN);
    let forgot = forgot
        .into_iter()
        .map(|(key, from)| (key.to_string(), from));
    let body = json!({
        "feishu": feishu,
        "version": crate::version::BUILD,
        "paused": paused,
        "forgot": forgot.collect::<Vec<_>>(),
    });
    gateway.tell(BEACON, &head, &body).await;
}
