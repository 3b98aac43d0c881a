//! A reply to a card that waits for nothing: it is for the session that the card
//! speaks of, and for no other. A session in a terminal hears it through its
//! mailbox; where that can't be, the owner may have it go on in the chat.

use std::path::Path;
use std::sync::Arc;

use super::{Chat, HeardMessage, bot_mention, commands, hear, is_late, say, turned_away};
use crate::approvals::outcome::Refusal;
use crate::daemon::known::{inbox, journal};
use crate::daemon::talking::drafts::Picked;
use crate::daemon::terminals::mailboxes::place_name;
use crate::daemon::terminals::mailboxes::speak::{self, WordsFate};
use crate::feishu::event::{Message, MessageBody};
use crate::ids::MessageId;
use crate::sessions::command::{self, Spoken};
use crate::sessions::yes::only_agrees;
use crate::store::About;
use crate::text::Text;
use crate::wording::outcome::in_chat;
use crate::wording::terminal as words;

/// A card of a session's.
pub(super) struct SessionCard {
    about: Option<About>,
    /// It asked something, which has its answer.
    asked: bool,
}

/// The card this message is, if nod remembers it.
pub(super) async fn card(chat: &Chat, message: &MessageId) -> Option<SessionCard> {
    let message = message.clone();
    let found = chat.cards.journal.store.run(move |db| {
        if let Some(settled) = db.settled_by_message(&message)? {
            let (subject, asked) = (settled.subject, true);
            let about = subject.session.map(|session| About {
                session,
                project: subject.project,
            });
            return Ok(Some(SessionCard { about, asked }));
        }
        let about = db.notice(&message)?;
        Ok(about.map(|about| SessionCard {
            about: Some(about),
            asked: false,
        }))
    });
    found.await.ok().flatten()
}

pub(super) async fn reply(chat: &Arc<Chat>, message: &Message, card: SessionCard) {
    let Some(owner) = chat.people.owner(&message.by) else {
        if card.asked && chat.people.approver(&message.by).is_some() {
            say(chat, message, &in_chat(&Refusal::Handled.into())).await;
        } else {
            turned_away(chat, message).await;
        }
        return;
    };
    if is_late(chat, message).await {
        return;
    }
    let Some(heard) = HeardMessage::of(chat, message) else {
        return;
    };
    let Some(about) = card.about else {
        return heard.say(&in_chat(&Refusal::Handled.into())).await;
    };
    let number = chat.sessions.of_conversation(&about.session);
    let MessageBody::Text(text) = &message.body else {
        if number.is_some() {
            return super::listen(chat, message, owner).await;
        }
        return heard.say(&words::WORDS_ONLY).await;
    };
    let mention = bot_mention(chat, message).await;
    match command::parse(text, mention, &chat.cards.config.sessions.projects) {
        // The session of a chat goes on in its thread; a late yes is no work.
        Spoken::Text(text) if card.asked && (number.is_some() || only_agrees(&text)) => {
            heard.say(&in_chat(&Refusal::Handled.into())).await;
        }
        Spoken::Text(text) => match number {
            Some(number) => commands::tell(&heard, number, &text).await,
            None => to_terminal(&heard, &about, &text, card.asked).await,
        },
        Spoken::Command(_) | Spoken::Unclear(_) | Spoken::Nothing => {
            hear(&heard, owner, text).await;
        }
    }
}

/// Speaks into the session of a terminal and says what became of it. `late`: the
/// words reply to a request that has ended, which they do not change.
pub(super) async fn to_terminal(heard: &HeardMessage<'_>, about: &About, text: &str, late: bool) {
    let cards = &heard.chat.cards;
    if cards.lock.is_closed() {
        return heard.say(&cards.lock.text()).await;
    }
    inbox::begin(&cards.journal, heard.message).await;
    let spoken = speak::to(&heard.chat.mailboxes, &about.session, text, cards.now()).await;
    let who = heard.message.by.id();
    journal::spoken(&cards.journal, who.as_ref(), about, text, spoken.as_str()).await;
    let project = Path::new(&about.project);
    let place = place_name(project);
    let told = match spoken {
        WordsFate::Read => words::read(&place),
        WordsFate::Queued => words::queued(&place),
        WordsFate::Held => words::held(&place),
        WordsFate::Refused => words::refused(&place),
        WordsFate::NoMailbox => words::no_mailbox(&place),
        WordsFate::Gone => words::gone(&place),
        WordsFate::Unknown => words::unknown(&place),
        WordsFate::TooLong => words::TOO_LONG,
    };
    let told = if late {
        Text::lines(&[in_chat(&Refusal::Handled.into()), told])
    } else {
        told
    };
    let offer = matches!(
        spoken,
        WordsFate::NoMailbox | WordsFate::Gone | WordsFate::Unknown
    );
    if !offer {
        return heard.say(&told).await;
    }
    let Some(name) = project_named(heard.chat, project) else {
        let there = words::resume_there(&format!("claude --resume {}", about.session));
        return heard.say(&Text::lines(&[told, there])).await;
    };
    heard.say(&told).await;
    let label = format!("{} · {name}", words::RESUME_HERE.get(cards.config.lang));
    let choices = vec![(label, Picked::Resume(about.session.clone(), name))];
    let explained = Some(words::RESUME_TEXT.clone());
    let title = &words::RESUME_TITLE;
    heard.offer(Some(text), title, explained, choices).await;
}

/// The configured project that is this very directory.
pub(super) fn project_named(chat: &Chat, dir: &Path) -> Option<String> {
    let real = dir.canonicalize().ok()?;
    let mut all = chat.cards.config.sessions.projects.all().iter();
    let found = all.find(|project| project.path.canonicalize().is_ok_and(|path| path == real));
    found.map(|project| project.name.clone())
}

#[cfg(test)]
mod tests;
