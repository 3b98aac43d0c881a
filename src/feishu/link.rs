//! The long connection's protocol and nothing else: when to dial, what to send,
//! which push to hand out, when a silent peer is dead. Bytes and time go in,
//! [`LinkStep`]s come out; it never touches a socket or a clock.

mod note;
mod parked;
mod peer;
mod phase;
mod redial;
mod settings;

pub use note::Note;
pub use parked::{PushAnswer, PushTicket};
pub use phase::Phase;
pub use settings::ServerSettings;

use parked::Parked;
use peer::{Due, LinkPeer};
use prost::bytes::Bytes;
use redial::{NextDial, Redial};
use std::collections::VecDeque;
use std::time::{Duration, Instant, SystemTime};

use super::chunks::{Chunks, Fit};
use super::frame::{self, Frame};
use crate::text::Text;

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
pub enum LinkStep {
    Dial,
    Send(Bytes),
    /// A WebSocket ping: the peer must answer it, whatever it thinks of Feishu.
    Ping,
    Deliver(PushDelivery),
    /// Drop the socket without waiting for a closing handshake.
    HangUp,
    Note(Note),
}

/// A push for the handlers; it is answered through [`Link::answer`].
#[derive(Debug, Clone, PartialEq)]
pub struct PushDelivery {
    pub ticket: PushTicket,
    pub payload: Bytes,
}

/// When to try again after a failed dial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DialRetry {
    Soon,
    /// The app has too many connections: it has fewer when some are given up.
    Crowded,
    /// Nothing will change by itself soon: somebody must act.
    Slowly(Duration),
}

/// Where the connection stands; what there is only while it is up lives there.
#[derive(Debug)]
enum LinkState {
    Dialing { why: Option<Text> },
    Up(LinkPeer),
    Waiting { until: Instant, why: Text },
    Degraded { until: Instant, why: Text },
}

/// After so many connections in a row that died behind our own hot probes, the
/// rest of the run asks at a slower pace.
const QUICK_DEATHS: u8 = 3;
/// So long after the last waiting request a dead peer is still noticed as soon:
/// a tap it swallowed may undo the correction of that request's card.
const COOLS_AFTER: Duration = Duration::from_secs(15);
/// So long after a push its sender is taken to be there still, and a lost
/// connection is redialled as if somebody waited.
const TALKS_FOR: Duration = Duration::from_secs(60);
/// The ticks that compare the clocks.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// A wall clock that ran ahead by this much means sleep, not drift.
const SLEPT: Duration = Duration::from_secs(5);
/// Peers have been reported that answer pings but push nothing; an idle
/// connection is renewed at this age.
const RENEW_AFTER: Duration = Duration::from_secs(4 * 3_600);
const RENEW_IDLE: Duration = Duration::from_secs(600);

#[derive(Debug)]
pub struct Link {
    state: LinkState,
    settings: ServerSettings,
    redial: Redial,
    chunks: Chunks,
    parked: Parked,
    /// Connections in a row that died behind our own hot probes.
    quick_deaths: u8,
    hot: bool,
    cools_at: Option<Instant>,
    overdue_answer: Vec<u8>,
    steps: VecDeque<LinkStep>,
    last: Now,
    rng: u64,
    pub counts: LinkCounts,
}

/// Running totals, for `status`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkCounts {
    pub connects: u64,
    pub pushes: u64,
    pub dropped: u64,
    pub last_push: Option<Instant>,
    /// When the connection that was lost last had been heard last.
    pub lost_heard: Option<Instant>,
}

impl Link {
    /// A link that wants to dial at once. `overdue_answer` is the JSON shown
    /// for a click whose handler took too long.
    pub fn new(now: Now, seed: u64, overdue_answer: Vec<u8>) -> Self {
        let mut link = Self {
            state: LinkState::Dialing { why: None },
            settings: ServerSettings::default(),
            redial: Redial::new(now.mono),
            chunks: Chunks::default(),
            parked: Parked::default(),
            quick_deaths: 0,
            hot: false,
            cools_at: None,
            overdue_answer,
            steps: VecDeque::new(),
            last: now,
            rng: seed,
            counts: LinkCounts::default(),
        };
        link.dial(now.mono);
        link
    }

    pub fn phase(&self) -> Phase {
        Phase::of(&self.state)
    }

    pub fn unanswered(&self) -> usize {
        self.parked.len()
    }

    /// The next thing to do; call until `None` after every input.
    pub fn step(&mut self) -> Option<LinkStep> {
        self.steps.pop_front()
    }

