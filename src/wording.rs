//! Every sentence a person in Feishu can see, in Chinese and English. Holds
//! words only: no layout, no decisions, and nothing an agent wrote.

use std::borrow::Cow;

pub mod card;
pub mod ending;
pub mod page;
pub mod question;
pub mod session;
pub mod system;
pub mod task;
pub mod toast;

pub use toast::{Toast, reply_json};

/// The language of cards, toasts and command output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lang {
    #[default]
    Zh,
    En,
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

    pub fn get(&self, lang: Lang) -> &str {
        match lang {
            Lang::Zh => &self.zh,
            Lang::En => &self.en,
        }
    }
}

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// A span of milliseconds in the two units a person would name.
pub fn span(millis: i64) -> Text {
    let ms = millis.max(0);
    if ms < MINUTE {
        let s = ms / SECOND;
        Text::made(format!("{s} 秒"), format!("{s} s"))
    } else if ms < HOUR {
        let (m, s) = (ms / MINUTE, ms % MINUTE / SECOND);
        Text::made(format!("{m} 分 {s} 秒"), format!("{m} min {s} s"))
    } else if ms < DAY {
        let (h, m) = (ms / HOUR, ms % HOUR / MINUTE);
        Text::made(format!("{h} 小时 {m} 分"), format!("{h} h {m} min"))
    } else {
        let (d, h) = (ms / DAY, ms % DAY / HOUR);
        Text::made(format!("{d} 天 {h} 小时"), format!("{d} d {h} h"))
    }
}

/// How long ago something was: toasts can't carry a clock time, because only
/// the reader's client knows the reader's time zone.
pub fn ago(millis: i64) -> Text {
    if millis < SECOND {
        return Text::new("刚刚", "just now");
    }
    let Text { zh, en } = span(millis);
    Text::made(format!("{zh}前"), format!("{en} ago"))
}

/// For the owner, when somebody who may not decide taps again and again.
pub fn repeated_stranger(who: &str) -> Text {
    Text::made(
        format!("⚠ {who} 不在审批人名单中，10 分钟内多次点击了批准按钮，均已拒绝。"),
        format!(
            "⚠ {who} is not an approver and tapped approval buttons several times within 10 minutes; every tap was refused."
        ),
    )
}

pub static LOCKED: Text = Text::new(
    "已锁定：在终端运行 nod unlock 之前，飞书中只能拒绝，不能批准。",
    "Locked: until `nod unlock` is run in the terminal, Feishu can deny but not allow.",
);
pub static UNLOCKED: Text = Text::new(
    "已解锁：可以在飞书中批准。",
    "Unlocked: Feishu can allow again.",
);

/// The platform's name in Chinese, where it has one.
pub(crate) fn platform_zh(name: &str) -> &str {
    match name {
        "Feishu" => "飞书",
        other => other,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_name_the_two_units_that_matter() {
        for (ms, zh, en) in [
            (-5, "0 秒", "0 s"),
            (59_999, "59 秒", "59 s"),
            (61_000, "1 分 1 秒", "1 min 1 s"),
            (2 * HOUR + 5 * MINUTE, "2 小时 5 分", "2 h 5 min"),
            (3 * DAY + HOUR, "3 天 1 小时", "3 d 1 h"),
        ] {
            let text = span(ms);
            assert_eq!((text.get(Lang::Zh), text.get(Lang::En)), (zh, en));
        }
        assert_eq!(ago(10).get(Lang::Zh), "刚刚");
        assert_eq!(ago(61_000).get(Lang::En), "1 min 1 s ago");
    }

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
