//! Who decided what, when and from where: appended, never changed, each row
//! bound to the one before it by a hash. Of a tool's input it holds one short
//! line at most, its secrets masked.
//!
//! The chain shows an edit made behind nod's back. It can't show a rewrite of
//! the whole chain by somebody who may write the file.

use rusqlite::{Row, named_params};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::StoreError;
use super::db::{DAY, Db};
use crate::clock::Millis;

const KEPT: Millis = 30 * DAY;
const MAX: i64 = 500_000;
/// A row describes a decision; what is longer than this is not a description.
const DETAIL_MAX: usize = 16 * 1024;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct AuditEntry {
    pub at: Millis,
    /// One word: `settled`, `refused`, `undone`, …
    pub kind: String,
    pub operator: Option<String>,
    pub event: Option<String>,
    pub request: Option<String>,
    pub session: Option<String>,
    pub tool: Option<String>,
    pub digest: Option<String>,
    pub decision: Option<String>,
    pub rule: Option<String>,
    pub source: Option<String>,
    pub detail: Option<Value>,
}

/// A row of the audit as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    pub seq: i64,
    pub entry: AuditEntry,
    pub hash: [u8; 32],
}

/// What `verify_audit` found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chain {
    Whole {
        rows: u64,
    },
    /// The first row that is not what was written, or not where it was.
    Broken {
        seq: i64,
        problem: &'static str,
    },
}

struct ChainLink {
    seq: i64,
    hash: [u8; 32],
}

impl Db {
    pub fn append_audit(&self, entry: &AuditEntry) -> Result<i64, StoreError> {
        self.atomically(|db| {
            let last = db.last_link()?;
            let seq = last.seq + 1;
            let detail = entry.detail.as_ref().map(|detail| {
                let text = detail.to_string();
                if text.len() > DETAIL_MAX {
                    json!({"omitted_bytes": text.len()}).to_string()
                } else {
                    text
                }
            });
            let hash = digest(seq, entry, detail.as_deref(), &last.hash);
            let sql = "INSERT INTO audit (seq, at, kind, operator, event_id, request_id, session,
                         tool, digest, decision, rule, source, detail, prev, hash)
                     VALUES (:seq, :at, :kind, :operator, :event, :request, :session,
                         :tool, :digest, :decision, :rule, :source, :detail, :prev, :hash)";
            let with = named_params! {
                ":seq": seq,
                ":at": entry.at,
                ":kind": entry.kind,
                ":operator": entry.operator,
                ":event": entry.event,
                ":request": entry.request,
                ":session": entry.session,
                ":tool": entry.tool,
                ":digest": entry.digest,
                ":decision": entry.decision,
                ":rule": entry.rule,
                ":source": entry.source,
                ":detail": detail,
                ":prev": last.hash,
                ":hash": hash,
            };
            db.execute(sql, with)?;
            db.inserted()?;
            Ok(seq)
        })
    }

    /// At most `limit` rows before `before` (or the end), newest first.
    pub fn audit(&self, before: Option<i64>, limit: u32) -> Result<Vec<Recorded>, StoreError> {
        self.all(
            "SELECT * FROM audit WHERE seq < ?1 ORDER BY seq DESC LIMIT ?2",
            (before.unwrap_or(i64::MAX), limit),
            |row| {
                let detail: Option<String> = row.get("detail")?;
                Ok(Recorded {
                    seq: row.get("seq")?,
                    entry: AuditEntry {
                        detail: detail
                            .map(|text| serde_json::from_str(&text).unwrap_or(Value::String(text))),
                        ..read_entry(row)?
                    },
                    hash: row.get("hash")?,
                })
            },
        )
    }

    /// Reads the whole chain, from the last pruned row to the newest.
    pub fn verify_audit(&self) -> Result<Chain, StoreError> {
        let broken = |seq, problem| Ok(Chain::Broken { seq, problem });
        let mut last = self.anchor()?;
        let mut rows = 0;
        let mut query = self.conn.prepare("SELECT * FROM audit ORDER BY seq")?;
        let mut found = query.query([])?;
        while let Some(row) = found.next()? {
            let seq: i64 = row.get("seq")?;
            if seq != last.seq + 1 {
                return broken(last.seq + 1, "the row is missing");
            }
            let detail: Option<String> = row.get("detail")?;
            let (Ok(prev), Ok(hash)) = (row.get::<_, [u8; 32]>("prev"), row.get("hash")) else {
                return broken(seq, "a hash has the wrong length");
            };
            if prev != last.hash {
                return broken(seq, "it does not follow the row before it");
            }
            if hash != digest(seq, &read_entry(row)?, detail.as_deref(), &prev) {
                return broken(seq, "it is not what was written");
            }
            last = ChainLink { seq, hash };
            rows += 1;
        }
        Ok(Chain::Whole { rows })
    }

    fn last_link(&self) -> Result<ChainLink, StoreError> {
        let sql = "SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1";
        match self.first(sql, [], read_link)? {
            Some(link) => Ok(link),
            None => self.anchor(),
        }
    }

    fn anchor(&self) -> Result<ChainLink, StoreError> {
        self.one("SELECT seq, hash FROM audit_anchor", [], read_link)
    }
}

