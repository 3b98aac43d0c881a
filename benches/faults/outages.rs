//! Outages of 2, 5, 10, 20 and 60 s, one after another, in which connections
//! fail at once and in which they hang: one hook waits all the time and one asks
//! in the middle of each. Measured is how long after the network's return a tap
//! reaches the first, and the other has its card; both must get their tap.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use nod::for_tests::simulator::{HeldMessage, Options, Press, Simulator};
use rustix::process::Signal;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::connected;
use crate::histories::Said;
use crate::hooks::{self, Ask, Ended, Kind, number_on};
use crate::proxy::{Proxy, Trouble};
use crate::stage::{Daemon, Home};

const LASTING: [u64; 5] = [2, 5, 10, 20, 60];
const BACK_WITHIN: Duration = Duration::from_secs(2);
const LIMIT: Duration = Duration::from_secs(90);
const PATIENCE: Duration = Duration::from_secs(300);
const TAPS_EVERY: Duration = Duration::from_millis(250);
const LOOK_EVERY: Duration = Duration::from_millis(20);

struct Scene {
    sim: Simulator,
    home: Arc<Home>,
    wires: [Proxy; 2],
    seed: u64,
    asked: u64,
}

struct Waiting {
    number: u64,
    hook: JoinHandle<Ended>,
    _stop: oneshot::Sender<()>,
}

pub(crate) async fn run(seed: u64) -> anyhow::Result<ExitCode> {
    let long = TcpListener::bind("127.0.0.1:0").await?;
    let calls = TcpListener::bind("127.0.0.1:0").await?;
    let options = Options {
        advertised_socket_port: Some(long.local_addr()?.port()),
        seed,
        ..Options::default()
    };
    let sim = Simulator::start(options).await?;
    let feishu = format!("http://{}", calls.local_addr()?);
    let home = Arc::new(Home::new(&feishu, PATIENCE)?);
    let wires = [
        Proxy::start(long, sim.addresses().socket),
        Proxy::start(calls, sim.addresses().feishu),
    ];
    let daemon = Daemon::none();
    daemon.start(&home)?;
    connected(&home).await?;
    let mut scene = Scene {
        sim,
        home,
        wires,
        seed,
        asked: 0,
    };
    let mut late = 0;
    println!("outage   connections   tap reaches nod after   card after");
    for hangs in [false, true] {
        for seconds in LASTING {
            let lasts = Duration::from_secs(seconds);
            let (back, card) = scene.outage(lasts, hangs).await?;
            let how = if hangs { "hang" } else { "fail" };
            let (back_ms, card_ms) = (back.as_millis(), card.as_millis());
            println!("{seconds:>4} s   {how:<11}   {back_ms:>18} ms   {card_ms:>7} ms");
            late += usize::from(back > BACK_WITHIN);
        }
    }
    daemon.end(Signal::TERM).await;
    if late == 0 {
        println!("outages: ok");
        return Ok(ExitCode::SUCCESS);
    }
    println!("outages: FAILED, {late} times not back within {BACK_WITHIN:?}");
    Ok(ExitCode::FAILURE)
}

impl Scene {
    /// How long after the network's return nod was connected, and how long
    /// after it the card was there that was asked for meanwhile.
    async fn outage(
        &mut self,
        lasts: Duration,
        hangs: bool,
    ) -> anyhow::Result<(Duration, Duration)> {
        let before = self.asks();
        let first = self.card(before.number).await?;
        let ends = Instant::now() + lasts;
        for wire in &self.wires {
            wire.trouble(Trouble::Away { lasts, hangs });
        }
        tokio::time::sleep(lasts / 2).await;
        let during = self.asks();
        tokio::time::sleep_until(ends.into()).await;
        let card = async {
            let card = self.card(during.number).await?;
            anyhow::Ok((card, ends.elapsed()))
        };
        let (second, back) = tokio::join!(card, self.allowed(before, first, ends));
        let (second, card) = second?;
        self.allowed(during, second, ends).await?;
        Ok((back?, card))
    }

    /// How long after `since` a tap has reached the hook. Whoever sees an error
    /// taps again.
    async fn allowed(
        &self,
        waiting: Waiting,
        card: String,
        since: Instant,
    ) -> anyhow::Result<Duration> {
        while !waiting.hook.is_finished() {
            if since.elapsed() > LIMIT {
                bail!("a hook got no tap after an outage");
            }
            let tapped = self.sim.click(Press::action(&card, "allow"));
            tokio::time::timeout(TAPS_EVERY, tapped).await.ok();
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let took = since.elapsed();
        let ended = waiting.hook.await?;
        if ended.printed != [Said::Allow] {
            bail!("a hook got something else than its tap: {ended:?}");
        }
        Ok(took)
    }

    fn asks(&mut self) -> Waiting {
        self.asked += 1;
        let number = self.asked;
        let ask = Ask::new(&self.home, self.seed, number, Kind::Process);
        let (stop, stopped) = oneshot::channel();
        let home = Arc::clone(&self.home);
        let hook = tokio::spawn(async move { hooks::run(&home, ask, stopped).await });
        Waiting {
            number,
            hook,
            _stop: stop,
        }
    }

    async fn card(&self, number: u64) -> anyhow::Result<String> {
        let is_its = |message: &HeldMessage| {
            let card = message.card.as_ref();
            card.and_then(number_on) == Some(number)
        };
        let found = |sim: &Simulator| {
            let mut all = sim.messages().into_iter();
            all.find(is_its).map(|message| message.message_id)
        };
        let found = self.sim.wait_for(LIMIT, found).await;
        found.context("a hook got no card")
    }
}
