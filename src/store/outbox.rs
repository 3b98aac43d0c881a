//! Card edits that Feishu has not accepted yet, or may still take back. Only the
//! newest per message matters: it is the truth, whatever an older one said.

use rusqlite::{OptionalExtension as _, Row, named_params};

use super::StoreError;
use super::db::{DAY, Db, read_id};
use crate::clock::Millis;
use crate::ids::MessageId;

/// Feishu edits a message for fourteen days after it was sent.
const KEPT: Millis = 14 * DAY;
/// How many are kept; a few more may stand until the next insertions.
pub const MAX_EDITS: u16 = 10_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardEdit {
    pub message: MessageId,
    /// Names this edit in `edit_done`.
    pub version: i64,
    pub card: String,
    pub at: Millis,
}

/// An edit by name, without its card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftEdit {
    pub message: MessageId,
    pub version: i64,
    /// How often Feishu took it; it may have been taken back.
    pub made: u32,
}

impl Db {
    /// Takes the place of an older edit of the same message.
    pub fn put_edit(&self, message: &MessageId, card: &str, at: Millis) -> Result<i64, StoreError> {
        let version = self
            .conn
            .prepare_cached(
                "INSERT OR REPLACE INTO outbox (message_id, card, at)
                 VALUES (:message, :card, :at) RETURNING version",
            )?
            .query_row(
                named_params! {":message": message.as_str(), ":card": card, ":at": at},
                |row| row.get(0),
            )?;
        self.inserted()?;
        Ok(version)
    }

