//! A non-blocking stream used with deadlines, watching besides whether anybody
//! is left to hear the answer.

use std::io::{self, Read as _, Write as _};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;

use super::wire::scan::Scanner;
use super::wire::{MAX_REPLY, WireError, unframe};

/// Why nothing was read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Silence {
    Closed,
    OutOfTime,
    ListenerGone,
}

#[derive(Debug)]
pub(super) struct DaemonLine<'a> {
    stream: UnixStream,
    listener: Option<BorrowedFd<'a>>,
    /// Read, but not yet part of a message.
    ahead: Vec<u8>,
}

impl<'a> DaemonLine<'a> {
    pub(super) fn new(stream: UnixStream, listener: Option<BorrowedFd<'a>>) -> Self {
        Self {
            stream,
            listener,
            ahead: Vec::new(),
        }
    }

    pub(super) fn write(&mut self, mut bytes: &[u8], until: Instant) -> Result<(), Silence> {
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(0) => return Err(Silence::Closed),
                Ok(count) => bytes = &bytes[count..],
                Err(error) => self.retry(&error, PollFlags::OUT, until)?,
            }
        }
        Ok(())
    }

    /// One bare JSON object; what follows it is kept.
    pub(super) fn read_object(
        &mut self,
        until: Instant,
    ) -> Result<Result<Vec<u8>, WireError>, Silence> {
        let mut scanner = Scanner::new(MAX_REPLY);
        scanner.buffer().append(&mut self.ahead);
        loop {
            match scanner.next_object() {
                Ok(Some(object)) => {
                    self.ahead = scanner.into_rest();
                    return Ok(Ok(object));
                }
                Ok(None) => self.read_into(scanner.buffer(), until)?,
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    /// One length-prefixed JSON value.
    pub(super) fn read_frame(
        &mut self,
        until: Instant,
    ) -> Result<Result<Value, WireError>, Silence> {
        let mut bytes = std::mem::take(&mut self.ahead);
        loop {
            match unframe(&bytes) {
                Ok(Some((value, length))) => {
                    self.ahead = bytes.split_off(length);
                    return Ok(Ok(value));
                }
                Ok(None) => self.read_into(&mut bytes, until)?,
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    fn read_into(&self, bytes: &mut Vec<u8>, until: Instant) -> Result<(), Silence> {
        let mut chunk = [0; 4096];
        loop {
            match (&self.stream).read(&mut chunk) {
                Ok(0) => return Err(Silence::Closed),
                Ok(count) => {
                    bytes.extend_from_slice(&chunk[..count]);
                    return Ok(());
                }
                Err(error) => self.retry(&error, PollFlags::IN, until)?,
            }
        }
    }

    fn retry(&self, error: &io::Error, wanted: PollFlags, until: Instant) -> Result<(), Silence> {
        match error.kind() {
            io::ErrorKind::Interrupted => Ok(()),
            io::ErrorKind::WouldBlock => wait(Some((&self.stream, wanted)), self.listener, until),
            _ => Err(Silence::Closed),
        }
    }
}

/// Pauses, but not beyond the life of the listener.
pub(super) fn rest(pause: Duration, listener: Option<BorrowedFd<'_>>) -> Result<(), Silence> {
    match wait(None, listener, Instant::now() + pause) {
        Err(Silence::OutOfTime) => Ok(()),
        ended => ended,
    }
}

fn wait(
    stream: Option<(&UnixStream, PollFlags)>,
    listener: Option<BorrowedFd<'_>>,
    until: Instant,
) -> Result<(), Silence> {
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Silence::OutOfTime);
        }
        // Hang-ups are reported whether asked for or not.
        let mut fds = Vec::with_capacity(2);
        fds.extend(listener.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::empty())));
        fds.extend(stream.map(|(stream, wanted)| PollFd::new(stream, wanted)));
        // A moment longer than asked, or the last wait would be many short ones.
        let limit = left.saturating_add(Duration::from_millis(1));
        let limit = Timespec::try_from(limit).unwrap_or(Timespec {
            tv_sec: 3600,
            tv_nsec: 0,
        });
        match poll(&mut fds, Some(&limit)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Err(Silence::Closed),
        }
        let mut seen = fds.iter().map(PollFd::revents);
        if listener.is_some() && seen.next().is_some_and(|events| events.intersects(gone)) {
            return Err(Silence::ListenerGone);
        }
        if seen.next().is_some_and(|events| !events.is_empty()) {
            return Ok(());
        }
    }
}