    /// The dial succeeded: `service` is the id from the URL.
    pub fn dialed(&mut self, service: i32, settings: ServerSettings, now: Now) {
        self.settings = settings;
        self.redial.got_through();
        self.counts.connects += 1;
        self.state = LinkState::Up(LinkPeer::new(service, now.mono));
        self.steps
            .push_back(LinkStep::Send(Frame::ping(service).to_bytes()));
        let unsent: Vec<_> = self.parked.take_unsent(now.mono).collect();
        self.steps.extend(unsent.into_iter().map(LinkStep::Send));
    }

    /// One dial failed; others may be under way.
    pub fn dial_failed(&mut self, retry: DialRetry, why: Text, now: Now) {
        let (ceiling, roll) = (self.settings.redial_ceiling, self.roll());
        let hot = self.is_awaited(now.mono);
        self.state = match self.redial.failed(retry, ceiling, hot, now.mono, roll) {
            NextDial::Others => LinkState::Dialing { why: Some(why) },
            NextDial::At(until) => LinkState::Waiting { until, why },
            NextDial::Standing(until) => LinkState::Degraded { until, why },
        };
    }

    /// The other side or the network ended the connection.
    pub fn lost(&mut self, why: Text, now: Now) {
        let LinkState::Up(peer) = &self.state else {
            return;
        };
        self.quick_deaths = match (peer.died_quickly(now.mono), self.quick_deaths) {
            (None, deaths) | (_, deaths @ QUICK_DEATHS) => deaths,
            (Some(true), deaths) => deaths + 1,
            (Some(false), _) => 0,
        };
        self.gone(why, now);
    }

    /// The connection is gone, whoever ended it.
    fn gone(&mut self, why: Text, now: Now) {
        let LinkState::Up(peer) = &self.state else {
            return;
        };
        let since = peer.since;
        self.counts.lost_heard = Some(peer.heard);
        let (ceiling, roll) = (self.settings.redial_ceiling, self.roll());
        let hot = self.is_awaited(now.mono);
        let until = (self.redial).lost(since, ceiling, hot, now.mono, roll);
        self.state = LinkState::Waiting { until, why };
    }

    fn dial(&mut self, now: Instant) {
        let roll = self.roll();
        self.redial.begin(now, roll);
        self.steps.push_back(LinkStep::Dial);
    }

