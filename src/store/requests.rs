//! Requests that wait, and how they ended. Tool input is kept only while its
//! request waits. `settle` is the durable compare-and-set: one ending per id.

use rusqlite::{Row, named_params};
use serde_json::Value;

use super::audit::AuditEntry;
use super::db::{DAY, Db, read_id, read_optional_id};
use super::{StoreError, inbox};
use crate::clock::Millis;
use crate::ids::{ChatId, EventId, MessageId, RequestId, SessionId, UserId};

/// Feishu keeps a card clickable for fourteen days.
const SETTLED_KEPT: Millis = 14 * DAY;
const SETTLED_MAX: i64 = 50_000;
/// The daemon settles what is overdue; this only catches what it never saw.
const OVERDUE_KEPT: Millis = DAY;
const PENDING_MAX: i64 = 10_000;

/// What a request is about, without its input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    pub tool: String,
    pub project: String,
    pub machine: String,
    pub session: Option<SessionId>,
    pub digest: String,
}

/// Where a request's card is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardPlace {
    pub message: MessageId,
    pub chat: ChatId,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    pub id: RequestId,
    /// SHA-256 of the token a hook must show to take the request up again.
    pub token_hash: Option<[u8; 32]>,
    pub subject: Subject,
    pub card: Option<CardPlace>,
    pub asked_at: Millis,
    pub deadline: Millis,
    /// The caller's own JSON, tool input included.
    pub request: String,
}

/// The end of a request, as it goes into `settled` and into the audit.
#[derive(Debug, Clone, PartialEq)]
pub struct Settlement {
    pub id: RequestId,
    pub subject: Subject,
    /// Wins over what `card_sent` noted; `None` keeps that.
    pub card: Option<CardPlace>,
    pub asked_at: Millis,
    pub at: Millis,
    /// One word: `allowed`, `denied`, `timed_out`, …
    pub kind: String,
    /// The caller's own JSON; never tool input.
    pub ending: String,
    pub operator: Option<UserId>,
    pub event: Option<EventId>,
    pub rule: Option<String>,
    /// Where the decision came from: `feishu`, `terminal`, `clock`, …
    pub source: String,
    /// Anything else worth auditing; never tool input.
    pub detail: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettledRequest {
    pub id: RequestId,
    pub subject: Subject,
    pub card: Option<CardPlace>,
    /// As in [`Pending`]: a hook that missed its answer may still fetch it.
    pub token_hash: Option<[u8; 32]>,
    pub asked_at: Millis,
    pub at: Millis,
    pub kind: String,
    pub ending: String,
    pub undone_at: Option<Millis>,
}

impl Db {
    pub fn save_pending(&self, pending: &Pending) -> Result<(), StoreError> {
        self.atomically(|db| {
            if db.is_settled(&pending.id)? {
                return Err(StoreError::AlreadySettled);
            }
            let sql = "INSERT INTO pending (id, token_hash, tool, project, machine, session,
                         digest, message_id, chat_id, asked_at, deadline, request)
                     VALUES (:id, :token_hash, :tool, :project, :machine, :session,
                         :digest, :message, :chat, :asked_at, :deadline, :request)
                     ON CONFLICT (id) DO NOTHING";
            let with = named_params! {
                ":id": pending.id.as_str(),
                ":token_hash": pending.token_hash,
                ":tool": pending.subject.tool,
                ":project": pending.subject.project,
                ":machine": pending.subject.machine,
                ":session": pending.subject.session.as_ref().map(SessionId::as_str),
                ":digest": pending.subject.digest,
                ":message": pending.card.as_ref().map(|card| card.message.as_str()),
                ":chat": pending.card.as_ref().map(|card| card.chat.as_str()),
                ":asked_at": pending.asked_at,
                ":deadline": pending.deadline,
                ":request": pending.request,
            };
            let saved = db.execute(sql, with)?;
            if saved == 0 {
                return Err(StoreError::AlreadyPending);
            }
            db.inserted()
        })
    }

    /// Gives a request that still waits other times.
    pub fn move_pending(
        &self,
        id: &RequestId,
        asked_at: Millis,
        deadline: Millis,
        request: &str,
    ) -> Result<(), StoreError> {
        let sql =
            "UPDATE pending SET asked_at = :asked_at, deadline = :deadline, request = :request
                 WHERE id = :id";
        let with = named_params! {
            ":id": id.as_str(),
            ":asked_at": asked_at,
            ":deadline": deadline,
            ":request": request,
        };
        self.execute(sql, with).map(drop)
    }

