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

    /// A button of a request's card. `sent` says that its input went out whole
    /// before the card: the seal keeps that, also over a restart.
    pub(crate) fn choice(&self, request: &RequestId, action: Action, sent: bool) -> Value {
        let mut value = self.value(action.as_str(), request.as_str());
        if sent {
            value[WHOLE] = json!(true);
        }
        self.seal(value)
    }

    /// A question's button, or its form's submit.
    pub(crate) fn answer(
        &self,
        request: &RequestId,
        tap: Option<QuestionTap>,
        sent: bool,
    ) -> Value {
        let mut value = self.value(ANSWER, request.as_str());
        // A null may not come back, and would break the seal.
        if let Some(tap) = tap {
            value["tap"] = json!(tap.as_name());
        }
        if sent {
            value[WHOLE] = json!(true);
        }
        self.seal(value)
    }

    /// The button that stops a session's task.
    pub(crate) fn stop(&self, session: i64) -> Value {
        let request = format!("s{session}.stop");
        let mut value = json!({"action": STOP, "request_id": request, "session": session});
        self.sign(&mut value);
        self.seal(value)
    }

    /// A choice on a menu.
    pub(crate) fn pick(&self, key: &str, number: usize) -> Value {
        let mut value = json!({"action": PICK, "request_id": key, "pick": number});
        self.sign(&mut value);
        self.seal(value)
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
        let mut value = json!({"action": action, "request_id": request});
        self.sign(&mut value);
        value
    }

    /// Says which machine a button belongs to, and where the others reach it.
    fn sign(&self, value: &mut Value) {
        value["callback_url"] = json!(self.url);
        value["machine"] = json!(self.machine.id.as_str());
        value["machine_name"] = json!(self.machine.name);
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
