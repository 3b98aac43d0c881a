//! The file itself: where it lies, who may read it, its tables, and what
//! happens to a file that can't be used. Never throws a file away.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::StoreError;
use crate::clock::Millis;

/// The store's name in its directory.
pub const FILE: &str = "nod.db";

/// What `SQLite` may put beside the file.
const LOGS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Another process only ever holds the store for one short change.
pub(super) const BUSY: Duration = Duration::from_millis(500);

/// Files set aside beyond these are removed, oldest first.
const SET_ASIDE_KEPT: usize = 5;

/// Step `n` brings format `n` to `n + 1`; a step is never edited once released.
const STEPS: &[&str] = &[
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
    include_str!("schema/5.sql"),
    include_str!("schema/6.sql"),
    include_str!("schema/7.sql"),
    include_str!("schema/8.sql"),
    include_str!("schema/9.sql"),
];

/// The oldest format whose nods can go on with a file of ours, because every
/// later step only adds tables, rows and columns that have a default. The
/// file's `user_version` is this, and a row of `meta` tells which steps it has
/// had: whoever takes back an update finds everything. A step that changes what
/// is there raises it to its own number.
const READABLE_SINCE: i64 = 4;

/// The row of `meta` that says which steps the file has had; where it is
/// missing, `user_version` says it.
const FORMAT: &str = "format";

/// The row of `meta` that says whether nod is locked, and its value when nobody
/// knows: the file that did is lost.
pub const LOCKED: &str = "locked";
pub const NOBODY_KNOWS: &str = "unknown";

/// A damaged file, and where it lies for a person to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    pub file: PathBuf,
    pub why: Box<str>,
}

/// Opens the file for reading and writing; sets a damaged one aside and starts
/// an empty one in its place. One that only a newer nod can read is left where
/// it is, for that one to go on with.
pub(super) fn open(dir: &Path, now: Millis) -> Result<(Connection, Option<SetAside>), StoreError> {
    let file = private_dir(dir)?.join(FILE);
    let first = is_first(&file);
    match open_file(&file, first) {
        Ok(conn) => Ok((conn, None)),
        Err(StoreError::Damaged(problem)) => start_over(&file, now, problem.as_ref().into()),
        Err(error) => Err(error),
    }
}

pub(super) fn open_read_only(dir: &Path) -> Result<Connection, StoreError> {
    let dir = dir
        .canonicalize()
        .map_err(|error| StoreError::place(dir, &error))?;
    let file = dir.join(FILE);
    // SQLite answers "unable to open" for everything; this says why.
    fs::symlink_metadata(&file).map_err(|error| StoreError::place(&file, &error))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(file, flags)?;
    conn.busy_timeout(BUSY)?;
    let needs = needs(&conn)?;
    if needs > known() {
        return Err(newer(needs));
    }
    let had = had(&conn)?;
    if had < known() {
        return Err(StoreError::Damaged(
            format!("format {had} is older than this nod's and was not brought forward").into(),
        ));
    }
    Ok(conn)
}

pub(super) fn in_memory() -> Result<Connection, StoreError> {
    let conn = Connection::open_in_memory()?;
    settle_in(&conn)?;
    migrate(&conn, true)?;
    Ok(conn)
}

/// Whether there never was a file: neither one, nor one that was set aside.
fn is_first(file: &Path) -> bool {
    let mut names = LOGS.into_iter().chain([""]);
    let nothing = names.all(|tail| fs::symlink_metadata(beside(file, tail)).is_err());
    let aside = file.parent().map(set_aside_before);
    nothing && matches!(aside, Some(Ok(old)) if old.is_empty())
}

fn known() -> i64 {
    i64::try_from(STEPS.len()).expect("a handful of steps")
}

fn newer(found: i64) -> StoreError {
    StoreError::Newer {
        found,
        known: known(),
    }
}

