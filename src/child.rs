//! A program that nod runs for a session: the one task that owns it, what cuts
//! its output into lines, and what ends it when nod itself dies. Knows no
//! agent and nothing of what the lines mean.

pub mod environment;
pub mod guard;
pub mod lines;
pub mod process;