fn read_link(row: &Row<'_>) -> rusqlite::Result<ChainLink> {
    Ok(ChainLink {
        seq: row.get("seq")?,
        hash: row.get("hash")?,
    })
}

fn read_entry(row: &Row<'_>) -> rusqlite::Result<AuditEntry> {
    Ok(AuditEntry {
        at: row.get("at")?,
        kind: row.get("kind")?,
        operator: row.get("operator")?,
        event: row.get("event_id")?,
        request: row.get("request_id")?,
        session: row.get("session")?,
        tool: row.get("tool")?,
        digest: row.get("digest")?,
        decision: row.get("decision")?,
        rule: row.get("rule")?,
        source: row.get("source")?,
        detail: None,
    })
}

/// Every field with its length, so that no two rows share their bytes.
/// `detail` counts as the text in the file, not as JSON.
fn digest(seq: i64, entry: &AuditEntry, detail: Option<&str>, prev: &[u8; 32]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"nod audit 1\0");
    hash.update(prev);
    hash.update(seq.to_be_bytes());
    hash.update(entry.at.to_be_bytes());
    for field in [
        Some(entry.kind.as_str()),
        entry.operator.as_deref(),
        entry.event.as_deref(),
        entry.request.as_deref(),
        entry.session.as_deref(),
        entry.tool.as_deref(),
        entry.digest.as_deref(),
        entry.decision.as_deref(),
        entry.rule.as_deref(),
        entry.source.as_deref(),
        detail,
    ] {
        match field {
            None => hash.update([0]),
            Some(text) => {
                hash.update([1]);
                hash.update((text.len() as u64).to_be_bytes());
                hash.update(text);
            }
        }
    }
    hash.finalize().into()
}

/// Cuts from the old end only, up to the first row that is young enough, so
/// that a clock that once went backwards leaves no hole.
pub(super) fn prune(db: &Db, now: Millis) -> Result<(), StoreError> {
    cut(
        db,
        "SELECT max(seq) FROM audit WHERE seq < ifnull(
             (SELECT min(seq) FROM audit WHERE at >= ?1), 9223372036854775807)",
        now - KEPT,
    )
}

pub(super) fn trim(db: &Db) -> Result<(), StoreError> {
    cut(db, "SELECT max(seq) - ?1 FROM audit", MAX)
}

