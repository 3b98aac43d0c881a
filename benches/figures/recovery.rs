//! How soon a daemon is there: after its start, after a dropped connection,
//! after a peer that went silent; and what it makes of an event that comes
//! right behind the handshake.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use nod::for_tests::simulator::{Armed, Fault, Simulator};

use crate::protocol::{peers, tap};
use crate::subject::{Home, Subject, daemon};
use crate::table::Figure;
use crate::waiting::Hooks;
use crate::{LIMIT, ms, part, quiet_feishu};

const HANDSHAKES: usize = 30;
/// An event is lost when it is not answered within Feishu's own limit.
const ANSWERED_WITHIN: Duration = Duration::from_secs(3);

pub(crate) async fn starts(share: usize) -> anyhow::Result<Vec<Figure>> {
    let (mut first, mut later) = (Vec::new(), Vec::new());
    for _ in 0..5_usize.div_ceil(share) {
        let home = Home::new()?;
        for round in 0..5 {
            let sim = quiet_feishu().await?;
            let started = Instant::now();
            let _subject = daemon(&sim, &home).await?;
            // The first start of all makes the database.
            let starts = if round == 0 { &mut first } else { &mut later };
            starts.push(ms(started.elapsed()));
        }
    }
    let mut figures = vec![
        Figure::new(
            "start.bar",
            "start → connected",
            "ms",
            part(&mut later, 0.5),
        )
        .at_most(30.0, 12.0),
        Figure::new(
            "start.first",
            "the very first start, which makes the database",
            "ms",
            part(&mut first, 0.5),
        ),
    ];
    figures.extend(behind_handshake(share).await?);
    Ok(figures)
}

/// An event in the same segment as the 101, on so many connections.
async fn behind_handshake(share: usize) -> anyhow::Result<Vec<Figure>> {
    let home = Home::new()?;
    let count = HANDSHAKES / share;
    let answered = caught(count, |base| home.nod("daemon", base)).await?;
    let what = format!("event right behind the handshake answered, of {count}");
    let all = count as f64;
    let mut figures =
        vec![Figure::new("handshake.nod", &what, "", answered as f64).at_least(all, all)];
    if let Some((_, name, start)) = peers().into_iter().find(|(key, ..)| *key == "node") {
        let count = HANDSHAKES / 3 / share;
        let answered = caught(count, start).await?;
        let what = format!("the same with the {name}, of {count}");
        figures.push(Figure::new("handshake.node", &what, "", answered as f64));
    }
    Ok(figures)
}

async fn caught(count: usize, start: impl Fn(&str) -> Command) -> anyhow::Result<usize> {
    let mut answered = 0;
    for n in 0..count {
        let sim = quiet_feishu().await?;
        let payload = Some(tap(&format!("behind-{n}"), 1));
        sim.set_fault(Armed::once(Fault::EventBehindHandshake { payload }))
            .map_err(anyhow::Error::msg)?;
        let _subject = Subject::start(&mut start(&sim.base_url()))?;
        sim.wait_for(LIMIT, |sim| (!sim.connections().is_empty()).then_some(()))
            .await
            .context("did not connect")?;
        let reply = |sim: &Simulator| (sim.replies() > 0).then_some(());
        answered += usize::from(sim.wait_for(ANSWERED_WITHIN, reply).await.is_some());
    }
    Ok(answered)
}

pub(crate) async fn figures(share: usize) -> anyhow::Result<Vec<Figure>> {
    let (sim, home) = (quiet_feishu().await?, Home::new()?);
    let _subject = daemon(&sim, &home).await?;
    let lives = futures::future::join_all((0..40 / share).map(dropped)).await;
    let mut drops = lives.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    let idle = back_after(&sim, Fault::HalfOpen { ghost: false }).await?;
    let mut hooks = Hooks::new(&home);
    hooks.grow(&sim, 1).await?;
    let pending = back_after(&sim, Fault::HalfOpen { ghost: false }).await?;
    let silent = "peer gone silent: noticed and back";
    Ok(vec![
        Figure::new(
            "drop.p50",
            "back after a drop, p50",
            "ms",
            part(&mut drops, 0.5),
        ),
        Figure::new(
            "drop.p99",
            "back after a drop, p99",
            "ms",
            part(&mut drops, 0.99),
        )
        .at_most(2_000.0, 500.0),
        Figure::new(
            "silent.pending",
            &format!("{silent}, somebody waiting"),
            "s",
            pending.as_secs_f64(),
        )
        .at_most(10.0, 6.0),
        Figure::new(
            "silent.idle",
            &format!("{silent}, idle"),
            "s",
            idle.as_secs_f64(),
        )
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
