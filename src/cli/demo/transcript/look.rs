//! What a person reads on a card, taken from its JSON. Pure.

use serde_json::Value;

use crate::text::Lang;
use crate::wording::task;

/// Every button: the value it sends and its text.
pub(super) fn buttons(card: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    each(card, &mut |node| {
        if node["tag"] == "button"
            && let Some(value) = node["behaviors"][0].get("value")
            && let Some(label) = node["text"]["content"].as_str()
        {
            found.push((value.to_string(), label.to_owned()));
        }
    });
    found
}

/// Every option of every field: the field's name and the option's value, and
/// the option's text.
pub(super) fn options(card: &Value) -> Vec<((String, String), String)> {
    let mut found = Vec::new();
    each(card, &mut |node| {
        let Some(name) = node["name"].as_str() else {
            return;
        };
        for option in node["options"].as_array().into_iter().flatten() {
            if let (Some(value), Some(label)) =
                (option["value"].as_str(), option["text"]["content"].as_str())
            {
                found.push(((name.to_owned(), value.to_owned()), label.to_owned()));
            }
        }
    });
    found
}

/// All markdown of a card, one node a line.
pub(super) fn markdown(card: &Value) -> String {
    let mut found = Vec::new();
    each(card, &mut |node| {
        if node["tag"] == "markdown"
            && let Some(content) = node["content"].as_str()
        {
            found.push(content.to_owned());
        }
    });
    found.join("\n")
}

/// What the task of a card is doing.
pub(in crate::cli::demo) fn step(card: &Value) -> Option<String> {
    let mut found = None;
    each(card, &mut |node| {
        let text = node["content"].as_str().unwrap_or_default();
        let step = [Lang::Zh, Lang::En]
            .iter()
            .find_map(|lang| text.strip_prefix(&task::STEP.labels("", *lang)));
        if found.is_none() {
            found = step.map(str::to_owned);
        }
    });
    found
}

/// The words of a text message, from its content.
pub(super) fn words(content: &Value) -> Option<String> {
    let content: Value = serde_json::from_str(content.as_str()?).ok()?;
    Some(content["text"].as_str()?.to_owned())
}

fn each(node: &Value, see: &mut impl FnMut(&Value)) {
    match node {
        Value::Array(nodes) => nodes.iter().for_each(|node| each(node, see)),
        Value::Object(map) => {
            see(node);
            map.values().for_each(|node| each(node, see));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_card_is_read_as_a_person_reads_it() {
        let card = json!({"body": {"elements": [
            {"tag": "div", "text": {"tag": "plain_text", "content": "Step: Read · a.ts"}},
            {"tag": "markdown", "content": "**done**"},
            {"tag": "form", "name": "f", "elements": [
                {"tag": "select_static", "name": "q0", "options": [
                    {"text": {"tag": "plain_text", "content": "Redis"}, "value": "o0"},
                ]},
                {"tag": "button", "text": {"content": "Go"}, "behaviors": [{"type": "callback", "value": {"a": 1}}]},
                {"tag": "button", "text": {"content": "Reset"}},
            ]},
        ]}});
        assert_eq!(
            buttons(&card),
            [(json!({"a": 1}).to_string(), "Go".to_owned())]
        );
        let option = ("q0".to_owned(), "o0".to_owned());
        assert_eq!(options(&card), [(option, "Redis".to_owned())]);
        assert_eq!(markdown(&card), "**done**");
        assert_eq!(step(&card).as_deref(), Some("Read · a.ts"));
        let chinese = json!({"content": "当前步骤：Read · a.ts"});
        assert_eq!(step(&chinese).as_deref(), Some("Read · a.ts"));
        assert_eq!(words(&json!(r#"{"text":"hi"}"#)).as_deref(), Some("hi"));
        assert_eq!(words(&json!("{}")), None);
    }
}
