use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::approvals::desk::Delivery;
use crate::approvals::outcome::sample;
use crate::approvals::request::Ending;
use crate::daemon::bench::{APPROVER, DaemonBench, OWNER, STRANGER, peer, push, sealed};
use crate::feishu::event::{self, Push};
use crate::gateway::call::CallAnswer;

const HERE: &str = "here000000000000";
const THERE: &str = "there00000000000";
static AT_ONCE: [Duration; 3] = [Duration::ZERO; 3];

async fn here(peers: &[&CallbackUrl]) -> DaemonBench {
    let peers: Vec<_> = peers.iter().map(|peer| peer.as_str()).collect();
    DaemonBench::named(HERE, &[("CALLBACK_PEERS", &peers.join(","))]).await
}

fn on(card: &str) -> Value {
    json!({"parent_id": card, "root_id": card})
}

/// Whether words that came here are for this machine.
async fn for_us(bench: &DaemonBench, by: &str, text: &str, more: &Value) -> bool {
    let push = push(by, "om_written", text, more);
    is_for_us(&bench.chat, &bench.taps.gate, &message(&push), &push).await
}

fn message(push: &[u8]) -> Message {
    match event::parse(push) {
        Push::Message(message) => *message,
        other => panic!("{other:?}"),
    }
}

/// A letter that is handed over again without a pause.
fn letter(text: &str) -> (PeerLetter, Message) {
    let push = push(OWNER, "om_written", text, &Value::Null);
    let message = message(&push);
    let letter = PeerLetter {
        again: &AT_ONCE,
        ..PeerLetter::of(&message, &push).unwrap()
    };
    (letter, message)
}

/// A machine of ours that claims every message so and takes none; how often it
/// was called.
async fn claims(claim: MessageClaim) -> (CallbackUrl, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let url = peer(move |call, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        let answer = CallAnswer {
            machine: MachineId::parse(THERE).ok(),
            ..CallAnswer::bare(claim != MessageClaim::None, claim.as_str())
        };
        Some(sealed(&answer, call))
    })
    .await;
    (url, count)
}

#[test]
fn the_surest_machine_gets_it_equals_are_asked_about_and_silence_can_lose_a_reply() {
    use MessageClaim::{None as No, Perhaps, Surely};
    for (own, peers, anchored, expected) in [
        (No, vec![], true, FallsTo::Us),
        (No, vec![Some(No), Some(No)], true, FallsTo::Us),
        (No, vec![Some(No), None], false, FallsTo::Us),
        (No, vec![Some(No), None], true, FallsTo::Lost),
        (No, vec![None, Some(Perhaps)], true, FallsTo::Peer(1)),
        (Perhaps, vec![Some(No), None], true, FallsTo::Us),
        (
            Perhaps,
            vec![Some(Surely), Some(Perhaps)],
            false,
            FallsTo::Peer(0),
        ),
        (
            Surely,
            vec![Some(Perhaps), Some(Perhaps)],
            false,
            FallsTo::Us,
        ),
        (
            Surely,
            vec![Some(No), Some(Surely)],
            false,
            FallsTo::Several,
        ),
        (No, vec![Some(Surely), Some(Surely)], true, FallsTo::Several),
        (Perhaps, vec![Some(Perhaps)], false, FallsTo::Several),
    ] {
        let found = falls_to(own, &peers, anchored);
        assert_eq!(found, expected, "{own:?} {peers:?} {anchored}");
    }
}

#[tokio::test]
async fn a_machine_alone_asks_nobody() {
    let bench = DaemonBench::new().await;
    assert!(for_us(&bench, OWNER, "go on", &Value::Null).await);
    // Its own address on the list is no other machine.
    let url = ("CALLBACK_SERVER_URL", "http://127.0.0.1:1");
    let peers = ("CALLBACK_PEERS", "http://127.0.0.1:1");
    let bench = DaemonBench::with(&[url, peers]).await;
    assert!(for_us(&bench, OWNER, "go on", &on("om_foreign")).await);
    assert_eq!(bench.said().len(), 0);
}

