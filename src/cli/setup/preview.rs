//! `nod setup --dry-run`: what would be done, without the network and without
//! writing.

use super::super::{CommandResult, Failure, output, service};
use super::Setup;
use super::flow::ALWAYS_SAVED;
use super::plan::{self, SetupStep, StepStatus};
use crate::claude::hooks_file::AskMode;

impl Setup<'_> {
    /// Says what would happen, without the network and without writing.
    pub(super) fn preview(&mut self) -> CommandResult {
        let words = self.words;
        let facts = self.facts();
        self.tell_agents();
        output::say(words.dry_run());
        for &step in SetupStep::all(facts.is_member) {
            let mark = match plan::status(step, &facts, self.wishes) {
                StepStatus::Done => "✓",
                StepStatus::Open => "·",
                StepStatus::Left => "-",
            };
            output::say(&format!("  {mark} {}", words.step(step)));
        }
        output::say(words.marks());
        let is_open = |step| {
            let counts = SetupStep::all(facts.is_member).contains(&step);
            counts && plan::status(step, &facts, self.wishes) == StepStatus::Open
        };
        if [SetupStep::App, SetupStep::Owner, SetupStep::Save]
            .into_iter()
            .any(is_open)
        {
            // The steps before bring what is not known yet.
            let mut names = ALWAYS_SAVED.to_vec();
            let others = self.values().into_iter().map(|(name, _)| name);
            names.extend(others.filter(|name| !ALWAYS_SAVED.contains(name)));
            let file = self.paths.own.display().to_string();
            output::say(&words.would_write(&file, &names.join(", ")));
        }
        if is_open(SetupStep::TestCard) {
            output::say(words.would_send_card());
        }
        let places = service::places(self.sources, &self.config.state_dir);
        if let Some(places) = places.filter(|_| is_open(SetupStep::Service) && facts.can_serve) {
            let file = service::ServiceManager::kind_here().file(&places);
            output::say(&words.would_serve(&file.display().to_string()));
        }
        if is_open(SetupStep::Service) && !facts.can_serve {
            output::say(words.would_start_in_background());
        }
        let mut draft = self.claude_settings()?;
        let failed = |why| Failure::new(words.hooks_error(&why));
        draft.install(&self.hooks).map_err(failed)?;
        let sets_mode = match draft.asking() {
            Ok(AskMode::Unset) => self.wishes.mode,
            Ok(AskMode::Mode(_)) => self.set_mode,
            Ok(AskMode::Asks | AskMode::HooksOff) | Err(_) => false,
        };
        if let Ok(AskMode::Mode(mode)) = draft.asking()
            && self.wishes.mode
            && !sets_mode
        {
            output::say(&words.mode_silent(&mode));
            output::say(words.would_ask_mode(self.yes));
        }
        if sets_mode {
            draft.set_mode(Some("default")).map_err(failed)?;
        }
        if draft.is_changed() {
            output::say(&words.would_change(&self.paths.claude.display().to_string()));
            output::diff(&draft.diff());
        }
        Ok(())
    }
}
