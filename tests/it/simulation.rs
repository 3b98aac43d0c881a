//! The pure cores together in virtual time: the link with its chunks, and the
//! approvals, between a Feishu and hooks that misbehave as a seed says. Days
//! pass in seconds; the seed in a failure replays it exactly.
//!
//! `NOD_SIMULATION_SEEDS=10000 cargo test --release --test it simulation`

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use nod::approvals::action::Action;
use nod::approvals::request::{Digest, Ending, Millis, Operator, Origin, Reach, Request};
use nod::approvals::token::{Token, TokenHash};
use nod::approvals::{Approvals, Attachment, Past, Refusal, Resumed, Settled};
use nod::feishu::frame::{DATA, Frame, Header};
use nod::feishu::link::{Answer, Incoming, Link, Now, Phase, Retry, ServerSettings, Step, Ticket};
use nod::ids::{RequestId, SessionId, UserId};
use nod::wording::Text;
use prost::bytes::Bytes;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};

const SEEDS: u64 = 300;
/// How long things go wrong, and how long afterwards nothing does.
const STORM: u64 = 120_000;
const CALM: u64 = 200_000;
const PATIENCE: Millis = 40_000;
const GRACE: Millis = 30_000;
/// Feishu's own limit for a tap.
const TAP_LIMIT: u64 = 3_000;

#[test]
fn the_cores_hold_together_for_every_seed() {
    let seeds = std::env::var("NOD_SIMULATION_SEEDS").ok();
    let seeds = seeds.map_or(SEEDS, |text| text.parse().expect("a number"));
    let mut totals = Totals::default();
    for seed in 0..seeds {
        let world = World::new(seed).run();
        totals.add(&world);
    }
    let Totals {
        taps,
        applied,
        unconfirmed,
        crashes,
        silences,
        connects,
    } = totals;
    crate::hooks::report(&format!(
        "{seeds} seeds: {taps} taps, {applied} applied, {unconfirmed} not confirmed, \
         {crashes} crashes, {silences} half-open lines, {connects} connections"
    ));
    assert!(applied > 0 && unconfirmed > 0 && crashes > 0 && silences > 0);
    assert!(connects > crashes, "the link came back");
}

#[derive(Default)]
struct Totals {
    taps: usize,
    applied: usize,
    unconfirmed: usize,
    crashes: u64,
    silences: u64,
    connects: u64,
}

impl Totals {
    fn add(&mut self, world: &World) {
        self.taps += world.taps.len();
        let told = |words: &str| {
            let taps = world.taps.values();
            taps.filter(|tap| tap.told.as_deref() == Some(words))
                .count()
        };
        self.applied += told("applied");
        let silent = world.taps.values().filter(|tap| tap.told.is_none());
        self.unconfirmed += silent.count();
        self.crashes += world.crashes;
        self.silences += world.silences;
        self.connects += world.connects;
    }
}

#[derive(Debug)]
enum Event {
    Ask,
    Tap(u64),
    HookGone(u64),
    HookBack(u64),
    /// Bytes that arrive at the other end of this connection.
    AtNod(u64, Bytes),
    AtFeishu(u64, Bytes),
    /// A WebSocket pong, which any live peer sends.
    Pong(u64),
    Dialed(u64),
    Answered(u64, Ticket, Vec<u8>),
    Trouble,
    Tick,
}

/// A person's tap, and what Feishu showed in time.
struct Tap {
    request: u64,
    action: &'static str,
    at: u64,
    told: Option<String>,
}

struct Hook {
    token: [u8; 32],
    attachment: Option<Attachment>,
    request: Arc<Request>,
    /// It never comes back.
    dead: bool,
    /// What it was handed.
    told: Vec<Ending>,
}

/// What a crash does not take.
#[derive(Default)]
struct Disk {
    pending: BTreeMap<u64, (Arc<Request>, TokenHash)>,
    past: BTreeMap<u64, (Ending, Millis, TokenHash, Option<u64>)>,
    answers: HashMap<u64, String>,
}

