//! The figures nod publishes, each beside what it is compared with, measured in
//! one run on one machine: `cargo bench --bench figures`. Prints a table and
//! writes `docs/figures.json` and `docs/figures.svg`.
//!
//! `-- --quick` takes a tenth of everything and writes nothing.

#![allow(clippy::print_stdout, reason = "the table is what this is for")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "counts and shares of counts, far below what a double holds"
)]

mod floor;
mod hook;
mod subject;
mod table;
mod waiting;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use nod::feishu::event;
use nod::feishu::frame::{DATA, Frame, Header};
use nod::feishu::link::{Answer, Incoming, Link, Now, ServerSettings, Step};
use nod::simulator::{APP_ID, APP_SECRET, Armed, Fault, OWNER, Options, Simulator, TENANT};
use nod::wording::{Lang, Toast, toast_json};
use prost::bytes::Bytes;
use serde_json::json;

use subject::{Home, Subject};
use table::Figure;
use waiting::Hooks;

const LIMIT: Duration = Duration::from_secs(60);

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let named = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)
    };
    if let Some(host) = named("--floor") {
        return floor::run(host);
    }
    if let Some(count) = named("--click-path") {
        click_path(count.parse()?);
        return Ok(());
    }
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let runtime = tokio::runtime::Runtime::new()?;
    let figures = runtime.block_on(measure(if quick { 10 } else { 1 }))?;
    println!();
    table::print(&figures);
    let missed = figures.iter().filter(|figure| figure.verdict() == "MISSED");
    println!("\nmissed: {}", missed.count());
    if !quick {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
        table::write(&figures, &machine(), &docs)?;
    }
    Ok(())
}

fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown", |text| text.trim_start_matches([' ', '\t', ':']));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().unwrap_or("?");
    format!("{model}, {cores} cores, load {load} at the end; trust ratios, not microseconds")
}

async fn measure(share: usize) -> anyhow::Result<Vec<Figure>> {
    let mut figures = Vec::new();
    println!("hook calls …");
    figures.extend(hook_calls()?);
    println!("taps on the protocol alone …");
    figures.extend(protocol(share).await?);
    println!("taps that decide …");
    figures.extend(many_waiting(share).await?);
    println!("starts, drops, silence …");
    figures.extend(recovery(share).await?);
    println!("soak …");
    figures.extend(soak(1_000_000 / share).await?);
    figures.extend(instructions());
    Ok(figures)
}

fn hook_calls() -> anyhow::Result<Vec<Figure>> {
    let home = Home::new()?;
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut figures = Vec::new();
    let nothing = hook::cost(&home, |_| Command::new("true"));
    let nothing = nothing.context("`true` did not run")?.wall;
    figures.push(Figure::new(
        "a process that does nothing",
        "ms",
        ms(nothing),
    ));
    let nod = hook::cost(&home, |socket| {
        let mut command = home.nod("hook", "http://127.0.0.1:1");
        command.env("PERMISSION_SOCKET_PATH", socket);
        command
    });
    let nod = nod.context("`nod hook` did not answer")?;
    figures.push(Figure::new("nod hook: own wall time", "ms", ms(nod.wall)).at_most(5.0, 2.0));
    figures.push(Figure::new("nod hook: RSS while it waits", "MiB", nod.mib).at_most(4.0, 2.0));
    let python = hook::cost(&home, |socket| {
        let mut command = Command::new("python3");
        let script = here.join("benches/figures/peers/v1.py");
        command.arg(script).arg(socket).arg(home.project());
        command
    });
    let bash = hook::cost(&home, |socket| {
        let mut command = Command::new("bash");
        let script = here.join("tests/peers/socket/v1_client.sh");
        command
            .arg(script)
            .arg(socket)
            .arg(home.project())
            .arg("v1-bash");
        command
    });
    for (name, cost) in [("python", python), ("bash + socat", bash)] {
        match cost {
            Some(cost) => {
                let times = cost.wall.as_secs_f64() / nod.wall.as_secs_f64();
                figures.push(Figure::new(
                    format!("{name} hook client"),
                    "ms",
                    ms(cost.wall),
                ));
                figures.push(Figure::new(
                    format!("{name} hook client / nod hook"),
                    "×",
                    times,
                ));
            }
            None => println!("SKIPPED: the {name} client does not run here"),
        }
    }
    Ok(figures)
}

/// What one client did with the pushes.
struct Pace {
    p50: f64,
    p99: f64,
    p999: f64,
    per_second: f64,
    cpu_per_event: f64,
    idle_mib: f64,
}

