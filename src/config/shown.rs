//! A setting's value as it may be shown: what may hold a secret is described,
//! never quoted. Pure.

use std::fmt;

use super::{SETTINGS, Setting, SettingOrigin, Sources, accepts};

/// A wrong value longer than this may be a secret on the wrong line.
const QUOTED: usize = 24;

/// A value that can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadValue {
    Quoted(String),
    Described(String),
}

impl BadValue {
    pub(super) fn of(setting: &Setting, text: &str) -> Self {
        if !may_be_seen(setting, text) || is_long(text) {
            return Self::Described(shape(text));
        }
        let mut quoted = String::new();
        for c in text.chars() {
            match c {
                '\'' | '"' | '\\' => quoted.push(c),
                _ => quoted.extend(c.escape_debug()),
            }
        }
        Self::Quoted(quoted)
    }
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quoted(value) => write!(f, "`{value}`"),
            Self::Described(shape) => f.write_str(shape),
        }
    }
}

/// An address may hold a password, and what is not an app's id may be the
/// app's secret, put on the wrong line.
fn may_be_seen(setting: &Setting, text: &str) -> bool {
    let is_misplaced = setting.name == "FEISHU_APP_ID" && !text.starts_with("cli_");
    let is_path = text.starts_with('/') && !text.contains("//");
    let has_login = text.contains('@') && !is_path;
    !setting.secret && !is_misplaced && !has_login
}

fn is_long(text: &str) -> bool {
    text.chars().count() > QUOTED
}

/// One line of `nod doctor`: a setting, its value as it may be shown, and where
/// it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownSetting {
    pub name: &'static str,
    pub value: Option<String>,
    /// How long a value is that is not shown.
    pub hidden: Option<usize>,
    pub origin: Option<SettingOrigin>,
}

pub fn shown(sources: &Sources) -> Vec<ShownSetting> {
    SETTINGS
        .iter()
        .map(|setting| {
            let found = sources.get(setting.name);
            let may_be_seen = |value: &str| {
                let is_usual = !is_long(value) || accepts(setting.name, value);
                may_be_seen(setting, value) && is_usual
            };
            ShownSetting {
                name: setting.name,
                value: found.map(|(value, _)| {
                    if may_be_seen(value) {
                        value
                            .chars()
                            .filter(|c| !c.is_control())
                            .take(200)
                            .collect()
                    } else {
                        shape(value)
                    }
                }),
                hidden: found
                    .filter(|(value, _)| !may_be_seen(value))
                    .map(|(value, _)| value.chars().count()),
                origin: found.map(|(_, origin)| origin.clone()),
            }
        })
        .collect()
}

/// What a value looks like without saying what it is.
fn shape(text: &str) -> String {
    let count = text.chars().count();
    let unit = if count == 1 {
        "character"
    } else {
        "characters"
    };
    let kind = if text.bytes().all(|b| b.is_ascii_digit()) {
        "digits"
    } else if text.bytes().all(|b| b.is_ascii_alphanumeric()) {
        "letters and digits"
    } else if text.chars().any(char::is_whitespace) {
        "with blanks"
    } else if text.is_ascii() {
        "with punctuation"
    } else {
        "not plain ASCII"
    };
    format!("{count} {unit}, {kind}")
}
