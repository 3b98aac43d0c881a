//! The middle of a team on the stage: a bus, and two gateways that alone know
//! the app's secret. Set up by the commands that a person would type.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use super::Broken;
use super::laptop::Laptop;
use super::process::{self, LOOK_EVERY, UP_WITHIN};
use super::stage::word;
use crate::bus::keys::Keys;
use crate::clock;
use crate::simulator::bus::Bus;
use crate::simulator::{APP_ID, GROUP, Simulator};
use crate::text::Lang;

pub(super) struct DemoTeam {
    nod: PathBuf,
    dir: PathBuf,
    broker: Broker,
    gateways: Vec<DemoGateway>,
}

/// The server that everybody meets at.
enum Broker {
    Own { _bus: Bus },
    Server { child: Child, program: PathBuf },
}

struct DemoGateway {
    name: &'static str,
    child: Option<Child>,
    lang: Lang,
}

impl DemoTeam {
    /// Makes keys and configuration, and starts the bus: the NATS server at
    /// `program`, or nod's own where that is not there or does not start.
    pub(super) async fn set(
        nod: &Path,
        dir: &Path,
        secret: &str,
        program: Option<PathBuf>,
    ) -> Result<Self, Broken> {
        fs::create_dir_all(dir)?;
        let at = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let mut init = process::nod(nod, dir, &dir.join("state"));
        init.args(["gateway", "init", "--bus", &format!("nats://{at}")])
            .env("FEISHU_APP_ID", APP_ID)
            .env("FEISHU_APP_SECRET", secret);
        process::told(&mut init).await?;
        let made = dir.join("nod-bus");
        let found = match program {
            Some(program) => serve(program, &made, at).await?,
            None => None,
        };
        let broker = match found {
            Some(broker) => broker,
            None => Broker::Own {
                _bus: own_bus(&made, at).await?,
            },
        };
        let gateway = |name| DemoGateway {
            name,
            child: None,
            lang: Lang::Zh,
        };
        Ok(Self {
            nod: nod.to_owned(),
            dir: dir.to_owned(),
            broker,
            gateways: vec![gateway("A"), gateway("B")],
        })
    }

    /// The NATS server that carries all; `None` is the bus in nod itself.
    pub(super) fn server(&self) -> Option<&Path> {
        match &self.broker {
            Broker::Own { .. } => None,
            Broker::Server { program, .. } => Some(program),
        }
    }

    /// Lets a laptop in, as whoever runs a gateway does by hand.
    pub(super) async fn admit(&self, laptop: &Laptop) -> Result<(), Broken> {
        let key = process::told(&mut laptop.command("join")).await?;
        let pass = ["pass", "--owner", laptop.owner, "--key", &key];
        let line = process::told(self.command(&self.dir.join("state")).args(pass)).await?;
        process::told(laptop.command("join").arg(line).arg("--yes")).await?;
        Ok(())
    }

    /// `nod gateway` with what `nod gateway init` wrote.
    fn command(&self, state: &Path) -> Command {
        let mut command = process::nod(&self.nod, &self.dir, state);
        command
            .arg("--env-file")
            .arg(self.dir.join("nod-bus/gateway.env"))
            .arg("gateway");
        command
    }

    fn state(&self, gateway: &DemoGateway) -> PathBuf {
        self.dir.join(format!("state-{}", gateway.name))
    }

    fn log(&self, gateway: &DemoGateway) -> PathBuf {
        self.dir.join(format!("gateway-{}.log", gateway.name))
    }

    pub(super) fn log_tail(&self) -> String {
        let logs = self.gateways.iter().map(|gateway| {
            let log = process::tail(&self.log(gateway));
            format!("gateway {}:\n{log}", gateway.name)
        });
        logs.collect()
    }

    /// Has every gateway at work, in this language.
    pub(super) async fn complete(
        &mut self,
        simulator: &Simulator,
        lang: Lang,
    ) -> Result<(), Broken> {
        for at in 0..self.gateways.len() {
            let gateway = &mut self.gateways[at];
            if gateway.child.is_some() && gateway.lang == lang {
                continue;
            }
            if let Some(mut child) = gateway.child.take() {
                process::stop(&mut child).await;
            }
            gateway.lang = lang;
            self.start(at, simulator).await?;
        }
        Ok(())
    }

