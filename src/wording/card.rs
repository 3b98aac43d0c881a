//! Words on a waiting card: headers, buttons, labels, warnings, and why a
//! button is missing.

mod hidden;

use crate::approvals::request::AskingAgent;
use crate::danger::Danger;
use crate::rules::NoRule;
use crate::text::{Text, grouped};
pub use hidden::{folded, folded_fields, more_changes, more_hits, omitted, omitted_fields};

pub static WAITING: Text = Text::new("等待批准", "Waiting");
pub static WHOLE: Text = Text::new("全文", "Whole text");
pub static BLOCKED: Text = Text::new("请在终端批准", "Terminal only");

pub static ALLOW: Text = Text::new("批准运行", "Allow once");
/// Where a yes holds for more than the one call.
pub static ALLOW_TURN: Text = Text::new("本轮内允许", "Allow for this turn");
/// What a plain allow is called, by whether it holds for the whole turn.
pub fn allow_label(turn: bool) -> &'static Text {
    if turn { &ALLOW_TURN } else { &ALLOW }
}
pub static ALWAYS: Text = Text::new("始终允许", "Always allow");
pub static SESSION: Text = Text::new("本次会话允许", "Allow this session");
pub static DENY: Text = Text::new("拒绝运行", "Deny");
pub static INTERRUPT: Text = Text::new("拒绝并中断", "Deny and interrupt");
pub static WIDER: Text = Text::new("始终允许这一类", "Always allow this kind");
pub static ALLOW_ASKS: Text = Text::new("批准在下方，会再问一次", "Allow is below and asks again");
pub static UNDO: Text = Text::new("撤销规则", "Undo the rule");

pub static REASON: Text = Text::new(
    "拒绝理由（会转告智能体；“拒绝并中断”时不会）",
    "Reason (sent to the agent when you deny, not when you interrupt)",
);
pub static REASON_HINT: Text = Text::new("可不填", "Optional");
pub static DENY_WITH_REASON: Text = Text::new("按此理由拒绝", "Deny with this reason");

pub static CONFIRM_ALWAYS: Text = Text::new("始终允许？", "Always allow?");
pub static CONFIRM_WIDER: Text =
    Text::new("始终允许这一类操作？", "Always allow all of this kind?");
pub static CONFIRM_ALLOW: Text = Text::new("确认批准？", "Allow this?");
pub static CONFIRM_SESSION: Text = Text::new("本次会话内都允许？", "Allow for the whole session?");

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
pub static RULE: Text = Text::new("规则", "Rule");
pub static FOLD_REASON: Text = Text::new("说明理由", "Reason");
pub static FOLD_SESSION: Text = Text::new("本会话", "session");
pub static FOLD_RULE: Text = Text::new("规则", "rule");
pub static FOLD_DETAILS: Text = Text::new("详情", "details");
pub static RULE_FILE: Text = Text::new("写入文件", "Written to");
pub static NO_ALWAYS: Text = Text::new("不提供“始终允许”", "No “always”");

pub static COMMAND: Text = Text::new("命令", "Command");
pub static CLAIM: Text = Text::new(
    "Agent 自述（未经核实）",
    "The agent's own claim (unverified)",
);
pub static PATH: Text = Text::new("文件", "File");
pub static MOVED_TO: Text = Text::new("移动到", "Moved to");
pub static ADDS_FILE: Text = Text::new("新建文件", "A new file");
pub static DELETES_FILE: Text = Text::new("删除文件", "The file is deleted");
pub static REAL_PATH: Text = Text::new("⚠ 符号链接，实际是", "⚠ a link; it really is");
pub static REAL_UNKNOWN: Text = Text::new(
    "⚠ 无法确认该文件的实际位置",
    "⚠ where this file really is could not be found out",
);
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
pub static READ_FIRST: Text = Text::new(
    "全文不在卡片上，已另行发出，请先看过。",
    "The whole text is not on the card but was sent before it: read it first.",
);
pub static SECRET_MASKED: Text = Text::new(
    "含有凭据，已遮盖；实际执行的内容不变。",
    "Credentials are masked here; what runs is unchanged.",
);
/// Of a question, which runs nothing.
pub static SECRET_IN_QUESTION: Text =
    Text::new("含有凭据，已遮盖。", "Credentials are masked here.");
