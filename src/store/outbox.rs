//! Card edits that Feishu has not accepted yet, or may still take back. Only the
//! newest per message matters: it is the truth, whatever an older one said.

use rusqlite::{Row, named_params};

use super::StoreError;
use super::db::{DAY, Db, read_id};
use crate::clock::Millis;
use crate::ids::{BadId, CardKey, MessageId, RequestId};

/// Feishu edits a message for fourteen days after it was sent.
const KEPT: Millis = 14 * DAY;
/// How many are kept; a few more may stand until the next insertions.
pub const MAX_EDITS: u16 = 10_000;

/// How the key of a sending is told from a message's id in the same column.
const SENDING: &str = "perm-";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardEdit {
    pub key: CardKey,
    /// Names this edit in `edit_done`.
    pub version: i64,
    pub card: String,
    pub at: Millis,
}

/// An edit by name, without its card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftEdit {
    pub key: CardKey,
    pub version: i64,
    /// How often Feishu took it; it may have been taken back.
    pub made: u32,
}

impl Db {
    /// Takes the place of an older edit of the same card.
    pub fn put_edit(&self, key: &CardKey, card: &str, at: Millis) -> Result<i64, StoreError> {
        let sql = "INSERT OR REPLACE INTO outbox (message_id, card, at)
                 VALUES (:message, :card, :at) RETURNING version";
        let with = named_params! {":message": written(key), ":card": card, ":at": at};
        let version = self.one(sql, with, |row| row.get(0))?;
        self.inserted()?;
        Ok(version)
    }

    /// As [`Self::put_edit`], unless the request has ended: a face of its
    /// waiting never takes the place of its ending.
    pub fn put_edit_of_waiting(
        &self,
        request: &RequestId,
        key: &CardKey,
        card: &str,
        at: Millis,
    ) -> Result<Option<i64>, StoreError> {
        self.atomically(|db| {
            if !db.has("SELECT 1 FROM pending WHERE id = ?1", [request.as_str()])? {
                return Ok(None);
            }
            db.put_edit(key, card, at).map(Some)
        })
    }

    /// Those that were never made, then the others; oldest first.
    pub fn edits(&self) -> Result<Vec<LeftEdit>, StoreError> {
        let sql = "SELECT message_id, version, made FROM outbox ORDER BY made, version";
        self.all(sql, [], |row| {
            Ok(LeftEdit {
                key: read_id(row, "message_id", read_key)?,
                version: row.get("version")?,
                made: row.get("made")?,
            })
        })
    }

    /// The first so many in the same order, with their cards.
    pub fn first_edits(&self, most: u16) -> Result<Vec<CardEdit>, StoreError> {
        self.all(
            "SELECT * FROM outbox ORDER BY made, version LIMIT ?1",
            [most],
            read,
        )
    }

    /// Those of cards without a name, oldest first.
    pub fn nameless_edits(&self) -> Result<Vec<CardEdit>, StoreError> {
        let sql = "SELECT * FROM outbox
                   WHERE message_id >= :prefix AND message_id < :prefix || char(0x10FFFF)
                   ORDER BY version";
        self.all(sql, named_params! {":prefix": SENDING}, read)
    }

    /// The card of this edit, unless a newer one has taken its place.
    pub fn edit(&self, message: &MessageId, version: i64) -> Result<Option<String>, StoreError> {
        let sql = "SELECT card FROM outbox WHERE message_id = :message AND version = :version";
        let with = named_params! {":message": message.as_str(), ":version": version};
        self.first(sql, with, |row| row.get(0))
    }

    /// Feishu took it; it stays until it can't be taken back.
    pub fn edit_made(&self, message: &MessageId, version: i64) -> Result<(), StoreError> {
        let sql = "UPDATE outbox SET made = made + 1
                 WHERE message_id = :message AND version = :version";
        self.execute(
            sql,
            named_params! {":message": message.as_str(), ":version": version},
        )
        .map(drop)
    }

    /// Forgets this version of an edit, or whichever is kept. `false` when a
    /// newer edit has taken its place meanwhile.
    pub fn edit_done(&self, key: &CardKey, version: Option<i64>) -> Result<bool, StoreError> {
        let sql = "DELETE FROM outbox WHERE message_id = :message
                 AND version = coalesce(:version, version)";
        Ok(self.execute(
            sql,
            named_params! {":message": written(key), ":version": version},
        )? > 0)
    }
}

fn written(key: &CardKey) -> String {
    match key {
        CardKey::Message(message) => message.to_string(),
        CardKey::Sending(request) => format!("{SENDING}{request}"),
    }
}

