//! Clicks and decisions that cross machines: whose they are, and proof that
//! one of ours minted them.

pub mod seal;
