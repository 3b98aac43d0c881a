//! A bus that hangs and a laptop that sleeps: nothing is decided meanwhile,
//! nobody is told otherwise, and all goes on by itself.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures::future::join_all;
use nod::for_tests::simulator::{OWNER, Press};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::rig::{Broker, Meeting, Team, connected, status, woke};
use super::{said, signal};
use crate::gateway::rig::{Cards, Hook, LIMIT};
use crate::support::until;

const APPROVED: &str = "已批准运行";
const DENIED: &str = "已拒绝运行";
const CHECKING: &str = "结果确认中，卡片稍后更新";
const TOO_LATE: &str = "送达过晚";
/// Three pings of five seconds, and some.
const PING_LIMIT: Duration = Duration::from_secs(25);

/// A bus that can hang: a real server is stopped; before the small one, which
/// is a part of this process, stands a door through which nothing passes.
enum Hanging {
    Server(Pid, String),
    Door {
        at: SocketAddr,
        open: watch::Sender<bool>,
        _carrying: AbortOnDropHandle<()>,
    },
}

impl Hanging {
    async fn of(meeting: &Meeting) -> Self {
        if let Broker::Real(child) = &meeting.broker {
            let pid = Pid::from_raw(child.id().cast_signed()).unwrap();
            return Self::Server(pid, meeting.url().to_string());
        }
        let (door, bus) = (TcpListener::bind("127.0.0.1:0").await.unwrap(), meeting.at);
        let at = door.local_addr().unwrap();
        let (open, is_open) = watch::channel(true);
        let carrying = tokio::spawn(async move {
            while let Ok((near, _)) = door.accept().await {
                tokio::spawn(through(near, bus, is_open.clone()));
            }
        });
        Self::Door {
            at,
            open,
            _carrying: AbortOnDropHandle::new(carrying),
        }
    }

    fn url(&self) -> String {
        match self {
            Self::Server(_, url) => url.clone(),
            Self::Door { at, .. } => format!("nats://{at}"),
        }
    }

    fn hangs(&self) {
        match self {
            Self::Server(pid, _) => kill_process(*pid, Signal::STOP).unwrap(),
            Self::Door { open, .. } => drop(open.send_replace(false)),
        }
    }

    fn goes_on(&self) {
        match self {
            Self::Server(pid, _) => kill_process(*pid, Signal::CONT).unwrap(),
            Self::Door { open, .. } => drop(open.send_replace(true)),
        }
    }
}

