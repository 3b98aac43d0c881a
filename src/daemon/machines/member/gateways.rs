//! Which gateways there are and whether Feishu is within their reach: by their
//! beacons, and by asking when those stop. Shows the bus as one more long
//! connection, up while a tap could come back over it.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::Member;
use crate::bounded::Bounded;
use crate::bus::letter::{self, AnswerHead, CallHead, Letter, PushHead};
use crate::bus::line::{BusAnswer, BusLineState};
use crate::bus::subjects::FromMachine;
use crate::clock::Millis;
use crate::feishu::connection::LinkView;
use crate::feishu::link::Phase;
use crate::text::Text;

/// A gateway that was not heard for so long is gone.
const GONE_AFTER: Millis = 12_000;
const HELLO_WITHIN: Duration = Duration::from_secs(2);
/// How often a gateway is asked for the time, and how often while there is none.
const HELLO_EVERY: Duration = Duration::from_secs(60);
const HELLO_AGAIN: Duration = Duration::from_secs(2);
/// The same while one is there and has not told the time yet.
const HELLO_SOON: Duration = Duration::from_millis(200);
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often this machine says that it is there.
const HERE_EVERY: Duration = Duration::from_secs(60);
const MAX_GATEWAYS: usize = 64;

/// What the gateways told last.
pub(crate) struct Gateways {
    known: Mutex<KnownGateways>,
    changed: Notify,
}

struct KnownGateways {
    by_name: Bounded<String, GatewayLease>,
    /// Until when somebody's word for Feishu counts, and for a gateway at all.
    feishu_until: Millis,
    gateway_until: Millis,
    /// How long the last answer took.
    answered_in: Option<Duration>,
}

#[derive(Debug, Default, Clone, Copy)]
struct GatewayLease {
    until: Millis,
    feishu: bool,
}

impl Default for Gateways {
    fn default() -> Self {
        Self {
            known: Mutex::new(KnownGateways {
                by_name: Bounded::new(MAX_GATEWAYS),
                feishu_until: Millis::MIN,
                gateway_until: Millis::MIN,
                answered_in: None,
            }),
            changed: Notify::new(),
        }
    }
}

#[derive(Deserialize)]
struct Beacon {
    feishu: bool,
}

#[derive(Deserialize)]
struct Hello {
    time: Millis,
    feishu: bool,
    #[serde(default)]
    gateway: String,
    #[serde(default)]
    pass: Option<String>,
}

impl Gateways {
    fn known(&self) -> MutexGuard<'_, KnownGateways> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A gateway speaks; one that is repeated later than it counts says nothing.
    pub(crate) fn beacon(&self, head: &PushHead, body: &[u8], now: Millis) {
        let Ok(beacon) = serde_json::from_slice::<Beacon>(body) else {
            return;
        };
        let until = head.until.min(now + GONE_AFTER);
        let mut known = self.known();
        let is_stale = |told: &GatewayLease| told.until <= now;
        let Some(told) = known.by_name.live(head.once.clone(), is_stale) else {
            return;
        };
        if until <= now || head.until <= told.until {
            return;
        }
        (told.until, told.feishu) = (head.until, beacon.feishu);
        known.heard(until, beacon.feishu);
        drop(known);
        self.changed.notify_one();
    }

    /// A gateway has answered.
    fn hello(&self, name: String, feishu: bool, now: Millis) {
        let until = now + GONE_AFTER;
        let mut known = self.known();
        if let Some(told) = known.by_name.live(name, |told| told.until <= now) {
            (told.until, told.feishu) = (told.until.max(until), feishu);
        }
        known.heard(until, feishu);
    }

    /// How long a gateway took to answer.
    pub(crate) fn answered_in(&self) -> Option<Duration> {
        self.known().answered_in
    }

    /// How many there are, and how many of them reach Feishu.
    pub(crate) fn count(&self, now: Millis) -> (usize, usize) {
        let known = self.known();
        let all = known.by_name.count(|told| told.until > now);
        let up = known.by_name.count(|told| told.until > now && told.feishu);
        (all, up)
    }

