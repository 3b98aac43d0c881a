//! NATS' text form of Ed25519 keys: a letter for what the key is, the key, and
//! a checksum, in base 32. A seed is a secret and prints as none. Pure: whoever
//! makes a key brings the chance.

use std::fmt;

use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

use crate::feishu::secret::Secret;

const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
/// The first bits of every seed.
const SEED: u8 = 18 << 3;
const LENGTH: usize = 32;
/// NATS' own have 22 letters of base 64.
const MAX_NONCE: usize = 64;

/// What a key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyKind {
    Operator,
    Account,
    User,
    /// What gateways sign with; NATS itself calls this one a server's.
    Push,
}

impl KeyKind {
    const ALL: [Self; 4] = [Self::Operator, Self::Account, Self::User, Self::Push];

    const fn prefix(self) -> u8 {
        match self {
            Self::Operator => 14 << 3,
            Self::Account => 0,
            Self::User => 20 << 3,
            Self::Push => 13 << 3,
        }
    }

    fn of(prefix: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.prefix() == prefix)
    }
}

/// Why a text is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    #[error("it is no NATS key")]
    NoKey,
    #[error("it is a key of another kind")]
    OtherKind,
}

/// The public half; two spellings of one key are equal because there is one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey {
    kind: KeyKind,
    bytes: [u8; LENGTH],
}

impl PublicKey {
    pub fn parse(text: &str, kind: KeyKind) -> Result<Self, BadKey> {
        let raw = unchecked(text)?;
        let (&prefix, bytes) = raw.split_first().ok_or(BadKey::NoKey)?;
        let found = KeyKind::of(prefix).ok_or(BadKey::NoKey)?;
        let bytes = bytes.try_into().map_err(|_| BadKey::NoKey)?;
        let key = Self { kind: found, bytes };
        // Stray bits at the end would spell one key in two ways.
        if key.to_string() != text {
            return Err(BadKey::NoKey);
        }
        if found == kind {
            Ok(key)
        } else {
            Err(BadKey::OtherKind)
        }
    }

    /// Whether the owner of this key signed exactly these bytes.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let key = UnparsedPublicKey::new(&ED25519, self.bytes);
        key.verify(message, signature).is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut raw = vec![self.kind.prefix()];
        raw.extend_from_slice(&self.bytes);
        f.write_str(&checked(raw))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Both halves.
pub struct KeyPair {
    kind: KeyKind,
    secret: [u8; LENGTH],
    pair: Ed25519KeyPair,
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyPair({})", self.public())
    }
}

impl KeyPair {
    /// The key of these bytes, which must be chance.
    pub fn of(kind: KeyKind, secret: [u8; LENGTH]) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(&secret);
        Self {
            kind,
            secret,
            pair: pair.expect("any 32 bytes are a key"),
        }
    }

    pub fn parse(seed: &str, kind: KeyKind) -> Result<Self, BadKey> {
        let raw = unchecked(seed)?;
        let (head, bytes) = raw.split_at_checked(2).ok_or(BadKey::NoKey)?;
        if head[0] & 0b1111_1000 != SEED {
            return Err(BadKey::NoKey);
        }
        let prefix = (head[0] & 0b111) << 5 | head[1] >> 3;
        let found = KeyKind::of(prefix).ok_or(BadKey::NoKey)?;
        let bytes = bytes.try_into().map_err(|_| BadKey::NoKey)?;
        if found == kind {
            Ok(Self::of(kind, bytes))
        } else {
            Err(BadKey::OtherKind)
        }
    }

    pub fn seed(&self) -> Secret {
        let prefix = self.kind.prefix();
        let mut raw = vec![SEED | prefix >> 5, (prefix & 0b1_1111) << 3];
        raw.extend_from_slice(&self.secret);
        Secret::new(checked(raw))
    }

    pub fn public(&self) -> PublicKey {
        let bytes = self.pair.public_key().as_ref();
        PublicKey {
            kind: self.kind,
            bytes: bytes.try_into().expect("an Ed25519 key has 32 bytes"),
        }
    }

    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.pair.sign(message).as_ref().to_vec()
    }

    /// Signs what a server asks whoever signs in to sign, if that is a nonce and
    /// nothing else: whoever may choose what a key signs can speak for it.
    pub fn sign_nonce(&self, nonce: &[u8]) -> Option<Vec<u8>> {
        let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-_+/=".contains(b);
        let fits = (1..=MAX_NONCE).contains(&nonce.len()) && nonce.iter().all(plain);
        fits.then(|| self.sign(nonce))
    }
}

/// The bytes with their checksum, as text.
fn checked(mut raw: Vec<u8>) -> String {
    let sum = crc16(&raw);
    raw.extend_from_slice(&sum.to_le_bytes());
    base32(&raw)
}

