//! The one integration binary: the real `nod` and the parts that only show
//! their worth together, against the simulator.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod approve;
mod approve_endings;
mod approve_many;
mod approve_outages;
mod approve_restart;
mod ask;
mod cards;
mod child;
mod codex;
mod conformance;
mod connection;
mod daemon;
mod demo;
mod discovery;
mod docs;
mod doctor;
mod doors;
mod faults;
mod figures;
mod flood;
mod fuzz;
mod gateway;
mod hook_alone;
mod hooks;
mod hostile;
mod keeping;
mod ladder;
mod messages;
mod proxies;
mod registration;
mod rules;
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
#[cfg(feature = "team")]
mod team;
mod terminal_words;
mod terminal_yes;
mod tidy;
mod tls;
mod tolerance;
mod v1_clients;
mod whole;
