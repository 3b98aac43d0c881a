//! Every card nod can make, against a checker made of Feishu's documents:
//! components, attributes, values, nesting and limits. The checker shares
//! nothing with what draws the cards, and refuses what is known to be bad.

use nod::for_tests::approvals::request::{
    AskingAgent, Dropped, Ending, Operator, Ran, Reach, Request, UntrueEnding,
};
use nod::for_tests::cards::plainest::plainest;
use nod::for_tests::cards::whole::{self, Before};
use nod::for_tests::cards::{
    Action, MAX_CARD, choice, ending, linked, locked, markdown, notice, permission, progress,
    question, sure,
};
use nod::for_tests::ids::{SessionId, UserId};
use nod::for_tests::rules::{self, Rule};
use nod::for_tests::sessions::questions::{self, QuestionTap};
use nod::for_tests::simulator::check_card;
use nod::for_tests::text::Lang;
use nod::for_tests::wording::terminal;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::LazyLock;

use crate::fuzz::asked;

const LANGS: [Lang; 2] = [Lang::Zh, Lang::En];

fn requests() -> Vec<Request> {
    let long = "| a | \"b\" |\n|---|---|\n".repeat(800);
    let options: Vec<Value> = (0..9)
        .map(|n| json!({"label": format!("option {n}"), "description": "\"why\""}))
        .collect();
    let questions = |count: usize, multi: bool, options: &[Value]| {
        let one = |n| json!({"question": format!("Which {n}?"), "header": "H", "multiSelect": multi, "options": options});
        json!({"questions": (0..count).map(one).collect::<Vec<_>>()})
    };
    let mut all = vec![
        asked::request(
            "Bash",
            json!({"command": "npm test", "description": "tests"}),
        ),
        asked::request(
            "Bash",
            json!({"command": "sudo rm -r build && git push --force"}),
        ),
        asked::request(
            "Bash",
            json!({"command": "PGPASSWORD=hunter psql -h db.example"}),
        ),
        asked::request("Bash", json!({"command": long})),
        asked::request(
            "Write",
            json!({"file_path": "/home/lin/shop/a.rs", "content": long}),
        ),
        asked::request(
            "Edit",
            json!({"file_path": "/etc/passwd", "old_string": "a\nb", "new_string": "a\nc\nd"}),
        ),
        asked::request(
            "MultiEdit",
            json!({"file_path": "a", "edits": [{"old_string": "x", "new_string": "y"}]}),
        ),
        asked::request(
            "NotebookEdit",
            json!({"notebook_path": "a.ipynb", "new_source": "1"}),
        ),
        asked::request(
            "WebFetch",
            json!({"url": "https://example.com/a", "prompt": "read"}),
        ),
        asked::request("WebSearch", json!({"query": "rust"})),
        asked::request("Read", json!({"file_path": "/home/lin/.ssh/id_rsa"})),
        asked::request(
            "mcp__github__create_issue",
            json!({"title": "t", "body": "b", "labels": [1, null]}),
        ),
        asked::request(
            "Unheard",
            json!({"<at id=all></at>": ["**x**", {"a": long}]}),
        ),
        asked::request(
            "ExitPlanMode",
            json!({"plan": "# Plan\n1. measure\n```\ncode\n```"}),
        ),
        asked::request("AskUserQuestion", questions(1, false, &options[..2])),
        asked::request("AskUserQuestion", questions(1, true, &options[..4])),
        asked::request("AskUserQuestion", questions(1, false, &options)),
        asked::request("AskUserQuestion", questions(4, true, &options[..3])),
    ];
    let hosted: Vec<Request> = all
        .iter()
        .map(|request| {
            let mut hosted = request.clone();
            hosted.origin.hosted = true;
            hosted.origin.branch = Some("\u{202e}main".repeat(50));
            hosted.origin.agent = Some("reviewer".to_owned());
            hosted.origin.session = SessionId::parse("s-1").ok();
            hosted
        })
        .collect();
    all.extend(hosted);
    all
}

