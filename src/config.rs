//! nod's settings as types. Every wrong one is reported at once, by name, with
//! what it is and what is accepted; a secret's content never.

mod paths;
mod sessions;
mod sources;
mod table;

pub use broken::{BadLine, BrokenFile, LineFault, UnreadFile};
pub use paths::Paths;
pub use sessions::SessionSettings;
pub(crate) use sources::parse as parse_env;
pub use sources::{AccountFile, SettingOrigin, Sources, account, of_terminal};
pub use table::{Fallback, SETTINGS, Setting, env_example, readme_table, readme_table_zh};

mod apart;
mod broken;
mod bus;
mod callback;
pub(crate) mod line;
mod problem;
mod shown;
mod tried;
mod unknown;

pub use apart::apart;
pub use bus::BusSettings;
pub use callback::{Callback, CustomBotSettings, SendMode};
pub use problem::{Problems, SettingProblem};
pub use shown::{BadValue, ShownSetting, shown};
pub(crate) use tried::{accepts, tried};
pub(crate) use unknown::meant;
pub use unknown::{UnknownName, unknown};

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::feishu::domain::Domain;
use crate::feishu::messages::Previews;
use crate::feishu::outbound::Proxies;
use crate::feishu::secret::Secret;
use crate::hook::paths::{MAX_PATH, SocketHints, SocketPaths, SocketPlaces};
use crate::ids::{ChatId, UserId};
use crate::text::Lang;

#[derive(Debug, Clone)]
pub struct Config {
    pub app_id: Option<String>,
    pub app_secret: Option<Secret>,
    pub domain: Domain,
    pub owner: Option<UserId>,
    pub approvers: Vec<UserId>,
    pub chat: Option<ChatId>,
    pub send_mode: SendMode,
    /// Set in webhook mode only.
    pub webhook: Option<CustomBotSettings>,
    pub callback: Callback,
    pub sockets: SocketPaths,
    pub request_timeout: Duration,
    pub notify_delay: Duration,
    /// Requests of one session that wait with a card of their own.
    pub cards_at_once: u32,
    /// `None`: never tell.
    pub stop_notice_after: Option<Duration>,
    pub chat_rate: u32,
    pub state_dir: PathBuf,
    /// Who runs this, for the cards.
    pub user: String,
    /// What the machine is called where that is not its host name.
    pub machine_name: Option<String>,
    pub lang: Lang,
    pub previews: Previews,
    pub log: Option<tracing::Level>,
    pub ca_file: Option<PathBuf>,
    pub proxies: Proxies,
    /// The file the app's secret stands in, if other users can read it and it
    /// is not nod's own: a warning, because it may not be the user's to change.
    pub exposed_file: Option<PathBuf>,
    /// As above, and nod's own: the app's credentials are not used then.
    exposed_own_file: Option<PathBuf>,
    pub sessions: SessionSettings,
    /// Where Codex may keep its daemon's socket.
    pub codex_homes: Vec<PathBuf>,
    /// Of a team's machine or gateway.
    pub bus: BusSettings,
}

impl Config {
    pub fn load(sources: &Sources) -> Result<Self, Problems> {
        match Self::read(sources) {
            (config, problems) if problems.0.is_empty() => Ok(config),
            (_, problems) => Err(problems),
        }
    }

    /// The settings with the default in place of each one that can't be used,
    /// and what is wrong with those. For commands that look, set up or take
    /// back, which judge the problems themselves; a daemon runs by `load` alone.
    pub fn read(sources: &Sources) -> (Self, Problems) {
        let mut read = SettingsReader {
            sources,
            problems: sources
                .broken
                .iter()
                .cloned()
                .map(SettingProblem::BrokenFile)
                .collect(),
        };
        let (exposed_own_file, exposed_file) = match sources.exposed("FEISHU_APP_SECRET") {
            Some(file) if sources.own_file().as_ref() == Some(&file) => (Some(file), None),
            other => (None, other),
        };
        let state_dir = read.state_dir();
        let config = Self {
            app_id: read.optional("FEISHU_APP_ID", app_id),
            app_secret: read.optional("FEISHU_APP_SECRET", app_secret),
            domain: read
                .optional("FEISHU_DOMAIN", |text| {
                    Domain::parse(text).map_err(str::to_owned)
                })
                .unwrap_or_default(),
            owner: read.optional("FEISHU_OWNER_ID", user),
            approvers: read
                .optional("FEISHU_APPROVERS", |text| listed(text, usize::MAX, user))
                .unwrap_or_default(),
            chat: read.optional("FEISHU_CHAT_ID", chat),
            send_mode: read.send_mode(),
            webhook: read.webhook(),
            callback: read.callback(),
            sockets: read.sockets(state_dir.as_ref()),
            request_timeout: read.seconds("PERMISSION_REQUEST_TIMEOUT", 1, 86_400),
            notify_delay: read.seconds("PERMISSION_NOTIFY_DELAY", 0, 3_600),
            cards_at_once: read.number("NOD_CARDS_AT_ONCE", 1, 100),
            stop_notice_after: read.stop_notice(),
            chat_rate: read.number("NOD_CHAT_RATE", 1, 1_000),
            user: read.user(),
            machine_name: read.optional("NOD_MACHINE_NAME", machine_name),
            lang: read.optional("NOD_LANG", lang).unwrap_or_default(),
            previews: read.previews(),
            log: read.log(),
            ca_file: read.optional("NOD_CA_FILE", |text| Ok(PathBuf::from(text))),
            proxies: read.proxies(),
            exposed_file,
            exposed_own_file,
            sessions: read.sessions(),
            codex_homes: read.codex_homes(),
            bus: read.bus(state_dir.as_deref().unwrap_or(Path::new(""))),
            state_dir: state_dir.unwrap_or_default(),
        };
        (config, Problems(read.problems))
    }

