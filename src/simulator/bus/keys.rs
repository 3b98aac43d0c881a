//! Keys and passes as a NATS server reads them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::Value;

use super::rights::ClientRights;

const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// The 32 bytes of a public key whose first letter is `kind`.
fn key(text: &str, kind: char) -> Result<[u8; 32], String> {
    if !text.starts_with(kind) || text.len() != 56 {
        return Err(format!("`{text}` is no key of kind {kind}"));
    }
    let mut bits = Vec::with_capacity(280);
    for letter in text.bytes() {
        let at = ALPHABET.iter().position(|known| *known == letter);
        let at = at.ok_or_else(|| format!("`{text}` is no key"))?;
        bits.extend((0..5).rev().map(|bit| at >> bit & 1));
    }
    let bytes: Vec<u8> = bits
        .chunks_exact(8)
        .map(|bits| {
            bits.iter()
                .fold(0, |byte, bit| byte << 1 | u8::from(*bit == 1))
        })
        .collect();
    bytes[1..33].try_into().map_err(|_| "no key".to_owned())
}

fn is_signed(message: &[u8], signature: &[u8], by: [u8; 32]) -> bool {
    let key = UnparsedPublicKey::new(&ED25519, by);
    key.verify(message, signature).is_ok()
}

/// The claims of a token that its own issuer signed.
fn claims(token: &str, issuer_kind: char) -> Result<Value, String> {
    let (body, signature) = token.rsplit_once('.').ok_or("no token")?;
    let (_, claims) = body.split_once('.').ok_or("no token")?;
    let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).map_err(|why| why.to_string());
    let claims: Value = serde_json::from_slice(&decode(claims)?).map_err(|why| why.to_string())?;
    let issuer = claims["iss"].as_str().unwrap_or_default();
    let signature = decode(signature)?;
    if !is_signed(body.as_bytes(), &signature, key(issuer, issuer_kind)?) {
        return Err("the signature does not hold".to_owned());
    }
    Ok(claims)
}

/// The operator's word for one account.
pub(super) struct SignedAccount {
    operator: String,
    system: String,
    pub(super) word: String,
    claims: Value,
}

impl SignedAccount {
    pub(super) fn read(token: &str, operator: &str, system: &str) -> Result<Self, String> {
        let claims = claims(token, 'O')?;
        if claims["iss"] != operator {
            return Err("another operator signed the account".to_owned());
        }
        if claims["nats"]["type"] != "account" {
            return Err("it is no account".to_owned());
        }
        Ok(Self {
            operator: operator.to_owned(),
            system: system.to_owned(),
            word: token.to_owned(),
            claims,
        })
    }

    pub(super) fn updated(&self, token: &str) -> Result<Self, String> {
        let newer = Self::read(token, &self.operator, &self.system)?;
        if newer.claims["sub"] != self.claims["sub"] {
            return Err("it is another account".to_owned());
        }
        Ok(newer)
    }

    pub(super) fn is(&self, account: &str) -> bool {
        self.claims["sub"] == account
    }

    /// The rights of whoever shows this pass and signs this nonce.
    pub(super) fn admit(
        &self,
        pass: &str,
        signature: &str,
        nonce: &str,
        now: i64,
    ) -> Result<ClientRights, String> {
        let user = claims(pass, 'A')?;
        if user["nats"]["type"] != "user" {
            return Err("it is no user".to_owned());
        }
        let own = user["sub"].as_str().unwrap_or_default();
        let signature = URL_SAFE_NO_PAD.decode(signature);
        let signature = signature.map_err(|why| why.to_string())?;
        if !is_signed(nonce.as_bytes(), &signature, key(own, 'U')?) {
            return Err("the nonce was signed by somebody else".to_owned());
        }
        let exp = user["exp"].as_i64().unwrap_or(i64::MAX);
        if exp <= now {
            return Err("its time is over".to_owned());
        }
        if user["iss"] == self.system.as_str() && user["nats"]["issuer_account"].is_null() {
            return Ok(ClientRights::of_system(own, exp));
        }
        if user["nats"]["issuer_account"] != self.claims["sub"] {
            return Err("it is of another account".to_owned());
        }
        let scopes = self.claims["nats"]["signing_keys"].as_array();
        let scope = scopes
            .into_iter()
            .flatten()
            .find(|scope| scope["key"] == user["iss"])
            .ok_or("its signer is none of the account's")?;
        for field in ["pub", "sub"] {
            let own = user["nats"][field].as_object();
            if own.is_some_and(|own| !own.is_empty()) {
                return Err("a scoped pass claims rights of its own".to_owned());
            }
        }
        let rights = ClientRights::of(own, &user, &scope["template"], exp)?;
        if self.revokes(&rights) {
            return Err("it was taken back".to_owned());
        }
        Ok(rights)
    }

    pub(super) fn revokes(&self, rights: &ClientRights) -> bool {
        let revoked = &self.claims["nats"]["revocations"];
        let from = revoked[&rights.key].as_i64();
        from.is_some_and(|from| rights.made <= from)
    }
}
