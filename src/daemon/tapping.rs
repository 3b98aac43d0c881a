//! What people tap: the push to its answer, the card's buttons, the webhook mode's
//! pages.

pub(crate) mod clicks;
pub(crate) mod pages;