fn lin() -> Operator {
    Operator {
        id: UserId::parse("ou_1").unwrap(),
    }
}

fn endings() -> Vec<Ending> {
    let rules = vec![Rule::new("Bash", "npm test")];
    let always = |undone| Reach::Always {
        rules: rules.clone(),
        undone,
    };
    let reaches = [
        Reach::Once,
        Reach::Session(rules.clone()),
        always(false),
        always(true),
    ];
    let allowed = reaches.map(|reach| Ending::Allowed {
        cancelled: false,
        by: lin(),
        reach,
    });
    let mut all = allowed.to_vec();
    all.extend([
        Ending::Denied {
            by: lin(),
            reason: Some("**no** <at id=all></at>".repeat(100)),
            interrupt: true,
        },
        Ending::Answered {
            by: lin(),
            answers: vec!["SQLite".to_owned()],
        },
        Ending::Terminal { allowed: None },
        Ending::TimedOut,
        Ending::HookGone,
        Ending::Orphaned,
        Ending::Dropped {
            why: Dropped::Command,
        },
        Ending::Undeliverable { why: None },
        Ending::Ran(Ran {
            by: None,
            since: Some(1),
            took: Some(2),
            corrects: Some(UntrueEnding {
                kind: "deny".to_owned(),
                by: Some(lin()),
            }),
        }),
        Ending::Stopped {
            by: lin(),
            since: 1,
        },
    ]);
    all
}

/// As large as a sealed value gets.
fn sealed(action: &str) -> Value {
    json!({
        "action": action, "request_id": "k".repeat(32), "callback_url": "http://127.0.0.1:8787",
        "machine": "m".repeat(64), "machine_name": "mbp", "seal": "s".repeat(22), "whole": true,
    })
}

/// The card, in its plainest layout, and each question its buttons ask.
fn with_rungs(card: Value, lang: Lang) -> Vec<Value> {
    let plain = plainest(&card, &Value::clone, lang);
    let mut all = vec![plain];
    let mut values = Vec::new();
    asks(&card, &mut values);
    for value in values {
        let asked = sure::once_more(&card, &value, value.clone(), lang);
        all.push(asked.expect("what asks has a question"));
    }
    all.push(card);
    all
}

fn asks(node: &Value, values: &mut Vec<Value>) {
    match node {
        Value::Object(map) => {
            if map.contains_key("confirm") {
                values.extend(node.pointer("/behaviors/0/value").cloned());
            }
            map.values().for_each(|inner| asks(inner, values));
        }
        Value::Array(list) => list.iter().for_each(|inner| asks(inner, values)),
        _ => {}
    }
}

fn waiting(request: &Request, lang: Lang) -> Value {
    let (offer, nothing) = (rules::offer(request), Before::Nothing);
    let values = |action: Action| sealed(action.as_str());
    permission::pending(request, &offer, 0, &nothing, &values, MAX_CARD, lang).card
}

fn cards_of(request: &Request, lang: Lang) -> Vec<Value> {
    let offer = rules::offer(request);
    let values = |action: Action| sealed(action.as_str());
    let waiting = waiting(request, lang);
    let mut all = vec![
        locked::locked(waiting, lang),
        permission::minimal(request, &values, lang),
    ];
    for before in [Before::Nothing, Before::Messages(3)] {
        for room in [MAX_CARD, 9_000] {
            let drawn = permission::pending(request, &offer, 2, &before, &values, room, lang);
            all.push(drawn.card);
            if let Some((ask, _)) = questions::of(&request.tool, &request.input) {
                let values = |tap: QuestionTap| {
                    let mut value = sealed("answer");
                    value["tap"] = json!(tap.as_name());
                    value
                };
                let submit = sealed("answer");
                let drawn = question::pending(request, &ask, &before, &values, &submit, room, lang);
                all.push(drawn.card);
            }
        }
    }
    let undo = sealed("undo");
    for end in endings() {
        for delivery in [
            ending::Confirmation::Confirmed,
            ending::Confirmation::Unconfirmed,
        ] {
            all.push(ending::ended(
                request,
                &end,
                2_000,
                delivery,
                Some(&undo),
                lang,
            ));
            let kept = ending::without_input(
                request,
                &ending::kept_title(request, lang),
                &end,
                2_000,
                delivery,
                Some(&undo),
                lang,
            );
            all.extend(ending::untitled(&kept));
            all.push(kept);
        }
    }
    all.push(ending::running(request, 1, Some(&sealed("stop")), lang));
    if let Some(text) = whole::text(request, lang) {
        all.extend(whole::cards(request, &text, whole::MANY, lang).unwrap_or_default());
    }
    let links = |action: Action| format!("https://nod.example/{}", action.as_str());
    all.push(linked::waiting(request, &offer, 1, &links, lang));
    all.push(linked::announced(request, lang));
    all
}

