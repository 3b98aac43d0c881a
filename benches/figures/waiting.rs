//! Many hooks that wait on one daemon, and what a tap costs among them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use futures::StreamExt as _;
use nod::hook::client;
use nod::hook::wire::{Additions, Message, Order, Registration, unframe};
use nod::ids::RequestId;
use nod::simulator::{Press, Simulator};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::task::{JoinHandle, JoinSet};

use crate::subject::Home;

const AT_ONCE: usize = 32;
const LIMIT: Duration = Duration::from_secs(120);

/// Hooks in this process, each confirming its decision as nod's own does.
pub(crate) struct Hooks {
    socket: PathBuf,
    project: PathBuf,
    count: usize,
    tasks: JoinSet<()>,
}

impl Hooks {
    pub(crate) fn new(home: &Home) -> Self {
        Self {
            socket: home.socket(),
            project: home.project(),
            count: 0,
            tasks: JoinSet::new(),
        }
    }

    /// Lets hooks wait until there are this many, each with its card sent.
    pub(crate) async fn grow(&mut self, sim: &Simulator, to: usize) -> anyhow::Result<()> {
        let fresh = self.count..to;
        let socket = Arc::new(self.socket.clone());
        let project = Arc::new(self.project.clone());
        let asking = futures::stream::iter(fresh)
            .map(|n| ask(Arc::clone(&socket), Arc::clone(&project), n))
            .buffer_unordered(AT_ONCE);
        let streams: Vec<_> = asking.collect().await;
        for stream in streams {
            self.tasks.spawn(wait(stream?));
        }
        self.count = to;
        let cards = sim.wait_messages(to.min(10_000), LIMIT).await;
        cards.context("not every card was sent")?;
        Ok(())
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
    let message = Message::Register(Registration {
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
    let _ = stream.write_all(&Message::Received.encode()).await;
    let _ = stream.read_buf(&mut bytes).await;
}

/// Taps so many of the newest cards one after another; microseconds each until
/// the toast, which is written after the hook has confirmed.
pub(crate) async fn taps(sim: &Simulator, count: usize) -> anyhow::Result<Vec<f64>> {
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
    Ok(took)
}

/// How long `status` takes, in microseconds: the median of some.
pub(crate) async fn status(home: &Home) -> anyhow::Result<f64> {
    let socket = home.socket();
    let asking: JoinHandle<anyhow::Result<f64>> = tokio::task::spawn_blocking(move || {
        let mut took = Vec::new();
        for _ in 0..50 {
            let started = Instant::now();
            client::order(&socket, Order::Status, Duration::from_secs(5))?;
            took.push(started.elapsed().as_secs_f64() * 1e6);
        }
        took.sort_by(f64::total_cmp);
        Ok(took[took.len() / 2])
    });
    asking.await?
}
