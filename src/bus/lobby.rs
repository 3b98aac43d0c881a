//! Joining: the line a person gets in the chat, what a machine asks with it, and
//! the fingerprint that both sides show. The line lets its holder ask for ten
//! minutes, for one owner, and nothing else; the owner's tap decides. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::membership::{self, BadMembership, Grant};
use super::nkey::{self, KeyKind, KeyPair, PublicKey};
use super::pass::{BadPass, Lobby};
use super::url::BusUrl;
use crate::feishu::secret::Secret;

/// Letters of a ticket.
const TICKET: usize = 24;
const MAX_NAME: usize = 64;

/// What `/join` answers with.
#[derive(Clone, Serialize, Deserialize)]
pub struct Invite {
    pub url: String,
    /// The pass that lets into the lobby, and the key it is for.
    pub lobby: String,
    pub seed: String,
    /// The keys gateways sign with.
    pub push: Vec<String>,
}

/// An invitation that can be used.
#[derive(Debug)]
pub struct Invited {
    pub url: BusUrl,
    pub lobby: Lobby,
    pub pass: String,
    pub key: KeyPair,
    pub push: Vec<PublicKey>,
}

/// What a machine asks for in the lobby.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinWish {
    pub key: String,
    /// What the machine and its user are called.
    pub name: String,
    pub user: String,
    pub version: String,
    /// Signed with the key itself, so that nobody asks for another's.
    pub proof: String,
}

/// What a gateway answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum LobbyReply {
    /// The owner has a card and has not tapped yet.
    Asked,
    Granted(Grant),
    Refused(No),
}

/// Why nobody joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum No {
    /// The owner said no.
    Owner,
    /// The line let another machine in.
    Used,
    /// Too many machines ask with one line.
    Many,
    /// The owner could not be asked.
    Unasked,
}

/// A ticket of this chance.
pub fn ticket(chance: [u8; 16]) -> String {
    let text = nkey::base32(&chance).to_ascii_lowercase();
    text[..TICKET].to_owned()
}

pub fn is_ticket(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    text.len() == TICKET && text.bytes().all(plain)
}

/// What a person compares: eight letters of what is asked.
pub fn fingerprint(ticket: &str, key: &PublicKey) -> String {
    let digest = Sha256::digest(format!("nod fingerprint\n{ticket}\n{key}"));
    let text = nkey::base32(&digest[..5]);
    format!("{}-{}", &text[..4], &text[4..8])
}

fn proven(ticket: &str, key: &str) -> Vec<u8> {
    format!("nod join\n{ticket}\n{key}").into_bytes()
}

impl JoinWish {
    pub fn of(key: &KeyPair, ticket: &str, name: &str, user: &str, version: &str) -> Self {
        let text = key.public().to_string();
        let proof = key.sign(&proven(ticket, &text));
        Self {
            key: text,
            name: short(name),
            user: short(user),
            version: short(version),
            proof: URL_SAFE_NO_PAD.encode(proof),
        }
    }

    /// The key that this is for, if its holder asks.
    pub fn key(&self, ticket: &str) -> Option<PublicKey> {
        let key = PublicKey::parse(&self.key, KeyKind::User).ok()?;
        let proof = URL_SAFE_NO_PAD.decode(&self.proof).ok()?;
        let fits = [&self.name, &self.user, &self.version];
        let fits = fits.iter().all(|text| text.len() <= MAX_NAME);
        (fits && key.verifies(&proven(ticket, &self.key), &proof)).then_some(key)
    }
}

fn short(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_NAME.min(text.len()));
    text[..end].to_owned()
}

impl Invite {
    pub fn line(&self) -> Secret {
        Secret::new(membership::written(self))
    }
}

impl Invited {
    /// Reads the line that the bot answered with.
    pub fn of_line(line: &str) -> Result<Self, BadMembership> {
        let invite: Invite = membership::read(line)?;
        let lobby = Lobby::read(&invite.lobby).map_err(|_: BadPass| BadMembership::NoLine)?;
        let key = KeyPair::parse(&invite.seed, KeyKind::User).map_err(|_| BadMembership::NoLine)?;
        if lobby.key != key.public() {
            return Err(BadMembership::OtherKey);
        }
        Ok(Self {
            url: BusUrl::parse(&invite.url).map_err(|_| BadMembership::BadUrl)?,
            lobby,
            pass: invite.lobby,
            key,
            push: membership::gateways(&invite.push)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::pass::{self, Span};
    use crate::bus::subjects::Owner;

    fn user(n: u8) -> KeyPair {
        KeyPair::of(KeyKind::User, [n; 32])
    }

    fn invite(seed: &KeyPair) -> Invite {
        let signer = KeyPair::of(KeyKind::Account, [1; 32]);
        let owner = Owner::parse("ou_a").unwrap();
        let span = Span {
            made: 1,
            until: 600,
        };
        let (account, key) = (signer.public(), user(5).public());
        Invite {
            url: "wss://bus.example".to_owned(),
            lobby: pass::lobby(&signer, &account, &owner, &ticket([9; 16]), &key, span),
            seed: seed.seed().expose().to_owned(),
            push: vec![KeyPair::of(KeyKind::Push, [3; 32]).public().to_string()],
        }
    }

    #[test]
    fn a_line_reads_back_and_is_no_pass() {
        let line = invite(&user(5)).line();
        let invited = Invited::of_line(&format!(" {}\n", line.expose())).unwrap();
        assert_eq!(invited.lobby.owner.as_str(), "ou_a");
        assert_eq!(invited.lobby.ticket, ticket([9; 16]));
        assert!(is_ticket(&invited.lobby.ticket));
        assert!(Grant::of_line(line.expose()).is_err());
        assert!(
            pass::Pass::read(&invited.pass).is_err(),
            "a lobby's is no machine's"
        );
        let shown = format!("{invited:?}");
        assert!(!shown.contains(user(5).seed().expose()), "{shown}");
    }

    #[test]
    fn a_line_with_anothers_key_in_the_clear_or_of_nonsense_invites_nobody() {
        let of = |invite: &Invite| Invited::of_line(invite.line().expose()).map(drop);
        assert_eq!(of(&invite(&user(6))), Err(BadMembership::OtherKey));
        let plain = Invite {
            url: "nats://bus.example".to_owned(),
            ..invite(&user(5))
        };
        assert_eq!(of(&plain), Err(BadMembership::BadUrl));
        let nobody = Invite {
            push: Vec::new(),
            ..invite(&user(5))
        };
        assert_eq!(of(&nobody), Err(BadMembership::NoGateway));
        for line in ["", "nod1.", "nod1.e30", "hello"] {
            assert_eq!(Invited::of_line(line).err(), Some(BadMembership::NoLine));
        }
    }

    #[test]
    fn nobody_asks_for_anothers_key_or_with_anothers_ticket() {
        let (own, other) = (ticket([1; 16]), ticket([2; 16]));
        let wish = JoinWish::of(&user(7), &own, &"x".repeat(900), "me", "1");
        assert_eq!(wish.key(&own), Some(user(7).public()));
        assert_eq!(wish.key(&other), None);
        let theirs = JoinWish {
            key: user(8).public().to_string(),
            ..wish.clone()
        };
        assert_eq!(theirs.key(&own), None);
        let long = JoinWish {
            name: "x".repeat(65),
            ..wish
        };
        assert_eq!(long.key(&own), None);
        assert_ne!(
            fingerprint(&own, &user(7).public()),
            fingerprint(&own, &user(8).public())
        );
        assert_eq!(fingerprint(&own, &user(7).public()).len(), 9);
    }
}
