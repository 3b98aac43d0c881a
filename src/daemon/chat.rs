//! Chat messages. `/lock` locks; a text reply to a pending card answers it;
//! everything else is for the owner's sessions: an answer to the one question
//! that waits, a command, or words for a session. Nobody else has any effect.

pub(super) mod claim;
mod commands;

use std::sync::Arc;
use std::time::Duration;
use tracing::{debug, warn};

use super::parts::Parts;
use super::sessions::files;
use super::{COMEBACK, clicks, decision, journal, lock};
use crate::approvals::action::Action;
use crate::approvals::request::{Millis, Operator};
use crate::feishu::event::{Body, Message};
use crate::feishu::messages::{Attachment, Content};
use crate::ids::{MessageId, RequestId};
use crate::sessions::command::{self, Spoken};
use crate::sessions::questions::{self, Reply};
use crate::sessions::route::{self, Place, Route, Written};
use crate::wording::{LOCKED, Text, Toast, question, session, task as words};

/// Longer than any reason that helps a model.
const MAX_REASON: usize = 4_000;
/// An older message starts nothing: its sender has moved on.
const MAX_AGE: Millis = 5 * 60_000;

/// Sees to one message of a person's.
pub(super) async fn take(parts: &Arc<Parts>, message: &Message) {
    if asks_to_lock(message) {
        lock_up(parts, message).await;
        return;
    }
    if let Some(parent) = &message.parent {
        if let Some(request) = parts.courier.request_soon(parent).await {
            reply_to_card(parts, message, &request).await;
            return;
        }
        if is_settled(parts, parent).await {
            if parts.approver(&message.by).is_some() {
                say(parts, message, &Toast::AlreadyHandled.text()).await;
            }
            return;
        }
    }
    if !is_for_the_bot(parts, message).await {
        return;
    }
    let Some(owner) = parts.owner(&message.by) else {
        let who = message.by.id().map(|id| id.to_string());
        let event = message.head.event_id.as_ref();
        journal::refused(parts, "not_the_owner", None, who.as_deref(), event).await;
        say(parts, message, &Toast::NotTheOwner.text()).await;
        return;
    };
    let age = message
        .sent_ms
        .map_or(0, |sent| parts.their_clock.now() - sent);
    if age > MAX_AGE {
        say(parts, message, &words::too_old(age)).await;
        return;
    }
    listen(parts, message, owner).await;
}

/// The owner says something.
async fn listen(parts: &Arc<Parts>, message: &Message, owner: Operator) {
    let (Some(id), Some(written)) = (message.id.clone(), written(message)) else {
        return;
    };
    let (key, name, kind) = match &message.body {
        Body::Text(text) => return hear(parts, message, &written, owner, text).await,
        Body::Image { key } => (key, "image.png", Attachment::Image),
        Body::File { key, name } => (key, name.as_str(), Attachment::File),
        Body::Other { kind } => {
            debug!(kind, "a message of a kind nod does not read");
            return say(parts, message, &words::UNREADABLE_KIND).await;
        }
    };
    let sent = files::Sent {
        message: id,
        key: key.clone(),
        name: name.to_owned(),
        kind,
    };
    let noted = parts.files.note(written.place, sent, parts.now());
    let told = if noted {
        words::KEPT_FILE
    } else {
        words::TOO_MANY_FILES
    };
    say(parts, message, &told).await;
}

async fn hear(
    parts: &Arc<Parts>,
    message: &Message,
    written: &Written,
    owner: Operator,
    text: &str,
) {
    let mention = bot_mention(parts, message).await;
    let projects = &parts.config.sessions.projects;
    match command::parse(text, mention, projects) {
        Spoken::Nothing => say(parts, message, &session::help()).await,
        Spoken::Unclear(unclear) => say(parts, message, &session::unclear(&unclear)).await,
        Spoken::Command(command) => commands::obey(parts, message, written, command).await,
        Spoken::Text(text) => match route::route::<i64>(written, &waiting(parts, written), &[]) {
            Route::Answer(request) => {
                answer(parts, message, &request, owner, text).await;
            }
            Route::WhichQuestion { waiting } => {
                say(parts, message, &question::which_question(waiting)).await;
            }
            Route::Session(_) | Route::Fresh => {
                commands::go_on(parts, message, written, &text).await;
            }
        },
    }
}

fn written(message: &Message) -> Option<Written> {
    Some(Written {
        place: Place {
            chat: message.chat.clone()?,
            thread: message.thread.clone(),
        },
        parent: message.parent.clone(),
        root: message.root.clone(),
    })
}

/// The questions that plain words here could answer. Outside of threads those
/// are the ones of the whole chat.
fn waiting(parts: &Parts, written: &Written) -> Vec<route::Waiting> {
    let here = &written.place;
    let pending = parts.desk.all_pending().into_iter();
    pending
        .filter(|request| questions::of(&request.tool, &request.input).is_some())
        .filter_map(|request| {
            let mut place = parts.courier.place_of(&request.id)?;
            if here.thread.is_none() {
                place.thread = None;
            }
            Some(route::Waiting {
                card: parts.courier.message_of(&request.id),
                ask: request.id.clone(),
                place,
            })
        })
        .collect()
}

