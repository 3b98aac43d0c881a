//! Text itself, before anybody says anything with it: one sentence in two
//! languages, how wide it is, and what makes somebody else's fit to be seen.

use std::borrow::Cow;
use std::fmt::Display;

pub mod escape;
pub(crate) mod lists;
pub mod lookalike;
pub mod secrets;
pub mod system;

/// The language of cards, toasts and command output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lang {
    #[default]
    Zh,
    En,
}

impl Lang {
    /// By the first of a locale's names that says anything; none means English,
    /// as for any other program.
    pub(crate) fn of_locale<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let mut said = names.filter(|name| !name.is_empty());
        match said.next() {
            Some(name) if name.starts_with("zh") => Self::Zh,
            _ => Self::En,
        }
    }

    /// A label and its fact: Chinese has a colon of its own, with no blank.
    pub(crate) fn labelled(self, label: &str, fact: impl Display) -> String {
        match self {
            Self::Zh => format!("{label}：{fact}"),
            Self::En => format!("{label}: {fact}"),
        }
    }
}

/// One sentence in both languages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    pub zh: Cow<'static, str>,
    pub en: Cow<'static, str>,
}

impl Text {
    pub const fn new(zh: &'static str, en: &'static str) -> Self {
        Self {
            zh: Cow::Borrowed(zh),
            en: Cow::Borrowed(en),
        }
    }

    pub(crate) const fn made(zh: String, en: String) -> Self {
        Self {
            zh: Cow::Owned(zh),
            en: Cow::Owned(en),
        }
    }

    /// Several, each on a line of its own.
    pub(crate) fn lines(all: &[Self]) -> Self {
        let join = |pick: fn(&Self) -> &str| all.iter().map(pick).collect::<Vec<_>>().join("\n");
        Self::made(join(|one| &one.zh), join(|one| &one.en))
    }

    pub fn get(&self, lang: Lang) -> &str {
        match lang {
            Lang::Zh => &self.zh,
            Lang::En => &self.en,
        }
    }

    /// This as the label of a fact, with the colon of the language.
    pub(crate) fn labels(&self, fact: impl Display, lang: Lang) -> String {
        lang.labelled(self.get(lang), fact)
    }
}

/// How a sentence is meant, as Feishu colours it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Success,
    Error,
    Warning,
    Info,
}

impl Tone {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }

    /// The tone of this name; one nobody knows is a warning.
    pub fn parse(text: &str) -> Self {
        [Self::Success, Self::Error, Self::Warning, Self::Info]
            .into_iter()
            .find(|tone| tone.as_str() == text)
            .unwrap_or(Self::Warning)
    }
}

/// Chinese with a blank wherever it meets a letter, a digit or a literal, for
/// sentences around a name that may be either.
pub(crate) fn spaced(text: &str) -> String {
    let is_han = |c: char| ('\u{4e00}'..='\u{9fff}').contains(&c);
    let is_latin = |c: char| c.is_ascii_alphanumeric() || c == '`';
    let mut out = String::with_capacity(text.len() + 8);
    let mut before = ' ';
    let mut inside = false;
    for c in text.chars() {
        let meet = (is_han(before) && is_latin(c) && !inside)
            || (is_latin(before) && is_han(c) && !inside);
        if meet {
            out.push(' ');
        }
        if c == '`' {
            inside = !inside;
        }
        out.push(c);
        before = c;
    }
    out
}

/// How many columns of a terminal the text takes.
pub(crate) fn columns(text: &str) -> usize {
    let wide = |c: char| matches!(c, '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}' | '\u{1f300}'..='\u{1faff}');
    text.chars().map(|c| if wide(c) { 2 } else { 1 }).sum()
}

/// The text with `put` for each `mark`, as Feishu writes one for whoever is
/// mentioned: `@_user_1` is not the front of `@_user_12`.
pub(crate) fn replace_mark(text: &str, mark: &str, put: &str) -> String {
    if mark.is_empty() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(mark) {
        out.push_str(before);
        let longer = after.starts_with(|c: char| c.is_ascii_digit());
        out.push_str(if longer { mark } else { put });
        rest = after;
    }
    out + rest
}

/// The first characters, with a blank for each that would begin a line or
/// worse.
pub(crate) fn one_line(text: &str, max: usize) -> String {
    let blank = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(blank).take(max).collect()
}

/// A foreign message made fit for one line: its first characters that print.
pub(crate) fn printable(text: &str, max: usize) -> String {
    let prints = text.chars().filter(|c| !c.is_control());
    prints.take(max).collect()
}

/// An English noun for so many of a thing.
pub(crate) fn plural(count: usize, one: &str) -> String {
    let end = if count == 1 { "" } else { "s" };
    format!("{one}{end}")
}

/// `1234567` as `1,234,567`.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// One line without control characters, shortened with an ellipsis.
pub fn clean(text: &str, max: usize) -> String {
    let mut words = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect::<String>();
    words.truncate(words.trim_end().len());
    let words = words.trim_start();
    if words.chars().count() <= max {
        return words.to_owned();
    }
    words.chars().take(max - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chinese_keeps_its_distance_from_names_and_literals() {
        for (text, shown) in [
            ("已连接127.0.0.1，持续", "已连接 127.0.0.1，持续"),
            ("已连接飞书，持续", "已连接飞书，持续"),
            ("在`名称x`中", "在 `名称x` 中"),
            ("Lark不接受", "Lark 不接受"),
        ] {
            assert_eq!(spaced(text), shown);
        }
    }

    #[test]
    fn a_terminals_columns_are_counted() {
        for (text, width) in [("a<秒>…", 6), ("（默认 5）", 10), ("→ µs", 4)] {
            assert_eq!(columns(text), width, "{text}");
        }
    }

    #[test]
    fn a_mark_is_not_the_front_of_a_longer_one() {
        for (text, mark, left) in [
            ("@_user_1 /lock", "@_user_1", " /lock"),
            ("ask @_user_12, @_user_1", "@_user_1", "ask @_user_12, "),
            ("@_user_1@_user_1x", "@_user_1", "x"),
            ("@_user_12", "@_user_12", ""),
            ("as it is", "", "as it is"),
        ] {
            assert_eq!(replace_mark(text, mark, ""), left, "{text}");
        }
        assert_eq!(replace_mark("a @_user_1", "@_user_1", "@Wu"), "a @Wu");
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (8_388_608, "8,388,608"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }
}
