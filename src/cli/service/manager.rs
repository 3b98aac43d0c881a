//! Speaks to systemd or launchd by their own commands.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use super::unit::{self, LABEL, Start, UNIT, UnfitForUnit};
use crate::files;
use crate::text::{Text, system};

#[derive(Debug, thiserror::Error)]
pub(crate) enum ServiceError {
    /// The person has to start the daemon some other way.
    #[error("no service manager can be reached: {}", why.en)]
    NoManager { why: Text },
    #[error("no home directory: set `HOME`")]
    NoHome,
    #[error(transparent)]
    Unfit(#[from] UnfitForUnit),
    /// The manager did not do what it was told.
    #[error("`{command}` failed: {words}")]
    Refused { command: String, words: String },
    #[error("could not {doing}: {source}")]
    Io {
        doing: &'static str,
        source: io::Error,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ManagerKind {
    Systemd,
    Launchd,
}

/// Where definitions go and logs lie.
#[derive(Debug, Clone)]
pub(crate) struct ServicePlaces {
    pub(crate) config_home: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) state_dir: PathBuf,
}

pub(crate) struct Installed {
    pub(crate) file: PathBuf,
    /// Directories that were missing.
    pub(crate) made: Vec<PathBuf>,
}

pub(crate) struct ServiceStatus {
    pub(crate) runs: bool,
    /// In the manager's own words: `activating/auto-restart`, `exited`.
    pub(crate) state: String,
    pub(crate) pid: Option<u32>,
    /// What the daemon said of itself, where the manager passes it on.
    pub(crate) says: Option<String>,
}

/// This user's service manager.
#[derive(Debug)]
pub(crate) struct ServiceManager {
    pub(crate) kind: ManagerKind,
    /// The command and what always comes first.
    command: Vec<OsString>,
}

impl ManagerKind {
    pub(crate) fn definition(self, start: &Start) -> Result<String, ServiceError> {
        Ok(match self {
            Self::Systemd => unit::systemd(start)?,
            Self::Launchd => unit::launchd(start)?,
        })
    }

    pub(crate) fn is_installed(self, places: &ServicePlaces) -> bool {
        self.file(places).exists()
    }

    pub(crate) fn file(self, places: &ServicePlaces) -> PathBuf {
        match self {
            Self::Systemd => places.config_home.join("systemd/user").join(UNIT),
            Self::Launchd => places
                .home
                .join("Library/LaunchAgents")
                .join(format!("{LABEL}.plist")),
        }
    }
}

impl ServiceManager {
    pub(crate) fn kind_here() -> ManagerKind {
        if cfg!(target_os = "macos") {
            ManagerKind::Launchd
        } else {
            ManagerKind::Systemd
        }
    }

    /// The manager of this session, if it answers.
    pub(crate) fn find() -> Result<Self, ServiceError> {
        let kind = Self::kind_here();
        let command: &[&str] = match kind {
            ManagerKind::Systemd => &["systemctl", "--user"],
            ManagerKind::Launchd => &["launchctl"],
        };
        let command = command.iter().map(OsString::from).collect();
        let manager = Self { kind, command };
        manager.answers().map(|()| manager)
    }

    fn answers(&self) -> Result<(), ServiceError> {
        let domain = domain();
        let probe: &[&str] = match self.kind {
            ManagerKind::Systemd => &["show-environment"],
            ManagerKind::Launchd => &["print", &domain],
        };
        match self.call(probe) {
            Ok(_) => Ok(()),
            Err(ServiceError::Refused { words, .. }) => Err(ServiceError::NoManager {
                why: Text::made(words.clone(), words),
            }),
            Err(ServiceError::Io { source, .. }) => Err(ServiceError::NoManager {
                why: system::program(&self.command[0].to_string_lossy(), &source),
            }),
            Err(other) => Err(other),
        }
    }

    /// Writes the definition, has the daemon started now and at every login.
    /// A daemon that runs under the same definition is left running.
    pub(crate) fn install(
        &self,
        start: &Start,
        places: &ServicePlaces,
    ) -> Result<Installed, ServiceError> {
        let text = self.kind.definition(start)?;
        let file = self.kind.file(places);
        let mut made = files::make_dirs(&start.state_dir, 0o700)
            .map_err(unable("make the state directory"))?;
        if let Some(dir) = file.parent() {
            made.extend(
                files::make_dirs(dir, 0o755).map_err(unable("make the service directory"))?,
            );
        }
        let known = files::read(&file).map_err(unable("read the service definition"))?;
        let same = known.as_deref() == Some(text.as_bytes());
        if !same {
            files::replace(&file, text.as_bytes(), 0o644)
                .map_err(unable("write the service definition"))?;
        }
        let running = self.status().is_ok_and(|status| status.runs);
        match self.kind {
            ManagerKind::Systemd => {
                self.call(&["daemon-reload"])?;
                self.call(&["enable", UNIT])?;
                if !same || !running {
                    self.call(&["restart", UNIT])?;
                }
            }
            ManagerKind::Launchd if same && running => {}
            ManagerKind::Launchd => {
                let path = file.to_string_lossy();
                // Not loaded is as good as unloaded.
                let _ = self.call(&["bootout", &target()]);
                self.call(&["bootstrap", &domain(), &path])?;
            }
        }
        Ok(Installed { file, made })
    }

    /// Stops the daemon and removes the definition; says whether there was one.
    pub(crate) fn uninstall(&self, places: &ServicePlaces) -> Result<bool, ServiceError> {
        let file = self.kind.file(places);
        let was_there = file.exists();
        let stopped = match self.kind {
            ManagerKind::Systemd if was_there => self.call(&["disable", "--now", UNIT]),
            ManagerKind::Systemd => self.call(&["stop", UNIT]),
            ManagerKind::Launchd => self.call(&["bootout", &target()]),
        };
        if was_there && self.kind == ManagerKind::Systemd {
            stopped?;
        }
        files::remove(&file)
            .or_else(|error| match error.kind() {
                io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            })
            .map_err(unable("remove the service definition"))?;
        if self.kind == ManagerKind::Systemd && was_there {
            self.call(&["daemon-reload"])?;
        }
        Ok(was_there)
    }

    /// Starts the daemon anew from the program that is on disk now.
    pub(crate) fn restart(&self) -> Result<(), ServiceError> {
        match self.kind {
            ManagerKind::Systemd => self.call(&["restart", UNIT])?,
            ManagerKind::Launchd => self.call(&["kickstart", "-k", &target()])?,
        };
        Ok(())
    }

    pub(crate) fn status(&self) -> Result<ServiceStatus, ServiceError> {
        match self.kind {
            ManagerKind::Systemd => {
                let shown = "--property=ActiveState,SubState,MainPID,StatusText";
                let told = lines(&self.call(&["show", UNIT, shown])?);
                let value = |name| value(&told, name);
                let active = value("ActiveState=").unwrap_or("unknown");
                Ok(ServiceStatus {
                    runs: active == "active",
                    state: match value("SubState=") {
                        Some(sub) => format!("{active}/{sub}"),
                        None => active.to_owned(),
                    },
                    pid: value("MainPID=").and_then(|pid| pid.parse().ok()),
                    says: value("StatusText=").map(str::to_owned),
                })
            }
            ManagerKind::Launchd => {
                let told = match self.call(&["print", &target()]) {
                    Ok(output) => lines(&output),
                    Err(ServiceError::Refused { .. }) => Vec::new(),
                    Err(other) => return Err(other),
                };
                let state = value(&told, "state = ").unwrap_or("not loaded");
                Ok(ServiceStatus {
                    runs: state == "running",
                    state: match value(&told, "last exit code = ") {
                        Some(code) if state != "running" => {
                            format!("{state}, last exit code {code}")
                        }
                        _ => state.to_owned(),
                    },
                    pid: value(&told, "pid = ").and_then(|pid| pid.parse().ok()),
                    says: None,
                })
            }
        }
    }

    /// Hands the terminal to whoever shows logs.
    pub(crate) fn logs(
        &self,
        places: &ServicePlaces,
        follow: bool,
        lines: u32,
    ) -> Result<(), ServiceError> {
        let lines = lines.to_string();
        let mut command = match self.kind {
            ManagerKind::Systemd => {
                let mut command = Command::new("journalctl");
                command.args(["--user", "--unit", UNIT, "--lines", &lines]);
                command
            }
            ManagerKind::Launchd => {
                let mut command = Command::new("tail");
                command.args(["-n", &lines]);
                command
            }
        };
        if follow {
            command.arg("-f");
        }
        if self.kind == ManagerKind::Launchd {
            command.arg(unit::log_file(&places.state_dir));
        }
        let name = command.get_program().to_string_lossy().into_owned();
        let status = command.status().map_err(unable("show the logs"))?;
        if status.success() {
            Ok(())
        } else {
            Err(ServiceError::Refused {
                command: name,
                words: status.to_string(),
            })
        }
    }

    fn call(&self, arguments: &[&str]) -> Result<Output, ServiceError> {
        let (program, first) = self.command.split_first().expect("a command");
        let output = Command::new(program)
            .args(first)
            .args(arguments)
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .output()
            .map_err(unable("start the service manager's command"))?;
        if output.status.success() {
            return Ok(output);
        }
        let words: String = String::from_utf8_lossy(&output.stderr)
            .lines()
            .next()
            .unwrap_or_default()
            .chars()
            .filter(|c| !c.is_control())
            .take(300)
            .collect();
        Err(ServiceError::Refused {
            command: format!("{} {}", program.to_string_lossy(), arguments.join(" ")),
            words: if words.is_empty() {
                output.status.to_string()
            } else {
                words
            },
        })
    }
}

/// What could not be done, for a `map_err`.
pub(super) fn unable(doing: &'static str) -> impl FnOnce(io::Error) -> ServiceError {
    move |source| ServiceError::Io { doing, source }
}

fn lines(output: &Output) -> Vec<String> {
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| line.trim().to_owned())
        .collect()
}

/// What stands behind `name` in the first line that begins with it.
fn value<'a>(lines: &'a [String], name: &str) -> Option<&'a str> {
    let mut found = lines.iter().filter_map(|line| line.strip_prefix(name));
    found.next().filter(|value| !value.is_empty())
}

