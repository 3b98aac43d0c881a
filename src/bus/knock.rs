//! A machine in the lobby: asks to be let in, again and again while its line
//! counts, and comes back with what the gateway gives it once its owner has
//! tapped.

use std::time::Duration;

use serde::Deserialize;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::letter::{self, AnswerHead, CallHead, Letter};
use super::line::{self, BusAnswer, BusHeard, BusLine, BusLineState, BusUser, LineTurns};
use super::lobby::{Invited, JoinWish, LobbyReply, No};
use super::membership::Grant;
use super::nkey::{KeyPair, PublicKey};
use super::subjects::{lobby, lobby_inbox};
use crate::clock::{self, Clock};
use crate::feishu::outbound::Outbound;
use crate::text::Text;

/// A line counts no longer than this.
const LONGEST: Duration = Duration::from_secs(600);
const CONNECT_WITHIN: Duration = Duration::from_secs(15);
const ANSWER_WITHIN: Duration = Duration::from_secs(3);
const ASK_EVERY: Duration = Duration::from_secs(2);
/// Gateways may be away for a moment; for longer, somebody should know.
const SILENT_AFTER: Duration = Duration::from_secs(30);

/// Why this machine is no member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotJoined {
    /// Nobody tapped while the line counted.
    Over,
    NoBus(Text),
    /// No gateway answers.
    Silent,
    Refused(No),
}

/// What a gateway sends unasked.
#[derive(Deserialize)]
struct Delivered {
    grant: Grant,
}

/// Asks until there is an answer or the line's time is over. `asked` is called
/// once, when the owner has a card.
pub async fn knock(
    invited: Invited,
    key: &KeyPair,
    (name, user): (&str, &str),
    outbound: Outbound,
    asked: impl FnOnce(),
) -> Result<Grant, NotJoined> {
    let Invited {
        url,
        lobby: pass,
        pass: pass_text,
        key: lobby_key,
        push,
    } = invited;
    let left = pass.until.saturating_sub(clock::wall_ms() / 1_000);
    // This machine's clock may be wrong: the bus knows whether the line counts.
    let left = u64::try_from(left).ok().filter(|left| *left > 0);
    let counts = left.map_or(LONGEST, Duration::from_secs).min(LONGEST);
    let over_at = Instant::now() + counts;
    let (asks, hears) = lobby(&pass.owner, &pass.ticket);
    let line = BusLine::new(&lobby_inbox(&pass.ticket));
    let lobby_key = std::sync::Arc::new(lobby_key);
    let member = BusUser {
        url,
        key: std::sync::Arc::clone(&lobby_key),
        pass: watch::channel(pass_text.clone()).1,
        hears: vec![hears.clone()],
        turns: LineTurns::none(),
    };
    let (sender, mut delivered) = mpsc::channel(4);
    let handler = move |message: BusHeard| {
        let sender = sender.clone();
        async move {
            // Whoever asked has one already, or asks again.
            let _ = sender.try_send(message.body);
        }
    };
    let stop = CancellationToken::new();
    let _stopped = stop.clone().drop_guard();
    tokio::spawn(line::run(
        line.clone(),
        member,
        outbound,
        Clock::start(),
        handler,
        stop,
    ));
    connected(&line, left.is_none()).await?;
    let wish = JoinWish::of(key, &pass.ticket, name, user, crate::version::BUILD);
    let body = serde_json::to_vec(&wish).unwrap_or_default();
    let (mut asked, mut answered_at) = (Some(asked), Instant::now());
    loop {
        let head = CallHead {
            at: clock::wall_ms(),
            once: format!("{:032x}", rand::random::<u128>()),
            pass: pass_text.clone(),
        };
        let letter = letter::sign(&lobby_key, &asks, &head, &body);
        if let BusAnswer::Answer(bytes) = line.ask(&asks, letter, ANSWER_WITHIN).await
            && let Some(reply) = opened(&push, &asks, &head.once, &bytes)
        {
            answered_at = Instant::now();
            match reply {
                LobbyReply::Granted(grant) => return Ok(grant),
                // The owner could not be asked just now.
                LobbyReply::Refused(No::Unasked) => {}
                LobbyReply::Refused(no) => return Err(NotJoined::Refused(no)),
                LobbyReply::Asked => {
                    if let Some(asked) = asked.take() {
                        asked();
                    }
                }
            }
        }
        if answered_at.elapsed() > SILENT_AFTER {
            return Err(NotJoined::Silent);
        }
        tokio::select! {
            () = tokio::time::sleep_until(over_at) => return Err(NotJoined::Over),
            () = tokio::time::sleep(ASK_EVERY) => {}
            Some(bytes) = delivered.recv() => {
                let read = || {
                    let letter = Letter::read(&bytes)?;
                    let body = by_gateway(&push, &letter, &hears)?;
                    serde_json::from_slice::<Delivered>(body).ok()
                };
                if let Some(Delivered { grant }) = read() {
                    return Ok(grant);
                }
            }
        }
    }
}

async fn connected(line: &BusLine, seems_over: bool) -> Result<(), NotJoined> {
    match tokio::time::timeout(CONNECT_WITHIN, line.settled()).await {
        Ok(waiting) if seems_over && waiting.refuses_pass() => Err(NotJoined::Over),
        Ok(BusLineState::Waiting { why, .. }) => Err(NotJoined::NoBus(why)),
        Ok(BusLineState::Up { .. }) => Ok(()),
        Ok(BusLineState::Dialing) | Err(_) => Err(NotJoined::Silent),
    }
}

fn by_gateway<'a>(push: &[PublicKey], letter: &Letter<'a>, about: &str) -> Option<&'a [u8]> {
    push.iter().find_map(|key| letter.open(key, about))
}

fn opened(push: &[PublicKey], about: &str, once: &str, bytes: &[u8]) -> Option<LobbyReply> {
    let letter = Letter::read(bytes)?;
    let head: AnswerHead = letter.claims()?;
    let body = (head.re == once).then(|| by_gateway(push, &letter, about))??;
    serde_json::from_slice(body).ok()
}
