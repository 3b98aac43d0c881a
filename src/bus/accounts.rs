//! The operator's word for the team's account, as the server keeps it: read,
//! and given anew with more passes that no longer count. The server cuts off
//! whoever holds one, and keeps the word over a restart.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::keys::{Keys, Own};
use super::line::{self, BusAnswer, BusLine, BusLineState, BusUser, LineTurns};
use super::nkey::{KeyKind, KeyPair, PublicKey};
use super::pass::{self, AccountWord, LONGEST, Revoked, Seconds, Span};
use super::subjects::SYSTEM_INBOX;
use super::url::BusUrl;
use crate::clock::{self, Clock};
use crate::feishu::outbound::Outbound;

const UPDATE: &str = "$SYS.REQ.CLAIMS.UPDATE";
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// How long the pass counts that this is done with.
const OWN_PASS: Seconds = 60;
/// Somebody else may give another word meanwhile.
const TRIES: usize = 3;
/// More machines than this are not taken back at a time.
pub const MAX_REVOKED: usize = 4_096;

/// Why passes still count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotRevoked {
    #[error("the keys hold no operator, so the account is somebody else's to change")]
    NoOperator,
    #[error("the bus can't be reached, or does not let this gateway speak to itself")]
    Unreached,
    #[error("the bus did not answer in time")]
    Silent,
    #[error("the bus refused: {0}")]
    Refused(String),
    #[error("the bus holds a word for the account that its operator did not give")]
    Foreign,
    #[error("too many machines are forgotten already")]
    Full,
}

/// Takes back the passes of `more`, besides those that were before, and gives
/// all that no longer count. With none to take back it only reads.
pub async fn revoke(
    keys: &Keys,
    url: &BusUrl,
    outbound: &Outbound,
    more: &[(PublicKey, Seconds)],
) -> Result<Revoked, NotRevoked> {
    let own = keys.own.as_ref().ok_or(NotRevoked::NoOperator)?;
    let stop = CancellationToken::new();
    let _stopped = stop.clone().drop_guard();
    let line = speak(own, url, outbound, stop).await?;
    for _ in 0..TRIES {
        let word = read(&line, own, &keys.account).await?;
        let now = seconds();
        let (made, known) = word.map_or((0, Vec::new()), |word| (word.made, word.revoked));
        let Some(all) = joined(&known, more, now)? else {
            return Ok(known);
        };
        // A server keeps the word that was given last.
        let made = now.max(made + 1);
        let text = keys.account_word(&all, made);
        let text = text.ok_or(NotRevoked::NoOperator)?;
        write(&line, text).await?;
        info!(passes = all.len(), "the account was given a new word");
    }
    Err(NotRevoked::Silent)
}

fn seconds() -> Seconds {
    // The server goes by this clock, as does whoever makes passes.
    clock::wall_ms() / 1_000
}

/// What is known and what is more, without what has run out by itself; `None`
/// where there is nothing new.
fn joined(
    known: &[(PublicKey, Seconds)],
    more: &[(PublicKey, Seconds)],
    now: Seconds,
) -> Result<Option<Revoked>, NotRevoked> {
    let mut all: Revoked = known.to_vec();
    let mut new = false;
    for (key, from) in more {
        match all.iter_mut().find(|(known, _)| known == key) {
            Some((_, known)) if *known >= *from => {}
            Some((_, known)) => (*known, new) = (*from, true),
            None => {
                all.push((*key, *from));
                new = true;
            }
        }
    }
    if !new {
        return Ok(None);
    }
    all.retain(|(_, from)| from.saturating_add(LONGEST) > now);
    if all.len() > MAX_REVOKED {
        return Err(NotRevoked::Full);
    }
    Ok(Some(all))
}

