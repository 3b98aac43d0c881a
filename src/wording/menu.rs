//! Words of the cards that answer the owner's commands.

use crate::talk::Mode;
use crate::text::Text;

pub static HELP_TITLE: Text = Text::new("nod 能做什么", "What nod can do");
pub static NEW: Text = Text::new("开始新会话", "Start a session");
pub static SESSIONS: Text = Text::new("会话", "Sessions");
pub static PROJECTS: Text = Text::new("项目", "Projects");
pub static MODE: Text = Text::new("权限模式", "Permission mode");
pub static WIDER_BY_TAP: Text = Text::new(
    "文字不能放宽权限，请点击按钮切换。",
    "Words do not widen what it may do: tap the button to switch.",
);
pub static STOP: Text = Text::new("停止当前任务", "Stop the task");
pub static LOCK: Text = Text::new("锁定远程批准", "Lock remote approval");

pub fn start_in(project: &str) -> Text {
    Text::made(
        format!("在 {project} 中开始"),
        format!("Start in {project}"),
    )
}

pub fn go_on(number: i64, project: &str) -> Text {
    Text::made(
        format!("继续 #{number} · {project}"),
        format!("Continue #{number} · {project}"),
    )
}

pub fn say_to(number: usize, place: &str) -> Text {
    Text::made(
        format!("发给终端 T{number} · {place}"),
        format!("Say to T{number} · {place}"),
    )
}

pub fn mode(mode: Mode) -> Text {
    match mode {
        Mode::Default => Text::new("default：逐项询问", "default: asks for each"),
        Mode::AcceptEdits => Text::new(
            "acceptEdits：改文件不再询问",
            "acceptEdits: edits without asking",
        ),
        Mode::Plan => Text::new("plan：只做计划", "plan: plans only"),
    }
}
