//! What a follower of Codex's daemon wants done, and what it has to tell.

use super::ask::CodexAsk;

/// What the shell around has to do.
#[derive(Debug, Clone, PartialEq)]
pub enum CodexAct {
    Send(String),
    /// The daemon has taken us for a client.
    Ready {
        agent: String,
    },
    /// It does not speak as we do: nothing of it can be followed.
    Strange(String),
    /// Who answers its approvals by its settings, and when it asks at all.
    Asks {
        reviewer: Option<String>,
        policy: Option<String>,
    },
    /// A thread came up, or does something else now.
    Thread(ScreenThread),
    /// A person is asked.
    Asked(Box<CodexAsk>),
    /// Only the terminal can answer what waits in this thread.
    TerminalOnly {
        thread: String,
        cwd: Option<String>,
        known: bool,
    },
    /// The request of this name is answered, not by us.
    Resolved(String),
    /// The request of this name, which we answered, is answered.
    Taken(String),
    /// What the request of this name asks changed, so it no longer counts; if
    /// it can be shown, it is asked anew under another name.
    Changed(String),
    /// The turn was interrupted, and nobody tells whether the call of this
    /// request, which was allowed, ran.
    CutOff(String),
    /// What became of a call whose request was answered.
    Became {
        name: String,
        declined: bool,
        took: Option<i64>,
    },
    TurnOver(TurnOver),
    /// Words reached their thread, or why not.
    Said {
        tag: u64,
        refused: Option<String>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnOver {
    pub thread: String,
    pub cwd: String,
    pub took: i64,
    pub failed: bool,
    pub last: Option<String>,
    /// The plan that it proposed: the terminal asks whether to carry it out.
    pub plan: Option<String>,
}

/// A thread that a person could have on a screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScreenThread {
    pub id: String,
    pub cwd: Option<String>,
    pub doing: Doing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    Idle,
    Works,
    /// For a person.
    Waits,
    /// Nobody has it open.
    Closed,
}
