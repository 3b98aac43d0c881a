//! What makes a machine a member of a team: where the bus is, its key, its
//! pass, and the key by which it knows a gateway. Kept in one file that only
//! its owner may read. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::nkey::{KeyKind, KeyPair, PublicKey};
use super::pass::Pass;
use super::subjects::MachinePlace;
use super::url::BusUrl;
use crate::feishu::secret::Secret;

/// The letters a line for joining begins with.
pub const LINE: &str = "nod1.";
const MAX_LINE: usize = 16 * 1024;

/// What a gateway gives to a machine; nothing in it is a secret of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub url: String,
    pub pass: String,
    /// The keys gateways sign with.
    pub push: Vec<String>,
    pub app_id: String,
}

#[derive(Serialize, Deserialize)]
struct MembershipFile {
    #[serde(flatten)]
    grant: Grant,
    seed: String,
}

/// Why a text makes nobody a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadMembership {
    #[error("it is no line that a gateway gave")]
    NoLine,
    #[error("it is not what `nod join` writes")]
    NoFile,
    #[error("its pass is for another key than this machine's")]
    OtherKey,
    #[error("its bus can't be used")]
    BadUrl,
    #[error("it names no gateway's key")]
    NoGateway,
}

/// A machine that is a member.
#[derive(Debug)]
pub struct Membership {
    pub url: BusUrl,
    pub key: KeyPair,
    pub pass: Pass,
    pub pass_text: String,
    pub push: Vec<PublicKey>,
    pub app_id: String,
}

impl Grant {
    pub fn line(&self) -> String {
        written(self)
    }

    pub fn of_line(line: &str) -> Result<Self, BadMembership> {
        read(line)
    }
}

/// What a gateway gives, as one line to be pasted.
pub(super) fn written(given: &impl Serialize) -> String {
    let json = serde_json::to_string(given).unwrap_or_default();
    format!("{LINE}{}", URL_SAFE_NO_PAD.encode(json))
}

pub(super) fn read<T: DeserializeOwned>(line: &str) -> Result<T, BadMembership> {
    let read = || {
        let text = line.trim().strip_prefix(LINE)?;
        let text = Some(text).filter(|text| text.len() <= MAX_LINE)?;
        let json = URL_SAFE_NO_PAD.decode(text).ok()?;
        serde_json::from_slice(&json).ok()
    };
    read().ok_or(BadMembership::NoLine)
}

/// The keys of the gateways, one of which there must be.
pub(super) fn gateways(push: &[String]) -> Result<Vec<PublicKey>, BadMembership> {
    let keys = push
        .iter()
        .map(|text| PublicKey::parse(text, KeyKind::Push));
    let keys: Option<Vec<_>> = keys.map(Result::ok).collect();
    let keys = keys.filter(|keys| !keys.is_empty());
    keys.ok_or(BadMembership::NoGateway)
}

impl Membership {
    /// A grant for the machine that holds `key`, and for no other.
    pub fn of(grant: &Grant, key: KeyPair) -> Result<Self, BadMembership> {
        let pass = Pass::read(&grant.pass).map_err(|_| BadMembership::NoLine)?;
        if pass.key != key.public() {
            return Err(BadMembership::OtherKey);
        }
        let push = gateways(&grant.push)?;
        Ok(Self {
            url: BusUrl::parse(&grant.url).map_err(|_| BadMembership::BadUrl)?,
            key,
            pass,
            pass_text: grant.pass.clone(),
            push,
            app_id: grant.app_id.clone(),
        })
    }

    pub fn parse(text: &str) -> Result<Self, BadMembership> {
        let file: MembershipFile = serde_json::from_str(text).map_err(|_| BadMembership::NoFile)?;
        let key = KeyPair::parse(&file.seed, KeyKind::User).map_err(|_| BadMembership::NoFile)?;
        Self::of(&file.grant, key)
    }

    /// What is kept in the file.
    pub fn text(&self) -> Secret {
        let file = MembershipFile {
            grant: Grant {
                url: self.url.to_string(),
                pass: self.pass_text.clone(),
                push: self.push.iter().map(ToString::to_string).collect(),
                app_id: self.app_id.clone(),
            },
            seed: self.key.seed().expose().to_owned(),
        };
        let text = serde_json::to_string_pretty(&file).unwrap_or_default();
        Secret::new(text + "\n")
    }

    pub fn place(&self) -> &MachinePlace {
        &self.pass.place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::pass::{self, Span};
    use crate::bus::subjects::Owner;

    fn grant(key: &KeyPair) -> Grant {
        let (signer, account) = (
            KeyPair::of(KeyKind::Account, [1; 32]),
            KeyPair::of(KeyKind::Account, [2; 32]).public(),
        );
        let owner = Owner::parse("ou_a").unwrap();
        let span = Span {
            made: 1,
            until: 1_000,
        };
        Grant {
            url: "wss://bus.example".to_owned(),
            pass: pass::machine(&signer, &account, &owner, &key.public(), span),
            push: vec![KeyPair::of(KeyKind::Push, [3; 32]).public().to_string()],
            app_id: "cli_1".to_owned(),
        }
    }

    fn key(n: u8) -> KeyPair {
        KeyPair::of(KeyKind::User, [n; 32])
    }

    #[test]
    fn a_line_and_a_file_read_back() {
        let grant = grant(&key(9));
        assert_eq!(
            Grant::of_line(&format!(" {}\n", grant.line())),
            Ok(grant.clone())
        );
        let member = Membership::of(&grant, key(9)).unwrap();
        let again = Membership::parse(member.text().expose()).unwrap();
        assert_eq!(again.place(), member.place());
        assert_eq!(again.text(), member.text());
        assert!(!format!("{member:?}").contains(key(9).seed().expose()));
    }

    #[test]
    fn somebody_elses_pass_or_a_bus_in_the_clear_makes_no_member() {
        let good = grant(&key(9));
        let of = |grant: &Grant, n| Membership::of(grant, key(n)).map(drop);
        assert_eq!(of(&good, 8), Err(BadMembership::OtherKey));
        let plain = Grant {
            url: "nats://bus.example".to_owned(),
            ..good.clone()
        };
        assert_eq!(of(&plain, 9), Err(BadMembership::BadUrl));
        for push in [
            vec![],
            vec!["U".to_owned()],
            vec![key(1).public().to_string()],
        ] {
            let nobody = Grant {
                push,
                ..good.clone()
            };
            assert_eq!(of(&nobody, 9), Err(BadMembership::NoGateway));
        }
        for line in ["", "nod1.", "nod1.!!", "nod2.e30", "nod1.e30", "hello"] {
            assert_eq!(Grant::of_line(line), Err(BadMembership::NoLine), "{line}");
        }
    }
}
