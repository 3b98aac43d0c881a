//! The cards in Feishu: sent, kept true, brought to their last face.

#[cfg(test)]
pub(crate) mod bench;
pub(crate) mod book;
pub(crate) mod courier;
pub(crate) mod locking;
pub(crate) mod notices;
pub(crate) mod sure;
