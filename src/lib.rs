//! nod lets a developer approve, answer and steer a coding agent from Feishu.
//!
//! Foreign worlds, `feishu`, `claude` and `agents`, hold every format that is
//! not ours and know nothing of each other. Our own words stand between them:
//! `talk`, `approvals`, `rules`, `cards`. The daemon joins them.
//!
//! This library is there for the binary `nod`, its tests and its benches. It
//! promises no API: any release may change anything in it.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "a panic is how a test fails")
)]
#![cfg_attr(
    not(feature = "team"),
    allow(dead_code, reason = "what a team alone uses stands in many rooms")
)]

mod agents;
mod approvals;
mod bounded;
mod bus;
mod cards;
mod child;
mod claude;
mod cli;
mod clock;
mod config;
mod daemon;
mod danger;
mod feishu;
mod files;
#[doc(hidden)]
pub mod for_tests;
mod gateway;
mod hex;
mod hook;
mod ids;
mod rules;
mod sessions;
mod shell;
mod simulator;
mod store;
mod talk;
#[cfg(feature = "team")]
mod team;
mod text;
mod version;
mod wording;

pub use cli::main;
