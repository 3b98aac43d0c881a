//! One word after the other: quotes taken away, escapes decoded, substitutions
//! read in place.

use super::{Marks, ShellCommand, ShellReader, TextPlace, Word, expand};

/// A word that is being put together.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent observations")]
pub(super) struct Builder {
    pub(super) text: String,
    /// Where the text begins, as long as it stands there letter for letter.
    pub(super) from: Option<usize>,
    pub(super) moved: bool,
    pub(super) marks: Marks,
    pub(super) inner: Vec<String>,
    pub(super) foreign: bool,
    /// Something was there, be it an empty pair of quotes.
    pub(super) any: bool,
    /// The last thing was a letter outside of quotes.
    pub(super) letter: bool,
    /// A quote began right behind a letter.
    pub(super) open_splice: bool,
    /// Backslashes before letters.
    pub(super) escapes: usize,
    pub(super) quotes: usize,
    /// Something stands outside of quotes.
    pub(super) bare: bool,
}

impl Builder {
    fn push(&mut self, at: usize, piece: &str) {
        if piece.is_empty() {
            return;
        }
        match self.from {
            None => self.from = Some(at),
            Some(from) if from + self.text.len() == at => {}
            Some(_) => self.moved = true,
        }
        self.text.push_str(piece);
    }

    /// What does not stand in the text like this.
    pub(super) fn insert(&mut self, piece: &str) {
        self.from = self.from.or(Some(0));
        self.moved = true;
        self.text.push_str(piece);
    }

    fn bare_char(&mut self, letter: bool) {
        if letter && self.open_splice {
            self.marks.spliced = true;
        }
        self.open_splice = false;
        self.letter = letter;
        self.bare = true;
        self.any = true;
    }

    fn open_quote(&mut self) {
        self.open_splice = self.letter || self.open_splice;
        self.letter = false;
        self.quotes += 1;
        self.marks.quoted = true;
        self.any = true;
    }

    /// What was noticed on the way, whatever the text.
    pub(super) fn seen(self) -> Word {
        self.build(&TextPlace::Within(0..0), 0, 0)
    }

    fn build(mut self, place: &TextPlace, start: usize, end: usize) -> Word {
        if self.quotes > 1 || (self.quotes == 1 && self.bare) {
            self.marks.patched = true;
        }
        if matches!(&*self.text, "[" | "[[" | "?") {
            self.marks.glob = false;
        }
        self.marks.spliced |= self.escapes > 2;
        let verbatim = match (place, self.from) {
            (TextPlace::At(base), Some(from)) if !self.moved => Some(base + from),
            _ => None,
        };
        Word {
            text: self.text,
            range: place.of(start..end),
            verbatim,
            marks: self.marks,
            inner: self.inner,
            foreign: self.foreign,
        }
    }
}

/// `NAME=value` in front of the program is no word of it.
pub(super) fn assignment(command: &mut ShellCommand) -> bool {
    let [word] = &command.words[..] else {
        return false;
    };
    let Some((name, bytes)) = expand::assigned(&word.text) else {
        return false;
    };
    // `"A=b"` in quotes is a program's name.
    if word.marks.quoted && word.verbatim.is_some_and(|at| at > word.range.start) {
        return false;
    }
    if command.assigns.len() < 4_096 {
        let value = word.after(bytes);
        command.assigns.push((name.to_owned(), value));
    }
    command.words.clear();
    true
}

