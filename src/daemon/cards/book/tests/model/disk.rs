//! The model's disk: what is written arrives later, and outlives a crash.

use super::*;

impl World {
    /// Whatever is written takes a moment, in order.
    pub(super) fn write(&mut self, write: Write) {
        let life = self.life;
        self.later(3, Event::Written(life, write));
    }

    pub(super) fn written(&mut self, write: Write) {
        let life = self.life;
        match write {
            Write::Ending { n, key, face, wait } => {
                let Some(card) = self.disk.pending.remove(&n) else {
                    return;
                };
                self.disk.settled.insert(n, card);
                self.newest.insert(n, face.clone());
                let Some(key) = key else { return };
                let version = self.disk.put(key.clone(), face.clone());
                self.tell(life, |book, now| {
                    book.recorded(&key, face.shown, Some(version), wait, now);
                });
            }
            Write::Edit { n, key, face } => {
                self.newest.insert(n, face.clone());
                let version = self.disk.put(key.clone(), face.clone());
                self.tell(life, |book, now| {
                    book.recorded(&key, face.shown, Some(version), Duration::ZERO, now);
                });
            }
            Write::Keep(keep) => {
                let waits = self.disk.pending.contains_key(&number(&keep.request));
                let version = (waits || keep.of != KeepOf::Waiting).then(|| {
                    let key = CardKey::Message(keep.message.clone());
                    self.disk.put(key, keep.face.clone())
                });
                self.tell(life, |book, now| book.kept(&keep, version, now));
            }
            Write::Named(n, message) => {
                for table in [&mut self.disk.pending, &mut self.disk.settled] {
                    if let Some(place) = table.get_mut(&n) {
                        *place = Some(message.clone());
                    }
                }
            }
        }
    }

    pub(super) fn strike_off(&mut self, key: &CardKey, version: Option<i64>) {
        let seed = self.seed;
        let row = self.disk.outbox.get(key);
        let Some(row) = row.filter(|row| version.is_none_or(|it| it == row.version)) else {
            return;
        };
        if let CardKey::Message(message) = key
            && index(message) < ALTERED
        {
            let stays = u64::try_from(STAYS_AFTER.as_millis()).unwrap();
            let at = self.taken.get(&row.version).copied().unwrap_or_default();
            if row.made >= ENOUGH {
                self.enough.insert(row.version);
            } else {
                assert!(row.made > 0, "seed {seed}: struck off and never made");
                assert!(at + stays <= self.now, "seed {seed}: struck off too early");
            }
        }
        self.disk.outbox.remove(key);
    }
}
