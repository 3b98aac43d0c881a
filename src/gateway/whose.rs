//! Whose a chat message is, where several machines could be meant. Pure.

use crate::feishu::event::{Message, MessageBody};
use crate::sessions::command;

/// How sure a machine is that a message is for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MessageClaim {
    None,
    /// A session it has could be meant; it does nothing right now.
    Perhaps,
    Surely,
}

impl MessageClaim {
    const ALL: [Self; 3] = [Self::None, Self::Perhaps, Self::Surely];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Perhaps => "perhaps",
            Self::Surely => "surely",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|claim| claim.as_str() == text)
    }
}

/// Whom a message goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recipients<T> {
    Nobody,
    One(T),
    /// Several are equally sure; only the person knows.
    Unclear,
}

/// Chooses by what each machine said of a message that is not for all. What
/// none of them claims is for any one of them, and always for the same.
pub fn choose<T: Clone + Ord>(said: &[(MessageClaim, T)]) -> Recipients<T> {
    let Some(strongest) = said.iter().map(|(claim, _)| *claim).max() else {
        return Recipients::Nobody;
    };
    let mut sure: Vec<T> = said
        .iter()
        .filter(|(claim, _)| *claim == strongest)
        .map(|(_, one)| one.clone())
        .collect();
    sure.sort();
    if strongest == MessageClaim::None || sure.len() == 1 {
        Recipients::One(sure.swap_remove(0))
    } else {
        Recipients::Unclear
    }
}

/// `/lock`, alone or as a reply, is for every machine; never taken for a reason.
pub fn asks_to_lock(message: &Message) -> bool {
    matches!(&message.body, MessageBody::Text(text) if command::is_lock(&message.without_mentions(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_surest_gets_it_and_equals_are_asked_about() {
        use MessageClaim::{None, Perhaps, Surely};
        for (said, expected) in [
            (vec![], Recipients::Nobody),
            (vec![(None, 2), (None, 1)], Recipients::One(1)),
            (vec![(None, 1), (Perhaps, 2)], Recipients::One(2)),
            (vec![(Surely, 1), (Perhaps, 2)], Recipients::One(1)),
            (vec![(Perhaps, 1), (Perhaps, 2)], Recipients::Unclear),
            (
                vec![(Surely, 1), (Surely, 2), (None, 3)],
                Recipients::Unclear,
            ),
        ] {
            assert_eq!(choose(&said), expected, "{said:?}");
        }
    }
}
