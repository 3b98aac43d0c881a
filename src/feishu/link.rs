//! The long connection's protocol and nothing else: when to dial, what to send,
//! which push to hand out, when a silent peer is dead. Bytes and time go in,
//! [`Step`]s come out; it never touches a socket or a clock.

mod note;
mod parked;
mod settings;

pub use note::Note;
pub use parked::{ANSWER_WITHIN, Answer, Ticket};
pub use settings::ServerSettings;

use parked::Parked;
use prost::bytes::Bytes;
use std::collections::VecDeque;
use std::time::{Duration, Instant, SystemTime};

use super::backoff;
use super::chunks::{Chunks, Fit};
use super::frame::{self, Frame};
use crate::wording::Text;

/// Both clocks: their difference tells that the machine slept.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    pub mono: Instant,
    pub wall: SystemTime,
}

/// What came from the socket. Pings are answered below us, by the WebSocket.
#[derive(Debug, Clone)]
pub enum Incoming {
    Binary(Bytes),
    Text,
    Ping,
    Pong,
}

/// What the owner of the socket does next, in this order.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Dial,
    Send(Bytes),
    /// A WebSocket ping: the peer must answer it, whatever it thinks of Feishu.
    Ping,
    Deliver(Delivery),
    /// Drop the socket without waiting for a closing handshake.
    HangUp,
    Note(Note),
}

/// A push for the handlers; it is answered through [`Link::answer`].
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    pub ticket: Ticket,
    pub payload: Bytes,
}

/// When to try again after a failed dial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    Soon,
    /// Nothing will change by itself soon: somebody must act.
    Slowly(Duration),
}

/// Where the connection stands, for `status`.
#[derive(Debug, Clone, PartialEq)]
pub enum Phase {
    Dialing {
        why: Option<Text>,
    },
    Up {
        since: Instant,
    },
    Waiting {
        until: Instant,
        why: Text,
    },
    /// Waiting, and only a person can change it.
    Degraded {
        until: Instant,
        why: Text,
    },
}

/// How long a healthy peer may be silent before it is asked, and how long it
/// has to answer. It is asked twice before it counts as dead, so that one lost
/// packet does not cost the connection.
const IDLE: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(5));
const HOT: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(2));
const PROBES: u8 = 2;
/// So long after the last waiting request a dead peer is still noticed as soon:
/// a tap it swallowed may undo the correction of that request's card.
const COOLS_AFTER: Duration = Duration::from_secs(15);
/// The ticks that compare the clocks.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// A wall clock that ran ahead by this much means sleep, not drift.
const SLEPT: Duration = Duration::from_secs(5);
/// A connection that lived this long counts as healthy: the next drop starts
/// the backoff afresh.
const HEALTHY_AFTER: Duration = Duration::from_secs(10);
/// Peers have been reported that answer pings but push nothing; an idle
/// connection is renewed at this age.
const RENEW_AFTER: Duration = Duration::from_secs(4 * 3_600);
const RENEW_IDLE: Duration = Duration::from_secs(600);

#[derive(Debug)]
pub struct Link {
    phase: Phase,
    peer: Option<Peer>,
    settings: ServerSettings,
    failures: u32,
    chunks: Chunks,
    parked: Parked,
    hot: bool,
    cools_at: Option<Instant>,
    overdue_answer: Vec<u8>,
    steps: VecDeque<Step>,
    last: Now,
    rng: u64,
    pub counts: Counts,
}

/// Running totals, for `status`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub connects: u64,
    pub pushes: u64,
    pub dropped: u64,
    pub last_push: Option<Instant>,
    /// When the connection that was lost last had been heard last.
    pub lost_heard: Option<Instant>,
}

#[derive(Debug)]
struct Peer {
    service: i32,
    since: Instant,
    heard: Instant,
    pinged: Instant,
    /// Probes sent since the peer was last heard, and when the last one was.
    probes: u8,
    probed: Instant,
    /// Whether a probe is due at once, as after sleep.
    doubted: bool,
}

impl Link {
    /// A link that wants to dial at once. `overdue_answer` is the JSON shown
    /// for a click whose handler took too long.
    pub fn new(now: Now, seed: u64, overdue_answer: Vec<u8>) -> Self {
        let mut steps = VecDeque::new();
        steps.push_back(Step::Dial);
        Self {
            phase: Phase::Dialing { why: None },
            peer: None,
            settings: ServerSettings::default(),
            failures: 0,
            chunks: Chunks::default(),
            parked: Parked::default(),
            hot: false,
            cools_at: None,
            overdue_answer,
            steps,
            last: now,
            rng: seed,
            counts: Counts::default(),
        }
    }

    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    pub fn unanswered(&self) -> usize {
        self.parked.len()
    }

    /// The next thing to do; call until `None` after every input.
    pub fn step(&mut self) -> Option<Step> {
        self.steps.pop_front()
    }

