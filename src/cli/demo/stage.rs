//! The stage: a local Feishu and real laptops, in one temporary directory and
//! on loopback. One that knows the app itself, or three of a team. When it is
//! struck nothing is left.

use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::timeout;

use super::Broken;
use super::laptop::{Laptop, LaptopStanding};
use super::process::{DOWN_WITHIN, UP_WITHIN};
use super::team::DemoTeam;
use crate::cli::wording::Words;
use crate::clock::millis;
use crate::simulator::{APP_ID, App, OWNER, Options, STRANGER, Simulator};
use crate::text::Lang;

/// What the laptop of a person without a team is called.
const ALONE: &str = "laptop";
/// The laptops of a team: what they are called and whose they are.
const LAPTOPS: [(&str, &str); 3] = [("desk", OWNER), ("travel", OWNER), ("loft", STRANGER)];
pub(super) const DESK: usize = 0;
pub(super) const TRAVEL: usize = 1;
pub(super) const LOFT: usize = 2;

/// How the stage stands in a scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Staging {
    /// Whose hook asks, by its place.
    pub(super) laptop: usize,
    /// Cards go to the group instead of the owner's private chat.
    pub(super) group: bool,
    pub(super) answer_within: Duration,
    pub(super) mishap: Mishap,
}

/// What a visitor can let happen in a scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mishap {
    /// The laptop's daemon is killed and comes back.
    Crash,
    /// A gateway is killed, and started again.
    Gateway,
    /// The laptop falls asleep, and wakes.
    Sleep,
}

/// What such a wish came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Happened {
    Crashed,
    GatewayKilled(&'static str),
    GatewayBack,
    FellAsleep,
    Woke,
}

impl Default for Staging {
    fn default() -> Self {
        Self {
            laptop: DESK,
            group: false,
            answer_within: Duration::from_secs(300),
            mishap: Mishap::Crash,
        }
    }
}

impl Staging {
    /// Whether a daemon started with the one serves the other as well.
    pub(super) fn is_same_daemon(self, other: Self) -> bool {
        (self.group, self.answer_within) == (other.group, other.answer_within)
    }
}

pub(super) struct DemoStage {
    pub(super) simulator: Simulator,
    /// The language of the next cards.
    pub(super) lang: Lang,
    /// The program itself, for its daemons and its hooks.
    pub(super) nod: PathBuf,
    /// The app's secret, of this demo alone: with one that everybody knows
    /// another user could speak to the local Feishu as the app.
    secret: String,
    laptops: Vec<Laptop>,
    pub(super) team: Option<DemoTeam>,
    playing: Staging,
    dir: TempDir,
}

impl DemoStage {
    /// One laptop that knows the app.
    pub(super) async fn set(lang: Lang) -> Result<Self, Broken> {
        let mut stage = Self::empty(lang, false).await?;
        let dir = stage.dir.path().to_owned();
        stage.laptops = vec![Laptop::set(&stage.nod, dir, ALONE, OWNER)?];
        Ok(stage)
    }

    /// A team, on the NATS server at `program` if there is one.
    pub(super) async fn set_team(lang: Lang, program: Option<PathBuf>) -> Result<Self, Broken> {
        let mut stage = Self::empty(lang, true).await?;
        let team = DemoTeam::set(&stage.nod, &stage.beside("team"), &stage.secret, program).await?;
        for (name, owner) in LAPTOPS {
            let laptop = Laptop::set(&stage.nod, stage.beside(name), name, owner)?;
            team.admit(&laptop).await?;
            stage.laptops.push(laptop);
        }
        stage.team = Some(team);
        Ok(stage)
    }

    async fn empty(lang: Lang, in_turn: bool) -> Result<Self, Broken> {
        let dir = tempfile::Builder::new().prefix("nod-demo-").tempdir()?;
        let secret = crate::cli::simulator::token();
        let app = App {
            secret: secret.clone(),
            ..App::scanned()
        };
        let options = Options {
            apps: vec![app],
            control_token: Some(crate::cli::simulator::token()),
            in_turn,
            ..Options::default()
        };
        Ok(Self {
            simulator: Simulator::start(options).await?,
            lang,
            nod: std::env::current_exe()?,
            secret,
            laptops: Vec::new(),
            team: None,
            playing: Staging::default(),
            dir,
        })
    }

    /// The laptop whose scene it is.
    pub(super) fn laptop(&self) -> &Laptop {
        &self.laptops[self.playing.laptop]
    }

    fn laptop_mut(&mut self) -> &mut Laptop {
        &mut self.laptops[self.playing.laptop]
    }

    /// The project the scripted agent works in.
    pub(super) fn project(&self) -> PathBuf {
        self.laptop().project()
    }

