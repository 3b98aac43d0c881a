//! The machines that a gateway has heard of, and those that were forgotten. Kept
//! in a file so that a restart forgets neither. Pure but for reading that file.

use std::collections::HashMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::forget::ForgetError;
use crate::bus::nkey::{KeyKind, PublicKey};
use crate::bus::pass::{LONGEST, Pass, Revoked, Seconds};
use crate::bus::subjects::{MachinePlace, Owner, machine_of};
use crate::files;
use crate::ids::MachineId;

/// Where it is kept, in the state directory.
pub(super) const FILE: &str = "team.json";
const MAX_MACHINES: usize = 2_000;
/// Of one person, so that nobody crowds out the others.
const MAX_OWN: usize = 32;
const MAX_FORGOTTEN: usize = 4_096;
const MAX_SPENT: usize = 1_024;
const MAX_NAME: usize = 64;
/// Whoever was away for so long has no pass any more.
const KEPT_FOR: Seconds = LONGEST;

/// One machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KnownMachine {
    pub(super) owner: String,
    pub(super) key: String,
    pub(super) name: String,
    pub(super) version: String,
    /// When it was heard last, by Feishu's time.
    pub(super) seen: Seconds,
    /// When it joined.
    #[serde(default)]
    joined: Seconds,
}

/// What became of a line for joining.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Used {
    By(PublicKey),
    /// The owner keeps out whoever asked with it.
    Refused,
}

impl Used {
    pub(super) fn key(self) -> Option<PublicKey> {
        match self {
            Self::By(key) => Some(key),
            Self::Refused => None,
        }
    }

    pub(super) fn of(key: Option<PublicKey>) -> Self {
        key.map_or(Self::Refused, Self::By)
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct RosterFile {
    machines: Vec<KnownMachine>,
    forgotten: Vec<(String, Seconds)>,
    /// The lines that were used, by whom, and until when they would count.
    #[serde(default)]
    spent: Vec<(String, Option<String>, Seconds)>,
}

#[derive(Debug, Default)]
pub(super) struct Roster {
    machines: HashMap<PublicKey, KnownMachine>,
    /// Passes of a key that were made up to then no longer count.
    forgotten: HashMap<PublicKey, Seconds>,
    /// The keys that were forgotten, by the machines' names.
    gone: HashMap<MachineId, PublicKey>,
    spent: HashMap<String, (Used, Seconds)>,
    /// Whether the file is older than this.
    changed: bool,
}

/// Cuts what a machine says of itself to what is kept: one short line.
pub(super) fn short(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_NAME.min(text.len()));
    text[..end].replace(char::is_control, " ")
}

impl Roster {
    /// What was kept; nothing where it can't be read: the server knows as well
    /// whose passes no longer count.
    pub(super) fn read(file: &Path) -> Self {
        let bytes = files::read(file).ok().flatten().unwrap_or_default();
        let file: RosterFile = serde_json::from_slice(&bytes).unwrap_or_default();
        let key = |text: &str| PublicKey::parse(text, KeyKind::User).ok();
        let machines = file.machines.into_iter().take(MAX_MACHINES);
        let forgotten = file.forgotten.into_iter().take(MAX_FORGOTTEN);
        let forgotten: HashMap<_, _> = forgotten
            .filter_map(|(text, from)| Some((key(&text)?, from)))
            .collect();
        Self {
            machines: machines
                .filter_map(|one| Some((key(&one.key)?, one)))
                .filter(|(_, one)| Owner::parse(&one.owner).is_some())
                .collect(),
            gone: forgotten.keys().map(by_name).collect(),
            forgotten,
            spent: file
                .spent
                .into_iter()
                .take(MAX_SPENT)
                .map(|(ticket, by, until)| {
                    let by = by.as_deref().and_then(key);
                    (ticket, (Used::of(by), until))
                })
                .collect(),
            changed: false,
        }
    }

