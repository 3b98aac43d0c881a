//! Tells the service manager how the daemon is: ready, alive, stopping. One
//! datagram each to the socket the manager named; without a manager there is
//! nobody to tell. Never reads the environment.

use std::io;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use crate::text::one_line;

/// The manager's socket.
#[derive(Debug)]
pub struct ManagerSocket {
    socket: UnixDatagram,
    address: SocketAddr,
}

impl ManagerSocket {
    /// `name` is the value of `NOTIFY_SOCKET`: a path, or `@` and a name that
    /// stands in no directory.
    pub fn new(name: &str) -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            address: address(name)?,
        })
    }

    pub fn ready(&self, status: &str) -> io::Result<()> {
        // A line break would start another assignment.
        self.tell(&format!("READY=1\nSTATUS={}", one_line(status, 200)))
    }

    /// To be called more often than [`alive_every`] says.
    pub fn alive(&self) -> io::Result<()> {
        self.tell("WATCHDOG=1")
    }

    pub fn stopping(&self) -> io::Result<()> {
        self.tell("STOPPING=1")
    }

    fn tell(&self, message: &str) -> io::Result<()> {
        self.socket
            .send_to_addr(message.as_bytes(), &self.address)
            .map(drop)
    }
}

/// How often the manager wants to hear that the daemon is alive: half of what
/// it waits. `microseconds` and `for_pid` are the values of `WATCHDOG_USEC` and
/// `WATCHDOG_PID`.
pub fn alive_every(
    microseconds: Option<&str>,
    for_pid: Option<&str>,
    own_pid: u32,
) -> Option<Duration> {
    let wait: u64 = microseconds?.parse().ok().filter(|wait| *wait > 0)?;
    match for_pid {
        Some(pid) if pid.parse() != Ok(own_pid) => None,
        _ => Some(Duration::from_micros(wait) / 2),
    }
}

fn address(name: &str) -> io::Result<SocketAddr> {
    if let Some(name) = name.strip_prefix('@') {
        return nowhere_address(name);
    }
    if !name.starts_with('/') {
        return Err(io::Error::other("neither a path nor an abstract name"));
    }
    SocketAddr::from_pathname(name)
}

#[cfg(target_os = "linux")]
fn nowhere_address(name: &str) -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt as _;
    SocketAddr::from_abstract_name(name)
}

#[cfg(not(target_os = "linux"))]
fn nowhere_address(_: &str) -> io::Result<SocketAddr> {
    Err(io::Error::other("this system has no abstract sockets"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 1024];
        let count = socket.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..count].to_vec()).unwrap()
    }

    fn check(socket: &UnixDatagram, name: &str) {
        let manager = ManagerSocket::new(name).unwrap();
        manager.ready("connected\nMAINPID=1").unwrap();
        assert_eq!(heard(socket), "READY=1\nSTATUS=connected MAINPID=1");
        manager.alive().unwrap();
        assert_eq!(heard(socket), "WATCHDOG=1");
        manager.stopping().unwrap();
        assert_eq!(heard(socket), "STOPPING=1");
    }

    #[test]
    fn a_manager_hears_each_state_on_a_path() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        check(&socket, path.to_str().unwrap());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_manager_hears_each_state_on_an_abstract_name() {
        let name = format!("@nod-notify-test-{}", std::process::id());
        let socket = UnixDatagram::bind_addr(&address(&name).unwrap()).unwrap();
        check(&socket, &name);
    }

    #[test]
    fn other_names_are_refused_and_a_gone_manager_is_an_error() {
        assert!(ManagerSocket::new("vsock:2:1").is_err());
        assert!(ManagerSocket::new("").is_err());
        let dir = tempfile::tempdir().unwrap();
        let gone = dir.path().join("gone");
        let manager = ManagerSocket::new(gone.to_str().unwrap()).unwrap();
        assert!(manager.alive().is_err());
    }

    #[test]
    fn the_watchdog_is_fed_twice_as_often_as_it_waits() {
        let every = |usec, pid| alive_every(usec, pid, 7);
        assert_eq!(every(Some("60000000"), None), Some(Duration::from_secs(30)));
        assert_eq!(
            every(Some("1000"), Some("7")),
            Some(Duration::from_micros(500))
        );
        assert_eq!(every(Some("1000"), Some("8")), None);
        assert_eq!(every(Some("0"), None), None);
        assert_eq!(every(Some("x"), None), None);
        assert_eq!(every(None, Some("7")), None);
    }
}
