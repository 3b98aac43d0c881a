//! Files that people sent to sessions, by what they are on the disk: only what
//! is listed here is ever taken away.

use rusqlite::{Row, named_params};

use super::StoreError;
use super::db::Db;
use crate::clock::Millis;

/// Of one session.
const SESSION_MAX: u64 = 64;
const SESSION_BYTES: u64 = 256 << 20;
/// Of all of them.
const MAX: u64 = 512;
const BYTES: u64 = 1 << 30;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptFile {
    pub session: i64,
    pub name: String,
    pub device: u64,
    pub inode: u64,
    pub bytes: u64,
    pub at: Millis,
}

impl Db {
    /// Whether one more file of this size may be kept for the session.
    pub fn room_for_file(&self, session: i64, bytes: u64) -> Result<bool, StoreError> {
        let of = |sql: &str, key: &[i64]| -> Result<(u64, u64), StoreError> {
            let key = rusqlite::params_from_iter(key);
            let count = |row: &Row<'_>, at| row.get::<_, i64>(at).map(i64::unsigned_abs);
            let read = |row: &Row<'_>| Ok((count(row, 0)?, count(row, 1)?));
            self.one(sql, key, read)
        };
        let (files, held) = of(
            "SELECT count(*), ifnull(sum(bytes), 0) FROM files WHERE session = ?1",
            &[session],
        )?;
        let (all, all_held) = of("SELECT count(*), ifnull(sum(bytes), 0) FROM files", &[])?;
        Ok(files < SESSION_MAX
            && all < MAX
            && held.saturating_add(bytes) <= SESSION_BYTES
            && all_held.saturating_add(bytes) <= BYTES)
    }

    pub fn file_kept(&self, file: &KeptFile) -> Result<(), StoreError> {
        let sql = "INSERT OR REPLACE INTO files (session, name, device, inode, bytes, at)
                 VALUES (:session, :name, :device, :inode, :bytes, :at)";
        let with = named_params! {
            ":session": file.session,
            ":name": file.name,
            ":device": file.device.cast_signed(),
            ":inode": file.inode.cast_signed(),
            ":bytes": file.bytes.cast_signed(),
            ":at": file.at,
        };
        self.execute(sql, with).map(drop)
    }

    pub fn files_of(&self, session: i64) -> Result<Vec<KeptFile>, StoreError> {
        self.some_files("SELECT * FROM files WHERE session = ?1", session)
    }

    pub fn files_before(&self, at: Millis) -> Result<Vec<KeptFile>, StoreError> {
        self.some_files("SELECT * FROM files WHERE at < ?1", at)
    }

    pub fn files_gone(&self, files: &[KeptFile]) -> Result<(), StoreError> {
        self.atomically(|db| {
            for file in files {
                let sql = "DELETE FROM files WHERE session = ?1 AND name = ?2";
                db.execute(sql, (file.session, &file.name))?;
            }
            Ok(())
        })
    }

    fn some_files(&self, sql: &str, key: i64) -> Result<Vec<KeptFile>, StoreError> {
        let unsigned = |row: &Row<'_>, name: &str| row.get::<_, i64>(name).map(i64::cast_unsigned);
        self.all(sql, [key], |row| {
            Ok(KeptFile {
                session: row.get("session")?,
                name: row.get("name")?,
                device: unsigned(row, "device")?,
                inode: unsigned(row, "inode")?,
                bytes: unsigned(row, "bytes")?,
                at: row.get("at")?,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::samples::store;

    fn file(session: i64, name: &str, bytes: u64, at: Millis) -> KeptFile {
        KeptFile {
            session,
            name: name.to_owned(),
            device: u64::MAX,
            inode: 7,
            bytes,
            at,
        }
    }

    #[test]
    fn a_file_is_known_by_what_it_is_until_it_is_gone() {
        let db = store();
        let files = [
            file(1, "a", 3, 10),
            file(1, "b", 4, 20),
            file(2, "a", 5, 30),
        ];
        for file in &files {
            db.file_kept(file).unwrap();
        }
        assert_eq!(db.files_of(1).unwrap(), files[..2]);
        assert_eq!(db.files_before(20).unwrap(), files[..1]);
        db.files_gone(&files[..2]).unwrap();
        assert_eq!(db.files_before(Millis::MAX).unwrap(), files[2..]);
    }

    #[test]
    fn files_are_capped_in_count_and_bytes_per_session_and_in_all() {
        let db = store();
        assert!(db.room_for_file(1, SESSION_BYTES).unwrap());
        assert!(!db.room_for_file(1, SESSION_BYTES + 1).unwrap());
        db.file_kept(&file(1, "a", SESSION_BYTES - 1, 1)).unwrap();
        assert!(db.room_for_file(1, 1).unwrap());
        assert!(!db.room_for_file(1, 2).unwrap());
        for session in 2..5 {
            db.file_kept(&file(session, "a", SESSION_BYTES, 1)).unwrap();
        }
        assert!(db.room_for_file(9, 1).unwrap());
        assert!(!db.room_for_file(9, 2).unwrap());
        let db = store();
        for n in 0..MAX {
            let session = i64::try_from(n / SESSION_MAX).unwrap();
            assert!(db.room_for_file(session, 0).unwrap(), "{n}");
            db.file_kept(&file(session, &n.to_string(), 0, 1)).unwrap();
            let full = (n + 1) % SESSION_MAX == 0;
            assert_eq!(db.room_for_file(session, 0).unwrap(), !full, "{n}");
        }
        assert!(!db.room_for_file(99, 0).unwrap());
    }
}
