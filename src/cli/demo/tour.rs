//! Walks through the scenes: by itself, playing every person and holding each
//! ending against the plan, or with a visitor who taps in the page.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::timeout;

use super::agent::{Agent, Asked, Printed};
use super::guide::{self, Reader, Wish, wish};
use super::scenes::{self, Person, Scene, Step};
use super::stage::Stage;
use super::transcript::Transcript;
use super::{Broken, output};
use crate::cards::{Action, REASON_FIELD};
use crate::simulator::{
    Clicked, Entry, GROUP, Message, OWNER, Press, STRANGER, Simulator, Text as Chat,
};
use crate::wording::{Text, Toast};

/// Nothing in a scene takes this long on a machine that works.
const LIMIT: Duration = Duration::from_secs(20);
/// How long the unanswered request waits, for nobody and for a visitor.
const SHORT: Duration = Duration::from_secs(2);
const WATCHED: Duration = Duration::from_secs(10);

/// How long a person reads before they reply, and until they say it again.
const READING: Duration = Duration::from_millis(300);
const HEARD_WITHIN: Duration = Duration::from_secs(2);
const REPLIES: usize = 5;

pub(super) struct Tour<'a> {
    stage: &'a mut Stage,
    agent: Agent,
    transcript: Transcript,
    reader: Reader,
}

/// A scene that is being played.
struct Act<'s> {
    number: usize,
    scene: &'s Scene,
    asked: Asked,
    /// The card's message.
    card: String,
}

/// What went other than planned.
type Done = Result<(), String>;

impl<'a> Tour<'a> {
    pub(super) fn new(stage: &'a mut Stage) -> Self {
        Self {
            agent: Agent::new(stage),
            transcript: Transcript::new(stage.lang),
            reader: Reader::default(),
            stage,
        }
    }

    /// Plays every person and fails where a scene ends differently.
    pub(super) async fn by_itself(mut self) -> Result<(), Broken> {
        let started = Instant::now();
        let scenes = scenes::all(SHORT, &self.stage.project());
        for (number, scene) in (1..).zip(&scenes) {
            let mut act = self.open(number, scene).await?;
            for step in &scene.steps {
                let done = self.step(&mut act, step).await;
                self.tell();
                done.map_err(|what| self.broken(number, what))?;
            }
        }
        let violations = self.stage.simulator.violations();
        if let Some(first) = violations.first() {
            let what = format!(
                "Feishu's protocol was broken: {} {}",
                first.rule, first.detail
            );
            return Err(self.broken(scenes.len(), what));
        }
        self.transcript.closing(scenes.len(), started.elapsed());
        Ok(())
    }

    /// Shows the scenes one after the other, or as the page asks for them.
    pub(super) async fn with_a_visitor(mut self) -> Result<(), Broken> {
        let scenes = scenes::all(WATCHED, &self.stage.project());
        self.stage.simulator.note(guide::programme(&scenes));
        let mut number = 1;
        loop {
            let Some(scene) = scenes.get(number - 1) else {
                self.stage.simulator.note(json!({"note": "tour_end"}));
                self.transcript.all_seen();
                number = self.chosen(scenes.len()).await;
                continue;
            };
            number = match self.host(number, scene).await? {
                Wish::Play(wanted) if (1..=scenes.len()).contains(&wanted) => wanted,
                _ => number + 1,
            };
        }
    }

    /// The scene the visitor picks once all were shown.
    async fn chosen(&mut self, scenes: usize) -> usize {
        loop {
            let entries = self.reader.wait(&self.stage.simulator).await;
            for wanted in self.hear(&entries) {
                match wanted {
                    Wish::Play(number) if (1..=scenes).contains(&number) => return number,
                    Wish::Next => return 1,
                    _ => {}
                }
            }
        }
    }

    /// Plays one scene with the visitor deciding; what they want next.
    async fn host(&mut self, number: usize, scene: &Scene) -> Result<Wish, Broken> {
        let mut act = self.open(number, scene).await?;
        self.transcript.hint(&scene.hint);
        if scene.steps.iter().any(|step| matches!(step, Step::Crash)) {
            self.stage.crash().await?;
        }
        let printed = loop {
            let entries = tokio::select! {
                printed = act.asked.end() => break printed?,
                entries = self.reader.wait(&self.stage.simulator) => entries,
            };
            for wanted in self.hear(&entries) {
                match wanted {
                    Wish::TerminalYes => self.agent.ran(self.stage, &scene.call).await?,
                    Wish::TerminalEsc => act.asked.give_up(),
                    Wish::Speak(_) => {}
                    Wish::Next | Wish::Play(_) => {
                        act.asked.give_up();
                        act.asked.end().await?;
                        return Ok(wanted);
                    }
                }
            }
        };
        self.tell();
        self.printed(number, &printed)?;
        if let Some(rule) = self.agent.passes(&scene.call) {
            self.passed(number, &rule);
        }
        let as_planned = guide::as_planned(scene, &printed);
        self.stage
            .simulator
            .note(guide::scene_end(number, as_planned));
        self.transcript.go_on();
        loop {
            let entries = self.reader.wait(&self.stage.simulator).await;
            let wanted = self.hear(&entries).into_iter();
            let mut wanted = wanted.filter(|wish| matches!(wish, Wish::Next | Wish::Play(_)));
            if let Some(wanted) = wanted.next() {
                return Ok(wanted);
            }
        }
    }

