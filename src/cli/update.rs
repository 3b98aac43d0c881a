//! `nod update`: what is newer, how this nod was installed, and the one
//! command that updates it. Replaces nothing itself: whoever installed nod
//! keeps track of its files.

use std::cmp::Ordering;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use super::wording::Words;
use super::{CommandResult, Failure, output, runtime};
use crate::config::Sources;
use crate::version;

const PACKAGE: &str = "nod-feishu";
/// A registry that takes longer is not reached.
const PATIENCE: Duration = Duration::from_secs(20);
/// A longer answer is no version.
const MAX_ANSWER: usize = 64 * 1024;

/// Who keeps track of this program's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Installer {
    Npm,
    Brew,
    Deb,
    Cargo,
}

impl Installer {
    /// By where the program lies.
    fn of(program: &Path, cargo_home: Option<&Path>) -> Option<Self> {
        let has = |wanted: fn(&str) -> bool| {
            let mut names = program.iter().filter_map(|name| name.to_str());
            names.any(wanted)
        };
        if has(|name| name.starts_with("nod-feishu-")) && has(|name| name == "node_modules") {
            Some(Self::Npm)
        } else if has(|name| name == "Cellar") {
            Some(Self::Brew)
        } else if program == Path::new("/usr/bin/nod") {
            Some(Self::Deb)
        } else if cargo_home.is_some_and(|home| program.starts_with(home.join("bin"))) {
            Some(Self::Cargo)
        } else {
            None
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Brew => "Homebrew",
            Self::Deb => "dpkg",
            Self::Cargo => "cargo",
        }
    }

    /// The program that knows the newest version, and how to ask it.
    const fn question(self) -> &'static [&'static str] {
        match self {
            Self::Npm => &["npm", "view", PACKAGE, "version"],
            Self::Brew => &["brew", "info", "--json=v2", PACKAGE],
            Self::Deb => &["apt-cache", "policy", PACKAGE],
            Self::Cargo => &["cargo", "info", "--quiet", PACKAGE],
        }
    }

    pub(super) const fn command(self) -> &'static str {
        match self {
            Self::Npm => "npm install -g nod-feishu@latest",
            Self::Brew => "brew upgrade nod-feishu",
            Self::Deb => "sudo apt-get install --only-upgrade nod-feishu",
            Self::Cargo => "cargo install nod-feishu --locked",
        }
    }

    /// The version in what that program said.
    fn newest(self, said: &str) -> Option<Number> {
        let after = |mark: &str| {
            let (_, after) = said.split_once(mark)?;
            Number::parse(after.split(['"', '\n', ' ']).next()?)
        };
        match self {
            Self::Npm => Number::parse(said.trim()),
            Self::Brew => after("\"stable\": \"").or_else(|| after("\"stable\":\"")),
            Self::Deb => after("Candidate: "),
            Self::Cargo => said
                .lines()
                .find_map(|line| line.strip_prefix("version: "))
                .and_then(|rest| Number::parse(rest.split(' ').next()?)),
        }
    }
}

/// `0.2.0`; what follows a `-` or `+` is of no order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Number([u32; 3]);

impl Number {
    fn parse(text: &str) -> Option<Self> {
        let plain = text.split(['-', '+']).next()?;
        let mut parts = plain.split('.').map(|part| part.parse().ok());
        let mut next = || parts.next().flatten();
        let number = Self([next()?, next()?, next()?]);
        parts.next().is_none().then_some(number)
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [major, minor, patch] = self.0;
        write!(out, "{major}.{minor}.{patch}")
    }
}

pub(super) fn run() -> CommandResult {
    let sources = Sources::for_person();
    let words = Words(sources.lang());
    let program = std::env::current_exe().map_err(|why| Failure::new(words.nod_not_found(&why)))?;
    let cargo_home = sources.home.as_ref().map(|home| home.join(".cargo"));
    output::say(&words.this_nod(version::LONG, &program.display().to_string()));
    let Some(installer) = Installer::of(&program, cargo_home.as_deref()) else {
        output::say(words.no_installer());
        return Ok(());
    };
    let said = runtime(1)?
        .block_on(ask(installer.question()))
        .map_err(|why| {
            Failure::new(words.not_asked(installer, &why)).hinted(words.update_by_hand(installer))
        })?;
    let own = Number::parse(version::NUMBER).expect("nod's own version");
    let Some(newest) = installer.newest(&said) else {
        return Err(
            Failure::new(words.no_newest(installer)).hinted(words.update_by_hand(installer))
        );
    };
    match newest.cmp(&own) {
        Ordering::Greater => output::say(&words.newer(newest, installer)),
        Ordering::Equal | Ordering::Less => output::say(&words.newest(installer)),
    }
    Ok(())
}

/// What the installer's own program answers. It runs in the root directory:
/// a repository's `.npmrc` or `.cargo` would choose whom it asks.
async fn ask(question: &[&str]) -> Result<String, String> {
    let (program, arguments) = question.split_first().expect("a program");
    let asked = tokio::process::Command::new(program)
        .args(arguments)
        .current_dir("/")
        .env("LC_ALL", "C")
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    match tokio::time::timeout(PATIENCE, asked).await {
        Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
        Ok(Err(why)) => Err(why.to_string()),
        Ok(Ok(output)) if !output.status.success() => Err(output.status.to_string()),
        Ok(Ok(output)) if output.stdout.len() > MAX_ANSWER => Err("too long an answer".to_owned()),
        Ok(Ok(output)) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_installer_is_told_by_where_the_program_lies() {
        let home = Path::new("/home/lin/.cargo");
        for (program, installer) in [
            (
                "/usr/lib/node_modules/nod-feishu/node_modules/nod-feishu-linux-x64/bin/nod",
                Some(Installer::Npm),
            ),
            (
                "/opt/homebrew/Cellar/nod-feishu/0.2.0/bin/nod",
                Some(Installer::Brew),
            ),
            ("/usr/bin/nod", Some(Installer::Deb)),
            ("/home/lin/.cargo/bin/nod", Some(Installer::Cargo)),
            ("/home/lin/src/nod/target/release/nod", None),
            ("/home/lin/nod-feishu-0.2.0/bin/nod", None),
        ] {
            assert_eq!(
                Installer::of(Path::new(program), Some(home)),
                installer,
                "{program}"
            );
        }
    }

    #[test]
    fn the_newest_version_is_read_from_each_answer() {
        let newest = Some(Number([0, 10, 3]));
        for (installer, said) in [
            (Installer::Npm, "0.10.3\n"),
            (
                Installer::Brew,
                r#"{"versions": {"stable": "0.10.3", "head": null}}"#,
            ),
            (
                Installer::Deb,
                "nod-feishu:\n  Installed: 0.2.0\n  Candidate: 0.10.3\n  Version table:\n",
            ),
            (
                Installer::Cargo,
                "nod-feishu #feishu\nversion: 0.10.3 (latest 0.11.0)\n",
            ),
        ] {
            assert_eq!(installer.newest(said), newest, "{said}");
            for nothing in ["", "no", "0.10", "1.2.3.4", "v1.2.3"] {
                assert_eq!(installer.newest(nothing), None, "{nothing}");
            }
        }
        assert!(Number::parse("0.10.0") > Number::parse("0.9.9"));
    }
}
