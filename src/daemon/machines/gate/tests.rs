use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio_util::sync::DropGuard;

use super::*;
use crate::approvals::desk::{Delivery, Waiting};
use crate::approvals::outcome::{NotTaken, PeerSilence, Upshot, sample};
use crate::approvals::request::{Operator, Reach};
use crate::cards::Action;
use crate::daemon::bench::{DaemonBench, OWNER, STRANGER, peer, sealed, taps};
use crate::daemon::cards::bench::config;
use crate::daemon::known::lock;
use crate::daemon::tapping::clicks::{self, Door};
use crate::gateway::call::CallAnswer;
use crate::ids::{CardKey, EventId, MessageId};
use crate::store::Db;

const HERE: &str = "here000000000000";
const THERE: &str = "there00000000000";
const OTHER_SECRET: &str = "the-secret-of-another-app";

/// A card that waits on the other machine.
struct There {
    bench: DaemonBench,
    url: CallbackUrl,
    message: MessageId,
    waiting: Option<Waiting>,
    _open: DropGuard,
}

impl There {
    async fn new() -> Self {
        let (bench, url, open) = DaemonBench::with_door(THERE).await;
        let asked = sample::request("Bash", json!({"command": "npm test"}));
        let (waiting, _, message) = bench.bench.shows(asked).await;
        Self {
            bench,
            url,
            message,
            waiting: Some(waiting),
            _open: open,
        }
    }

    fn value(&self, action: Action) -> Value {
        self.bench.cards.buttons.choice(&id(), action, false)
    }

    /// Its hook takes the answer.
    fn hears(&mut self) {
        let mut waiting = self.waiting.take().unwrap();
        tokio::spawn(async move {
            let mut handed = waiting.answered().await.unwrap();
            handed.report(Delivery::Confirmed);
        });
    }

    fn pending(&self) -> usize {
        self.bench.cards.desk.pending()
    }
}

fn id() -> RequestId {
    RequestId::parse("r1").unwrap()
}

async fn here(to: &CallbackUrl) -> DaemonBench {
    DaemonBench::named(HERE, &[("CALLBACK_PEERS", to.as_str())]).await
}

/// What comes of a click that arrived here and belongs there.
async fn taken(here: &DaemonBench, click: &Click, to: &CallbackUrl) -> Ruling {
    let proof = here.cards.buttons.proof(&click.value);
    assert!(proof.is_some(), "all machines of an app share its secret");
    forward(&here.taps.gate, click, &id(), to.clone(), proof).await
}

fn asked_after(message: &MessageId) -> PeerCall {
    PeerCall {
        to: MachineId::parse(THERE).ok(),
        action: "allow".to_owned(),
        request: id(),
        project_dir: String::new(),
        click: Some(Click {
            message: Some(message.clone()),
            ..Click::default()
        }),
        push: None,
    }
}

/// The edits that are to be made.
async fn edits(bench: &DaemonBench) -> Vec<String> {
    let store = &bench.cards.journal.store;
    let kept = store.run(Db::edits).await.unwrap();
    let named = kept.into_iter().map(|edit| match edit.key {
        CardKey::Message(id) => id.to_string(),
        CardKey::Sending(id) => format!("sending {id}"),
    });
    named.collect()
}

#[tokio::test]
async fn a_click_is_decided_where_its_request_lives_and_shown_where_it_came() {
    let mut there = There::new().await;
    there.hears();
    let here = here(&there.url).await;
    let click = taps(OWNER, &there.value(Action::Allow), &there.message);
    let ruling = taken(&here, &click, &there.url).await;
    assert_eq!(ruling.outcome.upshot(), Upshot::Allowed);
    assert_eq!(there.pending(), 0);
    let reply: Value = serde_json::from_slice(&ruling.reply(&here.cards, &click)).unwrap();
    assert_eq!(reply["toast"]["content"], "Allowed once");
    let mut late = click;
    late.head.event_id = EventId::parse("another-tap").ok();
    let ruling = taken(&here, &late, &there.url).await;
    assert_eq!(ruling.outcome.upshot(), Upshot::Nothing);
    let card = ruling.told().seen.unwrap().card.unwrap();
    assert!(card.to_string().contains("npm test"), "as it truly is");
}

#[tokio::test]
async fn the_other_machine_judges_for_itself_who_may_and_what_is_a_button() {
    let there = There::new().await;
    let here = here(&there.url).await;
    let value = there.value(Action::Allow);
    let stranger = taps(STRANGER, &value, &there.message);
    let elsewhere = MessageId::parse("om_elsewhere").unwrap();
    let lifted = taps(OWNER, &value, &elsewhere);
    let other = here.cards.buttons.choice(&id(), Action::Undo, false);
    let mut undo = taps(OWNER, &other, &there.message);
    undo.value["machine"] = json!(THERE);
    undo.value = here.cards.buttons.seal(undo.value.clone());
    for click in [stranger, lifted, undo] {
        let ruling = taken(&here, &click, &there.url).await;
        assert_eq!(ruling.outcome.upshot(), Upshot::Nothing);
        assert_eq!(there.pending(), 1);
    }
}

