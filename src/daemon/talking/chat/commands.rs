//! The owner's commands and words for sessions. Projects come from the
//! settings; no path and no flag comes from a chat.

use std::sync::Arc;
use tracing::warn;

use super::{Chat, addressed, menus, say, words_for_codex};
use crate::daemon::asking::codex::SeenThread;
use crate::daemon::known::{inbox, journal};
use crate::daemon::talking::drafts::{self, Draft, Picked, once};
use crate::daemon::talking::sessions::{
    self, AddressedSession, Birthplace, ListedSession, SessionOrder, files,
};
use crate::feishu::event::Message;
use crate::feishu::messages::Content;
use crate::ids::SessionId;
use crate::sessions::agent::Agent;
use crate::sessions::command::{ChatCommand, Project};
use crate::sessions::route::{ChatPlace, Written};
use crate::sessions::state;
use crate::store::About;
use crate::text::Text;
use crate::wording::{menu, task as words, terminal};

/// More would not be read.
const MAX_LISTED: usize = 20;

pub(super) async fn obey(
    chat: &Arc<Chat>,
    message: &Message,
    written: &Written,
    command: ChatCommand,
) {
    let told = match command {
        ChatCommand::Help => return menus::help(chat, message, written).await,
        ChatCommand::Projects => {
            return menus::start(chat, message, written, (&menu::PROJECTS, None)).await;
        }
        ChatCommand::Sessions => return menus::sessions(chat, message, written).await,
        ChatCommand::Say { number, words } => {
            return say_to(chat, message, written, number, &words).await;
        }
        ChatCommand::Status => Some(status(chat, written)),
        ChatCommand::Mode(None) => return menus::mode(chat, message, written).await,
        ChatCommand::Mode(Some(mode)) => steer(chat, written, state::SessionCommand::Mode(mode)),
        ChatCommand::Stop => steer(chat, written, state::SessionCommand::Stop),
        ChatCommand::Resume(number) => resume(chat, message, written, number).await,
        ChatCommand::TakeOver(number) => take_over(chat, message, written, number).await,
        ChatCommand::New {
            project,
            agent,
            prompt,
        } => {
            let wanted = (project.as_deref(), agent);
            begin(chat, message, written, wanted, &prompt).await
        }
    };
    if let Some(text) = told {
        say(chat, message, &text).await;
    }
}

/// Words for the terminal of this number.
pub(super) async fn say_to(
    chat: &Arc<Chat>,
    message: &Message,
    written: &Written,
    number: usize,
    text: &str,
) {
    if let Some(seen) = chat.codex.numbered(number) {
        return words_for_codex(chat, message, &seen.thread, text).await;
    }
    let Some(terminal) = chat.mailboxes.numbered(number) else {
        return say(chat, message, &terminal::NO_SUCH_TERMINAL).await;
    };
    let about = About {
        session: terminal.session,
        project: terminal.project.to_string_lossy().into_owned(),
    };
    addressed::to_terminal(chat, message, written, &about, text, false).await;
}

/// Words for this very session.
pub(super) async fn tell(
    chat: &Arc<Chat>,
    message: &Message,
    written: &Written,
    number: i64,
    text: &str,
) {
    let done = match chat.sessions.find(number) {
        Some(found) => {
            inbox::begin(&chat.cards.journal, message).await;
            carry_on(chat, written, &found, text).await
        }
        None => Err(words::NO_SESSION_HERE),
    };
    if let Ok(Some(told)) | Err(told) = done {
        say(chat, message, &told).await;
    }
}

/// Words for the session of this place.
pub(super) async fn go_on(chat: &Arc<Chat>, message: &Message, written: &Written, text: &str) {
    match one(chat, written) {
        Ok(found) => tell(chat, message, written, found.kept.number, text).await,
        Err(_) if chat.cards.desk.pending() > 0 => {
            say(chat, message, &terminal::ANSWERS_NO_CARD).await;
        }
        Err(why) => say(chat, message, &why).await,
    }
}

