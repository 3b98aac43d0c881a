//! Sessions started from a chat: where each lives, what resumes it, and
//! whether it ran when the daemon last wrote.

use rusqlite::types::Type;
use rusqlite::{Row, named_params};
use std::path::{Path, PathBuf};

use super::StoreError;
use super::db::{DAY, Db, read_id, read_optional_id};
use crate::clock::Millis;
use crate::ids::{ChatId, MessageId, RequestId, SessionId};
use crate::sessions::agent::Agent;
use crate::sessions::route::ChatPlace;
use crate::sessions::state::Saved;
use crate::talk::Mode;

const KEPT: Millis = 30 * DAY;
const MAX: i64 = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptSession {
    /// What a person calls it by; never used twice.
    pub number: i64,
    pub saved: Saved,
    pub agent: Agent,
    /// The home of Codex's that holds its thread, where one is known.
    pub home: Option<PathBuf>,
    /// The project's name in the settings.
    pub project: String,
    pub title: String,
    pub place: ChatPlace,
    /// The message its own messages reply to.
    pub anchor: MessageId,
    /// The card that shows its task.
    pub card: Option<MessageId>,
    pub began_at: Millis,
    pub used_at: Millis,
}

impl Db {
    /// Keeps a new session and gives it its number.
    pub fn add_session(&self, session: &KeptSession) -> Result<i64, StoreError> {
        let sql = "INSERT INTO sessions (conversation, begun, mode, running, asks, agent, home, project, title,
                     chat_id, thread, anchor, card, began_at, used_at)
                 VALUES (:conversation, :begun, :mode, :running, :asks, :agent, :home, :project, :title,
                     :chat, :thread, :anchor, :card, :began, :used) RETURNING number";
        let with = named_params! {
            ":conversation": session.saved.conversation.as_str(),
            ":begun": session.saved.begun,
            ":mode": session.saved.mode.as_str(),
            ":running": session.saved.running,
            ":asks": asks_text(&session.saved.asks),
            ":agent": session.agent.word(),
            ":home": session.home.as_deref().map(Path::to_string_lossy),
            ":project": session.project,
            ":title": session.title,
            ":chat": session.place.chat.as_str(),
            ":thread": session.place.thread,
            ":anchor": session.anchor.as_str(),
            ":card": session.card.as_ref().map(MessageId::as_str),
            ":began": session.began_at,
            ":used": session.used_at,
        };
        let number = self.one(sql, with, |row| row.get(0))?;
        self.inserted()?;
        Ok(number)
    }

    pub fn save_session(&self, session: &KeptSession) -> Result<(), StoreError> {
        let sql = "UPDATE sessions SET conversation = :conversation, begun = :begun, mode = :mode,
                     running = :running, asks = :asks, chat_id = :chat, thread = :thread,
                     anchor = :anchor, card = :card, used_at = :used
                 WHERE number = :number";
        let with = named_params! {
            ":number": session.number,
            ":conversation": session.saved.conversation.as_str(),
            ":begun": session.saved.begun,
            ":mode": session.saved.mode.as_str(),
            ":running": session.saved.running,
            ":asks": asks_text(&session.saved.asks),
            ":chat": session.place.chat.as_str(),
            ":thread": session.place.thread,
            ":anchor": session.anchor.as_str(),
            ":card": session.card.as_ref().map(MessageId::as_str),
            ":used": session.used_at,
        };
        self.execute(sql, with).map(drop)
    }

    /// For one that never began; its number is not given again.
    pub fn forget_session(&self, number: i64) -> Result<(), StoreError> {
        self.execute("DELETE FROM sessions WHERE number = ?1", [number])
            .map(drop)
    }

    /// The one used last stands last.
    pub fn sessions(&self) -> Result<Vec<KeptSession>, StoreError> {
        self.all("SELECT * FROM sessions ORDER BY used_at, number", [], read)
    }
}

/// Ids hold no blanks.
fn asks_text(asks: &[RequestId]) -> String {
    let asks: Vec<_> = asks.iter().map(RequestId::as_str).collect();
    asks.join(" ")
}

