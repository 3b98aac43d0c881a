//! A bus that alters, repeats and keeps back, and a machine that asks for what
//! is not its own: nothing is decided, sent or changed by either.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nod::for_tests::bus::errand::{ErrandCall, ErrandResult};
use nod::for_tests::bus::letter::{self, AnswerHead, CallHead, Letter, PushHead};
use nod::for_tests::bus::line::BusAnswer;
use nod::for_tests::bus::nkey::{KeyKind, KeyPair};
use nod::for_tests::bus::subjects::{FromMachine, ToMachine};
use nod::for_tests::clock;
use nod::for_tests::simulator::bus::MessageFate;
use nod::for_tests::simulator::{OWNER, Press, STRANGER};
use serde_json::{Value, json};

use super::rig::{Member, SOON, Team, connected, serves};
use super::said;
use crate::gateway::rig::{Cards, Hook, LIMIT};
use crate::support::until;

const CHECKING: &str = "结果确认中，卡片稍后更新";

fn is_tap(subject: &str) -> bool {
    subject.starts_with("nod1.m.")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bus_that_alters_repeats_or_withholds_taps_decides_nothing() {
    let team = Team::start().await;
    let Some(bus) = team.meeting.small() else {
        return;
    };
    let _gateway = team.gateway();
    let machine = team.machine(OWNER);
    connected(&machine).await;
    let hook = Hook::ask(&machine, "mine", "ls").await;
    let mut cards = Cards::default();
    cards.wait(&team.feishu, 1).await;
    let deny = Press::action(&cards.of["mine"], "deny");
    // Somebody at the bus turns a refusal into an approval.
    bus.meddle(Some(Box::new(|subject, body| {
        if !is_tap(subject) {
            return MessageFate::Pass;
        }
        let text = String::from_utf8_lossy(body).replace("\"deny\"", "\"allow\"");
        MessageFate::Alter(text.into_bytes())
    })));
    let clicked = team.feishu.click(deny.clone()).await.unwrap();
    assert_eq!(said(&clicked), CHECKING);
    bus.meddle(Some(Box::new(|subject, _| {
        if is_tap(subject) {
            MessageFate::Withhold
        } else {
            MessageFate::Pass
        }
    })));
    let clicked = team.feishu.click(deny.clone()).await.unwrap();
    assert_eq!(said(&clicked), CHECKING);
    assert_eq!(machine.decisions().len(), 0, "{}", machine.log());
    // A tap of earlier, said again on the same subject, counts for nothing.
    let taps: Vec<_> = bus.passed();
    let tap = taps.iter().rfind(|one| is_tap(&one.subject)).unwrap();
    tokio::time::sleep(4 * SOON).await;
    bus.meddle(None);
    assert!(bus.inject(&tap.subject, tap.reply.as_deref(), &tap.body));
    until("the old tap is dropped", || async {
        machine.log().contains("after its time").then_some(())
    })
    .await;
    assert_eq!(machine.decisions().len(), 0);
    // Twice at once is one decision.
    bus.meddle(Some(Box::new(|subject, _| {
        if is_tap(subject) {
            MessageFate::Twice
        } else {
            MessageFate::Pass
        }
    })));
    assert_eq!(said(&team.feishu.click(deny).await.unwrap()), "已拒绝运行");
    let decision = hook.decision().await.unwrap().to_string();
    assert!(decision.contains("\"deny\""), "{decision}");
    assert_eq!(machine.decisions()["mine"], 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bus_that_alters_an_answer_or_a_card_shows_nobody_a_lie() {
    let team = Team::start().await;
    let Some(bus) = team.meeting.small() else {
        return;
    };
    let _gateway = team.gateway();
    let machine = team.machine(OWNER);
    connected(&machine).await;
    let altered = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&altered);
    // What the card says the tool would do is made to look harmless.
    bus.meddle(Some(Box::new(move |subject, body| {
        let text = String::from_utf8_lossy(body);
        if !subject.starts_with("nod1.g.") || !text.contains("rm -r") {
            return MessageFate::Pass;
        }
        count.fetch_add(1, Ordering::SeqCst);
        MessageFate::Alter(text.replace("rm -r", "ls -l").into_bytes())
    })));
    let hook = Hook::ask(&machine, "mine", "rm -r build").await;
    until("the card was altered", || async {
        (altered.load(Ordering::SeqCst) > 0).then_some(())
    })
    .await;
    assert_eq!(team.feishu.message_count(), 0, "no altered card is sent");
    bus.meddle(None);
    let mut cards = Cards::default();
    cards.wait(&team.feishu, 1).await;
    let message = &cards.of["mine"];
    let card = team
        .feishu
        .message(message)
        .unwrap()
        .card
        .unwrap()
        .to_string();
    assert!(card.contains("rm -r build"), "{card}");
    // The machine's refusal is made to look like an approval.
    bus.meddle(Some(Box::new(|subject, body| {
        let text = String::from_utf8_lossy(body);
        if subject.starts_with("_IN.gw") {
            MessageFate::Alter(text.replace("已拒绝运行", "已批准运行").into_bytes())
        } else {
            MessageFate::Pass
        }
    })));
    let press = Press::action(message, "deny");
    let clicked = team.feishu.click(press).await.unwrap();
    assert_eq!(said(&clicked), CHECKING);
    assert!(
        hook.decision()
            .await
            .unwrap()
            .to_string()
            .contains("\"deny\"")
    );
}

pub(super) fn asked(method: &str, path: &[&str]) -> ErrandCall {
    ErrandCall {
        method: method.to_owned(),
        path: path.iter().map(|part| (*part).to_owned()).collect(),
        query: Vec::new(),
        body: None,
        upload: None,
        within: 5_000,
        most: 0,
        ticket: None,
    }
}

pub(super) fn sending(to: &str) -> ErrandCall {
    let content = json!({"text": "hi"}).to_string();
    ErrandCall {
        query: vec![("receive_id_type".to_owned(), "open_id".to_owned())],
        body: Some(json!({
            "receive_id": to, "msg_type": "text", "content": content, "uuid": rand::random::<u64>().to_string(),
        })),
        ..asked("POST", &["open-apis", "im", "v1", "messages"])
    }
}

impl Member {
    pub(super) fn letter(&self, asked: &ErrandCall, at: i64, once: &str) -> Vec<u8> {
        self.sealed(&serde_json::to_vec(asked).unwrap(), at, once)
    }

    fn sealed(&self, body: &[u8], at: i64, once: &str) -> Vec<u8> {
        let head = CallHead {
            at,
            once: once.to_owned(),
            pass: self.pass.clone(),
        };
        let subject = self.place().says(FromMachine::Call);
        letter::sign(&self.key, &subject, &head, body)
    }

    pub(super) async fn asks(&self, team: &Team, asked: &ErrandCall) -> ErrandResult {
        self.says(team, &serde_json::to_vec(asked).unwrap()).await
    }

    /// The same, with whatever a call is written as. A gateway says that it takes
    /// its turn a moment before the server knows.
    pub(super) async fn says(&self, team: &Team, body: &[u8]) -> ErrandResult {
        until("an answer", || self.heard_saying(team, body)).await
    }

    /// The same, if there was an answer.
    pub(super) async fn heard_saying(&self, team: &Team, body: &[u8]) -> Option<ErrandResult> {
        let once = format!("{:x}", rand::random::<u128>());
        let letter = self.sealed(body, clock::wall_ms(), &once);
        let subject = self.place().says(FromMachine::Call);
        let BusAnswer::Answer(bytes) = self.line.ask(&subject, letter, LIMIT).await else {
            return None;
        };
        let letter = Letter::read(&bytes).unwrap();
        assert_eq!(letter.claims::<AnswerHead>().unwrap().re, once);
        let body = letter.open(&team.meeting.keys.push.public(), &subject);
        let told = serde_json::from_slice(body.expect("a gateway signed it"));
        Some(told.unwrap())
    }
}

fn refused(told: &ErrandResult) -> bool {
    matches!(told, ErrandResult::Refused { .. })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stolen_laptop_touches_its_owners_messages_and_nothing_else() {
    let team = Team::start().await;
    let gateway = team.gateway();
    assert!(team.feishu.wait_connections(1, LIMIT).await);
    let (thief, victim) = (team.meeting.member(STRANGER), team.meeting.member(OWNER));
    thief.up().await;
    victim.up().await;
    serves(&gateway).await;
    // What the owner's own machine may do.
    let told = victim.asks(&team, &sending(OWNER)).await;
    let ErrandResult::Answer {
        body,
        ticket,
        status: 200,
        ..
    } = told
    else {
        panic!("{told:?}");
    };
    let ticket = ticket.expect("a ticket comes with what was sent");
    let body: Value = serde_json::from_str(&body).unwrap();
    let id = body["data"]["message_id"].as_str().unwrap();
    let message = ["open-apis", "im", "v1", "messages", id];
    let reply = ["open-apis", "im", "v1", "messages", id, "reply"];
    let replying = ErrandCall {
        body: sending(OWNER).body,
        ..asked("POST", &reply)
    };
    let with = |asked: ErrandCall, ticket: Option<&str>| ErrandCall {
        ticket: ticket.map(str::to_owned),
        ..asked
    };
    // The thief asks for it with no ticket, with the victim's, with a made-up one.
    for stolen in [None, Some(ticket.as_str()), Some("AAAAAAAAAAAAAAAAAAAAAA")] {
        for asked in [asked("POST", &reply), asked("PATCH", &message)] {
            let told = thief.asks(&team, &with(asked, stolen)).await;
            assert!(refused(&told), "{stolen:?}: {told:?}");
        }
    }
    for asked in [
        sending(OWNER),
        asked("GET", &["open-apis", "contact", "v3", "users", OWNER]),
        asked("DELETE", &message),
        asked("GET", &["open-apis", "im", "v1", "chats"]),
        asked(
            "POST",
            &["open-apis", "auth", "v3", "tenant_access_token", "internal"],
        ),
    ] {
        let told = thief.asks(&team, &asked).await;
        assert!(refused(&told), "{asked:?}: {told:?}");
    }
    assert_eq!(
        team.feishu.message_count(),
        1,
        "only the victim's own was sent"
    );
    let told = victim.asks(&team, &with(replying, Some(&ticket))).await;
    assert!(
        matches!(told, ErrandResult::Answer { status: 200, .. }),
        "{told:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_repeated_late_or_to_be_answered_elsewhere_is_not_made() {
    let team = Team::start().await;
    let gateway = team.gateway();
    assert!(team.feishu.wait_connections(1, LIMIT).await);
    let (machine, mut victim) = (team.meeting.member(OWNER), team.meeting.member(STRANGER));
    machine.up().await;
    victim.up().await;
    serves(&gateway).await;
    let subject = machine.place().says(FromMachine::Call);
    let letter = machine.letter(&sending(OWNER), clock::wall_ms(), "once");
    let answer = machine.line.ask(&subject, letter.clone(), LIMIT).await;
    assert!(matches!(answer, BusAnswer::Answer(_)), "{answer:?}");
    let repeated = machine.line.ask(&subject, letter, SOON).await;
    assert_eq!(repeated, BusAnswer::Unknown, "nobody answers");
    for at in [clock::wall_ms() - 60_000, clock::wall_ms() + 60_000] {
        let letter = machine.letter(&sending(OWNER), at, &at.to_string());
        let late = machine.line.ask(&subject, letter, SOON).await;
        assert_eq!(late, BusAnswer::Unknown);
    }
    // Another's signature under this machine's pass.
    let other = KeyPair::of(KeyKind::User, rand::random());
    let head = CallHead {
        at: clock::wall_ms(),
        once: "forged".to_owned(),
        pass: machine.pass.clone(),
    };
    let body = serde_json::to_vec(&sending(OWNER)).unwrap();
    let forged = letter::sign(&other, &subject, &head, &body);
    assert_eq!(
        machine.line.ask(&subject, forged, SOON).await,
        BusAnswer::Unknown
    );
    assert_eq!(team.feishu.message_count(), 1);
    // A gateway may write anywhere: it must not be made to, for example as if
    // it brought a tap to somebody.
    if let Some(bus) = team.meeting.small() {
        let letter = machine.letter(&sending(OWNER), clock::wall_ms(), "elsewhere");
        let theirs = victim.place().hears(ToMachine::Tap);
        assert!(bus.inject(&subject, Some(&theirs), &letter));
        until("the gateway refused to answer there", || async {
            gateway.log().contains("gone elsewhere").then_some(())
        })
        .await;
        assert!(victim.heard.try_recv().is_err());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn letters_that_are_too_large_are_not_carried_and_keep_nobody_waiting() {
    let team = Team::start().await;
    let gateway = team.gateway();
    assert!(team.feishu.wait_connections(1, LIMIT).await);
    let (thief, victim) = (team.meeting.member(STRANGER), team.meeting.member(OWNER));
    thief.up().await;
    victim.up().await;
    serves(&gateway).await;
    let mut card = sending(STRANGER);
    card.body.as_mut().unwrap()["content"] = "x".repeat(64 * 1024 + 1).into();
    let told = thief.asks(&team, &card).await;
    assert!(refused(&told), "{told:?}");
    let subject = thief.place().says(FromMachine::Call);
    // A name, a head and a letter that nobody has a use for.
    let long = |once: usize, body: usize| {
        let body = vec![b' '; body];
        thief.sealed(&body, clock::wall_ms(), &"x".repeat(once))
    };
    for letter in [long(65, 10), long(5_000, 10)] {
        let answer = thief.line.ask(&subject, letter, SOON).await;
        assert_eq!(answer, BusAnswer::Unknown);
    }
    let answer = thief.line.ask(&subject, long(10, 1 << 20), SOON).await;
    assert!(!matches!(answer, BusAnswer::Answer(_)), "{answer:?}");
    let told = victim.asks(&team, &sending(OWNER)).await;
    assert!(
        matches!(told, ErrandResult::Answer { status: 200, .. }),
        "{told:?}"
    );
    assert_eq!(team.feishu.message_count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_that_no_gateway_signed_is_not_heard() {
    let team = Team::start().await;
    let _gateway = team.gateway();
    let machine = team.machine(OWNER);
    connected(&machine).await;
    let _hook = Hook::ask(&machine, "mine", "ls").await;
    let mut cards = Cards::default();
    cards.wait(&team.feishu, 1).await;
    // Somebody with a gateway's right to speak, but not its key.
    let impostor = team.meeting.gateway();
    impostor.up().await;
    let member: Value = {
        let file = machine.dir.path().join("state/bus.pass");
        serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
    };
    let pass = nod::for_tests::bus::pass::Pass::read(member["pass"].as_str().unwrap()).unwrap();
    let subject = pass.place.hears(ToMachine::Tap);
    let tap = json!({
        "schema": "2.0",
        "header": {"event_id": "e1", "event_type": "card.action.trigger", "create_time": "0"},
        "event": {
            "operator": {"open_id": OWNER},
            "action": {"tag": "button", "value": cards.allows["mine"]},
            "context": {"open_message_id": cards.of["mine"]},
        },
    });
    let head = PushHead {
        until: clock::wall_ms() + 2_000,
        once: "x".to_owned(),
        ticket: None,
    };
    let other = KeyPair::of(KeyKind::Push, rand::random());
    for key in [&other, &KeyPair::of(KeyKind::User, rand::random())] {
        let letter = letter::sign(key, &subject, &head, tap.to_string().as_bytes());
        let answer = impostor.line.ask(&subject, letter, SOON).await;
        assert_eq!(answer, BusAnswer::Unknown);
    }
    // The same letter, rightly signed, but for another machine's subject.
    let push = &team.meeting.keys.push;
    let elsewhere = letter::sign(push, "nod1.m.ou_x.y.tap", &head, tap.to_string().as_bytes());
    assert_eq!(
        impostor.line.ask(&subject, elsewhere, SOON).await,
        BusAnswer::Unknown
    );
    assert_eq!(machine.decisions().len(), 0, "{}", machine.log());
}
