//! Chat messages. `/lock` locks; a text reply to a pending card answers it, but
//! never with a yes; a reply to another card is for its session; everything else
//! is for the owner's sessions: an answer to the one question that waits, a
//! command, or words for a session. Nobody else has any effect.

mod addressed;
pub(crate) mod claim;
pub(crate) mod commands;
mod menus;
mod waiting;

use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::OnceCell;
use tracing::{debug, warn};

use crate::approvals::choice::Choice;
use crate::approvals::outcome::Refusal;
use crate::approvals::request::Operator;
use crate::cards::whole::WentOut;
use crate::clock::Millis;
use crate::daemon::asking::codex::{self, CodexLinks};
use crate::daemon::cards::courier::Cards;
use crate::daemon::cards::locking;
use crate::daemon::deciding::answers;
use crate::daemon::deciding::decision::{self, Decider};
use crate::daemon::known::people::{self, People};
use crate::daemon::known::{inbox, journal};
use crate::daemon::talking::drafts::{self, Draft, Drafts, Picked, once};
use crate::daemon::talking::sessions::{Sessions, files};
use crate::daemon::terminals::mailboxes::Mailboxes;
use crate::feishu::clock::TheirClock;
use crate::feishu::event::{Message, MessageBody};
use crate::feishu::messages::{AttachmentKind, Content};
pub(crate) use crate::gateway::whose::asks_to_lock;
use crate::ids::RequestId;
use crate::sessions::command::{self, Spoken, Unclear};
use crate::sessions::naming::ToldLists;
use crate::sessions::questions::Reply;
use crate::sessions::route::{ChatPlace, Written};
use crate::sessions::yes::means_yes;
use crate::text::{Text, replace_mark};
use crate::wording::outcome::in_chat;
use crate::wording::{LOCKED, menu, session, task as words, terminal};
use waiting::Meant;

/// How long a hook may take to come back after a restart.
pub(crate) const RETURN_AFTER_RESTART: Duration = Duration::from_secs(30);
/// Longer than any reason that helps a model.
const MAX_REASON: usize = 4_000;
const MAX_NAME: usize = 40;
/// An older message starts nothing: its sender has moved on.
const MAX_AGE: Millis = 5 * 60_000;

/// Who hears what people write, and with what it is carried out.
pub(crate) struct Chat {
    pub(crate) cards: Arc<Cards>,
    pub(crate) people: Arc<People>,
    pub(crate) decider: Arc<Decider>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) codex: Arc<CodexLinks>,
    pub(crate) mailboxes: Arc<Mailboxes>,
    pub(crate) drafts: Drafts,
    pub(crate) files: files::Noted,
    /// The lists of waiting things that were told, by place.
    pub(crate) told: Mutex<ToldLists>,
    /// The bot's own id, once Feishu has told it.
    pub(crate) bot: OnceCell<String>,
    pub(crate) their_clock: TheirClock,
    pub(crate) in_team: bool,
}

/// A message in its place, for whoever sees to it.
pub(crate) struct HeardMessage<'a> {
    chat: &'a Arc<Chat>,
    message: &'a Message,
    written: Written,
    /// It stands for a tap on a card, and not for words.
    by_tap: bool,
}

impl<'a> HeardMessage<'a> {
    /// `None` for one that stands in no chat.
    pub(crate) fn of(chat: &'a Arc<Chat>, message: &'a Message) -> Option<Self> {
        let written = written(message)?;
        Some(Self {
            chat,
            message,
            written,
            by_tap: false,
        })
    }

    pub(crate) async fn say(&self, text: &Text) {
        say(self.chat, self.message, text).await;
    }

    /// Has a tap say which it is to be. Without words, the card has a field for
    /// them.
    async fn offer(
        &self,
        words: Option<&str>,
        title: &Text,
        text: Option<Text>,
        choices: Vec<(String, Picked)>,
    ) {
        let draft = Draft {
            message: self.message.clone(),
            words: words.map(str::to_owned),
            title: title.clone(),
            text,
            choices,
            at: self.chat.cards.now(),
            card: None,
        };
        drafts::ask(&self.chat.drafts, draft).await;
    }
}