    /// What is to be kept, if that has changed.
    pub(super) fn text(&mut self) -> Option<String> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        let mut machines: Vec<KnownMachine> = self.machines.values().cloned().collect();
        machines.sort_by(|one, other| one.key.cmp(&other.key));
        let forgotten = self.forgotten.iter();
        let forgotten = forgotten.map(|(key, from)| (key.to_string(), *from));
        let mut file = RosterFile {
            machines,
            forgotten: forgotten.collect(),
            spent: self
                .spent
                .iter()
                .map(|(ticket, (used, until))| {
                    let by = used.key().map(|key| key.to_string());
                    (ticket.clone(), by, *until)
                })
                .collect(),
        };
        file.forgotten.sort();
        file.spent.sort();
        serde_json::to_string(&file).ok()
    }

    /// A machine says that it is there.
    pub(super) fn here(&mut self, pass: &Pass, name: &str, version: &str, now: Seconds) {
        let owner = pass.place.owner.as_str();
        if !self.machines.contains_key(&pass.key) {
            let own = self.machines.values().filter(|one| one.owner == owner);
            if own.count() >= MAX_OWN {
                self.drop_oldest(|one| one.owner == owner);
            }
            if self.machines.len() >= MAX_MACHINES {
                self.drop_oldest(|_| true);
            }
        }
        let known = KnownMachine {
            owner: owner.to_owned(),
            key: pass.key.to_string(),
            name: short(name),
            version: short(version),
            seen: now,
            joined: pass.made,
        };
        self.machines.insert(pass.key, known);
        self.machines.retain(|_, one| one.seen + KEPT_FOR > now);
        self.changed = true;
    }

    fn drop_oldest(&mut self, among: impl Fn(&KnownMachine) -> bool) {
        let among = self.machines.iter().filter(|(_, one)| among(one));
        if let Some(key) = among.min_by_key(|(_, one)| one.seen).map(|(key, _)| *key) {
            self.machines.remove(&key);
        }
    }

    /// The machines of one person, by name.
    pub(super) fn of(&self, owner: &Owner) -> Vec<(MachinePlace, KnownMachine)> {
        let all = self.machines.iter();
        let own = all.filter(|(_, one)| one.owner == owner.as_str());
        let mut own: Vec<(MachinePlace, KnownMachine)> = own
            .map(|(key, one)| (MachinePlace::of(owner.clone(), key), one.clone()))
            .collect();
        own.sort_by(|(_, one), (_, other)| (&one.name, &one.key).cmp(&(&other.name, &other.key)));
        own
    }

    pub(super) fn len(&self) -> usize {
        self.machines.len()
    }

    /// How many were heard since then.
    pub(super) fn heard_since(&self, then: Seconds) -> usize {
        let all = self.machines.values();
        all.filter(|one| one.seen >= then).count()
    }

    /// The one machine that goes by this name: what people call it, its id, or
    /// its key.
    pub(super) fn one(
        &self,
        name: &str,
        owner: Option<&Owner>,
    ) -> Result<(MachinePlace, PublicKey), ForgetError> {
        let all = self.machines.iter().filter_map(|(key, one)| {
            let place = MachinePlace::of(Owner::parse(&one.owner)?, key);
            let is_theirs = owner.is_none_or(|owner| *owner == place.owner);
            (is_theirs && goes_by(name, &place, one)).then_some((place, *key))
        });
        let mut all: Vec<(MachinePlace, PublicKey)> = all.collect();
        match (all.len(), owner, PublicKey::parse(name, KeyKind::User)) {
            (1, _, _) => Ok(all.swap_remove(0)),
            (0, Some(owner), Ok(key)) => Ok((MachinePlace::of(owner.clone(), &key), key)),
            (0, _, _) => Err(ForgetError::Unknown(name.to_owned())),
            _ => {
                let mut all: Vec<String> = all.iter().map(|(place, _)| place.to_string()).collect();
                all.sort();
                Err(ForgetError::Several {
                    name: name.to_owned(),
                    all: all.join(", "),
                })
            }
        }
    }

