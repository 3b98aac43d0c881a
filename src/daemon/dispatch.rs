//! From a push to its answer. What is not ours to handle is acknowledged, so
//! that Feishu does not repeat it.

use std::sync::Arc;
use tracing::{debug, warn};

use super::parts::Parts;
use super::{clicks, inbox};
use crate::feishu::event::{self, Push};
use crate::feishu::link::{Answer, Delivery};

pub(super) async fn answer(parts: Arc<Parts>, delivery: Delivery) -> Answer {
    match event::parse(&delivery.payload) {
        Push::Click(click) => Answer::Show(clicks::answer(&parts, *click).await),
        Push::Message(message) => {
            inbox::receive(&parts, *message, &delivery.payload).await;
            Answer::Done
        }
        Push::Other { kind } => {
            debug!(kind, "acknowledged an event nod does not use");
            Answer::Done
        }
        Push::Unreadable { problem } => {
            warn!("acknowledged a push that is no event: {problem}");
            Answer::Done
        }
    }
}
