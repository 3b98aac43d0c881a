//! Taps under injected faults, with real processes on loopback: a local Feishu,
//! a proxy that breaks connections, hooks of three kinds, people who tap, a wall
//! clock that jumps, and a daemon that is killed every few seconds. Afterwards a
//! checker reads what Feishu, the store, the hooks and the settings files
//! remember, judges the ten invariants of `docs/reliability.md`, and counts what
//! was lost, doubled or invented.
//!
//! `cargo bench --bench faults -- --taps 100000 --seed 7`; without arguments
//! 1,000 taps and seed 1. `--hooks N` so many wait at a time, `--restless N` taps
//! so many times more for each, `--calm` leaves the troubles out, `--sabotage lie`
//! alters one entry to see the run fail.
//! `--team` puts a bus and two gateways between the daemon and Feishu, and among
//! the victims. `--outages` measures instead how soon nod is back after outages of 2 to 60 s.

#![allow(clippy::print_stdout, reason = "the report is what this is for")]

mod chaos;
mod checker;
mod histories;
mod hooks;
#[path = "../figures/meeting.rs"]
mod meeting;
mod outages;
mod people;
mod person;
mod proxy;
mod report;
mod restless;
mod sabotage;
mod stage;
mod team;

use std::collections::{BTreeMap, HashSet};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use nod::for_tests::simulator::{OWNER, Options, Simulator};
use nod::for_tests::store::{Db, Recorded};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rustix::process::Signal;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use chaos::Troubles;
use histories::{Ending, Held, Histories};
use people::{Crowd, Plan};
use proxy::Proxy;
use sabotage::Sabotage;
use stage::{Daemon, Home, PROJECTS, REQUEST_TIMEOUT};

/// Beyond the time-out a hook of ours gives a lost daemon this long.
const GRACE: Duration = Duration::from_secs(31);
/// Longer than any card takes to become true once the line is good.
const SETTLE_WITHIN: Duration = Duration::from_secs(90);
/// Longer than a tap is under way.
const LAST_TAP: Duration = Duration::from_secs(4);
/// A card is true so soon after the last trouble: a call that failed is tried
/// again after a minute at most.
const TRUE_WITHIN: Duration = Duration::from_secs(60);
/// Seconds until an event that nobody acknowledged comes again.
const REPUSH: [u64; 4] = [1, 4, 10, 20];
/// What the daemon may hold besides two files for each hook: one that waits and
/// one whose end it has not read yet.
const MOST_KIB: u64 = 128 * 1024;
const MOST_FILES: usize = 128;
const MOST_DISK_KIB: u64 = 1024 * 1024;
const AUDIT_PAGE: u32 = 5_000;
const SHOWN: usize = 20;

struct Settings {
    taps: u64,
    seed: u64,
    restless: u32,
    hooks: usize,
    sabotage: Option<Sabotage>,
    calm: bool,
    outages: bool,
    team: bool,
}

impl Settings {
    fn parse(arguments: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let mut settings = Self {
            taps: 1_000,
            seed: 1,
            restless: 0,
            hooks: 96,
            sabotage: None,
            calm: false,
            outages: false,
            team: false,
        };
        let mut arguments = arguments;
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().context(format!("`{name}` needs a value"));
            match name.as_str() {
                "--taps" => settings.taps = value()?.parse()?,
                "--seed" => settings.seed = value()?.parse()?,
                "--restless" => settings.restless = value()?.parse()?,
                "--hooks" => settings.hooks = value()?.parse()?,
                "--calm" => settings.calm = true,
                "--outages" => settings.outages = true,
                "--team" => settings.team = true,
                "--sabotage" => {
                    let one = value()?;
                    let known = Sabotage::parse(&one);
                    settings.sabotage = Some(known.with_context(Sabotage::names)?);
                }
                // What `cargo bench` itself adds.
                "--bench" => {}
                other => {
                    bail!(
                        "there is no `{other}`: --taps, --seed, --restless, --hooks, --calm, --team, --outages, --sabotage"
                    )
                }
            }
        }
        Ok(settings)
    }
}

