//! What a person's tap on a card sends: found on the card as it is now, with
//! what they filled in. Refuses what a real client would not let them do.

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A tap: which component, who, and what was filled in. Every given selector
/// must match; `value` matches when the callback value holds all its keys.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Press {
    pub message_id: String,
    /// Any id of a user, or their name; empty is the first user.
    pub user: String,
    pub element_id: Option<String>,
    pub name: Option<String>,
    pub text: Option<String>,
    pub value: Option<Value>,
    pub form_value: Map<String, Value>,
    pub option: Option<String>,
    pub input_value: Option<String>,
    pub checked: Option<bool>,
}

impl Press {
    fn new(message_id: &str) -> Self {
        Self {
            message_id: message_id.to_owned(),
            ..Self::default()
        }
    }

    /// The button whose callback value has this `action`.
    pub fn action(message_id: &str, action: &str) -> Self {
        Self {
            value: Some(json!({"action": action})),
            ..Self::new(message_id)
        }
    }

    pub fn element(message_id: &str, element_id: &str) -> Self {
        Self {
            element_id: Some(element_id.to_owned()),
            ..Self::new(message_id)
        }
    }

    pub fn named(message_id: &str, name: &str) -> Self {
        Self {
            name: Some(name.to_owned()),
            ..Self::new(message_id)
        }
    }

    pub fn text(message_id: &str, text: &str) -> Self {
        Self {
            text: Some(text.to_owned()),
            ..Self::new(message_id)
        }
    }

    #[must_use]
    pub fn by(self, user: &str) -> Self {
        Self {
            user: user.to_owned(),
            ..self
        }
    }

    #[must_use]
    pub fn fill(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.form_value.insert(name.to_owned(), value.into());
        self
    }
}

/// Why a tap can't be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unclickable {
    #[error("there is no message `{0}`")]
    NoMessage(String),
    #[error("there is no user `{0}`")]
    NoUser(String),
    #[error("`{0}` does not see this chat")]
    NotInChat(String),
    #[error("the message was recalled")]
    Recalled,
    #[error("the card is older than 14 days")]
    Expired,
    #[error("the message shows no card")]
    NoCard,
    #[error("nothing on the card matches")]
    NotThere,
    #[error("{0} components match, which one is meant?")]
    Ambiguous(usize),
    #[error("the component is disabled")]
    Disabled,
    #[error("the component has no callback")]
    NoCallback,
    #[error("the form can't be sent: {0}")]
    Form(String),
}

struct FoundComponent<'a> {
    component: &'a Value,
    form: Option<&'a Value>,
}

const INTERACTIVE: &[&str] = &[
    "button",
    "input",
    "select_static",
    "multi_select_static",
    "overflow",
    "checker",
    "date_picker",
    "picker_time",
    "picker_datetime",
    "select_person",
    "multi_select_person",
    "interactive_container",
];

/// The `event.action` of a tap on this card.
pub(in crate::simulator) fn action(card: &Value, press: &Press) -> Result<Value, Unclickable> {
    let mut all = Vec::new();
    let roots = card
        .pointer("/body/elements")
        .or_else(|| card.get("elements"));
    collect(roots.unwrap_or(&Value::Null), None, &mut all);
    let mut matching = all.into_iter().filter(|found| matches(found, press));
    let found = matching.next().ok_or(Unclickable::NotThere)?;
    let more = matching.count();
    if more > 0 {
        return Err(Unclickable::Ambiguous(more + 1));
    }
    if found.component["disabled"] == true {
        return Err(Unclickable::Disabled);
    }
    let value = callback(found.component).ok_or(Unclickable::NoCallback)?;
    let tag = text(found.component, "tag");
    let mut action = json!({"value": value, "tag": tag});
    if let Some(name) = found.component.get("name") {
        action["name"] = name.clone();
    }
    match found.form {
        Some(form) => {
            if tag != "button" || text(found.component, "form_action_type") != "submit" {
                return Err(Unclickable::Form(
                    "only a submit button sends it".to_owned(),
                ));
            }
            let values = fill(form, &press.form_value).map_err(Unclickable::Form)?;
            action["form_value"] = Value::Object(values);
        }
        None if !press.form_value.is_empty() => {
            return Err(Unclickable::Form("the button is in no form".to_owned()));
        }
        None => alone(found.component, press, &mut action)?,
    }
    Ok(action)
}

fn collect<'a>(node: &'a Value, form: Option<&'a Value>, out: &mut Vec<FoundComponent<'a>>) {
    match node {
        Value::Array(list) => list.iter().for_each(|item| collect(item, form, out)),
        Value::Object(_) => {
            let tag = text(node, "tag");
            if INTERACTIVE.contains(&tag) {
                let component = node;
                out.push(FoundComponent { component, form });
            }
            let form = if tag == "form" { Some(node) } else { form };
            for key in ["elements", "columns", "actions"] {
                collect(&node[key], form, out);
            }
        }
        _ => {}
    }
}

