//! A chat message as a command or as plain words, and the list of projects a
//! session may run in. No free paths and no flags: a chat names things that
//! were configured, nothing else.

use std::path::PathBuf;

use crate::claude::stream::say::Mode;

/// More projects than a person would list by hand are a mistake in the setting.
const MAX_PROJECTS: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    New {
        /// `None` means the only project, or the one used last.
        project: Option<String>,
        prompt: String,
    },
    Stop,
    Status,
    Sessions,
    /// By its number in the list of `/sessions`; `None` for the newest.
    Resume(Option<usize>),
    Projects,
    /// `None` asks which mode holds.
    Mode(Option<Mode>),
    Help,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spoken {
    Command(Command),
    Text(String),
    /// A command nod does not know, or one that lacks something. Gets help.
    Unclear(Unclear),
    /// Nothing was said, as when only the bot was mentioned.
    Nothing,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unclear {
    Unknown { command: String },
    NoPrompt,
    NoSuchMode { mode: String },
    NotANumber,
}

/// Reads a message. `mention` is the placeholder that stands for the bot in
/// the text (`@_user_1`), if it was mentioned.
pub fn parse(message: &str, mention: Option<&str>, projects: &Projects) -> Spoken {
    let words = without_mention(message, mention);
    let text = words.trim();
    if text.is_empty() {
        return Spoken::Nothing;
    }
    let Some((name, rest)) = slash(text) else {
        return Spoken::Text(text.to_owned());
    };
    let first = rest.split_whitespace().next();
    let command = match name.as_str() {
        "new" => return new(rest, projects),
        "stop" => Command::Stop,
        "status" => Command::Status,
        "sessions" => Command::Sessions,
        "projects" => Command::Projects,
        "help" => Command::Help,
        "resume" => match first.map(str::parse) {
            None => Command::Resume(None),
            Some(Ok(number)) if number > 0 => Command::Resume(Some(number)),
            Some(_) => return Spoken::Unclear(Unclear::NotANumber),
        },
        "mode" => match first {
            None => Command::Mode(None),
            Some(word) => match Mode::parse(word) {
                Some(mode) => Command::Mode(Some(mode)),
                None => {
                    return Spoken::Unclear(Unclear::NoSuchMode {
                        mode: word.chars().take(40).collect(),
                    });
                }
            },
        },
        _ => {
            return Spoken::Unclear(Unclear::Unknown { command: name });
        }
    };
    Spoken::Command(command)
}

fn new(rest: &str, projects: &Projects) -> Spoken {
    let first = rest.split_whitespace().next().unwrap_or_default();
    let named = projects.find(first);
    let (project, prompt) = match named {
        Some(project) => (Some(project.name.clone()), rest[first.len()..].trim()),
        None => (None, rest),
    };
    if prompt.is_empty() {
        return Spoken::Unclear(Unclear::NoPrompt);
    }
    Spoken::Command(Command::New {
        project,
        prompt: prompt.to_owned(),
    })
}

/// `/word` and what follows it. A path such as `/usr/local` is no command.
fn slash(text: &str) -> Option<(String, &str)> {
    let rest = text.strip_prefix('/')?;
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    let is_word = (1..=20).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphabetic());
    is_word.then(|| (name.to_ascii_lowercase(), rest.trim()))
}

