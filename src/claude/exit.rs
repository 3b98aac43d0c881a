//! How a Claude Code child ended, judged by its exit code and its last words.

use crate::child::process::Ended;
use crate::talk::Exit;
use crate::text::clean;

const MAX_WORDS: usize = 200;

impl From<Ended> for Exit {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::NotInstalled => Self::NotInstalled,
            Ended::ProjectGone => Self::ProjectGone,
            Ended::NotStarted { problem } => Self::NotStarted { problem },
            Ended::Over {
                code,
                killed,
                errors,
            } => classify(code, killed, &errors),
        }
    }
}

/// Judges an ended child. `killed`: we sent a signal to it.
fn classify(code: Option<i32>, killed: bool, errors: &str) -> Exit {
    if errors.contains("No conversation found") {
        return Exit::UnknownSession;
    }
    if errors.contains("is already in use") {
        return Exit::InUse;
    }
    match code {
        Some(0) => Exit::Finished,
        _ if killed => Exit::Killed,
        code => Exit::Crashed {
            code,
            words: last_words(errors),
        },
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
                Some(1),
                false,
                "No conversation found with session ID: 00\n",
                Exit::UnknownSession,
            ),
            (
                Some(1),
                false,
                "Error: Session ID f9 is already in use.\n",
                Exit::InUse,
            ),
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
            assert_eq!(classify(code, killed, errors), expected);
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