/// The format a nod must know to use the file.
fn needs(conn: &Connection) -> Result<i64, StoreError> {
    Ok(conn.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

/// The steps the file has had.
fn had(conn: &Connection) -> Result<i64, StoreError> {
    let needs = needs(conn)?;
    if needs == 0 {
        return Ok(0);
    }
    let sql = "SELECT max(CAST(value AS INTEGER)) FROM meta WHERE key = ?1";
    let told: Option<i64> = conn.query_row(sql, [FORMAT], |row| row.get(0))?;
    Ok(told.unwrap_or(needs).max(needs))
}

fn open_file(file: &Path, first: bool) -> Result<Connection, StoreError> {
    private_file(file)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(file, flags)?;
    // Closing an unusable file must not fold its log in: it is evidence.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    conn.busy_timeout(BUSY)?;
    let found = needs(&conn)?;
    if found > known() {
        return Err(newer(found));
    }
    if found == 0 {
        // Before the first table, or it would take rewriting the file.
        conn.execute_batch("PRAGMA auto_vacuum = INCREMENTAL")?;
    }
    settle_in(&conn)?;
    if found > 0 {
        check(&conn, file)?;
    }
    migrate(&conn, first)?;
    if let Err(error) = let_shrink(&conn) {
        tracing::debug!(%error, "the store's file does not shrink");
    }
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    Ok(conn)
}

/// A file of an older nod is rewritten once, so that it can give back what it
/// no longer needs. In memory: a temporary file would hold tool input.
fn let_shrink(conn: &Connection) -> Result<(), StoreError> {
    const INCREMENTAL: i64 = 2;
    let mode: i64 = conn.query_row("PRAGMA auto_vacuum", [], |row| row.get(0))?;
    if mode != INCREMENTAL {
        conn.execute_batch(
            "PRAGMA temp_store = MEMORY; PRAGMA auto_vacuum = INCREMENTAL; VACUUM;",
        )?;
    }
    Ok(())
}

/// Reads every page, because a torn file opens without complaint and fails
/// only when the missing part is wanted. `SQLite` reads half a page as one that
/// ends in zeros; without a log to mend it, that is damage as well.
fn check(conn: &Connection, file: &Path) -> Result<(), StoreError> {
    let page: u64 = conn.query_row("PRAGMA page_size", [], |row| {
        row.get::<_, i64>(0).map(i64::unsigned_abs)
    })?;
    let size = |path: &Path| fs::metadata(path).map_or(0, |is| is.len());
    if size(&beside(file, "-wal")) == 0 && !size(file).is_multiple_of(page.max(1)) {
        return Err(StoreError::Damaged("its last page is not whole".into()));
    }
    let verdict: String = conn.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict == "ok" {
        Ok(())
    } else {
        Err(StoreError::Damaged(verdict.into()))
    }
}

/// `synchronous = NORMAL` in WAL mode writes each commit to the kernel and
/// syncs at checkpoints: it survives a killed process, and after a power loss
/// the file is whole but the last commits may be missing. The hook that waited
/// for them lost its power too, so nobody is left to be told twice.
pub(super) fn settle_in(conn: &Connection) -> Result<(), StoreError> {
    conn.busy_timeout(BUSY)?;
    conn.set_prepared_statement_cache_capacity(64);
    let mode = conn.query_row("PRAGMA journal_mode = WAL", [], |row| {
        row.get::<_, String>(0)
    });
    match mode {
        Ok(mode) if mode == "wal" => {
            conn.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 4096;")?;
        }
        // Network file systems lack the shared memory that WAL needs.
        Ok(_) => truncate_mode(conn)?,
        Err(error) => match StoreError::from(error) {
            error @ (StoreError::Damaged(_) | StoreError::Busy(_)) => return Err(error),
            _ => truncate_mode(conn)?,
        },
    }
    // Tool input must not lie in free pages after its request was settled.
    conn.execute_batch("PRAGMA secure_delete = ON; PRAGMA trusted_schema = OFF;")?;
    Ok(())
}

/// A rollback journal is only sound when each commit is synced.
fn truncate_mode(conn: &Connection) -> Result<(), StoreError> {
    conn.query_row("PRAGMA journal_mode = TRUNCATE", [], |_| Ok(()))?;
    conn.execute_batch("PRAGMA synchronous = FULL;")?;
    Ok(())
}

/// `first`: nothing can have been forgotten by a file that starts empty.
fn migrate(conn: &Connection, first: bool) -> Result<(), StoreError> {
    if had(conn)? >= known() {
        return Ok(());
    }
    conn.execute_batch("BEGIN IMMEDIATE")?;
    let done = step_up(conn, first);
    if done.is_err() && !conn.is_autocommit() {
        conn.execute_batch("ROLLBACK")?;
    }
    done
}

/// Reads the format again: another process may have been quicker.
fn step_up(conn: &Connection, first: bool) -> Result<(), StoreError> {
    let from = usize::try_from(had(conn)?)
        .map_err(|_| StoreError::Damaged("its format number is negative".into()))?;
    for step in STEPS.iter().skip(from) {
        conn.execute_batch(step)?;
    }
    let sql = "INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)";
    if from == 0 && !first {
        conn.execute(sql, [LOCKED, NOBODY_KNOWS])?;
    }
    conn.execute(sql, [FORMAT, &known().to_string()])?;
    conn.pragma_update(None, "user_version", READABLE_SINCE)?;
    conn.execute_batch("COMMIT")?;
    Ok(())
}

fn start_over(
    file: &Path,
    now: Millis,
    why: Box<str>,
) -> Result<(Connection, Option<SetAside>), StoreError> {
    let set_aside = set_aside(file, now, why).map_err(|error| StoreError::place(file, &error))?;
    Ok((open_file(file, false)?, Some(set_aside)))
}

/// The write-ahead log goes first: left behind, it would be replayed into the
/// empty file that takes this one's place.
fn set_aside(file: &Path, now: Millis, why: Box<str>) -> io::Result<SetAside> {
    let mut stamp = now;
    let mut to = beside(file, &format!(".damaged-{stamp}"));
    while fs::symlink_metadata(&to).is_ok() {
        stamp += 1;
        to = beside(file, &format!(".damaged-{stamp}"));
    }
    for tail in LOGS.into_iter().chain([""]) {
        match fs::rename(beside(file, tail), beside(&to, tail)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
    }
    forget_oldest(file)?;
    Ok(SetAside { file: to, why })
}

/// The files that were set aside in this directory, by when. An older nod did
/// so with those of a newer one.
fn set_aside_before(dir: &Path) -> io::Result<Vec<(Millis, PathBuf)>> {
    let mut old = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let stamp = name
            .to_str()
            .and_then(|name| name.strip_prefix(FILE))
            .and_then(|rest| {
                rest.strip_prefix(".damaged-")
                    .or_else(|| rest.strip_prefix(".newer-"))
            })
            .and_then(|stamp| stamp.parse().ok());
        if let Some(stamp) = stamp {
            old.push((stamp, entry.path()));
        }
    }
    Ok(old)
}

fn forget_oldest(file: &Path) -> io::Result<()> {
    let Some(dir) = file.parent() else {
        return Ok(());
    };
    let mut old = set_aside_before(dir)?;
    old.sort();
    let surplus = old.len().saturating_sub(SET_ASIDE_KEPT);
    for (_, path) in old.into_iter().take(surplus) {
        for tail in LOGS.into_iter().chain([""]) {
            match fs::remove_file(beside(&path, tail)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => other?,
            }
        }
    }
    Ok(())
}

fn beside(file: &Path, tail: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(tail);
    name.into()
}

fn private_dir(dir: &Path) -> Result<PathBuf, StoreError> {
    let place = |error: &io::Error| StoreError::place(dir, error);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|error| place(&error))?;
    let dir_is = fs::metadata(dir).map_err(|error| place(&error))?;
    let problem = if dir_is.uid() != rustix::process::geteuid().as_raw() {
        "it belongs to another user"
    } else if dir_is.mode() & 0o002 != 0 {
        "everybody can write there"
    } else {
        if dir_is.mode() & 0o077 != 0 {
            fs::set_permissions(dir, fs::Permissions::from_mode(0o700))
                .map_err(|error| place(&error))?;
        }
        return dir.canonicalize().map_err(|error| place(&error));
    };
    Err(place(&io::Error::other(problem)))
}

/// Makes the file 0600 before `SQLite` sees it; `SQLite` gives the same mode to
/// the files it puts beside it.
fn private_file(file: &Path) -> Result<(), StoreError> {
    for tail in LOGS.into_iter().chain([""]) {
        let path = beside(file, tail);
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .create(tail.is_empty())
            .mode(0o600)
            .custom_flags(open_flags())
            .open(&path);
        let opened = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => other.map_err(|error| StoreError::place(&path, &error))?,
        };
        let place = |error: io::Error| StoreError::place(&path, &error);
        let is = opened.metadata().map_err(place)?;
        if !is.is_file() {
            return Err(place(io::Error::other("it is not a regular file")));
        }
        if is.uid() != rustix::process::geteuid().as_raw() {
            return Err(place(io::Error::other("it belongs to another user")));
        }
        if is.mode() & 0o077 != 0 {
            opened
                .set_permissions(fs::Permissions::from_mode(0o600))
                .map_err(place)?;
        }
    }
    Ok(())
}

