//! Words on a settled card: what became of the request, by whom, and what that
//! means.

use super::span;
use crate::approvals::request::Dropped;
use crate::clock::Millis;
use crate::talk::DecidedBy;
use crate::text::Text;

pub static FOLD_RULE: Text = Text::new("规则 · 详情", "Rule · details");
pub static FOLD_UNDO: Text = Text::new("规则 · 撤销 · 详情", "Rule · undo · details");
pub static FOLD_REASON: Text = Text::new("理由 · 详情", "Reason · details");
pub static INPUT_NOT_KEPT: Text = Text::new(
    "请求内容在结束后不保留",
    "What was asked is not kept after the end",
);
pub static ANSWERED: Text = Text::new("已回答", "Answered");
pub static ALLOWED: Text = Text::new("已批准", "Allowed");
pub static ALLOWED_TURN: Text = Text::new("本轮已允许", "Allowed for this turn");
pub static ALLOWED_SESSION: Text = Text::new("本次会话已允许", "Allowed this session");
pub static ALLOWED_ALWAYS: Text = Text::new("已始终允许", "Always allowed");
pub static ALLOWED_WIDER: Text = Text::new("已始终允许这一类", "All of this kind allowed");
pub static DENIED: Text = Text::new("已拒绝", "Denied");
pub static INTERRUPTED: Text = Text::new("已拒绝并中断", "Denied and interrupted");
pub static TERMINAL: Text = Text::new("已在终端处理", "Settled in the terminal");
pub static TERMINAL_YES: Text = Text::new("已在终端批准", "Allowed in the terminal");
pub static TERMINAL_NO: Text = Text::new("已在终端拒绝", "Denied in the terminal");
pub static ELSEWHERE: Text = Text::new("已在别处批准", "Allowed elsewhere");
pub static KEEPS_PLANNING: Text = Text::new("继续完善计划", "Planning goes on");
pub static DECLINED: Text = Text::new("未作回答", "Not answered");
pub static DENIED_ELSEWHERE: Text = Text::new("已在别处拒绝", "Denied elsewhere");
pub static CANCELLED: Text =
    Text::new("已批准，终端已中断", "Allowed, interrupted in the terminal");
/// Nobody knows yet whether the terminal or another hook did.
pub static RUNNING: Text = Text::new("已在电脑上批准，运行中", "Allowed at the computer, running");
pub static STOPPED: Text = Text::new(
    "已在电脑上批准，后被中断",
    "Allowed at the computer, then stopped",
);
pub static TIMED_OUT: Text = Text::new("已超时", "Timed out");
pub static HOOK_GONE: Text = Text::new("请求已失效", "No longer waiting");
pub static ORPHANED: Text = Text::new("连接已中断", "Connection lost");
pub static UNDELIVERABLE: Text = Text::new("卡片无法送达", "Undeliverable");
pub static CUT_OFF: Text = Text::new("已批准，随后被中断", "Allowed, then interrupted");
pub static DROPPED: Text = Text::new("已取消", "Cancelled");
pub static ALLOWED_UNWRITTEN: Text = Text::new("已批准，规则未写入", "Allowed, no rule written");
pub static UNWRITTEN_TEXT: Text = Text::new(
    "终端多半先回答了：文件里没有这条规则，下次仍会询问。",
    "The terminal probably answered first: the rule is not in the file, and you will be asked again.",
);
pub static UNDONE: Text = Text::new("规则已撤销", "Rule undone");

