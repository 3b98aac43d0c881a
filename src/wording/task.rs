//! Words of the card that shows a task from chat, and of the lists a person
//! asks for there.

use super::{Text, ago, span};
use crate::approvals::request::Millis;
use crate::sessions::state::Status;

pub static RUNNING: Text = Text::new("任务执行中", "Task running");
pub static STARTING: Text = Text::new("正在启动 Claude Code", "Starting Claude Code");
pub static DONE: Text = Text::new("任务已完成", "Task done");
pub static INTERRUPTED: Text = Text::new("任务已中断", "Task interrupted");
pub static API_ERROR: Text = Text::new("模型接口出错", "The model could not be reached");
pub static FAILED: Text = Text::new("任务执行失败", "Task failed");
pub static STOPPED: Text = Text::new("任务已停止", "Task stopped");
pub static CRASHED: Text = Text::new("Claude Code 意外退出", "Claude Code ended unexpectedly");
pub static NO_PROGRESS: Text = Text::new("任务超时", "Task timed out");
pub static NOT_STARTED: Text = Text::new("任务未能启动", "Task could not be started");
pub static RESTARTED: Text = Text::new("nod 重启，任务中断", "Interrupted by a restart of nod");

pub static STOP: Text = Text::new("停止", "Stop");
pub static CONFIRM_STOP: Text = Text::new("停止这个任务？", "Stop this task?");
pub static CONFIRM_STOP_TEXT: Text = Text::new(
    "正在执行的操作会被中断，会话之后仍可继续。",
    "What runs is interrupted; the session can be continued later.",
);
pub static STEP: Text = Text::new("当前步骤", "Step");
pub static SAYS: Text = Text::new("Claude", "Claude");
pub static TOOLS: Text = Text::new("工具", "Tools");
pub static COST: Text = Text::new("会话费用", "Session cost");
pub static MODE: Text = Text::new("权限模式", "Mode");
pub static SESSION: Text = Text::new("会话", "Session");
pub static UNGUARDED: Text = Text::new(
    "⚠ 审批已关闭：工具不经询问直接执行。",
    "⚠ Approvals are off: tools run without asking.",
);
pub static ANSWER: Text = Text::new("回答", "Answer");

pub fn failed_tools(count: u32) -> Text {
    Text::made(format!("{count} 次失败"), format!("{count} failed"))
}

pub fn left_out(chars: usize) -> Text {
    let chars = super::grouped(chars);
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
    project: &str,
    title: &str,
    status: Status,
    unused: Millis,
) -> Text {
    let (status, unused) = (super::session::status(status), ago(unused));
    Text::made(
        format!(
            "#{number} {project} · {} · {} · {title}",
            status.zh, unused.zh
        ),
        format!(
            "#{number} {project} · {} · {} · {title}",
            status.en, unused.en
        ),
    )
}

pub const NO_SESSIONS: Text = Text::new(
    "还没有会话。用 /new [项目] 任务 开始一个。",
    "There are no sessions yet. Start one with /new [project] task.",
);
pub const NO_SESSION_HERE: Text = Text::new(
    "这里没有会话。用 /new [项目] 任务 开始一个。",
    "There is no session here. Start one with /new [project] task.",
);
pub const WHICH_SESSION: Text = Text::new(
    "有多个会话正在执行，请在对应的话题中回复。",
    "Several sessions are running: write in the thread you mean.",
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
    "已收到文件，将随你的下一条消息交给 Claude。",
    "Got the file: it goes to Claude with your next message.",
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
        format!("文件 {name} 无法取得（上限 20 MB），消息没有发出。"),
        format!(
            "The file {name} could not be fetched (20 MB at most), so the message was not sent."
        ),
    )
}

pub fn which_project(names: &str) -> Text {
    Text::made(
        format!("请指明项目：/new 项目 任务。可用的项目：{names}"),
        format!("Name the project: /new project task. The projects are: {names}"),
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