/// Sees to one message of a person's.
pub(crate) async fn take(chat: &Arc<Chat>, message: &Message) {
    if asks_to_lock(message) {
        lock_up(chat, message).await;
        return;
    }
    if let Some(parent) = &message.parent {
        if let Some(request) = chat.cards.courier.request_soon(parent).await {
            reply_to_card(chat, message, &request).await;
            return;
        }
        if let Some(thread) = codex::thread_of(&chat.cards.journal.store, parent).await {
            reply_for_codex(chat, message, &thread).await;
            return;
        }
        if let Some(card) = addressed::card(chat, parent).await {
            addressed::reply(chat, message, card).await;
            return;
        }
    }
    if !is_for_the_bot(chat, message).await {
        return;
    }
    let Some(owner) = chat.people.owner(&message.by) else {
        if answer_in_topic(chat, message).await {
            return;
        }
        turned_away(chat, message).await;
        say(chat, message, &in_chat(&Refusal::NotTheOwner.into())).await;
        return;
    };
    if is_late(chat, message).await {
        return;
    }
    listen(chat, message, owner).await;
}

/// Writes down that somebody wrote who is not the owner.
async fn turned_away(chat: &Chat, message: &Message) {
    let (who, event) = (message.by.id(), message.head.event_id.as_ref());
    let why = &Refusal::NotTheOwner;
    journal::turned_away(&chat.cards.journal, why, None, who.as_ref(), event).await;
}

/// Whether it comes too late to be acted on, which is then told.
async fn is_late(chat: &Arc<Chat>, message: &Message) -> bool {
    let age = message
        .sent_ms
        .map_or(0, |sent| chat.their_clock.now() - sent);
    if age > MAX_AGE {
        say(chat, message, &words::too_old(age)).await;
    }
    age > MAX_AGE
}

/// The owner says something.
async fn listen(chat: &Arc<Chat>, message: &Message, owner: Operator) {
    let (Some(id), Some(heard)) = (&message.id, HeardMessage::of(chat, message)) else {
        return;
    };
    let image = |key| (key, "image.png", AttachmentKind::Image);
    let note = |(key, name, kind): (&String, &str, AttachmentKind)| {
        let sent = files::HeldFile {
            message: id.clone(),
            key: key.clone(),
            name: name.to_owned(),
            kind,
        };
        let place = heard.written.place.clone();
        chat.files.note(place, sent, chat.cards.now())
    };
    let noted = match &message.body {
        MessageBody::Text(text) => {
            // Pictures between words go with those words.
            let noted = message.pictures.iter().all(|key| note(image(key)));
            if noted && (message.pictures.is_empty() || !text.trim().is_empty()) {
                return hear(&heard, owner, text).await;
            }
            noted
        }
        MessageBody::Image { key } => note(image(key)),
        MessageBody::File { key, name } => note((key, name, AttachmentKind::File)),
        MessageBody::Other { kind } => {
            debug!(kind, "a message of a kind nod does not read");
            return heard.say(&words::UNREADABLE_KIND).await;
        }
    };
    let told = if noted {
        words::KEPT_FILE
    } else {
        words::TOO_MANY_FILES
    };
    heard.say(&told).await;
}

async fn hear(heard: &HeardMessage<'_>, owner: Operator, text: &str) {
    let HeardMessage { chat, message, .. } = *heard;
    let mention = bot_mention(chat, message).await;
    let text = with_names(text, message, mention);
    match command::parse(&text, mention, &chat.cards.config.sessions.projects) {
        Spoken::Nothing => menus::help(heard).await,
        Spoken::Unclear(Unclear::NoPrompt) => menus::start(heard, &menu::NEW).await,
        Spoken::Unclear(unclear) => heard.say(&session::unclear(&unclear)).await,
        Spoken::Command(command) => commands::obey(heard, command).await,
        Spoken::Text(text) => match waiting::meant(chat, &heard.written, &text) {
            Meant::One(request, text) => answer(chat, message, &request, owner, text).await,
            Meant::Which(list) => heard.say(&list).await,
            Meant::Session => commands::go_on(heard, &text).await,
        },
    }
}

