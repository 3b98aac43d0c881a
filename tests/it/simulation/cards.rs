//! The card of each request, and the message that it is at Feishu: sent, named
//! late or never, tapped, edited, and taken back by Feishu's rule.

use nod::for_tests::approvals::Settled;
use nod::for_tests::clock::Millis;
use nod::for_tests::daemon::book::{
    CardBook, CardEffect, Face, Found, Left, LineState, LineView, Patch, PatchOf, Patched, Sending,
    Unsent,
};
use nod::for_tests::feishu::link::Phase;
use nod::for_tests::ids::{CardKey, MessageId, RequestId};
use nod::for_tests::text::{Lang, Text};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Bug;
use super::world::{Event, TAP_LIMIT, World, id, number};

/// So often an edit is made before it is left as it is.
const ENOUGH: u32 = 3;
/// A message of which the network altered the name is called so much more.
const ALTERED: u64 = 1_000_000;
const WHY: Text = Text::new("坏", "bad");

#[derive(Debug)]
pub(super) enum CardEvent {
    /// A sending reaches Feishu.
    Arrives(RequestId, Arc<str>),
    /// Its answer reaches the daemon of that life.
    Answered(u64, Call, RequestId, Option<MessageId>),
    Patches {
        life: u64,
        patch: Patch,
        card: Arc<str>,
        is_answered: bool,
    },
    Patched(u64, MessageId, Patched),
    TapOver(u64),
    Tick {
        life: u64,
        at: u64,
    },
}

/// Why a card is sent.
#[derive(Debug, Clone, Copy)]
pub(super) enum Call {
    First,
    ForItsName,
}

struct Row {
    version: i64,
    face: Face,
    made: u32,
}

/// A message at Feishu.
struct Message {
    face: Arc<str>,
    /// The taps under way, what each saw, and whether an edit came meanwhile.
    taps: BTreeMap<u64, (Arc<str>, bool)>,
}

pub(super) struct Cards {
    book: CardBook<()>,
    /// When the book is ticked next.
    due: Option<u64>,
    /// A course of its own leaves the rest of the world's as it is.
    rng: SmallRng,
    messages: BTreeMap<u64, Message>,
    taps: BTreeMap<u64, u64>,
    /// Taps that Feishu never put on a line, and the cards they put back.
    swallowed: BTreeSet<u64>,
    excused: BTreeSet<u64>,
    // What a crash does not take.
    outbox: BTreeMap<CardKey, Row>,
    names: BTreeMap<u64, MessageId>,
    versions: i64,
    newest: BTreeMap<u64, Face>,
    /// Requests whose last edit was made often enough.
    spent: BTreeSet<u64>,
}

fn message(n: u64) -> MessageId {
    MessageId::parse(&format!("om_{n}")).expect("an id")
}

fn numbered(message: &MessageId) -> u64 {
    message.as_str()[3..].parse().expect("an id of ours")
}

impl Cards {
    pub(super) fn new(seed: u64, now: Instant) -> Self {
        let nothing = LineView {
            state: LineState::Away(WHY),
            connects: 0,
            lost_heard: None,
        };
        Self {
            book: CardBook::new(nothing, Lang::En, now),
            due: None,
            rng: SmallRng::seed_from_u64(!seed),
            messages: BTreeMap::new(),
            taps: BTreeMap::new(),
            swallowed: BTreeSet::new(),
            excused: BTreeSet::new(),
            outbox: BTreeMap::new(),
            names: BTreeMap::new(),
            versions: 0,
            newest: BTreeMap::new(),
            spent: BTreeSet::new(),
        }
    }

    fn put(&mut self, key: CardKey, face: Face) -> i64 {
        self.versions += 1;
        let version = self.versions;
        let made = 0;
        self.outbox.insert(
            key,
            Row {
                version,
                face,
                made,
            },
        );
        version
    }
}

impl World {
    fn card_dice(&mut self, most: u64) -> u64 {
        self.cards.rng.random_range(0..most)
    }

    pub(super) fn card_asked(&mut self, n: u64, deadline: Millis, sent_before: bool) {
        let now = self.now().mono;
        let left = u64::try_from(deadline - self.millis()).unwrap_or_default();
        let sending = Sending {
            not_before: now,
            latest: now + Duration::from_millis(left),
            needs_line: true,
            is_findable: true,
            sent_before,
        };
        self.cards.book.ask(&id(n), sending, (), now);
    }

    pub(super) fn card_ended(&mut self, settled: &Settled) {
        let (n, now) = (number(&settled.request.id), self.now().mono);
        let face = Face {
            shown: format!("{n} ended").into(),
            kept: format!("{n} ended, kept").into(),
        };
        self.cards.newest.insert(n, face.clone());
        let Some(key) = self.cards.book.end(settled.clone(), &face, now) else {
            return;
        };
        let version = self.cards.put(key.clone(), face.clone());
        let wait = Duration::from_millis(3_200);
        let cards = &mut self.cards.book;
        assert!(cards.recorded(&key, face.shown, Some(version), wait, now));
    }

