//! Chat messages: which were seen, because Feishu repeats them for hours, and
//! which were acknowledged without having had their effect, because Feishu
//! does not repeat those.

use rusqlite::named_params;

use super::StoreError;
use super::db::{DAY, Db, read_id};
use crate::clock::Millis;
use crate::ids::{EventId, MessageId};

/// Feishu's last re-push comes 7 h 20 min after the first.
const KEPT: Millis = DAY;
const SEEN_MAX: i64 = 100_000;
const MAX: i64 = 1_000;
/// Feishu's longest text, escaped, with room for what is around it. A longer
/// push is not kept: it takes its chance.
const PUSH_MAX: usize = 512 * 1024;

/// A message that was acknowledged and may have had no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    pub message: MessageId,
    /// As Feishu pushed it.
    pub push: Vec<u8>,
    /// Something that must not happen twice was begun for it.
    pub begun: bool,
}

impl Db {
    /// Keeps a message until it is dealt with. `false` when it came before.
    pub fn receive(
        &self,
        message: &MessageId,
        event: Option<&EventId>,
        push: &[u8],
        at: Millis,
    ) -> Result<bool, StoreError> {
        self.atomically(|db| {
            let sql = "INSERT INTO seen (event_id, at) VALUES (:message, :at)
                     ON CONFLICT (event_id) DO NOTHING";
            let new = db.execute(sql, named_params! {":message": message.as_str(), ":at": at})?;
            if new == 0 {
                return Ok(false);
            }
            if push.len() <= PUSH_MAX {
                let sql = "INSERT OR REPLACE INTO inbox (message_id, event_id, push, begun, at)
                         VALUES (:message, :event, :push, 0, :at)";
                let with = named_params! {
                    ":message": message.as_str(),
                    ":event": event.map(EventId::as_str),
                    ":push": push,
                    ":at": at,
                };
                db.execute(sql, with)?;
            }
            db.inserted()?;
            Ok(true)
        })
    }

    /// What is done for it from here on must not be done twice.
    pub fn begin(&self, message: &MessageId) -> Result<(), StoreError> {
        self.execute(
            "UPDATE inbox SET begun = 1 WHERE message_id = ?1",
            [message.as_str()],
        )
        .map(drop)
    }

    pub fn dealt_with(&self, message: &MessageId) -> Result<(), StoreError> {
        self.execute(
            "DELETE FROM inbox WHERE message_id = ?1",
            [message.as_str()],
        )
        .map(drop)
    }

    /// What the last run acknowledged and did not finish, oldest first.
    pub fn inbox(&self) -> Result<Vec<Received>, StoreError> {
        self.all("SELECT * FROM inbox ORDER BY at, message_id", [], |row| {
            Ok(Received {
                message: read_id(row, "message_id", MessageId::parse)?,
                push: row.get("push")?,
                begun: row.get("begun")?,
            })
        })
    }
}

/// In the transaction of the ending this event brought about.
pub(super) fn had_effect(db: &Db, event: &EventId) -> Result<(), StoreError> {
    db.execute("DELETE FROM inbox WHERE event_id = ?1", [event.as_str()])
        .map(drop)
}

pub(super) fn prune(db: &Db, now: Millis) -> Result<(), StoreError> {
    db.forget("seen", "at", now - KEPT)?;
    db.forget("inbox", "at", now - KEPT)
}

pub(super) fn trim(db: &Db) -> Result<(), StoreError> {
    db.cap("seen", "event_id", "at DESC, event_id", SEEN_MAX)?;
    db.cap("inbox", "message_id", "at DESC, message_id", MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::samples::{pending, settlement, store};

    fn message(text: &str) -> MessageId {
        MessageId::parse(text).unwrap()
    }

    fn waiting(db: &Db) -> Vec<(String, bool)> {
        let rows = db.inbox().unwrap().into_iter();
        rows.map(|row| (row.message.to_string(), row.begun))
            .collect()
    }

    #[test]
    fn a_message_is_new_once_in_a_day() {
        let db = store();
        let receive = |at| db.receive(&message("om_1"), None, b"push", at).unwrap();
        assert!(receive(5));
        assert!(!receive(6));
        db.dealt_with(&message("om_1")).unwrap();
        db.prune(5 + KEPT).unwrap();
        assert!(!receive(7));
        assert_eq!(waiting(&db), []);
        db.prune(5 + KEPT + 1).unwrap();
        assert!(receive(8));
    }

    #[test]
    fn a_message_waits_until_it_is_dealt_with_and_says_how_far_it_came() {
        let db = store();
        for (id, at) in [("om_2", 1), ("om_1", 2), ("om_3", 3)] {
            assert!(db.receive(&message(id), None, b"push", at).unwrap());
        }
        db.begin(&message("om_1")).unwrap();
        db.dealt_with(&message("om_2")).unwrap();
        assert_eq!(
            waiting(&db),
            [("om_1".to_owned(), true), ("om_3".to_owned(), false)]
        );
        assert_eq!(db.inbox().unwrap()[0].push, b"push");
        let long = vec![0; PUSH_MAX + 1];
        assert!(db.receive(&message("om_4"), None, &long, 4).unwrap());
        assert_eq!(waiting(&db).len(), 2);
    }

    #[test]
    fn an_ending_takes_the_message_that_brought_it_about() {
        let db = store();
        let end = settlement("r1", "deny");
        db.save_pending(&pending("r1")).unwrap();
        for (id, event) in [("om_1", end.event.as_ref()), ("om_2", None)] {
            assert!(db.receive(&message(id), event, b"push", 1).unwrap());
        }
        db.settle(&end).unwrap();
        assert_eq!(waiting(&db), [("om_2".to_owned(), false)]);
    }
}
