//! What lets this machine of a team touch a message it sent or was brought. The
//! gateways keep nothing, so a message without its ticket can't be changed.

use rusqlite::params;

use super::StoreError;
use super::db::{DAY, Db};
use crate::clock::Millis;
use crate::ids::MessageId;

/// Feishu lets a message be changed for so long.
const KEPT: Millis = 14 * DAY;
const MAX: i64 = 50_000;

impl Db {
    pub fn keep_ticket(
        &self,
        message: &MessageId,
        ticket: &str,
        at: Millis,
    ) -> Result<(), StoreError> {
        let sql = "INSERT OR REPLACE INTO tickets (message_id, ticket, at) VALUES (?1, ?2, ?3)";
        self.execute(sql, params![message.as_str(), ticket, at])?;
        self.inserted()
    }

    pub fn ticket(&self, message: &MessageId) -> Result<Option<String>, StoreError> {
        self.first(
            "SELECT ticket FROM tickets WHERE message_id = ?1",
            [message.as_str()],
            |row| row.get(0),
        )
    }
}

pub(super) fn prune(db: &Db, now: Millis) -> Result<(), StoreError> {
    db.forget("tickets", "at", now - KEPT)
}

pub(super) fn trim(db: &Db) -> Result<(), StoreError> {
    db.cap("tickets", "message_id", "at DESC", MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::samples::store;

    #[test]
    fn a_ticket_is_kept_as_long_as_its_message_can_be_changed() {
        let db = store();
        let message = MessageId::parse("om_1").unwrap();
        assert_eq!(db.ticket(&message).unwrap(), None);
        db.keep_ticket(&message, "t", 5).unwrap();
        db.keep_ticket(&message, "newer", 6).unwrap();
        assert_eq!(db.ticket(&message).unwrap().as_deref(), Some("newer"));
        db.prune(7 + KEPT).unwrap();
        assert_eq!(db.ticket(&message).unwrap(), None);
    }
}
