//! The life of every card and nothing else: when it is sent, what it is called,
//! how it ended, which edit makes it true, and when that edit stays. What
//! happens and the time go in, [`CardEffect`]s come out; it never touches
//! Feishu, the disk or a clock.
//!
//! One rule of Feishu's explains it. A tap on a card is under way until its
//! answer is with Feishu, for three seconds at most; an edit that comes
//! meanwhile is shown, and taken back when the tap is over. nod hears of most
//! taps. Others are lost with a connection that died unnoticed, or with the
//! daemon before this one, and may be on any card. Hence:
//!
//! - an edit waits until the taps on its card that nod heard of are over;
//! - one that was made while a tap may have been under way, heard of or lost,
//!   is made again when it is over;
//! - each is on disk until no tap can take it back any more, or it was made
//!   often enough.
//!
//! Feishu knows a card by the key of its sending before it has told nod the
//! message's name. A request that ends in between has a card without a name:
//! it is sent once more under the same key, which makes no second one.

#[cfg(test)]
mod bench;
mod edits;
mod line;
mod memory;
mod nameless;
mod naming;
mod places;
mod seen;
mod taps;

pub use edits::{Left, Patch, PatchOf, Patched};
pub use line::{LineState, LineView};
pub use memory::{CardText, Decided, Face, MAX_FACES};
pub use nameless::Found;
pub use taps::OVER_AFTER;

use edits::Edits;
use line::Line;
use memory::Memory;
use nameless::Nameless;
use places::{Card, Place};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};
use taps::HeardTaps;

use crate::approvals::Settled;
use crate::approvals::desk::Delivery;
use crate::ids::{CardKey, MessageId, RequestId};
use crate::text::{Lang, Text};

/// More than a card has buttons that ask.
const MAX_ASKING: usize = 16;
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// What is to be done, in this order.
#[derive(Debug, Clone, PartialEq)]
pub enum CardEffect {
    /// Send this request's card; what hangs of an earlier try is given up.
    Send(RequestId),
    /// The card of a request cannot be sent: the terminal decides.
    GiveUp(RequestId, Text),
    /// Send this face under the key of the request's card, to learn its name.
    Look(RequestId, Face),
    /// Keep an edit on disk; it is made once [`CardBook::kept`] tells so.
    Keep(Keep),
    Patch(Patch),
    /// Note on disk that Feishu took this version once more.
    Made(MessageId, i64),
    /// Forget this version of an edit, or whichever there is.
    StrikeOff(CardKey, Option<i64>),
}

/// A face that a card gets now that its name is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Keep {
    pub request: RequestId,
    pub message: MessageId,
    pub face: Face,
    pub of: KeepOf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepOf {
    /// Of a request that waits: not to be kept once it has ended.
    Waiting,
    Ended {
        wait: Duration,
    },
}

/// How a request's card is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sending {
    /// The terminal's head start.
    pub not_before: Instant,
    /// When the hook is told why no card came.
    pub latest: Instant,
    /// Only while a tap could come back; a card that is not has no name.
    pub needs_line: bool,
    /// The next run, which does not know its target, may look for it too.
    pub is_findable: bool,
    /// The last run may have sent it.
    pub sent_before: bool,
}

/// Why a card was not sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Unsent {
    /// It may have been, and only the answer is missing.
    pub in_doubt: bool,
    /// Whether it is worth another try.
    pub passes: bool,
    pub retry_after: Option<Duration>,
    pub why: Text,
}

#[derive(Debug)]
pub struct CardBook<P> {
    cards: HashMap<RequestId, Card<P>>,
    names: HashMap<MessageId, RequestId>,
    /// When each card that is held is looked at.
    due: BTreeSet<(Instant, RequestId)>,
    /// The cards that ask once more about one of a request's buttons.
    asking: HashMap<RequestId, Vec<MessageId>>,
    /// How many of those are on their way.
    unasked: usize,
    /// How many notices are, whose replies are for their sessions.
    untold: usize,
    nameless: Nameless,
    line: Line,
    taps: HeardTaps,
    edits: Edits,
    memory: Memory,
    effects: VecDeque<CardEffect>,
}

