//! `nod daemon --background`: starts a daemon apart from this terminal, its log
//! in a private file, and says where it is once it answers.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::cli::wording::Words;
use crate::cli::{CommandResult, Failure, Quit, daemon, output, service};
use crate::config::{Config, Sources};
use crate::daemon::DaemonError;
use crate::daemon::instance::Instance;
#[cfg(target_os = "linux")]
use crate::hook::connect;

/// How long a daemon may take to answer hooks.
const ANSWERS_WITHIN: Duration = Duration::from_secs(20);
/// How long one may take to end.
#[cfg(target_os = "linux")]
const ENDS_WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A longer log begins anew; the old one is kept beside it.
const MAX_LOG: u64 = 8 << 20;
/// What is told of a daemon that did not come up.
const MAX_TOLD: u64 = 4 << 10;

/// A daemon that answers.
pub(in crate::cli) struct Started {
    pub(in crate::cli) pid: u32,
    pub(in crate::cli) log: PathBuf,
}

pub(in crate::cli) fn run(sources: &Sources) -> CommandResult {
    let words = Words(sources.lang());
    let Started { pid, log } = start(sources, words)?;
    output::say(&words.in_background(pid, &log));
    output::hint(words, &words.background_stop(pid));
    Ok(())
}

pub(in crate::cli) fn start(sources: &Sources, words: Words) -> Result<Started, Failure> {
    if sources.named.is_some() {
        // The daemon would have to read it again at every start.
        return Err(Failure::quits(Quit::WrongLine, words.background_file()));
    }
    let config = Config::load(sources).map_err(|why| Failure::settings(words, sources, &why))?;
    config
        .way()
        .map_err(|why| daemon::failure(words, &DaemonError::Settings(why)))?;
    // Held only to see that nobody else does: the daemon takes it itself.
    let free = Instance::acquire(&config.state_dir);
    drop(free.map_err(|why| daemon::failure(words, &DaemonError::Instance(why)))?);
    let path = service::log_file(&config.state_dir);
    let unusable = |why: &io::Error| Failure::new(words.not_written(&path, why));
    let log = open_log(&path).map_err(|why| unusable(&why))?;
    let from = log.metadata().map_err(|why| unusable(&why))?.len();
    let mut child = spawn(&log).map_err(|why| Failure::new(words.nod_not_found(&why)))?;
    wait(&mut child, &config.sockets.own).map_err(|ended| {
        Failure::new(words.background_failed(ended, &tail(&path, from)))
            .hinted(words.background_log(&path))
    })?;
    Ok(Started {
        pid: child.id(),
        log: path,
    })
}

/// Ends the daemon that listens there, in order, and waits until it has. Only
/// if it is certain to be this process: the number is held before the kernel is
/// asked who listens, so it can't have passed to another.
#[cfg(target_os = "linux")]
pub(in crate::cli) fn stop(socket: &Path, pid: u64) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    let Some(named) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return false;
    };
    let Ok(held) = pidfd_open(named, PidfdFlags::empty()) else {
        return false;
    };
    let listens = connect::dial(socket).ok();
    let listens = listens.and_then(|stream| connect::peer_pid(&stream));
    if listens.map(u64::from) != Some(pid) || pidfd_send_signal(&held, Signal::TERM).is_err() {
        return false;
    }
    let limit = Timespec {
        tv_sec: ENDS_WITHIN.as_secs().cast_signed(),
        tv_nsec: 0,
    };
    // It is readable once the process has ended.
    let mut ended = [PollFd::new(&held, PollFlags::IN)];
    poll(&mut ended, Some(&limit)).is_ok_and(|count| count > 0)
}

/// The kernel does not say who listens, so the person is told how instead.
#[cfg(not(target_os = "linux"))]
pub(in crate::cli) fn stop(_socket: &Path, _pid: u64) -> bool {
    false
}

/// This user's own file, private, and no link.
fn open_log(path: &Path) -> io::Result<File> {
    if std::fs::symlink_metadata(path).is_ok_and(|is| is.is_file() && is.len() > MAX_LOG) {
        std::fs::rename(path, path.with_extension("log.old"))?;
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    let is = log.metadata()?;
    if !is.is_file() || is.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    log.set_permissions(Permissions::from_mode(0o600))?;
    Ok(log)
}

/// In a process group of its own, so that no key typed here reaches it.
fn spawn(log: &File) -> io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .arg("daemon")
        .current_dir("/")
        .env_remove("NOTIFY_SOCKET")
        .env_remove("WATCHDOG_PID")
        .env_remove("WATCHDOG_USEC")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log.try_clone()?)
        .process_group(0)
        .spawn()
}

/// Waits until hooks are answered. The error is the exit code of a daemon that
/// ended, or nothing for one that takes too long, which is ended.
fn wait(child: &mut Child, socket: &Path) -> Result<(), Option<i32>> {
    let until = Instant::now() + ANSWERS_WITHIN;
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Err(Some(status.code().unwrap_or(-1)));
        }
        if UnixStream::connect(socket).is_ok() {
            return Ok(());
        }
        if Instant::now() > until {
            let _ = child.kill();
            let _ = child.wait();
            return Err(None);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// What it said since it was started.
fn tail(path: &Path, from: u64) -> String {
    let read = || {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(MAX_TOLD).read_to_end(&mut bytes)?;
        io::Result::Ok(bytes)
    };
    let said = read().unwrap_or_default();
    String::from_utf8_lossy(&said).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_private_no_link_and_begins_anew_when_it_is_long() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("daemon.log");
        std::fs::write(&path, "before\n").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let log = open_log(&path).unwrap();
        assert_eq!(log.metadata().unwrap().mode() & 0o777, 0o600);
        assert_eq!(log.metadata().unwrap().len(), 7, "what it said is kept");
        log.set_len(MAX_LOG + 1).unwrap();
        assert_eq!(open_log(&path).unwrap().metadata().unwrap().len(), 0);
        assert!(dir.path().join("daemon.log.old").exists());
        let link = dir.path().join("link.log");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(open_log(&link).is_err());
        std::fs::create_dir(dir.path().join("dir.log")).unwrap();
        assert!(open_log(&dir.path().join("dir.log")).is_err());
    }
}
