//! What a chat-driven session says to the people in its chat. The two
//! sentences the protocol fixes may not change by a letter.

use crate::sessions::agent::Agent;
use crate::sessions::command::Unclear;
use crate::sessions::state::{Notice, SessionStatus};
use crate::talk::Mode;
use crate::text::{Text, grouped};

pub const RECEIVED: Text = Text::new("已收到你的回复，继续执行...", "Got your reply, going on");
pub const EXPIRED: Text = Text::new(
    "会话已过期，请重新开始",
    "The session has expired, please start again",
);

/// Words of the agent or the CLI (`words`, `problem`) stand at the end, after
/// a colon, and are shown as plain text.
pub fn notice(notice: &Notice, agent: Agent) -> Text {
    let (name, program) = (agent.name(), agent.word());
    match notice {
        Notice::Expired => EXPIRED,
        Notice::QuestionTimedOut => Text::new(
            "等待回答超时，任务已取消。发送消息可继续该会话。",
            "No answer in time, so the task was cancelled. Send a message to continue the session.",
        ),
        Notice::ApprovalTimedOut { tool } => Text::made(
            format!("等待批准超时，{tool} 未执行。"),
            format!("No approval in time: {tool} was not run."),
        ),
        Notice::NoProgress { minutes } => Text::made(
            format!("任务 {minutes} 分钟没有进展，已停止。发送消息可继续该会话。"),
            format!(
                "No progress for {minutes} minutes, so the task was stopped. Send a message to continue the session."
            ),
        ),
        Notice::NothingRuns => Text::new("当前没有正在执行的任务", "Nothing is running here"),
        Notice::AlreadyStopping => Text::new("正在停止", "It is being stopped already"),
        Notice::Stopped => Text::new(
            "已停止。发送消息可继续该会话。",
            "Stopped. Send a message to continue the session.",
        ),
        Notice::NotCarriedOut { texts } => Text::made(
            format!("有 {texts} 条消息尚未执行，请按需重新发送。"),
            match texts {
                1 => "A message was not carried out. Send it again if it still matters.".to_owned(),
                _ => format!(
                    "{texts} messages were not carried out. Send them again if they still matter."
                ),
            },
        ),
        Notice::TooManyTexts => Text::new(
            "排队的消息太多，这一条没有执行。",
            "Too many messages are waiting; this one was not carried out.",
        ),
        Notice::Crashed { words } => told(
            &format!("{name} 意外退出。发送消息可继续该会话"),
            &format!("{name} ended unexpectedly. Send a message to continue the session"),
            words.as_deref(),
        ),
        Notice::NotInstalled => Text::made(
            format!("这台机器上找不到 {program} 命令"),
            format!("The {program} command was not found on this machine"),
        ),
        Notice::ProjectGone => {
            Text::new("项目目录不存在", "The project's directory does not exist")
        }
        Notice::NotStarted { problem } => told(
            &format!("无法启动 {name}"),
            &format!("{name} could not be started"),
            Some(problem),
        ),
        Notice::InUse => Text::new(
            "该会话正在别处使用。请稍后再试。",
            "The session is in use elsewhere. Try again later.",
        ),
        Notice::LineTooLong { bytes } => Text::made(
            format!("有一条 {} 字节的输出过大，已跳过。", grouped(*bytes)),
            format!(
                "An output of {} bytes was too large and was skipped.",
                grouped(*bytes)
            ),
        ),
        Notice::CannotAsk => Text::made(
            format!("{name} 提出了一个无法在卡片上显示的问题，已告知它无法回答。"),
            format!(
                "{name} asked something no card can show; it was told that no answer will come."
            ),
        ),
        Notice::NotBrought { tool: Some(tool) } => Text::made(
            format!("请求没能送到飞书，{tool} 未执行。"),
            format!("The request could not be brought to Feishu: {tool} was not run."),
        ),
        Notice::NotBrought { tool: None } => Text::made(
            format!("问题没能送到飞书，已告知 {name} 没有人回答。"),
            format!(
                "The question could not be brought to Feishu; {name} was told that nobody answered."
            ),
        ),
        Notice::BackgroundEnded { tasks } => Text::made(
            format!("后台任务已随 {name} 一起结束：{}", tasks.join("；")),
            format!(
                "What ran in the background has ended with {name}: {}",
                tasks.join("; ")
            ),
        ),
        Notice::Mode(mode) => Text::made(
            format!("权限模式：{}", mode.as_str()),
            format!("Permission mode: {}", mode.as_str()),
        ),
        Notice::ModeRefused(mode) => Text::made(
            format!("{name} 拒绝切换到 {} 模式", mode.as_str()),
            format!("{name} refused the mode {}", mode.as_str()),
        ),
        Notice::Restarted => Text::new(
            "nod 重启，任务已中断。发送消息可继续该会话。",
            "nod restarted and the task was interrupted. Send a message to continue the session.",
        ),
    }
}

pub fn status(status: SessionStatus) -> Text {
    match status {
        SessionStatus::Idle => Text::new("空闲", "Idle"),
        SessionStatus::Executing => Text::new("执行中", "Executing"),
        SessionStatus::WaitingForInput => Text::new("等待输入", "Waiting for input"),
        SessionStatus::WaitingForConfirmation => Text::new("等待确认", "Waiting for confirmation"),
        SessionStatus::Stopping => Text::new("正在停止", "Stopping"),
    }
}

