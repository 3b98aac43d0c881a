//! Words of the card that shows a task from chat, and of the lists a person
//! asks for there.

use super::{ago, span};
use crate::clock::Millis;
use crate::sessions::agent::Agent;
use crate::sessions::state::SessionStatus;
use crate::talk::ModelRetry;
use crate::text::{Text, printable};

pub static RUNNING: Text = Text::new("任务执行中", "Task running");
pub fn starting(agent: Agent) -> Text {
    let name = agent.name();
    Text::made(format!("正在启动 {name}"), format!("Starting {name}"))
}
pub static DONE: Text = Text::new("任务已完成", "Task done");
pub static INTERRUPTED: Text = Text::new("任务已中断", "Task interrupted");
pub static API_ERROR: Text = Text::new("模型接口出错", "The model could not be reached");
pub static FAILED: Text = Text::new("任务执行失败", "Task failed");
pub static STOPPED: Text = Text::new("任务已停止", "Task stopped");
pub const TOLD_CODEX: Text = Text::new("已发给 Codex", "Told Codex");
pub const CODEX_AWAY: Text = Text::new(
    "Codex 没有在运行，无法转达。请在终端打开该会话。",
    "Codex is not running, so nothing was told. Open that session in a terminal.",
);
pub static CRASHED: Text = Text::new("意外退出", "Ended unexpectedly");
pub static NO_PROGRESS: Text = Text::new("任务超时", "Task timed out");
pub static NOT_STARTED: Text = Text::new("任务未能启动", "Task could not be started");
pub static RESTARTED: Text = Text::new("nod 重启，任务中断", "Interrupted by a restart of nod");

pub static STOP: Text = Text::new("停止", "Stop");
pub static STEP: Text = Text::new("当前步骤", "Step");
pub static ASKS: Text = Text::new("等待你的回答", "Waits for your answer");
pub static SHOWS_PLAN: Text = Text::new("等待你看计划", "Waits for your word on its plan");
pub static RUNS_FOR: Text = Text::new("已运行", "Running for");
pub static TOOLS: Text = Text::new("工具", "Tools");
pub static COST: Text = Text::new("会话费用", "Session cost");
pub static MODE: Text = Text::new("权限模式", "Mode");
pub static UNGUARDED: Text = Text::new(
    "⚠ 审批已关闭：工具不经询问直接执行。",
    "⚠ Approvals are off: tools run without asking.",
);
pub static ANSWER: Text = Text::new("回答", "Answer");

pub fn number(session: i64) -> Text {
    Text::made(format!("任务 #{session}"), format!("Task #{session}"))
}

pub fn failed_tools(count: u32) -> Text {
    Text::made(format!("{count} 次失败"), format!("{count} failed"))
}

/// A call to the model that is made again: it may be a long wait.
pub fn retry(retry: ModelRetry) -> Text {
    let ModelRetry {
        attempt,
        most,
        status,
    } = retry;
    let or_nothing = |told: Option<String>| told.unwrap_or_default();
    let most_zh = or_nothing(most.map(|most| format!("，最多 {most} 次")));
    let most_en = or_nothing(most.map(|most| format!(" of {most}")));
    let status_zh = or_nothing(status.map(|status| format!("，HTTP {status}")));
    let status_en = or_nothing(status.map(|status| format!(", HTTP {status}")));
    Text::made(
        format!("模型接口没有应答，正在重试（第 {attempt} 次{most_zh}{status_zh}）"),
        format!(
            "The model's API failed and is tried again (attempt {attempt}{most_en}{status_en})"
        ),
    )
}

pub fn left_out(chars: usize) -> Text {
    let chars = crate::text::grouped(chars);
    Text::made(
        format!("回答过长，余下 {chars} 个字符未显示。用上面的命令在终端查看全文。"),
        format!(
            "The answer is too long: {chars} characters are not shown. Resume it in a terminal to read all."
        ),
    )
}

