//! What a lock screen and the list of chats say of a card, for those who must
//! not show there what it is about.

use serde_json::Value;
use std::borrow::Cow;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Previews {
    /// State, title and project.
    Full,
    /// The state alone.
    State,
}

impl Previews {
    pub fn of_card(self, card: &Value) -> Cow<'_, Value> {
        match self {
            Self::Full => Cow::Borrowed(card),
            Self::State => Cow::Owned(hushed(card.clone())),
        }
    }

    /// As [`Self::of_card`], for a card that is JSON already.
    pub fn of_json(self, card: &str) -> Cow<'_, str> {
        match (self, serde_json::from_str(card)) {
            (Self::State, Ok(value)) => Cow::Owned(hushed(value).to_string()),
            _ => Cow::Borrowed(card),
        }
    }
}

fn hushed(mut card: Value) -> Value {
    let state = card.pointer("/header/text_tag_list/0/text/content");
    let state = state.cloned().unwrap_or_else(|| "nod".into());
    if let Some(summary) = card.pointer_mut("/config/summary/content") {
        *summary = state;
    }
    card
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_hushed_card_tells_no_more_than_its_state() {
        let card = |summary: &str| {
            json!({
                "config": {"summary": {"content": summary}},
                "header": {"title": {"content": "rm secret"}, "text_tag_list": [{"text": {"content": "等待批准"}}]},
            })
        };
        let full = card("等待批准：rm secret · shop");
        let quiet = card("等待批准");
        assert_eq!(*Previews::State.of_card(&full), quiet);
        assert_eq!(
            Previews::State.of_json(&full.to_string()),
            quiet.to_string()
        );
        assert_eq!(*Previews::Full.of_card(&full), full);
        assert_eq!(Previews::Full.of_json("no json"), "no json");
    }

    #[test]
    fn a_card_without_a_state_says_nods_name() {
        let card = json!({"config": {"summary": {"content": "rm secret"}}});
        let quiet = Previews::State.of_card(&card).into_owned();
        assert_eq!(quiet["config"]["summary"]["content"], "nod");
    }
}
