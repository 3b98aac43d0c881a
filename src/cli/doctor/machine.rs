//! What was found on this machine, judged: files, the daemon, Claude Code, the
//! service. Pure.

use serde_json::Value;

use super::super::status::page::needs;
use super::super::wording::Words;
use super::codex::{self, CodexReport};
use super::finding::{Finding, Level, Probe};
use super::other_settings::{self, FoundSettings};
use super::settings::{self, Settings};
use crate::claude::hooks_file::AskMode;
use crate::feishu::said::platform_zh;
use crate::text::{Lang, Text, spaced};
use crate::version::BUILD;

/// The first version whose print mode asks hooks for permission.
const ASKS_IN_PRINT_MODE: [u32; 3] = [2, 1, 268];
const OTHERS: u32 = 0o077;

pub(super) struct MachineReport {
    pub(super) settings: Settings,
    pub(super) places: Vec<PrivatePlace>,
    pub(super) socket: SocketState,
    /// The socket's path, as it may be shown.
    pub(super) socket_path: String,
    pub(super) hooks: HooksState,
    /// Claude Code's user settings, as they may be shown.
    pub(super) hooks_file: String,
    /// Commands by which the user's settings start nod's hook.
    pub(super) own_hooks: Vec<String>,
    /// What Claude Code's settings files say about hooks.
    pub(super) other_settings: Vec<FoundSettings>,
    /// `None` where nothing of Claude Code is to be seen.
    pub(super) asking: Option<AskMode>,
    pub(super) claude: Program,
    pub(super) codex: CodexReport,
    pub(super) service: Service,
}

