//! From a push to its answer. What is not ours to handle is acknowledged, so
//! that Feishu does not repeat it.

use prost::bytes::Bytes;
use std::sync::Arc;
use tracing::{debug, warn};

use crate::daemon::arriving::inbox;
use crate::daemon::tapping::clicks::{self, Taps};
use crate::feishu::event::{self, Push};
use crate::feishu::link::PushAnswer;

pub(crate) async fn answer(taps: Arc<Taps>, payload: Bytes) -> PushAnswer {
    let push = event::parse(&payload);
    answer_read(taps, push, payload).await
}

/// The same for a push that was read before.
pub(crate) async fn answer_read(taps: Arc<Taps>, push: Push, payload: Bytes) -> PushAnswer {
    match push {
        Push::Click(click) => PushAnswer::Show(clicks::answer(&taps, *click).await),
        Push::Message(message) if !message.head.is_of(&taps.app_id) => {
            warn!("acknowledged and left alone a message to another app");
            PushAnswer::Done
        }
        Push::Message(message) => {
            inbox::receive(&taps.chat, &taps.gate, *message, &payload).await;
            PushAnswer::Done
        }
        Push::Other { kind } => {
            debug!(kind, "acknowledged an event nod does not use");
            PushAnswer::Done
        }
        // Whoever tapped would see an error on an answer without data.
        Push::Unreadable { problem } if names_a_tap(&payload) => {
            warn!("answered a tap that could not be read with nothing: {problem}");
            PushAnswer::Show(b"{}".to_vec())
        }
        Push::Unreadable { problem } => {
            warn!("acknowledged a push that is no event: {problem}");
            PushAnswer::Done
        }
    }
}

fn names_a_tap(payload: &[u8]) -> bool {
    let name = b"card.action.trigger";
    payload.windows(name.len()).any(|part| part == name)
}

#[cfg(test)]
mod tests;