fn others(lang: Lang) -> Vec<Value> {
    use notice::Why;
    let mut all = Vec::new();
    let text = "words \"and\" more\n".repeat(3_000);
    for why in [
        Why::Finished,
        Why::Idle,
        Why::Flood,
        Why::Failed,
        Why::Terminal,
        Why::Unknown,
    ] {
        all.push(notice::notice(
            &notice::NoticeCard {
                why,
                agent: &AskingAgent::ClaudeCode,
                machine: "mbp",
                project: Path::new("/home/lin/shop"),
                session: None,
                took: Some(1_000),
                message: Some(&text),
            },
            lang,
        ));
    }
    let conversation = SessionId::parse("s-1").unwrap();
    let task = progress::Task {
        number: 1,
        title: "Fix the prices",
        project: "shop",
        agent: nod::for_tests::sessions::agent::Agent::Claude,
        machine: "mbp",
        conversation: &conversation,
        mode: "default",
        unguarded: true,
        view: None,
    };
    all.push(progress::running(&task, &sealed("stop"), lang));
    for end in [
        progress::TaskEnd::Stopped,
        progress::TaskEnd::Crashed,
        progress::TaskEnd::Restarted,
    ] {
        all.push(progress::ended(&task, end, lang));
    }
    let table = "| a | b |\n|---|---|\n| 1 | 2 |\n\n";
    let said = format!("{}{text}```\n{text}\n```", table.repeat(9));
    for piece in markdown::answer(&said, markdown::MarkdownLimits::default()).pieces {
        all.push(progress::answer(&task, &piece, 12, lang));
    }
    for ask in [false, true] {
        let wanted = choice::ChoiceCard {
            title: &terminal::PROJECT_TITLE,
            text: None,
            machine: "mbp",
            wrote: Some(&text),
            ask,
        };
        let button = |n: usize| choice::ChoiceButton {
            label: format!("project-{n}"),
            value: sealed("pick"),
            takes_words: ask && n.is_multiple_of(2),
        };
        let buttons: Vec<choice::ChoiceButton> = (0..30).map(button).collect();
        all.push(choice::open(&wanted, &buttons, lang));
        all.push(choice::made(&wanted, "project-7", lang));
    }
    all
}

#[test]
fn every_card_nod_can_make_is_as_the_documents_say() {
    let mut seen = 0;
    for lang in LANGS {
        for card in all_cards(lang) {
            for rung in with_rungs(card.clone(), lang) {
                seen += 1;
                if let Err(why) = check_card(&rung) {
                    panic!("{why}\n{rung:#}");
                }
            }
        }
    }
    assert!(seen > 4_000, "{seen} cards");
}

/// Drawn once for all tests.
fn all_cards(lang: Lang) -> &'static [Value] {
    static ALL: [LazyLock<Vec<Value>>; 2] = [
        LazyLock::new(|| draw(Lang::Zh)),
        LazyLock::new(|| draw(Lang::En)),
    ];
    match lang {
        Lang::Zh => &ALL[0],
        Lang::En => &ALL[1],
    }
}

fn draw(lang: Lang) -> Vec<Value> {
    let requests = requests();
    let waiting = requests.iter().flat_map(|request| cards_of(request, lang));
    waiting.chain(others(lang)).collect()
}