/// launchd's name for this user's session.
/// The daemon's lines as it wrote them.
pub(super) fn journal() -> Command {
    let mut command = Command::new("journalctl");
    command.args(["--user", "--unit", UNIT, "--output", "cat"]);
    command
}

fn domain() -> String {
    format!("gui/{}", rustix::process::getuid().as_raw())
}

fn target() -> String {
    format!("{}/{LABEL}", domain())
}

#[cfg(test)]
mod tests {
    use super::super::unit::Sandbox;
    use super::*;
    use std::fs;

    /// A manager whose command is a script that writes down what it is told
    /// and answers from files.
    struct Fake {
        dir: tempfile::TempDir,
        manager: ServiceManager,
    }

    impl Fake {
        fn new(kind: ManagerKind) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let script = dir.path().join("manager");
            let at = dir.path().display();
            let text = format!(
                "echo \"$*\" >> '{at}/told'\n\
                 case \"$1\" in show|print) cat '{at}/answer' 2>/dev/null || true;; esac\n\
                 if [ -e '{at}/broken' ]; then echo 'Failed to connect to bus' >&2; exit 1; fi\n"
            );
            fs::write(&script, text).unwrap();
            Self {
                manager: ServiceManager {
                    kind,
                    command: vec!["/bin/sh".into(), script.into()],
                },
                dir,
            }
        }

