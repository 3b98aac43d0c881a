//! Cards that ask for nothing, and whose session each speaks of: a reply to one
//! is for that session and no other, also after a restart.

use rusqlite::named_params;

use super::StoreError;
use super::db::{DAY, Db, read_id};
use crate::clock::Millis;
use crate::ids::{MessageId, SessionId};

const KEPT: Millis = 14 * DAY;
const MAX: i64 = 10_000;
/// Begins the key of a row of `meta` for each notice of an open dialog.
const DIALOG: &str = "dialog ";

/// The session a card speaks of, and the directory it runs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    pub session: SessionId,
    pub project: String,
}

impl Db {
    pub fn notice_sent(
        &self,
        message: &MessageId,
        about: &About,
        at: Millis,
    ) -> Result<(), StoreError> {
        let sql = "INSERT OR REPLACE INTO notices (message_id, session, project, at)
                 VALUES (:message, :session, :project, :at)";
        let with = named_params! {
            ":message": message.as_str(),
            ":session": about.session.as_str(),
            ":project": about.project,
            ":at": at,
        };
        self.execute(sql, with)?;
        self.inserted()
    }

    pub fn notice(&self, message: &MessageId) -> Result<Option<About>, StoreError> {
        self.first(
            "SELECT session, project FROM notices WHERE message_id = ?1",
            [message.as_str()],
            |row| {
                Ok(About {
                    session: read_id(row, "session", SessionId::parse)?,
                    project: row.get("project")?,
                })
            },
        )
    }

    /// A notice says that a dialog waits, or a plan, which it also shows. The
    /// daemon bounds how many.
    pub fn dialog_opened(&self, message: &MessageId, shows: &str) -> Result<(), StoreError> {
        self.set_meta(&format!("{DIALOG}{message}"), shows)
    }

    /// It says so no longer.
    pub fn dialog_over(&self, message: &MessageId) -> Result<(), StoreError> {
        self.execute(
            "DELETE FROM meta WHERE key = ?1",
            [format!("{DIALOG}{message}")],
        )
        .map(drop)
    }

    /// The notices that say so still, with what each speaks of and shows.
    pub fn open_dialogs(&self) -> Result<Vec<(MessageId, About, String)>, StoreError> {
        let mut open = Vec::new();
        for (id, shows) in self.meta_under(DIALOG)? {
            let Ok(message) = MessageId::parse(&id) else {
                continue;
            };
            if let Some(about) = self.notice(&message)? {
                open.push((message, about, shows));
            }
        }
        Ok(open)
    }
}

pub(super) fn prune(db: &Db, now: Millis) -> Result<(), StoreError> {
    db.forget("notices", "at", now - KEPT)
}

pub(super) fn trim(db: &Db) -> Result<(), StoreError> {
    db.cap("notices", "message_id", "at DESC", MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::samples::store;

    #[test]
    fn a_notice_leads_to_its_session_until_it_is_old() {
        let db = store();
        let message = MessageId::parse("om_1").unwrap();
        let about = About {
            session: SessionId::parse("s").unwrap(),
            project: "/home/me/blog".to_owned(),
        };
        assert_eq!(db.notice(&message).unwrap(), None);
        db.notice_sent(&message, &about, 5).unwrap();
        assert_eq!(db.notice(&message).unwrap(), Some(about));
        db.prune(6 + KEPT).unwrap();
        assert_eq!(db.notice(&message).unwrap(), None);
    }
}
