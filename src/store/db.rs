//! The store as plain functions over one `SQLite` connection. What each table
//! is for stands in the room of its functions; this file opens, prunes and
//! keeps changes atomic. Times come from the caller.

use std::cell::Cell;
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, Params, Row, named_params};

use super::schema::{self, SetAside};
use super::{
    StoreError, audit, events, inbox, left_rules, notices, outbox, requests, sessions, tickets,
};
use crate::clock::Millis;
use crate::ids::BadId;

pub(super) const HOUR: Millis = 3_600_000;
pub(super) const DAY: Millis = 24 * HOUR;

/// Caps are enforced once in this many insertions, so a table may overshoot
/// its cap by as much.
const TRIM_EVERY: u32 = 1024;
/// Unused pages of the file that are no waste, and how many of the others are
/// given back in one go: about 16 MiB, so that nobody waits for long.
const FREE_KEPT: i64 = 256;
const SHRINK_BY: i64 = 4_096;

/// Before a person's id, where a name is kept.
const NAME: &str = "name/";

pub struct Db {
    pub(super) conn: Connection,
    durable: bool,
    inserted: Cell<u32>,
}

impl Db {
    /// Opens or makes `nod.db` in `dir`. An unusable file is set aside, and the
    /// caller is told; the new one is empty.
    pub fn open(dir: &Path, now: Millis) -> Result<(Self, Option<SetAside>), StoreError> {
        let (conn, set_aside) = schema::open(dir, now)?;
        Ok((Self::over(conn, true), set_aside))
    }

    /// For a second process, while the daemon writes.
    pub fn open_read_only(dir: &Path) -> Result<Self, StoreError> {
        Ok(Self::over(schema::open_read_only(dir)?, true))
    }

    /// Forgets everything at its end.
    pub fn in_memory() -> Result<Self, StoreError> {
        Ok(Self::over(schema::in_memory()?, false))
    }

    fn over(conn: Connection, durable: bool) -> Self {
        Self {
            conn,
            durable,
            inserted: Cell::new(0),
        }
    }

    pub fn is_durable(&self) -> bool {
        self.durable
    }

