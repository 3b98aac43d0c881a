//! A card that asks the owner which of a few things is meant, one button each,
//! with a field for words where they are needed; and the same once one was
//! chosen.

use serde_json::{Value, json};

use super::{CardHead, button, card, div, form, note, short, words_field};
use crate::text::{Lang, Text, escape, secrets};
use crate::wording::terminal as words;

const MAX_WORDS: usize = 1_500;
const MAX_TEXT: usize = 6_000;
const MAX_LINES: usize = 12;

/// The name of the field for words.
pub const WORDS_FIELD: &str = "words";

#[derive(Debug, Clone, Copy)]
pub struct ChoiceCard<'a> {
    pub title: &'a Text,
    /// What to know before choosing.
    pub text: Option<&'a Text>,
    pub machine: &'a str,
    /// What the person wrote, where that matters.
    pub wrote: Option<&'a str>,
    /// Whether it has a field for words.
    pub ask: bool,
}

#[derive(Debug, Clone)]
pub struct ChoiceButton {
    pub label: String,
    pub value: Value,
    /// It takes the words of the field along.
    pub takes_words: bool,
}

/// The buttons stand in the order given, those that take words below the field.
pub fn open(choice: &ChoiceCard<'_>, buttons: &[ChoiceButton], lang: Lang) -> Value {
    let mut elements = body(choice, lang);
    let drawn = |(n, pick): (usize, &ChoiceButton)| {
        let label = short(&pick.label, 80);
        let mut drawn = button(&format!("b_pick_{n}"), "default", &label, &pick.value);
        if choice.ask && pick.takes_words {
            drawn["name"] = json!(format!("pick_{n}"));
            drawn["form_action_type"] = json!("submit");
        }
        drawn
    };
    let inside = |button: &ChoiceButton| choice.ask && button.takes_words;
    let all = || buttons.iter().enumerate();
    elements.extend(all().filter(|(_, b)| !inside(b)).map(drawn));
    if choice.ask {
        let field = words_field("i_words", WORDS_FIELD, 6, &words::WORDS_HINT, lang);
        let mut fields = vec![field];
        fields.extend(all().filter(|(_, b)| inside(b)).map(drawn));
        elements.push(form("f_pick", "pick_form", fields));
    }
    frame(choice, &words::CHOOSE, ("blue", "blue"), elements, lang)
}

/// The number in the name of a form's button.
pub fn number_of(name: &str) -> Option<usize> {
    name.strip_prefix("pick_")?.parse().ok()
}

pub fn made(choice: &ChoiceCard<'_>, chosen: &str, lang: Lang) -> Value {
    let mut elements = body(choice, lang);
    let chosen = words::CHOSEN.labels(short(chosen, 80), lang);
    elements.push(note(&chosen));
    frame(choice, &words::CHOSEN, ("grey", "neutral"), elements, lang)
}

fn body(choice: &ChoiceCard<'_>, lang: Lang) -> Vec<Value> {
    let mut elements = Vec::new();
    if let Some(wrote) = choice.wrote {
        elements.push(note(words::TASK.get(lang)));
        elements.push(div(&shown(wrote, MAX_WORDS, MAX_LINES)));
    }
    if let Some(text) = choice.text {
        let text = shown(text.get(lang), MAX_TEXT, 5 * MAX_LINES);
        elements.push(match choice.wrote {
            Some(_) => note(&text),
            None => div(&text),
        });
    }
    elements
}

/// Names of sessions are words of an agent's, and what was written may be too.
fn shown(text: &str, bytes: usize, lines: usize) -> String {
    let found = secrets::find(text);
    let shown = escape::fit(
        text,
        escape::Shape::Code,
        &found,
        escape::Budget::new(bytes, lines),
    );
    match shown.hidden {
        None => shown.head,
        Some(_) => format!("{}…", shown.head.trim_end_matches('\n')),
    }
}

fn frame(
    choice: &ChoiceCard<'_>,
    state: &Text,
    (colour, tag_colour): (&'static str, &'static str),
    elements: Vec<Value>,
    lang: Lang,
) -> Value {
    let head = CardHead {
        colour,
        title: choice.title.get(lang),
        tag: state.get(lang),
        tag_colour,
        place: &short(choice.machine, 80),
    };
    card(&head, elements, lang)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{actions, read};
    use super::super::{MAX_CARD, size};
    use super::*;

    fn buttons(count: usize) -> Vec<ChoiceButton> {
        let one = |n: usize| ChoiceButton {
            label: format!("project-{n}"),
            value: json!({"action": "pick", "pick": n}),
            takes_words: n > 0,
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn each_choice_is_a_button_and_what_was_chosen_has_none() {
        let wrote = format!("run the tests {}", "x\n".repeat(90_000));
        let choice = ChoiceCard {
            title: &words::PROJECT_TITLE,
            text: None,
            machine: "mbp-lin",
            wrote: Some(&wrote),
            ask: false,
        };
        let card = open(&choice, &buttons(30), Lang::Zh);
        assert!(size(&card) <= MAX_CARD, "{}", size(&card));
        assert_eq!(actions(&card).len(), 30);
        assert!(read(&card).contains("run the tests"));
        let done = made(&choice, "project-7", Lang::En);
        assert!(actions(&done).is_empty());
        assert!(read(&done).contains("Chosen: project-7"));
    }

    #[test]
    fn only_what_takes_words_stands_in_the_form() {
        let choice = ChoiceCard {
            title: &words::PROJECT_TITLE,
            text: None,
            machine: "mbp-lin",
            wrote: None,
            ask: true,
        };
        let card = open(&choice, &buttons(3), Lang::En);
        let form = card["body"]["elements"].as_array().unwrap().last().unwrap();
        assert_eq!(form["elements"].as_array().unwrap().len(), 3, "{form}");
        assert_eq!(form["elements"][0]["name"], WORDS_FIELD);
        assert_eq!(
            number_of(form["elements"][1]["name"].as_str().unwrap()),
            Some(1)
        );
        assert_eq!(number_of("submit_allow"), None);
    }
}
