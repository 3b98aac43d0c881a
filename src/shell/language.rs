//! Words of the language itself: loops, cases, tests and functions, as far as
//! is needed to find the commands between them.

use super::{Marks, ShellCommand, ShellReader};

impl ShellReader<'_> {
    /// Words of the language itself. The grammar behind them is not checked:
    /// every command between them is read either way.
    pub(super) fn keyword(&mut self, command: &mut ShellCommand) -> bool {
        let [word] = &command.words[..] else {
            return false;
        };
        if word.marks != Marks::default() {
            return false;
        }
        match &*word.text {
            "if" | "while" | "until" | "{" => {
                let piped = self.takes_pipe();
                self.groups.push(piped);
                // A shell gives up long before.
                self.groups.truncate(1_024);
            }
            "then" | "elif" | "else" | "do" | "!" => {}
            "fi" | "done" | "}" => {
                if self.groups.len() > 1 {
                    self.groups.pop();
                }
            }
            "esac" => {
                self.cases.pop();
            }
            "for" | "select" => {
                let piped = self.takes_pipe();
                self.groups.push(piped);
                self.groups.truncate(1_024);
                self.loop_words();
            }
            "case" => self.case(),
            "function" => {
                let mut name = Vec::new();
                self.blanks();
                self.word(&mut name);
                if let Some(name) = name.pop()
                    && self.functions.len() < 64
                {
                    self.functions.push(name.text);
                }
                self.blanks();
                if self.peek() == b'(' && self.ahead(1) == b')' {
                    self.at += 2;
                }
            }
            "[[" => self.test(),
            _ => return false,
        }
        command.words.clear();
        true
    }

    /// A pattern of a `case` up to its `)`; false at the end of the case.
    pub(super) fn pattern(&mut self) -> bool {
        if self.text[self.at..].starts_with("esac") {
            if let Some(pattern) = self.cases.last_mut() {
                *pattern = false;
            }
            return false;
        }
        if self.peek() == b'\n' {
            return false;
        }
        if self.peek() == b'(' {
            self.at += 1;
        }
        let mut words = Vec::new();
        loop {
            self.blanks();
            match self.peek() {
                b')' => {
                    self.at += 1;
                    break;
                }
                b'|' => self.at += 1,
                b'\n' | b';' | b'&' | b'(' | b'<' | b'>' => {
                    self.fail(self.at);
                    break;
                }
                _ if self.is_over() => {
                    self.fail(self.at);
                    break;
                }
                _ => self.word(&mut words),
            }
            words.clear();
        }
        if let Some(pattern) = self.cases.last_mut() {
            *pattern = false;
        }
        true
    }

    /// `name()`: what follows is the function's body.
    pub(super) fn defines(&mut self, command: &mut ShellCommand) -> bool {
        let [name] = &command.words[..] else {
            return false;
        };
        let mut end = self.at + 1;
        while matches!(self.bytes.get(end), Some(b' ' | b'\t')) {
            end += 1;
        }
        if self.bytes.get(end) != Some(&b')') || name.marks.quoted {
            return false;
        }
        if self.functions.len() < 64 {
            self.functions.push(name.text.clone());
        }
        self.at = end + 1;
        self.after_pipe = false;
        true
    }

    /// `for name in words`, up to the end of the words.
    pub(super) fn loop_words(&mut self) {
        let mut words = Vec::new();
        self.blanks();
        if self.peek() == b'(' && self.ahead(1) == b'(' {
            self.at += 2;
            if !self.arithmetic() {
                self.fail(self.at);
            }
            return;
        }
        self.word(&mut words);
        if let Some(name) = words.pop() {
            self.variables.forget(&name.text);
        }
        self.blanks();
        if !self.text[self.at..].starts_with("in") {
            return;
        }
        self.words_until_break();
    }

    fn words_until_break(&mut self) {
        let mut words = Vec::new();
        loop {
            self.blanks();
            if self.is_over() || matches!(self.peek(), b';' | b'\n' | b')' | b'|' | b'&') {
                return;
            }
            let before = self.at;
            self.word(&mut words);
            words.clear();
            if self.at == before {
                self.at = self.text.ceil_char_boundary(self.at + 1);
            }
        }
    }

    pub(super) fn case(&mut self) {
        let mut words = Vec::new();
        self.blanks();
        self.word(&mut words);
        while !self.is_over() {
            self.blanks();
            if self.peek() != b'\n' {
                break;
            }
            self.line_break();
        }
        if self.text[self.at..].starts_with("in") {
            self.at += 2;
            if self.cases.len() < 64 {
                self.cases.push(true);
            } else {
                self.fail(self.at);
            }
        }
    }

    /// `[[ … ]]`, whose operators are no operators of the shell's.
    pub(super) fn test(&mut self) {
        let open = self.at;
        let mut words = Vec::new();
        loop {
            self.blanks();
            if self.is_over() {
                self.fail(open.saturating_sub(1));
                return;
            }
            let before = self.at;
            self.word(&mut words);
            if words.pop().is_some_and(|word| word.text == "]]") {
                return;
            }
            words.clear();
            if self.at == before {
                self.at = self.text.ceil_char_boundary(self.at + 1);
            }
        }
    }

    /// `(…)` behind a `name=`.
    pub(super) fn array(&mut self) {
        let open = self.at;
        self.at += 1;
        let mut words = Vec::new();
        loop {
            self.blanks();
            if self.is_over() {
                self.fail(open);
                return;
            }
            let before = self.at;
            match self.peek() {
                b')' => {
                    self.at += 1;
                    return;
                }
                b'\n' => self.line_break(),
                _ => self.word(&mut words),
            }
            words.clear();
            if self.at == before {
                self.at = self.text.ceil_char_boundary(self.at + 1);
            }
        }
    }
}
