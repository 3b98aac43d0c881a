mod hostile;

use std::future::Future;

use serde_json::Value;

use super::*;
use crate::approvals::desk::{Delivery, Waiting};
use crate::approvals::outcome::sample;
use crate::bus::keys::Keys;
use crate::bus::line::{BusAnswer, BusLineState};
use crate::bus::nkey::{KeyKind, KeyPair};
use crate::bus::pass::Pass;
use crate::bus::subjects::{FromMachine, MachinePlace};
use crate::cards::Action;
use crate::daemon::bench::{APPROVER, DaemonBench, OWNER, STRANGER, push, tap_push};
use crate::daemon::machines::bench::{BusBench, NOWHERE, keys, membership, pair, straight};
use crate::feishu::connection::first_view;
use crate::feishu::link::Phase;
use crate::feishu::secret::Secret;
use crate::gateway::seal::{SealPurpose, Sealer};

const REPLY: &str = "_IN.gw.abc";

/// A machine of a team that knows the time.
struct Rig {
    keys: Keys,
    bench: DaemonBench,
    member: Arc<Member>,
}

impl Rig {
    async fn new() -> Self {
        let keys = keys();
        let bench = DaemonBench::in_team(membership(&keys, OWNER, 1, NOWHERE)).await;
        let member = Arc::clone(bench.standing.team.member().unwrap());
        member.knows_time.store(true, Ordering::Relaxed);
        Self {
            keys,
            bench,
            member,
        }
    }

    fn hears(&self, what: ToMachine) -> String {
        self.member.place.hears(what)
    }

    /// A head that counts for so long yet.
    fn head(&self, left: Millis) -> PushHead {
        PushHead {
            until: self.member.their_clock.now() + left,
            once: "once".to_owned(),
            ticket: Some("a ticket".to_owned()),
        }
    }

    fn signed(&self, subject: &str, left: Millis, body: &[u8]) -> Vec<u8> {
        letter::sign(&self.keys.push, subject, &self.head(left), body)
    }

    /// What this machine says to these bytes on that subject.
    async fn said(&self, subject: &str, bytes: Vec<u8>) -> Option<(String, Vec<u8>)> {
        let heard = BusHeard {
            subject: subject.to_owned(),
            reply: Some(REPLY.to_owned()),
            body: bytes.into(),
        };
        answered(&self.bench.taps, &self.member, heard).await
    }

    /// What a gateway makes of the answer to a letter of its own.
    async fn asked(&self, subject: &str, left: Millis, body: &[u8]) -> Option<Vec<u8>> {
        let letter = self.signed(subject, left, body);
        let (to, answer) = self.said(subject, letter).await?;
        assert_eq!(to, REPLY);
        Some(opened(&self.member.place, subject, &answer))
    }

    /// A card that waits in Feishu.
    async fn waits(&self) -> (Waiting, MessageId) {
        let asked = sample::request("Bash", json!({"command": "npm test"}));
        let (waiting, _, card) = self.bench.bench.shows(asked).await;
        (waiting, card)
    }

    /// The push of a tap on the button that this action has.
    fn tap(&self, by: &str, action: Action, card: &MessageId) -> Vec<u8> {
        let id = crate::ids::RequestId::parse("r1").unwrap();
        let value = self.bench.cards.buttons.choice(&id, action, false);
        tap_push(by, &value, card.as_str())
    }

    fn pending(&self) -> usize {
        self.bench.cards.desk.pending()
    }

    async fn ticket_of(&self, message: &str) -> Option<String> {
        let message = MessageId::parse(message).unwrap();
        self.member.tickets.of(&message).await
    }
}

/// The body of an answer that this machine signed for `once`.
fn opened(place: &MachinePlace, subject: &str, answer: &[u8]) -> Vec<u8> {
    let letter = Letter::read(answer).unwrap();
    let head: AnswerHead = letter.claims().unwrap();
    assert_eq!(head.re, "once");
    let pass = Pass::read(&head.pass.unwrap()).unwrap();
    assert_eq!(pass.place, *place);
    letter.open(&pass.key, subject).unwrap().to_vec()
}

/// A hook that takes its answer; whether that was an allow.
fn hook(mut waiting: Waiting) -> impl Future<Output = bool> {
    let hook = tokio::spawn(async move {
        let mut handed = waiting.answered().await.unwrap();
        handed.report(Delivery::Confirmed);
        matches!(
            handed.answer.ending,
            crate::approvals::request::Ending::Allowed { .. }
        )
    });
    async { hook.await.unwrap() }
}

fn toast(answer: &[u8]) -> String {
    let answer: Value = serde_json::from_slice(answer).unwrap();
    answer["toast"]["content"].as_str().unwrap().to_owned()
}

