//! What becomes of a card when its request ends: its last face, and the edit
//! that shows it, kept together with the ending.

use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use super::{Drawn, Place};
use crate::approvals::{Settled, desk, record};
use crate::cards::{Action, ending};
use crate::daemon::journal::{self, CardEdit};
use crate::daemon::nameless;
use crate::daemon::parts::Parts;
use crate::ids::{MessageId, RequestId};

/// The card of a request that has ended.
pub(in crate::daemon) fn ended_card(
    parts: &Parts,
    settled: &Settled,
    delivery: desk::Delivery,
) -> Drawn {
    let shown = match delivery {
        desk::Delivery::Confirmed | desk::Delivery::Written => ending::Delivery::Confirmed,
        desk::Delivery::Unconfirmed | desk::Delivery::Lost => ending::Delivery::Unconfirmed,
    };
    let undo = parts.button(&settled.request.id, Action::Undo);
    let card = ending::ended(
        &settled.request,
        &settled.ending,
        settled.at,
        shown,
        Some(&undo),
        parts.config.lang,
    );
    card.to_string().into()
}

/// The card of a request that ended lately.
pub(in crate::daemon) fn decided_card(parts: &Parts, id: &RequestId) -> Option<Drawn> {
    let (settled, delivery) = parts.courier.decided(id)?;
    Some(ended_card(parts, &settled, delivery))
}

/// Takes a request's card off the book: the message to edit, or a stand-in
/// while it is still on its way; such a card is edited when it arrives.
pub(in crate::daemon) fn take_down(
    parts: &Parts,
    settled: &Settled,
    card: &Drawn,
) -> Option<MessageId> {
    let id = &settled.request.id;
    let known = settled.clone();
    parts.courier.decide(known, desk::Delivery::Confirmed);
    let mut book = parts.courier.lock();
    match book.remove(id)? {
        Place::Sent(message) => Some(message),
        Place::Held => {
            let session = &settled.request.origin.session;
            parts.flood.spared(session, settled.request.asked_at);
            None
        }
        Place::Unsent | Place::Ended(_) if parts.courier.webhook().is_some() => None,
        Place::Unsent | Place::Ended(_) => {
            book.put(id, Place::Ended(Arc::clone(card)));
            nameless::stand_in(&settled.request)
        }
    }
}

/// Makes the card of a request that ended without a click true.
pub(in crate::daemon) async fn close(parts: &Parts, settled: &Settled) {
    let card = ended_card(parts, settled, desk::Delivery::Confirmed);
    let edit = take_down(parts, settled, &card).map(|message| CardEdit { message, card });
    match journal::settle(parts, settled, None, edit.as_ref()).await {
        Ok(version) => {
            if let Some(edit) = edit {
                parts
                    .courier
                    .edit(edit.message, edit.card, version, Duration::ZERO);
            }
        }
        Err(why) => debug!("an ending came twice: {why}"),
    }
}

/// Closes what ends by time, by the terminal or by a hook's death.
pub(in crate::daemon) async fn run_endings(parts: Arc<Parts>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            settled = parts.desk.next_settled() => {
                info!(
                    request = %settled.request.id,
                    ending = record::kind(&settled.ending),
                    "a request ended without a tap"
                );
                close(&parts, &settled).await;
            }
        }
    }
}
