//! Questions to the person at the terminal. They go to the terminal itself,
//! so that redirected output stays clean; a secret is read without echo, byte
//! by byte, so that even Ctrl-C leaves the terminal as it was.

use std::fs::File;
use std::io::{self, Read as _, Write as _};

use super::super::output;
use rustix::termios::{LocalModes, OptionalActions, Termios, isatty, tcgetattr, tcsetattr};

const MAX_LINE: usize = 4096;
const CTRL_C: u8 = 0x03;
const CTRL_D: u8 = 0x04;
const BACKSPACE: [u8; 2] = [0x08, 0x7f];

/// The terminal of this process.
#[derive(Debug)]
pub(in crate::cli) struct Terminal(File);

impl Terminal {
    /// `None` where there is no terminal to ask at.
    pub(in crate::cli) fn open() -> Option<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .open("/dev/tty")
            .ok()?;
        isatty(&file).then_some(Self(file))
    }

    /// One line, without its end.
    pub(super) fn ask(&mut self, question: &str) -> io::Result<String> {
        let blank = if question.ends_with(' ') { " " } else { "" };
        let question = output::shows().lay_out(question);
        say(&self.0, &format!("{}{blank}", question.trim_end()))?;
        self.line()
    }

    /// Yes or no; an empty line is yes.
    pub(super) fn agrees(&mut self, question: &str) -> io::Result<bool> {
        loop {
            let answer = self.ask(&format!("{question} [Y/n] "))?;
            if let Some(agrees) = yes_or_no(&answer) {
                return Ok(agrees);
            }
        }
    }

    /// The same, where an empty line is no.
    pub(in crate::cli) fn wants(&mut self, question: &str) -> io::Result<bool> {
        loop {
            let answer = self.ask(&format!("{question} [y/N] "))?;
            if answer.trim().is_empty() {
                return Ok(false);
            }
            if let Some(wants) = yes_or_no(&answer) {
                return Ok(wants);
            }
        }
    }

    /// Yes, no, or `d` to see what it is about first.
    pub(super) fn agrees_or_looks(&mut self, question: &str) -> io::Result<Option<bool>> {
        loop {
            let answer = self.ask(&format!("{question} [Y/n/d] "))?;
            if answer.trim().eq_ignore_ascii_case("d") {
                return Ok(None);
            }
            if let Some(agrees) = yes_or_no(&answer) {
                return Ok(Some(agrees));
            }
        }
    }

    /// One line that is not shown.
    pub(in crate::cli) fn ask_secret(&mut self, question: &str) -> io::Result<String> {
        // Quiet before it asks: whoever pastes at once is not shown either.
        let quiet = Quiet::new(&self.0)?;
        let line = say(&self.0, question).and_then(|()| hidden_line(&self.0));
        drop(quiet);
        say(&self.0, "\n")?;
        line
    }

    /// Byte by byte, because what follows may answer the next question.
    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        let mut byte = [0];
        loop {
            if self.0.read(&mut byte)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            match byte[0] {
                b'\n' => return text(line),
                b if line.len() < MAX_LINE => line.push(b),
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }
}

fn say(mut tty: &File, text: &str) -> io::Result<()> {
    tty.write_all(text.as_bytes())?;
    tty.flush()
}

fn yes_or_no(answer: &str) -> Option<bool> {
    match answer.trim().to_lowercase().as_str() {
        "" | "y" | "yes" | "是" => Some(true),
        "n" | "no" | "否" => Some(false),
        _ => None,
    }
}

fn hidden_line(mut tty: &File) -> io::Result<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        if tty.read(&mut byte)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match byte[0] {
            b'\n' | b'\r' => return text(line),
            CTRL_C => return Err(io::ErrorKind::Interrupted.into()),
            CTRL_D if line.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
            b if BACKSPACE.contains(&b) => drop(line.pop()),
            b if line.len() < MAX_LINE => line.push(b),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

fn text(line: Vec<u8>) -> io::Result<String> {
    let line = String::from_utf8(line).map_err(|_| io::ErrorKind::InvalidData)?;
    Ok(line.trim_end_matches('\r').to_owned())
}

/// A terminal that shows and interprets nothing, until dropped.
struct Quiet<'a> {
    tty: &'a File,
    before: Termios,
}

impl<'a> Quiet<'a> {
    fn new(tty: &'a File) -> io::Result<Self> {
        let before = tcgetattr(tty)?;
        let mut quiet = before.clone();
        quiet.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        tcsetattr(tty, OptionalActions::Drain, &quiet)?;
        Ok(Self { tty, before })
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        if let Err(errno) = tcsetattr(self.tty, OptionalActions::Drain, &self.before) {
            tracing::warn!(%errno, "the terminal was left without echo");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_taken_in_both_languages() {
        for (answer, agrees) in [
            ("", Some(true)),
            (" Y ", Some(true)),
            ("是", Some(true)),
            ("no", Some(false)),
            ("否", Some(false)),
            ("maybe", None),
        ] {
            assert_eq!(yes_or_no(answer), agrees, "{answer}");
        }
    }

    #[test]
    fn a_hidden_line_ends_corrects_and_breaks_off_as_people_expect() {
        let read = |bytes: &[u8]| {
            let file = tempfile::tempfile().unwrap();
            (&file).write_all(bytes).unwrap();
            io::Seek::rewind(&mut &file).unwrap();
            hidden_line(&file)
        };
        assert_eq!(read(b"abc\nrest").unwrap(), "abc");
        assert_eq!(read(b"abd\x7fc\r").unwrap(), "abc");
        assert_eq!(
            read(b"ab\x03").unwrap_err().kind(),
            io::ErrorKind::Interrupted
        );
        assert_eq!(
            read(b"\x04").unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
        assert_eq!(
            read(b"ab").unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
        assert!(read(&[b'x'; MAX_LINE + 2]).is_err());
    }
}
