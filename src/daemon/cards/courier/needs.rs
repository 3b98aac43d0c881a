//! What this Feishu needs of a card before it takes it, as far as this run has
//! seen: remembered, shown by `nod status`, and told to the owner once each.

use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tracing::warn;

use super::{CardText, Cards, tell};
use crate::cards::MAX_CARD;
use crate::cards::plainest::plainest;
use crate::feishu::error::{ApiError, ContentProblem, FeishuAnswer};
use crate::feishu::messages::Content;
use crate::wording::need::{Need, refused};

/// A card of so few bytes was refused for something else than its size.
pub(super) const SMALL: usize = 8_000;

#[derive(Default)]
pub(super) struct Needs(Mutex<KnownNeeds>);

#[derive(Default)]
struct KnownNeeds {
    needs: Vec<(Need, FeishuAnswer)>,
    /// The least that was too much.
    room: Option<usize>,
}

impl Needs {
    pub(super) fn is_plain(&self) -> bool {
        let known = self.lock();
        known.needs.iter().any(|(need, _)| *need == Need::Plain)
    }

    /// The bytes that a card may have.
    pub(super) fn room(&self) -> usize {
        self.lock().room.unwrap_or(MAX_CARD)
    }

    pub(super) fn takes_only(&self, room: usize) {
        let mut known = self.lock();
        known.room = Some(known.room.unwrap_or(MAX_CARD).min(room).max(SMALL));
    }

    /// Says whether it is news.
    fn note(&self, need: Need, answer: &FeishuAnswer) -> bool {
        let mut known = self.lock();
        let is_new = known.needs.iter().all(|(before, _)| *before != need);
        if is_new {
            known.needs.push((need, answer.clone()));
        }
        is_new
    }

    fn report(&self) -> Vec<Value> {
        let known = self.lock();
        let needs = known.needs.iter();
        needs
            .map(|(need, answer)| {
                json!({"need": need.as_str(), "code": answer.code, "log_id": answer.log_id})
            })
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, KnownNeeds> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was needed in this run, for `nod status`.
pub(crate) fn report(cards: &Cards) -> Vec<Value> {
    cards.courier.needs.report()
}

/// The card in a layout that this Feishu takes.
pub(crate) fn laid_out(cards: &Cards, card: &Value) -> Value {
    if cards.courier.needs.is_plain() {
        plain(cards, card)
    } else {
        card.clone()
    }
}

/// As [`laid_out`], of a card as Feishu takes it.
pub(crate) fn laid_out_text(cards: &Cards, card: &CardText) -> CardText {
    if !cards.courier.needs.is_plain() {
        return Arc::clone(card);
    }
    match serde_json::from_str(card) {
        Ok(card) => plain(cards, &card).to_string().into(),
        Err(_) => Arc::clone(card),
    }
}

pub(crate) fn plain(cards: &Cards, card: &Value) -> Value {
    let asking = |value: &Value| cards.buttons.asking(value);
    plainest(card, &asking, cards.config.lang)
}

/// Remembers what a card needed, and tells the owner so, once.
pub(crate) async fn needed(cards: &Cards, need: Need, why: &ApiError) {
    let ApiError::Content { answer, .. } = why else {
        return;
    };
    if !cards.courier.needs.note(need, answer) {
        return;
    }
    warn!(
        code = answer.code,
        need = need.as_str(),
        "Feishu refused a card: another way is taken from now on"
    );
    let log_id = answer.log_id.as_deref().unwrap_or("–");
    let text = refused(need, answer.code, log_id);
    let content = Content::Text(text.get(cards.config.lang).to_owned());
    let uuid = format!("{}-{}", need.as_str(), cards.now());
    Box::pin(tell(cards, content, &uuid)).await;
}

/// Feishu's own trouble in the words of a refused card.
pub(crate) fn is_a_hiccup(why: &ApiError) -> bool {
    let ApiError::Content { answer, problem } = why else {
        return false;
    };
    matches!(problem, ContentProblem::Card { detail: None })
        && answer.msg.contains("Server Internal Error")
}

pub(crate) fn is_layout(why: &ApiError) -> bool {
    matches!(why, ApiError::Content { problem, .. } if matches!(problem, ContentProblem::Card { .. }))
}

pub(super) fn is_too_long(why: &ApiError) -> bool {
    matches!(why, ApiError::Content { problem, .. } if matches!(problem, ContentProblem::TooLong))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_needed_is_known_once_and_room_only_shrinks() {
        let needs = Needs::default();
        let answer = FeishuAnswer::new(230_099, "no", Some("log-1"));
        assert!(!needs.is_plain());
        assert!(needs.note(Need::Plain, &answer));
        assert!(!needs.note(Need::Plain, &answer));
        assert!(needs.is_plain());
        assert_eq!(
            needs.report(),
            [json!({"need": "plain", "code": 230_099, "log_id": "log-1"})]
        );
        assert_eq!(needs.room(), MAX_CARD);
        needs.takes_only(20_000);
        needs.takes_only(25_000);
        assert_eq!(needs.room(), 20_000);
        needs.takes_only(10);
        assert_eq!(needs.room(), SMALL);
    }
}
