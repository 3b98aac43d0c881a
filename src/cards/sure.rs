//! The card that asks once more, for a layout whose buttons can't ask: what the
//! button on the first card would have asked, the same button, and a refusal.

use serde_json::{Value, json};

use super::div;
use crate::text::Lang;
use crate::wording::card as words;

/// The question of the button on `card` that asks what was tapped. `sure` is
/// the value of the button that answers it; `None` where no such button asks.
pub fn once_more(card: &Value, tapped: &Value, sure: Value, lang: Lang) -> Option<Value> {
    let mut buttons = Vec::new();
    collect(&card["body"], &mut buttons);
    let same = |value: &Value| value["action"] == tapped["action"] && value["tap"] == tapped["tap"];
    let asks = buttons
        .iter()
        .find(|button| button.get("confirm").is_some() && value_of(button).is_some_and(same))?;
    let refuses = |button: &&&Value| {
        let is_refusal = |value: &Value| value["action"] == "deny" || value["tap"] == "decline";
        button.get("confirm").is_none() && value_of(button).is_some_and(is_refusal)
    };
    let ask = &asks["confirm"];
    let said = |part: &str| div(ask[part]["content"].as_str().unwrap_or_default());
    let mut elements = vec![said("title"), said("text"), plainly(asks)];
    elements[2]["behaviors"][0]["value"] = sure;
    elements.extend(buttons.iter().find(refuses).map(|button| plainly(button)));
    let header = &card["header"];
    let state = words::ASKED_FIRST.get(lang);
    let title = header["title"]["content"].as_str().unwrap_or_default();
    let mut config = card["config"].clone();
    config["summary"] = json!({"content": lang.labelled(state, title)});
    Some(json!({
        "schema": "2.0",
        "config": config,
        "header": {
            "title": header["title"],
            "subtitle": header["subtitle"],
            "template": header["template"],
        },
        "body": {"elements": elements},
    }))
}

fn value_of(button: &Value) -> Option<&Value> {
    button.pointer("/behaviors/0/value")
}

/// The button as it stands outside of forms.
fn plainly(button: &Value) -> Value {
    let mut button = button.clone();
    if let Some(map) = button.as_object_mut() {
        for of_a_form in ["confirm", "name", "form_action_type"] {
            map.remove(of_a_form);
        }
    }
    button
}

fn collect<'a>(node: &'a Value, buttons: &mut Vec<&'a Value>) {
    match node {
        Value::Object(map) if map.get("tag").is_some_and(|tag| tag == "button") => {
            buttons.push(node);
        }
        Value::Object(map) => map.values().for_each(|inner| collect(inner, buttons)),
        Value::Array(list) => list.iter().for_each(|inner| collect(inner, buttons)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{actions, bash, read, values, waiting};
    use super::super::{Action, MAX_CARD, size};
    use super::*;

    fn asked(command: &str, action: Action) -> Option<Value> {
        let (card, value) = (waiting(&bash(command)), values(action));
        once_more(&card, &value, value.clone(), Lang::Zh)
    }

    #[test]
    fn the_second_card_says_what_the_question_would_have_said() {
        let card = asked("sudo rm -r canary", Action::Allow).unwrap();
        let seen = read(&card);
        for said in ["确认批准？", "sudo rm -r canary", "拒绝运行"] {
            assert!(seen.contains(said), "{said}: {seen}");
        }
        assert_eq!(actions(&card), ["allow", "deny"]);
        let card = asked("npm test", Action::Always).unwrap();
        assert!(read(&card).contains("规则：Bash(npm test)"), "{card}");
        assert_eq!(actions(&card), ["always", "deny"]);
        assert!(size(&card) < MAX_CARD);
    }

    #[test]
    fn what_asks_nothing_has_no_second_card() {
        assert!(asked("npm test", Action::Allow).is_none());
        assert!(asked("sudo rm -r canary", Action::Always).is_none());
        assert!(asked("npm test", Action::Interrupt).is_none());
    }
}
