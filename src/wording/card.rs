//! Words on a waiting card: headers, buttons, labels, warnings, and why a
//! button is missing.

use super::{Text, grouped};
use crate::cards::danger::Danger;
use crate::rules::NoRule;

pub static WAITING: Text = Text::new("等待批准", "Waiting");
pub static BLOCKED: Text = Text::new("请在终端批准", "Terminal only");

pub static ALLOW: Text = Text::new("批准运行", "Allow once");
pub static ALWAYS: Text = Text::new("始终允许", "Always allow");
pub static SESSION: Text = Text::new("本次会话允许", "Allow this session");
pub static DENY: Text = Text::new("拒绝运行", "Deny");
pub static INTERRUPT: Text = Text::new("拒绝并中断", "Deny and interrupt");
pub static UNDO: Text = Text::new("撤销规则", "Undo the rule");

pub static REASON: Text = Text::new(
    "拒绝理由（会发给 Claude）",
    "Reason (sent to Claude when you deny)",
);
pub static REASON_HINT: Text = Text::new("可不填", "Optional");

pub static CONFIRM_ALWAYS: Text = Text::new("始终允许？", "Always allow?");
pub static CONFIRM_ALLOW: Text = Text::new("确认批准？", "Allow this?");
pub static CONFIRM_SESSION: Text = Text::new("本次会话内都允许？", "Allow for the whole session?");
pub static CONFIRM_INTERRUPT: Text = Text::new("拒绝并中断？", "Deny and interrupt?");
pub static CONFIRM_INTERRUPT_TEXT: Text = Text::new(
    "拒绝此操作，并中断 Claude 当前的工作。",
    "The call is denied and Claude's current turn is stopped.",
);
pub static CONFIRM_UNDO: Text = Text::new("撤销规则？", "Undo the rule?");
pub static CONFIRM_UNDO_TEXT: Text = Text::new(
    "规则会从设置中删除，后续操作将再次询问。已经运行的操作不会撤销。",
    "The rule is removed and you are asked again. What already ran is not undone.",
);

pub static MACHINE: Text = Text::new("机器", "Machine");
pub static USER: Text = Text::new("用户", "User");
pub static PROJECT: Text = Text::new("项目", "Project");
pub static CWD: Text = Text::new("当前目录", "Directory");
pub static BRANCH: Text = Text::new("分支", "Branch");
pub static SESSION_ID: Text = Text::new("会话", "Session");
pub static AGENT: Text = Text::new("子代理", "Subagent");
pub static TOOL: Text = Text::new("工具", "Tool");
pub static ASKED_BY: Text = Text::new("提问者", "Asked by");
pub static A_COMMAND: Text = Text::new("本机的命令", "a command on this machine");
pub static DIGEST: Text = Text::new("校验码", "Digest");
pub static RESUME: Text = Text::new("接续会话", "Resume with");
pub static RULE: Text = Text::new("“始终允许”将写入的规则", "The rule “always” would leave");
pub static SESSION_RULE: Text = Text::new("本次会话的规则", "The rule for this session");
pub static RULE_FILE: Text = Text::new("写入文件", "Written to");
pub static NO_ALWAYS: Text = Text::new("不提供“始终允许”", "No “always”");

pub static COMMAND: Text = Text::new("命令", "Command");
pub static CLAIM: Text = Text::new(
    "Agent 自述（未经核实）",
    "The agent's own claim (unverified)",
);
pub static PATH: Text = Text::new("文件", "File");
pub static OUTSIDE: Text = Text::new("⚠ 在项目之外", "⚠ outside the project");
pub static CHANGES: Text = Text::new("修改", "Changes");
pub static REPLACE_ALL: Text = Text::new("替换所有出现处", "Replaces every occurrence");
pub static CONTENT: Text = Text::new("写入的内容", "Content");
pub static URL: Text = Text::new("网址", "Address");
pub static HOST: Text = Text::new("主机", "Host");
pub static PROMPT: Text = Text::new("提示词", "Prompt");
pub static QUERY: Text = Text::new("搜索内容", "Query");
pub static CELL: Text = Text::new("单元格内容", "Cell source");
pub static FIELDS: Text = Text::new("其他参数", "Other fields");
pub static INPUT: Text = Text::new("参数", "Input");
pub static EMPTY: Text = Text::new("（空）", "(empty)");
pub static UNUSUAL: Text = Text::new(
    "参数格式与该工具不符，以下为原样内容",
    "The input does not have this tool's shape; it is shown as it came",
);