struct World {
    seed: u64,
    rng: SmallRng,
    start: Instant,
    mono: u64,
    slept: u64,
    queue: BTreeMap<(u64, u64), Event>,
    events: u64,
    link: Link,
    approvals: Approvals,
    life: u64,
    /// The connection of the moment; a dead one carries nothing.
    line: Option<(u64, bool)>,
    lines: u64,
    /// When the line went dead, and whether somebody waited ever since.
    silent_since: Option<(u64, bool)>,
    hooks: BTreeMap<u64, Hook>,
    taps: BTreeMap<u64, Tap>,
    replied: HashSet<(u64, u64)>,
    disk: Disk,
    crashes: u64,
    silences: u64,
    connects: u64,
}

fn id(number: u64) -> RequestId {
    RequestId::parse(&format!("r{number}")).expect("an id")
}

fn number(id: &RequestId) -> u64 {
    id.as_str()[1..].parse().expect("an id of ours")
}

fn owner() -> Operator {
    let id = UserId::parse("ou_owner").expect("an id");
    Operator { id }
}

impl World {
    fn new(seed: u64) -> Self {
        let start = Instant::now();
        let first = Now {
            mono: start,
            wall: SystemTime::UNIX_EPOCH,
        };
        let mut world = Self {
            seed,
            rng: SmallRng::seed_from_u64(seed),
            start,
            mono: 0,
            slept: 0,
            queue: BTreeMap::new(),
            events: 0,
            link: Link::new(first, seed, b"overdue".to_vec()),
            approvals: Approvals::new(),
            life: 0,
            line: None,
            lines: 0,
            silent_since: None,
            hooks: BTreeMap::new(),
            taps: BTreeMap::new(),
            replied: HashSet::new(),
            disk: Disk::default(),
            crashes: 0,
            silences: 0,
            connects: 0,
        };
        world.later(0, Event::Ask);
        world.later(0, Event::Trouble);
        world.later(0, Event::Tick);
        world
    }

    fn now(&self) -> Now {
        let mono = Duration::from_millis(self.mono);
        Now {
            mono: self.start + mono,
            wall: SystemTime::UNIX_EPOCH + mono + Duration::from_millis(self.slept),
        }
    }

    /// The desk's clock goes on while the machine sleeps.
    fn millis(&self) -> Millis {
        Millis::try_from(self.mono + self.slept).expect("days at most")
    }

    fn later(&mut self, wait: u64, event: Event) {
        self.events += 1;
        self.queue.insert((self.mono + wait, self.events), event);
    }

    fn dice(&mut self, most: u64) -> u64 {
        self.rng.random_range(0..most)
    }

    fn is_calm(&self) -> bool {
        self.mono >= STORM
    }

    fn run(mut self) -> Self {
        while let Some(((at, _), event)) = self.queue.pop_first() {
            if at > STORM + CALM {
                break;
            }
            self.mono = self.mono.max(at);
            self.happen(event);
            self.carry_out();
            self.watch_silence();
        }
        self.judge();
        self
    }

    fn happen(&mut self, event: Event) {
        let now = self.now();
        match event {
            Event::Ask => self.ask(),
            Event::Tap(request) => self.tap(request),
            Event::HookGone(n) => self.hook_gone(n),
            Event::HookBack(n) => self.hook_back(n),
            Event::AtNod(line, bytes) => {
                if self.line == Some((line, false)) {
                    self.link.received(Incoming::Binary(bytes), now);
                }
            }
            Event::Pong(line) => {
                if self.line == Some((line, false)) {
                    self.link.received(Incoming::Pong, now);
                }
            }
            Event::AtFeishu(line, bytes) => self.feishu_reads(line, bytes),
            Event::Dialed(life) => self.dialed(life),
            Event::Answered(life, ticket, answer) => {
                if life == self.life {
                    self.link.answer(ticket, &Answer::Show(answer), now);
                }
            }
            Event::Trouble => self.trouble(),
            Event::Tick => {
                self.link.tick(now);
                let due = self.link.next_tick().saturating_duration_since(now.mono);
                let wait = u64::try_from(due.as_millis()).expect("seconds");
                self.later(wait.max(1), Event::Tick);
            }
        }
        let ended = self.approvals.expire(self.millis());
        self.all_settled(ended);
        let hot = !self.approvals.is_empty();
        self.link.set_hot(hot, self.now());
        assert!(self.link.unanswered() <= 1_024);
    }

