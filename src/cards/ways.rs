//! The ways to answer a permission card, each in its own place on every card:
//! two rows of two, and a fold. Decides nothing about what is offered.

use serde_json::{Value, json};

use super::body::CardBody;
use super::permission::{attention, may_allow, origin, rules, said};
use super::whole::WentOut;
use super::{Action, REASON_FIELD, confirm, fold, form, label_above, note, row, words_field};
use crate::approvals::request::Request;
use crate::rules::{Offer, Rule};
use crate::text::{Lang, Text};
use crate::wording::card as words;
use crate::wording::rule::Until;

/// Where it says so, for a card that loses its allow.
pub(super) const ALLOW_IS_BELOW: &str = "n_below";

/// The ways to answer, each in its own place on every card.
pub(super) struct Ways<'a> {
    pub(super) request: &'a Request,
    pub(super) body: &'a CardBody,
    pub(super) offer: &'a Offer,
    pub(super) actions: &'a [Action],
    pub(super) values: &'a dyn Fn(Action) -> Value,
    pub(super) lang: Lang,
}

impl Ways<'_> {
    /// Two rows of two, and the fold. Feishu promises a question before the tap
    /// only to a form's submit buttons, a form stands at the root alone, takes
    /// the card's whole width and has no other buttons, and to deny needs none.
    /// So an allow that asks stands below the place of the one that does not.
    pub(super) fn elements(&self, went_out: WentOut) -> Vec<Value> {
        let allow = self.offered(Action::Allow);
        let (plainly, asking) = match self.question(Action::Allow) {
            None => (
                allow.map(|_| plain_button(Action::Allow, self.values, self.looks(), self.lang)),
                None,
            ),
            Some(_) => (None, allow),
        };
        let asking_allow = asking.is_some();
        let deny = plain_button(Action::Deny, self.values, self.looks(), self.lang);
        let second = row(
            asking.or_else(|| self.offered(Action::Always)),
            self.offered(Action::Interrupt),
        );
        let elsewhere = asking_allow.then(|| allow_is_below(self.lang));
        vec![
            row(plainly.or(elsewhere), Some(deny)),
            perm_form(vec![second, self.fold(went_out)]),
        ]
    }

    fn looks(&self) -> ButtonLooks {
        ButtonLooks::of(self.body, self.offer)
    }

    /// A submit button, if that is offered at all.
    fn offered(&self, action: Action) -> Option<Value> {
        let ask = || self.question(action);
        self.actions
            .contains(&action)
            .then(|| button(action, self.values, ask(), self.looks(), self.lang))
    }

    /// What a button asks before it does anything. What stops is never asked.
    fn question(&self, action: Action) -> Option<Value> {
        let (body, lang) = (self.body, self.lang);
        let ask = |title, rules: Option<&[Rule]>, until| {
            let said = |rules| said(rules, &self.request.origin, until, lang);
            rules.map(|rules| confirm(title, &said(rules), lang))
        };
        let always = self.offer.always.as_deref().ok();
        let session = self.offer.session.as_deref().ok();
        match action {
            Action::Allow => {
                let attention = attention(body, lang);
                (attention.is_some() || body.elided || body.secret).then(|| {
                    let attention = attention.unwrap_or_default();
                    let text = words::confirm_allow(&attention, body.elided, body.secret);
                    let text = format!("{}\n{}", text.get(lang).trim(), body.subject);
                    confirm(&words::CONFIRM_ALLOW, text.trim(), lang)
                })
            }
            Action::Always => ask(&words::CONFIRM_ALWAYS, always, Until::Undone),
            Action::Session => ask(&words::CONFIRM_SESSION, session, Until::SessionEnd),
            Action::Wider => {
                let wider = self.offer.wider.as_deref();
                ask(&words::CONFIRM_WIDER, wider, Until::Undone)
            }
            Action::Interrupt | Action::Deny | Action::DenyWith | Action::Undo => None,
        }
    }

    /// What few need for a decision, closed.
    fn fold(&self, went_out: WentOut) -> Value {
        let lang = self.lang;
        let allowed = may_allow(self.body, went_out);
        let session = self.offered(Action::Session);
        let mut title = vec![&words::FOLD_REASON];
        title.extend(session.is_some().then_some(&words::FOLD_SESSION));
        title.extend(allowed.then_some(&words::FOLD_RULE));
        title.push(&words::FOLD_DETAILS);
        let title: Vec<&str> = title.iter().map(|part| part.get(lang)).collect();
        let mut folded = self.body.more.clone();
        folded.extend(reason(self.values, lang));
        folded.extend(session);
        if allowed {
            let origin = &self.request.origin;
            folded.extend(rules(self.body, self.offer, origin, lang));
            if let (Some(button), Some(rules)) = (self.offered(Action::Wider), &self.offer.wider) {
                folded.push(note(&said(rules, origin, Until::Undone, lang)));
                folded.push(button);
            }
        }
        folded.push(note(&origin(self.request, lang)));
        let hint = if self.request.origin.hosted {
            &words::REPLY_HINT_HOSTED
        } else {
            &words::REPLY_HINT
        };
        folded.push(note(hint.get(lang)));
        fold(&title.join(" · "), folded)
    }
}

