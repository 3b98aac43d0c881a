//! Words on a settled card: what became of the request, by whom, and what that
//! means.

use super::{Text, span};
use crate::approvals::request::{Dropped, Millis};

pub static ANSWERED: Text = Text::new("已回答", "Answered");
pub static ALLOWED: Text = Text::new("已批准", "Allowed");
pub static ALLOWED_SESSION: Text = Text::new("本次会话已允许", "Allowed this session");
pub static ALLOWED_ALWAYS: Text = Text::new("已始终允许", "Always allowed");
pub static DENIED: Text = Text::new("已拒绝", "Denied");
pub static INTERRUPTED: Text = Text::new("已拒绝并中断", "Denied and interrupted");
pub static TERMINAL: Text = Text::new("已在终端处理", "Settled in the terminal");
pub static TERMINAL_YES: Text = Text::new("已在终端批准", "Allowed in the terminal");
pub static TERMINAL_NO: Text = Text::new("已在终端拒绝", "Denied in the terminal");
pub static TIMED_OUT: Text = Text::new("已超时", "Timed out");
pub static HOOK_GONE: Text = Text::new("请求已失效", "Void");
pub static ORPHANED: Text = Text::new("连接已中断", "Connection lost");
pub static UNDELIVERABLE: Text = Text::new("卡片无法送达", "Undeliverable");
pub static DROPPED: Text = Text::new("已取消", "Cancelled");
pub static UNDONE: Text = Text::new("规则已撤销", "Rule undone");
pub static UNCONFIRMED: Text = Text::new("送达未确认", "Unconfirmed");

pub static TIMED_OUT_TEXT: Text = Text::new(
    "在期限内没有人答复，已交回终端处理；这不算拒绝。",
    "Nobody answered in time, so the question went back to the terminal. This is not a denial.",
);
pub static UNANSWERED_TEXT: Text = Text::new(
    "在期限内没有人答复，已按不允许处理。",
    "Nobody answered in time, so it was not allowed.",
);
pub static HOOK_GONE_TEXT: Text = Text::new(
    "提问的进程已退出，请返回终端查看状态。",
    "The process that asked has ended: look at the terminal.",
);
pub static ORPHANED_TEXT: Text = Text::new(
    "nod 重启后提问的进程没有重新连接，请返回终端查看状态。",
    "nod restarted and the process that asked did not come back: look at the terminal.",
);
pub static UNDELIVERABLE_TEXT: Text = Text::new(
    "飞书没有接受这张卡片，已交回终端处理。",
    "Feishu did not take this card, so the question went back to the terminal.",
);
pub static TERMINAL_TEXT: Text = Text::new(
    "这个请求已在终端得到答复。",
    "This request was answered in the terminal.",
);
pub static UNCONFIRMED_TEXT: Text = Text::new(
    "决定已发给 Claude Code，但没有收到确认，请在终端核对。",
    "The decision was sent to Claude Code, but its arrival is not confirmed: check the terminal.",
);
pub static UNDONE_TEXT: Text = Text::new(
    "规则已删除，后续操作将再次询问。",
    "The rule was removed: you will be asked again.",
);

pub static BY: Text = Text::new("操作人", "By");
pub static REASON: Text = Text::new("理由", "Reason");
pub static RULE: Text = Text::new("留下的规则", "The rule it left");
pub static SESSION_RULE: Text = Text::new("本次会话的规则", "The rule for this session");

/// Why a session of nod's own stopped waiting.
pub fn dropped(why: Dropped) -> &'static Text {
    static COMMAND: Text = Text::new(
        "收到了新的命令，不再等待答复；这个操作没有执行。",
        "A command came instead of an answer; nothing was run.",
    );
    static OVER: Text = Text::new(
        "任务已结束，不再需要答复。",
        "The task ended, so no answer is needed any more.",
    );
    static RESTART: Text = Text::new(
        "nod 重启，任务已中断；这个操作没有执行。",
        "nod restarted and the task was interrupted; nothing was run.",
    );
    match why {
        Dropped::Command => &COMMAND,
        Dropped::Over => &OVER,
        Dropped::Restart => &RESTART,
    }
}

/// When it ended, by the reader's clock, and how long it had waited.
pub fn when(local_time: &str, waited: Millis) -> Text {
    let waited = span(waited);
    Text::made(
        format!("{local_time} · 等待 {}", waited.zh),
        format!("{local_time} · waited {}", waited.en),
    )
}