    /// A person taps; without any line Feishu says so at once.
    pub(super) fn card_tapped(&mut self, tap: u64, n: u64) {
        if self.line.is_some()
            && let Some(message) = self.cards.messages.get_mut(&n)
        {
            let seen = (Arc::clone(&message.face), false);
            message.taps.insert(tap, seen);
            self.cards.taps.insert(tap, n);
            self.later(TAP_LIMIT, Event::Card(CardEvent::TapOver(tap)));
        }
    }

    /// The tap never came to any line, and nobody can know of it.
    pub(super) fn card_tap_swallowed(&mut self, tap: u64) {
        self.cards.swallowed.insert(tap);
    }

    /// The tap came down the line.
    pub(super) fn card_heard(&mut self, n: u64) {
        if self.cards.messages.contains_key(&n) {
            let now = self.now().mono;
            // The network may alter what a tap says of its message.
            let is_altered = !self.is_calm() && self.card_dice(8) == 0;
            let named = message(if is_altered { n + ALTERED } else { n });
            if self.bug != Some(Bug::HidesTaps) {
                self.cards.book.tapped(&named, now);
                self.cards.book.tapped_on(&id(n), &named, now);
            }
            self.cards.book.adopt(&id(n), &named);
        }
    }

    /// Its answer is with Feishu, or its time is over.
    pub(super) fn card_tap_over(&mut self, tap: u64) {
        let over = self.cards.taps.get(&tap).copied();
        let message = over.and_then(|n| self.cards.messages.get_mut(&n));
        if let Some(message) = message
            && let Some((seen, true)) = message.taps.remove(&tap)
        {
            message.face = seen;
            self.cards
                .excused
                .extend(over.filter(|_| self.cards.swallowed.contains(&tap)));
            self.count("edits taken back");
        }
    }

    /// Goes on with what the disk has, as the daemon does: edits, cards without
    /// a name, what ended by the restart, what waits.
    pub(super) fn cards_restart(&mut self, dropped: &[Settled]) {
        let now = self.now().mono;
        let cards = &mut self.cards;
        cards.book = Cards::new(0, now).book;
        cards.due = None;
        for (key, row) in &cards.outbox {
            let kept = Arc::clone(&row.face.kept);
            match key {
                CardKey::Message(message) => {
                    let (message, version) = (message.clone(), row.version);
                    cards.book.restore_face(message.clone(), version, kept);
                    let left = Left {
                        message,
                        version,
                        made: row.made,
                    };
                    cards.book.restore_edit(left, now);
                }
                CardKey::Sending(id) => {
                    let age = Duration::ZERO;
                    cards.book.restore_nameless(id, kept.into(), age, now);
                }
            }
        }
        for settled in dropped {
            let id = &settled.request.id;
            let name = self.cards.names.get(&number(id)).cloned();
            (self.cards.book).restore(id, name.as_ref(), Duration::ZERO, (), now);
            self.card_ended(settled);
        }
        let pending = self.disk.pending.iter();
        let pending: Vec<_> = pending.map(|(n, (it, _))| (*n, it.deadline)).collect();
        for (n, deadline) in pending {
            let name = self.cards.names.get(&n).cloned();
            (self.cards.book).restore(&id(n), name.as_ref(), Duration::ZERO, (), now);
            if name.is_none() {
                self.card_asked(n, deadline, true);
            }
        }
    }

    pub(super) fn card_happens(&mut self, event: CardEvent) {
        let now = self.now().mono;
        match event {
            CardEvent::Arrives(id, face) => {
                let taps = BTreeMap::new();
                let card = Message { face, taps };
                // The same key makes no second one.
                self.cards.messages.entry(number(&id)).or_insert(card);
            }
            CardEvent::Answered(life, call, id, name) if life == self.life => {
                if let Some(name) = &name {
                    self.cards.names.insert(number(&id), name.clone());
                }
                let book = &mut self.cards.book;
                match (call, name) {
                    (Call::First, Some(name)) => book.sent(&id, &name, now),
                    (Call::ForItsName, Some(name)) => book.found(&id, Found::Named(name), now),
                    (Call::ForItsName, None) => book.found(&id, Found::Later, now),
                    (Call::First, None) => {
                        let unsent = Unsent {
                            in_doubt: true,
                            passes: true,
                            retry_after: None,
                            why: WHY,
                        };
                        book.unsent(&id, &unsent, now);
                    }
                }
            }
            CardEvent::Patches {
                life,
                patch,
                card,
                is_answered,
            } => self.card_patched(life, patch, card, is_answered),
            CardEvent::Patched(life, message, patched) if life == self.life => {
                self.cards.book.patched(&message, patched, now);
            }
            CardEvent::TapOver(tap) => self.card_tap_over(tap),
            CardEvent::Tick { life, at } if life == self.life && self.cards.due == Some(at) => {
                self.cards.due = None;
                self.cards.book.tick(now);
            }
            CardEvent::Answered(..) | CardEvent::Patched(..) | CardEvent::Tick { .. } => {}
        }
    }

