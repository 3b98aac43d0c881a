//! One daemon per state directory, held by a lock that dies with the process:
//! a file left behind by a crash or a reused process id locks nobody out.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// What a daemon without a terminal and without a journal writes to, in its
/// state directory.
pub const LOG: &str = "daemon.log";

/// Whether this process speaks into that file, so that no terminal is left
/// where anybody could press Ctrl-C.
pub fn is_in_background(state_dir: &Path) -> bool {
    let said = std::fs::metadata("/dev/fd/2");
    let file = std::fs::metadata(state_dir.join(LOG));
    match (said, file) {
        (Ok(said), Ok(file)) => (said.dev(), said.ino()) == (file.dev(), file.ino()),
        _ => false,
    }
}

/// Held for as long as the daemon runs.
#[derive(Debug)]
pub struct Instance {
    _lock: File,
}

#[derive(Debug, thiserror::Error)]
pub enum InstanceError {
    #[error("a daemon already runs here{}: stop it first, or give this one its own `NOD_STATE_DIR`", pid.as_deref().map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    AlreadyRunning { pid: Option<String> },
    #[error("`{}` belongs to somebody else or is open to others: it must be yours, mode 0700", .0.display())]
    NotPrivate(PathBuf),
    #[error("`{}` cannot be used: {}", .0.display(), .1.kind())]
    Unusable(PathBuf, std::io::Error),
}

impl Instance {
    pub fn acquire(state_dir: &Path) -> Result<Self, InstanceError> {
        let unusable = |path: &Path| {
            let path = path.to_owned();
            move |e| InstanceError::Unusable(path, e)
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(state_dir)
            .map_err(unusable(state_dir))?;
        let meta = state_dir.metadata().map_err(unusable(state_dir))?;
        let own = rustix::process::geteuid().as_raw();
        if meta.uid() != own || meta.mode() & 0o077 != 0 {
            return Err(InstanceError::NotPrivate(state_dir.to_owned()));
        }
        let path = state_dir.join("nod.lock");
        let mut lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(unusable(&path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                let read = (&lock).take(20).read_to_string(&mut pid);
                let pid = pid.trim().to_owned();
                let known = read.is_ok() && !pid.is_empty();
                return Err(InstanceError::AlreadyRunning {
                    pid: known.then_some(pid),
                });
            }
            Err(TryLockError::Error(e)) => return Err(InstanceError::Unusable(path, e)),
        }
        // The number only helps a person; the lock is what counts.
        let _ = lock.set_len(0);
        let _ = lock.rewind();
        let _ = writeln!(lock, "{}", std::process::id());
        Ok(Self { _lock: lock })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_second_daemon_is_told_who_runs() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("a/b");
        let first = Instance::acquire(&state).unwrap();
        let why = Instance::acquire(&state).unwrap_err().to_string();
        assert!(why.contains(&std::process::id().to_string()), "{why}");
        drop(first);
        Instance::acquire(&state).unwrap();
    }

    #[test]
    fn a_directory_open_to_others_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("open");
        std::fs::create_dir(&state).unwrap();
        std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(
            Instance::acquire(&state),
            Err(InstanceError::NotPrivate(_))
        ));
    }
}
