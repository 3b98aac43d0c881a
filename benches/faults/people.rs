//! The people of a run, one for each hook, and what they all see: which card
//! belongs to which hook, and what it showed in the end.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nod::for_tests::simulator::{OWNER, Simulator};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::histories::{Asked, Face, Tap};
use crate::hooks::{self, Ask, Ended, Kind};
use crate::person::Person;
use crate::proxy::Proxy;
use crate::stage::Home;

pub(crate) const ACTIONS: [&str; 5] = ["allow", "always", "session", "deny", "interrupt"];
/// How often the pause after a hook in vain doubles.
const MOST_IN_VAIN: u32 = 4;
/// A card that has changed is looked at once more, this much later: what puts
/// it right may wait for a tap under way and then for the end of a trouble.
const SECOND_LOOK: Duration = Duration::from_secs(20);

/// A card as it was when it was new.
#[derive(Debug, Clone)]
pub(crate) struct Card {
    pub(crate) message: String,
    pub(crate) chat: String,
    pub(crate) request: String,
    pub(crate) values: HashMap<&'static str, Value>,
}

struct Posted {
    message: String,
    request: String,
    count: u32,
    shows_digest: bool,
}

/// A card somebody may still look at.
struct Open {
    request: String,
    message: String,
    changed: Option<Instant>,
}

#[derive(Default)]
pub(crate) struct Books {
    asked: Vec<Asked>,
    pub(crate) taps: Vec<Tap>,
    /// Events that Feishu never put on the line.
    swallowed: HashSet<String>,
    posted: HashMap<u64, Posted>,
    waiting: HashMap<u64, oneshot::Sender<Card>>,
    open: Vec<Open>,
    faces: Vec<Face>,
    pub(crate) latencies: Vec<u64>,
}

/// What a crowd is to do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// When it is over.
    pub(crate) taps: u64,
    /// Taps for each hook besides those of whoever decides for it.
    pub(crate) restless: u32,
}

pub(crate) struct Crowd {
    pub(crate) sim: Simulator,
    pub(crate) home: Arc<Home>,
    pub(crate) long_connection: Proxy,
    pub(crate) calls: Proxy,
    pub(crate) plan: Plan,
    next: AtomicU64,
    pub(crate) taps: AtomicU64,
    pub(crate) events: AtomicU64,
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
        plan: Plan,
    ) -> Self {
        Self {
            sim,
            home,
            long_connection,
            calls,
            plan,
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

    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
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
                match entry.kind {
                    "message" => self.post(&entry.detail.into()),
                    "event_out" if entry.detail["swallowed"] == true => {
                        let event = text(&entry.detail["payload"]["header"]["event_id"]);
                        self.books().swallowed.insert(event);
                    }
                    _ => {}
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
            shows_digest: card.to_string().contains(&hooks::digest_of(number).short()),
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
        let mut in_vain = 0;
        while self.taps() < self.plan.taps {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let mut chance = StdRng::seed_from_u64(self.plan.seed.wrapping_mul(1_000_003) ^ number);
            if self.one(number, &mut chance).await {
                in_vain = 0;
                continue;
            }
            // Nobody to ask: the next one would find the same. More hooks than
            // the machine can serve would only keep each other from it.
            let pause = chance.random_range(20..120) << in_vain;
            tokio::time::sleep(Duration::from_millis(pause)).await;
            in_vain = (in_vain + 1).min(MOST_IN_VAIN);
        }
    }

    /// One hook and its person; false when there was no card to tap.
    async fn one(&self, number: u64, chance: &mut StdRng) -> bool {
        let kind = match chance.random_range(0..100) {
            0..6 => Kind::Process,
            6..14 => Kind::Old,
            _ => Kind::Client,
        };
        let ask = Ask::new(&self.home, self.plan.seed, number, kind);
        let (sender, card) = oneshot::channel();
        self.books().waiting.insert(number, sender);
        let (stop, stopped) = oneshot::channel();
        let home = Arc::clone(&self.home);
        let asking = ask.clone();
        let hook = tokio::spawn(async move { hooks::run(&home, asking, stopped).await });
        let mut person = Person::new(self, &ask, hook, stop);
        let card = tokio::select! {
            card = card => card.ok(),
            () = person.hook_ends() => None,
        };
        let early = self.plan.restless / 4;
        if let Some(card) = &card {
            person.fidget(card, early, chance).await;
            person.act(card, chance).await;
        }
        person.hook_ends().await;
        if let Some(card) = &card {
            let late = self.plan.restless - early;
            person.fidget_on(card, late, chance).await;
        }
        if let Some(card) = &card
            && chance.random_bool(0.15)
        {
            let action = ACTIONS[chance.random_range(0..2)];
            person.stale_tap(card, action, None, OWNER).await;
        }
        self.note(&ask, person.ended.take(), person.ran);
        card.is_some()
    }

    fn note(&self, ask: &Ask, ended: Option<Ended>, ran: bool) {
        let ended = ended.unwrap_or_default();
        let mut books = self.books();
        books.waiting.remove(&ask.number);
        let own = (ask.kind != Kind::Process).then(|| ask.id.as_str().to_owned());
        books.asked.push(Asked {
            number: ask.number,
            request: own,
            digest: ask.digest().hex(),
            printed: ended.printed,
            handed: ended.handed,
            killed: ended.killed,
            ran,
            old: ask.kind == Kind::Old,
            took_ms: u64::try_from(ended.took.as_millis()).unwrap_or(u64::MAX),
            ..Asked::default()
        });
    }

    /// Looks at the cards that may have got their final face.
    pub(crate) fn look_at_cards(&self, last_time: bool) -> usize {
        let open = std::mem::take(&mut self.books().open);
        let (mut still, mut faces) = (Vec::new(), Vec::new());
        for mut card in open {
            // The local Feishu lets the oldest messages go; nobody sees those.
            let Some(shown) = self.sim.message(&card.message).and_then(|it| it.card) else {
                continue;
            };
            let values = buttons(&shown);
            let can_be_tapped = ACTIONS.iter().any(|action| values.contains_key(action));
            if can_be_tapped {
                // Not yet, or no longer: what it shows in the end counts.
                card.changed = None;
            } else if card.changed.is_none() {
                card.changed = Some(Instant::now());
            }
            let sure = card.changed.is_some_and(|at| at.elapsed() >= SECOND_LOOK);
            if sure || last_time {
                faces.push(Face {
                    title: text(&shown["header"]["text_tag_list"][0]["text"]["content"]),
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
                asked.card_shows_digest = posted.shows_digest;
                asked.request.get_or_insert_with(|| posted.request.clone());
            }
        }
        for tap in &mut books.taps {
            tap.swallowed = books.swallowed.contains(&tap.event);
        }
        Witnessed {
            asked: books.asked,
            taps: books.taps,
            faces: books.faces,
            latencies: books.latencies,
        }
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

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
