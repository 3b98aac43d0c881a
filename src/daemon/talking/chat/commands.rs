//! The owner's commands and words for sessions. Projects come from the
//! settings; no path and no flag comes from a chat.

use std::sync::Arc;
use tracing::warn;

use super::{addressed, menus, once, say, words_for_codex};
use crate::daemon::asking::codex::SeenThread;
use crate::daemon::known::journal;
use crate::daemon::parts::Parts;
use crate::daemon::talking::drafts::{self, Draft, Picked};
use crate::daemon::talking::inbox;
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
    parts: &Arc<Parts>,
    message: &Message,
    written: &Written,
    command: ChatCommand,
) {
    let told = match command {
        ChatCommand::Help => return menus::help(parts, message, written).await,
        ChatCommand::Projects => {
            return menus::start(parts, message, written, (&menu::PROJECTS, None)).await;
        }
        ChatCommand::Sessions => return menus::sessions(parts, message, written).await,
        ChatCommand::Say { number, words } => {
            return say_to(parts, message, written, number, &words).await;
        }
        ChatCommand::Status => Some(status(parts, written)),
        ChatCommand::Mode(None) => return menus::mode(parts, message, written).await,
        ChatCommand::Mode(Some(mode)) => steer(parts, written, state::SessionCommand::Mode(mode)),
        ChatCommand::Stop => steer(parts, written, state::SessionCommand::Stop),
        ChatCommand::Resume(number) => resume(parts, message, written, number).await,
        ChatCommand::TakeOver(number) => take_over(parts, message, written, number).await,
        ChatCommand::New {
            project,
            agent,
            prompt,
        } => {
            let wanted = (project.as_deref(), agent);
            begin(parts, message, written, wanted, &prompt).await
        }
    };
    if let Some(text) = told {
        say(parts, message, &text).await;
    }
}

/// Words for the terminal of this number.
pub(super) async fn say_to(
    parts: &Arc<Parts>,
    message: &Message,
    written: &Written,
    number: usize,
    text: &str,
) {
    if let Some(seen) = parts.codex.numbered(number) {
        return words_for_codex(parts, message, &seen.thread, text).await;
    }
    let Some(terminal) = parts.mailboxes.numbered(number) else {
        return say(parts, message, &terminal::NO_SUCH_TERMINAL).await;
    };
    let about = About {
        session: terminal.session,
        project: terminal.project.to_string_lossy().into_owned(),
    };
    addressed::to_terminal(parts, message, written, &about, text, false).await;
}

/// Words for this very session.
pub(super) async fn tell(
    parts: &Arc<Parts>,
    message: &Message,
    written: &Written,
    number: i64,
    text: &str,
) {
    let done = match parts.sessions.find(number) {
        Some(found) => {
            inbox::begin(parts, message).await;
            carry_on(parts, written, &found, text).await
        }
        None => Err(words::NO_SESSION_HERE),
    };
    if let Ok(Some(told)) | Err(told) = done {
        say(parts, message, &told).await;
    }
}

/// Words for the session of this place.
pub(super) async fn go_on(parts: &Arc<Parts>, message: &Message, written: &Written, text: &str) {
    match one(parts, written) {
        Ok(found) => tell(parts, message, written, found.kept.number, text).await,
        Err(_) if parts.desk.pending() > 0 => {
            say(parts, message, &terminal::ANSWERS_NO_CARD).await;
        }
        Err(why) => say(parts, message, &why).await,
    }
}

async fn carry_on(
    parts: &Arc<Parts>,
    written: &Written,
    found: &ListedSession,
    text: &str,
) -> Result<Option<Text>, Text> {
    if parts.lock.is_closed() {
        return Err(parts.lock.text());
    }
    let number = found.kept.number;
    let projects = &parts.config.sessions.projects;
    if projects.find(&found.kept.project).is_none() {
        return Err(words::PROJECT_UNKNOWN);
    }
    let sent = parts.files.take(&written.place, parts.now());
    let attached = files::attach(&parts.sessions, number, &sent, text).await;
    sessions::order(&parts.sessions, number, SessionOrder::Text(attached.words))?;
    Ok(attached.told)
}

pub(super) fn one(parts: &Parts, written: &Written) -> Result<ListedSession, Text> {
    match parts.sessions.here(written) {
        AddressedSession::One(number) => parts.sessions.find(number).ok_or(words::NO_SESSION_HERE),
        AddressedSession::Several => Err(words::WHICH_SESSION),
        AddressedSession::Nobodys => Err(terminal::NOBODYS),
        AddressedSession::None => Err(words::NO_SESSION_HERE),
    }
}

/// The session answers for itself; only what keeps the order from it is told.
fn steer(parts: &Arc<Parts>, written: &Written, order: state::SessionCommand) -> Option<Text> {
    let found = match one(parts, written) {
        Ok(found) => found,
        Err(why) => return Some(why),
    };
    sessions::order(
        &parts.sessions,
        found.kept.number,
        SessionOrder::Command(order),
    )
    .err()
}

/// A command that is carried out elsewhere cancels what a session waits for in
/// the very place it was given.
fn cancel_waits(parts: &Arc<Parts>, place: &ChatPlace) {
    if let Some(number) = parts.sessions.awake_at(place)
        && let Err(why) = sessions::order(
            &parts.sessions,
            number,
            SessionOrder::Command(state::SessionCommand::Elsewhere),
        )
    {
        warn!(session = number, "its wait was not cancelled: {}", why.en);
    }
}

