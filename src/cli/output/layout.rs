//! Text for a person as a terminal shows it best: lines broken between words
//! and hung under their beginning, marks and literals in colour. The text says
//! by itself what its parts are, so a pipe gets the same words bare. Pure.

use anstyle::{AnsiColor, Style};

use crate::text::columns;

/// What one end can show; a pipe nothing but the words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::cli) struct Look {
    pub(in crate::cli) colour: bool,
    /// Columns of the terminal.
    pub(in crate::cli) width: Option<usize>,
}

/// Longer lines are hard to read however wide the window is.
const WIDEST: usize = 100;
/// Narrower ones are the terminal's own to break.
const NARROWEST: usize = 30;

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const LOOK: Style = AnsiColor::Yellow.on_default();
const LITERAL: Style = AnsiColor::Cyan.on_default();
const FAINT: Style = Style::new().dimmed();
const HEADING: Style = Style::new().bold();

/// What a line may begin with, and how that is shown.
const MARKS: &[(&str, Style)] = &[
    ("✓ ", GOOD),
    ("✗ ", BAD),
    ("! ", LOOK),
    ("⚠ ", LOOK),
    ("→ ", LITERAL),
    ("· ", FAINT),
    ("- ", FAINT),
    ("nod: ", BAD),
    ("hint: ", LITERAL),
    ("提示：", LITERAL),
];

impl Look {
    /// Every line of the text, each ended.
    pub(in crate::cli) fn lay_out(self, text: &str) -> String {
        text.lines().map(|line| self.line(line)).collect()
    }

    fn line(self, line: &str) -> String {
        let line: String = line.chars().filter(|c| !c.is_control()).collect();
        let width = self.width.map(|width| width.min(WIDEST));
        let mut lines = match width {
            Some(width) if width >= NARROWEST => broken(&line, width),
            _ => vec![line],
        };
        if self.colour {
            painted(&mut lines);
        }
        lines.into_iter().map(|line| line + "\n").collect()
    }

    /// A change of a file, line by line.
    pub(in crate::cli) fn diff(self, text: &str) -> String {
        let painted = text.lines().map(|line| {
            let style = match line.as_bytes().first() {
                _ if !self.colour => Style::new(),
                Some(b'+') => GOOD,
                Some(b'-') => BAD,
                Some(b'@') => FAINT,
                _ => Style::new(),
            };
            in_style(style, line) + "\n"
        });
        painted.collect()
    }
}

fn in_style(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// The line in pieces no wider than `width`, where it has places to break at.
/// What follows stands under the line's own words: behind its mark, or in its
/// second column.
fn broken(line: &str, width: usize) -> Vec<String> {
    if columns(line) <= width {
        return vec![line.to_owned()];
    }
    let hang = Some(hang(line)).filter(|hang| *hang <= width / 2);
    let hang = " ".repeat(hang.unwrap_or(2));
    let mut lines = Vec::new();
    let mut now = String::new();
    for piece in pieces(line) {
        let is_full = columns(&now) + columns(piece.trim_end()) > width;
        if is_full && !now.trim().is_empty() {
            lines.push(now.trim_end().to_owned());
            now.clone_from(&hang);
            now.push_str(piece.trim_start());
        } else {
            now.push_str(piece);
        }
    }
    lines.push(now.trim_end().to_owned());
    lines
}

/// The column the words of a line begin at.
fn hang(line: &str) -> usize {
    let start = line.len() - line.trim_start().len();
    let rest = &line[start..];
    let mark = MARKS.iter().find(|(mark, _)| rest.starts_with(mark));
    if let Some((mark, _)) = mark {
        return start + columns(mark);
    }
    let number = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if number > 0 && rest[number..].starts_with(". ") {
        return start + number + 2;
    }
    match rest.find("  ") {
        Some(gap) => {
            let second = rest[gap..].trim_start();
            columns(&line[..line.len() - second.len()])
        }
        None => start,
    }
}

/// The line cut wherever it may be broken: behind a blank, and beside a Han
/// character unless its punctuation would stand alone. A literal stays whole.
fn pieces(line: &str) -> Vec<&str> {
    const CLOSING: &str = "，。；：、？！）”」》…,.;:?!)";
    const OPENING: &str = "（“「《(";
    let is_wide = |c: char| columns(c.encode_utf8(&mut [0; 4])) == 2;
    let mut pieces = Vec::new();
    let mut from = 0;
    let mut in_literal = false;
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c == '`' {
            in_literal = !in_literal;
        }
        let Some(&(_, next)) = chars.peek() else {
            continue;
        };
        let end = at + c.len_utf8();
        let after_blank = c == ' ' && next != ' ' && !line[..at].trim().is_empty();
        let beside_han = (is_wide(c) || is_wide(next))
            && c != ' '
            && next != ' '
            && !CLOSING.contains(next)
            && !OPENING.contains(c);
        if !in_literal && (after_blank || beside_han) {
            pieces.push(&line[from..end]);
            from = end;
        }
    }
    pieces.push(&line[from..]);
    pieces
}

