//! The people of a run: for each hook somebody who taps once, twice, against
//! somebody else, too late, from a stale screen, or not at all; and who taps
//! again when Feishu showed an error.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nod::hook::client;
use nod::simulator::{APP_ID, Clicked, OWNER, Outcome, Press, STRANGER, Simulator, TENANT};
use rand::rngs::StdRng;
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::checker::{Asked, Face, Seen, Tap};
use crate::hooks::{self, Ask, Ended, Kind};
use crate::proxy::Proxy;
use crate::stage::Home;

const ACTIONS: [&str; 5] = ["allow", "always", "session", "deny", "interrupt"];
/// Somebody who sees errors gives up in the end.
const PERSISTENCE: usize = 20;
/// A card that has changed is looked at once more, this much later.
const SECOND_LOOK: Duration = Duration::from_secs(5);

/// A card as it was when it was new.
#[derive(Debug, Clone)]
pub(crate) struct Card {
    message: String,
    chat: String,
    request: String,
    values: HashMap<&'static str, Value>,
}

struct Posted {
    message: String,
    request: String,
    count: u32,
}

/// A card somebody may still look at.
struct Open {
    request: String,
    message: String,
    changed: Option<Instant>,
}

#[derive(Default)]
struct Books {
    asked: Vec<Asked>,
    taps: Vec<Tap>,
    posted: HashMap<u64, Posted>,
    waiting: HashMap<u64, oneshot::Sender<Card>>,
    open: Vec<Open>,
    faces: Vec<Face>,
    latencies: Vec<u64>,
}

pub(crate) struct Crowd {
    pub(crate) sim: Simulator,
    pub(crate) home: Arc<Home>,
    pub(crate) long_connection: Proxy,
    pub(crate) calls: Proxy,
    seed: u64,
    target: u64,
    next: AtomicU64,
    taps: AtomicU64,
    events: AtomicU64,
    books: Mutex<Books>,
}

/// What the people saw and did, for the checker.
pub(crate) struct Witnessed {
    pub(crate) asked: Vec<Asked>,
    pub(crate) taps: Vec<Tap>,
    pub(crate) faces: Vec<Face>,
    pub(crate) latencies: Vec<u64>,
}

impl Crowd {
    pub(crate) fn new(
        sim: Simulator,
        home: Arc<Home>,
        (long_connection, calls): (Proxy, Proxy),
        seed: u64,
        target: u64,
    ) -> Self {
        Self {
            sim,
            home,
            long_connection,
            calls,
            seed,
            target,
            next: AtomicU64::new(0),
            taps: AtomicU64::new(0),
            events: AtomicU64::new(0),
            books: Mutex::default(),
        }
    }