/// Each component with this tag.
fn each<'a>(node: &'a Value, tag: &str, see: &mut dyn FnMut(&'a Value)) {
    match node {
        Value::Object(map) => {
            if map.get("tag").is_some_and(|own| own == tag) {
                see(node);
            }
            map.values().for_each(|inner| each(inner, tag, see));
        }
        Value::Array(list) => list.iter().for_each(|inner| each(inner, tag, see)),
        _ => {}
    }
}

/// Feishu promises the question nowhere else.
#[test]
fn only_what_submits_a_form_asks_first() {
    let mut asking = 0;
    for card in all_cards(Lang::En) {
        each(card, "button", &mut |button| {
            if button.get("confirm").is_some() {
                asking += 1;
                assert_eq!(button["form_action_type"], "submit", "{button}");
            }
        });
    }
    assert!(asking > 20, "{asking} buttons ask");
}

#[test]
fn no_row_has_more_than_two_places() {
    for card in all_cards(Lang::En) {
        each(card, "column_set", &mut |row| {
            assert!(row["columns"].as_array().unwrap().len() <= 2, "{row}");
        });
    }
}

#[test]
fn a_hint_to_reply_says_that_a_group_wants_the_bot_mentioned() {
    for (lang, mention) in [
        (Lang::Zh, "群里请同时 @ 机器人"),
        (Lang::En, "mention the bot"),
    ] {
        for request in requests() {
            let card = match questions::of(&request.tool, &request.input) {
                Some((ask, _)) => {
                    let values = |_: QuestionTap| sealed("answer");
                    let (nothing, submit) = (Before::Nothing, sealed("answer"));
                    question::pending(&request, &ask, &nothing, &values, &submit, MAX_CARD, lang)
                        .card
                }
                None => waiting(&request, lang),
            };
            assert!(card.to_string().contains(mention), "{card:#}");
        }
    }
}

