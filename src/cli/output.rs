//! The only place that prints. What was asked for goes to stdout, everything
//! else to stderr; a reader that went away is no error.

pub(super) mod layout;
pub(super) mod panics;
pub(super) mod qr;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd;
use std::sync::{OnceLock, mpsc};
use std::time::Duration;

use self::layout::Look;
use super::wording::Words;
use crate::config::Sources;

/// Whether the person's terminals show colour at all.
static COLOUR: OnceLock<bool> = OnceLock::new();

/// Takes the person's word on colour, before anything is said.
pub(super) fn dress(sources: &Sources) {
    let _ = COLOUR.set(sources.wants_colour());
}

/// What this end can show.
fn look(end: &(impl io::IsTerminal + AsFd)) -> Look {
    if !end.is_terminal() {
        return Look::default();
    }
    let size = rustix::termios::tcgetwinsize(end).ok();
    Look {
        colour: COLOUR.get().copied().unwrap_or_default(),
        width: size
            .map(|size| usize::from(size.ws_col))
            .filter(|it| *it > 0),
    }
}

/// What stdout can show.
pub(super) fn shows() -> Look {
    look(&io::stdout())
}

/// Sentences for a person, laid out as their terminal shows them best.
pub(super) fn say(words: &str) {
    text(&shows().lay_out(words));
}

/// A change of a file.
pub(super) fn diff(change: &str) {
    text(&shows().diff(change));
}

/// One line of the answer, as it is.
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
        let page = shows().lay_out(page);
        let lines: String = page.lines().flat_map(|line| [line, "\x1b[K\r\n"]).collect();
        text(&format!("\x1b[H{lines}\x1b[J"));
    } else {
        line(page);
    }
}

/// A line that the next one takes the place of, on a terminal.
pub(super) fn same_line(line: &str) {
    text(&format!("\r\x1b[K{line}"));
}

/// Takes such a line away.
pub(super) fn wipe_line() {
    if is_terminal() {
        text("\r\x1b[K");
    }
}

/// How many rows the terminal has, where there is one.
pub(super) fn rows() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_row)).filter(|rows| *rows > 0)
}

/// Why the command did not do what was asked.
pub(super) fn problem(text: &str) {
    let lines = text.lines().flat_map(|line| ["nod: ", line, "\n"]);
    tell(&lines.collect::<String>());
}

/// On stderr, as it is.
pub(super) fn tell(text: &str) {
    let mut err = io::stderr().lock();
    let said = look(&err).lay_out(text);
    let _ = err.write_all(said.as_bytes());
}

/// What the person can do about it.
pub(super) fn hint(words: Words, text: &str) {
    tell(&words.hint(text));
}

/// Whether a person sees the answer, not a pipe.
pub(super) fn is_terminal() -> bool {
    io::IsTerminal::is_terminal(&io::stdout())
}

/// Whether a person could type an answer, and nothing is piped in.
pub(super) fn is_asked() -> bool {
    io::IsTerminal::is_terminal(&io::stdin())
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
pub(super) fn stdout() -> impl AsFd {
    io::stdout()
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
    lines: mpsc::SyncSender<OutputLine>,
}

enum OutputLine {
    Text(Vec<u8>),
    Flush(mpsc::SyncSender<()>),
}

const LINES_WAITING: usize = 1_024;
/// Bytes of one line, a few more for the last character.
const MAX_LINE: usize = 8 << 10;
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
                        OutputLine::Text(text) => {
                            let _ = io::stderr().lock().write_all(&text);
                        }
                        OutputLine::Flush(done) => {
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
        if self.lines.try_send(OutputLine::Flush(done)).is_ok() {
            let _ = flushed.recv_timeout(FLUSH_WITHIN);
        }
    }
}

/// What is logged may hold names that others chose. They write no line of
/// their own, steer no terminal, turn no text around and fill no disk.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.trim_end_matches('\n').chars() {
        if line.len() >= MAX_LINE {
            line.push('…');
            break;
        }
        if c.is_control() || is_unseen(c) {
            line.extend(c.escape_unicode());
        } else {
            line.push(c);
        }
    }
    line.push('\n');
    line
}

const fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

impl io::Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let line = one_line(&String::from_utf8_lossy(bytes));
        let _ = self.lines.try_send(OutputLine::Text(line.into_bytes()));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log_is_one_line_of_plain_text() {
        let forged =
            "tool=x\n2026-01-01T00:00:00Z  INFO allowed\r\u{1b}[2K\u{9b}1m\u{202e}\u{2028}y\n";
        let line = one_line(forged);
        assert_eq!(
            line,
            "tool=x\\u{a}2026-01-01T00:00:00Z  INFO allowed\\u{d}\\u{1b}[2K\\u{9b}1m\\u{202e}\\u{2028}y\n"
        );
        assert_eq!(one_line("  INFO 请求 ready\n"), "  INFO 请求 ready\n");
        let long = one_line(&"\u{202e}".repeat(MAX_LINE));
        assert!(long.len() < MAX_LINE + 32, "{}", long.len());
        assert!(long.ends_with("…\n"));
    }
}
