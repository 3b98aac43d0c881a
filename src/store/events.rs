//! What was answered to taps: the repetition of an event gets the same answer.

use rusqlite::named_params;

use super::StoreError;
use super::db::{Db, HOUR};
use crate::clock::Millis;
use crate::ids::EventId;

const ANSWERS_KEPT: Millis = HOUR;
const ANSWERS_MAX: i64 = 2_000;
/// A card is at most 30 KB; a longer answer is not worth repeating.
const ANSWER_MAX: usize = 48 * 1024;

impl Db {
    /// Keeps the first answer; an overlong one is not kept.
    pub fn remember_answer(
        &self,
        event: &EventId,
        reply: &[u8],
        at: Millis,
    ) -> Result<(), StoreError> {
        if reply.len() > ANSWER_MAX {
            return Ok(());
        }
        let sql = "INSERT INTO answers (event_id, at, reply) VALUES (:event, :at, :reply)
                 ON CONFLICT (event_id) DO NOTHING";
        self.execute(
            sql,
            named_params! {":event": event.as_str(), ":at": at, ":reply": reply},
        )?;
        self.inserted()
    }

    pub fn answer(&self, event: &EventId) -> Result<Option<Vec<u8>>, StoreError> {
        self.first(
            "SELECT reply FROM answers WHERE event_id = ?1",
            [event.as_str()],
            |row| row.get(0),
        )
    }
}

pub(super) fn prune(db: &Db, now: Millis) -> Result<(), StoreError> {
    db.forget("answers", "at", now - ANSWERS_KEPT)
}

pub(super) fn trim(db: &Db) -> Result<(), StoreError> {
    db.cap("answers", "event_id", "at DESC, event_id", ANSWERS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::samples::store;

    fn event(text: &str) -> EventId {
        EventId::parse(text).unwrap()
    }

    #[test]
    fn a_repeated_event_gets_the_first_answer() {
        let db = store();
        db.remember_answer(&event("e1"), b"one", 5).unwrap();
        db.remember_answer(&event("e1"), b"two", 6).unwrap();
        db.remember_answer(&event("e2"), &vec![0; ANSWER_MAX + 1], 6)
            .unwrap();
        assert_eq!(db.answer(&event("e1")).unwrap().unwrap(), b"one");
        assert_eq!(db.answer(&event("e2")).unwrap(), None);
    }

    #[test]
    fn answers_over_the_cap_go_oldest_first() {
        let db = store();
        db.atomically(|db| {
            for n in 0..=ANSWERS_MAX {
                db.remember_answer(&event(&format!("e{n}")), b"x", n)?;
            }
            Ok(())
        })
        .unwrap();
        db.prune(0).unwrap();
        assert_eq!(db.answer(&event("e0")).unwrap(), None);
        assert!(db.answer(&event("e1")).unwrap().is_some());
    }
}