    /// Starts one gateway and learns which connection is its own.
    async fn start(&mut self, at: usize, simulator: &Simulator) -> Result<(), Broken> {
        let gateway = &self.gateways[at];
        let name = gateway.name;
        let before: Vec<u64> = simulator.connections().iter().map(|one| one.id).collect();
        let since = clock::wall_ms();
        let mut command = self.command(&self.state(gateway));
        command
            .env("FEISHU_DOMAIN", simulator.base_url())
            .env("NOD_GATEWAY_CHATS", GROUP)
            .env("NOD_LANG", word(gateway.lang));
        let child = process::start(&mut command, &self.log(gateway))?;
        self.gateways[at].child = Some(child);
        let fresh = |simulator: &Simulator| {
            let all = simulator.connections();
            let mut ids = all.iter().map(|one| one.id);
            ids.find(|id| !before.contains(id))
        };
        let connection = simulator.wait_for(UP_WITHIN, fresh).await;
        match connection {
            Some(connection) if self.is_at_work(at, since).await => {
                simulator.note(json!({
                    "note": "gateway", "what": "started", "name": name, "connection": connection,
                }));
                Ok(())
            }
            _ => Err(Broken::Gateway {
                name,
                log: process::tail(&self.log(&self.gateways[at])),
            }),
        }
    }

    /// Whether a gateway says in time that it has both Feishu and the bus.
    async fn is_at_work(&self, at: usize, since: i64) -> bool {
        let state = self.state(&self.gateways[at]);
        let until = Instant::now() + UP_WITHIN;
        while Instant::now() < until {
            let told = process::told(self.command(&state).args(["status", "--json"])).await;
            let status: Value = serde_json::from_str(&told.unwrap_or_default()).unwrap_or_default();
            // What it said before it was killed is still there.
            let fresh = status["at"].as_i64().is_some_and(|at| at >= since);
            if fresh && status["bus"] == true && status["feishu"] == true {
                return true;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        false
    }

    /// Whether one of them was killed.
    pub(super) fn is_short(&self) -> bool {
        self.gateways.iter().any(|one| one.child.is_none())
    }

    /// The first gateway dies without a word; its name.
    pub(super) async fn kill(&mut self, simulator: &Simulator) -> io::Result<&'static str> {
        let gateway = &mut self.gateways[0];
        if let Some(mut child) = gateway.child.take() {
            child.kill().await?;
        }
        let left = self.gateways.iter().filter(|one| one.child.is_some());
        let left = left.count();
        // A tap that is sent down its connection meets nobody.
        simulator.wait_connections(left, UP_WITHIN).await;
        let name = self.gateways[0].name;
        simulator.note(json!({"note": "gateway", "what": "crashed", "name": name}));
        Ok(name)
    }

    pub(super) async fn stop(&mut self) {
        for gateway in &mut self.gateways {
            if let Some(mut child) = gateway.child.take() {
                process::stop(&mut child).await;
            }
        }
        if let Broker::Server { child, .. } = &mut self.broker {
            process::stop(child).await;
        }
    }
}

/// The NATS server, once it listens; `None` where it ends, or never does.
async fn serve(program: PathBuf, made: &Path, at: SocketAddr) -> io::Result<Option<Broker>> {
    let mut command = Command::new(&program);
    command
        .arg("-c")
        .arg(made.join("nats.conf"))
        .env_clear()
        .env("HOME", made)
        .current_dir(made)
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true);
    let Ok(mut child) = process::start(&mut command, &made.join("nats.log")) else {
        return Ok(None);
    };
    let until = Instant::now() + UP_WITHIN;
    while Instant::now() < until && child.try_wait()?.is_none() {
        if TcpStream::connect(at).await.is_ok() {
            return Ok(Some(Broker::Server { child, program }));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let _ = child.kill().await;
    Ok(None)
}

/// nod's own small server, for the same keys.
async fn own_bus(made: &Path, at: SocketAddr) -> io::Result<Bus> {
    let keys = Keys::parse(&fs::read_to_string(made.join("bus.keys"))?);
    let keys = keys.map_err(io::Error::other)?;
    let word = keys.account_word(&[], clock::wall_ms() / 1_000);
    let (Some(own), Some(word)) = (&keys.own, word) else {
        return Err(io::Error::other("the keys hold no operator"));
    };
    let [operator, system] = [&own.operator, &own.system].map(|pair| pair.public().to_string());
    Bus::start(at, &operator, &system, &word).await
}
