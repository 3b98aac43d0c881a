//! Taps as some clients and gateways have sent them: the documented body, bent
//! in one known way each. Pure.

use serde_json::{Map, Value, json};

use super::faults::Fault;

/// What may bend one tap, each kind once.
pub(in crate::simulator) const BENDS: [Fault; 6] = [
    Fault::SubmitWithoutValue,
    Fault::NullsDropped,
    Fault::ValueAsText,
    Fault::ChoicesAsText,
    Fault::OperatorNested,
    Fault::Pinned,
];

/// Whether the fault has something to bend in the body of this tap.
pub(in crate::simulator) fn meets(fault: &Fault, body: &Value) -> bool {
    let action = &body["event"]["action"];
    match fault {
        Fault::SubmitWithoutValue => action.get("form_value").is_some(),
        Fault::ChoicesAsText => fields(action).any(Value::is_array),
        _ => true,
    }
}

pub(in crate::simulator) fn bend(fault: &Fault, body: &mut Value) {
    let event = &mut body["event"];
    let action = &mut event["action"];
    match fault {
        Fault::SubmitWithoutValue => {
            action.as_object_mut().map(|action| action.remove("value"));
        }
        Fault::NullsDropped => {
            if let Some(value) = action["value"].as_object_mut() {
                value.retain(|_, value| !value.is_null());
            }
        }
        Fault::ValueAsText => action["value"] = json!(action["value"].to_string()),
        Fault::ChoicesAsText => {
            let form = action["form_value"].as_object_mut();
            for value in form.into_iter().flat_map(Map::values_mut) {
                if value.is_array() {
                    *value = json!(value.to_string());
                }
            }
        }
        Fault::OperatorNested => {
            let mut ids = event["operator"].take();
            let tenant = ids["tenant_key"].take();
            ids.as_object_mut().map(|ids| ids.remove("tenant_key"));
            event["operator"] = json!({"tenant_key": tenant, "user_id": ids});
        }
        Fault::Pinned => event["host"] = json!("im_top_notice"),
        _ => {}
    }
}

fn fields(action: &Value) -> impl Iterator<Item = &Value> {
    let form = action.get("form_value").and_then(Value::as_object);
    form.into_iter().flat_map(Map::values)
}

/// Whether a component stands anywhere on a card.
pub(in crate::simulator) fn holds(card: &Value, component: &str) -> bool {
    match card {
        Value::Object(map) => {
            map.get("tag").and_then(Value::as_str) == Some(component)
                || map.values().any(|inner| holds(inner, component))
        }
        Value::Array(list) => list.iter().any(|inner| holds(inner, component)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body() -> Value {
        json!({"event": {
            "operator": {"tenant_key": "t", "open_id": "ou_1", "union_id": "on_1"},
            "action": {
                "value": {"a": 1, "tap": null},
                "form_value": {"many": ["x", "y"], "text": "z"},
            },
            "host": "im_message",
        }})
    }

    #[test]
    fn each_bend_changes_what_it_names_and_nothing_else() {
        let cases = [
            (
                Fault::SubmitWithoutValue,
                "/event/action",
                json!({"form_value": {"many": ["x", "y"], "text": "z"}}),
            ),
            (Fault::NullsDropped, "/event/action/value", json!({"a": 1})),
            (
                Fault::ValueAsText,
                "/event/action/value",
                json!(r#"{"a":1,"tap":null}"#),
            ),
            (
                Fault::ChoicesAsText,
                "/event/action/form_value",
                json!({"many": r#"["x","y"]"#, "text": "z"}),
            ),
            (
                Fault::OperatorNested,
                "/event/operator",
                json!({"tenant_key": "t", "user_id": {"open_id": "ou_1", "union_id": "on_1"}}),
            ),
            (Fault::Pinned, "/event/host", json!("im_top_notice")),
        ];
        for (fault, at, expected) in cases {
            let mut bent = body();
            assert!(meets(&fault, &bent), "{fault:?}");
            bend(&fault, &mut bent);
            assert_eq!(bent.pointer(at), Some(&expected), "{fault:?}");
            let mut rest = bent;
            let whole = body();
            *rest.pointer_mut(at).unwrap() = whole.pointer(at).unwrap().clone();
            assert_eq!(rest, whole, "{fault:?}");
        }
    }

    #[test]
    fn a_tap_without_a_form_has_no_form_to_bend() {
        let plain = json!({"event": {"action": {"value": {}}}});
        assert!(!meets(&Fault::SubmitWithoutValue, &plain));
        assert!(!meets(&Fault::ChoicesAsText, &plain));
    }

    #[test]
    fn a_component_is_found_however_deep() {
        let card = json!({"body": {"elements": [{"tag": "form", "elements": [{"tag": "input"}]}]}});
        assert!(holds(&card, "input"));
        assert!(!holds(&card, "markdown"));
    }
}
