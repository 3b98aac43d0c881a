//! A machine that is forgotten: cut off and let in no more, by an administrator
//! or by its owner's tap, and by nobody else's.

use nod::for_tests::bus::membership::Membership;
use nod::for_tests::simulator::{ChatText, Clicked, OWNER, Press, STRANGER};
use serde_json::{Value, json};

use super::rig::{Team, connected};
use super::said;
use crate::gateway::rig::{Cards, Hook, LIMIT, Machine, feishu_ahead};
use crate::support::until;

pub(super) const LISTED: &str = "我的机器";

/// A machine's place on the bus and its key.
fn member(machine: &Machine) -> Membership {
    let file = machine.dir.path().join("state/bus.pass");
    Membership::parse(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn id(machine: &Machine) -> String {
    member(machine).place().machine.to_string()
}

async fn refused(machine: &Machine) {
    until("the machine is refused", || async {
        machine
            .log()
            .contains("does not accept this pass")
            .then_some(())
    })
    .await;
}

/// The newest card with this title.
fn newest(team: &Team, title: &str) -> Option<(String, Value)> {
    let all = team.feishu.messages();
    let titled = |card: &Value| card["header"]["title"]["content"] == title;
    let found = all
        .into_iter()
        .rev()
        .find(|one| one.card.as_ref().is_some_and(titled))?;
    Some((found.message_id, found.card?))
}

/// Writes an order until its card shows so many machines.
pub(super) async fn listed(team: &Team, order: &str, title: &str, count: usize) -> (String, Value) {
    until("the machines are listed", || async {
        let before = team.feishu.message_count();
        team.feishu.push_text(&ChatText::new(order)).await.unwrap();
        until("the order is answered", || async {
            (team.feishu.message_count() > before + 1).then_some(())
        })
        .await;
        let (message, card) = newest(team, title)?;
        let buttons = card.to_string().matches("\"team\":\"forget\"").count();
        (buttons == count).then_some((message, card))
    })
    .await
}

fn button(card: &Value, of: &str) -> Option<(String, Value)> {
    let elements = card["body"]["elements"].as_array()?;
    let at = elements.iter().position(|one| {
        one["text"]["content"]
            .as_str()
            .is_some_and(|t| t.contains(of))
    })?;
    let button = elements.get(at + 1)?;
    let element = button["element_id"].as_str()?.to_owned();
    Some((element, button["behaviors"][0]["value"].clone()))
}

async fn tap(team: &Team, message: &str, card: &Value, of: &str) -> Clicked {
    let (element, _) = button(card, of).expect("a button");
    let press = Press::element(message, &element);
    team.feishu.click(press).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_an_administrator_forgets_is_cut_off_and_its_cards_say_so() {
    let mut team = Team::start().await;
    let gateways = [team.gateway(), team.gateway()];
    assert!(team.feishu.wait_connections(2, LIMIT).await);
    let (mut lost, kept) = (team.machine(OWNER), team.machine(OWNER));
    connected(&lost).await;
    connected(&kept).await;
    let _hook = Hook::ask(&lost, "mine", "rm -r build").await;
    let mut cards = Cards::default();
    cards.wait(&team.feishu, 1).await;
    let old = cards.allows["mine"].clone();
    let key = member(&lost).key.public().to_string();
    let (code, told) = gateways[0].nod(&["gateway", "forget", &key]);
    assert_ne!(
        code,
        Some(0),
        "a key alone does not tell whose it is: {told}"
    );
    let forget = ["gateway", "forget", key.as_str(), "--owner", OWNER];
    let (code, told) = gateways[0].nod(&forget);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("takes its pass no more"), "{told}");
    refused(&lost).await;
    for command in ["status", "doctor"] {
        let (_, said) = lost.nod(&[command]);
        assert!(said.contains("no more"), "{command}: {said}");
        assert!(said.contains("write `/join`"), "{command}: {said}");
        assert!(!said.contains("renews itself"), "{command}: {said}");
    }
    let card = team
        .feishu
        .message(&cards.of["mine"])
        .unwrap()
        .card
        .unwrap();
    let card = card.to_string();
    assert!(
        card.contains("已被移出团队") && card.contains("rm -r build"),
        "{card}"
    );
    assert!(!card.contains("callback"), "no button is left: {card}");
    // A tap that was under way finds it gone, through either gateway.
    let tap = json!({
        "operator": {"open_id": OWNER},
        "action": {"tag": "button", "value": old},
        "context": {"open_message_id": cards.of["mine"]},
    });
    for _ in 0..4 {
        let pushed = team
            .feishu
            .push_event("card.action.trigger", tap.clone())
            .await;
        let told = format!("{pushed:?}");
        assert!(told.contains("已被移出团队"), "{told}");
    }
    assert_eq!(lost.decisions().len(), 0);
    // Neither a restart of the bus nor one that lost its files lets it back in.
    team.meeting.gone();
    team.meeting.again().await;
    connected(&kept).await;
    team.meeting.lost();
    team.meeting.again().await;
    let again = |log: &str| log.matches("the account was given a new word").count() > 0;
    until("a gateway tells the bus again", || async {
        gateways.iter().any(|one| again(&one.log())).then_some(())
    })
    .await;
    let hook = Hook::ask(&kept, "theirs", "ls").await;
    cards.wait(&team.feishu, 2).await;
    let press = Press::action(&cards.of["theirs"], "allow");
    until("the other machine goes on", || async {
        let clicked = team.feishu.click(press.clone()).await.unwrap();
        (said(&clicked) == "已批准运行").then_some(())
    })
    .await;
    assert!(hook.decision().await.is_some());
    let refusals = |of: &Machine| of.log().matches("does not accept this pass").count();
    let before = refusals(&lost);
    lost.kill();
    lost.again();
    until("it is refused once more", || async {
        (refusals(&lost) > before).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_goes_on_by_itself_with_the_pass_that_its_machine_got_anew() {
    let team = Team::start().await;
    let gateway = team.gateway();
    let machine = team.machine(OWNER);
    connected(&machine).await;
    let key = member(&machine).key.public().to_string();
    let (code, told) = gateway.nod(&["gateway", "forget", &key, "--owner", OWNER]);
    assert_eq!(code, Some(0), "{told}");
    refused(&machine).await;
    // The second in which it was forgotten must be over.
    let over = super::rig::seconds() + 2;
    until("time goes by", || async {
        (super::rig::seconds() > over).then_some(())
    })
    .await;
    let give = ["gateway", "pass", "--owner", OWNER, "--key", key.as_str()];
    let (code, line) = gateway.nod(&give);
    assert_eq!(code, Some(0), "{line}");
    let (code, told) = machine.nod(&["join", line.trim(), "--yes"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("goes on with it by itself"), "{told}");
    connected(&machine).await;
    let (_, said) = machine.nod(&["status"]);
    assert!(said.contains("renews itself"), "{said}");
    let (_, record) = gateway.nod(&["gateway", "audit"]);
    for line in ["a machine was forgotten", "a pass was given by hand"] {
        let found = record
            .lines()
            .any(|one| one.contains(line) && one.contains(&id(&machine)));
        assert!(found, "{line}: {record}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_owner_lists_his_machines_and_forgets_one_by_a_tap() {
    let team = Team::start().await;
    let _gateways = [team.gateway(), team.gateway()];
    assert!(team.feishu.wait_connections(2, LIMIT).await);
    let mut machines = [
        team.machine(OWNER),
        team.machine(OWNER),
        team.machine(STRANGER),
    ];
    for machine in &machines {
        connected(machine).await;
    }
    let (_, card) = listed(&team, "/machines", LISTED, 2).await;
    let text = card.to_string();
    assert_eq!(text.matches("在线").count(), 2, "{text}");
    assert!(text.contains(nod::for_tests::version::BUILD), "{text}");
    let foreign = id(&machines[2]);
    assert!(!text.contains(&foreign), "another's machine is not listed");
    // One that is away is listed with when it was last there.
    machines[1].kill();
    let (message, card) = until("it is away", || async {
        let (message, card) = listed(&team, "/forget", LISTED, 2).await;
        card.to_string()
            .contains("离线，最后在线")
            .then_some((message, card))
    })
    .await;
    let clicked = tap(&team, &message, &card, &id(&machines[1])).await;
    assert!(said(&clicked).contains("已移除"), "{clicked:?}");
    let order = format!("/forget {}", id(&machines[0]));
    let (message, card) = listed(&team, &order, "移除机器", 1).await;
    let clicked = tap(&team, &message, &card, &id(&machines[0])).await;
    assert!(said(&clicked).contains("已移除"), "{clicked:?}");
    refused(&machines[0]).await;
    machines[1].again();
    refused(&machines[1]).await;
    listed(&team, "/machines", LISTED, 0).await;
    listed(&team, &format!("/forget {foreign}"), "移除机器", 0).await;
    let kept = Hook::ask(&machines[2], "theirs", "ls").await;
    let mut cards = Cards::default();
    until("the card is there", || async {
        let all = team.feishu.messages();
        let asks = |card: &Value| card.to_string().contains("\"action\":\"allow\"");
        all.iter()
            .any(|one| one.card.as_ref().is_some_and(asks))
            .then_some(())
    })
    .await;
    cards.wait(&team.feishu, 1).await;
    let press = Press::action(&cards.of["theirs"], "allow").by(STRANGER);
    assert_eq!(said(&team.feishu.click(press).await.unwrap()), "已批准运行");
    assert!(kept.decision().await.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_else_can_forget_a_machine_and_a_forgotten_one_is_not_served() {
    let team = Team::start().await;
    let gateway = team.gateway();
    assert!(team.feishu.wait_connections(1, LIMIT).await);
    let machine = team.machine(OWNER);
    connected(&machine).await;
    let (message, card) = listed(&team, "/machines", LISTED, 1).await;
    let (_, value) = button(&card, &id(&machine)).unwrap();
    let press = |by: &str, value: &Value| {
        json!({
            "operator": {"open_id": by},
            "action": {"tag": "button", "value": value},
            "context": {"open_message_id": message},
        })
    };
    let mut forged = value.clone();
    forged["owner"] = json!(STRANGER);
    let mut later = value.clone();
    later["until"] = json!(i64::MAX);
    let mut bare = value.clone();
    bare.as_object_mut().unwrap().remove("seal");
    for (by, value, why) in [
        (STRANGER, &value, "只有这台机器的所有者"),
        (STRANGER, &forged, "无效"),
        (OWNER, &later, "无效"),
        (OWNER, &bare, "无效"),
    ] {
        let pushed = team
            .feishu
            .push_event("card.action.trigger", press(by, value))
            .await;
        let told = format!("{pushed:?}");
        assert!(told.contains(why), "{why}: {told}");
    }
    connected(&machine).await;
    // A bus that lets a forgotten machine speak does not make it heard.
    let thief = team.meeting.member(OWNER);
    thief.up().await;
    let key = thief.key.public().to_string();
    let (code, told) = gateway.nod(&["gateway", "forget", &key, "--owner", OWNER]);
    assert_eq!(code, Some(0), "{told}");
    let mut state = thief.line.state();
    let down = state
        .wait_for(|state| !matches!(state, nod::for_tests::bus::line::BusLineState::Up { .. }));
    tokio::time::timeout(LIMIT, down)
        .await
        .expect("cut off")
        .unwrap();
    if let Some(bus) = team.meeting.small() {
        let before = team.feishu.message_count();
        let subject = thief
            .place()
            .says(nod::for_tests::bus::subjects::FromMachine::Call);
        let letter = thief.letter(
            &super::hostile::sending(OWNER),
            nod::for_tests::clock::wall_ms(),
            "after",
        );
        let reply = format!("{}.x", thief.place().inbox());
        assert!(bus.inject(&subject, Some(&reply), &letter));
        until("the gateway refuses it", || async {
            let log = gateway.log();
            log.contains("was not the machine's own").then_some(())
        })
        .await;
        assert_eq!(team.feishu.message_count(), before);
    }
    connected(&machine).await;
}

/// Waits until a gateway has written down that this key counts for nothing.
async fn forgotten_by(gateway: &Machine, key: &str) {
    let file = gateway.dir.path().join("state/team.json");
    until("the gateway forgets it", || async {
        let kept: Value = serde_json::from_slice(&std::fs::read(&file).ok()?).ok()?;
        let forgotten = kept["forgotten"].as_array()?;
        forgotten.iter().any(|one| one[0] == key).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_was_away_learns_whom_the_others_forgot_and_renews_nobody_of_them() {
    let mut team = Team::start().await;
    // Nobody here can take a pass back at the server.
    team.meeting.keys.own = None;
    let mut gateway = team.gateway();
    assert!(team.feishu.wait_connections(1, LIMIT).await);
    // Of an age at which any gateway renews it.
    let mut machine = team.machine_since(OWNER, super::rig::seconds() - 11 * 24 * 3_600, &[]);
    connected(&machine).await;
    let key = member(&machine).key.public().to_string();
    until("its pass is renewed", || async {
        let left = member(&machine).pass.until - super::rig::seconds();
        (left > 24 * 3_600).then_some(())
    })
    .await;
    let (code, told) = gateway.nod(&["gateway", "forget", &key, "--owner", OWNER]);
    assert_eq!(code, Some(0), "{told}");
    forgotten_by(&gateway, &key).await;
    let late = team.gateway();
    forgotten_by(&late, &key).await;
    gateway.kill();
    machine.kill();
    machine.again();
    until("the one that was away refuses it", || async {
        let log = late.log();
        log.contains("was not the machine's own").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_administrator_whose_clock_is_behind_is_believed_by_the_gateways() {
    let mut team = Team::at(feishu_ahead(600_000).await).await;
    team.meeting.keys.own = None;
    let (gateway, other) = (team.gateway(), team.gateway());
    assert!(team.feishu.wait_connections(2, LIMIT).await);
    let key = team.meeting.member(OWNER).key.public().to_string();
    let (code, told) = gateway.nod(&["gateway", "forget", &key, "--owner", OWNER]);
    assert_eq!(code, Some(0), "{told}");
    forgotten_by(&other, &key).await;
}
