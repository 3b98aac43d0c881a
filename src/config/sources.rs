//! Where settings come from: the environment, then `.env` in the working
//! directory, then `nod/.env` in the user's configuration directory. The only
//! room that reads the environment.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::SETTINGS;
use crate::claude::launch;
use crate::wording::{Lang, Text, system};

/// Larger than any settings file a person writes.
const MAX_FILE: u64 = 1 << 20;

/// Where a value was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Environment,
    File(PathBuf),
}

/// A settings file that exists and could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}`: {why}", path.display())]
pub struct BrokenFile {
    pub path: PathBuf,
    pub why: Unread,
    /// The settings its unreadable lines were meant to set.
    pub hidden: Vec<&'static str>,
}

impl BrokenFile {
    fn whole(path: &Path, why: Unread) -> Self {
        Self {
            path: path.to_owned(),
            why,
            hidden: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    #[error("it is larger than 1 MiB")]
    TooLarge,
    #[error("{}", .0.en)]
    System(Text),
    #[error(transparent)]
    Line(#[from] BadLine),
}

/// A line no setting can be read from; its content is never shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {number}: {}", fault.as_str())]
pub struct BadLine {
    pub number: usize,
    pub fault: LineFault,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineFault {
    NoPair,
    BadName,
    OpenQuote,
}

impl LineFault {
    const fn as_str(self) -> &'static str {
        match self {
            Self::NoPair => "expected `NAME=value`",
            Self::BadName => "the name may hold letters, digits and `_` only",
            Self::OpenQuote => "a quote is not closed",
        }
    }
}

/// `NOD_LANG` names a language nod does not speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownLang;

#[derive(Debug, Clone, Default)]
pub struct Sources {
    layers: Vec<(Origin, HashMap<String, String>)>,
    /// Files that exist and could not be read, with the reason.
    pub broken: Vec<BrokenFile>,
    /// A `.env` in the working directory that could not be read at all. It may
    /// be another program's, so that does not stop nod.
    pub skipped: Option<BrokenFile>,
    pub home: Option<PathBuf>,
    pub state_home: Option<PathBuf>,
    pub runtime_dir: Option<PathBuf>,
}

impl Sources {
    /// One value and nothing else.
    pub(super) fn only(name: &str, value: &str) -> Self {
        let values = HashMap::from([(name.to_owned(), value.to_owned())]);
        Self {
            layers: vec![(Origin::Environment, values)],
            ..Self::default()
        }
    }

    /// Everything a command run by a person may look at.
    pub fn for_person() -> Self {
        let mut sources = Self::environment();
        let own = sources.own_file();
        if let Ok(here) = std::env::current_dir() {
            let file = here.join(".env");
            if Some(&file) != own.as_ref() {
                sources.add_foreign(&file);
            }
        }
        if let Some(own) = own {
            sources.add_file(&own);
        }
        sources
    }

    /// What a hook may look at: it runs inside a repository that somebody else
    /// may have written, so a `.env` lying there does not count.
    pub fn for_hook() -> Self {
        let mut sources = Self::environment();
        if let Some(own) = sources.own_file() {
            sources.add_file(&own);
        }
        sources
    }

    fn environment() -> Self {
        let mut sources = Self::default();
        let dir = |name: &str| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        sources.home = dir("HOME");
        sources.state_home = dir("XDG_STATE_HOME");
        sources.runtime_dir = dir("XDG_RUNTIME_DIR");
        let variables = std::env::vars_os().filter_map(|(name, value): (OsString, OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        sources
            .layers
            .push((Origin::Environment, variables.collect()));
        sources
    }

    /// `nod/.env` in the user's configuration directory.
    pub fn own_file(&self) -> Option<PathBuf> {
        let config = self
            .get("XDG_CONFIG_HOME")
            .map(|(path, _)| PathBuf::from(path))
            .filter(|path| path.is_absolute())
            .or_else(|| Some(self.home.as_ref()?.join(".config")))?;
        Some(config.join("nod").join(".env"))
    }

    /// Claude Code's user settings.
    pub fn claude_settings(&self) -> Option<PathBuf> {
        let dir = match self.get("CLAUDE_CONFIG_DIR") {
            Some((dir, _)) => PathBuf::from(dir),
            None => self.home.as_ref()?.join(".claude"),
        };
        Some(dir.join("settings.json"))
    }

    /// A file that is all nod's.
    pub(super) fn add_file(&mut self, path: &Path) {
        let text = match content(path) {
            None => return,
            Some(Ok(bytes)) => String::from_utf8(bytes).map_err(|_| {
                let not_text = std::io::ErrorKind::InvalidData.into();
                Unread::System(system::io(&not_text))
            }),
            Some(Err(why)) => Err(why),
        };
        match text {
            Ok(text) => self.add_lines(path, lines(&text)),
            Err(why) => self.broken.push(BrokenFile::whole(path, why)),
        }
    }

    /// A file that other programs read too: what nod can't read is theirs,
    /// unless it names one of nod's settings.
    pub(super) fn add_foreign(&mut self, path: &Path) {
        match content(path) {
            None => {}
            Some(Ok(bytes)) => {
                let mut read = foreign_lines(&String::from_utf8_lossy(&bytes));
                read.bad.retain(|(_, setting)| setting.is_some());
                self.add_lines(path, read);
            }
            Some(Err(why)) => self.skipped = Some(BrokenFile::whole(path, why)),
        }
    }

    /// What could be read still counts where a broken file does not stop a
    /// command: else it would look for nod's things somewhere else.
    fn add_lines(&mut self, path: &Path, read: Lines) {
        self.layers
            .push((Origin::File(path.to_owned()), read.values));
        if let Some((first, _)) = read.bad.first() {
            let hidden = read.bad.iter().filter_map(|(_, setting)| *setting);
            self.broken.push(BrokenFile {
                hidden: hidden.collect(),
                ..BrokenFile::whole(path, first.clone().into())
            });
        }
    }

    /// The value that counts and where it stands; an empty one is no value.
    pub fn get(&self, name: &str) -> Option<(&str, &Origin)> {
        self.layers
            .iter()
            .filter_map(|(origin, values)| Some((values.get(name)?.trim(), origin)))
            .find(|(value, _)| !value.is_empty())
    }

    /// What this one place says, whether it counts or not.
    pub(super) fn stands_in(&self, name: &str, place: &Origin) -> Option<&str> {
        let (_, values) = self.layers.iter().find(|(origin, _)| origin == place)?;
        let value = values.get(name)?.trim();
        Some(value).filter(|value| !value.is_empty())
    }

    /// Every name that has a value, and where.
    pub(super) fn names(&self) -> impl Iterator<Item = (&str, &Origin)> {
        self.layers.iter().flat_map(|(origin, values)| {
            let set = values.iter().filter(|(_, value)| !value.trim().is_empty());
            set.map(move |(name, _)| (name.as_str(), origin))
        })
    }

    /// The file a value stands in, if others than its owner may read it or it
    /// is somebody else's.
    pub fn exposed(&self, name: &str) -> Option<PathBuf> {
        let (_, Origin::File(path)) = self.get(name)? else {
            return None;
        };
        let is = std::fs::metadata(path).ok()?;
        let own = rustix::process::geteuid().as_raw();
        (is.mode() & 0o077 != 0 || is.uid() != own).then(|| path.clone())
    }

    /// Whether this process belongs to a session that nod itself drives: there
    /// nod is asked by the session, and its hooks stay silent.
    pub fn is_own_session(&self) -> bool {
        self.get("NOD_SESSION").is_some()
    }

    /// The directory Claude Code was started in, as it tells its hooks.
    pub fn claude_project(&self) -> Option<PathBuf> {
        let (path, _) = self.get("CLAUDE_PROJECT_DIR")?;
        Some(PathBuf::from(path))
    }

    /// What a Claude Code child inherits of this process' environment.
    pub fn child_environment(&self) -> Vec<(OsString, OsString)> {
        launch::environment(std::env::vars_os(), launch::INHERITED)
    }

    /// The working directory, for what a person asks from there.
    pub fn here(&self) -> PathBuf {
        std::env::current_dir()
            .ok()
            .or_else(|| self.home.clone())
            .unwrap_or_default()
    }

    /// The language, where a wrong one shall not stop a command.
    pub fn lang(&self) -> Lang {
        self.knows_lang().unwrap_or_default()
    }

    /// The language, or that it is one nod does not speak.
    pub fn knows_lang(&self) -> Result<Lang, UnknownLang> {
        match self.get("NOD_LANG") {
            Some(("en", _)) => Ok(Lang::En),
            None | Some(("zh", _)) => Ok(Lang::Zh),
            Some(_) => Err(UnknownLang),
        }
    }

    #[cfg(test)]
    pub(crate) fn of(values: &[(&str, &str)]) -> Self {
        Self {
            layers: vec![(
                Origin::Environment,
                values
                    .iter()
                    .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                    .collect(),
            )],
            home: Some("/home/u".into()),
            ..Self::default()
        }
    }
}

/// A settings file's text, line by line.
#[derive(Default)]
struct Lines {
    values: HashMap<String, String>,
    /// Lines that can't be read, and the setting each was meant to set.
    bad: Vec<(BadLine, Option<&'static str>)>,
}

/// `NAME=value` lines; `export`, quotes, comments and blank lines as people
/// write them. The error names the line and never its content.
pub(crate) fn parse(text: &str) -> Result<HashMap<String, String>, BadLine> {
    let Lines { values, bad } = lines(text);
    match bad.into_iter().next() {
        Some((first, _)) => Err(first),
        None => Ok(values),
    }
}

/// The bytes of a file, if there is one.
fn content(path: &Path) -> Option<Result<Vec<u8>, Unread>> {
    match std::fs::metadata(path) {
        Err(_) => None,
        Ok(meta) if !meta.is_file() => None,
        Ok(meta) if meta.len() > MAX_FILE => Some(Err(Unread::TooLarge)),
        Ok(_) => Some(std::fs::read(path).map_err(|why| Unread::System(system::io(&why)))),
    }
}

fn lines(text: &str) -> Lines {
    let mut read = Lines::default();
    for (at, line) in split(text).enumerate() {
        read.take(at, line);
    }
    read
}

/// The same, where a quoted value may go on over several lines as most readers
/// have it. nod has no such setting, so those lines are nobody's settings.
fn foreign_lines(text: &str) -> Lines {
    let mut read = Lines::default();
    let all: Vec<&str> = split(text).collect();
    let last = |quote| all.iter().rposition(|line| line.contains(quote));
    let (last_double, last_single) = (last('"'), last('\''));
    let mut at = 0;
    while let Some(line) = all.get(at) {
        let open = read.take(at, line);
        at += 1;
        let closed = match open {
            Some('"') => last_double,
            Some(_) => last_single,
            None => None,
        };
        if let Some(quote) = open
            && closed >= Some(at)
        {
            at += all[at..].iter().take_while(|l| !l.contains(quote)).count() + 1;
        }
    }
    read
}

fn split(text: &str) -> std::str::Lines<'_> {
    text.trim_start_matches('\u{feff}').lines()
}

impl Lines {
    /// Takes one line, and gives the quote that it opens and does not close.
    fn take(&mut self, at: usize, line: &str) -> Option<char> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return None;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let fault = match pair(line) {
            Ok((name, value)) => {
                self.values.insert(name.to_owned(), value);
                return None;
            }
            Err(fault) => fault,
        };
        let first = line.split(|c: char| c == '=' || c.is_whitespace()).next();
        let mut settings = SETTINGS.iter().map(|setting| setting.name);
        let meant = settings.find(|name| Some(*name) == first);
        let number = at + 1;
        self.bad.push((BadLine { number, fault }, meant));
        let value = line.split_once('=')?.1.trim();
        value
            .chars()
            .next()
            .filter(|_| fault == LineFault::OpenQuote)
    }
}

fn pair(line: &str) -> Result<(&str, String), LineFault> {
    let (name, value) = line.split_once('=').ok_or(LineFault::NoPair)?;
    let name = name.trim();
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Err(LineFault::BadName);
    }
    let value = unquote(value.trim()).ok_or(LineFault::OpenQuote)?;
    Ok((name, value))
}

fn unquote(value: &str) -> Option<String> {
    for quote in ['"', '\''] {
        if let Some(rest) = value.strip_prefix(quote) {
            return rest.split_once(quote).map(|(inside, _)| inside.to_owned());
        }
    }
    let end = value
        .find(" #")
        .or_else(|| value.find("\t#"))
        .unwrap_or(value.len());
    Some(value[..end].trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_files_are_read_as_people_write_them() {
        let text = "\u{feff}# note\n\nA=1\nexport B = two words \nC=\"x # y\"\nD='q' # note\nE=v # note\nF=a#b\nG=\n";
        let values = parse(text).unwrap();
        for (name, value) in [
            ("A", "1"),
            ("B", "two words"),
            ("C", "x # y"),
            ("D", "q"),
            ("E", "v"),
            ("F", "a#b"),
            ("G", ""),
        ] {
            assert_eq!(values[name], value, "{name}");
        }
    }

    #[test]
    fn a_bad_line_is_named_by_number_and_never_shown() {
        for text in ["A=1\ncanary", "A=1\nca nary=2", "A=1\nB=\"canary"] {
            let why = parse(text).unwrap_err().to_string();
            assert!(why.starts_with("line 2:"), "{why}");
            assert!(!why.contains("canary"), "{why}");
        }
    }

    #[test]
    fn a_file_of_other_programs_too_is_read_for_nods_settings_only() {
        let pem = "KEY=\"-----BEGIN\nNOD_LANG=zh\nMII+==\n-----END\"\nNOD_LOG=warn\n";
        for (text, value) in [
            (pem, Some("warn")),
            ("[section]\nA B=1\nit's\nNOD_LOG=warn\n", Some("warn")),
            (
                "A=\"never closed\nB='nor this\nNOD_LOG=warn\n",
                Some("warn"),
            ),
            ("A=\"x\nB='y\ny'\nNOD_LOG=warn\nC='\n", Some("warn")),
            ("A=\"x\nNOD_LOG=warn\n\"\n", None),
        ] {
            let read = foreign_lines(text);
            assert_eq!(
                read.values.get("NOD_LOG").map(String::as_str),
                value,
                "{text}"
            );
            assert_eq!(read.values.get("NOD_LANG"), None, "{text}");
            assert!(
                read.bad.iter().all(|(_, setting)| setting.is_none()),
                "{text}"
            );
        }
        let read = foreign_lines("A=\"x\n\"\nFEISHU_APP_SECRET=\"canary\n");
        let (line, setting) = read.bad.last().unwrap();
        assert_eq!((line.number, *setting), (3, Some("FEISHU_APP_SECRET")));
    }

    #[test]
    fn earlier_layers_win_and_empty_values_do_not_count() {
        let mut sources = Sources::of(&[("A", ""), ("B", "env")]);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "A=file\nB=file\n").unwrap();
        sources.add_file(file.path());
        assert_eq!(sources.get("B"), Some(("env", &Origin::Environment)));
        let (value, origin) = sources.get("A").unwrap();
        assert_eq!(value, "file");
        assert_eq!(*origin, Origin::File(file.path().to_owned()));
        assert_eq!(sources.get("C"), None);
    }
}