impl<P: Default> CardBook<P> {
    pub fn new(view: LineView, lang: Lang, now: Instant) -> Self {
        Self {
            cards: HashMap::new(),
            names: HashMap::new(),
            due: BTreeSet::new(),
            asking: HashMap::new(),
            unasked: 0,
            untold: 0,
            nameless: Nameless::new(now),
            line: Line::new(view),
            taps: HeardTaps::new(now),
            edits: Edits::default(),
            memory: Memory::new(lang),
            effects: VecDeque::new(),
        }
    }

    /// The next thing to do; call until `None` after every input.
    pub fn step(&mut self) -> Option<CardEffect> {
        self.effects.pop_front()
    }

    /// Puts back what was sent before a restart, or may have been, so long ago.
    pub fn restore(
        &mut self,
        id: &RequestId,
        message: Option<&MessageId>,
        age: Duration,
        post: P,
        now: Instant,
    ) {
        let place = match message {
            Some(message) => {
                self.names.insert(message.clone(), id.clone());
                Place::Sent(message.clone())
            }
            None => Place::Left,
        };
        let mut card = Card::new(place, true, post);
        card.set_out = Some((now, age));
        self.cards.insert(id.clone(), card);
    }

    /// Goes on with an edit that the last daemon left, by name.
    pub fn restore_edit(&mut self, left: Left, now: Instant) {
        self.edits.restore(left, &self.taps, now);
        self.tick(now);
    }

    /// What a card should show by an edit that the last daemon left.
    pub fn restore_face(&mut self, message: MessageId, version: i64, card: CardText) {
        self.memory.show(message, Some(version), card);
    }

    /// A card that had no name when its request ended, `age` ago in an earlier
    /// run.
    pub fn restore_nameless(&mut self, id: &RequestId, face: Face, age: Duration, now: Instant) {
        if self.cards.contains_key(id) {
            return;
        }
        let place = Place::Ended {
            face,
            name: None,
            is_kept: true,
        };
        let card = Card::new(place, true, P::default());
        self.cards.insert(id.clone(), card);
        self.nameless.put(id, age, age, now);
        self.tick(now);
    }

    /// A request's card is to be sent.
    pub fn ask(&mut self, id: &RequestId, sending: Sending, post: P, now: Instant) {
        let is_left = |card: &Card<P>| matches!(card.place, Place::Left);
        if !self.cards.get(id).is_none_or(is_left) {
            return;
        }
        let mut card = Card::new(Place::Left, sending.sent_before, post);
        card.sending = Some(sending);
        if let Some(left) = self.cards.remove(id) {
            // A tap may have named it meanwhile.
            card.in_doubt |= left.in_doubt;
            (card.claimed, card.wanted) = (left.claimed, left.wanted);
            card.set_out = left.set_out;
        }
        self.cards.insert(id.clone(), card);
        self.hold(id, sending.not_before, None);
        self.tick(now);
    }

    /// A card that will never be edited needs no place.
    pub fn forget(&mut self, id: &RequestId) {
        self.remove(id);
    }

    /// The card is with Feishu, under this name.
    pub fn sent(&mut self, id: &RequestId, message: &MessageId, now: Instant) {
        self.name(id, message, Duration::ZERO);
        self.tick(now);
    }

    /// The card could not be sent, or its request was gone before it was.
    pub fn unsent(&mut self, id: &RequestId, unsent: &Unsent, now: Instant) {
        let Some(card) = self.cards.get_mut(id) else {
            return;
        };
        card.in_doubt |= unsent.in_doubt;
        match card.place {
            Place::Sending { connects } => {
                let pause = unsent.retry_after.unwrap_or(AGAIN_AFTER);
                let latest = card.sending.map_or(now, |sending| sending.latest);
                if unsent.passes && now + pause <= latest {
                    self.hold(id, now + pause, Some(connects));
                } else {
                    self.give_up(id, unsent.why.clone());
                }
            }
            // It certainly never left: there is nothing to make true.
            Place::Ended { name: None, .. } if !card.in_doubt => self.strike_off(id),
            Place::Ended { .. } | Place::Held { .. } | Place::Left | Place::Sent(_) => {}
        }
        self.tick(now);
    }

