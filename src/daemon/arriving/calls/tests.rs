use serde_json::{Value, json};

use super::*;
use crate::approvals::desk::{Delivery, Waiting};
use crate::approvals::outcome::{Upshot, sample};
use crate::approvals::request::{Ending, Reach};
use crate::daemon::bench::{APPROVER, DaemonBench, OWNER, STRANGER, WEBHOOK, push, tap_push};
use crate::daemon::cards::locking;
use crate::feishu::event::{Click, EventHead, Person};
use crate::feishu::secret::Secret;
use crate::gateway::seal::{SealPurpose, Sealer};
use crate::gateway::server::Visit;
use crate::ids::{EventId, MessageId};

fn id() -> RequestId {
    RequestId::parse("r1").unwrap()
}

/// A card that waits on this machine.
struct Rig {
    bench: DaemonBench,
    card: MessageId,
    waiting: Option<Waiting>,
}

impl Rig {
    async fn new() -> Self {
        let bench = DaemonBench::new().await;
        let asked = sample::request("Bash", json!({"command": "npm test"}));
        let (waiting, _, card) = bench.bench.shows(asked).await;
        Self {
            bench,
            card,
            waiting: Some(waiting),
        }
    }

    /// What a machine of ours is told to this call.
    async fn told(&self, call: PeerCall) -> CallAnswer {
        (self.bench.inside().decide)(call).await
    }

    async fn told_plainly(&self, call: PeerCall) -> CallAnswer {
        (self.bench.inside().decide_plain)(call).await
    }

    fn value(&self, action: Action) -> Value {
        self.bench.cards.buttons.choice(&id(), action, false)
    }

    /// The ending that its hook gets.
    fn hears(&mut self) -> tokio::task::JoinHandle<Ending> {
        let mut waiting = self.waiting.take().unwrap();
        tokio::spawn(async move {
            let mut handed = waiting.answered().await.unwrap();
            handed.report(Delivery::Confirmed);
            handed.answer.ending
        })
    }

    fn pending(&self) -> usize {
        self.bench.cards.desk.pending()
    }

    /// A click of this person's with this value on that card.
    fn click(&self, by: &str, value: &Value, on: &str) -> PeerCall {
        let event = format!("e-{by}-{on}-{}", self.bench.cards.now());
        PeerCall {
            click: Some(Click {
                head: EventHead {
                    event_id: EventId::parse(&event).ok(),
                    ..EventHead::default()
                },
                by: Person {
                    open: Some(by.to_owned()),
                    ..Person::default()
                },
                message: MessageId::parse(on).ok(),
                value: value.clone(),
                ..Click::default()
            }),
            ..call(value["action"].as_str().unwrap_or_default())
        }
    }
}

fn call(action: &str) -> PeerCall {
    PeerCall {
        to: None,
        action: action.to_owned(),
        request: id(),
        project_dir: String::new(),
        click: None,
        push: None,
    }
}

fn brings(action: &str, push: &[u8]) -> PeerCall {
    PeerCall {
        push: Some(String::from_utf8(push.to_vec()).unwrap()),
        ..call(action)
    }
}

fn written(by: &str, text: &str) -> Vec<u8> {
    push(by, "om_written", text, &Value::Null)
}

#[tokio::test]
async fn a_click_that_another_machine_brings_is_decided_by_our_own_approver() {
    let mut rig = Rig::new().await;
    let hook = rig.hears();
    let click = rig.click(APPROVER, &rig.value(Action::Allow), rig.card.as_str());
    let told = rig.told(click.clone()).await;
    assert_eq!(told.upshot, Upshot::Allowed);
    assert_eq!(told.seen.unwrap().toast.text.en, "Allowed once");
    match hook.await.unwrap() {
        Ending::Allowed {
            by,
            reach: Reach::Once,
            ..
        } => assert_eq!(by.id.as_str(), APPROVER),
        other => panic!("{other:?}"),
    }
    let again = rig.told(click).await;
    assert_eq!(again.upshot, Upshot::Allowed, "the very tap, once more");
}

