//! Binds the hook socket so that nobody else can ever reach it: made under
//! another name, closed to others, then moved into place. Never takes the path
//! from a living daemon, never removes what is not ours.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{
    DirBuilderExt as _, FileExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _,
    PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use tokio::net::UnixListener;

use super::connect::{self, Unreachable};
use super::paths::MAX_PATH;

/// The mode bits of everybody but the owner.
const OTHERS: u32 = 0o077;
/// Digits of the largest process id there is.
const PID_WIDTH: usize = 10;
const LOCK_MAX: u64 = 16;

#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error(
        "the socket path is {length} bytes long, a Unix socket takes {MAX_PATH}: choose a shorter directory than `{path}`"
    )]
    PathTooLong { path: PathBuf, length: usize },
    #[error("`{path}` is not safe for a socket: {problem}")]
    UnsafePlace { path: PathBuf, problem: String },
    #[error("already running{}", pid.map(|pid| format!(", pid {pid}")).unwrap_or_default())]
    AlreadyRunning { pid: Option<u32> },
    #[error("can't listen on `{path}`: {source}")]
    Io { path: PathBuf, source: io::Error },
}

/// A bound socket. Dropping it removes the path, if it is still this socket's.
#[derive(Debug)]
pub struct Listening {
    pub(super) listener: UnixListener,
    path: PathBuf,
    node: (u64, u64),
    _lock: File,
}

impl Drop for Listening {
    fn drop(&mut self) {
        let ours = std::fs::symlink_metadata(&self.path)
            .is_ok_and(|found| (found.dev(), found.ino()) == self.node);
        if ours && let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(%error, "the socket could not be removed");
        }
    }
}

/// Binds `path`. `private`: its directory is made if missing and must be ours
/// alone; otherwise it must at least be one where others can't replace files.
/// Needs a tokio runtime.
pub fn listen(path: &Path, private: bool) -> Result<Listening, ListenError> {
    check_length(path)?;
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(unsafe_place(path, "it names no file"));
    };
    if !path.is_absolute() {
        return Err(unsafe_place(path, "it is not absolute"));
    }
    let closed_to_others = check_parent(parent, private)?;
    let parent = parent.canonicalize().map_err(io_at(parent))?;
    let path = parent.join(name);
    check_length(&path)?;
    let lock = lock(&path)?;
    check_free(&path)?;

    let workshop = if closed_to_others {
        None
    } else {
        let workshop = tempfile::Builder::new()
            .prefix(".nod")
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&parent)
            .map_err(io_at(&parent))?;
        Some(workshop)
    };
    let bench = workshop.as_ref().map_or(parent.as_path(), |dir| dir.path());
    let made = bench.join(format!(".{:x}", std::process::id()));
    check_length(&made)?;
    remove_leftover(&made).map_err(io_at(&made))?;
    let listener = UnixListener::bind(&made).map_err(io_at(&made))?;
    let placed = std::fs::set_permissions(&made, Permissions::from_mode(0o600))
        .and_then(|()| std::fs::symlink_metadata(&made))
        .and_then(|node| std::fs::rename(&made, &path).map(|()| node));
    match placed {
        Ok(node) => Ok(Listening {
            listener,
            path,
            node: (node.dev(), node.ino()),
            _lock: lock,
        }),
        Err(source) => {
            // The bind has failed as a whole; the leftover is named in no error.
            let _ = remove_leftover(&made);
            Err(io_at(&path)(source))
        }
    }
}

fn io_at(path: &Path) -> impl FnOnce(io::Error) -> ListenError {
    let path = path.to_owned();
    |source| ListenError::Io { path, source }
}

fn unsafe_place(path: &Path, problem: impl Into<String>) -> ListenError {
    ListenError::UnsafePlace {
        path: path.to_owned(),
        problem: problem.into(),
    }
}

fn check_length(path: &Path) -> Result<(), ListenError> {
    let length = path.as_os_str().as_bytes().len();
    if length > MAX_PATH {
        return Err(ListenError::PathTooLong {
            path: path.to_owned(),
            length,
        });
    }
    Ok(())
}