    fn carry_out(&mut self) {
        while let Some(step) = self.link.step() {
            let delay = 1 + self.dice(30);
            match step {
                Step::Dial => self.later(delay, Event::Dialed(self.life)),
                Step::Send(bytes) => {
                    if let Some((line, false)) = self.line {
                        self.later(delay, Event::AtFeishu(line, bytes));
                    }
                }
                Step::Ping => {
                    if let Some((line, false)) = self.line {
                        self.later(2 * delay, Event::Pong(line));
                    }
                }
                Step::Deliver(push) => {
                    let answer = self.handle(&push.payload);
                    let slow = self.dice(200) == 0;
                    let takes = if slow { 2_600 } else { self.dice(40) };
                    let event = Event::Answered(self.life, push.ticket, answer.into_bytes());
                    self.later(takes, event);
                }
                Step::HangUp => {
                    self.line = None;
                    self.silent_since = None;
                }
                Step::Note(_) => {}
            }
        }
    }

    /// A dead line is noticed in ten seconds while somebody waits, and in
    /// thirty-five otherwise.
    fn watch_silence(&mut self) {
        let hot = !self.approvals.is_empty();
        if let Some((since, always_hot)) = &mut self.silent_since {
            *always_hot &= hot;
            let limit = if *always_hot { 10_000 } else { 35_000 };
            let silent = self.mono - *since;
            assert!(silent <= limit, "seed {}: {silent} ms deaf", self.seed);
        }
    }

    fn ask(&mut self) {
        let n = u64::try_from(self.hooks.len()).expect("few");
        if !self.is_calm() {
            let pause = self.dice(6_000);
            self.later(pause, Event::Ask);
        }
        let input = json!({"command": format!("make {n}")});
        let now = self.millis();
        let request = Arc::new(Request {
            id: id(n),
            tool: "Bash".to_owned(),
            digest: Digest::of(&input),
            input,
            suggested: Vec::new(),
            origin: Origin {
                machine: "m".to_owned(),
                user: "u".to_owned(),
                project: PathBuf::from("/p"),
                cwd: PathBuf::from("/p"),
                branch: None,
                session: SessionId::parse("s").ok(),
                agent: None,
                pid: None,
                hosted: false,
            },
            asked_at: now,
            deadline: now + PATIENCE,
        });
        let mut token = [0; 32];
        token[..8].copy_from_slice(&n.to_be_bytes());
        let hash = Token::from_bytes(token).hash();
        let registered = self.approvals.register(Arc::clone(&request), hash, now);
        let attachment = registered.expect("a fresh id");
        self.disk.pending.insert(n, (Arc::clone(&request), hash));
        self.hooks.insert(
            n,
            Hook {
                token,
                attachment: Some(attachment),
                request,
                dead: false,
                told: Vec::new(),
            },
        );
        for _ in 0..self.dice(4) {
            let when = self.dice(50_000);
            self.later(when, Event::Tap(n));
        }
        if self.dice(10) == 0 {
            let when = self.dice(20_000);
            self.later(when, Event::HookGone(n));
        }
    }

    fn hook_gone(&mut self, n: u64) {
        let now = self.millis();
        let hook = self.hooks.get_mut(&n).expect("asked before");
        hook.dead = true;
        if let Some(attachment) = hook.attachment.take() {
            let ended = self.approvals.hook_gone(&id(n), attachment, now);
            self.all_settled(ended.into_iter().collect());
        }
    }

    fn hook_back(&mut self, n: u64) {
        let hook = self.hooks.get_mut(&n).expect("asked before");
        if hook.dead || hook.attachment.is_some() {
            return;
        }
        match self
            .approvals
            .resume(&id(n), Token::from_bytes(hook.token).hash())
        {
            Ok(Resumed::Waiting(attachment, request)) => {
                assert_eq!(request.digest, hook.request.digest);
                hook.attachment = Some(attachment);
            }
            Ok(Resumed::Ended(past)) => hook.told.push(past.ending),
            Err(why) => panic!("seed {}: a hook was turned away: {why}", self.seed),
        }
    }

