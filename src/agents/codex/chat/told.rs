//! What a chat's thread wants done, and what it has to tell.

use std::path::PathBuf;

use crate::agents::codex::ask::CodexAsk;
use crate::talk::How;

/// What is to be done or told.
#[derive(Debug, Clone, PartialEq)]
pub enum ChatTold {
    Send(String),
    Began {
        thread: String,
        model: Option<String>,
        /// Where Codex writes the thread down.
        path: Option<PathBuf>,
    },
    /// Codex has no such thread.
    Unknown,
    /// It could not begin.
    Failed(String),
    /// These words are part of a turn.
    Taken(String),
    /// An order about the manner was carried out, or why not.
    Ordered {
        tag: String,
        refused: Option<String>,
    },
    Words(String),
    Tool {
        id: String,
        name: String,
        summary: String,
    },
    ToolFailed(String),
    Retry {
        attempt: u32,
        most: Option<u32>,
    },
    Asked(Box<CodexAsk>),
    /// It asked something that can't be shown, and has its refusal.
    CannotAsk,
    /// The request of this name is over, not by us.
    Withdrawn(String),
    /// The turn made this plan; it is over once a person has decided on it.
    Planned {
        name: String,
        plan: String,
    },
    TurnOver {
        how: How,
        text: Option<String>,
    },
}
