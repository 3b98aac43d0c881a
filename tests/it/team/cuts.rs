//! A line to the bus that is reset in the middle of something: a tap, its
//! answer, a call, its answer, on the machine's side and on the gateway's.
//! Nothing is lost, and nothing is done twice.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use nod::for_tests::simulator::{OWNER, Press};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

use super::rig::{Team, connected};
use super::said;
use crate::gateway::rig::{Cards, Hook, LIMIT, Machine};
use crate::support::until;

const CHECKING: &str = "结果确认中，卡片稍后更新";
const APPROVED: &str = "已批准运行";

const LOST: &str = "the bus was lost: ";
/// Of what is looked for.
const LONGEST: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    /// To the bus.
    Up,
    Down,
}

/// Where a line is reset: in the middle of what says this, once something else
/// was said.
#[derive(Debug, Clone, Copy)]
struct Cut {
    way: Way,
    inside: &'static str,
    after: Option<(Way, &'static str)>,
}

impl Cut {
    fn inside(way: Way, inside: &'static str) -> Self {
        Self {
            way,
            inside,
            after: None,
        }
    }

    fn after(self, way: Way, said: &'static str) -> Self {
        Self {
            after: Some((way, said)),
            ..self
        }
    }
}

/// A way to the bus that can be cut.
struct Wire {
    at: SocketAddr,
    plan: Arc<Mutex<Option<Cut>>>,
    _carrying: AbortOnDropHandle<()>,
}

impl Wire {
    async fn to(bus: SocketAddr) -> Self {
        let door = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = door.local_addr().unwrap();
        let plan = Arc::new(Mutex::new(None));
        let shared = Arc::clone(&plan);
        let carrying = tokio::spawn(async move {
            while let Ok((near, _)) = door.accept().await {
                if let Ok(far) = TcpStream::connect(bus).await {
                    tokio::spawn(carry(near, far, Arc::clone(&shared)));
                }
            }
        });
        Self {
            at,
            plan,
            _carrying: AbortOnDropHandle::new(carrying),
        }
    }

    fn url(&self) -> String {
        format!("nats://{}", self.at)
    }

    fn cuts(&self, cut: Cut) {
        *self.plan() = Some(cut);
    }

    /// Waits until whoever lost the line so many times by now has it again.
    async fn is_back(&self, whose: &Machine, lost: usize) {
        until("the line is cut", || async {
            self.plan().is_none().then_some(())
        })
        .await;
        until("the line is back", || async {
            let log = whose.log();
            let (before, rest) = log.rsplit_once(LOST)?;
            let times = before.matches(LOST).count() + 1;
            (times == lost && rest.contains("connected to the bus")).then_some(())
        })
        .await;
    }

