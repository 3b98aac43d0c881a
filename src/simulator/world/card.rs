//! Whether Feishu would take a card: JSON 2.0 checked against the documented
//! components, attributes and limits. Renders nothing and repairs nothing.

mod components;
pub(in crate::simulator) mod schema;
mod tables;
mod words;

use std::collections::HashSet;

use serde_json::{Map, Value};

use components::{COMMON, COMPONENTS, FIELD};
use schema::{
    AttributeKind, Attributes, CALLBACK, CARD, Component, ComponentRole, Names, OPEN_URL, among,
    are_texts_by_locale,
};

/// Feishu's limit on the body of the request that carries a card: 30 KB.
pub(in crate::simulator) const MAX_BYTES: usize = 30_000;
const MAX_ELEMENTS: usize = 200;
const MAX_DEPTH: usize = 5;
const MAX_BUTTON_TEXT: usize = 100;

pub(super) const NOT_PARSABLE: i64 = 200_621;
pub(super) const TAG_NOT_ALLOWED: i64 = 200_861;
pub(super) const OVER_LIMIT: i64 = 11_310;
pub(super) const NAME_MISSING: i64 = 200_530;
pub(super) const DUPLICATE_ID: i64 = 300_301;
pub(in crate::simulator) const DOWNGRADE: i64 = 200_830;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::simulator) enum CardVersion {
    One,
    Two,
}

/// Why a card is refused: Feishu's sub code and what is wrong where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("ErrCode: {code}; ErrMsg: {problem}")]
pub(in crate::simulator) struct BadCard {
    pub(in crate::simulator) code: i64,
    pub(in crate::simulator) problem: String,
}

impl BadCard {
    pub(in crate::simulator) fn new(code: i64, problem: impl Into<String>) -> Self {
        Self {
            code,
            problem: problem.into(),
        }
    }
}

fn malformed<T>(problem: impl Into<String>) -> Result<T, BadCard> {
    refuse(NOT_PARSABLE, problem)
}

fn refuse<T>(code: i64, problem: impl Into<String>) -> Result<T, BadCard> {
    Err(BadCard::new(code, problem))
}

/// Checks a whole card. 1.0 cards ignore unknown attributes and pass lightly.
pub(in crate::simulator) fn check(card: &Value) -> Result<CardVersion, BadCard> {
    let map = card
        .as_object()
        .ok_or_else(|| BadCard::new(NOT_PARSABLE, "the card is not an object"))?;
    match map.get("schema").and_then(Value::as_str) {
        Some("2.0") => {}
        None if !map.contains_key("schema") && !map.contains_key("body") => return one(map),
        Some("1.0") => return one(map),
        _ => return malformed("`schema` is not \"2.0\""),
    }
    let mut check = Check::default();
    check.object(CARD, map, "card")?;
    if map.get("config").and_then(|c| c.get("update_multi")) == Some(&Value::Bool(false)) {
        return malformed("`config.update_multi` is only true in 2.0");
    }
    if let Some(header) = map.get("header") {
        if header.get("title").is_none() {
            return malformed("`header.title` is missing");
        }
        let tags = header.get("text_tag_list").and_then(Value::as_array);
        if tags.is_some_and(|tags| tags.len() > 3) {
            return refuse(OVER_LIMIT, "`header.text_tag_list` holds more than 3");
        }
    }
    if map.get("body").and_then(|b| b.get("elements")).is_none() {
        return malformed("`body.elements` is missing");
    }
    Ok(CardVersion::Two)
}

fn one(map: &Map<String, Value>) -> Result<CardVersion, BadCard> {
    match map.get("elements").or_else(|| map.get("i18n_elements")) {
        None | Some(Value::Array(_) | Value::Object(_)) => Ok(CardVersion::One),
        Some(_) => malformed("`elements` is not a list"),
    }
}

#[derive(Default)]
struct Check {
    elements: usize,
    depth: usize,
    ids: HashSet<String>,
    names: HashSet<String>,
    /// How many buttons submit the form it is in.
    submits: Option<usize>,
}

impl Check {
    fn object(
        &mut self,
        attributes: Attributes,
        map: &Map<String, Value>,
        path: &str,
    ) -> Result<(), BadCard> {
        for (key, value) in map {
            let kind = find(attributes, key).ok_or_else(|| unknown(path, key))?;
            self.value(kind, value, &format!("{path}.{key}"))?;
        }
        Ok(())
    }

