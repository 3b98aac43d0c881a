//! Text somebody else wrote, made fit for a person's eyes: whatever could hide,
//! reorder or push text away is shown as a visible escape, and what is too long
//! keeps its head and its tail. Changes only what is seen, never what runs.

use std::fmt::Write as _;
use std::ops::Range;

use super::lookalike::{self, is_mark};
use super::secrets::FoundSecret;

/// How a text is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One line: line breaks are shown as escapes.
    Line,
    /// One line that names a program, a file or a place: letters that pass for
    /// others, or that turn the line around, are shown as escapes too.
    Name,
    /// Lines of text.
    Lines,
    /// Lines that a shell will read, as strict as a name.
    Command,
    /// A file's content: indentation stays and so do typographic quotes, which
    /// are ordinary in prose and harmless where no shell reads them.
    Code,
    /// A diff of file content: as [`Shape::Code`] behind a first column.
    Diff,
}

impl Shape {
    const fn is_code(self) -> bool {
        matches!(self, Self::Code | Self::Diff)
    }

    const fn is_strict(self) -> bool {
        matches!(self, Self::Name | Self::Command)
    }

    pub(crate) const fn is_line(self) -> bool {
        matches!(self, Self::Line | Self::Name)
    }

    const fn most_marks(self) -> usize {
        if self.is_strict() {
            lookalike::MAX_MARKS
        } else {
            MAX_MARKS
        }
    }
}

/// What may be shown: bytes as they count inside JSON, and lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    pub bytes: usize,
    pub lines: usize,
}

impl Budget {
    pub const fn new(bytes: usize, lines: usize) -> Self {
        Self { bytes, lines }
    }
}

/// A text as the card shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownText {
    pub head: String,
    /// Empty unless something is hidden.
    pub tail: String,
    pub hidden: Option<Hidden>,
}

impl ShownText {
    /// Head and tail, with this in the place of what is hidden.
    pub fn joined(self, between: &str) -> String {
        match self.hidden {
            None => self.head,
            Some(_) => self.head + between + &self.tail,
        }
    }

    /// Its beginning, with an ellipsis where there is more of it.
    pub fn beginning(self) -> String {
        match self.hidden {
            None => self.head,
            Some(_) => format!("{}…", self.head.trim_end()),
        }
    }
}

/// The middle that isn't on the card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hidden {
    pub range: Range<usize>,
    pub lines: usize,
}

/// Indentation deeper than this could push text off a phone's screen.
const MAX_INDENT: usize = 24;
/// Letters of real languages carry fewer marks than this on one base.
const MAX_MARKS: usize = 4;
/// Asks for the coloured picture of the character before it.
const EMOJI_STYLE: char = '\u{fe0f}';
/// Plain text is taken in pieces of at most this, so that a budget can cut it.
const PIECE: usize = 24;

/// The whole text with every character a reader could miss made visible.
pub fn visible(text: &str, shape: Shape) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut reader = EscapeReader::new(text, 0..text.len(), shape, &[]);
    while reader.step(&mut out) {}
    out
}

/// Whether the text looks on a card exactly as it is.
pub fn is_plain(text: &str) -> bool {
    visible(text, Shape::Name) == text
}

/// One part of a text, with the secrets found in the whole of it masked.
pub fn excerpt(text: &str, range: Range<usize>, secrets: &[FoundSecret]) -> String {
    let mut out = String::new();
    let mut reader = EscapeReader::new(text, range, Shape::Line, secrets);
    while reader.step(&mut out) {}
    out
}

