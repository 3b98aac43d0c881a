//! Walks through the scenes: by itself, playing every person and holding each
//! ending against the plan, or with a visitor who taps in the page.

mod act;
mod together;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::agent::{DemoAgent, DemoCall, Printed};
use super::guide::{self, HistoryReader, VisitorWish, wish};
use super::scenes::{self, Scene, SceneOpening};
use super::stage::DemoStage;
use super::transcript::Transcript;
use super::{Broken, output};
use crate::simulator::{ChatText, GROUP, HistoryEntry};
use crate::text::Text;
use crate::wording::team::TEAM;
use act::PlayedScene;

/// Nothing in a scene takes this long on a machine that works.
const LIMIT: Duration = Duration::from_secs(20);
/// How long the unanswered request waits, for nobody and for a visitor.
const SHORT: Duration = Duration::from_secs(2);
const WATCHED: Duration = Duration::from_secs(10);

/// More than a person presses before the tour looks.
const MAX_WISHES: usize = 16;

pub(super) struct Tour<'a> {
    stage: &'a mut DemoStage,
    agent: DemoAgent,
    transcript: Transcript,
    reader: HistoryReader,
    /// What the visitor asked for and nobody has looked at yet.
    wishes: Vec<VisitorWish>,
}

impl<'a> Tour<'a> {
    pub(super) fn new(stage: &'a mut DemoStage) -> Self {
        Self {
            agent: DemoAgent::new(stage),
            transcript: Transcript::new(stage.lang),
            reader: HistoryReader::default(),
            wishes: Vec::new(),
            stage,
        }
    }

    /// Plays every person and fails where a scene ends differently.
    pub(super) async fn by_itself(mut self) -> Result<(), Broken> {
        let started = Instant::now();
        let scenes = self.scenes(SHORT);
        for (number, scene) in (1..).zip(&scenes) {
            let known = self.set(number, scene).await?;
            if let SceneOpening::Words(words) = &scene.opening {
                let words = ChatText::new(words.get(self.stage.lang));
                let pushed = self.stage.simulator.push_text(&words).await;
                pushed.map_err(|why| self.broken(number, why.to_string()))?;
            }
            let mut act = self.begin(number, scene, known).await?;
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
        let mut number = 1;
        let programme = guide::programme(&self.scenes(WATCHED), self.stage.team.is_some());
        self.stage.simulator.note(programme);
        loop {
            // Built anew each time: the visitor may have changed the language.
            let scenes = self.scenes(WATCHED);
            let Some(scene) = scenes.get(number - 1) else {
                self.stage.simulator.note(json!({"note": "tour_end"}));
                self.transcript.all_seen();
                number = self.chosen(scenes.len()).await?;
                continue;
            };
            number = match self.host(number, scene).await? {
                VisitorWish::Play(wanted) if (1..=scenes.len()).contains(&wanted) => wanted,
                _ => number + 1,
            };
        }
    }

    /// `short` is how long the one request nobody answers waits.
    fn scenes(&self, short: Duration) -> Vec<Scene> {
        if self.stage.team.is_some() {
            return scenes::of_a_team(self.stage.lang);
        }
        scenes::all(short, &self.stage.project(), self.stage.lang)
    }

    /// The scene the visitor picks once all were shown.
    async fn chosen(&mut self, scenes: usize) -> Result<usize, Broken> {
        loop {
            match self.leaving().await? {
                VisitorWish::Play(number) if (1..=scenes).contains(&number) => return Ok(number),
                VisitorWish::Next => return Ok(1),
                _ => {}
            }
        }
    }

    /// Waits until the visitor wants to see something else.
    async fn leaving(&mut self) -> Result<VisitorWish, Broken> {
        loop {
            for wanted in std::mem::take(&mut self.wishes) {
                if wanted.leaves() {
                    return Ok(wanted);
                }
                self.attend(wanted).await?;
            }
            self.listen().await;
        }
    }

    /// Does what can be wished for at any time.
    async fn attend(&mut self, wanted: VisitorWish) -> Result<(), Broken> {
        match wanted {
            VisitorWish::Kill => self.befall().await?,
            VisitorWish::Unlock => self.stage.unlock().await,
            VisitorWish::Next
            | VisitorWish::Play(_)
            | VisitorWish::TerminalYes
            | VisitorWish::TerminalEsc
            | VisitorWish::Speak(_) => {}
        }
        Ok(())
    }

    /// Lets happen what belongs to the scene.
    async fn befall(&mut self) -> Result<(), Broken> {
        let happened = self.stage.befall().await?;
        self.transcript.happened(happened);
        Ok(())
    }

    /// Plays one scene with the visitor deciding; what they want next.
    async fn host(&mut self, number: usize, scene: &Scene) -> Result<VisitorWish, Broken> {
        let known = self.set(number, scene).await?;
        let ended = match &scene.opening {
            SceneOpening::Call(call) => self.host_call(number, scene, call, known).await?,
            SceneOpening::Words(_) => self.host_session(number, scene, known).await?,
        };
        let ending = match ended {
            SceneEnd::Over(ending) => ending,
            SceneEnd::Left(wanted) => return Ok(wanted),
        };
        self.stage.simulator.note(guide::scene_end(number, ending));
        self.transcript.go_on();
        self.leaving().await
    }

    async fn host_call(
        &mut self,
        number: usize,
        scene: &Scene,
        call: &DemoCall,
        known: usize,
    ) -> Result<SceneEnd, Broken> {
        let mut act = self.begin(number, scene, known).await?;
        let Some(asked) = act.asked.as_mut() else {
            return Ok(SceneEnd::Over(None));
        };
        self.transcript.hint(&scene.hint);
        let printed = loop {
            for wanted in std::mem::take(&mut self.wishes) {
                match wanted {
                    // Nobody sits before a closed lid.
                    VisitorWish::TerminalYes | VisitorWish::TerminalEsc
                        if self.stage.laptop().is_asleep() => {}
                    VisitorWish::TerminalYes => self.agent.ran(self.stage, call).await?,
                    VisitorWish::TerminalEsc => asked.give_up(),
                    VisitorWish::Kill | VisitorWish::Unlock => self.attend(wanted).await?,
                    VisitorWish::Next | VisitorWish::Play(_) | VisitorWish::Speak(_) => {
                        asked.give_up();
                        asked.end().await?;
                        return Ok(SceneEnd::Left(wanted.or_again(number)));
                    }
                }
            }
            tokio::select! {
                printed = asked.end() => break printed?,
                () = self.listen() => {}
            }
        };
        self.tell();
        self.printed(number, &printed)?;
        if let Some(rule) = self.agent.passes(call) {
            self.passed(number, &rule);
        }
        Ok(SceneEnd::Over(None))
    }

    /// The visitor writes, and a session runs until its card says it is over.
    async fn host_session(
        &mut self,
        number: usize,
        scene: &Scene,
        known: usize,
    ) -> Result<SceneEnd, Broken> {
        self.transcript.hint(&scene.hint);
        loop {
            if let Some(ending) = act::task_ending(&self.stage.simulator, known) {
                return Ok(SceneEnd::Over(Some(ending)));
            }
            for wanted in std::mem::take(&mut self.wishes) {
                if wanted.leaves() || matches!(wanted, VisitorWish::Speak(_)) {
                    self.stop_tasks(known).await;
                    return Ok(SceneEnd::Left(wanted.or_again(number)));
                }
                self.attend(wanted).await?;
            }
            self.listen().await;
        }
    }

    /// Sets the scene; how many messages there were before it.
    async fn set(&mut self, number: usize, scene: &Scene) -> Result<usize, Broken> {
        self.stage.play(scene.staging).await?;
        self.agent.sit_down(self.stage);
        self.tell();
        self.wishes.clear();
        self.transcript.scene(number, scene);
        let chat = if scene.staging.group { GROUP } else { "" };
        let simulator = &self.stage.simulator;
        simulator.note(guide::scene(number, scene, self.stage, chat));
        Ok(simulator.messages().len())
    }

    /// Starts the hook, if the scene has one, and waits for the first card.
    async fn begin<'s>(
        &mut self,
        number: usize,
        scene: &'s Scene,
        known: usize,
    ) -> Result<PlayedScene<'s>, Broken> {
        let asked = match scene.call() {
            Some(call) => {
                let asked = self.agent.ask(self.stage, call).await?;
                let note = guide::hook_in(number, &asked, scene.staging.answer_within);
                self.stage.simulator.note(note);
                Some(asked)
            }
            None => None,
        };
        let mut act = PlayedScene::new(number, scene, asked, known);
        let shown = act.next_card(&self.stage.simulator).await;
        self.tell();
        shown.map_err(|what| self.broken(number, what))?;
        Ok(act)
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