async fn protocol(share: usize) -> anyhow::Result<Vec<Figure>> {
    let home = Home::new()?;
    let own = std::env::current_exe()?;
    let floor = pace(share, |base| {
        let mut command = Command::new(&own);
        command
            .arg("--floor")
            .arg(base.trim_start_matches("http://"));
        command
    });
    let floor = floor.await?.context("the floor did not answer")?;
    let nod = pace(share, |base| home.nod("daemon", base)).await?;
    let nod = nod.context("nod did not answer")?;
    let mut figures = vec![
        Figure::new("tap → reply, p50, floor", "µs", floor.p50),
        Figure::new("tap → reply, p50, nod / floor", "×", nod.p50 / floor.p50).at_most(2.0, 1.2),
        Figure::new("tap → reply, p99, nod / floor", "×", nod.p99 / floor.p99).at_most(3.0, 1.5),
        Figure::new("tap → reply, p99.9, nod", "µs", nod.p999),
        Figure::new("events/s, 64 in flight, floor", "", floor.per_second),
        Figure::new(
            "events/s, 64 in flight, nod / floor",
            "×",
            nod.per_second / floor.per_second,
        )
        .at_least(0.6, 0.9),
        Figure::new(
            "CPU per event, nod / floor",
            "×",
            nod.cpu_per_event / floor.cpu_per_event,
        )
        .at_most(2.0, 1.3),
        Figure::new("idle RSS, floor", "MiB", floor.idle_mib),
        Figure::new("idle RSS, nod", "MiB", nod.idle_mib).at_most(12.0, 8.0),
    ];
    for (name, command) in peers() {
        let Some(peer) = pace(share.max(4), command).await? else {
            println!("SKIPPED: the {name} client did not connect");
            continue;
        };
        for (what, theirs, ours) in [
            ("tap → reply, p50", peer.p50, nod.p50),
            ("CPU per event", peer.cpu_per_event, nod.cpu_per_event),
            ("idle RSS", peer.idle_mib, nod.idle_mib),
        ] {
            figures.push(Figure::new(
                format!("{what}, {name} SDK / nod"),
                "×",
                theirs / ours,
            ));
        }
        let times = nod.per_second / peer.per_second;
        figures.push(Figure::new(
            format!("events/s, nod / {name} SDK"),
            "×",
            times,
        ));
    }
    Ok(figures)
}

type Start = Box<dyn Fn(&str) -> Command>;

