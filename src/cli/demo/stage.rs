//! The stage: a local Feishu, a real daemon, a project and its hooks, in one
//! temporary directory and on loopback. When it is struck nothing is left.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::{Broken, stand_in};
use crate::files;
use crate::simulator::{APP_ID, App, GROUP, OWNER, Options, Simulator};
use crate::text::Lang;

const UP_WITHIN: Duration = Duration::from_secs(20);
const DOWN_WITHIN: Duration = Duration::from_secs(5);
/// Enough of the daemon's log to see why it went wrong.
const LOG_TAIL: usize = 2_000;

/// What the daemon is started with: some scenes need other settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Staging {
    /// Cards go to the group instead of the owner's private chat.
    pub(super) group: bool,
    pub(super) answer_within: Duration,
}

impl Default for Staging {
    fn default() -> Self {
        Self {
            group: false,
            answer_within: Duration::from_secs(300),
        }
    }
}

pub(super) struct Stage {
    pub(super) simulator: Simulator,
    /// The language of the next cards.
    pub(super) lang: Lang,
    /// The program itself, for its daemon and its hooks.
    pub(super) nod: PathBuf,
    /// The app's secret, of this demo alone: with one that everybody knows
    /// another user could speak to the local Feishu as the app.
    secret: String,
    dir: TempDir,
    daemon: Option<Child>,
    /// What the running daemon was started with.
    playing: (Staging, Lang),
}

impl Stage {
    pub(super) async fn set(lang: Lang) -> Result<Self, Broken> {
        let dir = tempfile::Builder::new().prefix("nod-demo-").tempdir()?;
        let secret = crate::cli::simulator::token();
        let app = App {
            secret: secret.clone(),
            ..App::scanned()
        };
        let options = Options {
            apps: vec![app],
            control_token: Some(crate::cli::simulator::token()),
            ..Options::default()
        };
        let stage = Self {
            simulator: Simulator::start(options).await?,
            secret,
            lang,
            nod: std::env::current_exe()?,
            dir,
            daemon: None,
            playing: (Staging::default(), lang),
        };
        fs::create_dir(stage.home())?;
        let git = stage.project().join(".git");
        fs::create_dir_all(&git)?;
        fs::write(git.join("HEAD"), "ref: refs/heads/checkout\n")?;
        // A link and not a script: it works where the directory is mounted
        // without leave to run programs.
        symlink(&stage.nod, stage.stand_in())?;
        Ok(stage)
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub(super) fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// The project the scripted agent works in.
    pub(super) fn project(&self) -> PathBuf {
        self.dir.path().join("shop")
    }

    /// A file beside the project, gone with everything else.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The program sessions run as Claude Code.
    fn stand_in(&self) -> PathBuf {
        self.beside(stand_in::NAME)
    }

    /// The settings file of the hooks, written anew: they take nothing from
    /// their environment.
    pub(super) fn hook_file(&self) -> io::Result<PathBuf> {
        let file = self.beside("hook.env");
        let (state, lang) = (self.state(), word(self.lang));
        let text = format!("NOD_STATE_DIR=\"{}\"\nNOD_LANG={lang}\n", state.display());
        // Whole or not at all: a hook may be reading it.
        files::replace(&file, text.as_bytes(), 0o600)?;
        Ok(file)
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("daemon.log")
    }

    /// `nod` with an environment of its own: nothing of the visitor's settings
    /// may reach the demo, and nothing of the demo their settings.
    pub(super) fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(&self.nod);
        command
            .arg(verb)
            .env_clear()
            .env("HOME", self.home())
            .env("USER", "demo")
            .env("NOD_STATE_DIR", self.state())
            .current_dir(self.project())
            .kill_on_drop(true);
        command
    }

    /// Has a daemon with these settings connected, restarting it if needed.
    pub(super) async fn play(&mut self, staging: Staging) -> Result<(), Broken> {
        let wanted = (staging, self.lang);
        if self.daemon.is_some() && self.playing == wanted {
            return Ok(());
        }
        self.stop_daemon().await;
        self.playing = wanted;
        self.start_daemon().await
    }

    /// The daemon dies without a word and comes up again.
    pub(super) async fn crash(&mut self) -> Result<(), Broken> {
        let since = Instant::now();
        if let Some(mut daemon) = self.daemon.take() {
            daemon.kill().await?;
        }
        self.simulator
            .note(json!({"note": "daemon", "what": "crashed"}));
        self.simulator.wait_connections(0, DOWN_WITHIN).await;
        self.start_daemon().await?;
        let ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.simulator
            .note(json!({"note": "daemon", "what": "started", "ms": ms}));
        Ok(())
    }

    /// What `/lock` in the chat did is undone only by a command on the machine.
    pub(super) async fn unlock(&self) {
        let unlock = self.command("unlock").stdout(Stdio::null()).status();
        if timeout(DOWN_WITHIN, unlock)
            .await
            .is_ok_and(|done| done.is_ok_and(|it| it.success()))
        {
            self.simulator.note(json!({"note": "unlocked"}));
        }
    }

    async fn start_daemon(&mut self) -> Result<(), Broken> {
        let log = File::options().create(true).append(true).open(self.log())?;
        let (staging, lang) = self.playing;
        let mut command = self.command("daemon");
        command
            .env("FEISHU_APP_ID", APP_ID)
            .env("FEISHU_APP_SECRET", &self.secret)
            .env("FEISHU_DOMAIN", self.simulator.base_url())
            .env("FEISHU_OWNER_ID", OWNER)
            .env("NOD_LANG", word(lang))
            .env("NOD_CLAUDE", self.stand_in())
            .env("NOD_PROJECTS", format!("shop={}", self.project().display()))
            .env(
                "PERMISSION_REQUEST_TIMEOUT",
                staging.answer_within.as_secs().to_string(),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        if staging.group {
            command.env("FEISHU_CHAT_ID", GROUP);
        }
        self.daemon = Some(command.spawn()?);
        if self.simulator.wait_connections(1, UP_WITHIN).await {
            Ok(())
        } else {
            Err(Broken::Daemon {
                log: self.log_tail(),
            })
        }
    }

    async fn stop_daemon(&mut self) {
        let Some(mut daemon) = self.daemon.take() else {
            return;
        };
        terminate(daemon.id());
        if timeout(DOWN_WITHIN, daemon.wait()).await.is_err() {
            let _ = daemon.kill().await;
        }
        self.simulator.wait_connections(0, DOWN_WITHIN).await;
    }

    /// The last lines the daemon wrote.
    pub(super) fn log_tail(&self) -> String {
        tail(&self.log())
    }

    pub(super) async fn strike(mut self) {
        self.stop_daemon().await;
        self.simulator.shutdown().await;
        let _ = self.dir.close();
    }
}

fn tail(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let from = text.ceil_char_boundary(text.len().saturating_sub(LOG_TAIL));
    text[from..].to_owned()
}

/// A language as the settings name it.
pub(super) fn word(lang: Lang) -> &'static str {
    match lang {
        Lang::Zh => "zh",
        Lang::En => "en",
    }
}

/// Asks a child to end, as a service manager or Claude Code would.
pub(super) fn terminate(pid: Option<u32>) {
    let pid = pid
        .and_then(|id| i32::try_from(id).ok())
        .and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}
