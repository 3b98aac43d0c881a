//! What stands inside a word and is read on its own: substitutions, the rest
//! of a parameter, arithmetic.

use super::words::Builder;
use super::{ReadUntil, ShellReader, TextPlace};

impl ShellReader<'_> {
    /// Up to the `}` of a parameter, with what it substitutes.
    pub(super) fn braced(&mut self, open: usize) {
        self.depth += 1;
        let mut inside = Builder::default();
        let mut depth = 1;
        while !self.is_over() && self.depth <= super::MAX_DEPTH {
            match self.peek() {
                b'}' => {
                    self.at += 1;
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                b'{' => {
                    depth += 1;
                    self.at += 1;
                }
                b'\'' => self.single(&mut inside),
                b'"' => self.double(&mut inside),
                b'$' => {
                    self.dollar(&mut inside, true);
                }
                b'`' => self.backticks(&mut inside),
                b'\\' => {
                    self.at = self
                        .text
                        .ceil_char_boundary((self.at + 2).min(self.text.len()));
                }
                _ => self.at = self.text.ceil_char_boundary(self.at + 1),
            }
        }
        self.depth -= 1;
        if depth > 0 {
            self.fail(open);
            self.at = self.text.len();
        }
    }

    /// `$(…)` or `<(…)`, behind its parenthesis.
    pub(super) fn substitution(&mut self, word: &mut Builder) {
        word.any = true;
        word.marks.substitution = true;
        word.insert("$()");
        let ran = std::mem::take(&mut self.ran);
        let cases = std::mem::take(&mut self.cases);
        let pipe = std::mem::take(&mut self.after_pipe);
        self.groups.push(false);
        self.depth += 1;
        self.list(ReadUntil::Paren);
        self.depth -= 1;
        self.groups.pop();
        self.after_pipe = pipe;
        self.cases = cases;
        word.inner.append(&mut self.ran);
        word.inner.truncate(8);
        self.ran = ran;
    }

    pub(super) fn backticks(&mut self, word: &mut Builder) {
        let open = self.at;
        word.any = true;
        word.marks.substitution = true;
        word.insert("$()");
        let mut script = String::new();
        let mut at = open + 1;
        let mut plain = true;
        loop {
            match self.bytes.get(at) {
                None => {
                    self.fail(open);
                    break;
                }
                Some(b'`') => break,
                Some(b'\\') if matches!(self.bytes.get(at + 1), Some(b'`' | b'\\' | b'$')) => {
                    script.push_str(&self.text[at + 1..at + 2]);
                    plain = false;
                    at += 2;
                }
                Some(_) => {
                    let next = self.text.ceil_char_boundary(at + 1);
                    script.push_str(&self.text[at..next]);
                    at = next;
                }
            }
        }
        self.at = (at + 1).min(self.text.len());
        let place = match &self.place {
            TextPlace::At(base) if plain => TextPlace::At(base + open + 1),
            place => TextPlace::Within(place.of(open..self.at)),
        };
        let depth = self.depth + 1;
        let mut inner = ShellReader::new(&script, place, self.variables, self.see, depth, false);
        inner.list(ReadUntil::Text);
        word.inner.append(&mut inner.ran);
        word.inner.truncate(8);
    }

    /// `((…))`, behind both parentheses. False, and nothing read, where they do
    /// not close together: then they are two groups.
    pub(super) fn arithmetic(&mut self) -> bool {
        let open = self.at;
        let mut inside = Builder::default();
        let mut depth = 2_usize;
        self.depth += 1;
        let mut together = true;
        while !self.is_over() && depth > 0 && self.depth <= super::MAX_DEPTH {
            match self.peek() {
                b'(' => {
                    depth += 1;
                    self.at += 1;
                }
                b')' => {
                    depth -= 1;
                    self.at += 1;
                    together = depth != 1 || self.peek() == b')';
                    if !together {
                        break;
                    }
                }
                b'$' => {
                    self.dollar(&mut inside, true);
                }
                b'`' => self.backticks(&mut inside),
                _ => self.at = self.text.ceil_char_boundary(self.at + 1),
            }
            inside.text.clear();
        }
        self.depth -= 1;
        if !together {
            self.at = open;
            return false;
        }
        if depth > 0 {
            self.fail(open);
            self.at = self.text.len();
        }
        true
    }
}
