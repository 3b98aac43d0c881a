//! What only looks like a command, a file or a place: letters that pass for
//! others, text that turns the line around, operators that are none.

use std::ops::Range;

use super::{Danger, Hit};
use crate::text::lookalike::{MAX_MARKS, is_double, is_mark, is_mixed, is_right_to_left};

/// Signs that pass for a dash, a slash, a dot or a colon.
const fn is_sign(c: char) -> bool {
    matches!(
        c,
        '\u{2010}'
            ..='\u{2015}'
                | '\u{2212}'
                | '\u{fe58}'
                | '\u{fe63}'
                | '\u{ff0d}'
                | '\u{2044}'
                | '\u{2215}'
                | '\u{29f8}'
                | '\u{ff0f}'
                | '\u{2024}'
                | '\u{ff0e}'
                | '\u{2236}'
                | '\u{a789}'
                | '\u{ff1a}'
                | '\u{2216}'
                | '\u{ff3c}'
                | '\u{ff3f}'
                | '\u{ff5e}'
                | '\u{ff20}'
    )
}

/// Operators of the shell, as wide as a Chinese character.
fn is_wide_operator(c: char) -> bool {
    "；｜＆＞＜＄（）｀＃＊＝！？".contains(c)
}

/// What misleads in a command or in the name of a file or place, wherever it
/// stands in it.
pub(super) fn in_text(text: &str) -> Vec<Hit> {
    let mut hits = marked(text);
    if text.is_ascii() {
        return hits;
    }
    let add = |hits: &mut Vec<Hit>, danger, range: Range<usize>| {
        if hits.len() < 256 {
            hits.push(Hit { danger, range });
        }
    };
    for (at, c) in text.char_indices().filter(|(_, c)| !c.is_ascii()) {
        let range = at..at + c.len_utf8();
        if is_right_to_left(c) {
            add(&mut hits, Danger::RightToLeft, range);
        } else if is_mixed(text, at, c) {
            add(&mut hits, Danger::Lookalike, range);
        }
        if hits.len() >= 256 {
            break;
        }
    }
    hits
}

fn marked(text: &str) -> Vec<Hit> {
    let mut hits = Vec::new();
    if text.is_ascii() {
        return hits;
    }
    let mut run = 0;
    for (at, c) in text.char_indices() {
        run = if is_mark(c) { run + 1 } else { 0 };
        if run == MAX_MARKS + 1 && hits.len() < 64 {
            hits.push(Hit {
                danger: Danger::ManyMarks,
                range: at..at + c.len_utf8(),
            });
        }
    }
    hits
}

/// A word outside of quotes that is not all ASCII: operators that only look
/// like operators, and dashes that are none.
pub(super) fn in_bare_word(word: &str) -> Option<Danger> {
    let ascii = |c: Option<char>| c.is_none_or(|c| c.is_ascii());
    let mut before = None;
    let mut chars = word.chars().peekable();
    while let Some(c) = chars.next() {
        let after = chars.peek().copied();
        // Between the characters of its own script it is a comma like any.
        if is_wide_operator(c) && ascii(before) && ascii(after) {
            return Some(Danger::WideOperator);
        }
        let first = before.is_none();
        if is_sign(c) && ascii(before) && ascii(after) && (after.is_some() || !first) {
            return Some(Danger::Lookalike);
        }
        before = Some(c);
    }
    None
}

/// A program's name that is not written in the letters programs have.
pub(super) fn in_program(word: &str) -> bool {
    word.chars()
        .any(|c| is_double(c) || is_sign(c) || is_wide_operator(c))
}
