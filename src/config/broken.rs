//! A settings file or a line of it that no setting can be read from. Never
//! shows what stands there.

use std::path::{Path, PathBuf};

use crate::text::Text;

/// A settings file that exists and could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}`: {why}", path.display())]
pub struct BrokenFile {
    pub path: PathBuf,
    pub why: UnreadFile,
    /// The settings its unreadable lines were meant to set.
    pub hidden: Vec<&'static str>,
}

impl BrokenFile {
    pub(super) fn whole(path: &Path, why: UnreadFile) -> Self {
        Self {
            path: path.to_owned(),
            why,
            hidden: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnreadFile {
    #[error("it is larger than 1 MiB")]
    TooLarge,
    #[error("{}", .0.en)]
    System(Text),
    #[error(transparent)]
    Line(#[from] BadLine),
}

/// A line no setting can be read from; its content is never shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {number}: {fault}")]
pub struct BadLine {
    pub number: usize,
    pub fault: LineFault,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LineFault {
    #[error("expected `NAME=value`")]
    NoPair,
    #[error("the name may hold letters, digits and `_` only")]
    BadName,
    #[error("a quote is not closed")]
    OpenQuote,
}
