//! A team on one machine: a bus, gateways and hundreds of real daemons, each
//! with a pass and a home of its own. How soon a tap has decided, what the
//! gateway and the bus cost, and how soon all is well again after a fault.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use futures::StreamExt as _;
use nod::for_tests::files;
use nod::for_tests::hook::client;
use nod::for_tests::hook::wire::DaemonOrder;
use nod::for_tests::simulator::{OWNER, Press, Simulator};
use tokio::task::spawn_blocking;

use crate::meeting::Meeting;
use crate::subject::{Home, Subject, memory};
use crate::support::until;
use crate::table::Figure;
use crate::waiting::Hooks;
use crate::{LIMIT, ms, part, quiet_feishu};

const MACHINES: usize = 500;
const HOOKS_EACH: usize = 4;
const AT_ONCE: usize = 32;
/// Taps with one machine, and with a daemon that needs no gateway.
const ALONE: usize = 300;

pub(crate) async fn figures(share: usize) -> anyhow::Result<Vec<Figure>> {
    let mut figures = beside_a_local_daemon(share).await?;
    let count = (MACHINES / share).max(20);
    let mut team = Team::start().await?;
    println!("team: {count} machines, {}", team.bus.name());
    let gateway = team.gateway()?;
    team.machines(count).await?;
    figures.extend(many(&mut team, &gateway, share).await?);
    figures.push(restarted(&mut team).await?);
    figures.extend(one_gateway_less(&mut team, gateway).await?);
    figures.push(not_connected(&mut team).await?);
    figures.push(forgotten(&team).await?);
    Ok(figures)
}

/// What the way over the bus adds for one machine, both in turn.
async fn beside_a_local_daemon(share: usize) -> anyhow::Result<Vec<Figure>> {
    let mut team = Team::start().await?;
    let _gateway = team.gateway()?;
    team.machines(1).await?;
    let (sim, home) = (quiet_feishu().await?, Home::new()?);
    let _local = crate::subject::daemon(&sim, &home).await?;
    let mut hooks = [Hooks::new(&home), Hooks::new(&team.machines[0].home)];
    let mut took = [Vec::new(), Vec::new()];
    for _ in 0..(ALONE / share).div_ceil(10) {
        for (n, sim) in [&sim, &team.feishu].into_iter().enumerate() {
            hooks[n].grow(sim, 10).await?;
            took[n].extend(hooks[n].tap(sim, 10).await?);
        }
    }
    let [local, bus] = took.map(|mut took| part(&mut took, 0.5) / 1e3);
    Ok(vec![
        Figure::new(
            "team.over",
            "team: tap → decision, over a local daemon's, p50",
            "ms",
            bus - local,
        )
        .at_most(1.0, 0.4),
    ])
}

/// Every machine waits with some requests, and each is tapped once.
async fn many(team: &mut Team, gateway: &Subject, share: usize) -> anyhow::Result<Vec<Figure>> {
    let count = team.machines.len();
    let mut hooks = Vec::new();
    for (n, machine) in team.machines.iter().enumerate() {
        let mut own = Hooks::new(&machine.home);
        own.ask(n * HOOKS_EACH, HOOKS_EACH).await?;
        hooks.push(own);
    }
    let all = count * HOOKS_EACH;
    let sent = |sim: &Simulator| (sim.message_count() >= all).then_some(());
    let sent = team.feishu.wait_for(LIMIT, sent).await;
    sent.context("not every card was sent")?;
    let mut cards: Vec<String> = team
        .feishu
        .messages()
        .into_iter()
        .map(|m| m.message_id)
        .collect();
    // One after the other over all machines, and then many at once.
    let second = cards.split_off(all / 2);
    let before = gateway.cpu();
    let mut took = Vec::new();
    for card in &cards {
        took.push(tapped(&team.feishu, card).await?);
    }
    let cpu = gateway.cpu().saturating_sub(before).as_secs_f64() * 1e6 / cards.len() as f64;
    let started = Instant::now();
    let feishu = &team.feishu;
    let taps = futures::stream::iter(&second).map(|card| tapped(feishu, card));
    let at_once: Vec<_> = taps.buffer_unordered(AT_ONCE).collect().await;
    at_once.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    let rate = second.len() as f64 / started.elapsed().as_secs_f64();
    let what = format!("team of {count}: tap → decision");
    let mut figures = vec![
        Figure::new(
            "team.tap.p50",
            &format!("{what}, p50"),
            "ms",
            part(&mut took, 0.5),
        )
        .at_most(3.0, 1.5),
        Figure::new(
            "team.tap.p99",
            &format!("{what}, p99"),
            "ms",
            part(&mut took, 0.99),
        )
        .at_most(15.0, 5.0),
        Figure::new(
            "team.rate",
            &format!("team: decisions/s by one gateway, {AT_ONCE} in flight"),
            "/s",
            rate,
        )
        .at_least(500.0, 1_500.0),
        Figure::new("team.cpu", "team: gateway CPU per tap", "µs", cpu).at_most(400.0, 200.0),
        Figure::new("team.mib", "team: gateway RSS", "MiB", gateway.mib()).at_most(24.0, 12.0),
    ];
    if let Some(pid) = team.bus.pid() {
        let mib = memory(pid, "VmRSS:");
        figures.push(
            Figure::new("team.bus.mib", "team: nats-server RSS", "MiB", mib).at_most(128.0, 64.0),
        );
    }
    if share == 1 {
        let pss: f64 = team.machines.iter().map(Machine::own_mib).sum();
        figures.push(Figure::new(
            "team.machines.mib",
            &format!("team: {count} daemons in all, PSS"),
            "MiB",
            pss,
        ));
    }
    Ok(figures)
}

