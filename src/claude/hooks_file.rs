//! nod's entries in Claude Code's user settings: added, brought up to date and
//! taken out again, with everything else in the file kept as it stands.
//! Nothing is written before [`SettingsDraft::save`], and never over a file that
//! somebody else changed meanwhile.

mod obstacles;
#[cfg(test)]
mod tests;
mod text;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use self::obstacles::Obstacles;
pub use super::json_text::Untouchable;
use crate::files;
use crate::text::Text;

/// What Claude Code waits longer than nod does, so that nod's own time-out
/// comes first and is told honestly.
const GRACE: Duration = Duration::from_mins(1);
/// The other hooks only report.
const REPORT_WITHIN: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum HooksError {
    /// The user has to mend the file; it was not touched.
    #[error("`{}` {why}", file.display())]
    Untouchable { file: PathBuf, why: Untouchable },
    /// Start again with what stands there now.
    #[error("`{}` was changed by somebody else meanwhile", file.display())]
    Changed { file: PathBuf },
    /// nod or its settings have to live elsewhere.
    #[error("`{}` can't stand in a hook's command: {}", path.display(), problem.en)]
    BadProgram { path: PathBuf, problem: Text },
    #[error("`{}` could not be {doing}: {source}", file.display())]
    Io {
        file: PathBuf,
        doing: &'static str,
        source: io::Error,
    },
}

/// What a hook's command names, all by absolute paths: a repository's settings
/// choose the variables it could be found by.
#[derive(Debug, Clone, Copy)]
pub struct HookCommand<'a> {
    pub program: &'a Path,
    /// nod's own settings file.
    pub file: &'a Path,
    /// The daemon's socket, where that file does not tell.
    pub socket: Option<&'a Path>,
}

/// What shall stand in the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hooks {
    command: String,
    ask_within: Duration,
}

impl Hooks {
    /// Hooks that start `line`'s program and wait for a tap at least
    /// `request_timeout`.
    pub fn new(line: &HookCommand<'_>, request_timeout: Duration) -> Result<Self, HooksError> {
        let bad = |path: &Path, zh: &'static str, en: &'static str| HooksError::BadProgram {
            path: path.to_owned(),
            problem: Text::new(zh, en),
        };
        let fit = |path: &'_ Path| {
            let text = path.to_str();
            let text = text.ok_or_else(|| bad(path, "它不是 UTF-8", "it is not UTF-8"))?;
            if !path.is_absolute() {
                let (zh, en) = ("它不以 `/` 开头", "it does not start with `/`");
                return Err(bad(path, zh, en));
            }
            if text.chars().any(char::is_control) {
                let (zh, en) = ("其中有控制字符", "it holds a control character");
                return Err(bad(path, zh, en));
            }
            Ok(text.to_owned())
        };
        if line.program.file_name().is_none_or(|name| name != "nod") {
            let (zh, en) = ("程序的名字不是 `nod`", "its last part is not `nod`");
            return Err(bad(line.program, zh, en));
        }
        Ok(Self {
            command: text::command(
                &fit(line.program)?,
                &fit(line.file)?,
                line.socket.map(fit).transpose()?.as_deref(),
            ),
            ask_within: request_timeout + GRACE,
        })
    }

    pub fn command(&self) -> &str {
        &self.command
    }

    /// Whether `command` starts the same program, however it goes on.
    pub fn starts_as(&self, command: &str) -> bool {
        text::program(command).is_some_and(|is| text::program(&self.command) == Some(is))
    }

    /// The same hooks for another `request_timeout`.
    #[must_use]
    pub fn waiting(&self, request_timeout: Duration) -> Self {
        Self {
            command: self.command.clone(),
            ask_within: request_timeout + GRACE,
        }
    }
}

/// Whether Claude Code asks at all, as far as these settings tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskMode {
    /// Every permission comes to the hook.
    Asks,
    /// Nothing is set; interactive sessions then let a classifier decide.
    Unset,
    /// This mode keeps permissions from the hook.
    Mode(String),
    /// `disableAllHooks` is on.
    HooksOff,
}

fn io(file: &Path, doing: &'static str, source: io::Error) -> HooksError {
    HooksError::Io {
        file: file.to_owned(),
        doing,
        source,
    }
}

