//! Any tool input, answer or reason on a card: it fits, its markdown is ours
//! alone, nothing in it is hidden, and it has no button that was not offered.
//! Nothing elided can be allowed unless it went out whole before, and no mask
//! stands in the place of a command.

use nod::for_tests::approvals::request::{Ending, Operator, Request};
use nod::for_tests::cards::{
    Action, MAX_CARD, ending, linked, markdown, notice, permission, progress, question, whole,
};
use nod::for_tests::ids::{SessionId, UserId};
use nod::for_tests::rules;
use nod::for_tests::sessions::questions::{self, QuestionTap};
use nod::for_tests::text::escape::{self, Budget, Shape};
use nod::for_tests::text::{Lang, secrets};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::LazyLock;

use super::asked;

const TOOLS: [&str; 10] = [
    "Bash",
    "Write",
    "Edit",
    "MultiEdit",
    "WebFetch",
    "Read",
    "mcp__a__b",
    "Unheard",
    "AskUserQuestion",
    "ExitPlanMode",
];

pub(crate) fn check(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(rest).into_owned();
    let tool = TOOLS[usize::from(*kind >> 1) % TOOLS.len()];
    let lang = if kind & 1 == 0 { Lang::Zh } else { Lang::En };
    let input = serde_json::from_slice(rest).unwrap_or_else(|_| whole_of(&text));
    let mut request = asked::request(tool, input);
    request.origin.branch = Some(text.clone());
    request.origin.agent = Some(text.clone());
    escapes(&text);
    masks(&text);
    waits(&request, lang);
    ends(&request, &text, lang);
    tells(&text, lang);
    answers(&text, lang);
}

fn whole_of(text: &str) -> Value {
    json!({
        "command": text, "file_path": text, "content": text, "old_string": text,
        "new_string": text, "url": text, "description": text, "plan": text, "header": text,
        "edits": [{"old_string": "a", "new_string": text}],
        "questions": [{"question": text, "header": text, "options": [
            {"label": text, "description": text}, {"label": "b", "description": text},
        ]}],
    })
}

fn escapes(text: &str) {
    for shape in [Shape::Line, Shape::Lines, Shape::Code, Shape::Diff] {
        let seen = escape::visible(text, shape);
        is_all_visible(&seen);
        assert!(shape != Shape::Line || !seen.contains('\n'));
        assert_eq!(seen.matches('⟦').count(), seen.matches('⟧').count());
        let budget = Budget {
            bytes: 90,
            lines: 3,
        };
        let shown = escape::fit(text, shape, &[], budget);
        let size = |text: &str| json!(text).to_string().len() - 2;
        assert!(size(&shown.head) + size(&shown.tail) <= budget.bytes);
        is_all_visible(&shown.head);
        is_all_visible(&shown.tail);
        match shown.hidden {
            None => assert_eq!(shown.head, seen),
            Some(hidden) => assert!(text.get(hidden.range).is_some_and(|text| !text.is_empty())),
        }
    }
    if escape::is_plain(text) {
        assert_eq!(escape::excerpt(text, 0..text.len(), &[]), text);
    }
}

fn waits(request: &Request, lang: Lang) {
    let offer = rules::offer(request);
    let values = |action: Action| json!({"action": action.as_str()});
    let nothing = whole::Before::Nothing;
    let drawn = permission::pending(request, &offer, 0, &nothing, &values, MAX_CARD, lang);
    let card = drawn.card;
    let ours = &ours(lang).waiting;
    is_sound(&card, MAX_CARD, ours);
    let offered = permission::choices(request, &offer, whole::WentOut::Unknown);
    let buttons = buttons_of(&card);
    assert!(buttons.contains(&"deny".to_owned()));
    let allows = |name: &String| ["allow", "always", "session", "wider"].contains(&name.as_str());
    if drawn.elided {
        assert!(!buttons.iter().any(allows), "what is not shown is allowed");
        sent_whole(request, lang);
    }
    for button in &buttons {
        let action = Action::parse(button).expect("an action of ours");
        assert!(offered.contains(&action), "{button} was not offered");
    }
    let links = |action: Action| format!("https://nod.example/{}", action.as_str());
    let linked_card = linked::waiting(request, &offer, 1, &links, lang);
    is_sound(&linked_card, linked::MAX_LINKED, ours);
    let minimal = permission::minimal(request, &values, lang);
    assert_eq!(buttons_of(&minimal), ["deny", "interrupt", "deny_with"]);
    is_sound(&minimal, MAX_CARD, ours);

    if let Some((ask, _)) = questions::of(&request.tool, &request.input) {
        let values = |tap: QuestionTap| json!({"action": tap.as_name()});
        let submit = json!({"action": "answer"});
        let drawn = question::pending(request, &ask, &nothing, &values, &submit, MAX_CARD, lang);
        let card = drawn.card;
        if drawn.elided {
            assert_eq!(
                buttons_of(&card),
                ["decline"],
                "what is not shown is answered"
            );
            sent_whole(request, lang);
        }
        let ours = markdown_of(&card);
        assert!(ours.len() == 1 && ours[0].len() < 400, "{ours:?}");
        is_sound(&card, MAX_CARD, &ours);
    }
}