    /// The app's credentials, which only some commands need.
    pub fn app(&self) -> Result<(&str, &Secret), Problems> {
        if let Some(file) = &self.exposed_own_file {
            return Err(SettingProblem::Exposed(file.clone()).into());
        }
        match (&self.app_id, &self.app_secret) {
            (Some(id), Some(secret)) => Ok((id, secret)),
            (id, secret) => {
                let missing = [
                    ("FEISHU_APP_ID", id.is_none()),
                    ("FEISHU_APP_SECRET", secret.is_none()),
                ];
                let missing = missing.into_iter().filter(|(_, missing)| *missing);
                let problems = missing.map(|(name, _)| SettingProblem::missing(name));
                Err(Problems(problems.collect()))
            }
        }
    }
}

/// What `nod hook` needs and nothing more: a wrong setting elsewhere must not
/// keep Claude Code waiting.
#[derive(Debug, Clone)]
pub struct HookConfig {
    /// Where the daemon may listen, the likeliest first.
    pub sockets: Vec<PathBuf>,
    pub request_timeout: Duration,
    pub send_mode: SendMode,
}

impl HookConfig {
    /// `recorded` is the socket that the set-up wrote into the hook's line.
    pub fn load(sources: &Sources, recorded: Option<&Path>) -> Result<Self, Problems> {
        let mut read = SettingsReader {
            sources,
            problems: Vec::new(),
        };
        let config = Self {
            request_timeout: read.seconds("PERMISSION_REQUEST_TIMEOUT", 1, 86_400),
            sockets: read.hook_sockets(recorded),
            send_mode: read.send_mode(),
        };
        if read.problems.is_empty() {
            Ok(config)
        } else {
            Err(Problems(read.problems))
        }
    }
}

struct SettingsReader<'a> {
    sources: &'a Sources,
    problems: Vec<SettingProblem>,
}

impl SettingsReader<'_> {
    fn optional<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let (text, _) = self.sources.get(name)?;
        match parse(text) {
            Ok(value) => Some(value),
            Err(because) => {
                self.wrong(name, text, &because);
                None
            }
        }
    }

    fn wrong(&mut self, name: &'static str, text: &str, because: &str) {
        self.problems.push(SettingProblem::Wrong {
            name,
            seen: BadValue::of(setting(name), text),
            because: if because.is_empty() {
                String::new()
            } else {
                format!(": {because}")
            },
            accepts: setting(name).accepts,
        });
    }

    fn number(&mut self, name: &'static str, least: u32, most: u32) -> u32 {
        let Fallback::Value(default) = setting(name).default else {
            return least;
        };
        let fallback = default.parse().unwrap_or(least);
        self.optional(name, |text| {
            text.parse()
                .ok()
                .filter(|n| (least..=most).contains(n))
                .ok_or_else(String::new)
        })
        .unwrap_or(fallback)
    }

    fn seconds(&mut self, name: &'static str, least: u32, most: u32) -> Duration {
        Duration::from_secs(u64::from(self.number(name, least, most)))
    }

    fn stop_notice(&mut self) -> Option<Duration> {
        let name = "NOD_NOTIFY_STOP_AFTER";
        match self.sources.get(name) {
            Some(("off", _)) => None,
            _ => Some(self.seconds(name, 0, 86_400)),
        }
    }

    fn previews(&mut self) -> Previews {
        let known = [("full", Previews::Full), ("state", Previews::State)];
        self.optional("NOD_PREVIEWS", |text| one_of(text, &known))
            .unwrap_or(Previews::Full)
    }

    fn log(&mut self) -> Option<tracing::Level> {
        let levels = [
            ("off", None),
            ("error", Some(tracing::Level::ERROR)),
            ("warn", Some(tracing::Level::WARN)),
            ("info", Some(tracing::Level::INFO)),
            ("debug", Some(tracing::Level::DEBUG)),
            ("trace", Some(tracing::Level::TRACE)),
        ];
        self.optional("NOD_LOG", |text| one_of(text, &levels))
            .unwrap_or(Some(tracing::Level::INFO))
    }

    fn proxies(&self) -> Proxies {
        let either = |upper: &str, lower: &str| {
            let found = self.sources.get(upper).or_else(|| self.sources.get(lower));
            found.map(|(value, _)| value.to_owned())
        };
        Proxies {
            https: either("HTTPS_PROXY", "https_proxy"),
            http: either("HTTP_PROXY", "http_proxy"),
            all: either("ALL_PROXY", "all_proxy"),
            no_proxy: either("NO_PROXY", "no_proxy"),
        }
    }

    fn state_dir(&mut self) -> Option<PathBuf> {
        if self.sources.get("NOD_STATE_DIR").is_some() {
            return self.optional("NOD_STATE_DIR", absolute);
        }
        let found = self.usual_state();
        if found.is_none() {
            self.problems.push(SettingProblem::NoHome);
        }
        found
    }

    /// Where the state directory is when nobody chose one.
    fn usual_state(&self) -> Option<PathBuf> {
        let home = || Some(self.sources.home.as_ref()?.join(".local/state"));
        let found = self.sources.state_home.clone().or_else(home);
        found.map(|dir| dir.join("nod"))
    }

    fn user(&self) -> String {
        let told = self.sources.get("USER").or(self.sources.get("LOGNAME"));
        let home = self.sources.home.as_ref().and_then(|home| home.file_name());
        match (told, home) {
            (Some((name, _)), _) => name.to_owned(),
            (None, Some(home)) => home.to_string_lossy().into_owned(),
            (None, None) => format!("uid {}", rustix::process::geteuid().as_raw()),
        }
    }

    fn hook_sockets(&mut self, recorded: Option<&Path>) -> Vec<PathBuf> {
        let chosen = self.optional("PERMISSION_SOCKET_PATH", socket_path);
        let state_dir = self.optional("NOD_STATE_DIR", absolute);
        SocketHints {
            chosen: chosen.as_deref(),
            state_dir: state_dir.as_deref(),
            recorded,
            usual_state: self.usual_state().as_deref(),
            uid: rustix::process::geteuid().as_raw(),
        }
        .candidates()
    }

    /// A state directory chosen by hand is a nod of its own, so its socket
    /// lives there, and neither the user's shared runtime directory nor the
    /// old clients' path is touched.
    fn sockets(&mut self, state_dir: Option<&PathBuf>) -> SocketPaths {
        let apart = self.sources.get("NOD_STATE_DIR").is_some();
        let chosen = self.optional("PERMISSION_SOCKET_PATH", socket_path);
        let runtime_dir = self.sources.runtime_dir.as_deref().filter(|_| !apart);
        let nowhere = PathBuf::new();
        let mut paths = SocketPlaces {
            runtime_dir,
            state_dir: state_dir.unwrap_or(&nowhere),
            chosen: chosen.as_deref(),
        }
        .socket_paths();
        if apart {
            paths.old_clients = None;
        }
        paths
    }
}