/// The official SDKs, where the outside tier has installed them.
fn peers() -> Vec<(&'static str, Start)> {
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
    let mut peers: Vec<(&'static str, Start)> = Vec::new();
    if let Some(node) = found("node-") {
        let script = scripts.join("node.js");
        peers.push((
            "Node",
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
            "Python",
            Box::new(move |base| {
                let mut command = Command::new(python.join("bin/python"));
                command.arg(&script).args([base, APP_ID, APP_SECRET]);
                command
            }),
        ));
    }
    for name in ["Node", "Python"] {
        if !peers.iter().any(|(known, _)| *known == name) {
            println!("SKIPPED: the {name} SDK is not installed (tests/peers/install.sh does)");
        }
    }
    peers
}

async fn pace(share: usize, start: impl Fn(&str) -> Command) -> anyhow::Result<Option<Pace>> {
    let sim = quiet_feishu().await?;
    let Ok(subject) = Subject::start(&mut start(&sim.base_url())) else {
        return Ok(None);
    };
    if !sim.wait_connections(1, LIMIT).await {
        return Ok(None);
    }
    let warm = clicks("warm", 2_000 / share.min(2));
    sim.bench_clicks(&warm, 8).await.context("lost")?;
    let idle_mib = subject.mib();
    let single = clicks("single", 5_000 / share);
    let single = sim.bench_clicks(&single, 1).await.context("lost")?;
    let many = clicks("many", 60_000 / share);
    let before = subject.cpu();
    let run = sim.bench_clicks(&many, 64).await.context("lost")?;
    let cpu = subject.cpu().saturating_sub(before);
    ensure!(
        run.unanswered == 0 && run.refused == 0,
        "taps went unanswered"
    );
    let mut micros: Vec<f64> = single
        .latencies
        .iter()
        .map(|t| t.as_secs_f64() * 1e6)
        .collect();
    Ok(Some(Pace {
        p50: part(&mut micros, 0.5),
        p99: part(&mut micros, 0.99),
        p999: part(&mut micros, 0.999),
        per_second: run.per_second(),
        cpu_per_event: cpu.as_secs_f64() / many.len() as f64,
        idle_mib,
    }))
}

async fn quiet_feishu() -> std::io::Result<Simulator> {
    let options = Options {
        quiet: true,
        chat_per_second: None,
        patch_per_second: None,
        api_per_second: None,
        ..Options::default()
    };
    Simulator::start(options).await
}

/// Taps for requests nobody has asked: what is left is the protocol.
fn clicks(name: &str, count: usize) -> Vec<Bytes> {
    let now = std::time::SystemTime::now();
    let now = now
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    let click = |n| {
        json!({
            "schema": "2.0",
            "header": {
                "event_id": format!("{name}-{n}"), "token": "t",
                "create_time": now.as_micros().to_string(),
                "event_type": "card.action.trigger", "tenant_key": TENANT, "app_id": APP_ID,
            },
            "event": {
                "operator": {"open_id": OWNER}, "token": "c-1", "host": "im_message",
                "action": {"value": {"action": "allow", "request_id": "nobody-asked"}, "tag": "button"},
                "context": {"open_message_id": "om_1", "open_chat_id": "oc_1"},
            },
        })
        .to_string()
        .into()
    };
    (0..count).map(click).collect()
}

fn part(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    let at = (share * last as f64).round();
    values.get(at as usize).copied().unwrap_or(f64::NAN)
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// A connected daemon with nobody waiting.
async fn daemon(sim: &Simulator, home: &Home) -> anyhow::Result<Subject> {
    let subject = Subject::start(&mut home.nod("daemon", &sim.base_url()))?;
    ensure!(sim.wait_connections(1, LIMIT).await, "nod did not connect");
    Ok(subject)
}

async fn many_waiting(share: usize) -> anyhow::Result<Vec<Figure>> {
    let (sim, home) = (quiet_feishu().await?, Home::new()?);
    let subject = daemon(&sim, &home).await?;
    let mut hooks = Hooks::new(&home);
    let mut figures = Vec::new();
    let (mut costs, mut states) = (Vec::new(), Vec::new());
    for (count, bars) in [
        (200, None),
        (1_000, Some((24.0, 14.0))),
        (10_000, Some((96.0, 64.0))),
    ] {
        let count = if count == 10_000 {
            (count / share).max(1_500)
        } else {
            count
        };
        hooks.grow(&sim, count).await?;
        let mib = subject.mib();
        let mut took = waiting::taps(&sim, 100).await?;
        let (p50, p99) = (part(&mut took, 0.5), part(&mut took, 0.99));
        costs.push(p50);
        states.push(waiting::status(&home).await?);
        match bars {
            None => {
                let what = "tap → hook has it, recorded, toast written";
                figures
                    .push(Figure::new(format!("{what}, p50"), "µs", p50).at_most(1_000.0, 200.0));
                figures
                    .push(Figure::new(format!("{what}, p99"), "µs", p99).at_most(5_000.0, 1_000.0));
            }
            Some((must, aim)) => {
                let what = format!("RSS with {count} waiting hooks");
                figures.push(Figure::new(what, "MiB", mib).at_most(must, aim));
            }
        }
    }
    let growth = |all: &[f64]| all[2] / all[0];
    let what = "decide with 10,000 pending / with 200";
    figures.push(Figure::new(what, "×", growth(&costs)).at_most(2.0, 1.2));
    let what = "status with 10,000 pending / with 200";
    figures.push(Figure::new(what, "×", growth(&states)).at_most(2.0, 1.2));
    Ok(figures)
}

async fn recovery(share: usize) -> anyhow::Result<Vec<Figure>> {
    let mut starts = Vec::new();
    let home = Home::new()?;
    for round in 0..11 {
        let sim = quiet_feishu().await?;
        let started = Instant::now();
        let _subject = daemon(&sim, &home).await?;
        // The first start of all makes the database.
        if round > 0 {
            starts.push(ms(started.elapsed()));
        }
    }
    let (sim, home) = (quiet_feishu().await?, Home::new()?);
    let _subject = daemon(&sim, &home).await?;
    let lives = futures::future::join_all((0..40 / share).map(dropped)).await;
    let mut drops = lives.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    let idle = back_after(&sim, Fault::HalfOpen { ghost: false }).await?;
    let mut hooks = Hooks::new(&home);
    hooks.grow(&sim, 1).await?;
    let pending = back_after(&sim, Fault::HalfOpen { ghost: false }).await?;
    Ok(vec![
        Figure::new("start → connected", "ms", part(&mut starts, 0.5)).at_most(30.0, 12.0),
        Figure::new("back after a drop, p50", "ms", part(&mut drops, 0.5)),
        Figure::new("back after a drop, p99", "ms", part(&mut drops, 0.99)).at_most(2_000.0, 500.0),
        Figure::new(
            "half-open noticed and back, pending",
            "s",
            pending.as_secs_f64(),
        )
        .at_most(10.0, 6.0),
        Figure::new("half-open noticed and back, idle", "s", idle.as_secs_f64())
            .at_most(35.0, 20.0),
    ])
}

/// One daemon whose connection has stood long enough to be trusted, and is
/// then cut: milliseconds until the next one.
async fn dropped(round: usize) -> anyhow::Result<f64> {
    let (sim, home) = (quiet_feishu().await?, Home::new()?);
    let _subject = daemon(&sim, &home).await?;
    tokio::time::sleep(Duration::from_millis(10_500)).await;
    let fault = if round.is_multiple_of(2) {
        Fault::Drop
    } else {
        Fault::Reset
    };
    back_after(&sim, fault).await.map(ms)
}

/// From the fault to a new connection.
async fn back_after(sim: &Simulator, fault: Fault) -> anyhow::Result<Duration> {
    let last = sim.connections().iter().map(|line| line.id).max();
    let last = last.context("not connected")?;
    let started = Instant::now();
    sim.set_fault(Armed::once(fault))
        .map_err(anyhow::Error::msg)?;
    let fresh = |sim: &Simulator| {
        let lines = sim.connections();
        lines
            .iter()
            .any(|line| line.id > last)
            .then(|| started.elapsed())
    };
    sim.wait_for(LIMIT, fresh).await.context("never came back")
}

async fn soak(count: usize) -> anyhow::Result<Vec<Figure>> {
    const BATCH: usize = 50_000;
    let (sim, home) = (quiet_feishu().await?, Home::new()?);
    let subject = daemon(&sim, &home).await?;
    let mut sizes = Vec::new();
    for round in 0..count / BATCH {
        let taps = clicks(&format!("soak-{round}"), BATCH);
        let run = sim.bench_clicks(&taps, 64).await.context("lost")?;
        ensure!(run.unanswered == 0, "taps went unanswered");
        sizes.push(subject.mib());
    }
    let warm = sizes.len() / 4;
    let grown = (sizes.last().unwrap_or(&0.0) - sizes.get(warm).unwrap_or(&0.0)).max(0.0);
    let events = (sizes.len() - warm - 1).max(1) * BATCH;
    let slope = grown * f64::from(1 << 20) / events as f64;
    Ok(vec![
        Figure::new(format!("growth over {events} taps"), "B/tap", slope).at_most(4.0, 1.0),
    ])
}

/// The click path without sockets, for instruction counts: frame, link, event,
/// toast, reply.
fn click_path(count: u64) {
    let now = Now {
        mono: Instant::now(),
        wall: std::time::SystemTime::now(),
    };
    let mut link = Link::new(now, 1, Vec::new());
    link.dialed(7, ServerSettings::default(), now);
    let body = clicks("path", 1).remove(0);
    for n in 0..count {
        let headers = [
            ("type", "event"),
            ("message_id", "m"),
            ("sum", "1"),
            ("seq", "0"),
        ];
        let frame = Frame {
            seq_id: n,
            service: 7,
            method: DATA,
            headers: headers.map(|(key, value)| Header::new(key, value)).to_vec(),
            payload: Some(body.clone()),
            ..Frame::default()
        };
        link.received(Incoming::Binary(frame.to_bytes()), now);
        while let Some(step) = link.step() {
            if let Step::Deliver(push) = step {
                std::hint::black_box(event::parse(&push.payload));
                let toast = json!({"toast": toast_json(&Toast::Unknown, Lang::Zh)});
                let answer = Answer::Show(toast.to_string().into_bytes());
                link.answer(push.ticket, &answer, now);
            } else {
                std::hint::black_box(step);
            }
        }
    }
}

fn instructions() -> Vec<Figure> {
    let count = |taps: &str| -> Option<f64> {
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(std::env::current_exe().ok()?)
            .args(["--click-path", taps])
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let (_, rest) = text.split_once("Collected : ")?;
        rest.split_whitespace().next()?.parse().ok()
    };
    let (Some(few), Some(many)) = (count("200"), count("1200")) else {
        println!("SKIPPED: valgrind does not run here");
        return Vec::new();
    };
    let each = (many - few) / 1_000.0;
    let figure = Figure::new("instructions of the click path", "", each);
    vec![figure.at_most(60_000.0, 40_000.0)]
}