/// Milliseconds until the toast, which is written after the hook has confirmed.
async fn tapped(sim: &Simulator, card: &str) -> anyhow::Result<f64> {
    let clicked = sim.click(Press::action(card, "allow")).await?;
    let toast = clicked.toast.context("no toast")?;
    ensure!(toast.kind == "success", "{toast:?}");
    Ok(f64::from(u32::try_from(clicked.latency_us.context("no answer")?)?) / 1e3)
}

/// The bus dies and comes back: until 99 of 100 are there again, from when it
/// listens.
async fn restarted(team: &mut Team) -> anyhow::Result<Figure> {
    let all = team.machines.len();
    team.bus.stop();
    until("the bus is gone", || async {
        (team.bus.connections() == 0).then_some(())
    })
    .await;
    team.bus.start().await?;
    let started = Instant::now();
    // Gateways hold two connections each; they are not counted apart.
    let wanted = all * 99 / 100 + 2;
    let bus = &team.bus;
    until("the machines are back", || async {
        (bus.connections() >= wanted).then_some(())
    })
    .await;
    let back = started.elapsed();
    for machine in &team.machines {
        machine.connected().await;
    }
    let what = format!("team: all {all} back after the bus' restart, p99");
    Ok(Figure::new("team.back", &what, "s", back.as_secs_f64()).at_most(5.0, 1.0))
}

/// Of two gateways one is killed: the next tap and the next card.
async fn one_gateway_less(team: &mut Team, first: Subject) -> anyhow::Result<Vec<Figure>> {
    let second = team.gateway()?;
    let both = team.feishu.wait_connections(2, LIMIT).await;
    ensure!(both, "the second gateway did not connect");
    let mut hooks = Hooks::new(&team.machines[0].home);
    let before = team.feishu.message_count();
    hooks.ask(1_000_000, 1).await?;
    let waiting = team.card_after(before).await?;
    drop(first);
    let started = Instant::now();
    // Feishu gives an event to any connection; one that has just died is gone.
    ensure!(
        team.feishu.wait_connections(1, LIMIT).await,
        "both gateways are gone"
    );
    tapped(&team.feishu, &waiting).await?;
    let tap = started.elapsed();
    let started = Instant::now();
    let before = team.feishu.message_count();
    hooks.ask(1_000_001, 1).await?;
    let card = team.card_after(before).await?;
    let errand = started.elapsed();
    tapped(&team.feishu, &card).await?;
    team.gateways.push(second);
    Ok(vec![
        Figure::new(
            "team.lost.tap",
            "team: a gateway is killed: next tap",
            "ms",
            ms(tap),
        )
        .at_most(500.0, 50.0),
        Figure::new(
            "team.lost.card",
            "team: a gateway is killed: next card",
            "ms",
            ms(errand),
        )
        .at_most(2_000.0, 1_000.0),
    ])
}

/// A tap whose machine is gone is told so.
async fn not_connected(team: &mut Team) -> anyhow::Result<Figure> {
    let machine = team.machines.pop().context("a machine")?;
    let mut hooks = Hooks::new(&machine.home);
    let before = team.feishu.message_count();
    hooks.ask(2_000_000, 1).await?;
    let card = team.card_after(before).await?;
    let connections = team.bus.connections();
    drop(machine);
    let bus = &team.bus;
    until("the bus has noticed", || async {
        (bus.connections() < connections).then_some(())
    })
    .await;
    let clicked = team.feishu.click(Press::action(&card, "allow")).await?;
    let toast = clicked.toast.context("no toast")?;
    ensure!(toast.kind != "success", "{toast:?}");
    let took = f64::from(u32::try_from(clicked.latency_us.context("no answer")?)?) / 1e3;
    let what = "team: a machine that is not connected is told of";
    Ok(Figure::new("team.absent", what, "ms", took).at_most(50.0, 5.0))
}