    /// What a request's card is to show while it waits.
    pub fn show(&mut self, id: &RequestId, face: Face) {
        let Some(card) = self.cards.get_mut(id) else {
            return;
        };
        let message = match &card.place {
            Place::Sent(message) => Some(message),
            Place::Held { .. } | Place::Left | Place::Sending { .. } => {
                card.wanted = Some(face.clone());
                card.claimed.as_ref()
            }
            Place::Ended { .. } => None,
        };
        if let Some(message) = message {
            self.effects.push_back(CardEffect::Keep(Keep {
                request: id.clone(),
                message: message.clone(),
                face,
                of: KeepOf::Waiting,
            }));
        }
    }

    /// A request has ended: what the edit of its card is kept by, if there may
    /// be a card. One that has no name is edited when it gets one.
    pub fn end(&mut self, settled: Settled, face: &Face, now: Instant) -> Option<CardKey> {
        let id = settled.request.id.clone();
        // Also of one that the last run sent, and nobody since.
        let is_findable = settled.request.question().is_none_or(|it| it.to.is_none());
        self.memory.end(settled, Delivery::Confirmed);
        let mut card = self.remove(&id)?;
        let is_kept = is_findable && card.sending.is_none_or(|sending| sending.is_findable);
        match card.place {
            Place::Sent(message) => {
                self.memory.place(&id, &message);
                return Some(CardKey::Message(message));
            }
            Place::Held { .. } if !card.in_doubt => return None,
            Place::Held { .. } | Place::Left | Place::Sending { .. } | Place::Ended { .. } => {}
        }
        let known_for = card
            .set_out
            .map_or(Duration::ZERO, |(at, age)| now - at + age);
        card.place = Place::Ended {
            face: face.clone(),
            name: None,
            is_kept,
        };
        let key = if is_kept {
            Some(CardKey::Sending(id.clone()))
        } else {
            self.by_its_claim(&id, &card)
        };
        self.cards.insert(id.clone(), card);
        self.nameless.put(&id, known_for, Duration::ZERO, now);
        key
    }

    /// An ending is written down, and with it this version of its card's edit.
    pub fn recorded(
        &mut self,
        key: &CardKey,
        card: CardText,
        version: Option<i64>,
        wait: Duration,
        now: Instant,
    ) -> bool {
        match key {
            CardKey::Message(message) => self.edit(message, card, version, wait, now),
            CardKey::Sending(id) => {
                let ended = |card: &Card<P>| matches!(card.place, Place::Ended { .. });
                // It got its name before this was on disk.
                if !self.cards.get(id).is_some_and(ended) {
                    let struck = CardEffect::StrikeOff(key.clone(), version);
                    self.effects.push_back(struck);
                }
                true
            }
        }
    }

    /// Shows another face than was meant, once a card without a name has one.
    pub fn redraw(&mut self, id: &RequestId, new: &Face) {
        if let Some(card) = self.cards.get_mut(id)
            && let Place::Ended { face, .. } = &mut card.place
        {
            *face = new.clone();
        }
    }

    /// How a request ended; the newest counts.
    pub fn remember_ending(&mut self, settled: Settled, delivery: Delivery) {
        self.memory.end(settled, delivery);
    }

