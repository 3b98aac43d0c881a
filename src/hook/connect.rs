//! Reaches the daemon's socket without ever blocking, and makes sure that it
//! is our own daemon before a byte is written. No runtime.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};

#[derive(Debug, thiserror::Error)]
pub enum Unreachable {
    #[error("no daemon is running")]
    NoDaemon,
    #[error("the daemon's queue is full")]
    Busy,
    /// Whoever listens there is not us. Nothing was written.
    #[error("{0}")]
    Foreign(String),
    #[error("the daemon can't be reached: {0}")]
    Io(#[source] io::Error),
}

pub fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Connects to a server of our own uid, once. The stream is non-blocking.
pub fn dial(path: &Path) -> Result<UnixStream, Unreachable> {
    dial_as(path, own_uid())
}

pub(super) fn dial_as(path: &Path, uid: u32) -> Result<UnixStream, Unreachable> {
    check_place(path, uid)?;
    let address = SocketAddrUnix::new(path).map_err(|e| Unreachable::Io(e.into()))?;
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)
        .map_err(|e| Unreachable::Io(e.into()))?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)
        .map_err(|e| Unreachable::Io(e.into()))?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(true).map_err(Unreachable::Io)?;
    match rustix::net::connect(&stream, &address) {
        Ok(()) => {}
        Err(Errno::CONNREFUSED | Errno::NOENT) => return Err(Unreachable::NoDaemon),
        // Linux only: macOS refuses when the queue is full.
        Err(Errno::AGAIN) => return Err(Unreachable::Busy),
        Err(error) => return Err(Unreachable::Io(error.into())),
    }
    check_server(&stream, path, uid)?;
    Ok(stream)
}

/// The directory must be one where nobody else can put a socket of theirs in
/// place of ours, or take ours away.
fn check_place(path: &Path, uid: u32) -> Result<(), Unreachable> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    let dir = match std::fs::metadata(parent) {
        Ok(dir) => dir,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Unreachable::NoDaemon);
        }
        Err(error) => return Err(Unreachable::Io(error)),
    };
    let open = dir.mode() & 0o022 != 0 && dir.mode() & 0o1000 == 0;
    if (dir.uid() != uid && dir.uid() != 0) || open {
        return Err(Unreachable::Foreign(format!(
            "the directory `{}` is not ours alone",
            parent.display()
        )));
    }
    match std::fs::symlink_metadata(path) {
        Ok(socket) if socket.uid() == uid => Ok(()),
        Ok(socket) => Err(Unreachable::Foreign(format!(
            "the socket `{}` belongs to uid {}",
            path.display(),
            socket.uid()
        ))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Unreachable::NoDaemon),
        Err(error) => Err(Unreachable::Io(error)),
    }
}

#[cfg(target_os = "linux")]
fn check_server(stream: &UnixStream, path: &Path, uid: u32) -> Result<(), Unreachable> {
    let peer =
        rustix::net::sockopt::socket_peercred(stream).map_err(|e| Unreachable::Io(e.into()))?;
    if peer.uid.as_raw() == uid {
        return Ok(());
    }
    Err(Unreachable::Foreign(format!(
        "the server on `{}` runs as uid {}",
        path.display(),
        peer.uid.as_raw()
    )))
}

/// Without peer credentials in std, the owner of the socket is looked at once
/// more after connecting: nobody else can have swapped it in a directory that
/// passed [`check_place`].
#[cfg(not(target_os = "linux"))]
fn check_server(_stream: &UnixStream, path: &Path, uid: u32) -> Result<(), Unreachable> {
    check_place(path, uid)
}

/// The process at the other end, where the kernel tells.
#[cfg(target_os = "linux")]
pub fn peer_pid(stream: &UnixStream) -> Option<u32> {
    let peer = rustix::net::sockopt::socket_peercred(stream).ok()?;
    u32::try_from(peer.pid.as_raw_nonzero().get()).ok()
}

#[cfg(not(target_os = "linux"))]
pub fn peer_pid(_stream: &UnixStream) -> Option<u32> {
    None
}
