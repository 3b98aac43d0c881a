//! What Feishu said of the app, judged, with the console step that is missing.
//! Pure.

use super::finding::{Finding, Level, Probe};
use crate::feishu::error::ApiError;
use crate::feishu::messages::{AppVersion, Application, Bot};
use crate::feishu::registration::{
    CALLBACK, EVENT, PRIVATE, SCOPES, SELF_MANAGE, SEND, USER_IDS, alternatives,
};
use crate::ids::UserId;

const LONG_CONNECTION: &str = "websocket";
/// Feishu refuses nothing below this, but events age and certificates expire.
const SKEW: i64 = 30;
/// Without these no card goes out and no typed answer comes in.
const NEEDED: [&str; 2] = [SEND, PRIVATE];

pub(super) struct Remote {
    /// The developer console's address, with a slash at its end.
    pub(super) console: String,
    pub(super) app_id: String,
    /// The proxy in effect, without credentials.
    pub(super) proxy: Option<String>,
    /// Seconds Feishu's clock is ahead of ours.
    pub(super) ahead: Option<i64>,
    pub(super) token: Result<(), ApiError>,
    /// What the app is, where the token was given.
    pub(super) app: Option<AppReport>,
    /// Whether the daemon here says that it is connected.
    pub(super) daemon_connected: bool,
    pub(super) sharing: Sharing,
}

/// What happens to a tap that another of the app's connections got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    /// It is lost on the other one.
    Alone,
    /// The machines know this one's address.
    Passed,
    /// Only others' taps are passed on from here.
    OneWay,
    /// A team's gateways hold them together.
    Gateways,
}

pub(super) struct AppReport {
    pub(super) bot: Result<Bot, ApiError>,
    pub(super) application: Result<Application, ApiError>,
    pub(super) versions: Result<Vec<AppVersion>, ApiError>,
    pub(super) connections: Result<Option<u64>, ApiError>,
    /// Whoever is listed by a user id, with the open id Feishu knows for it.
    pub(super) by_user_id: Vec<(String, Result<Option<UserId>, ApiError>)>,
}

pub(super) fn check(remote: &Remote) -> Vec<Finding> {
    let mut findings = vec![proxy(remote)];
    findings.extend(remote.ahead.map(clock));
    findings.push(match &remote.token {
        Ok(()) => Probe("token").ok(
            "飞书接受 App ID 与 Secret",
            "Feishu accepts the app id and secret",
        ),
        Err(error) => failed("token", error),
    });
    let Some(app) = &remote.app else {
        return findings;
    };
    findings.push(match &app.bot {
        Ok(bot) => enabled(remote, bot),
        Err(error) => failed("bot", error),
    });
    match &app.application {
        Ok(application) => {
            findings.push(scopes(remote, application));
            findings.push(published(remote, &app.versions));
            findings.push(events(remote, application, &app.versions));
            findings.push(callbacks(remote, application));
        }
        Err(ApiError::Setup { .. }) => findings.push(unseen(remote)),
        Err(error) => findings.push(failed("scopes", error)),
    }
    let scopes = app.application.as_ref().map(|app| app.scopes.as_slice());
    let knows_user_ids = scopes.is_ok_and(|all| all.iter().any(|scope| scope == USER_IDS));
    for (id, open) in &app.by_user_id {
        findings.push(by_user_id(remote, id, open, knows_user_ids));
    }
    findings.extend(match &app.connections {
        Ok(Some(count)) => Some(connections(*count, remote.daemon_connected, remote.sharing)),
        Ok(None) => None,
        Err(error) => Some(failed("connections", error)),
    });
    findings
}

fn failed(check: &'static str, error: &ApiError) -> Finding {
    let text = error.text();
    let finding = Probe(check).problem(text.zh, text.en);
    match error {
        ApiError::Malformed { .. } => finding.fix(
            "登录此网络的认证页面，或检查代理与 `FEISHU_DOMAIN`",
            "sign in to this network's portal, or check the proxy and `FEISHU_DOMAIN`",
        ),
        ApiError::BadCredentials(_) => finding.fix(
            "从“凭证与基础信息”重新复制，然后运行 `nod setup`",
            "copy both again from the app's credentials page, then run `nod setup`",
        ),
        _ => finding,
    }
}

