//! How far Codex may go without asking, in its own settings.

use serde_json::{Map, Value, json};

/// How far it may go without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodexManner {
    /// It reads; everything else asks.
    Reads,
    /// It also writes in its project, within Codex's own sandbox.
    Edits,
    /// It reads and makes a plan.
    Plans,
    /// Nothing asks.
    Free,
}

impl CodexManner {
    pub(super) fn policy(self) -> Map<String, Value> {
        let (policy, sandbox) = match self {
            Self::Reads | Self::Plans => ("on-request", "read-only"),
            Self::Edits => ("on-request", "workspace-write"),
            Self::Free => ("never", "danger-full-access"),
        };
        let params = json!({
            "approvalPolicy": policy, "sandbox": sandbox,
            // Never an automatic one in a person's place.
            "approvalsReviewer": "user",
        });
        match params {
            Value::Object(params) => params,
            _ => Map::new(),
        }
    }

    pub(super) fn sandbox(self) -> Value {
        json!({"type": match self {
            Self::Reads | Self::Plans => "readOnly",
            Self::Edits => "workspaceWrite",
            Self::Free => "dangerFullAccess",
        }})
    }
}
