//! The people of the local Feishu: what they tap, and what they write.

pub(super) mod click;
pub(super) mod person;
