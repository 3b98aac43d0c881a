//! The Chinese of the command line's own help. The English stands beside each
//! command and argument in the code; a test keeps both complete. Pure.

use crate::text::Lang;

/// What a command or an argument does, by its place: `nod ask`, `nod ask
/// --to`, `nod rules undo <number>`, `nod service install --sandbox=strict`.
const ABOUT: &[(&str, &str)] = &[
    ("nod", "在飞书中批准、回答和指挥编程智能体"),
    ("nod --help", "显示帮助"),
    ("nod --version", "显示版本"),
    (
        "nod --env-file",
        "这次也从这个文件读取设置；其中的内容不会被保存",
    ),
    ("nod help", "显示某个命令的帮助"),
    ("nod setup", "完成全部设置：从创建飞书应用到第一次点击"),
    ("nod setup --domain", "平台：`feishu`、`lark` 或基地址"),
    ("nod setup --app-id", "使用已有的应用"),
    ("nod setup --app-secret-file", "保存 App Secret 的文件"),
    ("nod setup --app-secret-stdin", "从标准输入读取 App Secret"),
    (
        "nod setup --owner",
        "接收卡片并作决定的人：open id、union id 或 user id",
    ),
    ("nod setup --migrate", "沿用 claude-notify 的这个 `.env`"),
    (
        "nod setup --yes",
        "接受所有建议，不再询问；已选定的权限模式除外",
    ),
    ("nod setup --keep-mode", "不改 Claude Code 的权限模式"),
    (
        "nod setup --set-mode",
        "Claude Code 的权限模式使它不询问时，设为 `default`",
    ),
    ("nod setup --browser", "在本机的网页上显示二维码"),
    ("nod setup --no-service", "不安装后台服务"),
    ("nod setup --no-test-card", "不发送测试卡片"),
    ("nod setup --dry-run", "只显示将要做什么，不做任何改动"),
    ("nod setup --uninstall", "撤回 `nod setup` 写入的一切"),
    (
        "nod service",
        "让守护进程一直运行：systemd 用户服务或 launchd 代理",
    ),
    (
        "nod service install",
        "写入服务定义并启动守护进程，以后每次登录自动启动",
    ),
    ("nod service install --print", "只显示服务定义，不写入"),
    ("nod service install --sandbox", "守护进程的权限范围"),
    (
        "nod service install --sandbox=approvals",
        "只转达批准；从聊天发起的会话无法工作",
    ),
    (
        "nod service install --sandbox=strict",
        "同上，且文件系统只读；需要用户命名空间",
    ),
    (
        "nod service install --sandbox=sessions",
        "nod 的全部功能；从聊天启动的 Claude Code 权限与本人相同",
    ),
    ("nod service uninstall", "停止守护进程并移除服务定义"),
    (
        "nod service restart",
        "重新启动守护进程，例如更新之后；等待中的请求会接上",
    ),
    (
        "nod service status",
        "显示后台服务是否在运行；未运行时退出码为 3",
    ),
    ("nod service logs", "显示守护进程的日志"),
    ("nod service logs --follow", "持续显示新的日志"),
    ("nod service logs --lines", "显示多少行"),
    (
        "nod demo",
        "看 nod 如何工作：本机上的模拟飞书和网页，无需账号",
    ),
    ("nod demo --auto", "无人参与，自动走完演示并显示经过"),
    (
        "nod demo --team",
        "演示一个团队：两个网关，两个人的三台电脑",
    ),
    ("nod demo --no-browser", "只显示页面地址，不打开浏览器"),
    ("nod demo --lang", "卡片、页面和输出的语言"),
    (
        "nod doctor",
        "检查从 Claude Code 到点击的每个环节，指出缺什么",
    ),
    ("nod doctor --click", "发送测试卡片，等待你的点击并测量用时"),
    ("nod doctor --wait", "等待点击的秒数，1 到 3600"),
    ("nod doctor --json", "以 JSON 输出报告"),
    ("nod daemon", "运行守护进程：在前台，或加 `--background`"),
    (
        "nod daemon --background",
        "在后台启动，不依赖这个终端，日志写入文件",
    ),
    (
        "nod daemon --other-owner",
        "即使 `--env-file` 指定的所有者或应用与 nod 自己的设置文件不同，也照样运行",
    ),
    (
        "nod status",
        "显示守护进程是否在运行、是否已连接、有什么在等待",
    ),
    ("nod status --json", "以 JSON 输出完整报告"),
    ("nod status --watch", "每秒刷新，按 Ctrl-C 结束"),
    ("nod status --metrics", "以 Prometheus 文本格式输出指标"),
    ("nod hook", "处理标准输入上的一个 Claude Code hook 事件"),
    (
        "nod hook --config",
        "nod 自己的设置文件，绝对路径；由 `nod setup` 写在这里",
    ),
    (
        "nod hook --socket",
        "守护进程监听的地方；仅当该文件和惯常位置都不能说明时需要",
    ),
    ("nod ask", "在飞书中向人提问，并输出回答"),
    (
        "nod ask, after",
        "退出码：0 已回答（或选“是”），1 不回答（或选“否”），3 无人及时回答，4 无法提问。",
    ),
    (
        "nod ask --timeout",
        "等待的秒数，1 到 604800；默认为 `PERMISSION_REQUEST_TIMEOUT`",
    ),
    ("nod ask --default", "没有回答时输出的内容；退出码不变"),
    (
        "nod ask --to",
        "向这个会话（`oc_…`）或这个人（`ou_…`）提问，而不是所有者",
    ),
    ("nod ask --json", "以 JSON 输出回答"),
    ("nod ask confirm", "是或否"),
    ("nod ask confirm <question>", "要问的问题"),
    ("nod ask choice", "多项中选一项，或选任意几项"),
    ("nod ask choice <question>", "要问的问题"),
    ("nod ask choice <options>", "选项，2 到 50 个"),
    ("nod ask choice --multi", "可选任意几项"),
    ("nod ask choice --other", "也可以自己填写"),
    ("nod ask text", "填写文字"),
    ("nod ask text <question>", "要问的问题"),
    ("nod audit", "显示何时作了什么决定、由谁、等了多久"),
    ("nod logs", "持续显示守护进程在做什么：决定、连接、警告"),
    ("nod logs --once", "只显示已有的内容，不等待新的"),
    ("nod logs --lines", "先显示最近多少行"),
    ("nod audit --json", "每行一个 JSON 对象"),
    ("nod audit --last", "显示最近多少条"),
    ("nod audit verify", "检查记录是否被改动或删除过"),
    ("nod rules", "显示点击“始终允许”留下的规则，并可撤销"),
    ("nod rules --json", "每行一个 JSON 对象"),
    ("nod rules undo", "从项目设置中移除这个编号的规则"),
    ("nod rules undo <number>", "`nod rules` 显示的编号"),
    (
        "nod lock",
        "在 `nod unlock` 之前，飞书中不能批准任何请求，只能拒绝",
    ),
    ("nod unlock", "恢复在飞书中批准"),
    ("nod gateway", "运行团队的网关：只有它知道应用密钥"),
    ("nod gateway init", "写入总线的配置、网关的密钥与设置"),
    (
        "nod gateway init --bus",
        "机器连接总线的地址：`wss://`、`tls://`，或本机的 `nats://`",
    ),
    ("nod gateway init --dir", "写到这个目录"),
    (
        "nod gateway init --cert",
        "总线自己的证书（PEM）；没有则只在本机监听",
    ),
    ("nod gateway init --key", "证书的私钥（PEM）"),
    (
        "nod gateway pass",
        "给一台机器发放通行证，输出一行供 `nod join` 使用",
    ),
    (
        "nod gateway pass --owner",
        "机器的所有者：open id（`ou_…`）",
    ),
    (
        "nod gateway pass --key",
        "机器的公钥，即 `nod join` 显示的 `U…`",
    ),
    ("nod gateway pass --days", "有效天数，1 到 366"),
    ("nod gateway forget", "收回一台机器的通行证：总线立即断开它"),
    (
        "nod gateway forget <machine>",
        "机器的名称、id 或公钥（`U…`）",
    ),
    (
        "nod gateway forget --owner",
        "机器的所有者，用于仅凭名称无法确定时",
    ),
    ("nod gateway status", "显示本机网关的状态"),
    ("nod gateway status --json", "输出一个 JSON 对象"),
    (
        "nod gateway status --metrics",
        "以 Prometheus 的文本格式输出",
    ),
    ("nod gateway audit", "显示谁加入、被拒绝或被移除"),
    ("nod gateway audit --last", "显示最近多少条"),
    ("nod gateway audit --json", "每行一个 JSON 对象"),
    ("nod join", "使本机加入团队，使用网关给出的一行"),
    (
        "nod join <line>",
        "机器人对 `/join` 的回复，或管理员给出的一行；不写则显示本机的公钥",
    ),
    ("nod join --yes", "同意这一行所指的所有者与总线"),
    (
        "nod join --replace",
        "与 `--yes` 同用：也覆盖属于其他所有者或总线的通行证",
    ),
    ("nod simulator", "运行本机上的模拟飞书，用于测试和演示"),
    (
        "nod simulator --port",
        "发现服务和开放接口的端口；0 表示任选空闲端口",
    ),
    (
        "nod simulator --control-port",
        "控制接口的端口；0 表示任选空闲端口",
    ),
    (
        "nod simulator --open",
        "不要求令牌：这台机器上的任何用户都可以点击和发消息",
    ),
    ("nod completions", "输出 shell 的命令补全脚本"),
    ("nod completions <shell>", "为哪个 shell 输出"),
    ("nod man", "输出手册页，可用 `man -l -` 阅读"),
    ("nod announce", "把找不到守护进程的请求告诉群"),
    ("nod announce --config", "nod 自己的设置文件，由 hook 给出"),
    ("nod guard", "启动它的守护进程不在之后，结束一个进程组"),
    ("nod guard <group>", "要结束的进程组"),
    ("nod settings", "显示每项设置及其来源，或修改其中一项"),
    (
        "nod settings --markdown",
        "README 中的表格：每项设置、默认值和可用的值",
    ),
    ("nod settings --zh", "输出中文的表格"),
    (
        "nod settings set",
        "在 nod 自己的文件中设置一项；其他行和注释保持不变",
    ),
    ("nod settings set <name>", "设置的名称，见 `nod settings`"),
    (
        "nod settings set <value>",
        "设置的值；空引号表示取消，不写则会询问且不显示",
    ),
    ("nod settings --env-example", "输出 `.env.example` 的内容"),
    ("nod update", "查看是否有更新的 nod，以及更新的命令"),
];