/// Each is a card of nod's own with one thing wrong.
#[test]
#[allow(
    clippy::too_many_lines,
    reason = "one line for each bad card, and nothing else"
)]
fn the_checker_refuses_cards_that_are_known_to_be_bad() {
    let request = asked::request("Bash", json!({"command": "npm test"}));
    let good = waiting(&request, Lang::Zh);
    check_card(&good).unwrap();
    let at = |pointer: &str, value: Value| {
        let mut bad = good.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = bad.pointer_mut(parent).expect(pointer);
        match key.parse::<usize>() {
            Ok(n) => parent.as_array_mut().unwrap().insert(n, value),
            Err(_) => parent[key] = value,
        }
        bad
    };
    let text = json!({"tag": "plain_text", "content": "t"});
    let submit = json!({"tag": "button", "name": "s", "text": text, "form_action_type": "submit"});
    let form = json!({"tag": "form", "name": "second", "elements": [submit]});
    let body = "/body/elements/0";
    let button = |more: Value| {
        let mut button = json!({"tag": "button", "text": text});
        for (key, value) in more.as_object().unwrap() {
            button[key] = value.clone();
        }
        at(body, button)
    };
    let mut deep = json!({"tag": "hr"});
    for _ in 0..6 {
        deep = json!({"tag": "column_set", "columns": [{"tag": "column", "elements": [deep]}]});
    }
    let fold = |inner: Value| json!({"tag": "collapsible_panel", "header": {"title": text}, "elements": [inner]});
    let table = "| a | b |\n|---|---|\n| 1 | 2 |\n\n".repeat(4);
    let mut bodiless = good.clone();
    bodiless.as_object_mut().unwrap().remove("body");
    let many: Vec<Value> = (0..201).map(|_| json!({"tag": "hr"})).collect();
    let bad = [
        ("another schema", at("/schema", json!("3.0"))),
        ("no body", bodiless),
        (
            "updates for one only",
            at("/config/update_multi", json!(false)),
        ),
        (
            "an invented setting",
            at("/config/wide_screen_mode", json!(true)),
        ),
        (
            "an invented template",
            at("/header/template", json!("pink")),
        ),
        (
            "an invented tag colour",
            at("/header/text_tag_list/0/color", json!("grey")),
        ),
        ("a title that is no object", at("/header/title", json!("t"))),
        (
            "a 1.0 component",
            at(body, json!({"tag": "action", "actions": []})),
        ),
        ("a note", at(body, json!({"tag": "note", "elements": []}))),
        ("no component at all", at(body, json!({"tag": "blink"}))),
        (
            "an attribute of nobody's",
            at(body, json!({"tag": "hr", "colour": "red"})),
        ),
        ("a text without words", at(body, json!({"tag": "div"}))),
        (
            "a size of nobody's",
            at(
                body,
                json!({"tag": "div", "text": {"tag": "plain_text", "content": "x", "text_size": "tiny"}}),
            ),
        ),
        (
            "a colour of nobody's",
            at(
                body,
                json!({"tag": "div", "text": {"tag": "plain_text", "content": "x", "text_color": "gray"}}),
            ),
        ),
        ("a width of nobody's", button(json!({"width": "wide"}))),
        ("a type of nobody's", button(json!({"type": "huge"}))),
        ("a bare value", button(json!({"value": {"a": 1}}))),
        (
            "a value that is a list",
            button(json!({"behaviors": [{"type": "callback", "value": [1]}]})),
        ),
        (
            "a behaviour of nobody's",
            button(json!({"behaviors": [{"type": "explode"}]})),
        ),
        (
            "a label too long",
            button(json!({"text": {"tag": "plain_text", "content": "x".repeat(101)}})),
        ),
        (
            "an id too long",
            button(json!({"element_id": "x".repeat(21)})),
        ),
        ("an id with a dash", button(json!({"element_id": "a-b"}))),
        ("an id twice", button(json!({"element_id": "b_deny"}))),
        ("a submit outside of a form", at(body, submit.clone())),
        (
            "a column on its own",
            at(body, json!({"tag": "column", "elements": []})),
        ),
        (
            "a column of too much weight",
            at(
                body,
                json!({"tag": "column_set", "columns": [{"tag": "column", "weight": 6, "elements": []}]}),
            ),
        ),
        ("a form in a fold", at(body, fold(form.clone()))),
        (
            "a table in a fold",
            at(
                body,
                fold(json!({"tag": "table", "columns": [], "rows": []})),
            ),
        ),
        (
            "a form without a name",
            at(body, json!({"tag": "form", "elements": [submit]})),
        ),
        (
            "a form without a submit",
            at(
                body,
                json!({"tag": "form", "name": "f", "elements": [{"tag": "hr"}]}),
            ),
        ),
        (
            "a form in a form",
            at(
                body,
                json!({"tag": "form", "name": "f", "elements": [submit, form]}),
            ),
        ),
        (
            "a field without a name",
            at(
                body,
                json!({"tag": "form", "name": "f", "elements": [{"tag": "input"}, submit]}),
            ),
        ),
        (
            "an input too long",
            at(body, json!({"tag": "input", "max_length": 1_001})),
        ),
        (
            "a hint too long",
            at(
                body,
                json!({"tag": "input", "placeholder": {"tag": "plain_text", "content": "x".repeat(101)}}),
            ),
        ),
        (
            "options of one value",
            at(
                body,
                json!({"tag": "select_static", "options": [{"text": text, "value": "a"}, {"text": text, "value": "a"}]}),
            ),
        ),
        (
            "several choices outside of a form",
            at(body, json!({"tag": "multi_select_static", "options": []})),
        ),
        (
            "a fourth table in one text",
            at(body, json!({"tag": "markdown", "content": table})),
        ),
        ("too many components", at("/body/elements", json!(many))),
        ("too deep", at(body, deep)),
        (
            "too large",
            at(
                body,
                json!({"tag": "div", "text": {"tag": "plain_text", "content": "\"".repeat(8_000)}}),
            ),
        ),
    ];
    for (what, card) in bad {
        assert!(check_card(&card).is_err(), "{what} was taken");
    }
}