fn written(by: &str, text: &str) -> Vec<u8> {
    push(by, "om_written", text, &Value::Null)
}

#[tokio::test]
async fn a_tap_that_a_gateway_brings_decides_and_gives_the_right_to_its_message() {
    let rig = Rig::new().await;
    let (waiting, card) = rig.waits().await;
    let subject = rig.hears(ToMachine::Tap);
    let hook = hook(waiting);
    let push = rig.tap(OWNER, Action::Allow, &card);
    let answer = rig.asked(&subject, 1_000, &push).await.unwrap();
    assert!(hook.await);
    assert_eq!(toast(&answer), "Allowed once");
    let ticket = rig.ticket_of(card.as_str()).await;
    assert_eq!(ticket.as_deref(), Some("a ticket"));
}

#[tokio::test]
async fn a_tap_after_its_time_decides_nothing_and_whoever_tapped_is_told() {
    let rig = Rig::new().await;
    let (_waiting, card) = rig.waits().await;
    let subject = rig.hears(ToMachine::Tap);
    let push = rig.tap(OWNER, Action::Allow, &card);
    assert_eq!(rig.asked(&subject, -SLACK - 1, &push).await, None);
    assert_eq!(rig.pending(), 1);
    assert_eq!(rig.bench.said(), [words::TAPPED_TOO_LATE.en.to_string()]);
    let (path, _) = rig.bench.bench.calls().pop().unwrap();
    assert!(path.ends_with(&format!("{card}/reply")), "{path}");
    let ticket = rig.ticket_of(card.as_str()).await;
    assert_eq!(ticket.as_deref(), Some("a ticket"), "the reply needs it");
}

#[tokio::test]
async fn a_tap_that_its_gateway_has_just_given_up_still_decides() {
    let rig = Rig::new().await;
    let (waiting, card) = rig.waits().await;
    let hook = hook(waiting);
    let push = rig.tap(OWNER, Action::Deny, &card);
    let subject = rig.hears(ToMachine::Tap);
    let answer = rig.asked(&subject, 500 - SLACK, &push).await;
    assert_eq!(toast(&answer.unwrap()), "Denied");
    assert!(!hook.await);
}

#[tokio::test]
async fn nothing_else_that_waited_while_the_machine_slept_has_any_effect() {
    let rig = Rig::new().await;
    let place = &rig.member.place;
    let late = -SLACK - 1;
    for subject in [
        place.hears(ToMachine::Take),
        place.hears(ToMachine::There),
        place.hears(ToMachine::Leave),
        of_owner(&place.owner),
    ] {
        let said = rig.asked(&subject, late, &written(OWNER, "/lock")).await;
        assert_eq!(said, None, "{subject}");
    }
    // A tap's push on another subject is nobody's tap.
    let tap = tap_push(OWNER, &json!({}), "om_1");
    let taken = rig.asked(&rig.hears(ToMachine::Take), late, &tap).await;
    assert_eq!(taken, None);
    assert!(!rig.bench.cards.lock.is_closed());
    assert_eq!((rig.bench.kept().await, rig.bench.said().len()), (0, 0));
}

#[tokio::test]
async fn before_anybody_has_told_the_time_nothing_counts_and_nobody_is_blamed() {
    let rig = Rig::new().await;
    rig.member.knows_time.store(false, Ordering::Relaxed);
    let (_waiting, card) = rig.waits().await;
    let push = rig.tap(OWNER, Action::Allow, &card);
    let asked = rig.asked(&rig.hears(ToMachine::Tap), 60_000, &push).await;
    assert_eq!(asked, None);
    assert_eq!((rig.pending(), rig.bench.said().len()), (1, 0));
    assert_eq!(rig.ticket_of(card.as_str()).await, None);
}

#[tokio::test]
async fn a_message_is_taken_once_however_often_it_is_brought() {
    let rig = Rig::new().await;
    let subject = rig.hears(ToMachine::Take);
    let lock = written(APPROVER, "/lock");
    for _ in 0..3 {
        let taken = rig.asked(&subject, 1_000, &lock).await.unwrap();
        assert_eq!(taken, b"{}");
    }
    rig.bench.until(|bench| bench.said().len() == 1).await;
    rig.bench.settled().await;
    assert!(rig.bench.cards.lock.is_closed());
    let locked = rig.bench.audit().await;
    let locked = locked.iter().filter(|kind| *kind == "locked").count();
    assert_eq!((locked, rig.bench.said().len()), (1, 1));
    let ticket = rig.ticket_of("om_written").await;
    assert_eq!(ticket.as_deref(), Some("a ticket"), "it was replied to");
}