/// Commands that belong together, as the first page shows them: each row by the
/// first of its names.
pub(in crate::cli) struct CommandGroup {
    pub(in crate::cli) zh: &'static str,
    pub(in crate::cli) en: &'static str,
    pub(in crate::cli) rows: &'static [&'static [&'static str]],
}

pub(in crate::cli) const GROUPS: &[CommandGroup] = &[
    CommandGroup {
        zh: "开始：",
        en: "To begin:",
        rows: &[&["demo"], &["setup"], &["doctor"]],
    },
    CommandGroup {
        zh: "日常：",
        en: "Day by day:",
        rows: &[
            &["status"],
            &["ask"],
            &["audit"],
            &["logs"],
            &["rules"],
            &["lock", "unlock"],
        ],
    },
    CommandGroup {
        zh: "运行：",
        en: "To keep it running:",
        rows: &[&["service"], &["daemon"], &["settings"], &["update"]],
    },
];

/// The rest, which programs call or few people need.
pub(in crate::cli) const OTHERS: &[&str] = &[
    "gateway",
    "join",
    "hook",
    "simulator",
    "completions",
    "man",
    "help",
];

/// How a command is used, where its options alone don't show it.
const EXAMPLES: &[(&str, &[&str], &[&str])] = &[
    (
        "nod ask",
        &[
            "nod ask confirm '部署到生产环境？' && ./deploy",
            "nod ask choice '升级到哪个版本？' 1.4 2.0 --timeout 600",
        ],
        &[
            "nod ask confirm 'Deploy to production?' && ./deploy",
            "nod ask choice 'Which version?' 1.4 2.0 --timeout 600",
        ],
    ),
    (
        "nod settings set",
        &[
            "nod settings set PERMISSION_REQUEST_TIMEOUT 600    # 等十分钟",
            "nod settings set FEISHU_APP_SECRET    # 会询问，不显示",
        ],
        &[
            "nod settings set PERMISSION_REQUEST_TIMEOUT 600",
            "nod settings set FEISHU_APP_SECRET    # asks, and shows nothing",
        ],
    ),
];

pub(in crate::cli) fn examples(command: &str, lang: Lang) -> &'static [&'static str] {
    let found = EXAMPLES.iter().find(|(name, ..)| *name == command);
    match (found, lang) {
        (Some((_, zh, _)), Lang::Zh) => zh,
        (Some((.., en)), Lang::En) => en,
        (None, _) => &[],
    }
}

