//! What can go wrong with the store, by what the caller does next.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::ErrorCode;

#[derive(Debug, Clone)]
pub enum StoreError {
    /// Somebody else won; look the ending up with `settled`.
    AlreadySettled,
    /// The id is taken by a request that still waits.
    AlreadyPending,
    Full(Arc<rusqlite::Error>),
    Unwritable(Arc<rusqlite::Error>),
    Busy(Arc<rusqlite::Error>),
    Damaged(Arc<str>),
    Newer {
        found: i64,
        known: i64,
    },
    Place {
        path: PathBuf,
        problem: Arc<str>,
    },
    /// The change may still be written; nobody knows.
    Slow(u128),
    Closed,
    /// A mistake of ours in a statement, never a state of the disk.
    Refused(Arc<rusqlite::Error>),
}

impl StoreError {
    /// Whether the disk, and not the request, is the reason.
    pub fn is_about_the_disk(&self) -> bool {
        match self {
            Self::Full(_)
            | Self::Unwritable(_)
            | Self::Busy(_)
            | Self::Damaged(_)
            | Self::Newer { .. }
            | Self::Place { .. }
            | Self::Slow(_)
            | Self::Closed => true,
            Self::AlreadySettled | Self::AlreadyPending | Self::Refused(_) => false,
        }
    }

    pub(super) fn place(path: &std::path::Path, problem: &io::Error) -> Self {
        Self::Place {
            path: path.to_owned(),
            problem: problem.to_string().into(),
        }
    }
}

/// What people are told, and the cause they are spared.
impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text().en)?;
        match self {
            Self::Full(why) | Self::Unwritable(why) | Self::Busy(why) | Self::Refused(why) => {
                write!(f, ": {why}")
            }
            Self::Damaged(why) => write!(f, ": {why}"),
            Self::Place { .. }
            | Self::AlreadySettled
            | Self::AlreadyPending
            | Self::Newer { .. }
            | Self::Slow(_)
            | Self::Closed => Ok(()),
        }
    }
}

impl std::error::Error for StoreError {}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full(Arc::new(error)),
            Some(ErrorCode::ReadOnly | ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => {
                Self::Unwritable(Arc::new(error))
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                Self::Busy(Arc::new(error))
            }
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Damaged(error.to_string().into())
            }
            None if is_unreadable(&error) => Self::Damaged(error.to_string().into()),
            Some(_) | None => Self::Refused(Arc::new(error)),
        }
    }
}

/// A value that nod can't have written.
fn is_unreadable(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..)
    )
}
