//! A laptop on the stage: a home, a project and its hooks, and a daemon that
//! can be killed or put to sleep.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::process::{Child, Command};
use tokio::task::spawn_blocking;

use super::process::{self, LOOK_EVERY, UP_WITHIN};
use super::stage::{Staging, word};
use super::stand_in;
use crate::files;
use crate::hook::client;
use crate::hook::paths::SocketPlaces;
use crate::hook::wire::DaemonOrder;
use crate::simulator::GROUP;
use crate::text::Lang;

/// How long a daemon has to say how it does.
const SAYS_WITHIN: Duration = Duration::from_secs(2);

pub(super) struct Laptop {
    /// What its cards call it.
    pub(super) name: &'static str,
    /// Whose it is.
    pub(super) owner: &'static str,
    nod: PathBuf,
    dir: PathBuf,
    daemon: Option<Child>,
    asleep: bool,
    /// What its daemon was started with.
    playing: (Staging, Lang),
}

/// How a laptop of a team stands with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LaptopStanding {
    Connected,
    /// Its pass was taken back.
    Refused,
    /// Neither was said in time.
    Silent,
}

impl Laptop {
    /// Makes its directory ready; its daemon is not started.
    pub(super) fn set(
        nod: &Path,
        dir: PathBuf,
        name: &'static str,
        owner: &'static str,
    ) -> io::Result<Self> {
        let laptop = Self {
            name,
            owner,
            nod: nod.to_owned(),
            dir,
            daemon: None,
            asleep: false,
            playing: (Staging::default(), Lang::Zh),
        };
        fs::create_dir_all(laptop.home())?;
        let git = laptop.project().join(".git");
        fs::create_dir_all(&git)?;
        fs::write(git.join("HEAD"), "ref: refs/heads/checkout\n")?;
        // A link and not a script: it works where the directory is mounted
        // without leave to run programs.
        symlink(nod, laptop.stand_in())?;
        Ok(laptop)
    }

    fn home(&self) -> PathBuf {
        self.dir.join("home")
    }

    fn state(&self) -> PathBuf {
        self.dir.join("state")
    }

    /// The project the scripted agent works in.
    pub(super) fn project(&self) -> PathBuf {
        self.dir.join("shop")
    }

    /// The program sessions run as Claude Code.
    fn stand_in(&self) -> PathBuf {
        self.dir.join(stand_in::NAME)
    }

    fn log(&self) -> PathBuf {
        self.dir.join("daemon.log")
    }

    pub(super) fn log_tail(&self) -> String {
        process::tail(&self.log())
    }

    pub(super) fn command(&self, verb: &str) -> Command {
        let mut command = process::nod(&self.nod, &self.home(), &self.state());
        command
            .arg(verb)
            .env("USER", "demo")
            .current_dir(self.project());
        command
    }

    /// The settings file of the hooks, written anew: they take nothing from
    /// their environment.
    pub(super) fn hook_file(&self, lang: Lang) -> io::Result<PathBuf> {
        let file = self.dir.join("hook.env");
        let (state, lang) = (self.state(), word(lang));
        let text = format!("NOD_STATE_DIR=\"{}\"\nNOD_LANG={lang}\n", state.display());
        // Whole or not at all: a hook may be reading it.
        files::replace(&file, text.as_bytes(), 0o600)?;
        Ok(file)
    }

    /// What its daemon was last started with.
    pub(super) fn staging(&self) -> Staging {
        self.playing.0
    }

    pub(super) fn runs_with(&self, staging: Staging, lang: Lang) -> bool {
        let (before, spoken) = self.playing;
        self.daemon.is_some() && before.is_same_daemon(staging) && spoken == lang
    }

    /// Starts its daemon; `app` is how that knows its app, where it does.
    pub(super) fn start(
        &mut self,
        app: &[(&'static str, String)],
        staging: Staging,
        lang: Lang,
    ) -> io::Result<()> {
        self.playing = (staging, lang);
        self.again(app)
    }

    /// Starts its daemon as it was started before.
    pub(super) fn again(&mut self, app: &[(&'static str, String)]) -> io::Result<()> {
        let (staging, lang) = self.playing;
        let mut command = self.command("daemon");
        command
            .envs(app.iter().map(|(name, value)| (name, value)))
            .env("NOD_LANG", word(lang))
            .env("NOD_MACHINE_NAME", self.name)
            .env("NOD_CLAUDE", self.stand_in())
            .env("NOD_PROJECTS", format!("shop={}", self.project().display()))
            .env(
                "PERMISSION_REQUEST_TIMEOUT",
                staging.answer_within.as_secs().to_string(),
            );
        if staging.group {
            command.env("FEISHU_CHAT_ID", GROUP);
        }
        self.daemon = Some(process::start(&mut command, &self.log())?);
        self.asleep = false;
        Ok(())
    }

    /// Throws away the pass that was taken back, and its key: another pass for
    /// that one would count from the next second on.
    pub(super) fn drop_pass(&self) -> io::Result<()> {
        files::remove(&self.state().join("bus.pass"))
    }

    pub(super) fn is_running(&self) -> bool {
        self.daemon.is_some()
    }

    /// What its daemon says, once it is connected or refused.
    pub(super) async fn standing(&self) -> LaptopStanding {
        let state = self.state();
        let places = SocketPlaces {
            runtime_dir: None,
            state_dir: &state,
            chosen: None,
        };
        let socket = places.socket_paths().own;
        let until = Instant::now() + UP_WITHIN;
        while Instant::now() < until {
            let socket = socket.clone();
            let asked =
                spawn_blocking(move || client::order(&socket, DaemonOrder::Status, SAYS_WITHIN));
            if let Ok(Ok(status)) = asked.await {
                match status["connection"]["state"].as_str() {
                    Some("connected") => return LaptopStanding::Connected,
                    Some("degraded") => return LaptopStanding::Refused,
                    _ => {}
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        LaptopStanding::Silent
    }

    /// Its daemon dies without a word.
    pub(super) async fn kill(&mut self) -> io::Result<()> {
        match self.daemon.take() {
            Some(mut daemon) => daemon.kill().await,
            None => Ok(()),
        }
    }

    /// Whether there was a daemon to stop.
    pub(super) async fn stop(&mut self) -> bool {
        let Some(mut daemon) = self.daemon.take() else {
            return false;
        };
        process::stop(&mut daemon).await;
        true
    }

    pub(super) fn is_asleep(&self) -> bool {
        self.asleep
    }

    /// Closes its lid: what is sent to it waits in the kernel.
    pub(super) fn sleep(&mut self) {
        self.asleep = true;
        self.signal(Signal::STOP);
    }

    pub(super) fn wake(&mut self) {
        if std::mem::take(&mut self.asleep) {
            self.signal(Signal::CONT);
        }
    }

    fn signal(&self, signal: Signal) {
        process::signal(self.daemon.as_ref().and_then(Child::id), signal);
    }
}