    /// Sets the scene, starts the hook and waits for its card.
    async fn open<'s>(&mut self, number: usize, scene: &'s Scene) -> Result<Act<'s>, Broken> {
        self.stage.play(scene.staging).await?;
        self.tell();
        let simulator = &self.stage.simulator;
        let chat = if scene.staging.group { GROUP } else { "" };
        self.transcript.scene(number, scene);
        simulator.note(guide::scene(number, scene, chat));
        let known = simulator.messages().len();
        let asked = self.agent.ask(self.stage, &scene.call).await?;
        simulator.note(guide::hook_in(number, &asked));
        let fresh = |simulator: &Simulator| {
            let messages = simulator.messages();
            let card = |message: &&Message| message.card.is_some();
            let found = messages.iter().skip(known).find(card);
            found.map(|message| message.message_id.clone())
        };
        let card = simulator.wait_for(LIMIT, fresh).await;
        self.tell();
        let card = card.ok_or_else(|| self.broken(number, "no card came".to_owned()))?;
        Ok(Act {
            number,
            scene,
            asked,
            card,
        })
    }

    async fn step(&mut self, act: &mut Act<'_>, step: &Step) -> Done {
        let lang = self.stage.lang;
        match step {
            Step::Tap(person, action, toast) => self.tap(act, *person, *action, None, toast).await,
            Step::DenyWith(reason) => {
                let reason = Some(reason.get(lang));
                self.tap(act, Person::Owner, Action::Deny, reason, &Toast::Denied)
                    .await
            }
            Step::Answer(button, fields) => {
                let mut press = Press::named(&act.card, button).by(OWNER);
                for (name, value) in fields {
                    press = press.fill(name, value.clone());
                }
                self.press(press, &Toast::Answered).await
            }
            Step::Reply(text) => self.reply(&act.card, text.get(lang)).await,
            Step::TerminalYes => {
                self.transcript.terminal("1. Yes");
                let ran = self.agent.ran(self.stage, &act.scene.call).await;
                ran.map_err(|why| why.to_string())
            }
            Step::TerminalEsc => {
                self.transcript.terminal("Esc");
                act.asked.give_up();
                Ok(())
            }
            Step::Crash => {
                self.transcript.crash();
                self.stage.crash().await.map_err(|why| why.to_string())
            }
            Step::Nobody => {
                self.transcript.nobody();
                Ok(())
            }
            Step::Prints(prints) => {
                let ended = timeout(LIMIT, act.asked.end()).await;
                let printed = ended
                    .map_err(|_| "the hook did not end".to_owned())?
                    .map_err(|why| why.to_string())?;
                self.tell();
                self.printed(act.number, &printed)
                    .map_err(|why| why.to_string())?;
                guide::fits(prints, &printed)
            }
            Step::Edited(title) => self.edited(&act.card, title).await,
            Step::Ends(title) => self.ends(&act.card, title).await,
            Step::PassesByRule => {
                let rule = self.agent.passes(&act.scene.call);
                let rule = rule.ok_or("no rule lets the same call pass")?;
                self.passed(act.number, &rule);
                Ok(())
            }
            Step::AsksAgain => match self.agent.passes(&act.scene.call) {
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
        act: &Act<'_>,
        person: Person,
        action: Action,
        reason: Option<&str>,
        toast: &Toast,
    ) -> Done {
        let user = match person {
            Person::Owner => OWNER,
            Person::Stranger => STRANGER,
        };
        let mut press = Press::action(&act.card, action.as_str()).by(user);
        if let Some(reason) = reason {
            press = press.fill(REASON_FIELD, reason);
        }
        self.press(press, toast).await
    }

    async fn press(&mut self, press: Press, toast: &Toast) -> Done {
        let clicked = self.stage.simulator.click(press).await;
        let clicked = clicked.map_err(|why| why.to_string())?;
        saw(&clicked, toast.text().get(self.stage.lang))
    }

    /// Replies until the card shows that it was heard: a person would, too.
    async fn reply(&mut self, card: &str, text: &str) -> Done {
        let simulator = &self.stage.simulator;
        let title = |simulator: &Simulator| {
            let message = simulator.message(card)?;
            Some(headline(message.card.as_ref()?).to_owned())
        };
        let before = title(simulator);
        for _ in 0..REPLIES {
            tokio::time::sleep(READING).await;
            let text = Chat::new(text).replying_to(card);
            let pushed = simulator.push_text(&text).await;
            pushed.map_err(|why| why.to_string())?;
            let heard = |simulator: &Simulator| (title(simulator) != before).then_some(());
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

    /// The agent does what a hook printed, and everybody hears of it.
    fn printed(&mut self, number: usize, printed: &Printed) -> std::io::Result<()> {
        self.transcript.prints(printed);
        self.stage.simulator.note(guide::hook_out(number, printed));
        self.agent.keep_rules(&printed.decision())
    }

    fn passed(&mut self, number: usize, rule: &str) {
        self.transcript.passes(rule);
        self.stage.simulator.note(guide::passed(number, rule));
    }

    fn tell(&mut self) {
        let entries = self.reader.read(&self.stage.simulator);
        self.hear(&entries);
    }

    /// Tells what happened and takes up a change of language; what else the
    /// visitor wants.
    fn hear(&mut self, entries: &[Entry]) -> Vec<Wish> {
        self.transcript.tell(entries);
        let wishes: Vec<Wish> = entries.iter().filter_map(wish).collect();
        for wanted in &wishes {
            if let Wish::Speak(lang) = wanted {
                self.stage.lang = *lang;
            }
        }
        wishes
    }

    fn broken(&self, number: usize, what: String) -> Broken {
        output::line("");
        Broken::Scene {
            number,
            what,
            log: self.stage.log_tail(),
        }
    }
}

/// A card's title.
pub(super) fn headline(card: &Value) -> &str {
    card["header"]["title"]["content"]
        .as_str()
        .unwrap_or_default()
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
