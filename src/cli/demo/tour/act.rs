//! One scene while it is played: which card it is about, what people do to
//! it, and whether it shows what it should.

use std::time::Duration;

use tokio::time::timeout;

use super::{LIMIT, Tour, headline};
use crate::cards::{Action, REASON_FIELD};
use crate::cli::demo::agent::WaitingHook;
use crate::cli::demo::guide;
use crate::cli::demo::scenes::{Actor, Scene, SceneStep};
use crate::cli::demo::transcript::look;
use crate::simulator::{ChatText, Clicked, HeldMessage, OWNER, Press, Simulator};
use crate::text::Text;
use crate::wording::{Toast, task};

/// How long a person reads before they reply, and until they say it again.
const READING: Duration = Duration::from_millis(300);
const HEARD_WITHIN: Duration = Duration::from_secs(2);
const REPLIES: usize = 5;
/// Longer than any tap is worth that waits for a laptop.
const SLEEPS: Duration = Duration::from_secs(6);

/// What a task's button of this action does.
const STOP: &str = "stop";

/// How a task can end, on its card.
static ENDINGS: [&Text; 9] = [
    &task::DONE,
    &task::INTERRUPTED,
    &task::API_ERROR,
    &task::FAILED,
    &task::STOPPED,
    &task::CRASHED,
    &task::NO_PROGRESS,
    &task::NOT_STARTED,
    &task::RESTARTED,
];

/// A scene that is being played.
pub(super) struct PlayedScene<'s> {
    number: usize,
    scene: &'s Scene,
    /// The hook that waits, in a scene that has one.
    pub(super) asked: Option<WaitingHook>,
    /// The message of the card it is about, and of the first one.
    pub(super) card: String,
    first: String,
    /// How many messages were looked at.
    known: usize,
}

/// What went other than planned.
pub(super) type Done = Result<(), String>;

impl<'s> PlayedScene<'s> {
    pub(super) fn new(
        number: usize,
        scene: &'s Scene,
        asked: Option<WaitingHook>,
        known: usize,
    ) -> Self {
        Self {
            number,
            scene,
            asked,
            card: String::new(),
            first: String::new(),
            known,
        }
    }

    /// Waits for a card that was not there before and turns to it.
    pub(super) async fn next_card(&mut self, simulator: &Simulator) -> Done {
        let known = self.known;
        let fresh = |simulator: &Simulator| {
            let messages = simulator.messages();
            let mut later = messages.iter().enumerate().skip(known);
            let (at, message) = later.find(|(_, message)| message.card.is_some())?;
            Some((at + 1, message.message_id.clone()))
        };
        let found = simulator.wait_for(LIMIT, fresh).await;
        let (known, card) = found.ok_or("no card came")?;
        if self.first.is_empty() {
            self.first.clone_from(&card);
        }
        (self.known, self.card) = (known, card);
        Ok(())
    }
}

/// How the first task that ended since then did, by its card's title.
pub(super) fn task_ending(simulator: &Simulator, known: usize) -> Option<&'static Text> {
    let ending = |message: &HeldMessage| {
        let title = headline(message.card.as_ref()?);
        let is_it = |ending: &&Text| ending.zh == title || ending.en == title;
        ENDINGS.into_iter().find(is_it)
    };
    simulator.messages().iter().skip(known).find_map(ending)
}

