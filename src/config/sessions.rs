//! The settings of sessions from chat: which projects, which program, and how
//! long they wait.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::{SettingsReader, truth};
use crate::agents::codex::pipe;
use crate::child::environment::inherited;
use crate::claude::launch;
use crate::sessions::command::Projects;

/// Each is looked at once a second.
const MAX_HOMES: usize = 8;

/// What sessions from chat may do and with which program.
#[derive(Debug, Clone)]
pub struct SessionSettings {
    pub projects: Projects,
    pub claude: PathBuf,
    pub codex: PathBuf,
    /// What Claude Code inherits of this process' environment.
    pub environment: Vec<(OsString, OsString)>,
    /// What Codex inherits of it.
    pub codex_environment: Vec<(OsString, OsString)>,
    /// Tools run without asking.
    pub bypass: bool,
    pub tool_timeout: Duration,
    pub question_timeout: Duration,
    pub task_timeout: Duration,
}

impl SettingsReader<'_> {
    pub(super) fn sessions(&mut self) -> SessionSettings {
        let asks = self
            .optional("TOOL_APPROVAL_ENABLED", truth)
            .unwrap_or(true);
        let allowed = self.optional("NOD_ALLOW_BYPASS", truth).unwrap_or(false);
        if !asks && !allowed {
            let because = "`NOD_ALLOW_BYPASS` is not `true`";
            self.wrong("TOOL_APPROVAL_ENABLED", "false", because);
        }
        SessionSettings {
            projects: self.optional("NOD_PROJECTS", projects).unwrap_or_default(),
            claude: self
                .optional("NOD_CLAUDE", program)
                .unwrap_or_else(|| "claude".into()),
            codex: self
                .optional("NOD_CODEX_PROGRAM", program)
                .unwrap_or_else(|| "codex".into()),
            environment: inherited(std::env::vars_os(), launch::INHERITED),
            codex_environment: inherited(std::env::vars_os(), pipe::INHERITED),
            bypass: !asks && allowed,
            tool_timeout: self.seconds("NOD_TOOL_TIMEOUT", 1, 86_400),
            question_timeout: self.seconds("NOD_QUESTION_TIMEOUT", 1, 86_400),
            task_timeout: self.seconds("NOD_TASK_TIMEOUT", 1, 86_400),
        }
    }
}

impl SettingsReader<'_> {
    /// Codex's homes: those that are set, or the one it would take itself.
    pub(super) fn codex_homes(&mut self) -> Vec<PathBuf> {
        if let Some(homes) = self.optional("NOD_CODEX", homes) {
            return homes;
        }
        let own = self
            .sources
            .get("CODEX_HOME")
            .map(|(home, _)| PathBuf::from(home));
        let usual = || Some(self.sources.home.as_ref()?.join(".codex"));
        own.filter(|home| home.is_absolute())
            .or_else(usual)
            .into_iter()
            .collect()
    }
}

fn homes(text: &str) -> Result<Vec<PathBuf>, String> {
    if text == "off" {
        return Ok(Vec::new());
    }
    let homes: Vec<_> = text
        .split(',')
        .map(|one| PathBuf::from(one.trim()))
        .collect();
    match homes.iter().find(|home| !home.is_absolute()) {
        None if homes.len() <= MAX_HOMES => Ok(homes),
        None => Err(format!("more than {MAX_HOMES} homes")),
        Some(home) => Err(format!("`{}` is not an absolute path", home.display())),
    }
}

fn projects(text: &str) -> Result<Projects, String> {
    let projects = Projects::parse(text).map_err(|why| why.to_string())?;
    let gone = projects.all().iter().position(|one| !one.path.is_dir());
    match gone {
        None => Ok(projects),
        Some(at) => Err(format!("the path of entry {} is no directory", at + 1)),
    }
}

fn program(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.is_absolute() || !text.contains('/') {
        Ok(path)
    } else {
        Err("it is a relative path".to_owned())
    }
}