#[tokio::test]
async fn another_machines_word_makes_no_approver_no_button_and_no_card_ours() {
    let rig = Rig::new().await;
    let allow = rig.value(Action::Allow);
    let card = rig.card.to_string();
    let bare = json!({"action": "allow", "request_id": "r1"});
    let sealed =
        |secret: &str, purpose| Sealer::new(&Secret::new(secret), purpose).seal(bare.clone());
    let mut turned = rig.value(Action::Deny);
    turned["action"] = json!("allow");
    let mut of_another = allow.clone();
    of_another["request_id"] = json!("r2");
    for (what, by, value, on) in [
        ("a stranger", STRANGER, &allow, card.as_str()),
        ("nobody", "", &allow, card.as_str()),
        ("another card", OWNER, &allow, "om_other"),
        ("no card", OWNER, &allow, ""),
        ("no seal", OWNER, &bare, card.as_str()),
        ("turned round", OWNER, &turned, card.as_str()),
        ("another request", OWNER, &of_another, card.as_str()),
        (
            "a call's seal",
            OWNER,
            &sealed("a secret", SealPurpose::Call),
            card.as_str(),
        ),
        (
            "a link's seal",
            OWNER,
            &sealed("a secret", SealPurpose::Link),
            card.as_str(),
        ),
        (
            "another app's",
            OWNER,
            &sealed("another", SealPurpose::Button),
            card.as_str(),
        ),
        ("no value", OWNER, &Value::Null, card.as_str()),
    ] {
        let told = rig.told(rig.click(by, value, on)).await;
        assert_eq!(told.upshot, Upshot::Nothing, "{what}");
        assert_eq!(rig.pending(), 1, "{what}");
    }
}

#[tokio::test]
async fn an_unknown_verb_and_a_verb_without_its_click_decide_nothing() {
    let rig = Rig::new().await;
    for verb in [
        "", "approve", "ALLOW", "unlock", "allow", "deny", "stop", "pick",
    ] {
        let told = rig.told(call(verb)).await;
        assert_eq!(told.upshot, Upshot::Nothing, "{verb}");
        let told = rig.told(brings(verb, &written(OWNER, "/lock"))).await;
        assert_eq!(told.upshot, Upshot::Nothing, "{verb} with a push");
    }
    // What the call says counts for nothing beside what the button says.
    let deny = rig.click(OWNER, &json!({"action": "deny"}), rig.card.as_str());
    let told = rig.told(PeerCall {
        action: "allow".to_owned(),
        ..deny
    });
    assert_eq!(told.await.upshot, Upshot::Nothing);
    assert_eq!((rig.pending(), rig.bench.kept().await), (1, 0));
    assert!(!rig.bench.cards.lock.is_closed());
}

#[tokio::test]
async fn a_query_tells_what_became_of_a_request_and_changes_nothing() {
    let mut rig = Rig::new().await;
    let told = rig.told(call(QUERY)).await;
    assert_eq!(told.upshot, Upshot::Nothing);
    assert_eq!(told.seen.unwrap().card, None);
    assert_eq!(rig.pending(), 1);
    let hook = rig.hears();
    let click = rig.click(OWNER, &rig.value(Action::Deny), rig.card.as_str());
    rig.told(click).await;
    hook.await.unwrap();
    let told = rig.told(call(QUERY)).await;
    assert!(told.seen.unwrap().card.is_some(), "as it looks now");
    let unknown = PeerCall {
        request: RequestId::parse("r2").unwrap(),
        ..call(QUERY)
    };
    let told = rig.told(unknown).await;
    assert_eq!(told, CallAnswer::of(&Refusal::Unknown.into(), None));
}

#[tokio::test]
async fn a_machine_says_whether_a_message_is_for_it_and_who_it_is() {
    let rig = Rig::new().await;
    let reply = push(
        OWNER,
        "om_written",
        "no",
        &json!({"parent_id": rig.card.as_str()}),
    );
    let own = Some(rig.bench.cards.buttons.machine.id.clone());
    for (push, claim) in [
        (reply, MessageClaim::Surely),
        (written(OWNER, "go on"), MessageClaim::None),
        (b"nonsense".to_vec(), MessageClaim::None),
    ] {
        let told = rig.told(brings(WHOSE, &push)).await;
        assert_eq!(told.message, claim.as_str());
        assert_eq!(told.upshot.is_success(), claim != MessageClaim::None);
        assert_eq!(told.machine, own);
    }
    assert_eq!((rig.pending(), rig.bench.kept().await), (1, 0));
    assert_eq!(rig.bench.said().len(), 0);
}

