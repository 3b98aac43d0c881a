//! Taps for requests nobody has asked: what is left is the protocol. nod and
//! the least client take turns on the same local Feishu, then the official
//! SDKs do the same work.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use nod::for_tests::simulator::{APP_ID, APP_SECRET, OWNER, TENANT};
use prost::bytes::Bytes;
use serde_json::json;

use crate::subject::{Home, Subject};
use crate::table::Figure;
use crate::{LIMIT, ms, part, quiet_feishu};

/// How often nod and the floor take turns; the median of the ratios counts.
const ROUNDS: usize = 5;
const SINGLE: usize = 20_000;
const MANY: usize = 100_000;
const WARM: usize = 2_000;
/// A client is idle this long after it connected.
const SETTLES: Duration = Duration::from_secs(1);

/// What one client did with the taps.
struct Pace {
    p50: f64,
    p99: f64,
    p999: f64,
    per_second: f64,
    /// In microseconds of processor time, user and system.
    cpu: f64,
    /// Connected, and nothing asked of it yet.
    idle_mib: f64,
    /// Once it has answered [`WARM`] taps.
    warm_mib: f64,
    start_ms: f64,
}

pub(crate) async fn figures(share: usize) -> anyhow::Result<Vec<Figure>> {
    let home = Home::new()?;
    let own = std::env::current_exe()?;
    let (mut floors, mut nods) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS.div_ceil(share) {
        let floor = pace(share, |base| {
            let mut command = Command::new(&own);
            command
                .arg("--floor")
                .arg(base.trim_start_matches("http://"));
            command
        });
        floors.push(floor.await?.context("the floor did not answer")?);
        let nod = pace(share, |base| home.nod("daemon", base)).await?;
        nods.push(nod.context("nod did not answer")?);
    }
    let middle = |of: &dyn Fn(&Pace) -> f64, all: &[Pace]| {
        let mut values: Vec<f64> = all.iter().map(of).collect();
        part(&mut values, 0.5)
    };
    let over = |of: &dyn Fn(&Pace) -> f64| {
        let pairs = nods.iter().zip(&floors);
        let mut ratios: Vec<f64> = pairs.map(|(nod, floor)| of(nod) / of(floor)).collect();
        part(&mut ratios, 0.5)
    };
    let mut figures = vec![
        Figure::new(
            "tap.p50.over",
            "tap → reply, p50, nod / floor",
            "×",
            over(&|p| p.p50),
        )
        .at_most(2.0, 1.2),
        Figure::new(
            "tap.p99.over",
            "tap → reply, p99, nod / floor",
            "×",
            over(&|p| p.p99),
        )
        .at_most(3.0, 1.5),
        Figure::new(
            "rate.over",
            "taps/s, 64 in flight, nod / floor",
            "×",
            over(&|p| p.per_second),
        )
        .at_least(0.6, 0.9),
        Figure::new(
            "cpu.over",
            "CPU per tap, 64 in flight, nod / floor",
            "×",
            over(&|p| p.cpu),
        )
        .at_most(2.0, 1.3),
        Figure::new(
            "idle.bar",
            "idle RSS",
            "MiB",
            middle(&|p| p.idle_mib, &nods),
        )
        .at_most(12.0, 8.0),
    ];
    let sets = [("floor", "least Rust client", floors), ("nod", "nod", nods)];
    for (key, name, all) in &sets {
        figures.extend(plain(key, name, &|of| middle(&of, all)));
    }
    for (key, name, command) in peers() {
        match pace(share.max(4), command).await? {
            Some(peer) => figures.extend(plain(key, name, &|of| of(&peer))),
            None => println!("SKIPPED: the {name} did not connect"),
        }
    }
    Ok(figures)
}

/// What is read off one client's pace.
type Reading = fn(&Pace) -> f64;

/// One client's own figures.
fn plain(key: &str, name: &str, value: &dyn Fn(Reading) -> f64) -> Vec<Figure> {
    let rows: [(_, _, _, Reading); 8] = [
        ("tap.p50", "tap → reply, p50", "µs", |p| p.p50),
        ("tap.p99", "tap → reply, p99", "µs", |p| p.p99),
        ("tap.p999", "tap → reply, p99.9", "µs", |p| p.p999),
        ("rate", "taps/s, 64 in flight", "", |p| p.per_second),
        ("cpu", "CPU per tap, 64 in flight", "µs", |p| p.cpu),
        ("idle", "idle RSS", "MiB", |p| p.idle_mib),
        ("warm", "RSS after 2,000 taps", "MiB", |p| p.warm_mib),
        ("start", "start → connected", "ms", |p| p.start_ms),
    ];
    rows.into_iter()
        .map(|(id, what, unit, of)| {
            Figure::new(
                &format!("{id}.{key}"),
                &format!("{what}, {name}"),
                unit,
                value(of),
            )
        })
        .collect()
}

