//! Cards that ask the owner what is meant: the project of a new session, the
//! session that shall go on in the chat, or which command. Words that wait for
//! such a tap are kept here. Only the owner's tap counts.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tracing::warn;

use crate::cards::choice::{self, ChoiceCard};
use crate::clock::Millis;
use crate::daemon::cards::courier::{self, ASKED_WITHIN, Cards, To};
use crate::feishu::event::Message;
use crate::ids::{MessageId, RequestId, SessionId};
use crate::sessions::agent::Agent;
use crate::text::Text;

const MAX: usize = 64;
const KEPT: Millis = 60 * 60_000;
/// More buttons than a person would look through.
const MAX_CHOICES: usize = 30;

pub(crate) struct Drafts {
    pub(crate) cards: Arc<Cards>,
    all: Mutex<VecDeque<(String, Draft)>>,
    named: Notify,
}

/// What somebody wrote, and what it could be for.
#[derive(Clone)]
pub(crate) struct Draft {
    pub(crate) message: Message,
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
    pub(crate) fn new(cards: Arc<Cards>) -> Self {
        Self {
            cards,
            all: Mutex::default(),
            named: Notify::new(),
        }
    }

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

    pub(super) fn find(&self, key: &str, now: Millis) -> Option<Draft> {
        let all = self.lock();
        let mut all = all.iter();
        let (_, draft) = all.find(|(kept, draft)| kept == key && draft.at > now - KEPT)?;
        Some(draft.clone())
    }

    /// The same once its card has a name, if that comes soon.
    pub(super) async fn named(&self, key: &str, now: Millis) -> Option<Draft> {
        let known = async {
            loop {
                let mut named = std::pin::pin!(self.named.notified());
                named.as_mut().enable();
                match self.find(key, now) {
                    Some(draft) if draft.card.is_none() => named.await,
                    known => return known,
                }
            }
        };
        let known = tokio::time::timeout(ASKED_WITHIN, known).await;
        known.ok().flatten()
    }

    /// False when somebody was faster.
    pub(super) fn remove(&self, key: &str) -> bool {
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
        self.named.notify_waiters();
    }
}

pub(super) fn card_of<'a>(cards: &'a Cards, draft: &'a Draft) -> ChoiceCard<'a> {
    ChoiceCard {
        title: &draft.title,
        text: draft.text.as_ref(),
        machine: &cards.buttons.machine.name,
        wrote: draft.words.as_deref(),
        ask: draft.words.is_none() && draft.choices.iter().any(|(_, it)| it.wants_words()),
    }
}

/// Asks what is meant, as a reply.
pub(crate) async fn ask(drafts: &Drafts, mut draft: Draft) {
    let message = draft.message.clone();
    let (Some(id), Some(chat), Some(messages)) =
        (&message.id, &message.chat, drafts.cards.courier.messages())
    else {
        return;
    };
    draft.choices.truncate(MAX_CHOICES);
    let key = format!("d{:032x}", rand::random::<u128>());
    let choices = draft.choices.iter().enumerate();
    let buttons: Vec<choice::ChoiceButton> = choices
        .map(|(n, (label, picked))| choice::ChoiceButton {
            label: label.clone(),
            value: drafts.cards.buttons.pick(&key, n),
            takes_words: picked.wants_words(),
        })
        .collect();
    let card = choice::open(
        &card_of(&drafts.cards, &draft),
        &buttons,
        drafts.cards.config.lang,
    );
    let uuid = format!("pick-{}", once(&message));
    drafts.put(key.clone(), draft);
    let to = To::Reply {
        anchor: id,
        chat,
        in_thread: message.thread.is_some(),
    };
    match courier::say(&drafts.cards, messages, to, &card, &uuid).await {
        Ok(sent) => drafts.name(&key, sent.message_id),
        Err(why) => warn!("a question about a message could not be sent: {why}"),
    }
}

/// What tells a message from every other one: Feishu makes one reply of a key.
pub(crate) fn once(message: &Message) -> String {
    let event = message.head.event_id.as_ref().filter(|_| message.tapped);
    let event = event.map(ToString::to_string);
    let id = message.id.as_ref().map(ToString::to_string);
    event.or(id).unwrap_or_default()
}

impl Picked {
    fn wants_words(&self) -> bool {
        !matches!(self, Self::Command(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::cards::bench::Bench;
    use crate::feishu::event::{EventHead, MessageBody, Person};
    use crate::ids::ChatId;
    use crate::wording::terminal;

    fn draft(n: usize, at: Millis) -> (String, Draft) {
        let chat = ChatId::parse("oc_1").unwrap();
        let draft = Draft {
            message: Message {
                head: EventHead::default(),
                id: MessageId::parse("om_1").ok(),
                by: Person::default(),
                from_user: true,
                chat: Some(chat),
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
            words: Some("run".to_owned()),
            title: terminal::PROJECT_TITLE.clone(),
            text: None,
            choices: Vec::new(),
            at,
            card: None,
        };
        (format!("d{n}"), draft)
    }

    #[tokio::test]
    async fn a_draft_is_taken_once_and_not_for_ever() {
        let drafts = Drafts::new(Bench::new().await.cards);
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
