//! Clicks and decisions that cross machines: whose they are, proof that one of
//! ours minted them, the way there and the door they come in by.

pub mod call;
pub mod caller;
pub mod forward;
pub mod guests;
pub mod pages;
pub mod rate;
pub mod route;
pub mod seal;
pub mod server;
pub mod tickets;
pub mod whose;
