//! nod lets a developer approve, answer and steer a coding agent from Feishu.
//!
//! Two foreign worlds, [`feishu`] and [`claude`], hold every format that is not
//! ours and know nothing of each other. Our own words stand between them:
//! [`approvals`], [`rules`], cards. The daemon joins them.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "a panic is how a test fails")
)]

pub mod approvals;
pub mod cards;
pub mod claude;
pub mod cli;
pub mod clock;
pub mod config;
pub mod daemon;
pub mod feishu;
pub mod files;
pub mod gateway;
pub mod hook;
pub mod ids;
pub mod rules;
pub mod sessions;
pub mod simulator;
pub mod store;
pub mod wording;