fn open_flags() -> i32 {
    use rustix::fs::OFlags;
    (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::samples::{pending, settlement};
    use crate::store::{Chain, Db, Health, Store, StoreNotice};

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    fn filled(dir: &Path) -> Db {
        let (db, set_aside) = Db::open(dir, 1).unwrap();
        assert_eq!(set_aside, None);
        for n in 0..20 {
            db.settle(&settlement(&format!("r{n}"), "allowed")).unwrap();
        }
        db.save_pending(&pending("waiting")).unwrap();
        db
    }

    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }

    fn aside(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.contains("damaged-") || name.contains("newer-"))
            .collect();
        names.sort();
        names
    }

    #[test]
    fn nobody_else_can_read_the_directory_or_its_files() {
        let outer = tempfile::tempdir().unwrap();
        let dir = outer.path().join("state/nod");
        fs::create_dir_all(&dir).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(dir.join(FILE), "").unwrap();
        fs::set_permissions(dir.join(FILE), fs::Permissions::from_mode(0o644)).unwrap();

        let _db = filled(&dir);
        assert_eq!(mode(&dir), 0o700);
        for tail in ["", "-wal", "-shm"] {
            assert_eq!(mode(&beside(&dir.join(FILE), tail)), 0o600, "{tail}");
        }
    }

    #[test]
    fn a_place_that_is_not_ours_alone_is_refused() {
        let outer = tempfile::tempdir().unwrap();
        let open_to_all = outer.path().join("open");
        fs::create_dir(&open_to_all).unwrap();
        fs::set_permissions(&open_to_all, fs::Permissions::from_mode(0o777)).unwrap();
        let linked = outer.path().join("linked");
        fs::create_dir(&linked).unwrap();
        std::os::unix::fs::symlink("/dev/null", linked.join(FILE)).unwrap();
        let odd = outer.path().join("odd");
        fs::create_dir_all(odd.join(FILE)).unwrap();

        for dir in [open_to_all, linked, odd] {
            let refused = Db::open(&dir, 1).map(|_| ());
            assert!(
                matches!(refused, Err(StoreError::Place { .. })),
                "{refused:?}"
            );
        }
    }

    #[test]
    fn a_killed_daemon_leaves_everything_it_committed() {
        let dir = tempfile::tempdir().unwrap();
        let db = filled(dir.path());
        let killed = tempfile::tempdir().unwrap();
        copy(dir.path(), killed.path());
        drop(db);

        let (db, set_aside) = Db::open(killed.path(), 2).unwrap();
        assert_eq!(set_aside, None);
        assert_eq!(db.pending_all().unwrap(), [pending("waiting")]);
        assert_eq!(db.verify_audit().unwrap(), Chain::Whole { rows: 20 });
    }

    #[test]
    fn a_file_cut_anywhere_opens_or_is_set_aside() {
        let dir = tempfile::tempdir().unwrap();
        let db = filled(dir.path());
        let unclean = tempfile::tempdir().unwrap();
        copy(dir.path(), unclean.path());
        db.checkpoint().unwrap();
        drop(db);
        let mut whole = 0;
        let mut torn = 0;
        for (from, tail) in [
            (dir.path(), ""),
            (unclean.path(), ""),
            (unclean.path(), "-wal"),
        ] {
            let size = fs::metadata(beside(&from.join(FILE), tail)).unwrap().len();
            let step = usize::try_from(size / 60 + 1).unwrap();
            for cut in (0..=size).step_by(step).chain([1, 16, 99, 100, size - 1]) {
                let try_in = tempfile::tempdir().unwrap();
                copy(from, try_in.path());
                fs::File::options()
                    .write(true)
                    .open(beside(&try_in.path().join(FILE), tail))
                    .unwrap()
                    .set_len(cut)
                    .unwrap();
                let (db, set_aside) = Db::open(try_in.path(), 5)
                    .unwrap_or_else(|error| panic!("{tail:?} cut at {cut}: {error}"));
                let chain = db.verify_audit();
                assert!(
                    matches!(chain, Ok(Chain::Whole { .. })),
                    "{tail:?} cut at {cut}: {chain:?}, {set_aside:?}"
                );
                db.settle(&settlement("after", "allowed")).unwrap();
                match set_aside {
                    Some(found) => {
                        assert!(found.file.exists());
                        torn += 1;
                    }
                    None => whole += 1,
                }
            }
        }
        assert!(whole > 0 && torn > 0, "{whole} whole, {torn} torn");
    }

    #[test]
    fn flipped_bytes_never_stop_the_start() {
        let dir = tempfile::tempdir().unwrap();
        drop(filled(dir.path()));
        let good = fs::read(dir.path().join(FILE)).unwrap();
        for at in (0..good.len()).step_by(good.len() / 150) {
            let mut bad = good.clone();
            bad[at] ^= 0x55;
            let try_in = tempfile::tempdir().unwrap();
            fs::write(try_in.path().join(FILE), bad).unwrap();
            let (db, _) = Db::open(try_in.path(), 5)
                .unwrap_or_else(|error| panic!("flipped at {at}: {error}"));
            // Damage inside a value is the chain's to find.
            let _ = db.verify_audit();
            let _ = db.pending_all();
        }
    }

    #[test]
    fn a_file_that_is_no_database_is_set_aside_with_its_log() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(FILE), "not a database".repeat(100)).unwrap();
        fs::write(dir.path().join("nod.db-wal"), "log").unwrap();
        let (db, set_aside) = Db::open(dir.path(), 77).unwrap();
        let set_aside = set_aside.unwrap();
        assert!(!set_aside.why.is_empty());
        let names = aside(dir.path());
        assert_eq!(names[0], "nod.db.damaged-77");
        assert!(
            names.contains(&"nod.db.damaged-77-wal".to_owned()),
            "{names:?}"
        );
        assert_eq!(db.pending_all().unwrap(), []);
    }

    #[test]
    fn a_newer_file_is_left_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let db = filled(dir.path());
        db.conn.pragma_update(None, "user_version", 99).unwrap();
        drop(db);
        let bytes = || fs::read(dir.path().join(FILE)).unwrap();
        let before = bytes();
        let reader = Db::open_read_only(dir.path()).map(drop);
        let writer = Db::open(dir.path(), 5).map(drop);
        for found in [reader, writer] {
            assert!(
                matches!(found, Err(StoreError::Newer { found: 99, .. })),
                "{found:?}"
            );
        }
        let (store, notice) = Store::open(dir.path(), 6).unwrap();
        assert!(
            matches!(notice, Some(StoreNotice::MemoryOnly(_))),
            "{notice:?}"
        );
        assert_ne!(store.health(), Health::Good);
        drop(store);
        assert_eq!(aside(dir.path()), [""; 0]);
        assert!(bytes() == before, "the file was touched");
    }

    #[test]
    fn a_file_with_steps_that_only_add_is_used_and_keeps_its_mark() {
        let dir = tempfile::tempdir().unwrap();
        let db = filled(dir.path());
        let mark = |db: &Db| -> (i64, Option<String>) {
            let needs = db
                .conn
                .query_row("PRAGMA user_version", [], |row| row.get(0));
            (needs.unwrap(), db.meta(FORMAT).unwrap())
        };
        assert_eq!(mark(&db), (READABLE_SINCE, Some(known().to_string())));
        db.set_meta(FORMAT, "99").unwrap();
        drop(db);
        let (db, set_aside) = Db::open(dir.path(), 5).unwrap();
        assert_eq!(set_aside, None);
        assert_eq!(mark(&db), (READABLE_SINCE, Some("99".to_owned())));
        assert!(Db::open_read_only(dir.path()).is_ok());
    }

    #[test]
    fn only_a_first_start_is_known_not_to_be_locked() {
        let locked = |db: &Db| db.meta(LOCKED).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let (db, _) = Db::open(dir.path(), 1).unwrap();
        assert_eq!(locked(&db).as_deref(), Some("no"));
        db.set_meta(LOCKED, "yes").unwrap();
        drop(db);
        let (db, _) = Db::open(dir.path(), 2).unwrap();
        assert_eq!(locked(&db).as_deref(), Some("yes"));
        drop(db);
        let lose: [fn(&Path); 3] = [
            |file| fs::write(file, "not a database".repeat(100)).unwrap(),
            |file| fs::write(file, "").unwrap(),
            // Set aside, and killed before the new file had its tables.
            |file| fs::rename(file, beside(file, ".damaged-5")).unwrap(),
        ];
        for (n, lose) in lose.into_iter().enumerate() {
            let place = tempfile::tempdir().unwrap();
            copy(dir.path(), place.path());
            lose(&place.path().join(FILE));
            for again in 0..2 {
                let (db, _) = Db::open(place.path(), 3).unwrap();
                let found = locked(&db);
                assert_eq!(found.as_deref(), Some(NOBODY_KNOWS), "{n}, start {again}");
            }
        }
    }

    #[test]
    fn a_file_of_an_older_nod_is_brought_forward_with_what_is_in_it() {
        for from in 1..STEPS.len() {
            let dir = tempfile::tempdir().unwrap();
            let conn = Connection::open(dir.path().join(FILE)).unwrap();
            for step in &STEPS[..from] {
                conn.execute_batch(step).unwrap();
            }
            conn.execute_batch(
                "INSERT OR REPLACE INTO meta VALUES ('locked', 'yes'), ('machine_id', 'm');
                 INSERT INTO answers VALUES ('e', 1, x'00');
                 INSERT INTO outbox (message_id, card, at) VALUES ('om_1', 'card', 1);",
            )
            .unwrap();
            let version = i64::try_from(from).unwrap();
            conn.pragma_update(None, "user_version", version).unwrap();
            drop(conn);
            let (db, set_aside) = Db::open(dir.path(), 2).unwrap();
            assert_eq!(set_aside, None, "from {from}");
            let shrinks: i64 = db
                .conn
                .query_row("PRAGMA auto_vacuum", [], |row| row.get(0))
                .unwrap();
            assert_eq!(shrinks, 2, "from {from}");
            assert_eq!(db.meta("locked").unwrap().as_deref(), Some("yes"));
            assert_eq!(db.meta("machine_id").unwrap().as_deref(), Some("m"));
            assert_eq!(db.edits().unwrap().len(), 1, "an edit must still be made");
            let answers: i64 = db
                .conn
                .query_row("SELECT count(*) FROM answers", [], |row| row.get(0))
                .unwrap();
            let kept = i64::from(from >= 5);
            assert_eq!(answers, kept, "those before the fifth step held tool input");
        }
    }

    #[test]
    fn only_the_newest_files_set_aside_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..=SET_ASIDE_KEPT {
            fs::write(dir.path().join(FILE), "not a database".repeat(100)).unwrap();
            Db::open(dir.path(), 10).unwrap();
            fs::remove_file(dir.path().join(FILE)).unwrap();
        }
        let names = aside(dir.path());
        assert_eq!(names.len(), SET_ASIDE_KEPT);
        assert_eq!(names[0], "nod.db.damaged-11");
    }

    #[test]
    fn a_reader_sees_what_the_writer_commits_and_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let writer = filled(dir.path());
        let reader = Db::open_read_only(dir.path()).unwrap();
        assert_eq!(reader.verify_audit().unwrap(), Chain::Whole { rows: 20 });
        writer.settle(&settlement("more", "denied")).unwrap();
        assert_eq!(reader.verify_audit().unwrap(), Chain::Whole { rows: 21 });
        let written = reader.settle(&settlement("mine", "allowed"));
        assert!(
            matches!(written, Err(StoreError::Unwritable(_))),
            "{written:?}"
        );

        drop((writer, reader));
        let reader = Db::open_read_only(dir.path()).unwrap();
        assert_eq!(reader.verify_audit().unwrap(), Chain::Whole { rows: 21 });
        let nowhere = Db::open_read_only(&dir.path().join("none")).map(|_| ());
        assert!(
            matches!(nowhere, Err(StoreError::Place { .. })),
            "{nowhere:?}"
        );
    }

    #[test]
    fn without_shared_memory_a_synced_journal_takes_its_place() {
        let dir = tempfile::tempdir().unwrap();
        // This file system layer of SQLite's has no shared memory, like NFS.
        let conn = Connection::open_with_flags_and_vfs(
            dir.path().join(FILE),
            OpenFlags::default(),
            "unix-dotfile",
        )
        .unwrap();
        settle_in(&conn).unwrap();
        migrate(&conn, true).unwrap();
        let pragma = |name: &str| -> String {
            conn.query_row(
                &format!("SELECT CAST({name} AS TEXT) FROM pragma_{name}"),
                [],
                |row| row.get(0),
            )
            .unwrap()
        };
        assert_eq!(pragma("journal_mode"), "truncate");
        assert_eq!(pragma("synchronous"), "2");
        assert_eq!(needs(&conn).unwrap(), READABLE_SINCE);
    }
}
