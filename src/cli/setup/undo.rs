//! `nod setup --uninstall`: every file as it was, or without nod's part where
//! somebody else changed it since.

use std::time::Duration;

use super::super::wording::undo::HowToStop;
use super::Setup;
use super::manifest::{FileKind, ManifestEntry, ModeBefore, Undone};
use crate::claude::hooks_file::{AskMode, SettingsDraft};
use crate::cli::daemon::background;
use crate::cli::settings::env_file;
use crate::cli::{CommandResult, Failure, output, service};
use crate::hook::client::{self, NoDecision};
use crate::hook::wire::DaemonOrder;

const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// A daemon that answers.
struct RunningDaemon {
    pid: Option<u64>,
    served: bool,
    background: bool,
}

impl RunningDaemon {
    /// Its number, if it is one that nod left in the background.
    fn ours(&self) -> Option<u64> {
        self.pid.filter(|_| self.background && !self.served)
    }
}

impl Setup<'_> {
    pub(super) fn undo(&mut self, dry_run: bool) -> CommandResult {
        let words = self.words;
        let entries = self.manifest.entries();
        if entries.is_empty() && !self.manifest.has_service() && !self.has_hooks()? {
            output::say(words.nothing_to_take_back());
            self.tell_of_the_pass();
            if let Some(daemon) = self.running() {
                self.tell_of(&daemon);
            }
            return self.manifest.forget().map_err(Failure::new);
        }
        if dry_run {
            output::say(words.dry_run());
            if self.manifest.has_service() {
                output::say(words.would_remove_service());
            }
            self.tell_what_would_be(&entries)?;
            if entries.iter().all(|entry| entry.path != self.paths.claude) && self.has_hooks()? {
                output::say(&words.would_edit(&self.paths.claude.display().to_string()));
            }
            self.tell_of_the_pass();
            // One that the service keeps would end with it.
            if !self.manifest.has_service()
                && let Some(daemon) = self.running()
            {
                match daemon.ours() {
                    Some(pid) => output::say(&words.would_stop(pid)),
                    None => self.tell_of(&daemon),
                }
            }
            return Ok(());
        }
        if self.manifest.has_service() {
            self.remove_service()?;
        }
        for entry in &entries {
            let undone = self.manifest.undo(entry, without_ours);
            let undone =
                undone.map_err(|why| Failure::new(words.not_restored(&entry.path, &why)))?;
            let file = entry.path.display().to_string();
            match undone {
                Undone::Removed => output::say(&words.removed(&file)),
                Undone::Restored => output::say(&words.restored(&file)),
                Undone::Edited => output::say(&words.edited(&file)),
                Undone::Nothing => {}
            }
        }
        self.remove_unrecorded_hooks()?;
        let stays = self.running().filter(|daemon| !self.stop(daemon));
        self.manifest
            .forget()
            .map_err(|why| Failure::new(words.no_record(&why)))?;
        output::say(words.uninstalled());
        if self.config.state_dir.is_dir() {
            output::say(&words.records_stay(&self.config.state_dir.display().to_string()));
        }
        self.tell_of_the_pass();
        if let Some(daemon) = stays {
            self.tell_of(&daemon);
        }
        Ok(())
    }

    fn tell_what_would_be(&self, entries: &[ManifestEntry]) -> CommandResult {
        let words = self.words;
        for entry in entries {
            let undoing = self.manifest.undoing(entry, without_ours);
            let undoing =
                undoing.map_err(|why| Failure::new(words.not_restored(&entry.path, &why)))?;
            let file = entry.path.display().to_string();
            match undoing.0 {
                Undone::Removed => output::say(&words.would_remove(&file)),
                Undone::Restored => output::say(&words.would_restore(&file)),
                Undone::Edited => output::say(&words.would_edit(&file)),
                Undone::Nothing => {}
            }
        }
        Ok(())
    }

    /// Membership is no part of the set-up, and its key is worth something.
    fn tell_of_the_pass(&self) {
        let pass = &self.config.bus.pass;
        if pass.is_file() {
            let name = crate::daemon::machine_name(self.config);
            output::say(&self.words.pass_stays(pass, &name));
        }
    }

    fn running(&self) -> Option<RunningDaemon> {
        let socket = &self.config.sockets.own;
        let (pid, background) = match client::order(socket, DaemonOrder::Status, ANSWER_WITHIN) {
            Ok(report) => (report["pid"].as_u64(), report["background"] == true),
            Err(NoDecision::Unreachable(_)) => return None,
            Err(_) => (None, false),
        };
        Some(RunningDaemon {
            served: is_served(pid),
            pid,
            background,
        })
    }

    /// One in the background has no terminal to be stopped at. Another one is
    /// somebody's who looks at it.
    fn stop(&self, daemon: &RunningDaemon) -> bool {
        let Some(pid) = daemon.ours() else {
            return false;
        };
        let stopped = background::stop(&self.config.sockets.own, pid);
        if stopped {
            output::say(&self.words.daemon_stopped(pid));
        }
        stopped
    }

    fn tell_of(&self, daemon: &RunningDaemon) {
        let stop = match (daemon.served, daemon.pid) {
            (true, _) => HowToStop::Service,
            (false, Some(pid)) if daemon.background => HowToStop::Kill(pid),
            (false, pid) => HowToStop::WhereItRuns(pid),
        };
        output::say(&self.words.daemon_stays(&stop, daemon.pid));
    }

    /// Whether Claude Code calls a nod.
    fn has_hooks(&self) -> Result<bool, Failure> {
        let failed = |why| Failure::new(self.words.hooks_error(&why));
        let draft = SettingsDraft::open(&self.paths.claude).map_err(failed)?;
        Ok(!draft.own_commands().map_err(failed)?.is_empty())
    }

    fn remove_service(&self) -> CommandResult {
        let Some(places) = service::places(self.sources, &self.config.state_dir) else {
            return Ok(());
        };
        let removed =
            service::ServiceManager::find().and_then(|manager| manager.uninstall(&places));
        let was_there = removed.map_err(|why| Failure::new(self.words.service_error(&why)))?;
        output::say(self.words.service_removed(was_there));
        Ok(())
    }

    /// Hooks that were put there by hand, or by a set-up whose record is lost.
    fn remove_unrecorded_hooks(&self) -> CommandResult {
        let failed = |why| Failure::new(self.words.hooks_error(&why));
        let mut draft = SettingsDraft::open(&self.paths.claude).map_err(failed)?;
        draft.remove().map_err(failed)?;
        if draft.is_changed() {
            draft.save().map_err(failed)?;
            let file = self.paths.claude.display().to_string();
            output::say(&self.words.edited(&file));
        }
        Ok(())
    }
}