fn proxy(remote: &Remote) -> Finding {
    match &remote.proxy {
        Some(proxy) => Probe("proxy").ok(
            format!("经代理 `{proxy}` 访问飞书"),
            format!("Feishu is reached through the proxy `{proxy}`"),
        ),
        None => Probe("proxy").ok(
            "直接访问飞书，没有代理",
            "Feishu is reached directly, without a proxy",
        ),
    }
}

/// How this machine's clock stands, which Feishu's is so many seconds ahead of.
pub(super) fn clock(ahead: i64) -> Finding {
    let off = ahead.abs();
    if off <= SKEW {
        return Probe("clock").ok("本机时钟准确", "this machine's clock is right");
    }
    let (zh, en) = if ahead > 0 {
        ("慢", "behind")
    } else {
        ("快", "ahead")
    };
    Probe("clock")
        .warning(
            format!("本机时钟比飞书{zh} {off} 秒"),
            format!("this machine's clock is {off} s {en} of Feishu's"),
        )
        .fix(
            "打开系统的自动对时",
            "let the system set its time automatically",
        )
}

fn console(remote: &Remote, page: &str) -> String {
    format!("{}app/{}{page}", remote.console, remote.app_id)
}

fn publish(remote: &Remote, finding: Finding) -> Finding {
    let link = console(remote, "/version");
    finding.fix(
        format!("版本管理与发布 → 创建版本，可用范围包含自己 → 发布：{link}"),
        format!("Version Management & Release → create a version whose availability includes you, and publish it: {link}"),
    )
}

fn enabled(remote: &Remote, bot: &Bot) -> Finding {
    if bot.enabled {
        let name = bot.name.as_deref().unwrap_or(&remote.app_id);
        return Probe("bot").ok(
            format!("机器人“{name}”已启用"),
            format!("the bot “{name}” is enabled"),
        );
    }
    let link = console(remote, "/capability");
    let finding = Probe("bot")
        .problem(
            "机器人能力未启用，或没有发布版本",
            "the bot is not enabled, or no version is published",
        )
        .fix(
            format!("添加应用能力 → 机器人：{link}"),
            format!("Add features → Bot: {link}"),
        );
    publish(remote, finding)
}

/// The scopes as the console's import takes them.
fn import(scopes: &[&str]) -> String {
    serde_json::json!({"scopes": {"tenant": scopes, "user": []}}).to_string()
}

fn add_scopes(remote: &Remote, finding: Finding, missing: &[&str]) -> Finding {
    let link = console(remote, &format!("/auth?q={}", missing.join(",")));
    let import = import(missing);
    let finding = finding.fix(
        format!("权限管理 → 批量导入权限：{import}，或打开 {link}"),
        format!("Permissions & Scopes → batch import: {import}, or open {link}"),
    );
    publish(remote, finding)
}

fn scopes(remote: &Remote, application: &Application) -> Finding {
    let has = |scope: &str| {
        let mut known = application.scopes.iter();
        known.any(|known| known == scope || alternatives(scope).contains(&known.as_str()))
    };
    let missing: Vec<&str> = SCOPES.into_iter().filter(|scope| !has(scope)).collect();
    if missing.is_empty() {
        return Probe("scopes").ok("权限齐全", "every scope is there");
    }
    let names = missing.join(", ");
    let is_needed = missing.iter().any(|scope| NEEDED.contains(scope));
    let finding = Probe("scopes").found(
        if is_needed {
            Level::Problem
        } else {
            Level::Warning
        },
        format!("缺少权限：{names}"),
        format!("scopes are missing: {names}"),
    );
    add_scopes(remote, finding, &missing)
}

/// Without this one scope, Feishu tells nothing of the app.
fn unseen(remote: &Remote) -> Finding {
    let scope = SELF_MANAGE;
    let finding = Probe("scopes").warning(
        format!("看不到应用的权限、版本、事件与回调：缺少 {scope}"),
        format!("the app's scopes, version, events and callbacks can't be seen without {scope}"),
    );
    add_scopes(remote, finding, &[scope]).fix(
        "`nod doctor --click` 可直接证明点击能到达",
        "`nod doctor --click` proves directly that a tap gets through",
    )
}

