//! The only place that prints. What was asked for goes to stdout, everything
//! else to stderr; a reader that went away is no error.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::mpsc;
use std::time::Duration;

use super::wording::Words;

/// One line of the answer.
pub(super) fn line(text: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}");
    let _ = out.flush();
}

/// Text that already ends as it should.
pub(super) fn text(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

pub(super) fn json(value: &serde_json::Value) {
    line(&format!("{value:#}"));
}

/// A page that takes the place of the one before it: redrawn on a terminal,
/// one block after the other elsewhere.
pub(super) fn page(page: &str) {
    if is_terminal() {
        let lines: String = page.lines().flat_map(|line| [line, "\x1b[K\r\n"]).collect();
        text(&format!("\x1b[H{lines}\x1b[J"));
    } else {
        line(page);
    }
}

/// Why the command did not do what was asked.
pub(super) fn problem(text: &str) {
    let mut err = io::stderr().lock();
    for line in text.lines() {
        let _ = writeln!(err, "nod: {line}");
    }
}

/// How the command is used, laid out already.
pub(super) fn usage(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// What the person can do about it.
pub(super) fn hint(words: Words, text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", words.hint(text));
}

/// Whether a person sees the answer, not a pipe.
pub(super) fn is_terminal() -> bool {
    io::IsTerminal::is_terminal(&io::stdout())
}

/// Whether anybody could still read what is printed: false once the other end
/// of a pipe is closed.
pub(super) fn is_read() -> bool {
    let out = io::stdout();
    let mut watched = [PollFd::new(&out, PollFlags::empty())];
    let at_once = Timespec::default();
    poll(&mut watched, Some(&at_once)).is_err()
        || !watched[0]
            .revents()
            .intersects(PollFlags::ERR | PollFlags::NVAL)
}

/// Reads stdin to its end, or fails past `most` bytes.
pub(super) fn read_stdin(most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// Stdout itself, to notice when its reader is gone.
pub(super) struct Stdout(io::Stdout);

pub(super) fn stdout_fd() -> Stdout {
    Stdout(io::stdout())
}

impl Stdout {
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Ends the process at once, as a second signal asks.
#[expect(clippy::exit, reason = "the person asked twice")]
pub(super) fn stop_now(code: i32) -> ! {
    std::process::exit(code)
}

/// Log lines on their way to stderr. A thread of its own writes them, and they
/// are dropped when it cannot keep up: a blocked log never delays a decision.
#[derive(Clone)]
pub(super) struct LogWriter {
    lines: mpsc::SyncSender<Line>,
}

enum Line {
    Text(Vec<u8>),
    Flush(mpsc::SyncSender<()>),
}

const LINES_WAITING: usize = 1_024;
const FLUSH_WITHIN: Duration = Duration::from_millis(200);

impl LogWriter {
    pub(super) fn start() -> Self {
        let (lines, waiting) = mpsc::sync_channel(LINES_WAITING);
        // Without the thread the lines are dropped, which is what a log that
        // cannot be written comes to anyway.
        let _ = std::thread::Builder::new()
            .name("nod-log".to_owned())
            .spawn(move || {
                for line in waiting {
                    match line {
                        Line::Text(text) => {
                            let _ = io::stderr().lock().write_all(&text);
                        }
                        Line::Flush(done) => {
                            let _ = done.try_send(());
                        }
                    }
                }
            });
        Self { lines }
    }

    /// Waits a moment for what was logged so far, before the process ends.
    pub(super) fn flush(&self) {
        let (done, flushed) = mpsc::sync_channel(1);
        if self.lines.try_send(Line::Flush(done)).is_ok() {
            let _ = flushed.recv_timeout(FLUSH_WITHIN);
        }
    }
}

impl io::Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.lines.try_send(Line::Text(bytes.to_vec()));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl tracing_subscriber::fmt::MakeWriter<'_> for LogWriter {
    type Writer = Self;

    fn make_writer(&self) -> Self::Writer {
        self.clone()
    }
}
