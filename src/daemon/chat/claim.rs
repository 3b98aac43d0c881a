//! Whether a chat message is for this machine, where several share an app.

use super::{bot_mention, is_for_the_bot, is_settled, waiting, written};
use crate::daemon::parts::Parts;
use crate::daemon::sessions::Here;
use crate::feishu::event::{Body, Message};
use crate::sessions::command::{self, Command, Spoken};
use crate::sessions::route::Written;
use crate::sessions::state::Status;

/// How sure a machine is that a message is for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::daemon) enum Claim {
    None,
    /// A session it has could be meant; it does nothing right now.
    Perhaps,
    Surely,
}

impl Claim {
    const ALL: [Self; 3] = [Self::None, Self::Perhaps, Self::Surely];

    pub(in crate::daemon) fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Perhaps => "perhaps",
            Self::Surely => "surely",
        }
    }

    pub(in crate::daemon) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|claim| claim.as_str() == text)
    }
}

/// Whether it hangs on another message, which one machine knows.
pub(in crate::daemon) fn is_anchored(message: &Message) -> bool {
    message.parent.is_some() || message.thread.is_some()
}

pub(in crate::daemon) async fn claim(parts: &Parts, message: &Message) -> Claim {
    if let Some(parent) = &message.parent
        && (parts.courier.request_soon(parent).await.is_some() || is_settled(parts, parent).await)
    {
        return Claim::Surely;
    }
    let Some(written) = written(message) else {
        return Claim::None;
    };
    if !is_for_the_bot(parts, message).await {
        return Claim::None;
    }
    if is_anchored(message) {
        return if parts.sessions.is_about_one(&written) {
            Claim::Surely
        } else {
            Claim::None
        };
    }
    let Body::Text(text) = &message.body else {
        return by_session(parts, &written);
    };
    let mention = bot_mention(parts, message).await;
    match command::parse(text, mention, &parts.config.sessions.projects) {
        Spoken::Text(_) if !waiting(parts, &written).is_empty() => Claim::Surely,
        Spoken::Text(_) | Spoken::Command(Command::Stop | Command::Status | Command::Mode(_)) => {
            by_session(parts, &written)
        }
        Spoken::Command(Command::New { project, .. }) if project.is_some() => Claim::Surely,
        Spoken::Command(_) | Spoken::Unclear(_) | Spoken::Nothing => Claim::None,
    }
}

fn by_session(parts: &Parts, written: &Written) -> Claim {
    match parts.sessions.here(written) {
        Here::Several => Claim::Surely,
        Here::One(number) => match parts.sessions.find(number) {
            Some(found) if found.status != Status::Idle => Claim::Surely,
            _ => Claim::Perhaps,
        },
        Here::None => Claim::None,
    }
}
