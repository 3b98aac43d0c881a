//! `nod service`: has systemd or launchd keep the daemon running for this
//! user. Installing twice changes nothing; without either it says what to do
//! instead.

mod manager;
mod unit;

use std::path::Path;

use super::wording::Words;
use super::{CommandResult, Failure, Quit, output};
use crate::config::{Config, Paths, Problems, SETTINGS, SettingOrigin, Sources};

pub(super) use manager::{ManagerKind, ServiceError, ServiceManager, ServicePlaces};
pub(super) use unit::{Sandbox, Start, log_file};

/// Where the daemon must look for the same things as the person's shell.
/// Proxies are not among them: they may hold a password, and belong into the
/// settings file.
const CARRIED: [&str; 7] = [
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "NOD_STATE_DIR",
    "PERMISSION_SOCKET_PATH",
    "CLAUDE_CONFIG_DIR",
    "NOD_LANG",
    "NOD_LOG",
];

/// Without these the daemon cannot start.
const VITAL: [&str; 3] = ["FEISHU_APP_ID", "FEISHU_APP_SECRET", "FEISHU_WEBHOOK_URL"];

#[derive(clap::Args)]
pub(super) struct ServiceArguments {
    #[command(subcommand)]
    what: ServiceCommand,
}

#[derive(clap::Subcommand)]
enum ServiceCommand {
    /// Write the definition, start the daemon, and start it at every login
    Install {
        /// Show the definition and write nothing
        #[arg(long)]
        print: bool,
        /// How much the daemon may do
        #[arg(long, value_enum, value_name = "LEVEL", default_value_t)]
        sandbox: Sandbox,
    },
    /// Stop the daemon and remove the definition
    Uninstall,
    /// Start the daemon anew, as after an update; waiting hooks come back
    Restart,
    /// Say whether the service runs; exit code 3 when it does not
    Status,
    /// Show what the daemon said
    Logs {
        /// Wait for more
        #[arg(short, long)]
        follow: bool,
        /// How many lines
        #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 100)]
        lines: u32,
    },
}

impl ServiceArguments {
    /// Whether every setting is looked at.
    pub(super) const fn reads_settings(&self) -> bool {
        matches!(self.what, ServiceCommand::Install { print: false, .. })
    }
}

pub(super) fn run(arguments: &ServiceArguments, all: &Sources) -> CommandResult {
    // What a file says that was named for this run is nothing to keep.
    let sources = all.lasting();
    let words = Words(sources.lang());
    let unusable = |why: Problems| Failure::settings(words, &sources, &why);
    let paths = Paths::load(&sources).map_err(unusable)?;
    let say = |error: ServiceError| failure(words, &error);
    let places = places(&sources, &paths.state_dir).ok_or_else(|| say(ServiceError::NoHome))?;
    if let ServiceCommand::Install {
        print: true,
        sandbox,
    } = arguments.what
    {
        let start = start(&sources, &paths, sandbox).map_err(say)?;
        output::text(
            &ServiceManager::kind_here()
                .definition(&start)
                .map_err(say)?,
        );
        return Ok(());
    }
    let manager = match ServiceManager::find() {
        Ok(manager) => manager,
        Err(why @ ServiceError::NoManager { .. }) => {
            let installed = ServiceManager::kind_here().is_installed(&places);
            return unmanaged(&arguments.what, installed, &why, words);
        }
        Err(why) => return Err(say(why)),
    };
    match arguments.what {
        ServiceCommand::Install { sandbox, .. } => {
            let config = Config::load(&sources).map_err(unusable)?;
            config.way().map_err(|why| {
                Failure::settings(words, &sources, &why).hinted(words.credentials_hint())
            })?;
            let start = start(&sources, &paths, sandbox).map_err(say)?;
            let own = sources.own_file().unwrap_or_default();
            let hint = words.service_unseen_hint(&own.display().to_string());
            let unseen = unseen(all, &start);
            if unseen.iter().any(|name| VITAL.contains(name)) {
                return Err(Failure::new(words.service_unseen(&unseen.join(", "))).hinted(hint));
            }
            let installed = manager.install(&start, &places).map_err(say)?;
            output::say(&words.service_installed(&installed.file.display().to_string()));
            if !unseen.is_empty() {
                output::hint(words, &words.service_unseen(&unseen.join(", ")));
                output::hint(words, &hint);
            }
            if let Some(hint) = words.service_linger(manager.kind) {
                output::hint(words, hint);
            }
            Ok(())
        }
        ServiceCommand::Uninstall => {
            let was_there = manager.uninstall(&places).map_err(say)?;
            output::say(words.service_removed(was_there));
            Ok(())
        }
        ServiceCommand::Restart | ServiceCommand::Logs { .. }
            if !manager.kind.is_installed(&places) =>
        {
            Err(absent(words, Quit::Failed))
        }
        ServiceCommand::Restart => {
            manager.restart().map_err(say)?;
            output::say(words.service_restarted());
            Ok(())
        }
        ServiceCommand::Status => {
            if !manager.kind.is_installed(&places) {
                return Err(absent(words, Quit::NotRunning));
            }
            let status = manager.status().map_err(say)?;
            if !status.runs {
                return Err(Failure::quits(
                    Quit::NotRunning,
                    words.service_not_running(&status.state),
                )
                .hinted(words.service_logs_hint()));
            }
            output::say(&words.service_runs(status.pid, status.says.as_deref()));
            Ok(())
        }
        ServiceCommand::Logs { follow, lines } => manager.logs(&places, follow, lines).map_err(say),
    }
}

