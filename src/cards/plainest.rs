//! Any card of ours in the plainest layout there is, for a Feishu that refuses
//! the one it was drawn in: the same words as plain text, and its buttons one
//! below the other. What asks before it does anything asks by a card of its
//! own, because Feishu promises the question to a form alone.

use serde_json::{Value, json};

use super::{coloured, div};
use crate::text::Lang;
use crate::wording::card as words;

/// Keeps every text and each button that needs no field. `asking` makes, of the
/// value of a button that asks first, one that asks by another card.
pub fn plainest(card: &Value, asking: &dyn Fn(&Value) -> Value, lang: Lang) -> Value {
    let mut texts = Vec::new();
    let tags = card["header"]["text_tag_list"].as_array();
    let state: Vec<&str> = tags
        .into_iter()
        .flatten()
        .filter_map(|tag| tag["text"]["content"].as_str())
        .collect();
    if !state.is_empty() {
        texts.push(div(&state.join(" · ")));
    }
    let mut flat = Flat {
        texts,
        buttons: Vec::new(),
        asks: false,
        asking,
    };
    flat.add(&card["body"]["elements"]);
    let Flat {
        mut texts,
        mut buttons,
        asks,
        ..
    } = flat;
    if asks {
        texts.push(coloured(words::ASKS_BY_CARD.get(lang), "orange"));
    }
    texts.append(&mut buttons);
    json!({
        "schema": "2.0",
        "config": card["config"],
        "header": {
            "title": card["header"]["title"],
            "subtitle": card["header"]["subtitle"],
            "template": card["header"]["template"],
        },
        "body": {"elements": texts},
    })
}

/// All that a person can read on a card, for a message that is none.
pub fn text(card: &Value, lang: Lang) -> String {
    let plain = plainest(card, &Value::clone, lang);
    let title = plain.pointer("/header/title/content");
    let elements = plain["body"]["elements"].as_array();
    let texts = elements.into_iter().flatten();
    let texts = texts
        .filter(|element| element["tag"] == "div")
        .filter_map(|element| element.pointer("/text/content"));
    let texts: Vec<&str> = title
        .into_iter()
        .chain(texts)
        .filter_map(Value::as_str)
        .collect();
    texts.join("\n")
}

struct Flat<'a> {
    texts: Vec<Value>,
    buttons: Vec<Value>,
    asks: bool,
    asking: &'a dyn Fn(&Value) -> Value,
}

impl Flat<'_> {
    fn add(&mut self, node: &Value) {
        let Some(map) = node.as_object() else {
            let inner = node.as_array().into_iter().flatten();
            inner.for_each(|node| self.add(node));
            return;
        };
        let tag = map.get("tag").and_then(Value::as_str).unwrap_or_default();
        match tag {
            "div" => self.texts.push(node.clone()),
            "markdown" => {
                let text = map.get("content").and_then(Value::as_str);
                let text = without_tags(text.unwrap_or_default());
                if !text.trim().is_empty() {
                    self.texts.push(div(text.trim()));
                }
            }
            "button" => self.button(node),
            "input" | "select_static" | "multi_select_static" => {}
            _ => {
                for inside in ["elements", "columns"] {
                    if let Some(inner) = map.get(inside) {
                        self.add(inner);
                    }
                }
            }
        }
    }

    fn button(&mut self, node: &Value) {
        let mut button = node.clone();
        let Some(map) = button.as_object_mut() else {
            return;
        };
        let submits = map.remove("form_action_type").is_some();
        let name = map.remove("name");
        if submits && is_typed(name.as_ref().and_then(Value::as_str)) {
            return;
        }
        if map.remove("confirm").is_some() {
            self.asks = true;
            if let Some(value) = button.pointer_mut("/behaviors/0/value") {
                *value = (self.asking)(value);
            }
        }
        self.buttons.push(button);
    }
}

/// Buttons that mean nothing without a field that was filled in.
fn is_typed(name: Option<&str>) -> bool {
    matches!(
        name,
        Some("submit_deny_with" | "submit_answer" | "submit_revise_plan")
    )
}