pub static ATTENTION: Text = Text::new("⚠ 请留意", "⚠ Look twice");
pub static HIDDEN_DANGER: Text = Text::new("⚠ 未显示的部分中含有", "⚠ In the part not shown");
pub static TERMINAL_ONLY: Text = Text::new(
    "内容无法完整显示，不能在飞书中批准，请在终端处理。仍可拒绝。",
    "This can't be shown safely, so it can't be allowed from Feishu: answer in the terminal. Denying works.",
);
pub static PARTLY_HIDDEN: Text = Text::new(
    "有部分内容没有显示在卡片上。",
    "Part of the content is not on the card.",
);
pub static SECRET_MASKED: Text = Text::new(
    "含有凭据，已遮盖；实际执行的内容不变。",
    "Credentials are masked here; what runs is unchanged.",
);
pub static WITHHELD: Text = Text::new(
    "飞书拒绝显示该请求的内容，请在终端处理。仍可拒绝。",
    "Feishu refused to carry this request's content: answer in the terminal. Denying works.",
);

pub static FINISHED: Text = Text::new("任务已完成", "Finished");
pub static IDLE: Text = Text::new("Claude 正在等你", "Claude is waiting for you");
pub static FLOOD: Text = Text::new("请求过多，已转到终端", "Too many requests");
pub static FLOOD_TEXT: Text = Text::new(
    "该会话一分钟内的请求超过 10 个，其余的不再发卡片，请在终端处理。如非预期，请在终端停止该会话。",
    "This session asked more than 10 times within a minute. The rest get no card: answer in the terminal, and stop the session there if this is not what you expect.",
);
pub static LAST_MESSAGE: Text = Text::new("最后一条消息", "Last message");
pub static TOOK: Text = Text::new("用时", "Took");

/// What kind of thing a tool does: decides the header's words and colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    Command,
    Edit,
    Write,
    Read,
    Web,
    Agent,
    Mcp,
    Other,
}

impl Work {
    pub fn of(tool: &str) -> Self {
        match tool {
            "Bash" => Self::Command,
            "Edit" | "MultiEdit" | "NotebookEdit" => Self::Edit,
            "Write" => Self::Write,
            "Read" | "Glob" | "Grep" | "LS" => Self::Read,
            "WebFetch" | "WebSearch" => Self::Web,
            "Agent" | "Task" => Self::Agent,
            _ if tool.starts_with("mcp__") => Self::Mcp,
            _ => Self::Other,
        }
    }

    pub const fn colour(self) -> &'static str {
        match self {
            Self::Command => "orange",
            Self::Edit | Self::Write => "violet",
            Self::Read => "blue",
            Self::Web => "turquoise",
            Self::Agent => "indigo",
            Self::Mcp => "purple",
            Self::Other => "wathet",
        }
    }

    /// What the work is called in a header; never the tool's own name, which
    /// may be anything.
    pub const fn name(self) -> Text {
        match self {
            Self::Command => Text::new("运行命令", "run a command"),
            Self::Edit => Text::new("修改文件", "edit a file"),
            Self::Write => Text::new("写入文件", "write a file"),
            Self::Read => Text::new("读取文件", "read files"),
            Self::Web => Text::new("访问网络", "use the web"),
            Self::Agent => Text::new("启动子代理", "start a subagent"),
            Self::Mcp => Text::new("调用 MCP 工具", "call an MCP tool"),
            Self::Other => Text::new("使用工具", "use a tool"),
        }
    }
}

pub fn asks_to(work: Work) -> Text {
    let Text { zh, en } = work.name();
    Text::made(
        format!("Claude Code 请求{zh}"),
        format!("Claude Code asks to {en}"),
    )
}

pub fn expires(local_time: &str) -> Text {
    Text::made(
        format!("{local_time} 前有效，之后请在终端处理。也可直接回复此卡片，以文字拒绝。"),
        format!(
            "Valid until {local_time}, then answer in the terminal. Reply to this card to deny with a text."
        ),
    )
}

/// The same where no terminal could answer.
pub fn expires_hosted(local_time: &str) -> Text {
    Text::made(
        format!("{local_time} 前有效，之后按不允许处理。也可直接回复此卡片作答或拒绝。"),
        format!(
            "Valid until {local_time}, then it is not allowed. Reply to this card to answer or deny with a text."
        ),
    )
}

pub fn omitted(bytes: usize, lines: usize) -> Text {
    let (bytes, lines_text) = (grouped(bytes), grouped(lines));
    if lines == 0 {
        Text::made(
            format!("⟦… 此处省略 {bytes} 字节 …⟧"),
            format!("⟦… {bytes} bytes not shown …⟧"),
        )
    } else {
        Text::made(
            format!("⟦… 此处省略 {lines_text} 行，{bytes} 字节 …⟧"),
            format!("⟦… {lines_text} lines, {bytes} bytes not shown …⟧"),
        )
    }
}