/// As much of the text as the budget allows: all of it, or two thirds of the
/// budget from its head and one third from its tail.
pub fn fit(text: &str, shape: Shape, secrets: &[FoundSecret], budget: Budget) -> ShownText {
    let (whole, end) = head(text, shape, secrets, budget);
    if end == text.len() {
        return ShownText {
            head: whole,
            tail: String::new(),
            hidden: None,
        };
    }
    let tail_budget = Budget::new(budget.bytes / 3, (budget.lines / 3).max(1));
    let head_budget = Budget::new(
        budget.bytes - tail_budget.bytes,
        budget.lines.saturating_sub(tail_budget.lines).max(1),
    );
    let (head, head_end) = head(text, shape, secrets, head_budget);
    let (tail, tail_start) = tail(text, head_end, shape, secrets, tail_budget);
    let range = head_end..tail_start;
    let lines = text[range.clone()].matches('\n').count();
    ShownText {
        head,
        tail,
        hidden: Some(Hidden { range, lines }),
    }
}

/// A name from the machine on one line of at most so many bytes.
pub fn short(text: &str, bytes: usize) -> String {
    fit(text, Shape::Line, &[], Budget::new(bytes, 1)).joined("…")
}

fn head(text: &str, shape: Shape, secrets: &[FoundSecret], budget: Budget) -> (String, usize) {
    let mut out = String::with_capacity(text.len().min(budget.bytes) + 16);
    let mut reader = EscapeReader::new(text, 0..text.len(), shape, secrets);
    let (mut spent, mut lines) = (0, 1);
    let mut line_break = None;
    loop {
        let (at, len) = (reader.at, out.len());
        if !reader.step(&mut out) {
            return (out, reader.at);
        }
        let (cost, breaks) = cost(&out[len..]);
        if spent + cost > budget.bytes || lines + breaks > budget.lines {
            out.truncate(len);
            // Whole lines read better, unless that would waste the budget.
            if let Some((break_at, break_len)) = line_break
                && break_len * 2 > out.len()
            {
                out.truncate(break_len);
                return (out, break_at);
            }
            return (out, at);
        }
        spent += cost;
        lines += breaks;
        if breaks > 0 {
            line_break = Some((reader.at, out.len()));
        }
    }
}

fn tail(
    text: &str,
    after: usize,
    shape: Shape,
    secrets: &[FoundSecret],
    budget: Budget,
) -> (String, usize) {
    let from = text.floor_char_boundary(text.len().saturating_sub(budget.bytes));
    let mut reader = EscapeReader::new(text, from.max(after)..text.len(), shape, secrets);
    let mut out = String::new();
    let mut cuts = vec![(reader.at, 0)];
    while reader.step(&mut out) {
        cuts.push((reader.at, out.len()));
    }
    let (mut spent, mut lines) = (0, 1);
    let mut kept = cuts.len() - 1;
    while kept > 0 {
        let (cost, breaks) = cost(&out[cuts[kept - 1].1..cuts[kept].1]);
        if spent + cost > budget.bytes || lines + breaks > budget.lines {
            break;
        }
        spent += cost;
        lines += breaks;
        kept -= 1;
    }
    let (mut start, mut cut) = cuts[kept];
    if let Some(line) = out[cut..].find('\n')
        && line * 2 < out.len() - cut
        && let Some(&(line_start, line_cut)) =
            cuts[kept..].iter().find(|&&(_, len)| len > cut + line)
    {
        (start, cut) = (line_start, line_cut);
    }
    // A mark without its base would settle on whatever the card puts before it.
    while out[cut..].starts_with(settles)
        && let Some(&next) = cuts.iter().find(|&&(_, len)| len > cut)
    {
        (start, cut) = next;
    }
    (out.split_off(cut), start)
}

/// Bytes inside a JSON string, and line breaks.
fn cost(text: &str) -> (usize, usize) {
    text.bytes().fold((0, 0), |(bytes, lines), b| match b {
        b'\n' => (bytes + 2, lines + 1),
        b'"' | b'\\' => (bytes + 2, lines),
        _ => (bytes + 1, lines),
    })
}

struct EscapeReader<'a> {
    text: &'a str,
    at: usize,
    end: usize,
    shape: Shape,
    secrets: &'a [FoundSecret],
    line_start: bool,
    /// Before the sign in a diff's first column.
    sign: bool,
    /// Combining marks on the current base; a base can't be an escape.
    marks: usize,
}