/// The settings file as it will be.
#[derive(Debug, Clone)]
pub struct SettingsDraft {
    file: PathBuf,
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
}

impl SettingsDraft {
    pub fn open(file: &Path) -> Result<Self, HooksError> {
        let before = files::read(file).map_err(|source| io(file, "read", source))?;
        Ok(Self {
            file: file.to_owned(),
            after: before.clone(),
            before,
        })
    }

    /// The settings of `file`, which hold `text`.
    pub fn of(file: &Path, text: &[u8]) -> Self {
        Self {
            file: file.to_owned(),
            before: Some(text.to_vec()),
            after: Some(text.to_vec()),
        }
    }

    /// Adds nod's entries or brings them up to date.
    pub fn install(&mut self, hooks: &Hooks) -> Result<(), HooksError> {
        self.edit(|old| text::installed(old, hooks))
    }

    /// Takes every entry of nod's out, whichever nod it starts.
    pub fn remove(&mut self) -> Result<(), HooksError> {
        self.edit(text::removed)
    }

    /// Has Claude Code ask for permission by default; `None` takes the setting
    /// out.
    pub fn set_mode(&mut self, mode: Option<&str>) -> Result<(), HooksError> {
        self.edit(|old| text::with_mode(old, mode))
    }

    pub fn asking(&self) -> Result<AskMode, HooksError> {
        text::asking(self.after.as_deref()).map_err(|refused| self.untouchable(refused))
    }

    /// What in this file keeps hooks from being called.
    pub fn obstacles(&self) -> Result<Obstacles, HooksError> {
        obstacles::of(self.after.as_deref()).map_err(|refused| self.untouchable(refused))
    }

    /// Commands of nod's entries, whichever nod they start.
    pub fn own_commands(&self) -> Result<Vec<String>, HooksError> {
        text::commands(self.after.as_deref(), text::is_ours)
            .map_err(|refused| self.untouchable(refused))
    }

    /// Commands of hooks that are not nod's.
    pub fn foreign_commands(&self) -> Result<Vec<String>, HooksError> {
        text::commands(self.after.as_deref(), |command| !text::is_ours(command))
            .map_err(|refused| self.untouchable(refused))
    }

    pub fn file(&self) -> &Path {
        &self.file
    }

    pub fn before(&self) -> Option<&[u8]> {
        self.before.as_deref()
    }

    pub fn after(&self) -> Option<&[u8]> {
        self.after.as_deref()
    }

    pub fn is_changed(&self) -> bool {
        self.before != self.after
    }

    /// What [`Self::save`] would change, in the form `diff -u` prints.
    pub fn diff(&self) -> String {
        let text = |bytes: &Option<Vec<u8>>| {
            String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned()
        };
        let (old, new) = (text(&self.before), text(&self.after));
        let name = self.file.display().to_string();
        similar::TextDiff::from_lines(&old, &new)
            .unified_diff()
            .context_radius(3)
            .header(&name, &name)
            .to_string()
    }

    /// Writes the change, through a link if the file is one.
    pub fn save(&self) -> Result<(), HooksError> {
        let Some(after) = &self.after else {
            return Ok(());
        };
        self.check_unchanged()?;
        if !self.is_changed() {
            return Ok(());
        }
        files::replace(&self.file, after, 0o644).map_err(|source| io(&self.file, "written", source))
    }

    /// Refuses when the file is no longer the one that was opened.
    pub fn check_unchanged(&self) -> Result<(), HooksError> {
        let now = files::read(&self.file).map_err(|source| io(&self.file, "read", source))?;
        if now == self.before {
            Ok(())
        } else {
            Err(HooksError::Changed {
                file: self.file.clone(),
            })
        }
    }

    fn edit(
        &mut self,
        change: impl FnOnce(Option<&[u8]>) -> Result<Option<Vec<u8>>, Untouchable>,
    ) -> Result<(), HooksError> {
        let new = change(self.after.as_deref()).map_err(|refused| self.untouchable(refused))?;
        if let Some(new) = new {
            self.after = Some(new);
        }
        Ok(())
    }

    fn untouchable(&self, why: Untouchable) -> HooksError {
        HooksError::Untouchable {
            file: self.file.clone(),
            why,
        }
    }
}