    /// Taps that reached a connection so far.
    pub(crate) fn taps(&self) -> u64 {
        self.taps.load(Ordering::Relaxed)
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads Feishu's history and hands each new card to whoever waits for it.
    pub(crate) async fn deliver_cards(&self) {
        let mut last = 0;
        loop {
            let fresh = |sim: &Simulator| {
                let entries = sim.history(last);
                (!entries.is_empty()).then_some(entries)
            };
            let Some(entries) = self.sim.wait_for(Duration::from_secs(1), fresh).await else {
                continue;
            };
            last = entries.last().map_or(last, |entry| entry.seq);
            for entry in entries {
                if entry.kind == "message" {
                    self.post(&entry.detail.into());
                }
            }
        }
    }

    fn post(&self, message: &Value) {
        let card = &message["card"];
        let Some(number) = hooks::number_on(card) else {
            return;
        };
        let values = buttons(card);
        let Some(request) = values
            .values()
            .find_map(|value| value["request_id"].as_str())
        else {
            return;
        };
        let id = text(&message["message_id"]);
        let mut books = self.books();
        let posted = books.posted.entry(number).or_insert_with(|| Posted {
            message: id.clone(),
            request: request.to_owned(),
            count: 1,
        });
        if posted.message != id {
            posted.count += 1;
        }
        let Some(waiting) = books.waiting.remove(&number) else {
            return;
        };
        let card = Card {
            message: id.clone(),
            chat: text(&message["chat_id"]),
            request: request.to_owned(),
            values,
        };
        books.open.push(Open {
            request: card.request.clone(),
            message: id,
            changed: None,
        });
        // A hook that has ended needs nobody to tap for it.
        let _ = waiting.send(card);
    }

    /// Starts hooks and taps for them until there were taps enough.
    pub(crate) async fn work(self: Arc<Self>) {
        while self.taps() < self.target {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let mut chance = StdRng::seed_from_u64(self.seed.wrapping_mul(1_000_003) ^ number);
            self.one(number, &mut chance).await;
        }
    }

    async fn one(&self, number: u64, chance: &mut StdRng) {
        let kind = match chance.random_range(0..100) {
            0..6 => Kind::Process,
            6..14 => Kind::Old,
            _ => Kind::Client,
        };
        let ask = Ask::new(&self.home, self.seed, number, kind);
        let (sender, card) = oneshot::channel();
        self.books().waiting.insert(number, sender);
        let (stop, stopped) = oneshot::channel();
        let home = Arc::clone(&self.home);
        let asking = ask.clone();
        let hook = tokio::spawn(async move { hooks::run(&home, asking, stopped).await });
        let mut person = Person {
            crowd: self,
            ask: &ask,
            hook,
            stop: Some(stop),
            ended: None,
        };
        let card = tokio::select! {
            card = card => card.ok(),
            () = person.hook_ends() => None,
        };
        if let Some(card) = &card {
            person.act(card, chance).await;
        }
        person.hook_ends().await;
        let quick = card.is_none();
        if let Some(card) = &card
            && chance.random_bool(0.15)
        {
            let action = ACTIONS[chance.random_range(0..2)];
            person.stale_tap(card, action, None, OWNER).await;
        }
        self.note(&ask, person.ended.take());
        if quick {
            // Nobody to ask: the next one would find the same.
            tokio::time::sleep(Duration::from_millis(chance.random_range(20..120))).await;
        }
    }

    fn note(&self, ask: &Ask, ended: Option<Ended>) {
        let ended = ended.unwrap_or_default();
        let mut books = self.books();
        books.waiting.remove(&ask.number);
        let own = (ask.kind != Kind::Process).then(|| ask.id.as_str().to_owned());
        books.asked.push(Asked {
            number: ask.number,
            request: own,
            digest: ask.digest().hex(),
            printed: ended.printed,
            killed: ended.killed,
            old: ask.kind == Kind::Old,
            took_ms: u64::try_from(ended.took.as_millis()).unwrap_or(u64::MAX),
            cards: 0,
        });
    }

    /// Looks at the cards that may have got their final face.
    pub(crate) fn look_at_cards(&self, last_time: bool) -> usize {
        let open = std::mem::take(&mut self.books().open);
        let (mut still, mut faces) = (Vec::new(), Vec::new());
        for mut card in open {
            let shown = self.sim.message(&card.message).and_then(|it| it.card);
            let shown = shown.unwrap_or_default();
            let values = buttons(&shown);
            let can_be_tapped = ACTIONS.iter().any(|action| values.contains_key(action));
            if !can_be_tapped && card.changed.is_none() {
                card.changed = Some(Instant::now());
            }
            let sure = card.changed.is_some_and(|at| at.elapsed() >= SECOND_LOOK);
            if sure || last_time {
                faces.push(Face {
                    title: text(&shown["header"]["title"]["content"]),
                    request: card.request,
                    can_be_tapped,
                });
            } else {
                still.push(card);
            }
        }
        let left = still.iter().filter(|card| card.changed.is_none()).count();
        let mut books = self.books();
        books.faces.extend(faces);
        books.open.extend(still);
        left
    }

    pub(crate) fn seen(&self) -> Witnessed {
        let mut books = std::mem::take(&mut *self.books());
        for asked in &mut books.asked {
            if let Some(posted) = books.posted.get(&asked.number) {
                asked.cards = posted.count;
                asked.request.get_or_insert_with(|| posted.request.clone());
            }
        }
        Witnessed {
            asked: books.asked,
            taps: books.taps,
            faces: books.faces,
            latencies: books.latencies,
        }
    }
}

/// Everybody who has to do with one hook.
struct Person<'a> {
    crowd: &'a Crowd,
    ask: &'a Ask,
    hook: JoinHandle<Ended>,
    stop: Option<oneshot::Sender<()>>,
    ended: Option<Ended>,
}

