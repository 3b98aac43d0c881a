use super::*;
use crate::bus::letter::{self, PushHead};
use crate::bus::subjects::ToMachine;
use crate::daemon::machines::bench::{
    APP, BusBench, MemberBench, NOWHERE, OWNER, in_an_hour, keys, membership, pair, pass,
};

fn later(machine: &MemberBench, owner: &str, key: u8, by: i64) -> String {
    let key = pair(KeyKind::User, key);
    pass(&machine.keys, owner, &key, in_an_hour() + by)
}

fn kept(machine: &MemberBench) -> Option<Membership> {
    let text = std::fs::read_to_string(machine.file()).ok()?;
    Some(Membership::parse(&text).unwrap())
}

#[tokio::test]
async fn a_newer_pass_for_this_machine_is_taken_and_kept_for_the_next_start() {
    let machine = MemberBench::new();
    let newer = later(&machine, OWNER, 1, 500);
    machine.member.renew(newer.clone()).await;
    assert_eq!(machine.member.pass(), newer);
    let kept = kept(&machine).unwrap();
    assert_eq!((kept.pass_text, kept.app_id.as_str()), (newer, APP));
    assert_eq!(
        (kept.push, kept.url),
        (machine.member.push.clone(), machine.member.url.clone())
    );
    assert_eq!(kept.key.public(), machine.member.key.public());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(machine.file()).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o600, "it holds the key");
    }
}

#[tokio::test]
async fn a_pass_that_is_not_newer_or_not_this_machines_is_not_taken() {
    let machine = MemberBench::new();
    let own = machine.member.pass();
    for (what, text) in [
        ("no pass", "nonsense".to_owned()),
        ("another owner's", later(&machine, "ou_other", 1, 500)),
        ("another machine's", later(&machine, OWNER, 2, 500)),
        ("an older one", later(&machine, OWNER, 1, -500)),
        ("the same once more", own.clone()),
    ] {
        machine.member.renew(text).await;
        assert_eq!(machine.member.pass(), own, "{what}");
        assert!(kept(&machine).is_none(), "{what}");
    }
}

#[tokio::test]
async fn a_pass_that_cannot_be_kept_still_counts_for_this_run() {
    let machine = MemberBench::new();
    std::fs::create_dir(machine.file()).unwrap();
    let newer = later(&machine, OWNER, 1, 500);
    machine.member.renew(newer.clone()).await;
    assert_eq!(machine.member.pass(), newer);
}

#[tokio::test]
async fn what_somebody_joined_anew_with_is_taken_up_for_the_same_team_alone() {
    let machine = MemberBench::new();
    let own = machine.member.pass();
    let written = |membership: &Membership| {
        std::fs::write(machine.file(), membership.text().expose()).unwrap();
    };
    let with = |change: fn(&mut Membership)| {
        let mut other = membership(&machine.keys, OWNER, 1, NOWHERE);
        other.pass_text = later(&machine, OWNER, 1, 500);
        change(&mut other);
        other
    };
    machine.member.reread().await;
    assert_eq!(machine.member.pass(), own, "no file");
    std::fs::write(machine.file(), "nonsense").unwrap();
    machine.member.reread().await;
    assert_eq!(machine.member.pass(), own, "no membership");
    for (what, other) in [
        (
            "another owner",
            membership(&machine.keys, "ou_other", 1, NOWHERE),
        ),
        (
            "another machine",
            membership(&machine.keys, OWNER, 2, NOWHERE),
        ),
        (
            "other gateways",
            with(|it| it.push = vec![pair(KeyKind::Push, 9).public()]),
        ),
        (
            "another bus",
            with(|it| it.url = BusUrl::parse("wss://bus.example").unwrap()),
        ),
    ] {
        written(&other);
        machine.member.reread().await;
        assert_eq!(machine.member.pass(), own, "{what}");
    }
    let anew = with(|_| {});
    written(&anew);
    machine.member.reread().await;
    assert_eq!(machine.member.pass(), anew.pass_text);
}

#[test]
fn only_a_gateway_of_this_team_speaks_and_only_about_its_subject() {
    let machine = MemberBench::new();
    let member = &machine.member;
    let (tap, take) = (
        member.place.hears(ToMachine::Tap),
        member.place.hears(ToMachine::Take),
    );
    let head = PushHead {
        until: 1,
        once: "x".to_owned(),
        ticket: None,
    };
    let read = |key: &KeyPair, about: &str| {
        let bytes = letter::sign(key, about, &head, b"body");
        let letter = Letter::read(&bytes).unwrap();
        member.by_gateway(&letter, &tap).map(<[u8]>::to_vec)
    };
    assert_eq!(
        read(&machine.keys.push, &tap).as_deref(),
        Some(&b"body"[..])
    );
    assert_eq!(read(&machine.keys.push, &take), None);
    for other in [
        pair(KeyKind::Push, 9),
        pair(KeyKind::User, 1),
        keys().machines,
        keys().gateways,
    ] {
        assert_eq!(read(&other, &tap), None);
    }
}

#[test]
fn any_of_a_teams_gateways_is_known_by_its_own_key() {
    let keys = keys();
    let mut joined = membership(&keys, OWNER, 1, NOWHERE);
    joined.push.push(pair(KeyKind::Push, 9).public());
    let store = Store::in_memory().unwrap();
    let clock = TheirClock::new(crate::clock::Clock::start());
    let config = crate::daemon::cards::bench::config(&[]);
    let member = Member::new(joined, &config, clock, store);
    let there = member.place.hears(ToMachine::There);
    for key in [&keys.push, &pair(KeyKind::Push, 9)] {
        let bytes = letter::sign(key, &there, &"x", b"{}");
        let letter = Letter::read(&bytes).unwrap();
        assert!(member.by_gateway(&letter, &there).is_some());
    }
}

#[tokio::test]
async fn the_report_names_the_bus_its_server_and_the_pass_and_no_secret() {
    let machine = MemberBench::new();
    let report = machine.member.report();
    assert_eq!(report["url"], NOWHERE);
    assert_eq!(report["owner"], OWNER);
    assert_eq!(
        (&report["gateways"], &report["gateways_up"]),
        (&json!(0), &json!(0))
    );
    assert_eq!(
        (&report["server"], &report["pass_refused"]),
        (&Value::Null, &json!(false))
    );
    let until = report["pass_until"].as_i64().unwrap();
    assert!((until - in_an_hour()).abs() < 60, "{until}");
    let head = PushHead {
        until: machine.member.their_clock.now() + 5_000,
        once: "g1".to_owned(),
        ticket: None,
    };
    let now = machine.member.their_clock.now();
    machine
        .member
        .gateways
        .beacon(&head, br#"{"feishu":false}"#, now);
    let report = machine.member.report();
    assert_eq!(
        (&report["gateways"], &report["gateways_up"]),
        (&json!(1), &json!(0))
    );
    let (text, seed) = (report.to_string(), machine.member.key.seed());
    assert!(!text.contains(seed.expose()) && !text.contains(&machine.member.pass()));
    let hub = BusBench::start().await;
    let (connected, _running) = hub.member().await;
    assert!(connected.member.report()["server"].is_string());
}

#[test]
fn a_machine_says_its_name_and_its_version_of_itself() {
    let here: Value = serde_json::from_slice(&MemberBench::new().member.here()).unwrap();
    assert_eq!(
        here,
        json!({"name": "laptop", "version": crate::version::BUILD})
    );
}