/// Feishu writes a placeholder where the bot was mentioned. `@_user_1` must
/// not eat the start of `@_user_12`.
fn without_mention(text: &str, mention: Option<&str>) -> String {
    let Some(mention) = mention.filter(|m| !m.is_empty()) else {
        return text.to_owned();
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(mention) {
        let after = &rest[at + mention.len()..];
        if after.starts_with(|c: char| c.is_ascii_digit()) {
            out.push_str(&rest[..at + mention.len()]);
        } else {
            out.push_str(&rest[..at]);
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    pub name: String,
    pub path: PathBuf,
}

/// The projects sessions may run in, in the order they were written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Projects(Vec<Project>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadProjects {
    #[error("entry {number} is not `name=path`")]
    NotAPair { number: usize },
    #[error("entry {number} has a name that is not letters, digits, `-`, `_` or `.`")]
    BadName { number: usize },
    #[error("entry {number} has a path that does not start with `/`")]
    NotAbsolute { number: usize },
    #[error("entry {number} repeats the name of an earlier one")]
    Repeated { number: usize },
    #[error("there are more than {MAX_PROJECTS} entries")]
    TooMany,
}

impl Projects {
    /// Reads `name=path` entries separated by commas, semicolons or newlines.
    pub fn parse(text: &str) -> Result<Self, BadProjects> {
        let mut found: Vec<Project> = Vec::new();
        let entries = text
            .split([',', ';', '\n'])
            .map(str::trim)
            .filter(|entry| !entry.is_empty());
        for (i, entry) in entries.enumerate() {
            let number = i + 1;
            if number > MAX_PROJECTS {
                return Err(BadProjects::TooMany);
            }
            let (name, path) = entry
                .split_once('=')
                .ok_or(BadProjects::NotAPair { number })?;
            let (name, path) = (name.trim(), PathBuf::from(path.trim()));
            let fits = (1..=40).contains(&name.chars().count())
                && name
                    .chars()
                    .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'));
            if !fits {
                return Err(BadProjects::BadName { number });
            }
            if !path.is_absolute() {
                return Err(BadProjects::NotAbsolute { number });
            }
            if found.iter().any(|earlier| same(&earlier.name, name)) {
                return Err(BadProjects::Repeated { number });
            }
            found.push(Project {
                name: name.to_owned(),
                path,
            });
        }
        Ok(Self(found))
    }

    pub fn find(&self, name: &str) -> Option<&Project> {
        self.0.iter().find(|project| same(&project.name, name))
    }

    pub fn all(&self) -> &[Project] {
        &self.0
    }

    /// The project meant when none is named: the only one there is.
    pub fn only(&self) -> Option<&Project> {
        match self.0.as_slice() {
            [project] => Some(project),
            _ => None,
        }
    }
}

fn same(a: &str, b: &str) -> bool {
    a.to_lowercase() == b.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn projects() -> Projects {
        Projects::parse("shop=/srv/shop, 后端=/srv/back end").expect("projects")
    }

    #[track_caller]
    fn check(message: &str, expected: &Spoken) {
        assert_eq!(&parse(message, Some("@_user_1"), &projects()), expected);
    }

    fn command(command: Command) -> Spoken {
        Spoken::Command(command)
    }

    #[test]
    fn every_command_is_read() {
        let new = |project: Option<&str>, prompt: &str| {
            command(Command::New {
                project: project.map(str::to_owned),
                prompt: prompt.to_owned(),
            })
        };
        for (message, expected) in [
            (
                "/new shop run the tests",
                new(Some("shop"), "run the tests"),
            ),
            (
                "/new SHOP\nline one\nline two",
                new(Some("shop"), "line one\nline two"),
            ),
            ("/new 后端 修复登录", new(Some("后端"), "修复登录")),
            ("/new run the tests", new(None, "run the tests")),
            ("@_user_1 /STOP", command(Command::Stop)),
            ("/status now", command(Command::Status)),
            ("/sessions", command(Command::Sessions)),
            ("/resume", command(Command::Resume(None))),
            ("/resume 2", command(Command::Resume(Some(2)))),
            ("/projects", command(Command::Projects)),
            ("/mode", command(Command::Mode(None))),
            (
                "/mode acceptedits",
                command(Command::Mode(Some(Mode::AcceptEdits))),
            ),
            ("/help", command(Command::Help)),
        ] {
            check(message, &expected);
        }
    }

    #[test]
    fn what_lacks_something_gets_help() {
        for (message, expected) in [
            ("/new", Unclear::NoPrompt),
            ("/new shop", Unclear::NoPrompt),
            ("/resume 0", Unclear::NotANumber),
            ("/resume --all", Unclear::NotANumber),
            (
                "/mode bypassPermissions",
                Unclear::NoSuchMode {
                    mode: "bypassPermissions".to_owned(),
                },
            ),
            (
                "/frobnicate x",
                Unclear::Unknown {
                    command: "frobnicate".to_owned(),
                },
            ),
        ] {
            check(message, &Spoken::Unclear(expected));
        }
    }

    #[test]
    fn words_and_paths_are_text_and_a_bare_mention_is_nothing() {
        let text = |text: &str| Spoken::Text(text.to_owned());
        for (message, expected) in [
            ("@_user_1 run the tests", text("run the tests")),
            ("ask @_user_12 and @_user_1", text("ask @_user_12 and")),
            ("/usr/local/bin", text("/usr/local/bin")),
            (
                "/etc",
                Spoken::Unclear(Unclear::Unknown {
                    command: "etc".to_owned(),
                }),
            ),
            ("/ stop", text("/ stop")),
            ("do /stop it", text("do /stop it")),
            ("@_user_1  ", Spoken::Nothing),
            ("", Spoken::Nothing),
        ] {
            check(message, &expected);
        }
    }

    #[test]
    fn a_project_is_a_name_and_an_absolute_path() {
        let read = projects();
        assert_eq!(
            read.find("Shop").map(|p| p.path.clone()),
            Some("/srv/shop".into())
        );
        assert_eq!(read.all()[1].path, PathBuf::from("/srv/back end"));
        assert!(read.only().is_none());
        assert_eq!(Projects::parse(" \n"), Ok(Projects::default()));
        for (text, expected) in [
            ("shop", BadProjects::NotAPair { number: 1 }),
            ("a=/a;b c=/b", BadProjects::BadName { number: 2 }),
            ("a=src", BadProjects::NotAbsolute { number: 1 }),
            ("a=/a,A=/b", BadProjects::Repeated { number: 2 }),
        ] {
            assert_eq!(Projects::parse(text), Err(expected), "{text}");
        }
        let many: Vec<_> = (0..101).map(|i| format!("p{i}=/p")).collect();
        assert_eq!(Projects::parse(&many.join(",")), Err(BadProjects::TooMany));
    }
}
