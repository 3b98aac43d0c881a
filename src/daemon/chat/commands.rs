//! The owner's commands and words for sessions. Projects come from the
//! settings; no path and no flag comes from a chat.

use std::sync::Arc;
use tracing::warn;

use super::say;
use crate::daemon::parts::Parts;
use crate::daemon::sessions::{self, Birthplace, Here, Listed, Order, files};
use crate::daemon::{inbox, journal};
use crate::feishu::event::Message;
use crate::feishu::messages::Content;
use crate::sessions::command::{Command, Project};
use crate::sessions::route::{Place, Written};
use crate::sessions::state;
use crate::wording::{LOCKED, Text, session, task as words};

/// More would not be read.
const MAX_LISTED: usize = 20;

pub(super) async fn obey(
    parts: &Arc<Parts>,
    message: &Message,
    written: &Written,
    command: Command,
) {
    let told = match command {
        Command::Help => Some(session::help()),
        Command::Projects => Some(projects(parts)),
        Command::Sessions => Some(list(parts, &parts.sessions.list())),
        Command::Status => Some(status(parts, written)),
        Command::Mode(None) => Some(match one(parts, written) {
            Ok(found) => session::notice(&state::Notice::Mode(found.kept.saved.mode)),
            Err(why) => why,
        }),
        Command::Mode(Some(mode)) => steer(parts, written, state::Order::Mode(mode)),
        Command::Stop => steer(parts, written, state::Order::Stop),
        Command::Resume(number) => resume(parts, message, written, number).await,
        Command::New { project, prompt } => {
            begin(parts, message, written, project.as_deref(), &prompt).await
        }
    };
    if let Some(text) = told {
        say(parts, message, &text).await;
    }
}

/// Words for the session of this place.
pub(super) async fn go_on(parts: &Arc<Parts>, message: &Message, written: &Written, text: &str) {
    let done = match one(parts, written) {
        Ok(found) => {
            inbox::begin(parts, message).await;
            carry_on(parts, written, &found, text).await
        }
        Err(why) => Err(why),
    };
    if let Err(why) = done {
        say(parts, message, &why).await;
    }
}

async fn carry_on(
    parts: &Arc<Parts>,
    written: &Written,
    found: &Listed,
    text: &str,
) -> Result<(), Text> {
    if parts.lock.is_closed() {
        return Err(LOCKED.clone());
    }
    let number = found.kept.number;
    let projects = &parts.config.sessions.projects;
    let project = projects
        .find(&found.kept.project)
        .ok_or(words::PROJECT_UNKNOWN)?;
    let sent = parts.files.take(&written.place, parts.now());
    let text = files::attach(parts, project, &files::folder(number), &sent, text).await?;
    sessions::order(parts, number, Order::Text(text))
}

fn one(parts: &Parts, written: &Written) -> Result<Listed, Text> {
    match parts.sessions.here(written) {
        Here::One(number) => parts.sessions.find(number).ok_or(words::NO_SESSION_HERE),
        Here::Several => Err(words::WHICH_SESSION),
        Here::None if parts.sessions.list().is_empty() => Err(session::help()),
        Here::None => Err(words::NO_SESSION_HERE),
    }
}

/// The session answers for itself; only what keeps the order from it is told.
fn steer(parts: &Arc<Parts>, written: &Written, order: state::Order) -> Option<Text> {
    let found = match one(parts, written) {
        Ok(found) => found,
        Err(why) => return Some(why),
    };
    sessions::order(parts, found.kept.number, Order::Command(order)).err()
}

/// A command that is carried out elsewhere cancels what a session waits for in
/// the very place it was given.
fn cancel_waits(parts: &Arc<Parts>, place: &Place) {
    if let Some(number) = parts.sessions.awake_at(place)
        && let Err(why) = sessions::order(parts, number, Order::Command(state::Order::Elsewhere))
    {
        warn!(session = number, "its wait was not cancelled: {}", why.en);
    }
}

async fn begin(
    parts: &Arc<Parts>,
    message: &Message,
    written: &Written,
    named: Option<&str>,
    prompt: &str,
) -> Option<Text> {
    if parts.lock.is_closed() {
        return Some(LOCKED.clone());
    }
    let project = match chosen(parts, named) {
        Ok(project) => project,
        Err(why) => return Some(why),
    };
    inbox::begin(parts, message).await;
    cancel_waits(parts, &written.place);
    let birthplace = Birthplace {
        chat: written.place.chat.clone(),
        thread: written.place.thread.clone(),
        message: message.id.clone()?,
    };
    let sent = parts.files.take(&written.place, parts.now());
    let begun = sessions::begin(parts, &project, birthplace, prompt, &sent).await;
    let who = message.by.id().map(|id| id.to_string());
    match begun {
        Ok(_) => {
            journal::noted(parts, "session_started", who.as_deref()).await;
            None
        }
        Err(why) => Some(why),
    }
}

/// The project named, the only one there is, or the one used last.
fn chosen(parts: &Parts, named: Option<&str>) -> Result<Project, Text> {
    let projects = &parts.config.sessions.projects;
    let last = || projects.find(&parts.sessions.last_project()?);
    let found = match named {
        Some(name) => projects.find(name),
        None => projects.only().or_else(last),
    };
    match found {
        Some(project) => Ok(project.clone()),
        None if projects.all().is_empty() => Err(words::NO_PROJECTS),
        None => Err(words::which_project(&names(parts))),
    }
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
    cancel_waits(parts, &written.place);
    let kept = found.kept;
    let text = words::resumed(kept.number, &kept.project);
    let content = Content::Text(text.get(parts.config.lang).to_owned());
    let (id, chat) = (message.id.clone()?, Some(&written.place.chat));
    let messages = parts.courier.messages()?;
    let uuid = format!("resume-{id}");
    let sent = match messages.reply(&id, chat, &content, true, &uuid).await {
        Ok(sent) => Ok(sent),
        Err(_) => {
            messages
                .reply(&id, chat, &content, false, &format!("plain-{id}"))
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
    let place = Place {
        chat: written.place.chat.clone(),
        thread: sent.thread.or_else(|| written.place.thread.clone()),
    };
    sessions::move_to(parts, kept.number, place, sent.message_id).await;
    None
}

fn status(parts: &Parts, written: &Written) -> Text {
    match one(parts, written) {
        Ok(found) => list(parts, &[found]),
        Err(why) => why,
    }
}

fn list(parts: &Parts, all: &[Listed]) -> Text {
    if all.is_empty() {
        return words::NO_SESSIONS;
    }
    let now = parts.now();
    let lines = all.iter().take(MAX_LISTED).map(|one| {
        let kept = &one.kept;
        words::session_line(
            kept.number,
            &kept.project,
            &kept.title,
            one.status,
            now - kept.used_at,
        )
    });
    let lines: Vec<Text> = lines.collect();
    let join = |pick: fn(&Text) -> &str| lines.iter().map(pick).collect::<Vec<_>>().join("\n");
    Text::made(join(|line| &line.zh), join(|line| &line.en))
}

fn projects(parts: &Parts) -> Text {
    let names = names(parts);
    if names.is_empty() {
        return words::NO_PROJECTS;
    }
    Text::made(names.clone(), names)
}

fn names(parts: &Parts) -> String {
    let all = parts.config.sessions.projects.all().iter();
    all.map(|project| project.name.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}