    fn card_patched(&mut self, life: u64, patch: Patch, card: Arc<str>, is_answered: bool) {
        let n = numbered(&patch.message);
        let message = self.cards.messages.get_mut(&n).expect("it was named");
        message.face = card;
        for (_, patched) in message.taps.values_mut() {
            *patched = true;
        }
        let patched = if is_answered {
            Patched::Taken
        } else {
            Patched::Passing(None)
        };
        let back = 1 + self.card_dice(300);
        let answer = CardEvent::Patched(life, patch.message, patched);
        self.later(back, Event::Card(answer));
    }

    /// Tells the book how the line is, and does what it asks for.
    pub(super) fn cards_carry_out(&mut self) {
        let (now, life) = (self.now().mono, self.life);
        let state = match self.link.phase() {
            Phase::Up { .. } => LineState::Up,
            Phase::Degraded { why, .. } => LineState::ShutOut(why.clone()),
            Phase::Dialing { .. } | Phase::Waiting { .. } => LineState::Away(WHY),
        };
        let view = LineView {
            state,
            connects: self.link.counts.connects,
            lost_heard: self.link.counts.lost_heard,
        };
        self.cards.book.line(view, now);
        while let Some(effect) = self.cards.book.step() {
            match effect {
                CardEffect::Send(id) => {
                    let ended = self.cards.book.face_to_come(&id).cloned();
                    let shown = ended.map_or_else(|| "waits".into(), |face| face.shown);
                    self.card_call(Call::First, id, shown);
                }
                CardEffect::Look(id, face) => {
                    self.count("cards looked for");
                    self.card_call(Call::ForItsName, id, face.shown);
                }
                CardEffect::GiveUp(..) => {}
                CardEffect::Keep(keep) => {
                    let key = CardKey::Message(keep.message.clone());
                    let version = self.cards.put(key, keep.face.clone());
                    self.cards.book.kept(&keep, Some(version), now);
                }
                CardEffect::Patch(patch) => self.card_patch(life, patch),
                CardEffect::Made(message, version) => {
                    let row = self.cards.outbox.get_mut(&CardKey::Message(message));
                    if let Some(row) = row.filter(|row| row.version == version) {
                        row.made += 1;
                    }
                }
                CardEffect::StrikeOff(key, version) => {
                    let row = self.cards.outbox.get(&key);
                    let row = row.filter(|row| version.is_none_or(|it| it == row.version));
                    let Some(made) = row.map(|row| row.made) else {
                        continue;
                    };
                    self.cards.outbox.remove(&key);
                    if let CardKey::Message(message) = key
                        && made >= ENOUGH
                    {
                        self.cards.spent.insert(numbered(&message));
                    }
                }
            }
        }
        if let Some(next) = self.cards.book.next_tick() {
            let wait = next.saturating_duration_since(now).as_micros();
            let wait = u64::try_from(wait.div_ceil(1_000)).expect("a day at most");
            let at = self.mono + wait.max(1);
            if self.cards.due.is_none_or(|due| at < due) {
                self.cards.due = Some(at);
                self.later(wait.max(1), Event::Card(CardEvent::Tick { life, at }));
            }
        }
    }

    fn card_call(&mut self, call: Call, id: RequestId, shown: Arc<str>) {
        let (life, takes) = (self.life, 1 + self.card_dice(300));
        let fate = if self.is_calm() {
            9
        } else {
            self.card_dice(10)
        };
        let back = takes + 1 + self.card_dice(1_000);
        let name = (fate > 1).then(|| message(number(&id)));
        if fate > 0 {
            let arrives = CardEvent::Arrives(id.clone(), shown);
            self.later(takes, Event::Card(arrives));
        }
        let answer = CardEvent::Answered(life, call, id, name);
        self.later(back, Event::Card(answer));
    }

    fn card_patch(&mut self, life: u64, patch: Patch) {
        if numbered(&patch.message) >= ALTERED {
            let unknown = CardEvent::Patched(life, patch.message, Patched::Refused);
            return self.later(1, Event::Card(unknown));
        }
        let card = match &patch.edit {
            PatchOf::Soon(card) | PatchOf::Unkept(card) | PatchOf::Kept(_, Some(card)) => {
                Arc::clone(card)
            }
            PatchOf::Kept(_, None) => {
                let key = CardKey::Message(patch.message.clone());
                Arc::clone(&self.cards.outbox[&key].face.kept)
            }
        };
        let is_answered = self.is_calm() || self.card_dice(8) > 0;
        let takes = 1 + self.card_dice(300);
        let patches = CardEvent::Patches {
            life,
            patch,
            card,
            is_answered,
        };
        self.later(takes, Event::Card(patches));
    }

    /// Every card that is there says how its request ended.
    pub(super) fn judge_cards(&self) {
        let seed = self.seed;
        let left: Vec<_> = self.cards.outbox.keys().collect();
        assert!(left.is_empty(), "seed {seed}: never made true: {left:?}");
        for (n, message) in &self.cards.messages {
            let Face { shown, kept } = &self.cards.newest[n];
            let is_true = message.face == *shown || message.face == *kept;
            let shows = &message.face;
            let excused = self.cards.spent.contains(n) || self.cards.excused.contains(n);
            assert!(is_true || excused, "seed {seed}: card {n} shows {shows:?}");
        }
    }
}
