//! Who owns this nod, when no scan told: everybody who writes to the bot is
//! shown a code of their own in the chat, and the person at the terminal types
//! the one they see. A code never travels the other way: whoever can write to
//! the bot could otherwise claim the terminal. Pure.

use std::time::{Duration, Instant};

use crate::ids::UserId;

/// One household of phones; more are strangers who found the bot.
const MAX_PEOPLE: usize = 16;
const MAX_TRIES: u32 = 5;
pub(super) const CODE_LIFE: Duration = Duration::from_mins(10);

#[derive(Debug, Default)]
pub(super) struct Pairing {
    shown: Vec<ShownCode>,
    wrong: u32,
}

#[derive(Debug)]
struct ShownCode {
    code: String,
    who: UserId,
    at: Instant,
}

/// Why a typed code names nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CodeRefusal {
    /// Another try is left.
    Wrong,
    /// All codes are void; whoever writes again gets a new one.
    TooMany,
}

impl Pairing {
    /// The code to show to `who`, made from `chance` where they have none.
    /// `None` when too many people have one already.
    pub(super) fn code_for(&mut self, who: &UserId, chance: u32, now: Instant) -> Option<String> {
        self.shown
            .retain(|shown| now.duration_since(shown.at) < CODE_LIFE);
        if let Some(shown) = self.shown.iter().find(|shown| shown.who == *who) {
            return Some(shown.code.clone());
        }
        if self.shown.len() >= MAX_PEOPLE {
            return None;
        }
        let taken = |code: &String| self.shown.iter().any(|shown| shown.code == *code);
        let code = (0..1_000_000)
            .map(|step| format!("{:06}", chance.wrapping_add(step) % 1_000_000))
            .find(|code| !taken(code))?;
        self.shown.push(ShownCode {
            code: code.clone(),
            who: who.clone(),
            at: now,
        });
        Some(code)
    }

    /// Whose code was typed.
    pub(super) fn typed(&mut self, text: &str, now: Instant) -> Result<UserId, CodeRefusal> {
        let digits: String = text.chars().filter(char::is_ascii_digit).collect();
        let found = self
            .shown
            .iter()
            .find(|shown| shown.code == digits && now.duration_since(shown.at) < CODE_LIFE);
        if let Some(shown) = found {
            return Ok(shown.who.clone());
        }
        self.wrong += 1;
        if self.wrong < MAX_TRIES {
            return Err(CodeRefusal::Wrong);
        }
        self.wrong = 0;
        self.shown.clear();
        Err(CodeRefusal::TooMany)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> UserId {
        UserId::parse(name).unwrap()
    }

    #[test]
    fn the_typed_code_names_the_person_it_was_shown_to() {
        let (mut pairing, now) = (Pairing::default(), Instant::now());
        let mine = pairing.code_for(&user("ou_me"), 123, now).unwrap();
        let theirs = pairing.code_for(&user("ou_stranger"), 123, now).unwrap();
        assert_eq!(mine, "000123");
        assert_ne!(mine, theirs);
        assert_eq!(pairing.code_for(&user("ou_me"), 9, now), Some(mine));
        assert_eq!(pairing.typed(" 000 123\n", now), Ok(user("ou_me")));
    }

    #[test]
    fn guessing_voids_every_code() {
        let (mut pairing, now) = (Pairing::default(), Instant::now());
        let code = pairing.code_for(&user("ou_me"), 500_000, now).unwrap();
        for _ in 1..MAX_TRIES {
            assert_eq!(pairing.typed("111111", now), Err(CodeRefusal::Wrong));
        }
        assert_eq!(pairing.typed("", now), Err(CodeRefusal::TooMany));
        assert_eq!(pairing.typed(&code, now), Err(CodeRefusal::Wrong));
        assert!(pairing.code_for(&user("ou_me"), 7, now).is_some());
    }

    #[test]
    fn codes_age_and_are_few() {
        let (mut pairing, now) = (Pairing::default(), Instant::now());
        for n in 0..MAX_PEOPLE {
            let who = user(&format!("ou_{n}"));
            assert!(pairing.code_for(&who, u32::MAX, now).is_some());
        }
        assert_eq!(pairing.code_for(&user("ou_late"), 1, now), None);
        let later = now + CODE_LIFE;
        let code = pairing.code_for(&user("ou_late"), 1, later).unwrap();
        assert_eq!(pairing.typed(&code, later), Ok(user("ou_late")));
        assert_eq!(
            pairing.typed(&code, later + CODE_LIFE),
            Err(CodeRefusal::Wrong)
        );
    }
}
