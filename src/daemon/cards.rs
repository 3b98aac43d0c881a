//! The cards in Feishu: sent, kept true, brought to their last face.

pub(crate) mod book;
pub(crate) mod courier;
pub(crate) mod edits;
pub(crate) mod nameless;
pub(crate) mod sure;
pub(crate) mod under_way;
