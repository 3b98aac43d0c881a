//! The one integration binary: the real `nod` and the parts that only show
//! their worth together, against the simulator.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod approve;
mod ask;
mod child;
mod connection;
mod daemon;
mod discovery;
mod approve_endings;
mod approve_restart;
mod hooks;
mod proxies;
mod secrets;
mod settings;
mod support;
mod setup;
mod tidy;
mod tls;
