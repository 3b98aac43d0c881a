//! Codex, side by side with its terminal: a second client of the daemon that
//! plain `codex` starts; and a session of a chat, by a child of its own. `wire`,
//! `ask`, `follow` and `chat` are pure; `link` dials, `pipe` carries a chat's
//! messages.

pub mod act;
pub mod ask;
pub mod chat;
pub mod follow;
pub mod link;
pub mod pipe;
pub mod wire;
