//! A gateway that has no Feishu leaves what machines ask for to one that has; a
//! gateway that is the only one goes on trying.

use nod::for_tests::simulator::{Armed, Fault, OWNER, Press};

use super::rig::{self, Team, connected};
use super::said;
use crate::gateway::rig::{Cards, Hook, LIMIT, Machine};
use crate::support::until;

const LOUD: (&str, &str) = ("NOD_LOG", "debug");

/// How many calls of machines a gateway has made, or tried to make.
fn calls(gateway: &Machine) -> usize {
    let log = gateway.log();
    let calls = log.lines().filter(|line| line.contains("a call"));
    calls.filter(|line| line.contains("kind=")).count()
}

/// Some requests, each with its card and its tap.
async fn work(team: &Team, machine: &Machine, cards: &mut Cards, names: [&str; 4]) {
    for name in names {
        let hook = Hook::ask(machine, name, "ls").await;
        let count = cards.of.len() + 1;
        cards.wait(&team.feishu, count).await;
        let press = Press::action(&cards.of[name], "allow");
        let clicked = team.feishu.click(press).await.unwrap();
        assert_eq!(said(&clicked), "已批准运行", "{clicked:?}");
        assert!(hook.decision().await.is_some());
    }
}

async fn knows_gateways(machine: &Machine, all: usize, up: usize) {
    until("the machine knows the gateways", || async {
        let report = rig::status(machine).await?;
        let bus = &report["bus"];
        (bus["gateways"] == all && bus["gateways_up"] == up).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_never_had_feishu_is_asked_for_nothing() {
    let team = Team::start().await;
    let lost = team.gateway_with(&[("FEISHU_DOMAIN", "http://127.0.0.1:1"), LOUD]);
    let other = team.gateway_with(&[LOUD]);
    assert!(team.feishu.wait_connections(1, LIMIT).await);
    let machine = team.machine(OWNER);
    connected(&machine).await;
    knows_gateways(&machine, 2, 1).await;
    let mut cards = Cards::default();
    work(&team, &machine, &mut cards, ["one", "two", "three", "four"]).await;
    assert_eq!(calls(&lost), 0, "{}", lost.log());
    assert!(calls(&other) >= 4, "{}", other.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_lost_feishu_is_asked_for_nothing_until_it_is_back() {
    let team = Team::start().await;
    let losing = team.gateway_with(&[LOUD]);
    assert!(team.feishu.wait_connections(1, LIMIT).await);
    let first = team.feishu.connections()[0].id;
    let _other = team.gateway();
    assert!(team.feishu.wait_connections(2, LIMIT).await);
    let machine = team.machine(OWNER);
    connected(&machine).await;
    knows_gateways(&machine, 2, 2).await;
    let mut cards = Cards::default();
    work(&team, &machine, &mut cards, ["one", "two", "three", "four"]).await;
    // Its next dials are refused as well.
    let refused = Fault::DiscoveryHttp {
        status: 503,
        body: String::new(),
    };
    team.feishu.set_fault(Armed::always(refused)).unwrap();
    let reset = Armed::once(Fault::Reset).on(first);
    team.feishu.set_fault(reset).unwrap();
    knows_gateways(&machine, 2, 1).await;
    until("it leaves the work to the other", || async {
        losing.log().contains("takes no turn").then_some(())
    })
    .await;
    let before = calls(&losing);
    let names = ["five", "six", "seven", "eight"];
    work(&team, &machine, &mut cards, names).await;
    assert_eq!(calls(&losing), before, "{}", losing.log());
    team.feishu.clear_faults();
    knows_gateways(&machine, 2, 2).await;
    let turns = "takes its turn";
    until("it takes its turn again", || async {
        let log = losing.log();
        let taken = log.lines().filter(|line| line.contains(turns)).count();
        (taken == 2).then_some(())
    })
    .await;
}

/// Cards go another way than taps, and may still get through.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_only_gateway_makes_calls_while_its_long_connection_is_away() {
    let team = Team::start().await;
    let _gateway = team.gateway();
    assert!(team.feishu.wait_connections(1, LIMIT).await);
    let machine = team.machine(OWNER);
    connected(&machine).await;
    let refused = Fault::DiscoveryHttp {
        status: 503,
        body: String::new(),
    };
    team.feishu.set_fault(Armed::always(refused)).unwrap();
    team.feishu.set_fault(Armed::once(Fault::Reset)).unwrap();
    knows_gateways(&machine, 1, 0).await;
    let hook = Hook::ask(&machine, "mine", "ls").await;
    let mut cards = Cards::default();
    cards.wait(&team.feishu, 1).await;
    team.feishu.clear_faults();
    assert!(team.feishu.wait_connections(1, LIMIT).await);
    let press = Press::action(&cards.of["mine"], "allow");
    assert_eq!(said(&team.feishu.click(press).await.unwrap()), "已批准运行");
    assert!(hook.decision().await.is_some());
}
