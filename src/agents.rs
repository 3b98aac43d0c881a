//! Other coding agents than Claude Code, a room for each: their formats on one
//! side, our own words on the other.

pub mod codex;
