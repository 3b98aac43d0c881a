//! The keys a gateway holds: who signs for the account, and what gateways sign
//! with. Whoever has them can make machines for anybody, so they are guarded
//! like the app's secret. Pure.

use serde::{Deserialize, Serialize};

use super::nkey::{BadKey, KeyKind, KeyPair, PublicKey};
use super::pass::{self, Account, Seconds};
use crate::feishu::secret::Secret;

/// What stands in the keys' file.
#[derive(Serialize, Deserialize)]
struct KeysFile {
    account: String,
    machines: String,
    gateways: String,
    lobby: String,
    push: String,
    /// Missing where a company's own operator signs for the account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    operator: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    system: Option<String>,
}

#[derive(Debug)]
pub struct Keys {
    pub account: PublicKey,
    pub machines: KeyPair,
    pub gateways: KeyPair,
    pub lobby: KeyPair,
    pub push: KeyPair,
    /// Who signs for the account, where that is not somebody else's matter.
    pub own: Option<Own>,
}

/// An operator of nod's own, and the account that speaks to the server itself.
#[derive(Debug)]
pub struct Own {
    pub operator: KeyPair,
    pub system: KeyPair,
}

/// Why a file holds no keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadKeys {
    #[error("it is not what `nod gateway init` writes")]
    NoKeys,
    #[error(transparent)]
    Key(#[from] BadKey),
}

impl Keys {
    /// New ones, by chance.
    pub fn make(mut chance: impl FnMut() -> [u8; 32]) -> Self {
        let mut make = |kind| KeyPair::of(kind, chance());
        Self {
            account: make(KeyKind::Account).public(),
            machines: make(KeyKind::Account),
            gateways: make(KeyKind::Account),
            lobby: make(KeyKind::Account),
            push: make(KeyKind::Push),
            own: Some(Own {
                operator: make(KeyKind::Operator),
                system: make(KeyKind::Account),
            }),
        }
    }

    pub fn parse(text: &str) -> Result<Self, BadKeys> {
        let file: KeysFile = serde_json::from_str(text).map_err(|_| BadKeys::NoKeys)?;
        let own = match (&file.operator, &file.system) {
            (Some(operator), Some(system)) => Some(Own {
                operator: KeyPair::parse(operator, KeyKind::Operator)?,
                system: KeyPair::parse(system, KeyKind::Account)?,
            }),
            (None, None) => None,
            _ => return Err(BadKeys::NoKeys),
        };
        Ok(Self {
            account: PublicKey::parse(&file.account, KeyKind::Account)?,
            machines: KeyPair::parse(&file.machines, KeyKind::Account)?,
            gateways: KeyPair::parse(&file.gateways, KeyKind::Account)?,
            lobby: KeyPair::parse(&file.lobby, KeyKind::Account)?,
            push: KeyPair::parse(&file.push, KeyKind::Push)?,
            own,
        })
    }

    /// What is kept in the file.
    pub fn text(&self) -> Secret {
        let seed = |pair: &KeyPair| pair.seed().expose().to_owned();
        let file = KeysFile {
            account: self.account.to_string(),
            machines: seed(&self.machines),
            gateways: seed(&self.gateways),
            lobby: seed(&self.lobby),
            push: seed(&self.push),
            operator: self.own.as_ref().map(|own| seed(&own.operator)),
            system: self.own.as_ref().map(|own| seed(&own.system)),
        };
        let text = serde_json::to_string_pretty(&file).unwrap_or_default();
        Secret::new(text + "\n")
    }

    pub fn account(&self) -> Account {
        Account {
            key: self.account,
            machines: self.machines.public(),
            gateways: self.gateways.public(),
            lobby: self.lobby.public(),
        }
    }

    /// The operator's word for the account.
    pub fn account_word(&self, revoked: &[(PublicKey, Seconds)], made: Seconds) -> Option<String> {
        let own = self.own.as_ref()?;
        Some(pass::account(&own.operator, &self.account(), revoked, made))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        let mut n = 0;
        Keys::make(|| {
            n += 1;
            [n; 32]
        })
    }

    #[test]
    fn keys_read_back_and_print_none_of_their_seeds() {
        let keys = keys();
        let text = keys.text();
        let again = Keys::parse(text.expose()).unwrap();
        assert_eq!(again.text(), text);
        assert_eq!(again.account, keys.account);
        let shown = format!("{keys:?}");
        assert!(!shown.contains(keys.machines.seed().expose()), "{shown}");
        assert!(!shown.contains("\"S"), "{shown}");
    }

    #[test]
    fn keys_of_a_foreign_operator_sign_passes_and_no_account() {
        let mut keys = keys();
        keys.own = None;
        let again = Keys::parse(keys.text().expose()).unwrap();
        assert!(again.own.is_none());
        assert_eq!(again.account_word(&[], 1), None);
    }

    #[test]
    fn a_file_that_is_torn_or_mixed_up_holds_no_keys() {
        let keys = keys();
        let text = keys.text().expose().to_owned();
        for bad in [
            String::new(),
            "{}".to_owned(),
            text[..text.len() / 2].to_owned(),
            text.replace("\"operator\"", "\"other\""),
            text.replace(keys.push.seed().expose(), keys.lobby.seed().expose()),
        ] {
            assert!(Keys::parse(&bad).is_err(), "{bad}");
        }
    }
}