    /// A file beside all others, gone with them.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(super) fn hook_file(&self) -> io::Result<PathBuf> {
        self.laptop().hook_file(self.lang)
    }

    pub(super) fn command(&self, verb: &str) -> Command {
        self.laptop().command(verb)
    }

    /// How a laptop knows its app; one of a team does not.
    fn app(&self) -> Vec<(&'static str, String)> {
        if self.team.is_some() {
            return Vec::new();
        }
        vec![
            ("FEISHU_APP_ID", APP_ID.to_owned()),
            ("FEISHU_APP_SECRET", self.secret.clone()),
            ("FEISHU_DOMAIN", self.simulator.base_url()),
            ("FEISHU_OWNER_ID", OWNER.to_owned()),
        ]
    }

    /// Has all at work as the scene needs it, restarting what has to be.
    pub(super) async fn play(&mut self, staging: Staging) -> Result<(), Broken> {
        self.playing = staging;
        if let Some(team) = &mut self.team {
            team.complete(&self.simulator, self.lang).await?;
        }
        for at in 0..self.laptops.len() {
            let laptop = &self.laptops[at];
            let own = if at == staging.laptop {
                staging
            } else {
                laptop.staging()
            };
            self.ready(at, own).await?;
        }
        Ok(())
    }

    /// Has this laptop awake, with these settings and connected.
    async fn ready(&mut self, at: usize, staging: Staging) -> Result<(), Broken> {
        let (app, lang) = (self.app(), self.lang);
        let laptop = &mut self.laptops[at];
        laptop.wake();
        // The visitor may have had it forgotten: the bot offers that.
        let forgotten = self.team.is_some()
            && laptop.is_running()
            && laptop.standing().await == LaptopStanding::Refused;
        if !forgotten && laptop.runs_with(staging, lang) {
            return Ok(());
        }
        if laptop.stop().await && self.team.is_none() {
            self.simulator.wait_connections(0, DOWN_WITHIN).await;
        }
        if let Some(team) = self.team.as_ref().filter(|_| forgotten) {
            self.laptops[at].drop_pass()?;
            team.admit(&self.laptops[at]).await?;
        }
        self.laptops[at].start(&app, staging, lang)?;
        self.connected(at).await
    }

    async fn connected(&self, at: usize) -> Result<(), Broken> {
        let laptop = &self.laptops[at];
        let connected = if self.team.is_some() {
            laptop.standing().await == LaptopStanding::Connected
        } else {
            self.simulator.wait_connections(1, UP_WITHIN).await
        };
        let log = || laptop.log_tail();
        connected
            .then_some(())
            .ok_or_else(|| Broken::Daemon { log: log() })
    }

    /// Lets happen what belongs to the scene, or undoes it.
    pub(super) async fn befall(&mut self) -> Result<Happened, Broken> {
        match self.playing.mishap {
            Mishap::Crash => {
                self.crash().await?;
                Ok(Happened::Crashed)
            }
            Mishap::Gateway => {
                let Some(team) = &mut self.team else {
                    return Ok(Happened::GatewayBack);
                };
                if team.is_short() {
                    team.complete(&self.simulator, self.lang).await?;
                    return Ok(Happened::GatewayBack);
                }
                let name = team.kill(&self.simulator).await?;
                Ok(Happened::GatewayKilled(name))
            }
            Mishap::Sleep => {
                let asleep = self.laptop().is_asleep();
                let (what, happened) = if asleep {
                    self.laptop_mut().wake();
                    ("awake", Happened::Woke)
                } else {
                    self.laptop_mut().sleep();
                    ("asleep", Happened::FellAsleep)
                };
                self.simulator.note(json!({"note": "laptop", "what": what}));
                Ok(happened)
            }
        }
    }

    /// The daemon dies without a word and comes up again.
    async fn crash(&mut self) -> Result<(), Broken> {
        let since = Instant::now();
        let app = self.app();
        self.laptop_mut().kill().await?;
        self.simulator
            .note(json!({"note": "daemon", "what": "crashed"}));
        if self.team.is_none() {
            self.simulator.wait_connections(0, DOWN_WITHIN).await;
        }
        self.laptop_mut().again(&app)?;
        self.connected(self.playing.laptop).await?;
        let ms = millis(since.elapsed());
        self.simulator
            .note(json!({"note": "daemon", "what": "started", "ms": ms}));
        Ok(())
    }

    /// What `/lock` in the chat did is undone only by a command on the
    /// machine, and it locked each of its owner's.
    pub(super) async fn unlock(&self) {
        let mut unlocked = true;
        for laptop in &self.laptops {
            let mut command = laptop.command("unlock");
            let unlock = command.stdout(Stdio::null()).status();
            let done = timeout(DOWN_WITHIN, unlock).await;
            unlocked &= done.is_ok_and(|done| done.is_ok_and(|it| it.success()));
        }
        if unlocked {
            self.simulator.note(json!({"note": "unlocked"}));
        }
    }

    /// The last lines that the processes of this scene wrote.
    pub(super) fn log_tail(&self) -> String {
        let team = self.team.as_ref().map(DemoTeam::log_tail);
        self.laptop().log_tail() + &team.unwrap_or_default()
    }

    pub(super) async fn strike(mut self) {
        for laptop in &mut self.laptops {
            laptop.stop().await;
        }
        if let Some(team) = &mut self.team {
            team.stop().await;
        }
        self.simulator.wait_connections(0, DOWN_WITHIN).await;
        self.simulator.shutdown().await;
        let _ = self.dir.close();
    }
}

/// A language as the settings name it.
pub(super) fn word(lang: Lang) -> &'static str {
    Words(lang).pick("zh", "en")
}
