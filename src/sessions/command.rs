//! A chat message as a command or as plain words, and the list of projects a
//! session may run in. No free paths and no flags: a chat names things that
//! were configured, nothing else.

use std::path::PathBuf;

use super::agent::Agent;
use super::yes::narrow;
use crate::talk::Mode;
use crate::text::replace_mark;

/// More projects than a person would list by hand are a mistake in the setting.
const MAX_PROJECTS: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatCommand {
    New {
        /// `None` means the only project there is.
        project: Option<String>,
        /// `None` means the project's own.
        agent: Option<Agent>,
        prompt: String,
    },
    Stop,
    Status,
    Sessions,
    /// By its number in the list of `/sessions`; `None` for the newest.
    Resume(Option<usize>),
    /// A session in a terminal, by its number there, goes on in the chat.
    TakeOver(usize),
    Projects,
    /// Words for a session in a terminal, by its number in that list.
    Say {
        number: usize,
        words: String,
    },
    /// `None` asks which mode holds.
    Mode(Option<Mode>),
    Help,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spoken {
    Command(ChatCommand),
    Text(String),
    /// A command nod does not know, or one that lacks something. Gets help.
    Unclear(Unclear),
    /// Nothing was said, as when only the bot was mentioned.
    Nothing,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unclear {
    Unknown {
        command: String,
    },
    NoPrompt,
    NoSuchMode {
        mode: String,
    },
    NoSuchAgent {
        agent: String,
    },
    /// Something stands where a project would, before an agent's name.
    NoSuchProject {
        project: String,
    },
    NotANumber,
    /// `/say` without a number or without words.
    SayWhat,
}

/// Reads a message. `mention` is the placeholder that stands for the bot in
/// the text (`@_user_1`), if it was mentioned.
pub fn parse(message: &str, mention: Option<&str>, projects: &Projects) -> Spoken {
    let words = replace_mark(message, mention.unwrap_or_default(), "");
    let text = words.trim();
    if text.is_empty() {
        return Spoken::Nothing;
    }
    let Some((name, rest)) = slash(text) else {
        return Spoken::Text(text.to_owned());
    };
    let name = name.as_str();
    let first = rest.split_whitespace().next();
    let command = match name {
        "new" => return new(rest, projects),
        "say" => return say_to(rest),
        "stop" => ChatCommand::Stop,
        "status" => ChatCommand::Status,
        "sessions" => ChatCommand::Sessions,
        "projects" => ChatCommand::Projects,
        "help" => ChatCommand::Help,
        "resume" => match first.map(numbered) {
            None => ChatCommand::Resume(None),
            Some(Some((false, number))) => ChatCommand::Resume(Some(number)),
            Some(Some((true, number))) => ChatCommand::TakeOver(number),
            Some(None) => return Spoken::Unclear(Unclear::NotANumber),
        },
        "mode" => match first {
            None => ChatCommand::Mode(None),
            Some(word) => match Mode::parse(word) {
                Some(mode) => ChatCommand::Mode(Some(mode)),
                None => {
                    return Spoken::Unclear(Unclear::NoSuchMode {
                        mode: word.chars().take(40).collect(),
                    });
                }
            },
        },
        _ => {
            return Spoken::Unclear(Unclear::Unknown {
                command: name.to_owned(),
            });
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
    let word = prompt.split_whitespace().next().unwrap_or_default();
    let (agent, prompt) = match agent_named(word) {
        Addressed::Agent(agent) => (Some(agent), prompt[word.len()..].trim()),
        Addressed::Nobody => (None, prompt),
        Addressed::Unknown(agent) => {
            return Spoken::Unclear(Unclear::NoSuchAgent { agent });
        }
    };
    let second = prompt.split_whitespace().nth(1).unwrap_or_default();
    if project.is_none() && agent.is_none() && matches!(agent_named(second), Addressed::Agent(_)) {
        let project = word.chars().take(40).collect();
        return Spoken::Unclear(Unclear::NoSuchProject { project });
    }
    if prompt.is_empty() {
        return Spoken::Unclear(Unclear::NoPrompt);
    }
    Spoken::Command(ChatCommand::New {
        project,
        agent,
        prompt: prompt.to_owned(),
    })
}

enum Addressed {
    Agent(Agent),
    Nobody,
    Unknown(String),
}

/// `@codex`. A person's name behind an `@` has letters that no agent's has.
fn agent_named(word: &str) -> Addressed {
    let word = narrow(word);
    let Some(name) = word.strip_prefix('@').filter(|name| !name.is_empty()) else {
        return Addressed::Nobody;
    };
    if let Some(agent) = Agent::parse(name) {
        return Addressed::Agent(agent);
    }
    let of_an_agent = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if name.len() <= 20 && name.bytes().all(of_an_agent) {
        return Addressed::Unknown(name.to_owned());
    }
    Addressed::Nobody
}

/// A session's number, and whether it is one of a terminal.
fn numbered(word: &str) -> Option<(bool, usize)> {
    let word = narrow(word);
    let bare = word.strip_prefix(['t', 'T']);
    let number = bare.unwrap_or(&word).trim_start_matches('#').parse();
    let number = number.ok().filter(|number| *number > 0)?;
    Some((bare.is_some(), number))
}

/// `/say T2 words`, or `/say 2 words`.
fn say_to(rest: &str) -> Spoken {
    let first = rest.split_whitespace().next().unwrap_or_default();
    let number = narrow(first);
    let number = number.trim_start_matches(['t', 'T', '#']).parse();
    let words = rest[first.len()..].trim();
    match number {
        Ok(number) if !words.is_empty() => Spoken::Command(ChatCommand::Say {
            number,
            words: words.to_owned(),
        }),
        _ => Spoken::Unclear(Unclear::SayWhat),
    }
}

/// `/word` and what follows it. A path such as `/usr/local` is no command. A
/// Chinese keyboard types `／` or `、` in its place; what begins with the latter
/// is a command only if there is such a one.
pub fn slash(text: &str) -> Option<(String, &str)> {
    let first = text.chars().next().filter(|c| SLASHES.contains(c))?;
    let rest = &text[first.len_utf8()..];
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    let name = narrow(name).to_ascii_lowercase();
    let is_word = (1..=20).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphabetic());
    let is_known = first != '、' || NAMES.contains(&name.as_str());
    (is_word && is_known).then(|| (name, rest.trim()))
}

const SLASHES: [char; 3] = ['/', '／', '、'];
const NAMES: [&str; 13] = [
    "new", "stop", "status", "sessions", "say", "resume", "projects", "mode", "help", "lock",
    // A team's gateway takes these.
    "machines", "forget", "join",
];

/// Whether it is one of the commands, however wrong what follows may be.
pub fn is_command(text: &str) -> bool {
    slash(text.trim()).is_some_and(|(name, _)| NAMES.contains(&name.as_str()))
}

/// Whether the whole message is `/lock`.
pub fn is_lock(text: &str) -> bool {
    slash(text.trim()).is_some_and(|(name, rest)| name == "lock" && rest.is_empty())
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    pub name: String,
    pub path: PathBuf,
    /// Which one works there unless another is named.
    pub agent: Agent,
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
    #[error("entry {number} names an agent that is none of {}", Agent::words())]
    NoSuchAgent { number: usize },
    #[error("entry {number} has a path that does not start with `/`")]
    NotAbsolute { number: usize },
    #[error("entry {number} repeats the name of an earlier one")]
    Repeated { number: usize },
    #[error("there are more than {MAX_PROJECTS} entries")]
    TooMany,
}

impl Projects {
    /// Reads `name=path` or `name@agent=path` entries separated by commas, semicolons or newlines.
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
            let (name, agent) = match name.split_once('@') {
                Some((name, agent)) => {
                    let agent = Agent::parse(agent.trim());
                    (name, agent.ok_or(BadProjects::NoSuchAgent { number })?)
                }
                None => (name, Agent::default()),
            };
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
                agent,
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

    fn command(command: ChatCommand) -> Spoken {
        Spoken::Command(command)
    }

    #[test]
    fn every_command_is_read() {
        let by = |project: Option<&str>, agent: Option<Agent>, prompt: &str| {
            command(ChatCommand::New {
                project: project.map(str::to_owned),
                agent,
                prompt: prompt.to_owned(),
            })
        };
        let new = |project, prompt: &str| by(project, None, prompt);
        let say = |number: usize, words: &str| {
            command(ChatCommand::Say {
                number,
                words: words.to_owned(),
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
            (
                "/new shop @codex run it",
                by(Some("shop"), Some(Agent::Codex), "run it"),
            ),
            (
                "/new ＠Codex run it",
                by(None, Some(Agent::Codex), "run it"),
            ),
            (
                "/new shop @claude\nrun",
                by(Some("shop"), Some(Agent::Claude), "run"),
            ),
            (
                "/new shop @LiLei 说登录坏了",
                new(Some("shop"), "@LiLei 说登录坏了"),
            ),
            ("/new shop ask @gemini", new(Some("shop"), "ask @gemini")),
            ("@_user_1 /STOP", command(ChatCommand::Stop)),
            ("/status now", command(ChatCommand::Status)),
            ("/sessions", command(ChatCommand::Sessions)),
            ("/resume", command(ChatCommand::Resume(None))),
            ("/resume 2", command(ChatCommand::Resume(Some(2)))),
            ("/resume T2", command(ChatCommand::TakeOver(2))),
            ("／resume ｔ２", command(ChatCommand::TakeOver(2))),
            ("/projects", command(ChatCommand::Projects)),
            ("/mode", command(ChatCommand::Mode(None))),
            (
                "/mode acceptedits",
                command(ChatCommand::Mode(Some(Mode::AcceptEdits))),
            ),
            ("/help", command(ChatCommand::Help)),
            ("/say 2 go on", say(2, "go on")),
            ("/say T12\u{3000}继续\n做", say(12, "继续\n做")),
            ("／help", command(ChatCommand::Help)),
            (
                "／ｎｅｗ\u{3000}shop\u{3000}跑测试",
                new(Some("shop"), "跑测试"),
            ),
            ("、stop", command(ChatCommand::Stop)),
            ("\u{3000}／say\u{3000}Ｔ２\u{3000}继续", say(2, "继续")),
        ] {
            check(message, &expected);
        }
    }

    #[test]
    fn what_lacks_something_gets_help() {
        for (message, expected) in [
            ("/new", Unclear::NoPrompt),
            ("/new shop", Unclear::NoPrompt),
            ("/new shop @codex", Unclear::NoPrompt),
            (
                "/new shop @gemini run it",
                Unclear::NoSuchAgent {
                    agent: "gemini".to_owned(),
                },
            ),
            (
                "/new shup @codex run it",
                Unclear::NoSuchProject {
                    project: "shup".to_owned(),
                },
            ),
            ("/resume 0", Unclear::NotANumber),
            ("/resume T0", Unclear::NotANumber),
            ("/resume Tom", Unclear::NotANumber),
            ("/say", Unclear::SayWhat),
            ("/say 2", Unclear::SayWhat),
            ("/say go on", Unclear::SayWhat),
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
            ("、这样不行", text("、这样不行")),
            ("、frob x", text("、frob x")),
            ("do /stop it", text("do /stop it")),
            ("@_user_1  ", Spoken::Nothing),
            ("", Spoken::Nothing),
        ] {
            check(message, &expected);
        }
    }

    #[test]
    fn lock_is_read_as_a_chinese_keyboard_types_it() {
        for text in ["/lock", "／lock", "、lock", "/LOCK ", "／ｌｏｃｋ"] {
            assert!(is_lock(text), "{text}");
        }
        for text in ["lock", "/lock now", "/locked"] {
            assert!(!is_lock(text), "{text}");
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
        let by =
            Projects::parse("shop@codex=/srv/shop,api @ Claude=/api,x=/a@b").expect("projects");
        let agents: Vec<_> = by
            .all()
            .iter()
            .map(|one| (one.name.as_str(), one.agent))
            .collect();
        let (claude, codex) = (Agent::Claude, Agent::Codex);
        assert_eq!(agents, [("shop", codex), ("api", claude), ("x", claude)]);
        assert_eq!(Projects::parse(" \n"), Ok(Projects::default()));
        for (text, expected) in [
            ("shop", BadProjects::NotAPair { number: 1 }),
            ("a=/a;b c=/b", BadProjects::BadName { number: 2 }),
            ("a=/a,b@gemini=/b", BadProjects::NoSuchAgent { number: 2 }),
            ("a@=/a", BadProjects::NoSuchAgent { number: 1 }),
            ("@codex=/a", BadProjects::BadName { number: 1 }),
            ("a=src", BadProjects::NotAbsolute { number: 1 }),
            ("a=/a,A=/b", BadProjects::Repeated { number: 2 }),
        ] {
            assert_eq!(Projects::parse(text), Err(expected), "{text}");
        }
        let many: Vec<_> = (0..101).map(|i| format!("p{i}=/p")).collect();
        assert_eq!(Projects::parse(&many.join(",")), Err(BadProjects::TooMany));
    }
}