    /// Those that were never made, then the others; oldest first.
    pub fn edits(&self) -> Result<Vec<LeftEdit>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT message_id, version, made FROM outbox ORDER BY made, version",
        )?;
        let rows = query.query_map([], |row| {
            Ok(LeftEdit {
                message: read_id(row, "message_id", MessageId::parse)?,
                version: row.get("version")?,
                made: row.get("made")?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The first so many in the same order, with their cards.
    pub fn first_edits(&self, most: u16) -> Result<Vec<CardEdit>, StoreError> {
        let mut query = self
            .conn
            .prepare_cached("SELECT * FROM outbox ORDER BY made, version LIMIT ?1")?;
        let rows = query.query_map([most], read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Those of messages whose id begins so, oldest first.
    pub fn edits_of(&self, prefix: &str) -> Result<Vec<CardEdit>, StoreError> {
        let mut query = self.conn.prepare_cached(
            "SELECT * FROM outbox
             WHERE message_id >= :prefix AND message_id < :prefix || char(0x10FFFF)
             ORDER BY version",
        )?;
        let rows = query.query_map(named_params! {":prefix": prefix}, read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The card of this edit, unless a newer one has taken its place.
    pub fn edit(&self, message: &MessageId, version: i64) -> Result<Option<String>, StoreError> {
        let card = self
            .conn
            .prepare_cached(
                "SELECT card FROM outbox WHERE message_id = :message AND version = :version",
            )?
            .query_row(
                named_params! {":message": message.as_str(), ":version": version},
                |row| row.get(0),
            )
            .optional()?;
        Ok(card)
    }

    /// Feishu took it; it stays until it can't be taken back.
    pub fn edit_made(&self, message: &MessageId, version: i64) -> Result<(), StoreError> {
        self.conn
            .prepare_cached(
                "UPDATE outbox SET made = made + 1
                 WHERE message_id = :message AND version = :version",
            )?
            .execute(named_params! {":message": message.as_str(), ":version": version})?;
        Ok(())
    }

    /// `false` when a newer edit has taken its place meanwhile.
    pub fn edit_done(&self, message: &MessageId, version: i64) -> Result<bool, StoreError> {
        let removed = self
            .conn
            .prepare_cached(
                "DELETE FROM outbox WHERE message_id = :message AND version = :version",
            )?
            .execute(named_params! {":message": message.as_str(), ":version": version})?;
        Ok(removed > 0)
    }

    /// Forgets whatever edit of this message is kept.
    pub fn drop_edit(&self, message: &MessageId) -> Result<(), StoreError> {
        self.conn
            .prepare_cached("DELETE FROM outbox WHERE message_id = :message")?
            .execute(named_params! {":message": message.as_str()})?;
        Ok(())
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<CardEdit> {
    Ok(CardEdit {
        message: read_id(row, "message_id", MessageId::parse)?,
        version: row.get("version")?,
        card: row.get("card")?,
        at: row.get("at")?,
    })
}

pub(super) fn prune(db: &Db, now: Millis) -> Result<(), StoreError> {
    db.conn
        .execute("DELETE FROM outbox WHERE at < ?1", [now - KEPT])?;
    Ok(())
}

pub(super) fn trim(db: &Db) -> Result<(), StoreError> {
    db.conn.execute(
        "DELETE FROM outbox WHERE version IN (
             SELECT version FROM outbox ORDER BY made, version DESC LIMIT -1 OFFSET ?1)",
        [MAX_EDITS],
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::samples::store;

    #[test]
    fn the_newest_edit_of_a_message_wins() {
        let db = store();
        let message = MessageId::parse("om_1").unwrap();
        let other = MessageId::parse("om_2").unwrap();
        let old = db.put_edit(&message, "old", 1).unwrap();
        db.put_edit(&other, "other", 2).unwrap();
        let new = db.put_edit(&message, "new", 3).unwrap();

        let edits = db.first_edits(3).unwrap().into_iter();
        let cards: Vec<_> = edits.map(|edit| edit.card).collect();
        assert_eq!(cards, ["other", "new"]);
        assert_eq!(db.first_edits(1).unwrap()[0].card, "other");
        assert_eq!(db.edit(&message, old).unwrap(), None);
        assert_eq!(db.edit(&message, new).unwrap().as_deref(), Some("new"));
        assert!(!db.edit_done(&message, old).unwrap());
        assert!(db.edit_done(&message, new).unwrap());
        assert_eq!(db.edits().unwrap().len(), 1);
    }

    #[test]
    fn edits_are_found_by_how_their_message_begins() {
        let db = store();
        for message in ["om_1", "perm-2", "perm-1", "pern"] {
            let message = MessageId::parse(message).unwrap();
            db.put_edit(&message, "card", 1).unwrap();
        }
        let found = db.edits_of("perm-").unwrap();
        let found: Vec<_> = found.iter().map(|edit| edit.message.as_str()).collect();
        assert_eq!(found, ["perm-2", "perm-1"]);
    }

    #[test]
    fn what_was_never_made_comes_before_what_is_only_made_again() {
        let db = store();
        let messages = ["om_1", "om_2", "om_3"].map(|id| MessageId::parse(id).unwrap());
        let versions = messages
            .each_ref()
            .map(|id| db.put_edit(id, "c", 1).unwrap());
        db.edit_made(&messages[0], versions[0]).unwrap();
        db.edit_made(&messages[0], versions[0]).unwrap();
        db.edit_made(&messages[1], versions[0]).unwrap();
        let found = db.edits().unwrap().into_iter();
        let found: Vec<_> = found.map(|edit| (edit.message, edit.made)).collect();
        let [first, second, third] = messages;
        assert_eq!(found, [(second, 0), (third, 0), (first, 2)]);
    }

    #[test]
    fn a_late_done_never_removes_a_later_edit() {
        let db = store();
        let message = MessageId::parse("om_1").unwrap();
        let first = db.put_edit(&message, "first", 1).unwrap();
        assert!(db.edit_done(&message, first).unwrap());
        db.put_edit(&message, "second", 2).unwrap();
        assert!(!db.edit_done(&message, first).unwrap());
        assert_eq!(db.first_edits(1).unwrap()[0].card, "second");
    }

    #[test]
    fn edits_of_messages_feishu_would_refuse_are_dropped() {
        let db = store();
        let message = MessageId::parse("om_1").unwrap();
        db.put_edit(&message, "card", 1).unwrap();
        db.prune(1 + KEPT).unwrap();
        assert_eq!(db.edits().unwrap().len(), 1);
        db.prune(2 + KEPT).unwrap();
        assert_eq!(db.edits().unwrap(), []);
    }
}
