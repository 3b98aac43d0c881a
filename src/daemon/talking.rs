//! What people write, and the sessions that hear it.

pub(crate) mod chat;
pub(crate) mod drafts;
pub(crate) mod inbox;
pub(crate) mod sessions;
