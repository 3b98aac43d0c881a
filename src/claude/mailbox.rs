//! The mailbox of a session in a terminal: where Claude Code takes words of
//! others into it, how they are written there, and what its transcript then
//! says of them. Pure. It carries work and never a decision. What holds in which
//! version is in `docs/claude-code.md`.

use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt;
use std::path::{Path, PathBuf};

/// Longer names and tokens are not Claude Code's.
const MAX_PATH: usize = 1_024;
const MAX_TOKEN: usize = 512;
/// How a transcript begins to say that words wait for the person there.
const HELD: &str = "Held peer message";

/// A session's socket and what opens it. Whoever has the token can speak into
/// the session: it is kept in memory only, and never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Mailbox {
    pub socket: PathBuf,
    token: Box<str>,
}

impl Mailbox {
    pub fn new(socket: &str, token: &str) -> Option<Self> {
        let fits = Path::new(socket).is_absolute()
            && socket.len() <= MAX_PATH
            && (1..=MAX_TOKEN).contains(&token.len());
        fits.then(|| Self {
            socket: PathBuf::from(socket),
            token: token.into(),
        })
    }

    /// The token itself, for the one place that hands it on.
    pub fn expose_token(&self) -> &str {
        &self.token
    }

    /// The bytes that put these words into the session.
    pub fn letter(&self, words: &str) -> Vec<u8> {
        let auth = json!({"type": "auth", "token": &*self.token});
        let user = json!({"type": "user", "message": {"role": "user", "content": words}});
        format!("{auth}\n{user}\n").into_bytes()
    }
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox")
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}

/// What the transcript says of words that were handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// They stand in the session's queue, or are read already.
    Taken,
    /// They wait for the person at the terminal.
    Held,
}

/// What one line of a transcript says of these words.
pub fn sign(line: &[u8], words: &str) -> Option<Sign> {
    #[derive(Deserialize)]
    struct QueueLine {
        #[serde(rename = "type")]
        kind: Option<String>,
        operation: Option<String>,
        subtype: Option<String>,
        content: Option<Value>,
    }
    let line: QueueLine = serde_json::from_slice(line).ok()?;
    let content = line.content.as_ref()?.as_str()?;
    match (line.kind?.as_str(), line.operation.as_deref()) {
        ("queue-operation", Some("enqueue")) if content == words => Some(Sign::Taken),
        ("system", None) if line.subtype.as_deref() == Some("informational") => {
            content.starts_with(HELD).then_some(Sign::Held)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_is_two_lines_and_the_words_cannot_make_a_third() {
        let mailbox = Mailbox::new("/t/1.sock", "tok").unwrap();
        let letter = String::from_utf8(mailbox.letter("go on\n{\"type\":\"auth\"}")).unwrap();
        let lines: Vec<Value> = letter
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines[0], json!({"type": "auth", "token": "tok"}));
        assert_eq!(
            lines[1]["message"],
            json!({"role": "user", "content": "go on\n{\"type\":\"auth\"}"})
        );
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn a_token_is_never_printed() {
        let mailbox = Mailbox::new("/t/1.sock", "canary-token").unwrap();
        assert_eq!(
            format!("{mailbox:?}"),
            "Mailbox { socket: \"/t/1.sock\", .. }"
        );
    }

    #[test]
    fn what_is_no_mailbox_is_none() {
        let long = "x".repeat(MAX_TOKEN + 1);
        for (socket, token) in [("t.sock", "t"), ("", "t"), ("/t.sock", ""), ("/t", &long)] {
            assert_eq!(Mailbox::new(socket, token), None, "{socket}");
        }
    }

    #[test]
    fn a_transcript_tells_what_became_of_the_words() {
        let at = |line: Value| sign(line.to_string().as_bytes(), "go on");
        let queued = json!({"type":"queue-operation","operation":"enqueue","content":"go on"});
        assert_eq!(at(queued), Some(Sign::Taken));
        let held = json!({"type":"system","subtype":"informational",
            "content":"Held peer message — from an unidentified session; preview: «go on»"});
        assert_eq!(at(held), Some(Sign::Held));
        for other in [
            json!({"type":"queue-operation","operation":"enqueue","content":"go"}),
            json!({"type":"queue-operation","operation":"remove","content":"go on"}),
            json!({"type":"user","message":{"content":"Held peer message"}}),
            json!({"type":"system","subtype":"other","content":"Held peer message"}),
            json!("go on"),
        ] {
            assert_eq!(at(other), None);
        }
        assert_eq!(sign(b"{", "go on"), None);
    }
}