pub static ASKS_BY_CARD: Text = Text::new(
    "飞书没有接受原来的卡片样式；需要再次确认的选项会再发一张卡片来问。",
    "Feishu did not take this card's usual layout: what asks a second time does so by another card.",
);
pub static ASKED_FIRST: Text = Text::new("请再次确认", "Once more");
pub static WITHHELD: Text = Text::new(
    "飞书拒绝显示该请求的内容，请在终端处理。仍可拒绝。",
    "Feishu refused to carry this request's content: answer in the terminal. Denying works.",
);

pub static FINISHED: Text = Text::new("任务已完成", "Finished");
pub static FAILED: Text = Text::new("本轮出错结束", "The turn ended with a fault");
pub static PLANNED: Text = Text::new("计划已给出，请在终端决定", "A plan: decide in the terminal");
pub static PLANNED_TEXT: Text = Text::new(
    "是否执行，Codex 只在终端询问，请在那里选择。回复此卡片，你的话会进入该会话；终端的选择仍会留在那里。",
    "Whether to carry it out is asked in Codex's terminal alone: choose there. A reply to this card goes into the session as words; the choice in the terminal stays.",
);
pub static PLAN_OVER: Text = Text::new("会话已继续", "It went on");
pub static PLAN_OVER_TEXT: Text = Text::new(
    "给出此计划之后，该会话又开始了一轮，或已关闭。",
    "The session has begun another turn since this plan, or was closed.",
);
pub static PLAN_UNWATCHED_TEXT: Text = Text::new(
    "nod 没有一直看着该会话，不知道终端是否仍在等待决定。",
    "nod has not watched the session all the time since, and does not know whether the terminal still waits for a decision.",
);
pub static TERMINAL_WAITS: Text = Text::new("请在终端回答", "Answer in the terminal");
pub static TERMINAL_WAITS_TEXT: Text = Text::new(
    "它在等一个只能在终端回答的问题：内容无法在此完整显示，或是机密。",
    "It waits for an answer that only the terminal can give: it can't be shown here whole, or it is a secret.",
);
pub static NO_ANSWERS_TEXT: Text = Text::new(
    "它在终端问了一个问题。群机器人只能发消息，不能在这里回答。",
    "It asks a question in the terminal. A custom bot can only send, so it can't be answered here.",
);
pub static TERMINAL_OVER: Text = Text::new("终端不再等待", "No longer waiting");
pub static DIALOG_WAITS_TEXT: Text = Text::new(
    "Claude Code 在终端打开了一个对话框，但没有交给 nod：只能在终端回答。",
    "Claude Code opened a dialog in the terminal and did not put it to nod: only the terminal can answer it.",
);
pub static DIALOG_OVER_TEXT: Text = Text::new(
    "终端的对话框已经关闭，无需再处理。",
    "The dialog in the terminal is gone: there is nothing left to do.",
);
pub static TERMINAL_UNWATCHED: Text = Text::new("请看终端", "Look at the terminal");
pub static DIALOG_UNWATCHED_TEXT: Text = Text::new(
    "终端曾打开一个对话框。nod 之后重启过，不知道它是否仍在等待。",
    "A dialog was open in the terminal. nod was restarted since and does not know whether it still waits.",
);
pub static UNKNOWN_WAITS_TEXT: Text = Text::new(
    "它在问 nod 还不认识的事情。请在终端回答，并查看 nod 是否有新版本。",
    "It asks something nod does not know. Answer in the terminal, and see whether there is a newer nod.",
);
pub static IDLE: Text = Text::new("正在等你", "Waiting for you");
pub static FLOOD: Text = Text::new("请求过多，已转到终端", "Too many requests");
pub static FLOOD_TEXT: Text = Text::new(
    "该会话等待回答的请求过多，其余的不再发卡片，请在终端处理。如非预期，请在终端停止该会话。",
    "Too many requests of this session wait for an answer. The rest get no card: answer in the terminal, and stop the session there if this is not what you expect.",
);
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
    Permissions,
    Other,
}

