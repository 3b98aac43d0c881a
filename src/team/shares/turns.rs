//! When one chat may be written to, and one message edited, whichever machine
//! asks: Feishu counts both by the second. Several people write in a group, so
//! nobody takes all of it. Where a message stands, Feishu itself has said. Pure.

use super::{CallWish, SECOND, Window};
use crate::bounded::Bounded;
use crate::clock::Millis;

const MAX_PLACES: usize = 4_096;
const MAX_WINDOWS: usize = 4_096;

#[derive(Debug)]
pub(super) struct ShareTurns {
    /// What all gateways together write to one chat in any second.
    rate: usize,
    windows: Bounded<String, Option<Window>>,
    /// The chat of a message or of a person, and since when that is known.
    chats: Bounded<String, (Millis, String)>,
}

impl ShareTurns {
    pub(super) fn new(rate: usize) -> Self {
        Self {
            rate,
            windows: Bounded::new(MAX_WINDOWS),
            chats: Bounded::new(MAX_PLACES),
        }
    }

    pub(super) fn stands(&mut self, what: &str, chat: &str, now: Millis) {
        let known = self.chats.entry(what.to_owned(), |(since, _)| *since);
        *known = (now, chat.to_owned());
    }

    /// How long this one has to wait, where so many gateways write.
    pub(super) fn wait(
        &mut self,
        wish: &CallWish<'_>,
        gateways: usize,
        now: Millis,
    ) -> Option<Millis> {
        let (spot, is_own) = self.spot(wish)?;
        let most = (self.rate / gateways.max(1)).max(1);
        match self.window(spot, now) {
            Some(window) if is_own => window.wait_alone(most, now),
            Some(window) => window.wait(wish.who, most, now),
            None => Some(SECOND),
        }
    }

    pub(super) fn note(&mut self, wish: &CallWish<'_>, now: Millis) {
        if let Some((spot, _)) = self.spot(wish)
            && let Some(window) = self.window(spot, now)
        {
            window.note(wish.who, now);
        }
    }

    /// What Feishu counts for, and whether nobody else writes there: a message
    /// that is edited, or a chat. A message that nobody has told of stands in
    /// its owner's own, as most do.
    fn spot(&mut self, wish: &CallWish<'_>) -> Option<(String, bool)> {
        if let Some(message) = wish.edits {
            return Some((message.to_owned(), true));
        }
        let to = wish.writes?;
        let owner = wish.who.as_str();
        let own = self.chat(owner).unwrap_or_else(|| owner.to_owned());
        let chat = match self.chat(to) {
            Some(chat) => chat,
            None if to.starts_with("oc_") => to.to_owned(),
            None => own.clone(),
        };
        let is_own = chat == own;
        Some((chat, is_own))
    }

    fn chat(&mut self, of: &str) -> Option<String> {
        let known = self.chats.get_mut(&of.to_owned())?;
        Some(known.1.clone())
    }

