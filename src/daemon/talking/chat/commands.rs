//! The owner's commands and words for sessions. Projects come from the
//! settings; no path and no flag comes from a chat.

use tracing::warn;

use super::{Chat, HeardMessage, addressed, menus, words_for_codex};
use crate::cards::gist;
use crate::daemon::asking::codex::SeenThread;
use crate::daemon::known::{inbox, journal};
use crate::daemon::talking::drafts::{Picked, once};
use crate::daemon::talking::sessions::{
    self, AddressedSession, ListedSession, SessionOrder, files,
};
use crate::daemon::terminals::mailboxes::place_name;
use crate::feishu::messages::Content;
use crate::ids::SessionId;
use crate::sessions::agent::Agent;
use crate::sessions::command::{ChatCommand, Project};
use crate::sessions::route::ChatPlace;
use crate::sessions::state;
use crate::store::About;
use crate::talk::Mode;
use crate::text::{Text, escape};
use crate::wording::{menu, task as words, terminal};

/// More would not be read.
const MAX_LISTED: usize = 20;

pub(super) async fn obey(heard: &HeardMessage<'_>, command: ChatCommand) {
    let told = match command {
        ChatCommand::Help => return menus::help(heard).await,
        ChatCommand::Projects => return menus::start(heard, &menu::PROJECTS).await,
        ChatCommand::Sessions => return menus::sessions(heard).await,
        ChatCommand::Say { number, words } => return say_to(heard, number, &words).await,
        ChatCommand::Status => Some(status(heard)),
        ChatCommand::Mode(None) => return menus::mode(heard, None).await,
        ChatCommand::Mode(Some(mode)) if needs_a_tap(heard, mode) => {
            return menus::mode(heard, Some(mode)).await;
        }
        ChatCommand::Mode(Some(mode)) => steer(heard, state::SessionCommand::Mode(mode)),
        ChatCommand::Stop => steer(heard, state::SessionCommand::Stop),
        ChatCommand::Resume(number) => resume(heard, number).await,
        ChatCommand::TakeOver(number) => take_over(heard, number).await,
        ChatCommand::New {
            project,
            agent,
            prompt,
        } => begin(heard, project.as_deref(), agent, &prompt).await,
    };
    if let Some(text) = told {
        heard.say(&text).await;
    }
}

/// Words ask, taps decide: an agent may write in its owner's name and can't tap.
fn needs_a_tap(heard: &HeardMessage<'_>, mode: Mode) -> bool {
    let wider = |found: ListedSession| mode.is_wider_than(found.kept.saved.mode);
    !heard.by_tap && (mode == Mode::AcceptEdits || one(heard).is_ok_and(wider))
}

/// Words for the terminal of this number.
pub(crate) async fn say_to(heard: &HeardMessage<'_>, number: usize, text: &str) {
    let HeardMessage { chat, message, .. } = *heard;
    if let Some(seen) = chat.codex.numbered(number) {
        return words_for_codex(chat, message, &seen.thread, text).await;
    }
    let Some(terminal) = chat.mailboxes.numbered(number) else {
        return heard.say(&terminal::NO_SUCH_TERMINAL).await;
    };
    let about = About {
        session: terminal.session,
        project: terminal.project.to_string_lossy().into_owned(),
    };
    addressed::to_terminal(heard, &about, text, None).await;
}

/// Words for this very session.
pub(super) async fn tell(heard: &HeardMessage<'_>, number: i64, text: &str) {
    let done = match heard.chat.sessions.find(number) {
        Some(found) => {
            inbox::begin(&heard.chat.cards.journal, heard.message).await;
            carry_on(heard, &found, text).await
        }
        None => Err(words::NO_SESSION_HERE),
    };
    if let Ok(Some(told)) | Err(told) = done {
        heard.say(&told).await;
    }
}

/// Words for the session of this place.
pub(super) async fn go_on(heard: &HeardMessage<'_>, text: &str) {
    match one(heard) {
        Ok(found) => tell(heard, found.kept.number, text).await,
        Err(_) if heard.chat.cards.desk.pending() > 0 => {
            heard.say(&terminal::ANSWERS_NO_CARD).await;
        }
        Err(why) => heard.say(&why).await,
    }
}

async fn carry_on(
    heard: &HeardMessage<'_>,
    found: &ListedSession,
    text: &str,
) -> Result<Option<Text>, Text> {
    let chat = heard.chat;
    if chat.cards.lock.is_closed() {
        return Err(chat.cards.lock.text());
    }
    let number = found.kept.number;
    let projects = &chat.cards.config.sessions.projects;
    if projects.find(&found.kept.project).is_none() {
        return Err(words::PROJECT_UNKNOWN);
    }
    let sent = chat.files.take(&heard.written.place, chat.cards.now());
    let attached = files::attach(&chat.sessions, number, &sent, text).await;
    sessions::order(&chat.sessions, number, SessionOrder::Text(attached.words))?;
    Ok(attached.told)
}

