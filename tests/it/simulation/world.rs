//! Everything that lives in one seed: the clock, the desk with its hooks, the
//! disk that outlives a crash, and what must hold in the end.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use nod::for_tests::approvals::choice::Choice;
use nod::for_tests::approvals::request::{
    Caller, Digest, Ending, Facts, Operator, Origin, Reach, Request,
};
use nod::for_tests::approvals::token::{Token, TokenHash};
use nod::for_tests::approvals::{Approvals, Attachment, Resumed, Settled, Unclaimed};
use nod::for_tests::clock::Millis;
use nod::for_tests::feishu::link::{Incoming, Link, LinkStep, Now, Phase, PushAnswer, PushTicket};
use nod::for_tests::ids::{RequestId, SessionId, UserId};
use nod::for_tests::sessions::state::{ChildNo, Saved, SessionInput};
use prost::bytes::Bytes;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};

use super::Bug;
use super::cards::{CardEvent, Cards};
use super::task::Task;

/// How long things go wrong, and how long afterwards nothing does.
const STORM: u64 = 120_000;
const CALM: u64 = 260_000;
pub(super) const PATIENCE: Millis = 40_000;
pub(super) const GRACE: Millis = 30_000;
/// Feishu's own limit for a tap.
pub(super) const TAP_LIMIT: u64 = 3_000;

#[derive(Debug)]
pub(super) enum Event {
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
    Answered(u64, PushTicket, PushAnswer),
    Write,
    TextAgain(u64, usize),
    /// The session's child does its next thing.
    Child(ChildNo),
    TaskTick,
    Trouble,
    Tick,
    Card(CardEvent),
}

/// A person's tap, and what Feishu showed in time.
pub(super) struct Tap {
    pub(super) request: u64,
    pub(super) action: &'static str,
    pub(super) at: u64,
    pub(super) told: Option<String>,
}

/// Whoever waits for an answer at the desk: a hook, or the session.
pub(super) struct Hook {
    pub(super) token: [u8; 32],
    pub(super) attachment: Option<Attachment>,
    pub(super) request: Arc<Request>,
    /// It never comes back.
    pub(super) dead: bool,
    /// What it was handed.
    pub(super) told: Vec<Ending>,
}

/// What a crash does not take.
#[derive(Default)]
pub(super) struct Disk {
    pub(super) pending: BTreeMap<u64, (Arc<Request>, TokenHash)>,
    pub(super) past: BTreeMap<u64, Row>,
    pub(super) answers: HashMap<u64, String>,
    /// The texts that were taken.
    pub(super) texts: HashSet<u64>,
    pub(super) session: Option<Saved>,
}

pub(super) struct Row {
    pub(super) ending: Ending,
    pub(super) at: Millis,
    pub(super) token: TokenHash,
    pub(super) event: Option<u64>,
}

pub(super) struct World {
    pub(super) seed: u64,
    pub(super) bug: Option<Bug>,
    rng: SmallRng,
    start: Instant,
    pub(super) mono: u64,
    pub(super) slept: u64,
    queue: BTreeMap<(u64, u64), Event>,
    events: u64,
    pub(super) link: Link,
    pub(super) approvals: Approvals,
    pub(super) task: Task,
    pub(super) life: u64,
    /// The connection of the moment; a dead one carries nothing.
    pub(super) line: Option<(u64, bool)>,
    pub(super) lines: u64,
    /// When the line went dead, and whether somebody waited ever since.
    pub(super) silent_since: Option<(u64, bool)>,
    pub(super) hooks: BTreeMap<u64, Hook>,
    pub(super) taps: BTreeMap<u64, Tap>,
    pub(super) pushes: u64,
    pub(super) replied: HashSet<u64>,
    pub(super) disk: Disk,
    pub(super) cards: Cards,
    counts: BTreeMap<&'static str, u64>,
}

pub(super) fn id(number: u64) -> RequestId {
    RequestId::parse(&format!("r{number}")).expect("an id")
}

pub(super) fn number(id: &RequestId) -> u64 {
    id.as_str()[1..].parse().expect("an id of ours")
}

fn owner() -> Operator {
    let id = UserId::parse("ou_owner").expect("an id");
    Operator { id }
}

impl World {
    pub(super) fn new(seed: u64, bug: Option<Bug>) -> Self {
        let start = Instant::now();
        let first = Now {
            mono: start,
            wall: SystemTime::UNIX_EPOCH,
        };
        let mut world = Self {
            seed,
            bug,
            rng: SmallRng::seed_from_u64(seed),
            start,
            mono: 0,
            slept: 0,
            queue: BTreeMap::new(),
            events: 0,
            link: Link::new(first, seed, b"overdue".to_vec()),
            approvals: Approvals::new(),
            task: Task::default(),
            life: 0,
            line: None,
            lines: 0,
            silent_since: None,
            hooks: BTreeMap::new(),
            taps: BTreeMap::new(),
            pushes: 0,
            replied: HashSet::new(),
            disk: Disk::default(),
            cards: Cards::new(seed, start),
            counts: BTreeMap::new(),
        };
        world.later(0, Event::Ask);
        world.later(500, Event::Write);
        world.later(1_000, Event::TaskTick);
        world.later(0, Event::Trouble);
        world.later(0, Event::Tick);
        world
    }

