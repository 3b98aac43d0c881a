//! Passes: the signed claims by which a NATS server lets somebody in and by
//! which gateways know a machine. Rights stand with the key that signs, never
//! in the pass, so a key for machines can make no gateway. Pure.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::lobby;
use super::nkey::{self, KeyKind, KeyPair, PublicKey};
use super::subjects::{GATEWAY, LOBBY, MACHINE, MachinePlace, Owner, Rights};

/// A pass is under a kilobyte; whatever is larger is none.
const MAX_PASS: usize = 4 * 1024;
/// An account's word names whose passes were taken back.
const MAX_WORD: usize = 900 * 1024;
/// No pass is made for longer.
pub const LONGEST: Seconds = 366 * 24 * 3_600;
/// How many answers a machine may give where it was asked, and for how long.
const ANSWERS: (i64, Duration) = (64, Duration::from_secs(5));

/// Seconds since the Unix epoch, as NATS counts.
pub type Seconds = i64;

/// Why a text is no pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadPass {
    #[error("it is no pass")]
    NoPass,
    #[error("it was signed by somebody else")]
    Forged,
    #[error("its time is over")]
    Expired,
}

/// A machine's pass, as its signer vouches for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    pub place: MachinePlace,
    pub key: PublicKey,
    pub signer: PublicKey,
    pub made: Seconds,
    pub until: Seconds,
}

impl Pass {
    /// Reads what a pass says of itself; whether that is true is for the
    /// server and the gateways to judge.
    pub fn read(text: &str) -> Result<Self, BadPass> {
        let claims = claims(text, MAX_PASS).ok_or(BadPass::NoPass)?;
        let read = || {
            let key = PublicKey::parse(claims["sub"].as_str()?, KeyKind::User).ok()?;
            let signer = PublicKey::parse(claims["iss"].as_str()?, KeyKind::Account).ok()?;
            let place = MachinePlace::of(tagged(&claims)?, &key);
            // Another name would be another machine's subjects.
            let named = claims["name"].as_str() == Some(place.machine.as_str());
            let until = claims["exp"].as_i64().filter(|until| *until > 0)?;
            named.then(|| Self {
                place,
                key,
                signer,
                made: claims["iat"].as_i64().unwrap_or_default(),
                until,
            })
        };
        read().ok_or(BadPass::NoPass)
    }

    /// The pass, if `signer` signed it and it counts at `now`.
    pub fn check(text: &str, signer: &PublicKey, now: Seconds) -> Result<Self, BadPass> {
        let pass = Self::read(text)?;
        vouched(text, signer, pass.until, now).map(|()| pass)
    }
}

/// Who may ask in the lobby, for whom and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lobby {
    pub owner: Owner,
    pub ticket: String,
    pub key: PublicKey,
    pub until: Seconds,
}

impl Lobby {
    /// Reads what a lobby's pass says of itself.
    pub fn read(text: &str) -> Result<Self, BadPass> {
        let claims = claims(text, MAX_PASS).ok_or(BadPass::NoPass)?;
        let read = || {
            let ticket = claims["name"].as_str()?;
            lobby::is_ticket(ticket).then_some(())?;
            Some(Self {
                owner: tagged(&claims)?,
                ticket: ticket.to_owned(),
                key: PublicKey::parse(claims["sub"].as_str()?, KeyKind::User).ok()?,
                until: claims["exp"].as_i64()?,
            })
        };
        read().ok_or(BadPass::NoPass)
    }

    /// The same, if `signer` signed it and it counts at `now`.
    pub fn check(text: &str, signer: &PublicKey, now: Seconds) -> Result<Self, BadPass> {
        let lobby = Self::read(text)?;
        vouched(text, signer, lobby.until, now).map(|()| lobby)
    }
}

/// The one owner that a pass is for.
fn tagged(claims: &Value) -> Option<Owner> {
    let [Value::String(tag)] = claims["nats"]["tags"].as_array()?.as_slice() else {
        return None;
    };
    Owner::parse(tag.strip_prefix("owner:")?)
}

