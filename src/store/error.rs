//! What can go wrong with the store, by what the caller does next.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::ErrorCode;

#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Somebody else won; look the ending up with `settled`.
    #[error("the request is already settled")]
    AlreadySettled,
    /// The id is taken by a request that still waits.
    #[error("a request with this id is already waiting")]
    AlreadyPending,
    #[error("the disk is full: {0}")]
    Full(#[source] Arc<rusqlite::Error>),
    #[error("the disk can't be written: {0}")]
    Unwritable(#[source] Arc<rusqlite::Error>),
    #[error("another process holds the store: {0}")]
    Busy(#[source] Arc<rusqlite::Error>),
    #[error("the store is damaged: {0}")]
    Damaged(Arc<str>),
    #[error("the store was written by a newer nod: format {found}, this one knows {known}")]
    Newer { found: i64, known: i64 },
    #[error("`{}` can't be used: {problem}", path.display())]
    Place { path: PathBuf, problem: Arc<str> },
    /// The change may still be written; nobody knows.
    #[error("the store did not answer within {0} ms")]
    Slow(u128),
    #[error("the store is closed")]
    Closed,
    /// A mistake of ours in a statement, never a state of the disk.
    #[error("the store refused a statement: {0}")]
    Refused(#[source] Arc<rusqlite::Error>),
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
