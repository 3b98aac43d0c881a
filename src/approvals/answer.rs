//! What a hook is told at the end of its wait.

use serde_json::Value;
use std::time::Duration;

use super::request::{Digest, Ending};

#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub ending: Ending,
    pub digest: Digest,
    /// From the question to its deadline.
    pub patience: Duration,
    pub extras: Extras,
}

/// What an allow carries besides, as the agent's room made it: nobody in
/// between reads it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Extras {
    pub updated_permissions: Option<Value>,
    pub updated_input: Option<Value>,
}
