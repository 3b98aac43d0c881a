//! Names of things, parsed once at the edge and carried as types afterwards.
//! An id never contains control characters, so it can stand in a log or a path.
//! Its text is shared by all who hold it: one waiting hook is named in many books.

use std::fmt;
use std::sync::Arc;

/// Why a text is not an id: which kind was expected and what was wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a {kind}: {problem}")]
pub struct BadId {
    pub kind: &'static str,
    pub problem: &'static str,
}

fn check(kind: &'static str, text: &str, max: usize) -> Result<(), BadId> {
    let problem = if text.is_empty() {
        "it is empty"
    } else if text.len() > max {
        "it is too long"
    } else if !text.bytes().all(|b| b.is_ascii_graphic()) {
        "it holds a blank, or a character that is not printable ASCII"
    } else {
        return Ok(());
    };
    Err(BadId { kind, problem })
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $max:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn parse(text: &str) -> Result<Self, BadId> {
                check($kind, text, $max)?;
                Ok(Self(text.into()))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// One permission request or question; unguessable, made by the hook.
    RequestId, "request id", 128
);
id!(
    /// A Claude Code session.
    SessionId, "session id", 128
);
id!(
    /// A Feishu chat, `oc_…`.
    ChatId, "chat id", 128
);
id!(
    /// A Feishu message, `om_…`.
    MessageId, "message id", 128
);
id!(
    /// One push of Feishu's; the same for every re-push of it.
    EventId, "event id", 128
);
id!(
    /// A machine that runs a daemon; stable over restarts.
    MachineId, "machine id", 64
);

/// What a card is known by: its message, or, before Feishu has named that, the
/// request whose card is on its way.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CardKey {
    Message(MessageId),
    Sending(RequestId),
}

/// A Feishu user, told apart by prefix: `ou_` is an open id, `on_` a union id,
/// anything else a user id of the tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UserId {
    Open(Arc<str>),
    Union(Arc<str>),
    Tenant(Arc<str>),
}

impl UserId {
    pub fn parse(text: &str) -> Result<Self, BadId> {
        check("user id", text, 128)?;
        Ok(if text.starts_with("ou_") {
            Self::Open(text.into())
        } else if text.starts_with("on_") {
            Self::Union(text.into())
        } else {
            Self::Tenant(text.into())
        })
    }

    pub fn as_str(&self) -> &str {
        match self {
            Self::Open(id) | Self::Union(id) | Self::Tenant(id) => id,
        }
    }
}

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_ids_are_told_apart_by_prefix() {
        assert_eq!(UserId::parse("ou_1"), Ok(UserId::Open("ou_1".into())));
        assert_eq!(UserId::parse("on_1"), Ok(UserId::Union("on_1".into())));
        assert_eq!(UserId::parse("e33gg"), Ok(UserId::Tenant("e33gg".into())));
    }

    #[test]
    fn ids_refuse_what_could_not_stand_in_a_log_line() {
        for bad in ["", "a b", "a\nb", "\u{202e}x", &"x".repeat(129)] {
            assert!(RequestId::parse(bad).is_err(), "{bad:?}");
        }
        assert_eq!(RequestId::parse("a1-B2").unwrap().as_str(), "a1-B2");
    }
}
