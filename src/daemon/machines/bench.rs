//! A team for tests: its keys, a machine of it, and a bus where a script stands
//! in for the gateway.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::bus::keys::Keys;
use crate::bus::letter::{self, AnswerHead, CallHead, Letter};
use crate::bus::line::{self, BusHeard, BusLine, BusLineState, BusUser, LineTurns};
use crate::bus::membership::{Grant, Membership};
use crate::bus::nkey::{KeyKind, KeyPair};
use crate::bus::pass::{self, Seconds, Span};
use crate::bus::subjects::{FromMachine, GATEWAY_INBOX, Owner};
use crate::clock::{Clock, wall_ms};
use crate::daemon::cards::bench::config;
use crate::daemon::machines::member::Member;
use crate::feishu::clock::TheirClock;
use crate::feishu::outbound::{Outbound, Proxies};
use crate::simulator::bus::Bus;
use crate::store::Store;

pub(crate) const APP: &str = "cli_1";
pub(crate) const OWNER: &str = "ou_owner";
/// Where nobody is.
pub(crate) const NOWHERE: &str = "nats://127.0.0.1:1";

const LIMIT: Duration = Duration::from_secs(20);
const HOUR: Seconds = 3_600;
/// Where gateways hear a machine that is none.
const HERE: &str = "nod1.g.x.x.here";

/// A key by its number.
pub(crate) fn pair(kind: KeyKind, n: u8) -> KeyPair {
    KeyPair::of(kind, [n; 32])
}

pub(crate) fn keys() -> Keys {
    let mut n = 100;
    Keys::make(|| {
        n += 1;
        [n; 32]
    })
}

pub(crate) fn in_an_hour() -> Seconds {
    wall_ms() / 1_000 + HOUR
}

/// The pass of this person's machine that holds `key`.
pub(crate) fn pass(keys: &Keys, owner: &str, key: &KeyPair, until: Seconds) -> String {
    let span = Span {
        made: wall_ms() / 1_000 - 1,
        until,
    };
    let owner = Owner::parse(owner).unwrap();
    pass::machine(&keys.machines, &keys.account, &owner, &key.public(), span)
}

/// The machine of this owner that holds the key of this number.
pub(crate) fn membership(keys: &Keys, owner: &str, n: u8, url: &str) -> Membership {
    let key = pair(KeyKind::User, n);
    let grant = Grant {
        url: url.to_owned(),
        pass: pass(keys, owner, &key, in_an_hour()),
        push: vec![keys.push.public().to_string()],
        app_id: APP.to_owned(),
    };
    Membership::of(&grant, key).unwrap()
}

/// A machine that is nothing but a member; it knows the time.
pub(crate) struct MemberBench {
    pub(crate) keys: Keys,
    pub(crate) member: Arc<Member>,
    pub(crate) store: Store,
    dir: tempfile::TempDir,
}

impl MemberBench {
    pub(crate) fn new() -> Self {
        Self::at(NOWHERE)
    }

    fn at(url: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().to_string_lossy().into_owned();
        let (keys, store) = (keys(), Store::in_memory().unwrap());
        let config = config(&[("NOD_STATE_DIR", &state), ("NOD_MACHINE_NAME", "laptop")]);
        let clock = TheirClock::new(Clock::start());
        let membership = membership(&keys, OWNER, 1, url);
        let member = Member::new(membership, &config, clock, store.clone());
        member.knows_time.store(true, Ordering::Relaxed);
        Self {
            keys,
            member,
            store,
            dir,
        }
    }

    /// Where its pass is kept.
    pub(crate) fn file(&self) -> PathBuf {
        self.dir.path().join("bus.pass")
    }
}

/// A call of a machine's, as a gateway hears it.
pub(crate) struct HeardCall<'a> {
    pub(crate) keys: &'a Keys,
    pub(crate) subject: &'a str,
    pub(crate) head: CallHead,
    pub(crate) body: &'a [u8],
}

impl HeardCall<'_> {
    /// What a gateway answers to this very call.
    pub(crate) fn answer(&self, body: &impl Serialize) -> Vec<u8> {
        let body = serde_json::to_vec(body).unwrap();
        self.letter(&self.head.once, &body)
    }

    /// A letter of a gateway's that answers `re`.
    pub(crate) fn letter(&self, re: &str, body: &[u8]) -> Vec<u8> {
        letter::sign(&self.keys.push, self.subject, &answer_head(re), body)
    }
}

pub(crate) fn answer_head(re: &str) -> AnswerHead {
    AnswerHead {
        re: re.to_owned(),
        pass: None,
    }
}