#[tokio::test]
async fn what_is_no_message_to_this_app_is_neither_claimed_nor_taken() {
    let rig = Rig::new().await;
    let lock = String::from_utf8(written(OWNER, "/lock")).unwrap();
    let foreign = lock.replace("cli_1", "cli_2").into_bytes();
    let tap = tap_push(OWNER, &rig.value(Action::Allow), rig.card.as_str());
    for push in [foreign, tap, b"{}".to_vec(), b"\0".to_vec()] {
        let taken = rig.told(brings(TAKE, &push)).await;
        assert_eq!(taken.upshot, Upshot::Nothing);
        let claimed = rig.told(brings(WHOSE, &push)).await;
        assert_eq!(claimed.message, MessageClaim::None.as_str());
    }
    let nothing = rig.told(call(TAKE)).await;
    assert_eq!(nothing, CallAnswer::bare(false, "no message"));
    assert_eq!((rig.pending(), rig.bench.kept().await), (1, 0));
    assert!(!rig.bench.cards.lock.is_closed());
}

#[tokio::test]
async fn a_message_that_is_brought_twice_is_carried_out_once() {
    let rig = Rig::new().await;
    for _ in 0..2 {
        let taken = rig.told(brings(TAKE, &written(OWNER, "/lock"))).await;
        assert_eq!(taken, CallAnswer::bare(true, "taken"));
    }
    rig.bench.until(|bench| !bench.said().is_empty()).await;
    rig.bench.settled().await;
    assert!(rig.bench.cards.lock.is_closed());
    assert_eq!(rig.bench.said().len(), 1);
}

#[tokio::test]
async fn a_service_without_a_seal_decides_once_and_by_no_persons_name() {
    let mut rig = Rig::new().await;
    let hook = rig.hears();
    let told = rig.told_plainly(call("deny")).await;
    assert_eq!(told.upshot, Upshot::Denied);
    match hook.await.unwrap() {
        Ending::Denied { by, .. } => assert_eq!(by, Operator::unnamed(Operator::CALLBACK)),
        other => panic!("{other:?}"),
    }
    let again = rig.told_plainly(call("allow")).await;
    assert_eq!(again.upshot, Upshot::Nothing, "it is over");
}

#[tokio::test]
async fn a_service_without_a_seal_can_ask_for_nothing_but_the_four_decisions() {
    let rig = Rig::new().await;
    let invalid = CallAnswer::of(&Refusal::Invalid.into(), None);
    for verb in [
        "",
        "query",
        "whose",
        "take",
        "undo",
        "session",
        "wider",
        "deny_with",
        "answer",
        "stop",
        "pick",
        "deny_all",
        "Allow",
    ] {
        let asked = brings(verb, &written(OWNER, "/lock"));
        assert_eq!(rig.told_plainly(asked).await, invalid, "{verb}");
    }
    assert_eq!((rig.pending(), rig.bench.kept().await), (1, 0));
    let unknown = PeerCall {
        request: RequestId::parse("r2").unwrap(),
        ..call("allow")
    };
    let told = rig.told_plainly(unknown).await;
    assert_eq!(told, CallAnswer::of(&Refusal::Unknown.into(), None));
    locking::set(&rig.bench.cards, true, None).await;
    let told = rig.told_plainly(call("allow")).await;
    assert_eq!(told.upshot, Upshot::Nothing, "a lock holds here, too");
    assert_eq!(rig.pending(), 1);
}

#[tokio::test]
async fn the_door_has_pages_in_webhook_mode_alone_and_goes_by_feishus_clock() {
    let app = DaemonBench::new().await;
    let inside = app.inside();
    assert!(inside.pages.is_none());
    assert_eq!(inside.machine, app.cards.buttons.machine.id);
    assert!((inside.metrics)().contains("nod_"), "for a scraper");
    let clock = &app.taps.gate.their_clock;
    clock.set(clock.now() + 1_000_000);
    assert!(((inside.now)() - clock.now()).abs() < 1_000);
    let webhook = DaemonBench::with(&WEBHOOK).await;
    let pages = webhook.inside().pages.unwrap();
    let visit = Visit {
        action: Action::Allow,
        id: "r1".to_owned(),
        token: "forged".to_owned(),
    };
    assert_eq!((pages.show)(visit).await.status, 404);
}
