//! What the local Feishu knows: its options, its messages and the cards in them,
//! its clock of budgets, and what happened.

pub(super) mod card;
pub(super) mod core;
pub(super) mod history;
pub(super) mod mint;
pub(super) mod options;
pub(super) mod pace;
pub(super) mod state;