impl Work {
    pub fn of(tool: &str) -> Self {
        match tool {
            "Bash" => Self::Command,
            "Edit" | "MultiEdit" | "NotebookEdit" | "Patch" => Self::Edit,
            "Write" => Self::Write,
            "Read" | "Glob" | "Grep" | "LS" => Self::Read,
            "WebFetch" | "WebSearch" => Self::Web,
            "Agent" | "Task" => Self::Agent,
            "CodexPermissions" => Self::Permissions,
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
            Self::Permissions => "red",
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
            Self::Permissions => Text::new("放宽权限", "get wider permissions"),
            Self::Other => Text::new("使用工具", "use a tool"),
        }
    }
}

pub fn asks_to(agent: &AskingAgent, work: Work) -> Text {
    let (Text { zh, en }, agent) = (work.name(), agent.kind().name());
    Text::made(format!("{agent} 请求{zh}"), format!("{agent} asks to {en}"))
}

/// The title of a card that asks to read a file.
pub fn reads(file: &str) -> Text {
    Text::made(format!("读取 {file}"), format!("Read {file}"))
}

/// The title of a card that asks to search the web.
pub fn searches(query: &str) -> Text {
    Text::made(format!("搜索：{query}"), format!("Search: {query}"))
}

/// What the agent says of itself, on one line.
pub fn claim(said: &str) -> Text {
    Text::made(
        format!("Agent 自称：“{said}”"),
        format!("The agent says: “{said}”"),
    )
}

pub fn expires(local_time: &str) -> Text {
    Text::made(
        format!("{local_time} 前有效，之后请在终端处理"),
        format!("Valid until {local_time}, then in the terminal"),
    )
}

/// The same where no terminal could answer.
pub fn expires_hosted(local_time: &str) -> Text {
    Text::made(
        format!("{local_time} 前有效，之后按不允许处理"),
        format!("Valid until {local_time}, then not allowed"),
    )
}

pub static REPLY_HINT: Text = Text::new(
    "也可直接回复此卡片，以文字拒绝；群里请同时 @ 机器人。",
    "You can also reply to this card to deny with a text; in a group, mention the bot.",
);
/// The same where no terminal could answer.
pub static REPLY_HINT_HOSTED: Text = Text::new(
    "也可在这里写字作答或拒绝；群里请同时 @ 机器人。",
    "You can also write here to answer or to deny with a text; in a group, mention the bot.",
);

pub fn denied_before(times: u32) -> Text {
    Text::made(
        format!("⚠ 相同的操作此前已被拒绝 {times} 次"),
        match times {
            1 => "⚠ The very same call was denied once before".to_owned(),
            _ => format!("⚠ The very same call was denied {times} times before"),
        },
    )
}

pub fn confirm_allow(attention: &str, hidden: bool, masked: bool) -> Text {
    confirm([(hidden, &READ_FIRST), (masked, &SECRET_MASKED)], attention)
}

/// The same before an answer.
pub fn confirm_answer(hidden: bool, masked: bool) -> Text {
    confirm([(hidden, &READ_FIRST), (masked, &SECRET_IN_QUESTION)], "")
}

fn confirm(said: [(bool, &Text); 2], attention: &str) -> Text {
    let said = said.iter().filter(|(holds, _)| *holds);
    let (zh, en): (String, String) = said
        .map(|(_, text)| (text.zh.as_ref(), format!("{} ", text.en)))
        .unzip();
    Text::made(format!("{zh}{attention}"), format!("{en}{attention}"))
}

/// Above one of the messages that carry a long input.
pub fn whole_part(part: usize, of: usize) -> Text {
    Text::made(
        format!("全文 {part}/{of}，待批准的卡片随后"),
        format!("Whole text {part}/{of}, its card follows"),
    )
}

pub fn sent_as_messages(messages: usize) -> Text {
    let above = match messages {
        1 => "message above: read it first".to_owned(),
        _ => format!("{messages} messages above: read them first"),
    };
    Text::made(
        format!("全文已在上方的 {messages} 条消息中，请先看过。"),
        format!("The whole text is in the {above}."),
    )
}