type GatewayScript = Box<dyn Fn(&HeardCall<'_>) -> Vec<Vec<u8>> + Send>;

/// A bus, and a gateway on it that says what it is told to.
pub(crate) struct BusBench {
    pub(crate) bus: Bus,
    pub(crate) keys: Arc<Keys>,
    pub(crate) gateway: BusLine,
    script: Arc<Mutex<GatewayScript>>,
    running: Option<DropGuard>,
}

impl BusBench {
    pub(crate) async fn start() -> Self {
        let keys = Arc::new(keys());
        let own = keys.own.as_ref().unwrap();
        let [operator, system] = [&own.operator, &own.system].map(|pair| pair.public().to_string());
        let word = keys.account_word(&[], wall_ms() / 1_000).unwrap();
        let at = ([127, 0, 0, 1], 0).into();
        let bus = Bus::start(at, &operator, &system, &word).await.unwrap();
        let script: GatewayScript = Box::new(|_| Vec::new());
        let script = Arc::new(Mutex::new(script));
        let (line, running) = gateway(&bus, &keys, &script).await;
        Self {
            bus,
            keys,
            gateway: line,
            script,
            running: Some(running),
        }
    }

    /// What the gateway says to the next calls.
    pub(crate) fn says(&self, script: impl Fn(&HeardCall<'_>) -> Vec<Vec<u8>> + Send + 'static) {
        *self.script.lock().unwrap_or_else(PoisonError::into_inner) = Box::new(script);
    }

    /// A machine that is connected and hears nothing.
    pub(crate) async fn member(&self) -> (MemberBench, DropGuard) {
        let machine = MemberBench::at(&self.bus.url());
        let member = &machine.member;
        let user = BusUser {
            url: member.url.clone(),
            key: Arc::clone(&member.key),
            pass: member.pass.subscribe(),
            hears: Vec::new(),
            turns: LineTurns::none(),
        };
        let running = connected(&member.line, user, |_| async {}).await;
        self.until_heard(&format!("{}.x", member.place.inbox()))
            .await;
        (machine, running)
    }

    /// The gateway goes.
    pub(crate) async fn leaves(&mut self) {
        self.running = None;
        until(|| !self.bus.inject(HERE, None, b"")).await;
    }

    /// Waits until somebody listens there.
    pub(crate) async fn until_heard(&self, subject: &str) {
        heard(&self.bus, subject).await;
    }
}

async fn gateway(
    bus: &Bus,
    keys: &Arc<Keys>,
    script: &Arc<Mutex<GatewayScript>>,
) -> (BusLine, DropGuard) {
    let key = pair(KeyKind::User, 90);
    let span = Span {
        made: wall_ms() / 1_000 - 1,
        until: in_an_hour(),
    };
    let pass = pass::gateway(&keys.gateways, &keys.account, &key.public(), span);
    let user = BusUser {
        url: crate::bus::url::BusUrl::parse(&bus.url()).unwrap(),
        key: Arc::new(key),
        pass: watch::channel(pass).1,
        hears: FromMachine::ALL.map(FromMachine::everywhere).to_vec(),
        turns: LineTurns::none(),
    };
    let line = BusLine::new(GATEWAY_INBOX);
    let (speaks, keys, script) = (line.clone(), Arc::clone(keys), Arc::clone(script));
    let answers = move |message: BusHeard| {
        let said = answers(&keys, &script, &message);
        let (speaks, reply) = (speaks.clone(), message.reply);
        async move {
            for letter in said {
                speaks.tell(reply.as_deref().unwrap(), letter).await;
            }
        }
    };
    let running = connected(&line, user, answers).await;
    heard(bus, HERE).await;
    (line, running)
}

fn answers(keys: &Keys, script: &Mutex<GatewayScript>, message: &BusHeard) -> Vec<Vec<u8>> {
    let Some(letter) = Letter::read(&message.body).filter(|_| message.reply.is_some()) else {
        return Vec::new();
    };
    let head: CallHead = letter.claims().unwrap();
    let key = pass::Pass::read(&head.pass).unwrap().key;
    let call = HeardCall {
        keys,
        subject: &message.subject,
        body: letter.open(&key, &message.subject).unwrap(),
        head,
    };
    let script = script.lock().unwrap_or_else(PoisonError::into_inner);
    script(&call)
}

/// A line that is up.
async fn connected<F>(
    line: &BusLine,
    user: BusUser,
    handler: impl Fn(BusHeard) -> F + Send + Sync + 'static,
) -> DropGuard
where
    F: Future<Output = ()> + Send + 'static,
{
    let stop = CancellationToken::new();
    let (outbound, clock) = (straight(), Clock::start());
    let running = line::run(line.clone(), user, outbound, clock, handler, stop.clone());
    tokio::spawn(running);
    let mut state = line.state();
    let up = state.wait_for(|state| matches!(state, BusLineState::Up { .. }));
    let up = tokio::time::timeout(LIMIT, up).await;
    up.expect("the bus takes it").unwrap();
    stop.drop_guard()
}

/// The way to the bus with no proxy.
pub(crate) fn straight() -> Outbound {
    Outbound::new(&Proxies::default(), None).unwrap()
}

async fn heard(bus: &Bus, subject: &str) {
    until(|| bus.inject(subject, None, b"")).await;
}

async fn until(what: impl Fn() -> bool) {
    let wait = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let wait = tokio::time::timeout(LIMIT, wait);
    wait.await.expect("it comes to be");
}
