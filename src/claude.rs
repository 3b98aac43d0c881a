//! Claude Code's own formats: what its hooks say and expect, its settings
//! file, and the stream it speaks as a child. Knows nothing of requests, cards
//! or Feishu.

pub mod exit;
pub mod hooks_file;
mod json_text;
pub mod launch;
pub mod mailbox;
pub mod permission;
pub mod process;
pub mod results;
pub mod settings_file;
pub mod status;
pub mod stream;
pub mod transcript;
