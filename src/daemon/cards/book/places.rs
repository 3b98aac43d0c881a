//! How a card gets from one place to the next: it is held, set out, given up,
//! and taken off the book.

use std::time::{Duration, Instant};

use super::nameless::Turn;
use super::{CardBook, CardEffect, CardKey, Face, LineState, Sending};
use crate::ids::{MessageId, RequestId};
use crate::text::Text;

/// A request's card, until the request has ended and the card has a name.
/// `P` is what whoever sends it needs to know besides.
#[derive(Debug)]
pub(super) struct Card<P> {
    pub(super) place: Place,
    pub(super) sending: Option<Sending>,
    /// What a tap called it before Feishu's answer to the send did.
    pub(super) claimed: Option<MessageId>,
    /// Whether Feishu may have it.
    pub(super) in_doubt: bool,
    /// When it set out, and for how long Feishu may have known its key by then.
    pub(super) set_out: Option<(Instant, Duration)>,
    /// What it is to show once it has a name.
    pub(super) wanted: Option<Face>,
    pub(super) post: P,
}

impl<P> Card<P> {
    pub(super) fn new(place: Place, in_doubt: bool, post: P) -> Self {
        Self {
            place,
            sending: None,
            claimed: None,
            in_doubt,
            set_out: None,
            wanted: None,
            post,
        }
    }

    /// What it is called while its request waits.
    pub(super) fn message(&self) -> Option<&MessageId> {
        match &self.place {
            Place::Sent(message) => Some(message),
            Place::Held { .. } | Place::Left | Place::Sending { .. } => self.claimed.as_ref(),
            Place::Ended { .. } => None,
        }
    }

    /// Whether Feishu may have it under a name that nod does not know.
    pub(super) fn is_unsent(&self) -> bool {
        match self.place {
            Place::Sending { .. } => true,
            Place::Left => self.claimed.is_none(),
            Place::Held { .. } => self.in_doubt,
            Place::Sent(_) | Place::Ended { .. } => false,
        }
    }
}

#[derive(Debug)]
pub(super) enum Place {
    /// Until its time, or between two tries.
    Held {
        not_before: Instant,
        /// When it is looked at.
        due: Instant,
        /// A newer connection than this is as good as the time.
        connects: Option<u64>,
    },
    /// A card of the last run, or one that is given up; nobody sends it.
    Left,
    Sending {
        connects: u64,
    },
    Sent(MessageId),
    /// The request ended before its card had a name.
    Ended {
        face: Face,
        /// Its edit is being kept under this name.
        name: Option<(MessageId, Duration)>,
        /// Its key is kept on disk.
        is_kept: bool,
    },
}

impl<P: Default> CardBook<P> {
    pub(super) fn look_at(&mut self, id: &RequestId, now: Instant) {
        let Some(card) = self.cards.get_mut(id) else {
            return;
        };
        let (
            Place::Held {
                not_before,
                connects,
                ..
            },
            Some(sending),
        ) = (&card.place, card.sending)
        else {
            return;
        };
        let (not_before, connects) = (*not_before, *connects);
        let is_renewed = self.line.is_up() && connects.is_some_and(|it| self.line.connects > it);
        if now < not_before && !is_renewed {
            return self.hold(id, not_before, connects);
        }
        if !sending.needs_line {
            self.remove(id);
            self.effects.push_back(CardEffect::Send(id.clone()));
            return;
        }
        match &self.line.state {
            LineState::Up => {
                card.set_out.get_or_insert((now, Duration::ZERO));
                card.place = Place::Sending {
                    connects: self.line.connects,
                };
                self.effects.push_back(CardEffect::Send(id.clone()));
            }
            LineState::Away(_) if now < sending.latest => {
                card.place = Place::Held {
                    not_before,
                    due: sending.latest,
                    connects,
                };
                self.due.insert((sending.latest, id.clone()));
            }
            LineState::Away(why) | LineState::ShutOut(why) => {
                let why = why.clone();
                self.give_up(id, why);
            }
        }
    }

    /// What was under way may hang for long in a line that is gone.
    pub(super) fn send_anew(&mut self, now: Instant) {
        let connects = self.line.connects;
        let mut hanging: Vec<_> = self
            .cards
            .iter()
            .filter(
                |(_, card)| matches!(card.place, Place::Sending { connects: of } if of < connects),
            )
            .map(|(id, _)| id.clone())
            .collect();
        hanging.sort_unstable();
        for id in hanging {
            if let Some(card) = self.cards.get_mut(&id) {
                card.in_doubt = true;
            }
            self.hold(&id, now, None);
        }
    }

    pub(super) fn hold(&mut self, id: &RequestId, not_before: Instant, connects: Option<u64>) {
        if let Some(card) = self.cards.get_mut(id) {
            card.place = Place::Held {
                not_before,
                due: not_before,
                connects,
            };
            self.due.insert((not_before, id.clone()));
        }
    }

    /// A card that may be there keeps its place, so that its ending is shown
    /// when it is found. One that was tapped is there.
    pub(super) fn give_up(&mut self, id: &RequestId, why: Text) {
        match self.cards.get_mut(id) {
            Some(card) if card.in_doubt => {
                card.place = Place::Left;
                if card.claimed.is_some() {
                    return;
                }
            }
            Some(_) | None => drop(self.remove(id)),
        }
        self.effects.push_back(CardEffect::GiveUp(id.clone(), why));
    }

    pub(super) fn look_for_a_name(&mut self, now: Instant) {
        while let Some(turn) = self.nameless.next(now) {
            match turn {
                Turn::TooOld(id) => self.strike_off(&id),
                Turn::Look(id) => match self.face_to_come(&id).cloned() {
                    Some(face) => self.effects.push_back(CardEffect::Look(id, face)),
                    None => self.nameless.looked(),
                },
            }
        }
    }

    /// A card without a name is off the book, and its key off the disk.
    pub(super) fn strike_off(&mut self, id: &RequestId) {
        if let Some(card) = self.remove(id)
            && let Place::Ended { is_kept: true, .. } = card.place
        {
            let key = CardKey::Sending(id.clone());
            self.effects.push_back(CardEffect::StrikeOff(key, None));
        }
    }

    pub(super) fn remove(&mut self, id: &RequestId) -> Option<Card<P>> {
        let card = self.cards.remove(id)?;
        match &card.place {
            Place::Held { due, .. } => {
                self.due.remove(&(*due, id.clone()));
            }
            Place::Ended { .. } => self.nameless.remove(id),
            Place::Left | Place::Sending { .. } | Place::Sent(_) => {}
        }
        if let Some(message) = card.message()
            && self.names.get(message) == Some(id)
        {
            self.names.remove(message);
        }
        Some(card)
    }
}

#[cfg(test)]
mod tests;
