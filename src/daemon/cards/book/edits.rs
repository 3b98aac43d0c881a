//! The edits that make cards true: which is made when, which is made again, and
//! which stays. For each message only the newest counts.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::memory::{CardText, Memory};
use super::taps::{HeardTaps, OVER_AFTER};
use super::{CardEffect, CardKey};
use crate::ids::MessageId;

/// Some may hang for as long as a call may take, and the others must not wait
/// for them.
const EDITS_AT_ONCE: usize = 32;
/// Half of the slots stay free for new edits.
const REPEATS_AT_ONCE: usize = EDITS_AT_ONCE / 2;
/// Edits that wait with their cards in memory; one too many is taken from the
/// disk when its time has come.
const MAX_WAITING_EDITS: usize = 16_384;
/// Edits that wait by name, their cards on disk; as many as the disk keeps.
const MAX_PUT_OFF: usize = 10_000;
const MAX_SHOWN: usize = 4_096;
/// More taps than people make in a second.
const MAX_SOON: usize = 256;
/// By then the answer to a tap has reached Feishu, or is late.
const ANSWERED_BY: Duration = Duration::from_millis(300);
/// An edit before the one that is kept may not come after it.
const SOON: Duration = Duration::from_secs(1);
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MOST: Duration = Duration::from_secs(60);
/// A week at [`RETRY_MOST`]; Feishu edits no message older than fourteen days.
const MAX_TRIES: u32 = 10_000;
/// A connection that dies is noticed within twenty seconds even if nobody
/// waits, and a tap that was lost with it is over three seconds later: after
/// this an edit stays.
pub(super) const STAYS_AFTER: Duration = Duration::from_secs(25);
/// Made so often, each time after whatever may have taken it back was over, an
/// edit stays: where connections and daemons die every few seconds there is no
/// better time to wait for, and the others need theirs.
pub(super) const ENOUGH: u32 = 3;

/// A card to be changed at Feishu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    pub message: MessageId,
    pub edit: PatchOf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchOf {
    /// Made at once or not at all, before the one that is kept.
    Soon(CardText),
    /// Could not be kept on disk.
    Unkept(CardText),
    /// What people saw of it; `None` where only the disk knows.
    Kept(i64, Option<CardText>),
}

/// What became of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patched {
    Taken,
    /// It did not come about, for a cause that passes.
    Passing(Option<Duration>),
    /// The disk has it no more, or Feishu will never take it.
    Refused,
}

/// An edit that the last daemon left, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    pub message: MessageId,
    pub version: i64,
    /// How often Feishu took it; it may have been taken back.
    pub made: u32,
}

#[derive(Debug)]
struct Edit {
    version: Option<i64>,
    /// Let go once it was made.
    card: Option<CardText>,
    made: u32,
    tries: u32,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Waiting(Lane, Slot),
    /// It is time, and another edit of the same message is under way.
    Ready(Lane),
    Making,
    /// Feishu took it, and may take it back.
    Shown(Instant),
}

/// Who goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lane {
    New,
    Again,
}

/// A time, and a number that tells apart what has the same.
type Slot = (Instant, u64);

/// An edit that is with Feishu: two of one message that overtake each other
/// would leave the older face.
#[derive(Debug)]
struct Making {
    version: Option<i64>,
    soon: bool,
    lane: Lane,
    began: Instant,
}

#[derive(Debug)]
struct Soon {
    message: MessageId,
    card: CardText,
    not_before: Instant,
}

#[derive(Debug, Default)]
pub(super) struct Edits {
    all: HashMap<MessageId, Edit>,
    new: BTreeMap<Slot, MessageId>,
    again: BTreeMap<Slot, MessageId>,
    soon: Vec<Soon>,
    making: HashMap<MessageId, Making>,
    /// In the order they were taken. One that was replaced stays in the list
    /// for its time.
    shown: VecDeque<(Instant, MessageId, i64)>,
    slots: u64,
}

impl Edits {
    /// A card is to change; false when there is no room for it.
    pub(super) fn queue(
        &mut self,
        message: &MessageId,
        version: Option<i64>,
        card: CardText,
        not_before: Instant,
    ) -> bool {
        self.drop_edit(message);
        let mut edit = Edit {
            version,
            card: Some(card),
            made: 0,
            tries: 0,
            stage: Stage::Making,
        };
        let lane = if self.new.len() < MAX_WAITING_EDITS {
            Lane::New
        } else if version.is_some() && self.again.len() < MAX_PUT_OFF {
            edit.card = None;
            Lane::Again
        } else {
            return false;
        };
        edit.stage = self.wait(message, lane, not_before);
        self.all.insert(message.clone(), edit);
        true
    }

    pub(super) fn queue_soon(&mut self, message: MessageId, card: CardText, now: Instant) {
        self.soon.retain(|soon| soon.message != message);
        if self.soon.len() < MAX_SOON {
            self.soon.push(Soon {
                message,
                card,
                not_before: now + ANSWERED_BY,
            });
        }
    }

