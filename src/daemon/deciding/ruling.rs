//! What a tap led to and the card that shows it, as the person who tapped sees
//! it at once, or as another machine is told that shows it in our place.

use serde_json::Value;

use crate::approvals::outcome::{Deed, Outcome, Refusal, Upshot};
use crate::daemon::cards::courier::{self, CardText, Cards, Face};
use crate::daemon::known::journal;
use crate::feishu::event::Click;
use crate::gateway::call::CallAnswer;
use crate::text::{Text, Tone};
use crate::wording::toast::read_reply;
use crate::wording::{Toast, reply_json};

/// What a tap led to, and what shows it.
pub(crate) struct Ruling {
    pub(crate) outcome: Outcome,
    show: Show,
}

enum Show {
    Toast,
    /// The card's true face goes along.
    Card(Face),
    /// What was answered when this very event came before, and the card in it.
    Kept(Vec<u8>, Option<Value>),
}

impl Ruling {
    pub(crate) fn with(outcome: Outcome, face: Option<Face>) -> Self {
        let show = face.map_or(Show::Toast, Show::Card);
        Self { outcome, show }
    }

    /// The answer this very event got before.
    pub(crate) fn kept(upshot: Upshot, reply: Vec<u8>) -> Self {
        let unread = (Toast::said(Tone::Warning, Text::new("", "")), None);
        let (Toast { tone, text: said }, card) = read_reply(&reply).unwrap_or(unread);
        Self {
            outcome: Outcome::Relayed { upshot, tone, said },
            show: Show::Kept(reply, card),
        }
    }

    /// The reply to the tap, as the JSON Feishu takes.
    pub(crate) fn reply(self, cards: &Cards, click: &Click) -> Vec<u8> {
        let card = match self.show {
            Show::Toast => None,
            Show::Card(face) => taken(cards, click, &self.outcome, &face),
            Show::Kept(reply, _) => return reply,
        };
        reply_json(
            &Toast::of(&self.outcome),
            card.as_deref(),
            cards.config.lang,
        )
    }

    /// The same for the machine that brought the tap. It judges by itself what
    /// its Feishu takes, except of a card that this tap made what it is.
    pub(crate) fn answer(self, cards: &Cards, click: &Click) -> CallAnswer {
        match &self.show {
            Show::Card(face) if self.outcome.lasts() => {
                let card = taken(cards, click, &self.outcome, face);
                let card = card.and_then(|card| serde_json::from_str(&card).ok());
                CallAnswer::of(&self.outcome, card)
            }
            Show::Toast | Show::Card(_) | Show::Kept(..) => self.told(),
        }
    }

    /// For a machine that only asks, with the card as it is.
    pub(crate) fn told(self) -> CallAnswer {
        let card = match self.show {
            Show::Toast => None,
            Show::Card(face) => serde_json::from_str(&face.shown).ok(),
            Show::Kept(_, card) => card,
        };
        CallAnswer::of(&self.outcome, card)
    }
}

impl From<Outcome> for Ruling {
    fn from(outcome: Outcome) -> Self {
        Self::with(outcome, None)
    }
}

impl From<Refusal> for Ruling {
    fn from(why: Refusal) -> Self {
        Outcome::from(why).into()
    }
}

impl From<Deed> for Ruling {
    fn from(deed: Deed) -> Self {
        Outcome::from(deed).into()
    }
}

/// The card as it goes with the answer. What a tap changed is kept, so that
/// the same event gets the same answer ever after.
fn taken(cards: &Cards, click: &Click, outcome: &Outcome, face: &Face) -> Option<String> {
    let shown = laid_out(cards, click, &face.shown);
    if outcome.lasts() {
        let previews = cards.config.previews;
        let kept = shown.as_ref().map(|_| previews.of_json(&face.kept));
        let kept = reply_json(&Toast::of(outcome), kept.as_deref(), cards.config.lang);
        journal::answered(&cards.journal, click.head.event_id.as_ref(), kept);
    }
    shown
}

/// The card if this Feishu is known to take it in an answer; else it is shown
/// by an edit as soon as the answer is there.
fn laid_out(cards: &Cards, click: &Click, card: &CardText) -> Option<String> {
    let card = courier::laid_out_text(cards, card);
    if cards.proof.covers(&card) {
        return Some(cards.config.previews.of_json(&card).into_owned());
    }
    if let Some(message) = click.message.clone() {
        cards.courier.edit_soon(message, card);
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::approvals::desk::Delivery;
    use crate::approvals::outcome::sample::{decided, denied};
    use crate::text::Lang;

    fn face(card: &Value) -> Face {
        CardText::from(card.to_string()).into()
    }

    #[test]
    fn a_machine_that_asks_gets_the_outcome_and_the_card_as_it_is() {
        let card = json!({"schema": "2.0"});
        let outcome = decided(denied(false), Delivery::Confirmed);
        let told = Ruling::with(outcome.clone(), Some(face(&card))).told();
        assert_eq!(told, CallAnswer::of(&outcome, Some(card)));
        let bare: Ruling = Refusal::Stale.into();
        assert_eq!(bare.told(), CallAnswer::of(&Refusal::Stale.into(), None));
    }

    #[test]
    fn an_answer_that_was_kept_is_told_as_it_was_given() {
        let card = json!({"schema": "2.0"});
        let toast = Toast::of(&decided(denied(false), Delivery::Confirmed));
        let reply = reply_json(&toast, Some(&card.to_string()), Lang::Zh);
        let ruling = Ruling::kept(Upshot::Denied, reply);
        assert_eq!(Toast::of(&ruling.outcome).text, toast.text);
        let answer = ruling.told();
        assert_eq!(answer.upshot, Upshot::Denied);
        assert_eq!(answer.message, toast.text.zh);
        assert_eq!(answer.seen.and_then(|seen| seen.card), Some(card));
    }

    #[test]
    fn an_answer_that_can_not_be_read_any_more_still_says_what_came_of_it() {
        let answer = Ruling::kept(Upshot::Allowed, b"{".to_vec()).told();
        assert_eq!(
            (answer.upshot, answer.message.as_str()),
            (Upshot::Allowed, "")
        );
    }
}
