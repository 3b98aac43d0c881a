//! A reply to a card that waits for nothing: it is for the session that the card
//! speaks of, and for no other. A session in a terminal hears it through its
//! mailbox; where that can't be, the owner may have it go on in the chat.

use std::path::Path;
use std::sync::Arc;

use super::{bot_mention, commands, hear, is_late, say, turned_away, written};
use crate::approvals::outcome::Refusal;
use crate::daemon::known::journal;
use crate::daemon::parts::Parts;
use crate::daemon::talking::drafts::{self, Draft, Picked};
use crate::daemon::talking::inbox;
use crate::daemon::terminals::mailboxes::speak::{self, WordsFate};
use crate::feishu::event::{Message, MessageBody};
use crate::ids::MessageId;
use crate::sessions::command::{self, Spoken as Said};
use crate::sessions::route::Written;
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
pub(super) async fn card(parts: &Parts, message: &MessageId) -> Option<SessionCard> {
    let message = message.clone();
    let found = parts.journal.store.run(move |db| {
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

pub(super) async fn reply(parts: &Arc<Parts>, message: &Message, card: SessionCard) {
    let Some(owner) = parts.people.owner(&message.by) else {
        if card.asked && parts.people.approver(&message.by).is_some() {
            say(parts, message, &in_chat(&Refusal::Handled.into())).await;
        } else {
            turned_away(parts, message).await;
        }
        return;
    };
    if is_late(parts, message).await {
        return;
    }
    let Some(written) = written(message) else {
        return;
    };
    let Some(about) = card.about else {
        return say(parts, message, &in_chat(&Refusal::Handled.into())).await;
    };
    let number = parts.sessions.of_conversation(&about.session);
    let MessageBody::Text(text) = &message.body else {
        if number.is_some() {
            return super::listen(parts, message, owner).await;
        }
        return say(parts, message, &words::WORDS_ONLY).await;
    };
    let mention = bot_mention(parts, message).await;
    match command::parse(text, mention, &parts.config.sessions.projects) {
        // The session of a chat goes on in its thread; a late yes is no work.
        Said::Text(text) if card.asked && (number.is_some() || only_agrees(&text)) => {
            say(parts, message, &in_chat(&Refusal::Handled.into())).await;
        }
        Said::Text(text) => match number {
            Some(number) => commands::tell(parts, message, &written, number, &text).await,
            None => to_terminal(parts, message, &written, &about, &text, card.asked).await,
        },
        Said::Command(_) | Said::Unclear(_) | Said::Nothing => {
            hear(parts, message, &written, owner, text).await;
        }
    }
}

/// Speaks into the session of a terminal and says what became of it. `late`: the
/// words reply to a request that has ended, which they do not change.
pub(super) async fn to_terminal(
    parts: &Arc<Parts>,
    message: &Message,
    written: &Written,
    about: &About,
    text: &str,
    late: bool,
) {
    if parts.lock.is_closed() {
        return say(parts, message, &parts.lock.text()).await;
    }
    inbox::begin(parts, message).await;
    let spoken = speak::to(&parts.mailboxes, &about.session, text, parts.now()).await;
    let who = message.by.id().map(|id| id.to_string());
    journal::spoken(&parts.journal, who.as_deref(), about, text, spoken.as_str()).await;
    let project = Path::new(&about.project);
    let place = project.file_name().unwrap_or(project.as_os_str());
    let place = place.to_string_lossy();
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
        lines(&in_chat(&Refusal::Handled.into()), &told)
    } else {
        told
    };
    let offer = matches!(
        spoken,
        WordsFate::NoMailbox | WordsFate::Gone | WordsFate::Unknown
    );
    if !offer {
        return say(parts, message, &told).await;
    }
    let Some(name) = project_named(parts, project) else {
        let there = words::resume_there(&format!("claude --resume {}", about.session));
        return say(parts, message, &lines(&told, &there)).await;
    };
    say(parts, message, &told).await;
    let picked = Picked::Resume(about.session.clone(), name.clone());
    let label = words::RESUME_HERE.get(parts.config.lang);
    let draft = Draft {
        message: message.clone(),
        written: written.clone(),
        words: Some(text.to_owned()),
        title: words::RESUME_TITLE.clone(),
        text: Some(words::RESUME_TEXT.clone()),
        choices: vec![(format!("{label} · {name}"), picked)],
        at: parts.now(),
        card: None,
    };
    drafts::ask(parts, draft).await;
}

fn lines(first: &Text, second: &Text) -> Text {
    Text::made(
        format!("{}\n{}", first.zh, second.zh),
        format!("{}\n{}", first.en, second.en),
    )
}

/// The configured project that is this very directory.
pub(super) fn project_named(parts: &Parts, dir: &Path) -> Option<String> {
    let real = dir.canonicalize().ok()?;
    let mut all = parts.config.sessions.projects.all().iter();
    let found = all.find(|project| project.path.canonicalize().is_ok_and(|path| path == real));
    found.map(|project| project.name.clone())
}
