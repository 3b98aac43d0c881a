//! Chat messages. `/lock` locks; a text reply to a pending card answers it, but
//! never with a yes; a reply to another card is for its session; everything else
//! is for the owner's sessions: an answer to the one question that waits, a
//! command, or words for a session. Nobody else has any effect.

mod addressed;
pub(crate) mod claim;
mod commands;
mod menus;
mod waiting;

use std::sync::Arc;
use tracing::{debug, warn};

use crate::approvals::choice::Choice;
use crate::approvals::outcome::Refusal;
use crate::approvals::request::Operator;
use crate::clock::Millis;
use crate::daemon::RETURN_AFTER_RESTART;
use crate::daemon::asking::codex;
use crate::daemon::cards::locking;
use crate::daemon::deciding::answers;
use crate::daemon::deciding::decision;
use crate::daemon::known::journal;
use crate::daemon::known::people;
use crate::daemon::parts::Parts;
use crate::daemon::talking::inbox;
use crate::daemon::talking::sessions::files;
use crate::feishu::event::{Message, MessageBody};
use crate::feishu::messages::{AttachmentKind, Content};
use crate::ids::{MessageId, RequestId};
use crate::sessions::command::{self, Spoken, Unclear};
use crate::sessions::questions::Reply;
use crate::sessions::route::{ChatPlace, Written};
use crate::sessions::yes::means_yes;
use crate::text::Text;
use crate::wording::outcome::in_chat;
use crate::wording::{LOCKED, menu, session, task as words, terminal};
use waiting::Meant;

/// Longer than any reason that helps a model.
const MAX_REASON: usize = 4_000;
const MAX_NAME: usize = 40;
/// An older message starts nothing: its sender has moved on.
const MAX_AGE: Millis = 5 * 60_000;

/// Sees to one message of a person's.
pub(crate) async fn take(parts: &Arc<Parts>, message: &Message) {
    if asks_to_lock(message) {
        lock_up(parts, message).await;
        return;
    }
    if let Some(parent) = &message.parent {
        if let Some(request) = parts.courier.request_soon(parent).await {
            reply_to_card(parts, message, &request).await;
            return;
        }
        if let Some(thread) = codex::thread_of(&parts.journal.store, parent).await {
            reply_for_codex(parts, message, &thread).await;
            return;
        }
        if let Some(card) = addressed::card(parts, parent).await {
            addressed::reply(parts, message, card).await;
            return;
        }
    }
    if !is_for_the_bot(parts, message).await {
        return;
    }
    let Some(owner) = parts.people.owner(&message.by) else {
        if answer_in_topic(parts, message).await {
            return;
        }
        turned_away(parts, message).await;
        say(parts, message, &in_chat(&Refusal::NotTheOwner.into())).await;
        return;
    };
    if is_late(parts, message).await {
        return;
    }
    listen(parts, message, owner).await;
}

/// Writes down that somebody wrote who is not the owner.
async fn turned_away(parts: &Parts, message: &Message) {
    let who = message.by.id().map(|id| id.to_string());
    let event = message.head.event_id.as_ref();
    let why = &Refusal::NotTheOwner;
    journal::turned_away(&parts.journal, why, None, who.as_deref(), event).await;
}

/// Whether it comes too late to be acted on, which is then told.
async fn is_late(parts: &Arc<Parts>, message: &Message) -> bool {
    let age = message
        .sent_ms
        .map_or(0, |sent| parts.their_clock.now() - sent);
    if age > MAX_AGE {
        say(parts, message, &words::too_old(age)).await;
    }
    age > MAX_AGE
}

