//! `nod status`: asks the running daemon how it is, once or again and again.

mod page;

use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

use super::wording::Words;
use super::{Failure, Outcome, StopSignals, output, service};
use crate::config::{self, HookConfig, SendMode, Sources};
use crate::daemon::metrics;
use crate::hook::client;
use crate::hook::wire::Order;

#[derive(clap::Args)]
pub(super) struct Arguments {
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
/// Exit code when only a person can bring the connection back.
const DEGRADED: u8 = 3;

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let sources = Sources::for_person();
    let words = Words(sources.lang());
    let config =
        HookConfig::load(&sources).map_err(|why| Failure::settings(words, &sources, &why))?;
    if arguments.watch {
        return super::runtime(1)?.block_on(watch(config, words));
    }
    let report = order(&sources, &config, Order::Status, words)?;
    if arguments.json {
        output::json(&report);
    } else if arguments.metrics {
        output::text(&metrics::text(&report));
    } else {
        output::text(&page::of(&report, words.0));
    }
    match report["connection"]["state"].as_str() {
        Some("degraded") => Err(Failure::new(DEGRADED, words.not_connected())),
        _ => Ok(()),
    }
}

/// Hands the running daemon an order; its report is how it is afterwards.
pub(super) fn order(
    sources: &Sources,
    config: &HookConfig,
    order: Order,
    words: Words,
) -> Result<Value, Failure> {
    let socket = &config.sockets.own;
    client::order(socket, order, ANSWER_WITHIN).map_err(|why| Failure {
        hint: Some(no_daemon_hint(sources, config, words)),
        ..Failure::new(1, words.no_daemon(socket, &why))
    })
}

/// What brings a daemon up: without an app it could not start. A file that
/// can't be read may name one.
pub(super) fn no_daemon_hint(sources: &Sources, config: &HookConfig, words: Words) -> String {
    if config.send_mode == SendMode::App {
        let app = ["FEISHU_APP_ID", "FEISHU_APP_SECRET"];
        let set = app.map(|name| sources.get(name).map(|(value, _)| (name, value)));
        let mut given = set.iter().flatten();
        if let Some((name, _)) = given.find(|(name, value)| !config::accepts(name, value)) {
            return words.unusable_app_hint(name);
        }
        if sources.broken.is_empty() && set.contains(&None) {
            return words.set_up_hint().to_owned();
        }
    }
    let can_serve = service::Manager::find().is_ok();
    words.start_daemon_hint(can_serve).to_owned()
}

/// Goes on over a restart of the daemon; the person ends it.
async fn watch(config: HookConfig, words: Words) -> Outcome {
    let mut signals = StopSignals::listen()?;
    let mut turn = tokio::time::interval(WATCH_EVERY);
    let socket = config.sockets.own;
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
        match client::order(&socket, Order::Status, ANSWER_WITHIN) {
            Ok(report) => page::of(&report, words.0),
            Err(why) => words.no_daemon(&socket, &why) + "\n",
        }
    });
    asked.await.unwrap_or_default()
}