    fn window(&mut self, spot: String, now: Millis) -> Option<&mut Window> {
        let is_idle = |window: &Option<Window>| {
            let last = window.as_ref().and_then(|window| window.log.back());
            last.is_none_or(|(at, _)| at + SECOND <= now)
        };
        let rate = self.rate;
        let window = self.windows.live(spot, is_idle)?;
        Some(window.get_or_insert_with(|| Window::new(SECOND, rate)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::subjects::Owner;

    const RATE: usize = 4;

    fn person(n: usize) -> Owner {
        Owner::parse(&format!("ou_{n}")).unwrap()
    }

    fn to<'a>(who: &'a Owner, writes: &'a str) -> CallWish<'a> {
        CallWish {
            who,
            kind: "send",
            writes: Some(writes),
            edits: None,
            bytes: 1,
        }
    }

    /// How many of those that ask at once are let through, and how long the
    /// next has to wait.
    fn burst(
        turns: &mut ShareTurns,
        wish: &CallWish<'_>,
        gateways: usize,
        now: Millis,
    ) -> (usize, Millis) {
        for made in 0..100 {
            if let Some(wait) = turns.wait(wish, gateways, now) {
                return (made, wait);
            }
            turns.note(wish, now);
        }
        panic!("nothing was put off");
    }

    #[test]
    fn a_person_has_four_messages_a_second_whatever_they_are_called() {
        let (who, mut turns) = (person(1), ShareTurns::new(RATE));
        assert_eq!(burst(&mut turns, &to(&who, "ou_1"), 1, 0), (4, SECOND));
        // A reply to a message that nobody knows is to the same person.
        assert_eq!(burst(&mut turns, &to(&who, "om_x"), 1, 400).0, 0);
        assert_eq!(burst(&mut turns, &to(&who, "om_x"), 1, 1_000).0, 4);
        turns.stands("ou_1", "oc_own", 1_000);
        turns.stands("om_1", "oc_own", 1_000);
        assert_eq!(burst(&mut turns, &to(&who, "ou_1"), 1, 2_000).0, 4);
        for same in ["om_1", "om_x", "oc_own"] {
            assert_eq!(burst(&mut turns, &to(&who, same), 1, 2_500).0, 0, "{same}");
        }
        // A colleague has his own.
        let other = person(2);
        assert_eq!(burst(&mut turns, &to(&other, "ou_2"), 1, 2_500).0, 4);
    }

    #[test]
    fn in_a_group_nobody_takes_all_of_what_is_for_everybody() {
        let (one, two, mut turns) = (person(1), person(2), ShareTurns::new(RATE));
        turns.stands("om_g", "oc_g", 0);
        assert_eq!(burst(&mut turns, &to(&one, "oc_g"), 1, 0).0, 3);
        assert_eq!(burst(&mut turns, &to(&two, "om_g"), 1, 10).0, 1);
        assert_eq!(burst(&mut turns, &to(&two, "oc_g"), 1, 999).0, 0);
    }

    #[test]
    fn gateways_share_a_chats_second_and_each_has_one_at_least() {
        let who = person(1);
        for gateways in 1..9 {
            let mut turns = ShareTurns::new(RATE);
            let (made, _) = burst(&mut turns, &to(&who, "ou_1"), gateways, 0);
            assert!(made >= 1, "{gateways}");
            assert!(made * gateways <= RATE.max(gateways), "{gateways}");
        }
    }

    #[test]
    fn one_message_is_edited_four_times_a_second_and_others_meanwhile() {
        let (who, mut turns) = (person(1), ShareTurns::new(RATE));
        let edit = |message| CallWish {
            edits: Some(message),
            writes: None,
            ..to(&who, "")
        };
        assert_eq!(burst(&mut turns, &edit("om_1"), 1, 0).0, 4);
        assert_eq!(burst(&mut turns, &edit("om_2"), 1, 0).0, 4);
        assert_eq!(burst(&mut turns, &edit("om_1"), 1, 1_000).0, 4);
    }

    #[test]
    fn memory_is_bounded_and_the_newest_is_known() {
        let (who, mut turns) = (person(1), ShareTurns::new(RATE));
        for n in 0..MAX_PLACES + 100 {
            let now = Millis::try_from(n).unwrap();
            turns.stands(&format!("om_{n}"), "oc_g", now);
        }
        assert_eq!(turns.chats.len(), MAX_PLACES);
        assert_eq!(turns.chat("om_0"), None);
        assert!(turns.chat(&format!("om_{}", MAX_PLACES + 99)).is_some());
        for n in 0..2 * MAX_WINDOWS {
            let chat = format!("oc_{n}");
            let wish = to(&who, &chat);
            let wait = turns.wait(&wish, 1, 0);
            turns.note(&wish, 0);
            assert_eq!(wait.is_some(), n >= MAX_WINDOWS, "{n}");
        }
        assert_eq!(turns.wait(&to(&who, "oc_new"), 1, SECOND), None);
    }
}