fn text<'a>(node: &'a Value, key: &str) -> &'a str {
    node[key].as_str().unwrap_or_default()
}

/// 2.0: the callback behavior; 1.0: the component's own value.
fn callback(component: &Value) -> Option<&Value> {
    match component["behaviors"].as_array() {
        Some(list) => list
            .iter()
            .find(|behavior| behavior["type"] == "callback")
            .and_then(|behavior| behavior.get("value")),
        None => component.get("value"),
    }
}

fn matches(found: &FoundComponent<'_>, press: &Press) -> bool {
    let is = |key: &str, wanted: &Option<String>| {
        wanted
            .as_deref()
            .is_none_or(|wanted| text(found.component, key) == wanted)
    };
    let shown = found.component["text"]["content"].as_str();
    let any = press.element_id.is_some()
        || press.name.is_some()
        || press.text.is_some()
        || press.value.is_some();
    any && is("element_id", &press.element_id)
        && is("name", &press.name)
        && press
            .text
            .as_deref()
            .is_none_or(|wanted| shown == Some(wanted))
        && press
            .value
            .as_ref()
            .is_none_or(|wanted| callback(found.component).is_some_and(|own| holds(own, wanted)))
}

fn holds(own: &Value, wanted: &Value) -> bool {
    match (own, wanted) {
        (Value::Object(own), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, value)| own.get(key).is_some_and(|own| holds(own, value))),
        _ => own == wanted,
    }
}

/// A component outside a form sends what was chosen in it.
fn alone(component: &Value, press: &Press, action: &mut Value) -> Result<(), Unclickable> {
    match text(component, "tag") {
        "input" => {
            let value = json!(press.input_value.clone().unwrap_or_default());
            check_field(component, &value).map_err(Unclickable::Form)?;
            action["input_value"] = value;
        }
        "select_static" | "overflow" | "select_person" | "date_picker" | "picker_time"
        | "picker_datetime" => {
            let value = json!(press.option.clone().unwrap_or_default());
            check_field(component, &value).map_err(Unclickable::Form)?;
            action["option"] = value;
            if text(component, "tag").contains("picker") {
                action["timezone"] = json!("Asia/Shanghai");
            }
        }
        "checker" => action["checked"] = json!(press.checked.unwrap_or(true)),
        _ => {}
    }
    Ok(())
}

/// The form's values: what was given, else what the card presets; fields left
/// empty are absent.
fn fill(form: &Value, given: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let mut fields = Vec::new();
    collect(&form["elements"], Some(form), &mut fields);
    fields.retain(|field| text(field.component, "tag") != "button");
    let names: Vec<&str> = fields.iter().map(|f| text(f.component, "name")).collect();
    if let Some(unknown) = given.keys().find(|key| !names.contains(&key.as_str())) {
        return Err(format!("it has no field `{unknown}`"));
    }
    let mut values = Map::new();
    for field in fields {
        let name = text(field.component, "name");
        let value = given
            .get(name)
            .cloned()
            .or_else(|| preset(field.component))
            .unwrap_or_default();
        let empty = match &value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(list) => list.is_empty(),
            _ => false,
        };
        if empty {
            if required(field.component) {
                return Err(format!("the field `{name}` is required"));
            }
            continue;
        }
        check_field(field.component, &value)?;
        values.insert(name.to_owned(), value);
    }
    Ok(values)
}

fn required(field: &Value) -> bool {
    let default = text(field, "tag").starts_with("multi_select");
    field["required"].as_bool().unwrap_or(default)
}

fn preset(field: &Value) -> Option<Value> {
    match text(field, "tag") {
        "input" => field.get("default_value").cloned(),
        "select_static" => field.get("initial_option").cloned().or_else(|| {
            let index = field["initial_index"].as_u64()?;
            let index = usize::try_from(index).ok()?.checked_sub(1)?;
            field.get("options")?.get(index)?.get("value").cloned()
        }),
        "multi_select_static" => field.get("selected_values").cloned(),
        "checker" => Some(field.get("checked").cloned().unwrap_or(Value::Bool(false))),
        _ => None,
    }
}

