//! What the text itself settles: variables set to a literal, `$'…'`, and
//! simple braces.

use std::collections::HashMap;

use super::ShellCommand;
use crate::text::lists;

/// Variables the text has set so far, where it says plainly to what.
#[derive(Debug, Default)]
pub struct Variables {
    known: HashMap<String, Option<String>>,
    /// Bytes that were put in for names, over the whole text.
    spent: std::cell::Cell<usize>,
}

const MAX_VARIABLES: usize = 256;
const MAX_VALUE: usize = 4 * 1024;
/// Doubling values must not fill the memory.
const MAX_SPENT: usize = 1 << 20;

impl Variables {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        // Another separator splits words nobody can foresee.
        if self
            .known
            .get("IFS")
            .is_some_and(|ifs| ifs.as_deref().is_none_or(|ifs| !ifs.trim().is_empty()))
        {
            return None;
        }
        let value = match name {
            "HOME" if !self.known.contains_key(name) => "~",
            "PWD" if !self.known.contains_key(name) => ".",
            _ => self.known.get(name)?.as_deref()?,
        };
        let spent = self.spent.get() + value.len();
        if spent > MAX_SPENT {
            return None;
        }
        self.spent.set(spent);
        Some(value)
    }

    /// A name whose value nobody can tell from the text.
    pub(super) fn forget(&mut self, name: &str) {
        if self.known.len() < MAX_VARIABLES || self.known.contains_key(name) {
            self.known.insert(name.to_owned(), None);
        }
    }

    fn set(&mut self, name: &str, value: Option<&str>) {
        let value = value.filter(|value| value.len() <= MAX_VALUE);
        match (self.known.get(name), value) {
            // Which of the two it is may depend on anything.
            (Some(Some(old)), Some(new)) if old == new => {}
            (Some(_), _) | (None, None) => self.forget(name),
            (None, Some(value)) if self.known.len() < MAX_VARIABLES => {
                self.known.insert(name.to_owned(), Some(value.to_owned()));
            }
            (None, Some(_)) => {}
        }
    }

    pub(super) fn learn(&mut self, command: &ShellCommand) {
        if command.words.is_empty() {
            for (name, word) in &command.assigns {
                match name.strip_suffix('+') {
                    Some(name) => self.forget(name),
                    None => self.set(name, word.is_certain().then_some(&*word.text)),
                }
            }
            return;
        }
        let declares = ["export", "declare", "local", "readonly", "typeset", "read"];
        if !declares.contains(&&*command.words[0].text) {
            return;
        }
        // `declare -n` makes a name for another name.
        let reference = command.words.iter().any(|word| word.text == "-n");
        for word in &command.words[1..] {
            match assigned(&word.text) {
                Some((name, bytes)) => {
                    let value = &word.text[bytes..];
                    let certain = word.is_certain() && !reference;
                    self.set(name, certain.then_some(value));
                }
                None if command.words[0].text == "read" => self.forget(&word.text),
                None => {}
            }
        }
    }
}

pub(super) const fn is_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

/// The name that `NAME=`, `NAME+=` or `NAME[…]=` sets, and where the value is.
pub(super) fn assigned(text: &str) -> Option<(&str, usize)> {
    let equals = text.find('=')?;
    let left = &text[..equals];
    let name = left.split('[').next().unwrap_or(left);
    let plain = name.strip_suffix('+').unwrap_or(name);
    let is_variable = !plain.is_empty()
        && plain.bytes().all(is_name)
        && !plain.starts_with(|c: char| c.is_ascii_digit());
    let closed = !left.contains('[') || left.trim_end_matches('+').ends_with(']');
    (is_variable && closed).then_some((name, equals + 1))
}

/// Variables that every shell has, so that letters can be cut out of them.
pub(super) fn is_well_known(name: &str) -> bool {
    let known = "\
        PATH HOME PWD OLDPWD SHELL USER LOGNAME IFS TERM LANG OSTYPE HOSTNAME HOSTTYPE \
        MACHTYPE PS1 PS2 PS4 SHELLOPTS BASHOPTS BASH BASH_VERSION LS_COLORS EDITOR";
    lists::has(known, name)
}

/// `$'…'` decoded, its length with the closing quote, and whether it spells
/// out characters that could have been typed.
pub(super) fn ansi(text: &str) -> (String, Option<usize>, bool) {
    let mut out = String::new();
    let mut encoded = false;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\'' {
            return (out, Some(at + 1), encoded);
        }
        if c != '\\' {
            out.push(c);
            continue;
        }
        let Some((_, kind)) = chars.next() else {
            break;
        };
        let (radix, most) = match kind {
            'x' => (16, 2),
            'u' => (16, 4),
            'U' => (16, 8),
            '0'..='7' => (8, 3),
            _ => (0, 0),
        };
        if radix == 0 {
            match kind {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                'r' => out.push('\r'),
                'a' | 'b' | 'e' | 'E' | 'f' | 'v' => out.push('\u{7}'),
                other => out.push(other),
            }
            continue;
        }
        let mut code = if radix == 8 {
            kind.to_digit(8).unwrap_or(0)
        } else {
            0
        };
        let mut taken = usize::from(radix == 8);
        while taken < most
            && let Some(digit) = chars.peek().and_then(|&(_, c)| c.to_digit(radix))
        {
            code = code.saturating_mul(radix).saturating_add(digit);
            chars.next();
            taken += 1;
        }
        if let Some(c) = char::from_u32(code) {
            encoded |= c.is_ascii_graphic() || c == ' ';
            out.push(c);
        }
    }
    (out, None, encoded)
}

const MAX_BRACES: usize = 64;

/// `a{b,c}d` as the shell would write it out; one level, and not too much.
pub(super) fn braces(text: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut open = vec![text.to_owned()];
    while let Some(word) = open.pop() {
        match alternatives(&word) {
            Some(words) if done.len() + open.len() + words.len() <= MAX_BRACES => {
                open.extend(words.into_iter().rev());
            }
            _ => done.push(word),
        }
    }
    done
}

/// The first innermost pair of braces with a comma in it.
fn alternatives(word: &str) -> Option<Vec<String>> {
    let mut from = None;
    for (at, c) in word.char_indices() {
        match (c, from) {
            ('{', _) => from = Some(at),
            ('}', Some(start)) if word[start..at].contains(',') => {
                let inside = word[start + 1..at].split(',');
                let (before, after) = (&word[..start], &word[at + 1..]);
                return Some(
                    inside
                        .map(|part| format!("{before}{part}{after}"))
                        .collect(),
                );
            }
            ('}', _) => from = None,
            _ => {}
        }
    }
    None
}
