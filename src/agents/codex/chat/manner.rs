//! How far Codex may go without asking, in its own settings.

use serde_json::{Value, json};

/// Never an automatic one in a person's place.
const REVIEWER: &str = "user";

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
    /// When Codex asks, and its two names for the sandbox: a new thread's and
    /// that of a thread's settings.
    fn words(self) -> [&'static str; 3] {
        match self {
            Self::Reads | Self::Plans => ["on-request", "read-only", "readOnly"],
            Self::Edits => ["on-request", "workspace-write", "workspaceWrite"],
            Self::Free => ["never", "danger-full-access", "dangerFullAccess"],
        }
    }

    /// What a thread is opened with.
    pub(super) fn opening(self, cwd: &str) -> Value {
        let [policy, sandbox, _] = self.words();
        json!({
            "approvalPolicy": policy, "sandbox": sandbox, "cwd": cwd,
            "approvalsReviewer": REVIEWER,
        })
    }

    /// What the settings of an open thread become.
    pub(super) fn settings(self) -> Value {
        let [policy, _, sandbox] = self.words();
        json!({
            "approvalPolicy": policy, "sandboxPolicy": {"type": sandbox},
            "approvalsReviewer": REVIEWER,
        })
    }
}
