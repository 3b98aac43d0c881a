//! The one integration binary: the real `nod` and the parts that only show
//! their worth together, against the simulator.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod approve;
mod approve_endings;
mod approve_many;
mod approve_restart;
mod ask;
mod child;
mod conformance;
mod connection;
mod daemon;
mod demo;
mod discovery;
mod docs;
mod doctor;
mod faults;
mod figures;
mod fuzz;
mod gateway;
mod hook_alone;
mod hooks;
mod messages;
mod proxies;
mod registration;
mod secrets;
mod security;
mod sentences;
mod sessions;
mod settings;
mod setup;
mod shells;
mod simulation;
mod status;
mod support;
mod tidy;
mod tls;
