//! A tap's way to the machine its button names. The machine decides; what is
//! said here when it does not answer claims no more than is known.

use std::sync::Arc;
use std::time::Duration;

use prost::bytes::Bytes;
use tracing::{debug, info, warn};

use super::status::add;
use super::{Gateway, chat, orders};
use crate::bus::letter::{self, AnswerHead, Letter, PushHead};
use crate::bus::line::BusAnswer;
use crate::bus::subjects::{MachinePlace, ToMachine};
use crate::clock::{Millis, millis};
use crate::feishu::event::{self, Click, Push};
use crate::feishu::link::PushAnswer;
use crate::ids::MessageId;
use crate::text::escape::{Shape, visible};
use crate::wording::{Toast, reply_json};

/// Feishu waits three seconds for the answer to a tap.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(2);

pub(super) async fn answer(gateway: Arc<Gateway>, payload: Bytes) -> PushAnswer {
    match event::parse(&payload) {
        Push::Click(click) if orders::is_own(&click) => {
            PushAnswer::Show(orders::tapped(&gateway, &click).await)
        }
        Push::Click(click) => PushAnswer::Show(tapped(&gateway, &click, &payload).await),
        Push::Message(message) => {
            add(&gateway.counts.messages);
            chat::written(&gateway, &message, &payload).await
        }
        Push::Other { kind } => {
            debug!(kind, "acknowledged an event nod does not use");
            PushAnswer::Done
        }
        Push::Unreadable { problem } => {
            warn!("acknowledged a push that can't be read: {problem}");
            // Whoever tapped would see an error on an answer without data.
            PushAnswer::Show(b"{}".to_vec())
        }
    }
}

async fn tapped(gateway: &Gateway, click: &Click, payload: &[u8]) -> Vec<u8> {
    add(&gateway.counts.taps);
    let text = |field: &str| click.value.get(field).and_then(serde_json::Value::as_str);
    let toast = match text("callback_url").and_then(MachinePlace::of_url) {
        None => Toast::INVALID,
        Some(place) if gateway.roster().is_gone(&place) => {
            info!(%place, "a tap was for a machine that was forgotten");
            let name = text("machine_name").unwrap_or(place.machine.as_str());
            Toast::forgotten(&visible(name, Shape::Name))
        }
        Some(place) => {
            let message = click.message.as_ref();
            match push(
                gateway,
                &place,
                ToMachine::Tap,
                message,
                payload,
                ANSWER_WITHIN,
            )
            .await
            {
                PushedTap::Answered(shown) => return shown,
                PushedTap::Nobody => {
                    let name = text("machine_name").unwrap_or(place.machine.as_str());
                    info!(%place, "a tap found its machine not connected");
                    Toast::not_connected(&visible(name, Shape::Name))
                }
                PushedTap::NotSent => Toast::NOTHING_DECIDED,
                PushedTap::Unknown => {
                    warn!(%place, "a machine did not say what became of a tap");
                    Toast::STILL_CHECKING
                }
            }
        }
    };
    add(&gateway.counts.unanswered);
    reply_json(&toast, None, gateway.lang)
}

impl Gateway {
    /// The head of a push of its own, which counts for so long.
    pub(super) fn head(&self, counts_for: Millis) -> PushHead {
        PushHead {
            until: self.their_clock.now() + counts_for,
            once: format!("{:032x}", rand::random::<u128>()),
            ticket: None,
        }
    }

    /// Says something to whoever hears `subject`.
    pub(super) async fn tell(&self, subject: &str, head: &PushHead, what: &serde_json::Value) {
        let body = what.to_string();
        let letter = letter::sign(&self.keys.push, subject, head, body.as_bytes());
        self.line.tell(subject, letter).await;
    }
}

/// What came of a push to one machine.
pub(super) enum PushedTap {
    Answered(Vec<u8>),
    Nobody,
    NotSent,
    Unknown,
}

/// Takes Feishu's push to one machine as it came, signed, with the time after
/// which it counts for nothing and the right to touch its message.
pub(super) async fn push(
    gateway: &Gateway,
    place: &MachinePlace,
    what: ToMachine,
    message: Option<&MessageId>,
    payload: &[u8],
    limit: Duration,
) -> PushedTap {
    let subject = place.hears(what);
    let within = millis(limit.max(ANSWER_WITHIN));
    let head = PushHead {
        ticket: message.map(|message| gateway.ticket(place, message)),
        ..gateway.head(within)
    };
    let letter = letter::sign(&gateway.keys.push, &subject, &head, payload);
    match gateway.line.ask(&subject, letter, limit).await {
        BusAnswer::Answer(bytes) => {
            if let Some(body) = opened(gateway, place, &subject, &head.once, &bytes) {
                return PushedTap::Answered(body.to_vec());
            }
            warn!(%place, "an answer was not the machine's own");
            PushedTap::Unknown
        }
        BusAnswer::Nobody => PushedTap::Nobody,
        BusAnswer::Down => PushedTap::NotSent,
        BusAnswer::Unknown => PushedTap::Unknown,
    }
}

/// The answer of one machine to one question, if it is that.
pub(super) fn opened<'a>(
    gateway: &Gateway,
    place: &MachinePlace,
    subject: &str,
    once: &str,
    bytes: &'a [u8],
) -> Option<&'a [u8]> {
    let letter = Letter::read(bytes)?;
    let head: AnswerHead = letter.claims()?;
    let pass = gateway.pass(&head.pass?)?;
    let its_own = pass.place == *place && head.re == once;
    its_own.then(|| letter.open(&pass.key, subject))?
}
