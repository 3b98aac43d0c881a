//! nod's settings as types. Every wrong one is reported at once, by name, with
//! what it is and what is accepted; a secret's content never.

mod paths;
mod sessions;
mod sources;
mod table;

pub use paths::Paths;
pub use sessions::SessionSettings;
pub(crate) use sources::parse as parse_env;
pub use sources::{BadLine, BrokenFile, LineFault, Origin, Sources, UnknownLang, Unread};
pub use table::{SETTINGS, Setting, env_example, readme_table, readme_table_zh};

mod callback;
mod mixed;
mod shown;
mod unknown;

pub use callback::{Callback, SendMode, Webhook};
pub use mixed::{Mixed, mixed};
pub use shown::{Seen, Shown, shown};
pub use unknown::{Unknown, unknown};

use std::path::PathBuf;
use std::time::Duration;

use crate::feishu::domain::Domain;
use crate::feishu::outbound::Proxies;
use crate::feishu::secret::Secret;
use crate::hook::paths::{MAX_PATH, Places, SocketPaths};
use crate::ids::{ChatId, UserId};
use crate::wording::Lang;

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
    pub webhook: Option<Webhook>,
    pub callback: Callback,
    pub sockets: SocketPaths,
    pub request_timeout: Duration,
    pub notify_delay: Duration,
    /// `None`: never tell.
    pub stop_notice_after: Option<Duration>,
    pub chat_rate: u32,
    pub state_dir: PathBuf,
    /// Who runs this, for the cards.
    pub user: String,
    pub lang: Lang,
    pub log: Option<tracing::Level>,
    pub ca_file: Option<PathBuf>,
    pub proxies: Proxies,
    /// The file the app's secret stands in, if other users can read it and it
    /// is not nod's own: a warning, because it may not be the user's to change.
    pub exposed_file: Option<PathBuf>,
    /// As above, and nod's own: the app's credentials are not used then.
    exposed_own_file: Option<PathBuf>,
    pub sessions: SessionSettings,
}

/// One setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("`{name}` is {seen}{because}; accepted: {accepts}")]
    Wrong {
        name: &'static str,
        seen: Seen,
        because: String,
        accepts: &'static str,
    },
    #[error("`{name}` is not set; accepted: {accepts}")]
    Missing {
        name: &'static str,
        accepts: &'static str,
    },
    #[error("the settings file {0}")]
    BrokenFile(BrokenFile),
    #[error("other users can read `{}`, which holds the app's secret: `chmod 600` it", .0.display())]
    Exposed(PathBuf),
    #[error("no home directory: set `HOME`, or `NOD_STATE_DIR`")]
    NoHome,
}

/// All that is wrong, one line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    /// Whether this setting has a value that can't be used.
    pub(crate) fn name(&self, wanted: &str) -> bool {
        let is_it = |one: &Problem| matches!(one, Problem::Wrong { name, .. } if *name == wanted);
        self.0.iter().any(is_it)
    }
}

impl std::fmt::Display for Problems {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, problem) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

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
        let mut read = Reader {
            sources,
            problems: sources
                .broken
                .iter()
                .cloned()
                .map(Problem::BrokenFile)
                .collect(),
        };
        let (exposed_own_file, exposed_file) = match sources.exposed("FEISHU_APP_SECRET") {
            Some(file) if sources.own_file().as_ref() == Some(&file) => (Some(file), None),
            other => (None, other),
        };
        let config = Self {
            app_id: read.optional("FEISHU_APP_ID", app_id),
            app_secret: read.optional("FEISHU_APP_SECRET", app_secret),
            domain: read
                .optional("FEISHU_DOMAIN", |text| {
                    Domain::parse(text).map_err(str::to_owned)
                })
                .unwrap_or_default(),
            owner: read.optional("FEISHU_OWNER_ID", user),
            approvers: read.optional("FEISHU_APPROVERS", users).unwrap_or_default(),
            chat: read.optional("FEISHU_CHAT_ID", chat),
            send_mode: read.send_mode(),
            webhook: read.webhook(),
            callback: read.callback(),
            sockets: SocketPaths {
                own: PathBuf::new(),
                private: true,
                old_clients: None,
            },
            request_timeout: read.seconds("PERMISSION_REQUEST_TIMEOUT", 1, 86_400),
            notify_delay: read.seconds("PERMISSION_NOTIFY_DELAY", 0, 3_600),
            stop_notice_after: read.stop_notice(),
            chat_rate: read.number("NOD_CHAT_RATE", 1, 1_000),
            state_dir: PathBuf::new(),
            user: sources
                .get("USER")
                .or_else(|| sources.get("LOGNAME"))
                .map_or_else(
                    || format!("uid {}", rustix::process::geteuid().as_raw()),
                    |(name, _)| name.to_owned(),
                ),
            lang: read.optional("NOD_LANG", lang).unwrap_or_default(),
            log: read.log(),
            ca_file: read.optional("NOD_CA_FILE", |text| Ok(PathBuf::from(text))),
            proxies: read.proxies(),
            exposed_file,
            exposed_own_file,
            sessions: read.sessions(),
        };
        let state_dir = read.state_dir();
        let sockets = read.sockets(state_dir.as_ref());
        let config = Self {
            state_dir: state_dir.unwrap_or_default(),
            sockets,
            ..config
        };
        (config, Problems(read.problems))
    }

    /// The app's credentials, which only some commands need.
    pub fn app(&self) -> Result<(&str, &Secret), Problems> {
        if let Some(file) = &self.exposed_own_file {
            return Err(Problems(vec![Problem::Exposed(file.clone())]));
        }
        match (&self.app_id, &self.app_secret) {
            (Some(id), Some(secret)) => Ok((id, secret)),
            (id, secret) => {
                let missing = [
                    ("FEISHU_APP_ID", id.is_none()),
                    ("FEISHU_APP_SECRET", secret.is_none()),
                ];
                Err(Problems(
                    missing
                        .into_iter()
                        .filter(|(_, missing)| *missing)
                        .map(|(name, _)| Problem::Missing {
                            name,
                            accepts: setting(name).accepts,
                        })
                        .collect(),
                ))
            }
        }
    }
}