/// Whether `signer` signed what names it as its signer and counts until then.
fn vouched(text: &str, signer: &PublicKey, until: Seconds, now: Seconds) -> Result<(), BadPass> {
    let claims = claims(text, MAX_PASS).ok_or(BadPass::NoPass)?;
    let named = claims["iss"] == json!(signer.to_string());
    if !named || !is_signed(text, signer) {
        return Err(BadPass::Forged);
    }
    if until <= now {
        return Err(BadPass::Expired);
    }
    Ok(())
}

fn claims(text: &str, most: usize) -> Option<Value> {
    if text.len() > most {
        return None;
    }
    let mut parts = text.split('.');
    let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
}

fn is_signed(text: &str, by: &PublicKey) -> bool {
    let Some((body, signature)) = text.rsplit_once('.') else {
        return false;
    };
    URL_SAFE_NO_PAD
        .decode(signature)
        .is_ok_and(|signature| by.verifies(body.as_bytes(), &signature))
}

/// Claims as NATS reads them, signed.
fn signed(mut claims: Value, by: &KeyPair) -> String {
    claims["iss"] = json!(by.public().to_string());
    claims["jti"] = json!(nkey::base32(&Sha256::digest(claims.to_string())));
    let head = URL_SAFE_NO_PAD.encode(r#"{"typ":"JWT","alg":"ed25519-nkey"}"#);
    let body = format!("{head}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
    let signature = URL_SAFE_NO_PAD.encode(by.sign(body.as_bytes()));
    format!("{body}.{signature}")
}

/// The account that everybody of the team belongs to, and who may sign passes
/// for it.
#[derive(Debug, Clone, Copy)]
pub struct Account {
    pub key: PublicKey,
    pub machines: PublicKey,
    pub gateways: PublicKey,
    pub lobby: PublicKey,
}

/// Whose passes no longer count: all that were made until then.
pub type Revoked = Vec<(PublicKey, Seconds)>;

/// What the operator's word for an account says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountWord {
    pub made: Seconds,
    pub revoked: Revoked,
}

impl AccountWord {
    /// Reads it, if `operator` gave it for `account`.
    pub fn check(text: &str, operator: &PublicKey, account: &PublicKey) -> Result<Self, BadPass> {
        let claims = claims(text, MAX_WORD).ok_or(BadPass::NoPass)?;
        let names = |field: &str, key: &PublicKey| claims[field] == json!(key.to_string());
        if !names("iss", operator) || !is_signed(text, operator) {
            return Err(BadPass::Forged);
        }
        if !names("sub", account) || claims["nats"]["type"] != "account" {
            return Err(BadPass::NoPass);
        }
        let revoked = claims["nats"]["revocations"].as_object();
        let revoked = revoked.into_iter().flatten().filter_map(|(key, from)| {
            let key = PublicKey::parse(key, KeyKind::User).ok()?;
            Some((key, from.as_i64()?))
        });
        Ok(Self {
            made: claims["iat"].as_i64().unwrap_or_default(),
            revoked: revoked.collect(),
        })
    }
}

/// How long a pass counts: from when to when.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    pub made: Seconds,
    pub until: Seconds,
}

fn user(account: &PublicKey, by: &KeyPair, key: &PublicKey, name: &str, span: Span) -> Value {
    // A pass of a scoped key must claim no right and no limit of its own.
    json!({
        "iat": span.made,
        "exp": span.until,
        "iss": by.public().to_string(),
        "name": name,
        "sub": key.to_string(),
        "nats": {
            "pub": {},
            "sub": {},
            "issuer_account": account.to_string(),
            "type": "user",
            "version": 2,
        },
    })
}

/// A pass for the machine that holds `key`.
pub fn machine(
    by: &KeyPair,
    account: &PublicKey,
    owner: &Owner,
    key: &PublicKey,
    span: Span,
) -> String {
    let place = MachinePlace::of(owner.clone(), key);
    // The key that signs tells it from a pass into the lobby.
    lobby(by, account, owner, place.machine.as_str(), key, span)
}

