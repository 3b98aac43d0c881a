//! Looks at this machine and asks Feishu, every wait limited. Judges nothing
//! and changes nothing.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::super::wording::{Words, place};
use super::super::{hook, service};
use super::bus::MemberReport;
use super::codex::{self, CodexReport};
use super::feishu::{AppReport, Remote, Sharing};
use super::machine::{
    HooksState, MachineReport, PlaceKind, PrivatePlace, Program, Service, SocketState,
};
use super::other_settings::found_settings;
use super::settings::{Settings, UnknownSetting, WrongSetting};
use crate::bus::membership::Membership;
use crate::claude::hooks_file::SettingsDraft;
use crate::clock;
use crate::config::{self, Config, Paths, SendMode, SettingOrigin, SettingProblem, Sources};
use crate::feishu::api::Api;
use crate::feishu::clock::date;
use crate::feishu::error::ApiError;
use crate::feishu::messages::Messages;
use crate::feishu::outbound::Outbound;
use crate::feishu::pace::PER_SECOND;
use crate::hook::client::{self, NoDecision};
use crate::hook::connect::Unreachable;
use crate::hook::wire::DaemonOrder;
use crate::ids::UserId;
use crate::store;

const ANSWER_WITHIN: Duration = Duration::from_secs(2);
const CALL_WITHIN: Duration = Duration::from_secs(5);
const VERSION_WITHIN: Duration = Duration::from_secs(3);
/// More processes than this nobody reads.
const MAX_NAMED: usize = 8;

pub(super) struct Gathered {
    pub(super) machine: MachineReport,
    /// Where the settings that lead to Feishu can be used.
    pub(super) config: Option<Config>,
    /// Where the daemon listens, unless the settings leave that open.
    pub(super) socket: Option<PathBuf>,
    /// The working directory, for what is asked from here.
    pub(super) here: PathBuf,
    home: Option<PathBuf>,
    membership: Option<Membership>,
}

impl Gathered {
    pub(super) fn from(sources: &Sources) -> Self {
        let words = Words(sources.lang());
        let home = sources.home.clone();
        let shown = |path: &Path| shown(path, home.as_deref());
        let (mut config, mut problems) = Config::read(sources);
        let membership = config.membership();
        if let Ok(Some(membership)) = &membership {
            config.owner = Some(membership.place().owner.id());
        }
        let reaches = !problems.0.iter().any(is_in_the_way);
        match &membership {
            Ok(None) => problems.0.extend(missing(sources, &config)),
            Ok(Some(_)) => {}
            Err(why) => problems.0.extend(why.0.iter().cloned()),
        }
        let socket = Paths::load(sources).ok().map(|paths| paths.sockets.own);
        let timeout =
            Some(config.request_timeout).filter(|_| !problems.name("PERMISSION_REQUEST_TIMEOUT"));
        let claude_file = sources.claude_settings();
        let draft = claude_file.as_deref().map(SettingsDraft::open);
        let claude = version("claude");
        let machine = MachineReport {
            settings: settings(sources, &config, problems.0, &shown),
            places: places(sources, &config, &shown),
            socket: socket.as_deref().map_or(SocketState::Unknown, ask_daemon),
            socket_path: socket.as_deref().map(shown).unwrap_or_default(),
            hooks: match &draft {
                Some(Ok(draft)) => hooks(draft, sources, timeout, words),
                Some(Err(why)) => HooksState::Unreadable(words.hooks_error(why)),
                None => HooksState::Missing,
            },
            hooks_file: claude_file.as_deref().map(shown).unwrap_or_default(),
            own_hooks: match &draft {
                Some(Ok(draft)) => draft.own_commands().unwrap_or_default(),
                Some(Err(_)) | None => Vec::new(),
            },
            other_settings: found_settings(claude_file.as_deref(), &sources.here(), &shown),
            asking: draft
                .and_then(Result::ok)
                .filter(|draft| claude != Program::Absent || draft.before().is_some())
                .and_then(|draft| draft.asking().ok()),
            claude,
            codex: codex(&config, &shown),
            service: manager(sources, &config),
        };
        Self {
            machine,
            config: reaches.then_some(config),
            socket,
            here: sources.here(),
            home,
            membership: membership.ok().flatten(),
        }
    }