    /// The passes of `key` that were made until `from` no longer count. To hear
    /// it again changes nothing.
    pub(super) fn forget(&mut self, key: PublicKey, from: Seconds, now: Seconds) {
        let known = self.forgotten.get(&key);
        let is_over = from.saturating_add(LONGEST) <= now;
        if is_over || known.is_some_and(|known| *known >= from) {
            return;
        }
        // It may have joined again before this was heard.
        self.machines
            .retain(|of, one| *of != key || one.joined > from);
        let (name, _) = by_name(&key);
        self.gone.insert(name, key);
        self.forgotten.insert(key, from);
        self.forgotten
            .retain(|_, from| from.saturating_add(LONGEST) > now);
        if self.forgotten.len() > MAX_FORGOTTEN {
            let oldest = self.forgotten.iter().min_by_key(|(_, from)| **from);
            if let Some(key) = oldest.map(|(key, _)| *key) {
                self.forgotten.remove(&key);
            }
        }
        if self.gone.len() > self.forgotten.len() {
            let forgotten = &self.forgotten;
            self.gone.retain(|_, key| forgotten.contains_key(key));
        }
        self.changed = true;
    }

    /// Passes of this key that were made up to then no longer count.
    pub(super) fn forgotten_until(&self, key: &PublicKey) -> Option<Seconds> {
        self.forgotten.get(key).copied()
    }

    /// What became of a line, if it was used.
    pub(super) fn used(&self, ticket: &str) -> Option<Used> {
        self.spent.get(ticket).map(|(used, _)| *used)
    }

    /// Uses a line, which counts until then; gives what it was used for first.
    pub(super) fn spend(&mut self, ticket: &str, used: Used, until: Seconds, now: Seconds) -> Used {
        if let Some((first, _)) = self.spent.get(ticket) {
            return *first;
        }
        self.spent.retain(|_, (_, until)| *until > now);
        if self.spent.len() >= MAX_SPENT {
            // Nobody joins rather than somebody twice.
            return Used::Refused;
        }
        self.spent.insert(ticket.to_owned(), (used, until));
        self.changed = true;
        used
    }

    pub(super) fn forgotten(&self) -> Revoked {
        let all = self.forgotten.iter();
        all.map(|(key, from)| (*key, *from)).collect()
    }

    /// Some of the forgotten, the newest first; in as many rounds as it takes,
    /// all of them.
    pub(super) fn some_forgotten(&self, round: usize, most: usize) -> Revoked {
        let mut all = self.forgotten();
        all.sort_by_key(|(_, from)| std::cmp::Reverse(*from));
        let rounds = all.len().div_ceil(most).max(1);
        let skipped = round % rounds * most;
        all.into_iter().skip(skipped).take(most).collect()
    }

    pub(super) fn is_forgotten(&self, pass: &Pass) -> bool {
        let from = self.forgotten.get(&pass.key);
        from.is_some_and(|from| pass.made <= *from)
    }

    /// Whether this machine was forgotten and has not come back since.
    pub(super) fn is_gone(&self, place: &MachinePlace) -> bool {
        let key = self.gone.get(&place.machine);
        key.is_some_and(|key| !self.machines.contains_key(key))
    }
}

fn by_name(key: &PublicKey) -> (MachineId, PublicKey) {
    (machine_of(key), *key)
}