/// A file or directory that must be closed to others.
pub(super) struct PrivatePlace {
    pub(super) kind: PlaceKind,
    pub(super) path: String,
    pub(super) mode: u32,
    pub(super) is_own: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlaceKind {
    Settings,
    State,
    Store,
}

pub(super) enum SocketState {
    /// The settings leave open where it is.
    Unknown,
    Absent,
    /// Left behind by a daemon that was killed.
    Stale,
    /// Somebody else's.
    Foreign,
    /// Something listens and says nothing that can be used.
    Silent,
    /// With the daemon's report.
    Answers(Box<Value>),
}

impl SocketState {
    /// What the daemon says of itself.
    pub(super) fn report(&self) -> Option<&Value> {
        match self {
            Self::Answers(report) => Some(report),
            Self::Unknown | Self::Absent | Self::Stale | Self::Foreign | Self::Silent => None,
        }
    }
}

pub(super) enum HooksState {
    Installed,
    Missing,
    /// Another program is started.
    Elsewhere(String),
    /// This program, but its line names another settings file or none.
    OtherFile(String),
    /// This program, but not as it should be.
    Outdated,
    /// This program; the settings leave open which limits it should have.
    NotCompared,
    Unreadable(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Program {
    Absent,
    Silent,
    Version(String),
}

pub(super) enum Service {
    NoManager,
    Absent,
    Installed { runs: bool },
}

pub(super) fn check(machine: &MachineReport) -> Vec<Finding> {
    let mut findings = settings::check(&machine.settings);
    let is_new = machine.settings.lacks_only_the_app();
    if is_new {
        // All that the set-up brings is missing for one cause.
        let is_told = |one: &Finding| matches!(one.check, "settings" | "owner");
        findings.retain(|one| !(one.level == Level::Problem && is_told(one)));
        findings.insert(0, not_set_up(machine));
    }
    findings.extend(machine.places.iter().map(place));
    let is_gateway = machine.settings.is_gateway;
    let rests = matches!(machine.socket, SocketState::Absent | SocketState::Stale);
    if is_gateway && rests {
        findings.push(Probe("gateway").ok(
            "这是网关的设置：它的情况见 `nod gateway status`",
            "these are a gateway's settings: `nod gateway status` tells how it does",
        ));
    } else if !(is_new && rests) {
        findings.extend(socket(machine));
    }
    let is_told = |one: &Finding| {
        let told = is_new || is_gateway;
        told && one.check == "hooks" && matches!(machine.hooks, HooksState::Missing)
    };
    findings.extend(hooks(machine).into_iter().filter(|one| !is_told(one)));
    findings.push(claude(&machine.claude));
    findings.extend(codex::check(&machine.codex, machine.socket.report()));
    findings.push(service(&machine.service));
    findings
}

fn not_set_up(machine: &MachineReport) -> Finding {
    let settings = &machine.settings;
    let mut missing: Vec<Text> = settings
        .missing()
        .map(|name| Text::made(format!("`{name}`"), format!("`{name}`")))
        .collect();
    if !settings.has_owner && !settings.has_chat {
        missing.push(Text::new("谁来决定", "who decides"));
    }
    if matches!(machine.hooks, HooksState::Missing) {
        missing.push(Text::new("Claude Code 的 hook", "Claude Code's hooks"));
    }
    if matches!(machine.socket, SocketState::Absent | SocketState::Stale) {
        missing.push(Text::new("守护进程", "the daemon"));
    }
    let listed = |lang, comma: &str| {
        let missing = missing.iter().map(|one| one.get(lang));
        missing.collect::<Vec<_>>().join(comma)
    };
    let (zh, en) = (listed(Lang::Zh, "、"), listed(Lang::En, ", "));
    Probe("settings")
        .problem(
            format!("nod 还没有设置好，缺少：{zh}"),
            format!("nod is not set up yet; missing: {en}"),
        )
        .fix("运行 `nod setup`", "run `nod setup`")
}

fn place(place: &PrivatePlace) -> Finding {
    let PrivatePlace {
        kind,
        path,
        mode,
        is_own,
    } = place;
    let (check, wanted) = match kind {
        PlaceKind::Settings => ("settings-file", "600"),
        PlaceKind::State => ("state-directory", "700"),
        PlaceKind::Store => ("store-file", "600"),
    };
    if !is_own {
        return Probe(check)
            .problem(
                format!("`{path}` 不归本人所有"),
                format!("`{path}` belongs to somebody else"),
            )
            .fix(
                "以你自己的用户运行 nod，或让它归你所有",
                "run nod as yourself, or make it yours",
            );
    }
    if mode & OTHERS != 0 {
        return Probe(check)
            .problem(
                format!("`{path}` 对其他用户开放（权限 {mode:04o}）"),
                format!("`{path}` is open to other users (mode {mode:04o})"),
            )
            .fix(
                format!("`chmod {wanted} {path}`"),
                format!("`chmod {wanted} {path}`"),
            );
    }
    Probe(check).ok(
        format!("`{path}` 仅本人可读（{mode:04o}）"),
        format!("`{path}` is yours alone ({mode:04o})"),
    )
}

fn socket(machine: &MachineReport) -> Vec<Finding> {
    let path = &machine.socket_path;
    let start = |finding: Finding| {
        if !machine.settings.wrong.is_empty() {
            return finding.fix(
                "先改正设置：照现在这样，它无法启动",
                "correct the settings first: it can't start with them as they are",
            );
        }
        let can_serve = !matches!(machine.service, Service::NoManager);
        let hint = |lang| Words(lang).start_daemon_hint(can_serve);
        finding.fix(hint(Lang::Zh), hint(Lang::En))
    };
    let check = Probe("daemon");
    let finding = match &machine.socket {
        SocketState::Answers(report) => return running(report),
        SocketState::Unknown => check.warning(
            "没有检查守护进程：从设置中无法得知它的 socket 在哪里",
            "the daemon is not checked: the settings do not say where its socket is",
        ),
        SocketState::Absent => start(check.problem("守护进程没有运行", "no daemon is running")),
        SocketState::Stale => start(check.problem(
            format!("守护进程没有运行；`{path}` 是被强行结束的那个留下的，启动时会自动替换"),
            format!("no daemon is running; `{path}` was left behind by one that was killed, and the next one replaces it"),
        )),
        SocketState::Foreign => check
            .problem(
                format!("在 `{path}` 监听的不是本人的守护进程"),
                format!("whoever listens on `{path}` is not your daemon"),
            )
            .fix(
                "删除它或另设 `PERMISSION_SOCKET_PATH`；nod 不会向它发送任何内容",
                "remove it or choose another `PERMISSION_SOCKET_PATH`; nod sends nothing to it",
            ),
        SocketState::Silent => check
            .problem(
                format!("`{path}` 上的守护进程没有应答"),
                format!("the daemon on `{path}` does not answer"),
            )
            .fix("重启它", "restart it"),
    };
    vec![finding]
}

/// What a daemon says of itself.
fn running(report: &Value) -> Vec<Finding> {
    let mut findings = vec![version(report)];
    findings.push(connection(report));
    if report["locked"] == true {
        findings.push(
            Probe("lock")
                .warning(
                    "远程批准已锁定：在飞书中只能拒绝",
                    "remote approval is locked: Feishu can only deny",
                )
                .fix("`nod unlock`", "`nod unlock`"),
        );
    }
    findings.extend(needs(report).map(|need| {
        Probe("cards").warning(need.zh, need.en).fix(
            "把代码与 log_id 报告给 nod 的作者；重启守护进程会再试原来的样式",
            "report the code and the log id to nod's authors; a restart tries the usual cards again",
        )
    }));
    if report["store"]["ok"] != true {
        let cause = report["store"]["cause"].as_str().unwrap_or_default();
        findings.push(Probe("store").problem(
            format!("守护进程无法写入数据库：{cause}"),
            format!("the daemon can't write its store: {cause}"),
        ));
    }
    findings
}

fn version(report: &Value) -> Finding {
    let own = BUILD;
    let version = report["version"].as_str().unwrap_or("?");
    let pid = &report["pid"];
    if version == own {
        return Probe("daemon").ok(
            format!("守护进程在运行（{version}，进程 {pid}）"),
            format!("the daemon is running ({version}, process {pid})"),
        );
    }
    Probe("daemon")
        .warning(
            format!("守护进程是 {version}，这个 nod 是 {own}"),
            format!("the daemon is {version}, this nod is {own}"),
        )
        .fix(
            "用 `nod service restart` 或重新启动守护进程",
            "`nod service restart`, or start the daemon anew",
        )
}

fn connection(report: &Value) -> Finding {
    let connection = &report["connection"];
    let platform = report["platform"].as_str().unwrap_or("Feishu");
    if connection["state"] == "connected" {
        return Probe("connection").ok(
            spaced(&format!("守护进程已连接{}", platform_zh(platform))),
            format!("the daemon is connected to {platform}"),
        );
    }
    if connection["state"] == "webhook" {
        return Probe("connection").ok(
            "Webhook 模式：守护进程经自定义机器人发卡片，没有长连接",
            "webhook mode: the daemon posts through a custom bot and holds no connection",
        );
    }
    let cause = |field: &str, unless: &str| connection[field].as_str().unwrap_or(unless).to_owned();
    Probe("connection").problem(
        format!("守护进程未连接：{}", cause("cause_zh", "正在连接")),
        format!(
            "the daemon is not connected: {}",
            cause("cause", "connecting")
        ),
    )
}

fn hooks(machine: &MachineReport) -> Vec<Finding> {
    let file = &machine.hooks_file;
    let set_up = |finding: Finding| finding.fix("运行 `nod setup`", "run `nod setup`");
    let mut findings = vec![match &machine.hooks {
        HooksState::Installed => Probe("hooks").ok(
            "Claude Code 的 hook 已安装，指向这个 nod",
            "Claude Code's hooks are installed and start this very nod",
        ),
        HooksState::Missing => set_up(Probe("hooks").problem(
            format!("`{file}` 里没有 nod 的 hook：Claude Code 不会询问 nod"),
            format!("`{file}` has no hook of nod's: Claude Code never asks nod"),
        )),
        HooksState::Elsewhere(command) => set_up(Probe("hooks").problem(
            format!("Claude Code 的 hook 启动的是别的程序：`{command}`"),
            format!("Claude Code's hooks start another program: `{command}`"),
        )),
        HooksState::OtherFile(command) => set_up(Probe("hooks").problem(
            format!(
                "Claude Code 的 hook 没有写明这个 nod 的设置文件，可能找不到守护进程：`{command}`"
            ),
            format!(
                "Claude Code's hooks do not name this nod's settings file, and may not find its daemon: `{command}`"
            ),
        )),
        HooksState::Outdated => set_up(Probe("hooks").warning(
            "Claude Code 的 hook 指向这个 nod，但事件或时限与现在的设置不符",
            "Claude Code's hooks start this nod, but their events or limits differ from today's settings",
        )),
        HooksState::NotCompared => Probe("hooks").ok(
            "Claude Code 的 hook 指向这个 nod；`PERMISSION_REQUEST_TIMEOUT` 无法使用，没有比较它们的时限",
            "Claude Code's hooks start this very nod; their limits are not checked, as `PERMISSION_REQUEST_TIMEOUT` can't be used",
        ),
        HooksState::Unreadable(why) => Probe("hooks").problem(why.clone(), why.clone()),
    }];
    findings.extend(other_settings::check(
        &machine.other_settings,
        &machine.own_hooks,
    ));
    let mode = match &machine.asking {
        None => return findings,
        Some(AskMode::Asks) => Probe("mode").ok(
            "Claude Code 会为每个操作询问权限",
            "Claude Code asks for permission",
        ),
        Some(AskMode::HooksOff) => {
            Probe("mode").problem(Words(Lang::Zh).hooks_off(), Words(Lang::En).hooks_off())
        }
        Some(AskMode::Unset) => set_up(Probe("mode").warning(
            Words(Lang::Zh).mode_unset(file),
            Words(Lang::En).mode_unset(file),
        )),
        Some(AskMode::Mode(mode)) => set_up(Probe("mode").warning(
            Words(Lang::Zh).mode_silent(mode),
            Words(Lang::En).mode_silent(mode),
        )),
    };
    findings.push(mode);
    findings
}

fn claude(claude: &Program) -> Finding {
    match claude {
        Program::Absent => Probe("claude")
            .warning("没有找到 `claude` 命令", "no `claude` command was found")
            .fix(
                "安装 Claude Code，或把它的目录加入 `PATH`",
                "install Claude Code, or add its directory to `PATH`",
            ),
        Program::Silent => Probe("claude").warning(
            "`claude --version` 没有在 3 秒内回答",
            "`claude --version` did not answer within 3 s",
        ),
        Program::Version(version) if parsed(version).is_some_and(|v| v < ASKS_IN_PRINT_MODE) => {
            Probe("claude")
                .warning(
                    format!("Claude Code {version}：`claude -p` 从 2.1.268 起才会询问 nod"),
                    format!("Claude Code {version}: `claude -p` asks nod only since 2.1.268"),
                )
                .fix("`claude update`", "`claude update`")
        }
        Program::Version(version) => Probe("claude").ok(
            format!("Claude Code {version}"),
            format!("Claude Code {version}"),
        ),
    }
}

pub(super) fn parsed(version: &str) -> Option<[u32; 3]> {
    let mut parts = version.split('.').map(|part| part.parse().ok());
    let version = [parts.next()??, parts.next()??, parts.next()??];
    Some(version)
}

fn service(service: &Service) -> Finding {
    match service {
        Service::NoManager => Probe("service").ok(
            "这里没有用户服务管理器；守护进程由你自己运行",
            "there is no user service manager here; you run the daemon yourself",
        ),
        Service::Absent => Probe("service").ok(
            "未安装后台服务（`nod service install`）",
            "no service is installed (`nod service install`)",
        ),
        Service::Installed { runs: true } => {
            Probe("service").ok("后台服务在运行", "the service is running")
        }
        Service::Installed { runs: false } => Probe("service")
            .warning(
                "后台服务已安装但没有运行",
                "the service is installed and does not run",
            )
            .fix(
                "用 `nod service logs` 查看原因",
                "`nod service logs` shows why",
            ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::super::settings::{UnknownSetting, WrongSetting};
    use super::*;
    use crate::config::{SendMode, SettingProblem};
    use crate::text::Text;
    use serde_json::json;

    #[test]
    fn versions_before_the_one_that_asks_in_print_mode_are_named() {
        for (version, level) in [
            ("2.1.267", Level::Warning),
            ("2.1.268", Level::Ok),
            ("2.2.0", Level::Ok),
            ("3.0.0", Level::Ok),
            ("1.9.999", Level::Warning),
            ("next", Level::Ok),
        ] {
            let finding = claude(&Program::Version(version.to_owned()));
            assert_eq!(finding.level, level, "{version}");
        }
    }

    #[test]
    fn another_daemon_version_a_lock_and_a_full_disk_are_told() {
        let report = json!({
            "version": "0.0.1", "pid": 7, "platform": "Feishu", "locked": true,
            "needs": [{"need": "plain", "code": 230_099, "log_id": "0217"}],
            "connection": {"state": "waiting", "cause": "no route", "cause_zh": "不通"},
            "store": {"ok": false, "cause": "the disk is full"},
        });
        let machine = MachineReport {
            settings: Settings {
                wrong: vec![WrongSetting {
                    problem: SettingProblem::NoHome,
                    place: None,
                }],
                unknown: vec![UnknownSetting {
                    name: "NOD_APPROVER".to_owned(),
                    nearest: Some("FEISHU_APPROVERS"),
                    place: Text::new("环境变量中", "the environment"),
                }],
                apart: None,
                mode: SendMode::App,
                has_owner: true,
                has_chat: false,
                is_gateway: false,
            },
            places: Vec::new(),
            socket: SocketState::Answers(Box::new(report)),
            socket_path: "~/s".to_owned(),
            hooks: HooksState::Outdated,
            hooks_file: "~/c".to_owned(),
            own_hooks: Vec::new(),
            other_settings: Vec::new(),
            asking: Some(AskMode::HooksOff),
            claude: Program::Silent,
            codex: CodexReport {
                program: Program::Absent,
                homes: Vec::new(),
                without_daemon: Vec::new(),
            },
            service: Service::Installed { runs: false },
        };
        let found = check(&machine);
        let levels: Vec<_> = found.iter().map(|one| (one.check, one.level)).collect();
        assert_eq!(
            levels,
            [
                ("settings", Level::Problem),
                ("unknown-setting", Level::Warning),
                ("daemon", Level::Warning),
                ("connection", Level::Problem),
                ("lock", Level::Warning),
                ("cards", Level::Warning),
                ("store", Level::Problem),
                ("hooks", Level::Warning),
                ("mode", Level::Problem),
                ("claude", Level::Warning),
                ("service", Level::Warning),
            ]
        );
    }
}
