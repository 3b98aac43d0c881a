//! Where settings come from: the environment, then a file that was named on the
//! command line, then `nod/.env` in the user's configuration directory. For a
//! hook from that last file alone. No file of the working directory counts: a
//! repository's author wrote it. The only room that reads the environment.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::SETTINGS;
use super::broken::{BadLine, BrokenFile, UnreadFile};
use super::line::pair;
use crate::child::process::MARK;
use crate::claude::mailbox::Mailbox;
use crate::text::{Lang, system};

/// Larger than any settings file a person writes.
const MAX_FILE: u64 = 1 << 20;
/// nod's own file, from the home directory.
const OWN_FILE: &str = ".config/nod/.env";
/// What decides whom the daemon obeys.
const WHOSE: [&str; 7] = [
    "FEISHU_APP_ID",
    "FEISHU_DOMAIN",
    "FEISHU_OWNER_ID",
    "FEISHU_APPROVERS",
    "FEISHU_WEBHOOK_URL",
    "NOD_BUS_URL",
    "NOD_BUS_PASS",
];
/// What Claude Code and nod itself tell a hook. A repository's settings can put
/// any variable beside them, so a hook takes no other; the locale chooses no
/// more than the language of its complaints.
const TOLD_TO_HOOKS: [&str; 5] = ["CLAUDE_PROJECT_DIR", PROCESS, MARK, SOCKET, TOKEN];
const PROCESS: &str = "CLAUDE_PID";
const SOCKET: &str = "CLAUDE_CODE_MESSAGING_SOCKET";
const TOKEN: &str = "CLAUDE_CODE_MESSAGING_TOKEN";

/// Where a value was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingOrigin {
    Environment,
    File(PathBuf),
}

/// `NOD_LANG` names a language nod does not speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownLang;

#[derive(Debug, Clone, Default)]
pub struct Sources {
    layers: Vec<(SettingOrigin, HashMap<String, String>)>,
    /// Files that exist and could not be read, with the reason.
    pub broken: Vec<BrokenFile>,
    /// nod's own file, where its path was given.
    own: Option<PathBuf>,
    /// The file that was named on the command line.
    pub(crate) named: Option<PathBuf>,
    pub home: Option<PathBuf>,
    config_home: Option<PathBuf>,
    pub state_home: Option<PathBuf>,
    pub runtime_dir: Option<PathBuf>,
    /// The language of the terminal, where there is one.
    locale: Option<Lang>,
}

impl Sources {
    /// One value and nothing else.
    pub(super) fn only(name: &str, value: &str) -> Self {
        let values = HashMap::from([(name.to_owned(), value.to_owned())]);
        Self {
            layers: vec![(SettingOrigin::Environment, values)],
            ..Self::default()
        }
    }

    /// What a command run by a person looks at.
    pub fn for_person() -> Self {
        let mut sources = Self::environment();
        if let Some(own) = sources.own_file() {
            sources.add_file(&own);
        }
        sources
    }

    /// The same with a file that the person named; the environment wins over
    /// it, and it over nod's own.
    pub fn with_file(mut self, path: &Path) -> Result<Self, BrokenFile> {
        let is_own = |own: PathBuf| is_same(path, &own);
        if self.own_file().is_some_and(is_own) {
            return Ok(self);
        }
        let file = File::open(path).and_then(|file| text_of(file, MAX_FILE + 1));
        let text =
            file.map_err(|why| BrokenFile::whole(path, UnreadFile::System(system::io(&why))))?;
        if text.len() as u64 > MAX_FILE {
            return Err(BrokenFile::whole(path, UnreadFile::TooLarge));
        }
        let own_layers = self.layers.split_off(1.min(self.layers.len()));
        self.add_lines(path, lines(&text));
        self.layers.extend(own_layers);
        self.named = Some(path.to_owned());
        Ok(self)
    }