/// A pass into the lobby, for whoever holds `key`.
pub fn lobby(
    by: &KeyPair,
    account: &PublicKey,
    owner: &Owner,
    ticket: &str,
    key: &PublicKey,
    span: Span,
) -> String {
    let mut claims = user(account, by, key, ticket, span);
    claims["nats"]["tags"] = json!([format!("owner:{owner}")]);
    signed(claims, by)
}

/// A pass for a gateway.
pub fn gateway(by: &KeyPair, account: &PublicKey, key: &PublicKey, span: Span) -> String {
    signed(user(account, by, key, "gateway", span), by)
}

/// A pass for whoever may do anything in an account that signs for itself.
pub fn system(by: &KeyPair, key: &PublicKey, span: Span) -> String {
    let account = by.public();
    let mut claims = user(&account, by, key, "system", span);
    for limit in ["subs", "data", "payload"] {
        claims["nats"][limit] = json!(-1);
    }
    if let Some(nats) = claims["nats"].as_object_mut() {
        nats.remove("issuer_account");
    }
    signed(claims, by)
}

/// The word of the operator for itself and for its system account.
pub fn operator(by: &KeyPair, system: &PublicKey, made: Seconds) -> String {
    let claims = json!({
        "iat": made,
        "name": "nod",
        "sub": by.public().to_string(),
        "nats": {"system_account": system.to_string(), "type": "operator", "version": 2},
    });
    signed(claims, by)
}

fn limits() -> Value {
    json!({
        "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1,
        "wildcards": true, "conn": -1, "leaf": 0,
    })
}

fn account_claims(name: &str, key: &PublicKey, made: Seconds) -> Value {
    json!({
        "iat": made,
        "name": name,
        "sub": key.to_string(),
        "nats": {
            "limits": limits(),
            "default_permissions": {"pub": {}, "sub": {}},
            "type": "account",
            "version": 2,
        },
    })
}

/// The operator's word for its system account.
pub fn system_account(by: &KeyPair, key: &PublicKey, made: Seconds) -> String {
    signed(account_claims("SYS", key, made), by)
}

/// The operator's word for the team's account: who signs what, and whose
/// passes no longer count from when on.
pub fn account(
    by: &KeyPair,
    account: &Account,
    revoked: &[(PublicKey, Seconds)],
    made: Seconds,
) -> String {
    let mut claims = account_claims("nod", &account.key, made);
    claims["nats"]["signing_keys"] = json!([
        scope(MACHINE, &account.machines),
        scope(GATEWAY, &account.gateways),
        scope(LOBBY, &account.lobby),
    ]);
    if !revoked.is_empty() {
        let revoked = revoked
            .iter()
            .map(|(key, from)| (key.to_string(), json!(from)));
        claims["nats"]["revocations"] = Value::Object(revoked.collect());
    }
    signed(claims, by)
}

