//! A reply to a card that waits for nothing: it is for the session that the card
//! speaks of, and for no other. A session in a terminal hears it through its
//! mailbox; where that can't be, the owner may have it go on in the chat.

use std::path::Path;
use std::sync::Arc;

use super::{Chat, HeardMessage, bot_mention, commands, hear, is_late, say, turned_away};
use crate::approvals::outcome::Refusal;
use crate::approvals::record;
use crate::approvals::request::Ending;
use crate::clock::Millis;
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
    /// How the request it asked about ended, and when; `None` where it asked
    /// nothing.
    over: Option<(Ending, Millis)>,
}

impl SessionCard {
    /// What is true of its request by now.
    fn late(&self, chat: &Chat) -> Option<Text> {
        let (ending, at) = self.over.clone()?;
        let ago = (chat.cards.now() - at).max(0);
        Some(in_chat(&Refusal::Over { ending, ago }.into()))
    }
}

/// The card this message is, if nod remembers it.
pub(super) async fn card(chat: &Chat, message: &MessageId) -> Option<SessionCard> {
    let message = message.clone();
    let found = chat.cards.journal.store.run(move |db| {
        if let Some(settled) = db.settled_by_message(&message)? {
            let ending = serde_json::from_str(&settled.ending).ok();
            let ending = ending.as_ref().and_then(record::read_ending);
            let subject = settled.subject;
            let about = subject.session.map(|session| About {
                session,
                project: subject.project,
            });
            // One of a newer nod's was decided in some way.
            let ending = ending.unwrap_or(Ending::Terminal { allowed: None });
            let over = Some((ending, settled.at));
            return Ok(Some(SessionCard { about, over }));
        }
        let about = db.notice(&message)?;
        Ok(about.map(|about| SessionCard {
            about: Some(about),
            over: None,
        }))
    });
    found.await.ok().flatten()
}

pub(super) async fn reply(chat: &Arc<Chat>, message: &Message, card: SessionCard) {
    let late = card.late(chat);
    let Some(owner) = chat.people.owner(&message.by) else {
        match late.filter(|_| chat.people.approver(&message.by).is_some()) {
            Some(late) => say(chat, message, &late).await,
            None => turned_away(chat, message).await,
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
        let handled = || in_chat(&Refusal::Handled.into());
        return heard.say(&late.unwrap_or_else(handled)).await;
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
        Spoken::Text(text) => match (late, number) {
            // The session of a chat goes on in its thread; a late yes is no work.
            (Some(late), number) if number.is_some() || only_agrees(&text) => {
                heard.say(&late).await;
            }
            (_, Some(number)) => commands::tell(&heard, number, &text).await,
            (late, None) => to_terminal(&heard, &about, &text, late).await,
        },
        Spoken::Command(_) | Spoken::Unclear(_) | Spoken::Nothing => {
            hear(&heard, owner, text).await;
        }
    }
}

/// Speaks into the session of a terminal and says what became of it. `late` is
/// what is true of the request the words reply to, which they do not change.
pub(super) async fn to_terminal(
    heard: &HeardMessage<'_>,
    about: &About,
    text: &str,
    late: Option<Text>,
) {
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
        WordsFate::BehindDialog => words::behind_dialog(&place),
        WordsFate::Held => words::held(&place),
        WordsFate::Refused => words::refused(&place),
        WordsFate::NoMailbox => words::no_mailbox(&place),
        WordsFate::Gone => words::gone(&place),
        WordsFate::Unknown => words::unknown(&place),
        WordsFate::TooLong => words::TOO_LONG,
    };
    let told = match late {
        Some(late) => Text::lines(&[late, told]),
        None => told,
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