    /// What is there without the file that was named: it counts for one run, so
    /// nothing of it may be written down.
    #[must_use]
    pub fn lasting(&self) -> Self {
        let mut lasting = self.clone();
        if let Some(named) = lasting.named.take() {
            lasting.broken.retain(|file| file.path != named);
            let named = SettingOrigin::File(named);
            lasting.layers.retain(|(origin, _)| *origin != named);
        }
        lasting
    }

    /// The setting by which the file that was named has the daemon obey somebody
    /// else than nod's own file does, where that one names anybody.
    pub fn obeys_another(&self) -> Option<&'static str> {
        let files = [self.named.clone()?, self.own_file()?].map(SettingOrigin::File);
        let [named, own] = files.map(|file| {
            let layer = self.layers.iter().find(|(origin, _)| *origin == file);
            layer.map(|(_, values)| values)
        });
        let value = |file: Option<&HashMap<String, String>>, name: &str| {
            let value = file?.get(name)?.trim().to_owned();
            Some(value).filter(|value| !value.is_empty())
        };
        let in_use = WHOSE.iter().any(|name| value(own, name).is_some());
        let differs =
            |name: &&&str| value(named, name).is_some_and(|named| Some(named) != value(own, name));
        WHOSE.iter().find(|name| in_use && differs(name)).copied()
    }

    /// What nod's own file alone would say with this value in it.
    #[must_use]
    pub(super) fn own_with(&self, name: &str, value: &str) -> Self {
        let own = self.own_file().map(SettingOrigin::File);
        let mut alone = self.clone();
        alone.layers.retain(|(at, _)| Some(at) == own.as_ref());
        let mut values = alone
            .layers
            .pop()
            .map(|(_, values)| values)
            .unwrap_or_default();
        values.insert(name.to_owned(), value.to_owned());
        alone.layers.extend(own.map(|own| (own, values)));
        alone
    }

    /// What a hook looks at: nod's own file, given by its path. The hook runs in
    /// a repository whose settings choose its variables, `HOME` too.
    pub fn for_hook(own: &Path) -> Self {
        let told = TOLD_TO_HOOKS.into_iter().filter_map(|name| {
            let value = std::env::var_os(name)?.into_string().ok()?;
            Some((name.to_owned(), value))
        });
        let home = own.ends_with(OWN_FILE).then(|| own.ancestors().nth(3));
        let home = home.flatten().map(Path::to_owned);
        let mut sources = Self {
            layers: vec![(SettingOrigin::Environment, told.collect())],
            own: Some(own.to_owned()),
            state_home: match home {
                Some(_) => None,
                None => own.parent().map(Path::to_owned),
            },
            home,
            locale: Some(of_terminal()),
            ..Self::default()
        };
        sources.add_file(own);
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
        sources.config_home = dir("XDG_CONFIG_HOME");
        sources.state_home = dir("XDG_STATE_HOME");
        sources.runtime_dir = dir("XDG_RUNTIME_DIR");
        let variables = std::env::vars_os().filter_map(|(name, value): (OsString, OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        let variables: HashMap<String, String> = variables.collect();
        sources.locale = Some(of_terminal());
        sources.layers.push((SettingOrigin::Environment, variables));
        sources
    }

    /// `nod/.env` in the user's configuration directory.
    pub fn own_file(&self) -> Option<PathBuf> {
        if self.own.is_some() {
            return self.own.clone();
        }
        match &self.config_home {
            Some(config) => Some(config.join("nod").join(".env")),
            None => Some(self.home.as_ref()?.join(OWN_FILE)),
        }
    }

    /// Whether a `.env` of the working directory names settings of nod's and is
    /// left alone. Its values are not looked at.
    pub fn leaves_a_file_here(&self) -> bool {
        let here = Path::new(".env");
        let known = [self.own_file(), self.named.clone()];
        if known.iter().flatten().any(|file| is_same(here, file)) {
            return false;
        }
        // Whatever the repository put there, opening it must not wait.
        let mut open = File::options();
        let open = open
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        let Ok(file) = open.open(here) else {
            return false;
        };
        let is_file = file.metadata().is_ok_and(|is| is.is_file());
        is_file && text_of(file, MAX_FILE).is_ok_and(|text| names_a_setting(&text))
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
                let not_text = io::ErrorKind::InvalidData.into();
                UnreadFile::System(system::io(&not_text))
            }),
            Some(Err(why)) => Err(why),
        };
        match text {
            Ok(text) => self.add_lines(path, lines(&text)),
            Err(why) => self.broken.push(BrokenFile::whole(path, why)),
        }
    }

    /// What could be read still counts where a broken file does not stop a
    /// command: else it would look for nod's things somewhere else.
    fn add_lines(&mut self, path: &Path, read: EnvLines) {
        self.layers
            .push((SettingOrigin::File(path.to_owned()), read.values));
        if let Some((first, _)) = read.bad.first() {
            let hidden = read.bad.iter().filter_map(|(_, setting)| *setting);
            self.broken.push(BrokenFile {
                hidden: hidden.collect(),
                ..BrokenFile::whole(path, first.clone().into())
            });
        }
    }

    /// The value that counts and where it stands; an empty one is no value.
    pub fn get(&self, name: &str) -> Option<(&str, &SettingOrigin)> {
        self.layers
            .iter()
            .filter_map(|(origin, values)| Some((values.get(name)?.trim(), origin)))
            .find(|(value, _)| !value.is_empty())
    }

    /// Every name that has a value, and where.
    pub(super) fn names(&self) -> impl Iterator<Item = (&str, &SettingOrigin)> {
        self.layers.iter().flat_map(|(origin, values)| {
            let set = values.iter().filter(|(_, value)| !value.trim().is_empty());
            set.map(move |(name, _)| (name.as_str(), origin))
        })
    }

    /// The file a value stands in, if others than its owner may read it or it
    /// is somebody else's.
    pub fn exposed(&self, name: &str) -> Option<PathBuf> {
        let (_, SettingOrigin::File(path)) = self.get(name)? else {
            return None;
        };
        let is = std::fs::metadata(path).ok()?;
        let own = rustix::process::geteuid().as_raw();
        (is.mode() & 0o077 != 0 || is.uid() != own).then(|| path.clone())
    }

    /// Whether this process belongs to a session that nod itself drives: there
    /// nod is asked by the session, and its hooks stay silent.
    pub fn is_own_session(&self) -> bool {
        self.get(MARK).is_some()
    }

    /// The directory Claude Code was started in, as it tells its hooks.
    pub fn claude_project(&self) -> Option<PathBuf> {
        let (path, _) = self.get("CLAUDE_PROJECT_DIR")?;
        Some(PathBuf::from(path))
    }

    /// The process of Claude Code that a hook belongs to, as it tells its hooks.
    pub fn claude_process(&self) -> Option<u32> {
        let (pid, _) = self.get(PROCESS)?;
        pid.parse().ok()
    }

    /// Where the session takes words, as Claude Code tells its hooks. The daemon
    /// believes it only as far as the session's own status file agrees.
    pub fn mailbox(&self) -> Option<Mailbox> {
        let ((socket, _), (token, _)) = (self.get(SOCKET)?, self.get(TOKEN)?);
        Mailbox::new(socket, token)
    }

    /// The working directory, for what a person asks from there.
    pub fn here(&self) -> PathBuf {
        std::env::current_dir()
            .ok()
            .or_else(|| self.home.clone())
            .unwrap_or_default()
    }

    /// Whether a terminal may show colour; a value of `NO_COLOR` means no.
    pub fn wants_colour(&self) -> bool {
        let is_dumb = matches!(self.get("TERM"), None | Some(("dumb", _)));
        self.get("NO_COLOR").is_none() && !is_dumb
    }

    /// The language of the terminal, where a wrong one shall not stop a
    /// command. What Feishu shows is in `Config::lang`.
    pub fn lang(&self) -> Lang {
        self.knows_lang().unwrap_or_default()
    }

    /// The language of what is not said to the terminal.
    pub fn lang_of_feishu(&self) -> Lang {
        match self.get("NOD_LANG") {
            Some(("en", _)) => Lang::En,
            _ => Lang::default(),
        }
    }

    /// The language, or that it is one nod does not speak.
    pub fn knows_lang(&self) -> Result<Lang, UnknownLang> {
        match self.get("NOD_LANG") {
            Some(("en", _)) => Ok(Lang::En),
            Some(("zh", _)) => Ok(Lang::Zh),
            None => Ok(self.locale.unwrap_or_default()),
            Some(_) => Err(UnknownLang),
        }
    }

    #[cfg(test)]
    pub(crate) fn of(values: &[(&str, &str)]) -> Self {
        Self {
            layers: vec![(
                SettingOrigin::Environment,
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

/// The language of the terminal, where nobody chose one for nod.
pub fn of_terminal() -> Lang {
    let names = ["LC_ALL", "LC_MESSAGES", "LANG"].into_iter();
    let said: Vec<String> = names
        .filter_map(|name| std::env::var_os(name)?.into_string().ok())
        .collect();
    Lang::of_locale(said.iter().map(String::as_str))
}

/// Where the user's account has nod's own file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountFile {
    File(PathBuf),
    /// `HOME` is set, and would be believed instead of the system's records.
    Hidden,
    Unknown,
}

/// For a hook whose line names no file.
pub fn account() -> AccountFile {
    if std::env::var_os("HOME").is_some() {
        return AccountFile::Hidden;
    }
    match std::env::home_dir().filter(|home| home.is_absolute()) {
        Some(home) => AccountFile::File(home.join(OWN_FILE)),
        None => AccountFile::Unknown,
    }
}

/// A settings file's text, line by line.
#[derive(Default)]
struct EnvLines {
    values: HashMap<String, String>,
    /// Lines that can't be read, and the setting each was meant to set.
    bad: Vec<(BadLine, Option<&'static str>)>,
}

/// `NAME=value` lines; `export`, quotes, comments and blank lines as people
/// write them. The error names the line and never its content.
pub(crate) fn parse(text: &str) -> Result<HashMap<String, String>, BadLine> {
    let EnvLines { values, bad } = lines(text);
    match bad.into_iter().next() {
        Some((first, _)) => Err(first),
        None => Ok(values),
    }
}

/// The bytes of a file, if there is one.
fn content(path: &Path) -> Option<Result<Vec<u8>, UnreadFile>> {
    match std::fs::metadata(path) {
        Err(_) => None,
        Ok(meta) if !meta.is_file() => None,
        Ok(meta) if meta.len() > MAX_FILE => Some(Err(UnreadFile::TooLarge)),
        Ok(_) => Some(std::fs::read(path).map_err(|why| UnreadFile::System(system::io(&why)))),
    }
}

fn lines(text: &str) -> EnvLines {
    let mut read = EnvLines::default();
    let text = text.trim_start_matches('\u{feff}');
    for (at, line) in text.lines().enumerate() {
        read.take(at, line);
    }
    read
}

/// At most so many bytes of a file.
fn text_of(file: File, most: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn is_same(a: &Path, b: &Path) -> bool {
    let id = |path| {
        let is = std::fs::metadata(path).ok()?;
        Some((is.dev(), is.ino()))
    };
    id(a).is_some_and(|a| id(b) == Some(a))
}

fn names_a_setting(text: &str) -> bool {
    let names = text.lines().filter_map(|line| {
        let line = line.trim_start_matches('\u{feff}').trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        line.split_once('=').map(|(name, _)| name.trim())
    });
    names
        .into_iter()
        .any(|name| SETTINGS.iter().any(|setting| setting.name == name))
}

impl EnvLines {
    fn take(&mut self, at: usize, line: &str) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let fault = match pair(line) {
            Ok((name, value)) => {
                self.values.insert(name.to_owned(), value);
                return;
            }
            Err(fault) => fault,
        };
        let first = line.split(|c: char| c == '=' || c.is_whitespace()).next();
        let mut settings = SETTINGS.iter().map(|setting| setting.name);
        let meant = settings.find(|name| Some(*name) == first);
        let number = at + 1;
        self.bad.push((BadLine { number, fault }, meant));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terminals_locale_chooses_a_language_and_nothing_means_english() {
        for (names, lang) in [
            (&["zh_CN.UTF-8"][..], Lang::Zh),
            (&["", "zh_TW"], Lang::Zh),
            (&["C", "zh_CN.UTF-8"], Lang::En),
            (&["de_DE.UTF-8"], Lang::En),
            (&[], Lang::En),
        ] {
            assert_eq!(Lang::of_locale(names.iter().copied()), lang, "{names:?}");
        }
        let hook = Sources::of(&[]);
        assert_eq!(hook.lang(), Lang::Zh, "without a terminal it is Feishu's");
        let chosen = Sources {
            locale: Some(Lang::Zh),
            ..Sources::of(&[("NOD_LANG", "en")])
        };
        assert_eq!(chosen.lang(), Lang::En);
    }

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
    fn a_file_is_known_as_nods_by_its_names_alone() {
        for (text, is_ours) in [
            ("A=1\nFEISHU_DOMAIN=x\n", true),
            ("\u{feff}export NOD_LANG = en", true),
            ("# NOD_LANG=en\nMY_NOD_LANG=en\n", false),
            ("NOD_LANG en\n", false),
            ("", false),
        ] {
            assert_eq!(names_a_setting(text), is_ours, "{text}");
        }
    }

    #[test]
    fn a_file_that_was_named_stands_between_and_does_not_last() {
        let dir = tempfile::tempdir().unwrap();
        let [own, named] = ["own", "named"].map(|name| dir.path().join(name));
        std::fs::write(&own, "A=own\nB=own\nC=own\n").unwrap();
        std::fs::write(&named, "A=named\nB=named\ngarbage\n").unwrap();
        let mut sources = Sources::of(&[("A", "env")]);
        sources.own = Some(own.clone());
        sources.add_file(&own);
        let with = sources.clone().with_file(&named).unwrap();
        let value = |sources: &Sources, name| sources.get(name).unwrap().0.to_owned();
        assert_eq!(
            ["A", "B", "C"].map(|name| value(&with, name)),
            ["env", "named", "own"]
        );
        assert_eq!(with.broken.len(), 1);
        let lasting = with.lasting();
        assert_eq!(
            ["A", "B", "C"].map(|name| value(&lasting, name)),
            ["env", "own", "own"]
        );
        assert!(lasting.broken.is_empty());
        let same = sources.clone().with_file(&own).unwrap();
        assert_eq!(same.lasting().layers.len(), 2);
        assert!(sources.with_file(&dir.path().join("absent")).is_err());
    }

    #[test]
    fn a_hook_finds_its_home_by_the_path_of_its_file() {
        for (path, home, state_home) in [
            ("/home/lin/.config/nod/.env", Some("/home/lin"), None),
            ("/xdg/nod/.env", None, Some("/xdg/nod")),
        ] {
            let sources = Sources::for_hook(Path::new(path));
            assert_eq!(sources.home, home.map(PathBuf::from));
            assert_eq!(sources.state_home, state_home.map(PathBuf::from));
            assert_eq!(sources.own_file(), Some(PathBuf::from(path)));
            assert_eq!(sources.get("PATH"), None);
        }
    }

    #[test]
    fn earlier_layers_win_and_empty_values_do_not_count() {
        let mut sources = Sources::of(&[("A", ""), ("B", "env")]);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "A=file\nB=file\n").unwrap();
        sources.add_file(file.path());
        assert_eq!(sources.get("B"), Some(("env", &SettingOrigin::Environment)));
        let (value, origin) = sources.get("A").unwrap();
        assert_eq!(value, "file");
        assert_eq!(*origin, SettingOrigin::File(file.path().to_owned()));
        assert_eq!(sources.get("C"), None);
    }
}
