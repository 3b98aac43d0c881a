//! The Chinese of the command line's own help. The English stands beside each
//! command and argument in the code; a test keeps both complete. Pure.

/// What a command or an argument does, by its place: `nod ask`, `nod ask
/// --to`, `nod rules undo <number>`, `nod service install --sandbox=strict`.
const ABOUT: &[(&str, &str)] = &[
    ("nod", "在飞书中批准、回答和指挥编程智能体"),
    ("nod --help", "显示帮助"),
    ("nod --version", "显示版本"),
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
    ("nod demo --no-browser", "只显示页面地址，不打开浏览器"),
    ("nod demo --lang", "卡片、页面和输出的语言"),
    (
        "nod doctor",
        "检查从 Claude Code 到点击的每个环节，指出缺什么",
    ),
    ("nod doctor --click", "发送测试卡片，等待你的点击并测量用时"),
    ("nod doctor --wait", "等待点击的秒数，1 到 3600"),
    ("nod doctor --json", "以 JSON 输出报告"),
    ("nod daemon", "在前台运行守护进程"),
    (
        "nod status",
        "显示守护进程是否在运行、是否已连接、有什么在等待",
    ),
    ("nod status --json", "以 JSON 输出完整报告"),
    ("nod status --watch", "每秒刷新，按 Ctrl-C 结束"),
    ("nod status --metrics", "以 Prometheus 文本格式输出指标"),
    ("nod hook", "处理标准输入上的一个 Claude Code hook 事件"),
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
    ("nod audit", "显示谁在何时、从哪里作了什么决定"),
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
    ("nod simulator", "运行本机上的模拟飞书，用于测试和演示"),
    (
        "nod simulator --port",
        "发现服务和开放接口的端口；0 表示任选空闲端口",
    ),
    (
        "nod simulator --control-port",
        "控制接口的端口；0 表示任选空闲端口",
    ),
    ("nod completions", "输出 shell 的命令补全脚本"),
    ("nod completions <shell>", "为哪个 shell 输出"),
    ("nod man", "输出手册页，可用 `man -l -` 阅读"),
    ("nod announce", "把找不到守护进程的请求告诉群"),
    ("nod settings", "列出全部设置、默认值和可用的值"),
    ("nod settings --zh", "输出中文的表格"),
    ("nod settings --env-example", "输出 `.env.example` 的内容"),
];

/// What stands for a value.
const VALUES: &[(&str, &str)] = &[
    ("APP_ID", "App ID"),
    ("COMMAND", "命令"),
    ("COUNT", "数量"),
    ("DOMAIN", "平台"),
    ("FILE", "文件"),
    ("ID", "id"),
    ("LEVEL", "范围"),
    ("NUMBER", "编号"),
    ("OPTION", "选项"),
    ("PORT", "端口"),
    ("QUESTION", "问题"),
    ("SECONDS", "秒"),
    ("SHELL", "shell"),
    ("TEXT", "文字"),
    ("USER_ID", "用户 id"),
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
