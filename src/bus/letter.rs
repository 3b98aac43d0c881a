//! What goes over the bus: a head, a body, and a signature over both and over
//! what they are about, so that the broker can withhold a letter but neither
//! alter it nor deliver it elsewhere. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::nkey::{KeyPair, PublicKey};
use crate::clock::Millis;

/// A head is a pass and a few numbers.
const MAX_HEAD: usize = 4 * 1024;

/// A letter that nobody has vouched for yet.
#[derive(Debug)]
pub struct Letter<'a> {
    signature: Vec<u8>,
    head: &'a [u8],
    body: &'a [u8],
}

/// What a gateway's push says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushHead {
    /// Feishu's time after which it counts for nothing.
    pub until: Millis,
    /// Its own, so that an answer belongs to it alone.
    pub once: String,
    /// The right to touch the message it tells of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
}

/// What a machine's call says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallHead {
    /// When it was made, by Feishu's time.
    pub at: Millis,
    pub once: String,
    pub pass: String,
}

/// What an answer says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerHead {
    /// The `once` of what it answers.
    pub re: String,
    /// A machine's; a gateway is known by its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass: Option<String>,
}

/// Signs a letter about `about`, which is the subject it goes out on, or the
/// one it answers.
pub fn sign(key: &KeyPair, about: &str, head: &impl Serialize, body: &[u8]) -> Vec<u8> {
    // Plain structs of numbers and texts: there is nothing that could fail.
    let head = serde_json::to_vec(head).unwrap_or_default();
    let signature = key.sign(&signed(about, &head, body));
    let mut letter = URL_SAFE_NO_PAD.encode(signature).into_bytes();
    letter.reserve_exact(head.len() + body.len() + 2);
    letter.push(b'\n');
    letter.extend_from_slice(&head);
    letter.push(b'\n');
    letter.extend_from_slice(body);
    letter
}

/// What a signature is made over: a digest, because a signature reads what it
/// signs twice, by a slower way than processors have for this one, and a letter
/// holds a whole card. No nonce that a server has signed begins like this. The
/// head is JSON and a subject has no line break, so no two letters are the same
/// bytes.
fn signed(about: &str, head: &[u8], body: &[u8]) -> Vec<u8> {
    let parts = [about.as_bytes(), b"\n", head, b"\n", body];
    let all = parts.iter().fold(Sha256::new(), Sha256::chain_update);
    [b"nod1\n", all.finalize().as_slice()].concat()
}

impl<'a> Letter<'a> {
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let (signature, rest) = line(bytes, 128)?;
        let (head, body) = line(rest, MAX_HEAD)?;
        Some(Self {
            signature: URL_SAFE_NO_PAD.decode(signature).ok()?,
            head,
            body,
        })
    }

    /// What the head claims; nothing of it is true before [`Self::open`].
    pub fn claims<H: DeserializeOwned>(&self) -> Option<H> {
        serde_json::from_slice(self.head).ok()
    }

    /// The body, if `key` signed it about `about`.
    pub fn open(&self, key: &PublicKey, about: &str) -> Option<&'a [u8]> {
        let all = signed(about, self.head, self.body);
        key.verifies(&all, &self.signature).then_some(self.body)
    }
}

fn line(bytes: &[u8], most: usize) -> Option<(&[u8], &[u8])> {
    let within = &bytes[..bytes.len().min(most + 1)];
    let end = within.iter().position(|b| *b == b'\n')?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::nkey::KeyKind;
    use proptest::prelude::*;

    fn key(n: u8) -> KeyPair {
        KeyPair::of(KeyKind::Push, [n; 32])
    }

    fn head() -> PushHead {
        PushHead {
            until: 5,
            once: "x".to_owned(),
            ticket: None,
        }
    }

    #[test]
    fn a_letter_opens_for_its_subject_and_its_key_alone() {
        let bytes = sign(&key(1), "a.b", &head(), b"body\nwith lines");
        let letter = Letter::read(&bytes).unwrap();
        assert_eq!(letter.claims(), Some(head()));
        let own = key(1).public();
        assert_eq!(letter.open(&own, "a.b"), Some(&b"body\nwith lines"[..]));
        assert_eq!(letter.open(&own, "a.c"), None);
        assert_eq!(letter.open(&key(2).public(), "a.b"), None);
    }

    #[test]
    fn no_byte_of_a_letter_can_be_altered() {
        let bytes = sign(&key(1), "a", &head(), b"body");
        let own = key(1).public();
        for at in 0..bytes.len() {
            for bit in [1, 2, 32] {
                let mut other = bytes.clone();
                other[at] ^= bit;
                let opens =
                    Letter::read(&other).and_then(|letter| letter.open(&own, "a").map(drop));
                assert_eq!(opens, None, "byte {at} bit {bit}");
            }
        }
        for cut in 0..bytes.len() {
            let opens = Letter::read(&bytes[..cut]).and_then(|l| l.open(&own, "a").map(drop));
            assert_eq!(opens, None, "cut at {cut}");
        }
    }

    #[test]
    fn a_line_break_moved_from_head_to_body_is_another_letter() {
        let bytes = sign(&key(1), "a", &head(), b"\nx");
        let text = String::from_utf8(bytes).unwrap();
        let moved = text.replacen("\n\n", "\n", 1);
        let letter = Letter::read(moved.as_bytes()).unwrap();
        assert_eq!(letter.open(&key(1).public(), "a"), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Some(letter) = Letter::read(&bytes) {
                prop_assert!(letter.open(&key(1).public(), "a").is_none());
                let _ = letter.claims::<CallHead>();
            }
        }
    }
}