    /// What is known of this machine as a member of a team.
    pub(super) fn member(&self) -> Option<MemberReport> {
        let membership = self.membership.as_ref()?;
        Some(MemberReport {
            owner: membership.place().owner.to_string(),
            url: membership.url.to_string(),
            until: membership.pass.until,
            now: clock::wall_ms() / 1_000,
            report: self.machine.socket.report().cloned(),
        })
    }

    /// A path without the name of its user.
    pub(super) fn shown(&self, path: &Path) -> String {
        shown(path, self.home.as_deref())
    }

    pub(super) fn daemon_connected(&self) -> bool {
        let report = self.machine.socket.report();
        report.is_some_and(|report| report["connection"]["state"] == "connected")
    }

    /// What Feishu says of the app, where the settings name one.
    pub(super) async fn ask_feishu(&self) -> Option<Remote> {
        let config = self.config.as_ref()?;
        let (id, secret) = config.app().ok()?;
        let base = config.domain.base();
        let refused = |token: ApiError| Remote {
            console: base.to_string(),
            app_id: id.to_owned(),
            proxy: None,
            ahead: None,
            token: Err(token),
            app: None,
            daemon_connected: self.daemon_connected(),
            sharing: match &config.callback {
                _ if self.machine.settings.is_gateway => Sharing::Gateways,
                callback if callback.url.is_some() => Sharing::Passed,
                callback if !callback.peers.is_empty() => Sharing::OneWay,
                _ => Sharing::Alone,
            },
        };
        let outbound = match Outbound::new(&config.proxies, config.ca_file.as_deref()) {
            Ok(outbound) => outbound,
            Err(error) => return Some(refused(error.into())),
        };
        let api = match Api::new(&outbound, base.clone(), id, secret.clone()) {
            Ok(api) => api.within(CALL_WITHIN),
            Err(error) => return Some(refused(error)),
        };
        let (token, ahead) = tokio::join!(api.login(), ahead(&outbound, &base));
        let app = match &token {
            Ok(()) => Some(app(&Messages::new(api, PER_SECOND), config).await),
            Err(_) => None,
        };
        Some(Remote {
            proxy: outbound.proxy_for(&base),
            ahead,
            token,
            app,
            ..refused(ApiError::Crowded {
                after: Duration::ZERO,
            })
        })
    }
}

/// More people than this are not looked up.
const MAX_PEOPLE: usize = 8;

async fn app(messages: &Messages, config: &Config) -> AppReport {
    let (bot, application, versions, connections) = tokio::join!(
        messages.bot(),
        messages.application(),
        messages.app_versions(),
        messages.online_connections()
    );
    let mut by_user_id = Vec::new();
    let listed = config.owner.iter().chain(&config.approvers);
    let listed = listed.filter(|id| matches!(id, UserId::Tenant(_)));
    for id in listed.take(MAX_PEOPLE) {
        let found = messages.contact(id).await;
        by_user_id.push((id.to_string(), found.map(|found| found.open_id)));
    }
    AppReport {
        bot,
        application,
        versions,
        connections,
        by_user_id,
    }
}

/// How many seconds the other side's clock is ahead, by the date any web
/// server puts into its answers.
async fn ahead(outbound: &Outbound, base: &url::Url) -> Option<i64> {
    Outbound::check(base).ok()?;
    let asked = outbound
        .http_client()
        .get(base.clone())
        .timeout(CALL_WITHIN)
        .send();
    let before = clock::wall_ms();
    let answer = asked.await.ok()?;
    let theirs = date(answer.headers())?;
    let between = i64::midpoint(before, clock::wall_ms());
    Some((theirs - between) / 1_000)
}

fn shown(path: &Path, home: Option<&Path>) -> String {
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) => Path::new("~").join(rest).display().to_string(),
        None => path.display().to_string(),
    }
}

