//! What becomes of a card when its request ends: its last face, and the edit
//! that shows it, kept together with the ending.

use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use super::{Drawn, Place};
use crate::approvals::request::{Ending, Request, weight};
use crate::approvals::{Settled, desk, record};
use crate::cards::{Action, ending};
use crate::clock::Millis;
use crate::daemon::cards::nameless;
use crate::daemon::cards::sure;
use crate::daemon::known::journal::{self, CardEdit};
use crate::daemon::parts::Parts;
use crate::daemon::terminals::watching::explained;
use crate::ids::{MessageId, RequestId};
use crate::text::Lang;

/// Input beyond this is not held after the end.
const MAX_INPUT: usize = 64 << 10;

/// A card's last face: as people see it, and as it is kept on disk, where no
/// tool input stays after the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Face {
    pub(crate) shown: Drawn,
    pub(crate) kept: Drawn,
}

impl From<Drawn> for Face {
    /// Of a card without any tool input, or of another machine's.
    fn from(card: Drawn) -> Self {
        Self {
            shown: Arc::clone(&card),
            kept: card,
        }
    }
}

/// A request that has ended, as far as its card needs it.
#[derive(Debug, Clone)]
pub(crate) struct Decided {
    pub(crate) settled: Settled,
    pub(crate) delivery: desk::Delivery,
    /// False when the input was too large to be held for a late tap.
    pub(crate) whole: bool,
    /// Where its card was when it ended: a tap may be there before the send
    /// has returned, and the store learns of the message later.
    pub(crate) message: Option<MessageId>,
}

impl Decided {
    pub(super) fn of(mut settled: Settled, delivery: desk::Delivery) -> Self {
        let whole = weight(&settled.request.input) <= MAX_INPUT;
        if !whole {
            settled.request = Arc::new(settled.request.with_input(Value::Null));
        }
        Self {
            settled,
            delivery,
            whole,
            message: None,
        }
    }
}

/// The card of a request that has ended.
pub(crate) fn ended_face(
    parts: &Parts,
    settled: &Settled,
    delivery: desk::Delivery,
    whole: bool,
) -> Face {
    let kept = drawn(parts, settled, delivery, ending::without_input);
    let shown = if whole {
        drawn(parts, settled, delivery, ending::ended)
    } else {
        Arc::clone(&kept)
    };
    Face { shown, kept }
}

type Draw = fn(&Request, &Ending, Millis, ending::Delivery, Option<&Value>, Lang) -> Value;

fn drawn(parts: &Parts, settled: &Settled, delivery: desk::Delivery, draw: Draw) -> Drawn {
    let shown = match delivery {
        desk::Delivery::Confirmed | desk::Delivery::Written => ending::Delivery::Confirmed,
        desk::Delivery::Unconfirmed | desk::Delivery::Lost => ending::Delivery::Unconfirmed,
    };
    let undo = parts.button(&settled.request.id, Action::Undo);
    let card = draw(
        &settled.request,
        &settled.ending,
        settled.at,
        shown,
        Some(&undo),
        parts.config.lang,
    );
    card.to_string().into()
}

/// The card of a request that ended otherwise than was told; `None` when it
/// ended too long ago. Remembered, unless its input was too large to be held.
pub(crate) fn retold(
    parts: &Parts,
    id: &RequestId,
    change: impl FnOnce(&mut Ending),
) -> Option<Face> {
    let Decided {
        mut settled,
        delivery,
        whole,
        ..
    } = parts.courier.decided(id)?;
    change(&mut settled.ending);
    let face = ended_face(parts, &settled, delivery, whole);
    if whole {
        parts.courier.remember_ending(settled, delivery);
    }
    parts.courier.redraw(id, &face);
    Some(face)
}

/// The card of a request that ended lately, while its input is known.
pub(crate) fn decided_card(parts: &Parts, id: &RequestId) -> Option<Drawn> {
    let Decided {
        settled,
        delivery,
        whole,
        ..
    } = parts.courier.decided(id)?;
    if !whole {
        return None;
    }
    Some(drawn(parts, &settled, delivery, ending::ended))
}

/// Takes a request's card off the book: the message to edit, or a stand-in
/// while it is still on its way; such a card is edited when it arrives.
pub(crate) fn take_down(parts: &Parts, settled: &Settled, face: &Face) -> Option<MessageId> {
    let id = &settled.request.id;
    parts.flood.ended(id);
    let known = settled.clone();
    parts
        .courier
        .remember_ending(known, desk::Delivery::Confirmed);
    let mut book = parts.courier.lock();
    match book.remove(id)? {
        Place::Sent(message) => {
            let mut newest_first = book.decided.iter_mut().rev();
            let decided = newest_first.find(|known| known.settled.request.id == *id);
            if let Some(decided) = decided {
                decided.message = Some(message.clone());
            }
            Some(message)
        }
        Place::Held => None,
        Place::Unsent | Place::Ended(_) if parts.courier.webhook().is_some() => None,
        Place::Unsent | Place::Ended(_) => {
            book.put(id, Place::Ended(face.clone()));
            nameless::stand_in(&settled.request)
        }
    }
}

/// Makes the card of a request that ended without a click true.
pub(crate) async fn close(parts: &Parts, settled: &Settled) {
    let face = ended_face(parts, settled, desk::Delivery::Confirmed, true);
    let edit = take_down(parts, settled, &face).map(|message| CardEdit {
        message,
        face: face.clone(),
    });
    match journal::settle(parts, settled, None, edit.as_ref()).await {
        Ok(version) => {
            if let Some(edit) = edit {
                parts
                    .courier
                    .edit(edit.message, edit.face.shown, version, Duration::ZERO);
            }
        }
        Err(why) => debug!("an ending came twice: {why}"),
    }
    sure::close(parts, &settled.request.id, &face).await;
}

/// Closes what ends by time, by the terminal or by a hook's death.
pub(crate) async fn run_endings(parts: Arc<Parts>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            settled = parts.desk.next_settled() => {
                if matches!(settled.ending, Ending::HookGone | Ending::TimedOut) {
                    let parts = Arc::clone(&parts);
                    tokio::spawn(async move { tell(&parts, &explained(settled).await).await });
                } else {
                    tell(&parts, &settled).await;
                }
            }
        }
    }
}

async fn tell(parts: &Parts, settled: &Settled) {
    info!(
        request = %settled.request.id,
        ending = record::kind(&settled.ending),
        "a request ended without a tap"
    );
    close(parts, settled).await;
}