fn check_field(field: &Value, value: &Value) -> Result<(), String> {
    let name = text(field, "name");
    let options = field["options"].as_array().into_iter().flatten();
    let options: Vec<&Value> = options.filter_map(|option| option.get("value")).collect();
    let fits = match (text(field, "tag"), value) {
        ("input", Value::String(text)) => {
            let length = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
            length <= field["max_length"].as_u64().unwrap_or(1000)
        }
        ("select_static" | "overflow", value) => options.contains(&value),
        ("multi_select_static", Value::Array(chosen)) => {
            chosen.iter().all(|one| options.contains(&one))
        }
        ("checker", value) => value.is_boolean(),
        ("select_person" | "date_picker" | "picker_time" | "picker_datetime", value) => {
            value.is_string()
        }
        ("multi_select_person", value) => value.is_array(),
        _ => false,
    };
    if fits {
        Ok(())
    } else {
        Err(format!("the field `{name}` does not take this value"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(content: &str) -> Value {
        json!({"tag": "plain_text", "content": content})
    }

    fn card() -> Value {
        let callback = |action: &str| json!([{"type": "callback", "value": {"action": action, "request_id": "r1"}}]);
        json!({"schema": "2.0", "body": {"elements": [
            {"tag": "column_set", "columns": [{"tag": "column", "elements": [
                {"tag": "button", "element_id": "b_allow", "text": text_of("Allow"), "behaviors": callback("allow")}]}]},
            {"tag": "button", "element_id": "b_off", "text": text_of("Off"), "disabled": true, "behaviors": callback("off")},
            {"tag": "button", "element_id": "b_link", "text": text_of("Link"), "behaviors": [{"type": "open_url", "default_url": "https://e.com"}]},
            {"tag": "button", "element_id": "b_same", "text": text_of("Allow"), "behaviors": callback("allow2")},
            {"tag": "select_static", "element_id": "s", "options": [{"text": text_of("A"), "value": "a"}], "behaviors": callback("pick")},
            {"tag": "form", "name": "f", "elements": [
                {"tag": "input", "name": "reason", "max_length": 5},
                {"tag": "input", "name": "must", "required": true},
                {"tag": "select_static", "name": "one", "initial_index": 2, "options": [{"text": text_of("A"), "value": "a"}, {"text": text_of("B"), "value": "b"}]},
                {"tag": "multi_select_static", "name": "many", "required": false, "options": [{"text": text_of("A"), "value": "a"}, {"text": text_of("B"), "value": "b"}]},
                {"tag": "checker", "name": "sure"},
                {"tag": "button", "name": "submit_deny", "form_action_type": "submit", "text": text_of("Deny"), "behaviors": callback("deny")},
                {"tag": "button", "name": "clear", "form_action_type": "reset", "text": text_of("Clear"), "behaviors": callback("clear")}
            ]}
        ]}})
    }

    #[test]
    fn a_button_sends_its_value_verbatim() {
        let expected = json!({"value": {"action": "allow", "request_id": "r1"}, "tag": "button"});
        for press in [Press::element("m", "b_allow"), Press::action("m", "allow")] {
            assert_eq!(action(&card(), &press), Ok(expected.clone()));
        }
    }

    #[test]
    fn a_form_sends_what_was_filled_and_preset() {
        let press = Press::named("m", "submit_deny")
            .fill("must", "yes")
            .fill("many", json!(["b"]));
        let expected = json!({
            "value": {"action": "deny", "request_id": "r1"},
            "tag": "button",
            "name": "submit_deny",
            "form_value": {"must": "yes", "one": "b", "many": ["b"], "sure": false},
        });
        assert_eq!(action(&card(), &press), Ok(expected));
    }

    #[test]
    fn a_lone_select_sends_its_option() {
        let mut press = Press::element("m", "s");
        press.option = Some("a".to_owned());
        assert_eq!(action(&card(), &press).unwrap()["option"], "a");
        press.option = Some("z".to_owned());
        assert!(action(&card(), &press).is_err());
    }

    #[test]
    fn what_a_client_would_not_let_through_is_refused() {
        let deny = || Press::named("m", "submit_deny").fill("must", "yes");
        let cases = [
            (Press::element("m", "b_gone"), "nothing on the card matches"),
            (Press::default(), "nothing on the card matches"),
            (
                Press::text("m", "Allow"),
                "2 components match, which one is meant?",
            ),
            (Press::element("m", "b_off"), "the component is disabled"),
            (
                Press::element("m", "b_link"),
                "the component has no callback",
            ),
            (
                Press::named("m", "submit_deny"),
                "the form can't be sent: the field `must` is required",
            ),
            (
                deny().fill("ghost", "x"),
                "the form can't be sent: it has no field `ghost`",
            ),
            (
                deny().fill("reason", "too long"),
                "the form can't be sent: the field `reason` does not take this value",
            ),
            (
                deny().fill("one", "z"),
                "the form can't be sent: the field `one` does not take this value",
            ),
            (
                deny().fill("many", json!(["z"])),
                "the form can't be sent: the field `many` does not take this value",
            ),
            (
                deny().fill("sure", "yes"),
                "the form can't be sent: the field `sure` does not take this value",
            ),
            (
                Press::named("m", "clear"),
                "the form can't be sent: only a submit button sends it",
            ),
            (
                Press::element("m", "b_allow").fill("x", "y"),
                "the form can't be sent: the button is in no form",
            ),
        ];
        for (press, expected) in cases {
            let error = action(&card(), &press).map_err(|e| e.to_string());
            assert_eq!(error, Err(expected.to_owned()), "{press:?}");
        }
    }
}