async fn carry_on(
    chat: &Arc<Chat>,
    written: &Written,
    found: &ListedSession,
    text: &str,
) -> Result<Option<Text>, Text> {
    if chat.cards.lock.is_closed() {
        return Err(chat.cards.lock.text());
    }
    let number = found.kept.number;
    let projects = &chat.cards.config.sessions.projects;
    if projects.find(&found.kept.project).is_none() {
        return Err(words::PROJECT_UNKNOWN);
    }
    let sent = chat.files.take(&written.place, chat.cards.now());
    let attached = files::attach(&chat.sessions, number, &sent, text).await;
    sessions::order(&chat.sessions, number, SessionOrder::Text(attached.words))?;
    Ok(attached.told)
}

pub(super) fn one(chat: &Chat, written: &Written) -> Result<ListedSession, Text> {
    match chat.sessions.here(written) {
        AddressedSession::One(number) => chat.sessions.find(number).ok_or(words::NO_SESSION_HERE),
        AddressedSession::Several => Err(words::WHICH_SESSION),
        AddressedSession::Nobodys => Err(terminal::NOBODYS),
        AddressedSession::None => Err(words::NO_SESSION_HERE),
    }
}

/// The session answers for itself; only what keeps the order from it is told.
fn steer(chat: &Arc<Chat>, written: &Written, order: state::SessionCommand) -> Option<Text> {
    let found = match one(chat, written) {
        Ok(found) => found,
        Err(why) => return Some(why),
    };
    sessions::order(
        &chat.sessions,
        found.kept.number,
        SessionOrder::Command(order),
    )
    .err()
}

/// A command that is carried out elsewhere cancels what a session waits for in
/// the very place it was given.
fn cancel_waits(chat: &Arc<Chat>, place: &ChatPlace) {
    if let Some(number) = chat.sessions.awake_at(place)
        && let Err(why) = sessions::order(
            &chat.sessions,
            number,
            SessionOrder::Command(state::SessionCommand::Elsewhere),
        )
    {
        warn!(session = number, "its wait was not cancelled: {}", why.en);
    }
}

async fn begin(
    chat: &Arc<Chat>,
    message: &Message,
    written: &Written,
    (named, agent): (Option<&str>, Option<Agent>),
    prompt: &str,
) -> Option<Text> {
    if chat.cards.lock.is_closed() {
        return Some(chat.cards.lock.text());
    }
    let project = match chosen(chat, named) {
        Chosen::Project(project) => project,
        Chosen::None(why) => return Some(why),
        Chosen::Ask => {
            ask_project(chat, message, written, agent, prompt).await;
            return None;
        }
    };
    inbox::begin(&chat.cards.journal, message).await;
    cancel_waits(chat, &written.place);
    let birthplace = Birthplace {
        chat: written.place.chat.clone(),
        thread: written.place.thread.clone(),
        message: message.id.clone()?,
    };
    let sent = chat.files.take(&written.place, chat.cards.now());
    let opening = sessions::SessionOpening {
        agent: agent.unwrap_or(project.agent),
        conversation: None,
        home: None,
        words: prompt,
        files: &sent,
    };
    let begun = sessions::begin(&chat.sessions, &project, birthplace, opening).await;
    let who = message.by.id().map(|id| id.to_string());
    match begun {
        Ok(told) => {
            journal::began(&chat.cards.journal, who.as_deref(), &project.path, prompt).await;
            told
        }
        Err(why) => Some(why),
    }
}

enum Chosen {
    Project(Project),
    /// Several could be meant.
    Ask,
    None(Text),
}

/// The project named, or the only one there is. Never a guess.
fn chosen(chat: &Chat, named: Option<&str>) -> Chosen {
    let projects = &chat.cards.config.sessions.projects;
    let found = match named {
        Some(name) => projects.find(name),
        None => projects.only(),
    };
    match found {
        Some(project) => Chosen::Project(project.clone()),
        None if projects.all().is_empty() => Chosen::None(words::NO_PROJECTS),
        None => Chosen::Ask,
    }
}

async fn ask_project(
    chat: &Chat,
    message: &Message,
    written: &Written,
    agent: Option<Agent>,
    prompt: &str,
) {
    let all = chat.cards.config.sessions.projects.all().iter();
    let choices = all.map(|project| {
        let name = project.name.clone();
        (name.clone(), Picked::Project(name, agent))
    });
    let draft = Draft {
        message: message.clone(),
        written: written.clone(),
        words: Some(prompt.to_owned()),
        title: terminal::PROJECT_TITLE.clone(),
        text: None,
        choices: choices.collect(),
        at: chat.cards.now(),
        card: None,
    };
    drafts::ask(&chat.drafts, draft).await;
}

