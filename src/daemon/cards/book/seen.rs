//! What the book knows of a card or a message, for whoever asks.

use super::memory::{CardText, Decided, Face};
use super::places::{Card, Place};
use super::{CardBook, MAX_ASKING};
use crate::ids::{CardKey, MessageId, RequestId};

impl<P: Default> CardBook<P> {
    /// The message that carries this request's card, once Feishu or a tap
    /// named it.
    pub fn message_of(&self, id: &RequestId) -> Option<&MessageId> {
        self.cards.get(id)?.message()
    }

    /// The request that waits and whose card this message is.
    pub fn request_of(&self, message: &MessageId) -> Option<&RequestId> {
        self.names.get(message)
    }

    /// Whether the card is certainly not with Feishu yet.
    pub fn is_held(&self, id: &RequestId) -> bool {
        let held = |card: &Card<P>| matches!(card.place, Place::Held { .. }) && !card.in_doubt;
        self.cards.get(id).is_some_and(held)
    }

    /// Whether a card or a notice has no name yet.
    pub fn any_unnamed(&self) -> bool {
        self.untold > 0 || self.cards.values().any(Card::is_unsent)
    }

    /// What whoever sends a request's card knows besides.
    pub fn post(&self, id: &RequestId) -> Option<&P> {
        Some(&self.cards.get(id)?.post)
    }

    pub fn post_mut(&mut self, id: &RequestId) -> Option<&mut P> {
        Some(&mut self.cards.get_mut(id)?.post)
    }

    /// What the card of a request that has ended shows once it has a name.
    pub fn face_to_come(&self, id: &RequestId) -> Option<&Face> {
        match &self.cards.get(id)?.place {
            Place::Ended { face, .. } => Some(face),
            Place::Held { .. } | Place::Left | Place::Sending { .. } | Place::Sent(_) => None,
        }
    }

    /// What the edit of a card whose request ended lately is kept by.
    pub fn ending_key(&self, id: &RequestId) -> Option<CardKey> {
        let is_nameless = |card: &Card<P>| {
            matches!(
                card.place,
                Place::Ended {
                    name: None,
                    is_kept: true,
                    ..
                }
            )
        };
        if self.cards.get(id).is_some_and(is_nameless) {
            return Some(CardKey::Sending(id.clone()));
        }
        let message = self.decided(id)?.message.clone();
        message.map(CardKey::Message)
    }

    /// A request that ended lately, for a card that must be drawn once more.
    pub fn decided(&self, id: &RequestId) -> Option<&Decided> {
        self.memory.decided(id)
    }

    /// What a message was last changed to, lately.
    pub fn face(&self, message: &MessageId) -> Option<&CardText> {
        self.memory.face(message)
    }

    /// Whether this message asks once more about this request; `None` while
    /// such a card is on its way.
    pub fn asks_about(&self, id: &RequestId, message: &MessageId) -> Option<bool> {
        let asks = self.asking.get(id).is_some_and(|all| all.contains(message));
        (asks || self.unasked == 0).then_some(asks)
    }

    /// A card that asks sets out; its name is told by [`Self::asked`].
    pub fn asking(&mut self) {
        self.unasked += 1;
    }

    pub fn asked(&mut self) {
        self.unasked = self.unasked.saturating_sub(1);
    }

    /// A notice sets out; that it is known whose it is, is told by
    /// [`Self::told`].
    pub fn telling(&mut self) {
        self.untold += 1;
    }

    pub fn told(&mut self) {
        self.untold = self.untold.saturating_sub(1);
    }

    /// Notes a card that asks; false when its request needs it no more.
    pub fn asked_by(&mut self, id: &RequestId, message: &MessageId) -> bool {
        if self.message_of(id).is_none() {
            return false;
        }
        let all = self.asking.entry(id.clone()).or_default();
        if !all.contains(message) && all.len() < MAX_ASKING {
            all.push(message.clone());
        }
        true
    }

    pub fn take_asking(&mut self, id: &RequestId) -> Vec<MessageId> {
        self.asking.remove(id).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