#[tokio::test]
async fn a_machine_that_takes_no_call_of_ours_is_told_of_by_its_reason() {
    let there = There::new().await;
    let click = taps(OWNER, &there.value(Action::Allow), &there.message);
    let peers = ("CALLBACK_PEERS", there.url.as_str());
    let stranger = DaemonBench::named(HERE, &[peers, ("CALLBACK_SECRET", OTHER_SECRET)]).await;
    let off = here(&there.url).await;
    let their_clock = &off.taps.gate.their_clock;
    their_clock.set(their_clock.now() + 40_000);
    let good = here(&there.url).await;
    let named = |machine: Value| {
        let mut click = click.clone();
        click.value["machine"] = machine;
        click.value = good.cards.buttons.seal(click.value.clone());
        click
    };
    for (bench, click, why) in [
        (&stranger, click.clone(), NotTaken::Secret),
        (&off, click.clone(), NotTaken::Clock),
        (&good, named(json!(HERE)), NotTaken::Secret),
        (&good, named(Value::Null), NotTaken::Version),
    ] {
        let ruling = taken(bench, &click, &there.url).await;
        assert_eq!(ruling.outcome, Refusal::NotTaken(why).into());
        assert_eq!(there.pending(), 1);
    }
}

#[tokio::test]
async fn a_machine_that_is_not_there_got_nothing() {
    let nobody = CallbackUrl::parse("http://127.0.0.1:1").unwrap();
    let here = here(&nobody).await;
    let value = here.cards.buttons.choice(&id(), Action::Allow, false);
    let click = taps(OWNER, &value, &MessageId::parse("om_1").unwrap());
    let ruling = taken(&here, &click, &nobody).await;
    assert_eq!(ruling.outcome, Refusal::Unreachable.into());
}

#[tokio::test]
async fn an_unsealed_click_counts_for_an_approver_and_never_past_a_lock() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let service = peer(move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        Some(json!({"success": true, "decision": "allow", "message": "已批准运行"}))
    })
    .await;
    let settings = [
        ("CALLBACK_PEERS", service.as_str()),
        ("CALLBACK_ALLOW_UNSEALED", "true"),
    ];
    let here = DaemonBench::named(HERE, &settings).await;
    let message = MessageId::parse("om_1").unwrap();
    let tapped = async |number: usize, who: &str, action: &str| {
        let url = service.as_str();
        let value = json!({"action": action, "request_id": "r9", "callback_url": url});
        let mut click = taps(who, &value, &message);
        click.head.event_id = EventId::parse(&format!("tap-{number}")).ok();
        let reply = clicks::answer(&here.taps, click).await;
        let reply: Value = serde_json::from_slice(&reply).unwrap();
        let toast = reply["toast"]["content"].as_str().unwrap().to_owned();
        (toast, calls.load(Ordering::SeqCst))
    };
    let (said, calls) = tapped(1, STRANGER, "allow").await;
    assert!(calls == 0 && said.contains("not an approver"), "{said}");
    let (said, calls) = tapped(2, OWNER, "allow").await;
    assert!(calls == 1 && said.contains("Allowed"), "{said}");
    lock::set(&here.cards.lock, &here.cards.journal, true, None).await;
    let (said, calls) = tapped(3, OWNER, "allow").await;
    assert!(calls == 1 && said.contains("ocked"), "{said}");
    let (said, calls) = tapped(4, OWNER, "deny").await;
    assert!(calls == 2, "a refusal passes: {said}");
}

#[tokio::test]
async fn what_a_foreign_service_left_open_promises_nothing() {
    let service = peer(|_, _| None).await;
    let here = here(&service).await;
    let value = json!({"action": "allow", "request_id": "r9"});
    let click = taps(OWNER, &value, &MessageId::parse("om_1").unwrap());
    let ruling = forward(&here.taps.gate, &click, &id(), service, None).await;
    let unclear = Outcome::ServiceUnclear(PeerSilence::Broken);
    assert_eq!(ruling.outcome, unclear);
    let reply: Value = serde_json::from_slice(&ruling.reply(&here.cards, &click)).unwrap();
    let said = reply["toast"]["content"].as_str().unwrap();
    assert!(said.contains("look in the terminal"), "{said}");
}

type Liar = Box<dyn Fn(&Value) -> Option<Value> + Send + Sync>;

