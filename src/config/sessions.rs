//! The settings of sessions from chat: which projects, which program, and how
//! long they wait.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::Reader;
use crate::sessions::command::Projects;

/// What sessions from chat may do and with which program.
#[derive(Debug, Clone)]
pub struct SessionSettings {
    pub projects: Projects,
    pub claude: PathBuf,
    /// What a child inherits of this process' environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Tools run without asking.
    pub bypass: bool,
    pub tool_timeout: Duration,
    pub question_timeout: Duration,
    pub task_timeout: Duration,
}

impl Reader<'_> {
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
            environment: self.sources.child_environment(),
            bypass: !asks && allowed,
            tool_timeout: self.seconds("NOD_TOOL_TIMEOUT", 1, 86_400),
            question_timeout: self.seconds("NOD_QUESTION_TIMEOUT", 1, 86_400),
            task_timeout: self.seconds("NOD_TASK_TIMEOUT", 1, 86_400),
        }
    }
}

fn truth(text: &str) -> Result<bool, String> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(String::new()),
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
