//! Very many taps on one daemon: whether its memory grows.

use anyhow::{Context as _, ensure};

use crate::protocol::taps;
use crate::quiet_feishu;
use crate::subject::{Home, daemon};
use crate::table::Figure;

pub(crate) async fn figures(count: usize) -> anyhow::Result<Vec<Figure>> {
    let batch = (count / 20).max(1);
    let (sim, home) = (quiet_feishu().await?, Home::new()?);
    let subject = daemon(&sim, &home).await?;
    let mut sizes = Vec::new();
    for round in 0..20 {
        let taps = taps(&format!("soak-{round}"), batch);
        let run = sim.bench_clicks(&taps, 64).await.context("lost")?;
        ensure!(run.unanswered == 0, "taps went unanswered");
        sizes.push(subject.mib() * f64::from(1 << 20));
    }
    // The first quarter fills what is kept of the last taps.
    let settled = &sizes[5..];
    let what = format!("memory growth over {} taps", batch * settled.len());
    let grown = slope(settled) / batch as f64;
    Ok(vec![
        Figure::new("soak", &what, "B/tap", grown.max(0.0)).at_most(4.0, 1.0),
    ])
}

/// By least squares, per step.
fn slope(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let middle = (count - 1.0) / 2.0;
    let mean = values.iter().sum::<f64>() / count;
    let (mut rise, mut run) = (0.0, 0.0);
    for (at, value) in values.iter().enumerate() {
        let along = at as f64 - middle;
        rise += along * (value - mean);
        run += along * along;
    }
    rise / run
}