impl<'a> EscapeReader<'a> {
    fn new(text: &'a str, range: Range<usize>, shape: Shape, secrets: &'a [FoundSecret]) -> Self {
        let first = secrets.partition_point(|secret| secret.range.end <= range.start);
        let line_start = range.start == 0 || text[..range.start].ends_with('\n');
        Self {
            text,
            at: range.start,
            end: range.end,
            shape,
            secrets: &secrets[first..],
            line_start,
            sign: line_start && shape == Shape::Diff,
            marks: MAX_MARKS,
        }
    }

    /// Appends the next piece; false at the end.
    fn step(&mut self, out: &mut String) -> bool {
        if self.at >= self.end {
            return false;
        }
        let mut limit = self.end;
        if let Some((secret, rest)) = self.secrets.split_first() {
            if secret.range.start <= self.at {
                let _ = write!(out, "⟦secret {} {}B⟧", secret.kind, secret.range.len());
                self.at = secret.range.end.min(self.end);
                self.secrets = rest;
                self.settle(false, MAX_MARKS);
                return true;
            }
            limit = limit.min(secret.range.start);
        }
        let rest = &self.text[self.at..limit];
        let Some(first) = rest.chars().next() else {
            return false;
        };
        let taken = match first {
            '+' | '-' | ' ' if self.sign => {
                out.push(first);
                self.settle(true, MAX_MARKS);
                1
            }
            ' ' => self.spaces(rest, out),
            '\n' => self.breaks(rest, out),
            '\t' => self.tabs(rest, out),
            '!'..='~' => {
                let len = rest
                    .bytes()
                    .take(PIECE)
                    .take_while(u8::is_ascii_graphic)
                    .count();
                out.push_str(&rest[..len]);
                self.settle(false, 0);
                len
            }
            _ => self.other(first, rest, out),
        };
        self.at += taken;
        true
    }

    fn settle(&mut self, line_start: bool, marks: usize) {
        self.line_start = line_start;
        self.sign = false;
        self.marks = marks;
    }

    fn spaces(&mut self, rest: &str, out: &mut String) -> usize {
        let run = run(rest, ' ');
        let indent = self.shape.is_code() && self.line_start && run <= MAX_INDENT;
        if run <= 3 || indent {
            out.push_str(&rest[..run]);
        } else {
            let _ = write!(out, "⟦{run} spaces⟧");
        }
        self.settle(false, MAX_MARKS);
        run
    }

    fn breaks(&mut self, rest: &str, out: &mut String) -> usize {
        let run = run(rest, '\n');
        let _ = match (self.shape, run) {
            (shape, 1) if shape.is_line() => write!(out, "⟦newline⟧"),
            (shape, _) if shape.is_line() => write!(out, "⟦{run} newlines⟧"),
            (_, 1..=3) => {
                out.push_str(&rest[..run]);
                Ok(())
            }
            _ => write!(out, "\n⟦{} blank lines⟧\n", run - 1),
        };
        self.settle(!self.shape.is_line(), MAX_MARKS);
        self.sign = self.shape == Shape::Diff;
        run
    }

    fn tabs(&mut self, rest: &str, out: &mut String) -> usize {
        let run = run(rest, '\t');
        let indent = self.shape.is_code() && self.line_start && run <= MAX_INDENT / 4;
        let _ = if indent {
            out.extend(std::iter::repeat_n("⇥ ", run));
            Ok(())
        } else if run == 1 {
            write!(out, "⟦tab⟧")
        } else {
            write!(out, "⟦{run} tabs⟧")
        };
        // More indentation may follow.
        self.settle(self.line_start, MAX_MARKS);
        run
    }