    fn value(&mut self, kind: AttributeKind, value: &Value, path: &str) -> Result<(), BadCard> {
        let fits = match (kind, value) {
            (AttributeKind::Object(attributes), Value::Object(map)) => {
                return self.object(attributes, map, path);
            }
            (AttributeKind::List(kind), Value::Array(list)) => {
                return (0..).zip(list).try_for_each(|(n, item): (usize, _)| {
                    self.value(*kind, item, &format!("{path}[{n}]"))
                });
            }
            (AttributeKind::Tagged(tags), _) => return self.tagged(tags, value, path),
            (AttributeKind::Elements, Value::Array(list)) => return self.children(list, path),
            (AttributeKind::Behaviors, Value::Array(list)) => return self.behaviors(list, path),
            (AttributeKind::Bool, Value::Bool(_))
            | (AttributeKind::Str, Value::String(_))
            | (AttributeKind::Free, _) => true,
            (AttributeKind::Int, _) => value.is_i64(),
            (AttributeKind::Count(least, most), _) => {
                value.as_i64().is_some_and(|n| (least..=most).contains(&n))
            }
            (AttributeKind::Short(max), Value::String(text)) => text.chars().count() <= max,
            (AttributeKind::OneOf(words), Value::String(text)) => among(words, text),
            (AttributeKind::TextSize, Value::String(text)) => words::is_text_size(text),
            (AttributeKind::Colour, Value::String(text)) => words::is_colour(text),
            (AttributeKind::Measure(names), Value::String(text)) => {
                among(names, text) || words::is_length(text)
            }
            (AttributeKind::Spacing, Value::String(text)) => spacing(text, &[1, 2, 4]),
            (AttributeKind::PanelPadding, Value::String(text)) => spacing(text, &[1, 4]),
            (AttributeKind::Strings, Value::Array(list)) => list.iter().all(Value::is_string),
            (AttributeKind::Locales, Value::Object(map)) => are_texts_by_locale(map),
            _ => false,
        };
        if fits {
            Ok(())
        } else {
            let shown: String = value.to_string().chars().take(60).collect();
            malformed(format!("`{path}` may not be {shown}"))
        }
    }

    fn tagged(&mut self, tags: Names, value: &Value, path: &str) -> Result<(), BadCard> {
        let tag = value["tag"].as_str().unwrap_or_default();
        if !among(tags, tag) {
            return malformed(format!(
                "`{path}` has the tag `{tag}`, not one of {}",
                tags.replace(' ', ", ")
            ));
        }
        self.component(value, path)
    }

    fn children(&mut self, list: &[Value], path: &str) -> Result<(), BadCard> {
        for (n, child) in list.iter().enumerate() {
            let path = format!("{path}[{n}]");
            let tag = child["tag"].as_str().unwrap_or_default();
            let known = COMPONENTS.iter().find(|c| c.tag == tag);
            match known.map(|c| c.role) {
                None | Some(ComponentRole::Part) => {
                    return refuse(
                        TAG_NOT_ALLOWED,
                        format!("unsupported tag \"{tag}\" at `{path}`"),
                    );
                }
                Some(ComponentRole::RootContainer) if self.depth > 0 => {
                    return malformed(format!(
                        "\"{tag}\" at `{path}` is allowed only directly under the body"
                    ));
                }
                Some(_) => self.component(child, &path)?,
            }
        }
        Ok(())
    }