/// What `nod hook` needs and nothing more: a wrong setting elsewhere must not
/// keep Claude Code waiting.
#[derive(Debug, Clone)]
pub struct HookConfig {
    pub sockets: SocketPaths,
    pub request_timeout: Duration,
    pub send_mode: SendMode,
}

impl HookConfig {
    pub fn load(sources: &Sources) -> Result<Self, Problems> {
        let mut read = Reader {
            sources,
            problems: Vec::new(),
        };
        let state_dir = read.state_dir();
        let config = Self {
            request_timeout: read.seconds("PERMISSION_REQUEST_TIMEOUT", 1, 86_400),
            sockets: read.sockets(state_dir.as_ref()),
            send_mode: read.send_mode(),
        };
        if read.problems.is_empty() {
            Ok(config)
        } else {
            Err(Problems(read.problems))
        }
    }
}

struct Reader<'a> {
    sources: &'a Sources,
    problems: Vec<Problem>,
}

impl Reader<'_> {
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
        self.problems.push(Problem::Wrong {
            name,
            seen: Seen::of(setting(name), text),
            because: if because.is_empty() {
                String::new()
            } else {
                format!(": {because}")
            },
            accepts: setting(name).accepts,
        });
    }

    fn number(&mut self, name: &'static str, least: u32, most: u32) -> u32 {
        let table::Default::Value(default) = setting(name).default else {
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

    fn log(&mut self) -> Option<tracing::Level> {
        self.optional("NOD_LOG", |text| {
            Ok(match text {
                "off" => None,
                "error" => Some(tracing::Level::ERROR),
                "warn" => Some(tracing::Level::WARN),
                "info" => Some(tracing::Level::INFO),
                "debug" => Some(tracing::Level::DEBUG),
                "trace" => Some(tracing::Level::TRACE),
                _ => return Err(String::new()),
            })
        })
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
        let home = || Some(self.sources.home.as_ref()?.join(".local/state"));
        let found = self.sources.state_home.clone().or_else(home);
        if found.is_none() {
            self.problems.push(Problem::NoHome);
        }
        found.map(|dir| dir.join("nod"))
    }

    /// A state directory chosen by hand is a nod of its own, so its socket
    /// lives there, and neither the user's shared runtime directory nor the
    /// old clients' path is touched.
    fn sockets(&mut self, state_dir: Option<&PathBuf>) -> SocketPaths {
        let apart = self.sources.get("NOD_STATE_DIR").is_some();
        let chosen = self.optional("PERMISSION_SOCKET_PATH", socket_path);
        let runtime_dir = self.sources.runtime_dir.as_deref().filter(|_| !apart);
        let nowhere = PathBuf::new();
        let mut paths = Places {
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

/// Whether nod could run with this value of a setting.
pub(crate) fn accepts(name: &str, value: &str) -> bool {
    let (_, problems) = Config::read(&Sources::only(name, value));
    !problems.name(name)
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
    if fits {
        Ok(text.to_owned())
    } else {
        Err(String::new())
    }
}

fn app_secret(text: &str) -> Result<Secret, String> {
    let fits = (8..=128).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
    if fits {
        Ok(Secret::new(text))
    } else {
        Err(String::new())
    }
}

fn user(text: &str) -> Result<UserId, String> {
    UserId::parse(text).map_err(|e| e.problem.to_owned())
}

fn users(text: &str) -> Result<Vec<UserId>, String> {
    text.split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(user)
        .collect()
}

fn chat(text: &str) -> Result<ChatId, String> {
    if !text.starts_with("oc_") {
        return Err(String::new());
    }
    ChatId::parse(text).map_err(|e| e.problem.to_owned())
}

fn lang(text: &str) -> Result<Lang, String> {
    match text {
        "zh" => Ok(Lang::Zh),
        "en" => Ok(Lang::En),
        _ => Err(String::new()),
    }
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