/// Our own markdown as plain text: moments and people are tags there, and a
/// moment is kept as one.
fn without_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        let (before, tag) = rest.split_at(start);
        out.push_str(before);
        let Some(end) = tag.find('>') else {
            rest = tag;
            break;
        };
        if let Some(at) = moment(&tag[..end]) {
            out.push_str(&at);
        }
        rest = &tag[end + 1..];
    }
    out.push_str(rest);
    out.replace("**", "")
}

/// The moment of a `<local_datetime millisecond='…'`, in UTC.
fn moment(tag: &str) -> Option<String> {
    let at = tag.strip_prefix("<local_datetime millisecond='")?;
    let at: i64 = at.split('\'').next()?.parse().ok()?;
    let seconds = at.div_euclid(1_000).rem_euclid(86_400);
    let (hours, minutes) = (seconds / 3_600, seconds % 3_600 / 60);
    Some(format!("{hours:02}:{minutes:02} UTC"))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{actions, bash, endings, read, strings, values, waiting};
    use super::super::{ending, permission};
    use super::*;

    fn tags(card: &Value) -> Vec<String> {
        let mut found = Vec::new();
        strings(card, &mut |key, _, text| {
            if key == "tag" {
                found.push(text.to_owned());
            }
        });
        found.sort_unstable();
        found.dedup();
        found
    }

    fn plain(card: &Value, lang: Lang) -> Value {
        let asking = |value: &Value| {
            let mut value = value.clone();
            value["ask"] = json!(true);
            value
        };
        plainest(card, &asking, lang)
    }

    /// The actions that ask by another card.
    fn asking(card: &Value) -> Vec<&str> {
        let buttons = card["body"]["elements"].as_array().unwrap().iter();
        let values = buttons.filter_map(|button| button.pointer("/behaviors/0/value"));
        values
            .filter(|value| value["ask"] == true)
            .map(|value| value["action"].as_str().unwrap())
            .collect()
    }

    #[test]
    fn a_refused_layout_keeps_its_words_and_what_needs_no_question() {
        let card = plain(&waiting(&bash("npm test")), Lang::Zh);
        assert_eq!(tags(&card), ["button", "div", "plain_text"]);
        assert_eq!(
            actions(&card),
            ["allow", "deny", "always", "interrupt", "session"]
        );
        assert_eq!(asking(&card), ["always", "session"]);
        let seen = read(&card);
        for said in [
            "npm test",
            "等待批准",
            "does it",
            "机器：mbp-lin",
            "UTC 前有效",
            "始终允许",
        ] {
            assert!(seen.contains(said), "{said}: {seen}");
        }
        assert!(!seen.contains('<'), "{seen}");
        assert!(seen.contains("再发一张卡片"), "{seen}");
    }

    #[test]
    fn what_asks_first_asks_here_too() {
        for command in ["sudo rm -r x", "PGPASSWORD=hunter psql -h db.example"] {
            let card = plain(&waiting(&bash(command)), Lang::En);
            assert_eq!(actions(&card), ["deny", "allow", "interrupt"]);
            assert_eq!(asking(&card), ["allow"]);
        }
    }

    #[test]
    fn every_other_card_has_a_plainest_layout_too() {
        let request = bash("ls");
        let minimal = plain(&permission::minimal(&request, &values, Lang::Zh), Lang::Zh);
        assert_eq!(actions(&minimal), ["deny", "interrupt"]);
        for ending in endings() {
            let delivery = ending::Confirmation::Confirmed;
            let undo = values(super::super::Action::Undo);
            let card = ending::ended(&request, &ending, 0, delivery, Some(&undo), Lang::Zh);
            let plain = plain(&card, Lang::Zh);
            assert!(
                tags(&plain)
                    .iter()
                    .all(|tag| ["button", "div", "plain_text"].contains(&&**tag))
            );
            assert_eq!(actions(&plain), actions(&card));
            assert!(asking(&plain).is_empty());
        }
    }
}
