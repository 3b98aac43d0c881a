//! How a session begins: by the words of a chat, or taken over from a terminal.

use std::path::PathBuf;
use std::sync::Arc;
use tracing::{debug, info, warn};

use super::voice::{self, Voice};
use super::{SessionOrder, Sessions, files, keep, order, uuid};
use crate::cards::progress::TaskEnd;
use crate::daemon::cards::courier::{self, To};
use crate::daemon::known::journal;
use crate::feishu::messages::SentMessage;
use crate::ids::{MessageId, SessionId};
use crate::sessions::agent::Agent;
use crate::sessions::command::Project;
use crate::sessions::route::ChatPlace;
use crate::sessions::state::Saved;
use crate::store::{Db, KeptSession};
use crate::talk::Mode;
use crate::text::{Text, clean};
use crate::wording::task as words;

const MAX_TITLE: usize = 60;

/// What a session begins with.
pub(crate) struct SessionOpening<'a> {
    /// Where it begins, and the message that asked for it.
    pub(crate) place: ChatPlace,
    pub(crate) message: MessageId,
    pub(crate) agent: Agent,
    /// The conversation that goes on, if it is not a new one.
    pub(crate) conversation: Option<SessionId>,
    /// The home of Codex's that holds it.
    pub(crate) home: Option<PathBuf>,
    pub(crate) words: &'a str,
    pub(crate) files: &'a [files::HeldFile],
}

/// Starts a session: keeps it, shows its card, and gives it its first words.
/// Says what of them is missing.
pub(crate) async fn begin(
    sessions: &Arc<Sessions>,
    project: &Project,
    opening: SessionOpening<'_>,
) -> Result<Option<Text>, Text> {
    if super::is_full(&sessions.lock()) {
        return Err(words::TOO_MANY_SESSIONS);
    }
    let prompt = opening.words;
    let mut kept = new(sessions, project, &opening).await?;
    let files::Attached {
        words: prompt,
        told,
    } = files::attach(sessions, kept.number, opening.files, prompt).await;
    let Ok(sent) = first_card(sessions, &kept).await else {
        forget(sessions, kept.number).await;
        return Err(words::FEISHU_FAILED);
    };
    kept.place.thread = sent.thread.or(kept.place.thread);
    kept.anchor = sent.message_id.clone();
    kept.card = Some(sent.message_id.clone());
    let number = kept.number;
    sessions.add(kept.clone());
    sessions.change(number, |entry| entry.root = sent.root);
    voice::remember(sessions, &kept, &kept.anchor).await;
    keep(sessions, kept).await;
    info!(session = number, project = %project.name, "a session begins");
    if let Err(why) = order(sessions, number, SessionOrder::Text(prompt)) {
        let voice = Voice::start(sessions, number, Some(sent.message_id));
        voice.ended(TaskEnd::NotStarted, None);
        return Err(why);
    }
    Ok(told)
}

/// Keeps a session that has not begun yet, under a number of its own.
async fn new(
    sessions: &Sessions,
    project: &Project,
    opening: &SessionOpening<'_>,
) -> Result<KeptSession, Text> {
    if opening.agent == Agent::Codex && sessions.cards.config.codex_homes.is_empty() {
        return Err(words::CODEX_OFF);
    }
    let begun = opening.conversation.is_some();
    let conversation = match opening.conversation.clone() {
        Some(known) if sessions.of_conversation(&known).is_some() => {
            return Err(words::ALREADY_HERE);
        }
        Some(known) => known,
        None => SessionId::parse(&uuid()).expect("a uuid is an id"),
    };
    let now = sessions.now();
    let mut kept = KeptSession {
        number: 0,
        saved: Saved {
            conversation,
            begun,
            mode: Mode::Default,
            running: false,
            asks: Vec::new(),
        },
        agent: opening.agent,
        home: opening.home.clone(),
        project: project.name.clone(),
        title: clean(opening.words, MAX_TITLE),
        place: opening.place.clone(),
        anchor: opening.message.clone(),
        card: None,
        began_at: now,
        used_at: now,
    };
    let (row, journal) = (kept.clone(), &sessions.cards.journal);
    let add = move |db: &Db| db.add_session(&row);
    let number = journal::run(journal, "a session could not be kept", add).await;
    kept.number = number.ok_or(words::FEISHU_FAILED)?;
    Ok(kept)
}

/// Leaves nothing of a session that could not begin.
async fn forget(sessions: &Sessions, number: i64) {
    files::remove(sessions, number).await;
    let otherwise = "a session that did not begin stays in the list";
    let forget = move |db: &Db| db.forget_session(number);
    journal::run(&sessions.cards.journal, otherwise, forget).await;
}

/// Takes a session of a terminal into the chat; its next words come from there.
/// Its number.
pub(crate) async fn adopt(
    sessions: &Sessions,
    project: &Project,
    opening: SessionOpening<'_>,
) -> Result<i64, Text> {
    let kept = new(sessions, project, &opening).await?;
    let number = kept.number;
    sessions.add(kept);
    info!(session = number, project = %project.name, "a terminal's session is taken over");
    Ok(number)
}

/// In a thread of its own where the chat has threads.
async fn first_card(sessions: &Sessions, kept: &KeptSession) -> Result<SentMessage, ()> {
    let card = voice::running_card(sessions, kept, None);
    let messages = sessions.cards.courier.messages().ok_or(())?;
    let (anchor, chat) = (&kept.anchor, &kept.place.chat);
    let reply = |in_thread| To::Reply {
        anchor,
        chat,
        in_thread,
    };
    let uuid = format!("new-{anchor}");
    match courier::say(&sessions.cards, messages, reply(true), &card, &uuid).await {
        Ok(sent) => return Ok(sent),
        Err(why) => debug!("no thread for a session: {why}"),
    }
    let uuid = format!("bare-{anchor}");
    let sent = courier::say(&sessions.cards, messages, reply(false), &card, &uuid).await;
    sent.map_err(|why| warn!("a session's card could not be sent: {why}"))
}

#[cfg(test)]
mod tests;
