//! What lately ended, and what cards were lately changed to: for a late tap, an
//! undo, or an edit that is made again.

use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::approvals::Settled;
use crate::approvals::desk::Delivery;
use crate::approvals::request::weight;
use crate::cards::ending;
use crate::ids::{MessageId, RequestId};
use crate::text::Lang;

/// A card as Feishu takes it: as text, because as a tree it weighs five times
/// as much, and shared by all who still need it.
pub type CardText = Arc<str>;

/// Ended requests whose cards can be drawn again.
const MAX_DECIDED: usize = 256;
pub const MAX_FACES: u16 = 256;
/// Input beyond this is not held after the end.
const MAX_INPUT: usize = 64 << 10;

/// A card's face: as people see it, and as it is kept on disk, where of the tool
/// input no more than the title stays after the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Face {
    pub shown: CardText,
    pub kept: CardText,
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

/// A request that has ended, as far as its card needs it.
#[derive(Debug, Clone)]
pub struct Decided {
    pub settled: Settled,
    pub delivery: Delivery,
    /// The title alone, where the input was too large to be held for a late tap.
    pub title: Option<String>,
    /// Where its card was when it ended: a tap may be there before the send
    /// has returned, and the store learns of the message later.
    pub message: Option<MessageId>,
}

#[derive(Debug)]
pub(super) struct Memory {
    lang: Lang,
    decided: VecDeque<Decided>,
    /// With the version of the edit, as far as it is on disk.
    faces: VecDeque<(MessageId, Option<i64>, CardText)>,
}

impl Memory {
    pub(super) fn new(lang: Lang) -> Self {
        Self {
            lang,
            decided: VecDeque::new(),
            faces: VecDeque::new(),
        }
    }

    /// The newest that is known of this request.
    pub(super) fn decided(&self, id: &RequestId) -> Option<&Decided> {
        let mut newest_first = self.decided.iter().rev();
        newest_first.find(|known| known.settled.request.id == *id)
    }

    /// Large input is let go: a late tap sees the card as it was last drawn.
    pub(super) fn end(&mut self, mut settled: Settled, delivery: Delivery) {
        let is_large = weight(&settled.request.input) > MAX_INPUT;
        let title = is_large.then(|| ending::kept_title(&settled.request, self.lang));
        if is_large {
            settled.request = Arc::new(settled.request.with_input(Value::Null));
        }
        let before = self.decided(&settled.request.id);
        let message = before.and_then(|known| known.message.clone());
        self.decided.push_back(Decided {
            settled,
            delivery,
            title,
            message,
        });
        if self.decided.len() > MAX_DECIDED {
            self.decided.pop_front();
        }
    }

    pub(super) fn place(&mut self, id: &RequestId, message: &MessageId) {
        let mut newest_first = self.decided.iter_mut().rev();
        if let Some(known) = newest_first.find(|known| known.settled.request.id == *id) {
            known.message = Some(message.clone());
        }
    }

    /// What a message was last changed to.
    pub(super) fn face(&self, message: &MessageId) -> Option<&CardText> {
        let mut newest_first = self.faces.iter().rev();
        let (_, _, card) = newest_first.find(|(of, _, _)| of == message)?;
        Some(card)
    }

    /// What this very edit of a message showed.
    pub(super) fn face_of(&self, message: &MessageId, version: i64) -> Option<&CardText> {
        let mut newest_first = self.faces.iter().rev();
        let (_, of, card) = newest_first.find(|(of, _, _)| of == message)?;
        (*of == Some(version)).then_some(card)
    }

    /// What a card is to show; false when a newer edit has said otherwise. One
    /// that is not on disk counts as the newest.
    pub(super) fn show(
        &mut self,
        message: MessageId,
        version: Option<i64>,
        card: CardText,
    ) -> bool {
        let mut known = self.faces.iter();
        if version.is_some() && known.any(|(of, newer, _)| *of == message && *newer > version) {
            return false;
        }
        self.faces.retain(|(of, _, _)| *of != message);
        self.faces.push_back((message, version, card));
        if self.faces.len() > usize::from(MAX_FACES) {
            self.faces.pop_front();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::cards::book::bench::{id, settled};

    #[test]
    fn an_older_edit_that_comes_late_is_not_what_the_card_shows() {
        let mut memory = Memory::new(Lang::En);
        let message = MessageId::parse("om_1").unwrap();
        let mut told = |version, face: &str| {
            memory.show(message.clone(), version, face.into());
            memory.face(&message).unwrap().to_string()
        };
        assert_eq!(told(Some(2), "ran"), "ran");
        assert_eq!(told(Some(1), "denied"), "ran");
        assert_eq!(told(Some(3), "undone"), "undone");
        assert_eq!(told(Some(3), "in full"), "in full", "the same edit");
        assert_eq!(told(None, "not on disk"), "not on disk");
    }

    #[test]
    fn a_face_is_that_of_its_own_edit_and_the_oldest_go() {
        let mut memory = Memory::new(Lang::En);
        let message = |n: u16| MessageId::parse(&format!("om_{n}")).unwrap();
        assert!(memory.show(message(0), Some(1), "first".into()));
        assert_eq!(memory.face_of(&message(0), 1).unwrap().as_ref(), "first");
        assert_eq!(memory.face_of(&message(0), 2), None);
        for n in 1..=MAX_FACES {
            assert!(memory.show(message(n), Some(1), "face".into()));
        }
        assert_eq!(memory.face(&message(0)), None);
        assert!(memory.face(&message(1)).is_some());
        assert_eq!(memory.faces.len(), usize::from(MAX_FACES));
    }

    #[test]
    fn input_is_held_up_to_its_bound_and_so_are_the_endings() {
        let mut memory = Memory::new(Lang::En);
        let most = MAX_INPUT - weight(&Value::String(String::new()));
        for (n, length, is_held) in [(1, most, true), (2, most + 1, false)] {
            let mut ended = settled(n);
            let input = Value::String("x".repeat(length));
            ended.request = Arc::new(ended.request.with_input(input));
            memory.end(ended, Delivery::Confirmed);
            let known = memory.decided(&id(n)).unwrap();
            assert_eq!(known.settled.request.input.is_string(), is_held);
            assert_eq!(known.title.is_none(), is_held);
        }
        for n in 3..=MAX_DECIDED {
            memory.end(settled(n), Delivery::Confirmed);
        }
        assert!(memory.decided(&id(1)).is_some());
        memory.end(settled(MAX_DECIDED + 1), Delivery::Confirmed);
        assert!(memory.decided(&id(1)).is_none());
        assert!(memory.decided(&id(2)).is_some());
    }
}