/// A bare gap in the usual place would look like a card that broke.
pub(super) fn allow_is_below(lang: Lang) -> Value {
    let mut note = note(words::ALLOW_ASKS.get(lang));
    note["element_id"] = json!(ALLOW_IS_BELOW);
    note
}

/// The one form of a permission's card.
pub(super) fn perm_form(elements: Vec<Value>) -> Value {
    form("f_perm", "perm_form", elements)
}

/// Where a refusal is explained.
pub(super) fn reason(values: &dyn Fn(Action) -> Value, lang: Lang) -> Vec<Value> {
    let input = words_field("i_reason", REASON_FIELD, 6, &words::REASON_HINT, lang);
    let input = label_above(input, words::REASON.get(lang));
    let deny = button(Action::DenyWith, values, None, ButtonLooks::DANGER, lang);
    vec![input, deny]
}

/// What a button's label and its colour depend on.
#[derive(Debug, Clone, Copy)]
pub(super) struct ButtonLooks {
    danger: bool,
    /// A yes holds until the agent's turn ends.
    turn: bool,
}

impl ButtonLooks {
    pub(super) const DANGER: Self = Self {
        danger: true,
        turn: false,
    };

    pub(super) fn of(body: &CardBody, offer: &Offer) -> Self {
        Self {
            danger: !body.attention.is_empty(),
            turn: !offer.turn.is_empty(),
        }
    }
}

/// A button's label and its colour.
fn button_words(action: Action, looks: ButtonLooks) -> (&'static Text, &'static str) {
    match action {
        // Nothing invites a thumb to allow what is dangerous.
        Action::Allow if looks.danger => (words::allow_label(looks.turn), "default"),
        Action::Allow => (words::allow_label(looks.turn), "primary_filled"),
        Action::Always => (&words::ALWAYS, "default"),
        Action::Session => (&words::SESSION, "default"),
        Action::Wider => (&words::WIDER, "default"),
        Action::Deny => (&words::DENY, "default"),
        Action::DenyWith => (&words::DENY_WITH_REASON, "default"),
        Action::Interrupt => (&words::INTERRUPT, "danger"),
        Action::Undo => (&words::UNDO, "default"),
    }
}

/// A button of no form, which calls back at once.
pub(super) fn plain_button(
    action: Action,
    values: &dyn Fn(Action) -> Value,
    looks: ButtonLooks,
    lang: Lang,
) -> Value {
    let (label, kind) = button_words(action, looks);
    let id = format!("b_{}", action.as_str());
    super::button(&id, kind, label.get(lang), &values(action))
}

/// A button of the form, which may ask first.
pub(super) fn button(
    action: Action,
    values: &dyn Fn(Action) -> Value,
    ask: Option<Value>,
    looks: ButtonLooks,
    lang: Lang,
) -> Value {
    let mut button = plain_button(action, values, looks, lang);
    button["name"] = json!(action.button());
    button["form_action_type"] = json!("submit");
    if let Some(ask) = ask {
        button["confirm"] = ask;
    }
    button
}