fn cut(db: &Db, last_to_go: &str, argument: i64) -> Result<(), StoreError> {
    let Some(last) = db.one(last_to_go, [argument], |row| row.get::<_, Option<i64>>(0))? else {
        return Ok(());
    };
    let moved = db.conn.execute(
        "UPDATE audit_anchor SET seq = audit.seq, hash = audit.hash
         FROM audit WHERE audit.seq = ?1",
        [last],
    )?;
    if moved > 0 {
        db.conn
            .execute("DELETE FROM audit WHERE seq <= ?1", [last])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::samples::{settlement, store};

    fn filled(rows: i64) -> Db {
        let db = store();
        for n in 1..=rows {
            let entry = AuditEntry {
                at: n,
                kind: "refused".to_owned(),
                operator: Some("ou_1".to_owned()),
                detail: Some(json!({"n": n})),
                ..AuditEntry::default()
            };
            assert_eq!(db.append_audit(&entry).unwrap(), n);
        }
        db
    }

    #[test]
    fn a_settled_request_leaves_a_whole_row() {
        let db = store();
        let end = settlement("r1", "allowed");
        db.settle(&end).unwrap();
        let row = db.audit(None, 1).unwrap().remove(0);
        assert_eq!(row.entry.request.as_deref(), Some("r1"));
        assert_eq!(row.entry.decision.as_deref(), Some("allowed"));
        assert_eq!(row.entry.operator.as_deref(), Some("ou_owner"));
        assert_eq!(row.entry.detail, end.detail);
    }

    #[test]
    fn rows_come_newest_first_a_page_at_a_time() {
        let db = filled(5);
        let seqs = |rows: Vec<Recorded>| rows.iter().map(|row| row.seq).collect::<Vec<_>>();
        assert_eq!(seqs(db.audit(None, 2).unwrap()), [5, 4]);
        assert_eq!(seqs(db.audit(Some(4), 9).unwrap()), [3, 2, 1]);
    }

    #[test]
    fn the_audit_can_be_neither_changed_nor_cut() {
        let db = filled(3);
        for sql in [
            "UPDATE audit SET operator = 'ou_2' WHERE seq = 2",
            "DELETE FROM audit WHERE seq = 2",
            "DELETE FROM audit",
        ] {
            let error = db.conn.execute_batch(sql).unwrap_err().to_string();
            assert!(error.contains("append-only"), "{sql}: {error}");
        }
        assert_eq!(db.verify_audit().unwrap(), Chain::Whole { rows: 3 });
    }

    #[test]
    fn every_kind_of_tampering_is_found_at_its_row() {
        let broken = |seq, problem| Chain::Broken { seq, problem };
        let changed = "it is not what was written";
        for (sql, expected) in [
            ("UPDATE audit SET at = 7 WHERE seq = 2", broken(2, changed)),
            (
                "UPDATE audit SET kind = 'refusee' WHERE seq = 2",
                broken(2, changed),
            ),
            (
                "UPDATE audit SET operator = NULL WHERE seq = 2",
                broken(2, changed),
            ),
            (
                "UPDATE audit SET event_id = operator, operator = NULL WHERE seq = 2",
                broken(2, changed),
            ),
            (
                "UPDATE audit SET detail = '{\"n\": 2}' WHERE seq = 2",
                broken(2, changed),
            ),
            (
                "UPDATE audit SET hash = zeroblob(32) WHERE seq = 4",
                broken(4, changed),
            ),
            (
                "UPDATE audit SET hash = x'00' WHERE seq = 4",
                broken(4, "a hash has the wrong length"),
            ),
            (
                "DELETE FROM audit WHERE seq = 2",
                broken(2, "the row is missing"),
            ),
            (
                "DELETE FROM audit WHERE seq = 1",
                broken(1, "the row is missing"),
            ),
            (
                "UPDATE audit_anchor SET hash = randomblob(32)",
                broken(1, "it does not follow the row before it"),
            ),
        ] {
            let db = filled(4);
            db.conn
                .execute_batch(
                    "DROP TRIGGER audit_is_never_changed; DROP TRIGGER audit_is_never_cut",
                )
                .unwrap();
            db.conn.execute_batch(sql).unwrap();
            assert_eq!(db.verify_audit().unwrap(), expected, "{sql}");
        }
    }

    #[test]
    fn the_chain_stays_whole_when_its_old_end_is_pruned() {
        let db = filled(5);
        db.prune(KEPT + 3).unwrap();
        assert_eq!(db.audit(None, 9).unwrap().len(), 3);
        assert_eq!(db.verify_audit().unwrap(), Chain::Whole { rows: 3 });

        db.prune(KEPT + 100).unwrap();
        assert_eq!(db.verify_audit().unwrap(), Chain::Whole { rows: 0 });
        let next = db.append_audit(&AuditEntry::default()).unwrap();
        assert_eq!(next, 6);
        assert_eq!(db.verify_audit().unwrap(), Chain::Whole { rows: 1 });
    }

    #[test]
    fn a_clock_that_went_back_leaves_no_hole() {
        let db = filled(2);
        let entry = |at| AuditEntry {
            at,
            ..AuditEntry::default()
        };
        db.append_audit(&entry(KEPT * 2)).unwrap();
        db.append_audit(&entry(3)).unwrap();
        db.prune(KEPT + 100).unwrap();
        let kept: Vec<_> = db.audit(None, 9).unwrap().iter().map(|r| r.seq).collect();
        assert_eq!(kept, [4, 3]);
        assert_eq!(db.verify_audit().unwrap(), Chain::Whole { rows: 2 });
    }

    #[test]
    fn an_overlong_detail_is_counted_and_not_kept() {
        let db = store();
        let entry = AuditEntry {
            detail: Some(Value::String("x".repeat(DETAIL_MAX))),
            ..AuditEntry::default()
        };
        db.append_audit(&entry).unwrap();
        let row = db.audit(None, 1).unwrap().remove(0);
        assert_eq!(
            row.entry.detail,
            Some(json!({"omitted_bytes": DETAIL_MAX + 2}))
        );
        assert_eq!(db.verify_audit().unwrap(), Chain::Whole { rows: 1 });
    }
}