    fn component(&mut self, value: &Value, path: &str) -> Result<(), BadCard> {
        self.elements += 1;
        if self.elements > MAX_ELEMENTS {
            return refuse(
                OVER_LIMIT,
                format!("element number over limit {MAX_ELEMENTS}"),
            );
        }
        let map = value
            .as_object()
            .ok_or_else(|| BadCard::new(NOT_PARSABLE, format!("`{path}` is not an object")))?;
        let tag = map.get("tag").and_then(Value::as_str).unwrap_or_default();
        let component = COMPONENTS
            .iter()
            .find(|c| c.tag == tag)
            .ok_or_else(|| BadCard::new(TAG_NOT_ALLOWED, format!("unsupported tag \"{tag}\"")))?;
        if let Some(missing) = component
            .required
            .split_ascii_whitespace()
            .find(|key| !map.contains_key(*key))
        {
            let code = if missing == "name" {
                NAME_MISSING
            } else {
                NOT_PARSABLE
            };
            return refuse(code, format!("`{missing}` is missing in {tag} at `{path}`"));
        }
        self.own_id(map, path)?;
        self.own_name(component, map, path)?;
        if tag == "button" {
            self.button(map, path)?;
        }
        if tag == "input" {
            input(map, path)?;
        }
        if tag == "markdown" {
            tables::few(map, path)?;
        }
        if tag == "multi_select_static" && self.submits.is_none() {
            return malformed(format!("\"{tag}\" at `{path}` is allowed only in a form"));
        }
        unique_options(map, path)?;
        self.inside(component, map, path)
    }

    /// Checks the attributes, one container deeper where it is one.
    fn inside(
        &mut self,
        component: &Component,
        map: &Map<String, Value>,
        path: &str,
    ) -> Result<(), BadCard> {
        let contains = matches!(
            component.role,
            ComponentRole::Container | ComponentRole::RootContainer
        );
        let is_form = component.tag == "form";
        self.depth += usize::from(contains);
        if self.depth > MAX_DEPTH {
            return refuse(
                OVER_LIMIT,
                format!("containers at `{path}` are nested deeper than {MAX_DEPTH}"),
            );
        }
        if is_form {
            self.submits = Some(0);
        }
        for (key, value) in map.iter().filter(|(key, _)| *key != "tag") {
            let kind = find(component.attributes, key)
                .or_else(|| find(COMMON, key).filter(|_| component.role != ComponentRole::Part))
                .or_else(|| {
                    find(FIELD, key).filter(|_| component.role == ComponentRole::Interactive)
                })
                .ok_or_else(|| unknown(path, key))?;
            self.value(kind, value, &format!("{path}.{key}"))?;
        }
        self.depth -= usize::from(contains);
        if is_form && self.submits.take() == Some(0) {
            return malformed(format!("the form at `{path}` has no submit button"));
        }
        Ok(())
    }

    fn own_id(&mut self, map: &Map<String, Value>, path: &str) -> Result<(), BadCard> {
        let Some(id) = map.get("element_id").and_then(Value::as_str) else {
            return Ok(());
        };
        let well_formed = id.len() <= 20
            && id.starts_with(|c: char| c.is_ascii_alphabetic())
            && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !well_formed {
            return malformed(format!(
                "`element_id` \"{id}\" at `{path}` is not letters, digits and underscores, at most 20, starting with a letter"
            ));
        }
        if !self.ids.insert(id.to_owned()) {
            return refuse(DUPLICATE_ID, format!("`element_id` \"{id}\" is used twice"));
        }
        Ok(())
    }

    fn own_name(
        &mut self,
        component: &Component,
        map: &Map<String, Value>,
        path: &str,
    ) -> Result<(), BadCard> {
        let name = map.get("name").and_then(Value::as_str).unwrap_or_default();
        if name.is_empty() {
            let needed = component.tag == "form"
                || component.role == ComponentRole::Interactive && self.submits.is_some();
            return if needed {
                refuse(
                    NAME_MISSING,
                    format!("{} at `{path}` has no name", component.tag),
                )
            } else {
                Ok(())
            };
        }
        if !self.names.insert(name.to_owned()) {
            return refuse(NAME_MISSING, format!("the name \"{name}\" is used twice"));
        }
        Ok(())
    }

    fn button(&mut self, map: &Map<String, Value>, path: &str) -> Result<(), BadCard> {
        let action = map.get("form_action_type").and_then(Value::as_str);
        match (&mut self.submits, action) {
            (Some(submits), Some(action)) => *submits += usize::from(action == "submit"),
            (Some(_), None) => {
                return malformed(format!(
                    "the button at `{path}` is in a form and has no `form_action_type`"
                ));
            }
            (None, Some(_)) => {
                return malformed(format!(
                    "`form_action_type` at `{path}` stands outside a form"
                ));
            }
            (None, None) => {}
        }
        if length(map, "text") > MAX_BUTTON_TEXT {
            return malformed(format!(
                "the text of the button at `{path}` is longer than {MAX_BUTTON_TEXT}"
            ));
        }
        Ok(())
    }