    /// The dial succeeded: `service` is the id from the URL.
    pub fn dialed(&mut self, service: i32, settings: ServerSettings, now: Now) {
        self.settings = settings;
        self.counts.connects += 1;
        self.phase = Phase::Up { since: now.mono };
        self.steps
            .push_back(Step::Send(Frame::ping(service).to_bytes()));
        let unsent: Vec<_> = self.parked.take_unsent(now.mono).collect();
        self.steps.extend(unsent.into_iter().map(Step::Send));
        self.peer = Some(Peer {
            service,
            since: now.mono,
            heard: now.mono,
            pinged: now.mono,
            probes: 0,
            probed: now.mono,
            doubted: false,
        });
    }

    pub fn dial_failed(&mut self, retry: Retry, why: Text, now: Now) {
        self.peer = None;
        match retry {
            Retry::Soon => {
                self.failures += 1;
                let wait = backoff::delay(self.failures, self.settings.redial_ceiling, self.roll());
                self.wait(now.mono + wait, why);
            }
            Retry::Slowly(pause) => {
                let wait = pause.mul_f64(0.9 + 0.2 * self.roll());
                self.phase = Phase::Degraded {
                    until: now.mono + wait,
                    why,
                };
            }
        }
    }

    /// The connection is gone, whoever ended it.
    pub fn lost(&mut self, why: Text, now: Now) {
        let Some(peer) = self.peer.take() else { return };
        self.counts.lost_heard = Some(peer.heard);
        if now.mono.saturating_duration_since(peer.since) >= HEALTHY_AFTER {
            self.failures = 0;
        }
        let wait = backoff::delay(self.failures, self.settings.redial_ceiling, self.roll());
        self.failures += 1;
        self.wait(now.mono + wait, why);
    }

    pub fn received(&mut self, incoming: Incoming, now: Now) {
        if let Some(peer) = &mut self.peer {
            peer.heard = now.mono;
            peer.probes = 0;
            peer.doubted = false;
        }
        match incoming {
            Incoming::Binary(bytes) => match Frame::parse(bytes) {
                Ok(frame) => self.frame(frame, now.mono),
                Err(why) => self.drop_with(Note::BadFrame(why)),
            },
            Incoming::Text => self.drop_with(Note::TextMessage),
            Incoming::Ping | Incoming::Pong => {}
        }
    }

    /// Answers one push. `false` when that was no longer possible: it had been
    /// answered in the handler's place.
    pub fn answer(&mut self, ticket: Ticket, answer: &Answer, now: Now) -> bool {
        let Some(bytes) = self.parked.answer(ticket, answer, now.mono) else {
            return false;
        };
        self.send_reply(bytes, now.mono);
        true
    }

    /// While somebody waits for a tap, a dead peer must be noticed sooner.
    pub fn set_hot(&mut self, hot: bool, now: Now) {
        if self.hot && !hot {
            self.cools_at = Some(now.mono + COOLS_AFTER);
        }
        self.hot = hot;
        self.tick(now);
    }

    pub fn tick(&mut self, now: Now) {
        self.notice_sleep(now);
        let expired = self.chunks.expire(now.mono);
        if expired > 0 {
            self.drop_with(Note::ChunksExpired(expired));
        }
        while let Some((frame, age)) = self.parked.overdue(now.mono) {
            let answer = Answer::Show(self.overdue_answer.clone());
            self.steps.push_back(Step::Note(Note::Overdue));
            self.send_reply(parked::reply(frame, &answer, age), now.mono);
        }
        match &self.phase {
            Phase::Waiting { until, why } | Phase::Degraded { until, why }
                if *until <= now.mono =>
            {
                self.phase = Phase::Dialing {
                    why: Some(why.clone()),
                };
                self.steps.push_back(Step::Dial);
            }
            Phase::Up { .. } => self.tend_peer(now),
            Phase::Waiting { .. } | Phase::Degraded { .. } | Phase::Dialing { .. } => {}
        }
    }

    /// When `tick` is due at the latest.
    pub fn next_tick(&self) -> Instant {
        let mut due = self.last.mono + HEARTBEAT;
        if let Some(deadline) = self.parked.next_deadline() {
            due = due.min(deadline);
        }
        match &self.phase {
            Phase::Waiting { until, .. } | Phase::Degraded { until, .. } => due.min(*until),
            Phase::Up { .. } | Phase::Dialing { .. } => due,
        }
    }

    fn notice_sleep(&mut self, now: Now) {
        let ran = now.mono.saturating_duration_since(self.last.mono);
        let passed = now.wall.duration_since(self.last.wall).unwrap_or_default();
        self.last = now;
        let gap = passed.saturating_sub(ran);
        if gap < SLEPT {
            return;
        }
        self.steps.push_back(Step::Note(Note::Woke(gap)));
        self.failures = 0;
        if let Some(peer) = &mut self.peer {
            peer.doubted = true;
            peer.probes = 0;
        }
        if let Phase::Waiting { until, .. } | Phase::Degraded { until, .. } = &mut self.phase {
            *until = now.mono;
        }
    }