pub fn omitted_fields(fields: usize, bytes: usize) -> Text {
    let (fields, bytes) = (grouped(fields), grouped(bytes));
    Text::made(
        format!("⟦… 此处省略 {fields} 个参数，{bytes} 字节 …⟧"),
        format!("⟦… {fields} fields, {bytes} bytes not shown …⟧"),
    )
}

pub fn more_hits(count: usize) -> Text {
    let count = grouped(count);
    Text::made(format!("……另有 {count} 处"), format!("… and {count} more"))
}

pub fn denied_before(times: u32) -> Text {
    Text::made(
        format!("⚠ 相同的操作此前已被拒绝 {times} 次"),
        format!("⚠ The very same call was denied {times} times before"),
    )
}

pub fn confirm_allow(attention: &str, hidden: bool) -> Text {
    let (zh, en) = if hidden {
        (&*PARTLY_HIDDEN.zh, &*PARTLY_HIDDEN.en)
    } else {
        ("", "")
    };
    Text::made(format!("{zh}{attention}"), format!("{en} {attention}"))
}

pub const fn danger(danger: Danger) -> Text {
    match danger {
        Danger::PipeToShell => Text::new(
            "把内容直接交给 shell 执行",
            "feeds text straight into a shell",
        ),
        Danger::InlineCode => Text::new("执行内联代码", "runs inline code"),
        Danger::RemoveTree => Text::new("批量删除", "deletes in bulk"),
        Danger::Root => Text::new("以管理员身份运行", "runs as root"),
        Danger::ForcePush => Text::new("强制推送或删除远端", "force-pushes or deletes a remote"),
        Danger::DiscardWork => Text::new("丢弃未提交的修改", "discards uncommitted work"),
        Danger::DiskWrite => Text::new("直接写磁盘设备", "writes to a disk device"),
        Danger::OpenMode => Text::new("放宽文件权限", "loosens file permissions"),
        Danger::Decode => Text::new("解码隐藏的内容", "decodes hidden content"),
        Danger::RemoteShell => Text::new("对外开放 shell", "opens a remote shell"),
        Danger::Keys => Text::new("涉及密钥或凭据文件", "touches keys or credentials"),
        Danger::Startup => Text::new("涉及 shell 启动文件", "touches shell start-up files"),
        Danger::GitHooks => Text::new("涉及 git 钩子或配置", "touches git hooks or settings"),
        Danger::AgentSettings => {
            Text::new("涉及 Claude 自身的设置", "touches Claude's own settings")
        }
        Danger::SystemFiles => Text::new("涉及系统文件", "touches system files"),
        Danger::Schedule => Text::new("涉及计划任务或服务", "touches scheduled jobs or services"),
        Danger::Destroy => Text::new("难以撤销的操作", "is hard to take back"),
    }
}

pub const fn no_rule(why: NoRule) -> Text {
    match why {
        NoRule::Tool => Text::new(
            "该工具没有足够精确的规则",
            "no rule is exact enough for this tool",
        ),
        NoRule::Input => Text::new(
            "参数格式与该工具不符",
            "the input does not have this tool's shape",
        ),
        NoRule::Unseen => Text::new(
            "含有换行、控制字符或不可见字符",
            "it holds line breaks, control or invisible characters",
        ),
        NoRule::TooLong => Text::new(
            "内容过长，规则无法完整显示",
            "it is too long for the rule to be shown whole",
        ),
        NoRule::Secret => Text::new(
            "含有凭据，不能写入规则",
            "it holds a credential, which must not stand in a rule",
        ),
        NoRule::Wildcard => Text::new(
            "含有通配符，规则会匹配更多操作",
            "it holds a wildcard, so the rule would match more",
        ),
        NoRule::Unpaired => Text::new(
            "引号或括号不成对",
            "its quotes or parentheses are not paired",
        ),
        NoRule::Compound => Text::new(
            "组合命令没有精确的规则",
            "no exact rule exists for a compound command",
        ),
        NoRule::Expansion => Text::new(
            "含有变量或命令替换，每次执行的内容可能不同",
            "variables or substitutions may make it do something else each time",
        ),
        NoRule::Runner => Text::new(
            "它会运行其他程序或脚本，规则约束不了",
            "it runs other programs, which a rule can't hold",
        ),
        NoRule::Sensitive => Text::new("涉及敏感文件", "it touches sensitive files"),
        NoRule::OutsideProject => Text::new("涉及项目之外的路径", "it reaches outside the project"),
    }
}
