//! The steps of the set-up, one after another as the plan says.

use std::cell::Cell;

use super::super::wording::Words;
use super::app::tell_console;
use super::manifest::{Change, FileKind};
use super::plan::{self, SetupFacts, SetupStep, StepStatus};
use super::steps::SetupApp;
use super::tap::{self, TapError};
use super::undo::without_ours;
use super::waiting::watched;
use super::{Setup, owner};
use crate::cli::daemon::background;
use crate::cli::settings::env_file;
use crate::cli::{CommandResult, Failure, Quit, output, service};
use crate::config::{self, SettingOrigin, Sources};
use crate::feishu::domain::Domain;
use crate::feishu::error::ApiError;
use crate::files;
use crate::ids::UserId;

/// What the settings file holds after every set-up.
pub(super) const ALWAYS_SAVED: [&str; 4] = [
    "FEISHU_APP_ID",
    "FEISHU_APP_SECRET",
    "FEISHU_DOMAIN",
    "FEISHU_OWNER_ID",
];

impl Setup<'_> {
    pub(super) async fn go(&mut self) -> CommandResult {
        // Settings that lead nowhere are told before anybody is asked anything.
        self.network()?;
        let facts = self.facts();
        if self.is_member() {
            output::say(self.words.intro_of_a_member());
        } else if self.terminal.is_some() && !facts.saved {
            output::say(self.words.intro());
        }
        self.tell_agents();
        let mut last = None;
        while let Some(step) = plan::next(&self.facts(), self.wishes) {
            if last == Some(step) {
                return Err(Failure::new(self.words.stuck()));
            }
            last = Some(step);
            // Feishu says whether it is an app at all.
            if step != SetupStep::Check {
                self.tell_before(Some(step));
            }
            self.take_step(step).await?;
        }
        self.tell_before(None);
        self.finish()
    }

    async fn take_step(&mut self, step: SetupStep) -> CommandResult {
        match step {
            SetupStep::App => {
                if self.obtain_app().await? {
                    self.write_settings()?;
                }
                Ok(())
            }
            SetupStep::Check => self.check().await,
            SetupStep::Owner => self.find_owner().await,
            SetupStep::Save => self.save(),
            SetupStep::TestCard => self.prove_tap().await,
            SetupStep::Hooks => self.install_hooks(),
            SetupStep::Mode => self.set_mode(),
            SetupStep::Service => self.keep_running(),
            SetupStep::Trial => self.try_claude().await,
        }
    }

    /// One line of what is done.
    pub(super) fn ticked(&mut self, step: SetupStep, what: &str) {
        let place = step.place(self.is_member());
        output::say(&self.words.ticked(&place, step, what));
        self.seen.told.push(step);
    }

    /// Each step that is not taken gets its line in its turn.
    fn tell_before(&mut self, next: Option<SetupStep>) {
        let (facts, wishes) = (self.facts(), self.wishes);
        for &step in SetupStep::all(self.is_member()) {
            let is_before = next.is_none_or(|next| step < next);
            if !is_before || self.seen.told.contains(&step) {
                continue;
            }
            match plan::status(step, &facts, wishes) {
                StepStatus::Done => {
                    let what = self.found(step);
                    self.ticked(step, &what);
                }
                StepStatus::Left => self.tell_left(step, &facts),
                StepStatus::Open => {}
            }
        }
    }

    /// One line of what is not and, where somebody misses it, of what would do it.
    fn tell_left(&mut self, step: SetupStep, facts: &SetupFacts) {
        let words = self.words;
        let how = match step {
            SetupStep::Hooks => words.hooks_left(),
            SetupStep::Mode if facts.hooks_installed => words.mode_left(),
            SetupStep::Service if !facts.daemon_runs => words.daemon_left(facts.can_serve),
            SetupStep::TestCard if self.seen.unproven => words.tap_left(),
            _ => return self.skipped(step),
        };
        self.left(step, how);
    }

    fn skipped(&mut self, step: SetupStep) {
        let place = step.place(self.is_member());
        output::say(&self.words.skipped(&place, step));
        self.seen.told.push(step);
    }

    pub(super) fn left(&mut self, step: SetupStep, how: &str) {
        let place = step.place(self.is_member());
        output::say(&self.words.left(&place, step, how));
        self.seen.told.push(step);
    }

    /// What is known of a step that was done before.
    fn found(&self, step: SetupStep) -> String {
        let words = self.words;
        match (step, &self.app, &self.owner) {
            (SetupStep::App, Some(app), _) => words.app_named(&app.id),
            (SetupStep::Owner, _, Some(owner)) => words.paired(owner.as_str()),
            (SetupStep::Save, ..) => words.saved_before(&self.paths.own.display().to_string()),
            (SetupStep::Hooks, ..) => words.hooks_found(&self.paths.claude),
            (SetupStep::Mode, ..) => words.mode_found().to_owned(),
            (SetupStep::Service, ..) => self.found_daemon(),
            _ => String::new(),
        }
    }

    /// Who keeps the daemon running, and where to look.
    fn found_daemon(&self) -> String {
        let words = self.words;
        let places = service::places(self.sources, &self.config.state_dir);
        match places.filter(|_| self.facts().service_installed) {
            Some(places) => {
                words.service_found(&service::ServiceManager::kind_here().file(&places))
            }
            None => words.daemon_found(self.daemon_pid()),
        }
    }

    async fn check(&mut self) -> CommandResult {
        let words = self.words;
        let (app, bot) = loop {
            let Some(app) = self.app.clone() else {
                return Ok(());
            };
            let error = match self.network()?.bot(&app).await {
                Ok(bot) => break (app, bot),
                Err(error) => error,
            };
            let hint = words.wrong_secret_hint(app.domain.sibling());
            let is_wrong = matches!(error, ApiError::BadCredentials(_));
            if !is_wrong || self.terminal.is_none() {
                let failure = Failure::new(error.text().get(words.0));
                return Err(if is_wrong {
                    failure.hinted(hint)
                } else {
                    failure
                });
            }
            // Nothing is saved before Feishu has taken it.
            output::say(&words.refused(app.domain.sibling()));
            self.type_app(app.domain)?;
        };
        let name = bot.name.unwrap_or_else(|| app.id.clone());
        self.tell_before(Some(SetupStep::Check));
        self.ticked(SetupStep::Check, &words.app_works(&name));
        if !bot.enabled {
            output::say(words.bot_disabled());
            tell_console(words, &app.domain);
        }
        self.seen.bot = Some(name);
        self.resolve_owner(&app).await
    }

    /// Taps may leave user ids out, and name an open id always.
    async fn resolve_owner(&mut self, app: &SetupApp) -> CommandResult {
        let Some(UserId::Tenant(id)) = self.owner.clone() else {
            return Ok(());
        };
        let found = self
            .network()?
            .contact(app, &UserId::Tenant(id.clone()))
            .await;
        match found.map(|found| found.open_id) {
            Ok(Some(open)) => {
                output::say(&self.words.owner_resolved(&id, open.as_str()));
                self.owner = Some(open);
            }
            Ok(None) => output::say(&self.words.owner_unresolved(&id, None)),
            Err(why) => {
                let why = why.text();
                let why = Some(why.get(self.words.0));
                output::say(&self.words.owner_unresolved(&id, why));
            }
        }
        Ok(())
    }

    async fn find_owner(&mut self) -> CommandResult {
        let words = self.words;
        if self.facts().daemon_runs {
            return Err(Failure::new(words.daemon_holds_line()).hinted(words.stop_daemon_hint()));
        }
        self.asked()?;
        let (Some(app), Some(bot)) = (&self.app, &self.seen.bot) else {
            return Ok(());
        };
        let owner = owner::pair(self.network()?, app, bot, words).await?;
        self.ticked(SetupStep::Owner, &words.paired(owner.as_str()));
        self.owner = Some(owner);
        Ok(())
    }

    pub(super) fn save(&mut self) -> CommandResult {
        self.write_settings()?;
        let path = self.paths.own.display().to_string();
        self.ticked(SetupStep::Save, &self.words.saved(&path));
        self.tell_overruled();
        Ok(())
    }

    fn write_settings(&mut self) -> CommandResult {
        let path = self.paths.own.clone();
        let words = self.words;
        let fail = |why: &std::io::Error| Failure::new(words.not_written(&path, why));
        let before = files::read(&path).map_err(|error| fail(&error))?;
        let text = String::from_utf8(before.clone().unwrap_or_default())
            .map_err(|_| Failure::new(words.not_utf8(&path)))?;
        let values = self.values();
        let pairs: Vec<(&str, &str)> = values
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let after = env_file::with(&text, &pairs)
            .map_err(|unfit| Failure::new(words.unfit_value(&unfit.0)))?;
        let change = Change {
            kind: FileKind::Settings,
            path: &path,
            before: before.as_deref(),
            after: after.as_bytes(),
            names: values.iter().map(|(name, _)| (*name).to_owned()).collect(),
        };
        self.manifest
            .write(change, without_ours)
            .map_err(|error| fail(&error))
    }

    /// Names, each once, what this set-up saves and another value overrules.
    fn tell_overruled(&mut self) {
        let own = SettingOrigin::File(self.paths.own.clone());
        for (name, value) in self.values() {
            let Some((theirs, origin)) = self.sources.get(name) else {
                continue;
            };
            let is_same = match name {
                "FEISHU_DOMAIN" => Domain::parse(theirs) == Domain::parse(&value),
                _ => theirs == value,
            };
            // What can't be used was named before anything was asked.
            let is_told = self.seen.overruled.contains(&name) || !config::accepts(name, theirs);
            if *origin != own && !is_same && !is_told {
                output::hint(self.words, &self.words.wins(name, origin));
                self.seen.overruled.push(name);
            }
        }
    }

    async fn prove_tap(&mut self) -> CommandResult {
        let words = self.words;
        let (Some(app), Some(owner)) = (&self.app, &self.owner) else {
            return Ok(());
        };
        if let Some(others) = self.network()?.connections(app).await
            && others > 0
        {
            output::say(&words.other_connections(others));
        }
        let is_sent = Cell::new(false);
        let sent = || {
            is_sent.set(true);
            output::wipe_line();
            output::say(words.setup_card_sent());
        };
        let chat = Words(self.config.lang);
        let proof = tap::prove(self.network()?, app, owner, chat, tap::TAP_WITHIN, sent);
        let left = |left| {
            if is_sent.get() {
                words.waiting_for_tap(left)
            } else {
                words.sending_card().to_owned()
            }
        };
        match watched(proof, tap::TAP_WITHIN, left).await {
            Ok(took) => {
                self.ticked(SetupStep::TestCard, &words.tapped(took.as_micros()));
                self.seen.tapped = true;
            }
            Err(error) => {
                match error {
                    TapError::Silence => {
                        output::say(words.not_tapped());
                        let base = app.domain.base();
                        output::say(&words.callback_step(base.as_str(), &app.id));
                    }
                    TapError::Connection(_) | TapError::Api(_) => {
                        output::problem(error.text().get(words.0));
                    }
                }
                tell_console(words, &app.domain);
                self.seen.unproven = true;
                self.wishes.test_card = false;
            }
        }
        Ok(())
    }

    fn keep_running(&mut self) -> CommandResult {
        if self.facts().can_serve {
            self.install_service()
        } else {
            self.start_in_background()
        }
    }

    /// Where no manager is, so that nobody must keep a terminal open.
    fn start_in_background(&mut self) -> CommandResult {
        let words = self.words;
        if !self.agrees(words.want_background())? {
            self.wishes.service = false;
            return Ok(());
        }
        // What was saved a moment ago counts for it.
        let started = background::start(&Sources::for_person(), words)?;
        let said = words.in_background(started.pid, &started.log);
        self.ticked(SetupStep::Service, &said);
        Ok(())
    }

    fn install_service(&mut self) -> CommandResult {
        let words = self.words;
        if !self.agrees(words.want_service())? {
            self.wishes.service = false;
            return Ok(());
        }
        let installed = service::ServiceManager::find().and_then(|manager| {
            let places = service::places(self.sources, &self.config.state_dir)
                .ok_or(service::ServiceError::NoHome)?;
            let paths = config::Paths {
                state_dir: self.config.state_dir.clone(),
                sockets: self.config.sockets.clone(),
            };
            let start = service::start(self.sources, &paths, service::Sandbox::default())?;
            let saved = self.values();
            let unseen: Vec<_> = service::unseen(self.sources, &start)
                .into_iter()
                .filter(|name| saved.iter().all(|(known, _)| known != name))
                .collect();
            Ok((manager.install(&start, &places)?, unseen))
        });
        let (installed, unseen) = installed.map_err(|error| {
            Failure::new(words.service_error(&error)).hinted(words.service_logs_hint())
        })?;
        if !unseen.is_empty() {
            output::hint(words, &words.service_unseen(&unseen.join(", ")));
            output::hint(
                words,
                &words.service_unseen_hint(&self.paths.own.display().to_string()),
            );
        }
        self.manifest
            .note_service(installed.made)
            .map_err(|why| Failure::new(words.no_record(&why)))?;
        let file = installed.file.display().to_string();
        self.ticked(SetupStep::Service, &words.service_installed(&file));
        Ok(())
    }

    fn finish(&mut self) -> CommandResult {
        // What an earlier run saved is overruled as well.
        self.tell_overruled();
        let facts = self.facts();
        let runs = facts.service_installed || facts.daemon_runs;
        if self.seen.unproven {
            return Err(Failure::quits(Quit::Unproven, self.words.unproven())
                .hinted(self.words.prove_hint()));
        }
        if facts.daemon_runs && self.wishes.test_card && !self.seen.tapped && !self.is_member() {
            output::say(self.words.test_card_skipped());
        }
        let (all, here) = (runs && facts.hooks_installed, facts.has_claude);
        output::say(match (all, here) {
            (true, true) => self.words.ready(),
            (true, false) => self.words.ready_for_claude(),
            (false, _) => self.words.not_ready(),
        });
        Ok(())
    }
}
