//! Where each card is, and what it showed last. Holds no lock and sends nothing.

use std::collections::{HashMap, VecDeque};

use super::{CardText, Decided, Face, MAX_FACES};
use crate::cards::whole::Before;
use crate::ids::{MessageId, RequestId};
use crate::sessions::route;

/// Where each pending request's card is.
#[derive(Default)]
pub(super) struct Book {
    pub(super) places: HashMap<RequestId, Place>,
    pub(super) requests: HashMap<MessageId, RequestId>,
    /// The chats and threads the cards stand in.
    pub(super) stands: HashMap<RequestId, route::ChatPlace>,
    /// Requests that do not fit their card: what of them went out before.
    pub(super) whole: HashMap<RequestId, Before>,
    /// The cards that ask once more about one of a request's buttons.
    pub(super) asking: HashMap<RequestId, Vec<MessageId>>,
    /// How many of those are on their way.
    pub(super) unasked: usize,
    /// How many notices are, whose replies are for their sessions.
    pub(super) untold: usize,
    pub(super) decided: VecDeque<Decided>,
    /// With the version of the edit, as far as it is on disk.
    pub(super) faces: VecDeque<(MessageId, Option<i64>, CardText)>,
}

pub(super) enum Place {
    /// Waits for the terminal's head start to pass, or for a connection.
    Held,
    /// On its way to Feishu.
    Unsent,
    Sent(MessageId),
    /// The request ended while its card was on the way: edit it on arrival.
    Ended(Face),
}

impl Book {
    /// What a card is to show, unless a newer edit has said otherwise.
    pub(super) fn remember(&mut self, message: MessageId, version: Option<i64>, card: CardText) {
        let mut known = self.faces.iter();
        if known.any(|(of, newer, _)| *of == message && *newer > version) {
            return;
        }
        self.faces.push_back((message, version, card));
        if self.faces.len() > usize::from(MAX_FACES) {
            self.faces.pop_front();
        }
    }

    pub(super) fn any_unsent(&self) -> bool {
        let mut places = self.places.values();
        self.untold > 0 || places.any(|place| matches!(place, Place::Unsent))
    }

    /// A card is on its way; false when it need not be: its request has ended,
    /// or a tap has named it.
    pub(super) fn set_out(&mut self, id: &RequestId) -> bool {
        match self.places.get_mut(id) {
            Some(place @ (Place::Held | Place::Unsent)) => {
                *place = Place::Unsent;
                true
            }
            Some(Place::Sent(_) | Place::Ended(_)) | None => false,
        }
    }

    /// A card that certainly never left.
    pub(super) fn call_back(&mut self, id: &RequestId) {
        if let Some(place @ Place::Unsent) = self.places.get_mut(id) {
            *place = Place::Held;
        }
    }

    pub(super) fn put(&mut self, id: &RequestId, place: Place) {
        if let Place::Sent(message) = &place {
            self.requests.insert(message.clone(), id.clone());
        }
        self.places.insert(id.clone(), place);
    }

    /// The face a card that ended on its way is to get, unless `queued` is it
    /// already: then the card is off the book.
    pub(super) fn last_face(&mut self, id: &RequestId, queued: Option<&Face>) -> Option<Face> {
        let Some(Place::Ended(face)) = self.places.get(id) else {
            return None;
        };
        if queued == Some(face) {
            self.remove(id);
            return None;
        }
        Some(face.clone())
    }

    pub(super) fn remove(&mut self, id: &RequestId) -> Option<Place> {
        self.stands.remove(id);
        self.whole.remove(id);
        let place = self.places.remove(id);
        if let Some(Place::Sent(message)) = &place {
            self.requests.remove(message);
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_face_that_is_put_right_while_it_is_queued_is_queued_again() {
        let mut book = Book::default();
        let id = RequestId::parse("r1").unwrap();
        let face = |text: &str| Face::from(CardText::from(text));
        book.put(&id, Place::Ended(face("ended")));
        let first = book.last_face(&id, None).unwrap();
        book.put(&id, Place::Ended(face("ran")));
        let second = book.last_face(&id, Some(&first)).unwrap();
        assert_eq!(second, face("ran"));
        assert_eq!(book.last_face(&id, Some(&second)), None);
        assert!(book.places.is_empty());
    }

    #[test]
    fn an_older_edit_that_comes_late_is_not_what_the_card_shows() {
        let mut book = Book::default();
        let message = MessageId::parse("om_1").unwrap();
        let mut told = |version, face: &str| {
            book.remember(message.clone(), version, face.into());
            let (_, _, newest) = book.faces.back().unwrap();
            newest.to_string()
        };
        assert_eq!(told(Some(2), "ran"), "ran");
        assert_eq!(told(Some(1), "denied"), "ran");
        assert_eq!(told(None, "denied"), "ran");
        assert_eq!(told(Some(3), "undone"), "undone");
    }
}
