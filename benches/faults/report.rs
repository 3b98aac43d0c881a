//! What a run comes to, in words and figures.

use std::collections::{BTreeMap, HashSet};

use anyhow::Context as _;

use crate::checker::{self, Fault, Invariant, Verdict};
use crate::histories::{Held, Histories, Seen};
use crate::sabotage::Sabotage;
use crate::{Run, Settings};

/// The report of a run.
pub(crate) fn print(settings: &Settings, run: &Run, verdict: &Verdict) {
    let histories = &run.histories;
    let mut endings = BTreeMap::<&str, u64>::new();
    for ending in &histories.endings {
        *endings.entry(&ending.decision).or_default() += 1;
    }
    let taps = histories.taps.len();
    let struck = |name: &str| run.troubles.get(name).copied().unwrap_or(0);
    println!(
        "\nseed {}: {taps} taps on {} requests in {:.0?}, {} kills, {} resets, {} clock jumps",
        settings.seed,
        endings.values().sum::<u64>(),
        run.elapsed,
        struck("the daemon killed"),
        struck("cut between frames") + struck("cut inside a frame"),
        struck("the clock jumped"),
    );
    let line = |what: &str, value: String| println!("  {what:<34} {value}");
    line("applied", verdict.applied.to_string());
    for (why, count) in &verdict.refused {
        line(&format!("refused: {why}"), count.to_string());
    }
    line(
        "not confirmed (the person saw it)",
        verdict.unconfirmed.to_string(),
    );
    let by_others = histories.taps.iter().filter(|tap| !tap.by_owner);
    line("taps of colleagues", by_others.count().to_string());
    let events: HashSet<_> = histories.taps.iter().map(|tap| &tap.event).collect();
    line("pushes that came again", (taps - events.len()).to_string());
    line("hooks started", histories.asked.len().to_string());
    line("endings", format!("{endings:?}"));
    line("cards Feishu took back", verdict.taken_back.to_string());
    line("rules in settings files", histories.rules.len().to_string());
    line("longest hook", format!("{} ms", verdict.longest_hook_ms));
    let mut latencies = run.latencies.clone();
    latencies.sort_unstable();
    let at = |part: usize| {
        latencies
            .get(latencies.len() * part / 1000)
            .copied()
            .unwrap_or(0)
    };
    line(
        "confirmed within, p50 / p99 / p99.9",
        format!("{} / {} / {} µs", at(500), at(990), at(999)),
    );
    let most = |of: fn(&Held) -> u64| histories.held.iter().map(of).max().unwrap_or(0);
    line(
        "daemon at most",
        format!(
            "{} KiB, {} files, {} KiB on disk",
            most(|held| held.kib),
            most(|held| held.files as u64),
            most(|held| held.disk_kib)
        ),
    );
    let after = format!("{} ms after the last request", histories.true_after_ms);
    line("last card true", after);
    let written = histories
        .taps
        .iter()
        .filter(|tap| tap.seen == Seen::Words)
        .count();
    line("answers in writing", written.to_string());
    line("carried by the proxy", format!("{} MiB", run.carried >> 20));
    line("protocol rules broken", format!("{:?}", run.violations));
    println!("troubles:");
    for (name, count) in &run.troubles {
        line(name, count.to_string());
    }
    println!("invariants: judged, broken");
    for invariant in Invariant::ALL {
        let (times, broken) = (verdict.times(invariant), verdict.broken(invariant));
        line(invariant.name(), format!("{times:>8} {broken:>5}"));
    }
    println!(
        "\nlost {}, doubled {}, invented {}, otherwise wrong {}",
        verdict.count(Fault::Lost),
        verdict.count(Fault::Doubled),
        verdict.count(Fault::Invented),
        verdict.count(Fault::Other),
    );
}

/// Alters one entry of these very histories at a time and sees it noticed by
/// the invariant it breaks.
pub(crate) fn show_that_the_checker_can_fail(histories: &Histories) -> anyhow::Result<bool> {
    let before = checker::check(histories);
    for sabotage in Sabotage::ALL {
        let mut altered = histories.clone();
        let done = sabotage.commit(&mut altered);
        done.with_context(|| format!("too few taps for `{}`", sabotage.name()))?;
        let breaks = sabotage.breaks();
        if checker::check(&altered).broken(breaks) <= before.broken(breaks) {
            println!("the checker did not notice: {}", sabotage.name());
            return Ok(false);
        }
    }
    println!("one altered entry is noticed: {}", Sabotage::names());
    Ok(true)
}