    /// Feishu pushes a tap down the line, whole or in parts, once or twice.
    fn tap(&mut self, request: u64) {
        let event = u64::try_from(self.taps.len()).expect("few");
        let action = if self.dice(2) == 0 { "allow" } else { "deny" };
        let at = self.mono;
        let tap = Tap {
            request,
            action,
            at,
            told: None,
        };
        self.taps.insert(event, tap);
        let Some((line, false)) = self.line else {
            return;
        };
        let body = json!({"event": event, "request": request, "action": action}).to_string();
        let copies = if self.dice(5) == 0 { 2 } else { 1 };
        for copy in 0..copies {
            let parts = 1 + self.dice(4);
            for (seq, part) in split(body.as_bytes(), parts).into_iter().enumerate() {
                if self.dice(60) == 0 && !self.is_calm() {
                    continue;
                }
                let frame = Frame {
                    seq_id: event + 1,
                    log_id: copy,
                    service: 7,
                    method: DATA,
                    headers: vec![
                        Header::new("type", "card"),
                        Header::new("message_id", format!("m{event}-{copy}")),
                        Header::new("sum", parts.to_string()),
                        Header::new("seq", seq.to_string()),
                    ],
                    payload: Some(part),
                    ..Frame::default()
                };
                let delay = 1 + self.dice(200);
                self.later(delay, Event::AtNod(line, frame.to_bytes()));
            }
        }
    }

