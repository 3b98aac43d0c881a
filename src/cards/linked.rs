//! A waiting request for a group's custom bot, whose buttons can only open
//! pages; and the same request whole, as the paragraphs of such a page.

use serde_json::{Value, json};

use super::body::body;
use super::escape::Budget;
use super::permission::{
    button_words, buttons, column, expiry, may_allow, origin, rules, warnings,
};
use super::{Action, BUDGETS, Head, card, note, place, plain, size};
use crate::approvals::request::Request;
use crate::rules::Offer;
use crate::wording::Lang;
use crate::wording::card::{self as words, Work};
use crate::wording::page;

/// A custom bot takes 20 KB; the difference pays for the envelope.
pub const MAX_LINKED: usize = 18 * 1024;

/// What a page can decide.
pub const LINKED: [Action; 4] = [
    Action::Allow,
    Action::Always,
    Action::Deny,
    Action::Interrupt,
];

/// The card of a waiting request. `links` makes each button's address.
pub fn waiting(
    request: &Request,
    offer: &Offer,
    denied_before: u32,
    links: &dyn Fn(Action) -> String,
    lang: Lang,
) -> Value {
    fitting(|budget| {
        let mut body = body(request, budget, lang);
        let actions = buttons(&body, offer);
        let mut elements = std::mem::take(&mut body.nodes);
        elements.extend(warnings(&body, denied_before, lang));
        elements.push(note(&origin(request, lang)));
        if may_allow(&body) {
            elements.extend(rules(&body, offer, lang));
        }
        let columns: Vec<_> = LINKED
            .into_iter()
            .filter(|action| actions.contains(action))
            .map(|action| column(link(action, &links(action), lang)))
            .collect();
        elements.push(json!({
            "tag": "column_set",
            "flex_mode": "bisect",
            "horizontal_spacing": "8px",
            "columns": columns,
        }));
        elements.push(note(page::DECIDE_ON_PAGE.get(lang)));
        elements.push(expiry(request, lang));
        finished(request, elements, may_allow(&body), lang)
    })
}

/// The card of a request that only the terminal can answer, because nod's
/// service does not run.
pub fn announced(request: &Request, lang: Lang) -> Value {
    fitting(|budget| {
        let mut elements = body(request, budget, lang).nodes;
        elements.push(note(&origin(request, lang)));
        elements.push(note(page::NOTIFY_ONLY.get(lang)));
        finished(request, elements, false, lang)
    })
}

fn fitting(build: impl Fn(Budget) -> Value) -> Value {
    let [roomy, tighter @ ..] = BUDGETS;
    let mut card = build(roomy);
    for budget in tighter {
        if size(&card) <= MAX_LINKED {
            break;
        }
        card = build(budget);
    }
    card
}

fn finished(request: &Request, elements: Vec<Value>, open: bool, lang: Lang) -> Value {
    let work = Work::of(&request.tool);
    let head = Head {
        colour: work.colour(),
        title: &words::asks_to(work),
        tag: if open {
            &words::WAITING
        } else {
            &words::BLOCKED
        },
        tag_colour: "orange",
        place: &place(&request.origin),
    };
    card(&head, elements, lang)
}

fn link(action: Action, url: &str, lang: Lang) -> Value {
    let (label, kind) = button_words(action);
    json!({
        "tag": "button",
        "element_id": format!("b_{}", action.as_str()),
        "type": kind,
        "size": "medium",
        "width": "fill",
        "text": plain(label.get(lang)),
        "behaviors": [{"type": "open_url", "default_url": url}],
    })
}

/// One block of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paragraph {
    pub text: String,
    /// To be seen before anything else.
    pub alarming: bool,
}

/// Everything the card would show, with nothing left out.
pub fn whole(request: &Request, offer: &Offer, lang: Lang) -> Vec<Paragraph> {
    // More than any request has, and room to reckon with.
    let everything = Budget {
        bytes: usize::MAX / 1_024,
        lines: usize::MAX / 1_024,
    };
    let mut body = body(request, everything, lang);
    let mut nodes = warnings(&body, 0, lang);
    nodes.append(&mut body.nodes);
    nodes.push(note(&origin(request, lang)));
    nodes.extend(rules(&body, offer, lang));
    let mut paragraphs = Vec::new();
    for node in &nodes {
        texts(node, &mut paragraphs);
    }
    paragraphs
}

/// The plain texts of a node, in reading order.
fn texts(node: &Value, out: &mut Vec<Paragraph>) {
    match node {
        Value::Array(list) => list.iter().for_each(|item| texts(item, out)),
        Value::Object(map) => {
            if map.get("tag").and_then(Value::as_str) == Some("plain_text") {
                let text = map.get("content").and_then(Value::as_str);
                out.push(Paragraph {
                    text: text.unwrap_or_default().to_owned(),
                    alarming: map.get("text_color").and_then(Value::as_str) == Some("red"),
                });
            } else {
                map.values().for_each(|value| texts(value, out));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::bash;
    use super::*;
    use crate::rules::offer;

    fn links(action: Action) -> String {
        format!("http://10.0.0.1:8080/{}?id=r&t=x", action.as_str())
    }

    fn addresses(card: &Value) -> Vec<String> {
        card.to_string()
            .split('"')
            .filter(|text| text.starts_with("http://10.0.0.1"))
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn the_four_buttons_open_their_pages_and_call_nothing_back() {
        let request = bash("npm run build");
        let card = waiting(&request, &offer(&request), 0, &links, Lang::Zh);
        let expected = LINKED.map(links);
        assert_eq!(addresses(&card), expected);
        assert!(!card.to_string().contains("callback"));
    }

    #[test]
    fn no_card_outgrows_the_bots_limit_and_the_page_has_it_all() {
        for size in [1, 5_000, 40_000, 400_000] {
            let request = bash(&"echo 一行\n".repeat(size / 8 + 1));
            let offer = offer(&request);
            let card = waiting(&request, &offer, 0, &links, Lang::En);
            assert!(super::size(&card) <= MAX_LINKED, "{size}");
            assert!(super::size(&announced(&request, Lang::Zh)) <= MAX_LINKED);
            let shown = whole(&request, &offer, Lang::Zh);
            let lines = shown.iter().map(|p| p.text.matches("echo 一行").count());
            assert!(lines.max() >= Some(size / 8 + 1), "{size}");
        }
    }
}
