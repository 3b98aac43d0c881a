//! The words that tell a program why there is no decision. Part of the
//! protocol: a word never changes, and one that is not known is no reason to
//! fail. Pure.

use serde::de::IntoDeserializer as _;
use serde::de::value::Error as ValueError;
use serde::{Deserialize, Serialize};

/// Why the daemon took no request, or why the terminal decides one it took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorWord {
    // The request was not taken.
    InvalidRequest,
    SlowRequest,
    BadRequest,
    BadProject,
    Busy,
    Duplicate,
    Flood,
    Full,
    Gone,
    NoOwner,
    Offline,
    TooMuchInput,
    Unknown,
    Unsupported,
    WrongToken,
    // It was, and the terminal decides.
    AnsweredInTerminal,
    CardUndeliverable,
    DaemonRestarted,
    Dropped,
    HookGone,
    ReplyTooLarge,
    ServerTimeout,
    // Said by the hook to itself.
    DigestMismatch,
    UnknownDecision,
    /// A word of another nod's.
    Other,
}

impl ErrorWord {
    pub fn parse(text: &str) -> Self {
        let known: Result<Self, ValueError> = Self::deserialize(text.into_deserializer());
        known.unwrap_or(Self::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: [(ErrorWord, &str); 24] = [
        (ErrorWord::InvalidRequest, "invalid_request"),
        (ErrorWord::SlowRequest, "slow_request"),
        (ErrorWord::BadRequest, "bad_request"),
        (ErrorWord::BadProject, "bad_project"),
        (ErrorWord::Busy, "busy"),
        (ErrorWord::Duplicate, "duplicate"),
        (ErrorWord::Flood, "flood"),
        (ErrorWord::Full, "full"),
        (ErrorWord::Gone, "gone"),
        (ErrorWord::NoOwner, "no_owner"),
        (ErrorWord::Offline, "offline"),
        (ErrorWord::TooMuchInput, "too_much_input"),
        (ErrorWord::Unknown, "unknown"),
        (ErrorWord::Unsupported, "unsupported"),
        (ErrorWord::WrongToken, "wrong_token"),
        (ErrorWord::AnsweredInTerminal, "answered_in_terminal"),
        (ErrorWord::CardUndeliverable, "card_undeliverable"),
        (ErrorWord::DaemonRestarted, "daemon_restarted"),
        (ErrorWord::Dropped, "dropped"),
        (ErrorWord::HookGone, "hook_gone"),
        (ErrorWord::ReplyTooLarge, "reply_too_large"),
        (ErrorWord::ServerTimeout, "server_timeout"),
        (ErrorWord::DigestMismatch, "digest_mismatch"),
        (ErrorWord::UnknownDecision, "unknown_decision"),
    ];

    #[test]
    fn a_word_comes_back_and_a_strange_one_is_another_nods() {
        for (word, text) in WORDS {
            assert_eq!(serde_json::json!(word), text);
            assert_eq!(ErrorWord::parse(text), word);
        }
        for strange in ["", "other", "Full", "newer_word"] {
            assert_eq!(ErrorWord::parse(strange), ErrorWord::Other);
        }
    }
}
