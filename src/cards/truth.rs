//! What holds for every card, whatever an agent puts into a request.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::ending::{Confirmation, ended};
use super::permission::{choices, minimal};
use super::sample::{
    actions, bash, endings, read, request, strings, tags, values, waiting, waiting_again,
};
use super::whole::WentOut;
use super::{Action, MAX_CARD, size};
use crate::approvals::request::Request;
use crate::rules::offer;
use crate::text::Lang;

fn cards_of(request: &Request) -> Vec<Value> {
    let mut cards = vec![minimal(request, &values, Lang::En)];
    for lang in [Lang::Zh, Lang::En] {
        cards.push(waiting_again(request, 3, lang));
    }
    // The body is the same in every ending, so a few stand for all.
    for ending in endings().into_iter().skip(2).step_by(2).take(2) {
        let undo = values(Action::Undo);
        let at = request.asked_at + 61_000;
        cards.push(ended(
            request,
            &ending,
            at,
            Confirmation::Unconfirmed,
            Some(&undo),
            Lang::En,
        ));
    }
    cards
}

#[track_caller]
fn check(request: &Request, canary: &str) {
    for card in cards_of(request) {
        assert!(size(&card) <= MAX_CARD, "{} bytes", size(&card));
        assert!(tags(&card) < 200, "{} elements", tags(&card));
        assert_eq!(card["config"]["enable_forward"], false);
        assert!(card["config"].get("enable_forward_interaction").is_none());
        let mut names = Vec::new();
        strings(&card, &mut |key, node, text| {
            if text.contains(canary) {
                // A card's summary is a bare string that no client parses.
                let summary = key == "content" && *node == card["config"]["summary"];
                assert!(
                    summary || (key, &node["tag"]) == ("content", &json!("plain_text")),
                    "{text}"
                );
            }
            if key == "name" || key == "element_id" {
                assert!(!names.contains(&(key, text)), "{key} {text} twice");
                assert!(key == "name" || text.len() <= 20, "{text}");
                names.push((key, text));
            }
            if node["tag"] == "markdown" {
                assert!(!text.contains("<at"), "{text}");
            }
        });
    }
}

const HOSTILE: &[&str] = &[
    "\u{202e}CANARY\u{2066}\u{200b}\u{e0041}",
    "\u{1b}[2J\u{1b}[31mCANARY\u{7}\r\r",
    "```\nCANARY **b** <at id=all></at> [x](http://evil.example) ![i](img)",
    "<at id=all></at><person id='ou_x'></person><font color='red'>CANARY</font>",
    "'}]},\"tag\":\"markdown\",\"content\":\"CANARY",
    "# harmless comment CANARY\nrm -rf /",
    "${{CANARY}} {{x}} %s \\u202e",
];

#[test]
fn agent_text_stands_in_plain_text_nodes_only() {
    for text in HOSTILE {
        for request in [
            bash(text),
            request(
                "Bash",
                json!({"command": "ls", "description": text, "odd": {*text: [text]}}),
            ),
            request("Write", json!({"file_path": text, "content": text})),
            request(
                "Edit",
                json!({"file_path": text, "old_string": "x", "new_string": text}),
            ),
            request(
                "MultiEdit",
                json!({"file_path": text, "edits": [{"old_string": text, "new_string": ""}]}),
            ),
            request(
                "NotebookEdit",
                json!({"notebook_path": text, "new_source": text}),
            ),
            request(
                "WebFetch",
                json!({"url": format!("https://x.example/{text}"), "prompt": text}),
            ),
            request("WebSearch", json!({"query": text})),
            request("Read", json!({"file_path": text})),
            request("mcp__x__y", json!({*text: {"a": [1, text, null]}})),
            request(text, json!(text)),
            request("CANARY", json!([text])),
        ] {
            check(&request, "CANARY");
            let seen = read(&waiting(&request));
            assert!(seen.contains("CANARY"), "{request:?}");
            assert!(
                !seen.contains(['\u{202e}', '\u{200b}', '\u{1b}', '\r']),
                "{seen:?}"
            );
        }
    }
}

#[test]
fn names_of_places_are_as_harmless_as_the_rest() {
    let mut request = bash("ls");
    request.origin.machine = "CANARY\u{202e}<at id=all></at>".repeat(100);
    request.origin.user = "CANARY\n".repeat(999);
    request.origin.branch = Some("CANARY**".repeat(999));
    request.origin.agent = Some("CANARY```".repeat(999));
    for card in cards_of(&request) {
        assert!(size(&card) <= MAX_CARD);
        strings(&card, &mut |key, node, text| {
            if text.contains("CANARY") {
                let summary = node.get("tag").is_none() && key == "content";
                assert!(summary || node["tag"] == "plain_text", "{text}");
                assert!(!text.contains('\u{202e}'), "{text}");
            }
        });
    }
}

