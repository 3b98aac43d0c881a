//! What becomes of a card when its request ends: its last face, and the edit
//! that shows it, kept together with the ending.

use std::sync::Arc;
use std::time::Duration;
use tracing::debug;

use super::{AFTER_REPLY, Cards, queue_edit};
use crate::approvals::request::Ending;
use crate::approvals::{Settled, desk};
use crate::cards::{Action, ending};
use crate::daemon::cards::book::{CardText, Decided, Face};
use crate::daemon::known::journal;
use crate::ids::{CardKey, RequestId};

impl Face {
    /// The edit that makes a card true, as it is written down with the ending
    /// it shows.
    pub(crate) fn kept_by(&self, key: Option<&CardKey>) -> Option<(CardKey, CardText)> {
        key.map(|key| (key.clone(), Arc::clone(&self.kept)))
    }
}

/// The card of a request that has ended; `title` is what is held of an input
/// that was too large.
pub(crate) fn ended_face(
    cards: &Cards,
    settled: &Settled,
    delivery: desk::Delivery,
    title: Option<&str>,
) -> Face {
    let (lang, request) = (cards.config.lang, &settled.request);
    let made = title.is_none().then(|| ending::kept_title(request, lang));
    let words = title.or(made.as_deref()).unwrap_or_default();
    let undo = cards.buttons.choice(&request.id, Action::Undo, false);
    let (ending, at, told) = (&settled.ending, settled.at, shown(delivery));
    let kept = ending::without_input(request, words, ending, at, told, Some(&undo), lang);
    let kept: CardText = kept.to_string().into();
    let shown = match title {
        None => drawn(cards, settled, delivery),
        Some(_) => Arc::clone(&kept),
    };
    Face { shown, kept }
}

const fn shown(delivery: desk::Delivery) -> ending::Confirmation {
    match delivery {
        desk::Delivery::Confirmed | desk::Delivery::Written => ending::Confirmation::Confirmed,
        desk::Delivery::Unconfirmed | desk::Delivery::Lost => ending::Confirmation::Unconfirmed,
    }
}

fn drawn(cards: &Cards, settled: &Settled, delivery: desk::Delivery) -> CardText {
    let (request, lang) = (&settled.request, cards.config.lang);
    let undo = cards.buttons.choice(&request.id, Action::Undo, false);
    let (ending, at, told) = (&settled.ending, settled.at, shown(delivery));
    let card = ending::ended(request, ending, at, told, Some(&undo), lang);
    card.to_string().into()
}

/// The card of a request that ended otherwise than was told; `None` when it
/// ended too long ago. Remembered, unless its input was too large to be held.
pub(crate) fn retold(
    cards: &Cards,
    id: &RequestId,
    change: impl FnOnce(&mut Ending),
) -> Option<Face> {
    let Decided {
        mut settled,
        delivery,
        title,
        ..
    } = cards.courier.decided(id)?;
    change(&mut settled.ending);
    let face = ended_face(cards, &settled, delivery, title.as_deref());
    if title.is_none() {
        cards.courier.remember_ending(settled, delivery);
    }
    cards.courier.redraw(id, &face);
    Some(face)
}

/// The card of a request that ended lately, while its input is known.
pub(crate) fn decided_card(cards: &Cards, id: &RequestId) -> Option<CardText> {
    let known = cards.courier.decided(id)?;
    let is_whole = known.title.is_none();
    is_whole.then(|| drawn(cards, &known.settled, known.delivery))
}

/// Takes a request's card off the book: what the edit that shows its ending is
/// kept by, if there may be a card.
pub(crate) fn take_down(cards: &Cards, settled: &Settled, face: &Face) -> Option<CardKey> {
    cards.flood.ended(&settled.request);
    (cards.courier).tell(|book, now| book.end(settled.clone(), face, now))
}

/// Makes the card of a request that ended without a click true.
pub(crate) async fn close(cards: &Cards, settled: &Settled) {
    let face = ended_face(cards, settled, desk::Delivery::Confirmed, None);
    let key = take_down(cards, settled, &face);
    let written = journal::settle(&cards.journal, settled, None, face.kept_by(key.as_ref()));
    match (written.await, key) {
        (Ok(version), Some(key)) => {
            let shown = Arc::clone(&face.shown);
            (cards.courier).recorded(&key, shown, version, Duration::ZERO);
        }
        (Ok(_), None) => {}
        (Err(why), _) => debug!("an ending came twice: {why}"),
    }
    close_asking(cards, &settled.request.id, &face).await;
}

/// Makes the cards that asked about a request true, now that it has ended.
pub(crate) async fn close_asking(cards: &Cards, request: &RequestId, face: &Face) {
    for message in cards.courier.take_asking(request) {
        queue_edit(cards, message, face.clone(), AFTER_REPLY).await;
    }
}

#[cfg(test)]
mod tests;
