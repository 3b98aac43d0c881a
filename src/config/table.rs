//! The one table of settings. Parsing, `.env.example`, the README's table and
//! `nod doctor` all come from it; a test keeps the written ones equal to it.

use std::fmt::Write as _;

pub struct Setting {
    pub name: &'static str,
    pub default: Fallback,
    /// What a value may be, for the error and the table.
    pub accepts: &'static str,
    pub about: &'static str,
    pub about_zh: &'static str,
    /// Whether the value must never be shown.
    pub secret: bool,
}

impl Setting {
    /// Whether the daemon can't run without a value.
    pub(crate) const fn is_needed(&self) -> bool {
        matches!(self.default, Fallback::Needed)
    }
}

/// What holds when a setting is not given.
pub enum Fallback {
    /// Nothing: the setting is needed for the daemon to run.
    Needed,
    Nothing,
    Value(&'static str),
    /// A value worked out from the machine, described.
    /// Told in English and Chinese.
    Derived(&'static str, &'static str),
}

pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "FEISHU_APP_ID",
        default: Fallback::Needed,
        accepts: "`cli_` and 8 to 64 letters or digits",
        about: "The app's id, from its credentials page",
        about_zh: "应用的 App ID（凭证与基础信息）",
        secret: false,
    },
    Setting {
        name: "FEISHU_APP_SECRET",
        default: Fallback::Needed,
        accepts: "the secret as the console shows it, without blanks",
        about: "The app's secret; keep the file it stands in private",
        about_zh: "应用的 App Secret；所在文件请勿公开",
        secret: true,
    },
    Setting {
        name: "FEISHU_DOMAIN",
        default: Fallback::Value("feishu"),
        accepts: "`feishu`, `lark`, or a base URL (plain http only to this machine)",
        about: "The platform the app lives on",
        about_zh: "应用所在平台：feishu、lark 或自定义地址",
        secret: false,
    },
    Setting {
        name: "FEISHU_OWNER_ID",
        default: Fallback::Nothing,
        accepts: "an open id (`ou_…`), a union id (`on_…`) or a user id",
        about: "The person who gets the cards and may decide",
        about_zh: "接收卡片并有权决定的人",
        secret: false,
    },
    Setting {
        name: "FEISHU_APPROVERS",
        default: Fallback::Nothing,
        accepts: "user ids separated by commas",
        about: "Others who may decide, besides the owner",
        about_zh: "除所有者外，其他有权决定的人（逗号分隔）",
        secret: false,
    },
    Setting {
        name: "FEISHU_CHAT_ID",
        default: Fallback::Nothing,
        accepts: "a chat id (`oc_…`)",
        about: "Send cards to this group instead of the owner's private chat",
        about_zh: "将卡片发送到该群，而非所有者私聊",
        secret: false,
    },
    Setting {
        name: "FEISHU_SEND_MODE",
        default: Fallback::Value("app"),
        accepts: "`app` or `webhook`",
        about: "`webhook`: cards come from a group's custom bot and decisions from pages this machine serves; no app is needed, and whoever holds a link decides",
        about_zh: "webhook：由群自定义机器人发卡片，在本机页面上决定，无需应用；持有链接者即可决定",
        secret: false,
    },
    Setting {
        name: "FEISHU_WEBHOOK_URL",
        default: Fallback::Nothing,
        accepts: "the custom bot's address, ending in `/open-apis/bot/v2/hook/…`",
        about: "Where webhook mode posts its cards",
        about_zh: "webhook 模式下自定义机器人的地址",
        secret: true,
    },
    Setting {
        name: "FEISHU_WEBHOOK_SECRET",
        default: Fallback::Nothing,
        accepts: "the signing secret as the bot's page shows it, without blanks",
        about: "Signs webhook messages, if the bot asks for signatures",
        about_zh: "自定义机器人的签名密钥（启用签名校验时）",
        secret: true,
    },
    Setting {
        name: "CALLBACK_LISTEN",
        default: Fallback::Nothing,
        accepts: "an IP address and a port, as `127.0.0.1:8080`",
        about: "Serve `/callback/decision`, `/status` and the webhook mode's pages here; nothing is served without it",
        about_zh: "HTTP 服务监听地址；不设置则不监听",
        secret: false,
    },
    Setting {
        name: "CALLBACK_SERVER_URL",
        default: Fallback::Nothing,
        accepts: "`http://` or `https://`, a host and perhaps a port, and no path",
        about: "This machine's address as the other machines, or the phones in webhook mode, reach it",
        about_zh: "其他机器（或 webhook 模式下的手机）访问本机的地址",
        secret: false,
    },
    Setting {
        name: "CALLBACK_PEERS",
        default: Fallback::Nothing,
        accepts: "addresses like `CALLBACK_SERVER_URL`, separated by commas",
        about: "The other machines of this app, which are asked whose a chat message is; also callback services on loopback and those that are not nod",
        about_zh: "同一应用的其他机器地址（逗号分隔），用于确认聊天消息属于哪台机器；回环地址上的服务和非 nod 服务也在此列出",
        secret: false,
    },
    Setting {
        name: "CALLBACK_PEER_TOKENS",
        default: Fallback::Nothing,
        accepts: "`ADDRESS=TOKEN` pairs separated by commas, each token 8 to 128 characters without blanks",
        about: "What a service of `CALLBACK_PEERS` that is not nod wants in `X-Auth-Token`; sent to that address only",
        about_zh: "CALLBACK_PEERS 中非 nod 服务要求的 X-Auth-Token；只发给对应地址",
        secret: true,
    },
    Setting {
        name: "CALLBACK_SECRET",
        default: Fallback::Derived(
            "derived from `FEISHU_APP_SECRET`",
            "由 `FEISHU_APP_SECRET` 导出",
        ),
        accepts: "16 to 128 characters without blanks, the same on every machine",
        about: "Seals what machines tell each other; webhook mode needs it to listen beyond loopback",
        about_zh: "机器之间通信的密钥；webhook 模式监听非回环地址时必填",
        secret: true,
    },
    Setting {
        name: "CALLBACK_ALLOW_UNSEALED",
        default: Fallback::Value("false"),
        accepts: "`true` or `false`",
        about: "Take decisions without a seal over loopback, and send them to `CALLBACK_PEERS`: for callback services that are not nod; any program on this machine could then decide",
        about_zh: "允许回环地址上的无签名决定（用于非 nod 的回调服务）；本机任意程序都可决定",
        secret: false,
    },
    Setting {
        name: "PERMISSION_SOCKET_PATH",
        default: Fallback::Derived(
            "`nod.sock` in a private directory, and `/tmp/claude-permission.sock` for old clients",
            "私有目录中的 `nod.sock`，旧客户端另用 `/tmp/claude-permission.sock`",
        ),
        accepts: "an absolute path of at most 107 bytes",
        about: "Listen on, and connect to, this Unix socket only",
        about_zh: "仅使用该 Unix 套接字路径",
        secret: false,
    },
    Setting {
        name: "PERMISSION_REQUEST_TIMEOUT",
        default: Fallback::Value("300"),
        accepts: "seconds from 1 to 86400",
        about: "How long a request waits for a tap before the terminal decides",
        about_zh: "等待点击的秒数，超时后由终端决定",
        secret: false,
    },
    Setting {
        name: "PERMISSION_NOTIFY_DELAY",
        default: Fallback::Value("0"),
        accepts: "seconds from 0 to 3600",
        about: "Head start of the terminal: the card is sent this much later",
        about_zh: "先给终端的秒数，之后才发送卡片",
        secret: false,
    },
    Setting {
        name: "NOD_CARDS_AT_ONCE",
        default: Fallback::Value("10"),
        accepts: "a number from 1 to 100",
        about: "Requests of one session that may wait with a card each; further ones are gathered on one card",
        about_zh: "同一会话最多同时有多少个请求各发一张卡片；更多的汇集到一张卡片上",
        secret: false,
    },
    Setting {
        name: "NOD_NOTIFY_STOP_AFTER",
        default: Fallback::Value("60"),
        accepts: "seconds from 0 to 86400, or `off`",
        about: "Tell the owner when a turn that took longer than this ends",
        about_zh: "回合耗时超过该秒数时，结束后通知所有者；off 关闭",
        secret: false,
    },
    Setting {
        name: "NOD_PREVIEWS",
        default: Fallback::Value("full"),
        accepts: "`full` or `state`",
        about: "What lock screens and the list of chats say of a card: what it is about, or only its state",
        about_zh: "锁屏与会话列表的预览：full 含内容，state 只有状态",
        secret: false,
    },
    Setting {
        name: "NOD_CHAT_RATE",
        default: Fallback::Value("4"),
        accepts: "a number from 1 to 1000",
        about: "Messages a second to one chat; Feishu allows 5 for all bots together",
        about_zh: "每秒向同一会话发送的消息数上限（飞书限制为 5）",
        secret: false,
    },
    Setting {
        name: "NOD_BUS_URL",
        default: Fallback::Nothing,
        accepts: "`wss://`, `tls://`, or on this machine `nats://`, a host and a port",
        about: "Where a team's bus is; a machine knows it from its pass, a gateway needs it",
        about_zh: "团队总线的地址；机器可从通行证得知，网关必须设置",
        secret: false,
    },
    Setting {
        name: "NOD_BUS_PASS",
        default: Fallback::Derived(
            "`bus.pass` in `NOD_STATE_DIR`",
            "`NOD_STATE_DIR` 中的 `bus.pass`",
        ),
        accepts: "an absolute path",
        about: "The pass that makes this machine a member of a team; no app secret may be set beside it",
        about_zh: "使本机成为团队成员的通行证；不得与应用密钥同时设置",
        secret: false,
    },
    Setting {
        name: "NOD_BUS_KEYS",
        default: Fallback::Derived(
            "`bus.keys` in `NOD_STATE_DIR`",
            "`NOD_STATE_DIR` 中的 `bus.keys`",
        ),
        accepts: "an absolute path",
        about: "The keys of a team's gateway, as `nod gateway init` writes them",
        about_zh: "团队网关的密钥文件，由 `nod gateway init` 生成",
        secret: false,
    },
    Setting {
        name: "NOD_GATEWAY_CHATS",
        default: Fallback::Nothing,
        accepts: "chat ids (`oc_…`) separated by commas",
        about: "The group chats that every machine of a team may write to through the gateway",
        about_zh: "团队机器可经网关写入的群聊（逗号分隔）",
        secret: false,
    },
    Setting {
        name: "NOD_APP_RATE",
        default: Fallback::Value("900"),
        accepts: "a number from 20 to 1000000",
        about: "Calls of one kind a minute that all gateways of a team make together; Feishu allows an app 1000",
        about_zh: "团队所有网关每分钟合计的同类调用数上限（飞书限制每个应用 1000 次）",
        secret: false,
    },
    Setting {
        name: "NOD_MACHINE_NAME",
        default: Fallback::Derived("the host name", "主机名"),
        accepts: "1 to 64 characters on one line",
        about: "What cards and a team call this machine",
        about_zh: "卡片上和团队中对本机的称呼",
        secret: false,
    },
    Setting {
        name: "NOD_PROJECTS",
        default: Fallback::Nothing,
        accepts: "`name=/path` or `name@codex=/path` entries separated by commas, each path a directory that exists",
        about: "The projects in which the owner may start sessions from chat; `@codex` makes Codex the agent there",
        about_zh: "可以从聊天中启动会话的项目：名称=路径，逗号分隔；写成 名称@codex=路径 则默认使用 Codex",
        secret: false,
    },
    Setting {
        name: "NOD_CLAUDE",
        default: Fallback::Value("claude"),
        accepts: "a program's name or an absolute path",
        about: "The Claude Code program that sessions from chat run",
        about_zh: "聊天会话所运行的 Claude Code 程序",
        secret: false,
    },
    Setting {
        name: "NOD_CODEX_PROGRAM",
        default: Fallback::Value("codex"),
        accepts: "a program's name or an absolute path",
        about: "The Codex program that sessions from chat run",
        about_zh: "聊天会话所运行的 Codex 程序",
        secret: false,
    },
    Setting {
        name: "NOD_CODEX",
        default: Fallback::Derived("`CODEX_HOME`, or `~/.codex`", "`CODEX_HOME` 或 `~/.codex`"),
        accepts: "`off`, or absolute paths separated by commas",
        about: "The homes of Codex whose sessions are followed beside their terminals; `off` follows none and starts none",
        about_zh: "并行跟随其终端会话的 Codex 主目录（逗号分隔）；off 表示不跟随也不启动",
        secret: false,
    },
    Setting {
        name: "TOOL_APPROVAL_ENABLED",
        default: Fallback::Value("true"),
        accepts: "`true`, or `false` together with `NOD_ALLOW_BYPASS=true`",
        about: "Whether tools in sessions from chat wait for an approval",
        about_zh: "聊天会话中的工具是否需要审批；关闭还须设置 NOD_ALLOW_BYPASS=true",
        secret: false,
    },
    Setting {
        name: "NOD_ALLOW_BYPASS",
        default: Fallback::Value("false"),
        accepts: "`true` or `false`",
        about: "The second word that is needed to run sessions from chat without approvals",
        about_zh: "确认允许聊天会话不经审批执行工具",
        secret: false,
    },
    Setting {
        name: "NOD_TOOL_TIMEOUT",
        default: Fallback::Value("120"),
        accepts: "seconds from 1 to 86400",
        about: "How long a tool in a session from chat waits for a tap before it is refused",
        about_zh: "聊天会话中等待审批的秒数，超时则不执行",
        secret: false,
    },
    Setting {
        name: "NOD_QUESTION_TIMEOUT",
        default: Fallback::Value("300"),
        accepts: "seconds from 1 to 86400",
        about: "How long a question in a session from chat waits before its task is cancelled",
        about_zh: "聊天会话中等待回答的秒数，超时则取消任务",
        secret: false,
    },
    Setting {
        name: "NOD_TASK_TIMEOUT",
        default: Fallback::Value("1800"),
        accepts: "seconds from 1 to 86400",
        about: "How long a task from chat may show no progress before it is stopped",
        about_zh: "聊天任务多少秒没有进展即停止",
        secret: false,
    },
    Setting {
        name: "NOD_STATE_DIR",
        default: Fallback::Derived(
            "`$XDG_STATE_HOME/nod`, else `~/.local/state/nod`",
            "`$XDG_STATE_HOME/nod`，否则 `~/.local/state/nod`",
        ),
        accepts: "an absolute path",
        about: "Where nod keeps its database, lock and socket; a daemon with its own does not serve `/tmp/claude-permission.sock` unless `PERMISSION_SOCKET_PATH` names it",
        about_zh: "状态目录（数据库、锁与套接字）；单独设置后不再监听 `/tmp/claude-permission.sock`，除非由 `PERMISSION_SOCKET_PATH` 指定",
        secret: false,
    },
    Setting {
        name: "NOD_LANG",
        default: Fallback::Value("zh"),
        accepts: "`zh` or `en`",
        about: "Language of cards and messages; the terminal follows its locale unless this is set",
        about_zh: "卡片与提示的语言；未设置时，终端跟随系统语言",
        secret: false,
    },
    Setting {
        name: "NOD_LOG",
        default: Fallback::Value("info"),
        accepts: "`off`, `error`, `warn`, `info`, `debug` or `trace`",
        about: "How much the daemon logs",
        about_zh: "日志级别",
        secret: false,
    },
    Setting {
        name: "NOD_CA_FILE",
        default: Fallback::Nothing,
        accepts: "the path of a PEM file",
        about: "A certificate authority to trust besides the system's",
        about_zh: "额外信任的 CA 证书（PEM 文件）",
        secret: false,
    },
    Setting {
        name: "HTTPS_PROXY",
        default: Fallback::Nothing,
        accepts: "`http://`, `https://`, `socks5://` or `socks5h://`, a host and a port",
        about: "Proxy for both the REST calls and the long connection; `ALL_PROXY` and `NO_PROXY` work too",
        about_zh: "代理，同时用于接口与长连接；也支持 ALL_PROXY、NO_PROXY",
        secret: true,
    },
];