/// Whether Feishu would be asked elsewhere, or as somebody else, than the
/// person meant.
fn is_in_the_way(problem: &SettingProblem) -> bool {
    match problem {
        SettingProblem::Wrong { name, .. } | SettingProblem::Missing { name, .. } => {
            name.starts_with("FEISHU_") || ["HTTPS_PROXY", "NOD_CA_FILE"].contains(name)
        }
        SettingProblem::BrokenFile(_) | SettingProblem::Exposed(_) => true,
        SettingProblem::Pass { .. }
        | SettingProblem::ExposedPass(_)
        | SettingProblem::SecretBesidePass(_)
        | SettingProblem::NoHome => false,
    }
}

/// What keeps the app's credentials from being used, where they are needed. One
/// that is set and wrong is told already; one that stands in a file that can't
/// be read is not known to be missing.
fn missing(sources: &Sources, config: &Config) -> Vec<SettingProblem> {
    if config.send_mode == SendMode::Webhook || !sources.broken.is_empty() {
        return Vec::new();
    }
    let missing = config.app().err().map_or_else(Vec::new, |all| all.0);
    let is_told = |problem: &SettingProblem| match problem {
        SettingProblem::Missing { name, .. } => sources.get(name).is_some(),
        _ => false,
    };
    missing.into_iter().filter(|one| !is_told(one)).collect()
}

fn settings(
    sources: &Sources,
    read: &Config,
    problems: Vec<SettingProblem>,
    shown: &impl Fn(&Path) -> String,
) -> Settings {
    let origin = |origin: &SettingOrigin| place(origin, shown);
    let stands = |problem: &SettingProblem| match problem {
        SettingProblem::Wrong { name, .. } => sources.get(name).map(|(_, from)| origin(from)),
        // A gateway has one file of its own for all it needs.
        SettingProblem::Missing { .. } => sources.get("NOD_BUS_KEYS").map(|(_, from)| origin(from)),
        SettingProblem::BrokenFile(broken) => {
            Some(origin(&SettingOrigin::File(broken.path.clone())))
        }
        _ => None,
    };
    let unknown = config::unknown(sources).into_iter();
    let apart = config::apart(sources, read.send_mode);
    let is_set = |name| sources.get(name).is_some();
    let is_member = matches!(read.membership(), Ok(Some(_)));
    Settings {
        wrong: problems
            .into_iter()
            .map(|problem| WrongSetting {
                place: stands(&problem),
                problem,
            })
            .collect(),
        unknown: unknown
            .map(|one| UnknownSetting {
                place: origin(&one.origin),
                name: one.name,
                nearest: one.nearest,
            })
            .collect(),
        apart: apart.map(|(id, secret)| (origin(&id), origin(&secret))),
        mode: read.send_mode,
        // A pass names its owner.
        has_owner: is_set("FEISHU_OWNER_ID") || is_member,
        has_chat: is_set("FEISHU_CHAT_ID"),
        is_gateway: is_set("NOD_BUS_KEYS") && !is_member,
    }
}

fn places(
    sources: &Sources,
    config: &Config,
    shown: &impl Fn(&Path) -> String,
) -> Vec<PrivatePlace> {
    let refused = config.app().is_err_and(|all| {
        let is_open = |problem: &SettingProblem| matches!(problem, SettingProblem::Exposed(_));
        all.0.iter().any(is_open)
    });
    let secret = match sources.get("FEISHU_APP_SECRET") {
        Some((_, SettingOrigin::File(path))) if !refused => Some(path.clone()),
        _ => None,
    };
    let state = Some(config.state_dir.clone()).filter(|dir| dir.is_absolute());
    let store = state.as_ref().map(|dir| dir.join(store::FILE));
    let own = crate::hook::connect::own_uid();
    [
        (PlaceKind::Settings, secret),
        (PlaceKind::State, state),
        (PlaceKind::Store, store),
    ]
    .into_iter()
    .filter_map(|(kind, path)| {
        let path = path?;
        let is = std::fs::metadata(&path).ok()?;
        Some(PrivatePlace {
            kind,
            path: shown(&path),
            mode: is.mode() & 0o7777,
            is_own: is.uid() == own,
        })
    })
    .collect()
}