    fn other(&mut self, first: char, rest: &str, out: &mut String) -> usize {
        if self.shape.is_strict()
            && (lookalike::is_right_to_left(first)
                || lookalike::is_mixed(self.text, self.at, first))
        {
            let _ = write!(out, "⟦U+{:04X}⟧", u32::from(first));
            self.settle(false, MAX_MARKS);
            return first.len_utf8();
        }
        if is_mark(first) {
            if self.marks < self.shape.most_marks() {
                out.push(first);
                self.settle(false, self.marks + 1);
                return first.len_utf8();
            }
            let run: usize = rest.chars().take_while(|&c| is_mark(c)).count();
            let len = rest.chars().take(run).map(char::len_utf8).sum();
            let _ = write!(out, "⟦{run} combining marks⟧");
            self.settle(false, MAX_MARKS);
            return len;
        }
        let emoji_style = first == EMOJI_STYLE
            && self.text[..self.at]
                .chars()
                .next_back()
                .is_some_and(|base| ('\u{203c}'..='\u{1faff}').contains(&base) && !is_hidden(base));
        let quote = !self.shape.is_code() && is_quote(first);
        if !emoji_style && (is_hidden(first) || quote) {
            let run = run(rest, first);
            let code = u32::from(first);
            let _ = match run {
                1 => write!(out, "⟦U+{code:04X}⟧"),
                _ => write!(out, "⟦U+{code:04X} ×{run}⟧"),
            };
            self.settle(false, MAX_MARKS);
            return run * first.len_utf8();
        }
        out.push(first);
        self.settle(false, 0);
        first.len_utf8()
    }
}

fn run(text: &str, of: char) -> usize {
    text.chars().take_while(|&c| c == of).count()
}

/// Characters that show nothing, move others, look like a space, or whose
/// picture is up to the font; and the brackets and arrow of our own escapes.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '⟦' | '⟧' | '⇥'
        | '\0'..='\u{1f}' | '\u{7f}'..='\u{a0}' | '\u{ad}'
        | '\u{34f}' | '\u{61c}' | '\u{70f}' | '\u{115f}' | '\u{1160}' | '\u{1680}'
        | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}'
        | '\u{2800}' | '\u{3000}' | '\u{3164}'
        | '\u{e000}'..='\u{f8ff}' | '\u{fdd0}'..='\u{fdef}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{ffff}'
        | '\u{13430}'..='\u{1345f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{10ffff}')
}

/// Quotes that a shell doesn't know but a reader takes for the ones it does.
fn is_quote(c: char) -> bool {
    matches!(c,
        '\u{b4}' | '\u{2b9}'..='\u{2bd}' | '\u{2c8}' | '\u{2ca}' | '\u{2cb}' | '\u{2ee}'
        | '\u{37e}' | '\u{55a}' | '\u{5f3}' | '\u{5f4}' | '\u{1fef}' | '\u{1ffd}' | '\u{1ffe}'
        | '\u{2018}'..='\u{201f}' | '\u{2032}'..='\u{2037}' | '\u{275b}'..='\u{275e}'
        | '\u{301d}'..='\u{301f}' | '\u{a78c}' | '\u{ff02}' | '\u{ff07}' | '\u{ff40}')
}

/// Whether a character belongs to the one before it.
pub(crate) fn settles(c: char) -> bool {
    is_mark(c) || c == EMOJI_STYLE
}

#[cfg(test)]
mod tests {
    use super::super::secrets;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_is_shown_whole_or_by_its_two_ends() {
        assert_eq!(short("main", 8), "main");
        let name = "the first and the last";
        let shown = short(name, 12);
        assert!(shown.starts_with("the") && shown.ends_with('t'), "{shown}");
        assert!(shown.contains('…') && shown.len() < name.len(), "{shown}");
    }

    #[test]
    fn a_beginning_says_where_there_is_more() {
        let cut = |text: &str| {
            let budget = Budget { bytes: 8, lines: 1 };
            fit(text, Shape::Line, &[], budget).beginning()
        };
        assert_eq!(cut("short"), "short");
        let shown = cut("one two three four");
        assert!(shown.starts_with("one") && shown.ends_with('…'), "{shown}");
        assert!(!shown.contains(" …"), "{shown}");
    }

