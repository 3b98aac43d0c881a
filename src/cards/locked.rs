//! A waiting card on which not every tap counts. While remote approval is
//! locked, what would let the work go on is taken off it and what refuses stays;
//! once its machine hears no taps, nothing stays. Pure.

use serde_json::Value;

use super::ways::ALLOW_IS_BELOW;
use super::{Action, coloured};
use crate::sessions::questions::QuestionTap;
use crate::text::{Lang, Text};
use crate::wording::LOCKED;

pub fn locked(card: Value, lang: Lang) -> Value {
    without(card, refuses, &LOCKED, lang)
}

/// No tap on it counts any more, and `why` says so.
pub fn closed(card: Value, why: &Text, lang: Lang) -> Value {
    without(card, |_| false, why, lang)
}

fn without(mut card: Value, stays: fn(&Value) -> bool, why: &Text, lang: Lang) -> Value {
    if let Some(elements) = card["body"]["elements"].as_array_mut() {
        take_off(elements, stays);
        elements.insert(0, coloured(why.get(lang), "red"));
    }
    card
}

/// Forms that nothing can submit go too: Feishu takes none.
fn take_off(elements: &mut Vec<Value>, stays: fn(&Value) -> bool) {
    elements.retain(|element| element["tag"] != "button" || stays(element));
    elements.retain(|element| element["element_id"] != ALLOW_IS_BELOW);
    for element in elements.iter_mut() {
        for inside in ["elements", "columns"] {
            if let Some(inside) = element.get_mut(inside).and_then(Value::as_array_mut) {
                take_off(inside, stays);
            }
        }
    }
    elements.retain(|element| element["tag"] != "form" || has_button(element));
}

fn refuses(button: &Value) -> bool {
    let value = &button["behaviors"][0]["value"];
    let action = value["action"].as_str().unwrap_or_default();
    match Action::parse(action) {
        Some(Action::Deny | Action::DenyWith | Action::Interrupt) => true,
        Some(Action::Allow | Action::Always | Action::Session | Action::Wider | Action::Undo) => {
            false
        }
        None => matches!(
            value["tap"].as_str().and_then(QuestionTap::parse),
            Some(QuestionTap::Decline | QuestionTap::RevisePlan)
        ),
    }
}

fn has_button(node: &Value) -> bool {
    match node {
        Value::Object(map) => node["tag"] == "button" || map.values().any(has_button),
        Value::Array(all) => all.iter().any(has_button),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::question;
    use super::super::sample::{actions, bash, read, request, waiting};
    use super::super::whole::Before;
    use super::*;
    use crate::sessions::questions;

    #[test]
    fn a_card_whose_machine_hears_no_taps_has_no_button() {
        let why = Text::new("原因", "the reason");
        let card = closed(waiting(&bash("npm test")), &why, Lang::En);
        assert!(actions(&card).is_empty(), "{card}");
        let seen = read(&card);
        assert!(seen.contains("the reason") && seen.contains("npm test"));
    }

    #[test]
    fn only_what_refuses_is_left() {
        let card = waiting(&bash("npm test"));
        assert!(actions(&card).contains(&"allow"));
        let card = locked(card, Lang::En);
        assert_eq!(actions(&card), ["deny", "interrupt", "deny_with"]);
        assert!(!card.to_string().contains("null"), "nothing was added");
        let dangerous = waiting(&bash("git push --force"));
        assert!(read(&dangerous).contains("批准在下方"));
        let seen = read(&locked(dangerous, Lang::En));
        assert!(!seen.contains("批准在下方"), "nothing is: {seen}");
        for (tool, input) in [
            ("ExitPlanMode", json!({"plan": "# cut\n1. measure"})),
            (
                "AskUserQuestion",
                json!({"questions": [{"question": "Which?", "header": "Store", "multiSelect": false,
                    "options": [{"label": "a", "description": ""}, {"label": "b", "description": ""}]}]}),
            ),
        ] {
            let request = request(tool, input);
            let (ask, _) = questions::of(&request.tool, &request.input).unwrap();
            let values = |tap: QuestionTap| json!({"action": "answer", "tap": tap.as_name()});
            let submit = json!({"action": "answer"});
            let drawn = question::pending(
                &request,
                &ask,
                &Before::Nothing,
                &values,
                &submit,
                super::super::MAX_CARD,
                Lang::En,
            );
            let card = locked(drawn.card, Lang::En);
            let text = card.to_string();
            for gone in ["approve_plan", "option", "\"yes\""] {
                assert!(!text.contains(&format!("\"tap\":\"{gone}")), "{text}");
            }
            assert!(read(&card).contains(LOCKED.get(Lang::En)), "{text}");
        }
    }
}
