//! The cards a person in Feishu sees, as JSON 2.0. Text an agent wrote stands
//! in `plain_text` nodes only, with nothing hidden in it and nothing parsed; a
//! session's final answer is the exception, which [`mod@markdown`] disarms.
//! Pure: what is true is an argument, what comes out is a value.

use serde_json::{Value, json};

use crate::approvals::request::Request;
use crate::clock::Millis;
use crate::sessions::questions::script;
use crate::text::escape::{self, Budget, Shape, short};
use crate::text::{Lang, Text, secrets};
use crate::wording::card as words;

mod body;
pub mod choice;
pub mod ending;
pub mod gathered;
pub mod gist;
pub mod linked;
pub mod locked;
pub mod markdown;
pub mod notice;
pub mod permission;
pub mod plainest;
pub mod progress;
mod prose;
pub mod question;
pub mod quote;
pub mod shape;
pub mod sure;
pub mod team;
mod ways;
pub mod whole;

/// What a button asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    Allow,
    Always,
    Session,
    /// More than this call, by a rule of its own.
    Wider,
    Deny,
    /// As a deny, with the reason that was typed.
    DenyWith,
    Interrupt,
    Undo,
}

impl Action {
    pub const ALL: [Self; 8] = [
        Self::Allow,
        Self::Always,
        Self::Session,
        Self::Wider,
        Self::Deny,
        Self::DenyWith,
        Self::Interrupt,
        Self::Undo,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Always => "always",
            Self::Session => "session",
            Self::Wider => "wider",
            Self::Deny => "deny",
            Self::DenyWith => "deny_with",
            Self::Interrupt => "interrupt",
            Self::Undo => "undo",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == text)
    }

    /// The button's `name` in a form; some clients return it without a value.
    pub fn button(self) -> String {
        format!("submit_{}", self.as_str())
    }
}

/// The name of the field a refusal's reason is typed into.
pub const REASON_FIELD: &str = "reason";

/// Feishu takes a request of 30,000 bytes; the difference pays for what stands
/// around the card in it.
pub const MAX_CARD: usize = 30_000 - 256;

/// What is left for the agent's text, widest first: the first card that fits
/// is sent.
const BUDGETS: [Budget; 4] = [
    Budget::new(10 * 1024, 150),
    Budget::new(4 * 1024, 80),
    Budget::new(1024, 30),
    Budget::new(256, 12),
];

/// Two lines of a phone; the rest stands below.
const MAX_TITLE: usize = 48;
/// One line of a phone, for a title that leaves room to something else.
const ONE_LINE: usize = 24;

/// More than any request has, and room to reckon with.
const EVERYTHING: Budget = Budget::new(usize::MAX / 1_024, usize::MAX / 1_024);

/// A card, and whether something of the input is not on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawn {
    pub card: Value,
    pub elided: bool,
}

/// The first of what is made, from roomy to tight, that fits.
fn roomiest<T>(build: impl Fn(Budget) -> T, fits: impl Fn(&T) -> bool) -> T {
    let [roomy, tighter @ ..] = BUDGETS;
    let mut made = build(roomy);
    for budget in tighter {
        if fits(&made) {
            break;
        }
        made = build(budget);
    }
    made
}

/// The roomiest card that Feishu would take.
fn fitting(build: impl Fn(Budget) -> Value) -> Value {
    roomiest(build, |card| size(card) <= MAX_CARD)
}

/// Bytes of the card as it is sent: as text inside the JSON of the request,
/// where each quote and backslash is escaped once more.
pub fn size(card: &Value) -> usize {
    weigh(card, |byte| 1 + usize::from(matches!(byte, b'"' | b'\\')))
}

/// Bytes of the card where it is sent as JSON itself.
fn bare_size(card: &Value) -> usize {
    weigh(card, |_| 1)
}

fn weigh(card: &Value, byte: impl Fn(u8) -> usize) -> usize {
    struct Count<F>(usize, F);
    impl<F: Fn(u8) -> usize> std::io::Write for Count<F> {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.iter().map(|byte| (self.1)(*byte)).sum::<usize>();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0, byte);
    match serde_json::to_writer(&mut count, card) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}

/// What stands above a card and in the list of chats. All of it is fit to be
/// seen: on one line, with nothing hidden in it.
struct CardHead<'a> {
    colour: &'static str,
    /// What it is about, the same in every state.
    title: &'a str,
    /// The state.
    tag: &'a str,
    tag_colour: &'static str,
    place: &'a str,
}

/// What a lock screen and the list of chats say.
fn summary(head: &CardHead<'_>, lang: Lang) -> String {
    let CardHead {
        title, tag, place, ..
    } = head;
    let project = place.split(" · ").next().unwrap_or(place);
    match lang {
        Lang::Zh => format!("{tag}：{title} · {project}"),
        Lang::En => format!("{tag}: {title} · {project}"),
    }
}