/// Whether this very process is the one a service manager keeps; a definition
/// that lies there says nothing about who runs.
fn is_served(pid: Option<u64>) -> bool {
    let status = service::ServiceManager::find().and_then(|manager| manager.status());
    status.is_ok_and(|status| status.runs && pid.is_some() && status.pid.map(u64::from) == pid)
}

/// A file's text without what the set-up put there.
pub(super) fn without_ours(
    entry: &ManifestEntry,
    now: &[u8],
    original: Option<&[u8]>,
    mode_before: Option<&ModeBefore>,
) -> Option<Vec<u8>> {
    match entry.kind {
        FileKind::Settings => {
            let now = std::str::from_utf8(now).ok()?;
            let before = std::str::from_utf8(original.unwrap_or_default()).ok()?;
            Some(env_file::without(now, &entry.names, before).into_bytes())
        }
        FileKind::ClaudeSettings => {
            let mut draft = SettingsDraft::of(&entry.path, now);
            draft.remove().ok()?;
            if let Some(ModeBefore(before)) = mode_before
                && draft.asking().ok()? == AskMode::Asks
            {
                draft.set_mode(before.as_deref()).ok()?;
            }
            draft.after().map(<[u8]>::to_vec)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claude::hooks_file::{HookCommand, Hooks};
    use std::path::Path;

    fn entry(kind: FileKind) -> ManifestEntry {
        ManifestEntry::of(kind, Path::new("/home/u/f"), &["A"])
    }

    #[test]
    fn an_edited_settings_file_loses_only_our_lines() {
        let now = b"X=1\nA=ours\nY=2\n";
        let without = |original| without_ours(&entry(FileKind::Settings), now, original, None);
        assert_eq!(without(None).unwrap(), b"X=1\nY=2\n");
        let original: &[u8] = b"A=theirs\n";
        assert_eq!(without(Some(original)).unwrap(), b"X=1\nA=theirs\nY=2\n");
    }

    #[test]
    fn edited_claude_settings_lose_hooks_and_the_mode_we_set() {
        let line = HookCommand {
            program: Path::new("/opt/nod"),
            file: Path::new("/f"),
            socket: None,
        };
        let hooks = Hooks::new(&line, Duration::from_secs(300)).unwrap();
        let start =
            b"{\n  \"model\": \"opus\",\n  \"permissions\": {\"defaultMode\": \"auto\"}\n}\n";
        let mut draft = SettingsDraft::of(Path::new("/f"), start);
        draft.install(&hooks).unwrap();
        draft.set_mode(Some("default")).unwrap();
        let now = String::from_utf8(draft.after().unwrap().to_vec()).unwrap();
        let edited = now.replace("opus", "haiku");
        let before = ModeBefore(Some("auto".to_owned()));
        let undone = without_ours(
            &entry(FileKind::ClaudeSettings),
            edited.as_bytes(),
            Some(start),
            Some(&before),
        );
        let expected = String::from_utf8(start.to_vec())
            .unwrap()
            .replace("opus", "haiku");
        assert_eq!(String::from_utf8(undone.unwrap()).unwrap(), expected);
    }
}
