//! What the daemon tells of itself and finds out once.

pub mod metrics;
pub(crate) mod names;
pub(crate) mod rivals;
pub(crate) mod status;