    fn plan(&self) -> std::sync::MutexGuard<'_, Option<Cut>> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How much of a piece still passes before the line is cut; all of it where it
/// is not. What is looked for may begin in what was said `before`.
fn passes(plan: &Mutex<Option<Cut>>, way: Way, before: &[u8], piece: &[u8]) -> Option<usize> {
    let said = [before, piece].concat();
    let find = |text: &str| {
        let mut windows = said.windows(text.len());
        let at = windows.position(|window| window == text.as_bytes())?;
        let end = at + text.len();
        (end > before.len()).then(|| end - before.len())
    };
    let mut plan = plan.lock().unwrap_or_else(PoisonError::into_inner);
    let cut = plan.as_mut()?;
    if let Some((its_way, said)) = cut.after {
        if its_way == way && find(said).is_some() {
            cut.after = None;
        }
        return None;
    }
    let end = find(cut.inside).filter(|_| cut.way == way)?;
    *plan = None;
    Some(end + (piece.len() - end) / 2)
}

async fn carry(mut near: TcpStream, mut far: TcpStream, plan: Arc<Mutex<Option<Cut>>>) {
    let (mut up, mut down) = (vec![0; 256 * 1024], vec![0; 256 * 1024]);
    let (mut said_up, mut said_down) = (Vec::new(), Vec::new());
    loop {
        let (way, read) = tokio::select! {
            read = near.read(&mut up) => (Way::Up, read),
            read = far.read(&mut down) => (Way::Down, read),
        };
        let Ok(read @ 1..) = read else {
            return;
        };
        let (piece, before, to) = match way {
            Way::Up => (&up[..read], &mut said_up, &mut far),
            Way::Down => (&down[..read], &mut said_down, &mut near),
        };
        let cut = passes(&plan, way, before, piece);
        *before = piece[read.saturating_sub(LONGEST)..].to_vec();
        let sent = to.write_all(&piece[..cut.unwrap_or(read)]).await;
        if cut.is_some() {
            near.set_zero_linger().unwrap();
            far.set_zero_linger().unwrap();
        }
        if sent.is_err() || cut.is_some() {
            return;
        }
    }
}

/// What is cut, in the order of a request's life.
struct Cuts {
    call: Cut,
    answer_to_call: Cut,
    tap: Cut,
    answer_to_tap: Cut,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_of_a_machines_line_loses_nothing_and_doubles_nothing() {
    let team = Team::start().await;
    let wire = Wire::to(team.meeting.at).await;
    let _gateway = team.gateway();
    let machine = team.machine_by(OWNER, &wire.url());
    let cuts = Cuts {
        call: Cut::inside(Way::Up, ".call "),
        answer_to_call: Cut::inside(Way::Down, "MSG _IN.").after(Way::Up, ".call "),
        tap: Cut::inside(Way::Down, ".tap "),
        answer_to_tap: Cut::inside(Way::Up, "PUB _IN.gw"),
    };
    is_reset(&team, &machine, (&wire, &machine), cuts).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_of_a_gateways_line_loses_nothing_and_doubles_nothing() {
    let team = Team::start().await;
    let wire = Wire::to(team.meeting.at).await;
    let gateway = team.gateway_with(&[("NOD_BUS_URL", &wire.url())]);
    let machine = team.machine(OWNER);
    let cuts = Cuts {
        call: Cut::inside(Way::Down, ".call "),
        answer_to_call: Cut::inside(Way::Up, "PUB _IN.").after(Way::Down, ".call "),
        tap: Cut::inside(Way::Up, "PUB nod1.m."),
        answer_to_tap: Cut::inside(Way::Down, "MSG _IN.gw"),
    };
    is_reset(&team, &machine, (&wire, &gateway), cuts).await;
}

async fn is_reset(team: &Team, machine: &Machine, (wire, whose): (&Wire, &Machine), cuts: Cuts) {
    assert!(team.feishu.wait_connections(1, LIMIT).await);
    connected(machine).await;
    let mut cards = Cards::default();
    wire.cuts(cuts.call);
    let first = Hook::ask(machine, "first", "ls").await;
    wire.is_back(whose, 1).await;
    cards.wait(&team.feishu, 1).await;
    connected(machine).await;
    wire.cuts(cuts.answer_to_call);
    let second = Hook::ask(machine, "second", "ls").await;
    wire.is_back(whose, 2).await;
    cards.wait(&team.feishu, 2).await;
    connected(machine).await;
    let press = Press::action(&cards.of["first"], "allow");
    wire.cuts(cuts.tap);
    let clicked = team.feishu.click(press).await.unwrap();
    wire.is_back(whose, 3).await;
    assert_eq!(said(&clicked), CHECKING, "{clicked:?}");
    assert_eq!(machine.decisions().len(), 0, "{}", machine.log());
    // A card whose name was lost with the line is named by another try.
    for (name, hook) in [("first", first), ("second", second)] {
        let press = Press::action(&cards.of[name], "allow");
        until("the next tap counts", || async {
            let clicked = team.feishu.click(press.clone()).await.unwrap();
            (said(&clicked) == APPROVED).then_some(())
        })
        .await;
        assert!(hook.decision().await.is_some());
    }
    let third = Hook::ask(machine, "third", "ls").await;
    cards.wait(&team.feishu, 3).await;
    // The machine has decided, and nobody hears of it but by the card.
    let press = Press::action(&cards.of["third"], "allow");
    wire.cuts(cuts.answer_to_tap);
    let clicked = team.feishu.click(press).await.unwrap();
    wire.is_back(whose, 4).await;
    assert_eq!(said(&clicked), CHECKING, "{clicked:?}");
    assert!(third.decision().await.is_some());
    for message in cards.of.values() {
        until("the card is decided", || async {
            let card = team.feishu.message(message)?.card?.to_string();
            (!card.contains("\"allow\"")).then_some(())
        })
        .await;
    }
    let decisions = machine.decisions();
    for name in ["first", "second", "third"] {
        assert_eq!(decisions[name], 1, "{name}");
    }
    let all = team.feishu.messages();
    let sent = all.iter().filter(|one| one.card.is_some()).count();
    assert_eq!(sent, 3, "one card for each: {all:?}");
}
