//! Whoever asks: hooks, Codex beside its terminal, and what only tells.

pub(crate) mod codex;
pub(crate) mod dialogs;
pub(crate) mod flood;
pub(crate) mod hook_events;
pub(crate) mod intake;
pub mod no_daemon;