    pub fn received(&mut self, incoming: Incoming, now: Now) {
        if let LinkState::Up(peer) = &mut self.state {
            peer.hear(now.mono);
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
    pub fn answer(&mut self, ticket: PushTicket, answer: &PushAnswer, now: Now) -> bool {
        let Some(bytes) = self.parked.answer(ticket, answer, now.mono) else {
            return false;
        };
        self.send_reply(bytes, now.mono);
        true
    }

    /// While somebody waits for a tap, a dead peer must be noticed sooner, and
    /// no pause is worth their time.
    pub fn set_hot(&mut self, hot: bool, now: Now) {
        if self.hot && !hot {
            self.cools_at = Some(now.mono + COOLS_AFTER);
        }
        if hot && !self.hot {
            self.redial.start_afresh();
        }
        self.hot = hot;
        if hot
            && let LinkState::Waiting { until, .. } | LinkState::Degraded { until, .. } =
                &mut self.state
        {
            *until = (*until).min(self.redial.soonest(now.mono));
        }
        self.tick(now);
    }

    pub fn tick(&mut self, now: Now) {
        self.notice_sleep(now);
        let expired = self.chunks.expire(now.mono);
        if expired > 0 {
            self.drop_with(Note::ChunksExpired(expired));
        }
        while let Some((frame, age)) = self.parked.overdue(now.mono) {
            let answer = PushAnswer::Show(self.overdue_answer.clone());
            self.steps.push_back(LinkStep::Note(Note::Overdue));
            self.send_reply(parked::reply(frame, &answer, age), now.mono);
        }
        match &self.state {
            LinkState::Waiting { until, why } | LinkState::Degraded { until, why }
                if *until <= now.mono =>
            {
                self.state = LinkState::Dialing {
                    why: Some(why.clone()),
                };
                self.dial(now.mono);
            }
            LinkState::Dialing { .. } if self.joins_at().is_some_and(|at| at <= now.mono) => {
                self.dial(now.mono);
            }
            LinkState::Up(_) => self.tend_peer(now),
            LinkState::Waiting { .. } | LinkState::Degraded { .. } | LinkState::Dialing { .. } => {}
        }
    }

    /// Whether our own pings seem to end connections, so that they are asked
    /// at the slower pace for the rest of the run.
    pub fn asks_gently(&self) -> bool {
        self.quick_deaths >= QUICK_DEATHS
    }

    /// When `tick` is due at the latest.
    pub fn next_tick(&self) -> Instant {
        let mut due = self.last.mono + HEARTBEAT;
        if let Some(deadline) = self.parked.next_deadline() {
            due = due.min(deadline);
        }
        match &self.state {
            LinkState::Waiting { until, .. } | LinkState::Degraded { until, .. } => due.min(*until),
            LinkState::Dialing { .. } => self.joins_at().map_or(due, |at| due.min(at)),
            LinkState::Up(_) => due,
        }
    }

    /// When a further dial joins those under way.
    fn joins_at(&self) -> Option<Instant> {
        let awaited = self.is_awaited(self.last.mono);
        self.redial.join_at().filter(|_| awaited)
    }

    /// Whether a person waits for the connection: for a tap's effect, or in
    /// the middle of a talk.
    fn is_awaited(&self, now: Instant) -> bool {
        let since = |at| now.saturating_duration_since(at);
        self.hot || (self.counts.last_push).is_some_and(|at| since(at) < TALKS_FOR)
    }

    fn notice_sleep(&mut self, now: Now) {
        let ran = now.mono.saturating_duration_since(self.last.mono);
        let passed = now.wall.duration_since(self.last.wall).unwrap_or_default();
        self.last = now;
        let gap = passed.saturating_sub(ran);
        if gap < SLEPT {
            return;
        }
        self.steps.push_back(LinkStep::Note(Note::Woke(gap)));
        self.redial.start_afresh();
        match &mut self.state {
            LinkState::Up(peer) => peer.doubt(),
            LinkState::Waiting { until, .. } | LinkState::Degraded { until, .. } => {
                *until = now.mono;
            }
            LinkState::Dialing { .. } => {}
        }
    }

    fn tend_peer(&mut self, now: Now) {
        let gently = self.asks_gently();
        let LinkState::Up(peer) = &mut self.state else {
            return;
        };
        let now_mono = now.mono;
        let since = |at: Instant| now_mono.saturating_duration_since(at);
        if since(peer.pinged) >= self.settings.ping_every {
            peer.pinged = now_mono;
            self.steps
                .push_back(LinkStep::Send(Frame::ping(peer.service).to_bytes()));
        }
        let hot = self.hot || self.cools_at.is_some_and(|at| now_mono < at);
        match peer.due(hot, gently, now_mono) {
            Due::Nothing => {}
            Due::Ping => self.steps.push_back(LinkStep::Ping),
            Due::AppPing => self
                .steps
                .push_back(LinkStep::Send(Frame::ping(peer.service).to_bytes())),
            Due::Dead(silent) => {
                let silent = silent.as_secs();
                self.steps.push_back(LinkStep::HangUp);
                let why = Text::made(
                    format!("连接已失效：{silent} 秒没有任何回音"),
                    format!("the connection went dead: nothing heard for {silent} s"),
                );
                return self.gone(why, now);
            }
        }
        let since_up = since(peer.since);
        let idle = self
            .counts
            .last_push
            .is_none_or(|at| since(at) >= RENEW_IDLE);
        if since_up >= RENEW_AFTER && idle && !self.hot && self.parked.len() == 0 {
            self.steps.push_back(LinkStep::HangUp);
            self.gone(
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
            _ => self.steps.push_back(LinkStep::Note(Note::BadPong)),
        }
    }

    fn push(&mut self, frame: Frame, now: Instant) {
        let Some(payload) = self.payload(&frame, now) else {
            return;
        };
        let kind = frame.header("type").unwrap_or_default();
        if kind != "event" && kind != "card" {
            let note = Note::UnknownType(kind.chars().take(40).collect());
            self.steps.push_back(LinkStep::Note(note));
            self.send_reply(parked::reply(frame, &PushAnswer::Done, Duration::ZERO), now);
            return;
        }
        self.counts.pushes += 1;
        self.counts.last_push = Some(now);
        self.redial.start_afresh();
        if self.parked.is_full() {
            self.drop_with(Note::Overloaded);
            self.send_reply(
                parked::reply(frame, &PushAnswer::Again, Duration::ZERO),
                now,
            );
            return;
        }
        let ticket = self.parked.park(frame, now);
        self.steps
            .push_back(LinkStep::Deliver(PushDelivery { ticket, payload }));
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
        if matches!(self.state, LinkState::Up(_)) {
            self.steps.push_back(LinkStep::Send(bytes));
        } else {
            self.parked.keep_for_next_connection(bytes, now);
        }
    }

    fn drop_with(&mut self, note: Note) {
        self.counts.dropped += 1;
        self.steps.push_back(LinkStep::Note(note));
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