fn read_key(text: &str) -> Result<CardKey, BadId> {
    match text.strip_prefix(SENDING) {
        Some(request) => RequestId::parse(request).map(CardKey::Sending),
        None => MessageId::parse(text).map(CardKey::Message),
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<CardEdit> {
    Ok(CardEdit {
        key: read_id(row, "message_id", read_key)?,
        version: row.get("version")?,
        card: row.get("card")?,
        at: row.get("at")?,
    })
}

pub(super) fn prune(db: &Db, now: Millis) -> Result<(), StoreError> {
    db.forget("outbox", "at", now - KEPT)
}

pub(super) fn trim(db: &Db) -> Result<(), StoreError> {
    db.cap("outbox", "version", "made, version DESC", MAX_EDITS.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::samples::{pending, store};

    fn message(text: &str) -> MessageId {
        MessageId::parse(text).unwrap()
    }

    fn key(text: &str) -> CardKey {
        CardKey::Message(message(text))
    }

    #[test]
    fn the_newest_edit_of_a_message_wins() {
        let db = store();
        let (one, other) = (key("om_1"), key("om_2"));
        let old = db.put_edit(&one, "old", 1).unwrap();
        db.put_edit(&other, "other", 2).unwrap();
        let new = db.put_edit(&one, "new", 3).unwrap();

        let edits = db.first_edits(3).unwrap().into_iter();
        let cards: Vec<_> = edits.map(|edit| edit.card).collect();
        assert_eq!(cards, ["other", "new"]);
        assert_eq!(db.first_edits(1).unwrap()[0].card, "other");
        let of = message("om_1");
        assert_eq!(db.edit(&of, old).unwrap(), None);
        assert_eq!(db.edit(&of, new).unwrap().as_deref(), Some("new"));
        assert!(!db.edit_done(&one, Some(old)).unwrap());
        assert!(db.edit_done(&one, Some(new)).unwrap());
        assert_eq!(db.edits().unwrap().len(), 1);
        assert!(db.edit_done(&other, None).unwrap());
        assert_eq!(db.edits().unwrap(), []);
    }

    #[test]
    fn rows_of_an_earlier_nod_are_read_by_what_they_name() {
        let db = store();
        for name in ["om_1", "perm-2", "perm-1", "pern"] {
            let sql = "INSERT INTO outbox (message_id, card, at) VALUES (?1, 'card', 1)";
            db.conn.execute(sql, [name]).unwrap();
        }
        let sending = |id: &str| CardKey::Sending(RequestId::parse(id).unwrap());
        let found = db.nameless_edits().unwrap().into_iter();
        let found: Vec<_> = found.map(|edit| edit.key).collect();
        assert_eq!(found, [sending("2"), sending("1")]);
        let all = db.edits().unwrap().into_iter();
        let all: Vec<_> = all.map(|edit| edit.key).collect();
        let expected = [key("om_1"), sending("2"), sending("1"), key("pern")];
        assert_eq!(all, expected);
        // And an earlier nod reads what this one writes.
        db.put_edit(&sending("3"), "card", 1).unwrap();
        let sql = "SELECT count(*) FROM outbox WHERE message_id = 'perm-3'";
        let rows: i64 = db.conn.query_row(sql, [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 1);
    }

    #[test]
    fn a_face_of_the_waiting_is_not_kept_after_the_end() {
        let db = store();
        let request = pending("r1");
        db.save_pending(&request).unwrap();
        let put = || {
            let put = db.put_edit_of_waiting(&request.id, &key("om_1"), "runs", 1);
            put.unwrap()
        };
        assert!(put().is_some());
        db.settle(&crate::store::samples::settlement("r1", "deny"))
            .unwrap();
        assert_eq!(put(), None);
    }

    #[test]
    fn what_was_never_made_comes_before_what_is_only_made_again() {
        let db = store();
        let messages = ["om_1", "om_2", "om_3"];
        let versions = messages.map(|id| db.put_edit(&key(id), "c", 1).unwrap());
        db.edit_made(&message("om_1"), versions[0]).unwrap();
        db.edit_made(&message("om_1"), versions[0]).unwrap();
        db.edit_made(&message("om_2"), versions[0]).unwrap();
        let found = db.edits().unwrap().into_iter();
        let found: Vec<_> = found.map(|edit| (edit.key, edit.made)).collect();
        let expected = [(key("om_2"), 0), (key("om_3"), 0), (key("om_1"), 2)];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_late_done_never_removes_a_later_edit() {
        let db = store();
        let one = key("om_1");
        let first = db.put_edit(&one, "first", 1).unwrap();
        assert!(db.edit_done(&one, Some(first)).unwrap());
        db.put_edit(&one, "second", 2).unwrap();
        assert!(!db.edit_done(&one, Some(first)).unwrap());
        assert_eq!(db.first_edits(1).unwrap()[0].card, "second");
    }

    #[test]
    fn edits_of_messages_feishu_would_refuse_are_dropped() {
        let db = store();
        db.put_edit(&key("om_1"), "card", 1).unwrap();
        db.prune(1 + KEPT).unwrap();
        assert_eq!(db.edits().unwrap().len(), 1);
        db.prune(2 + KEPT).unwrap();
        assert_eq!(db.edits().unwrap(), []);
    }
}
