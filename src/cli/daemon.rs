//! `nod daemon`: runs in the foreground until it is told to stop.

use std::io;
use std::sync::Arc;

use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

use super::panics::OWN_FAULT;
use super::wording::{Words, place, whole};
use super::{BAD_SETTINGS, Failure, Outcome, output};
use crate::config::{self, Config, Problem, SendMode, Sources};
use crate::daemon::instance::InstanceError;
use crate::daemon::notify::{self, Manager};
use crate::daemon::{self, DaemonError};
use crate::hook::listen::ListenError;

/// What sysexits.h calls a temporary failure: somebody else runs already.
const ALREADY_RUNNING: u8 = 75;

pub(super) fn run() -> Outcome {
    let sources = Sources::for_person();
    let words = Words(sources.lang());
    let config = Config::load(&sources).map_err(|why| Failure::settings(words, &sources, &why))?;
    let log = log_to_stderr(config.log);
    warn_of_unknown(&sources);
    warn_of_mixed(&sources, config.send_mode);
    if let Some(file) = &sources.skipped {
        tracing::warn!("no setting counts that stands in {file}");
    }
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        let stop = CancellationToken::new();
        let signals = super::StopSignals::listen()?;
        tokio::spawn(stop_on_signal(signals, stop.clone()));
        let manager = manager(&sources);
        let _alive = keep_alive(&sources, manager.as_ref());
        let stopping = manager.clone();
        let told = stop.clone();
        tokio::spawn(async move {
            told.cancelled().await;
            tell(stopping.as_deref(), Manager::stopping);
        });
        let ready = || tell(manager.as_deref(), |manager| manager.ready("ready"));
        daemon::run(config, stop, ready)
            .await
            .map_err(|why| failure(words, &why))
    });
    log.flush();
    outcome
}

/// In one line, and without the values.
fn warn_of_unknown(sources: &Sources) {
    let told = config::unknown(sources).into_iter().map(|one| {
        let meant = one.nearest.map(|name| format!(" (did you mean `{name}`?)"));
        format!("`{}`{}", one.name, meant.unwrap_or_default())
    });
    let told = told.collect::<Vec<_>>().join(", ");
    if !told.is_empty() {
        tracing::warn!("ignored, as nod has no such settings: {told}");
    }
}

/// The same: where they stand, and not what they are.
fn warn_of_mixed(sources: &Sources, mode: SendMode) {
    let config::Mixed { app, overridden } = config::mixed(sources, mode);
    if let Some((id, secret)) = app {
        let (id, secret) = (place(&id, whole), place(&secret, whole));
        tracing::warn!(
            "the app's id is from {} and its secret from {}: are they one app's?",
            id.en,
            secret.en
        );
    }
    if let Some((file, names)) = overridden {
        let (file, names) = (file.display(), names.join("`, `"));
        tracing::warn!("`{file}` wins over nod's own settings file: `{names}`");
    }
}

/// One thread: what the daemon does is short and waits for others, and what
/// may block runs on threads of its own. Handing a tap from one thread to the
/// next costs more than answering it.
fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|why| Failure::new(1, format!("cannot start: {why}")))
}

/// The service manager that started us, if one did.
fn manager(sources: &Sources) -> Option<Arc<Manager>> {
    let (name, _) = sources.get("NOTIFY_SOCKET")?;
    match Manager::new(name) {
        Ok(manager) => Some(Arc::new(manager)),
        Err(error) => {
            tracing::warn!(%error, "the service manager can't be told anything");
            None
        }
    }
}

/// Tells the manager's watchdog that the runtime still turns.
fn keep_alive(sources: &Sources, manager: Option<&Arc<Manager>>) -> Option<AbortOnDropHandle<()>> {
    let value = |name| sources.get(name).map(|(value, _)| value);
    let every = notify::alive_every(
        value("WATCHDOG_USEC"),
        value("WATCHDOG_PID"),
        std::process::id(),
    )?;
    let manager = Arc::clone(manager?);
    Some(AbortOnDropHandle::new(tokio::spawn(async move {
        let mut turn = tokio::time::interval(every);
        loop {
            turn.tick().await;
            tell(Some(&manager), Manager::alive);
        }
    })))
}

/// A manager that can't be told is no reason to stop.
fn tell(manager: Option<&Manager>, what: impl FnOnce(&Manager) -> io::Result<()>) {
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
    output::stop_now(130);
}

fn failure(words: Words, why: &DaemonError) -> Failure {
    let (code, hint) = match why {
        DaemonError::Settings(problems) => {
            let missing = |problem: &Problem| matches!(problem, Problem::Missing { .. });
            let hint = problems.0.iter().any(missing);
            (BAD_SETTINGS, hint.then(|| words.credentials_hint()))
        }
        DaemonError::Instance(InstanceError::AlreadyRunning { .. })
        | DaemonError::Socket(ListenError::AlreadyRunning { .. }) => {
            (ALREADY_RUNNING, Some(words.running_hint()))
        }
        DaemonError::Instance(_)
        | DaemonError::Socket(_)
        | DaemonError::Outbound(_)
        | DaemonError::Door(_) => (BAD_SETTINGS, None),
        DaemonError::Api(_) | DaemonError::Store(_) => (1, None),
        DaemonError::Fault => {
            let can_serve = super::service::Manager::find().is_ok();
            (OWN_FAULT, Some(words.start_daemon_hint(can_serve)))
        }
    };
    Failure {
        hint: hint.map(str::to_owned),
        ..Failure::new(code, words.daemon_error(why))
    }
}

/// Lines on stderr, where a service manager collects them. Only nod's own:
/// what a library says about a connection may hold its address.
fn log_to_stderr(level: Option<tracing::Level>) -> output::LogWriter {
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
    use crate::wording::Lang;

    #[test]
    fn a_fault_ends_with_a_code_that_a_service_manager_restarts() {
        for (lang, says) in [(Lang::Zh, "整个守护进程已结束"), (Lang::En, "as a whole")] {
            let failure = failure(Words(lang), &DaemonError::Fault);
            assert_eq!(failure.code, OWN_FAULT);
            assert_ne!(failure.code, BAD_SETTINGS, "which is not started anew");
            let why = failure.why.get(lang);
            assert!(why.contains(says), "{why}");
            assert!(failure.hint.is_some());
        }
    }
}