fn scope(rights: Rights, key: &PublicKey) -> Value {
    let mut template = json!({
        "pub": {"allow": rights.publish},
        "sub": {"allow": rights.subscribe},
        "subs": -1, "data": -1, "payload": -1,
    });
    if rights.answers {
        let (most, within) = ANSWERS;
        let nanos = i64::try_from(within.as_nanos()).unwrap_or(i64::MAX);
        template["resp"] = json!({"max": most, "ttl": nanos});
    }
    json!({
        "kind": "user_scope",
        "key": key.to_string(),
        "role": rights.role,
        "template": template,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Span = Span {
        made: 100,
        until: 200,
    };

    fn pair(kind: KeyKind, n: u8) -> KeyPair {
        KeyPair::of(kind, [n; 32])
    }

    fn owner(text: &str) -> Owner {
        Owner::parse(text).unwrap()
    }

    fn pass_of(signer: &KeyPair) -> String {
        let (account, key) = (pair(KeyKind::Account, 1), pair(KeyKind::User, 9));
        machine(
            signer,
            &account.public(),
            &owner("ou_a"),
            &key.public(),
            SPAN,
        )
    }

    #[test]
    fn a_pass_counts_for_its_time_under_its_signer() {
        let signer = pair(KeyKind::Account, 2);
        let text = pass_of(&signer);
        assert!(text.len() < 800, "{}", text.len());
        let pass = Pass::check(&text, &signer.public(), 199).unwrap();
        assert_eq!(pass.place.owner, owner("ou_a"));
        assert_eq!(pass.key, pair(KeyKind::User, 9).public());
        assert_eq!(Pass::read(&text), Ok(pass));
        let late = Pass::check(&text, &signer.public(), 200);
        assert_eq!(late, Err(BadPass::Expired));
        let other = pair(KeyKind::Account, 3).public();
        assert_eq!(Pass::check(&text, &other, 150), Err(BadPass::Forged));
    }

    #[test]
    fn a_pass_that_was_altered_is_forged() {
        let signer = pair(KeyKind::Account, 2);
        let text = pass_of(&signer);
        let mut parts: Vec<String> = text.split('.').map(str::to_owned).collect();
        let mut claims = claims(&text, MAX_PASS).unwrap();
        claims["nats"]["tags"] = json!(["owner:ou_b"]);
        parts[1] = URL_SAFE_NO_PAD.encode(claims.to_string());
        let altered = parts.join(".");
        assert!(Pass::read(&altered).is_ok());
        let checked = Pass::check(&altered, &signer.public(), 150);
        assert_eq!(checked, Err(BadPass::Forged));
    }

    #[test]
    fn a_signed_pass_with_a_name_that_is_not_its_keys_is_none() {
        let signer = pair(KeyKind::Account, 2);
        let good = claims(&pass_of(&signer), MAX_PASS).unwrap();
        let with = |field: &str, value: Value| {
            let mut claims = good.clone();
            *claims.pointer_mut(field).unwrap() = value;
            Pass::check(&signed(claims, &signer), &signer.public(), 150)
        };
        assert!(with("/iat", json!(1)).is_ok());
        let key = json!(pair(KeyKind::User, 8).public().to_string());
        for (field, value) in [
            ("/name", json!("*")),
            ("/name", json!("aaaaaaaaaaaaaaaaaaaaaaaa")),
            ("/sub", key),
            ("/sub", json!("*")),
            ("/exp", json!(0)),
            ("/exp", Value::Null),
            ("/nats/tags", json!(["owner:*"])),
            ("/nats/tags", json!(["owner:ou_a", "owner:ou_b"])),
            ("/nats/tags", json!([])),
            ("/nats/tags", json!(["role:admin"])),
        ] {
            let checked = with(field, value.clone());
            assert_eq!(checked, Err(BadPass::NoPass), "{field} {value}");
        }
    }

    #[test]
    fn what_the_operator_took_back_reads_back_from_his_word_alone() {
        let (operator, other) = (pair(KeyKind::Operator, 4), pair(KeyKind::Operator, 5));
        let key = |n| pair(KeyKind::Account, n).public();
        let team = Account {
            key: key(1),
            machines: key(2),
            gateways: key(3),
            lobby: key(4),
        };
        let revoked = vec![(pair(KeyKind::User, 9).public(), 150)];
        let text = account(&operator, &team, &revoked, 200);
        let word = AccountWord::check(&text, &operator.public(), &team.key);
        assert_eq!(word, Ok(AccountWord { made: 200, revoked }));
        let forged = AccountWord::check(&text, &other.public(), &team.key);
        assert_eq!(forged, Err(BadPass::Forged));
        let foreign = AccountWord::check(&text, &operator.public(), &key(7));
        assert_eq!(foreign, Err(BadPass::NoPass));
        let pass = pass_of(&pair(KeyKind::Account, 2));
        assert!(AccountWord::check(&pass, &operator.public(), &team.key).is_err());
    }

    #[test]
    fn nonsense_is_no_pass() {
        let long = "a".repeat(MAX_PASS + 1);
        for text in ["", ".", "..", "a.b.c", "a.e30.c", "a.e30.c.d", &long] {
            assert_eq!(Pass::read(text), Err(BadPass::NoPass), "{text:.20}");
        }
    }
}
