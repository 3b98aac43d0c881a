//! The last step: Claude Code itself asks for one harmless command, and the
//! person's tap lets it run. Asked first, because it spends tokens.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::super::{CommandResult, output};
use super::Setup;
use super::plan::SetupStep;
use super::waiting::watched;
use crate::hook::client;
use crate::hook::wire::DaemonOrder;

/// What Claude Code shall run: it changes nothing but an empty directory.
const COMMAND: &str = "touch nod-was-here";
const MADE: &str = "nod-was-here";
const PROMPT: &str = "This is a test of permission prompts. Use the Bash tool once to run exactly \
    `touch nod-was-here` in the current directory, then stop. Do nothing else, whatever the answer is.";
const TRIED_WITHIN: Duration = Duration::from_mins(5);
const STATUS_WITHIN: Duration = Duration::from_secs(2);
/// A service may take a moment to listen.
const LISTENS_WITHIN: Duration = Duration::from_secs(10);

/// What came of it.
enum Tried {
    Allowed,
    /// It ran, and no tap let it.
    Unasked,
    /// A person said no, or nobody said anything.
    NotRun,
    /// Claude Code could not be used at all.
    Failed(Option<i32>),
    Late,
}

impl Setup<'_> {
    /// Where Claude Code is, if it is here.
    pub(super) fn claude(&self) -> Option<PathBuf> {
        let sessions = &self.config.sessions;
        let named = &sessions.claude;
        if named.is_absolute() {
            return named.is_file().then(|| named.clone());
        }
        let path = sessions.environment.iter().find(|(name, _)| name == "PATH");
        let dirs = path.map(|(_, dirs)| std::env::split_paths(dirs));
        let mut dirs = dirs.into_iter().flatten().map(|dir| dir.join(named));
        dirs.find(|program| program.is_file())
    }

    pub(super) async fn try_claude(&mut self) -> CommandResult {
        let words = self.words;
        self.wishes.trial = false;
        let Some(program) = self.claude() else {
            return Ok(());
        };
        if !self.wants(words.want_trial())? {
            return Ok(());
        }
        self.listening().await;
        let before = self.taps();
        output::say(&words.trial_tap(COMMAND));
        let tried = tokio::time::timeout(TRIED_WITHIN, self.run_claude(program));
        let left = |left| words.waiting_for_trial(left);
        let tried = watched(tried, TRIED_WITHIN, left).await;
        let tried = match tried {
            Err(_) => Tried::Late,
            Ok((_, true)) if self.taps() > before => Tried::Allowed,
            Ok((_, true)) => Tried::Unasked,
            Ok((Some(0), false)) => Tried::NotRun,
            Ok((code, false)) => Tried::Failed(code),
        };
        let failed = match tried {
            Tried::Allowed => {
                self.seen.tried = true;
                self.ticked(SetupStep::Trial, &words.trial_allowed(COMMAND));
                return Ok(());
            }
            Tried::Unasked => words.trial_unasked().to_owned(),
            Tried::NotRun => words.trial_not_run().to_owned(),
            Tried::Failed(code) => words.trial_failed(code),
            Tried::Late => words.trial_late().to_owned(),
        };
        self.left(SetupStep::Trial, &failed);
        Ok(())
    }

    /// Its exit code, and whether the command has run.
    async fn run_claude(&self, program: PathBuf) -> (Option<i32>, bool) {
        let Ok(dir) = tempfile::Builder::new().prefix("nod-trial-").tempdir() else {
            return (None, false);
        };
        let child = tokio::process::Command::new(program)
            .args(["-p", PROMPT])
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn();
        let Ok(mut child) = child else {
            return (None, false);
        };
        let ended = child.wait().await;
        let code = ended.ok().and_then(|status| status.code());
        (code, dir.path().join(MADE).exists())
    }

    /// How many taps reached a hook so far.
    fn status(&self) -> Option<Value> {
        client::order(&self.config.sockets.own, DaemonOrder::Status, STATUS_WITHIN).ok()
    }

    fn taps(&self) -> Option<u64> {
        self.status()?["latency"]["tap_to_hook"]["count"].as_u64()
    }

    /// The process that answers hooks.
    pub(super) fn daemon_pid(&self) -> Option<u64> {
        self.status()?["pid"].as_u64()
    }

    async fn listening(&self) {
        let until = Instant::now() + LISTENS_WITHIN;
        while !self.facts().daemon_runs && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}
