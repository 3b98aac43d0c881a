//! The questions of the set-up: to whoever sits at the terminal, or to nobody.

use super::super::wording::Words;
use super::super::{Failure, Quit};
use super::{Setup, Terminal};

impl Setup<'_> {
    pub(super) fn asked(&mut self) -> Result<&mut Terminal, Failure> {
        let (words, yes) = (self.words, self.yes);
        self.terminal
            .as_mut()
            .ok_or_else(|| Failure::new(words.no_terminal()).hinted(words.flags_hint(yes)))
    }

    /// What this asks of the person at the terminal.
    fn at_terminal<T>(
        &mut self,
        ask: impl FnOnce(&mut Terminal) -> std::io::Result<T>,
    ) -> Result<T, Failure> {
        let words = self.words;
        ask(self.asked()?).map_err(|error| broken_off(words, &error))
    }

    pub(super) fn ask(&mut self, question: &str) -> Result<String, Failure> {
        self.at_terminal(|terminal| terminal.ask(question))
    }

    pub(super) fn ask_secret(&mut self, question: &str) -> Result<String, Failure> {
        self.at_terminal(|terminal| terminal.ask_secret(question))
    }

    pub(super) fn wants(&mut self, question: &str) -> Result<bool, Failure> {
        self.at_terminal(|terminal| terminal.wants(question))
    }

    pub(super) fn agrees(&mut self, question: &str) -> Result<bool, Failure> {
        if self.yes {
            return Ok(true);
        }
        self.at_terminal(|terminal| terminal.agrees(question))
    }

    /// Whether they agree; `None` if they want to see it first.
    pub(super) fn agrees_or_looks(&mut self, question: &str) -> Result<Option<bool>, Failure> {
        self.at_terminal(|terminal| terminal.agrees_or_looks(question))
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
