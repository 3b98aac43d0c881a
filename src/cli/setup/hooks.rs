//! What the set-up changes in Claude Code's own settings: its hooks, and that
//! it asks.

use super::super::{CommandResult, Failure, output};
use super::manifest::{Change, FileKind};
use super::plan::SetupStep;
use super::undo::without_ours;
use super::{Setup, migrate};
use crate::claude::hooks_file::{AskMode, SettingsDraft};

impl Setup<'_> {
    pub(super) fn install_hooks(&mut self) -> CommandResult {
        let words = self.words;
        let mut draft = self.claude_settings()?;
        let failed = |why| Failure::new(words.hooks_error(&why));
        draft.install(&self.hooks).map_err(failed)?;
        let commands = draft.foreign_commands().unwrap_or_default();
        if commands.iter().any(|command| migrate::is_its_hook(command)) {
            output::say(words.other_hooks());
        }
        let file = self.paths.claude.display().to_string();
        output::say(&words.hooks_change(&file, draft.before().is_some()));
        if !self.agrees_to(words.apply(), &draft)? {
            self.wishes.hooks = false;
            self.wishes.mode = false;
            return Ok(());
        }
        self.write_claude_settings(&draft)?;
        let had_file = draft.before().is_some();
        self.ticked(SetupStep::Hooks, words.hooks_installed(had_file));
        Ok(())
    }

    pub(super) fn set_mode(&mut self) -> CommandResult {
        let words = self.words;
        let mut draft = self.claude_settings()?;
        let failed = |why| Failure::new(words.hooks_error(&why));
        let asking = draft.asking().map_err(failed)?;
        let (warning, before) = match &asking {
            AskMode::Asks => return Ok(()),
            AskMode::HooksOff => (words.hooks_off().to_owned(), None),
            AskMode::Unset => (
                words.mode_unset(&self.paths.claude.display().to_string()),
                None,
            ),
            AskMode::Mode(mode) => (words.mode_silent(mode), Some(mode.as_str())),
        };
        output::say(&warning);
        // A mode that somebody chose is changed only when a person says so.
        let chosen = matches!(asking, AskMode::Mode(_)) && self.yes;
        let wanted = asking != AskMode::HooksOff
            && (self.set_mode || (!chosen && self.agrees(words.mode_change())?));
        if !wanted {
            self.wishes.mode = false;
            return Ok(());
        }
        draft.set_mode(Some("default")).map_err(failed)?;
        self.manifest
            .note_mode(before)
            .map_err(|why| Failure::new(words.no_record(&why)))?;
        self.write_claude_settings(&draft)?;
        self.ticked(SetupStep::Mode, words.mode_set());
        Ok(())
    }

    /// Asks, and shows the change line by line to whoever wants to see it.
    fn agrees_to(&mut self, question: &str, draft: &SettingsDraft) -> Result<bool, Failure> {
        if self.yes {
            return Ok(true);
        }
        loop {
            match self.agrees_or_looks(question)? {
                Some(agrees) => return Ok(agrees),
                None => output::diff(&draft.diff()),
            }
        }
    }

    pub(super) fn claude_settings(&self) -> Result<SettingsDraft, Failure> {
        SettingsDraft::open(&self.paths.claude)
            .map_err(|error| Failure::new(self.words.hooks_error(&error)))
    }

    pub(super) fn write_claude_settings(&mut self, draft: &SettingsDraft) -> CommandResult {
        let Some(after) = draft.after().filter(|_| draft.is_changed()) else {
            return Ok(());
        };
        draft
            .check_unchanged()
            .map_err(|error| Failure::new(self.words.hooks_error(&error)))?;
        let change = Change {
            kind: FileKind::ClaudeSettings,
            path: draft.file(),
            before: draft.before(),
            after,
            names: Vec::new(),
        };
        self.manifest
            .write(change, without_ours)
            .map_err(|why| Failure::new(self.words.not_written(draft.file(), &why)))
    }
}