    /// Goes on with what the last daemon left: at once with what was never
    /// made, and with the rest when no tap of its time can be under way.
    pub(super) fn restore(&mut self, left: Left, taps: &HeardTaps, now: Instant) {
        if self.again.len() >= MAX_PUT_OFF || self.all.contains_key(&left.message) {
            return;
        }
        let due = if left.made == 0 {
            now
        } else {
            taps.losses_over_at()
        };
        let edit = Edit {
            version: Some(left.version),
            card: None,
            made: left.made,
            tries: 0,
            stage: self.wait(&left.message, Lane::Again, due),
        };
        self.all.insert(left.message, edit);
    }

    pub(super) fn version(&self, message: &MessageId) -> Option<i64> {
        self.all.get(message)?.version
    }

    /// A tap was heard. It may have been under way for all its three seconds,
    /// and then it takes back what was made meanwhile.
    pub(super) fn tapped(&mut self, message: &MessageId, now: Instant) {
        if let Some(edit) = self.all.get(message)
            && let Stage::Shown(at) = edit.stage
            && at + OVER_AFTER >= now
        {
            self.make_again(message, now + OVER_AFTER);
        }
    }

    /// Taps may have been lost since then: what was made after it is made
    /// again once they are over.
    pub(super) fn doubt(&mut self, since: Instant, over_at: Instant) {
        let sure = (self.shown).partition_point(|(at, _, _)| *at + OVER_AFTER < since);
        for (at, message, version) in self.shown.split_off(sure) {
            if self.is_shown(&message, version, at) {
                self.make_again(&message, over_at);
            }
        }
    }

    /// Feishu is back: what failed while it was away is tried at once.
    pub(super) fn retry(&mut self, now: Instant) {
        let failed = self.all.iter().filter_map(|(message, edit)| {
            let Stage::Waiting(lane, slot) = edit.stage else {
                return None;
            };
            (edit.tries > 0).then(|| (slot, lane, message.clone()))
        });
        let mut failed: Vec<_> = failed.collect();
        failed.sort_unstable_by_key(|(slot, _, _)| *slot);
        for ((at, _), lane, message) in failed {
            self.move_to(&message, lane, at.min(now));
        }
    }

    pub(super) fn patched(
        &mut self,
        message: &MessageId,
        patched: Patched,
        taps: &HeardTaps,
        now: Instant,
        effects: &mut VecDeque<CardEffect>,
    ) {
        let Some(made) = self.making.remove(message) else {
            return;
        };
        let current = self.all.get_mut(message);
        let current = current.filter(|edit| edit.stage == Stage::Making && !made.soon);
        if let Some(edit) = current {
            match patched {
                Patched::Taken => self.taken(message, &made, taps, now, effects),
                Patched::Passing(after) if edit.tries < MAX_TRIES => {
                    edit.tries += 1;
                    let grown = RETRY_FIRST * 2_u32.saturating_pow(edit.tries.min(6));
                    let wait = after.unwrap_or(grown).min(RETRY_MOST);
                    self.move_to(message, made.lane, now + wait);
                }
                Patched::Passing(_) | Patched::Refused => self.strike_off(message, effects),
            }
        }
        if let Some(edit) = self.all.get(message)
            && let Stage::Ready(lane) = edit.stage
        {
            self.move_to(message, lane, now);
        }
    }

    fn taken(
        &mut self,
        message: &MessageId,
        made: &Making,
        taps: &HeardTaps,
        now: Instant,
        effects: &mut VecDeque<CardEffect>,
    ) {
        let (Some(edit), Some(version)) = (self.all.get_mut(message), made.version) else {
            // It is not on disk, so nothing is known of it later.
            self.all.remove(message);
            return;
        };
        edit.made += 1;
        edit.tries = 0;
        edit.card = None;
        effects.push_back(CardEffect::Made(message.clone(), version));
        let losses_over = taps.losses_over_at();
        let heard = taps.over_at(message).filter(|over| made.began < *over);
        if edit.made >= ENOUGH {
            self.strike_off(message, effects);
        } else if made.began < losses_over {
            self.make_again(message, losses_over.max(now + OVER_AFTER));
        } else if let Some(over) = heard {
            self.make_again(message, over.max(now));
        } else {
            edit.stage = Stage::Shown(now);
            self.shown.push_back((now, message.clone(), version));
            if self.shown.len() > MAX_SHOWN {
                self.stays(effects);
            }
        }
    }

    /// Starts what is due, and strikes off what stays.
    pub(super) fn tick(
        &mut self,
        memory: &Memory,
        now: Instant,
        effects: &mut VecDeque<CardEffect>,
    ) {
        while (self.shown.front()).is_some_and(|(at, _, _)| *at + STAYS_AFTER <= now) {
            self.stays(effects);
        }
        self.start_soon(now, effects);
        while self.has_slot(Lane::New)
            && let Some(message) = due(&mut self.new, now)
        {
            self.start(message, Lane::New, memory, now, effects);
        }
        while self.has_slot(Lane::Again)
            && let Some(message) = due(&mut self.again, now)
        {
            self.start(message, Lane::Again, memory, now, effects);
        }
    }