        fn put(&self, name: &str, text: &str) {
            fs::write(self.dir.path().join(name), text).unwrap();
        }

        fn told(&self) -> Vec<String> {
            let file = self.dir.path().join("told");
            let told = fs::read_to_string(&file).unwrap_or_default();
            fs::write(&file, "").unwrap();
            told.lines().map(str::to_owned).collect()
        }

        fn places(&self) -> ServicePlaces {
            let home = self.dir.path().join("home");
            ServicePlaces {
                config_home: home.join(".config"),
                state_dir: home.join("state"),
                home,
            }
        }

        fn start(&self) -> Start {
            Start {
                program: "/opt/nod".into(),
                state_dir: self.places().state_dir,
                socket_dirs: Vec::new(),
                environment: Vec::new(),
                sandbox: Sandbox::Approvals,
            }
        }
    }

    #[test]
    fn systemd_is_told_to_start_the_daemon_now_and_always() {
        let fake = Fake::new(ManagerKind::Systemd);
        let installed = fake.manager.install(&fake.start(), &fake.places()).unwrap();
        let text = fs::read_to_string(&installed.file).unwrap();
        assert_eq!(text, unit::systemd(&fake.start()).unwrap());
        assert!(installed.file.ends_with(".config/systemd/user/nod.service"));
        assert!(installed.made.contains(&fake.places().home));
        let told = fake.told();
        assert_eq!(
            told[1..],
            ["daemon-reload", "enable nod.service", "restart nod.service"]
        );

        fake.put(
            "answer",
            "MainPID=42\nActiveState=active\nSubState=running\nStatusText=connected\n",
        );
        let status = fake.manager.status().unwrap();
        assert!(status.runs && status.state == "active/running");
        assert_eq!(status.pid, Some(42));
        assert_eq!(status.says.as_deref(), Some("connected"));
        fake.told();
        let again = fake.manager.install(&fake.start(), &fake.places()).unwrap();
        assert_eq!(again.made, Vec::<PathBuf>::new());
        assert!(!fake.told().contains(&"restart nod.service".to_owned()));
        let other = Start {
            program: "/usr/bin/nod".into(),
            ..fake.start()
        };
        fake.manager.install(&other, &fake.places()).unwrap();
        assert!(fake.told().contains(&"restart nod.service".to_owned()));

        assert!(fake.manager.kind.is_installed(&fake.places()));
        assert!(fake.manager.uninstall(&fake.places()).unwrap());
        assert_eq!(fake.told(), ["disable --now nod.service", "daemon-reload"]);
        assert!(!fake.manager.kind.is_installed(&fake.places()));
        assert!(!fake.manager.uninstall(&fake.places()).unwrap());
    }

    #[test]
    fn launchd_is_told_to_load_the_agent() {
        let fake = Fake::new(ManagerKind::Launchd);
        let installed = fake.manager.install(&fake.start(), &fake.places()).unwrap();
        let told = fake.told();
        assert_eq!(told[1], format!("bootout {}", target()));
        let path = installed.file.display();
        assert_eq!(told[2], format!("bootstrap {} {path}", domain()));
        fake.put("answer", "x = {\n\tstate = running\n\tpid = 7\n\todd = 1\n");
        let status = fake.manager.status().unwrap();
        assert!(status.runs);
        assert_eq!((status.state.as_str(), status.pid), ("running", Some(7)));
        fake.put(
            "answer",
            "\tstate = not running\n\tlast exit code = 78: EX_CONFIG\n",
        );
        let status = fake.manager.status().unwrap();
        assert!(!status.runs);
        assert_eq!(status.state, "not running, last exit code 78: EX_CONFIG");
        assert!(fake.manager.uninstall(&fake.places()).unwrap());
    }

    #[test]
    fn a_machine_without_a_manager_says_so() {
        let fake = Fake::new(ManagerKind::Systemd);
        assert!(fake.manager.answers().is_ok());
        fake.put("broken", "");
        let why = fake.manager.answers().unwrap_err();
        assert!(
            matches!(&why, ServiceError::NoManager { why } if why.en == "Failed to connect to bus"),
            "{why}"
        );
        let missing = ServiceManager {
            kind: ManagerKind::Systemd,
            command: vec!["/nonexistent/systemctl".into()],
        };
        assert!(matches!(
            missing.answers(),
            Err(ServiceError::NoManager { .. })
        ));
    }

    #[test]
    fn a_refusal_is_told_in_the_managers_words() {
        let fake = Fake::new(ManagerKind::Systemd);
        fake.put("broken", "");
        let why = fake
            .manager
            .install(&fake.start(), &fake.places())
            .map(drop)
            .unwrap_err();
        assert_eq!(
            why.to_string(),
            "`/bin/sh daemon-reload` failed: Failed to connect to bus"
        );
    }
}
