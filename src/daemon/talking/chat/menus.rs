//! What the owner asks for by a command, as cards whose buttons do it.

use super::HeardMessage;
use super::commands::{list, one};
use crate::agents::codex::act::Doing;
use crate::claude::status::Activity;
use crate::daemon::talking::drafts::Picked;
use crate::daemon::terminals::mailboxes;
use crate::talk::Mode;
use crate::text::{Lang, Text};
use crate::wording::{menu as words, session, task, terminal};

/// More would not be read.
const MAX_LISTED: usize = 12;

fn command(label: &Text, lang: Lang, typed: &str) -> (String, Picked) {
    (
        label.get(lang).to_owned(),
        Picked::Command(typed.to_owned()),
    )
}

pub(super) async fn help(heard: &HeardMessage<'_>) {
    let lang = heard.chat.cards.config.lang;
    let choices = vec![
        command(&words::NEW, lang, "/new"),
        command(&words::SESSIONS, lang, "/sessions"),
        command(&words::PROJECTS, lang, "/projects"),
        command(&words::MODE, lang, "/mode"),
        command(&words::STOP, lang, "/stop"),
        command(&words::LOCK, lang, "/lock"),
    ];
    let text = Some(session::help(heard.chat.in_team));
    heard.offer(None, &words::HELP_TITLE, text, choices).await;
}

/// A session starts by a tap on its project, with the words of the field.
pub(super) async fn start(heard: &HeardMessage<'_>, title: &Text) {
    let config = &heard.chat.cards.config;
    let projects = config.sessions.projects.all();
    if projects.is_empty() {
        return heard.say(&task::NO_PROJECTS).await;
    }
    let choices = projects.iter().map(|project| {
        let name = project.name.clone();
        let label = words::start_in(&name).get(config.lang).to_owned();
        (label, Picked::Project(name, None))
    });
    heard.offer(None, title, None, choices.collect()).await;
}

pub(super) async fn sessions(heard: &HeardMessage<'_>) {
    let (chat, lang) = (heard.chat, heard.chat.cards.config.lang);
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
        let place = mailboxes::place_name(&one.terminal.project);
        lines.push(terminal::line(one.terminal.number, &place, None, one.state));
        let label = words::say_to(one.terminal.number, &place);
        choices.push((label.get(lang).to_owned(), Picked::Say(one.terminal.number)));
    }
    for seen in &threads {
        let place = mailboxes::place_name(&seen.project);
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
    heard
        .offer(None, &words::SESSIONS, Some(Text::lines(&lines)), choices)
        .await;
}

/// The modes of the session of this place, the one that holds marked; or the
/// one that was typed and needs a tap.
pub(super) async fn mode(heard: &HeardMessage<'_>, typed: Option<Mode>) {
    let kept = match one(heard) {
        Ok(found) => found.kept,
        Err(why) => return heard.say(&why).await,
    };
    let (holds, lang) = (kept.saved.mode, heard.chat.cards.config.lang);
    let offered = Mode::ALL.into_iter();
    let offered = offered.filter(|mode| typed.is_none_or(|typed| typed == *mode));
    let choices = offered.map(|mode| {
        let mark = if mode == holds { "✓ " } else { "" };
        let label = format!("{mark}{}", words::mode(mode).get(lang));
        (label, Picked::Command(format!("/mode {}", mode.as_str())))
    });
    let mut lines = vec![session::mode_of(kept.number, &kept.project, holds)];
    lines.extend(typed.map(|_| words::WIDER_BY_TAP.clone()));
    let (text, choices) = (Some(Text::lines(&lines)), choices.collect());
    heard.offer(None, &words::MODE, text, choices).await;
}

#[cfg(test)]
mod tests;