/// Whether the taps of somebody who is listed by a user id can count.
fn by_user_id(
    remote: &Remote,
    id: &str,
    open: &Result<Option<UserId>, ApiError>,
    knows_user_ids: bool,
) -> Finding {
    match open {
        Ok(Some(open)) => Probe("people").ok(
            format!("用户 id `{id}` 即 `{open}`"),
            format!("the user id `{id}` is `{open}`"),
        ),
        Ok(None) | Err(_) if knows_user_ids => Probe("people").ok(
            format!("点击中带有用户 id，`{id}` 可以决定"),
            format!("taps name user ids, so `{id}` can decide"),
        ),
        Ok(None) | Err(_) => {
            let finding = Probe("people").problem(
                format!("`{id}` 是用户 id：没有 {USER_IDS} 权限时点击中不带用户 id，其点击不会生效"),
                format!("`{id}` is a user id: without the scope {USER_IDS} taps do not name it, and that person's taps do not count"),
            );
            add_scopes(remote, finding, &[USER_IDS]).fix(
                "或用 open id（`ou_…`）代替用户 id：`nod settings set FEISHU_OWNER_ID ou_…`",
                "or use an open id (`ou_…`) instead: `nod settings set FEISHU_OWNER_ID ou_…`",
            )
        }
    }
}

fn published(remote: &Remote, versions: &Result<Vec<AppVersion>, ApiError>) -> Finding {
    let versions = match versions {
        Ok(versions) => versions,
        Err(error) => return failed("version", error),
    };
    match versions.iter().find(|version| version.published) {
        Some(version) => {
            let name = version.name.as_deref().unwrap_or("?");
            Probe("version").ok(
                format!("已发布版本 {name}"),
                format!("version {name} is published"),
            )
        }
        None => publish(
            remote,
            Probe("version").problem(
                "没有已发布的版本：开发者后台里的改动都还没有生效",
                "no version is published: nothing set in the console is in effect",
            ),
        ),
    }
}

fn events(
    remote: &Remote,
    application: &Application,
    versions: &Result<Vec<AppVersion>, ApiError>,
) -> Finding {
    let link = console(remote, "/event");
    let step = |finding: Finding| {
        let finding = finding.fix(
            format!("保持 `nod daemon` 运行，事件与回调 → 事件配置 → 使用长连接接收事件，添加 {EVENT}：{link}"),
            format!("while `nod daemon` runs: Events & Callbacks → Event Configuration → receive events by long connection, and add {EVENT}: {link}"),
        );
        publish(remote, finding)
    };
    let live = versions
        .as_ref()
        .ok()
        .and_then(|all| all.iter().find(|version| version.published));
    let subscribed = live.map(|version| version.events.iter().any(|event| event == EVENT));
    let mode = application.subscription_type.as_deref();
    match (mode, subscribed) {
        (Some(other), _) if other != LONG_CONNECTION => step(Probe("events").problem(
            format!("事件不是以长连接推送（`{other}`）：飞书里打的字到不了 nod"),
            format!(
                "events are not delivered by long connection (`{other}`): what you write in Feishu does not reach nod"
            ),
        )),
        (_, Some(false)) => step(Probe("events").problem(
            format!("没有订阅 {EVENT}：飞书里打的字到不了 nod"),
            format!("{EVENT} is not subscribed: what you write in Feishu does not reach nod"),
        )),
        (Some(_), _) => Probe("events").ok(
            "事件以长连接推送",
            "events are delivered by long connection",
        ),
        // The documents name no field for the mode; silence about it is usual.
        (None, Some(true)) => Probe("events").ok(
            format!("已订阅 {EVENT}（飞书不说明推送方式）"),
            format!("{EVENT} is subscribed (Feishu does not tell how it is delivered)"),
        ),
        (None, None) => step(Probe("events").warning(
            "飞书没有说明订阅了哪些事件",
            "Feishu does not say which events are subscribed",
        )),
    }
}