fn main() -> anyhow::Result<ExitCode> {
    let settings = Settings::parse(std::env::args().skip(1))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(4_096)
        .build()?;
    if settings.outages {
        return runtime.block_on(outages::run(settings.seed));
    }
    runtime.block_on(run(&settings))
}

/// What became of a run.
struct Run {
    histories: Histories,
    latencies: Vec<u64>,
    troubles: Troubles,
    elapsed: Duration,
    carried: u64,
    violations: Vec<String>,
}

async fn run(settings: &Settings) -> anyhow::Result<ExitCode> {
    println!(
        "faults: {} taps, {} hooks at a time, {} taps more for each, seed {}",
        settings.taps, settings.hooks, settings.restless, settings.seed
    );
    let misread = checker::misread();
    if !misread.is_empty() {
        bail!("the checker would misread {misread:?}");
    }
    let (mut ran, home) = rehearse(settings).await?;
    if let Some(sabotage) = settings.sabotage {
        let done = sabotage.commit(&mut ran.histories);
        done.context("nothing in this run to sabotage")?;
        println!("one entry was altered: {}", sabotage.name());
    }
    let verdict = checker::check(&ran.histories);
    report::print(settings, &ran, &verdict);
    let caught = report::show_that_the_checker_can_fail(&ran.histories)?;
    if verdict.findings.is_empty() && caught {
        println!("faults: ok");
        return Ok(ExitCode::SUCCESS);
    }
    let shown = verdict.findings.iter().take(SHOWN);
    shown.for_each(|finding| println!("{}: {}", finding.invariant.name(), finding.what));
    match Arc::into_inner(home) {
        Some(home) => println!("faults: FAILED, the state is in {}", home.keep().display()),
        None => println!("faults: FAILED"),
    }
    Ok(ExitCode::FAILURE)
}

async fn rehearse(settings: &Settings) -> anyhow::Result<(Run, Arc<Home>)> {
    let long = TcpListener::bind("127.0.0.1:0").await?;
    let calls = TcpListener::bind("127.0.0.1:0").await?;
    let options = Options {
        advertised_socket_port: Some(long.local_addr()?.port()),
        chat_per_second: None,
        patch_per_second: None,
        api_per_second: None,
        // Read as it grows; a reader that was kept waiting misses nothing.
        history: 40_000,
        repush: REPUSH.map(Duration::from_secs).to_vec(),
        seed: settings.seed,
        ..Options::default()
    };
    let sim = Simulator::start(options).await?;
    let feishu = format!("http://{}", calls.local_addr()?);
    let wires = (
        Proxy::start(long, sim.addresses().socket),
        Proxy::start(calls, sim.addresses().feishu),
    );
    let (team, home) = if settings.team {
        let (team, home) = team::Team::start(&feishu).await?;
        (Some(Arc::new(team)), home)
    } else {
        (None, Home::new(&feishu, REQUEST_TIMEOUT)?)
    };
    let home = Arc::new(home);
    let plan = Plan {
        seed: settings.seed,
        taps: settings.taps,
        restless: settings.restless,
    };
    let crowd = Crowd::new(sim, Arc::clone(&home), wires, plan);
    let crowd = Arc::new(crowd);
    let daemon = Arc::new(Daemon::none());
    daemon.start(&home)?;
    connected(&home).await?;
    let watched = Arc::new(Watched::default());
    let mut tasks = JoinSet::new();
    let follower = Arc::clone(&crowd);
    tasks.spawn(async move { follower.deliver_cards().await });
    let mut watchers = JoinSet::new();
    watchers.spawn(watch(
        Arc::clone(&crowd),
        Arc::clone(&daemon),
        Arc::clone(&watched),
    ));
    let mut trouble = JoinSet::new();
    if !settings.calm {
        let chance = |salt: u64| StdRng::seed_from_u64(settings.seed ^ salt << 32);
        let (sky, shared) = (Arc::clone(&crowd), Arc::clone(&watched));
        let random = chance(1);
        trouble.spawn(async move { chaos::storm(&sky, random, &shared.troubles).await });
        let (sky, shared, victim) = (
            Arc::clone(&crowd),
            Arc::clone(&watched),
            Arc::clone(&daemon),
        );
        let random = chance(2);
        trouble.spawn(async move { chaos::reaper(sky, victim, random, &shared.troubles).await });
        if let Some(team) = &team {
            let (sky, shared) = (Arc::clone(&crowd), Arc::clone(&watched));
            let (random, team) = (chance(4), Arc::clone(team));
            trouble.spawn(async move { team.reaper(&sky, random, &shared.troubles).await });
        }
        let (sky, shared) = (Arc::clone(&crowd), Arc::clone(&watched));
        let random = chance(3);
        trouble.spawn(async move { chaos::clocks(sky, random, &shared.troubles).await });
    }
    let started = Instant::now();
    let mut workers = JoinSet::new();
    for _ in 0..settings.hooks {
        workers.spawn(Arc::clone(&crowd).work());
    }
    workers.join_all().await;
    let elapsed = started.elapsed();
    trouble.shutdown().await;
    watchers.shutdown().await;
    if let Some(team) = &team {
        team.mend().await?;
    }
    let true_after = calm_down(&crowd, &daemon).await?;
    tasks.shutdown().await;
    watched.follow_audit(&home)?;
    daemon.end(Signal::TERM).await;
    let mut run = collect(&crowd, &watched, elapsed)?;
    run.histories.most.files += 2 * settings.hooks;
    run.histories.true_after_ms = u64::try_from(true_after.as_millis())?;
    drop(crowd);
    Ok((run, home))
}