    pub(super) fn now(&self) -> Now {
        let mono = Duration::from_millis(self.mono);
        Now {
            mono: self.start + mono,
            wall: SystemTime::UNIX_EPOCH + mono + Duration::from_millis(self.slept),
        }
    }

    /// The desk's clock goes on while the machine sleeps.
    pub(super) fn millis(&self) -> Millis {
        Millis::try_from(self.mono + self.slept).expect("days at most")
    }

    pub(super) fn later(&mut self, wait: u64, event: Event) {
        self.events += 1;
        self.queue.insert((self.mono + wait, self.events), event);
    }

    pub(super) fn dice(&mut self, most: u64) -> u64 {
        self.rng.random_range(0..most)
    }

    pub(super) fn is_calm(&self) -> bool {
        self.mono >= STORM
    }

    pub(super) fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// What came up, and how often.
    pub(super) fn counts(&self) -> BTreeMap<&'static str, u64> {
        let told = |words: Option<&str>| {
            let taps = self.taps.values();
            let taps = taps.filter(|tap| tap.told.as_deref() == words);
            u64::try_from(taps.count()).expect("few")
        };
        let mut counts = self.counts.clone();
        counts.insert("taps", u64::try_from(self.taps.len()).expect("few"));
        counts.insert("taps applied", told(Some("applied")));
        counts.insert("taps not confirmed", told(None));
        counts
    }

    pub(super) fn run(mut self) -> Self {
        while let Some(((at, _), event)) = self.queue.pop_first() {
            if at > STORM + CALM {
                break;
            }
            self.mono = self.mono.max(at);
            self.happen(event);
            self.carry_out();
            self.cards_carry_out();
            self.watch_silence();
        }
        self.judge();
        self.judge_cards();
        self.judge_task();
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
                    self.link.answer(ticket, &answer, now);
                }
            }
            Event::Write => self.write(),
            Event::TextAgain(event, attempt) => self.deliver_text(event, attempt),
            Event::Child(child) => self.child_acts(child),
            Event::TaskTick => {
                self.feed(SessionInput::Tick);
                self.later(2_500, Event::TaskTick);
            }
            Event::Card(event) => self.card_happens(event),
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
                LinkStep::Dial => self.later(delay, Event::Dialed(self.life)),
                LinkStep::Send(bytes) => {
                    if let Some((line, false)) = self.line {
                        self.later(delay, Event::AtFeishu(line, bytes));
                    }
                }
                LinkStep::Ping => {
                    if let Some((line, false)) = self.line {
                        self.later(2 * delay, Event::Pong(line));
                    }
                }
                LinkStep::Deliver(push) => {
                    let answer = self.handle(&push.payload);
                    let slow = self.dice(200) == 0;
                    let takes = if slow { 2_600 } else { self.dice(40) };
                    self.later(takes, Event::Answered(self.life, push.ticket, answer));
                }
                LinkStep::HangUp => {
                    self.line = None;
                    self.silent_since = None;
                }
                LinkStep::Note(_) => {}
            }
        }
    }

    /// A dead line is noticed in ten seconds while somebody waits, and in
    /// thirty-five otherwise, or where quick pings seemed to end connections.
    fn watch_silence(&mut self) {
        let hot = !self.approvals.is_empty() && !self.link.asks_gently();
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
        self.register("Bash".to_owned(), input, self.millis() + PATIENCE, false);
        if self.dice(10) == 0 {
            let when = self.dice(20_000);
            self.later(when, Event::HookGone(n));
        }
    }

    /// Puts a request on the desk, and has people tap for it.
    pub(super) fn register(&mut self, tool: String, input: Value, deadline: Millis, hosted: bool) {
        let n = u64::try_from(self.hooks.len()).expect("few");
        let now = self.millis();
        let request = Arc::new(
            Facts {
                id: id(n),
                tool,
                digest: Digest::of(&input),
                input,
                real: nod::for_tests::approvals::request::RealPath::Unasked,
                origin: Origin {
                    machine: "m".to_owned(),
                    user: "u".to_owned(),
                    project: PathBuf::from("/p"),
                    cwd: PathBuf::from("/p"),
                    branch: None,
                    session: SessionId::parse("s").ok(),
                    agent: None,
                    pid: None,
                    hosted,
                    caller: Caller::default(),
                },
                asked_at: now,
                deadline,
            }
            .read(),
        );
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
        self.card_asked(n, deadline, false);
        for _ in 0..self.dice(4) {
            let when = self.dice(50_000);
            self.later(when, Event::Tap(n));
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

    /// What the daemon does with a push: the same one gets the same answer;
    /// what won is on disk before anybody hears of it.
    fn handle(&mut self, payload: &[u8]) -> PushAnswer {
        let push: Value = serde_json::from_slice(payload).expect("whole, or not handed out");
        let field = |name: &str| push[name].as_u64();
        let event = field("event").expect("a number");
        let Some(n) = field("request") else {
            if self.disk.texts.insert(event) {
                self.words(event);
            }
            self.forget_one(event);
            return PushAnswer::Done;
        };
        self.card_heard(n);
        let answer = self.judge_tap(event, n, push["action"] == "allow");
        self.forget_one(event);
        PushAnswer::Show(answer.into_bytes())
    }

    fn forget_one(&mut self, event: u64) {
        if self.bug == Some(Bug::ForgetsAnEvent) {
            self.disk.texts.remove(&event);
            self.disk.answers.remove(&event);
        }
    }

    fn judge_tap(&mut self, event: u64, n: u64, allows: bool) -> String {
        if let Some(answer) = self.disk.answers.get(&event) {
            return answer.clone();
        }
        let is_question = self.hooks[&n].request.tool == "AskUserQuestion";
        let action = match (allows, is_question) {
            (true, true) => Choice::Answer(vec!["A".to_owned()]),
            (true, false) => Choice::Allow(Reach::Once),
            (false, _) => Choice::Deny {
                reason: None,
                interrupt: false,
            },
        };
        let now = self.millis();
        let answer = match self.approvals.decide(&id(n), action, owner(), now) {
            Ok(settled) => {
                self.settled(&settled, Some(event));
                "applied"
            }
            Err(Unclaimed::Settled { .. }) => "settled before",
            Err(Unclaimed::Reconnecting) => return "reconnecting".to_owned(),
            Err(Unclaimed::Unknown) => panic!("seed {}: forgot request {n}", self.seed),
        };
        self.disk.answers.insert(event, answer.to_owned());
        answer.to_owned()
    }

    fn all_settled(&mut self, ended: Vec<Settled>) {
        for settled in ended {
            self.settled(&settled, None);
        }
    }

    pub(super) fn settled(&mut self, settled: &Settled, event: Option<u64>) {
        let seed = self.seed;
        let n = number(&settled.request.id);
        let (_, token) = self.disk.pending.remove(&n).expect("pending until now");
        let mut ending = settled.ending.clone();
        if self.bug == Some(Bug::AllowsByDefault) && ending == Ending::TimedOut {
            let (by, reach) = (owner(), Reach::Once);
            ending = Ending::Allowed {
                cancelled: false,
                by,
                reach,
            };
        }
        let row = Row {
            ending: ending.clone(),
            at: settled.at,
            token,
            event,
        };
        let too_late = self.bug == Some(Bug::WritesTooLate) && self.dice(4) == 0;
        if too_late {
            self.disk
                .pending
                .insert(n, (Arc::clone(&settled.request), token));
        }
        let before = self.disk.past.insert(n, row);
        assert!(
            before.is_none(),
            "seed {seed}: request {n} ended twice: {:?}, then {ending:?}",
            before.map(|row| row.ending)
        );
        self.card_ended(settled);
        let hook = self.hooks.get_mut(&n).expect("asked before");
        let attached = hook.attachment.take().is_some();
        if attached {
            hook.told.push(ending.clone());
        }
        assert!(
            attached || event.is_none(),
            "seed {seed}: decided for nobody"
        );
        if settled.request.origin.hosted {
            let wrote = self.session_hears(n, &ending);
            let told = wrote || event.is_none();
            assert!(told, "seed {seed}: a session missed the answer to {n}");
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
            let Row { ending, event, .. } = &self.disk.past[n];
            assert!(hook.told.len() <= 1, "seed {seed}: {n} was told twice");
            assert!(hook.told.iter().all(|told| told == ending), "seed {seed}");
            let allowed = matches!(ending, Ending::Allowed { .. } | Ending::Answered { .. });
            let decided = allowed || matches!(ending, Ending::Denied { .. });
            assert_eq!(decided, event.is_some(), "seed {seed}: invented {ending:?}");
            if let Some(event) = event {
                let tap = &self.taps[event];
                assert_eq!(tap.request, *n, "seed {seed}");
                assert_eq!(tap.action == "allow", allowed, "seed {seed}");
            }
        }
        for (event, tap) in &self.taps {
            let won = self.disk.past[&tap.request].event == Some(*event);
            match tap.told.as_deref() {
                Some("applied") => assert!(won, "seed {seed}: lost tap {event}"),
                Some("settled before") => assert!(!won, "seed {seed}: tap {event}"),
                Some("reconnecting" | "overdue") | None => {}
                other => panic!("seed {seed}: told {other:?}"),
            }
        }
    }
}
