//! The processes on the stage: `nod` with an environment of its own, started
//! with a log, put to sleep, woken and ended.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::time::timeout;

pub(super) const UP_WITHIN: Duration = Duration::from_secs(20);
pub(super) const DOWN_WITHIN: Duration = Duration::from_secs(5);
/// How often is looked whether one that can't be waited for is ready.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(30);
/// Enough of a log to see why it went wrong.
const LOG_TAIL: usize = 2_000;

/// `nod` with an environment of its own: nothing of the visitor's settings
/// may reach the demo, and nothing of the demo their settings.
pub(super) fn nod(program: &Path, home: &Path, state: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("HOME", home)
        .env("NOD_STATE_DIR", state)
        .current_dir(home)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

/// Starts what stays, and says into a file what goes wrong.
pub(super) fn start(command: &mut Command, log: &Path) -> io::Result<Child> {
    let log = File::options().create(true).append(true).open(log)?;
    command.stdout(Stdio::null()).stderr(log).spawn()
}

/// What a command says that has to succeed, without its line's end.
pub(super) async fn told(command: &mut Command) -> io::Result<String> {
    let done = timeout(UP_WITHIN, command.output()).await??;
    if !done.status.success() {
        let why = String::from_utf8_lossy(&done.stderr).into_owned();
        return Err(io::Error::other(why));
    }
    let told = String::from_utf8_lossy(&done.stdout);
    Ok(told.trim_end().to_owned())
}

/// Ends one as a service manager would, and by force if it does not.
pub(super) async fn stop(child: &mut Child) {
    signal(child.id(), Signal::CONT);
    terminate(child.id());
    if timeout(DOWN_WITHIN, child.wait()).await.is_err() {
        let _ = child.kill().await;
    }
}

/// Asks a process to end, as a service manager or Claude Code would.
pub(super) fn terminate(pid: Option<u32>) {
    signal(pid, Signal::TERM);
}

pub(super) fn signal(pid: Option<u32>, signal: Signal) {
    let pid = pid
        .and_then(|id| i32::try_from(id).ok())
        .and_then(Pid::from_raw);
    if let Some(pid) = pid {
        let _ = kill_process(pid, signal);
    }
}

/// The last lines of a log.
pub(super) fn tail(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let from = text.ceil_char_boundary(text.len().saturating_sub(LOG_TAIL));
    text[from..].to_owned()
}