/// What goes out before the card is sound, and only then is there an allow.
fn sent_whole(request: &Request, lang: Lang) {
    let Some(text) = whole::text(request, lang) else {
        return;
    };
    let before = whole::Before::Messages(1);
    let offer = rules::offer(request);
    let values = |action: Action| json!({"action": action.as_str()});
    let after = permission::pending(request, &offer, 0, &before, &values, MAX_CARD, lang);
    is_sound(&after.card, MAX_CARD, &ours(lang).waiting);
    let buttons = buttons_of(&after.card);
    assert!(
        !buttons
            .iter()
            .any(|name| name == "always" || name == "session")
    );
    let mut sent = String::new();
    for card in whole::cards(request, &text, whole::MANY, lang).unwrap_or_default() {
        is_sound(&card, MAX_CARD, &[]);
        assert!(buttons_of(&card).is_empty());
        let texts = card["body"]["elements"].as_array().expect("elements");
        for node in &texts[..texts.len() - 1] {
            sent.push_str(node["text"]["content"].as_str().unwrap_or_default());
        }
    }
    assert!(
        sent.is_empty() || sent == text,
        "something was lost on the way"
    );
}

/// No mask is the first word of a command, nor a path, nor used again.
fn masks(text: &str) {
    for secret in secrets::masks(text) {
        let hidden = &text[secret.range.clone()];
        assert!(
            !hidden.contains(['/', '\n']),
            "a mask hides a path: {text:?}"
        );
        let before = text[..secret.range.start].trim_end_matches(['"', '\'']);
        let begins = before.trim_end_matches([' ', '\t']);
        let first =
            begins.is_empty() || begins.ends_with(['\n', ';', '|', '&', '(', '{', '`', '!']);
        assert!(!first, "a mask stands for a command: {text:?}");
        if let Some(name) = before.strip_suffix('=') {
            let name = name
                .rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .next();
            let name = name.unwrap_or_default();
            let used = ["$", "${"].iter().any(|sign| {
                let uses = format!("{sign}{name}");
                text.match_indices(&uses).any(|(at, _)| {
                    let after = text[at + uses.len()..].chars().next();
                    after.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_')
                })
            });
            assert!(name.is_empty() || !used, "a mask is expanded: {text:?}");
        }
    }
}

fn ends(request: &Request, text: &str, lang: Lang) {
    let made = ended(request, &denied(text), lang);
    is_sound(&made, MAX_CARD, &ours(lang).denied);
    assert!(buttons_of(&made).is_empty());
    let made = ended(request, &answered(text), lang);
    is_sound(&made, MAX_CARD, &ours(lang).answered);
}

fn ended(request: &Request, ending: &Ending, lang: Lang) -> Value {
    let delivery = ending::Confirmation::Confirmed;
    ending::ended(request, ending, 2_000, delivery, None, lang)
}

fn lin() -> Operator {
    Operator {
        id: UserId::parse("ou_1").expect("an id"),
    }
}

fn denied(reason: &str) -> Ending {
    Ending::Denied {
        by: lin(),
        reason: Some(reason.to_owned()),
        interrupt: false,
    }
}

fn answered(words: &str) -> Ending {
    Ending::Answered {
        by: lin(),
        answers: vec![words.to_owned()],
    }
}

/// The markdown of a card whose request says nothing, so it is all nod's own.
struct Ours {
    waiting: Vec<String>,
    denied: Vec<String>,
    answered: Vec<String>,
}

