//! Ends a child's process group when nod itself dies: a second process that
//! waits for the end of its input, which only nod holds open. A signal at the
//! parent's death would follow a thread, and is Linux' alone.

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use std::io::{self, Read as _};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};

/// The hidden command that [`watch`] is behind.
pub const COMMAND: &str = "guard";
/// A guard that is let go is killed before it gets to act.
const LET_GO: Duration = Duration::from_millis(500);
const GRACE: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Dropped once its group has ended by itself or by its owner.
#[derive(Debug)]
pub struct Guard {
    _child: Child,
}

impl Guard {
    /// `nod` is this very program.
    pub fn over(nod: &Path, group: Pid) -> io::Result<Self> {
        let child = Command::new(nod)
            .arg(COMMAND)
            .arg(group.as_raw_nonzero().to_string())
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        Ok(Self { _child: child })
    }
}

/// Waits until whoever started this is gone, and ends the group.
pub fn watch(group: Pid) {
    let mut nothing = [0; 64];
    while matches!(io::stdin().read(&mut nothing), Ok(1..)) {}
    std::thread::sleep(LET_GO);
    // One that has ended already is no problem.
    let _ = kill_process_group(group, Signal::TERM);
    let give_up = Instant::now() + GRACE;
    while test_kill_process_group(group).is_ok() {
        if Instant::now() > give_up {
            let _ = kill_process_group(group, Signal::KILL);
            return;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
