//! The questions of the set-up: to whoever sits at the terminal, or to nobody.

use super::super::wording::Words;
use super::super::{Failure, Quit};
use super::{Setup, Terminal};

impl Setup<'_> {
    pub(super) fn asked(&mut self) -> Result<&mut Terminal, Failure> {
        let (words, yes) = (self.words, self.yes);
        self.terminal.as_mut().ok_or_else(|| Failure {
            hint: Some(words.flags_hint(yes).to_owned()),
            ..Failure::new(words.no_terminal())
        })
    }

    pub(super) fn ask(&mut self, question: &str) -> Result<String, Failure> {
        let words = self.words;
        self.asked()?
            .ask(question)
            .map_err(|error| broken_off(words, &error))
    }

    pub(super) fn ask_secret(&mut self, question: &str) -> Result<String, Failure> {
        let words = self.words;
        self.asked()?
            .ask_secret(question)
            .map_err(|error| broken_off(words, &error))
    }

    /// Asked of a person alone: `--yes` agrees to nothing that costs.
    pub(super) fn wants(&mut self, question: &str) -> Result<bool, Failure> {
        let words = self.words;
        self.asked()?
            .wants(question)
            .map_err(|error| broken_off(words, &error))
    }

    /// With `--yes` every offer is accepted; without a terminal there is nobody
    /// to accept one.
    pub(super) fn agrees(&mut self, question: &str) -> Result<bool, Failure> {
        if self.yes {
            return Ok(true);
        }
        let words = self.words;
        self.asked()?
            .agrees(question)
            .map_err(|error| broken_off(words, &error))
    }
}

pub(super) fn broken_off(words: Words, error: &std::io::Error) -> Failure {
    match error.kind() {
        std::io::ErrorKind::Interrupted | std::io::ErrorKind::UnexpectedEof => {
            Failure::quits(Quit::BrokenOff, words.stopped())
        }
        _ => Failure::new(words.no_reading(error)),
    }
}
