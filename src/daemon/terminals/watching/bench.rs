//! Status files for tests: what an agent says about itself.

use serde_json::{Value, json};
use std::path::Path;

/// The agent is this process.
pub(crate) fn own_pid() -> u32 {
    std::process::id()
}

/// An agent in a terminal, which is this process, does this since then.
pub(crate) fn says(dir: &Path, session: &str, status: &str, since: i64) {
    writes(
        dir,
        &json!({"pid": own_pid(), "sessionId": session, "entrypoint": "cli",
            "status": status, "statusUpdatedAt": since}),
    );
}

/// The file of whichever process it names.
pub(crate) fn writes(dir: &Path, status: &Value) {
    std::fs::create_dir_all(dir).unwrap();
    let file = dir.join(format!("{}.json", status["pid"]));
    std::fs::write(file, status.to_string()).unwrap();
}
