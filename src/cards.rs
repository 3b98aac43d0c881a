//! The cards a person in Feishu sees, as JSON 2.0. Text an agent wrote stands
//! in `plain_text` nodes only, with nothing hidden in it and nothing parsed.
//! Pure: what is true is an argument, what comes out is a value.

use serde_json::{Value, json};

use crate::approvals::request::{Millis, Origin};
use crate::wording::{Lang, Text};
use escape::{Budget, Shape};

mod body;
pub mod danger;
pub mod ending;
pub mod escape;
pub mod linked;
pub mod markdown;
pub mod notice;
pub mod permission;
pub mod progress;
pub mod question;
pub mod secrets;

/// What a button asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    Allow,
    Always,
    Session,
    Deny,
    Interrupt,
    Undo,
}

impl Action {
    pub const ALL: [Self; 6] = [
        Self::Allow,
        Self::Always,
        Self::Session,
        Self::Deny,
        Self::Interrupt,
        Self::Undo,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Always => "always",
            Self::Session => "session",
            Self::Deny => "deny",
            Self::Interrupt => "interrupt",
            Self::Undo => "undo",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == text)
    }

    /// The button's `name` in a form; some clients return it without a value.
    pub const fn button(self) -> &'static str {
        match self {
            Self::Allow => "submit_allow",
            Self::Always => "submit_always",
            Self::Session => "submit_session",
            Self::Deny => "submit_deny",
            Self::Interrupt => "submit_interrupt",
            Self::Undo => "submit_undo",
        }
    }
}

/// The name of the field a refusal's reason is typed into.
pub const REASON_FIELD: &str = "reason";

/// Feishu takes 30 KB; the difference pays for how the card is wrapped.
pub const MAX_CARD: usize = 28 * 1024;

/// What is left for the agent's text, widest first: the first card that fits
/// is sent.
const BUDGETS: [Budget; 4] = [
    budget(10 * 1024, 150),
    budget(4 * 1024, 80),
    budget(1024, 30),
    budget(256, 12),
];

const fn budget(bytes: usize, lines: usize) -> Budget {
    Budget { bytes, lines }
}

/// The first of the cards, from roomy to tight, that Feishu would take.
fn fitting(build: impl Fn(Budget) -> Value) -> Value {
    let [roomy, tighter @ ..] = BUDGETS;
    let mut card = build(roomy);
    for budget in tighter {
        if size(&card) <= MAX_CARD {
            break;
        }
        card = build(budget);
    }
    card
}

/// Bytes of the card as it is sent.
fn size(card: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, card) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}

/// What stands above a card and in the list of chats: our words, and names of
/// places.
struct Head<'a> {
    colour: &'static str,
    title: &'a Text,
    tag: &'a Text,
    tag_colour: &'static str,
    place: &'a str,
}

fn card(head: &Head<'_>, elements: Vec<Value>, lang: Lang) -> Value {
    let title = head.title.get(lang);
    let summary = format!("{title} · {}", head.place);
    let mut card = json!({
        "schema": "2.0",
        "config": {
            "update_multi": true,
            "enable_forward": false,
            "width_mode": "fill",
            "summary": {"content": summary},
        },
        "header": {
            "template": head.colour,
            "title": plain(title),
            "subtitle": plain(head.place),
            "text_tag_list": [{
                "tag": "text_tag",
                "text": plain(head.tag.get(lang)),
                "color": head.tag_colour,
            }],
        },
        "body": {
            "direction": "vertical",
            "vertical_spacing": "medium",
            "padding": "12px 12px 12px 12px",
        },
    });
    card["body"]["elements"] = Value::Array(elements);
    card
}

fn plain(text: &str) -> Value {
    json!({"tag": "plain_text", "content": text})
}

fn div(text: &str) -> Value {
    json!({"tag": "div", "text": plain(text)})
}

fn note(text: &str) -> Value {
    coloured(text, "grey")
}

fn coloured(text: &str, colour: &str) -> Value {
    json!({
        "tag": "div",
        "text": {
            "tag": "plain_text",
            "content": text,
            "text_size": "notation",
            "text_color": colour,
        },
    })
}

/// Markdown of our own making; never given a word that came from outside.
fn markdown(text: &str) -> Value {
    json!({"tag": "markdown", "content": text})
}

/// A moment in the reader's own time zone, for [`markdown`] only.
fn local_time(at: Millis) -> String {
    format!("<local_datetime millisecond='{at}' format_type='time_sec'></local_datetime>")
}

fn confirm(title: &Text, text: &str, lang: Lang) -> Value {
    json!({"title": plain(title.get(lang)), "text": plain(text)})
}

/// A name from the machine on one line, short enough for any card.
fn short(text: &str, bytes: usize) -> String {
    let shown = escape::fit(text, Shape::Line, &[], budget(bytes, 1));
    match shown.hidden {
        None => shown.head,
        Some(_) => format!("{}…{}", shown.head, shown.tail),
    }
}

/// The beginning of a text that is already safe to show.
fn cut(mut text: String, bytes: usize) -> String {
    if text.len() > bytes {
        text.truncate(text.floor_char_boundary(bytes));
        text.push('…');
    }
    text
}

/// `project · machine`, as above every card.
fn place(origin: &Origin) -> String {
    let name = origin
        .project
        .file_name()
        .unwrap_or(origin.project.as_os_str());
    format!(
        "{} · {}",
        short(&name.to_string_lossy(), 80),
        short(&origin.machine, 80)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_read_back_from_their_names() {
        for action in Action::ALL {
            assert_eq!(Action::parse(action.as_str()), Some(action));
            assert_eq!(action.button(), format!("submit_{}", action.as_str()));
        }
        assert_eq!(Action::parse("Allow"), None);
        assert_eq!(Action::parse(""), None);
    }
}

#[cfg(test)]
mod sample;
#[cfg(test)]
mod truth;