/// One line of `/sessions` and of `/status`.
pub fn session_line(
    number: i64,
    (project, agent): (&str, Agent),
    title: &str,
    status: SessionStatus,
    unused: Millis,
) -> Text {
    let (status, unused) = (super::session::status(status), ago(unused));
    let by = by(agent);
    Text::made(
        format!(
            "#{number} {project}{by} · {} · {} · {title}",
            status.zh, unused.zh
        ),
        format!(
            "#{number} {project}{by} · {} · {} · {title}",
            status.en, unused.en
        ),
    )
}

/// The agent is named where it is not Claude Code.
pub fn by(agent: Agent) -> String {
    match agent {
        Agent::Claude => String::new(),
        Agent::Codex => format!(" · {}", agent.name()),
    }
}

pub const CODEX_OFF: Text = Text::new(
    "这台机器上的 Codex 已关闭（NOD_CODEX=off）。",
    "Codex is off on this machine (NOD_CODEX=off).",
);

/// A terminal's session whose directory is none of the projects.
pub fn no_project_there(directory: &str) -> Text {
    Text::made(
        format!("{directory} 不在 NOD_PROJECTS 中，无法在聊天中继续；用 /say 对它说话。"),
        format!(
            "{directory} is not in NOD_PROJECTS, so the session can't go on in the chat; speak to it with /say."
        ),
    )
}

pub const NOT_TAKEN_OVER: Text = Text::new(
    "只能接管终端中的 Codex 会话；对 Claude Code 的终端用 /say 说话。",
    "Only a Codex session of a terminal can be taken over; speak to one of Claude Code with /say.",
);

pub const NO_SESSIONS: Text = Text::new(
    "还没有会话。用 /new [项目] 任务 开始一个。",
    "There are no sessions yet. Start one with /new [project] task.",
);
pub const NOTHING_WAITS: Text = Text::new("没有等待处理的请求。", "Nothing waits for you.");

/// One request in the list of what waits; `what` and `place` are fit to be seen.
pub fn waiting_line(what: &str, place: &str, runs: bool, age: Millis) -> Text {
    let age = span(age);
    let (zh, en) = if runs {
        ("已运行", "runs for")
    } else {
        ("已等待", "waits")
    };
    Text::made(
        format!("{what} · {place}，{zh} {}", age.zh),
        format!("{what} · {place}, {en} {}", age.en),
    )
}

pub fn more_wait(count: usize) -> Text {
    Text::made(
        format!("另有 {count} 个在等待"),
        format!("and {count} more"),
    )
}

pub const NO_SESSION_HERE: Text = Text::new(
    "这里没有会话。用 /new [项目] 任务 开始一个；全部命令见 /help。",
    "There is no session here. Start one with /new [project] task; /help lists all commands.",
);
pub const ANSWER_REFUSED: Text = Text::new(
    "飞书拒收了回答的一部分，卡片和文字都不行：请在本机用任务卡上的命令接续会话查看。",
    "Feishu refused a part of the answer, as a card and as text: take the session up on the machine with the command on the task's card to read it.",
);
/// Where the answer has nowhere to go, or Feishu was away for a day.
pub fn answer_lost(number: i64) -> Text {
    Text::made(
        format!("会话 #{number} 的一部分回答没能发出：请在本机用任务卡上的命令接续会话查看。"),
        format!(
            "A part of session #{number}'s answer could not be sent: take the session up on the machine with the command on the task's card to read it."
        ),
    )
}
pub const WHICH_SESSION: Text = Text::new(
    "这里有多个会话。请在对应的话题中发送，或回复它的卡片。",
    "There are several sessions here: write in the thread you mean, or reply to its card.",
);
pub const ALREADY_HERE: Text = Text::new(
    "该会话已在聊天中，见 /sessions。",
    "The session is in the chat already, see /sessions.",
);
pub const NO_PROJECTS: Text = Text::new(
    "尚未配置项目：请在 nod 的设置中填写 NOD_PROJECTS（名称=路径）。",
    "No projects are set: fill in NOD_PROJECTS (name=path) in nod's settings.",
);
pub const PROJECT_UNKNOWN: Text = Text::new(
    "该会话的项目已不在设置中。",
    "The session's project is not in the settings any more.",
);
pub const FEISHU_FAILED: Text = Text::new(
    "无法在这里开始会话，请稍后再试。",
    "A session could not be started here. Try again later.",
);
pub const TOO_MANY_SESSIONS: Text = Text::new(
    "同时执行的会话太多，请先停止一个。",
    "Too many sessions are running: stop one first.",
);
pub const BUSY: Text = Text::new(
    "会话太忙，这条消息没有送达，请稍后再发。",
    "The session is too busy and did not get this message: send it again later.",
);
pub const NO_SUCH_SESSION: Text = Text::new(
    "没有这个编号的会话，见 /sessions。",
    "There is no session of this number, see /sessions.",
);
pub const KEPT_FILE: Text = Text::new(
    "已收到文件，将随你的下一条消息交给会话。",
    "Got the file: it goes to the session with your next message.",
);
pub const TOO_MANY_FILES: Text = Text::new(
    "等待发送的文件太多，这一个没有保留。",
    "Too many files are waiting; this one was not kept.",
);
pub const UNREADABLE_KIND: Text = Text::new(
    "暂不支持这种消息，请发送文字、图片或文件。",
    "This kind of message is not supported: send text, an image or a file.",
);

