//! What goes wrong, and when: drawn from the seed, so that the same seed plans
//! the same troubles again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use nod::for_tests::simulator::{Armed, Fault, FragmentOrder, Fragments};
use rand::RngExt as _;
use rand::rngs::StdRng;
use rustix::process::Signal;
use tokio::time::sleep;

use crate::people::Crowd;
use crate::proxy::{End, Trouble, Way};
use crate::stage::Daemon;

const MOST_SHIFT: i64 = 20 * 60 * 1_000;
const SMALL_SHIFT: i64 = 10_000;

/// Taps between two troubles, and how long they are waited for.
const BETWEEN: u64 = 4;
const AT_MOST: Duration = Duration::from_secs(2);

/// How often each trouble struck.
pub(crate) type Troubles = BTreeMap<&'static str, u64>;

/// Makes trouble for the connections until dropped.
pub(crate) async fn storm(crowd: &Crowd, mut chance: StdRng, struck: &std::sync::Mutex<Troubles>) {
    loop {
        sleep(Duration::from_millis(chance.random_range(60..700))).await;
        some_taps(crowd).await;
        let name = strike(crowd, &mut chance);
        if let Ok(mut struck) = struck.lock() {
            *struck.entry(name).or_default() += 1;
        }
    }
}

/// On a machine with little time to spare, trouble must not come so thick that
/// nobody gets to tap.
pub(crate) async fn some_taps(crowd: &Crowd) {
    let enough = crowd.taps() + BETWEEN;
    let tapped = async {
        while crowd.taps() < enough {
            sleep(Duration::from_millis(20)).await;
        }
    };
    let _ = tokio::time::timeout(AT_MOST, tapped).await;
}

fn strike(crowd: &Crowd, chance: &mut StdRng) -> &'static str {
    let end = if chance.random_bool(0.7) {
        End::Reset
    } else {
        End::Fin
    };
    let way = if chance.random_bool(0.5) {
        Way::Up
    } else {
        Way::Down
    };
    let wire = if chance.random_bool(0.7) {
        &crowd.long_connection
    } else {
        &crowd.calls
    };
    let lasts = Duration::from_millis(chance.random_range(200..1500));
    let times = chance.random_range(1..12);
    match chance.random_range(0..100) {
        0..6 => {
            wire.trouble(Trouble::Cut(end));
            "cut between frames"
        }
        6..18 => {
            let ahead = chance.random_range(0..6000);
            wire.trouble(Trouble::CutAhead(way, ahead, end));
            "cut inside a frame"
        }
        18..21 => {
            let lasts = Duration::from_millis(chance.random_range(500..7000));
            wire.trouble(Trouble::Silence(lasts));
            "half-open"
        }
        21..31 => {
            let each = Duration::from_millis(chance.random_range(1..150));
            wire.trouble(Trouble::Delay { each, lasts });
            "delay"
        }
        31..43 => {
            wire.trouble(Trouble::Slice(chance.random_range(100..8000)));
            "one byte at a time"
        }
        43..48 => {
            wire.trouble(Trouble::Narrow(lasts));
            "little bandwidth"
        }
        48..54 => {
            let ahead = chance.random_range(0..3000);
            crowd.long_connection.trouble(Trouble::Alter(ahead));
            "an altered byte"
        }
        54..100 => feishu(crowd, chance, times),
        _ => "nothing",
    }
}

/// Trouble of Feishu's own making.
fn feishu(crowd: &Crowd, chance: &mut StdRng, times: u32) -> &'static str {
    let messages = || "POST /open-apis/im/v1/messages".to_owned();
    let (name, fault) = match chance.random_range(0..12) {
        0..3 => ("an event twice", Fault::Duplicate),
        3..5 => {
            let order = [
                FragmentOrder::InOrder,
                FragmentOrder::Reversed,
                FragmentOrder::Shuffled,
            ];
            let fragments = Fragments {
                count: chance.random_range(2..6),
                order: order[chance.random_range(0..3)],
                flaw: None,
            };
            ("an event in parts", Fault::Fragments(fragments))
        }
        5 => ("an event never sent", Fault::SwallowEvents),
        6 => ("a token expired", Fault::ExpiredToken),
        7 => {
            let (path, reset) = (messages(), 1);
            ("a rate limit", Fault::RateLimit { path, reset })
        }
        8 => {
            let fault = Fault::RestHttp {
                path: messages(),
                status: 503,
                body: String::new(),
            };
            ("a call refused with 503", fault)
        }
        9 => (
            "a card sent, its answer lost",
            Fault::SendCreatedButReplyLost,
        ),
        10 => {
            let reason = "busy".to_owned();
            ("a close frame", Fault::Close { code: 1011, reason })
        }
        _ => {
            let hex = "ffff00".to_owned();
            ("garbage", Fault::Garbage { hex })
        }
    };
    let once = matches!(fault, Fault::Close { .. } | Fault::Garbage { .. });
    let times = if once { 1 } else { times };
    match crowd.sim.set_fault(Armed::times(fault, times)) {
        Ok(()) => name,
        Err(_) => "too many faults at once",
    }
}

/// Moves nod's wall clock every few seconds, back and forth. Not by an hour: a
/// card whose name is unknown that long can't be found any more.
pub(crate) async fn clocks(
    crowd: Arc<Crowd>,
    mut chance: StdRng,
    struck: &std::sync::Mutex<Troubles>,
) {
    loop {
        sleep(Duration::from_millis(chance.random_range(2_000..15_000))).await;
        let most = if chance.random_bool(0.3) {
            MOST_SHIFT
        } else {
            SMALL_SHIFT
        };
        let shift = chance.random_range(-most..most);
        if crowd.home.set_clock(shift).is_ok()
            && let Ok(mut struck) = struck.lock()
        {
            *struck.entry("the clock jumped").or_default() += 1;
        }
    }
}

/// Kills the daemon every few seconds and starts it again.
pub(crate) async fn reaper(
    crowd: Arc<Crowd>,
    daemon: Arc<Daemon>,
    mut chance: StdRng,
    struck: &std::sync::Mutex<Troubles>,
) {
    loop {
        sleep(Duration::from_millis(chance.random_range(1500..9000))).await;
        some_taps(&crowd).await;
        let kindly = chance.random_bool(0.15);
        let (name, signal) = if kindly {
            ("the daemon stopped", Signal::TERM)
        } else {
            ("the daemon killed", Signal::KILL)
        };
        daemon.end(signal).await;
        if let Ok(mut struck) = struck.lock() {
            *struck.entry(name).or_default() += 1;
        }
        sleep(Duration::from_millis(chance.random_range(0..300))).await;
        if daemon.start(&crowd.home).is_err() {
            return;
        }
    }
}