async fn reply_to_card(parts: &Arc<Parts>, message: &Message, request: &RequestId) {
    let operator = parts.approver(&message.by);
    let Some(operator) = operator.or_else(|| parts.addressee(request, &message.by)) else {
        say(parts, message, &Toast::NotAnApprover.text()).await;
        return;
    };
    let Body::Text(text) = &message.body else {
        return;
    };
    let text = without_mentions(text, message);
    if !text.is_empty() {
        answer(parts, message, request, operator, text).await;
    }
}

/// Takes a text as the answer to a pending request: a question's answer, or
/// the reason of a refusal.
async fn answer(
    parts: &Arc<Parts>,
    message: &Message,
    request: &RequestId,
    operator: Operator,
    text: String,
) {
    let Some(asked) = parts.desk.find(request) else {
        say(parts, message, &Toast::AlreadyHandled.text()).await;
        return;
    };
    let ask = questions::of(&asked.tool, &asked.input);
    let action = match &ask {
        None => Action::Deny {
            reason: Some(text),
            interrupt: false,
        },
        Some((ask, _)) => match clicks::answer_by(ask, &Reply::Text(text)) {
            Ok(action) => action,
            Err(toast) => {
                say(parts, message, &toast.text()).await;
                return;
            }
        },
    };
    // Nobody waits for a toast: a hook that lost the daemon may take its time.
    parts.desk.wait_attached(request, COMEBACK).await;
    match decision::claim(parts, request, action, operator).await {
        Ok(claim) => {
            decision::settle(parts, claim, message.head.event_id.clone(), Duration::ZERO).await;
            if ask.is_some() && asked.origin.hosted {
                say(parts, message, &session::RECEIVED).await;
            }
        }
        Err(toast) => say(parts, message, &toast.text()).await,
    }
}

/// `/lock`, alone or as a reply; never taken for a reason.
pub(super) fn asks_to_lock(message: &Message) -> bool {
    matches!(&message.body, Body::Text(text) if without_mentions(text, message) == "/lock")
}

/// Whoever may allow may also see to it that nobody does.
async fn lock_up(parts: &Parts, message: &Message) {
    let Some(operator) = parts.approver(&message.by) else {
        say(parts, message, &Toast::NotAnApprover.text()).await;
        return;
    };
    lock::set(parts, true, Some(operator.id.as_str())).await;
    say(parts, message, &LOCKED).await;
}

async fn is_settled(parts: &Parts, card: &MessageId) -> bool {
    let card = card.clone();
    let found = parts
        .store
        .run(move |db| db.settled_by_message(&card))
        .await;
    found.is_ok_and(|row| row.is_some())
}

/// Whether it is polite to answer: they speak to the bot, and may.
pub(super) async fn may_be_told(parts: &Parts, message: &Message) -> bool {
    parts.approver(&message.by).is_some() && is_for_the_bot(parts, message).await
}

/// In private, or in the configured group when the bot is mentioned.
async fn is_for_the_bot(parts: &Parts, message: &Message) -> bool {
    if message.in_private {
        return true;
    }
    let ours = parts.config.chat.is_some() && message.chat == parts.config.chat;
    ours && bot_mention(parts, message).await.is_some()
}

/// The placeholder that stands for the bot in the text.
async fn bot_mention<'a>(parts: &Parts, message: &'a Message) -> Option<&'a str> {
    if message.mentions.is_empty() {
        return None;
    }
    let ask = || async {
        let bot = parts.courier.messages().ok_or(())?.bot().await;
        match bot.map(|bot| bot.open_id) {
            Ok(Some(id)) => Ok(id),
            Ok(None) => Err(()),
            Err(why) => {
                warn!("the bot's own id is unknown, so mentions of it are: {why}");
                Err(())
            }
        }
    };
    let own = parts.bot.get_or_try_init(ask).await.ok()?;
    let mut mentions = message.mentions.iter();
    let found = mentions.find(|mention| mention.who.open.as_ref() == Some(own))?;
    Some(&found.key)
}

fn without_mentions(text: &str, message: &Message) -> String {
    let mut text = text.to_owned();
    for mention in &message.mentions {
        text = text.replace(&mention.key, "");
    }
    text.trim().chars().take(MAX_REASON).collect()
}

pub(super) async fn say(parts: &Parts, to: &Message, text: &Text) {
    let Some(id) = &to.id else { return };
    let text = text.get(parts.config.lang).to_owned();
    let uuid = format!("re-{id}");
    let Some(messages) = parts.courier.messages() else {
        return;
    };
    let sent = messages
        .reply(id, to.chat.as_ref(), &Content::Text(text), false, &uuid)
        .await;
    if let Err(why) = sent {
        debug!("a reply could not be sent: {why}");
    }
}
