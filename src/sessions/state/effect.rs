//! What happens to a session and what there is to do about it.

use crate::clock::Millis;
use crate::ids::RequestId;
use crate::sessions::progress::ProgressView;
use crate::talk::{AgentEvent, How, Mode, Opening, Say, ToolRequest, ToolVerdict};
use serde_json::Value;

/// One child of a session; a later child has a higher number.
pub type ChildNo = u32;

/// A person's words, under the id the child will report about them. The id
/// must be new: Claude Code drops a text in silence whose id its conversation
/// has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonText {
    pub uuid: String,
    pub body: String,
}

#[derive(Debug, Clone, PartialEq)]
pub enum SessionInput {
    Text(PersonText),
    /// For a tool request or a question, from wherever it was put to a
    /// person. A question's answers stand in the input of the allow.
    Decided {
        ask: RequestId,
        verdict: ToolVerdict,
    },
    /// The conversation went on elsewhere, and a child that rests has not seen
    /// it.
    WentOn,
    /// No answer will come from there.
    Unanswered {
        ask: RequestId,
        why: Unanswered,
    },
    /// A command given where this session lives; cancels what it waits for.
    Command(SessionCommand),
    Child {
        child: ChildNo,
        event: AgentEvent,
    },
    Tick,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unanswered {
    TimedOut,
    /// It could not be put to anybody.
    NotShown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionCommand {
    Stop,
    Mode(Mode),
    /// A command that is carried out elsewhere, such as `/new` or `/status`.
    Elsewhere,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    Start {
        child: ChildNo,
        opening: Opening,
        mode: Mode,
    },
    Write {
        child: ChildNo,
        say: Say,
    },
    /// End the child: interrupt, close its input, then signals.
    Close {
        child: ChildNo,
    },
    AskPermission {
        ask: RequestId,
        request: Box<ToolRequest>,
        deadline: Millis,
    },
    /// The call reads back as the question by [`crate::sessions::questions::of`].
    AskQuestion {
        ask: RequestId,
        tool: String,
        input: Value,
        deadline: Millis,
    },
    /// Follows every ask exactly once.
    Settle {
        ask: RequestId,
        ending: AskEnding,
    },
    Progress(ProgressView),
    Finished(Box<Finish>),
    /// Follows every text exactly once.
    Fate {
        uuid: String,
        fate: TextFate,
    },
    Tell(Notice),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskEnding {
    /// How, its decider knows.
    Decided,
    TimedOut,
    /// A command came instead of an answer.
    Cancelled,
    /// The child does not want the answer any more.
    Withdrawn,
    ChildGone,
    Restarted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFate {
    /// The turn it belonged to ended.
    Done,
    /// The turn it belonged to ended with an error or was interrupted.
    Failed,
    /// It was never carried out, and the person was told.
    Lost,
}

/// The end of a turn, for the progress card and the final answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Finish {
    pub how: How,
    pub answer: Option<String>,
    pub turns: u32,
    pub view: ProgressView,
}

/// Something a person in the chat must be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The session the words were for is gone.
    Expired,
    QuestionTimedOut,
    ApprovalTimedOut {
        tool: String,
    },
    NoProgress {
        minutes: i64,
    },
    NothingRuns,
    AlreadyStopping,
    Stopped,
    /// Words that were not carried out, and how many messages they were.
    NotCarriedOut {
        texts: usize,
    },
    TooManyTexts,
    Crashed {
        words: Option<String>,
    },
    NotInstalled,
    ProjectGone,
    NotStarted {
        problem: String,
    },
    InUse,
    LineTooLong {
        bytes: usize,
    },
    /// The agent asked something no card can hold.
    CannotAsk,
    /// A tool, or a question, that Feishu could not be asked about.
    NotBrought {
        tool: Option<String>,
    },
    /// What ran beside the turns has ended with Claude Code.
    BackgroundEnded {
        tasks: Vec<String>,
    },
    Mode(Mode),
    ModeRefused(Mode),
    /// The daemon restarted while a task ran; words continue the session.
    Restarted,
}