/// From the administrator's command, its own start included, to the cut.
async fn forgotten(team: &Team) -> anyhow::Result<Figure> {
    let machine = team.machines.last().context("a machine")?;
    let connections = team.bus.connections();
    let started = Instant::now();
    let mut forget = team.command("gateway", &team.keys_home);
    forget.args(["forget", &machine.key, "--owner", OWNER]);
    let mut forget = forget
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let bus = &team.bus;
    // The command is a client of the bus itself while it runs.
    let gone = until("it is cut off", || async {
        let refused = machine.status().await?["connection"]["state"] != "connected";
        (refused || bus.connections() < connections).then(|| started.elapsed())
    })
    .await;
    let ended = spawn_blocking(move || forget.wait()).await??;
    ensure!(ended.success(), "nod gateway forget failed");
    let what = "team: `nod gateway forget` → cut off";
    Ok(Figure::new("team.forget", what, "ms", ms(gone)).at_most(1_000.0, 50.0))
}

struct Machine {
    home: Home,
    key: String,
    subject: Subject,
}

impl Machine {
    async fn status(&self) -> Option<serde_json::Value> {
        let socket = self.home.socket();
        let asking = spawn_blocking(move || {
            client::order(&socket, DaemonOrder::Status, Duration::from_secs(5))
        });
        asking.await.ok()?.ok()
    }

    async fn connected(&self) {
        until("a machine is connected", || async {
            let status = self.status().await?;
            (status["connection"]["state"] == "connected").then_some(())
        })
        .await;
    }

    /// What it adds to what all of them share.
    fn own_mib(&self) -> f64 {
        let rollup = format!("/proc/{}/smaps_rollup", self.subject.pid());
        let rollup = std::fs::read_to_string(rollup).unwrap_or_default();
        let line = rollup.lines().find(|line| line.starts_with("Pss:"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
        kib.unwrap_or(0.0) / 1024.0
    }
}

struct Team {
    feishu: Simulator,
    bus: Meeting,
    keys_home: Home,
    gateways: Vec<Subject>,
    machines: Vec<Machine>,
}

impl Team {
    async fn start() -> anyhow::Result<Self> {
        let mut bus = Meeting::new()?;
        bus.start().await?;
        let keys_home = Home::new()?;
        private(&keys_home.path().join("bus.keys"), &bus.keys())?;
        Ok(Self {
            feishu: quiet_feishu().await?,
            bus,
            keys_home,
            gateways: Vec::new(),
            machines: Vec::new(),
        })
    }

    /// A command of whoever holds the team's keys.
    fn command(&self, verb: &str, home: &Home) -> Command {
        let mut command = home.nod(verb, &self.feishu.base_url());
        command
            .env("NOD_BUS_URL", self.bus.url())
            .env("NOD_APP_RATE", "1000000")
            .env("NOD_BUS_KEYS", self.keys_home.path().join("bus.keys"))
            .env_remove("FEISHU_OWNER_ID");
        command
    }

    fn gateway(&self) -> anyhow::Result<Subject> {
        let home = Home::new()?;
        Ok(Subject::start(&mut self.command("gateway", &home))?)
    }

    async fn machines(&mut self, count: usize) -> anyhow::Result<()> {
        for _ in 0..count {
            let machine = self.machine()?;
            self.machines.push(machine);
        }
        for machine in &self.machines {
            machine.connected().await;
        }
        Ok(())
    }

    fn machine(&self) -> anyhow::Result<Machine> {
        let home = Home::new()?;
        let (member, key) = self.bus.member()?;
        let state = home.path().join("state");
        files::make_dirs(&state, 0o700)?;
        private(&state.join("bus.pass"), &member)?;
        let mut daemon = home.nod("daemon", "");
        for name in [
            "FEISHU_DOMAIN",
            "FEISHU_APP_ID",
            "FEISHU_APP_SECRET",
            "FEISHU_OWNER_ID",
        ] {
            daemon.env_remove(name);
        }
        let subject = Subject::start(&mut daemon)?;
        Ok(Machine { home, key, subject })
    }

    /// The one card that came after so many messages.
    async fn card_after(&self, before: usize) -> anyhow::Result<String> {
        let fresh = |sim: &Simulator| {
            (sim.message_count() > before)
                .then(|| sim.messages().last().map(|m| m.message_id.clone()))?
        };
        self.feishu
            .wait_for(LIMIT, fresh)
            .await
            .context("no card came")
    }
}

fn private(file: &Path, text: &str) -> anyhow::Result<()> {
    files::replace_private(file, text.as_bytes())?;
    Ok(())
}