type Start = Box<dyn Fn(&str) -> Command>;

/// The official SDKs, where the outside tier has installed them.
pub(crate) fn peers() -> Vec<(&'static str, &'static str, Start)> {
    let place = std::env::var_os("NOD_PEERS_DIR")
        .map_or_else(|| std::env::temp_dir().join("nod-peers"), PathBuf::from);
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/figures/peers");
    let found = |start: &str| {
        let entries = std::fs::read_dir(&place).into_iter().flatten().flatten();
        let mut entries = entries.map(|entry| entry.path());
        entries.find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(start)
        })
    };
    let mut peers: Vec<(&'static str, &'static str, Start)> = Vec::new();
    if let Some(node) = found("node-") {
        let script = scripts.join("node.js");
        peers.push((
            "node",
            "Node SDK",
            Box::new(move |base| {
                let mut command = Command::new("node");
                command
                    .env("NODE_PATH", node.join("node_modules"))
                    .arg(&script);
                command.args([base, APP_ID, APP_SECRET]);
                command
            }),
        ));
    }
    if let Some(python) = found("python-") {
        let script = scripts.join("python.py");
        peers.push((
            "python",
            "Python SDK",
            Box::new(move |base| {
                let mut command = Command::new(python.join("bin/python"));
                command.arg(&script).args([base, APP_ID, APP_SECRET]);
                command
            }),
        ));
    }
    for name in ["Node SDK", "Python SDK"] {
        if !peers.iter().any(|(_, known, _)| *known == name) {
            println!("SKIPPED: the {name} is not installed (tests/peers/run does)");
        }
    }
    peers
}

async fn pace(share: usize, start: impl Fn(&str) -> Command) -> anyhow::Result<Option<Pace>> {
    let sim = quiet_feishu().await?;
    let started = Instant::now();
    let Ok(subject) = Subject::start(&mut start(&sim.base_url())) else {
        return Ok(None);
    };
    if !sim.wait_connections(1, LIMIT).await {
        return Ok(None);
    }
    let start_ms = ms(started.elapsed());
    tokio::time::sleep(SETTLES).await;
    let idle_mib = subject.mib();
    sim.bench_clicks(&taps("warm", WARM), 8)
        .await
        .context("lost")?;
    let warm_mib = subject.mib();
    let single = taps("single", SINGLE / share);
    let single = sim.bench_clicks(&single, 1).await.context("lost")?;
    let many = taps("many", MANY / share);
    let before = subject.cpu();
    let run = sim.bench_clicks(&many, 64).await.context("lost")?;
    let cpu = subject.cpu().saturating_sub(before);
    ensure!(
        run.unanswered == 0 && run.refused == 0,
        "taps went unanswered"
    );
    let micros = single.latencies.iter().map(|t| t.as_secs_f64() * 1e6);
    let mut micros: Vec<f64> = micros.collect();
    Ok(Some(Pace {
        p50: part(&mut micros, 0.5),
        p99: part(&mut micros, 0.99),
        p999: part(&mut micros, 0.999),
        per_second: run.per_second(),
        cpu: cpu.as_secs_f64() * 1e6 / many.len() as f64,
        idle_mib,
        warm_mib,
        start_ms,
    }))
}

/// So many taps, each an event of its own.
pub(crate) fn taps(name: &str, count: usize) -> Vec<Bytes> {
    let now = std::time::SystemTime::now();
    let now = now
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    let tap = |n| {
        tap(&format!("{name}-{n}"), now.as_micros())
            .to_string()
            .into()
    };
    (0..count).map(tap).collect()
}

/// A tap as Feishu pushes it, at a time in microseconds.
pub(crate) fn tap(event: &str, at: u128) -> serde_json::Value {
    json!({
        "schema": "2.0",
        "header": {
            "event_id": event, "token": "t", "create_time": at.to_string(),
            "event_type": "card.action.trigger", "tenant_key": TENANT, "app_id": APP_ID,
        },
        "event": {
            "operator": {"open_id": OWNER}, "token": "c-1", "host": "im_message",
            "action": {"value": {"action": "allow", "request_id": "nobody-asked"}, "tag": "button"},
            "context": {"open_message_id": "om_1", "open_chat_id": "oc_1"},
        },
    })
}
