//! What is wrong with settings, in one sentence each. Never a secret's content.

use std::path::PathBuf;

use super::{BadValue, BrokenFile, setting};

/// One setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingProblem {
    #[error("`{name}` is {seen}{because}; accepted: {accepts}")]
    Wrong {
        name: &'static str,
        seen: BadValue,
        because: String,
        accepts: &'static str,
    },
    #[error("`{name}` is not set; accepted: {accepts}")]
    Missing {
        name: &'static str,
        accepts: &'static str,
    },
    #[error("the settings file {0}")]
    BrokenFile(BrokenFile),
    #[error("other users can read `{}`, which holds the app's secret: `chmod 600` it", .0.display())]
    Exposed(PathBuf),
    #[error("the pass `{}` can't be used: {why}", file.display())]
    Pass { file: PathBuf, why: String },
    #[error("other users can read `{}`, which holds this machine's key: `chmod 600` it", .0.display())]
    ExposedPass(PathBuf),
    #[error(
        "this machine has the pass of a team, `{}`, and an app's secret or a webhook beside it: take `FEISHU_APP_SECRET` and `FEISHU_SEND_MODE` out of its settings, or remove the pass",
        .0.display()
    )]
    SecretBesidePass(PathBuf),
    #[error("no home directory: set `HOME`, or `NOD_STATE_DIR`")]
    NoHome,
}

impl SettingProblem {
    pub(super) fn missing(name: &'static str) -> Self {
        let accepts = setting(name).accepts;
        Self::Missing { name, accepts }
    }
}

/// All that is wrong, one line each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines(.0))]
pub struct Problems(pub Vec<SettingProblem>);

impl From<SettingProblem> for Problems {
    fn from(problem: SettingProblem) -> Self {
        Self(vec![problem])
    }
}

impl Problems {
    /// Whether this setting has a value that can't be used.
    pub(crate) fn name(&self, wanted: &str) -> bool {
        let is_it = |one: &SettingProblem| matches!(one, SettingProblem::Wrong { name, .. } if *name == wanted);
        self.0.iter().any(is_it)
    }
}

fn lines(problems: &[SettingProblem]) -> String {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