    /// All of `work` or nothing of it. May be nested.
    pub fn atomically<T>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let nested = !self.conn.is_autocommit();
        let (begin, end, undo) = if nested {
            (
                "SAVEPOINT part",
                "RELEASE part",
                "ROLLBACK TO part; RELEASE part",
            )
        } else {
            ("BEGIN IMMEDIATE", "COMMIT", "ROLLBACK")
        };
        self.run(begin)?;
        let done = work(self).and_then(|value| self.run(end).map(|()| value));
        // A full disk makes SQLite roll the whole transaction back by itself.
        if done.is_err() && !self.conn.is_autocommit() {
            self.conn.execute_batch(undo)?;
        }
        done
    }

    pub(super) fn run(&self, statement: &str) -> Result<(), StoreError> {
        self.execute(statement, []).map(drop)
    }

    /// Changes rows, and says how many.
    pub(super) fn execute(&self, sql: &str, with: impl Params) -> Result<usize, StoreError> {
        Ok(self.conn.prepare_cached(sql)?.execute(with)?)
    }

    /// Whether there is such a row.
    pub(super) fn has(&self, sql: &str, with: impl Params) -> Result<bool, StoreError> {
        Ok(self.conn.prepare_cached(sql)?.exists(with)?)
    }

    /// The one row there must be.
    pub(super) fn one<T>(
        &self,
        sql: &str,
        with: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        Ok(self.conn.prepare_cached(sql)?.query_row(with, read)?)
    }

    /// The row there may be.
    pub(super) fn first<T>(
        &self,
        sql: &str,
        with: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        let mut query = self.conn.prepare_cached(sql)?;
        Ok(query.query_row(with, read).optional()?)
    }

    /// All rows, in their order.
    pub(super) fn all<T, C: FromIterator<T>>(
        &self,
        sql: &str,
        with: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<C, StoreError> {
        let mut query = self.conn.prepare_cached(sql)?;
        Ok(query.query_map(with, read)?.collect::<Result<_, _>>()?)
    }

    pub(super) fn changes(&self) -> u64 {
        self.conn.total_changes()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.conn.is_autocommit()
    }

    /// Runs one call of a batch; what it did is undone when it failed.
    pub(super) fn in_part<R>(
        &self,
        call: impl FnOnce(&Self) -> (Option<StoreError>, R),
    ) -> (Option<StoreError>, R) {
        let begun = self.run("SAVEPOINT call");
        let (failed, reply) = call(self);
        if begun.is_ok() && !self.is_idle() {
            let undone = match failed {
                Some(_) => self.run("ROLLBACK TO call"),
                None => Ok(()),
            };
            if let Err(error) = undone.and_then(|()| self.run("RELEASE call")) {
                tracing::error!(%error, "a savepoint could not be ended");
            }
        }
        (failed, reply)
    }

    pub(super) fn commit(&self) -> Result<(), StoreError> {
        let done = self.run("COMMIT");
        if done.is_err() && !self.is_idle() {
            self.run("ROLLBACK")?;
        }
        done
    }

    pub fn meta(&self, key: &str) -> Result<Option<String>, StoreError> {
        self.first("SELECT value FROM meta WHERE key = ?1", [key], |row| {
            row.get(0)
        })
    }

    /// Rows of `meta` by what stands behind `prefix` in their keys.
    pub(super) fn meta_under(&self, prefix: &str) -> Result<HashMap<String, String>, StoreError> {
        let sql = "SELECT key, value FROM meta WHERE key GLOB ?1";
        self.all(sql, [format!("{prefix}*")], |row| {
            let key: String = row.get(0)?;
            let rest = key.strip_prefix(prefix).unwrap_or_default().to_owned();
            Ok((rest, row.get(1)?))
        })
    }

    /// What people are called, by their ids.
    pub fn names(&self) -> Result<HashMap<String, String>, StoreError> {
        self.meta_under(NAME)
    }

    /// Callers name only people of the settings, so that these stay few.
    pub fn set_name(&self, id: &str, name: &str) -> Result<(), StoreError> {
        self.set_meta(&format!("{NAME}{id}"), name)
    }

    pub fn set_meta(&self, key: &str, value: &str) -> Result<(), StoreError> {
        let sql = "INSERT INTO meta (key, value) VALUES (:key, :value)
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value";
        self.execute(sql, named_params! {":key": key, ":value": value})
            .map(drop)
    }

    /// Removes what is older than it is useful, then what is over its cap.
    pub fn prune(&self, now: Millis) -> Result<(), StoreError> {
        self.atomically(|db| {
            requests::prune(db, now)?;
            events::prune(db, now)?;
            inbox::prune(db, now)?;
            outbox::prune(db, now)?;
            left_rules::prune(db, now)?;
            notices::prune(db, now)?;
            tickets::prune(db, now)?;
            sessions::prune(db, now)?;
            audit::prune(db, now)?;
            db.trim()
        })
    }

    /// Caps only: a clock that jumped must not empty a table.
    fn trim(&self) -> Result<(), StoreError> {
        requests::trim(self)?;
        events::trim(self)?;
        inbox::trim(self)?;
        outbox::trim(self)?;
        left_rules::trim(self)?;
        notices::trim(self)?;
        tickets::trim(self)?;
        sessions::trim(self)?;
        audit::trim(self)
    }

    /// Removes the rows of a table whose time is before that.
    pub(super) fn forget(&self, table: &str, time: &str, before: Millis) -> Result<(), StoreError> {
        let sql = format!("DELETE FROM {table} WHERE {time} < ?1");
        self.conn.execute(&sql, [before])?;
        Ok(())
    }

    /// Removes all but the first `max` rows of a table in this order.
    pub(super) fn cap(
        &self,
        table: &str,
        key: &str,
        order: &str,
        max: i64,
    ) -> Result<(), StoreError> {
        let sql = format!(
            "DELETE FROM {table} WHERE {key} IN (
                 SELECT {key} FROM {table} ORDER BY {order} LIMIT -1 OFFSET ?1)"
        );
        self.conn.execute(&sql, [max])?;
        Ok(())
    }

    pub(super) fn inserted(&self) -> Result<(), StoreError> {
        let inserted = self.inserted.get().wrapping_add(1);
        self.inserted.set(inserted);
        if inserted.is_multiple_of(TRIM_EVERY) {
            self.atomically(Self::trim)?;
        }
        Ok(())
    }

    /// Moves the write-ahead log into the file and empties it, so that settled
    /// tool input lies in neither. Gives up at once when somebody is reading.
    pub(super) fn checkpoint(&self) -> Result<(), StoreError> {
        self.conn.busy_timeout(Duration::ZERO)?;
        let done = self
            .conn
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        self.conn.busy_timeout(schema::BUSY)?;
        Ok(done?)
    }

    /// Gives some of the file's unused pages back; whether more are left. A few
    /// are kept for what comes next.
    pub(super) fn shrink(&self) -> Result<bool, StoreError> {
        let free = || -> Result<i64, StoreError> {
            let count = self
                .conn
                .query_row("PRAGMA freelist_count", [], |row| row.get(0))?;
            Ok(count)
        };
        let before = free()?;
        if before <= FREE_KEPT {
            return Ok(false);
        }
        let pages = (before - FREE_KEPT).min(SHRINK_BY);
        let sql = format!("PRAGMA incremental_vacuum({pages})");
        let mut vacuum = self.conn.prepare(&sql)?;
        // Each row is a page.
        let mut rows = vacuum.query([])?;
        while rows.next()?.is_some() {}
        let after = free()?;
        Ok(after < before && after > FREE_KEPT)
    }
}

pub(super) fn read_id<T>(
    row: &Row<'_>,
    column: &str,
    parse: fn(&str) -> Result<T, BadId>,
) -> rusqlite::Result<T> {
    read_optional_id(row, column, parse)?.ok_or_else(|| {
        rusqlite::Error::InvalidColumnType(0, column.to_owned(), rusqlite::types::Type::Null)
    })
}

pub(super) fn read_optional_id<T>(
    row: &Row<'_>,
    column: &str,
    parse: fn(&str) -> Result<T, BadId>,
) -> rusqlite::Result<Option<T>> {
    let text: Option<String> = row.get(column)?;
    text.map(|text| parse(&text)).transpose().map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
    })
}