pub fn sent_as_file(name: &str, bytes: usize, digest: &str) -> Text {
    let bytes = grouped(bytes);
    Text::made(
        format!("全文在上方的文件 {name} 中（{bytes} 字节），请先看过。\nSHA-256: {digest}"),
        format!(
            "The whole text is in the file {name} above ({bytes} bytes): read it first.\nSHA-256: {digest}"
        ),
    )
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
        Danger::AgentSettings => Text::new(
            "涉及 Claude 或 nod 自身的设置",
            "touches Claude's or nod's own settings",
        ),
        Danger::Nod => Text::new("直接操作或停止 nod 本身", "operates or stops nod itself"),
        Danger::InOwnersName => {
            Text::new("以你的身份操作飞书", "acts in Feishu under your own name")
        }
        Danger::SystemFiles => Text::new("涉及系统文件", "touches system files"),
        Danger::Schedule => Text::new("涉及计划任务或服务", "touches scheduled jobs or services"),
        Danger::Destroy => Text::new("难以撤销的操作", "is hard to take back"),
        Danger::HardToRead => Text::new("难以辨认实际运行的内容", "hides what it really runs"),
        Danger::SendsOut => Text::new("把本机内容发往外部", "sends something out of this machine"),
        Danger::BuildFiles => Text::new(
            "涉及构建、测试或自动化脚本",
            "touches build, test or automation scripts",
        ),
        Danger::Supply => Text::new("改变或绕过软件来源", "changes where code comes from"),
        Danger::Steers => Text::new(
            "用变量左右其他程序",
            "steers other programs through a variable",
        ),
        Danger::MorePermissions => Text::new(
            "要求沙箱之外的权限",
            "asks for permissions beyond its sandbox",
        ),
        Danger::Lookalike => Text::new(
            "含有形似字母的其他字符",
            "holds letters that pass for others",
        ),
        Danger::RightToLeft => Text::new(
            "含有从右到左的文字，显示次序可能颠倒",
            "holds right-to-left text that may turn words around",
        ),
        Danger::WideOperator => Text::new(
            "含有形似运算符的全角符号",
            "holds wide signs that pass for operators",
        ),
        Danger::ManyMarks => Text::new("字符上叠加过多符号", "piles marks onto a letter"),
    }
}

/// The danger as a header's tag, and how many others there are.
pub fn danger_tag(first: Danger, others: usize) -> Text {
    let Text { zh, en } = danger(first);
    match others {
        0 => Text::made(format!("⚠ {zh}"), format!("⚠ {en}")),
        _ => Text::made(
            format!("⚠ {zh} 等 {} 项", others + 1),
            format!("⚠ {en}, and {others} more"),
        ),
    }
}

pub const fn no_rule(why: NoRule) -> Text {
    match why {
        NoRule::Tool => Text::new(
            "该工具没有足够精确的规则",
            "no rule is exact enough for this tool",
        ),
        NoRule::AnyInput => Text::new(
            "规则会放行该工具的任何参数",
            "a rule would cover any input of this tool",
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
        NoRule::Agent => Text::new(
            "该智能体的规则只按开头匹配",
            "this agent's rules match by beginning only",
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
        NoRule::Stdin => Text::new(
            "它会执行或写入从标准输入读到的内容，规则约束不了",
            "it acts on what its standard input says, which a rule can't hold",
        ),
        NoRule::UnknownProgram => Text::new(
            "nod 不了解这个程序如何使用标准输入，规则约束不了输入",
            "nod does not know what this program does with its standard input, which a rule can't hold",
        ),
        NoRule::NotAFile => Text::new(
            "还没有这样的普通文件，规则可能放行整个目录",
            "there is no such regular file yet, and a rule could come to cover a whole directory",
        ),
        NoRule::Host => Text::new(
            "网址没有公开的域名",
            "the address has no host with a public name",
        ),
        NoRule::Widens => Text::new(
            "会放宽之后所有命令的权限",
            "every later command could do more",
        ),
        NoRule::Sensitive => Text::new("涉及敏感文件", "it touches sensitive files"),
        NoRule::OutsideProject => Text::new("涉及项目之外的路径", "it reaches outside the project"),
    }
}
