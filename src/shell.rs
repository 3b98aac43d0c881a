//! A command as a shell would see it: words without their quotes, assignments,
//! redirections with their targets, and every command inside lists, groups and
//! substitutions. Runs nothing and expands only what the text itself settles.
//! What it can't read for certain it says so; it never guesses in silence.

use std::ops::Range;

mod expand;
mod here;
mod inner;
mod language;
pub mod run;
mod words;

pub use expand::Variables;

/// Substitutions and groups inside each other; more is for nobody's eyes.
const MAX_DEPTH: usize = 40;
/// Words of one command that are kept; a longer one is hard to read.
const MAX_WORDS: usize = 1 << 16;

/// How a word came to be what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent observations")]
pub struct Marks {
    /// A variable whose value the text does not settle.
    pub variable: bool,
    /// `$(…)`, backticks or `<(…)`.
    pub substitution: bool,
    pub glob: bool,
    pub brace: bool,
    /// `$IFS` without quotes: a blank that does not look like one.
    pub blank: bool,
    /// Quotes or backslashes anywhere.
    pub quoted: bool,
    /// Quotes that do not simply enclose the whole word.
    pub patched: bool,
    /// Quotes or backslashes between letters, where they serve nothing.
    pub spliced: bool,
    /// `$'…'` that spells out characters one could have typed.
    pub encoded: bool,
    /// A part of another variable, or a variable named by a variable.
    pub carved: bool,
}

/// One word, as the program would get it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Word {
    /// Without quotes. What is not settled stands as `$name` or `$()`.
    pub text: String,
    /// Where it stands in the whole text.
    pub range: Range<usize>,
    /// Where the text stands letter for letter, if it does.
    pub verbatim: Option<usize>,
    pub marks: Marks,
    /// The programs that its substitutions run, and their first argument.
    pub inner: Vec<String>,
    /// Whether a character beyond ASCII stands outside of quotes.
    pub foreign: bool,
}

impl Word {
    /// Whether its text is settled by the command alone.
    pub fn is_certain(&self) -> bool {
        let Marks {
            variable,
            substitution,
            glob,
            brace,
            blank,
            ..
        } = self.marks;
        !(variable || substitution || glob || brace || blank)
    }

    /// Where a script in this word stands.
    pub fn place(&self) -> TextPlace {
        match self.verbatim {
            Some(at) => TextPlace::At(at),
            None => TextPlace::Within(self.range.clone()),
        }
    }

    /// The word after its first `bytes`.
    #[must_use]
    pub fn after(&self, bytes: usize) -> Self {
        let mut word = self.clone();
        word.text
            .replace_range(..bytes.min(self.text.floor_char_boundary(bytes)), "");
        word.verbatim = self.verbatim.map(|at| at + bytes);
        word
    }
}

/// Where a text stands in the one that a person sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextPlace {
    At(usize),
    /// Somewhere in here: quotes or escapes were taken away.
    Within(Range<usize>),
}

