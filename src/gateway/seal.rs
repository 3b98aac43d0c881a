//! Seals: on a button's value, on what machines tell each other, on a page's
//! link. Machines that share the app share its secret, so what is sealed was
//! minted by one of ours and nobody else; any change breaks it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;

use crate::approvals::request::Digest;
use crate::feishu::secret::Secret;
use crate::ids::RequestId;

pub const FIELD: &str = "seal";
/// 128 bits: a button is too short-lived to be worth more, and four of them
/// share the card's 30 KB.
const LENGTH: usize = 16;

/// What a seal is for; each has a key of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealPurpose {
    Button,
    /// Calls between machines and their answers.
    Call,
    /// Links to the webhook mode's pages.
    Link,
    /// What lets one machine of a team touch one message.
    Ticket,
    /// The buttons of a team's gateways.
    Team,
}

impl SealPurpose {
    const fn label(self) -> &'static [u8] {
        match self {
            Self::Button => b"nod button seal v1",
            Self::Call => b"nod call seal v1",
            Self::Link => b"nod link seal v1",
            Self::Ticket => b"nod ticket seal v1",
            Self::Team => b"nod team seal v1",
        }
    }
}

#[derive(Clone)]
pub struct Sealer {
    key: Hmac<Sha256>,
}

/// One of ours made it: only a seal that holds gives this, or a card that this
/// machine sent. What decides asks for it, so that nothing unsealed can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sealed(());

impl Sealed {
    /// For a button that came without its value: the card it stands on was
    /// looked up, and is this request's.
    pub const fn by_our_card(_: &RequestId) -> Self {
        Self(())
    }
}

impl Sealer {
    pub fn new(secret: &Secret, purpose: SealPurpose) -> Self {
        let mut derive = keyed(secret.expose().as_bytes());
        derive.update(purpose.label());
        Self {
            key: keyed(&derive.finalize().into_bytes()),
        }
    }

    /// The seal of a value, as text that can stand in JSON and in a URL.
    pub fn tag(&self, value: &Value) -> String {
        let tag = self.mac(value).finalize().into_bytes();
        URL_SAFE_NO_PAD.encode(&tag[..LENGTH])
    }

    /// Whether one of ours sealed exactly this value. Takes the same time
    /// wherever a forged seal differs.
    pub fn verifies(&self, value: &Value, tag: &str) -> bool {
        let tag = URL_SAFE_NO_PAD.decode(tag).unwrap_or_default();
        let whole = tag.len() == LENGTH;
        let mac = self.mac(value);
        mac.verify_truncated_left(&tag).is_ok() && whole
    }

    /// Adds the seal to an object, in the place of any other; anything else is
    /// returned as it is.
    pub fn seal(&self, mut value: Value) -> Value {
        if let Some(object) = value.as_object_mut() {
            object.shift_remove(FIELD);
        }
        let tag = self.tag(&value);
        if let Some(object) = value.as_object_mut() {
            object.insert(FIELD.to_owned(), Value::String(tag));
        }
        value
    }

    /// The proof that one of ours made this object.
    pub fn proof(&self, value: &Value) -> Option<Sealed> {
        self.holds(value).then_some(Sealed(()))
    }

    /// Whether the object carries its own seal, unbroken.
    pub fn holds(&self, value: &Value) -> bool {
        let Some(object) = value.as_object() else {
            return false;
        };
        let Some(tag) = object.get(FIELD).and_then(Value::as_str) else {
            return false;
        };
        let mut bare = object.clone();
        bare.shift_remove(FIELD);
        self.verifies(&Value::Object(bare), tag)
    }

    fn mac(&self, value: &Value) -> Hmac<Sha256> {
        let mut mac = self.key.clone();
        mac.update(Digest::of(value).hex().as_bytes());
        mac
    }
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes a key of any length")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sealer(secret: &str) -> Sealer {
        Sealer::new(&Secret::new(secret), SealPurpose::Button)
    }

    #[test]
    fn a_sealed_value_holds_in_any_key_order_and_on_any_of_our_machines() {
        let value = json!({"action": "allow", "request_id": "r", "machine": "m"});
        let sealed = sealer("s").seal(value);
        assert!(sealer("s").holds(&sealed));
        assert!(sealer("s").proof(&sealed).is_some());
        assert!(sealer("t").proof(&sealed).is_none());
        let mut reordered = serde_json::Map::new();
        for (key, value) in sealed.as_object().unwrap().iter().rev() {
            reordered.insert(key.clone(), value.clone());
        }
        assert!(sealer("s").holds(&Value::Object(reordered)));
    }

    #[test]
    fn any_change_breaks_the_seal() {
        let ours = sealer("s");
        let value = ours.seal(json!({"action": "deny", "request_id": "r", "n": 1}));
        let changes: [(&str, Value); 5] = [
            ("action", json!("allow")),
            ("request_id", json!("q")),
            ("n", json!("1")),
            ("extra", json!(null)),
            ("seal", json!("AAAAAAAAAAAAAAAAAAAAAA")),
        ];
        for (field, change) in changes {
            let mut forged = value.clone();
            forged[field] = change;
            assert!(!ours.holds(&forged), "{forged}");
        }
    }

    #[test]
    fn a_value_that_came_with_a_seal_gets_ours() {
        let theirs = sealer("t").seal(json!({"action": "allow"}));
        assert!(sealer("s").holds(&sealer("s").seal(theirs)));
    }

    #[test]
    fn no_seal_is_no_seal() {
        let sealer = sealer("s");
        for value in [
            json!({"action": "allow"}),
            json!({"action": "allow", "seal": ""}),
            json!({"action": "allow", "seal": 1}),
            json!({"action": "allow", "seal": "AA"}),
            json!("text"),
            json!(null),
        ] {
            assert!(!sealer.holds(&value), "{value}");
        }
        let other = Sealer::new(&Secret::new("t"), SealPurpose::Button).seal(json!({"a": 1}));
        assert!(!sealer.holds(&other));
    }

    #[test]
    fn a_seal_for_one_purpose_is_none_for_another() {
        let value = json!({"action": "allow"});
        let secret = Secret::new("s");
        let tag = Sealer::new(&secret, SealPurpose::Button).tag(&value);
        assert!(Sealer::new(&secret, SealPurpose::Button).verifies(&value, &tag));
        assert!(!Sealer::new(&secret, SealPurpose::Call).verifies(&value, &tag));
        assert!(!Sealer::new(&secret, SealPurpose::Link).verifies(&value, &tag));
    }
}
