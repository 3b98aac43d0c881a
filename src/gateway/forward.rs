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
use crate::approvals::outcome::NotTaken;
use crate::clock::Millis;
use crate::feishu::outbound::{Outbound, OutboundError, body_within};

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
    /// Not reached: nothing was written.
    Unreachable,
    /// Written, and no answer that can be believed came back.
    Unknown,
}

pub struct Forwarder {
    http: reqwest::Client,
    sealer: Option<Sealer>,
}

impl Forwarder {
    /// `peers` are the services the owner listed, which may be on loopback.
    pub fn new(
        outbound: &Outbound,
        peers: &[CallbackUrl],
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
                Once::Busy => return Posted::Refused(NotTaken::Secret),
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
        let sent = self
            .http
            .post(format!("{to}{PATH}"))
            .timeout(left)
            .header("content-type", "application/json")
            .body(body.to_string())
            .send()
            .await;
        let mut response = match sent {
            Ok(response) => response,
            Err(why) => {
                let untouched = why.is_connect() || why.is_builder();
                debug!(untouched, "a call was not answered: {}", why.without_url());
                return Once::Done(if untouched {
                    Posted::Unreachable
                } else {
                    Posted::Unknown
                });
            }
        };
        let status = response.status().as_u16();
        let body = body_within(&mut response, MAX_BODY as u64).await;
        let body = body.ok().flatten();
        Once::Done(match status {
            200 => body
                .and_then(|body| match sealer {
                    Some(sealer) => CallAnswer::read_sealed(&body, sealer, stamp),
                    None => CallAnswer::read_plain(&body),
                })
                .map_or(Posted::Unknown, Posted::Answered),
            401 | 403 => Posted::Refused(why_refused(&body.unwrap_or_default())),
            429 => return Once::Busy,
            // Somebody else's door, or one that sends us elsewhere.
            300..=499 => Posted::Unreachable,
            _ => Posted::Unknown,
        })
    }
}

enum Once {
    Busy,
    Done(Posted),
}

#[cfg(test)]
mod tests;
