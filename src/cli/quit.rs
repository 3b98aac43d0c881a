//! How a command quits: the exit codes, each meaning once, for the commands
//! and for the manual.

use std::process::ExitCode;

use crate::text::Text;

/// Meanings, not numbers: two commands may share a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quit {
    Done,
    Failed,
    Declined,
    WrongLine,
    Degraded,
    TimedOut,
    NotRunning,
    Unaskable,
    Unproven,
    OwnFault,
    AlreadyRunning,
    BadSettings,
    BrokenOff,
}

impl Quit {
    /// In the manual's order.
    pub(super) const ALL: [Self; 13] = [
        Self::Done,
        Self::Failed,
        Self::Declined,
        Self::WrongLine,
        Self::Degraded,
        Self::TimedOut,
        Self::NotRunning,
        Self::Unaskable,
        Self::Unproven,
        Self::OwnFault,
        Self::AlreadyRunning,
        Self::BadSettings,
        Self::BrokenOff,
    ];

    /// Shells and clap return 2 for a wrong line, `systemctl` 3 for what does
    /// not run, shells 130 after Ctrl-C; from 70 on as in sysexits.h.
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed | Self::Declined => 1,
            Self::WrongLine => 2,
            Self::Degraded | Self::TimedOut | Self::NotRunning => 3,
            Self::Unaskable | Self::Unproven => 4,
            Self::OwnFault => 70,
            Self::AlreadyRunning => 75,
            Self::BadSettings => 78,
            Self::BrokenOff => 130,
        }
    }

    pub(super) const fn meaning(self) -> Text {
        match self {
            Self::Done => Text::new(
                "成功；对 nod ask：已回答，或选“是”。",
                "Done; for nod ask, answered or confirmed.",
            ),
            Self::Failed => Text::new(
                "失败；对 nod doctor：发现问题。",
                "Failed; for nod doctor, a problem was found.",
            ),
            Self::Declined => Text::new("对 nod ask：不回答，或选“否”。", "For nod ask, declined."),
            Self::WrongLine => Text::new("命令行有误。", "The command line was wrong."),
            Self::Degraded => Text::new(
                "对 nod status：连接需要人来处理。",
                "For nod status, only a person can bring the connection back.",
            ),
            Self::TimedOut => Text::new(
                "对 nod ask：无人及时回答。",
                "For nod ask, nobody answered in time.",
            ),
            Self::NotRunning => Text::new(
                "对 nod service status：守护进程没有运行。",
                "For nod service status, the daemon does not run.",
            ),
            Self::Unaskable => Text::new(
                "对 nod ask：无法提问。",
                "For nod ask, nobody can be asked.",
            ),
            Self::Unproven => Text::new(
                "对 nod setup：全部设置好了，但还没有证明点击能到达。",
                "For nod setup, everything is in place and no tap has proven it.",
            ),
            Self::OwnFault => Text::new(
                "nod 自身出错，请反馈。",
                "A fault in nod itself; please report it.",
            ),
            Self::AlreadyRunning => Text::new("另一个守护进程在运行。", "Another daemon runs."),
            Self::BadSettings => Text::new("设置不可用。", "The settings cannot be used."),
            Self::BrokenOff => Text::new(
                "被 Ctrl-C 打断；nod setup 下次从断处继续。",
                "Broken off with Ctrl-C; nod setup goes on from there.",
            ),
        }
    }
}

impl From<Quit> for ExitCode {
    fn from(quit: Quit) -> Self {
        Self::from(quit.code())
    }
}