impl TextPlace {
    fn of(&self, range: Range<usize>) -> Range<usize> {
        match self {
            Self::At(at) => at + range.start..at + range.end,
            Self::Within(all) => all.clone(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    Read,
    Write,
    Append,
    /// `<<` with its body as the target's text.
    Here,
    /// `<<<`
    HereString,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    pub flow: Flow,
    pub target: Word,
}

/// One command with what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShellCommand {
    pub assigns: Vec<(String, Word)>,
    pub words: Vec<Word>,
    pub redirects: Vec<Redirect>,
    /// Its input comes from another command.
    pub piped: bool,
    /// Its output goes to another command.
    pub pipes: bool,
    /// It calls the function that it stands in.
    pub recursive: bool,
}

/// What a reading comes upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellSeen<'a> {
    Command(&'a ShellCommand),
    /// A place that is not the shell's language, or deeper than anyone reads.
    Unreadable,
}

/// Reads a whole text. Each thing found is told at once and kept nowhere.
pub fn read(
    text: &str,
    place: &TextPlace,
    variables: &mut Variables,
    see: &mut dyn FnMut(ShellSeen<'_>, Range<usize>),
) {
    let mut reader = ShellReader::new(text, place.clone(), variables, see, 0, false);
    reader.list(ReadUntil::Text);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadUntil {
    Text,
    Paren,
}

struct ShellReader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    place: TextPlace,
    at: usize,
    depth: usize,
    variables: &'a mut Variables,
    see: &'a mut dyn FnMut(ShellSeen<'_>, Range<usize>),
    /// Whether the groups around have their input from a pipe.
    groups: Vec<bool>,
    after_pipe: bool,
    functions: Vec<String>,
    /// For each open `case`, whether a pattern comes next.
    cases: Vec<bool>,
    /// Where the line ends whose here-documents follow, and where those end.
    bodies: Option<(usize, usize)>,
    /// Programs of the list being read, for the word around it.
    ran: Vec<String>,
    failed: bool,
}

impl<'a> ShellReader<'a> {
    fn new(
        text: &'a str,
        place: TextPlace,
        variables: &'a mut Variables,
        see: &'a mut dyn FnMut(ShellSeen<'_>, Range<usize>),
        depth: usize,
        piped: bool,
    ) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            place,
            at: 0,
            depth,
            variables,
            see,
            groups: vec![piped],
            after_pipe: false,
            functions: Vec::new(),
            cases: Vec::new(),
            bodies: None,
            ran: Vec::new(),
            failed: false,
        }
    }

    fn peek(&self) -> u8 {
        self.ahead(0)
    }

    /// The byte so many further on; 0 past the end, and a real 0 is as odd.
    fn ahead(&self, by: usize) -> u8 {
        self.bytes.get(self.at + by).copied().unwrap_or(0)
    }

    fn is_over(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Tells once per text that it can't be read.
    fn fail(&mut self, from: usize) {
        if !self.failed {
            self.failed = true;
            let end = self
                .text
                .ceil_char_boundary((from + 1).min(self.text.len()));
            let range = self.place.of(self.text.floor_char_boundary(from)..end);
            (self.see)(ShellSeen::Unreadable, range);
        }
    }

    fn list(&mut self, end: ReadUntil) {
        let opened = self.at;
        if self.depth > MAX_DEPTH {
            self.fail(self.at);
            self.at = self.bytes.len();
            return;
        }
        loop {
            self.blanks();
            if self.is_over() {
                if end == ReadUntil::Paren {
                    self.fail(opened.saturating_sub(1));
                }
                return;
            }
            if self.cases.last() == Some(&true) && self.pattern() {
                continue;
            }
            match self.peek() {
                b'\n' => {
                    self.line_break();
                }
                b')' => {
                    self.at += 1;
                    if end == ReadUntil::Paren {
                        return;
                    }
                    self.fail(self.at - 1);
                }
                b';' => {
                    self.at += 1;
                    if matches!(self.peek(), b';' | b'&')
                        && let Some(pattern) = self.cases.last_mut()
                    {
                        *pattern = true;
                        self.at += 1;
                    }
                    self.after_pipe = false;
                }
                b'|' => {
                    self.at += 1;
                    let or = self.peek() == b'|';
                    if or || self.peek() == b'&' {
                        self.at += 1;
                    }
                    self.after_pipe = !or;
                }
                b'&' if self.ahead(1) != b'>' => {
                    self.at += 1;
                    if self.peek() == b'&' {
                        self.at += 1;
                    }
                    self.after_pipe = false;
                }
                b'(' if self.ahead(1) == b'(' => {
                    self.at += 2;
                    if !self.arithmetic() {
                        self.at -= 2;
                        self.subshell();
                    }
                }
                b'(' => self.subshell(),
                _ => self.command(),
            }
        }
    }

    fn subshell(&mut self) {
        self.at += 1;
        let piped = self.takes_pipe();
        self.groups.push(piped);
        self.depth += 1;
        let cases = std::mem::take(&mut self.cases);
        self.list(ReadUntil::Paren);
        self.cases = cases;
        self.depth -= 1;
        self.groups.pop();
    }

    /// Whether the next command's input is a pipe; asked once per command.
    fn takes_pipe(&mut self) -> bool {
        std::mem::take(&mut self.after_pipe) || self.groups.last() == Some(&true)
    }

    /// Blanks, escaped line breaks and a comment.
    fn blanks(&mut self) {
        loop {
            match self.peek() {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\\' if self.ahead(1) == b'\n' => self.at += 2,
                b'#' => {
                    let rest = &self.bytes[self.at..];
                    self.at += rest.iter().take_while(|&&b| b != b'\n').count();
                }
                _ => return,
            }
        }
    }

    fn line_break(&mut self) {
        match self.bodies {
            Some((line, end)) if line == self.at => {
                self.at = end;
                self.bodies = None;
            }
            _ => self.at += 1,
        }
        // A pipe goes on over a line break.
    }

    fn command(&mut self) {
        let from = self.at;
        let mut command = ShellCommand::default();
        let mut starting = true;
        loop {
            self.blanks();
            let b = self.peek();
            match b {
                b'\n' | b';' | b'|' | b')' => break,
                b'&' if self.ahead(1) != b'>' => break,
                _ if self.is_over() => break,
                b'<' | b'>' if self.ahead(1) == b'(' => self.word(&mut command.words),
                b'<' | b'>' | b'&' => self.redirect(&mut command),
                b'0'..=b'9' if self.descriptor() => {
                    self.at += self.digits();
                    self.redirect(&mut command);
                }
                b'(' if !starting => {
                    if self.defines(&mut command) {
                        return;
                    }
                    if let Some((_, value)) = command.assigns.last()
                        && command.words.is_empty()
                        && value.text.is_empty()
                    {
                        self.array();
                        continue;
                    }
                    self.fail(self.at);
                    self.subshell();
                }
                b'(' => break,
                _ => {
                    let before = self.at;
                    let quiet = command.words.is_empty() && command.assigns.is_empty();
                    self.word(&mut command.words);
                    if self.at == before {
                        // Nothing a word could be made of.
                        self.at = self.text.ceil_char_boundary(before + 1);
                        self.fail(before);
                    }
                    if quiet && self.keyword(&mut command) {
                        if self.at_boundary() || self.cases.last() == Some(&true) {
                            return;
                        }
                        continue;
                    }
                    if words::assignment(&mut command) {
                        starting = false;
                        continue;
                    }
                }
            }
            starting = false;
            if command.words.len() > MAX_WORDS {
                command.words.truncate(MAX_WORDS);
                self.fail(from);
            }
        }
        self.finish(command, from);
    }

    /// Whether a keyword stands alone, so that what follows is a new command.
    fn at_boundary(&mut self) -> bool {
        self.blanks();
        matches!(self.peek(), b'\n' | b';' | b'|' | b')' | b'(') || self.is_over()
    }

    fn finish(&mut self, mut command: ShellCommand, from: usize) {
        command.piped = self.takes_pipe();
        let pipe = self.peek() == b'|' && self.ahead(1) != b'|';
        command.pipes = pipe;
        let empty = command.words.is_empty() && command.assigns.is_empty();
        if empty && command.redirects.is_empty() {
            return;
        }
        if let Some(program) = command.words.first() {
            command.recursive = self.functions.contains(&program.text);
            if self.ran.len() < 8 {
                let second = command.words.get(1).map_or("", |word| &word.text);
                let cut = second.floor_char_boundary(64);
                self.ran
                    .push(format!("{} {}", program.text, &second[..cut]));
            }
        }
        self.variables.learn(&command);
        let range = self.place.of(from..self.at.max(from));
        (self.see)(ShellSeen::Command(&command), range);
    }
}

#[cfg(test)]
mod tests;