    /// Why no tap could come, if so.
    fn missing(&self, now: Millis) -> Option<Text> {
        let known = self.known();
        if known.gateway_until <= now {
            Some(NO_GATEWAY)
        } else if known.feishu_until <= now {
            Some(NO_FEISHU)
        } else {
            None
        }
    }
}

impl KnownGateways {
    fn heard(&mut self, until: Millis, feishu: bool) {
        self.gateway_until = self.gateway_until.max(until);
        if feishu {
            self.feishu_until = self.feishu_until.max(until);
        }
    }
}

const NO_GATEWAY: Text = Text::new("团队的网关没有回应", "no gateway of the team answers");
const NO_FEISHU: Text = Text::new(
    "团队的网关未连接飞书",
    "the team's gateways are not connected to Feishu",
);

/// Asks for the time while the line is up, and shows how it stands.
pub(crate) async fn watch(
    member: &Member,
    view: &watch::Sender<LinkView>,
    stop: &CancellationToken,
) {
    let mut line = member.line.state();
    let mut asked: Option<(u64, Instant)> = None;
    let mut told: Option<(u64, Instant)> = None;
    loop {
        let state = line.borrow_and_update().clone();
        if let BusLineState::Up { connects, .. } = state {
            let missing = member.gateways.missing(member.their_clock.now()).is_some();
            let timeless = !member.knows_time.load(Ordering::Relaxed);
            let due = asked.is_none_or(|(connection, at)| {
                let every = match (missing, timeless) {
                    (true, _) => HELLO_AGAIN,
                    (false, true) => HELLO_SOON,
                    (false, false) => HELLO_EVERY,
                };
                connection != connects || at.elapsed() >= every
            });
            if due {
                asked = Some((connects, Instant::now()));
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = hello(member, missing || timeless) => {}
                }
            }
            let due = told.is_none_or(|(connection, at)| {
                connection != connects || at.elapsed() >= HERE_EVERY
            });
            // Without the time, nobody would believe it.
            if due && member.knows_time.load(Ordering::Relaxed) {
                told = Some((connects, Instant::now()));
                here(member).await;
            }
        }
        if state.refuses_pass() {
            member.reread().await;
        }
        show(member, &state, view);
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = member.gateways.changed.notified() => {}
            changed = line.changed() => if changed.is_err() { return },
        }
    }
}

/// Says to all gateways that this machine is there.
async fn here(member: &Member) {
    let subject = member.place.says(FromMachine::Here);
    let letter = letter::sign(&member.key, &subject, &head(member), &member.here());
    member.line.tell(&subject, letter).await;
}

/// The head of whatever this machine says or asks.
pub(super) fn head(member: &Member) -> CallHead {
    CallHead {
        at: member.their_clock.now(),
        once: format!("{:032x}", rand::random::<u128>()),
        pass: member.pass(),
    }
}

/// Asks a gateway what time it is. A line on which nobody says anything, not
/// even that nobody is there, is dead.
async fn hello(member: &Member, missing: bool) {
    let subject = member.place.says(FromMachine::Hello);
    let head = head(member);
    let letter = letter::sign(&member.key, &subject, &head, b"{}");
    let asked = Instant::now();
    match member.line.ask(&subject, letter, HELLO_WITHIN).await {
        BusAnswer::Answer(bytes) => {
            let took = asked.elapsed();
            let read = || {
                let letter = Letter::read(&bytes)?;
                let answer: AnswerHead = letter.claims()?;
                let own = answer.re == head.once;
                let body = own.then(|| member.by_gateway(&letter, &subject))??;
                serde_json::from_slice::<Hello>(body).ok()
            };
            let Some(told) = read() else {
                warn!("refused an answer that no gateway of this team signed");
                return;
            };
            member.their_clock.set(told.time);
            member.knows_time.store(true, Ordering::Relaxed);
            let now = member.their_clock.now();
            member.gateways.hello(told.gateway, told.feishu, now);
            member.gateways.known().answered_in = Some(took);
            if let Some(pass) = told.pass {
                member.renew(pass).await;
            }
        }
        BusAnswer::Unknown if missing => member.line.redial(),
        BusAnswer::Nobody | BusAnswer::Down | BusAnswer::Unknown => {}
    }
}