/// The bytes of a text whose checksum holds.
fn unchecked(text: &str) -> Result<Vec<u8>, BadKey> {
    let mut raw = unbase32(text).ok_or(BadKey::NoKey)?;
    let at = raw.len().checked_sub(2).ok_or(BadKey::NoKey)?;
    let sum = raw.split_off(at);
    if crc16(&raw).to_le_bytes() == sum[..] {
        Ok(raw)
    } else {
        Err(BadKey::NoKey)
    }
}

/// The checksum of XMODEM, which NATS took over.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ (u16::from(*byte) << 8), |sum: u16, _| {
            let shifted = sum << 1;
            if sum & 0x8000 == 0 {
                shifted
            } else {
                shifted ^ 0x1021
            }
        })
    })
}

pub(super) fn base32(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(5) * 8);
    let (mut bits, mut held) = (0_u32, 0);
    for byte in bytes {
        bits = bits << 8 | u32::from(*byte);
        held += 8;
        while held >= 5 {
            held -= 5;
            text.push(char::from(ALPHABET[(bits >> held) as usize & 31]));
        }
    }
    if held > 0 {
        text.push(char::from(ALPHABET[(bits << (5 - held)) as usize & 31]));
    }
    text
}

fn unbase32(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 5 / 8);
    let (mut bits, mut held) = (0_u32, 0);
    for letter in text.bytes() {
        let value = ALPHABET.iter().position(|known| *known == letter)?;
        bits = bits << 5 | u32::try_from(value).ok()?;
        held += 5;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from(bits >> held & 0xff).ok()?);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_back_and_a_seed_makes_the_same_key() {
        for kind in KeyKind::ALL {
            let pair = KeyPair::of(kind, [7; 32]);
            let public = pair.public().to_string();
            assert_eq!(PublicKey::parse(&public, kind), Ok(pair.public()));
            let seed = pair.seed();
            let again = KeyPair::parse(seed.expose(), kind).unwrap();
            assert_eq!(again.public(), pair.public());
            assert!(!format!("{pair:?}").contains(seed.expose()));
        }
    }

    #[test]
    fn nats_own_example_is_read() {
        // The seed and the key that NATS' documentation of nkeys shows.
        let seed = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
        let public = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";
        let pair = KeyPair::parse(seed, KeyKind::User).unwrap();
        assert_eq!(pair.public().to_string(), public);
        assert_eq!(pair.seed().expose(), seed);
    }

    #[test]
    fn what_is_altered_or_of_another_kind_is_no_key() {
        let pair = KeyPair::of(KeyKind::User, [9; 32]);
        let public = pair.public().to_string();
        assert_eq!(
            PublicKey::parse(&public, KeyKind::Account),
            Err(BadKey::OtherKind)
        );
        let seed = pair.seed();
        assert!(KeyPair::parse(seed.expose(), KeyKind::Push).is_err());
        assert!(KeyPair::parse(&public, KeyKind::User).is_err());
        for at in 0..public.len() {
            for letter in ["A", "7", "z", "=", " "] {
                let mut other = public.clone();
                other.replace_range(at..=at, letter);
                let read = PublicKey::parse(&other, KeyKind::User);
                assert!(read.is_err() || other == public, "{other}");
            }
        }
        for text in ["", "U", "UU", "S", &public[1..], &format!("{public}A")] {
            assert!(PublicKey::parse(text, KeyKind::User).is_err(), "{text}");
        }
    }

    #[test]
    fn a_signature_is_for_one_message_and_one_key() {
        let (own, other) = (
            KeyPair::of(KeyKind::User, [1; 32]),
            KeyPair::of(KeyKind::User, [2; 32]),
        );
        let signature = own.sign(b"words");
        assert!(own.public().verifies(b"words", &signature));
        assert!(!own.public().verifies(b"other", &signature));
        assert!(!other.public().verifies(b"words", &signature));
        assert!(!own.public().verifies(b"words", &signature[1..]));
        assert!(!own.public().verifies(b"words", b""));
    }

    #[test]
    fn a_server_has_nonces_signed_and_nothing_that_anybody_could_read_otherwise() {
        let own = KeyPair::of(KeyKind::User, [1; 32]);
        let signature = own.sign_nonce(b"PbG4Kkq-_w5uMzQvSx2y0A").unwrap();
        assert!(own.public().verifies(b"PbG4Kkq-_w5uMzQvSx2y0A", &signature));
        let long = [b'a'; MAX_NONCE + 1];
        for other in [
            b"".as_slice(),
            b"nod1\n0123456789abcdef0123456789abcdef",
            b"nod join\nx\nU",
            b"eyJ0.eyJz",
            b"a b",
            &[0xff; 22],
            &long,
        ] {
            assert_eq!(own.sign_nonce(other), None);
        }
    }
}
