//! Passes whose signatures were looked at. A machine shows the same one with
//! everything it says, and to look at it again costs more than all the rest.
//! Pure.

use std::collections::HashMap;

use sha2::{Digest as _, Sha256};

use crate::bus::nkey::PublicKey;
use crate::bus::pass::{BadPass, Pass, Seconds};

/// More machines than one gateway serves; nobody can make a pass that counts
/// but gateways themselves.
const MAX: usize = 4_096;

#[derive(Debug, Default)]
pub(super) struct Passes {
    /// By the digest of a pass as it stands, signature and all.
    known: HashMap<[u8; 32], Pass>,
}

impl Passes {
    /// The pass, if `signer` signed it and it counts at `now`.
    pub(super) fn check(
        &mut self,
        text: &str,
        signer: &PublicKey,
        now: Seconds,
    ) -> Result<Pass, BadPass> {
        let digest = Sha256::digest(text).into();
        if let Some(pass) = self.known.get(&digest) {
            if pass.until > now {
                return Ok(pass.clone());
            }
            self.known.remove(&digest);
            return Err(BadPass::Expired);
        }
        let pass = Pass::check(text, signer, now)?;
        if self.known.len() >= MAX {
            self.known.clear();
        }
        self.known.insert(digest, pass.clone());
        Ok(pass)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::nkey::{KeyKind, KeyPair};
    use crate::bus::pass::{self, Span};
    use crate::bus::subjects::Owner;

    fn signer(n: u8) -> KeyPair {
        KeyPair::of(KeyKind::Account, [n; 32])
    }

    fn made(by: &KeyPair, made: Seconds) -> String {
        let key = KeyPair::of(KeyKind::User, [9; 32]).public();
        let owner = Owner::parse("ou_a").unwrap();
        let span = Span { made, until: 200 };
        pass::machine(by, &signer(1).public(), &owner, &key, span)
    }

    #[test]
    fn a_pass_that_is_known_is_over_in_its_time_all_the_same() {
        let (own, mut passes) = (signer(2), Passes::default());
        let text = made(&own, 100);
        let first = passes.check(&text, &own.public(), 150).unwrap();
        assert_eq!(passes.check(&text, &own.public(), 199), Ok(first));
        for now in [200, 201, 200] {
            let late = passes.check(&text, &own.public(), now);
            assert_eq!(late, Err(BadPass::Expired), "{now}");
        }
    }

    #[test]
    fn no_byte_of_a_pass_that_is_known_can_be_altered() {
        let (own, mut passes) = (signer(2), Passes::default());
        let text = made(&own, 100);
        passes.check(&text, &own.public(), 150).unwrap();
        for at in 0..text.len() {
            let other = if text.as_bytes()[at] == b'A' {
                "B"
            } else {
                "A"
            };
            let mut altered = text.clone();
            altered.replace_range(at..=at, other);
            // The last letter of a signature has bits that say nothing.
            let read = passes.check(&altered, &own.public(), 150);
            assert!(read.is_err(), "{at} {read:?}");
        }
        let foreign = passes.check(&made(&signer(3), 100), &own.public(), 150);
        assert_eq!(foreign, Err(BadPass::Forged));
    }

    #[test]
    fn memory_is_bounded_and_only_holds_what_counts() {
        let (own, mut passes) = (signer(2), Passes::default());
        let forged = made(&signer(3), 1);
        for _ in 0..10 {
            assert!(passes.check(&forged, &own.public(), 150).is_err());
        }
        assert!(passes.known.is_empty());
        let one = Pass::check(&made(&own, 1), &own.public(), 150).unwrap();
        for n in 0..MAX {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&n.to_le_bytes());
            passes.known.insert(digest, one.clone());
        }
        passes.check(&made(&own, 2), &own.public(), 150).unwrap();
        assert_eq!(passes.known.len(), 1);
    }
}