/// The owner says something.
async fn listen(parts: &Arc<Parts>, message: &Message, owner: Operator) {
    let (Some(id), Some(written)) = (message.id.clone(), written(message)) else {
        return;
    };
    let (key, name, kind) = match &message.body {
        MessageBody::Text(text) => {
            if !message.pictures.is_empty() && !keep_pictures(parts, message, &id, &written) {
                return say(parts, message, &words::TOO_MANY_FILES).await;
            }
            if text.trim().is_empty() && !message.pictures.is_empty() {
                return say(parts, message, &words::KEPT_FILE).await;
            }
            return hear(parts, message, &written, owner, text).await;
        }
        MessageBody::Image { key } => (key, "image.png", AttachmentKind::Image),
        MessageBody::File { key, name } => (key, name.as_str(), AttachmentKind::File),
        MessageBody::Other { kind } => {
            debug!(kind, "a message of a kind nod does not read");
            return say(parts, message, &words::UNREADABLE_KIND).await;
        }
    };
    let sent = files::HeldFile {
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

/// Pictures between words go with those words.
fn keep_pictures(parts: &Parts, message: &Message, id: &MessageId, written: &Written) -> bool {
    let mut pictures = message.pictures.iter();
    pictures.all(|key| {
        let sent = files::HeldFile {
            message: id.clone(),
            key: key.clone(),
            name: "image.png".to_owned(),
            kind: AttachmentKind::Image,
        };
        parts.files.note(written.place.clone(), sent, parts.now())
    })
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
    let text = with_names(text, message, mention);
    match command::parse(&text, mention, projects) {
        Spoken::Nothing => menus::help(parts, message, written).await,
        Spoken::Unclear(Unclear::NoPrompt) => {
            menus::start(parts, message, written, (&menu::NEW, None)).await;
        }
        Spoken::Unclear(unclear) => say(parts, message, &session::unclear(&unclear)).await,
        Spoken::Command(command) => commands::obey(parts, message, written, command).await,
        Spoken::Text(text) => match waiting::meant(parts, written, &text) {
            Meant::One(request, text) => answer(parts, message, &request, owner, text).await,
            Meant::Which(list) => say(parts, message, &list).await,
            Meant::Session => commands::go_on(parts, message, written, &text).await,
        },
    }
}

/// A menu's button stands for these words of the owner's.
pub(crate) async fn tapped(parts: &Arc<Parts>, message: &Message, written: &Written) {
    if asks_to_lock(message) {
        return lock_up(parts, message).await;
    }
    let (Some(owner), MessageBody::Text(text)) = (parts.people.owner(&message.by), &message.body)
    else {
        return;
    };
    hear(parts, message, written, owner, text).await;
}

/// Words for the terminal of this number.
pub(crate) async fn say_to(
    parts: &Arc<Parts>,
    message: &Message,
    written: &Written,
    number: usize,
    text: &str,
) {
    commands::say_to(parts, message, written, number, text).await;
}

/// What tells a message from every other one: Feishu makes one reply of a key.
pub(crate) fn once(message: &Message) -> String {
    let event = message.head.event_id.as_ref().filter(|_| message.tapped);
    let event = event.map(ToString::to_string);
    let id = message.id.as_ref().map(ToString::to_string);
    event.or(id).unwrap_or_default()
}

fn written(message: &Message) -> Option<Written> {
    Some(Written {
        place: ChatPlace {
            chat: message.chat.clone()?,
            thread: message.thread.clone(),
        },
        parent: message.parent.clone(),
        root: message.root.clone(),
    })
}

async fn reply_to_card(parts: &Arc<Parts>, message: &Message, request: &RequestId) {
    let operator = parts.people.approver(&message.by);
    let Some(operator) =
        operator.or_else(|| people::addressee(&*parts.desk.find(request)?, &message.by))
    else {
        say(parts, message, &in_chat(&Refusal::NotAnApprover.into())).await;
        return;
    };
    let MessageBody::Text(text) = &message.body else {
        return say(parts, message, &words::UNREADABLE_KIND).await;
    };
    let text = without_mentions(text, message);
    if !text.is_empty() {
        answer(parts, message, request, operator, text).await;
    }
}

/// An approver who is not the owner steers no session, but may answer what
/// waits in its topic, as by a reply to its card elsewhere.
async fn answer_in_topic(parts: &Arc<Parts>, message: &Message) -> bool {
    let (Some(operator), Some(written)) = (parts.people.approver(&message.by), written(message))
    else {
        return false;
    };
    let MessageBody::Text(text) = &message.body else {
        return false;
    };
    match waiting::meant(parts, &written, &without_mentions(text, message)) {
        Meant::One(request, text) if !text.is_empty() => {
            answer(parts, message, &request, operator, text).await;
        }
        Meant::Which(list) => say(parts, message, &list).await,
        Meant::One(..) | Meant::Session => return false,
    }
    true
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
        say(parts, message, &in_chat(&Refusal::Handled.into())).await;
        return;
    };
    let ask = asked.question().map(|it| &it.ask);
    let wants_a_tap = match ask {
        None => Some(terminal::tap_to_allow()),
        Some(ask) if ask.is_plan() => Some(terminal::tap_to_approve_plan()),
        Some(_) => None,
    };
    if let Some(told) = wants_a_tap.filter(|_| means_yes(&text)) {
        let whole = parts.courier.sent_whole(request) != Some(false);
        let told = if parts.lock.is_closed() {
            parts.lock.text()
        } else if whole {
            told
        } else {
            in_chat(&Refusal::NotOffered.into())
        };
        return say(parts, message, &told).await;
    }
    let action = match ask {
        None => Choice::Deny {
            reason: Some(text),
            interrupt: false,
        },
        Some(ask) => match answers::answer_by(ask, &Reply::Text(text)).and_then(|choice| {
            answers::readable(&asked, ask, choice, parts.courier.sent_whole(request))
        }) {
            Ok(action) => action,
            Err(why) => return say(parts, message, &in_chat(&why.into())).await,
        },
    };
    // Nobody waits for a toast: a hook that lost the daemon may take its time.
    parts
        .desk
        .wait_attached(request, RETURN_AFTER_RESTART)
        .await;
    let event = message.head.event_id.clone();
    let outcome = decision::by_reply(parts, request, action, operator, event).await;
    say(parts, message, &in_chat(&outcome)).await;
}

/// A reply to what Codex asked before, or to the end of its turn, goes into
/// the session on its screen.
async fn reply_for_codex(parts: &Arc<Parts>, message: &Message, thread: &str) {
    if parts.people.owner(&message.by).is_none() {
        turned_away(parts, message).await;
        say(parts, message, &in_chat(&Refusal::NotTheOwner.into())).await;
        return;
    }
    if is_late(parts, message).await {
        return;
    }
    let MessageBody::Text(text) = &message.body else {
        return say(parts, message, &words::UNREADABLE_KIND).await;
    };
    let text = without_mentions(text, message);
    if !text.is_empty() {
        words_for_codex(parts, message, thread, &text).await;
    }
}

/// The owner's words, for the session on Codex's screen.
async fn words_for_codex(parts: &Arc<Parts>, message: &Message, thread: &str, text: &str) {
    if let Some(locked) = parts.lock.refusal() {
        return say(parts, message, &in_chat(&locked.into())).await;
    }
    inbox::begin(parts, message).await;
    let told = match parts.codex.say(thread, text).await {
        Some(Ok(())) => words::TOLD_CODEX,
        Some(Err(why)) => words::codex_refused(&why),
        None => words::CODEX_AWAY,
    };
    say(parts, message, &told).await;
}

/// `/lock`, alone or as a reply; never taken for a reason.
pub(crate) fn asks_to_lock(message: &Message) -> bool {
    matches!(&message.body, MessageBody::Text(text) if command::is_lock(&without_mentions(text, message)))
}

/// Whoever may allow may also see to it that nobody does.
async fn lock_up(parts: &Arc<Parts>, message: &Message) {
    let Some(operator) = parts.people.approver(&message.by) else {
        say(parts, message, &in_chat(&Refusal::NotAnApprover.into())).await;
        return;
    };
    locking::set(&parts.cards, true, Some(operator.id.as_str())).await;
    say(parts, message, &LOCKED).await;
}

/// Whether it is polite to answer: they speak to the bot, and may.
pub(crate) async fn may_be_told(parts: &Parts, message: &Message) -> bool {
    parts.people.approver(&message.by).is_some() && is_for_the_bot(parts, message).await
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

/// People by their names where Feishu wrote placeholders; the bot keeps its own.
fn with_names(text: &str, message: &Message, bot: Option<&str>) -> String {
    let mut others: Vec<_> = message.mentions.iter().collect();
    others.retain(|one| Some(one.key.as_str()) != bot && !one.key.is_empty());
    // `@_user_1` must not eat the start of `@_user_12`.
    others.sort_by_key(|one| std::cmp::Reverse(one.key.len()));
    let mut text = text.to_owned();
    for one in others {
        let name: String = one.name.chars().filter(|c| !c.is_control()).collect();
        let name: String = name.trim().chars().take(MAX_NAME).collect();
        if !name.is_empty() {
            text = text.replace(&one.key, &format!("@{name}"));
        }
    }
    text
}

fn without_mentions(text: &str, message: &Message) -> String {
    let mut text = text.to_owned();
    for mention in &message.mentions {
        text = text.replace(&mention.key, "");
    }
    text.trim().chars().take(MAX_REASON).collect()
}

pub(crate) async fn say(parts: &Parts, to: &Message, text: &Text) {
    let Some(id) = &to.id else { return };
    let text = text.get(parts.config.lang).to_owned();
    let uuid = format!("re-{}", once(to));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feishu::event::{self, Push};

    #[test]
    fn people_are_named_where_feishu_writes_a_placeholder() {
        let mention = |n: u8, name: &str| serde_json::json!({"key": format!("@_user_{n}"), "id": {"open_id": format!("ou_{n}")}, "name": name});
        let push = serde_json::json!({
            "schema": "2.0",
            "header": {"event_type": "im.message.receive_v1", "event_id": "e"},
            "event": {
                "sender": {"sender_id": {"open_id": "ou_1"}, "sender_type": "user"},
                "message": {
                    "message_id": "om_1", "chat_id": "oc_1", "chat_type": "group",
                    "message_type": "text",
                    "content": r#"{"text":"@_user_1 ask @_user_12 and @_user_2"}"#,
                    "mentions": [mention(1, "nod"), mention(2, "Li\nLei"), mention(12, "")],
                },
            },
        });
        let Push::Message(message) = event::parse(push.to_string().as_bytes()) else {
            panic!("a message");
        };
        let MessageBody::Text(text) = &message.body else {
            panic!("text");
        };
        let named = with_names(text, &message, Some("@_user_1"));
        assert_eq!(named, "@_user_1 ask @_user_12 and @LiLei");
    }
}
