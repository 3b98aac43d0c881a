//! Many hooks that wait on one daemon: what each weighs, and what a tap, an
//! expiry and a status cost among them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use futures::StreamExt as _;
use nod::for_tests::approvals::Approvals;
use nod::for_tests::approvals::request::{Caller, Digest, Facts, Origin};
use nod::for_tests::approvals::token::Token;
use nod::for_tests::clock::Millis;
use nod::for_tests::hook::client;
use nod::for_tests::hook::wire::{Additions, DaemonOrder, HookMessage, Registration, unframe};
use nod::for_tests::ids::RequestId;
use nod::for_tests::simulator::{Press, Simulator};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::task::{JoinHandle, JoinSet};

use crate::subject::{Home, daemon};
use crate::table::Figure;
use crate::{part, quiet_feishu};

const AT_ONCE: usize = 32;
const LIMIT: Duration = Duration::from_secs(120);

const TAPS: usize = 100;

pub(crate) async fn figures(share: usize) -> anyhow::Result<Vec<Figure>> {
    let (sim, home) = (quiet_feishu().await?, Home::new()?);
    let subject = daemon(&sim, &home).await?;
    let mut hooks = Hooks::new(&home);
    let mut figures = Vec::new();
    let (mut costs, mut states) = (Vec::new(), Vec::new());
    hooks.grow(&sim, 1).await?;
    figures.push(Figure::new(
        "waiting.1",
        "RSS with 1 waiting hook",
        "MiB",
        subject.mib(),
    ));
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
        let mut took = hooks.tap(&sim, TAPS).await?;
        let (p50, p99) = (part(&mut took, 0.5), part(&mut took, 0.99));
        costs.push(p50);
        states.push(status(&home).await?);
        match bars {
            None => {
                let what = "tap → hook has it, recorded, toast written";
                figures.push(
                    Figure::new("decide.p50", &format!("{what}, p50"), "µs", p50)
                        .at_most(1_000.0, 200.0),
                );
                figures.push(
                    Figure::new("decide.p99", &format!("{what}, p99"), "µs", p99)
                        .at_most(5_000.0, 1_000.0),
                );
            }
            Some((must, aim)) => {
                let what = format!("RSS with {count} waiting hooks");
                let figure = Figure::new(&format!("waiting.{count}"), &what, "MiB", mib);
                figures.push(figure.at_most(must, aim));
            }
        }
    }
    let grown = |all: &[f64]| all[2] / all[0];
    let more = "with 10,000 waiting / with 200";
    figures.push(
        Figure::new("flat.decide", &format!("tap {more}"), "×", grown(&costs)).at_most(2.0, 1.2),
    );
    figures.push(
        Figure::new(
            "flat.status",
            &format!("status {more}"),
            "×",
            grown(&states),
        )
        .at_most(2.0, 1.2),
    );
    let what = "expiry with 10,000 waiting / with 1";
    let times = expiry(10_000) / expiry(1);
    figures.push(Figure::new("flat.expire", what, "×", times).at_most(4.0, 2.0));
    Ok(figures)
}

/// Nanoseconds to register a request and let it expire among so many others.
fn expiry(others: usize) -> f64 {
    const TIMES: u32 = 20_000;
    let request = |name: String, deadline: Millis| {
        let input = json!({"command": "make"});
        Arc::new(
            Facts {
                id: RequestId::parse(&name).expect("printable"),
                tool: "Bash".to_owned(),
                digest: Digest::of(&input),
                input,
                origin: Origin {
                    machine: "m".to_owned(),
                    user: "u".to_owned(),
                    project: "/p".into(),
                    cwd: "/p".into(),
                    branch: None,
                    session: None,
                    agent: None,
                    pid: None,
                    hosted: false,
                    caller: Caller::default(),
                },
                real: nod::for_tests::approvals::request::RealPath::Unasked,
                asked_at: 0,
                deadline,
            }
            .read(),
        )
    };
    let token = Token::from_bytes([7; 32]).hash();
    let mut approvals = Approvals::new();
    // One place is left for the one that expires.
    for n in 0..others - 1 {
        let waits = approvals.register(request(format!("w{n}"), Millis::MAX), token, 0);
        waits.expect("there is room");
    }
    let fresh: Vec<_> = (0..TIMES).map(|n| request(format!("x{n}"), 1)).collect();
    let started = Instant::now();
    for request in fresh {
        approvals
            .register(request, token, 0)
            .expect("there is room");
        assert_eq!(approvals.expire(1).len(), 1);
    }
    started.elapsed().as_secs_f64() * 1e9 / f64::from(TIMES)
}

