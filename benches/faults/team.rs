//! The daemon under test as a machine of a team: a bus and two gateways between
//! it and Feishu, which die and come back like everything else.

use std::sync::Mutex;
use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use rustix::process::Signal;
use tokio::time::sleep;

use crate::chaos::{Troubles, some_taps};
use crate::meeting::Meeting;
use crate::people::Crowd;
use crate::stage::{Daemon, Home, REQUEST_TIMEOUT};

const GATEWAYS: usize = 2;

pub(crate) struct Team {
    bus: tokio::sync::Mutex<Meeting>,
    gateways: Vec<(Home, Daemon)>,
}

impl Team {
    /// A team at that Feishu, and the home of its one machine.
    pub(crate) async fn start(feishu: &str) -> anyhow::Result<(Self, Home)> {
        let mut bus = Meeting::new()?;
        bus.start().await?;
        println!("a team: {GATEWAYS} gateways, {}", bus.name());
        let mut gateways = Vec::new();
        for _ in 0..GATEWAYS {
            let home = Home::gateway(feishu, &bus.url(), &bus.keys())?;
            let gateway = Daemon::none();
            gateway.start(&home)?;
            gateways.push((home, gateway));
        }
        let home = Home::machine(&bus.member()?.0, REQUEST_TIMEOUT)?;
        let bus = tokio::sync::Mutex::new(bus);
        Ok((Self { bus, gateways }, home))
    }

    /// Kills the bus or a gateway every few seconds and starts it again.
    pub(crate) async fn reaper(&self, crowd: &Crowd, mut chance: StdRng, struck: &Mutex<Troubles>) {
        loop {
            sleep(Duration::from_millis(chance.random_range(2_000..10_000))).await;
            some_taps(crowd).await;
            let away = Duration::from_millis(chance.random_range(0..1_000));
            let (home, gateway) = &self.gateways[chance.random_range(0..GATEWAYS)];
            let name = if chance.random_bool(0.3) {
                let mut bus = self.bus.lock().await;
                bus.stop();
                sleep(away).await;
                if bus.start().await.is_err() {
                    return;
                }
                "the bus killed"
            } else {
                gateway.end(Signal::KILL).await;
                sleep(away).await;
                if gateway.start(home).is_err() {
                    return;
                }
                "a gateway killed"
            };
            if let Ok(mut struck) = struck.lock() {
                *struck.entry(name).or_default() += 1;
            }
        }
    }

    /// Everything that was interrupted while it was away is there again.
    pub(crate) async fn mend(&self) -> anyhow::Result<()> {
        let mut bus = self.bus.lock().await;
        bus.stop();
        bus.start().await?;
        for (home, gateway) in &self.gateways {
            if gateway.pid().is_none() {
                gateway.start(home)?;
            }
        }
        Ok(())
    }
}
