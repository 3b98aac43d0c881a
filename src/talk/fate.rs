//! What became of a tool call, as the agent's own record tells it.

/// Who decided about a call that was not decided from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecidedBy {
    /// A person at the terminal.
    Terminal,
    /// Another hook, or a rule.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallFate {
    /// It ran, whatever came of it. `None`: the record does not say who let it.
    Ran(Option<DecidedBy>),
    /// A hook or a rule refused it.
    Refused,
    /// A person at the terminal refused or interrupted it. `before_run`: it is
    /// certain that it had not begun.
    Cancelled { before_run: bool },
}