impl Ours {
    fn of(lang: Lang) -> Self {
        let request = asked::request("Bash", json!({"command": "ls"}));
        let offer = rules::offer(&request);
        let (nothing, values) = (whole::Before::Nothing, |_| Value::Null);
        let pending =
            permission::pending(&request, &offer, 0, &nothing, &values, MAX_CARD, lang).card;
        Self {
            waiting: markdown_of(&pending),
            denied: markdown_of(&ended(&request, &denied("no"), lang)),
            answered: markdown_of(&ended(&request, &answered("a"), lang)),
        }
    }
}

fn ours(lang: Lang) -> &'static Ours {
    static ZH: LazyLock<Ours> = LazyLock::new(|| Ours::of(Lang::Zh));
    static EN: LazyLock<Ours> = LazyLock::new(|| Ours::of(Lang::En));
    match lang {
        Lang::Zh => &ZH,
        Lang::En => &EN,
    }
}

fn tells(text: &str, lang: Lang) {
    let card = notice::notice(
        &notice::NoticeCard {
            why: notice::Why::Finished,
            agent: &nod::for_tests::approvals::request::AskingAgent::ClaudeCode,
            machine: text,
            project: Path::new(text),
            session: None,
            took: Some(1_000),
            message: Some(text),
        },
        lang,
    );
    is_sound(&card, MAX_CARD, &[]);
    assert!(buttons_of(&card).is_empty());
}

/// A final answer keeps its markdown, but calls nobody.
fn answers(text: &str, lang: Lang) {
    let conversation = SessionId::parse("s-1").expect("an id");
    let task = progress::Task {
        number: 1,
        title: text,
        project: text,
        agent: nod::for_tests::sessions::agent::Agent::Claude,
        machine: text,
        conversation: &conversation,
        mode: "default",
        unguarded: false,
        view: None,
    };
    let answer = markdown::answer(text, markdown::MarkdownLimits::default());
    assert!(answer.pieces.len() <= 8);
    for piece in &answer.pieces {
        let piece_lower = piece.to_ascii_lowercase();
        for tag in ["<at", "<person", "</at", "</person"] {
            for (at, _) in piece_lower.match_indices(tag) {
                let after = piece_lower[at + tag.len()..].chars().next();
                let named = after.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_');
                assert!(!named, "it calls somebody: {piece}");
            }
        }
        let card = progress::answer(&task, piece, 0, lang);
        assert!(card.to_string().len() <= MAX_CARD);
        assert_eq!(markdown_of(&card), [piece.as_str()]);
        nod::for_tests::simulator::check_card(&card).expect("as documented");
    }
}

fn is_sound(card: &Value, most: usize, ours: &[String]) {
    assert!(card.to_string().len() <= most, "larger than Feishu takes");
    nod::for_tests::simulator::check_card(card).expect("as documented");
    assert_eq!(markdown_of(card), ours, "somebody else's markdown");
    each(card, &mut |node| {
        let content = node.get("content").and_then(Value::as_str);
        match node.get("tag").and_then(Value::as_str) {
            Some("plain_text") => is_all_visible(content.unwrap_or_default()),
            Some("lark_md") => panic!("a node that is parsed"),
            _ => {}
        }
    });
}

fn is_all_visible(text: &str) {
    for c in text.chars() {
        let hidden = matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{10ffff}');
        assert!(!hidden && (c == '\n' || !c.is_control()), "{c:?} hides");
    }
    // A whole indent, and before it the sign of a diff's unchanged line.
    let blank = " ".repeat(26);
    assert!(!text.contains(&blank), "text pushed out of sight");
    assert!(!text.contains("\n\n\n\n\n"), "text pushed out of sight");
}

fn each(node: &Value, see: &mut dyn FnMut(&serde_json::Map<String, Value>)) {
    match node {
        Value::Object(map) => {
            see(map);
            map.values().for_each(|inner| each(inner, see));
        }
        Value::Array(all) => all.iter().for_each(|inner| each(inner, see)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn markdown_of(card: &Value) -> Vec<String> {
    let mut found = Vec::new();
    each(card, &mut |node| {
        if node.get("tag").is_some_and(|tag| tag == "markdown") {
            found.extend(node["content"].as_str().map(str::to_owned));
        }
    });
    found
}

/// What the buttons of a card ask for, in their order.
fn buttons_of(card: &Value) -> Vec<String> {
    let mut found = Vec::new();
    each(card, &mut |node| {
        if node.get("tag").is_some_and(|tag| tag == "button") {
            let value = &node["behaviors"][0]["value"]["action"];
            found.extend(value.as_str().map(str::to_owned));
        }
    });
    found
}