    fn behaviors(&mut self, list: &[Value], path: &str) -> Result<(), BadCard> {
        for (n, behavior) in list.iter().enumerate() {
            let path = format!("{path}[{n}]");
            let map = behavior
                .as_object()
                .ok_or_else(|| BadCard::new(NOT_PARSABLE, format!("`{path}` is not an object")))?;
            match map.get("type").and_then(Value::as_str) {
                Some("callback") => {
                    self.object(CALLBACK, map, &path)?;
                    if !matches!(map.get("value"), Some(Value::Object(_) | Value::String(_))) {
                        return malformed(format!("`{path}.value` is not an object"));
                    }
                }
                Some("open_url") => self.object(OPEN_URL, map, &path)?,
                other => {
                    return malformed(format!(
                        "`{path}.type` may not be `{}`",
                        other.unwrap_or_default()
                    ));
                }
            }
        }
        Ok(())
    }
}

fn find(attributes: Attributes, key: &str) -> Option<AttributeKind> {
    attributes
        .iter()
        .find(|(_, names)| among(names, key))
        .map(|(kind, _)| *kind)
}

fn unknown(path: &str, key: &str) -> BadCard {
    BadCard::new(
        NOT_PARSABLE,
        format!("unknown property `{key}` in `{path}`"),
    )
}

/// How many characters the text of this attribute has.
fn length(map: &Map<String, Value>, key: &str) -> usize {
    let content = map.get(key).and_then(|text| text["content"].as_str());
    content.unwrap_or_default().chars().count()
}

fn input(map: &Map<String, Value>, path: &str) -> Result<(), BadCard> {
    if length(map, "placeholder") > 100 {
        return malformed(format!("the placeholder at `{path}` is longer than 100"));
    }
    Ok(())
}

fn unique_options(map: &Map<String, Value>, path: &str) -> Result<(), BadCard> {
    let mut seen = HashSet::new();
    let options = map.get("options").and_then(Value::as_array);
    for option in options.into_iter().flatten() {
        if !option["value"]
            .as_str()
            .is_some_and(|value| seen.insert(value))
        {
            return malformed(format!("an option at `{path}` has no value of its own"));
        }
    }
    Ok(())
}

