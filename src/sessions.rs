//! Whole sessions of an agent driven from a chat, and the questions any agent
//! may ask there. The pure parts decide; the child belongs to one task.

pub mod agent;
pub mod command;
pub mod naming;
pub mod progress;
pub mod questions;
pub mod route;
pub mod state;
pub mod yes;
