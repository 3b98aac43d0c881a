//! A waiting request for a group's custom bot, whose buttons can only open
//! pages; and the same request whole, as the paragraphs of such a page.

use serde_json::{Value, json};

use super::body::body;
use super::permission::{buttons, expiry, finished, may_allow, origin, rules, said, warnings};
use super::ways::{ButtonLooks, plain_button};
use super::whole::WentOut;
use super::{Action, EVERYTHING, bare_size, fold, note, roomiest, row};
use crate::approvals::request::Request;
use crate::rules::Offer;
use crate::text::Lang;
use crate::text::escape::Budget;
use crate::wording::card as words;
use crate::wording::page;
use crate::wording::rule::Until;

/// A custom bot takes 20 KB; the difference pays for the envelope.
pub const MAX_LINKED: usize = 18 * 1024;

/// What a page can decide.
pub const LINKED: [Action; 5] = [
    Action::Allow,
    Action::Always,
    Action::Wider,
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
        // The page behind a link shows it whole.
        let actions = buttons(&body, offer, WentOut::Whole);
        let mut elements = std::mem::take(&mut body.nodes);
        elements.extend(warnings(&body, WentOut::Whole, denied_before, lang));
        let open = may_allow(&body, WentOut::Whole);
        let looks = ButtonLooks::of(&body, offer);
        let shown = |action| {
            actions
                .contains(&action)
                .then(|| link(action, &links(action), looks, lang))
        };
        elements.push(row(shown(Action::Allow), shown(Action::Deny)));
        elements.push(row(shown(Action::Always), shown(Action::Interrupt)));
        let mut folded = std::mem::take(&mut body.more);
        if open {
            folded.extend(rules(&body, offer, &request.origin, lang));
            folded.extend(wider(&actions, offer, request, lang));
            folded.extend(shown(Action::Wider));
        }
        folded.push(note(&origin(request, lang)));
        folded.push(note(page::DECIDE_ON_PAGE.get(lang)));
        elements.push(fold(&heading(open, lang), folded));
        elements.push(expiry(request, lang));
        finished(request, &body, elements, open, lang)
    })
}

fn heading(open: bool, lang: Lang) -> String {
    let rule = open.then_some(words::FOLD_RULE.get(lang));
    let parts = rule.into_iter().chain([words::FOLD_DETAILS.get(lang)]);
    parts.collect::<Vec<_>>().join(" · ")
}

/// What the wider choice would leave.
fn wider(actions: &[Action], offer: &Offer, request: &Request, lang: Lang) -> Option<Value> {
    let rules = offer
        .wider
        .as_ref()
        .filter(|_| actions.contains(&Action::Wider))?;
    let said = said(rules, &request.origin, Until::Undone, lang);
    Some(note(&words::WIDER.labels(said, lang)))
}

/// The card of a request that only the terminal can answer, because nod's
/// service does not run.
pub fn announced(request: &Request, lang: Lang) -> Value {
    fitting(|budget| {
        let mut body = body(request, budget, lang);
        let mut elements = std::mem::take(&mut body.nodes);
        elements.push(note(page::NOTIFY_ONLY.get(lang)));
        let mut folded = std::mem::take(&mut body.more);
        folded.push(note(&origin(request, lang)));
        elements.push(fold(&heading(false, lang), folded));
        finished(request, &body, elements, false, lang)
    })
}

fn fitting(build: impl Fn(Budget) -> Value) -> Value {
    roomiest(build, |card| bare_size(card) <= MAX_LINKED)
}

fn link(action: Action, url: &str, looks: ButtonLooks, lang: Lang) -> Value {
    let mut link = plain_button(action, &|_| Value::Null, looks, lang);
    link["behaviors"] = json!([{"type": "open_url", "default_url": url}]);
    link
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
    let mut body = body(request, EVERYTHING, lang);
    let mut nodes = warnings(&body, WentOut::Whole, 0, lang);
    nodes.append(&mut body.nodes);
    nodes.append(&mut body.more);
    nodes.push(note(&origin(request, lang)));
    nodes.extend(rules(&body, offer, &request.origin, lang));
    nodes.extend(wider(
        &buttons(&body, offer, WentOut::Whole),
        offer,
        request,
        lang,
    ));
    let mut paragraphs = Vec::new();
    for node in &nodes {
        texts(node, &mut paragraphs);
    }
    paragraphs
}

/// The plain texts of a node, in reading order.
pub(super) fn texts(node: &Value, out: &mut Vec<Paragraph>) {
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
    fn the_buttons_open_their_pages_and_call_nothing_back() {
        let request = bash("git count-objects -v");
        let card = waiting(&request, &offer(&request), 0, &links, Lang::Zh);
        let mut expected = LINKED.map(links);
        let mut found = addresses(&card);
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected);
        assert!(!card.to_string().contains("callback"));
    }

    #[test]
    fn no_card_outgrows_the_bots_limit_and_the_page_has_it_all() {
        for size in [1, 5_000, 40_000, 400_000] {
            let request = bash(&"echo 一行\n".repeat(size / 8 + 1));
            let offer = offer(&request);
            let card = waiting(&request, &offer, 0, &links, Lang::En);
            assert!(bare_size(&card) <= MAX_LINKED, "{size}");
            assert!(bare_size(&announced(&request, Lang::Zh)) <= MAX_LINKED);
            let shown = whole(&request, &offer, Lang::Zh);
            let lines = shown.iter().map(|p| p.text.matches("echo 一行").count());
            assert!(lines.max() >= Some(size / 8 + 1), "{size}");
        }
    }
}
