//! Codex beside its terminal, as it was recorded: what it costs an idle daemon
//! that its socket is there, and how soon a tap has reached it.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use nod::for_tests::simulator::{Press, Simulator};

use crate::fake::Codex;
use crate::subject::{Home, Subject};
use crate::table::Figure;
use crate::{LIMIT, ms, part, quiet_feishu};

/// How often daemons with and without Codex take turns.
const ROUNDS: usize = 5;
/// Long enough for what a daemon does only every few seconds.
const IDLES: Duration = Duration::from_secs(20);
const SETTLES: Duration = Duration::from_secs(2);
const TAPS: usize = 200;

pub(crate) async fn figures(share: usize) -> anyhow::Result<Vec<Figure>> {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS.div_ceil(share) {
        rounds.push(round(share).await?);
    }
    let middle = |of: &dyn Fn(&Round) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(of).collect();
        part(&mut values, 0.5)
    };
    let mut taps = taps(TAPS / share).await?;
    let idle = "idle with Codex attached";
    Ok(vec![
        Figure::new(
            "codex.mib",
            &format!("{idle}: RSS, over without"),
            "×",
            middle(&|round| round.attached.mib / round.off.mib),
        )
        .at_most(1.1, 1.02),
        Figure::new(
            "codex.cpu",
            &format!("{idle}: CPU, over without"),
            "×",
            middle(&|round| round.attached.cpu / round.off.cpu),
        )
        .at_most(1.5, 1.1),
        Figure::new(
            "codex.cpu.own",
            &format!("{idle}: CPU"),
            "ms/s",
            middle(&|round| round.attached.cpu),
        ),
        Figure::new(
            "codex.tap.p50",
            "tap → Codex has its answer, p50",
            "ms",
            part(&mut taps, 0.5),
        )
        .at_most(5.0, 1.0),
        Figure::new(
            "codex.tap.p99",
            "tap → Codex has its answer, p99",
            "ms",
            part(&mut taps, 0.99),
        ),
    ])
}

struct Idle {
    mib: f64,
    /// Milliseconds of processor time in a second.
    cpu: f64,
}

struct Round {
    off: Idle,
    attached: Idle,
}

/// Both idle at the same time, so that the machine is the same for both.
async fn round(share: usize) -> anyhow::Result<Round> {
    let (sim, home) = (quiet_feishu().await?, Home::new()?);
    let off = Subject::start(home.nod("daemon", &sim.base_url()).env("NOD_CODEX", "off"))?;
    ensure!(sim.wait_connections(1, LIMIT).await, "nod did not connect");
    let beside = Beside::new().await?;
    tokio::time::sleep(SETTLES).await;
    let subjects = [&off, &beside.subject];
    let before = subjects.map(Subject::cpu);
    let idles = IDLES / u32::try_from(share)?;
    tokio::time::sleep(idles).await;
    let [off, attached] = [0, 1].map(|n| Idle {
        mib: subjects[n].mib(),
        cpu: ms(subjects[n].cpu().saturating_sub(before[n])) / idles.as_secs_f64(),
    });
    Ok(Round { off, attached })
}

/// A daemon, and Codex with one thread.
struct Beside {
    sim: Simulator,
    codex: Codex,
    subject: Subject,
    _home: Home,
}

impl Beside {
    async fn new() -> anyhow::Result<Self> {
        let (sim, home) = (quiet_feishu().await?, Home::new()?);
        let codex = Codex::start(&home.path().join(".codex"), &home.project());
        let subject = crate::subject::daemon(&sim, &home).await?;
        codex.followed().await;
        Ok(Self {
            sim,
            codex,
            subject,
            _home: home,
        })
    }
}

/// Milliseconds from each tap until the answer is at Codex's end of the socket.
async fn taps(count: usize) -> anyhow::Result<Vec<f64>> {
    let beside = Beside::new().await?;
    let mut took = Vec::new();
    for n in 0..count {
        let id = beside.codex.asks_for(&format!("make target-{n}"));
        let sent = |sim: &Simulator| sim.messages().get(n).map(|card| card.message_id.clone());
        let card = beside.sim.wait_for(LIMIT, sent).await.context("no card")?;
        let tapped = Instant::now();
        let clicked = beside.sim.click(Press::action(&card, "allow")).await?;
        let answer = beside.codex.answer(id).await;
        ensure!(!answer.by_terminal, "{clicked:?}");
        took.push(ms(answer.at.saturating_duration_since(tapped)));
    }
    Ok(took)
}
