//! A tap on a card that asks what is meant: the words that waited for it are
//! carried out. Only the owner's tap counts.

use serde_json::Value;
use std::sync::Arc;

use crate::approvals::outcome::{Deed, Refusal};
use crate::cards::choice::{self, WORDS_FIELD};
use crate::daemon::cards::courier::{self, AFTER_REPLY, Face};
use crate::daemon::deciding::ruling::Ruling;
use crate::daemon::talking::chat::{self, Chat, HeardMessage, commands};
use crate::daemon::talking::drafts::{Draft, Picked, card_of};
use crate::feishu::event::{Click, Message, MessageBody};
use crate::sessions::agent::Agent;
use crate::wording::task as words;

/// As much as a form's field holds.
const MAX_WORDS: usize = 1_000;

/// The owner tapped one of the choices.
pub(crate) async fn picked(chat: &Arc<Chat>, click: &Click, key: &str, number: usize) -> Ruling {
    // In a team the tap itself is no proof of which message the menu is.
    let draft = if chat.in_team {
        chat.drafts.named(key, chat.cards.now()).await
    } else {
        chat.drafts.find(key, chat.cards.now())
    };
    let Some(mut draft) = draft else {
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
        let chat = Arc::clone(chat);
        tokio::spawn(async move { chat::tapped(&chat, &message).await });
        return Deed::CarriedOut.into();
    }
    if let Some(locked) = chat.cards.lock.refusal() {
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
    if !chat.drafts.remove(key) {
        return Refusal::MenuGone.into();
    }
    if draft.message.tapped {
        // Several of these cards may answer one and the same menu.
        draft.message.id.clone_from(&click.message);
    }
    let (card, lang) = (card_of(&chat.cards, &draft), chat.cards.config.lang);
    let face = Face::from(&choice::made(&card, &label, lang));
    if let Some(message) = click.message.clone() {
        courier::queue_edit(&chat.cards, message, face.clone(), AFTER_REPLY).await;
    }
    let deed = match picked {
        Picked::Say(_) => Deed::CarriedOut,
        Picked::Project(..) | Picked::Resume(..) | Picked::Command(_) => Deed::Starting,
    };
    tokio::spawn(carry_out(Arc::clone(chat), draft, picked));
    Ruling::with(deed.into(), Some(face))
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

async fn carry_out(chat: Arc<Chat>, draft: Draft, picked: Picked) {
    let Some(heard) = HeardMessage::of(&chat, &draft.message) else {
        return;
    };
    let said = draft.words.unwrap_or_default();
    let (name, agent, conversation) = match picked {
        Picked::Project(name, agent) => (name, agent, None),
        Picked::Resume(session, name) => (name, Some(Agent::Claude), Some(session)),
        Picked::Say(number) => return commands::say_to(&heard, number, &said).await,
        Picked::Command(_) => return,
    };
    let begun = match chat.cards.config.sessions.projects.find(&name) {
        None => Err(words::PROJECT_UNKNOWN),
        Some(project) => {
            let agent = agent.unwrap_or(project.agent);
            commands::begin_in(&heard, project, agent, conversation, &said).await
        }
    };
    if let Ok(Some(told)) | Err(told) = begun {
        heard.say(&told).await;
    }
}

#[cfg(test)]
mod tests;