fn ask_daemon(socket: &Path) -> SocketState {
    match client::order(socket, DaemonOrder::Status, ANSWER_WITHIN) {
        Ok(report) => SocketState::Answers(Box::new(report)),
        Err(NoDecision::Unreachable(Unreachable::NoDaemon)) if socket.exists() => {
            SocketState::Stale
        }
        Err(NoDecision::Unreachable(Unreachable::NoDaemon)) => SocketState::Absent,
        Err(NoDecision::Unreachable(Unreachable::Foreign(_))) => SocketState::Foreign,
        Err(_) => SocketState::Silent,
    }
}

fn hooks(
    draft: &SettingsDraft,
    sources: &Sources,
    timeout: Option<Duration>,
    words: Words,
) -> HooksState {
    let unreadable = |why| HooksState::Unreadable(words.hooks_error(&why));
    let commands = match draft.own_commands() {
        Ok(commands) => commands,
        Err(why) => return unreadable(why),
    };
    if commands.is_empty() {
        return HooksState::Missing;
    }
    let (Ok(program), Some(own)) = (std::env::current_exe(), sources.own_file()) else {
        return HooksState::Outdated;
    };
    let (config, _) = Config::read(&sources.lasting());
    let wanted = match hook::wanted(&program, &own, &config, timeout.unwrap_or_default()) {
        Ok(wanted) => wanted,
        Err(why) => return unreadable(why),
    };
    if let Some(other) = commands.iter().find(|command| *command != wanted.command()) {
        return if wanted.starts_as(other) {
            HooksState::OtherFile(other.clone())
        } else {
            HooksState::Elsewhere(other.clone())
        };
    }
    if timeout.is_none() {
        return HooksState::NotCompared;
    }
    let mut ideal = draft.clone();
    match ideal.install(&wanted) {
        Ok(()) if !ideal.is_changed() => HooksState::Installed,
        Ok(()) => HooksState::Outdated,
        Err(why) => unreadable(why),
    }
}

fn manager(sources: &Sources, config: &Config) -> Service {
    let Ok(manager) = service::ServiceManager::find() else {
        return Service::NoManager;
    };
    match service::places(sources, &config.state_dir) {
        Some(places) if manager.kind.is_installed(&places) => Service::Installed {
            runs: manager.status().is_ok_and(|status| status.runs),
        },
        _ => Service::Absent,
    }
}

fn codex(config: &Config, shown: &impl Fn(&Path) -> String) -> CodexReport {
    let temporary = std::env::temp_dir();
    let home = |path: &PathBuf| codex::CodexHome {
        path: path.to_string_lossy().into_owned(),
        shown: shown(path),
        exists: path.is_dir(),
        is_temporary: path.starts_with(&temporary),
    };
    CodexReport {
        program: version("codex"),
        homes: config.codex_homes.iter().map(home).collect(),
        without_daemon: without_daemon(),
    }
}

/// This user's processes of a `codex --no-daemon`, where the system lists them.
fn without_daemon() -> Vec<u32> {
    let own = crate::hook::connect::own_uid();
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let found = all.filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        if entry.metadata().ok()?.uid() != own {
            return None;
        }
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let mut words = line.split(|byte| *byte == 0);
        let program = words.next()?.rsplit(|byte| *byte == b'/').next()?;
        (program == b"codex" && words.any(|word| word == b"--no-daemon")).then_some(pid)
    });
    found.take(MAX_NAMED).collect()
}

/// Asks the program that a person would start.
fn version(program: &str) -> Program {
    let child = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else {
        return Program::Absent;
    };
    let until = Instant::now() + VERSION_WITHIN;
    loop {
        match child.try_wait() {
            Ok(Some(_)) => break,
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
            Ok(None) | Err(_) => {
                // It may have ended by itself just now.
                let _ = child.kill();
                let _ = child.wait();
                return Program::Silent;
            }
        }
    }
    let mut said = String::new();
    let stdout = child.stdout.take();
    let read = stdout.map(|out| out.take(4_096).read_to_string(&mut said));
    // `2.1.325 (Claude Code)`, `codex-cli 0.166.0`
    let begins = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    let version = said.split_whitespace().find(begins).unwrap_or_default();
    let version: String = version
        .chars()
        .filter(char::is_ascii_graphic)
        .take(40)
        .collect();
    match read {
        Some(Ok(_)) if !version.is_empty() => Program::Version(version),
        _ => Program::Silent,
    }
}
