//! The other machines of this app or team, and how they are reached.

#[cfg(test)]
#[cfg(feature = "team")]
pub(crate) mod bench;
pub(crate) mod gate;
#[cfg(feature = "team")]
pub(crate) mod member;

pub(crate) mod team;
