//! Claude Code's own formats: what its hooks say and expect, and its settings
//! file. Knows nothing of requests, cards or Feishu.

pub mod permission;
pub mod settings_file;
