//! A wall clock that is an hour off, on a machine or on its gateway, at the
//! start and by a jump: taps decide, late ones do not, passes count, and the
//! doctor names the clock.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::process::Command;

use futures::future::join_all;
use nod::for_tests::simulator::{OWNER, Press};
use rustix::process::Signal;

use super::join::{self, Joining};
use super::rig::{Team, connected, serves, woke};
use super::{said, signal};
use crate::gateway::rig::{Cards, Hook, Machine};
use crate::support::until;

const APPROVED: &str = "已批准运行";
const CHECKING: &str = "结果确认中，卡片稍后更新";
const TOO_LATE: &str = "送达过晚";
const AN_HOUR: i64 = 3_600_000;

/// A wall clock of a process's own, as the fault bench has it.
struct WallClock {
    dir: tempfile::TempDir,
}

impl WallClock {
    /// `None` where there is no compiler to make one.
    fn off_by(ms: i64) -> Option<Self> {
        let clock = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        clock.set(ms);
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/faults/clock.c");
        let built = Command::new("cc")
            .args(["-O1", "-shared", "-fPIC", "-o"])
            .arg(clock.dir.path().join("clock.so"))
            .args([source, "-ldl"])
            .status();
        let is_built = built.is_ok_and(|built| built.success());
        (cfg!(target_os = "linux") && is_built).then_some(clock)
    }

    fn set(&self, ms: i64) {
        let mut file = File::options();
        let file = file.create(true).truncate(false).write(true);
        let file = file.open(self.dir.path().join("clock")).unwrap();
        file.write_all_at(&ms.to_ne_bytes(), 0).unwrap();
    }

    fn settings(&self) -> [(&'static str, String); 2] {
        let place = |name| self.dir.path().join(name).to_string_lossy().into_owned();
        [
            ("LD_PRELOAD", place("clock.so")),
            ("FAULTS_CLOCK", place("clock")),
        ]
    }
}

/// Whose clock is wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Whose {
    Machine,
    Gateway,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_hour_on_a_machines_or_a_gateways_clock_changes_nothing_but_the_doctors_word() {
    let cases = [
        (Whose::Machine, AN_HOUR),
        (Whose::Machine, -AN_HOUR),
        (Whose::Gateway, AN_HOUR),
        (Whose::Gateway, -AN_HOUR),
    ];
    join_all(cases.map(|(whose, off)| an_hour(whose, off))).await;
}

async fn an_hour(whose: Whose, off: i64) {
    let Some(clock) = WallClock::off_by(off) else {
        return;
    };
    let settings = clock.settings();
    let settings = settings
        .each_ref()
        .map(|(name, text)| (*name, text.as_str()));
    let own = |role| if role == whose { &settings[..] } else { &[] };
    let team = Team::start().await;
    // The machine asks before its gateway has heard what time it is at Feishu.
    let machine = team.machine_with(OWNER, own(Whose::Machine));
    let gateway = team.gateway_with(own(Whose::Gateway));
    connected(&machine).await;
    let mut cards = Cards::default();
    let hook = Hook::ask(&machine, "first", "ls").await;
    cards.wait(&team.feishu, 1).await;
    decides(&team, &machine, &cards.of["first"]).await;
    assert!(hook.decision().await.is_some());
    the_doctor_tells(&machine, &gateway, whose, off);
    // The clock jumps under the running processes.
    clock.set(-off);
    let hook = Hook::ask(&machine, "second", "ls").await;
    cards.wait(&team.feishu, 2).await;
    decides(&team, &machine, &cards.of["second"]).await;
    assert!(hook.decision().await.is_some());
    comes_late(&team, &machine, &mut cards).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_whose_clock_is_an_hour_off_joins_by_a_line() {
    for off in [AN_HOUR, -AN_HOUR] {
        let Some(clock) = WallClock::off_by(off) else {
            return;
        };
        let team = Team::start().await;
        let gateway = team.gateway();
        serves(&gateway).await;
        let line = join::line(&team).await;
        let settings = clock.settings();
        let settings = settings.each_ref();
        let settings = settings.map(|(name, text)| (*name, text.as_str()));
        let home = tempfile::tempdir().unwrap();
        let mut joining = Joining::start_in(home, &line, &settings);
        let card = join::card(&team, &joining.fingerprint().await).await;
        let press = Press::element(&card.message_id, join::LET_IN);
        team.feishu.click(press).await.unwrap();
        let (code, told) = joining.ended().await;
        assert_eq!(code, Some(0), "{told}");
    }
}

async fn decides(team: &Team, machine: &Machine, card: &str) {
    let press = Press::action(card, "allow");
    let clicked = team.feishu.click(press).await.unwrap();
    assert_eq!(said(&clicked), APPROVED, "{}", machine.log());
}

async fn comes_late(team: &Team, machine: &Machine, cards: &mut Cards) {
    let hook = Hook::ask(machine, "late", "ls").await;
    cards.wait(&team.feishu, 3).await;
    let press = Press::action(&cards.of["late"], "allow");
    signal(machine, Signal::STOP);
    let clicked = team.feishu.click(press.clone()).await.unwrap();
    assert_eq!(said(&clicked), CHECKING);
    // Its time is over by more than two clocks may differ.
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    signal(machine, Signal::CONT);
    until("the person is told that it came too late", || async {
        let all = team.feishu.messages();
        let told = all.iter().any(|one| one.content.contains(TOO_LATE));
        told.then_some(())
    })
    .await;
    assert_eq!(machine.decisions().get("late"), None, "{}", machine.log());
    woke(machine).await;
    until("a tap in time decides", || async {
        let clicked = team.feishu.click(press.clone()).await.unwrap();
        (said(&clicked) == APPROVED).then_some(())
    })
    .await;
    assert!(hook.decision().await.is_some());
    assert_eq!(machine.decisions()["late"], 1);
}

fn the_doctor_tells(machine: &Machine, gateway: &Machine, whose: Whose, off: i64) {
    let (_, of_machine) = machine.nod(&["doctor"]);
    assert!(!of_machine.contains("pass is over"), "{of_machine}");
    let (_, of_gateway) = gateway.nod(&["doctor"]);
    let way = if off > 0 { "s ahead" } else { "s behind" };
    let (wrong, right) = match whose {
        Whose::Machine => (of_machine, of_gateway),
        Whose::Gateway => (of_gateway, of_machine),
    };
    for needed in ["this machine's clock is", way, "set its time automatically"] {
        assert!(wrong.contains(needed), "{needed}: {wrong}");
    }
    let told = "this machine's clock is right";
    assert!(right.contains(told), "{right}");
}