impl ShellReader<'_> {
    /// The next word; more than one where an expansion splits it.
    #[allow(clippy::match_same_arms, reason = "the order of the arms counts")]
    pub(super) fn word(&mut self, out: &mut Vec<Word>) {
        let start = self.at;
        let mut word = Builder::default();
        while !self.is_over() {
            let b = self.peek();
            match b {
                b' ' | b'\t' | b'\n' | b'\r' | b';' | b'|' | b'&' | b')' => break,
                b'(' if matches!(
                    word.text.as_bytes().last(),
                    Some(b'?' | b'*' | b'+' | b'@' | b'!')
                ) && word.marks.glob =>
                {
                    self.fail(self.at);
                    self.at += 1;
                }
                b'(' => break,
                b'<' | b'>' if self.ahead(1) == b'(' && !word.any => {
                    self.at += 2;
                    self.substitution(&mut word);
                }
                b'<' | b'>' => break,
                b'\'' => self.single(&mut word),
                b'"' => self.double(&mut word),
                b'$' => {
                    if self.dollar(&mut word, false) {
                        self.split(&mut word, start, out);
                    }
                }
                b'`' => self.backticks(&mut word),
                b'\\' => self.escaped(&mut word),
                _ => self.bare(&mut word, b),
            }
        }
        if word.any {
            let raw = &self.text[start..self.at];
            if !word.marks.quoted && word.marks.brace && raw.len() == word.text.len() {
                let pieces = expand::braces(raw);
                let range = self.place.of(start..self.at);
                if pieces.len() > 1 {
                    out.extend(pieces.into_iter().map(|text| Word {
                        text,
                        range: range.clone(),
                        marks: word.marks,
                        ..Word::default()
                    }));
                    return;
                }
                word.marks.brace = false;
            }
            out.push(word.build(&self.place, start, self.at));
        }
    }

    fn bare(&mut self, word: &mut Builder, b: u8) {
        let len = if b.is_ascii() {
            1
        } else {
            let rest = &self.text[self.at..];
            word.foreign = true;
            rest.chars().next().map_or(1, char::len_utf8)
        };
        match b {
            b'*' | b'?' | b'[' => word.marks.glob = true,
            b'{' if matches!(self.ahead(1), b'}' | b' ' | b'\n' | b'\t' | 0) => {}
            b'{' => word.marks.brace = true,
            _ => {}
        }
        word.bare_char(b.is_ascii_alphanumeric());
        word.push(self.at, &self.text[self.at..self.at + len]);
        self.at += len;
    }

    fn escaped(&mut self, word: &mut Builder) {
        if self.ahead(1) == b'\n' {
            self.at += 2;
            // Between two letters it serves nobody but who wants to hide.
            word.open_splice |= word.letter;
            return;
        }
        let Some(c) = self.text[self.at + 1..].chars().next() else {
            word.any = true;
            self.at += 1;
            self.fail(self.at - 1);
            return;
        };
        let letter = c.is_ascii_alphanumeric();
        if letter && word.any {
            word.escapes += 1;
            word.marks.patched = true;
        }
        word.marks.quoted = true;
        word.any = true;
        word.bare = true;
        word.push(
            self.at + 1,
            &self.text[self.at + 1..self.at + 1 + c.len_utf8()],
        );
        self.at += 1 + c.len_utf8();
        word.letter = false;
        word.open_splice = false;
    }

    pub(super) fn single(&mut self, word: &mut Builder) {
        word.open_quote();
        let from = self.at + 1;
        let end = self.text[from..].find('\'');
        let end = end.map_or(self.text.len(), |len| from + len);
        word.push(from, &self.text[from..end]);
        if end == self.text.len() {
            self.fail(self.at);
        }
        if end > from && self.text[from..end].contains(char::is_whitespace) {
            word.open_splice = false;
        }
        self.at = (end + 1).min(self.text.len());
    }

    pub(super) fn double(&mut self, word: &mut Builder) {
        word.open_quote();
        let open = self.at;
        self.at += 1;
        if !self.in_double(word) {
            self.fail(open);
        }
        let inside = &self.text[open..self.at];
        if inside.contains(char::is_whitespace) {
            word.open_splice = false;
        }
    }

    /// Up to the closing quote; false when the text ends first, as the body of
    /// a here-document does.
    pub(super) fn in_double(&mut self, word: &mut Builder) -> bool {
        while !self.is_over() {
            let rest = &self.bytes[self.at..];
            let plain = rest
                .iter()
                .take_while(|&&b| !matches!(b, b'"' | b'\\' | b'$' | b'`'))
                .count();
            word.push(self.at, &self.text[self.at..self.at + plain]);
            self.at += plain;
            match self.peek() {
                b'"' if !self.is_over() => {
                    self.at += 1;
                    return true;
                }
                b'\\' if !self.is_over() => {
                    let step = match self.ahead(1) {
                        b'\n' => 2,
                        b'$' | b'`' | b'"' | b'\\' => {
                            word.push(self.at + 1, &self.text[self.at + 1..self.at + 2]);
                            2
                        }
                        _ => {
                            word.push(self.at, "\\");
                            1
                        }
                    };
                    self.at = (self.at + step).min(self.text.len());
                }
                b'$' => {
                    self.dollar(word, true);
                }
                b'`' => self.backticks(word),
                _ => {}
            }
        }
        false
    }

    /// True where the value of a variable went in and may have to be split.
    pub(super) fn dollar(&mut self, word: &mut Builder, quoted: bool) -> bool {
        let from = self.at;
        word.any = true;
        if !quoted {
            word.bare_char(false);
        }
        self.at += 1;
        match self.peek() {
            b'\'' if !quoted => {
                word.open_quote();
                self.at += 1;
                let (text, len, encoded) = expand::ansi(&self.text[self.at..]);
                word.insert(&text);
                word.marks.encoded |= encoded;
                if let Some(len) = len {
                    self.at += len;
                } else {
                    self.fail(from);
                    self.at = self.text.len();
                }
            }
            b'"' if !quoted => self.double(word),
            b'(' if self.ahead(1) == b'(' => {
                self.at += 2;
                if self.arithmetic() {
                    word.insert("0");
                } else {
                    self.at -= 1;
                    self.substitution(word);
                }
            }
            b'(' => {
                self.at += 1;
                self.substitution(word);
            }
            b'{' => return self.parameter(word, quoted),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                let rest = &self.bytes[self.at..];
                let len = rest.iter().take_while(|&&b| expand::is_name(b)).count();
                let name = &self.text[self.at..self.at + len];
                self.at += len;
                return self.variable(word, name, quoted);
            }
            b'0'..=b'9' | b'@' | b'*' | b'#' | b'?' | b'$' | b'!' | b'-' => {
                self.at += 1;
                word.insert(&self.text[from..self.at]);
                word.marks.variable = true;
            }
            _ => word.push(from, "$"),
        }
        false
    }

    fn variable(&mut self, word: &mut Builder, name: &str, quoted: bool) -> bool {
        if name == "IFS" && !quoted {
            word.marks.blank = true;
            word.insert(" ");
            return false;
        }
        if let Some(value) = self.variables.get(name) {
            word.insert(value);
            return !quoted && value.contains(char::is_whitespace);
        }
        word.marks.variable = true;
        word.insert("$");
        word.insert(name);
        false
    }

    /// `${…}`: a plain name is looked up, anything more is not worked out.
    fn parameter(&mut self, word: &mut Builder, quoted: bool) -> bool {
        let open = self.at - 1;
        self.at += 1;
        let rest = &self.bytes[self.at..];
        let len = rest.iter().take_while(|&&b| expand::is_name(b)).count();
        let name = self.text[self.at..self.at + len].to_owned();
        if len > 0 && self.bytes.get(self.at + len) == Some(&b'}') {
            self.at += len + 1;
            if name.starts_with(|c: char| c.is_ascii_digit()) {
                word.marks.variable = true;
                word.insert("$1");
                return false;
            }
            return self.variable(word, &name, quoted);
        }
        word.marks.variable = true;
        if name == "IFS" && !quoted {
            word.marks.blank = true;
        }
        self.at += len;
        let operator = self.peek();
        let slice = operator == b':' && !matches!(self.ahead(1), b'-' | b'=' | b'?' | b'+');
        // A part of a well-known value, or a name kept in another variable.
        word.marks.carved |= (len == 0 && matches!(operator, b'!'))
            || operator == b'@'
            || (slice && expand::is_well_known(&name));
        word.insert("${");
        word.insert(&name);
        word.insert("…}");
        self.braced(open);
        false
    }

    /// The value just put in may be several words.
    fn split(&mut self, word: &mut Builder, start: usize, out: &mut Vec<Word>) {
        let text = std::mem::take(&mut word.text);
        let mut pieces = text.split_whitespace().peekable();
        while let Some(piece) = pieces.next() {
            if pieces.peek().is_none() && !text.ends_with(char::is_whitespace) {
                piece.clone_into(&mut word.text);
                word.moved = true;
                return;
            }
            let part = Builder {
                text: piece.to_owned(),
                moved: true,
                from: Some(0),
                marks: word.marks,
                ..Builder::default()
            };
            out.push(part.build(&self.place, start, self.at));
        }
        *word = Builder::default();
    }
}