    fn feishu_reads(&mut self, line: u64, bytes: Bytes) {
        if self.line != Some((line, false)) {
            return;
        }
        let frame = Frame::parse(bytes).expect("nod writes frames");
        if frame.method != DATA {
            let pong = Frame {
                service: 7,
                headers: vec![Header::new("type", "pong")],
                payload: Some(Bytes::from_static(br#"{"PingInterval":120}"#)),
                ..Frame::default()
            };
            return self.later(5, Event::AtNod(line, pong.to_bytes()));
        }
        let (event, copy) = (frame.seq_id - 1, frame.log_id);
        assert!(
            self.replied.insert((event, copy)),
            "seed {}: one push was answered twice",
            self.seed
        );
        let payload: Value = serde_json::from_slice(frame.payload.as_deref().unwrap_or_default())
            .expect("a reply is JSON");
        let shown = payload["data"].as_str().expect("something to show");
        let shown = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, shown);
        let shown = String::from_utf8(shown.expect("base64")).expect("UTF-8");
        let tap = self.taps.get_mut(&event).expect("a tap of ours");
        if self.mono - tap.at <= TAP_LIMIT {
            tap.told = Some(shown);
        }
    }

    /// What the daemon does with a tap: the same push gets the same answer;
    /// what won is on disk before the hook hears of it.
    fn handle(&mut self, payload: &[u8]) -> String {
        let tap: Value = serde_json::from_slice(payload).expect("whole, or not handed out");
        let field = |name: &str| tap[name].as_u64().expect("a number");
        let (event, n) = (field("event"), field("request"));
        if let Some(answer) = self.disk.answers.get(&event) {
            return answer.clone();
        }
        let action = if tap["action"] == "allow" {
            Action::Allow(Reach::Once)
        } else {
            Action::Deny {
                reason: None,
                interrupt: false,
            }
        };
        let now = self.millis();
        let answer = match self.approvals.decide(&id(n), action, owner(), now) {
            Ok(settled) => {
                self.settled(&settled, Some(event));
                "applied"
            }
            Err(Refusal::Settled { .. }) => "settled before",
            Err(Refusal::Reconnecting) => return "reconnecting".to_owned(),
            Err(Refusal::Unknown) => panic!("seed {}: forgot request {n}", self.seed),
        };
        self.disk.answers.insert(event, answer.to_owned());
        answer.to_owned()
    }

    fn all_settled(&mut self, ended: Vec<Settled>) {
        for settled in ended {
            self.settled(&settled, None);
        }
    }

    fn settled(&mut self, settled: &Settled, event: Option<u64>) {
        let n = number(&settled.request.id);
        let (_, token) = self.disk.pending.remove(&n).expect("pending until now");
        let row = (settled.ending.clone(), settled.at, token, event);
        let before = self.disk.past.insert(n, row);
        assert!(before.is_none(), "seed {}: {n} ended twice", self.seed);
        let hook = self.hooks.get_mut(&n).expect("asked before");
        if hook.attachment.take().is_some() {
            hook.told.push(settled.ending.clone());
        } else {
            assert!(event.is_none(), "seed {}: decided for nobody", self.seed);
        }
    }

    fn dialed(&mut self, life: u64) {
        if life != self.life {
            return;
        }
        let now = self.now();
        let fails = !self.is_calm() && self.dice(4) == 0;
        if fails {
            let slowly = self.dice(8) == 0;
            let retry = if slowly {
                Retry::Slowly(Duration::from_secs(60))
            } else {
                Retry::Soon
            };
            self.link.dial_failed(retry, Text::new("坏", "bad"), now);
            return;
        }
        assert!(self.line.is_none(), "seed {}: two lines at once", self.seed);
        self.lines += 1;
        self.connects += 1;
        self.line = Some((self.lines, false));
        self.link.dialed(7, ServerSettings::default(), now);
    }

    fn trouble(&mut self) {
        if self.is_calm() {
            return;
        }
        match self.dice(8) {
            0..3 => {
                if let Some((_, false)) = self.line {
                    self.line = None;
                    self.silent_since = None;
                    self.link.lost(Text::new("断", "cut"), self.now());
                }
            }
            3 => {
                if let Some((line, false)) = self.line {
                    self.line = Some((line, true));
                    self.silences += 1;
                    self.silent_since = Some((self.mono, true));
                }
            }
            4 => {
                if let Some((line, false)) = self.line {
                    let noise = Bytes::from(vec![0xff; 3]);
                    self.later(1, Event::AtNod(line, noise));
                }
            }
            5 => self.slept += 1_000 * self.dice(40),
            6 => self.crash(),
            _ => {}
        }
        let pause = 500 + self.dice(12_000);
        self.later(pause, Event::Trouble);
    }

    fn crash(&mut self) {
        self.crashes += 1;
        self.life += 1;
        self.line = None;
        self.silent_since = None;
        let seed = self.seed ^ self.life;
        self.link = Link::new(self.now(), seed, b"overdue".to_vec());
        self.approvals = Approvals::new();
        for (n, (ending, at, token, _)) in &self.disk.past {
            let digest = self.hooks[n].request.digest;
            let past = Past {
                ending: ending.clone(),
                at: *at,
                digest,
                token: *token,
            };
            self.approvals.recall(id(*n), past);
        }
        let pending: Vec<_> = self.disk.pending.values().cloned().collect();
        self.approvals.restore(pending, self.millis(), GRACE);
        let numbers: Vec<u64> = self.hooks.keys().copied().collect();
        for n in numbers {
            let hook = self.hooks.get_mut(&n).expect("there");
            if hook.attachment.take().is_some() {
                let back = 50 + self.dice(4_000);
                self.later(back, Event::HookBack(n));
            }
        }
    }

    /// What must hold whatever happened, once nothing more goes wrong.
    fn judge(&self) {
        let seed = self.seed;
        let up = matches!(self.link.phase(), Phase::Up { .. });
        assert!(up, "seed {seed}: {:?}", self.link.phase());
        assert!(self.disk.pending.is_empty(), "seed {seed}: never ended");
        assert!(self.approvals.is_empty(), "seed {seed}");
        for (n, hook) in &self.hooks {
            let (ending, _, _, event) = &self.disk.past[n];
            assert!(hook.told.len() <= 1, "seed {seed}: {n} was told twice");
            assert!(hook.told.iter().all(|told| told == ending), "seed {seed}");
            let decided = matches!(ending, Ending::Allowed { .. } | Ending::Denied { .. });
            assert_eq!(decided, event.is_some(), "seed {seed}: invented {ending:?}");
            if let Some(event) = event {
                let tap = &self.taps[event];
                let allowed = matches!(ending, Ending::Allowed { .. });
                assert_eq!(tap.request, *n, "seed {seed}");
                assert_eq!(tap.action == "allow", allowed, "seed {seed}");
            }
        }
        for (event, tap) in &self.taps {
            let won = self.disk.past[&tap.request].3 == Some(*event);
            match tap.told.as_deref() {
                Some("applied") => assert!(won, "seed {seed}: lost tap {event}"),
                Some("settled before") => assert!(!won, "seed {seed}: tap {event}"),
                Some("reconnecting" | "overdue") | None => {}
                other => panic!("seed {seed}: told {other:?}"),
            }
        }
    }
}

fn split(body: &[u8], parts: u64) -> Vec<Bytes> {
    let parts = usize::try_from(parts).expect("few");
    let size = body.len().div_ceil(parts);
    let pieces = body.chunks(size).map(Bytes::copy_from_slice);
    pieces.collect()
}
