//! What becomes of a card when its request ends: its last face, and the edit
//! that shows it, kept together with the ending.

use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tracing::debug;

use super::{AFTER_REPLY, CardText, Cards, Place, queue_edit};
use crate::approvals::request::{Ending, weight};
use crate::approvals::{Settled, desk};
use crate::cards::{Action, ending};
use crate::daemon::cards::nameless;
use crate::daemon::known::journal;
use crate::ids::{MessageId, RequestId};
use crate::text::Lang;

/// Input beyond this is not held after the end.
const MAX_INPUT: usize = 64 << 10;

/// A card's last face: as people see it, and as it is kept on disk, where of
/// the tool input no more than the title stays after the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Face {
    pub(crate) shown: CardText,
    pub(crate) kept: CardText,
}

impl From<CardText> for Face {
    /// Of a card without any tool input, or of another machine's.
    fn from(card: CardText) -> Self {
        Self {
            shown: Arc::clone(&card),
            kept: card,
        }
    }
}

/// The edit that makes a card true, kept together with the ending it shows.
pub(crate) struct EndingEdit {
    pub(crate) message: MessageId,
    pub(crate) face: Face,
}

impl EndingEdit {
    /// As it is written down.
    pub(crate) fn kept(&self) -> (MessageId, CardText) {
        (self.message.clone(), Arc::clone(&self.face.kept))
    }
}

/// A request that has ended, as far as its card needs it.
#[derive(Debug, Clone)]
pub(crate) struct Decided {
    pub(crate) settled: Settled,
    pub(crate) delivery: desk::Delivery,
    /// The title alone, where the input was too large to be held for a late tap.
    pub(crate) title: Option<String>,
    /// Where its card was when it ended: a tap may be there before the send
    /// has returned, and the store learns of the message later.
    pub(crate) message: Option<MessageId>,
}

impl Decided {
    pub(super) fn of(mut settled: Settled, delivery: desk::Delivery, lang: Lang) -> Self {
        let is_large = weight(&settled.request.input) > MAX_INPUT;
        let title = is_large.then(|| ending::kept_title(&settled.request, lang));
        if is_large {
            settled.request = Arc::new(settled.request.with_input(Value::Null));
        }
        Self {
            settled,
            delivery,
            title,
            message: None,
        }
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
    let kept = ending::without_input(
        request,
        words,
        &settled.ending,
        settled.at,
        shown(delivery),
        Some(&undo),
        lang,
    );
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
    let undo = cards
        .buttons
        .choice(&settled.request.id, Action::Undo, false);
    let card = ending::ended(
        &settled.request,
        &settled.ending,
        settled.at,
        shown(delivery),
        Some(&undo),
        cards.config.lang,
    );
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
        let lang = cards.config.lang;
        cards.courier.remember_ending(settled, delivery, lang);
    }
    cards.courier.redraw(id, &face);
    Some(face)
}

/// The card of a request that ended lately, while its input is known.
pub(crate) fn decided_card(cards: &Cards, id: &RequestId) -> Option<CardText> {
    let Decided {
        settled,
        delivery,
        title,
        ..
    } = cards.courier.decided(id)?;
    title.is_none().then(|| drawn(cards, &settled, delivery))
}

/// Takes a request's card off the book: the message to edit, or a stand-in
/// while it is still on its way; such a card is edited when it arrives.
pub(crate) fn take_down(cards: &Cards, settled: &Settled, face: &Face) -> Option<MessageId> {
    let id = &settled.request.id;
    cards.flood.ended(id);
    let known = settled.clone();
    cards
        .courier
        .remember_ending(known, desk::Delivery::Confirmed, cards.config.lang);
    let mut book = cards.courier.lock();
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
        Place::Unsent | Place::Ended(_) if cards.courier.webhook().is_some() => None,
        Place::Unsent | Place::Ended(_) => {
            book.put(id, Place::Ended(face.clone()));
            nameless::stand_in(&settled.request)
        }
    }
}

/// Makes the card of a request that ended without a click true.
pub(crate) async fn close(cards: &Cards, settled: &Settled) {
    let face = ended_face(cards, settled, desk::Delivery::Confirmed, None);
    let edit = take_down(cards, settled, &face).map(|message| EndingEdit {
        message,
        face: face.clone(),
    });
    match journal::settle(
        &cards.journal,
        settled,
        None,
        edit.as_ref().map(EndingEdit::kept),
    )
    .await
    {
        Ok(version) => {
            if let Some(edit) = edit {
                cards
                    .courier
                    .edit(edit.message, edit.face.shown, version, Duration::ZERO);
            }
        }
        Err(why) => debug!("an ending came twice: {why}"),
    }
    close_asking(cards, &settled.request.id, &face).await;
}

/// Makes the cards that asked about a request true, now that it has ended.
pub(crate) async fn close_asking(cards: &Cards, request: &RequestId, face: &Face) {
    for message in cards.courier.take_asking(request) {
        queue_edit(cards, message, face.clone(), AFTER_REPLY).await;
    }
}