/// Whether nobody else can enter the directory; an error if others could put
/// something in the socket's place.
fn check_parent(parent: &Path, private: bool) -> Result<bool, ListenError> {
    let us = connect::own_uid();
    if private {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(parent)
            .map_err(io_at(parent))?;
    }
    let look = if private {
        std::fs::symlink_metadata(parent)
    } else {
        std::fs::metadata(parent)
    };
    let dir = look.map_err(io_at(parent))?;
    if !dir.is_dir() {
        return Err(unsafe_place(parent, "it is not a directory of its own"));
    }
    let closed = dir.uid() == us && dir.mode() & OTHERS == 0;
    if private && !closed {
        return Err(unsafe_place(parent, who_can_enter(&dir, us)));
    }
    let foreign = dir.uid() != us && dir.uid() != 0;
    let writable = dir.mode() & 0o022 != 0 && dir.mode() & 0o1000 == 0;
    if foreign || writable {
        return Err(unsafe_place(parent, who_can_enter(&dir, us)));
    }
    Ok(closed)
}

fn who_can_enter(dir: &Metadata, us: u32) -> String {
    if dir.uid() == us {
        format!("its mode is {:o}, it must be 700", dir.mode() & 0o7777)
    } else {
        format!("it belongs to uid {}", dir.uid())
    }
}

/// One daemon per path. The lock ends with the process, however it ends, so a
/// pid that was reused can't be taken for a daemon.
fn lock(path: &Path) -> Result<File, ListenError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let name = PathBuf::from(name);
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags.bits().cast_signed())
        .open(&name)
        .map_err(io_at(&name))?;
    check_lock(&name, &file.metadata().map_err(io_at(&name))?)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(std::fs::TryLockError::WouldBlock) => {
            let mut text = String::new();
            // The pid is a courtesy to the reader; the lock alone decides.
            let _ = (&file).take(16).read_to_string(&mut text);
            return Err(ListenError::AlreadyRunning {
                pid: text.trim().parse().ok(),
            });
        }
        Err(std::fs::TryLockError::Error(source)) => return Err(io_at(&name)(source)),
    }
    // As long as any that stood there before, so nothing need be cut off.
    let pid = format!("{:<PID_WIDTH$}\n", std::process::id());
    file.write_all_at(pid.as_bytes(), 0).map_err(io_at(&name))?;
    Ok(file)
}

/// Others may put a second name of one of our files into a shared directory,
/// and nod must not write into that.
fn check_lock(name: &Path, is: &Metadata) -> Result<(), ListenError> {
    let problem = if !is.is_file() {
        "it is not a regular file"
    } else if is.uid() != connect::own_uid() {
        "it belongs to another user"
    } else if is.nlink() != 1 {
        "it has a second name elsewhere"
    } else if is.len() > LOCK_MAX {
        "it holds more than a lock does"
    } else {
        return Ok(());
    };
    Err(unsafe_place(name, problem))
}

/// Under the lock: nothing at the path, or a socket of ours nobody serves.
fn check_free(path: &Path) -> Result<(), ListenError> {
    let found = match std::fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(io_at(path)(source)),
    };
    if !found.file_type().is_socket() {
        return Err(unsafe_place(
            path,
            "something that is not a socket is there",
        ));
    }
    if found.uid() != connect::own_uid() {
        let problem = format!("a socket of uid {} is there", found.uid());
        return Err(unsafe_place(path, problem));
    }
    match connect::dial(path) {
        Err(Unreachable::NoDaemon) => Ok(()),
        Ok(_) | Err(Unreachable::Busy) => Err(ListenError::AlreadyRunning { pid: None }),
        Err(Unreachable::Foreign(problem)) => Err(unsafe_place(path, problem)),
        Err(Unreachable::Io(source)) => Err(io_at(path)(source)),
    }
}

fn remove_leftover(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
