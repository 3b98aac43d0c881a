//! `nod daemon`: runs in the foreground until it is told to stop, or starts one
//! in the background.

pub(super) mod background;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

use super::wording::{Words, place, whole};
use super::{CommandResult, Failure, Quit, output};
use crate::config::{self, Config, SendMode, SettingProblem, Sources};
use crate::daemon::instance::InstanceError;
use crate::daemon::service_manager::{self, ManagerSocket};
use crate::daemon::{self, DaemonError};
use crate::hook::listen::ListenError;
use crate::hook::paths::OLD_CLIENTS;
use crate::text::system;

/// What may still block after the daemon has stopped in order.
const LAST_WORK: Duration = Duration::from_millis(500);

#[derive(clap::Args)]
pub(super) struct DaemonArguments {
    /// Start it apart from this terminal, with its log in a file
    #[arg(long)]
    background: bool,
    /// Obey the owner or app of `--env-file` where nod's own file names another
    #[arg(long)]
    other_owner: bool,
}

pub(super) fn started(arguments: &DaemonArguments, sources: &Sources) -> CommandResult {
    // Whoever may choose the file would choose who decides.
    if let Some(setting) = sources.obeys_another()
        && !arguments.other_owner
    {
        let words = Words(sources.lang());
        let why = Failure::quits(Quit::BadSettings, words.obeys_another(setting));
        return Err(why.hinted(words.obeys_another_hint()));
    }
    if arguments.background {
        background::run(sources)
    } else {
        run(sources)
    }
}

pub(super) fn run(sources: &Sources) -> CommandResult {
    let words = Words(sources.lang());
    let config = Config::load(sources).map_err(|why| Failure::settings(words, sources, &why))?;
    let log = log_to_stderr(config.log);
    warn_of_unknown(sources);
    warn_of_two_apps(sources, config.send_mode);
    tell_of_old_clients(sources, &config);
    in_foreground(sources, &log, |stop, ready| async move {
        let ended = daemon::run(config, stop, ready).await;
        ended.map_err(|why| failure(words, &why))
    })
}

/// Runs until a signal asks to stop, and tells the service manager.
pub(super) fn in_foreground<F>(
    sources: &Sources,
    log: &output::LogWriter,
    run: impl FnOnce(CancellationToken, Box<dyn FnOnce() + Send>) -> F,
) -> CommandResult
where
    F: Future<Output = CommandResult>,
{
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        let stop = CancellationToken::new();
        let signals = super::StopSignals::listen()?;
        tokio::spawn(stop_on_signal(signals, stop.clone()));
        let manager = manager(sources);
        let _alive = keep_alive(sources, manager.as_ref());
        let stopping = manager.clone();
        let told = stop.clone();
        tokio::spawn(async move {
            told.cancelled().await;
            tell(stopping.as_deref(), ManagerSocket::stopping);
        });
        let ready = move || tell(manager.as_deref(), |manager| manager.ready("ready"));
        run(stop, Box::new(ready)).await
    });
    // A thread that a file system keeps waiting must not keep the daemon.
    runtime.shutdown_timeout(LAST_WORK);
    log.flush();
    outcome
}

/// In one line, and without the values.
pub(super) fn warn_of_unknown(sources: &Sources) {
    let told = config::unknown(sources).into_iter().map(|one| {
        let meant = one.nearest.map(|name| format!(" (did you mean `{name}`?)"));
        format!("`{}`{}", one.name, meant.unwrap_or_default())
    });
    let told = told.collect::<Vec<_>>().join(", ");
    if !told.is_empty() {
        tracing::warn!("ignored, as nod has no such settings: {told}");
    }
}

/// A state directory of its own makes a daemon beside the usual one, which
/// must not take that one's clients.
fn tell_of_old_clients(sources: &Sources, config: &Config) {
    if sources.get("NOD_STATE_DIR").is_some() && config.sockets.private {
        tracing::info!(
            "clients of protocol v1 are not served at `{OLD_CLIENTS}`, because `NOD_STATE_DIR` is set: `PERMISSION_SOCKET_PATH` names a socket for them"
        );
    }
}

/// The same: where they stand, and not what they are.
fn warn_of_two_apps(sources: &Sources, mode: SendMode) {
    if let Some((id, secret)) = config::apart(sources, mode) {
        let (id, secret) = (place(&id, whole), place(&secret, whole));
        tracing::warn!(
            "the app's id is from {} and its secret from {}: are they one app's?",
            id.en,
            secret.en
        );
    }
}