fn show(member: &Member, state: &BusLineState, view: &watch::Sender<LinkView>) {
    let soon = Instant::now() + LOOK_EVERY;
    let phase = match state {
        BusLineState::Dialing => Phase::Dialing { why: None },
        BusLineState::Waiting {
            until,
            why,
            refused,
        } => {
            let (until, why) = (*until, why.clone());
            if *refused {
                Phase::Degraded { until, why }
            } else {
                Phase::Waiting { until, why }
            }
        }
        BusLineState::Up { since, .. } => {
            // Without the time every tap would be late.
            let timeless = (!member.knows_time.load(Ordering::Relaxed)).then_some(NO_GATEWAY);
            let missing = member.gateways.missing(member.their_clock.now());
            match missing.or(timeless) {
                None => Phase::Up { since: *since },
                Some(why) => Phase::Waiting { until: soon, why },
            }
        }
    };
    view.send_if_modified(|view| {
        let was_up = matches!(view.phase, Phase::Up { .. });
        let is_up = matches!(phase, Phase::Up { .. });
        let same = match (&view.phase, &phase) {
            (Phase::Waiting { why: one, .. }, Phase::Waiting { why: other, .. }) => one == other,
            (one, other) => one == other,
        };
        if is_up && (!was_up || !same) {
            view.counts.connects += 1;
        }
        view.phase = phase;
        !same
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beacon(name: &str, until: Millis) -> PushHead {
        PushHead {
            until,
            once: name.to_owned(),
            ticket: None,
        }
    }

    #[test]
    fn a_gateway_counts_while_its_beacons_come_and_no_longer() {
        let gateways = Gateways::default();
        assert_eq!(gateways.missing(0), Some(NO_GATEWAY));
        gateways.beacon(&beacon("a", 12_000), br#"{"feishu":false}"#, 0);
        assert_eq!(gateways.missing(1), Some(NO_FEISHU));
        gateways.beacon(&beacon("b", 13_000), br#"{"feishu":true}"#, 1_000);
        assert_eq!(gateways.count(1_001), (2, 1));
        assert_eq!(gateways.missing(12_999), None);
        assert_eq!(gateways.count(12_999), (1, 1));
        gateways.hello("b".to_owned(), true, 12_999);
        gateways.hello("c".to_owned(), false, 12_999);
        assert_eq!(gateways.count(13_000), (2, 1));
        let gateways = Gateways::default();
        gateways.beacon(&beacon("b", 13_000), br#"{"feishu":true}"#, 1_000);
        assert_eq!(gateways.missing(13_000), Some(NO_GATEWAY));
    }

    #[test]
    fn a_beacon_that_a_bus_repeats_or_dates_ahead_keeps_no_gateway_alive() {
        let gateways = Gateways::default();
        let old = beacon("a", 12_000);
        gateways.beacon(&old, br#"{"feishu":true}"#, 0);
        for now in [5_000, 11_999, 12_000, 60_000] {
            gateways.beacon(&old, br#"{"feishu":true}"#, now);
        }
        assert_eq!(gateways.missing(12_000), Some(NO_GATEWAY));
        // A gateway whose clock is wrong does not count for longer.
        gateways.beacon(&beacon("b", 9_000_000), br#"{"feishu":true}"#, 20_000);
        assert_eq!(gateways.missing(20_000 + GONE_AFTER), Some(NO_GATEWAY));
        gateways.beacon(&beacon("c", 90_000), b"nonsense", 60_000);
        assert_eq!(gateways.missing(60_001), Some(NO_GATEWAY));
    }
}