fn callbacks(remote: &Remote, application: &Application) -> Finding {
    let link = console(remote, "/callback");
    let step = |finding: Finding| {
        let finding = finding.fix(
            format!("保持 `nod daemon` 运行，事件与回调 → 回调配置 → 使用长连接接收回调，添加 卡片回传交互（{CALLBACK}）：{link}"),
            format!("while `nod daemon` runs: Events & Callbacks → Callback Configuration → receive callbacks by long connection, and add the card action callback ({CALLBACK}): {link}"),
        );
        publish(remote, finding)
    };
    match (application.callback_type.as_deref(), &application.callbacks) {
        (Some(LONG_CONNECTION), Some(all)) if all.iter().any(|name| name == CALLBACK) => {
            Probe("callbacks").ok(
                "卡片点击以长连接推送",
                "taps are delivered by long connection",
            )
        }
        (Some(LONG_CONNECTION), Some(_)) => step(Probe("callbacks").problem(
            format!("没有订阅 {CALLBACK}：点击卡片会提示 200340"),
            format!("{CALLBACK} is not subscribed: tapping a card shows 200340"),
        )),
        (Some(LONG_CONNECTION), None) | (None, _) => Probe("callbacks")
            .warning(
                "飞书没有说明卡片点击以何种方式推送",
                "Feishu does not say how taps are delivered",
            )
            .fix(
                "`nod doctor --click` 可直接证明",
                "`nod doctor --click` proves it directly",
            ),
        (Some(other), _) => step(Probe("callbacks").problem(
            format!("卡片点击不是以长连接推送（`{other}`）：点击会提示 200340"),
            format!("taps are not delivered by long connection (`{other}`): tapping shows 200340"),
        )),
    }
}

