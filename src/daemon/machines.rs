//! The other machines of this app or team, and how they are reached.

#[cfg(feature = "team")]
pub(crate) mod member;
pub(crate) mod peers;
pub(crate) mod team;
