//! What people write, and the sessions that hear it.

pub(crate) mod chat;
pub(crate) mod drafts;
pub(crate) mod picks;
pub(crate) mod sessions;
