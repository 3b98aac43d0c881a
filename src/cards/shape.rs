//! What a card is made of, without its words: which components stand in which,
//! which attributes each has, and which tags its markdown uses.

use std::collections::BTreeSet;

use serde_json::Value;

/// Each fact about the card's making, in a word.
pub fn facts(card: &Value) -> BTreeSet<String> {
    let mut facts = BTreeSet::new();
    walk(card, "card", &mut facts);
    facts
}

fn walk(node: &Value, name: &str, facts: &mut BTreeSet<String>) {
    match node {
        Value::Object(map) => {
            let tag = map.get("tag").and_then(Value::as_str);
            if let Some(tag) = tag {
                facts.insert(format!("{name}>{tag}"));
            }
            let owner = tag.unwrap_or(name);
            for (key, inner) in map {
                facts.insert(format!("{owner}.{key}"));
                match (key.as_str(), inner) {
                    // What a button carries is ours alone.
                    ("value", _) => {}
                    ("content", Value::String(text)) if owner == "markdown" => {
                        marks(text, facts);
                    }
                    ("elements" | "columns", inner) => walk(inner, owner, facts),
                    (key, inner) => walk(inner, &format!("{owner}.{key}"), facts),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|inner| walk(inner, name, facts)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn marks(text: &str, facts: &mut BTreeSet<String>) {
    for after in text.split('<').skip(1) {
        let end = after.find(|c: char| !c.is_ascii_lowercase() && c != '_');
        let name = &after[..end.unwrap_or(after.len())];
        if !name.is_empty() {
            facts.insert(format!("markdown<{name}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{bash, endings, values, waiting};
    use super::super::{Action, ending};
    use super::*;
    use crate::text::Lang;

    #[test]
    fn words_do_not_count_and_components_do() {
        let of = |command: &str| facts(&waiting(&bash(command)));
        assert_eq!(of("npm test"), of("npm run build"));
        let waiting = of("npm test");
        for fact in [
            "card.body>form",
            "form>column_set",
            "column>button",
            "button.confirm",
            "markdown<local_datetime",
            "card.header.title>plain_text",
        ] {
            assert!(waiting.contains(fact), "{fact} in {waiting:?}");
        }
        assert!(
            !waiting.iter().any(|fact| fact.contains("seal")),
            "{waiting:?}"
        );
    }

    #[test]
    fn one_ended_card_speaks_for_most_others() {
        let request = bash("npm test");
        let undo = values(Action::Undo);
        let confirmed = ending::Confirmation::Confirmed;
        let of = |end| {
            facts(&ending::ended(
                &request,
                end,
                0,
                confirmed,
                Some(&undo),
                Lang::Zh,
            ))
        };
        let all = endings();
        let mut known = BTreeSet::new();
        let mut unknown = 0;
        for end in &all {
            let facts = of(end);
            unknown += usize::from(!facts.is_subset(&known));
            known.extend(facts);
        }
        assert!(unknown < all.len() / 3, "{unknown} of {}", all.len());
        assert!(!known.contains("card.body>form"));
    }
}
