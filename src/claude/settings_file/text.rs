//! The text of a settings file with one allow rule more or less. Pure. What is
//! not exactly JSON is not touched: Claude Code might read it otherwise.

use jsonc_parser::ast::Value as Node;
use jsonc_parser::cst::{CstInputValue, CstRootNode};
use jsonc_parser::{CollectOptions, parse_to_ast};
use serde_json::{Value, json};

use crate::claude::json_text::{STRICT, Untouchable, at, check_keys, utf8};

#[derive(Debug, Clone, Copy)]
pub(super) enum RuleEdit<'a> {
    Add(&'a str),
    Remove(&'a str),
}

/// The new text, or `None` when the old one already is as wanted.
pub(super) fn edited(
    old: Option<&[u8]>,
    edit: RuleEdit<'_>,
) -> Result<Option<String>, Untouchable> {
    let Some(old) = old else {
        return Ok(match edit {
            RuleEdit::Add(rule) => Some(fresh(rule)),
            RuleEdit::Remove(_) => None,
        });
    };
    let text = readable(old)?;
    let before: Value = serde_json::from_str(text).map_err(|error| Untouchable {
        line: error.line().max(1),
        column: error.column().max(1),
        problem: "it is not valid JSON".to_owned(),
    })?;
    check_shape(text)?;

    let mut wanted = before.clone();
    if !apply(&mut wanted, edit) {
        return Ok(None);
    }
    let new = rewrite(text, edit).ok_or_else(|| not_understood(text))?;
    // Whatever the editor did to the text, this is what it has to mean.
    if serde_json::from_str::<Value>(&new).ok() != Some(wanted) {
        return Err(not_understood(text));
    }
    Ok(Some(new))
}

fn fresh(rule: &str) -> String {
    let value = json!({"permissions": {"allow": [rule]}});
    format!("{value:#}\n")
}

fn readable(bytes: &[u8]) -> Result<&str, Untouchable> {
    let text = utf8(bytes)?;
    if text.starts_with('\u{feff}') {
        return Err(at(text, 0, "it starts with a byte order mark"));
    }
    Ok(text)
}

/// Whether a rule has its place in there.
fn check_shape(text: &str) -> Result<(), Untouchable> {
    let parsed =
        parse_to_ast(text, &CollectOptions::default(), &STRICT).map_err(|error| Untouchable {
            line: error.line_display(),
            column: error.column_display(),
            problem: "it is not valid JSON".to_owned(),
        })?;
    let Some(Node::Object(root)) = parsed.value else {
        return Err(at(text, 0, "it is not an object"));
    };
    check_keys(text, &Node::Object(root.clone()))?;
    let Some(permissions) = root.get("permissions") else {
        return Ok(());
    };
    let Node::Object(permissions) = &permissions.value else {
        let start = permissions.range.start;
        return Err(at(text, start, "`permissions` is not an object"));
    };
    let Some(allow) = permissions.get("allow") else {
        return Ok(());
    };
    match &allow.value {
        Node::Array(rules) if rules.elements.iter().all(is_string) => Ok(()),
        _ => Err(at(
            text,
            allow.range.start,
            "`allow` is not a list of strings",
        )),
    }
}

fn is_string(node: &Node<'_>) -> bool {
    node.as_string_lit().is_some()
}

/// Does to the meaning what [`rewrite`] does to the text; `false` when there is
/// nothing to do.
fn apply(settings: &mut Value, edit: RuleEdit<'_>) -> bool {
    match edit {
        RuleEdit::Add(rule) => {
            let allow = &mut settings["permissions"]["allow"];
            if allow.is_null() {
                *allow = json!([]);
            }
            let Value::Array(rules) = allow else {
                return false;
            };
            let missing = !rules.iter().any(|known| known == rule);
            if missing {
                rules.push(rule.into());
            }
            missing
        }
        RuleEdit::Remove(rule) => {
            let Some(Value::Array(rules)) = settings.pointer_mut("/permissions/allow") else {
                return false;
            };
            let before = rules.len();
            rules.retain(|known| known != rule);
            rules.len() != before
        }
    }
}

fn rewrite(text: &str, edit: RuleEdit<'_>) -> Option<String> {
    let root = CstRootNode::parse(text, &STRICT).ok()?;
    let permissions = root.object_value()?.object_value_or_create("permissions")?;
    let allow = permissions.array_value_or_create("allow")?;
    match edit {
        RuleEdit::Add(rule) => {
            allow.append(CstInputValue::String(rule.to_owned()));
            if allow.elements().len() == 1 {
                allow.ensure_multiline();
            }
        }
        RuleEdit::Remove(rule) => {
            for element in allow.elements() {
                let text = element.as_string_lit()?.decoded_value().ok()?;
                if text == rule {
                    element.remove();
                }
            }
        }
    }
    Some(root.to_string())
}

fn not_understood(text: &str) -> Untouchable {
    at(
        text,
        0,
        "it can't be edited without changing more than the rule",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: &str = "Bash(npm run *)";

    #[track_caller]
    fn check(old: &str, edit: RuleEdit<'_>, new: &str) {
        assert_eq!(edited(Some(old.as_bytes()), edit), Ok(Some(new.to_owned())));
    }

    #[test]
    fn a_missing_file_becomes_the_one_claude_code_would_write() {
        let new = edited(None, RuleEdit::Add(RULE)).unwrap().unwrap();
        assert_eq!(
            new,
            "{\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(npm run *)\"\n    ]\n  }\n}\n"
        );
        assert_eq!(edited(None, RuleEdit::Remove(RULE)), Ok(None));
    }

    #[test]
    fn one_line_is_added_and_nothing_else_moves() {
        check(
            "{\n    \"z\": 1.50,\n    \"permissions\": {\n        \"deny\": [\"Bash(rm *)\"],\n        \"allow\": [\n            \"A\"\n        ]\n    },\n    \"a\": \"\\u00e9\"\n}\n",
            RuleEdit::Add(RULE),
            "{\n    \"z\": 1.50,\n    \"permissions\": {\n        \"deny\": [\"Bash(rm *)\"],\n        \"allow\": [\n            \"A\",\n            \"Bash(npm run *)\"\n        ]\n    },\n    \"a\": \"\\u00e9\"\n}\n",
        );
        check(
            "{\r\n\t\"permissions\": {\r\n\t\t\"allow\": [\r\n\t\t\t\"A\"\r\n\t\t]\r\n\t}\r\n}",
            RuleEdit::Add(RULE),
            "{\r\n\t\"permissions\": {\r\n\t\t\"allow\": [\r\n\t\t\t\"A\",\r\n\t\t\t\"Bash(npm run *)\"\r\n\t\t]\r\n\t}\r\n}",
        );
    }

    #[test]
    fn what_is_missing_on_the_way_is_made() {
        for old in [
            "{}",
            "{\n}\n",
            "{\"a\": 1}",
            "{\n  \"permissions\": {}\n}\n",
            "{\n  \"permissions\": {\n    \"deny\": []\n  }\n}\n",
            "{\"permissions\":{\"allow\":[]}}",
            "{\"permissions\":{\"allow\":[\"A\"]}}",
        ] {
            let new = edited(Some(old.as_bytes()), RuleEdit::Add(RULE))
                .unwrap()
                .unwrap();
            let again = edited(Some(new.as_bytes()), RuleEdit::Add(RULE));
            assert_eq!(again, Ok(None), "{old} -> {new}");
            let back = edited(Some(new.as_bytes()), RuleEdit::Remove(RULE))
                .unwrap()
                .unwrap();
            let meaning: Value = serde_json::from_str(&back).unwrap();
            assert!(
                !back.contains(RULE) && meaning.is_object(),
                "{old} -> {back}"
            );
        }
    }

    #[test]
    fn a_rule_is_taken_out_wherever_it_stands() {
        check(
            "{\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(npm run *)\",\n      \"B\"\n    ]\n  }\n}\n",
            RuleEdit::Remove(RULE),
            "{\n  \"permissions\": {\n    \"allow\": [\n      \"B\"\n    ]\n  }\n}\n",
        );
        check(
            "{\"permissions\": {\"allow\": [\"A\", \"Bash(npm\\u0020run *)\", \"B\", \"Bash(npm run *)\"]}}",
            RuleEdit::Remove(RULE),
            "{\"permissions\": {\"allow\": [\"A\", \"B\"]}}",
        );
        assert_eq!(edited(Some(b"{}"), RuleEdit::Remove(RULE)), Ok(None));
    }

    #[test]
    fn rules_with_odd_characters_survive() {
        for rule in [
            "Bash(a \"b\" \\(c\\))",
            "Bash(é 中 \u{1f600})",
            "Edit(//x/\\\\y)",
        ] {
            let new = edited(
                Some(b"{\"permissions\": {\"allow\": [\"A\"]}}"),
                RuleEdit::Add(rule),
            );
            let new: Value = serde_json::from_str(&new.unwrap().unwrap()).unwrap();
            assert_eq!(new["permissions"]["allow"], json!(["A", rule]));
        }
    }

    #[test]
    fn what_is_not_plain_json_is_left_alone_and_the_place_named() {
        for (old, line, column) in [
            (&b""[..], 1, 1),
            (b"  \n ", 2, 1),
            (b"{", 1, 1),
            (b"\xef\xbb\xbf{}", 1, 1),
            (b"{\n  // why\n}", 2, 3),
            (b"{\n  \"a\": 1, /* why */ \"b\": 2\n}", 2, 11),
            (b"{\"a\": [1,]}", 1, 10),
            (b"{\"a\": 1,\n}", 2, 1),
            (b"{\"a\": 1 \"b\": 2}", 1, 9),
            (b"{'a': 1}", 1, 2),
            (b"{a: 1}", 1, 2),
            (b"{\"a\": 0x1}", 1, 8),
            (b"{\"a\": NaN}", 1, 7),
            (b"{\"a\": 1}\n{}", 2, 1),
            (b"{\"a\": 1,\n \"a\": 2}", 2, 2),
            (b"{\"a\": [{\"b\": 1, \"\\u0062\": 2}]}", 1, 17),
            (b"{\"\xc3\xa9\": \"\xff\"}", 1, 8),
            (b"[]", 1, 1),
            (b"{\"permissions\": 1}", 1, 2),
            (b"{\"permissions\": {\"allow\": {}}}", 1, 18),
            (b"{\"permissions\": {\"allow\": [1]}}", 1, 18),
            (b"{\"permissions\": null}", 1, 2),
        ] {
            let refused = edited(Some(old), RuleEdit::Add(RULE)).unwrap_err();
            let place = (refused.line, refused.column);
            assert_eq!(place, (line, column), "{} {refused:?}", old.escape_ascii());
        }
    }

    #[test]
    fn deep_nesting_is_refused_and_does_not_overflow() {
        let deep = format!("{{\"a\": {}{}}}", "[".repeat(300_000), "]".repeat(300_000));
        assert!(edited(Some(deep.as_bytes()), RuleEdit::Add(RULE)).is_err());
    }
}
