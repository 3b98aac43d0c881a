//! Takes over what claude-notify was set up with.

use std::path::Path;
use std::time::Duration;

use super::super::wording::Words;
use super::super::wording::trouble::{NO_SUCH_FILE, bad_line};
use super::super::{CommandResult, Failure, output};
use super::{Setup, migrate};
use crate::config;
use crate::feishu::secret::Secret;
use crate::files;
use crate::ids::UserId;
use crate::text::{Text, system};

impl Setup<'_> {
    /// Takes over claude-notify's settings where they say more than nod's own.
    pub(super) fn take_over(&mut self, named: Option<&Path>) -> CommandResult {
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
            output::say(&words.migrate_found(&file.display().to_string(), &listed.join(", ")));
            if !unfit.is_empty() {
                output::say(&words.migrate_unfit(&unfit.join(", ")));
            }
            if !taken.left.is_empty() {
                output::say(&words.migrate_left(&taken.left.join(", ")));
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
            self.app = Some(super::SetupApp {
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
}

fn cannot_take(words: Words, file: &Path, why: &Text) -> Failure {
    Failure::new(words.not_taken_over(file, why))
}
