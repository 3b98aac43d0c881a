//! What a card is called: by Feishu's answer to the send, or for the time until
//! then by a tap, though not in a team. The network may alter what a tap says:
//! it is a claim, and the answer has the last word.

use std::time::{Duration, Instant};

use super::places::{Card, Place};
use super::{CardBook, CardEffect, CardKey, Keep, KeepOf};
use crate::ids::{MessageId, RequestId};

impl<P: Default> CardBook<P> {
    /// A tap named a card before Feishu's answer to the send did; false when
    /// the name is another's.
    pub fn adopt(&mut self, id: &RequestId, message: &MessageId) -> bool {
        if self.names.get(message).is_some_and(|of| of != id) {
            return false;
        }
        if let Some(card) = self.cards.get_mut(id)
            && card.is_unsent()
            && card.claimed.is_none()
        {
            card.claimed = Some(message.clone());
            card.in_doubt = true;
            self.names.insert(message.clone(), id.clone());
            if let Some(face) = card.wanted.clone() {
                self.show(id, face);
            }
        }
        true
    }

    /// A tap that names this message is on this request's card, whatever became
    /// of the name on the way.
    pub fn tapped_on(&mut self, id: &RequestId, named: &MessageId, now: Instant) {
        if let Some(card) = self.cards.get_mut(id)
            && let Place::Ended { name: None, .. } = card.place
        {
            card.claimed = Some(named.clone());
            return;
        }
        let known = self.message_of(id);
        let known = known.or_else(|| self.memory.decided(id)?.message.as_ref());
        if let Some(message) = known.cloned() {
            self.tapped(&message, now);
        }
    }

    pub(super) fn name(&mut self, id: &RequestId, message: &MessageId, wait: Duration) {
        let Some(card) = self.cards.get_mut(id) else {
            return;
        };
        match &mut card.place {
            Place::Ended { name: Some(_), .. } => {}
            Place::Ended { name, .. } => {
                *name = Some((message.clone(), wait));
                if let Some(claimed) = card.claimed.take() {
                    self.taps.were_on(&claimed, message);
                }
                self.nameless.remove(id);
                self.memory.place(id, message);
                self.keep_ending(id, message.clone(), wait);
            }
            Place::Held { .. } | Place::Left | Place::Sending { .. } | Place::Sent(_) => {
                self.rename(id, message);
            }
        }
    }

    fn rename(&mut self, id: &RequestId, message: &MessageId) {
        let Some(mut card) = self.remove(id) else {
            return;
        };
        card.place = Place::Sent(message.clone());
        let (wanted, claimed) = (card.wanted.take(), card.claimed.take());
        self.names.insert(message.clone(), id.clone());
        self.cards.insert(id.clone(), card);
        if let Some(claimed) = &claimed {
            self.taps.were_on(claimed, message);
        }
        if let Some(face) = wanted.filter(|_| claimed.as_ref() != Some(message)) {
            self.show(id, face);
        }
    }

    pub(super) fn keep_ending(&mut self, id: &RequestId, message: MessageId, wait: Duration) {
        if let Some(card) = self.cards.get(id)
            && let Place::Ended { face, .. } = &card.place
        {
            self.effects.push_back(CardEffect::Keep(Keep {
                request: id.clone(),
                message,
                face: face.clone(),
                of: KeepOf::Ended { wait },
            }));
        }
    }

    /// What a tap called a card that the next run may not look for.
    pub(super) fn by_its_claim(&mut self, id: &RequestId, card: &Card<P>) -> Option<CardKey> {
        let claimed = card.claimed.clone()?;
        self.memory.place(id, &claimed);
        Some(CardKey::Message(claimed))
    }
}

#[cfg(test)]
mod tests;
