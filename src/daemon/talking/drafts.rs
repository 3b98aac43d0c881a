//! Cards that ask the owner what is meant: the project of a new session, the
//! session that shall go on in the chat, or which command. Words that wait for
//! such a tap are kept here. Only the owner's tap counts.

use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tracing::warn;

use crate::approvals::outcome::{Deed, Refusal};
use crate::cards::choice::{self, ChoiceCard, WORDS_FIELD};
use crate::clock::Millis;
use crate::daemon::cards::courier::{self, AFTER_REPLY, CardText, To};
use crate::daemon::deciding::ruling::Ruling;
use crate::daemon::known::journal;
use crate::daemon::parts::Parts;
use crate::daemon::talking::chat;
use crate::daemon::talking::sessions;
use crate::feishu::event::{Click, Message, MessageBody};
use crate::ids::{MessageId, RequestId, SessionId};
use crate::sessions::agent::Agent;
use crate::sessions::route::Written;
use crate::text::Text;
use crate::wording::task as words;

const MAX: usize = 64;
const KEPT: Millis = 60 * 60_000;
/// More buttons than a person would look through.
const MAX_CHOICES: usize = 30;
/// As much as a form's field holds.
const MAX_WORDS: usize = 1_000;

#[derive(Default)]
pub(crate) struct Drafts {
    all: Mutex<VecDeque<(String, Draft)>>,
}

/// What somebody wrote, and what it could be for.
#[derive(Clone)]
pub(crate) struct Draft {
    pub(crate) message: Message,
    pub(crate) written: Written,
    /// None where the card has a field for them.
    pub(crate) words: Option<String>,
    pub(crate) title: Text,
    pub(crate) text: Option<Text>,
    /// The button's label and what it does.
    pub(crate) choices: Vec<(String, Picked)>,
    pub(crate) at: Millis,
    /// The message that shows the choices, once Feishu named it.
    pub(crate) card: Option<MessageId>,
}

#[derive(Clone)]
pub(crate) enum Picked {
    /// A new session in this project, by this agent or the project's own.
    Project(String, Option<Agent>),
    /// This session goes on in the chat, in this project.
    Resume(SessionId, String),
    /// The words go to the terminal of this number.
    Say(usize),
    /// As if the owner had written this; may be tapped again and again.
    Command(String),
}

impl Drafts {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(String, Draft)>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, key: String, draft: Draft) {
        let mut all = self.lock();
        all.retain(|(_, kept)| kept.at > draft.at - KEPT);
        if all.len() >= MAX {
            all.pop_front();
        }
        all.push_back((key, draft));
    }

    fn find(&self, key: &str, now: Millis) -> Option<Draft> {
        let all = self.lock();
        let mut all = all.iter();
        let (_, draft) = all.find(|(kept, draft)| kept == key && draft.at > now - KEPT)?;
        Some(draft.clone())
    }

    /// False when somebody was faster.
    fn remove(&self, key: &str) -> bool {
        let mut all = self.lock();
        let before = all.len();
        all.retain(|(kept, _)| kept != key);
        all.len() < before
    }

    /// The draft whose card this message is, for clients that drop what a
    /// form's button carries.
    pub(crate) fn shown_by(&self, message: &MessageId) -> Option<RequestId> {
        let all = self.lock();
        let mut all = all.iter();
        let (key, _) = all.find(|(_, draft)| draft.card.as_ref() == Some(message))?;
        RequestId::parse(key).ok()
    }

    fn name(&self, key: &str, card: MessageId) {
        let mut all = self.lock();
        if let Some((_, draft)) = all.iter_mut().find(|(kept, _)| kept == key) {
            draft.card = Some(card);
        }
    }
}

fn card_of<'a>(parts: &'a Parts, draft: &'a Draft) -> ChoiceCard<'a> {
    ChoiceCard {
        title: &draft.title,
        text: draft.text.as_ref(),
        machine: &parts.buttons.machine.name,
        wrote: draft.words.as_deref(),
        ask: draft.words.is_none() && draft.choices.iter().any(|(_, it)| it.wants_words()),
    }
}

/// Asks what is meant, as a reply.
pub(crate) async fn ask(parts: &Parts, mut draft: Draft) {
    let (Some(id), Some(messages)) = (draft.message.id.clone(), parts.courier.messages()) else {
        return;
    };
    draft.choices.truncate(MAX_CHOICES);
    let key = format!("d{:032x}", rand::random::<u128>());
    let choices = draft.choices.iter().enumerate();
    let buttons: Vec<choice::ChoiceButton> = choices
        .map(|(n, (label, picked))| choice::ChoiceButton {
            label: label.clone(),
            value: parts.buttons.pick(&key, n),
            takes_words: picked.wants_words(),
        })
        .collect();
    let card = choice::open(&card_of(parts, &draft), &buttons, parts.config.lang);
    let place = &draft.written.place;
    let (chat, in_thread) = (place.chat.clone(), place.thread.is_some());
    let uuid = format!("pick-{}", chat::once(&draft.message));
    parts.drafts.put(key.clone(), draft);
    let to = To::Reply {
        anchor: &id,
        chat: &chat,
        in_thread,
    };
    match courier::say(parts, messages, to, &card, &uuid).await {
        Ok(sent) => parts.drafts.name(&key, sent.message_id),
        Err(why) => warn!("a question about a message could not be sent: {why}"),
    }
}