#[tokio::test]
async fn an_answer_that_the_other_machine_did_not_seal_is_no_answer() {
    let yes = || {
        CallAnswer::of(
            &sample::decided(sample::allowed(Reach::Once), Delivery::Confirmed),
            None,
        )
    };
    let liars: [(&str, Liar); 5] = [
        ("unsealed", Box::new(move |_| Some(yes().to_json(None)))),
        ("silent", Box::new(|_| None)),
        ("no JSON of ours", Box::new(|_| Some(json!("yes")))),
        (
            "the answer to another call",
            Box::new(move |call| {
                let mut other = call.clone();
                other["nod"]["nonce"] = json!("another-nonce");
                Some(sealed(&yes(), &other))
            }),
        ),
        (
            "altered",
            Box::new(move |call| {
                let mut answer = sealed(&CallAnswer::bare(false, "no"), call);
                answer["success"] = json!(true);
                Some(answer)
            }),
        ),
    ];
    for (what, lie) in liars {
        let liar = peer(move |call, _| lie(call)).await;
        let here = here(&liar).await;
        let value = here.cards.buttons.choice(&id(), Action::Allow, false);
        let click = taps(OWNER, &value, &MessageId::parse("om_1").unwrap());
        let ruling = taken(&here, &click, &liar).await;
        assert_eq!(ruling.outcome, Outcome::Unclear, "{what}");
    }
}

#[tokio::test]
async fn a_service_that_knows_no_seal_gets_three_fields_and_no_person() {
    let (seen, mut calls) = tokio::sync::mpsc::unbounded_channel();
    let service = peer(move |call, _| {
        seen.send(call.clone()).unwrap();
        Some(json!({"success": true, "decision": "deny", "message": "ok"}))
    })
    .await;
    let here = here(&service).await;
    let value = json!({"action": "deny", "request_id": "r1", "project_dir": "/p"});
    let click = taps(OWNER, &value, &MessageId::parse("om_1").unwrap());
    let ruling = forward(&here.taps.gate, &click, &id(), service, None).await;
    assert_eq!(ruling.outcome.upshot(), Upshot::Denied);
    assert_eq!(calls.recv().await.unwrap(), value);
}

#[tokio::test]
async fn what_became_of_a_click_is_asked_until_it_is_told_and_then_shown() {
    let mut there = There::new().await;
    there.hears();
    let by = Operator::unnamed(Operator::CALLBACK);
    clicks::decide(&there.bench.taps, &id(), Action::Deny, by, Door::Service).await;
    let here = here(&there.url).await;
    let gate = || Arc::clone(&here.taps.gate);
    let unreached = CallbackUrl::parse("http://127.0.0.1:1").unwrap();
    let call = asked_after(&there.message);
    find_out(gate(), call.clone(), unreached, &[Duration::ZERO; 3]).await;
    assert_eq!(edits(&here).await.len(), 0, "nobody said anything");
    find_out(gate(), call, there.url.clone(), &[Duration::ZERO; 3]).await;
    assert_eq!(edits(&here).await, [there.message.to_string()]);
}

#[tokio::test]
async fn it_is_asked_again_after_silence_and_a_lie_and_no_more_once_told() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let moody = peer(move |call, before| {
        counted.fetch_add(1, Ordering::SeqCst);
        assert_eq!(call["action"], QUERY, "it is never decided again");
        match before {
            0 => None,
            1 => Some(json!({"success": true, "decision": "allow", "message": ""})),
            _ => Some(sealed(&CallAnswer::of(&Outcome::Waiting, None), call)),
        }
    })
    .await;
    let here = here(&moody).await;
    let call = asked_after(&MessageId::parse("om_1").unwrap());
    let gate = Arc::clone(&here.taps.gate);
    find_out(gate, call, moody, &[Duration::ZERO; 6]).await;
    assert_eq!(count.load(Ordering::SeqCst), 3);
    assert_eq!(edits(&here).await.len(), 0, "it waits, as its card says");
}

#[test]
fn whoever_shares_the_secret_may_call_and_a_buttons_seal_opens_no_door() {
    let app = Secret::new("the app's");
    let tag = |secret: &str, purpose| {
        let sealer = Sealer::new(&Secret::new(secret), purpose);
        sealer.tag(&json!("x"))
    };
    let opens = |terms: &DoorTerms, tag: &str| {
        let sealer = terms.sealer.as_ref().unwrap();
        sealer.verifies(&json!("x"), tag)
    };
    let plain = terms(&config(&[]), Some(&app));
    assert!(opens(&plain, &tag("the app's", SealPurpose::Call)));
    for purpose in [SealPurpose::Button, SealPurpose::Link, SealPurpose::Ticket] {
        assert!(!opens(&plain, &tag("the app's", purpose)));
    }
    let own = terms(&config(&[("CALLBACK_SECRET", OTHER_SECRET)]), Some(&app));
    assert!(opens(&own, &tag(OTHER_SECRET, SealPurpose::Call)));
    assert!(!opens(&own, &tag("the app's", SealPurpose::Call)));
    assert!(terms(&config(&[]), None).sealer.is_none());
    assert!(
        !plain.allow_unsealed,
        "nobody speaks without a seal unasked"
    );
}