pub static TIMED_OUT_TEXT: Text = Text::new(
    "在期限内没有人答复，已交回终端处理；这不算拒绝。",
    "Nobody answered in time, so the question went back to the terminal. This is not a denial.",
);
pub static UNANSWERED_TEXT: Text = Text::new(
    "在期限内没有人答复，已按不允许处理。",
    "Nobody answered in time, so it was not allowed.",
);
pub static UNATTENDED_TEXT: Text = Text::new(
    "在期限内没有人答复；它没有终端可问（claude -p），所以这次调用没有获准执行。这不算你的拒绝。",
    "Nobody answered in time, and it has no terminal to ask (claude -p), so the call was not let through. This is not your denial.",
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
pub static ELSEWHERE_TEXT: Text = Text::new(
    "是另一个 hook 或一条规则批准的，不是这张卡片。",
    "Another hook or a rule allowed it, not this card.",
);
pub static DENIED_ELSEWHERE_TEXT: Text = Text::new(
    "另一个 hook 或一条规则拒绝了这个操作，它没有运行。",
    "Another hook or a rule refused it. It did not run.",
);
pub static CANCELLED_TEXT: Text = Text::new(
    "更正：批准之后，终端里按下了中断：操作没有执行，或没有执行完。",
    "Corrected: it was interrupted in the terminal after the approval. It did not run, or not to its end.",
);
pub static STOPPED_TEXT: Text = Text::new(
    "终端或另一个 hook 先批准了这个操作；它在运行时被从飞书中断，已经做的部分不会撤回。",
    "The terminal or another hook had allowed it, and it was stopped from Feishu while it ran. What it had done by then stays done.",
);
pub static RUNNING_TEXT: Text = Text::new(
    "终端或另一个 hook 已批准，操作正在运行：拒绝或始终允许不再有效果。",
    "The terminal or another hook allowed it, and it runs: a denial or a rule has no effect any more.",
);
pub static MAY_HAVE_RUN: Text = Text::new(
    "若终端在此前一瞬已批准，操作可能已经执行：中断之后智能体不再说明，请在终端核对。",
    "If the terminal had allowed it a moment before, it may have run: after an interrupt the agent no longer tells. Check in the terminal.",
);
pub static STOP: Text = Text::new("中断", "Stop");
pub static UNCONFIRMED_TEXT: Text = Text::new(
    "决定已发给智能体，但没有收到确认，请在终端核对。",
    "The decision was sent to the agent, but its arrival is not confirmed: check the terminal.",
);
pub static CODEX_KEEPS_IT: Text = Text::new(
    "规则由 Codex 保存在它的 rules/default.rules 中，可在那里删除",
    "Codex keeps the rule in its rules/default.rules and forgets it when the line is removed there",
);
pub static UNDONE_TEXT: Text = Text::new(
    "规则已删除，后续操作将再次询问。",
    "The rule was removed: you will be asked again.",
);

pub static BY: Text = Text::new("操作人", "By");
pub static REASON: Text = Text::new("理由", "Reason");

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
    static CHANGED: Text = Text::new(
        "它要求的内容变了，这张卡片不再有效；若仍需答复，会另发卡片，或只在终端询问。",
        "What it asks changed, so this card no longer counts. It is asked anew, here or in the terminal.",
    );
    static CUT_OFF: Text = Text::new(
        "更正：批准之后，终端里中断了这一轮。操作可能没有执行，或没有执行完，请在终端核对。",
        "Corrected: the turn was interrupted in the terminal after the approval. It may not have run, or not to its end: check there.",
    );
    match why {
        Dropped::CutOff => &CUT_OFF,
        Dropped::Changed => &CHANGED,
        Dropped::Command => &COMMAND,
        Dropped::Over => &OVER,
        Dropped::Restart => &RESTART,
    }
}

/// Since when it runs, by the reader's clock.
pub fn since(local_time: &str) -> Text {
    Text::made(
        format!("自 {local_time} 起运行"),
        format!("running since {local_time}"),
    )
}

/// Of what is over, where nobody knows for how long it ran.
pub fn began(local_time: &str) -> Text {
    Text::made(
        format!("于 {local_time} 开始运行"),
        format!("began to run at {local_time}"),
    )
}

pub fn took(took: Millis) -> Text {
    let took = span(took);
    Text::made(
        format!("运行了 {}。", took.zh),
        format!("It ran for {}.", took.en),
    )
}

/// What was told before and is not the whole truth; the word is the audit's.
pub fn corrects(kind: &str, by: Option<DecidedBy>) -> Text {
    let elsewhere = by == Some(DecidedBy::Other);
    if kind == "interrupt" {
        return Text::new(
            "更正：这张卡片曾显示「已拒绝并中断」，但此前已在电脑上批准；操作在中断之前可能已经执行。",
            "Corrected: not “Denied and interrupted”. It had been allowed at the computer; it may have run before it was stopped.",
        );
    }
    if kind == "hook_gone" && by.is_none() {
        return Text::new(
            "更正：这张卡片曾显示「请求已失效」；操作已经执行，是另一个 hook、一条规则或终端批准的，不是这张卡片。",
            "Corrected: not “No longer waiting”. It ran: another hook, a rule or the terminal allowed it.",
        );
    }
    let said = match kind {
        "deny" => &DENIED,
        "timeout" => &TIMED_OUT,
        "orphaned" => &ORPHANED,
        _ => &HOOK_GONE,
    };
    if kind == "deny" {
        let (zh, en) = if elsewhere {
            ("另一个 hook 或一条规则", "another hook or a rule")
        } else {
            ("终端", "the terminal")
        };
        return Text::made(
            format!(
                "更正：这张卡片曾显示「{}」，但{zh}已先批准，操作已经执行。",
                said.zh
            ),
            format!(
                "Corrected: this card said “{}”, but {en} had allowed it first and it ran.",
                said.en
            ),
        );
    }
    // That was true; what came after it, nobody here decided.
    let (zh, en) = if elsewhere {
        (
            "由另一个 hook 或一条规则批准",
            "allowed by another hook or a rule",
        )
    } else {
        ("在终端批准", "allowed in the terminal")
    };
    Text::made(
        format!("这张卡片曾显示「{}」；操作{zh}并已执行。", said.zh),
        format!("This card said “{}”. It was {en} and ran.", said.en),
    )
}

/// When it ended, by the reader's clock, how long it had waited, and how long
/// it then ran.
pub fn when(local_time: &str, waited: Millis, ran: Option<Millis>) -> Text {
    let waited = span(waited);
    let ran = ran.filter(|ran| *ran >= 1_000).map(span);
    let ran = ran.map_or(Text::new("", ""), |ran| {
        Text::made(format!(" · 运行 {}", ran.zh), format!(" · ran {}", ran.en))
    });
    Text::made(
        format!("{local_time} · 等待 {}{}", waited.zh, ran.zh),
        format!("{local_time} · waited {}{}", waited.en, ran.en),
    )
}
