//! Which of several waiting things words are for. In a topic every message
//! replies to the topic's root, so no reply can name a card: the person names
//! what they mean by its number in a list, or by its label.

use std::collections::HashMap;

use super::route::ChatPlace;
use crate::clock::Millis;
use crate::ids::RequestId;

/// A person answers a list within this time, or reads a new one.
const AGE: Millis = 10 * 60_000;
const MAX_PLACES: usize = 64;

/// One thing that waits, as a person may call it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedAsk {
    pub ask: RequestId,
    /// A word or two; empty where there is none.
    pub label: String,
}

/// The lists that were told, by place. What a number meant when it was told
/// is what it means in the answer.
#[derive(Debug, Default)]
pub struct ToldLists(HashMap<ChatPlace, (Millis, Vec<ListedAsk>)>);

impl ToldLists {
    pub fn note(&mut self, place: ChatPlace, list: Vec<ListedAsk>, now: Millis) {
        self.0.retain(|_, (at, _)| now - *at < AGE);
        if self.0.len() < MAX_PLACES || self.0.contains_key(&place) {
            self.0.insert(place, (now, list));
        }
    }

    pub fn at(&self, place: &ChatPlace, now: Millis) -> Option<&[ListedAsk]> {
        let (at, list) = self.0.get(place)?;
        (now - at < AGE).then_some(list)
    }
}

/// The thing that a text names first, and the words behind the name. A name
/// without words names nothing.
pub fn named<'a>(text: &'a str, list: &[ListedAsk]) -> Option<(RequestId, &'a str)> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits > 0 {
        let number: usize = text[..digits].parse().ok()?;
        let one = list.get(number.checked_sub(1)?)?;
        return Some((one.ask.clone(), words(&text[digits..])?));
    }
    let mut fitting = list.iter().filter_map(|one| {
        let length = one.label.len();
        let (head, rest) = text.split_at_checked(length)?;
        let fits = length > 0 && head.to_lowercase() == one.label.to_lowercase();
        fits.then_some((one, words(rest)?))
    });
    let (one, rest) = fitting.next()?;
    fitting.next().is_none().then(|| (one.ask.clone(), rest))
}

/// What follows a name, behind something that ends it.
fn words(rest: &str) -> Option<&str> {
    let ends = |c: char| c.is_whitespace() || ".:,)。：，、）".contains(c);
    let behind = rest.trim_start_matches(ends);
    (behind.len() < rest.len() && !behind.is_empty()).then_some(behind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ChatId;

    fn list() -> Vec<ListedAsk> {
        let one = |id: &str, label: &str| ListedAsk {
            ask: RequestId::parse(id).unwrap(),
            label: label.to_owned(),
        };
        vec![one("r1", ""), one("r2", "Store"), one("r3", "数据库")]
    }

    fn picked(text: &str) -> Option<(String, &str)> {
        named(text, &list()).map(|(ask, rest)| (ask.to_string(), rest))
    }

    #[test]
    fn a_number_or_a_label_names_one_and_the_rest_is_for_it() {
        for (text, ask, rest) in [
            ("1 not now", "r1", "not now"),
            (" 2: Redis", "r2", "Redis"),
            ("2、用文件", "r2", "用文件"),
            ("store: Redis", "r2", "Redis"),
            ("数据库 第二个", "r3", "第二个"),
        ] {
            assert_eq!(picked(text), Some((ask.to_owned(), rest)), "{text}");
        }
    }

    #[test]
    fn what_names_nothing_or_says_nothing_is_for_nobody() {
        for text in [
            "",
            "2",
            "2 ",
            "0 no",
            "4 no",
            "2nd thoughts",
            "Store",
            "Stores: x",
            "no",
        ] {
            assert_eq!(picked(text), None, "{text}");
        }
        let mut twice = list();
        twice[0].label = "Store".to_owned();
        assert_eq!(named("Store: Redis", &twice), None, "two are called so");
    }

    #[test]
    fn lists_age_and_are_bounded() {
        let place = |n: usize| ChatPlace {
            chat: ChatId::parse(&format!("oc_{n}")).unwrap(),
            thread: None,
        };
        let mut told = ToldLists::default();
        for n in 0..=MAX_PLACES {
            told.note(place(n), list(), 0);
        }
        assert!(told.at(&place(0), AGE - 1).is_some());
        assert!(told.at(&place(MAX_PLACES), 1).is_none(), "no room");
        assert!(told.at(&place(0), AGE).is_none(), "too old");
        told.note(place(MAX_PLACES), list(), AGE);
        assert!(told.at(&place(MAX_PLACES), AGE).is_some());
    }
}