pub(crate) async fn connected(home: &Home) -> anyhow::Result<()> {
    wait_until("the daemon connects", || {
        let status = stage::status(&home.socket());
        status.is_some_and(|status| status["connection"]["state"] == "connected")
    })
    .await
}

async fn wait_until(what: &str, mut holds: impl FnMut() -> bool) -> anyhow::Result<()> {
    let started = Instant::now();
    while !holds() {
        if started.elapsed() > SETTLE_WITHIN {
            bail!("{what}: not within {SETTLE_WITHIN:?}");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// The faults are over: everything that waits must end and every card must
/// become true. Says how long the last card took once nothing was pending.
async fn calm_down(crowd: &Crowd, daemon: &Daemon) -> anyhow::Result<Duration> {
    crowd.sim.clear_faults();
    crowd.long_connection.calm();
    crowd.calls.calm();
    if daemon.pid().is_none() {
        daemon.start(&crowd.home)?;
    }
    connected(&crowd.home).await?;
    wait_until("nothing is pending", || {
        let status = stage::status(&crowd.home.socket());
        status.is_some_and(|status| status["pending"] == 0)
    })
    .await?;
    let started = Instant::now();
    while crowd.look_at_cards(false) > 0 && started.elapsed() < SETTLE_WITHIN {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let true_after = started.elapsed();
    // A card that says denied of what ran is put right once its tap is over.
    tokio::time::sleep(LAST_TAP).await;
    crowd.look_at_cards(true);
    Ok(true_after)
}

/// What is noted beside the people while they tap.
#[derive(Default)]
struct Watched {
    troubles: Mutex<Troubles>,
    endings: Mutex<(i64, Vec<Ending>)>,
    held: Mutex<Vec<Held>>,
}

impl Watched {
    /// Reads what the audit has grown by.
    fn follow_audit(&self, home: &Home) -> anyhow::Result<()> {
        let Ok(db) = Db::open_read_only(&home.state()) else {
            return Ok(());
        };
        let mut known = self.endings.lock().expect("nobody panics with it");
        let (mut before, mut fresh) = (None, Vec::new());
        loop {
            let page = db.audit(before, AUDIT_PAGE)?;
            let end = page.last().is_none_or(|row| row.seq <= known.0);
            before = page.last().map(|row| row.seq);
            fresh.extend(page.into_iter().filter(|row| row.seq > known.0));
            if end {
                break;
            }
        }
        known.0 = fresh.first().map_or(known.0, |row| row.seq);
        fresh.reverse();
        let of = |kind: &'static str| move |row: &Recorded| row.entry.kind == kind;
        let untrue: HashSet<_> = fresh
            .iter()
            .filter(|row| of("corrected")(row))
            .filter_map(|row| row.entry.request.clone())
            .collect();
        let settled = fresh.into_iter().filter(of("settled"));
        known.1.extend(settled.map(|row| Ending {
            corrected: false,
            request: row.entry.request.unwrap_or_default(),
            decision: row.entry.decision.unwrap_or_default(),
            operator: row.entry.operator,
            event: row.entry.event,
            digest: row.entry.digest.unwrap_or_default(),
            rule: row.entry.rule,
        }));
        for ending in &mut known.1 {
            ending.corrected |= untrue.contains(&ending.request);
        }
        Ok(())
    }
}

/// Follows audit, cards and the daemon's size, and says how far it is.
async fn watch(crowd: Arc<Crowd>, daemon: Arc<Daemon>, watched: Arc<Watched>) {
    let started = Instant::now();
    let mut round = 0_u64;
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        round += 1;
        if let Some((kib, files)) = daemon.pid().and_then(stage::footprint)
            && let Ok(mut held) = watched.held.lock()
        {
            let disk_kib = crowd.home.disk_kib();
            held.push(Held {
                kib,
                files,
                disk_kib,
            });
        }
        if round.is_multiple_of(3) {
            let (crowd, watched) = (Arc::clone(&crowd), Arc::clone(&watched));
            let looked = tokio::task::spawn_blocking(move || {
                crowd.look_at_cards(false);
                watched.follow_audit(&crowd.home)
            });
            // The final look reads everything that this one missed.
            let _ = looked.await;
        }
        if round.is_multiple_of(20) {
            println!(
                "  {:>4} s  {} taps",
                started.elapsed().as_secs(),
                crowd.taps()
            );
        }
    }
}

fn collect(crowd: &Crowd, watched: &Watched, elapsed: Duration) -> anyhow::Result<Run> {
    let seen = crowd.seen();
    let mut rules = Vec::new();
    for number in 0..PROJECTS {
        let file = crowd
            .home
            .project(number)
            .join(".claude/settings.local.json");
        if let Ok(text) = std::fs::read_to_string(file) {
            let settings: Value = serde_json::from_str(&text).context("a settings file")?;
            let allowed = settings["permissions"]["allow"].as_array();
            let texts = allowed.into_iter().flatten().filter_map(Value::as_str);
            rules.extend(texts.map(str::to_owned));
        }
    }
    let patience = REQUEST_TIMEOUT + GRACE;
    let held = std::mem::take(&mut *watched.held.lock().expect("nobody panics with it"));
    Ok(Run {
        histories: Histories {
            owner: OWNER.to_owned(),
            patience_ms: u64::try_from(patience.as_millis())?,
            most: Held {
                kib: MOST_KIB,
                files: MOST_FILES,
                disk_kib: MOST_DISK_KIB,
            },
            true_after_ms: 0,
            true_within_ms: u64::try_from(TRUE_WITHIN.as_millis())?,
            held,
            asked: seen.asked,
            taps: seen.taps,
            endings: std::mem::take(&mut watched.endings.lock().expect("nobody panics").1),
            faces: seen.faces,
            rules,
        },
        latencies: seen.latencies,
        troubles: watched.troubles.lock().expect("nobody panics").clone(),
        elapsed,
        carried: crowd.long_connection.carried() + crowd.calls.carried(),
        violations: broken_rules(&crowd.sim),
    })
}

/// What the client did that Feishu's protocol does not allow, by kind.
fn broken_rules(sim: &Simulator) -> Vec<String> {
    let mut kinds = BTreeMap::<&str, usize>::new();
    for violation in sim.violations() {
        *kinds.entry(violation.rule).or_default() += 1;
    }
    let shown = kinds.iter().map(|(rule, count)| format!("{rule} {count}"));
    shown.collect()
}
