//! What the person who tapped sees at once (a toast, and the card where Feishu
//! is known to take it there), and what the tap led to.

use serde_json::Value;

use crate::approvals::outcome::Outcome;
use crate::daemon::cards::courier::{self, Drawn, Face};
use crate::daemon::known::journal;
use crate::daemon::parts::Parts;
use crate::feishu::event::Click;
use crate::text::Tone;
use crate::wording::{Toast, reply_json};

/// What the person sees at once.
pub(crate) enum Shown {
    Toast(Toast),
    /// A toast, and the card's true face.
    WithCard(Toast, Drawn),
    /// As the above, and it was this tap that made it so.
    Effect(Outcome, Toast, Face),
    /// This tap made it so, and there is no card to show it.
    Done(Outcome, Toast),
    /// What was answered when this very event came before.
    Again(Outcome, Vec<u8>),
}

impl From<Toast> for Shown {
    fn from(toast: Toast) -> Self {
        Self::Toast(toast)
    }
}

/// What was shown, as the JSON Feishu takes. What a click changed is kept, so
/// that the same event gets the same answer ever after.
pub(super) fn rendered(parts: &Parts, click: &Click, shown: Shown) -> Vec<u8> {
    let lang = parts.config.lang;
    match shown {
        Shown::Toast(toast) | Shown::Done(_, toast) => reply_json(&toast, None, lang),
        Shown::WithCard(toast, card) => {
            let card = taken(parts, click, &card);
            reply_json(&toast, card.as_deref(), lang)
        }
        Shown::Effect(_, toast, face) => {
            let shown = taken(parts, click, &face.shown);
            let previews = parts.config.previews;
            let kept = shown.as_ref().map(|_| previews.of_json(&face.kept));
            let kept = reply_json(&toast, kept.as_deref(), lang);
            journal::answered(parts, click.head.event_id.as_ref(), kept);
            reply_json(&toast, shown.as_deref(), lang)
        }
        Shown::Again(_, answer) => answer,
    }
}

/// The card as it goes with the answer, if this Feishu is known to take it;
/// else it is shown by an edit as soon as the answer is there.
fn taken(parts: &Parts, click: &Click, card: &Drawn) -> Option<String> {
    let card = courier::laid_out_text(parts, card);
    if parts.proof.covers(&card) {
        return Some(parts.config.previews.of_json(&card).into_owned());
    }
    if let Some(message) = click.message.clone() {
        parts.courier.edit_soon(message, card);
    }
    None
}

impl Shown {
    /// What this led to, for whoever asked in a person's place.
    pub(crate) const fn outcome(&self) -> Outcome {
        match self {
            Self::Toast(_) | Self::WithCard(..) => Outcome::Nothing,
            Self::Effect(outcome, ..) | Self::Done(outcome, _) | Self::Again(outcome, _) => {
                *outcome
            }
        }
    }

    /// What was shown, for whoever shows it in our place. An answer given
    /// before is taken apart again.
    pub(crate) fn into_parts(self) -> (Toast, Option<Value>) {
        match self {
            Self::Toast(toast) | Self::Done(_, toast) => (toast, None),
            Self::WithCard(toast, card) | Self::Effect(_, toast, Face { shown: card, .. }) => {
                (toast, serde_json::from_str(&card).ok())
            }
            Self::Again(_, answer) => {
                let mut said: Value = serde_json::from_slice(&answer).unwrap_or_default();
                let card = said.pointer_mut("/card/data").map(Value::take);
                let text = |at: &str| said.pointer(at).and_then(Value::as_str).unwrap_or_default();
                let toast = Toast::Relayed {
                    tone: Tone::parse(text("/toast/type")),
                    zh: text("/toast/i18n/zh_cn").to_owned(),
                    en: text("/toast/i18n/en_us").to_owned(),
                };
                (toast, card)
            }
        }
    }
}
