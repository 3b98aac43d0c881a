//! The figures nod publishes, each beside what it is compared with, measured in
//! one run on one machine: `cargo bench --bench figures`. Prints one table and
//! writes `docs/figures.json`, and from that the plot and the READMEs' tables.
//!
//! After `--`: `--quick` takes a tenth of everything and writes nothing,
//! `--only hook,starts,protocol,waiting,codex,team,recovery,soak,instructions` some
//! of it and writes nothing (`team` alone is `--only team`), `--soak N` so many taps, `--draw` only draws again what
//! `docs/figures.json` says.

#![allow(clippy::print_stdout, reason = "the table is what this is for")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "counts and shares of counts, far below what a double holds"
)]

mod codex;
#[path = "../../tests/it/codex/fake.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "it is a part of the tests")]
mod fake;
mod floor;
mod hook;
mod instructions;
mod meeting;
mod page;
mod protocol;
mod recovery;
mod soak;
mod subject;
mod support;
mod table;
mod team;
mod waiting;

use std::path::Path;
use std::time::Duration;

use anyhow::{bail, ensure};
use nod::for_tests::simulator::{Options, Simulator};

use table::Figure;

pub(crate) const LIMIT: Duration = Duration::from_secs(60);
const SOAK: usize = 1_000_000;

const TAKES_A_VALUE: [&str; 4] = ["--only", "--soak", "--floor", "--click-path"];
/// The last is what `cargo bench` itself adds.
const ALONE: [&str; 3] = ["--quick", "--draw", "--bench"];
const PARTS: [&str; 9] = [
    "hook",
    "starts",
    "protocol",
    "waiting",
    "codex",
    "team",
    "recovery",
    "soak",
    "instructions",
];
const ACCEPTED: &str = "--quick, --only hook,starts,protocol,waiting,codex,team,recovery,soak,instructions, --soak N, --draw";

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let named = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)
    };
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    understood(&arguments)?;
    if let Some(host) = named("--floor") {
        return floor::run(host);
    }
    if let Some(count) = named("--click-path") {
        instructions::click_path(count.parse()?);
        return Ok(());
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    if has("--draw") {
        return draw(root);
    }
    let quick = has("--quick");
    let share = if quick { 10 } else { 1 };
    let soak = match named("--soak") {
        Some(count) => count.parse()?,
        None => SOAK / share,
    };
    let alone = || arguments.iter().find(|one| PARTS.contains(&one.as_str()));
    let only = named("--only").or_else(alone).map(String::as_str);
    let runtime = tokio::runtime::Runtime::new()?;
    let figures = runtime.block_on(measure(share, soak, only))?;
    println!();
    table::print(&figures);
    let missed = figures.iter().filter(|figure| figure.verdict() == "MISSED");
    println!("\nmissed: {}", missed.count());
    if !quick && only.is_none() {
        table::write(&figures, &machine(), &root.join("docs"))?;
        draw(root)?;
        println!("written: docs/figures.json, docs/figures.svg, the READMEs' tables");
    }
    Ok(())
}

/// A misspelt argument is not a full run.
fn understood(arguments: &[String]) -> anyhow::Result<()> {
    let mut rest = arguments.iter().map(String::as_str);
    while let Some(argument) = rest.next() {
        if ALONE.contains(&argument) || PARTS.contains(&argument) {
            continue;
        }
        ensure!(
            TAKES_A_VALUE.contains(&argument),
            "there is no `{argument}`: {ACCEPTED}"
        );
        let Some(value) = rest.next() else {
            bail!("`{argument}` needs a value: {ACCEPTED}");
        };
        let unknown = value.split(',').find(|part| !PARTS.contains(part));
        if let Some(part) = unknown.filter(|_| argument == "--only") {
            bail!("there is no part `{part}`: {ACCEPTED}");
        }
    }
    Ok(())
}

fn draw(root: &Path) -> anyhow::Result<()> {
    for (file, content) in page::drawn(root)? {
        std::fs::write(file, content)?;
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
    format!("{model}, {cores} cores, load {load} at the end")
}

async fn measure(share: usize, soak: usize, only: Option<&str>) -> anyhow::Result<Vec<Figure>> {
    let wanted = |name: &str| {
        let wanted = only.is_none_or(|names| names.split(',').any(|one| one == name));
        if wanted {
            println!("{name} …");
        }
        wanted
    };
    let mut figures = Vec::new();
    if wanted("hook") {
        figures.extend(hook::figures(share)?);
        figures.extend(hook::reads(share).await?);
    }
    if wanted("starts") {
        figures.extend(recovery::starts(share).await?);
    }
    if wanted("protocol") {
        figures.extend(protocol::figures(share).await?);
    }
    if wanted("waiting") {
        figures.extend(waiting::figures(share).await?);
    }
    if wanted("codex") {
        figures.extend(codex::figures(share).await?);
    }
    if cfg!(feature = "team") && wanted("team") {
        figures.extend(team::figures(share).await?);
    }
    if wanted("recovery") {
        figures.extend(recovery::figures(share).await?);
    }
    if wanted("soak") {
        figures.extend(soak::figures(soak).await?);
    }
    if wanted("instructions") {
        figures.extend(instructions::figures());
    }
    Ok(figures)
}

/// A local Feishu that logs nothing and refuses nobody for being quick.
pub(crate) async fn quiet_feishu() -> std::io::Result<Simulator> {
    let options = Options {
        quiet: true,
        chat_per_second: None,
        patch_per_second: None,
        api_per_second: None,
        ..Options::default()
    };
    Simulator::start(options).await
}

/// The value below which this share of them lies; sorts them.
pub(crate) fn part(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    let at = (share * last as f64).round();
    values.get(at as usize).copied().unwrap_or(f64::NAN)
}

pub(crate) fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