pub fn file_failed(name: &str) -> Text {
    Text::made(
        format!("文件 {name} 无法取得（上限 20 MB，每个任务有总量限制），任务没有带上它。"),
        format!(
            "The file {name} could not be had (20 MB at most, and a task has room for so many), so the task goes on without it."
        ),
    )
}

/// The app may not read what people attach.
pub fn file_scope_missing(name: &str, scope: &str, link: &str) -> Text {
    Text::made(
        format!(
            "文件 {name} 无法取得：应用缺少权限 {scope}，任务没有带上它。在此开通后发布版本：{link}"
        ),
        format!(
            "The file {name} could not be had: the app lacks the scope {scope}, so the task goes on without it. Grant it and publish a version: {link}"
        ),
    )
}

/// Several machines share the app, and the words could be for any.
pub const WHICH_MACHINE: Text = Text::new(
    "有多台机器可能是这条消息的对象。请直接回复对应的卡片，或在任务的话题中发送。",
    "Several machines could be meant. Reply to the card itself, or write in the task's thread.",
);

pub const MACHINE_UNREACHABLE: Text = Text::new(
    "这条消息所属的机器当前无法联系，没有执行。请在该机器上处理，或稍后重新发送。",
    "The machine this message is for cannot be reached; nothing was done. Answer there, or send it again later.",
);

/// `/lock` is meant for every machine.
pub fn not_locked(machines: &str) -> Text {
    Text::made(
        format!("以下机器无法联系，没有锁定：{machines}"),
        format!("These machines could not be reached and are not locked: {machines}"),
    )
}

/// Carrying it out again could do it twice.
pub const CUT_OFF: Text = Text::new(
    "nod 在处理这条消息时重启了。请查看任务是否已开始，必要时重新发送。",
    "nod was restarted while it carried this out. See whether it took effect, and send it again if not.",
);

pub fn too_old(age: Millis) -> Text {
    let age = span(age);
    Text::made(
        format!(
            "这条消息发送于 {} 前，为避免误操作没有执行，请重新发送。",
            age.zh
        ),
        format!(
            "This message is {} old and was not carried out, to be safe. Send it again.",
            age.en
        ),
    )
}

pub fn resumed(number: i64, project: &str) -> Text {
    Text::made(
        format!("已接续会话 #{number}（{project}）。直接发送文字即可继续。"),
        format!("Session #{number} ({project}) is taken up. Send text to continue it."),
    )
}

/// What Codex says about words it did not take; its text is not ours.
pub fn codex_refused(why: &str) -> Text {
    let why = printable(why, 200);
    Text::made(
        format!("Codex 没有接受：{why}"),
        format!("Codex did not take it: {why}"),
    )
}
