//! nod lets a developer approve, answer and steer a coding agent from Feishu.
//!
//! Foreign worlds, [`feishu`], [`claude`] and [`agents`], hold every format that
//! is not ours and know nothing of each other. Our own words stand between them:
//! [`talk`], [`approvals`], [`rules`], cards. The daemon joins them.
//!
//! This library is there for the binary `nod`, its tests and its benches. It
//! promises no API: any release may change anything in it.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "a panic is how a test fails")
)]

pub mod agents;
pub mod approvals;
pub mod bounded;
pub mod bus;
pub mod cards;
pub mod child;
pub mod claude;
pub mod cli;
pub mod clock;
pub mod config;
pub mod daemon;
pub mod danger;
pub mod feishu;
pub mod files;
pub mod gateway;
pub mod hex;
pub mod hook;
pub mod ids;
pub mod rules;
pub mod sessions;
pub mod shell;
pub mod simulator;
pub mod store;
pub mod talk;
#[cfg(feature = "team")]
pub mod team;
pub mod text;
pub mod version;
pub mod wording;
