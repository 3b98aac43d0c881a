//! The steps of the set-up, one after another as the plan says.

use std::path::Path;
use std::time::Duration;

use super::super::wording::Words;
use super::super::wording::trouble::{NO_SUCH_FILE, bad_line};
use super::super::{Failure, Outcome, output, service};
use super::manifest::{Change, Kind};
use super::plan::{self, Status, Step};
use super::tap::{self, TapError};
use super::{Setup, env_file, migrate, owner};
use crate::claude::hooks_file::{Asking, Draft};
use crate::config::{self, Origin};
use crate::feishu::domain::Domain;
use crate::feishu::error::ApiError;
use crate::feishu::secret::Secret;
use crate::files;
use crate::ids::UserId;
use crate::wording::{Text, system};

/// Exit code when everything is in place and no tap has proven it.
const UNPROVEN: u8 = 4;

/// What the settings file holds after every set-up.
const ALWAYS_SAVED: [&str; 4] = [
    "FEISHU_APP_ID",
    "FEISHU_APP_SECRET",
    "FEISHU_DOMAIN",
    "FEISHU_OWNER_ID",
];

impl Setup<'_> {
    pub(super) async fn go(&mut self) -> Outcome {
        // Settings that lead nowhere are told before anybody is asked anything.
        self.network()?;
        if self.terminal.is_some() && !self.facts().saved {
            output::line(self.words.intro());
        }
        let mut last = None;
        while let Some(step) = plan::next(&self.facts(), self.wishes) {
            if last == Some(step) {
                return Err(Failure::new(1, self.words.stuck()));
            }
            last = Some(step);
            self.take_step(step).await?;
        }
        self.finish()
    }

    async fn take_step(&mut self, step: Step) -> Outcome {
        match step {
            Step::App => {
                self.obtain_app().await?;
                // A secret that a scan brought is shown nowhere else.
                self.save()
            }
            Step::Check => self.check().await,
            Step::Owner => self.find_owner().await,
            Step::Save => self.save(),
            Step::TestCard => self.prove_tap().await,
            Step::Hooks => self.install_hooks(),
            Step::Mode => self.set_mode(),
            Step::Service => self.install_service(),
        }
    }

    async fn check(&mut self) -> Outcome {
        let words = self.words;
        let Some(app) = &self.app else {
            return Ok(());
        };
        let bot = self.network()?.bot(app).await.map_err(|error| {
            let hint = match &error {
                ApiError::BadCredentials(_) => Some(words.wrong_secret_hint(app.domain.sibling())),
                _ => None,
            };
            Failure {
                hint,
                ..Failure::new(1, error.text().get(words.0))
            }
        })?;
        let name = bot.name.unwrap_or_else(|| app.id.clone());
        output::line(&words.app_works(&name));
        if !bot.enabled {
            output::line(words.bot_disabled());
            for line in words.console_steps(app.domain.base().as_str()) {
                output::line(&line);
            }
        }
        self.seen.bot = Some(name);
        Ok(())
    }

    async fn find_owner(&mut self) -> Outcome {
        let words = self.words;
        if self.facts().daemon_runs {
            return Err(Failure {
                hint: Some(words.stop_daemon_hint().to_owned()),
                ..Failure::new(1, words.daemon_holds_line())
            });
        }
        self.asked()?;
        let (Some(app), Some(bot)) = (&self.app, &self.seen.bot) else {
            return Ok(());
        };
        let owner = owner::pair(self.network()?, app, bot, words).await?;
        output::line(&words.paired(owner.as_str()));
        self.owner = Some(owner);
        Ok(())
    }

    pub(super) fn save(&mut self) -> Outcome {
        let path = self.paths.own.clone();
        let words = self.words;
        let fail = |why: &std::io::Error| Failure::new(1, words.not_written(&path, why));
        let before = files::read(&path).map_err(|error| fail(&error))?;
        let text = String::from_utf8(before.clone().unwrap_or_default())
            .map_err(|_| Failure::new(1, words.not_utf8(&path)))?;
        let values = self.values();
        let pairs: Vec<(&str, &str)> = values
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let after = env_file::with(&text, &pairs)
            .map_err(|unfit| Failure::new(1, words.unfit_value(&unfit.0)))?;
        let change = Change {
            kind: Kind::Settings,
            path: &path,
            before: before.as_deref(),
            after: after.as_bytes(),
            names: values.iter().map(|(name, _)| (*name).to_owned()).collect(),
        };
        let mode_before = self.manifest.mode_before().cloned();
        self.manifest
            .write(change, |entry, now, original| {
                super::undo::without_ours(entry, now, original, mode_before.as_ref())
            })
            .map_err(|error| fail(&error))?;
        output::line(&self.words.saved(&path.display().to_string()));
        self.tell_overruled();
        Ok(())
    }

    /// Names, each once, what this set-up saves and another value overrules.
    fn tell_overruled(&mut self) {
        let own = Origin::File(self.paths.own.clone());
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

    async fn prove_tap(&mut self) -> Outcome {
        let words = self.words;
        let (Some(app), Some(owner)) = (&self.app, &self.owner) else {
            return Ok(());
        };
        let sent = || output::line(&words.setup_card_sent(tap::TAP_WITHIN.as_secs()));
        match tap::prove(self.network()?, app, owner, words, tap::TAP_WITHIN, sent).await {
            Ok(took) => {
                output::line(&words.tapped(took.as_micros()));
                self.seen.tapped = true;
            }
            Err(error) => {
                match error {
                    TapError::Silence => output::line(words.not_tapped()),
                    TapError::Connection(_) | TapError::Api(_) => {
                        output::problem(error.text().get(words.0));
                    }
                }
                for line in words.console_steps(app.domain.base().as_str()) {
                    output::line(&line);
                }
                self.seen.unproven = true;
                self.wishes.test_card = false;
            }
        }
        Ok(())
    }

    fn install_hooks(&mut self) -> Outcome {
        let words = self.words;
        let mut draft = self.claude_settings()?;
        draft
            .install(&self.hooks)
            .map_err(|error| Failure::new(1, self.words.hooks_error(&error)))?;
        let commands = draft.foreign_commands().unwrap_or_default();
        if commands.iter().any(|command| migrate::is_its_hook(command)) {
            output::line(words.other_hooks());
        }
        output::line(&words.hooks_change(&self.paths.claude.display().to_string()));
        output::text(&draft.diff());
        if !self.agrees(words.apply())? {
            output::line(words.hooks_left());
            self.wishes.hooks = false;
            self.wishes.mode = false;
            return Ok(());
        }
        self.write_claude_settings(&draft)?;
        output::line(words.hooks_installed(draft.before().is_some()));
        Ok(())
    }

    fn set_mode(&mut self) -> Outcome {
        let words = self.words;
        let mut draft = self.claude_settings()?;
        let asking = draft
            .asking()
            .map_err(|error| Failure::new(1, words.hooks_error(&error)))?;
        let (warning, before) = match &asking {
            Asking::Asks => return Ok(()),
            Asking::HooksOff => (words.hooks_off().to_owned(), None),
            Asking::Unset => (
                words.mode_unset(&self.paths.claude.display().to_string()),
                None,
            ),
            Asking::Mode(mode) => (words.mode_silent(mode), Some(mode.as_str())),
        };
        output::line(&warning);
        // A mode that somebody chose is changed only when a person says so.
        let chosen = matches!(asking, Asking::Mode(_)) && self.yes;
        let wanted = asking != Asking::HooksOff
            && (self.set_mode || (!chosen && self.agrees(words.mode_change())?));
        if !wanted {
            self.wishes.mode = false;
            return Ok(());
        }
        draft
            .set_mode(Some("default"))
            .map_err(|error| Failure::new(1, self.words.hooks_error(&error)))?;
        output::text(&draft.diff());
        self.manifest
            .note_mode(before)
            .map_err(|why| Failure::new(1, words.no_record(&why)))?;
        self.write_claude_settings(&draft)
    }

    fn claude_settings(&self) -> Result<Draft, Failure> {
        Draft::open(&self.paths.claude)
            .map_err(|error| Failure::new(1, self.words.hooks_error(&error)))
    }

    fn write_claude_settings(&mut self, draft: &Draft) -> Outcome {
        let Some(after) = draft.after().filter(|_| draft.is_changed()) else {
            return Ok(());
        };
        draft
            .check_unchanged()
            .map_err(|error| Failure::new(1, self.words.hooks_error(&error)))?;
        let change = Change {
            kind: Kind::ClaudeSettings,
            path: draft.file(),
            before: draft.before(),
            after,
            names: Vec::new(),
        };
        let mode_before = self.manifest.mode_before().cloned();
        self.manifest
            .write(change, |entry, now, original| {
                super::undo::without_ours(entry, now, original, mode_before.as_ref())
            })
            .map_err(|why| Failure::new(1, self.words.not_written(draft.file(), &why)))
    }

    fn install_service(&mut self) -> Outcome {
        let words = self.words;
        if !self.agrees(words.want_service())? {
            self.wishes.service = false;
            return Ok(());
        }
        let installed = service::Manager::find().and_then(|manager| {
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
        let (installed, unseen) = installed.map_err(|error| Failure {
            hint: Some(words.service_logs_hint().to_owned()),
            ..Failure::new(1, words.service_error(&error))
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
            .map_err(|why| Failure::new(1, words.no_record(&why)))?;
        output::line(&words.service_installed(&installed.file.display().to_string()));
        Ok(())
    }

    fn finish(&mut self) -> Outcome {
        // What an earlier run saved is overruled as well.
        self.tell_overruled();
        let facts = self.facts();
        let runs = facts.service_installed || facts.daemon_runs;
        if !runs && !facts.can_serve && self.wishes.service {
            output::hint(self.words, self.words.service_instead());
        }
        if self.seen.unproven {
            return Err(Failure {
                hint: Some(self.words.prove_hint().to_owned()),
                ..Failure::new(UNPROVEN, self.words.unproven())
            });
        }
        if facts.daemon_runs && self.wishes.test_card && !self.seen.tapped {
            output::line(self.words.test_card_skipped());
        }
        output::line(if runs {
            self.words.ready()
        } else {
            self.words.ready_to_start(facts.can_serve)
        });
        Ok(())
    }

    /// Takes over claude-notify's settings where they say more than nod's own.
    pub(super) fn take_over(&mut self, named: Option<&Path>) -> Outcome {
        let words = self.words;
        if named.is_none() && self.app.is_some() {
            return Ok(());
        }
        let commands = self
            .claude_settings()
            .ok()
            .and_then(|draft| draft.foreign_commands().ok())
            .unwrap_or_default();
        let places = match named {
            Some(file) => vec![file.to_owned()],
            None => migrate::places(&commands, &self.paths.home),
        };
        for file in places {
            let text = match files::read(&file) {
                Ok(Some(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
                Ok(None) if named.is_none() => continue,
                Ok(None) => return Err(cannot_take(words, &file, &NO_SUCH_FILE)),
                Err(error) => return Err(cannot_take(words, &file, &system::io(&error))),
            };
            let found = config::parse_env(&text)
                .map_err(|why| cannot_take(words, &file, &bad_line(&why)))?;
            let mut taken = migrate::taken(&found);
            let unfit: Vec<_> = taken
                .values
                .extract_if(.., |(name, value)| !config::accepts(name, value))
                .map(|(name, _)| name)
                .collect();
            if taken.values.is_empty() {
                continue;
            }
            let listed: Vec<&str> = taken.values.iter().map(|(name, _)| *name).collect();
            output::line(&words.migrate_found(&file.display().to_string(), &listed.join(", ")));
            if !unfit.is_empty() {
                output::line(&words.migrate_unfit(&unfit.join(", ")));
            }
            if !taken.left.is_empty() {
                output::line(&words.migrate_left(&taken.left.join(", ")));
            }
            let wanted = self.yes || (self.terminal.is_some() && self.agrees(words.migrate())?);
            if wanted {
                self.take_values(taken.values);
            }
            return Ok(());
        }
        Ok(())
    }

    fn take_values(&mut self, values: Vec<(&'static str, String)>) {
        let found = |wanted: &str| {
            let value = values.iter().find(|(name, _)| *name == wanted);
            value.map(|(_, value)| value.clone())
        };
        let id = found("FEISHU_APP_ID");
        let secret = found("FEISHU_APP_SECRET");
        if let (None, Some(id), Some(secret)) = (&self.app, id, secret) {
            self.app = Some(super::App {
                domain: self.domain.clone().unwrap_or_default(),
                id,
                secret: Secret::new(secret),
            });
        }
        if self.owner.is_none() {
            self.owner = found("FEISHU_OWNER_ID").and_then(|id| UserId::parse(&id).ok());
        }
        let own = ["FEISHU_APP_ID", "FEISHU_APP_SECRET", "FEISHU_OWNER_ID"];
        self.extra = values
            .into_iter()
            .filter(|(name, _)| !own.contains(name) && self.sources.get(name).is_none())
            .collect();
        let timeout = self
            .extra
            .iter()
            .find(|(name, _)| *name == "PERMISSION_REQUEST_TIMEOUT");
        if let Some(seconds) = timeout.and_then(|(_, value)| value.parse().ok()) {
            self.hooks = self.hooks.waiting(Duration::from_secs(seconds));
        }
    }

    /// Says what would happen, without the network and without writing.
    pub(super) fn preview(&mut self) -> Outcome {
        let words = self.words;
        let facts = self.facts();
        output::line(words.dry_run());
        for step in Step::ALL {
            let mark = match plan::status(step, &facts, self.wishes) {
                Status::Done => "✓",
                Status::Open => "·",
                Status::Left => "-",
            };
            output::line(&format!("  {mark} {}", words.step(step)));
        }
        output::line(words.marks());
        let is_open = |step| plan::status(step, &facts, self.wishes) == Status::Open;
        if [Step::App, Step::Owner, Step::Save]
            .into_iter()
            .any(is_open)
        {
            // The steps before bring what is not known yet.
            let mut names = ALWAYS_SAVED.to_vec();
            let others = self.values().into_iter().map(|(name, _)| name);
            names.extend(others.filter(|name| !ALWAYS_SAVED.contains(name)));
            let file = self.paths.own.display().to_string();
            output::line(&words.would_write(&file, &names.join(", ")));
        }
        if is_open(Step::TestCard) {
            output::line(words.would_send_card());
        }
        let places = service::places(self.sources, &self.config.state_dir);
        if let Some(places) = places.filter(|_| is_open(Step::Service)) {
            let file = service::Manager::kind_here().file(&places);
            output::line(&words.would_serve(&file.display().to_string()));
        }
        let mut draft = self.claude_settings()?;
        draft
            .install(&self.hooks)
            .map_err(|error| Failure::new(1, self.words.hooks_error(&error)))?;
        let sets_mode = match draft.asking() {
            Ok(Asking::Unset) => self.wishes.mode,
            Ok(Asking::Mode(_)) => self.set_mode,
            Ok(Asking::Asks | Asking::HooksOff) | Err(_) => false,
        };
        if let Ok(Asking::Mode(mode)) = draft.asking()
            && self.wishes.mode
            && !sets_mode
        {
            output::line(&words.mode_silent(&mode));
            output::line(words.would_ask_mode(self.yes));
        }
        if sets_mode {
            draft
                .set_mode(Some("default"))
                .map_err(|error| Failure::new(1, self.words.hooks_error(&error)))?;
        }
        if draft.is_changed() {
            output::line(&words.would_change(&self.paths.claude.display().to_string()));
            output::text(&draft.diff());
        }
        Ok(())
    }
}

fn cannot_take(words: Words, file: &Path, why: &Text) -> Failure {
    Failure::new(1, words.not_taken_over(file, why))
}
