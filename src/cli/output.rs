//! The only place that prints. What was asked for goes to stdout, everything
//! else to stderr; a reader that went away is no error.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};

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

/// Why the command did not do what was asked.
pub(super) fn problem(text: &str) {
    let mut err = io::stderr().lock();
    for line in text.lines() {
        let _ = writeln!(err, "nod: {line}");
    }
}

/// What the person can do about it.
pub(super) fn hint(text: &str) {
    let _ = writeln!(io::stderr().lock(), "hint: {text}");
}

/// Whether a person sees the answer, not a pipe.
pub(super) fn is_terminal() -> bool {
    io::IsTerminal::is_terminal(&io::stdout())
}

/// Reads stdin to its end, or fails past `most` bytes.
pub(super) fn read_stdin(most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("the hook's input is larger than {most} bytes"),
        ));
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

/// Writes log lines to stderr and drops them when it is full or gone: a blocked
/// log must never delay a decision.
#[derive(Default, Clone, Copy)]
pub(super) struct LogWriter;

impl tracing_subscriber::fmt::MakeWriter<'_> for LogWriter {
    type Writer = io::Stderr;

    fn make_writer(&self) -> Self::Writer {
        io::stderr()
    }
}
