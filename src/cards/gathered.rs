//! The one card for what a session asks beyond what a person can look at: a
//! list to open from, and a way to deny all of it. Allows nothing.

use serde_json::Value;
use std::sync::Arc;

use super::body::body;
use super::{CardHead, MAX_CARD, button, card, cut, div, note, question, row, size};
use crate::approvals::request::Request;
use crate::ids::RequestId;
use crate::text::Lang;
use crate::text::escape::Budget;
use crate::wording::flood as words;

/// More than a person looks through; the others move up.
const MAX_LISTED: usize = 20;
const MAX_TITLE: usize = 72;

/// What became of the requests one card has gathered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub gathered: usize,
    pub opened: usize,
    pub denied: usize,
}

pub struct GatheredCard<'a> {
    /// Those that wait; none when it is over.
    pub requests: &'a [Arc<Request>],
    /// How many others of the session wait on cards of their own.
    pub own_cards: usize,
    pub place: &'a str,
    pub tally: Tally,
    /// The value of the button that opens a request.
    pub open: &'a dyn Fn(&RequestId) -> Value,
    pub deny_all: &'a Value,
}

pub fn gathered(gathered: &GatheredCard<'_>, lang: Lang) -> Value {
    if gathered.requests.is_empty() {
        return over(gathered, lang);
    }
    let mut listed = MAX_LISTED;
    loop {
        let card = waiting(gathered, listed, lang);
        if size(&card) <= MAX_CARD || listed <= 1 {
            return card;
        }
        listed /= 2;
    }
}

fn waiting(gathered: &GatheredCard<'_>, listed: usize, lang: Lang) -> Value {
    let count = gathered.requests.len();
    let deny = words::deny_all(count);
    let deny = button("b_deny_all", "danger", deny.get(lang), gathered.deny_all);
    // Above the list, so that it stays where it is while the list changes.
    let mut elements = vec![
        div(words::why(gathered.own_cards).get(lang)),
        row(None, Some(deny)),
    ];
    let requests = gathered.requests.iter().take(listed).enumerate();
    elements.extend(requests.map(|(n, request)| {
        let open = (gathered.open)(&request.id);
        button(
            &format!("b_open_{n}"),
            "default",
            &title(request, lang),
            &open,
        )
    }));
    if count > listed {
        elements.push(note(words::unlisted(count - listed).get(lang)));
    }
    let tag = words::count(count);
    let head = CardHead {
        colour: "orange",
        title: words::TITLE.get(lang),
        tag: tag.get(lang),
        tag_colour: "orange",
        place: gathered.place,
    };
    card(&head, elements, lang)
}

/// What a request is about, with a mark for what deserves a second look.
fn title(request: &Request, lang: Lang) -> String {
    if let Some(posed) = request.question() {
        return cut(question::title(&posed.ask, lang), MAX_TITLE);
    }
    let body = body(request, Budget::new(256, 12), lang);
    let mark = if body.attention.is_empty() {
        ""
    } else {
        "⚠ "
    };
    cut(format!("{mark}{}", body.title), MAX_TITLE)
}

fn over(gathered: &GatheredCard<'_>, lang: Lang) -> Value {
    let Tally {
        gathered: all,
        opened,
        denied,
    } = gathered.tally;
    let other = all.saturating_sub(opened + denied);
    let elements = vec![div(words::became(all, opened, denied, other).get(lang))];
    let head = CardHead {
        colour: "grey",
        title: &format!("✓ {}", words::TITLE.get(lang)),
        tag: words::OVER.get(lang),
        tag_colour: "neutral",
        place: gathered.place,
    };
    card(&head, elements, lang)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{actions, read, request, strings};
    use super::*;
    use serde_json::json;

    fn drawn(count: usize, tally: Tally, lang: Lang) -> Value {
        let command = |n: usize| {
            let text = format!("CANARY{n} <at id=all></at> **{}**", "x".repeat(300));
            let mut request = request("Bash", json!({"command": text}));
            request.id = RequestId::parse(&format!("r{n}")).unwrap();
            Arc::new(request)
        };
        let requests: Vec<_> = (0..count).map(command).collect();
        let padding = "s".repeat(400);
        let open =
            |id: &RequestId| json!({"action": "open", "request_id": id.as_str(), "seal": padding});
        let gathering = GatheredCard {
            requests: &requests,
            own_cards: 10,
            place: "shop · laptop",
            tally,
            open: &open,
            deny_all: &json!({"action": "deny_all"}),
        };
        gathered(&gathering, lang)
    }

    #[test]
    fn each_can_be_opened_and_what_is_not_listed_is_counted() {
        for lang in [Lang::Zh, Lang::En] {
            let card = drawn(25, Tally::default(), lang);
            assert!(size(&card) <= MAX_CARD, "{}", size(&card));
            let seen = read(&card);
            assert!(seen.contains("CANARY0") && seen.contains("25"), "{seen}");
            let opens = actions(&card).len() - 1;
            assert!((10..=MAX_LISTED).contains(&opens), "{opens}");
            assert!(seen.contains(&(25 - opens).to_string()), "{seen}");
            strings(&card, &mut |_, node, text| {
                if text.contains("CANARY") && node.get("tag").is_some() {
                    assert_eq!(node["tag"], "plain_text");
                }
            });
        }
    }

    #[test]
    fn one_is_not_told_as_many() {
        for (own, said) in [
            (0, "Requests of this session are listed here"),
            (1, "1 request of this session waits on a card of its own."),
            (2, "2 requests of this session wait on cards of their own."),
        ] {
            assert!(words::why(own).en.starts_with(said));
        }
        for (count, said) in [
            (1, "1 more is not listed and moves"),
            (2, "2 more are not listed and move "),
        ] {
            assert!(words::unlisted(count).en.starts_with(said));
        }
    }

    #[test]
    fn what_is_over_says_what_became_of_all_and_has_no_button() {
        let tally = Tally {
            gathered: 9,
            opened: 2,
            denied: 4,
        };
        let card = drawn(0, tally, Lang::En);
        assert!(actions(&card).is_empty());
        let seen = read(&card);
        assert!(
            seen.contains("9 gathered: 2 opened, 4 denied, 3 ended otherwise"),
            "{seen}"
        );
    }
}
