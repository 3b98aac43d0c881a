//! Lines that fall silent, gateways that hang or have lost their Feishu: a card
//! comes all the same, and a tap counts once or not at all.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nod::for_tests::simulator::{OWNER, Press};
use rustix::process::Signal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

use super::rig::{Team, connected};
use super::{said, signal};
use crate::gateway::rig::{Cards, Hook, LIMIT};
use crate::support::until;

const CHECKING: &str = "结果确认中，卡片稍后更新";
const APPROVED: &str = "已批准运行";

/// A way to the bus on which the lines of a moment can fall silent: they stay
/// open, and nothing passes any more. Later ones are good.
struct Wire {
    at: SocketAddr,
    /// Of the lines there are now.
    silent: std::sync::Mutex<Arc<AtomicBool>>,
}

impl Wire {
    async fn to(bus: SocketAddr) -> (Arc<Self>, AbortOnDropHandle<()>) {
        let door = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let wire = Arc::new(Self {
            at: door.local_addr().unwrap(),
            silent: std::sync::Mutex::default(),
        });
        let shared = Arc::clone(&wire);
        let carrying = tokio::spawn(async move {
            while let Ok((near, _)) = door.accept().await {
                let Ok(far) = TcpStream::connect(bus).await else {
                    continue;
                };
                let silent = Arc::clone(&shared.silent.lock().unwrap());
                let (near_in, near_out) = near.into_split();
                let (far_in, far_out) = far.into_split();
                tokio::spawn(carry(near_in, far_out, Arc::clone(&silent)));
                tokio::spawn(carry(far_in, near_out, silent));
            }
        });
        (wire, AbortOnDropHandle::new(carrying))
    }

    fn falls_silent(&self) {
        let mut lines = self.silent.lock().unwrap();
        lines.store(true, Ordering::SeqCst);
        *lines = Arc::default();
    }
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, silent: Arc<AtomicBool>) {
    let mut piece = vec![0; 16 * 1024];
    while let Ok(read) = from.read(&mut piece).await {
        if silent.load(Ordering::SeqCst) {
            // Held open until the test is over.
            std::future::pending::<()>().await;
        }
        if read == 0 || to.write_all(&piece[..read]).await.is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_to_the_bus_that_fell_silent_is_left_and_the_next_tap_counts() {
    let team = Team::start().await;
    let _gateway = team.gateway();
    let (wire, _carrying) = Wire::to(team.meeting.at).await;
    let machine = team.machine_by(OWNER, &format!("nats://{}", wire.at));
    connected(&machine).await;
    let hook = Hook::ask(&machine, "mine", "ls").await;
    let mut cards = Cards::default();
    cards.wait(&team.feishu, 1).await;
    wire.falls_silent();
    let press = Press::action(&cards.of["mine"], "allow");
    let clicked = team.feishu.click(press.clone()).await.unwrap();
    assert_eq!(said(&clicked), CHECKING, "{clicked:?}");
    assert_eq!(machine.decisions().len(), 0, "{}", machine.log());
    // It notices by itself, with nobody's help.
    until("the next tap counts", || async {
        let clicked = team.feishu.click(press.clone()).await.unwrap();
        (said(&clicked) == APPROVED).then_some(())
    })
    .await;
    assert!(hook.decision().await.is_some());
    assert_eq!(machine.decisions()["mine"], 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_hangs_keeps_neither_cards_nor_taps_from_the_other() {
    let team = Team::start().await;
    let hanging = team.gateway();
    let _other = team.gateway();
    assert!(team.feishu.wait_connections(2, LIMIT).await);
    let machine = team.machine(OWNER);
    connected(&machine).await;
    signal(&hanging, Signal::STOP);
    let hook = Hook::ask(&machine, "mine", "ls").await;
    let mut cards = Cards::default();
    cards.wait(&team.feishu, 1).await;
    // Feishu gives some taps to the one that hangs, and says that they failed.
    let press = Press::action(&cards.of["mine"], "allow");
    until("a tap counts", || async {
        let clicked = team.feishu.click(press.clone()).await.unwrap();
        (said(&clicked) == APPROVED).then_some(())
    })
    .await;
    assert!(hook.decision().await.is_some());
    signal(&hanging, Signal::CONT);
    // What waited in it is over, and nothing counts twice.
    let hook = Hook::ask(&machine, "next", "ls").await;
    cards.wait(&team.feishu, 2).await;
    let press = Press::action(&cards.of["next"], "deny");
    assert!(!said(&team.feishu.click(press).await.unwrap()).is_empty());
    assert!(hook.decision().await.is_some());
    assert_eq!(machine.decisions()["mine"], 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_without_feishu_keeps_no_card_from_coming() {
    let team = Team::start().await;
    let _lost = team.gateway_with(&[("FEISHU_DOMAIN", "http://127.0.0.1:1")]);
    let _other = team.gateway();
    assert!(team.feishu.wait_connections(1, LIMIT).await);
    let machine = team.machine(OWNER);
    connected(&machine).await;
    let mut cards = Cards::default();
    for (n, name) in ["one", "two", "three", "four"].into_iter().enumerate() {
        let hook = Hook::ask(&machine, name, "ls").await;
        cards.wait(&team.feishu, n + 1).await;
        let press = Press::action(&cards.of[name], "allow");
        let clicked = team.feishu.click(press).await.unwrap();
        assert_eq!(said(&clicked), APPROVED, "{clicked:?}");
        assert!(hook.decision().await.is_some());
    }
}