/// A menu's button stands for these words of the owner's.
pub(crate) async fn tapped(chat: &Arc<Chat>, message: &Message) {
    if asks_to_lock(message) {
        return lock_up(chat, message).await;
    }
    let (heard, owner) = (
        HeardMessage::of(chat, message),
        chat.people.owner(&message.by),
    );
    if let (Some(mut heard), Some(owner), MessageBody::Text(text)) = (heard, owner, &message.body) {
        heard.by_tap = true;
        hear(&heard, owner, text).await;
    }
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

async fn reply_to_card(chat: &Arc<Chat>, message: &Message, request: &RequestId) {
    let operator = chat.people.approver(&message.by);
    let Some(operator) =
        operator.or_else(|| people::addressee(&*chat.cards.desk.find(request)?, &message.by))
    else {
        say(chat, message, &in_chat(&Refusal::NotAnApprover.into())).await;
        return;
    };
    let MessageBody::Text(text) = &message.body else {
        return say(chat, message, &words::UNREADABLE_KIND).await;
    };
    let text = without_mentions(text, message);
    if text.is_empty() {
        return say(chat, message, &terminal::NOTHING_SAID).await;
    }
    let asked = chat.cards.desk.find(request);
    let ask = asked.as_ref().and_then(|it| it.question());
    // No command is the reason of a refusal; to a question it can be the answer.
    if command::is_command(&text) && ask.is_none_or(|it| it.ask.is_plan()) {
        return match chat.people.owner(&message.by) {
            Some(_) if is_late(chat, message).await => {}
            Some(owner) => listen(chat, message, owner).await,
            None => say(chat, message, &in_chat(&Refusal::NotTheOwner.into())).await,
        };
    }
    answer(chat, message, request, operator, text).await;
}

/// An approver who is not the owner steers no session, but may answer what
/// waits in its topic, as by a reply to its card elsewhere.
async fn answer_in_topic(chat: &Arc<Chat>, message: &Message) -> bool {
    let (Some(operator), Some(written)) = (chat.people.approver(&message.by), written(message))
    else {
        return false;
    };
    let MessageBody::Text(text) = &message.body else {
        return false;
    };
    // What waits now may not be what they had before them.
    if is_late(chat, message).await {
        return true;
    }
    match waiting::meant(chat, &written, &without_mentions(text, message)) {
        Meant::One(request, text) if !text.is_empty() => {
            answer(chat, message, &request, operator, text).await;
        }
        Meant::Which(list) => say(chat, message, &list).await,
        Meant::One(..) | Meant::Session => return false,
    }
    true
}

/// Takes a text as the answer to a pending request: a question's answer, or
/// the reason of a refusal.
async fn answer(
    chat: &Arc<Chat>,
    message: &Message,
    request: &RequestId,
    operator: Operator,
    text: String,
) {
    let Some(asked) = chat.cards.desk.find(request) else {
        say(chat, message, &in_chat(&Refusal::Handled.into())).await;
        return;
    };
    let posed = asked.question();
    let ask = posed.map(|it| &it.ask);
    let went_out = chat.cards.courier.went_out(request);
    let wants_a_tap = match posed {
        None => Some(terminal::tap_to_allow()),
        Some(posed) if posed.ask.is_plan() => Some(terminal::tap_to_approve_plan()),
        Some(posed) if posed.is_script_confirm() => Some(terminal::tap_to_confirm()),
        Some(_) => None,
    };
    let says_yes = means_yes(&text) || ask.is_some_and(|ask| ask.is_yes(&text));
    if let Some(told) = wants_a_tap.filter(|_| says_yes) {
        let told = if chat.cards.lock.is_closed() {
            chat.cards.lock.text()
        } else if went_out == WentOut::NotWhole {
            in_chat(&Refusal::NotOffered.into())
        } else {
            told
        };
        return say(chat, message, &told).await;
    }
    let action = match ask {
        None => Choice::Deny {
            reason: Some(text),
            interrupt: false,
        },
        Some(ask) => {
            let choice = answers::answer_by(ask, &Reply::Text(text));
            match choice.and_then(|choice| answers::readable(&asked, ask, choice, went_out)) {
                Ok(action) => action,
                Err(why) => return say(chat, message, &in_chat(&why.into())).await,
            }
        }
    };
    // Nobody waits for a toast: a hook that lost the daemon may take its time.
    chat.cards
        .desk
        .wait_attached(request, RETURN_AFTER_RESTART)
        .await;
    let event = message.head.event_id.clone();
    let outcome = decision::by_reply(&chat.decider, request, action, operator, event).await;
    say(chat, message, &in_chat(&outcome)).await;
}

/// A reply to what Codex asked before, or to the end of its turn, goes into
/// the session on its screen.
async fn reply_for_codex(chat: &Arc<Chat>, message: &Message, thread: &str) {
    if chat.people.owner(&message.by).is_none() {
        turned_away(chat, message).await;
        say(chat, message, &in_chat(&Refusal::NotTheOwner.into())).await;
        return;
    }
    if is_late(chat, message).await {
        return;
    }
    let MessageBody::Text(text) = &message.body else {
        return say(chat, message, &words::UNREADABLE_KIND).await;
    };
    let text = without_mentions(text, message);
    if !text.is_empty() {
        words_for_codex(chat, message, thread, &text).await;
    }
}

/// The owner's words, for the session on Codex's screen.
async fn words_for_codex(chat: &Arc<Chat>, message: &Message, thread: &str, text: &str) {
    if let Some(locked) = chat.cards.lock.refusal() {
        return say(chat, message, &in_chat(&locked.into())).await;
    }
    inbox::begin(&chat.cards.journal, message).await;
    let told = match chat.codex.say(thread, text).await {
        Some(Ok(())) => words::TOLD_CODEX,
        Some(Err(why)) => words::codex_refused(&why),
        None => words::CODEX_AWAY,
    };
    say(chat, message, &told).await;
}

/// Whoever may allow may also see to it that nobody does.
async fn lock_up(chat: &Arc<Chat>, message: &Message) {
    let Some(operator) = chat.people.approver(&message.by) else {
        say(chat, message, &in_chat(&Refusal::NotAnApprover.into())).await;
        return;
    };
    locking::set(&chat.cards, true, Some(operator.id.as_str())).await;
    say(chat, message, &LOCKED).await;
}

/// Whether it is polite to answer: they speak to the bot, and may.
pub(crate) async fn may_be_told(chat: &Chat, message: &Message) -> bool {
    chat.people.approver(&message.by).is_some() && is_for_the_bot(chat, message).await
}

/// In private, or in the configured group when the bot is mentioned.
async fn is_for_the_bot(chat: &Chat, message: &Message) -> bool {
    if message.in_private {
        return true;
    }
    let ours = chat.cards.config.chat.is_some() && message.chat == chat.cards.config.chat;
    ours && bot_mention(chat, message).await.is_some()
}

/// The placeholder that stands for the bot in the text.
async fn bot_mention<'a>(chat: &Chat, message: &'a Message) -> Option<&'a str> {
    if message.mentions.is_empty() {
        return None;
    }
    let ask = || async {
        let bot = chat.cards.courier.messages().ok_or(())?.bot().await;
        match bot.map(|bot| bot.open_id) {
            Ok(Some(id)) => Ok(id),
            Ok(None) => Err(()),
            Err(why) => {
                warn!("the bot's own id is unknown, so mentions of it are: {why}");
                Err(())
            }
        }
    };
    let own = chat.bot.get_or_try_init(ask).await.ok()?;
    let mut mentions = message.mentions.iter();
    let found = mentions.find(|mention| mention.who.open.as_ref() == Some(own))?;
    Some(&found.key)
}

/// People by their names where Feishu wrote placeholders; the bot keeps its own.
fn with_names(text: &str, message: &Message, bot: Option<&str>) -> String {
    let others = message.mentions.iter();
    let mut text = text.to_owned();
    for one in others.filter(|one| Some(one.key.as_str()) != bot) {
        let name: String = one.name.chars().filter(|c| !c.is_control()).collect();
        let name: String = name.trim().chars().take(MAX_NAME).collect();
        if !name.is_empty() {
            text = replace_mark(&text, &one.key, &format!("@{name}"));
        }
    }
    text
}

fn without_mentions(text: &str, message: &Message) -> String {
    let text = message.without_mentions(text);
    text.trim().chars().take(MAX_REASON).collect()
}

pub(crate) async fn say(chat: &Chat, to: &Message, text: &Text) {
    let Some(id) = &to.id else { return };
    let text = text.get(chat.cards.config.lang).to_owned();
    let uuid = format!("re-{}", once(to));
    let Some(messages) = chat.cards.courier.messages() else {
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
