//! Carries a click to the machine its request lives on and brings back what
//! became of it, within what Feishu leaves. Follows no redirect, goes by no
//! proxy, and never calls "failed" what may have been done.

use std::collections::HashSet;
use std::time::Duration;
use tokio::time::Instant;
use tracing::debug;

use super::call::{CallAnswer, MAX_BODY, PATH, PeerCall, Stamp, why_refused};
use super::route::{CallbackUrl, may_dial};
use super::seal::Sealer;
use crate::approvals::outcome::{NotTaken, PeerSilence};
use crate::clock::Millis;
use crate::feishu::outbound::{Outbound, OutboundError, body_within};
use crate::feishu::secret::Secret;

pub const CONNECT_WITHIN: Duration = Duration::from_millis(500);
/// What a forwarded click may take in all, of Feishu's three seconds.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Shorter than the other side keeps an idle connection, so that no call is
/// written into one that is just being closed.
const IDLE: Duration = Duration::from_secs(1);
const BUSY_PAUSE: Duration = Duration::from_millis(60);

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Posted {
    Answered(CallAnswer),
    /// Reached, and not carried out.
    Refused(NotTaken),
    /// Reached, and answered with this HTTP status instead of a decision.
    Status(u16),
    /// Not reached: nothing was written.
    Unreachable,
    /// Written, and no answer that can be believed came back.
    Unknown(PeerSilence),
}

/// A header that a service which is not nod may ask for, as claude-notify does.
const TOKEN_HEADER: &str = "x-auth-token";

pub struct Forwarder {
    http: reqwest::Client,
    sealer: Option<Sealer>,
    tokens: Vec<PeerToken>,
}

impl Forwarder {
    /// `peers` are the services the owner listed, which may be on loopback.
    pub fn new(
        outbound: &Outbound,
        peers: &[CallbackUrl],
        tokens: &[PeerToken],
        sealer: Option<Sealer>,
    ) -> Result<Self, OutboundError> {
        let listed: HashSet<String> = peers
            .iter()
            .filter_map(|peer| peer.name().map(str::to_owned))
            .collect();
        let admit = move |name: &str, ip| may_dial(ip, listed.contains(name));
        Ok(Self {
            http: outbound.direct_client(admit, CONNECT_WITHIN, IDLE)?,
            sealer,
            tokens: tokens.to_vec(),
        })
    }

    /// Posts a call to one of ours: both sides seal.
    pub async fn post(
        &self,
        to: &CallbackUrl,
        call: &PeerCall,
        now: impl Fn() -> Millis,
        within: Duration,
    ) -> Posted {
        match &self.sealer {
            Some(sealer) => self.repeat(to, call, Some(sealer), now, within).await,
            None => Posted::Refused(NotTaken::Secret),
        }
    }

    /// Posts a call to a service that knows no seal.
    pub async fn post_plain(
        &self,
        to: &CallbackUrl,
        call: &PeerCall,
        now: impl Fn() -> Millis,
        within: Duration,
    ) -> Posted {
        self.repeat(to, call, None, now, within).await
    }

    /// A busy machine is asked again while there is time, because it has done
    /// nothing yet.
    async fn repeat(
        &self,
        to: &CallbackUrl,
        call: &PeerCall,
        sealer: Option<&Sealer>,
        now: impl Fn() -> Millis,
        within: Duration,
    ) -> Posted {
        let until = Instant::now() + within;
        loop {
            let stamp = Stamp {
                sent_at: now(),
                nonce: format!("{:032x}", rand::random::<u128>()),
            };
            match self.once(to, call, sealer, &stamp, until).await {
                Once::Busy if Instant::now() + BUSY_PAUSE < until => {
                    tokio::time::sleep(BUSY_PAUSE).await;
                }
                Once::Busy => return Posted::Status(429),
                Once::Done(outcome) => return outcome,
            }
        }
    }

    async fn once(
        &self,
        to: &CallbackUrl,
        call: &PeerCall,
        sealer: Option<&Sealer>,
        stamp: &Stamp,
        until: Instant,
    ) -> Once {
        let body = call.to_json(sealer.map(|sealer| (sealer, stamp)));
        let left = until.saturating_duration_since(Instant::now());
        let mut post = self
            .http
            .post(format!("{to}{PATH}"))
            .timeout(left)
            .header("content-type", "application/json");
        // One of ours proves itself by its seal.
        if let (None, Some(token)) = (sealer, self.token(to)) {
            post = post.header(TOKEN_HEADER, token);
        }
        let sent = post.body(body.to_string()).send().await;
        let mut response = match sent {
            Ok(response) => response,
            Err(why) => {
                let untouched = why.is_connect() || why.is_builder();
                let slow = why.is_timeout();
                debug!(untouched, "a call was not answered: {}", why.without_url());
                return Once::Done(match (untouched, slow) {
                    (true, _) => Posted::Unreachable,
                    (false, true) => Posted::Unknown(PeerSilence::Slow),
                    (false, false) => Posted::Unknown(PeerSilence::Broken),
                });
            }
        };
        let status = response.status().as_u16();
        let body = body_within(&mut response, MAX_BODY as u64).await;
        let body = body.ok().flatten();
        let answer = body.as_deref().and_then(|body| match sealer {
            Some(sealer) => CallAnswer::read_sealed(body, sealer, stamp),
            None => CallAnswer::read_plain(body),
        });
        Once::Done(match (status, sealer) {
            (200, _) => answer.map_or(Posted::Unknown(PeerSilence::Broken), Posted::Answered),
            (401 | 403, Some(_)) => Posted::Refused(why_refused(&body.unwrap_or_default())),
            (401 | 403, None) => Posted::Refused(NotTaken::Token),
            (429, _) => return Once::Busy,
            // A reason in the protocol's own words is the best there is.
            (400..=499, None) => match answer.filter(|it| !it.upshot.is_success()) {
                Some(answer) if !answer.message.trim().is_empty() => Posted::Answered(answer),
                _ => Posted::Status(status),
            },
            // Somebody else's door, or one that sends us elsewhere.
            (300..=499, _) => Posted::Status(status),
            _ => Posted::Unknown(PeerSilence::Status(status)),
        })
    }

    fn token(&self, to: &CallbackUrl) -> Option<reqwest::header::HeaderValue> {
        let token = self.tokens.iter().find(|token| token.peer == *to)?;
        let mut value = reqwest::header::HeaderValue::from_str(token.token.expose()).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

/// What a service that is not nod wants in each call's `X-Auth-Token`.
#[derive(Debug, Clone)]
pub struct PeerToken {
    pub peer: CallbackUrl,
    pub token: Secret,
}

enum Once {
    Busy,
    Done(Posted),
}

#[cfg(test)]
mod tests;
