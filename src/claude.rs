//! Claude Code's own formats: what its hooks say and expect.
//! Knows nothing of requests, cards or Feishu.

pub mod permission;
