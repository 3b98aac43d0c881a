//! Points out what deserves a second look in a command or a file: a
//! highlighter for the reader, not a filter. Silence here means nothing.

use std::ops::Range;

mod arguments;
mod code;
mod doors;
mod files;
mod git;
mod judge;
mod lookalike;
mod net;
mod nod;
mod packages;
mod places;
mod programs;
mod services;
mod text;
mod tokens;

pub use files::{read, written};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Danger {
    PipeToShell,
    InlineCode,
    RemoveTree,
    Root,
    ForcePush,
    DiscardWork,
    DiskWrite,
    OpenMode,
    Decode,
    RemoteShell,
    Keys,
    Startup,
    GitHooks,
    AgentSettings,
    /// nod itself is operated, led elsewhere or stopped.
    Nod,
    /// Something is done in Feishu under the owner's own name.
    InOwnersName,
    SystemFiles,
    Schedule,
    Destroy,
    /// What runs can't be told from the text.
    HardToRead,
    /// Something of this machine goes elsewhere.
    SendsOut,
    /// A file that decides what builds, tests or tools will run.
    BuildFiles,
    /// Other people's code from an odd place, or a registry that changes.
    Supply,
    /// A variable that chooses what another program loads.
    Steers,
    /// What is asked for is more than the one call.
    MorePermissions,
    Lookalike,
    RightToLeft,
    WideOperator,
    ManyMarks,
}

impl Danger {
    /// What is alarming even inside a file that merely gets written. The other
    /// kinds are everyday words in documentation and scripts.
    const fn grave(self) -> bool {
        matches!(
            self,
            Self::PipeToShell | Self::RemoteShell | Self::DiskWrite | Self::Decode
        )
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    pub danger: Danger,
    pub range: Range<usize>,
}

/// What the text is, and so how much of it is alarming.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanKind {
    /// A shell will read it.
    Command,
    /// A value nobody knows the meaning of: judged by its words alone.
    Value,
    /// The name of a file or place.
    Name,
    Content,
}

/// As many hits as anyone could read; the rest adds nothing but memory.
const MAX_HITS: usize = 4_096;

/// A command longer than this is for nobody's eyes, and hard to read for that.
const MAX_COMMAND: usize = 512 * 1024;

/// Every hit in the whole text, in order.
pub fn scan(text: &str, what: ScanKind) -> Vec<Hit> {
    match what {
        ScanKind::Command if text.len() > MAX_COMMAND => {
            let mut hits = text::scan(text, ScanKind::Value);
            let head = 0..text.floor_char_boundary(64);
            hits.insert(
                0,
                Hit {
                    danger: Danger::HardToRead,
                    range: head,
                },
            );
            hits.truncate(MAX_HITS);
            hits
        }
        ScanKind::Command => judge::command(text),
        ScanKind::Name => lookalike::in_text(text),
        ScanKind::Value | ScanKind::Content => text::scan(text, what),
    }
}

#[cfg(test)]
mod tests;