    fn tend_peer(&mut self, now: Now) {
        let Some(peer) = &mut self.peer else { return };
        let now_mono = now.mono;
        let since = |at: Instant| now_mono.saturating_duration_since(at);
        if since(peer.pinged) >= self.settings.ping_every {
            peer.pinged = now_mono;
            self.steps
                .push_back(Step::Send(Frame::ping(peer.service).to_bytes()));
        }
        let hot = self.hot || self.cools_at.is_some_and(|at| now_mono < at);
        let (ask_after, grace) = if hot || peer.doubted { HOT } else { IDLE };
        let due = if peer.probes == 0 {
            peer.doubted || since(peer.heard) >= ask_after
        } else {
            since(peer.probed) >= grace
        };
        if due && peer.probes >= PROBES {
            let silent = since(peer.heard).as_secs();
            self.steps.push_back(Step::HangUp);
            self.lost(
                Text::made(
                    format!("连接已失效：{silent} 秒没有任何回音"),
                    format!("the connection went dead: nothing heard for {silent} s"),
                ),
                now,
            );
            return;
        }
        if due {
            peer.probes += 1;
            peer.probed = now_mono;
            self.steps.push_back(Step::Ping);
        }
        let idle = self
            .counts
            .last_push
            .is_none_or(|at| since(at) >= RENEW_IDLE);
        if since(peer.since) >= RENEW_AFTER && idle && !self.hot && self.parked.len() == 0 {
            self.steps.push_back(Step::HangUp);
            self.lost(
                Text::new(
                    "更换长时间空闲的连接",
                    "renewing a connection that has long been idle",
                ),
                now,
            );
        }
    }

    fn frame(&mut self, frame: Frame, now: Instant) {
        match frame.method {
            frame::CONTROL if frame.header("type") == Some("pong") => self.pong(frame.payload()),
            frame::DATA => self.push(frame, now),
            _ => {}
        }
    }

    fn pong(&mut self, payload: &[u8]) {
        if payload.is_empty() {
            return;
        }
        match serde_json::from_slice(payload) {
            Ok(config @ serde_json::Value::Object(_)) => {
                self.settings = self.settings.updated(&config);
            }
            _ => self.steps.push_back(Step::Note(Note::BadPong)),
        }
    }

    fn push(&mut self, frame: Frame, now: Instant) {
        let Some(payload) = self.payload(&frame, now) else {
            return;
        };
        let kind = frame.header("type").unwrap_or_default();
        if kind != "event" && kind != "card" {
            let note = Note::UnknownType(kind.chars().take(40).collect());
            self.steps.push_back(Step::Note(note));
            self.send_reply(parked::reply(frame, &Answer::Done, Duration::ZERO), now);
            return;
        }
        self.counts.pushes += 1;
        self.counts.last_push = Some(now);
        if self.parked.is_full() {
            self.drop_with(Note::Overloaded);
            self.send_reply(parked::reply(frame, &Answer::Again, Duration::ZERO), now);
            return;
        }
        let ticket = self.parked.park(frame, now);
        self.steps
            .push_back(Step::Deliver(Delivery { ticket, payload }));
    }

    /// The whole payload of the push this frame completes.
    fn payload(&mut self, frame: &Frame, now: Instant) -> Option<Bytes> {
        let payload = frame.payload.clone().unwrap_or_default();
        let (Some(sum), Some(seq), Some(id)) = (
            frame.header("sum"),
            frame.header("seq"),
            frame.header("message_id"),
        ) else {
            return Some(payload);
        };
        let (Ok(sum), Ok(seq)) = (sum.parse(), seq.parse()) else {
            self.drop_with(Note::BadChunk("its number is no number"));
            return None;
        };
        match self.chunks.add(id, sum, seq, payload, now) {
            Fit::Whole(payload) => Some(payload),
            Fit::Waiting | Fit::Repeated => None,
            Fit::Rejected(why) => {
                self.drop_with(Note::BadChunk(why));
                None
            }
        }
    }

    fn send_reply(&mut self, bytes: Bytes, now: Instant) {
        if self.peer.is_some() {
            self.steps.push_back(Step::Send(bytes));
        } else {
            self.parked.keep_for_next_connection(bytes, now);
        }
    }

    fn drop_with(&mut self, note: Note) {
        self.counts.dropped += 1;
        self.steps.push_back(Step::Note(note));
    }

    fn wait(&mut self, until: Instant, why: Text) {
        self.phase = Phase::Waiting { until, why };
    }

    /// A number from 0 to 1 (splitmix64): jitter needs spread, not secrecy.
    #[expect(
        clippy::cast_precision_loss,
        reason = "53 of the 64 bits are more than jitter needs"
    )]
    fn roll(&mut self) -> f64 {
        self.rng = self.rng.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.rng;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as f64 / u64::MAX as f64
    }
}

#[cfg(test)]
mod tests;
