//! What is said about the sessions in terminals when a person speaks to them
//! from the chat, and about words that decide nothing.

use super::card::ALLOW;
use super::question::{APPROVE_PLAN, YES};
use crate::claude::status::Activity;
use crate::text::Text;

/// `place` names the directory of the session in each.
pub fn read(place: &str) -> Text {
    Text::made(
        format!("已送达终端会话（{place}），它开始处理；结束后通知你。"),
        format!("Delivered to the terminal ({place}): it works on it. You are told when it ends."),
    )
}

pub fn queued(place: &str) -> Text {
    Text::made(
        format!("已送达终端会话（{place}）。它正忙，会在两步之间读到；结束后通知你。"),
        format!(
            "Delivered to the terminal ({place}). It is busy and reads it between two steps. You are told when it ends."
        ),
    )
}

pub fn behind_dialog(place: &str) -> Text {
    Text::made(
        format!(
            "已送达终端会话（{place}）。那里有对话框在等待回答，回答之后才会读到；结束后通知你。"
        ),
        format!(
            "Delivered to the terminal ({place}). A dialog is open there, and it is read once that is answered. You are told when it ends."
        ),
    )
}

pub fn held(place: &str) -> Text {
    Text::made(
        format!("消息留在终端（{place}）等那里的人放行，Claude 还没有看到；无人放行则会被丢弃。"),
        format!(
            "Held at the terminal ({place}) until somebody there lets it in. Claude has not seen it, and it is dropped if nobody does."
        ),
    )
}

pub fn refused(place: &str) -> Text {
    Text::made(
        format!(
            "终端会话（{place}）没有接收：它的 crossSessionInbound 设置可能拒绝这类消息。请在终端输入。"
        ),
        format!(
            "The terminal ({place}) did not take it: its setting crossSessionInbound may refuse such messages. Type it there."
        ),
    )
}

pub fn no_mailbox(place: &str) -> Text {
    Text::made(
        format!(
            "没有送达：无法向该会话（{place}）的终端发话（需要 Claude Code 2.1.224 或更新版本）。"
        ),
        format!(
            "Not delivered: the session's terminal ({place}) takes no words (Claude Code 2.1.224 or newer does)."
        ),
    )
}

pub fn gone(place: &str) -> Text {
    Text::made(
        format!("没有送达：该会话（{place}）已在终端结束。"),
        format!("Not delivered: the session ({place}) has ended in its terminal."),
    )
}

pub fn unknown(place: &str) -> Text {
    Text::made(
        format!("没有送达：nod 启动后还没有收到该会话（{place}）的消息，无法向它发话。"),
        format!(
            "Not delivered: nod has not heard from the session ({place}) since it started and cannot speak to it."
        ),
    )
}

pub static WORDS_HINT: Text = Text::new("要做什么", "What to do");
pub const ANSWERS_NO_CARD: Text = Text::new(
    "这条消息没有回复任何卡片，什么都没有决定。请点卡片上的按钮，或直接回复那张卡片。",
    "This answers no card, so nothing was decided. Tap a button on the card, or reply to the card itself.",
);
pub const TOO_LONG: Text = Text::new(
    "消息太长，没有送达终端会话。",
    "The message is too long for a terminal's session and was not delivered.",
);
pub const WORDS_ONLY: Text = Text::new(
    "终端会话只接收文字，没有送达。",
    "A terminal's session takes words only; this was not delivered.",
);

pub static RESUME_TITLE: Text = Text::new("在聊天中接续？", "Continue it in the chat?");
pub static RESUME_HERE: Text = Text::new("在聊天中接续", "Continue in the chat");
pub static RESUME_TEXT: Text = Text::new(
    "点击后会话在这里继续，并收到你刚才的话。若终端仍打开着它，两边会各走各的。",
    "A tap continues the session here, with what you just wrote. If a terminal still has it open, the two part ways.",
);

/// Where no button can be offered. `command` resumes it in a terminal.
pub fn resume_there(command: &str) -> Text {
    Text::made(
        format!("它的项目不在 NOD_PROJECTS 中，无法在聊天中接续。终端中可用：{command}"),
        format!(
            "Its project is not in NOD_PROJECTS, so it can't be continued in the chat. In a terminal: {command}"
        ),
    )
}

pub static PROJECT_TITLE: Text = Text::new("在哪个项目中执行？", "In which project?");
pub const TASK: Text = Text::new("任务", "Task");
pub static CHOOSE: Text = Text::new("请选择", "Choose one");
pub static CHOSEN: Text = Text::new("已选择", "Chosen");

/// Words that mean yes decide nothing.
pub const NOTHING_SAID: Text = Text::new(
    "没有读到文字，请求仍在等待：请点击卡片上的按钮，或回复文字。",
    "Nothing was said, and the request still waits: tap a button of the card, or reply with words.",
);

pub fn tap_to_allow() -> Text {
    tap(&ALLOW)
}

pub fn tap_to_approve_plan() -> Text {
    tap(&APPROVE_PLAN)
}

pub fn tap_to_confirm() -> Text {
    Text::made(
        format!(
            "文字不算确认，问题仍在等待。要确认请点击卡片上的「{}」。",
            YES.zh
        ),
        format!(
            "Words do not confirm; the question still waits. For a yes, tap “{}” on the card.",
            YES.en
        ),
    )
}

fn tap(button: &Text) -> Text {
    Text::made(
        format!(
            "文字不算批准，请求仍在等待。要批准请点击卡片上的「{}」。",
            button.zh
        ),
        format!(
            "Words do not approve; the request still waits. To allow it, tap “{}” on the card.",
            button.en
        ),
    )
}

/// `agent` is the one that asked.
pub fn denied_by_reply(agent: &str) -> Text {
    Text::made(
        format!("已拒绝，你的话已告诉 {agent}。"),
        format!("Denied; {agent} is told what you wrote."),
    )
}
pub const ANSWERED: Text = Text::new("已收到你的回答。", "Got your answer.");

/// A reply belongs to the session whose card it answers, or to nobody.
pub const NOBODYS: Text = Text::new(
    "这条回复不属于任何会话，没有转给谁。请回复会话的卡片，或用 /sessions 查看、/say 编号 对终端说话。",
    "This reply belongs to no session and went to nobody. Reply to a session's card, or see /sessions and use /say number.",
);

pub const TERMINALS: Text = Text::new(
    "终端中的会话（/say 编号 内容）：",
    "In terminals (/say number words):",
);
pub const NO_SUCH_TERMINAL: Text = Text::new(
    "没有这个编号的终端会话，见 /sessions。",
    "There is no session of this number in a terminal, see /sessions.",
);

/// One line of `/sessions`. `agent` is named where it is not Claude Code.
pub fn line(number: usize, place: &str, agent: Option<&str>, state: Activity) -> Text {
    let state = match state {
        Activity::Idle => Text::new("空闲", "idle"),
        Activity::Busy => Text::new("执行中", "busy"),
        Activity::Waiting => Text::new("等你在终端回答", "waits for an answer there"),
        Activity::Other => Text::new("状态未知", "state unknown"),
    };
    let agent = agent.map(|name| format!(" · {name}")).unwrap_or_default();
    Text::made(
        format!("T{number} {place}{agent} · {}", state.zh),
        format!("T{number} {place}{agent} · {}", state.en),
    )
}