fn connections(count: u64, daemon_connected: bool, sharing: Sharing) -> Finding {
    let stop_others = |finding: Finding| {
        finding.fix(
            "停止其他机器上使用同一应用的程序，或用 `nod setup` 为这台机器单独建一个应用",
            "stop the other programs that use this app, or give this machine an app of its own with `nod setup`",
        )
    };
    match (count, daemon_connected, sharing) {
        (0, true, _) => Probe("connections").problem(
            "守护进程以为已连接，飞书却说没有连接在线",
            "the daemon believes it is connected, but Feishu sees no connection",
        )
        .fix("重启守护进程", "restart the daemon"),
        (0, false, _) => Probe("connections").ok(
            "没有别的程序使用此应用",
            "no other program uses this app",
        ),
        (_, _, Sharing::Gateways) => Probe("connections").ok(
            format!("此应用有 {count} 个连接在线，团队的每个网关一个"),
            format!("this app has {count} connections online, one for each gateway of the team"),
        ),
        (1, true, _) => Probe("connections").ok(
            "此应用只有这一个连接",
            "this app has this one connection",
        ),
        (_, _, Sharing::Passed) => Probe("connections").ok(
            format!("此应用有 {count} 个连接在线；到达别处的点击会按 `CALLBACK_SERVER_URL` 转回这里"),
            format!(
                "this app has {count} connections online; taps that reach another are passed on to `CALLBACK_SERVER_URL`"
            ),
        ),
        (_, _, Sharing::OneWay) => Probe("connections").warning(
            format!("此应用有 {count} 个连接在线；设置了 `CALLBACK_PEERS`，但到达别处的点击无法转回这里"),
            format!(
                "this app has {count} connections online; `CALLBACK_PEERS` is set, but taps that reach another can't come back here"
            ),
        )
        .fix(
            "设置 `CALLBACK_LISTEN` 和 `CALLBACK_SERVER_URL`",
            "set `CALLBACK_LISTEN` and `CALLBACK_SERVER_URL`",
        ),
        (_, true, Sharing::Alone) => stop_others(Probe("connections").problem(
            format!("此应用有 {count} 个连接在线：每次点击只会到达其中随机的一个"),
            format!(
                "this app has {count} connections online: each tap reaches one of them by chance"
            ),
        )),
        (_, false, Sharing::Alone) => stop_others(Probe("connections").warning(
            format!("别的程序正以此应用在线（{count} 个连接），会拿走点击"),
            format!("other programs are online with this app ({count}) and would take taps"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn app() -> Application {
        Application {
            scopes: SCOPES.map(str::to_owned).to_vec(),
            callback_type: Some(LONG_CONNECTION.to_owned()),
            callbacks: Some(vec![CALLBACK.to_owned()]),
            subscription_type: Some(LONG_CONNECTION.to_owned()),
            owner: None,
        }
    }

    fn remote() -> Remote {
        Remote {
            console: "https://open.feishu.cn/".to_owned(),
            app_id: "cli_1".to_owned(),
            proxy: None,
            ahead: None,
            token: Ok(()),
            app: None,
            daemon_connected: true,
            sharing: Sharing::Alone,
        }
    }

    #[test]
    fn the_clock_is_judged_in_both_directions() {
        for (ahead, level, en) in [
            (0, Level::Ok, "right"),
            (-30, Level::Ok, "right"),
            (31, Level::Warning, "31 s behind"),
            (-3_600, Level::Warning, "3600 s ahead"),
        ] {
            let found = clock(ahead);
            assert_eq!(found.level, level);
            assert!(found.text.en.contains(en), "{}", found.text.en);
        }
    }

    #[test]
    fn what_feishu_does_not_say_is_a_warning_and_never_a_pass() {
        let silent = Application {
            callback_type: None,
            subscription_type: None,
            ..app()
        };
        assert_eq!(callbacks(&remote(), &silent).level, Level::Warning);
        let events = |app: &Application, versions| events(&remote(), app, &Ok(versions)).level;
        assert_eq!(events(&silent, Vec::new()), Level::Warning);
        assert_eq!(events(&app(), Vec::new()), Level::Ok);
        let published = |events: &[&str]| {
            vec![AppVersion {
                name: None,
                published: true,
                events: events.iter().map(|&event| event.to_owned()).collect(),
            }]
        };
        assert_eq!(events(&silent, published(&[EVENT])), Level::Ok);
        assert_eq!(events(&silent, published(&[])), Level::Problem);
        let unknown = Application {
            callbacks: None,
            ..app()
        };
        assert_eq!(callbacks(&remote(), &unknown).level, Level::Warning);
    }

    #[test]
    fn missing_scopes_come_with_a_link_and_what_to_import() {
        let mut without = app();
        without.scopes.retain(|scope| scope != SEND);
        let found = scopes(&remote(), &without);
        assert_eq!(found.level, Level::Problem);
        let steps = &found.fix[0].en;
        assert!(
            steps.contains("https://open.feishu.cn/app/cli_1/auth?q=im:message:send_as_bot"),
            "{steps}"
        );
        assert!(
            steps.contains(r#"{"scopes":{"tenant":["im:message:send_as_bot"],"user":[]}}"#),
            "{steps}"
        );
        // Any of the alternatives does.
        without.scopes.push("im:message".to_owned());
        assert_eq!(scopes(&remote(), &without).level, Level::Ok);
        without.scopes.retain(|scope| scope != SCOPES[2]);
        assert_eq!(scopes(&remote(), &without).level, Level::Warning);
    }

    #[test]
    fn a_user_id_that_taps_do_not_name_comes_with_the_scope() {
        let found = |open, knows| by_user_id(&remote(), "e33gg", &Ok(open), knows);
        let open = UserId::parse("ou_ann").ok();
        assert_eq!(found(open, false).level, Level::Ok);
        assert_eq!(found(None, true).level, Level::Ok);
        let unknown = found(None, false);
        assert_eq!(unknown.level, Level::Problem);
        assert!(unknown.text.en.contains(USER_IDS), "{}", unknown.text.en);
        assert!(
            unknown.fix[0].en.contains(USER_IDS),
            "{}",
            unknown.fix[0].en
        );
    }

    #[test]
    fn connections_are_compared_with_what_the_daemon_says() {
        for (count, connected, sharing, level) in [
            (0, true, Sharing::Alone, Level::Problem),
            (0, true, Sharing::Passed, Level::Problem),
            (1, true, Sharing::Alone, Level::Ok),
            (2, true, Sharing::Alone, Level::Problem),
            (2, true, Sharing::OneWay, Level::Warning),
            (2, true, Sharing::Passed, Level::Ok),
            (0, false, Sharing::Alone, Level::Ok),
            (1, false, Sharing::Alone, Level::Warning),
            (1, false, Sharing::Passed, Level::Ok),
            (2, false, Sharing::Gateways, Level::Ok),
        ] {
            let found = connections(count, connected, sharing);
            assert_eq!(found.level, level, "{count} {connected} {sharing:?}");
        }
    }
}
