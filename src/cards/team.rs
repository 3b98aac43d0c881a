//! The cards a gateway draws itself: rows of words, each with a button or
//! without. Pure.

use serde_json::Value;

use super::{CardHead, button, card, confirm, div, short};
use crate::text::escape::{Shape, visible};
use crate::text::{Lang, Text};
use crate::wording::team as words;

/// More rows than this are not drawn.
pub const MAX_ROWS: usize = 16;
const MAX_TEXT: usize = 400;

/// Some words, and what can be done about them.
#[derive(Debug, Clone)]
pub struct Row {
    pub text: Text,
    pub button: Option<TeamButton>,
}

#[derive(Debug, Clone)]
pub struct TeamButton {
    pub label: Text,
    pub value: Value,
    /// Whether it takes something away.
    pub takes: bool,
    /// What is asked before it counts.
    pub sure: Option<(Text, Text)>,
}

/// How a card looks from afar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    Asks,
    Done,
    Over,
}

pub fn draw(title: &Text, mood: Mood, rows: &[Row], lang: Lang) -> Value {
    let mut elements = Vec::new();
    for (n, row) in rows.iter().take(MAX_ROWS).enumerate() {
        elements.push(div(&said(row.text.get(lang))));
        elements.extend(row.button.as_ref().map(|button| drawn(n, button, lang)));
    }
    let (colour, tag_colour) = match mood {
        Mood::Asks => ("blue", "blue"),
        Mood::Done => ("green", "green"),
        Mood::Over => ("grey", "neutral"),
    };
    let head = CardHead {
        colour,
        title: title.get(lang),
        tag: words::TEAM.get(lang),
        tag_colour,
        place: words::GATEWAY.get(lang),
    };
    card(&head, elements, lang)
}

fn drawn(n: usize, asked: &TeamButton, lang: Lang) -> Value {
    let kind = if asked.takes { "danger" } else { "primary" };
    let label = short(asked.label.get(lang), 80);
    let mut drawn = button(&format!("b_team_{n}"), kind, &label, &asked.value);
    if let Some((title, text)) = &asked.sure {
        drawn["confirm"] = confirm(title, &said(text.get(lang)), lang);
    }
    drawn
}

/// Names are what machines call themselves, so nothing may hide in them.
fn said(text: &str) -> String {
    let lines = text.lines().map(|line| visible(line, Shape::Name));
    let text = lines.collect::<Vec<_>>().join("\n");
    super::cut(text, MAX_TEXT)
}

#[cfg(test)]
mod tests {
    use super::super::sample::read;
    use super::super::{MAX_CARD, size};
    use super::*;
    use serde_json::json;

    #[test]
    fn a_card_of_many_long_names_fits_and_hides_nothing() {
        let name = format!("desk\u{202e}{}", "x".repeat(5_000));
        let row = Row {
            text: words::machine(&name, &words::ONLINE, "id", "1"),
            button: Some(TeamButton {
                label: words::FORGET.clone(),
                value: json!({"team": "forget", "key": "U".repeat(56)}),
                takes: true,
                sure: Some((words::FORGET_SURE.clone(), words::forget_what("desk"))),
            }),
        };
        let rows = vec![row; 100];
        let card = draw(&words::MACHINES, Mood::Asks, &rows, Lang::En);
        assert!(size(&card) <= MAX_CARD, "{}", size(&card));
        assert!(!card.to_string().contains('\u{202e}'));
        // A lock screen does not say the same thing twice.
        let summary = card["config"]["summary"]["content"].as_str().unwrap();
        assert_eq!(summary.matches("Your machines").count(), 1, "{summary}");
        let seen = read(&card);
        assert!(seen.contains("desk") && seen.contains("Forget"), "{seen}");
    }
}