/// Whether a person means this machine.
pub(super) fn goes_by(name: &str, place: &MachinePlace, known: &KnownMachine) -> bool {
    let (name, host) = (name.to_lowercase(), known.name.to_lowercase());
    let short = host.split('.').next().unwrap_or_default();
    name == host
        || name == short
        || name == place.machine.as_str()
        || name == known.key.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::nkey::KeyPair;

    fn pass(owner: &str, n: usize, made: Seconds) -> Pass {
        let mut bytes = [7; 32];
        bytes[..8].copy_from_slice(&n.to_le_bytes());
        let key = KeyPair::of(KeyKind::User, bytes).public();
        Pass {
            place: MachinePlace::of(Owner::parse(owner).unwrap(), &key),
            key,
            signer: KeyPair::of(KeyKind::Account, [1; 32]).public(),
            made,
            until: made + 1_000,
        }
    }

    fn again(roster: &mut Roster) -> Roster {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(FILE);
        files::replace_private(&file, roster.text().unwrap().as_bytes()).unwrap();
        Roster::read(&file)
    }

    #[test]
    fn machines_and_what_was_forgotten_survive_a_restart() {
        let mut roster = Roster::default();
        assert_eq!(roster.text(), None);
        let (desk, gone) = (pass("ou_a", 1, 10), pass("ou_a", 2, 10));
        roster.here(&desk, "desk.local", "1", 20);
        roster.here(&gone, "old", "1", 20);
        roster.forget(gone.key, 30, 30);
        let mut roster = again(&mut roster);
        let own = roster.of(&desk.place.owner);
        assert_eq!(own.len(), 1);
        assert_eq!(own[0].0, desk.place);
        for name in [
            "desk",
            "DESK.local",
            desk.place.machine.as_str(),
            &own[0].1.key,
        ] {
            assert_eq!(roster.one(name, None).unwrap().0, desk.place, "{name}");
        }
        let other = Owner::parse("ou_b").unwrap();
        for (name, owner) in [("des", None), ("", None), ("desk", Some(&other))] {
            let found = roster.one(name, owner);
            assert!(matches!(found, Err(ForgetError::Unknown(_))), "{name}");
        }
        let (foreign, key) = roster.one(&gone.key.to_string(), Some(&other)).unwrap();
        assert_eq!((&foreign.owner, key), (&other, gone.key));
        roster.here(&pass("ou_b", 3, 10), "desk", "1", 20);
        let found = roster.one("desk", None);
        assert!(matches!(found, Err(ForgetError::Several { .. })));
        assert_eq!(
            roster.one("desk", Some(&desk.place.owner)).unwrap().0,
            desk.place
        );
        assert!(roster.is_forgotten(&gone) && roster.is_gone(&gone.place));
        assert!(!roster.is_forgotten(&desk) && !roster.is_gone(&desk.place));
        // Whoever is let in anew has a pass that was made since.
        let back = pass("ou_a", 2, 31);
        assert!(!roster.is_forgotten(&back));
        roster.here(&back, "old", "1", 32);
        assert!(!roster.is_gone(&back.place));
        // A second word does not let an older pass count again.
        roster.forget(gone.key, 5, 40);
        assert!(roster.is_forgotten(&gone));
    }

    #[test]
    fn a_word_that_is_told_again_changes_nothing_and_spares_who_came_back() {
        let mut roster = Roster::default();
        let (gone, back) = (pass("ou_a", 2, 10), pass("ou_a", 2, 31));
        roster.here(&gone, "old", "1", 20);
        roster.forget(gone.key, 30, 30);
        roster.here(&back, "old", "1", 32);
        roster.text();
        roster.forget(gone.key, 30, 40);
        assert_eq!(roster.text(), None, "nothing is written again");
        // Whoever had not heard it meets the machine first.
        let mut away = Roster::default();
        away.here(&back, "old", "1", 32);
        away.forget(gone.key, 30, 40);
        for roster in [&roster, &away] {
            assert!(!roster.is_gone(&back.place) && roster.is_forgotten(&gone));
            assert!(!roster.is_forgotten(&back));
            assert_eq!(roster.of(&back.place.owner).len(), 1);
        }
        away.forget(gone.key, 35, 40);
        assert!(away.is_gone(&back.place) && away.of(&back.place.owner).is_empty());
        // What no pass can be from any more is not taken up.
        away.text();
        let old = pass("ou_a", 3, 1).key;
        away.forget(old, 30, 30 + LONGEST);
        assert_eq!((away.text(), away.forgotten_until(&old)), (None, None));
    }

    #[test]
    fn the_forgotten_are_told_a_few_at_a_time_the_newest_first() {
        let mut roster = Roster::default();
        assert_eq!(roster.some_forgotten(3, 2), []);
        for n in 1..=5 {
            let key = pass("ou_a", n, 1).key;
            roster.forget(key, Seconds::try_from(n).unwrap(), 0);
        }
        let told = |round| {
            let some = roster.some_forgotten(round, 2).into_iter();
            some.map(|(_, from)| from).collect::<Vec<_>>()
        };
        for round in [0, 3, 6] {
            assert_eq!(told(round), [5, 4]);
            assert_eq!(told(round + 1), [3, 2]);
            assert_eq!(told(round + 2), [1]);
        }
    }

    #[test]
    fn nobody_crowds_out_the_others_and_a_file_of_nonsense_is_none() {
        let mut roster = Roster::default();
        roster.here(&pass("ou_b", 0, 1), "b", "1", 1);
        for n in 1..200 {
            let long = "x".repeat(10_000);
            roster.here(&pass("ou_a", n, 1), &long, &long, 2);
        }
        assert_eq!(roster.of(&Owner::parse("ou_a").unwrap()).len(), MAX_OWN);
        assert_eq!(roster.of(&Owner::parse("ou_b").unwrap()).len(), 1);
        for n in 0..2 * MAX_MACHINES {
            let owner = format!("ou_{n}");
            roster.here(&pass(&owner, n + 1_000, 1), "x", "1", 3);
        }
        assert_eq!(roster.machines.len(), MAX_MACHINES);
        let text = roster.text().unwrap();
        assert!(text.len() < 1 << 20, "{}", text.len());
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(FILE);
        std::fs::write(&file, &text[..text.len() / 2]).unwrap();
        assert_eq!(Roster::read(&file).machines.len(), 0);
    }

    #[test]
    fn a_line_is_used_once_whatever_it_was_used_for() {
        let mut roster = Roster::default();
        let (one, other) = (pass("ou_a", 1, 1).key, pass("ou_a", 2, 1).key);
        assert_eq!(roster.used("t"), None);
        assert_eq!(roster.spend("t", Used::By(one), 600, 0), Used::By(one));
        assert_eq!(roster.spend("u", Used::Refused, 600, 0), Used::Refused);
        let mut roster = again(&mut roster);
        for used in [Used::By(other), Used::Refused, Used::By(one)] {
            assert_eq!(roster.spend("t", used, 600, 1), Used::By(one));
            assert_eq!(roster.spend("u", used, 600, 1), Used::Refused);
        }
        for n in 0..MAX_SPENT {
            roster.spend(&n.to_string(), Used::By(one), 600, 2);
        }
        let full = roster.spend("one more", Used::By(one), 600, 3);
        assert_eq!(full, Used::Refused);
        let later = roster.spend("one more", Used::By(one), 1_300, 700);
        assert_eq!(later, Used::By(one));
        assert_eq!(roster.used("t"), None, "its time is over as well");
    }

    #[test]
    fn memory_of_the_forgotten_is_bounded_too() {
        let mut roster = Roster::default();
        for n in 0..MAX_FORGOTTEN + 10 {
            let from = Seconds::try_from(n).unwrap();
            roster.forget(pass("ou_a", n, 1).key, from, 0);
        }
        assert_eq!(roster.forgotten().len(), MAX_FORGOTTEN);
        roster.forget(pass("ou_a", 0, 1).key, 2 * LONGEST, 2 * LONGEST);
        assert_eq!(roster.forgotten().len(), 1);
    }
}