    /// Notes where the card is, also for a request that was settled before
    /// Feishu named the message. `false` when nod does not know the request.
    pub fn card_sent(&self, id: &RequestId, card: &CardPlace) -> Result<bool, StoreError> {
        for table in ["pending", "settled"] {
            let sql =
                format!("UPDATE {table} SET message_id = :message, chat_id = :chat WHERE id = :id");
            let with = named_params! {
                ":id": id.as_str(),
                ":message": card.message.as_str(),
                ":chat": card.chat.as_str(),
            };
            if self.execute(&sql, with)? > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Everything that waited when the last daemon ended, oldest first.
    pub fn pending_all(&self) -> Result<Vec<Pending>, StoreError> {
        self.all("SELECT * FROM pending ORDER BY asked_at, id", [], |row| {
            Ok(Pending {
                id: read_id(row, "id", RequestId::parse)?,
                token_hash: row.get("token_hash")?,
                subject: read_subject(row)?,
                card: read_card(row)?,
                asked_at: row.get("asked_at")?,
                deadline: row.get("deadline")?,
                request: row.get("request")?,
            })
        })
    }

    /// Ends a request: its input is forgotten, its ending kept, the audit gets
    /// a line. [`StoreError::AlreadySettled`] and no change when it had ended.
    pub fn settle(&self, end: &Settlement) -> Result<(), StoreError> {
        self.atomically(|db| {
            let sql = "DELETE FROM pending WHERE id = ?1 RETURNING message_id, chat_id, token_hash";
            let (noted, token_hash): (Option<CardPlace>, Option<[u8; 32]>) = db
                .first(sql, [end.id.as_str()], |row| {
                    Ok((read_card(row)?, row.get("token_hash")?))
                })?
                .unwrap_or_default();
            let card = end.card.as_ref().or(noted.as_ref());
            let sql = "INSERT INTO settled (id, kind, ending, tool, project, machine, session,
                         digest, message_id, chat_id, token_hash, asked_at, settled_at)
                     VALUES (:id, :kind, :ending, :tool, :project, :machine, :session,
                         :digest, :message, :chat, :token_hash, :asked_at, :at)
                     ON CONFLICT (id) DO NOTHING";
            let with = named_params! {
                ":id": end.id.as_str(),
                ":kind": end.kind,
                ":ending": end.ending,
                ":tool": end.subject.tool,
                ":project": end.subject.project,
                ":machine": end.subject.machine,
                ":session": end.subject.session.as_ref().map(SessionId::as_str),
                ":digest": end.subject.digest,
                ":message": card.map(|card| card.message.as_str()),
                ":chat": card.map(|card| card.chat.as_str()),
                ":token_hash": token_hash,
                ":asked_at": end.asked_at,
                ":at": end.at,
            };
            let settled = db.execute(sql, with)?;
            if settled == 0 {
                return Err(StoreError::AlreadySettled);
            }
            if let Some(event) = &end.event {
                inbox::had_effect(db, event)?;
            }
            db.append_audit(&AuditEntry {
                at: end.at,
                kind: "settled".to_owned(),
                operator: end.operator.as_ref().map(ToString::to_string),
                event: end.event.as_ref().map(ToString::to_string),
                request: Some(end.id.to_string()),
                session: end.subject.session.as_ref().map(ToString::to_string),
                tool: Some(end.subject.tool.clone()),
                digest: Some(end.subject.digest.clone()),
                decision: Some(end.kind.clone()),
                rule: end.rule.clone(),
                source: Some(end.source.clone()),
                detail: end.detail.clone(),
            })?;
            db.inserted()
        })
    }

    pub fn settled(&self, id: &RequestId) -> Result<Option<SettledRequest>, StoreError> {
        self.one_settled("SELECT * FROM settled WHERE id = ?1", id.as_str())
    }

    pub fn settled_by_message(
        &self,
        message: &MessageId,
    ) -> Result<Option<SettledRequest>, StoreError> {
        self.one_settled(
            "SELECT * FROM settled WHERE message_id = ?1 ORDER BY settled_at DESC LIMIT 1",
            message.as_str(),
        )
    }

    /// How often a request with this input ended this way, as far as kept.
    pub fn times_ended(&self, digest: &str, kind: &str) -> Result<i64, StoreError> {
        self.one(
            "SELECT count(*) FROM settled WHERE digest = ?1 AND kind = ?2",
            [digest, kind],
            |row| row.get(0),
        )
    }

    /// Puts an ending right, and writes that into the audit; `false` when there
    /// is no such ending.
    pub fn correct(
        &self,
        id: &RequestId,
        (kind, ending): (&str, &str),
        audit: &AuditEntry,
    ) -> Result<bool, StoreError> {
        self.atomically(|db| {
            let sql = "UPDATE settled SET kind = ?2, ending = ?3 WHERE id = ?1";
            let corrected = db.execute(sql, [id.as_str(), kind, ending])?;
            if corrected > 0 {
                db.append_audit(audit)?;
            }
            Ok(corrected > 0)
        })
    }

    /// Marks an ending as taken back; `false` when it already was, or is unknown.
    pub fn mark_undone(&self, id: &RequestId, at: Millis) -> Result<bool, StoreError> {
        let sql = "UPDATE settled SET undone_at = :at WHERE id = :id AND undone_at IS NULL";
        Ok(self.execute(sql, named_params! {":id": id.as_str(), ":at": at})? > 0)
    }

    pub fn is_settled(&self, id: &RequestId) -> Result<bool, StoreError> {
        self.has("SELECT 1 FROM settled WHERE id = ?1", [id.as_str()])
    }

    fn one_settled(&self, sql: &str, key: &str) -> Result<Option<SettledRequest>, StoreError> {
        self.first(sql, [key], |row| {
            Ok(SettledRequest {
                id: read_id(row, "id", RequestId::parse)?,
                subject: read_subject(row)?,
                card: read_card(row)?,
                token_hash: row.get("token_hash")?,
                asked_at: row.get("asked_at")?,
                at: row.get("settled_at")?,
                kind: row.get("kind")?,
                ending: row.get("ending")?,
                undone_at: row.get("undone_at")?,
            })
        })
    }
}

fn read_subject(row: &Row<'_>) -> rusqlite::Result<Subject> {
    Ok(Subject {
        tool: row.get("tool")?,
        project: row.get("project")?,
        machine: row.get("machine")?,
        session: read_optional_id(row, "session", SessionId::parse)?,
        digest: row.get("digest")?,
    })
}

fn read_card(row: &Row<'_>) -> rusqlite::Result<Option<CardPlace>> {
    let message = read_optional_id(row, "message_id", MessageId::parse)?;
    let chat = read_optional_id(row, "chat_id", ChatId::parse)?;
    Ok(message
        .zip(chat)
        .map(|(message, chat)| CardPlace { message, chat }))
}

pub(super) fn prune(db: &Db, now: Millis) -> Result<(), StoreError> {
    db.forget("settled", "settled_at", now - SETTLED_KEPT)?;
    db.forget("pending", "deadline", now - OVERDUE_KEPT)
}

pub(super) fn trim(db: &Db) -> Result<(), StoreError> {
    keep_newest(db, "settled", SETTLED_MAX)?;
    keep_newest(db, "pending", PENDING_MAX)
}

/// In the order they came: by its times a clock that was set back would make
/// the newest the oldest.
fn keep_newest(db: &Db, table: &str, max: i64) -> Result<(), StoreError> {
    db.cap(table, "rowid", "rowid DESC", max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::samples::{id, pending, settlement, store};

    #[test]
    fn a_waiting_request_is_read_back_whole() {
        let db = store();
        let mut first = pending("r1");
        first.card = None;
        db.save_pending(&first).unwrap();
        db.save_pending(&pending("r2")).unwrap();
        assert_eq!(db.pending_all().unwrap(), [first, pending("r2")]);
    }

    #[test]
    fn a_waiting_request_can_be_given_other_times() {
        let db = store();
        for name in ["r1", "r2"] {
            db.save_pending(&pending(name)).unwrap();
        }
        db.move_pending(&id("r1"), 5, 6, "{}").unwrap();
        let moved = Pending {
            asked_at: 5,
            deadline: 6,
            request: "{}".to_owned(),
            ..pending("r1")
        };
        assert_eq!(db.pending_all().unwrap(), [moved, pending("r2")]);
    }

    #[test]
    fn the_card_is_noted_before_and_after_the_end() {
        let db = store();
        let card = pending("r1").card.unwrap();
        let mut cardless = pending("r1");
        cardless.card = None;
        db.save_pending(&cardless).unwrap();
        assert!(db.card_sent(&id("r1"), &card).unwrap());
        assert_eq!(db.pending_all().unwrap()[0].card, Some(card.clone()));

        let mut end = settlement("r2", "timed_out");
        end.card = None;
        db.settle(&end).unwrap();
        assert!(db.card_sent(&id("r2"), &card).unwrap());
        assert_eq!(db.settled(&id("r2")).unwrap().unwrap().card, Some(card));

        assert!(
            !db.card_sent(&id("r3"), &pending("r3").card.unwrap())
                .unwrap()
        );
    }

    #[test]
    fn the_second_end_of_a_request_is_refused_and_changes_nothing() {
        let db = store();
        db.save_pending(&pending("r1")).unwrap();
        db.settle(&settlement("r1", "allowed")).unwrap();
        let again = db.settle(&settlement("r1", "denied"));
        assert!(
            matches!(again, Err(StoreError::AlreadySettled)),
            "{again:?}"
        );

        let kept = db.settled(&id("r1")).unwrap().unwrap();
        assert_eq!(kept.kind, "allowed");
        assert_eq!(kept.card, pending("r1").card);
        assert_eq!(db.pending_all().unwrap(), []);
        assert_eq!(db.audit(None, 10).unwrap().len(), 1);
        let saved = db.save_pending(&pending("r1"));
        assert!(
            matches!(saved, Err(StoreError::AlreadySettled)),
            "{saved:?}"
        );
    }

    #[test]
    fn a_clock_set_back_does_not_make_the_newest_ending_the_oldest() {
        let db = store();
        for (name, at) in [("r1", 3_000), ("r2", 2_000), ("r3", 1_000)] {
            let mut end = settlement(name, "denied");
            end.at = at;
            db.settle(&end).unwrap();
        }
        keep_newest(&db, "settled", 2).unwrap();
        let left = ["r1", "r2", "r3"].map(|name| db.settled(&id(name)).unwrap().is_some());
        assert_eq!(left, [false, true, true]);
    }

    #[test]
    fn an_id_waits_only_once() {
        let db = store();
        db.save_pending(&pending("r1")).unwrap();
        let mut other = pending("r1");
        other.request = "{}".to_owned();
        let again = db.save_pending(&other);
        assert!(
            matches!(again, Err(StoreError::AlreadyPending)),
            "{again:?}"
        );
        assert_eq!(db.pending_all().unwrap(), [pending("r1")]);
    }

    #[test]
    fn a_request_that_was_never_saved_can_still_be_settled() {
        let db = store();
        db.settle(&settlement("r1", "denied")).unwrap();
        assert_eq!(db.settled(&id("r1")).unwrap().unwrap().kind, "denied");
    }

    #[test]
    fn endings_are_found_by_message_and_counted_by_input() {
        let db = store();
        db.settle(&settlement("r1", "denied")).unwrap();
        db.settle(&settlement("r2", "denied")).unwrap();
        let message = settlement("r2", "denied").card.unwrap().message;
        let found = db.settled_by_message(&message).unwrap().unwrap();
        assert_eq!(found.id, id("r2"));
        assert_eq!(db.times_ended(&found.subject.digest, "denied").unwrap(), 2);
        assert_eq!(db.times_ended(&found.subject.digest, "allowed").unwrap(), 0);
    }

    #[test]
    fn an_ending_is_taken_back_once() {
        let db = store();
        db.settle(&settlement("r1", "always")).unwrap();
        assert!(db.mark_undone(&id("r1"), 9).unwrap());
        assert!(!db.mark_undone(&id("r1"), 10).unwrap());
        assert_eq!(db.settled(&id("r1")).unwrap().unwrap().undone_at, Some(9));
        assert!(!db.mark_undone(&id("r2"), 9).unwrap());
    }

    #[test]
    fn endings_are_kept_for_fourteen_days() {
        let db = store();
        let end = settlement("r1", "allowed");
        db.settle(&end).unwrap();
        db.prune(end.at + SETTLED_KEPT).unwrap();
        assert!(db.settled(&end.id).unwrap().is_some());
        db.prune(end.at + SETTLED_KEPT + 1).unwrap();
        assert_eq!(db.settled(&end.id).unwrap(), None);
    }
}
