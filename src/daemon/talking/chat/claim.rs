//! Whether a chat message is for this machine, where several share an app.

use super::{Chat, addressed, bot_mention, is_for_the_bot, waiting, written};
use crate::daemon::talking::sessions::AddressedSession;
use crate::feishu::event::{Message, MessageBody};
pub(crate) use crate::gateway::whose::MessageClaim;
use crate::sessions::command::{self, ChatCommand, Spoken};
use crate::sessions::route::Written;
use crate::sessions::state::SessionStatus;

/// Whether it hangs on another message, which one machine knows.
pub(crate) fn is_anchored(message: &Message) -> bool {
    message.parent.is_some() || message.thread.is_some()
}

pub(crate) async fn claim(chat: &Chat, message: &Message) -> MessageClaim {
    if let Some(parent) = &message.parent
        && (chat.cards.courier.request_soon(parent).await.is_some()
            || addressed::card(chat, parent).await.is_some())
    {
        return MessageClaim::Surely;
    }
    let Some(written) = written(message) else {
        return MessageClaim::None;
    };
    if !is_for_the_bot(chat, message).await {
        return MessageClaim::None;
    }
    if is_anchored(message) {
        return if chat.sessions.is_about_one(&written) {
            MessageClaim::Surely
        } else {
            MessageClaim::None
        };
    }
    let MessageBody::Text(text) = &message.body else {
        return by_session(chat, &written);
    };
    let mention = bot_mention(chat, message).await;
    match command::parse(text, mention, &chat.cards.config.sessions.projects) {
        Spoken::Text(_) if waiting::any(chat, &written) => MessageClaim::Surely,
        Spoken::Text(_)
        | Spoken::Command(ChatCommand::Stop | ChatCommand::Status | ChatCommand::Mode(_)) => {
            by_session(chat, &written)
        }
        Spoken::Command(ChatCommand::New { project, .. }) if project.is_some() => {
            MessageClaim::Surely
        }
        Spoken::Command(_) | Spoken::Unclear(_) | Spoken::Nothing => MessageClaim::None,
    }
}

fn by_session(chat: &Chat, written: &Written) -> MessageClaim {
    match chat.sessions.here(written) {
        AddressedSession::Several => MessageClaim::Surely,
        AddressedSession::One(number) => match chat.sessions.find(number) {
            Some(found) if found.status != SessionStatus::Idle => MessageClaim::Surely,
            _ => MessageClaim::Perhaps,
        },
        AddressedSession::None | AddressedSession::Nobodys => MessageClaim::None,
    }
}

#[cfg(test)]
mod tests;