fn read(row: &Row<'_>) -> rusqlite::Result<KeptSession> {
    let asks: String = row.get("asks")?;
    let asks = asks.split_whitespace().map(RequestId::parse);
    let mode: String = row.get("mode")?;
    let agent: String = row.get("agent")?;
    Ok(KeptSession {
        number: row.get("number")?,
        saved: Saved {
            conversation: read_id(row, "conversation", SessionId::parse)?,
            begun: row.get("begun")?,
            mode: Mode::parse(&mode).unwrap_or_default(),
            running: row.get("running")?,
            asks: asks.collect::<Result<_, _>>().map_err(|error| {
                rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(error))
            })?,
        },
        agent: Agent::parse(&agent).unwrap_or_default(),
        home: row.get::<_, Option<String>>("home")?.map(PathBuf::from),
        project: row.get("project")?,
        title: row.get("title")?,
        place: ChatPlace {
            chat: read_id(row, "chat_id", ChatId::parse)?,
            thread: row.get("thread")?,
        },
        anchor: read_id(row, "anchor", MessageId::parse)?,
        card: read_optional_id(row, "card", MessageId::parse)?,
        began_at: row.get("began_at")?,
        used_at: row.get("used_at")?,
    })
}

pub(super) fn prune(db: &Db, now: Millis) -> Result<(), StoreError> {
    db.conn.execute(
        "DELETE FROM sessions WHERE used_at < ?1 AND NOT running",
        [now - KEPT],
    )?;
    Ok(())
}

pub(super) fn trim(db: &Db) -> Result<(), StoreError> {
    db.cap("sessions", "number", "used_at DESC, number DESC", MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::samples::store;

    fn session(used_at: Millis) -> KeptSession {
        KeptSession {
            number: 0,
            saved: Saved {
                conversation: SessionId::parse("c-1").unwrap(),
                begun: false,
                mode: Mode::Default,
                running: true,
                asks: Vec::new(),
            },
            agent: Agent::Codex,
            home: Some("/home/me/.codex-work".into()),
            project: "shop".to_owned(),
            title: "修复登录".to_owned(),
            place: ChatPlace {
                chat: ChatId::parse("oc_1").unwrap(),
                thread: None,
            },
            anchor: MessageId::parse("om_1").unwrap(),
            card: None,
            began_at: 1,
            used_at,
        }
    }

    #[test]
    fn one_that_never_began_is_forgotten_and_its_number_is_not_given_again() {
        let db = store();
        let first = db.add_session(&session(5)).unwrap();
        let second = db.add_session(&session(6)).unwrap();
        db.forget_session(second).unwrap();
        let left: Vec<_> = db.sessions().unwrap().iter().map(|it| it.number).collect();
        assert_eq!(left, [first]);
        assert!(db.add_session(&session(7)).unwrap() > second);
    }

    #[test]
    fn a_session_reads_back_as_it_was_saved_last() {
        let db = store();
        let mut kept = session(5);
        kept.number = db.add_session(&kept).unwrap();
        assert_eq!(db.sessions().unwrap(), [kept.clone()]);
        kept.saved = Saved {
            conversation: SessionId::parse("c-2").unwrap(),
            begun: true,
            mode: Mode::Plan,
            running: false,
            asks: ["a", "b"].map(|id| RequestId::parse(id).unwrap()).to_vec(),
        };
        kept.place.thread = Some("omt_1".to_owned());
        kept.card = MessageId::parse("om_2").ok();
        kept.used_at = 9;
        db.save_session(&kept).unwrap();
        assert_eq!(db.sessions().unwrap(), [kept]);
    }

    #[test]
    fn old_sessions_go_and_numbers_never_come_back() {
        let db = store();
        let mut kept = session(5);
        kept.saved.running = false;
        let first = db.add_session(&kept).unwrap();
        db.prune(5 + KEPT).unwrap();
        assert_eq!(db.sessions().unwrap().len(), 1);
        db.prune(6 + KEPT).unwrap();
        assert!(db.sessions().unwrap().is_empty());
        assert!(db.add_session(&session(9)).unwrap() > first);
    }

    #[test]
    fn the_cap_keeps_the_ones_used_last() {
        let db = store();
        for used in 0..MAX + 3 {
            db.add_session(&session(used)).unwrap();
        }
        db.prune(0).unwrap();
        let left = db.sessions().unwrap();
        assert_eq!(left.len(), usize::try_from(MAX).unwrap());
        assert_eq!(left[0].used_at, 3);
    }
}