    /// As [`Self::tell`], once something happens.
    async fn listen(&mut self) {
        let entries = self.reader.wait(&self.stage.simulator).await;
        self.hear(&entries);
    }

    /// Tells what happened, takes up a change of language, and keeps what
    /// else the visitor wants until somebody looks.
    fn hear(&mut self, entries: &[HistoryEntry]) {
        self.transcript.tell(entries);
        if entries.iter().any(guide::says_locked) {
            self.stage.simulator.note(json!({"note": "locked"}));
        }
        for wanted in entries.iter().filter_map(wish) {
            if let VisitorWish::Speak(lang) = wanted {
                if lang == self.stage.lang {
                    continue;
                }
                self.stage.lang = lang;
            }
            if self.wishes.len() < MAX_WISHES {
                self.wishes.push(wanted);
            }
        }
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

/// How a hosted scene came to its end.
enum SceneEnd {
    /// It was played out; what a task's card says of its end.
    Over(Option<&'static Text>),
    /// The visitor wants something else.
    Left(VisitorWish),
}

/// What a card says of its state; a title of its own where it has none.
pub(super) fn headline(card: &Value) -> &str {
    let header = &card["header"];
    let tags = header["text_tag_list"].as_array();
    let state = tags.and_then(|tags| tags.last()).map(|tag| &tag["text"]);
    // The tag of a gateway's card never changes; its title does.
    let is_state = |tag: &&Value| tag["content"] != *TEAM.zh && tag["content"] != *TEAM.en;
    let state = state.filter(is_state);
    let state = state.unwrap_or(&header["title"]);
    state["content"].as_str().unwrap_or_default()
}