pub(super) fn one(heard: &HeardMessage<'_>) -> Result<ListedSession, Text> {
    let sessions = &heard.chat.sessions;
    match sessions.here(&heard.written) {
        AddressedSession::One(number) => sessions.find(number).ok_or(words::NO_SESSION_HERE),
        AddressedSession::Several => Err(words::WHICH_SESSION),
        AddressedSession::Nobodys => Err(terminal::NOBODYS),
        AddressedSession::None => Err(words::NO_SESSION_HERE),
    }
}

/// The session answers for itself; only what keeps the order from it is told.
fn steer(heard: &HeardMessage<'_>, order: state::SessionCommand) -> Option<Text> {
    let given = one(heard).and_then(|found| {
        let order = SessionOrder::Command(order);
        sessions::order(&heard.chat.sessions, found.kept.number, order)
    });
    given.err()
}

/// A command that is carried out elsewhere cancels what a session waits for in
/// the very place it was given.
fn cancel_waits(heard: &HeardMessage<'_>) {
    let sessions = &heard.chat.sessions;
    let order = SessionOrder::Command(state::SessionCommand::Elsewhere);
    if let Some(number) = sessions.awake_at(&heard.written.place)
        && let Err(why) = sessions::order(sessions, number, order)
    {
        warn!(session = number, "its wait was not cancelled: {}", why.en);
    }
}

async fn begin(
    heard: &HeardMessage<'_>,
    named: Option<&str>,
    agent: Option<Agent>,
    prompt: &str,
) -> Option<Text> {
    let cards = &heard.chat.cards;
    if cards.lock.is_closed() {
        return Some(cards.lock.text());
    }
    let projects = &cards.config.sessions.projects;
    // The project named, or the only one there is. Never a guess.
    let found = match named {
        Some(name) => projects.find(name),
        None => projects.only(),
    };
    let Some(project) = found else {
        if projects.all().is_empty() {
            return Some(words::NO_PROJECTS);
        }
        ask_project(heard, agent, prompt).await;
        return None;
    };
    inbox::begin(&cards.journal, heard.message).await;
    cancel_waits(heard);
    let agent = agent.unwrap_or(project.agent);
    let begun = begin_in(heard, project, agent, None, prompt).await;
    begun.unwrap_or_else(Some)
}

/// Begins a session in the place of this message, with the files that wait
/// there. Says what of them is missing.
pub(crate) async fn begin_in(
    heard: &HeardMessage<'_>,
    project: &Project,
    agent: Agent,
    conversation: Option<SessionId>,
    words: &str,
) -> Result<Option<Text>, Text> {
    let HeardMessage { chat, message, .. } = *heard;
    let files = chat.files.take(&heard.written.place, chat.cards.now());
    let opening = sessions::SessionOpening {
        place: heard.written.place.clone(),
        message: message.id.clone().ok_or(words::FEISHU_FAILED)?,
        agent,
        conversation,
        home: None,
        words,
        files: &files,
    };
    let told = sessions::begin(&chat.sessions, project, opening).await?;
    let (journal, who) = (&chat.cards.journal, message.by.id());
    journal::began(journal, who.as_ref(), &project.path, words).await;
    Ok(told)
}

async fn ask_project(heard: &HeardMessage<'_>, agent: Option<Agent>, prompt: &str) {
    let all = heard.chat.cards.config.sessions.projects.all().iter();
    let choices = all.map(|project| {
        let name = project.name.clone();
        (name.clone(), Picked::Project(name, agent))
    });
    let (title, choices) = (&terminal::PROJECT_TITLE, choices.collect());
    heard.offer(Some(prompt), title, None, choices).await;
}

/// Takes a session up again in the thread of this message.
async fn resume(heard: &HeardMessage<'_>, number: Option<usize>) -> Option<Text> {
    let sessions = &heard.chat.sessions;
    let found = match number.map(i64::try_from) {
        None => sessions.list().into_iter().next(),
        Some(Ok(number)) => sessions.find(number),
        Some(Err(_)) => None,
    };
    match found {
        Some(found) => move_here(heard, found).await,
        None if sessions.list().is_empty() => Some(words::NO_SESSIONS),
        None => Some(words::NO_SUCH_SESSION),
    }
}