/// Hooks in this process, each confirming its decision as nod's own does.
pub(crate) struct Hooks {
    socket: PathBuf,
    project: PathBuf,
    /// How many have asked, and how many of them were answered.
    asked: usize,
    answered: usize,
    tasks: JoinSet<()>,
}

impl Hooks {
    pub(crate) fn new(home: &Home) -> Self {
        Self {
            socket: home.socket(),
            project: home.project(),
            asked: 0,
            answered: 0,
            tasks: JoinSet::new(),
        }
    }

    /// Lets so many more hooks ask, numbered from `first`.
    pub(crate) async fn ask(&mut self, first: usize, count: usize) -> anyhow::Result<()> {
        let socket = Arc::new(self.socket.clone());
        let project = Arc::new(self.project.clone());
        let asking = futures::stream::iter(first..first + count)
            .map(|n| ask(Arc::clone(&socket), Arc::clone(&project), n))
            .buffer_unordered(AT_ONCE);
        let streams: Vec<_> = asking.collect().await;
        for stream in streams {
            self.tasks.spawn(wait(stream?));
        }
        Ok(())
    }

    /// Lets hooks wait until so many do, each with its card sent.
    pub(crate) async fn grow(&mut self, sim: &Simulator, to: usize) -> anyhow::Result<()> {
        let to = to + self.answered;
        self.ask(self.asked, to - self.asked).await?;
        self.asked = to;
        let sent = |sim: &Simulator| (sim.message_count() >= to).then_some(());
        let sent = sim.wait_for(LIMIT, sent).await;
        sent.context("not every card was sent")
    }

    /// Taps so many of the newest cards one after another; microseconds each
    /// until the toast, which is written after the hook has confirmed.
    pub(crate) async fn tap(&mut self, sim: &Simulator, count: usize) -> anyhow::Result<Vec<f64>> {
        let messages = sim.messages();
        let mut took = Vec::new();
        for message in messages.iter().rev().take(count) {
            let press = Press::action(&message.message_id, "allow");
            let clicked = sim.click(press).await?;
            let toast = clicked.toast.context("no toast")?;
            ensure!(toast.kind == "success", "{toast:?}");
            let micros = u32::try_from(clicked.latency_us.context("no answer")?)?;
            took.push(f64::from(micros));
        }
        self.answered += took.len();
        Ok(took)
    }
}

async fn ask(socket: Arc<PathBuf>, project: Arc<PathBuf>, n: usize) -> anyhow::Result<UnixStream> {
    let raw_input = json!({
        "hook_event_name": "PermissionRequest",
        "session_id": format!("session-{n}"),
        "cwd": *project,
        "tool_name": "Bash",
        "tool_input": {"command": format!("make target-{n}")},
    });
    let message = HookMessage::Register(Registration {
        id: RequestId::parse(&format!("figures-{n:024}"))?,
        project: (*project).clone(),
        raw_input: raw_input.to_string().into_bytes(),
        nod: Some(Additions::default()),
    });
    let mut stream = UnixStream::connect(&*socket).await?;
    stream.write_all(&message.encode()).await?;
    let mut ack = Vec::new();
    while serde_json::from_slice::<Value>(&ack).is_err() {
        ensure!(stream.read_buf(&mut ack).await? > 0, "no ack");
    }
    let ack: Value = serde_json::from_slice(&ack)?;
    ensure!(ack["success"] == true, "refused: {ack}");
    Ok(stream)
}

async fn wait(mut stream: UnixStream) {
    let mut bytes = Vec::new();
    while matches!(unframe(&bytes), Ok(None)) {
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return;
        }
    }
    // The daemon is told; whether it still listens is its own affair.
    let _ = stream.write_all(&HookMessage::Received.encode()).await;
    let _ = stream.read_buf(&mut bytes).await;
}

/// How long `status` takes, in microseconds: the median of some.
async fn status(home: &Home) -> anyhow::Result<f64> {
    let socket = home.socket();
    let asking: JoinHandle<anyhow::Result<f64>> = tokio::task::spawn_blocking(move || {
        let mut took = Vec::new();
        for _ in 0..50 {
            let started = Instant::now();
            client::order(&socket, DaemonOrder::Status, Duration::from_secs(5))?;
            took.push(started.elapsed().as_secs_f64() * 1e6);
        }
        took.sort_by(f64::total_cmp);
        Ok(took[took.len() / 2])
    });
    asking.await?
}