/// One thread: what the daemon does is short and waits for others, and what
/// may block runs on threads of its own. Handing a tap from one thread to the
/// next costs more than answering it.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|why| Failure::told(system::cannot_start(&why)))
}

/// The service manager that started us, if one did.
fn manager(sources: &Sources) -> Option<Arc<ManagerSocket>> {
    let (name, _) = sources.get("NOTIFY_SOCKET")?;
    match ManagerSocket::new(name) {
        Ok(manager) => Some(Arc::new(manager)),
        Err(error) => {
            tracing::warn!(%error, "the service manager can't be told anything");
            None
        }
    }
}

/// Tells the manager's watchdog that the runtime still turns.
fn keep_alive(
    sources: &Sources,
    manager: Option<&Arc<ManagerSocket>>,
) -> Option<AbortOnDropHandle<()>> {
    let value = |name| sources.get(name).map(|(value, _)| value);
    let every = service_manager::alive_every(
        value("WATCHDOG_USEC"),
        value("WATCHDOG_PID"),
        std::process::id(),
    )?;
    let manager = Arc::clone(manager?);
    Some(AbortOnDropHandle::new(tokio::spawn(async move {
        let mut turn = tokio::time::interval(every);
        loop {
            turn.tick().await;
            tell(Some(&manager), ManagerSocket::alive);
        }
    })))
}

/// A manager that can't be told is no reason to stop.
fn tell(manager: Option<&ManagerSocket>, what: impl FnOnce(&ManagerSocket) -> io::Result<()>) {
    if let Some(manager) = manager
        && let Err(error) = what(manager)
    {
        tracing::debug!(%error, "the service manager did not take a message");
    }
}

/// The first signal stops in order, the second at once.
async fn stop_on_signal(mut signals: super::StopSignals, stop: CancellationToken) {
    signals.next().await;
    stop.cancel();
    signals.next().await;
    output::stop_now(Quit::BrokenOff.code().into());
}

pub(super) fn failure(words: Words, why: &DaemonError) -> Failure {
    let (quit, hint) = match why {
        DaemonError::Settings(problems) => {
            let missing =
                |problem: &SettingProblem| matches!(problem, SettingProblem::Missing { .. });
            let hint = problems.0.iter().any(missing);
            (Quit::BadSettings, hint.then(|| words.credentials_hint()))
        }
        DaemonError::Instance(InstanceError::AlreadyRunning { .. })
        | DaemonError::Socket(ListenError::AlreadyRunning { .. }) => {
            (Quit::AlreadyRunning, Some(words.running_hint()))
        }
        DaemonError::Instance(_)
        | DaemonError::Socket(_)
        | DaemonError::Outbound(_)
        | DaemonError::Door(_) => (Quit::BadSettings, None),
        #[cfg(not(feature = "team"))]
        DaemonError::NoTeam => (Quit::BadSettings, None),
        DaemonError::Api(_) | DaemonError::Store(_) => (Quit::Failed, None),
        DaemonError::Fault => {
            let can_serve = super::service::ServiceManager::find().is_ok();
            (Quit::OwnFault, Some(words.start_daemon_hint(can_serve)))
        }
    };
    Failure {
        hint: hint.map(str::to_owned),
        ..Failure::quits(quit, words.daemon_error(why))
    }
}

/// Lines on stderr, where a service manager collects them. Only nod's own:
/// what a library says about a connection may hold its address.
pub(super) fn log_to_stderr(level: Option<tracing::Level>) -> output::LogWriter {
    let level = level.map_or(LevelFilter::OFF, LevelFilter::from_level);
    let own = tracing_subscriber::filter::Targets::new().with_target("nod", level);
    let writer = output::LogWriter::start();
    let lines = fmt::layer()
        .with_writer(writer.clone())
        .with_ansi(false)
        .with_target(false);
    tracing_subscriber::registry()
        .with(lines.with_filter(own))
        .init();
    writer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Lang;

    #[test]
    fn a_fault_ends_with_a_code_that_a_service_manager_restarts() {
        for (lang, says) in [(Lang::Zh, "整个守护进程已结束"), (Lang::En, "as a whole")] {
            let failure = failure(Words(lang), &DaemonError::Fault);
            assert_eq!(failure.quit, Quit::OwnFault);
            assert_ne!(failure.quit, Quit::BadSettings, "which is not started anew");
            let why = failure.why.get(lang);
            assert!(why.contains(says), "{why}");
            assert!(failure.hint.is_some());
        }
    }
}