impl Tour<'_> {
    pub(super) async fn step(&mut self, act: &mut PlayedScene<'_>, step: &SceneStep) -> Done {
        let lang = self.stage.lang;
        match step {
            SceneStep::Tap(person, action, toast) => {
                self.tap(act, *person, *action, None, toast).await
            }
            SceneStep::DenyWith(reason) => {
                let reason = Some(reason.get(lang));
                self.tap(act, Actor::Owner, Action::DenyWith, reason, &Toast::DENIED)
                    .await
            }
            SceneStep::Answer(button, fields) => {
                let mut press = Press::named(&act.card, button).by(OWNER);
                for (name, value) in fields {
                    press = press.fill(name, value.clone());
                }
                self.press(press, &Toast::ANSWERED).await
            }
            SceneStep::Reply(text) => self.reply(&act.card, text.get(lang)).await,
            SceneStep::NextCard => act.next_card(&self.stage.simulator).await,
            SceneStep::Choose(label) => {
                let press = Press::text(&act.card, label.get(lang)).by(OWNER);
                self.press(press, &Toast::ANSWERED).await
            }
            SceneStep::StopTask => {
                let press = Press::action(&act.first, STOP).by(OWNER);
                self.press(press, &Toast::STOPPING).await
            }
            SceneStep::TaskWorks => {
                let first = &act.first;
                let works =
                    |simulator: &Simulator| look::step(simulator.message(first)?.card.as_ref()?);
                let step = self.stage.simulator.wait_for(LIMIT, works).await;
                step.map(drop)
                    .ok_or_else(|| "the task's card shows no step".to_owned())
            }
            SceneStep::TaskEnds(title) => self.ends(&act.first, title).await,
            SceneStep::TerminalYes => {
                self.transcript.terminal("1. Yes");
                let Some(call) = act.scene.call() else {
                    return Err("no dialog is open".to_owned());
                };
                let ran = self.agent.ran(self.stage, call).await;
                ran.map_err(|why| why.to_string())
            }
            SceneStep::TerminalEsc => {
                self.transcript.terminal("Esc");
                if let Some(asked) = &act.asked {
                    asked.give_up();
                }
                Ok(())
            }
            SceneStep::Befalls => {
                // Whoever presses it has read the card; by then its machine
                // knows what Feishu calls it.
                tokio::time::sleep(READING).await;
                self.befall().await.map_err(|why| why.to_string())
            }
            SceneStep::SleepsOn => {
                tokio::time::sleep(SLEEPS).await;
                Ok(())
            }
            SceneStep::Says(text) => self.says(act.known, text).await,
            SceneStep::TapAgain(person, action, toast) => {
                self.tap_again(act, *person, *action, toast).await
            }
            SceneStep::ByBothGateways => self.by_both_gateways(),
            SceneStep::Nobody => {
                self.transcript.nobody();
                Ok(())
            }
            SceneStep::Prints(prints) => {
                let asked = act.asked.as_mut().ok_or("no hook asked")?;
                let ended = timeout(LIMIT, asked.end()).await;
                let printed = ended
                    .map_err(|_| "the hook did not end".to_owned())?
                    .map_err(|why| why.to_string())?;
                self.tell();
                self.printed(act.number, &printed)
                    .map_err(|why| why.to_string())?;
                guide::fits(prints, &printed)
            }
            SceneStep::Edited(title) => self.edited(&act.card, title).await,
            SceneStep::Ends(title) => self.ends(&act.card, title).await,
            SceneStep::PassesByRule => {
                let rule = act.scene.call().and_then(|call| self.agent.passes(call));
                let rule = rule.ok_or("no rule lets the same call pass")?;
                self.passed(act.number, &rule);
                Ok(())
            }
            SceneStep::AsksAgain => match act.scene.call().and_then(|call| self.agent.passes(call))
            {
                None => {
                    self.transcript.asks_again();
                    Ok(())
                }
                Some(rule) => Err(format!("the rule `{rule}` is still there")),
            },
        }
    }

    async fn tap(
        &mut self,
        act: &PlayedScene<'_>,
        person: Actor,
        action: Action,
        reason: Option<&str>,
        toast: &Toast,
    ) -> Done {
        let mut press = Press::action(&act.card, action.as_str()).by(person.id());
        if let Some(reason) = reason {
            press = press.fill(REASON_FIELD, reason);
        }
        self.press(press, toast).await
    }

    async fn press(&mut self, press: Press, toast: &Toast) -> Done {
        let clicked = self.stage.simulator.click(press).await;
        let clicked = clicked.map_err(|why| why.to_string())?;
        saw(&clicked, toast.text.get(self.stage.lang))
    }

    /// Replies until the card shows that it was heard: a person would, too.
    async fn reply(&mut self, card: &str, text: &str) -> Done {
        let simulator = &self.stage.simulator;
        let before = title(simulator, card);
        for _ in 0..REPLIES {
            tokio::time::sleep(READING).await;
            let text = ChatText::new(text).replying_to(card);
            let pushed = simulator.push_text(&text).await;
            pushed.map_err(|why| why.to_string())?;
            let heard = |simulator: &Simulator| (title(simulator, card) != before).then_some(());
            if simulator.wait_for(HEARD_WITHIN, heard).await.is_some() {
                return Ok(());
            }
        }
        Err("the reply was not heard".to_owned())
    }

    async fn edited(&mut self, card: &str, title: &Text) -> Done {
        let title = title.get(self.stage.lang);
        let edited = |simulator: &Simulator| {
            let all = simulator.history(0);
            all.iter()
                .any(|entry| {
                    entry.kind == "card"
                        && entry.detail["message_id"] == card
                        && entry.detail["why"] == "patched"
                        && headline(&entry.detail["card"]) == title
                })
                .then_some(())
        };
        let done = self.stage.simulator.wait_for(LIMIT, edited).await;
        done.ok_or_else(|| format!("the card was never edited to `{title}`"))
    }

    async fn ends(&mut self, card: &str, title: &Text) -> Done {
        let title = title.get(self.stage.lang);
        let shown = |simulator: &Simulator| {
            let message = simulator.message(card)?;
            (headline(message.card.as_ref()?) == title).then_some(())
        };
        let ended = self.stage.simulator.wait_for(LIMIT, shown).await;
        self.tell();
        ended.ok_or_else(|| format!("the card never said `{title}`"))
    }

    /// Stops what a visitor left running, so that it does not speak later on.
    pub(super) async fn stop_tasks(&mut self, known: usize) {
        let simulator = &self.stage.simulator;
        let messages = simulator.messages();
        let cards = messages.iter().skip(known).filter(|m| m.card.is_some());
        for card in cards {
            let press = Press::action(&card.message_id, STOP).by(OWNER);
            if simulator.click(press).await.is_ok() {
                let over = |simulator: &Simulator| task_ending(simulator, known);
                let _ = simulator.wait_for(LIMIT, over).await;
            }
        }
        self.tell();
    }
}

/// What a message's card says at its head.
pub(super) fn title(simulator: &Simulator, message: &str) -> Option<String> {
    let message = simulator.message(message)?;
    Some(headline(message.card.as_ref()?).to_owned())
}

fn saw(clicked: &Clicked, expected: &str) -> Done {
    match &clicked.toast {
        Some(toast) if toast.content == expected && clicked.popup.is_none() => Ok(()),
        Some(toast) => Err(format!(
            "the toast should have been `{expected}` and was `{}`",
            toast.content
        )),
        None => Err(format!(
            "no toast came but code {}",
            clicked.popup.unwrap_or_default()
        )),
    }
}
