//! `nod status`: asks the running daemon how it is, once or again and again.

pub(super) mod page;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::wording::Words;
use super::{CommandResult, Failure, Quit, StopSignals, output, service};
use crate::claude::hooks_file::{AskMode, SettingsDraft};
use crate::config::{Config, Paths, SettingProblem, Sources};
use crate::daemon::metrics;
use crate::hook::client::{self, NoDecision};
use crate::hook::connect::Unreachable;
use crate::hook::wire::DaemonOrder;
use crate::version::BUILD;

#[derive(clap::Args)]
pub(super) struct StatusArguments {
    /// The whole report as JSON
    #[arg(long)]
    json: bool,
    /// Show it again every second, until Ctrl-C
    #[arg(short, long, conflicts_with_all = ["json", "metrics"])]
    watch: bool,
    /// The figures in Prometheus' text format
    #[arg(long, conflicts_with = "json")]
    metrics: bool,
}

const ANSWER_WITHIN: Duration = Duration::from_secs(2);
const WATCH_EVERY: Duration = Duration::from_secs(1);

pub(super) fn run(arguments: &StatusArguments, sources: &Sources) -> CommandResult {
    let words = Words(sources.lang());
    let paths = Paths::load(sources).map_err(|why| Failure::settings(words, sources, &why))?;
    if arguments.watch {
        return super::runtime(1)?.block_on(watch(paths.sockets.own, words));
    }
    let report = order(sources, &paths.sockets.own, DaemonOrder::Status, words)?;
    if arguments.json {
        output::json(&report);
    } else if arguments.metrics {
        output::text(&metrics::text(&report));
    } else {
        output::say(&page::of(&report, words.0));
        let daemon = report["version"].as_str().unwrap_or("?");
        if daemon != BUILD {
            output::hint(words, &words.other_build(daemon, BUILD));
        }
        if let Some(why) = unasked(sources, words) {
            output::hint(words, &why);
        }
    }
    match report["connection"]["state"].as_str() {
        Some("degraded") => Err(Failure::quits(Quit::Degraded, words.not_connected())),
        _ => Ok(()),
    }
}

/// Why Claude Code, which has nod's hooks, does not ask them.
fn unasked(sources: &Sources, words: Words) -> Option<String> {
    let file = sources.claude_settings()?;
    let draft = SettingsDraft::open(&file).ok()?;
    let has_hooks = draft.own_commands().is_ok_and(|all| !all.is_empty());
    let asking = draft.asking().ok().filter(|_| has_hooks)?;
    match asking {
        AskMode::Asks => None,
        AskMode::HooksOff => Some(words.hooks_off().to_owned()),
        AskMode::Unset => Some(words.mode_unset(&file.display().to_string())),
        AskMode::Mode(mode) => Some(words.mode_silent(&mode)),
    }
}

/// Hands the running daemon an order; its report is how it is afterwards.
pub(super) fn order(
    sources: &Sources,
    socket: &Path,
    order: DaemonOrder,
    words: Words,
) -> Result<Value, Failure> {
    client::order(socket, order, ANSWER_WITHIN).map_err(|why| Failure {
        hint: hint(&why, sources, words),
        ..Failure::new(words.no_daemon(socket, &why))
    })
}

/// What a person can do about a daemon that gave no answer.
pub(super) fn hint(why: &NoDecision, sources: &Sources, words: Words) -> Option<String> {
    match why {
        NoDecision::Unreachable(Unreachable::NoDaemon) => Some(no_daemon_hint(sources, words)),
        // It says itself what it wants.
        NoDecision::Refused { .. } | NoDecision::TooLarge => None,
        _ => Some(words.doctor_hint().to_owned()),
    }
}

/// What brings a daemon up, or what keeps one from starting.
fn no_daemon_hint(sources: &Sources, words: Words) -> String {
    let (config, problems) = Config::read(sources);
    let is_missing = |problem: &SettingProblem| matches!(problem, SettingProblem::Missing { .. });
    let hint = match config.way() {
        _ if !problems.0.is_empty() => words.unusable_setting_hint(),
        Err(why) if why.0.iter().all(is_missing) => words.set_up_hint(),
        Err(_) => words.unusable_setting_hint(),
        Ok(()) => words.start_daemon_hint(service::ServiceManager::find().is_ok()),
    };
    hint.to_owned()
}

/// Goes on over a restart of the daemon; the person ends it.
async fn watch(socket: PathBuf, words: Words) -> CommandResult {
    let mut signals = StopSignals::listen()?;
    let mut turn = tokio::time::interval(WATCH_EVERY);
    loop {
        tokio::select! {
            () = signals.next() => return Ok(()),
            _ = turn.tick() => {
                let page = shown(socket.clone(), words).await;
                output::page(&page);
            }
        }
    }
}

async fn shown(socket: PathBuf, words: Words) -> String {
    let asked = tokio::task::spawn_blocking(move || {
        match client::order(&socket, DaemonOrder::Status, ANSWER_WITHIN) {
            Ok(report) => page::of(&report, words.0),
            Err(why) => words.no_daemon(&socket, &why) + "\n",
        }
    });
    asked.await.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook::wire::error_word::ErrorWord;
    use crate::text::Lang;

    #[test]
    fn a_mode_that_asks_nobody_is_told_to_those_who_have_the_hooks() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("settings.json");
        let sources = Sources::of(&[("CLAUDE_CONFIG_DIR", home.path().to_str().unwrap())]);
        let told = |text: &str| {
            std::fs::write(&file, text).unwrap();
            unasked(&sources, Words(Lang::En))
        };
        let hooks = r#""hooks": {"Stop": [{"hooks": [
            {"type": "command", "command": "\"/opt/nod\" hook --config \"/home/me/nod.env\""}
        ]}]}"#;
        let with =
            |mode: &str| format!(r#"{{{hooks}, "permissions": {{"defaultMode": "{mode}"}}}}"#);
        assert_eq!(told(&with("default")), None);
        assert!(told(&with("auto")).unwrap().contains("mode is `auto`"));
        assert!(told(&format!("{{{hooks}}}")).unwrap().contains("sets no"));
        assert_eq!(
            told("{}"),
            None,
            "without nod's hooks it is nothing of nod's"
        );
    }

    #[test]
    fn only_a_daemon_that_does_not_run_is_to_be_started() {
        let refused = NoDecision::Refused {
            error: ErrorWord::Flood,
            message: String::new(),
        };
        let words = Words(Lang::En);
        for (why, expected) in [
            (Unreachable::NoDaemon.into(), Some(words.set_up_hint())),
            (NoDecision::Hung, Some(words.doctor_hint())),
            (Unreachable::Busy.into(), Some(words.doctor_hint())),
            (refused, None),
        ] {
            let hint = hint(&why, &Sources::of(&[]), words);
            assert_eq!(hint.as_deref(), expected, "{why}");
        }
    }
}