    /// An edit that [`CardEffect::Keep`] asked for is on disk as this version;
    /// `None` where that failed, or the disk knows of no such request that waits.
    pub fn kept(&mut self, keep: &Keep, version: Option<i64>, now: Instant) {
        let (id, shown) = (&keep.request, keep.face.shown.clone());
        let wait = match keep.of {
            KeepOf::Waiting if version.is_none() && self.message_of(id) != Some(&keep.message) => {
                return;
            }
            KeepOf::Waiting => Duration::ZERO,
            KeepOf::Ended { wait } => wait,
        };
        self.edit(&keep.message, shown, version, wait, now);
        let Some(card) = self.cards.get(id) else {
            return;
        };
        if let Place::Ended { face, name, .. } = &card.place
            && let Some((message, wait)) = name
            && *message == keep.message
        {
            if *face == keep.face {
                self.strike_off(id);
            } else {
                let (message, wait) = (message.clone(), *wait);
                self.keep_ending(id, message, wait);
            }
        }
    }

    /// A card whose message is known is to change, after so long; this version
    /// of the edit is on disk. False when there is no room for it.
    pub fn edit(
        &mut self,
        message: &MessageId,
        card: CardText,
        version: Option<i64>,
        wait: Duration,
        now: Instant,
    ) -> bool {
        let known = version.is_some() && self.edits.version(message) >= version;
        if known || !(self.memory).show(message.clone(), version, card.clone()) {
            return true;
        }
        let soonest = now + wait;
        let over = self.taps.over_at(message);
        let not_before = over.map_or(soonest, |over| over.max(soonest));
        let fits = self.edits.queue(message, version, card, not_before);
        self.tick(now);
        fits
    }

    /// Shows a card as soon as the answer to a tap on it is with Feishu. Only
    /// a first try: what must become true is edited later as well.
    pub fn edit_soon(&mut self, message: MessageId, card: CardText, now: Instant) {
        self.edits.queue_soon(message, card, now);
        self.tick(now);
    }

    /// A tap on this message was heard.
    pub fn tapped(&mut self, message: &MessageId, now: Instant) {
        self.taps.hear(message, now);
        self.edits.tapped(message, now);
    }

    /// The connection as it is now.
    pub fn line(&mut self, view: LineView, now: Instant) {
        let before = self.line.connects;
        if let Some(since) = self.line.see(view) {
            self.taps.lose(now);
            self.edits.doubt(since, self.taps.losses_over_at());
        }
        if self.line.connects > before {
            self.edits.retry(now);
        }
        if self.line.is_up() {
            self.send_anew(now);
        }
        // Whoever is held is looked at by what the line is now.
        let held = std::mem::take(&mut self.due);
        for (_, id) in held {
            self.look_at(&id, now);
        }
        self.tick(now);
    }

    /// What became of an edit.
    pub fn patched(&mut self, message: &MessageId, patched: Patched, now: Instant) {
        let (taps, effects) = (&self.taps, &mut self.effects);
        self.edits.patched(message, patched, taps, now, effects);
        self.tick(now);
    }

    /// Somebody knows better where a card without a name is: it is looked for
    /// at once.
    pub fn seek(&mut self, id: &RequestId, now: Instant) {
        self.nameless.hasten(id, now);
        self.tick(now);
    }

    /// What became of a look for a card's name.
    pub fn found(&mut self, id: &RequestId, found: Found, now: Instant) {
        self.nameless.looked();
        match found {
            Found::Named(message) => self.name(id, &message, OVER_AFTER),
            Found::Later => self.nameless.put_back(id, now),
            Found::Never => self.strike_off(id),
        }
        self.tick(now);
    }

    pub fn tick(&mut self, now: Instant) {
        while self.due.first().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, id)) = self.due.pop_first() {
                self.look_at(&id, now);
            }
        }
        self.edits.tick(&self.memory, now, &mut self.effects);
        self.look_for_a_name(now);
    }

    /// When `tick` is due at the latest.
    pub fn next_tick(&self) -> Option<Instant> {
        let held = self.due.first().map(|(at, _)| *at);
        let ticks = [held, self.edits.next_tick(), self.nameless.next_tick()];
        ticks.into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests;