#[tokio::test]
async fn a_reply_to_a_card_of_this_machine_is_told_to_no_other() {
    let (other, asked) = claims(MessageClaim::Surely).await;
    let bench = here(&[&other]).await;
    let request = sample::request("Bash", json!({"command": "ls"}));
    let (_waiting, _, card) = bench.bench.shows(request).await;
    assert!(for_us(&bench, OWNER, "no", &on(card.as_str())).await);
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_reply_goes_to_the_machine_whose_card_it_hangs_on() {
    let (there, url, _open) = DaemonBench::with_door(THERE).await;
    let request = sample::request("Bash", json!({"command": "ls"}));
    let (mut waiting, _, card) = there.bench.shows(request).await;
    let hook = tokio::spawn(async move {
        let mut handed = waiting.answered().await.unwrap();
        handed.report(Delivery::Confirmed);
        handed.answer.ending
    });
    let (nobody, _) = claims(MessageClaim::None).await;
    let bench = here(&[&nobody, &url]).await;
    assert!(!for_us(&bench, OWNER, "not on this branch", &on(card.as_str())).await);
    let hook = tokio::time::timeout(Duration::from_secs(20), hook).await;
    match hook.expect("it is handed over").unwrap() {
        Ending::Denied { reason, .. } => {
            assert_eq!(reason.as_deref(), Some("not on this branch"));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(bench.said().len(), 0, "the other machine speaks");
}

#[tokio::test]
async fn a_stranger_is_a_stranger_on_the_other_machine_too() {
    let (there, url, _open) = DaemonBench::with_door(THERE).await;
    let request = sample::request("Bash", json!({"command": "ls"}));
    let (_waiting, _, card) = there.bench.shows(request).await;
    let bench = here(&[&url]).await;
    assert!(!for_us(&bench, STRANGER, "no", &on(card.as_str())).await);
    there.until(|there| there.said().len() == 1).await;
    assert_eq!(there.cards.desk.pending(), 1);
}

#[tokio::test]
async fn what_several_could_be_meant_by_is_nobodys_and_the_person_is_asked() {
    let (other, _) = claims(MessageClaim::Surely).await;
    let bench = here(&[&other]).await;
    assert!(!for_us(&bench, OWNER, "/new shop tidy up", &Value::Null).await);
    assert_eq!(bench.said(), [words::WHICH_MACHINE.en.to_string()]);
    assert!(bench.chat.sessions.list().is_empty());
}

#[tokio::test]
async fn a_reply_that_a_silent_machine_could_own_is_lost_and_only_its_people_are_told() {
    let nobody = CallbackUrl::parse("http://127.0.0.1:1").unwrap();
    let bench = here(&[&nobody]).await;
    assert!(!for_us(&bench, STRANGER, "no", &on("om_foreign")).await);
    assert_eq!(bench.said().len(), 0, "a stranger learns nothing");
    assert!(!for_us(&bench, APPROVER, "no", &on("om_foreign")).await);
    assert_eq!(bench.said(), [words::MACHINE_UNREACHABLE.en.to_string()]);
    assert!(for_us(&bench, OWNER, "go on", &Value::Null).await);
}

type Liar = Box<dyn Fn(&Value) -> Option<Value> + Send + Sync>;

#[tokio::test]
async fn a_claim_without_the_seal_of_this_very_call_counts_for_nothing() {
    let surely = || CallAnswer {
        machine: MachineId::parse(THERE).ok(),
        ..CallAnswer::bare(true, "surely")
    };
    let liars: [(&str, Liar); 4] = [
        ("unsealed", Box::new(move |_| Some(surely().to_json(None)))),
        (
            "an answer of earlier",
            Box::new(move |call| {
                let mut earlier = call.clone();
                earlier["nod"]["nonce"] = json!("an-earlier-nonce");
                Some(sealed(&surely(), &earlier))
            }),
        ),
        (
            "another word in it",
            Box::new(|call| {
                let mut answer = sealed(&CallAnswer::bare(true, "perhaps"), call);
                answer["message"] = json!("surely");
                Some(answer)
            }),
        ),
        (
            "an unknown word",
            Box::new(|call| Some(sealed(&CallAnswer::bare(true, "certainly"), call))),
        ),
    ];
    for (what, lie) in liars {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let liar = peer(move |call, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            lie(call)
        })
        .await;
        let bench = here(&[&liar]).await;
        let ours = for_us(&bench, OWNER, "/new shop tidy up", &Value::Null).await;
        assert!(ours, "{what}");
        assert_eq!(count.load(Ordering::SeqCst), 1, "{what}: asked and no more");
    }
}

#[tokio::test]
async fn a_machine_of_another_secret_neither_learns_nor_takes_anything() {
    let (there, url, _open) = DaemonBench::with_door(THERE).await;
    there.rests("c1", None).await;
    let peers = ("CALLBACK_PEERS", url.as_str());
    let bench = DaemonBench::named(
        HERE,
        &[peers, ("CALLBACK_SECRET", "the-secret-of-another-app")],
    )
    .await;
    assert!(for_us(&bench, OWNER, "go on", &Value::Null).await);
    assert_eq!((there.kept().await, there.said().len()), (0, 0));
    let (letter, _) = letter("go on");
    let machine = MachineId::parse(THERE).ok();
    let handed = letter.hand_over(&bench.taps.gate, &url, machine).await;
    let told = in_chat(&Refusal::NotTaken(NotTaken::Secret).into());
    assert_eq!(handed, Err(told));
}

#[tokio::test]
async fn a_message_is_handed_over_again_until_it_is_taken_and_is_carried_out_once() {
    let (there, url, _open) = DaemonBench::with_door(THERE).await;
    let bench = here(&[&url]).await;
    let gate = &bench.taps.gate;
    let (letter, _) = letter("/help");
    for _ in 0..2 {
        let handed = letter.hand_over(gate, &url, None).await;
        assert_eq!(handed, Ok(()), "its name was asked first");
    }
    there.until(|there| !there.sent().is_empty()).await;
    there.settled().await;
    assert_eq!(there.sent().len(), 1);
    let wrong = MachineId::parse("another000000000").ok();
    let handed = letter.hand_over(gate, &url, wrong).await;
    assert!(handed.is_err(), "what is sealed for one opens no other");
}

#[tokio::test]
async fn a_machine_that_does_not_take_its_message_is_asked_a_few_times_and_then_told_of() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let moody = peer(move |call, before| {
        assert_eq!(call["action"], TAKE);
        assert_eq!(call["nod"]["to"], THERE, "for no other machine");
        counted.fetch_add(1, Ordering::SeqCst);
        match before {
            0 => None,
            1 => Some(json!({"success": true, "decision": null, "message": "taken"})),
            2 => Some(sealed(&CallAnswer::bare(false, "no message"), call)),
            _ => Some(sealed(&CallAnswer::bare(true, "taken"), call)),
        }
    })
    .await;
    let bench = here(&[&moody]).await;
    let machine = || MachineId::parse(THERE).ok();
    let (letter, _) = letter("go on");
    let handed = letter.hand_over(&bench.taps.gate, &moody, machine());
    assert_eq!(
        handed.await,
        Ok(()),
        "silence, a lie and a no are no answer"
    );
    assert_eq!(calls.load(Ordering::SeqCst), 4);
    let nobody = CallbackUrl::parse("http://127.0.0.1:1").unwrap();
    let handed = letter.hand_over(&bench.taps.gate, &nobody, machine());
    assert_eq!(handed.await, Err(words::MACHINE_UNREACHABLE));
}

#[tokio::test]
async fn an_older_nod_that_names_no_machine_gets_no_message() {
    let old = peer(|call, _| {
        assert_eq!(call["action"], WHOSE, "nothing is handed to it");
        Some(sealed(&CallAnswer::bare(true, "surely"), call))
    })
    .await;
    let bench = here(&[&old]).await;
    assert!(!for_us(&bench, OWNER, "no", &on("om_foreign")).await);
    let told = in_chat(&Refusal::NotTaken(NotTaken::Version).into());
    assert_eq!(bench.said(), [told.en.to_string()]);
}

#[tokio::test]
async fn a_lock_goes_to_every_machine_and_each_judges_who_may() {
    let (there, url, _open) = DaemonBench::with_door(THERE).await;
    let bench = here(&[&url]).await;
    assert!(for_us(&bench, STRANGER, "/lock", &Value::Null).await);
    there.until(|there| there.said().len() == 1).await;
    assert!(!there.cards.lock.is_closed());
    let push = push(APPROVER, "om_second", "/lock", &Value::Null);
    assert!(is_for_us(&bench.chat, &bench.taps.gate, &message(&push), &push).await);
    there.until(|there| there.cards.lock.is_closed()).await;
    assert_eq!(bench.said().len(), 0, "all are locked");
}

#[tokio::test]
async fn a_machine_that_could_not_be_locked_is_named_to_whoever_may_lock() {
    let nobody = CallbackUrl::parse("http://127.0.0.1:1").unwrap();
    let bench = here(&[&nobody]).await;
    let (letter, mut lock) = letter("/lock");
    let gate = &bench.taps.gate;
    letter.lock_all(&bench.chat, gate, &lock, &[&nobody]).await;
    let told = words::not_locked("http://127.0.0.1:1");
    assert_eq!(bench.said(), [told.en.to_string()]);
    lock.by.open = Some(STRANGER.to_owned());
    letter.lock_all(&bench.chat, gate, &lock, &[&nobody]).await;
    assert_eq!(bench.said().len(), 1, "a stranger's lock is no news");
}

#[tokio::test]
async fn a_push_that_no_other_machine_could_read_stays_here() {
    let (other, asked) = claims(MessageClaim::Surely).await;
    let bench = here(&[&other]).await;
    let written = push(OWNER, "om_written", "go on", &Value::Null);
    let mut nameless = message(&written);
    nameless.id = None;
    let gate = &bench.taps.gate;
    assert!(is_for_us(&bench.chat, gate, &nameless, &written).await);
    let garbled = [written.as_slice(), b"\xff"].concat();
    assert!(is_for_us(&bench.chat, gate, &message(&written), &garbled).await);
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}
