//! What stands beside the words: redirections, here-documents, and the parts
//! of loops, cases and tests that are no commands.

use super::words::Builder;
use super::{Flow, Redirect, ShellCommand, ShellReader, TextPlace, Word};

impl ShellReader<'_> {
    pub(super) fn digits(&self) -> usize {
        let rest = &self.bytes[self.at..];
        rest.iter()
            .take_while(|b| b.is_ascii_digit())
            .take(8)
            .count()
    }

    /// Whether these digits name a redirection's descriptor.
    pub(super) fn descriptor(&self) -> bool {
        matches!(self.ahead(self.digits()), b'<' | b'>')
    }

    pub(super) fn redirect(&mut self, command: &mut ShellCommand) {
        let from = self.at;
        let rest = &self.text[self.at..];
        let operators = [
            ("<<<", Flow::HereString),
            ("<<-", Flow::Here),
            ("<<", Flow::Here),
            ("<>", Flow::Append),
            ("<&", Flow::Read),
            ("<", Flow::Read),
            ("&>>", Flow::Append),
            ("&>", Flow::Write),
            (">>", Flow::Append),
            (">|", Flow::Write),
            (">&", Flow::Write),
            (">", Flow::Write),
        ];
        let found = operators.iter().find(|(op, _)| rest.starts_with(op));
        let Some(&(operator, flow)) = found else {
            self.at += 1;
            return;
        };
        self.at += operator.len();
        self.blanks();
        let mut words = Vec::new();
        let before = self.at;
        self.word(&mut words);
        let Some(mut target) = words.into_iter().next() else {
            self.fail(from);
            return;
        };
        if operator.ends_with('&') && target.text.bytes().all(|b| b.is_ascii_digit() || b == b'-') {
            return;
        }
        if flow == Flow::Here {
            let bare = &self.text[before..self.at];
            let literal = bare.contains(['\'', '"', '\\']);
            target = self.body(&target.text, literal, operator == "<<-");
        }
        if command.redirects.len() < 256 {
            command.redirects.push(Redirect { flow, target });
        } else {
            self.fail(from);
        }
    }

    /// The lines up to the one that is the delimiter.
    fn body(&mut self, delimiter: &str, literal: bool, tabs: bool) -> Word {
        let begun = self.bodies.filter(|(line, _)| *line >= self.at);
        let (line, mut at) = begun.unwrap_or_else(|| {
            let rest = &self.text[self.at..];
            let line = rest.find('\n').map_or(self.text.len(), |len| self.at + len);
            (line, (line + 1).min(self.text.len()))
        });
        let from = at;
        let mut end = self.text.len();
        let mut closed = false;
        while at < self.text.len() {
            let rest = &self.text[at..];
            let len = rest.find('\n').unwrap_or(rest.len());
            let row = &rest[..len];
            let row = if tabs {
                row.trim_start_matches('\t')
            } else {
                row
            };
            if row.trim_end_matches('\r') == delimiter {
                end = at;
                at += len;
                closed = true;
                break;
            }
            at = (at + len + 1).min(self.text.len());
        }
        if !closed {
            self.fail(self.at.min(self.text.len().saturating_sub(1)));
            at = self.text.len();
        }
        self.bodies = Some((line, at));
        let text = &self.text[from..end];
        let place = match &self.place {
            TextPlace::At(base) => TextPlace::At(base + from),
            TextPlace::Within(all) => TextPlace::Within(all.clone()),
        };
        let mut word = Word {
            text: text.to_owned(),
            range: self.place.of(from..end),
            verbatim: match place {
                TextPlace::At(at) => Some(at),
                TextPlace::Within(_) => None,
            },
            ..Word::default()
        };
        if !literal && text.contains(['$', '`']) {
            let depth = self.depth + 1;
            let mut inner = ShellReader::new(text, place, self.variables, self.see, depth, false);
            let mut parts = Builder::default();
            while !inner.is_over() && depth <= super::MAX_DEPTH {
                inner.in_double(&mut parts);
            }
            let seen = parts.seen();
            word.marks = seen.marks;
            word.inner = seen.inner;
        }
        word
    }
}
