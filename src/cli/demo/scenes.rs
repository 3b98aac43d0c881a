//! The scenes of the tour, as data: what the agent wants, what people do, and
//! how each has to end. A new scene is a new entry here.

mod hooks;
mod sessions;
mod team;

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::agent::DemoCall;
use super::stage::{DESK, LOFT, Mishap, Staging, TRAVEL};
use crate::cards::Action;
use crate::simulator::{OWNER, STRANGER};
use crate::text::{Lang, Text};
use crate::wording::Toast;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Actor {
    Owner,
    Stranger,
}

impl Actor {
    /// Their id in the local Feishu.
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Owner => OWNER,
            Self::Stranger => STRANGER,
        }
    }
}

/// One thing that happens in a scene, or has to be true in it.
#[derive(Debug, Clone)]
pub(super) enum SceneStep {
    /// Somebody taps a button and sees a toast.
    Tap(Actor, Action, Toast),
    /// The owner types a reason into the card and denies.
    DenyWith(Text),
    /// The owner answers the card's message with a text.
    Reply(Text),
    /// The owner fills in a question's form and presses the button of this name.
    Answer(&'static str, Vec<(&'static str, Value)>),
    /// The next card that comes is the one the following steps are about.
    NextCard,
    /// The owner taps the button with this text, as an answer.
    Choose(&'static Text),
    /// The task's own card shows what it is doing.
    TaskWorks,
    /// The owner stops the task on its own card.
    StopTask,
    /// The task's own card says how it ended.
    TaskEnds(&'static Text),
    /// Yes in Claude Code's own dialog; the call runs.
    TerminalYes,
    /// Esc in Claude Code's own dialog; the hook is told to go.
    TerminalEsc,
    /// What belongs to the scene befalls its machines, or is undone.
    Befalls,
    /// The laptop sleeps until the tap that waits for it is worth nothing.
    SleepsOn,
    /// nod says this in the chat.
    Says(Text),
    /// The same tap once more, until the laptop is back to hear it.
    TapAgain(Actor, Action, Toast),
    /// Each gateway has brought a tap by now.
    ByBothGateways,
    /// Nobody does anything.
    Nobody,
    /// The hook has ended and printed this.
    Prints(Prints),
    /// The card shows how it ended.
    Ends(&'static Text),
    /// Every viewer's card shows it: the edit that follows a tap has come.
    Edited(&'static Text),
    /// The agent makes the same call again, which a rule lets pass.
    PassesByRule,
    /// The same call would have to ask again.
    AsksAgain,
}

#[derive(Debug, Clone)]
pub(super) enum Prints {
    Allow,
    /// Allow, and this rule for Claude Code to write.
    AllowWithRule(&'static str),
    /// Allow, with the person's answers to the questions.
    Answers(Vec<String>),
    /// Allow, with the plan as it was shown.
    Plan,
    /// Deny, and the model is told this.
    Deny(Option<Text>),
    Interrupt,
    /// No decision: the terminal decides.
    Nothing,
}

pub(super) struct Scene {
    pub(super) name: &'static str,
    pub(super) title: Text,
    /// What happens.
    pub(super) story: Text,
    /// What a visitor may do about it.
    pub(super) hint: Text,
    pub(super) opening: SceneOpening,
    pub(super) staging: Staging,
    pub(super) steps: Vec<SceneStep>,
    /// What the terminal shows once the call runs.
    pub(super) run: &'static str,
}

/// How a scene begins.
#[derive(Debug, Clone)]
pub(super) enum SceneOpening {
    /// The agent wants to make this call, and its hook asks.
    Call(DemoCall),
    /// The owner writes this in the chat, and a session begins.
    Words(Text),
}

impl Scene {
    /// The call whose hook asks, in a scene that has one.
    pub(super) fn call(&self) -> Option<&DemoCall> {
        match &self.opening {
            SceneOpening::Call(call) => Some(call),
            SceneOpening::Words(_) => None,
        }
    }
}

/// All scenes. `short` is how long the one request nobody answers waits;
/// `lang` is what the agent speaks.
pub(super) fn all(short: Duration, project: &Path, lang: Lang) -> Vec<Scene> {
    let usual = Staging::default();
    let group = Staging {
        group: true,
        ..usual
    };
    let hurried = Staging {
        answer_within: short,
        ..usual
    };
    vec![
        hooks::allow(usual, lang),
        hooks::always(usual, lang),
        hooks::deny(usual, lang),
        hooks::reply(usual, project),
        hooks::question(usual, lang),
        hooks::plan(usual, lang),
        hooks::interrupt(usual, lang),
        hooks::stranger(group, lang),
        hooks::crash(usual, lang),
        hooks::terminal(usual, lang),
        hooks::gone(usual, lang),
        hooks::timeout(hurried, lang),
        sessions::task(usual),
        sessions::stop(usual),
    ]
}

/// The scenes of a team.
pub(super) fn of_a_team(lang: Lang) -> Vec<Scene> {
    let on = |laptop| Staging {
        laptop,
        ..Staging::default()
    };
    let group = Staging {
        group: true,
        ..on(DESK)
    };
    let killed = Staging {
        mishap: Mishap::Gateway,
        ..on(DESK)
    };
    let asleep = Staging {
        mishap: Mishap::Sleep,
        ..on(TRAVEL)
    };
    vec![
        team::desk(on(DESK), lang),
        team::travel(on(TRAVEL), lang),
        team::loft(on(LOFT), lang),
        team::colleague(group, lang),
        team::gateway(killed, lang),
        team::sleep(asleep, lang),
    ]
}
