//! The command line as text: its help, what is said of a wrong one, the manual
//! and the completions of a shell.

pub(super) mod completions;
pub(super) mod help;
pub(super) mod man;
pub(super) mod usage;