fn card(head: &CardHead<'_>, elements: Vec<Value>, lang: Lang) -> Value {
    let summary = summary(head, lang);
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
            "title": plain(head.title),
            "subtitle": plain(head.place),
            "text_tag_list": [{
                "tag": "text_tag",
                "text": plain(head.tag),
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

/// Closer together, for what asks for nothing any more.
fn settled(mut card: Value) -> Value {
    card["body"]["vertical_spacing"] = json!("4px");
    card["body"]["padding"] = json!("8px 12px 8px 12px");
    card
}

fn plain(text: &str) -> Value {
    json!({"tag": "plain_text", "content": text})
}

/// A button that fills its row and hands its value back.
fn button(id: &str, kind: &str, label: &str, value: &Value) -> Value {
    json!({
        "tag": "button",
        "element_id": id,
        "type": kind,
        "size": "medium",
        "width": "fill",
        "text": plain(label),
        "behaviors": [{"type": "callback", "value": value}],
    })
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

/// A moment in the reader's own time zone, for [`markdown()`] only.
fn local_time(at: Millis) -> String {
    format!("<local_datetime millisecond='{at}' format_type='time_sec'></local_datetime>")
}

fn confirm(title: &Text, text: &str, lang: Lang) -> Value {
    json!({"title": plain(title.get(lang)), "text": plain(text)})
}

/// Words of a person's or an agent's on one line, credentials masked.
fn masked(text: &str, bytes: usize) -> String {
    let secrets = secrets::find(text);
    escape::fit(text, Shape::Line, &secrets, Budget::new(bytes, 1)).joined("…")
}

/// The beginning of a text that is already safe to show.
fn cut(mut text: String, bytes: usize) -> String {
    if text.len() > bytes {
        text.truncate(text.floor_char_boundary(bytes));
        text.push('…');
    }
    text
}

/// `project · branch · machine · agent`, on one line above every card.
pub fn place(request: &Request, lang: Lang) -> String {
    let from = &request.origin;
    let name = from.project.file_name();
    let name = name.unwrap_or(from.project.as_os_str());
    let mut place = vec![short(&name.to_string_lossy(), 40)];
    place.extend(from.branch.as_ref().map(|branch| short(branch, 40)));
    place.push(short(&from.machine, 40));
    place.push(match &from.agent {
        _ if &*request.tool == script::TOOL => words::A_COMMAND.get(lang).to_owned(),
        Some(agent) => format!("{}/{}", from.caller.agent.kind().short(), short(agent, 40)),
        None => from.caller.agent.kind().short().to_owned(),
    });
    place.join(" · ")
}

/// Closed until it is tapped. May stand in a form, but holds none.
fn fold(title: &str, elements: Vec<Value>) -> Value {
    // Its first part may stand behind others on another card.
    let mut rest = title.chars();
    let first = rest.next().map(|first| first.to_ascii_uppercase());
    let title: String = first.into_iter().chain(rest).collect();
    let mut fold = json!({
        "tag": "collapsible_panel",
        "element_id": "p_more",
        "expanded": false,
        "vertical_spacing": "8px",
        "header": {"title": plain(&title)},
    });
    fold["elements"] = Value::Array(elements);
    fold
}

/// A field for words, `id` its name inside the card.
fn words_field(id: &str, name: &str, max_rows: u32, hint: &Text, lang: Lang) -> Value {
    json!({
        "tag": "input",
        "element_id": id,
        "name": name,
        "required": false,
        "input_type": "multiline_text",
        "rows": 2,
        "auto_resize": true,
        "max_rows": max_rows,
        "max_length": 1000,
        "width": "fill",
        "placeholder": plain(hint.get(lang)),
    })
}

/// A form: what stands in it is handed in together.
fn form(id: &str, name: &str, elements: Vec<Value>) -> Value {
    let mut form = json!({
        "tag": "form",
        "element_id": id,
        "name": name,
        "vertical_spacing": "8px",
    });
    form["elements"] = Value::Array(elements);
    form
}

/// Facts under their labels, a line each.
fn facts(facts: &[(&Text, String)], lang: Lang) -> String {
    let lines: Vec<_> = facts
        .iter()
        .map(|(label, fact)| label.labels(fact, lang))
        .collect();
    lines.join("\n")
}

fn label_above(mut field: Value, label: &str) -> Value {
    field["label"] = plain(label);
    field["label_position"] = json!("top");
    field
}

/// Text on grey ground.
fn framed(elements: Vec<Value>) -> Value {
    let mut frame = json!({
        "tag": "column_set",
        "flex_mode": "none",
        "background_style": "grey",
        "columns": [{
            "tag": "column",
            "width": "weighted",
            "weight": 1,
            "padding": "8px 8px 8px 8px",
            "vertical_spacing": "0px",
        }],
    });
    frame["columns"][0]["elements"] = Value::Array(elements);
    frame
}

/// Two places side by side; what is not offered leaves its place empty.
pub(crate) fn row(left: Option<Value>, right: Option<Value>) -> Value {
    let columns = [left, right].map(|element| {
        let mut column = json!({
            "tag": "column",
            "width": "weighted",
            "weight": 1,
            "vertical_align": "top",
        });
        column["elements"] = element.into_iter().collect();
        column
    });
    json!({
        "tag": "column_set",
        "flex_mode": "none",
        "horizontal_spacing": "8px",
        "columns": columns,
    })
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
mod canary;
#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod truth;
