//! The proof that a connection belongs to the hook that asked: 256 random bits
//! given out once, of which only the hash is kept. Never shown in a log.

use sha2::{Digest as _, Sha256};
use std::fmt;

use crate::hex;

/// What the hook keeps in memory and presents after a daemon restart.
#[derive(Clone, PartialEq, Eq)]
pub struct Token([u8; 32]);

/// What the daemon keeps, also on disk.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenHash([u8; 32]);

impl Token {
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub fn hex(&self) -> String {
        hex::encode(&self.0)
    }

    pub fn parse_hex(text: &str) -> Option<Self> {
        hex::decode(text).map(Self)
    }

    pub fn hash(&self) -> TokenHash {
        TokenHash(Sha256::digest(self.0).into())
    }
}

impl TokenHash {
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub fn to_bytes(self) -> [u8; 32] {
        self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_back_and_never_prints_itself() {
        let token = Token::from_bytes([0xa5; 32]);
        assert_eq!(Token::parse_hex(&token.hex()), Some(token.clone()));
        assert_eq!(TokenHash::from_bytes(token.hash().to_bytes()), token.hash());
        let logged = format!("{token:?} {:?}", token.hash());
        assert_eq!(logged, "Token(…) TokenHash(…)");
        for bad in ["", "a5", &"+1".repeat(32), &"é".repeat(32)] {
            assert_eq!(Token::parse_hex(bad), None);
        }
    }
}
