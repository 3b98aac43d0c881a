//! `nod demo`: nod doing its job with nothing but itself. A local Feishu with
//! a web page, a real daemon over the real protocol, and a scripted agent that
//! starts real hooks; or a whole team with its gateways. Nothing leaves this
//! machine, nothing stays on it.

mod agent;
mod claude;
mod guide;
mod laptop;
mod process;
mod scenes;
mod stage;
pub(super) mod stand_in;
mod team;
mod tour;
mod transcript;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::{CommandResult, Failure, output};
use crate::config::Sources;
use crate::text::{Lang, Text};
use stage::{DemoStage, Staging, word};
use tour::Tour;

/// How soon a reader that went away is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(250);

#[derive(clap::Args)]
pub(super) struct DemoArguments {
    /// Take the tour without a person and print what happened
    #[arg(long)]
    auto: bool,
    /// Show a team: two gateways and three laptops of two people
    #[arg(long)]
    team: bool,
    /// Print the page's address and open nothing
    #[arg(long)]
    no_browser: bool,
    /// Language of the cards, the page and this output
    #[arg(long, value_name = "zh|en", value_parser = language)]
    lang: Option<Lang>,
}

fn language(text: &str) -> Result<Lang, &'static str> {
    match text {
        "zh" => Ok(Lang::Zh),
        "en" => Ok(Lang::En),
        _ => Err("`zh` or `en`"),
    }
}

/// Why the demonstration ended before its end.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("the demo cannot be set up: {0}")]
    Setup(#[from] std::io::Error),
    #[error("the daemon did not come up\n{log}")]
    Daemon { log: String },
    #[error("gateway {name} did not come up\n{log}")]
    Gateway { name: &'static str, log: String },
    #[error("scene {number}: {what}\n{log}")]
    Scene {
        number: usize,
        what: String,
        log: String,
    },
}

pub(super) fn run(arguments: &DemoArguments, sources: &Sources) -> CommandResult {
    let lang = arguments.lang.unwrap_or_else(|| sources.lang());
    #[cfg(not(feature = "team"))]
    if arguments.team {
        return Err(Failure::new(super::wording::Words(lang).no_team()));
    }
    super::runtime(2)?.block_on(async {
        let mut over = std::pin::pin!(over());
        let staged = tokio::select! {
            staged = set(arguments, lang, sources) => staged,
            () = &mut over => return Ok(()),
        };
        let mut stage = staged.map_err(Failure::new)?;
        let shown = tokio::select! {
            shown = show(&mut stage, arguments, sources) => shown,
            () = &mut over => {
                output::say(ENDED.get(lang));
                Ok(())
            }
        };
        stage.strike().await;
        shown.map_err(Failure::new)
    })
}

async fn set(
    arguments: &DemoArguments,
    lang: Lang,
    sources: &Sources,
) -> Result<DemoStage, Broken> {
    if arguments.team {
        DemoStage::set_team(lang, on_path(sources, "nats-server")).await
    } else {
        DemoStage::set(lang).await
    }
}

/// Returns when nobody wants the demo any more: they said so, closed its
/// terminal, or stopped reading what it prints.
async fn over() {
    let closed = async {
        match signal(SignalKind::hangup()) {
            Ok(mut closed) => drop(closed.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    let unread = async {
        while output::is_read() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    tokio::select! {
        () = super::stop_signal() => {}
        () = closed => {}
        () = unread => {}
    }
}

static ENDED: Text = Text::new(
    "\n演示结束，临时文件已删除。下一步：`nod setup`",
    "\nThe demo is over; its files are gone. Next: `nod setup`",
);
static OPENED: Text = Text::new(
    "演示页面（像飞书的聊天窗口）：",
    "The page, which looks like a Feishu chat:",
);
static STOP: Text = Text::new("按 Ctrl-C 结束。", "Ctrl-C ends everything.");

async fn show(
    stage: &mut DemoStage,
    arguments: &DemoArguments,
    sources: &Sources,
) -> Result<(), Broken> {
    let lang = stage.lang;
    match &stage.team {
        Some(team) => transcript::team::opening(lang, team.server()),
        None => transcript::opening(lang),
    }
    stage.play(Staging::default()).await?;
    if arguments.auto {
        return Tour::new(stage).by_itself().await;
    }
    let page = stage.simulator.page(word(lang));
    output::say(OPENED.get(lang));
    output::line(&format!("\n    {page}\n"));
    output::say(STOP.get(lang));
    if let Some(program) = on_path(sources, "claude")
        && stage.team.is_none()
    {
        let command = claude::point_here(stage, &program)?;
        output::line("");
        output::say(claude::HINT.get(lang));
        output::line(&format!("\n    {command}\n"));
        output::say(claude::THEN.get(lang));
        stage
            .simulator
            .note(json!({"note": "claude", "command": command}));
    }
    if !arguments.no_browser && has_screen(sources) {
        open(&stage.beside("open.html"), &page);
    }
    Tour::new(stage).with_a_visitor().await
}

/// A browser can be opened where there is something to open it on.
fn has_screen(sources: &Sources) -> bool {
    cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY"]
            .iter()
            .any(|name| sources.get(name).is_some())
}

/// The address is on the terminal, so a browser that won't open is no loss.
/// Other users see what programs are started with, and whoever has the address
/// may tap: the browser gets it from a file that only this user can read.
pub(super) fn open(way: &Path, page: &str) {
    let html = format!(
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0;url={page}\">"
    );
    if crate::files::replace_private(way, html.as_bytes()).is_err() {
        return;
    }
    let program = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let _ = tokio::process::Command::new(program)
        .arg(way)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
}

fn on_path(sources: &Sources, program: &str) -> Option<PathBuf> {
    let (path, _) = sources.get("PATH")?;
    path.split(':')
        .map(|dir| Path::new(dir).join(program))
        .find(|candidate| candidate.is_file())
}