    #[test]
    fn the_head_keeps_to_its_lines() {
        let text = "x\n".repeat(20);
        for lines in 1..6 {
            let bytes = 10_000;
            let (shown, end) = head(&text, Shape::Lines, &[], Budget { bytes, lines });
            assert_eq!(shown.matches('\n').count(), lines - 1, "{shown:?}");
            assert!(text.starts_with(&shown) && end == shown.len());
        }
    }

    #[test]
    fn what_could_hide_is_shown() {
        for (raw, seen) in [
            ("ls -la", "ls -la"),
            ("a\u{202e}b", "a⟦U+202E⟧b"),
            ("a\u{200b}\u{200b}\u{200b}b", "a⟦U+200B ×3⟧b"),
            ("\u{e0041}", "⟦U+E0041⟧"),
            ("\u{1b}[31mred", "⟦U+001B⟧[31mred"),
            ("a\u{85}b\rc", "a⟦U+0085⟧b⟦U+000D⟧c"),
            ("a\u{a0}b", "a⟦U+00A0⟧b"),
            ("a   b", "a   b"),
            ("a    b", "a⟦4 spaces⟧b"),
            ("a\tb\t\tc", "a⟦tab⟧b⟦2 tabs⟧c"),
            ("a\nb\n\nc", "a⟦newline⟧b⟦2 newlines⟧c"),
            ("echo “x”", "echo ⟦U+201C⟧x⟦U+201D⟧"),
            ("⟦secret⟧", "⟦U+27E6⟧secret⟦U+27E7⟧"),
            ("e\u{301}", "e\u{301}"),
            (
                "e\u{301}\u{301}\u{301}\u{301}\u{301}\u{302}",
                "e\u{301}\u{301}\u{301}\u{301}⟦2 combining marks⟧",
            ),
            ("\u{301}x", "⟦1 combining marks⟧x"),
            ("⚠\u{fe0f} x\u{fe0f}", "⚠\u{fe0f} x⟦U+FE0F⟧"),
            ("中文 ok", "中文 ok"),
        ] {
            assert_eq!(visible(raw, Shape::Line), seen);
        }
    }

    #[test]
    fn letters_that_pass_for_others_are_shown_in_commands_and_nowhere_else() {
        for (raw, seen) in [
            ("сurl x", "⟦U+0441⟧url x"),
            ("ｃurl x", "⟦U+FF43⟧url x"),
            ("cat ѕecret", "cat ⟦U+0455⟧ecret"),
            ("rm א 1", "rm ⟦U+05D0⟧ 1"),
            (
                "e\u{301}\u{301}\u{301}",
                "e\u{301}\u{301}⟦1 combining marks⟧",
            ),
            (
                "git commit -m \"Добавить API；更新 10μs\"",
                "git commit -m \"Добавить API；更新 10μs\"",
            ),
            (
                "cat файл.txt größe.md 日本語.md 한국어",
                "cat файл.txt größe.md 日本語.md 한국어",
            ),
            ("tiê\u{301}ng", "tiê\u{301}ng"),
        ] {
            assert_eq!(visible(raw, Shape::Command), seen);
            assert_eq!(visible(raw, Shape::Name), seen);
        }
        for prose in ["сurl", "שלום", "مرحبا"] {
            assert_eq!(visible(prose, Shape::Lines), prose);
            assert_eq!(visible(prose, Shape::Code), prose);
        }
    }

    #[test]
    fn plain_is_what_a_card_shows_unchanged() {
        for (text, plain) in [
            ("", true),
            ("npm test:*", true),
            ("a\u{200b}b", false),
            ("a\nb", false),
            ("a    b", false),
            ("сurl x", false),
            ("rm אב", false),
            ("git commit -m 修复", true),
        ] {
            assert_eq!(is_plain(text), plain, "{text:?}");
        }
    }