impl Person<'_> {
    async fn hook_ends(&mut self) {
        if self.ended.is_none() {
            self.ended = Some((&mut self.hook).await.unwrap_or_default());
        }
    }

    fn hook_waits(&self) -> bool {
        self.ended.is_none() && !self.hook.is_finished()
    }

    async fn act(&mut self, card: &Card, chance: &mut StdRng) {
        let action = choose(card, chance);
        let pause = Duration::from_millis(chance.random_range(0..40));
        match chance.random_range(0..100) {
            0..55 => self.insist(card, action, chance).await,
            55..65 => {
                let (one, other) = (self.tap(card, action, OWNER), self.tap(card, action, OWNER));
                tokio::join!(one, other);
                self.insist(card, action, chance).await;
            }
            65..72 => {
                let other = choose(card, chance);
                let stale = self.stale_tap(card, other, None, OWNER);
                tokio::join!(self.tap(card, action, OWNER), stale);
                self.insist(card, action, chance).await;
            }
            72..80 => {
                self.stale_tap(card, action, None, STRANGER).await;
                self.insist(card, action, chance).await;
            }
            80..90 => {
                let event = self.stale_tap(card, action, None, OWNER).await;
                tokio::time::sleep(pause).await;
                self.stale_tap(card, action, event, OWNER).await;
                self.insist(card, action, chance).await;
            }
            90..94 => {
                let stop = self.stop.take();
                let goes = async move {
                    tokio::time::sleep(pause).await;
                    stop.map(|stop| stop.send(()))
                };
                tokio::join!(self.tap(card, action, OWNER), goes);
            }
            94..98 => {
                let (socket, project) = (self.crowd.home.socket(), self.ask.project.clone());
                let event = self.ask.ran_anyway().to_string();
                let told = tokio::task::spawn_blocking(move || {
                    client::notify(&socket, &project, event.as_bytes(), Duration::from_secs(1))
                });
                let (_, told) = tokio::join!(self.tap(card, action, OWNER), told);
                if !told.is_ok_and(|told| told.is_ok()) {
                    self.insist(card, action, chance).await;
                }
            }
            _ if self.ask.number.is_multiple_of(8) => {}
            _ => self.insist(card, action, chance).await,
        }
    }

    /// Taps until somebody confirmed something or the hook has ended.
    async fn insist(&self, card: &Card, action: &'static str, chance: &mut StdRng) {
        for _ in 0..PERSISTENCE {
            if !self.hook_waits() || self.tap(card, action, OWNER).await {
                return;
            }
            let pause = chance.random_range(50..500);
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }

    /// One tap on the card as it is now; true when it need not be repeated.
    async fn tap(&self, card: &Card, action: &'static str, user: &str) -> bool {
        let started = Instant::now();
        let press = Press::action(&card.message, action).by(user);
        match self.crowd.sim.click(press).await {
            Err(_) => true,
            Ok(Clicked {
                connection: None, ..
            }) => false,
            Ok(clicked) => {
                let outcome = Outcome {
                    popup: clicked.popup,
                    problem: clicked.problem,
                    toast: clicked.toast,
                    card: None,
                };
                let seen = seen(&outcome);
                let settled = matches!(&seen, Seen::Toast { kind, .. } if kind != "info");
                self.record(card, clicked.event_id, action, user, seen, started);
                self.crowd.books().latencies.extend(clicked.latency_us);
                settled
            }
        }
    }

    /// A tap from a screen that still shows the first card; with an event, that
    /// very push once more.
    async fn stale_tap(
        &self,
        card: &Card,
        action: &'static str,
        event: Option<String>,
        user: &str,
    ) -> Option<String> {
        let started = Instant::now();
        let value = card.values.get(action)?;
        let number = self.crowd.events.fetch_add(1, Ordering::Relaxed);
        let event = event.unwrap_or_else(|| format!("stale-{:x}-{number:x}", self.crowd.seed));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        let payload = json!({
            "schema": "2.0",
            "header": {
                "event_id": event, "token": "t", "create_time": now.as_micros().to_string(),
                "event_type": "card.action.trigger", "tenant_key": TENANT, "app_id": APP_ID,
            },
            "event": {
                "operator": {"open_id": user}, "token": "c-1", "host": "im_message",
                "action": {"value": value, "tag": "button"},
                "context": {"open_message_id": card.message, "open_chat_id": card.chat},
            },
        });
        let pushed = self.crowd.sim.push_click_raw(payload.to_string()).await;
        let (pushed, outcome) = pushed;
        pushed.connection?;
        self.record(card, event.clone(), action, user, seen(&outcome), started);
        Some(event)
    }

    fn record(
        &self,
        card: &Card,
        event: String,
        action: &'static str,
        user: &str,
        seen: Seen,
        started: Instant,
    ) {
        self.crowd.taps.fetch_add(1, Ordering::Relaxed);
        self.crowd.books().taps.push(Tap {
            request: card.request.clone(),
            event,
            action,
            by_owner: user == OWNER,
            seen,
            blurred: self.crowd.long_connection.altered_since(started),
        });
    }
}

fn seen(outcome: &Outcome) -> Seen {
    match (outcome.popup, &outcome.toast) {
        (None, Some(toast)) => Seen::Toast {
            kind: toast.kind.clone(),
            content: toast.content.clone(),
        },
        (Some(popup), _) if !is_silence(popup) => Seen::Toast {
            kind: "popup".to_owned(),
            content: format!("{popup}: {:?}", outcome.problem),
        },
        _ => Seen::Nothing,
    }
}

/// Feishu's own words for "your app did not answer".
fn is_silence(popup: i64) -> bool {
    [
        nod::simulator::popup::NO_ANSWER,
        nod::simulator::popup::NOT_SUBSCRIBED,
    ]
    .contains(&popup)
}

fn choose(card: &Card, chance: &mut StdRng) -> &'static str {
    let action = match chance.next_u32() % 100 {
        0..50 => "allow",
        50..58 => "always",
        58..64 => "session",
        64..90 => "deny",
        _ => "interrupt",
    };
    if card.values.contains_key(action) {
        action
    } else {
        "allow"
    }
}

/// The buttons of a card by what they would do.
fn buttons(card: &Value) -> HashMap<&'static str, Value> {
    let mut found = HashMap::new();
    collect(card, &mut found);
    found
}

fn collect(node: &Value, found: &mut HashMap<&'static str, Value>) {
    match node {
        Value::Object(map) => {
            let action = map.get("action").and_then(Value::as_str);
            let known = ACTIONS.iter().find(|known| action == Some(**known));
            if let Some(known) = known
                && map.contains_key("request_id")
            {
                found.insert(known, node.clone());
            }
            map.values().for_each(|value| collect(value, found));
        }
        Value::Array(all) => all.iter().for_each(|value| collect(value, found)),
        _ => {}
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