pub fn unclear(unclear: &Unclear) -> Text {
    match unclear {
        Unclear::Unknown { command } if command == "unlock" => Text::new(
            "只能在终端解锁：在运行 nod 的电脑上运行 `nod unlock`。",
            "Unlocking is for the terminal: run `nod unlock` on the machine that runs nod.",
        ),
        Unclear::Unknown { command } => Text::made(
            format!("没有 /{command} 这个命令。发送 /help 查看用法。"),
            format!("There is no command /{command}. Send /help for a list."),
        ),
        Unclear::NoPrompt => Text::new(
            "请说明要做什么：/new [项目] [@codex] 任务",
            "Say what to do: /new [project] [@codex] task",
        ),
        Unclear::NoSuchAgent { agent } => Text::made(
            format!("没有 {agent} 这个代理，可用的有：{}", Agent::words()),
            format!(
                "There is no agent {agent}; the agents are: {}",
                Agent::words()
            ),
        ),
        Unclear::NoSuchMode { .. } => Text::made(
            format!("可用的模式：{}", modes()),
            format!("The modes are: {}", modes()),
        ),
        Unclear::NoSuchProject { project } => Text::made(
            format!("没有 {project} 这个项目。发送 /projects 查看项目。"),
            format!("There is no project {project}. Send /projects for a list."),
        ),
        Unclear::SayWhat => Text::new(
            "请给出终端会话的编号和内容，例如 /say 1 继续（见 /sessions）",
            "Give a terminal's number and what to say, as in /say 1 go on (see /sessions)",
        ),
        Unclear::NotANumber => Text::new(
            "请给出会话编号，例如 /resume 2（见 /sessions）",
            "Give a session's number, as in /resume 2 (see /sessions)",
        ),
    }
}

/// What can be written besides where nod runs in a team; its gateway hears it.
static TEAM_HELP: Text = Text::new(
    "/join：让一台机器加入团队（仅私聊）\n/machines：列出你的机器（仅私聊）\n/forget 机器：移除一台机器（仅私聊）",
    "/join: let a machine join the team (in private)\n/machines: list your machines (in private)\n/forget machine: take one out of the team (in private)",
);

pub fn help(in_team: bool) -> Text {
    let alone = help_alone();
    if !in_team {
        return alone;
    }
    Text::lines(&[alone, TEAM_HELP.clone()])
}

fn help_alone() -> Text {
    Text::made(
        format!(
            "/new [项目] [@codex] 任务：开始新会话\n/stop：停止当前任务\n/status：查看状态\n\
             /sessions：列出会话，终端中的也在内\n/say 编号 内容：对终端中的会话说话\n\
             /resume 编号：继续某个会话；/resume T1：接管终端 T1 中的 Codex 会话\n/projects：列出项目\n\
             /mode [{0}]：查看或切换权限模式\n/lock：锁定远程批准，只能拒绝（在终端解锁）\n/help：本帮助\n直接发送文字：继续当前会话",
            modes()
        ),
        format!(
            "/new [project] [@codex] task: start a session\n/stop: stop the task\n/status: what it does\n\
             /sessions: list the sessions, those in terminals too\n/say number words: speak to one in a terminal\n\
             /resume number: continue one; /resume T1: take over the Codex session of terminal T1\n/projects: list the projects\n\
             /mode [{0}]: show or change the permission mode\n\
             /lock: no more remote approvals, only refusals (unlocked in a terminal)\n/help: this list\n\
             plain text: continue the session",
            modes()
        ),
    )
}

pub fn mode_of(number: i64, project: &str, mode: Mode) -> Text {
    Text::made(
        format!("会话 #{number}（{project}）的权限模式：{}", mode.as_str()),
        format!(
            "Session #{number} ({project}) has the mode {}",
            mode.as_str()
        ),
    )
}

fn modes() -> String {
    Mode::ALL.map(Mode::as_str).join(" | ")
}

fn told(zh: &str, en: &str, words: Option<&str>) -> Text {
    match words.filter(|words| !words.is_empty()) {
        Some(words) => Text::made(format!("{zh}：{words}"), format!("{en}: {words}")),
        None => Text::made(format!("{zh}。"), format!("{en}.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Lang;

    #[test]
    fn the_fixed_sentences_are_exact() {
        let zh = |n: &Notice| notice(n, Agent::Claude).get(Lang::Zh).to_owned();
        assert_eq!(RECEIVED.get(Lang::Zh), "已收到你的回复，继续执行...");
        assert_eq!(zh(&Notice::Expired), "会话已过期，请重新开始");
    }

    #[test]
    fn last_words_follow_a_colon_and_their_lack_ends_the_sentence() {
        let words = |words: Option<&str>| {
            let words = words.map(str::to_owned);
            notice(&Notice::Crashed { words }, Agent::Codex)
                .get(Lang::En)
                .to_owned()
        };
        assert!(words(Some("boom")).ends_with("session: boom"));
        assert!(words(None).ends_with("session."));
    }

    #[test]
    fn help_names_every_command() {
        for lang in [Lang::Zh, Lang::En] {
            let (text, alone) = (help(true), help(false));
            for command in ["/join", "/machines", "/forget"] {
                assert!(text.get(lang).contains(command), "{command}");
                assert!(!alone.get(lang).contains(command), "{command}");
            }
            assert!(text.get(lang).starts_with(alone.get(lang)));
            for command in [
                "/new",
                "/stop",
                "/status",
                "/sessions",
                "/say",
                "/resume",
                "/projects",
                "/mode",
                "/lock",
                "/help",
            ] {
                assert!(text.get(lang).contains(command), "{command}");
            }
        }
    }
}