    #[test]
    fn a_text_that_just_fits_is_whole_and_anything_less_cuts_it() {
        for (text, bytes, lines) in [
            ("abcd", 4, 1),
            ("a\"\\b", 6, 1),
            ("a\nb", 4, 2),
            ("a\nb\nc", 7, 3),
        ] {
            let hides = |bytes, lines| {
                let shown = fit(text, Shape::Lines, &[], Budget { bytes, lines });
                shown.hidden.is_some()
            };
            assert!(!hides(bytes, lines), "{text:?}");
            assert!(hides(bytes - 1, lines), "{text:?} one byte short");
            assert!(
                lines == 1 || hides(bytes, lines - 1),
                "{text:?} a line short"
            );
        }
    }

    /// The budget gives a head 20 bytes and a tail 10 bytes or three lines.
    #[test]
    fn cuts_fall_between_words_and_at_a_line_break_that_wastes_less_than_half() {
        let budget = Budget::new(30, 9);
        let filler = "word ".repeat(10);
        for (begin, head) in [
            ("0123456789ab\ncdef ghij ", "0123456789ab\n"),
            ("ab\ncdefghij klmno pqrs ", "ab\ncdefghij klmno "),
            ("01234567\nabcd efgh  ij ", "01234567\nabcd efgh"),
        ] {
            let shown = fit(&format!("{begin}{filler}"), Shape::Lines, &[], budget);
            assert_eq!(shown.head, head);
        }
        for (end, tail) in [
            ("ab cdef gh", "ab cdef gh"),
            ("\"\" \"\" \"\" \"", " \"\" \""),
            ("\nx\na\nb\nc\nd", "c\nd"),
            ("x yy\nzzzzz", "zzzzz"),
            ("ab yy\nzzzz", "zzzz"),
            ("x yyyyy\nzz", " yyyyy\nzz"),
            ("x yyyy\nzzz", " yyyy\nzzz"),
            ("ab yyy\nzzz", " yyy\nzzz"),
            ("\"\"e\u{301}yyyyy", "yyyyy"),
        ] {
            let shown = fit(&format!("{filler}{end}"), Shape::Lines, &[], budget);
            assert_eq!(shown.tail, tail);
        }
    }

    #[test]
    fn line_breaks_stay_where_lines_are_wanted_but_gaps_are_counted() {
        assert_eq!(visible("a\nb\n\n\nc", Shape::Lines), "a\nb\n\n\nc");
        let gap = format!("a{}b", "\n".repeat(40));
        assert_eq!(visible(&gap, Shape::Lines), "a\n⟦39 blank lines⟧\nb");
    }

    #[test]
    fn code_keeps_its_indentation_and_nothing_deeper() {
        let code = "if x:\n        y = “z”\n\t\tw";
        assert_eq!(visible(code, Shape::Code), "if x:\n        y = “z”\n⇥ ⇥ w");
        let pushed = format!("x\n{}evil()", " ".repeat(200));
        assert_eq!(visible(&pushed, Shape::Code), "x\n⟦200 spaces⟧evil()");
        assert_eq!(visible("a\tb", Shape::Code), "a⟦tab⟧b");
        for (indent, seen) in [
            (" ".repeat(24), " ".repeat(24)),
            (" ".repeat(25), "⟦25 spaces⟧".into()),
            ("\t".repeat(6), "⇥ ".repeat(6)),
            ("\t".repeat(7), "⟦7 tabs⟧".into()),
        ] {
            assert_eq!(
                visible(&format!("{indent}x"), Shape::Code),
                format!("{seen}x")
            );
        }
        let diff = " a\n-        b\n+\tc";
        assert_eq!(visible(diff, Shape::Diff), " a\n-        b\n+⇥ c");
    }

    #[test]
    fn what_is_too_long_keeps_head_and_tail_and_counts_the_rest_exactly() {
        let mut text = "echo hi\n".to_owned();
        for i in 0..10_000 {
            let _ = writeln!(text, "line {i}");
        }
        text.push_str("curl x|sh");
        let budget = Budget::new(900, 60);
        let shown = fit(&text, Shape::Lines, &[], budget);
        let hidden = shown.hidden.unwrap();
        assert!(
            shown.head.starts_with("echo hi\nline 0\n"),
            "{}",
            shown.head
        );
        assert!(
            shown.tail.ends_with("line 9999\ncurl x|sh"),
            "{}",
            shown.tail
        );
        assert_eq!(text[..hidden.range.start], shown.head);
        assert_eq!(text[hidden.range.end..], shown.tail);
        assert_eq!(hidden.lines, text[hidden.range].lines().count());
    }

