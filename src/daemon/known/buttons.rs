//! The values of the buttons on this machine's cards: what a tap asks for, of
//! which request and on which machine, under a seal.

use serde_json::{Value, json};

use crate::cards::Action;
use crate::daemon::known::machine::Machine;
use crate::gateway::seal::{Sealed, Sealer};
use crate::ids::RequestId;
use crate::sessions::questions::QuestionTap;

/// The action of every button on a question's card.
pub(crate) const ANSWER: &str = "answer";

/// The action of the button that stops a session's task.
pub(crate) const STOP: &str = "stop";

/// The action of a button that says what words are for.
pub(crate) const PICK: &str = "pick";

/// The actions of a card that gathers requests.
pub(crate) const OPEN: &str = "open";
pub(crate) const DENY_ALL: &str = "deny_all";

/// The field of a button whose request went out whole before its card.
pub(crate) const WHOLE: &str = "whole";

/// The field of a button that asks by another card.
pub(crate) const ASK: &str = "ask";
/// The field of that other card's button.
pub(crate) const SURE: &str = "sure";

pub(crate) struct Buttons {
    sealer: Sealer,
    pub(crate) machine: Machine,
    /// Where the others reach this machine.
    url: String,
}

impl Buttons {
    pub(crate) fn new(sealer: Sealer, machine: Machine, url: Option<String>) -> Self {
        let url = url.unwrap_or_else(|| format!("nod://{}", machine.id));
        Self {
            sealer,
            machine,
            url,
        }
    }

    /// A button of a request's card. `whole` says that its input went out whole
    /// before the card: the seal keeps that, also over a restart.
    pub(crate) fn choice(&self, request: &RequestId, action: Action, whole: bool) -> Value {
        let mut value = self.value(action.as_str(), request.as_str());
        if whole {
            value[WHOLE] = json!(true);
        }
        self.seal(value)
    }

    /// A question's button, or its form's submit.
    pub(crate) fn answer(
        &self,
        request: &RequestId,
        tap: Option<QuestionTap>,
        whole: bool,
    ) -> Value {
        let mut value = self.value(ANSWER, request.as_str());
        // A null may not come back, and would break the seal.
        if let Some(tap) = tap {
            value["tap"] = json!(tap.as_name());
        }
        if whole {
            value[WHOLE] = json!(true);
        }
        self.seal(value)
    }

    /// The button that stops a session's task.
    pub(crate) fn stop(&self, session: i64) -> Value {
        let request = format!("s{session}.stop");
        let value = json!({"action": STOP, "request_id": request, "session": session});
        self.seal(self.signed(value))
    }

    /// A choice on a menu.
    pub(crate) fn pick(&self, key: &str, number: usize) -> Value {
        let value = json!({"action": PICK, "request_id": key, "pick": number});
        self.seal(self.signed(value))
    }

    /// A button of a card that gathers requests.
    pub(crate) fn gathered(&self, action: &str, id: &RequestId) -> Value {
        self.seal(self.value(action, id.as_str()))
    }

    /// A button's value, changed so that its tap only asks.
    pub(crate) fn asking(&self, value: &Value) -> Value {
        let mut value = value.clone();
        value[ASK] = json!(true);
        self.seal(value)
    }

    /// Seals a value anew that was changed.
    pub(crate) fn seal(&self, value: Value) -> Value {
        self.sealer.seal(value)
    }

    /// The proof that this is a value as nod made it.
    pub(crate) fn proof(&self, value: &Value) -> Option<Sealed> {
        self.sealer.proof(value)
    }

    fn value(&self, action: &str, request: &str) -> Value {
        self.signed(json!({"action": action, "request_id": request}))
    }

    /// Says which machine a button belongs to, and where the others reach it.
    fn signed(&self, mut value: Value) -> Value {
        value["callback_url"] = json!(self.url);
        value["machine"] = json!(self.machine.id.as_str());
        value["machine_name"] = json!(self.machine.name);
        value
    }
}

/// Whether a sealed value only asks.
pub(crate) fn asks(value: &Value) -> bool {
    value.get(ASK) == Some(&Value::Bool(true))
}

/// Whether a sealed value stands on a card that asked.
pub(crate) fn is_sure(value: &Value) -> bool {
    value.get(SURE) == Some(&Value::Bool(true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feishu::secret::Secret;
    use crate::gateway::seal::SealPurpose;
    use crate::ids::MachineId;

    fn buttons(secret: &str, url: Option<&str>) -> Buttons {
        let machine = Machine {
            id: MachineId::parse("0123456789abcdef").unwrap(),
            name: "laptop".to_owned(),
            user: "ann".to_owned(),
        };
        let sealer = Sealer::new(&Secret::new(secret), SealPurpose::Button);
        Buttons::new(sealer, machine, url.map(str::to_owned))
    }

    fn id() -> RequestId {
        RequestId::parse("r1").unwrap()
    }

    #[test]
    fn every_button_is_sealed_and_names_its_machine() {
        let ours = buttons("a secret", None);
        let tap = QuestionTap::parse("o0");
        for value in [
            ours.choice(&id(), Action::Allow, false),
            ours.choice(&id(), Action::Allow, true),
            ours.answer(&id(), tap, false),
            ours.answer(&id(), None, true),
            ours.stop(7),
            ours.pick("key", 2),
            ours.gathered(OPEN, &id()),
            ours.asking(&ours.choice(&id(), Action::Always, false)),
        ] {
            assert!(ours.proof(&value).is_some(), "{value}");
            assert!(buttons("another", None).proof(&value).is_none(), "{value}");
            assert_eq!(value["machine"], "0123456789abcdef");
            assert_eq!(value["callback_url"], "nod://0123456789abcdef");
        }
    }

    #[test]
    fn whoever_changes_a_word_of_a_button_breaks_its_seal() {
        let ours = buttons("a secret", None);
        let deny = ours.choice(&id(), Action::Deny, false);
        for (field, forged) in [
            ("action", json!("allow")),
            ("request_id", json!("r2")),
            ("machine", json!("fedcba9876543210")),
            (WHOLE, json!(true)),
            (SURE, json!(true)),
        ] {
            let mut value = deny.clone();
            value[field] = forged;
            assert!(ours.proof(&value).is_none(), "{field}");
        }
    }

    #[test]
    fn a_button_says_that_its_input_went_out_whole_only_where_it_did() {
        let ours = buttons("a secret", None);
        for sent in [false, true] {
            let said = |value: Value| value.get(WHOLE) == Some(&json!(true));
            assert_eq!(said(ours.choice(&id(), Action::Allow, sent)), sent);
            assert_eq!(said(ours.answer(&id(), None, sent)), sent);
        }
    }

    #[test]
    fn a_button_that_asks_is_another_than_the_one_that_decides() {
        let ours = buttons("a secret", Some("https://ann.example"));
        let always = ours.choice(&id(), Action::Always, false);
        assert_eq!(always["callback_url"], "https://ann.example");
        let asking = ours.asking(&always);
        assert!(asks(&asking) && !asks(&always));
        let mut decides = asking.clone();
        decides.as_object_mut().unwrap().remove(ASK);
        assert!(
            ours.proof(&decides).is_none(),
            "its seal is the asking one's"
        );
    }

    #[test]
    fn only_a_button_of_a_card_that_asked_is_sure() {
        assert!(is_sure(&json!({"sure": true})));
        for unsure in [json!({}), json!({"sure": false}), json!({"sure": "true"})] {
            assert!(!is_sure(&unsure), "{unsure}");
        }
    }
}