/// Colours what the lines of one broken line begin with and hold.
fn painted(lines: &mut [String]) {
    let Some(first) = lines.first() else {
        return;
    };
    let rest = first.trim_start();
    let start = first.len() - rest.len();
    let is_heading = start == 0 && lines.len() == 1 && rest.ends_with([':', '：']);
    if is_heading {
        lines[0] = in_style(HEADING, rest);
        return;
    }
    let mark = MARKS.iter().find(|(mark, _)| rest.starts_with(mark));
    let (mark, style) = mark.map_or(("", Style::new()), |(mark, style)| (*mark, *style));
    let begun = format!("{}{}", " ".repeat(start), in_style(style, mark));
    let skip = start + mark.len();
    let mut in_literal = false;
    for (n, line) in lines.iter_mut().enumerate() {
        let words = if n == 0 { &line[skip..] } else { line.as_str() };
        let words = with_literals(words, &mut in_literal);
        *line = if n == 0 && !mark.is_empty() {
            format!("{begun}{words}")
        } else if n == 0 {
            format!("{}{words}", " ".repeat(start))
        } else {
            words
        };
    }
}

fn with_literals(words: &str, in_literal: &mut bool) -> String {
    let mut out = String::with_capacity(words.len() + 16);
    if *in_literal {
        out.push_str(&LITERAL.render().to_string());
    }
    for c in words.chars() {
        if c != '`' {
            out.push(c);
            continue;
        }
        if *in_literal {
            out.push(c);
            out.push_str(&LITERAL.render_reset().to_string());
        } else {
            out.push_str(&LITERAL.render().to_string());
            out.push(c);
        }
        *in_literal = !*in_literal;
    }
    if *in_literal {
        out.push_str(&LITERAL.render_reset().to_string());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bare(width: usize, line: &str) -> String {
        let look = Look {
            colour: false,
            width: Some(width),
        };
        look.lay_out(line)
    }

    #[test]
    fn a_pipe_gets_the_words_as_they_are() {
        let long = "✗ `x` ".repeat(60);
        assert_eq!(Look::default().lay_out(&long), format!("{long}\n"));
    }

    #[test]
    fn lines_break_between_words_and_hang_under_their_beginning() {
        for (line, shown) in [
            (
                "    → run `nod setup` first: it can't start without one",
                "    → run `nod setup` first: it\n      can't start without one\n",
            ),
            (
                "  lock, unlock  Let nobody allow until it is undone",
                "  lock, unlock  Let nobody allow\n                until it is\n                undone\n",
            ),
            (
                "✓ 已连接飞书，持续了很久很久，没有断开过（一次也没有）。",
                "✓ 已连接飞书，持续了很久很久，没\n  有断开过（一次也没有）。\n",
            ),
            (
                "12. Open the page and add `nod daemon --background` there",
                "12. Open the page and add\n    `nod daemon --background`\n    there\n",
            ),
        ] {
            assert_eq!(bare(32, line), shown);
        }
        let link = "https://example.com/a/very/long/address?that=nobody&may=break";
        assert!(bare(32, &format!("open {link} now")).contains(link));
    }

    #[test]
    fn no_line_of_words_is_wider_than_the_terminal() {
        let words = "这台机器 can't reach `open.feishu.cn`；请检查网络 and the proxy, ".repeat(8);
        for width in NARROWEST..90 {
            for line in bare(width, &words).lines() {
                assert!(columns(line) <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn marks_headings_and_literals_are_coloured_and_nothing_steers_the_terminal() {
        let look = Look {
            colour: true,
            width: None,
        };
        let said = look.lay_out("Options:\n✓ ran `npm test`\nplain\x1b[2J\n");
        assert_eq!(
            said,
            "\x1b[1mOptions:\x1b[0m\n\x1b[32m✓ \x1b[0mran \x1b[36m`npm test`\x1b[0m\nplain[2J\n"
        );
        assert_eq!(look.diff("+a\n b\n"), "\x1b[32m+a\x1b[0m\n b\n");
    }
}
