//! Whether a chat message is for this machine, where several share an app.

use super::{addressed, bot_mention, is_for_the_bot, waiting, written};
use crate::daemon::parts::Parts;
use crate::daemon::talking::sessions::Here;
use crate::feishu::event::{Message, MessageBody};
pub(crate) use crate::gateway::whose::Claim;
use crate::sessions::command::{self, Command, Spoken};
use crate::sessions::route::Written;
use crate::sessions::state::Status;

/// Whether it hangs on another message, which one machine knows.
pub(crate) fn is_anchored(message: &Message) -> bool {
    message.parent.is_some() || message.thread.is_some()
}

pub(crate) async fn claim(parts: &Parts, message: &Message) -> Claim {
    if let Some(parent) = &message.parent
        && (parts.courier.request_soon(parent).await.is_some()
            || addressed::card(parts, parent).await.is_some())
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
    let MessageBody::Text(text) = &message.body else {
        return by_session(parts, &written);
    };
    let mention = bot_mention(parts, message).await;
    match command::parse(text, mention, &parts.config.sessions.projects) {
        Spoken::Text(_) if waiting::any(parts, &written) => Claim::Surely,
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
        Here::None | Here::Nobodys => Claim::None,
    }
}