    pub(super) fn next_tick(&self) -> Option<Instant> {
        let first = |lane: Lane, slots: &BTreeMap<Slot, MessageId>| {
            let slot = slots.first_key_value().filter(|_| self.has_slot(lane));
            slot.map(|((at, _), _)| *at)
        };
        let soon = self.soon.iter().map(|soon| {
            let waits = self.making.contains_key(&soon.message) || !self.has_slot(Lane::New);
            soon.not_before + if waits { SOON } else { Duration::ZERO }
        });
        let shown = self.shown.front().map(|(at, _, _)| *at + STAYS_AFTER);
        let new = first(Lane::New, &self.new);
        let again = first(Lane::Again, &self.again);
        soon.chain(shown).chain(new).chain(again).min()
    }

    fn start_soon(&mut self, now: Instant, effects: &mut VecDeque<CardEffect>) {
        for soon in std::mem::take(&mut self.soon) {
            let is_free = self.has_slot(Lane::New) && !self.making.contains_key(&soon.message);
            if soon.not_before + SOON <= now {
                continue;
            }
            if soon.not_before > now || !is_free {
                self.soon.push(soon);
                continue;
            }
            let making = Making {
                version: None,
                soon: true,
                lane: Lane::New,
                began: now,
            };
            self.making.insert(soon.message.clone(), making);
            effects.push_back(CardEffect::Patch(Patch {
                message: soon.message,
                edit: PatchOf::Soon(soon.card),
            }));
        }
    }

    fn start(
        &mut self,
        message: MessageId,
        lane: Lane,
        memory: &Memory,
        now: Instant,
        effects: &mut VecDeque<CardEffect>,
    ) {
        let Some(edit) = self.all.get_mut(&message) else {
            return;
        };
        if self.making.contains_key(&message) {
            edit.stage = Stage::Ready(lane);
            return;
        }
        edit.stage = Stage::Making;
        let making = Making {
            version: edit.version,
            soon: false,
            lane,
            began: now,
        };
        let card = edit.card.clone();
        let edit = match (edit.version, card) {
            (Some(version), Some(card)) => PatchOf::Kept(version, Some(card)),
            (Some(version), None) => {
                PatchOf::Kept(version, memory.face_of(&message, version).cloned())
            }
            (None, Some(card)) => PatchOf::Unkept(card),
            (None, None) => return,
        };
        self.making.insert(message.clone(), making);
        effects.push_back(CardEffect::Patch(Patch { message, edit }));
    }

    fn has_slot(&self, lane: Lane) -> bool {
        let repeats = || self.making.values().filter(|made| made.lane == Lane::Again);
        self.making.len() < EDITS_AT_ONCE
            && (lane == Lane::New || repeats().count() < REPEATS_AT_ONCE)
    }

    /// The one that was taken first has stood for so long that it stays.
    fn stays(&mut self, effects: &mut VecDeque<CardEffect>) {
        if let Some((at, message, version)) = self.shown.pop_front()
            && self.is_shown(&message, version, at)
        {
            self.strike_off(&message, effects);
        }
    }

    fn is_shown(&self, message: &MessageId, version: i64, at: Instant) -> bool {
        let edit = self.all.get(message);
        edit.is_some_and(|edit| edit.version == Some(version) && edit.stage == Stage::Shown(at))
    }

    fn strike_off(&mut self, message: &MessageId, effects: &mut VecDeque<CardEffect>) {
        if let Some(version) = self.drop_edit(message).and_then(|edit| edit.version) {
            let key = CardKey::Message(message.clone());
            effects.push_back(CardEffect::StrikeOff(key, Some(version)));
        }
    }

    /// One too many is left to the next start.
    fn make_again(&mut self, message: &MessageId, due: Instant) {
        if self.again.len() < MAX_PUT_OFF {
            self.move_to(message, Lane::Again, due);
        } else {
            self.drop_edit(message);
        }
    }

    fn drop_edit(&mut self, message: &MessageId) -> Option<Edit> {
        let edit = self.all.remove(message)?;
        if let Stage::Waiting(lane, slot) = edit.stage {
            self.lane(lane).remove(&slot);
        }
        Some(edit)
    }

    fn move_to(&mut self, message: &MessageId, lane: Lane, at: Instant) {
        if let Some(mut edit) = self.drop_edit(message) {
            edit.stage = self.wait(message, lane, at);
            self.all.insert(message.clone(), edit);
        }
    }

    fn wait(&mut self, message: &MessageId, lane: Lane, at: Instant) -> Stage {
        self.slots += 1;
        let slot = (at, self.slots);
        self.lane(lane).insert(slot, message.clone());
        Stage::Waiting(lane, slot)
    }

    fn lane(&mut self, lane: Lane) -> &mut BTreeMap<Slot, MessageId> {
        match lane {
            Lane::New => &mut self.new,
            Lane::Again => &mut self.again,
        }
    }
}

fn due(slots: &mut BTreeMap<Slot, MessageId>, now: Instant) -> Option<MessageId> {
    let first = slots.first_entry().filter(|first| first.key().0 <= now)?;
    Some(first.remove())
}

#[cfg(test)]
mod tests;
