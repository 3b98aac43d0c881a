//! How a gateway does: written each few seconds into a file that
//! `nod gateway status` reads, because a gateway has no door to ask at.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::{Gateway, replace};
use crate::bus::line::BusLineState;
use crate::clock;
use crate::feishu::link::Phase;
use crate::files;

/// Where it is kept, in the state directory.
const FILE: &str = "team-status.json";
const EVERY: Duration = Duration::from_secs(5);
/// How often Feishu is asked for the connections.
const COUNT_EVERY: Duration = Duration::from_secs(60);
/// A machine says each minute that it is there.
const HEARD_WITHIN: i64 = 150;

/// What happened since the start.
#[derive(Debug, Default)]
pub(super) struct GatewayCounts {
    pub(super) taps: AtomicU64,
    /// Taps whose machine was not there, or did not answer.
    pub(super) unanswered: AtomicU64,
    pub(super) messages: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) crowded: AtomicU64,
    /// The app's long connections, as Feishu counted last.
    connections: AtomicU64,
    calls: Mutex<BTreeMap<&'static str, u64>>,
}

pub(super) fn add(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}

impl GatewayCounts {
    pub(super) fn call(&self, kind: &'static str) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        *calls.entry(kind).or_default() += 1;
    }
}

fn report(gateway: &Gateway) -> Value {
    let (bus, server, why) = match &*gateway.line.state().borrow() {
        BusLineState::Up { server, .. } => (true, Some(server.clone()), None),
        BusLineState::Dialing => (false, None, None),
        BusLineState::Waiting { why, .. } => (false, None, Some(why.clone())),
    };
    let feishu = matches!(gateway.link.borrow().phase, Phase::Up { .. });
    let counts = &gateway.counts;
    let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let (machines, here) = {
        let roster = gateway.roster();
        let since = gateway.seconds() - HEARD_WITHIN;
        (roster.len(), roster.heard_since(since))
    };
    let (minute, most) = {
        let (now, mut shares) = (gateway.clock.now(), gateway.shares());
        (shares.minute(now), shares.most(now))
    };
    let calls = counts.calls.lock().unwrap_or_else(PoisonError::into_inner);
    json!({
        "at": clock::wall_ms(),
        "version": crate::version::BUILD,
        "gateway": gateway.id,
        "up_ms": gateway.clock.now() - gateway.started,
        "url": gateway.url.to_string(),
        "bus": bus,
        "server": server,
        "cause": why.as_ref().map(|why| why.en.clone()),
        "cause_zh": why.as_ref().map(|why| why.zh.clone()),
        "feishu": feishu,
        "gateways": gateway.shares().gateways(gateway.clock.now()),
        "machines": machines,
        "connected": here,
        "taps": count(&counts.taps),
        "unanswered": count(&counts.unanswered),
        "messages": count(&counts.messages),
        "refused": count(&counts.refused),
        "crowded": count(&counts.crowded),
        "calls": *calls,
        "minute": minute,
        "most": most,
        "connections": match counts.connections.load(Ordering::Relaxed) {
            0 => None,
            open => Some(open),
        },
    })
}

/// Writes until `stop`, and leaves nothing that looks like a gateway that runs.
pub(super) async fn run(gateway: Arc<Gateway>, stop: CancellationToken) {
    let file = gateway.roster_file.with_file_name(FILE);
    let (mut bus, mut link) = (gateway.line.state(), gateway.link.clone());
    loop {
        let text = report(&gateway).to_string();
        if let Err(why) = replace(file.clone(), text).await {
            warn!("how this gateway does was not written: {why}");
        }
        let goes_on = tokio::select! {
            () = stop.cancelled() => false,
            () = tokio::time::sleep(EVERY) => true,
            changed = bus.changed() => changed.is_ok(),
            changed = link.changed() => changed.is_ok(),
        };
        if !goes_on {
            break;
        }
    }
    let removed = tokio::task::spawn_blocking(move || files::remove(&file));
    if let Ok(Err(why)) = removed.await {
        warn!("how this gateway did was not taken away: {why}");
    }
}

/// Asks Feishu now and then how many long connections the app has open.
pub(super) async fn count_connections(gateway: Arc<Gateway>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            open = gateway.messages.online_connections() => {
                let open = open.ok().flatten().unwrap_or_default();
                gateway.counts.connections.store(open, Ordering::Relaxed);
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(COUNT_EVERY) => {}
        }
    }
}

/// What the gateway of this state directory wrote last, if it was just now.
pub fn last(state_dir: &Path) -> Option<Value> {
    let bytes = files::read(&state_dir.join(FILE)).ok()??;
    let report: Value = serde_json::from_slice(&bytes).ok()?;
    let age = clock::wall_ms().saturating_sub(report["at"].as_i64()?);
    // One that comes from the future was written by another clock.
    (0..4 * clock::millis(EVERY))
        .contains(&age)
        .then_some(report)
}

/// The same in Prometheus' text format.
pub fn metrics(report: &Value) -> String {
    use std::fmt::Write as _;
    let mut page = String::new();
    for (name, kind, help) in [
        ("bus", "gauge", "Whether the bus is connected."),
        ("feishu", "gauge", "Whether Feishu's long connection is up."),
        (
            "gateways",
            "gauge",
            "Gateways that share the app's limits, this one included.",
        ),
        (
            "connections",
            "gauge",
            "Long connections of the app, as Feishu counts, of 50.",
        ),
        ("machines", "gauge", "Machines this gateway has heard of."),
        ("connected", "gauge", "Machines heard in the last minutes."),
        ("taps", "counter", "Taps taken to machines."),
        ("unanswered", "counter", "Taps that no machine answered."),
        ("messages", "counter", "Chat messages that came in."),
        (
            "refused",
            "counter",
            "Calls, passes and taps that were refused.",
        ),
        (
            "crowded",
            "counter",
            "Calls put off to keep Feishu's limits.",
        ),
    ] {
        let value = match &report[name] {
            Value::Bool(is) => u64::from(*is),
            value => value.as_u64().unwrap_or_default(),
        };
        let total = if kind == "counter" { "_total" } else { "" };
        let name = format!("nod_gateway_{name}{total}");
        let _ = writeln!(
            page,
            "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}"
        );
    }
    let name = "nod_gateway_calls_total";
    let _ = writeln!(
        page,
        "# HELP {name} Calls made for machines.\n# TYPE {name} counter"
    );
    for (kind, count) in report["calls"].as_object().into_iter().flatten() {
        let plain = kind.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        if plain {
            let _ = writeln!(page, "{name}{{kind=\"{kind}\"}} {count}");
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_a_page_that_a_scraper_reads() {
        let page = metrics(&json!({
            "bus": true, "taps": 7, "calls": {"send": 3, "e\"vil": 1},
        }));
        for line in [
            "nod_gateway_bus 1",
            "nod_gateway_feishu 0",
            "nod_gateway_taps_total 7",
            "nod_gateway_calls_total{kind=\"send\"} 3",
        ] {
            assert!(page.lines().any(|one| one == line), "{line}: {page}");
        }
        assert!(!page.contains("vil"));
    }

    #[test]
    fn what_a_gateway_that_is_gone_wrote_is_no_status() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(last(dir.path()), None);
        for (age, known) in [(0, true), (60_000, false), (-60_000, false)] {
            let text = json!({"at": clock::wall_ms() - age}).to_string();
            files::replace_private(&dir.path().join(FILE), text.as_bytes()).unwrap();
            assert_eq!(last(dir.path()).is_some(), known, "{age}");
        }
    }
}