/// What is true of each command where no manager can be reached.
fn unmanaged(
    what: &ServiceCommand,
    installed: bool,
    why: &ServiceError,
    words: Words,
) -> CommandResult {
    let (quit, hint) = match what {
        ServiceCommand::Install { .. } => (Quit::Failed, words.service_instead()),
        ServiceCommand::Status => (Quit::NotRunning, words.service_ask_daemon()),
        ServiceCommand::Uninstall if !installed => {
            output::say(words.service_removed(false));
            return Ok(());
        }
        ServiceCommand::Restart if !installed => (Quit::Failed, words.service_own_restart()),
        ServiceCommand::Logs { .. } if !installed => (Quit::Failed, words.service_own_log()),
        ServiceCommand::Uninstall | ServiceCommand::Restart | ServiceCommand::Logs { .. } => {
            (Quit::Failed, words.service_elsewhere())
        }
    };
    Err(Failure::quits(quit, words.service_error(why)).hinted(hint))
}

fn absent(words: Words, quit: Quit) -> Failure {
    Failure::quits(quit, words.service_removed(false)).hinted(words.service_install_hint())
}

/// Settings that count here and not for a daemon the manager starts: it sees
/// neither this shell's environment nor a file named for this run.
pub(super) fn unseen(sources: &Sources, start: &Start) -> Vec<&'static str> {
    let own = sources.own_file();
    let counts = |origin: &SettingOrigin, name: &str| match origin {
        SettingOrigin::Environment => start.environment.iter().any(|(carried, _)| carried == name),
        SettingOrigin::File(path) => Some(path) == own.as_ref(),
    };
    let names = SETTINGS.iter().map(|setting| setting.name);
    names
        .filter(|name| {
            let found = sources.get(name);
            found.is_some_and(|(_, origin)| !counts(origin, name))
        })
        .collect()
}

/// Where the definition goes and the log lies.
pub(super) fn places(sources: &Sources, state_dir: &Path) -> Option<ServicePlaces> {
    let own_file = sources.own_file()?;
    Some(ServicePlaces {
        config_home: own_file.parent()?.parent()?.to_owned(),
        home: sources.home.clone()?,
        state_dir: state_dir.to_owned(),
    })
}

/// What prints the daemon's log, if an installed service keeps one elsewhere.
pub(super) fn journal(places: &ServicePlaces) -> Option<std::process::Command> {
    let manager = ServiceManager::find().ok()?;
    let is_ours = manager.kind.is_installed(places) && manager.kind == ManagerKind::Systemd;
    is_ours.then(manager::journal)
}

/// How this very program is started as a daemon.
pub(super) fn start(
    sources: &Sources,
    paths: &Paths,
    sandbox: Sandbox,
) -> Result<Start, ServiceError> {
    let program = std::env::current_exe().map_err(manager::unable("find nod itself"))?;
    let mut names = CARRIED.to_vec();
    if sandbox == Sandbox::Sessions {
        names.push("PATH");
    }
    let environment = names
        .into_iter()
        .filter_map(|name| match sources.get(name)? {
            (value, SettingOrigin::Environment) => Some((name.to_owned(), value.to_owned())),
            _ => None,
        })
        .collect();
    let sockets = [Some(&paths.sockets.own), paths.sockets.old_clients.as_ref()];
    Ok(Start {
        program,
        state_dir: paths.state_dir.clone(),
        socket_dirs: sockets
            .into_iter()
            .flatten()
            .filter_map(|path| path.parent())
            .filter(|dir| !dir.starts_with(&paths.state_dir))
            .filter(|dir| dir.is_dir())
            .map(ToOwned::to_owned)
            .collect(),
        environment,
        sandbox,
    })
}

fn failure(words: Words, error: &ServiceError) -> Failure {
    let hint = match error {
        ServiceError::Refused { .. } => Some(words.service_logs_hint().to_owned()),
        _ => None,
    };
    Failure {
        hint,
        ..Failure::new(words.service_error(error))
    }
}