async fn speak(
    own: &Own,
    url: &BusUrl,
    outbound: &Outbound,
    stop: CancellationToken,
) -> Result<BusLine, NotRevoked> {
    let key = KeyPair::of(KeyKind::User, rand::random());
    let made = seconds();
    let span = Span {
        made,
        until: made + OWN_PASS,
    };
    let pass = pass::system(&own.system, &key.public(), span);
    let line = BusLine::new(SYSTEM_INBOX);
    let member = BusUser {
        url: url.clone(),
        key: key.into(),
        pass: watch::channel(pass).1,
        hears: Vec::new(),
        turns: LineTurns::none(),
    };
    let nobody = |_| std::future::ready(());
    let outbound = outbound.clone();
    tokio::spawn(line::run(
        line.clone(),
        member,
        outbound,
        Clock::start(),
        nobody,
        stop,
    ));
    match tokio::time::timeout(CONNECT_WITHIN, line.settled()).await {
        Ok(BusLineState::Up { .. }) => Ok(line),
        Ok(_) | Err(_) => Err(NotRevoked::Unreached),
    }
}

async fn read(
    line: &BusLine,
    own: &Own,
    account: &PublicKey,
) -> Result<Option<AccountWord>, NotRevoked> {
    let subject = format!("$SYS.REQ.ACCOUNT.{account}.CLAIMS.LOOKUP");
    let text = answer(line.ask(&subject, Vec::new(), ANSWER_WITHIN).await)?;
    if text.is_empty() {
        return Ok(None);
    }
    let word = AccountWord::check(&text, &own.operator.public(), account);
    word.map(Some).map_err(|_| NotRevoked::Foreign)
}

async fn write(line: &BusLine, text: String) -> Result<(), NotRevoked> {
    let told = answer(line.ask(UPDATE, text.into_bytes(), ANSWER_WITHIN).await)?;
    let told: Value = serde_json::from_str(&told).unwrap_or_default();
    if told["data"]["code"] == 200 {
        return Ok(());
    }
    let why = told["error"]["description"].as_str().unwrap_or("no reason");
    Err(NotRevoked::Refused(why.to_owned()))
}

fn answer(answered: BusAnswer) -> Result<String, NotRevoked> {
    match answered {
        BusAnswer::Answer(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        BusAnswer::Nobody | BusAnswer::Down => Err(NotRevoked::Unreached),
        BusAnswer::Unknown => Err(NotRevoked::Silent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u8) -> PublicKey {
        KeyPair::of(KeyKind::User, [n; 32]).public()
    }

    #[test]
    fn what_is_taken_back_stays_so_until_no_pass_could_count_any_more() {
        let known = [(key(1), 10), (key(2), 20)];
        assert_eq!(joined(&known, &[], 30), Ok(None));
        assert_eq!(joined(&known, &[(key(1), 10)], 30), Ok(None));
        assert_eq!(joined(&known, &[(key(1), 5)], 30), Ok(None));
        let all = joined(&known, &[(key(1), 30), (key(3), 30)], 30).unwrap();
        assert_eq!(all, Some(vec![(key(1), 30), (key(2), 20), (key(3), 30)]));
        let late = 20 + LONGEST;
        let all = joined(&known, &[(key(3), late)], late).unwrap();
        assert_eq!(all, Some(vec![(key(3), late)]));
    }

    #[test]
    fn the_word_never_outgrows_what_a_bus_carries() {
        let many = (0..=MAX_REVOKED).map(|n| {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&n.to_le_bytes());
            (KeyPair::of(KeyKind::User, bytes).public(), 10)
        });
        let many: Revoked = many.collect();
        assert_eq!(joined(&[], &many, 10), Err(NotRevoked::Full));
        let keys = Keys::make(|| [7; 32]);
        let word = keys.account_word(&many[1..], 10).unwrap();
        assert!(word.len() < 900 * 1024, "{}", word.len());
        let operator = keys.own.as_ref().unwrap().operator.public();
        let read = AccountWord::check(&word, &operator, &keys.account).unwrap();
        assert_eq!(read.revoked.len(), MAX_REVOKED);
    }
}
