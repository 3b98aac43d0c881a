//! The always-allow rules nod left behind, so that a person can list them and
//! take them back. The rules in force are in Claude Code's files, not here.

use std::path::PathBuf;

use rusqlite::{Row, named_params};

use super::StoreError;
use super::db::{DAY, Db, read_id};
use crate::clock::Millis;
use crate::ids::{RequestId, UserId};

const UNDONE_KEPT: Millis = 30 * DAY;
const MAX: i64 = 10_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftRule {
    pub request: RequestId,
    pub project: PathBuf,
    pub file: PathBuf,
    /// As it stands in the file: `Bash(npm run *)`.
    pub rule: String,
    pub operator: UserId,
    pub at: Millis,
}

/// A rule with the number a person names it by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedRule {
    pub number: i64,
    pub left: LeftRule,
    pub undone_at: Option<Millis>,
}

impl Db {
    pub fn rule_left(&self, left: &LeftRule) -> Result<i64, StoreError> {
        let sql = "INSERT INTO left_rules (request_id, project, file, rule, operator, at)
                 VALUES (:request, :project, :file, :rule, :operator, :at) RETURNING number";
        let with = named_params! {
            ":request": left.request.as_str(),
            ":project": left.project.to_string_lossy(),
            ":file": left.file.to_string_lossy(),
            ":rule": left.rule,
            ":operator": left.operator.as_str(),
            ":at": left.at,
        };
        let number = self.one(sql, with, |row| row.get(0))?;
        self.inserted()?;
        Ok(number)
    }

    /// Newest first, those taken back included.
    pub fn rules_left(&self) -> Result<Vec<ListedRule>, StoreError> {
        self.all(
            "SELECT * FROM left_rules ORDER BY number DESC",
            [],
            read_rule,
        )
    }

    pub fn rules_left_by(&self, request: &RequestId) -> Result<Vec<ListedRule>, StoreError> {
        self.all(
            "SELECT * FROM left_rules WHERE request_id = ?1 ORDER BY number",
            [request.as_str()],
            read_rule,
        )
    }

    /// `false` when it already was, or there is no such rule.
    pub fn rule_undone(&self, number: i64, at: Millis) -> Result<bool, StoreError> {
        let sql = "UPDATE left_rules SET undone_at = :at
                 WHERE number = :number AND undone_at IS NULL";
        Ok(self.execute(sql, named_params! {":number": number, ":at": at})? > 0)
    }
}

fn read_rule(row: &Row<'_>) -> rusqlite::Result<ListedRule> {
    let path = |column| row.get::<_, String>(column).map(PathBuf::from);
    Ok(ListedRule {
        number: row.get("number")?,
        left: LeftRule {
            request: read_id(row, "request_id", RequestId::parse)?,
            project: path("project")?,
            file: path("file")?,
            rule: row.get("rule")?,
            operator: read_id(row, "operator", UserId::parse)?,
            at: row.get("at")?,
        },
        undone_at: row.get("undone_at")?,
    })
}

pub(super) fn prune(db: &Db, now: Millis) -> Result<(), StoreError> {
    db.forget("left_rules", "undone_at", now - UNDONE_KEPT)
}

pub(super) fn trim(db: &Db) -> Result<(), StoreError> {
    db.cap("left_rules", "number", "number DESC", MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::samples::{id, store};

    fn rule(request: &str, rule: &str, at: Millis) -> LeftRule {
        LeftRule {
            request: id(request),
            project: "/home/me/shop".into(),
            file: "/home/me/shop/.claude/settings.local.json".into(),
            rule: rule.to_owned(),
            operator: UserId::parse("ou_1").unwrap(),
            at,
        }
    }

    #[test]
    fn rules_are_listed_newest_first_and_taken_back_once() {
        let db = store();
        let first = db.rule_left(&rule("r1", "Bash(make)", 1)).unwrap();
        db.rule_left(&rule("r2", "WebSearch", 2)).unwrap();
        assert!(db.rule_undone(first, 9).unwrap());
        assert!(!db.rule_undone(first, 10).unwrap());

        let listed = db.rules_left().unwrap();
        assert_eq!(listed[0].left, rule("r2", "WebSearch", 2));
        assert_eq!(listed[0].undone_at, None);
        assert_eq!(listed[1].undone_at, Some(9));
        assert_eq!(db.rules_left_by(&id("r1")).unwrap(), listed[1..]);
    }

    #[test]
    fn only_rules_that_were_taken_back_grow_old() {
        let db = store();
        let first = db.rule_left(&rule("r1", "Bash(make)", 1)).unwrap();
        db.rule_left(&rule("r2", "WebSearch", 1)).unwrap();
        db.rule_undone(first, 1).unwrap();
        db.prune(2 + UNDONE_KEPT).unwrap();
        let left = db.rules_left().unwrap();
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].left.rule, "WebSearch");
    }
}