    #[test]
    fn a_tail_that_begins_inside_a_line_is_not_indented() {
        let text = format!("{}\t\tend", "x".repeat(70));
        let budget = Budget::new(80, 3);
        let shown = fit(&text, Shape::Code, &[], budget);
        assert!(!shown.hidden.unwrap().range.is_empty());
        assert!(!shown.tail.contains('⇥'), "{}", shown.tail);
    }

    #[test]
    fn a_tail_never_begins_with_a_mark_that_lost_its_base() {
        for pad in 0..40 {
            for marked in ["e\u{301}", "☎\u{fe0f}", "\"\u{20d0}\u{20d0}"] {
                let text = format!("{}{}", "x".repeat(100 + pad), marked.repeat(40));
                let budget = Budget::new(90, 3);
                let shown = fit(&text, Shape::Lines, &[], budget);
                let hidden = shown.hidden.unwrap();
                assert_eq!(shown.tail, visible(&text[hidden.range.end..], Shape::Lines));
            }
        }
    }

    #[test]
    fn a_secret_never_shows_in_part() {
        let token = format!("ghp_{}", "a1B2".repeat(9));
        for pad in 0..80 {
            let text = format!("{}{token}{}", "x ".repeat(pad), " y".repeat(60));
            let found = secrets::find(&text);
            let budget = Budget::new(90, 9);
            let shown = fit(&text, Shape::Lines, &found, budget);
            let seen = format!("{}{}", shown.head, shown.tail);
            assert!(!seen.contains("a1B2"), "{seen}");
        }
    }

    fn in_json(text: &str) -> usize {
        serde_json::Value::from(text).to_string().len() - 2
    }

    proptest! {
        #[test]
        fn nothing_hidden_survives_and_plain_ascii_is_untouched(text in any::<String>()) {
            for shape in [Shape::Line, Shape::Name, Shape::Lines, Shape::Command, Shape::Code, Shape::Diff] {
                let seen = visible(&text, shape);
                for c in seen.chars() {
                    let ours = matches!(c, '⟦' | '⟧' | '⇥' | '\n' | '\u{fe0f}');
                    prop_assert!(ours || !is_hidden(c), "{c:?} in {seen:?}");
                }
                prop_assert!(!shape.is_line() || !seen.contains('\n'));
                prop_assert!(!seen.contains("    ") || shape.is_code());
            }
        }

        #[test]
        fn a_budget_is_kept_and_every_byte_is_shown_or_counted(
            text in "(\\PC|[ \n\t\"\\\\]|\u{200b}){0,600}",
            bytes in 60..400_usize,
            lines in 3..20_usize,
        ) {
            let shown = fit(&text, Shape::Lines, &[], Budget { bytes, lines });
            let seen = format!("{}{}", shown.head, shown.tail);
            prop_assert!(in_json(&seen) <= bytes);
            prop_assert!(seen.matches('\n').count() <= lines);
            for shape in [Shape::Line, Shape::Code, Shape::Diff] {
                let other = fit(&text, shape, &[], Budget { bytes, lines });
                prop_assert!(in_json(&other.head) + in_json(&other.tail) <= bytes);
                prop_assert!(other.hidden.is_none_or(|hidden| !hidden.range.is_empty()));
            }
            match shown.hidden {
                None => prop_assert_eq!(seen, visible(&text, Shape::Lines)),
                Some(hidden) => {
                    prop_assert!(hidden.range.start < hidden.range.end);
                    let head = visible(&text[..hidden.range.start], Shape::Lines);
                    let tail = visible(&text[hidden.range.end..], Shape::Lines);
                    prop_assert_eq!(&shown.head, &head);
                    prop_assert_eq!(&shown.tail, &tail);
                }
            }
        }
    }
}
