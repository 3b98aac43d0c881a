//! What the owner asks for by a command, as cards whose buttons do it.

use std::sync::Arc;

use super::commands::{list, one};
use super::{Chat, say};
use crate::agents::codex::act::Doing;
use crate::claude::status::Activity;
use crate::daemon::talking::drafts::{self, Draft, Picked};
use crate::daemon::terminals::mailboxes;
use crate::feishu::event::Message;
use crate::sessions::route::Written;
use crate::talk::Mode;
use crate::text::{Lang, Text};
use crate::wording::{menu as words, session, task, terminal};

/// More would not be read.
const MAX_LISTED: usize = 12;

/// What a menu offers besides its title.
struct Menu {
    title: Text,
    text: Option<Text>,
    choices: Vec<(String, Picked)>,
}

async fn show(chat: &Chat, message: &Message, written: &Written, menu: Menu) {
    let draft = Draft {
        message: message.clone(),
        written: written.clone(),
        words: None,
        title: menu.title,
        text: menu.text,
        choices: menu.choices,
        at: chat.cards.now(),
        card: None,
    };
    drafts::ask(&chat.drafts, draft).await;
}

fn command(label: &Text, lang: Lang, typed: &str) -> (String, Picked) {
    (
        label.get(lang).to_owned(),
        Picked::Command(typed.to_owned()),
    )
}

pub(super) async fn help(chat: &Chat, message: &Message, written: &Written) {
    let lang = chat.cards.config.lang;
    let choices = vec![
        command(&words::NEW, lang, "/new"),
        command(&words::SESSIONS, lang, "/sessions"),
        command(&words::PROJECTS, lang, "/projects"),
        command(&words::MODE, lang, "/mode"),
        command(&words::STOP, lang, "/stop"),
        command(&words::LOCK, lang, "/lock"),
    ];
    let menu = Menu {
        title: words::HELP_TITLE.clone(),
        text: Some(session::help(chat.in_team)),
        choices,
    };
    show(chat, message, written, menu).await;
}

/// A session starts by a tap on its project, with the words of the field.
pub(super) async fn start(
    chat: &Chat,
    message: &Message,
    written: &Written,
    (title, named): (&Text, Option<&str>),
) {
    let projects = &chat.cards.config.sessions.projects;
    if projects.all().is_empty() {
        return say(chat, message, &task::NO_PROJECTS).await;
    }
    let all = projects.all().iter();
    let all = all.filter(|project| named.is_none_or(|named| project.name == named));
    let lang = chat.cards.config.lang;
    let choices = all.map(|project| {
        let name = project.name.clone();
        let label = words::start_in(&name).get(lang).to_owned();
        (label, Picked::Project(name, None))
    });
    let menu = Menu {
        title: title.clone(),
        text: None,
        choices: choices.collect(),
    };
    show(chat, message, written, menu).await;
}

pub(super) async fn sessions(chat: &Arc<Chat>, message: &Message, written: &Written) {
    let lang = chat.cards.config.lang;
    let (hosted, mut open) = (chat.sessions.list(), mailboxes::open(&chat.mailboxes).await);
    open.truncate(MAX_LISTED);
    let mut threads = chat.codex.open();
    threads.truncate(MAX_LISTED);
    let in_terminals = !open.is_empty() || !threads.is_empty();
    let mut lines = Vec::new();
    if !hosted.is_empty() || !in_terminals {
        lines.push(list(chat, &hosted));
    }
    let mut choices = Vec::new();
    for found in hosted.iter().take(MAX_LISTED) {
        let (number, project) = (found.kept.number, &found.kept.project);
        let label = words::go_on(number, project).get(lang).to_owned();
        choices.push((label, Picked::Command(format!("/resume {number}"))));
    }
    if in_terminals {
        lines.push(terminal::TERMINALS);
    }
    for one in &open {
        let place = one.terminal.place();
        lines.push(terminal::line(one.terminal.number, &place, None, one.state));
        let label = words::say_to(one.terminal.number, &place);
        choices.push((label.get(lang).to_owned(), Picked::Say(one.terminal.number)));
    }
    for seen in &threads {
        let place = seen.project.file_name();
        let place = place.unwrap_or(seen.project.as_os_str()).to_string_lossy();
        let state = match seen.doing {
            Doing::Idle => Activity::Idle,
            Doing::Works => Activity::Busy,
            Doing::Waits => Activity::Waiting,
            Doing::Closed => Activity::Other,
        };
        lines.push(terminal::line(seen.number, &place, Some("Codex"), state));
        let label = words::say_to(seen.number, &place);
        choices.push((label.get(lang).to_owned(), Picked::Say(seen.number)));
    }
    if choices.is_empty() {
        choices.push(command(&words::NEW, lang, "/new"));
    }
    let join = |pick: fn(&Text) -> &str| lines.iter().map(pick).collect::<Vec<_>>().join("\n");
    let menu = Menu {
        title: words::SESSIONS.clone(),
        text: Some(Text::made(join(|line| &line.zh), join(|line| &line.en))),
        choices,
    };
    show(chat, message, written, menu).await;
}

/// The modes of the session of this place, the one that holds marked.
pub(super) async fn mode(chat: &Chat, message: &Message, written: &Written) {
    let found = match one(chat, written) {
        Ok(found) => found,
        Err(why) => return say(chat, message, &why).await,
    };
    let holds = found.kept.saved.mode;
    let lang = chat.cards.config.lang;
    let choices = Mode::ALL.map(|mode| {
        let mark = if mode == holds { "✓ " } else { "" };
        let label = format!("{mark}{}", words::mode(mode).get(lang));
        (label, Picked::Command(format!("/mode {}", mode.as_str())))
    });
    let menu = Menu {
        title: words::MODE.clone(),
        text: Some(session::mode_of(
            found.kept.number,
            &found.kept.project,
            holds,
        )),
        choices: choices.to_vec(),
    };
    show(chat, message, written, menu).await;
}

#[cfg(test)]
mod tests;