/// Takes a session up again in the thread of this message.
async fn resume(
    chat: &Arc<Chat>,
    message: &Message,
    written: &Written,
    number: Option<usize>,
) -> Option<Text> {
    let found = match number.map(i64::try_from) {
        None => chat.sessions.list().into_iter().next(),
        Some(Ok(number)) => chat.sessions.find(number),
        Some(Err(_)) => None,
    };
    let Some(found) = found else {
        let none = chat.sessions.list().is_empty();
        return Some(if none {
            words::NO_SESSIONS
        } else {
            words::NO_SUCH_SESSION
        });
    };
    move_here(chat, message, written, found).await
}

/// A session of Codex's in a terminal goes on in the thread of this message.
async fn take_over(
    chat: &Arc<Chat>,
    message: &Message,
    written: &Written,
    number: usize,
) -> Option<Text> {
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
    let known = chat.sessions.of_conversation(&conversation);
    let number = match known {
        Some(number) => number,
        None => match adopt(chat, message, written, seen, conversation).await {
            Ok(number) => number,
            Err(why) => return Some(why),
        },
    };
    let found = chat.sessions.find(number)?;
    move_here(chat, message, written, found).await
}

async fn adopt(
    chat: &Arc<Chat>,
    message: &Message,
    written: &Written,
    seen: SeenThread,
    conversation: SessionId,
) -> Result<i64, Text> {
    let directory = &*seen.project;
    let place = directory.file_name().unwrap_or(directory.as_os_str());
    let place = place.to_string_lossy();
    let projects = &chat.cards.config.sessions.projects;
    let name = addressed::project_named(chat, directory);
    let Some(project) = name.and_then(|name| projects.find(&name)) else {
        return Err(words::no_project_there(&place));
    };
    let birthplace = Birthplace {
        chat: written.place.chat.clone(),
        thread: written.place.thread.clone(),
        message: message.id.clone().ok_or(words::FEISHU_FAILED)?,
    };
    let opening = sessions::SessionOpening {
        agent: Agent::Codex,
        conversation: Some(conversation),
        home: Some(seen.home),
        words: &place,
        files: &[],
    };
    sessions::adopt(&chat.sessions, project, birthplace, opening).await
}

/// Moves a session to the thread of this message, where it says so.
async fn move_here(
    chat: &Arc<Chat>,
    message: &Message,
    written: &Written,
    found: ListedSession,
) -> Option<Text> {
    cancel_waits(chat, &written.place);
    let kept = found.kept;
    let text = words::resumed(kept.number, &kept.project);
    let content = Content::Text(text.get(chat.cards.config.lang).to_owned());
    let (id, stands) = (message.id.clone()?, Some(&written.place.chat));
    let messages = chat.cards.courier.messages()?;
    let uuid = format!("resume-{}", once(message));
    let sent = match messages.reply(&id, stands, &content, true, &uuid).await {
        Ok(sent) => Ok(sent),
        Err(_) => {
            messages
                .reply(
                    &id,
                    stands,
                    &content,
                    false,
                    &format!("plain-{}", once(message)),
                )
                .await
        }
    };
    let sent = match sent {
        Ok(sent) => sent,
        Err(why) => {
            warn!("a session could not be taken up: {why}");
            return Some(words::FEISHU_FAILED);
        }
    };
    let place = ChatPlace {
        chat: written.place.chat.clone(),
        thread: sent.thread.clone().or_else(|| written.place.thread.clone()),
    };
    sessions::move_to(&chat.sessions, kept.number, place, sent).await;
    None
}

fn status(chat: &Chat, written: &Written) -> Text {
    match one(chat, written) {
        Ok(found) => list(chat, &[found]),
        Err(why) => why,
    }
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
    let lines: Vec<Text> = lines.collect();
    let join = |pick: fn(&Text) -> &str| lines.iter().map(pick).collect::<Vec<_>>().join("\n");
    Text::made(join(|line| &line.zh), join(|line| &line.en))
}

#[cfg(test)]
mod tests;
