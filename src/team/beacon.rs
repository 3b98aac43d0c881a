//! What a gateway says to all each few seconds: that it is there, and whether
//! Feishu is within its reach.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Gateway;
use crate::bus::letter::{self, PushHead};
use crate::bus::line::State;
use crate::bus::subjects::BEACON;
use crate::clock::Millis;
use crate::feishu::link::Phase;

const EVERY: Duration = Duration::from_secs(5);
/// How long a beacon counts.
const COUNTS_FOR: Millis = 12_000;

pub(super) async fn run(gateway: Arc<Gateway>, stop: CancellationToken) {
    let (mut bus, mut link) = (gateway.line.state(), gateway.link.clone());
    loop {
        let up = matches!(*bus.borrow_and_update(), State::Up { .. });
        let feishu = matches!(link.borrow_and_update().phase, Phase::Up { .. });
        if up {
            say(&gateway, feishu).await;
        }
        // What changes is told at once, and each few seconds anyway.
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
            changed = bus.changed() => if changed.is_err() { return },
            changed = link.changed() => if changed.is_err() { return },
        }
    }
}

async fn say(gateway: &Gateway, feishu: bool) {
    let head = PushHead {
        until: gateway.their_clock.now() + COUNTS_FOR,
        once: gateway.id.clone(),
        ticket: None,
    };
    let body = json!({"feishu": feishu, "version": crate::version::BUILD}).to_string();
    let letter = letter::sign(&gateway.keys.push, BEACON, &head, body.as_bytes());
    gateway.line.tell(BEACON, letter).await;
}