/// The text of `.env.example`.
pub fn env_example() -> String {
    let mut out = String::from(
        "# nod's settings. Copy to `~/.config/nod/.env`, mode 0600. The environment wins over\n\
         # it. A `.env` elsewhere counts only where `--env-file` names it.\n",
    );
    for setting in SETTINGS {
        let shown = match setting.default {
            Fallback::Value(value) => value,
            Fallback::Needed | Fallback::Nothing | Fallback::Derived(..) => "",
        };
        let mark = if matches!(setting.default, Fallback::Needed) {
            ""
        } else {
            "# "
        };
        let _ = write!(
            out,
            "\n# {}. Accepts {}.\n# {}\n{mark}{}={shown}\n",
            setting.about, setting.accepts, setting.about_zh, setting.name
        );
    }
    out
}

/// The Chinese README's table; `accepts` tells what a setting takes.
pub fn readme_table_zh(accepts: impl Fn(&str) -> &'static str) -> String {
    let mut out = String::from("| 设置 | 默认 | 可用的值 | 作用 |\n|---|---|---|---|\n");
    for setting in SETTINGS {
        let default = match setting.default {
            Fallback::Needed => "必填".to_owned(),
            Fallback::Nothing => String::new(),
            Fallback::Value(value) => format!("`{value}`"),
            Fallback::Derived(_, text) => text.to_owned(),
        };
        let (name, accepts) = (setting.name, accepts(setting.name));
        let _ = writeln!(
            out,
            "| `{name}` | {default} | {accepts} | {} |",
            setting.about_zh
        );
    }
    out
}

/// The README's table.
pub fn readme_table() -> String {
    let mut out =
        String::from("| setting | default | accepts | what it does |\n|---|---|---|---|\n");
    for setting in SETTINGS {
        let default = match setting.default {
            Fallback::Needed => "needed".to_owned(),
            Fallback::Nothing => String::new(),
            Fallback::Value(value) => format!("`{value}`"),
            Fallback::Derived(text, _) => text.to_owned(),
        };
        let _ = writeln!(
            out,
            "| `{}` | {default} | {} | {} |",
            setting.name, setting.accepts, setting.about
        );
    }
    out
}