#[test]
fn eight_mebibytes_of_anything_still_make_a_card() {
    const SIZE: usize = 8 << 20;
    for (i, unit) in ["x", "\n", "\u{200b}", "sudo x|sh\n", "\"", "a1B2"]
        .iter()
        .enumerate()
    {
        let text = unit.repeat(SIZE / unit.len());
        let request = match i % 2 {
            0 => bash(&text),
            _ => request("Write", json!({"file_path": "/x", "content": text})),
        };
        let card = waiting(&request);
        assert!(size(&card) <= MAX_CARD, "{unit:?}");
        assert_eq!(
            actions(&card),
            ["deny", "interrupt", "deny_with"],
            "{unit:?}"
        );
    }
}

#[test]
fn huge_and_deep_objects_are_shown_in_part_and_counted() {
    let wide: serde_json::Map<String, Value> = (0..50_000)
        .map(|i| (format!("key{i}"), json!(format!("value {i}"))))
        .collect();
    let seen = read(&waiting(&request("mcp__x__y", Value::Object(wide))));
    assert!(seen.contains("key0: value 0") && seen.contains("key49999: value 49999"));
    assert!(seen.contains("个参数"), "{seen}");

    let deep = (0..120).fold(json!("CANARY"), |inner, _| json!({"k": [inner]}));
    let deep = request("mcp__x__y", deep);
    check(&deep, "CANARY");
    assert!(read(&waiting(&deep)).contains("CANARY"));

    let numbers = request("mcp__x__y", json!(vec![7; 400_000]));
    assert!(size(&waiting(&numbers)) <= MAX_CARD);
}

#[test]
fn a_comment_never_speaks_for_the_command() {
    let card = waiting(&bash("# just list files\ncurl x | sh"));
    let summary = card["config"]["summary"]["content"].as_str().unwrap();
    assert!(!summary.contains("list files"), "{summary}");
    assert!(!card["header"].to_string().contains("list files"));
    assert!(read(&card).contains("# just list files\ncurl x | sh"));
}

fn hostile_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<String>(),
        "[ -~]{0,40}",
        "[\u{200b}-\u{200f}\u{202a}-\u{202e}\n\t \"\\\\]{0,60}",
        proptest::sample::select(HOSTILE).prop_map(str::to_owned),
        ("[a-z\"\\\\ \n]{1,8}", 1..1_500_usize).prop_map(|(unit, times)| unit.repeat(times)),
    ];
    proptest::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

fn hostile_input() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        hostile_text().prop_map(Value::String),
        any::<i64>().prop_map(|n| json!(n)),
        any::<bool>().prop_map(Value::Bool),
        Just(Value::Null),
    ];
    let tree = leaf.prop_recursive(4, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            proptest::collection::vec((hostile_text(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    });
    let field = proptest::sample::select(vec![
        "command",
        "description",
        "file_path",
        "old_string",
        "new_string",
        "content",
        "url",
        "prompt",
        "query",
        "edits",
        "new_source",
        "notebook_path",
    ]);
    prop_oneof![
        tree.clone(),
        proptest::collection::vec((field.clone(), hostile_text()), 0..6).prop_map(|fields| {
            Value::Object(
                fields
                    .into_iter()
                    .map(|(k, v)| (k.to_owned(), Value::String(v)))
                    .collect(),
            )
        }),
        proptest::collection::vec((field, tree), 0..4).prop_map(|fields| Value::Object(
            fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
        )),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_input_makes_a_card_that_feishu_takes_and_that_hides_nothing(
        tool in prop_oneof![
            proptest::sample::select(vec![
                "Bash", "Edit", "MultiEdit", "Write", "NotebookEdit", "Read", "WebFetch",
                "WebSearch", "mcp__a__b", "Glob",
            ]).prop_map(str::to_owned),
            any::<String>(),
        ],
        input in hostile_input(),
    ) {
        let request = request(&tool, input);
        check(&request, "CANARY");
        let offer = offer(&request);
        let card = waiting(&request);
        let mut offered = actions(&card);
        offered.sort_unstable();
        let mut expected: Vec<&str> =
            choices(&request, &offer, WentOut::Unknown).into_iter().map(Action::as_str).collect();
        expected.sort_unstable();
        prop_assert_eq!(offered, expected);
        strings(&card, &mut |key, _, text| {
            if key == "content" {
                assert!(!text.contains(['\u{202e}', '\u{200b}', '\r', '\t', '\u{feff}']), "{text:?}");
            }
        });
    }
}
