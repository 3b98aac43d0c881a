//! Cards whose request ended before they had a name, because Feishu's answer is
//! missing or the daemon died: each is looked for in its turn, for as long as
//! Feishu knows the key of its sending.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use crate::ids::{MessageId, RequestId};

/// Feishu knows a key for an hour; later it would make a second card.
const KNOWN_FOR: Duration = Duration::from_secs(55 * 60);
const EVERY: Duration = Duration::from_secs(2);
/// Until then the sending itself may bring the name.
const FRESH: Duration = Duration::from_secs(5);
/// As many as the disk keeps.
const MAX: usize = 10_000;

/// What became of a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    Named(MessageId),
    /// Feishu is away.
    Later,
    /// It stays as it is.
    Never,
}

#[derive(Debug)]
pub(super) struct Nameless {
    all: HashMap<RequestId, Unnamed>,
    due: BTreeMap<(Instant, u64), RequestId>,
    puts: u64,
    /// One after the other.
    looks: bool,
    not_before: Instant,
}

#[derive(Debug, Clone, Copy)]
struct Unnamed {
    /// How long Feishu may have known its key at a time.
    known_for: Duration,
    at: Instant,
    due: (Instant, u64),
}

/// What is to be done about one whose turn it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Look(RequestId),
    /// Feishu may have forgotten its key.
    TooOld(RequestId),
}

impl Nameless {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            all: HashMap::new(),
            due: BTreeMap::new(),
            puts: 0,
            looks: false,
            not_before: now,
        }
    }

    /// Its request ended so long ago, and Feishu may know its key for so long.
    /// One too many is left to the next start.
    pub(super) fn put(
        &mut self,
        id: &RequestId,
        known_for: Duration,
        ended: Duration,
        now: Instant,
    ) {
        if self.all.contains_key(id) || self.all.len() >= MAX {
            return;
        }
        let due = self.schedule(id, now + FRESH.saturating_sub(ended));
        let unnamed = Unnamed {
            known_for,
            at: now,
            due,
        };
        self.all.insert(id.clone(), unnamed);
    }

    pub(super) fn remove(&mut self, id: &RequestId) {
        if let Some(unnamed) = self.all.remove(id) {
            self.due.remove(&unnamed.due);
        }
    }

    /// Whose turn it is. While Feishu is away nobody's is, for a while.
    pub(super) fn next(&mut self, now: Instant) -> Option<Turn> {
        if self.looks || now < self.not_before {
            return None;
        }
        let first = self.due.first_entry()?;
        if first.key().0 > now {
            return None;
        }
        let id = first.remove();
        let unnamed = self.all.get(&id)?;
        if unnamed.known_for + now.saturating_duration_since(unnamed.at) >= KNOWN_FOR {
            return Some(Turn::TooOld(id));
        }
        self.looks = true;
        Some(Turn::Look(id))
    }

    pub(super) fn looked(&mut self) {
        self.looks = false;
    }

    /// Not found this time.
    pub(super) fn put_back(&mut self, id: &RequestId, now: Instant) {
        self.not_before = now + EVERY;
        self.hasten(id, now);
    }

    /// Its turn comes now.
    pub(super) fn hasten(&mut self, id: &RequestId, now: Instant) {
        if let Some(unnamed) = self.all.get(id).copied() {
            self.due.remove(&unnamed.due);
            let due = self.schedule(id, now);
            self.all.insert(id.clone(), Unnamed { due, ..unnamed });
        }
    }

    pub(super) fn next_tick(&self) -> Option<Instant> {
        let first = self.due.first_key_value().filter(|_| !self.looks);
        first.map(|((at, _), _)| (*at).max(self.not_before))
    }

    fn schedule(&mut self, id: &RequestId, at: Instant) -> (Instant, u64) {
        self.puts += 1;
        self.due.insert((at, self.puts), id.clone());
        (at, self.puts)
    }
}

#[cfg(test)]
mod tests;