async fn begin(
    parts: &Arc<Parts>,
    message: &Message,
    written: &Written,
    (named, agent): (Option<&str>, Option<Agent>),
    prompt: &str,
) -> Option<Text> {
    if parts.lock.is_closed() {
        return Some(parts.lock.text());
    }
    let project = match chosen(parts, named) {
        Chosen::Project(project) => project,
        Chosen::None(why) => return Some(why),
        Chosen::Ask => {
            ask_project(parts, message, written, agent, prompt).await;
            return None;
        }
    };
    inbox::begin(parts, message).await;
    cancel_waits(parts, &written.place);
    let birthplace = Birthplace {
        chat: written.place.chat.clone(),
        thread: written.place.thread.clone(),
        message: message.id.clone()?,
    };
    let sent = parts.files.take(&written.place, parts.now());
    let opening = sessions::SessionOpening {
        agent: agent.unwrap_or(project.agent),
        conversation: None,
        home: None,
        words: prompt,
        files: &sent,
    };
    let begun = sessions::begin(&parts.sessions, &project, birthplace, opening).await;
    let who = message.by.id().map(|id| id.to_string());
    match begun {
        Ok(told) => {
            journal::began(&parts.journal, who.as_deref(), &project.path, prompt).await;
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
fn chosen(parts: &Parts, named: Option<&str>) -> Chosen {
    let projects = &parts.config.sessions.projects;
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
    parts: &Parts,
    message: &Message,
    written: &Written,
    agent: Option<Agent>,
    prompt: &str,
) {
    let all = parts.config.sessions.projects.all().iter();
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
        at: parts.now(),
        card: None,
    };
    drafts::ask(parts, draft).await;
}

/// Takes a session up again in the thread of this message.
async fn resume(
    parts: &Arc<Parts>,
    message: &Message,
    written: &Written,
    number: Option<usize>,
) -> Option<Text> {
    let found = match number.map(i64::try_from) {
        None => parts.sessions.list().into_iter().next(),
        Some(Ok(number)) => parts.sessions.find(number),
        Some(Err(_)) => None,
    };
    let Some(found) = found else {
        let none = parts.sessions.list().is_empty();
        return Some(if none {
            words::NO_SESSIONS
        } else {
            words::NO_SUCH_SESSION
        });
    };
    move_here(parts, message, written, found).await
}

/// A session of Codex's in a terminal goes on in the thread of this message.
async fn take_over(
    parts: &Arc<Parts>,
    message: &Message,
    written: &Written,
    number: usize,
) -> Option<Text> {
    if parts.lock.is_closed() {
        return Some(parts.lock.text());
    }
    let Some(seen) = parts.codex.numbered(number) else {
        let known = parts.mailboxes.numbered(number).is_some();
        return Some(if known {
            words::NOT_TAKEN_OVER
        } else {
            terminal::NO_SUCH_TERMINAL
        });
    };
    let conversation = SessionId::parse(&seen.thread).ok()?;
    let known = parts.sessions.of_conversation(&conversation);
    let number = match known {
        Some(number) => number,
        None => match adopt(parts, message, written, seen, conversation).await {
            Ok(number) => number,
            Err(why) => return Some(why),
        },
    };
    let found = parts.sessions.find(number)?;
    move_here(parts, message, written, found).await
}

async fn adopt(
    parts: &Arc<Parts>,
    message: &Message,
    written: &Written,
    seen: SeenThread,
    conversation: SessionId,
) -> Result<i64, Text> {
    let directory = &*seen.project;
    let place = directory.file_name().unwrap_or(directory.as_os_str());
    let place = place.to_string_lossy();
    let projects = &parts.config.sessions.projects;
    let name = addressed::project_named(parts, directory);
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
    sessions::adopt(&parts.sessions, project, birthplace, opening).await
}

/// Moves a session to the thread of this message, where it says so.
async fn move_here(
    parts: &Arc<Parts>,
    message: &Message,
    written: &Written,
    found: ListedSession,
) -> Option<Text> {
    cancel_waits(parts, &written.place);
    let kept = found.kept;
    let text = words::resumed(kept.number, &kept.project);
    let content = Content::Text(text.get(parts.config.lang).to_owned());
    let (id, chat) = (message.id.clone()?, Some(&written.place.chat));
    let messages = parts.courier.messages()?;
    let uuid = format!("resume-{}", once(message));
    let sent = match messages.reply(&id, chat, &content, true, &uuid).await {
        Ok(sent) => Ok(sent),
        Err(_) => {
            messages
                .reply(
                    &id,
                    chat,
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
    sessions::move_to(&parts.sessions, kept.number, place, sent).await;
    None
}

fn status(parts: &Parts, written: &Written) -> Text {
    match one(parts, written) {
        Ok(found) => list(parts, &[found]),
        Err(why) => why,
    }
}

pub(super) fn list(parts: &Parts, all: &[ListedSession]) -> Text {
    if all.is_empty() {
        return words::NO_SESSIONS;
    }
    let now = parts.now();
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