fn spacing(text: &str, counts: &[usize]) -> bool {
    let lengths: Vec<&str> = text.split(' ').filter(|part| !part.is_empty()).collect();
    let named = ["small", "medium", "large", "extra_large"];
    counts.contains(&lengths.len())
        && lengths.iter().all(|length| {
            named.contains(length)
                || length
                    .strip_suffix("px")
                    .and_then(|n| n.parse::<i32>().ok())
                    .is_some_and(|n| (-99..=99).contains(&n))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn card(elements: &Value) -> Value {
        json!({
            "schema": "2.0",
            "config": {"update_multi": true, "enable_forward": false, "width_mode": "fill", "summary": {"content": "s"}},
            "header": {
                "template": "orange",
                "title": {"tag": "plain_text", "content": "t", "i18n_content": {"en_us": "t"}},
                "text_tag_list": [{"tag": "text_tag", "text": {"tag": "plain_text", "content": "w"}, "color": "orange"}]
            },
            "body": {"direction": "vertical", "padding": "12px 12px 12px 12px", "vertical_spacing": "medium", "elements": elements}
        })
    }

    fn text(content: &str) -> Value {
        json!({"tag": "plain_text", "content": content})
    }

    fn button(extra: &Value) -> Value {
        let mut button = json!({"tag": "button", "text": text("Go"), "type": "primary"});
        merge(&mut button, extra);
        button
    }

    fn merge(into: &mut Value, extra: &Value) {
        for (key, value) in extra.as_object().unwrap() {
            into[key] = value.clone();
        }
    }

    fn form(elements: &Value) -> Value {
        json!({"tag": "form", "name": "f", "elements": elements})
    }

    fn submit() -> Value {
        button(
            &json!({"name": "go", "form_action_type": "submit", "behaviors": [{"type": "callback", "value": {"a": 1}}]}),
        )
    }

    fn code(elements: &Value) -> Option<i64> {
        check(&card(elements)).err().map(|bad| bad.code)
    }

    #[test]
    fn every_documented_component_passes() {
        let elements = json!([
            {"tag": "markdown", "element_id": "m", "content": "x", "text_size": "notation", "i18n_content": {"zh_cn": "x"}},
            {"tag": "div", "text": {"tag": "plain_text", "content": "x", "text_size": "normal", "text_color": "grey"},
             "icon": {"tag": "standard_icon", "token": "down-small-ccm_outlined", "size": "16px 16px"}},
            {"tag": "hr"},
            {"tag": "img", "img_key": "img_1", "alt": text("a")},
            {"tag": "column_set", "flex_mode": "bisect", "background_style": "default", "horizontal_spacing": "8px", "columns": [
                {"tag": "column", "width": "weighted", "weight": 1, "vertical_align": "top", "elements": [
                    button(&json!({"behaviors": [{"type": "callback", "value": {"k": "v"}}, {"type": "open_url", "default_url": "https://e.com"}],
                                   "confirm": {"title": text("sure?"), "text": text("really")}, "disabled": false}))]}]},
            {"tag": "collapsible_panel", "expanded": false, "header": {"title": text("more"), "icon_position": "right", "icon_expanded_angle": -180, "padding": "4px"},
             "border": {"color": "grey", "corner_radius": "5px"}, "elements": [{"tag": "markdown", "content": "x"}]},
            form(&json!([
                {"tag": "input", "name": "reason", "required": false, "input_type": "multiline_text", "rows": 2, "max_length": 1000,
                 "label": text("l"), "label_position": "top", "placeholder": text("p")},
                {"tag": "select_static", "name": "one", "options": [{"text": text("A"), "value": "a"}, {"text": text("B"), "value": "b"}]},
                {"tag": "multi_select_static", "name": "many", "selected_values": [], "options": [{"text": text("A"), "value": "a"}]},
                {"tag": "checker", "name": "check", "checked": true, "text": text("c")},
                submit()
            ])),
        ]);
        assert_eq!(check(&card(&elements)), Ok(CardVersion::Two));
    }

    #[test]
    fn misplaced_components_are_refused_with_their_code() {
        let many: Vec<Value> = (0..=MAX_ELEMENTS).map(|_| json!({"tag": "hr"})).collect();
        let mut deep = json!({"tag": "hr"});
        for _ in 0..=MAX_DEPTH {
            deep = json!({"tag": "column_set", "columns": [{"tag": "column", "elements": [deep]}]});
        }
        let panel = |inner: Value| json!([{"tag": "collapsible_panel", "header": {"title": text("t")}, "elements": [inner]}]);
        let cases = [
            (
                "unknown attribute",
                json!([{"tag": "hr", "colour": "red"}]),
                NOT_PARSABLE,
            ),
            (
                "1.0 tag",
                json!([{"tag": "action", "actions": []}]),
                TAG_NOT_ALLOWED,
            ),
            (
                "note",
                json!([{"tag": "note", "elements": []}]),
                TAG_NOT_ALLOWED,
            ),
            ("invented tag", json!([{"tag": "blink"}]), TAG_NOT_ALLOWED),
            (
                "a part as an element",
                json!([{"tag": "column", "elements": []}]),
                TAG_NOT_ALLOWED,
            ),
            ("too many", json!(many), OVER_LIMIT),
            ("too deep", json!([deep]), OVER_LIMIT),
            (
                "form in a panel",
                panel(form(&json!([submit()]))),
                NOT_PARSABLE,
            ),
            (
                "table in a panel",
                panel(json!({"tag": "table", "columns": [], "rows": []})),
                NOT_PARSABLE,
            ),
            (
                "form in a form",
                json!([form(&json!([submit(), form(&json!([]))]))]),
                NOT_PARSABLE,
            ),
            (
                "form without submit",
                json!([form(&json!([{"tag": "hr"}]))]),
                NOT_PARSABLE,
            ),
            (
                "form without name",
                json!([{"tag": "form", "elements": [submit()]}]),
                NAME_MISSING,
            ),
            (
                "field without name",
                json!([form(&json!([{"tag": "input"}, submit()]))]),
                NAME_MISSING,
            ),
            (
                "name twice",
                json!([form(&json!([{"tag": "input", "name": "go"}, submit()]))]),
                NAME_MISSING,
            ),
            (
                "form button without action",
                json!([form(&json!([button(&json!({"name": "b"})), submit()]))]),
                NOT_PARSABLE,
            ),
        ];
        for (name, elements, expected) in cases {
            assert_eq!(code(&elements), Some(expected), "{name}");
        }
    }

    #[test]
    fn attributes_are_refused_with_their_code() {
        let cases = [
            ("submit outside", json!([submit()]), NOT_PARSABLE),
            (
                "value on a button",
                json!([button(&json!({"value": {}}))]),
                NOT_PARSABLE,
            ),
            (
                "button type",
                json!([button(&json!({"type": "huge"}))]),
                NOT_PARSABLE,
            ),
            (
                "behavior type",
                json!([button(&json!({"behaviors": [{"type": "call"}]}))]),
                NOT_PARSABLE,
            ),
            (
                "callback without value",
                json!([button(&json!({"behaviors": [{"type": "callback"}]}))]),
                NOT_PARSABLE,
            ),
            (
                "long button text",
                json!([button(&json!({"text": text(&"x".repeat(101))}))]),
                NOT_PARSABLE,
            ),
            (
                "id starts with a digit",
                json!([{"tag": "hr", "element_id": "1a"}]),
                NOT_PARSABLE,
            ),
            (
                "id too long",
                json!([{"tag": "hr", "element_id": "a23456789012345678901"}]),
                NOT_PARSABLE,
            ),
            (
                "id twice",
                json!([{"tag": "hr", "element_id": "a"}, {"tag": "hr", "element_id": "a"}]),
                DUPLICATE_ID,
            ),
            (
                "max_length",
                json!([{"tag": "input", "max_length": 1001}]),
                NOT_PARSABLE,
            ),
            (
                "option twice",
                json!([{"tag": "select_static", "options": [{"text": text("a"), "value": "a"}, {"text": text("b"), "value": "a"}]}]),
                NOT_PARSABLE,
            ),
            (
                "multi select outside",
                json!([{"tag": "multi_select_static", "name": "m", "options": []}]),
                NOT_PARSABLE,
            ),
            (
                "panel title",
                json!([{"tag": "collapsible_panel", "header": {"title": {"tag": "lark_md", "content": "t"}}, "elements": []}]),
                NOT_PARSABLE,
            ),
            (
                "panel padding",
                json!([{"tag": "collapsible_panel", "header": {"title": text("t"), "padding": "4px 8px"}, "elements": []}]),
                NOT_PARSABLE,
            ),
            (
                "spacing",
                json!([{"tag": "hr", "margin": "1em"}]),
                NOT_PARSABLE,
            ),
            (
                "locale",
                json!([{"tag": "markdown", "content": "x", "i18n_content": {"klingon": "x"}}]),
                NOT_PARSABLE,
            ),
            (
                "a fourth table",
                json!([{"tag": "markdown", "content": "| a | b |\n|---|---|\n| 1 | 2 |\n\n".repeat(4)}]),
                OVER_LIMIT,
            ),
            (
                "markdown without content",
                json!([{"tag": "markdown"}]),
                NOT_PARSABLE,
            ),
        ];
        for (name, elements, expected) in cases {
            assert_eq!(code(&elements), Some(expected), "{name}");
        }
    }

    #[test]
    fn the_top_level_is_checked_too() {
        let base = card(&json!([]));
        let with = |path: &str, value: Value| {
            let mut card = base.clone();
            *card.pointer_mut(path).unwrap() = value;
            check(&card).is_err()
        };
        assert!(with("/schema", json!("3.0")));
        assert!(with("/config/update_multi", json!(false)));
        assert!(with("/config/width_mode", json!("wide")));
        assert!(with("/header/template", json!("pink")));
        assert!(with(
            "/header/title",
            json!({"tag": "markdown", "content": "x"})
        ));
        assert!(with("/header", json!({"template": "red"})));
        assert!(with("/body", json!({})));
        let mut card = base.clone();
        card["config"]["wide_screen_mode"] = json!(true);
        assert!(check(&card).is_err(), "a 1.0 key in a 2.0 card");
        assert_eq!(
            check(&json!({"elements": [{"tag": "action"}], "odd": 1})),
            Ok(CardVersion::One)
        );
        assert!(check(&json!([])).is_err());
    }
}