/// The owner tapped one of the choices.
pub(crate) async fn picked(parts: &Arc<Parts>, click: &Click, key: &str, number: usize) -> Ruling {
    let Some(mut draft) = parts.drafts.find(key, parts.now()) else {
        return Refusal::MenuGone.into();
    };
    let Some((label, picked)) = draft.choices.get(number).cloned() else {
        return Refusal::Invalid.into();
    };
    if draft.card.is_some() && draft.card != click.message {
        return Refusal::Invalid.into();
    }
    if let Picked::Command(text) = picked {
        let message = typed(&draft.message, click, text);
        let (parts, written) = (Arc::clone(parts), draft.written);
        tokio::spawn(async move { chat::tapped(&parts, &message, &written).await });
        return Deed::CarriedOut.into();
    }
    if let Some(locked) = parts.lock.refusal() {
        return locked.into();
    }
    if draft.words.is_none() {
        let typed = click.form.get(WORDS_FIELD).and_then(Value::as_str);
        let typed = typed.unwrap_or_default().trim();
        if typed.is_empty() {
            return Refusal::SayWhat.into();
        }
        draft.words = Some(typed.chars().take(MAX_WORDS).collect());
    }
    if !parts.drafts.remove(key) {
        return Refusal::MenuGone.into();
    }
    if draft.message.tapped {
        // Several of these cards may answer one and the same menu.
        draft.message.id.clone_from(&click.message);
    }
    let card = choice::made(&card_of(parts, &draft), &label, parts.config.lang);
    let card: CardText = card.to_string().into();
    if let Some(message) = click.message.clone() {
        courier::queue_edit(parts, message, Arc::clone(&card).into(), AFTER_REPLY).await;
    }
    let deed = match picked {
        Picked::Say(_) => Deed::CarriedOut,
        Picked::Project(..) | Picked::Resume(..) | Picked::Command(_) => Deed::Starting,
    };
    tokio::spawn(carry_out(Arc::clone(parts), draft, picked));
    Ruling::with(deed.into(), Some(card.into()))
}

/// The message the owner would have written in place of this tap.
fn typed(to: &Message, click: &Click, text: String) -> Message {
    Message {
        head: click.head.clone(),
        by: click.by.clone(),
        id: click.message.clone(),
        body: MessageBody::Text(text),
        pictures: Vec::new(),
        mentions: Vec::new(),
        tapped: true,
        ..to.clone()
    }
}

async fn carry_out(parts: Arc<Parts>, draft: Draft, picked: Picked) {
    let said = draft.words.unwrap_or_default();
    let (name, agent, conversation) = match picked {
        Picked::Project(name, agent) => (name, agent, None),
        Picked::Resume(session, name) => (name, Some(Agent::Claude), Some(session)),
        Picked::Say(number) => {
            return chat::say_to(&parts, &draft.message, &draft.written, number, &said).await;
        }
        Picked::Command(_) => return,
    };
    let projects = &parts.config.sessions.projects;
    let begun = match projects.find(&name).cloned() {
        None => Err(words::PROJECT_UNKNOWN),
        Some(project) => {
            let place = &draft.written.place;
            let birthplace = sessions::Birthplace {
                chat: place.chat.clone(),
                thread: place.thread.clone(),
                message: match draft.message.id.clone() {
                    Some(id) => id,
                    None => return,
                },
            };
            let files = parts.files.take(place, parts.now());
            let opening = sessions::SessionOpening {
                agent: agent.unwrap_or(project.agent),
                conversation,
                home: None,
                words: &said,
                files: &files,
            };
            let begun = sessions::begin(&parts.sessions, &project, birthplace, opening).await;
            if begun.is_ok() {
                let who = draft.message.by.id().map(|id| id.to_string());
                journal::began(&parts.journal, who.as_deref(), &project.path, &said).await;
            }
            begun
        }
    };
    if let Ok(Some(told)) | Err(told) = begun {
        chat::say(&parts, &draft.message, &told).await;
    }
}

impl Picked {
    fn wants_words(&self) -> bool {
        !matches!(self, Self::Command(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feishu::event::{EventHead, Person};
    use crate::ids::ChatId;
    use crate::sessions::route::ChatPlace;
    use crate::wording::terminal;

    fn draft(n: usize, at: Millis) -> (String, Draft) {
        let chat = ChatId::parse("oc_1").unwrap();
        let draft = Draft {
            message: Message {
                head: EventHead::default(),
                id: MessageId::parse("om_1").ok(),
                by: Person::default(),
                from_user: true,
                chat: Some(chat.clone()),
                in_private: true,
                thread: None,
                root: None,
                parent: None,
                body: MessageBody::Text("run".to_owned()),
                mentions: Vec::new(),
                pictures: Vec::new(),
                sent_ms: None,
                tapped: false,
            },
            written: Written {
                place: ChatPlace { chat, thread: None },
                parent: None,
                root: None,
            },
            words: Some("run".to_owned()),
            title: terminal::PROJECT_TITLE.clone(),
            text: None,
            choices: Vec::new(),
            at,
            card: None,
        };
        (format!("d{n}"), draft)
    }

    #[test]
    fn a_draft_is_taken_once_and_not_for_ever() {
        let drafts = Drafts::default();
        let (key, kept) = draft(1, 0);
        drafts.put(key, kept);
        assert!(drafts.find("d1", KEPT).is_none(), "too old");
        assert!(drafts.find("d2", 1).is_none());
        assert!(drafts.find("d1", 1).is_some());
        assert!(drafts.remove("d1") && !drafts.remove("d1"));
        for n in 0..2 * MAX {
            let (key, kept) = draft(n, 1);
            drafts.put(key, kept);
        }
        assert_eq!(drafts.lock().len(), MAX);
        let card = MessageId::parse("om_card").unwrap();
        drafts.name("d100", card.clone());
        assert_eq!(drafts.shown_by(&card), RequestId::parse("d100").ok());
    }
}
