//! The coding agents that a session of a chat can run.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Agent {
    #[default]
    Claude,
    Codex,
}

impl Agent {
    pub const ALL: [Self; 2] = [Self::Claude, Self::Codex];

    /// What a person types behind an `@`, and the word for it in records.
    pub fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|agent| agent.word().eq_ignore_ascii_case(text))
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
        }
    }

    /// Its name where there is little room.
    pub fn short(self) -> &'static str {
        match self {
            Self::Claude => "Claude",
            Self::Codex => "Codex",
        }
    }

    /// The command that takes a session up again at a keyboard.
    pub fn resume(self) -> &'static str {
        match self {
            Self::Claude => "claude --resume",
            Self::Codex => "codex resume",
        }
    }

    /// All words, for a sentence that lists them.
    pub fn words() -> String {
        Self::ALL.map(Self::word).join(", ")
    }
}