/// As with a stopped process, what was said meanwhile waits.
async fn through(near: TcpStream, bus: SocketAddr, mut is_open: watch::Receiver<bool>) {
    let _ = is_open.wait_for(|open| *open).await;
    let Ok(far) = TcpStream::connect(bus).await else {
        return;
    };
    let (near_in, near_out) = near.into_split();
    let (far_in, far_out) = far.into_split();
    let up = carry(near_in, far_out, is_open.clone());
    tokio::join!(up, carry(far_in, near_out, is_open));
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut open: watch::Receiver<bool>) {
    let mut piece = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut piece).await {
        let _ = open.wait_for(|open| *open).await;
        if to.write_all(&piece[..read]).await.is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bus_that_hangs_is_noticed_harms_no_hook_and_brings_the_card_when_it_goes_on() {
    let team = Team::start().await;
    let bus = Hanging::of(&team.meeting).await;
    let gateway = team.gateway_with(&[("NOD_BUS_URL", &bus.url())]);
    let machine = team.machine_by(OWNER, &bus.url());
    connected(&machine).await;
    let before = Hook::ask(&machine, "before", "ls").await;
    let mut cards = Cards::default();
    cards.wait(&team.feishu, 1).await;
    bus.hangs();
    let since = Instant::now();
    // It is taken at once and waits beside the terminal's dialog.
    let meanwhile = Hook::ask(&machine, "meanwhile", "ls").await;
    assert!(since.elapsed() < PING_LIMIT / 5, "{:?}", since.elapsed());
    let press = Press::action(&cards.of["before"], "allow");
    let clicked = team.feishu.click(press.clone()).await.unwrap();
    assert_eq!(said(&clicked), CHECKING, "{clicked:?}");
    until("the machine says that there is no bus", || async {
        let report = status(&machine).await?;
        let is_gone = report["connection"]["state"] != "connected";
        (is_gone && report["bus"]["server"].is_null()).then_some(())
    })
    .await;
    assert!(since.elapsed() < PING_LIMIT, "{:?}", since.elapsed());
    let report = status(&machine).await.unwrap();
    assert_eq!(report["pending"], 2, "both wait: {report}");
    let (_, page) = machine.nod(&["status"]);
    assert!(page.contains(", not connected\n"), "{page}");
    assert!(!page.contains("gateways: "), "{page}");
    let (code, found) = machine.nod(&["doctor"]);
    assert_eq!(code, Some(1), "{found}");
    assert!(found.contains("is of no use now"), "{found}");
    bus.goes_on();
    cards.wait(&team.feishu, 2).await;
    for (hook, name) in [(before, "before"), (meanwhile, "meanwhile")] {
        let press = Press::action(&cards.of[name], "allow");
        until("a tap decides", || async {
            let clicked = team.feishu.click(press.clone()).await.unwrap();
            (said(&clicked) == APPROVED).then_some(())
        })
        .await;
        assert!(hook.decision().await.is_some());
    }
    connected(&machine).await;
    let decisions = machine.decisions();
    assert_eq!((decisions["before"], decisions["meanwhile"]), (1, 1));
    let all = team.feishu.messages();
    let sent = all.iter().filter(|one| one.card.is_some()).count();
    assert_eq!(sent, 2, "one card for each: {}", gateway.log());
}

/// Seconds that the laptop sleeps; `NOD_TEST_SLEEP` makes them more.
fn asleep_for() -> Duration {
    let text = std::env::var("NOD_TEST_SLEEP").unwrap_or_default();
    Duration::from_secs(text.parse().unwrap_or(4))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn taps_while_a_laptop_sleeps_decide_nothing_and_the_person_is_told_once() {
    let team = Team::start().await;
    let _gateways = [team.gateway(), team.gateway()];
    assert!(team.feishu.wait_connections(2, LIMIT).await);
    let machine = team.machine(OWNER);
    connected(&machine).await;
    let hook = Hook::ask(&machine, "mine", "rm -r build").await;
    let mut cards = Cards::default();
    cards.wait(&team.feishu, 1).await;
    let card = &cards.of["mine"];
    let tap = |action| team.feishu.click(Press::action(card, action));
    signal(&machine, Signal::STOP);
    let taps = ["allow", "deny", "allow", "allow"].map(tap);
    for clicked in join_all(taps).await {
        let clicked = clicked.unwrap();
        assert_eq!(said(&clicked), CHECKING, "{clicked:?}");
    }
    tokio::time::sleep(asleep_for()).await;
    signal(&machine, Signal::CONT);
    let told = async || {
        let all = team.feishu.messages();
        all.iter()
            .filter(|one| one.content.contains(TOO_LATE))
            .count()
    };
    until("the person is told", || async {
        (told().await > 0).then_some(())
    })
    .await;
    assert_eq!(machine.decisions().len(), 0, "{}", machine.log());
    let asks = team.feishu.message(card).unwrap().card.unwrap().to_string();
    assert!(asks.contains("\"allow\""), "the card still asks: {asks}");
    woke(&machine).await;
    until("a tap in time decides", || async {
        (said(&tap("deny").await.unwrap()) == DENIED).then_some(())
    })
    .await;
    let decision = hook.decision().await.unwrap().to_string();
    assert!(decision.contains("\"deny\""), "{decision}");
    assert_eq!(machine.decisions()["mine"], 1);
    assert_eq!(told().await, 1, "once for one card");
}
