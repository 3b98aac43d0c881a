//! A thousand hooks wait at once and are answered in random order, each event
//! pushed twice: everybody gets exactly their own answer.

use std::time::{Duration, Instant};

use base64::Engine as _;
use futures::StreamExt as _;
use nod::for_tests::simulator::{Armed, Fault, Press, Simulator};
use rand::seq::SliceRandom as _;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use crate::hooks::{Hook, Stage, bash, report, values, within};

const HOOKS: usize = 50;
const SOCKETS: usize = 950;
const AT_ONCE: usize = 64;
/// So many ask at the same moment: a daemon that can't look at their project
/// in time sends the rest to the terminal.
const ASK_AT_ONCE: usize = 8;

/// Somebody who waits for an answer.
enum Waiter {
    Process(Hook),
    Socket(UnixStream),
}

impl Waiter {
    /// The one answer, after which nothing more comes.
    async fn answer(self) -> String {
        let behavior = match self {
            Self::Process(hook) => hook.ended().await.decision()["behavior"].clone(),
            Self::Socket(mut socket) => {
                let mut bytes = Vec::new();
                within(socket.read_to_end(&mut bytes)).await.unwrap();
                let (length, rest) = bytes.split_at(4);
                let length = u32::from_be_bytes(length.try_into().unwrap());
                assert_eq!(usize::try_from(length).unwrap(), rest.len(), "one frame");
                let told: Value = serde_json::from_slice(rest).unwrap();
                told["decision"]["behavior"].clone()
            }
        };
        behavior.as_str().unwrap().to_owned()
    }
}

async fn register(stage: &Stage, n: usize) -> Waiter {
    let input = bash(&format!("session-{n}"), &command(n)).to_string();
    let request = json!({
        "request_id": format!("many-{n:027}"),
        "project_dir": stage.home.project(),
        "raw_input_encoded": base64::engine::general_purpose::STANDARD.encode(input),
    });
    let mut socket = UnixStream::connect(stage.home.socket()).await.unwrap();
    socket
        .write_all(request.to_string().as_bytes())
        .await
        .unwrap();
    let mut ack = vec![0; 1_024];
    let read = within(socket.read(&mut ack)).await.unwrap();
    let ack: Value = serde_json::from_slice(&ack[..read]).unwrap();
    assert_eq!(ack["success"], true, "{ack}");
    Waiter::Socket(socket)
}

fn command(n: usize) -> String {
    format!("make target-{n}-end")
}

/// Which request a card is about.
fn number(card: &Value) -> usize {
    let text = card.to_string();
    let (_, rest) = text.split_once("make target-").expect("a command of ours");
    let (number, _) = rest.split_once("-end").expect("the whole command");
    number.parse().unwrap()
}

fn memory_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    number.unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_waiting_hooks_are_each_answered_once() {
    let stage = Stage::with(|_, home| home.set("NOD_LOG", "info")).await;
    let before = memory_kib(stage.daemon().pid());
    let started = Instant::now();
    let mut waiters: Vec<Option<Waiter>> = Vec::new();
    for n in 0..HOOKS {
        let input = bash(&format!("session-{n}"), &command(n));
        waiters.push(Some(Waiter::Process(stage.home.hook(&input))));
        if waiters.len().is_multiple_of(ASK_AT_ONCE) {
            let asked = stage.sim.wait_messages(waiters.len(), crate::hooks::LIMIT);
            asked.await.expect("a card for each");
        }
    }
    let sockets: Vec<_> = futures::stream::iter(HOOKS..HOOKS + SOCKETS)
        .map(|n| register(&stage, n))
        .buffered(ASK_AT_ONCE)
        .collect()
        .await;
    waiters.extend(sockets.into_iter().map(Some));
    let all = HOOKS + SOCKETS;
    let cards = stage.sim.wait_messages(all, crate::hooks::LIMIT).await;
    let cards = cards.expect("a card for everybody");
    assert_eq!(cards.len(), all);
    let waiting = memory_kib(stage.daemon().pid());
    let asked = started.elapsed();

    stage
        .sim
        .set_fault(Armed::always(Fault::Duplicate))
        .unwrap();
    let mut order: Vec<(usize, String, Value)> = cards
        .into_iter()
        .map(|message| {
            let card = message.card.expect("a card");
            let value = values(&card).remove(0);
            (number(&card), message.message_id, value)
        })
        .collect();
    order.shuffle(&mut rand::rng());
    let started = Instant::now();
    let taps = futures::stream::iter(&order).map(|(n, message, _)| tap(&stage.sim, *n, message));
    let mut latencies: Vec<u64> = taps.buffer_unordered(AT_ONCE).collect().await;
    let answered = started.elapsed();
    for (n, waiter) in waiters.iter_mut().enumerate() {
        let answer = waiter.take().expect("not asked yet").answer().await;
        assert_eq!(answer, expected(n), "request {n}");
    }
    stage.sim.clear_faults();

    assert_eq!(stage.home.status().await["pending"], 0);
    let audit = stage.home.audit().await;
    let settled = audit.iter().filter(|line| line["kind"] == "settled");
    assert_eq!(settled.count(), all, "each ended exactly once");
    let wrong: Vec<_> = stage.sim.violations();
    assert!(wrong.is_empty(), "{wrong:?}");
    latencies.sort_unstable();
    report(&format!(
        "{all} waiting: rss {before} KiB before, {waiting} KiB with all; asked in {asked:?}, \
         answered in {answered:?}, {AT_ONCE} in flight: p50 {} µs, p99 {} µs",
        latencies[all / 2],
        latencies[all * 99 / 100],
    ));
    assert!(Duration::from_micros(latencies[all * 99 / 100]) < Duration::from_secs(3));
}

fn expected(n: usize) -> &'static str {
    ["allow", "deny"][n % 2]
}

/// Taps as the person would and returns how long the toast took.
async fn tap(sim: &Simulator, n: usize, message: &str) -> u64 {
    let clicked = within(sim.click(Press::action(message, expected(n))))
        .await
        .unwrap();
    let toast = clicked.toast.expect("a toast");
    let words = ["已批准运行", "已拒绝运行"][n % 2];
    assert_eq!(toast.content, words, "request {n}");
    clicked.latency_us.expect("answered")
}
