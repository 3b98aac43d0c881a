//! What the link found worth a log line, in words. Never a frame's content.

use std::fmt;
use std::time::Duration;

use crate::feishu::frame::BadFrame;

/// Something worth a log line.
#[derive(Debug, Clone, PartialEq)]
pub enum Note {
    BadFrame(BadFrame),
    BadChunk(&'static str),
    ChunksExpired(usize),
    TextMessage,
    UnknownType(String),
    Overdue,
    Overloaded,
    Woke(Duration),
    BadPong,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadFrame(why) => write!(f, "dropped a message: {why}"),
            Self::BadChunk(why) => write!(f, "dropped a part of a push: {why}"),
            Self::ChunksExpired(n) => write!(f, "gave up {n} pushes whose parts never all came"),
            Self::TextMessage => f.write_str("ignored a text message: frames are binary"),
            Self::UnknownType(kind) => write!(f, "acknowledged a frame of unknown type `{kind}`"),
            Self::Overdue => f.write_str("a handler took too long; answered in its place"),
            Self::Overloaded => f.write_str("too many pushes wait; answered one unseen"),
            Self::Woke(gap) => write!(f, "the machine slept for about {} s", gap.as_secs()),
            Self::BadPong => f.write_str("ignored settings in a pong that are no JSON object"),
        }
    }
}