/// A session of Codex's in a terminal goes on in the thread of this message.
async fn take_over(heard: &HeardMessage<'_>, number: usize) -> Option<Text> {
    let chat = heard.chat;
    if chat.cards.lock.is_closed() {
        return Some(chat.cards.lock.text());
    }
    let Some(seen) = chat.codex.numbered(number) else {
        let known = chat.mailboxes.numbered(number).is_some();
        return Some(if known {
            words::NOT_TAKEN_OVER
        } else {
            terminal::NO_SUCH_TERMINAL
        });
    };
    let conversation = SessionId::parse(&seen.thread).ok()?;
    let number = match chat.sessions.of_conversation(&conversation) {
        Some(number) => number,
        None => match adopt(heard, seen, conversation).await {
            Ok(number) => number,
            Err(why) => return Some(why),
        },
    };
    let found = chat.sessions.find(number)?;
    move_here(heard, found).await
}

async fn adopt(
    heard: &HeardMessage<'_>,
    seen: SeenThread,
    conversation: SessionId,
) -> Result<i64, Text> {
    let chat = heard.chat;
    let place = place_name(&seen.project);
    let projects = &chat.cards.config.sessions.projects;
    let name = addressed::project_named(chat, &seen.project);
    let Some(project) = name.and_then(|name| projects.find(&name)) else {
        return Err(words::no_project_there(&place));
    };
    let opening = sessions::SessionOpening {
        place: heard.written.place.clone(),
        message: heard.message.id.clone().ok_or(words::FEISHU_FAILED)?,
        agent: Agent::Codex,
        conversation: Some(conversation),
        home: Some(seen.home),
        words: &place,
        files: &[],
    };
    sessions::adopt(&chat.sessions, project, opening).await
}

/// Moves a session to the thread of this message, where it says so.
async fn move_here(heard: &HeardMessage<'_>, found: ListedSession) -> Option<Text> {
    cancel_waits(heard);
    let (chat, kept) = (heard.chat, found.kept);
    let text = words::resumed(kept.number, &kept.project);
    let content = Content::Text(text.get(chat.cards.config.lang).to_owned());
    let (id, place) = (heard.message.id.as_ref()?, &heard.written.place);
    let messages = chat.cards.courier.messages()?;
    let once = once(heard.message);
    let reply = async |in_thread, rung| {
        let uuid = format!("{rung}-{once}");
        let reply = messages.reply(id, Some(&place.chat), &content, in_thread, &uuid);
        reply.await
    };
    let mut sent = reply(true, "resume").await;
    if sent.is_err() {
        sent = reply(false, "plain").await;
    }
    let sent = match sent {
        Ok(sent) => sent,
        Err(why) => {
            warn!("a session could not be taken up: {why}");
            return Some(words::FEISHU_FAILED);
        }
    };
    let place = ChatPlace {
        chat: place.chat.clone(),
        thread: sent.thread.clone().or_else(|| place.thread.clone()),
    };
    sessions::move_to(&chat.sessions, kept.number, place, sent).await;
    None
}

fn status(heard: &HeardMessage<'_>) -> Text {
    match one(heard) {
        Ok(found) => list(heard.chat, &[found]),
        Err(_) => what_waits(heard.chat),
    }
}

/// Outside of any session's place: what waits for an answer, and the sessions.
fn what_waits(chat: &Chat) -> Text {
    let (cards, now) = (&chat.cards, chat.cards.now());
    let mut lines: Vec<Text> = Vec::new();
    for request in cards.desk.soonest(MAX_LISTED) {
        let runs = cards.desk.running_since(&request.id);
        let project = request.origin.project.file_name().unwrap_or_default();
        let place = escape::short(&project.to_string_lossy(), 40);
        let age = now - runs.unwrap_or(request.asked_at);
        let what = gist::listed_name(&request);
        lines.push(words::waiting_line(&what, &place, runs.is_some(), age));
    }
    let more = cards.desk.pending().saturating_sub(lines.len());
    if more > 0 {
        lines.push(words::more_wait(more));
    }
    if lines.is_empty() {
        lines.push(words::NOTHING_WAITS);
    }
    let sessions = chat.sessions.list();
    if !sessions.is_empty() {
        lines.push(list(chat, &sessions));
    }
    Text::lines(&lines)
}

pub(super) fn list(chat: &Chat, all: &[ListedSession]) -> Text {
    if all.is_empty() {
        return words::NO_SESSIONS;
    }
    let now = chat.cards.now();
    let lines = all.iter().take(MAX_LISTED).map(|one| {
        let kept = &one.kept;
        words::session_line(
            kept.number,
            (&kept.project, kept.agent),
            &kept.title,
            one.status,
            now - kept.used_at,
        )
    });
    Text::lines(&lines.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests;