fn setting(name: &str) -> &'static Setting {
    SETTINGS
        .iter()
        .find(|setting| setting.name == name)
        .expect("every setting read is in the table")
}

pub(crate) fn is_app_id(text: &str) -> bool {
    app_id(text).is_ok()
}

pub(crate) fn is_app_secret(text: &str) -> bool {
    app_secret(text).is_ok()
}

fn app_id(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("cli_").unwrap_or_default();
    let fits = (8..=64).contains(&rest.len()) && rest.bytes().all(|b| b.is_ascii_alphanumeric());
    fits.then(|| text.to_owned()).ok_or_else(String::new)
}

fn app_secret(text: &str) -> Result<Secret, String> {
    let fits = (8..=128).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
    fits.then(|| Secret::new(text)).ok_or_else(String::new)
}

fn user(text: &str) -> Result<UserId, String> {
    UserId::parse(text).map_err(|e| e.problem.to_owned())
}

fn chat(text: &str) -> Result<ChatId, String> {
    if !text.starts_with("oc_") {
        return Err(String::new());
    }
    ChatId::parse(text).map_err(|e| e.problem.to_owned())
}

fn machine_name(text: &str) -> Result<String, String> {
    let fits = (1..=64).contains(&text.chars().count()) && !text.contains(char::is_control);
    fits.then(|| text.to_owned()).ok_or_else(String::new)
}

fn lang(text: &str) -> Result<Lang, String> {
    one_of(text, &[("zh", Lang::Zh), ("en", Lang::En)])
}

fn truth(text: &str) -> Result<bool, String> {
    one_of(text, &[("true", true), ("false", false)])
}

/// What one of these words stands for.
fn one_of<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T, String> {
    let found = words.iter().find(|(word, _)| *word == text);
    found.map(|(_, meant)| *meant).ok_or_else(String::new)
}

/// What stands between commas, at most so many.
fn listed<T>(
    text: &str,
    most: usize,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let parts = text.split(',').map(str::trim);
    let parts = parts.filter(|part| !part.is_empty());
    let all = parts.map(read).collect::<Result<Vec<_>, _>>()?;
    if all.len() > most {
        return Err(format!("it names more than {most}"));
    }
    Ok(all)
}

fn absolute(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.is_absolute() {
        Ok(path)
    } else {
        Err("it does not start with `/`".to_owned())
    }
}

fn socket_path(text: &str) -> Result<PathBuf, String> {
    if text.len() > MAX_PATH {
        return Err(format!("it is {} bytes long", text.len()));
    }
    absolute(text)
}

#[cfg(test)]
mod tests;