/// What stands for a value.
const VALUES: &[(&str, &str)] = &[
    ("APP_ID", "App ID"),
    ("COMMAND", "命令"),
    ("COUNT", "数量"),
    ("DAYS", "天数"),
    ("DIR", "目录"),
    ("DOMAIN", "平台"),
    ("FILE", "文件"),
    ("GROUP", "进程组"),
    ("ID", "id"),
    ("KEY", "公钥"),
    ("LEVEL", "范围"),
    ("LINE", "一行"),
    ("MACHINE", "机器"),
    ("NAME", "名称"),
    ("NUMBER", "编号"),
    ("OPTION", "选项"),
    ("PATH", "路径"),
    ("PORT", "端口"),
    ("QUESTION", "问题"),
    ("SECONDS", "秒"),
    ("SHELL", "shell"),
    ("TEXT", "文字"),
    ("URL", "地址"),
    ("USER_ID", "用户 id"),
    ("VALUE", "值"),
    ("zh|en", "zh|en"),
];

/// The Chinese for what stands at `place` in `command`; a flag given to all
/// commands below one has its words there.
pub(in crate::cli) fn about(command: &str, place: &str) -> Option<&'static str> {
    let mut command = Some(command);
    while let Some(at) = command {
        let key = [at, place].join("");
        let found = ABOUT.iter().find(|(known, _)| *known == key);
        if let Some((_, zh)) = found {
            return Some(zh);
        }
        if place.is_empty() {
            return None;
        }
        command = at.rsplit_once(' ').map(|(above, _)| above);
    }
    None
}

pub(in crate::cli) fn value(name: &str) -> Option<&'static str> {
    let found = VALUES.iter().find(|(known, _)| *known == name);
    found.map(|(_, zh)| *zh)
}

#[cfg(test)]
pub(in crate::cli) fn places() -> impl Iterator<Item = &'static str> {
    ABOUT.iter().map(|(place, _)| *place)
}

#[cfg(test)]
pub(in crate::cli) fn values() -> impl Iterator<Item = &'static str> {
    VALUES.iter().map(|(name, _)| *name)
}
