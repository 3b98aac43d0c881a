//! How an agent ended, judged by its exit code and its last words.

use crate::child::process::ChildEnd;
use crate::text::clean;

const MAX_WORDS: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// Its input was closed and it ended by itself.
    Finished,
    Crashed {
        /// `None` if a signal ended it.
        code: Option<i32>,
        /// Its last line on the error output, without anything secret-looking.
        words: Option<String>,
    },
    /// We made it end with a signal.
    Killed,
    NotInstalled,
    ProjectGone,
    /// It could not be started for another reason.
    NotStarted {
        problem: String,
    },
    /// It was to take up a conversation that it does not have.
    UnknownSession,
    /// It was to begin one under a name that it already has.
    InUse,
}

impl From<ChildEnd> for Exit {
    fn from(ended: ChildEnd) -> Self {
        match ended {
            ChildEnd::NotInstalled => Self::NotInstalled,
            ChildEnd::ProjectGone => Self::ProjectGone,
            ChildEnd::NotStarted { problem } => Self::NotStarted { problem },
            ChildEnd::Over { code: Some(0), .. } => Self::Finished,
            ChildEnd::Over { killed: true, .. } => Self::Killed,
            ChildEnd::Over { code, errors, .. } => Self::Crashed {
                code,
                words: last_words(&errors),
            },
        }
    }
}

fn last_words(errors: &str) -> Option<String> {
    let last = errors.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(clean(&masked(last), MAX_WORDS))
}

/// Long unbroken runs of key characters are what tokens and keys look like.
fn masked(line: &str) -> String {
    let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '=');
    let mut out = String::with_capacity(line.len());
    let mut run = String::new();
    for c in line.chars().chain(['\n']) {
        if is_key(c) {
            run.push(c);
            continue;
        }
        let secret = run.len() >= 20 && run.bytes().any(|b| b.is_ascii_digit());
        out.push_str(if secret { "***" } else { &run });
        run.clear();
        out.push(c);
    }
    out.pop();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_told_apart() {
        for (code, killed, errors, expected) in [
            (Some(0), false, "", Exit::Finished),
            (Some(0), true, "", Exit::Finished),
            (None, true, "", Exit::Killed),
            (Some(143), true, "", Exit::Killed),
            (
                Some(7),
                false,
                "warning\nlast\n\n",
                Exit::Crashed {
                    code: Some(7),
                    words: Some("last".to_owned()),
                },
            ),
            (
                None,
                false,
                "",
                Exit::Crashed {
                    code: None,
                    words: None,
                },
            ),
        ] {
            let errors = errors.to_owned();
            let ended = ChildEnd::Over {
                code,
                killed,
                errors,
            };
            assert_eq!(Exit::from(ended), expected);
        }
    }

    #[test]
    fn last_words_hold_no_key_and_no_control_character() {
        let words =
            last_words("bad key sk-ant-api03-abcdefgh1234567890 \u{1b}[31mhere").expect("words");
        assert_eq!(words, "bad key ***  [31mhere");
        assert_eq!(
            last_words("internationalization-is-fine").as_deref(),
            Some("internationalization-is-fine")
        );
    }
}