#[tokio::test]
async fn a_message_to_another_app_is_neither_taken_nor_claimed() {
    let rig = Rig::new().await;
    let lock = String::from_utf8(written(OWNER, "/lock")).unwrap();
    let foreign = lock.replace("cli_1", "cli_2").into_bytes();
    for subject in [
        rig.hears(ToMachine::Take),
        of_owner(&rig.member.place.owner),
    ] {
        let asked = rig.asked(&subject, 1_000, &foreign).await;
        assert_eq!(asked, None, "{subject}");
    }
    assert_eq!(rig.bench.kept().await, 0);
}

#[tokio::test]
async fn a_machine_says_how_sure_it_is_and_does_nothing_else() {
    let rig = Rig::new().await;
    let subject = of_owner(&rig.member.place.owner);
    for (text, claim) in [
        ("go on", "none"),
        ("/new shop tidy up", "surely"),
        ("/lock", "none"),
    ] {
        let said = rig.asked(&subject, 1_000, &written(OWNER, text)).await;
        let said: Value = serde_json::from_slice(&said.unwrap()).unwrap();
        assert_eq!(said, json!({"claim": claim}), "{text}");
    }
    assert!(!rig.bench.cards.lock.is_closed());
    assert_eq!((rig.bench.kept().await, rig.bench.said().len()), (0, 0));
}

#[tokio::test]
async fn a_gateway_learns_which_nod_is_there_and_which_cards_wait() {
    let rig = Rig::new().await;
    let there = rig.asked(&rig.hears(ToMachine::There), 1_000, b"{}").await;
    assert_eq!(there.unwrap(), rig.member.here());
    let (_waiting, card) = rig.waits().await;
    rig.member.tickets.keep(&card, "its ticket");
    let left = rig.asked(&rig.hears(ToMachine::Leave), 1_000, b"{}").await;
    let left: Value = serde_json::from_slice(&left.unwrap()).unwrap();
    let (message, ticket) = (&left["cards"][0]["message"], &left["cards"][0]["ticket"]);
    assert_eq!(message, card.as_str());
    assert_eq!(ticket, "its ticket");
    assert_eq!(rig.pending(), 1, "it is the gateway that makes them true");
}

#[tokio::test]
async fn a_beacon_counts_where_a_gateway_signed_it() {
    let rig = Rig::new().await;
    let count = || {
        let now = rig.member.their_clock.now();
        rig.member.gateways.count(now)
    };
    let other = pair(KeyKind::Push, 9);
    let forged = letter::sign(&other, BEACON, &rig.head(9_000), br#"{"feishu":true}"#);
    assert_eq!(rig.said(BEACON, forged).await, None);
    let moved = rig.signed(&rig.hears(ToMachine::There), 9_000, br#"{"feishu":true}"#);
    assert_eq!(rig.said(BEACON, moved).await, None);
    assert_eq!(count(), (0, 0));
    let true_one = rig.signed(BEACON, 9_000, br#"{"feishu":true}"#);
    assert_eq!(rig.said(BEACON, true_one).await, None, "nobody is answered");
    assert_eq!(count(), (1, 1));
}

#[tokio::test]
async fn a_tap_comes_and_its_answer_goes_over_a_bus() {
    let hub = BusBench::start().await;
    hub.says(|call| {
        let time = crate::clock::wall_ms();
        vec![call.answer(&json!({"time": time, "feishu": true, "gateway": "g1"}))]
    });
    let bench = DaemonBench::in_team(membership(&hub.keys, OWNER, 1, &hub.bus.url())).await;
    let member = Arc::clone(bench.standing.team.member().unwrap());
    let (view, mut shown) = watch::channel(first_view());
    let stop = CancellationToken::new();
    let running = tokio::spawn(run(
        Arc::clone(&bench.taps),
        Arc::clone(&member),
        straight(),
        view,
        stop.clone(),
    ));
    let within = Duration::from_secs(20);
    let up = shown.wait_for(|view| matches!(view.phase, Phase::Up { .. }));
    let up = tokio::time::timeout(within, up).await;
    up.expect("a gateway answers").unwrap();
    let hello = member.place.says(FromMachine::Hello);
    assert!(hub.bus.passed().iter().any(|said| said.subject == hello));
    let subject = member.place.hears(ToMachine::There);
    let head = PushHead {
        until: member.their_clock.now() + 9_000,
        once: "once".to_owned(),
        ticket: None,
    };
    let letter = letter::sign(&hub.keys.push, &subject, &head, b"{}");
    match hub.gateway.ask(&subject, letter, within).await {
        BusAnswer::Answer(answer) => {
            assert_eq!(opened(&member.place, &subject, &answer), member.here());
        }
        other => panic!("{other:?}"),
    }
    stop.cancel();
    running.await.unwrap();
    assert!(matches!(
        *member.line.state().borrow(),
        BusLineState::Up { .. }
    ));
}
