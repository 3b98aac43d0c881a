use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::daemon::bench::{DaemonBench, OWNER, message, peer, push, tap_push, writes};
use crate::ids::{EventId, MessageId};

fn lock() -> Vec<u8> {
    push(OWNER, "om_written", "/lock", &Value::Null)
}

async fn came(bench: &DaemonBench, message: Message, push: &[u8]) {
    receive(&bench.chat, &bench.taps.gate, message, push).await;
}

/// A message that the last run wrote down.
async fn left(bench: &DaemonBench, id: &str, push: Vec<u8>, begun: bool) {
    let id = MessageId::parse(id).unwrap();
    let event = EventId::parse("e").ok();
    let kept = bench.cards.journal.store.run(move |db| {
        db.receive(&id, event.as_ref(), &push, 1)?;
        if begun {
            db.begin(&id)?;
        }
        Ok(())
    });
    kept.await.unwrap();
}

#[tokio::test]
async fn a_message_has_its_effect_once_however_often_feishu_pushes_it() {
    let bench = DaemonBench::new().await;
    for _ in 0..3 {
        came(&bench, writes(OWNER, "/lock"), &lock()).await;
    }
    bench.until(|bench| bench.cards.lock.is_closed()).await;
    bench.settled().await;
    assert_eq!(bench.said().len(), 1);
}

#[tokio::test]
async fn a_message_is_written_down_before_it_is_acknowledged() {
    let bench = DaemonBench::new().await;
    came(&bench, writes(OWNER, "/lock"), &lock()).await;
    // What it causes has had no chance to run yet.
    let kept = bench.cards.journal.store.run(Db::inbox).await.unwrap();
    assert_eq!((kept.len(), kept[0].push.clone()), (1, lock()));
    bench.settled().await;
}

#[tokio::test]
async fn what_a_bot_wrote_and_what_has_no_name_does_nothing() {
    let bench = DaemonBench::new().await;
    let mut bot = writes(OWNER, "/lock");
    bot.from_user = false;
    let mut nameless = writes(OWNER, "/lock");
    nameless.id = None;
    for message in [bot, nameless] {
        came(&bench, message.clone(), &lock()).await;
        receive_from_peer(&bench.chat, message, &lock()).await;
    }
    assert_eq!(bench.kept().await, 0);
    assert!(!bench.cards.lock.is_closed());
}

#[tokio::test]
async fn a_message_for_another_machine_is_crossed_out_here() {
    // Nobody is at that address, so a reply to a foreign card is lost.
    let bench = DaemonBench::with(&[("CALLBACK_PEERS", "http://127.0.0.1:1")]).await;
    let more = json!({"parent_id": "om_foreign"});
    let push = push(OWNER, "om_written", "no", &more);
    let message = message(OWNER, "no", &more);
    came(&bench, message.clone(), &push).await;
    bench.until(|bench| bench.said().len() == 1).await;
    bench.settled().await;
    came(&bench, message, &push).await;
    assert_eq!(
        bench.kept().await,
        0,
        "and not taken up when it comes again"
    );
}

#[tokio::test]
async fn a_machine_that_was_handed_a_message_asks_nobody_whose_it_is() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let peer = peer(move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        None
    })
    .await;
    let bench = DaemonBench::with(&[("CALLBACK_PEERS", peer.as_str())]).await;
    let help = push(OWNER, "om_written", "/help", &Value::Null);
    receive_from_peer(&bench.chat, writes(OWNER, "/help"), &help).await;
    bench.until(|bench| !bench.sent().is_empty()).await;
    bench.settled().await;
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn what_a_crash_left_is_carried_out_unless_it_was_begun() {
    let bench = DaemonBench::new().await;
    left(&bench, "om_written", lock(), false).await;
    restore(&bench.chat, &bench.taps.gate).await;
    bench.until(|bench| bench.cards.lock.is_closed()).await;
    bench.settled().await;
    let bench = DaemonBench::new().await;
    left(&bench, "om_written", lock(), true).await;
    restore(&bench.chat, &bench.taps.gate).await;
    bench.settled().await;
    assert_eq!(bench.said(), [words::CUT_OFF.en.to_string()]);
    assert!(!bench.cards.lock.is_closed(), "it is not done twice");
}

#[tokio::test]
async fn what_a_crash_left_and_nobody_can_read_is_crossed_out_in_silence() {
    let bench = DaemonBench::new().await;
    let tap = tap_push(OWNER, &Value::Null, "om_1");
    left(&bench, "om_1", tap, false).await;
    left(&bench, "om_2", b"nonsense".to_vec(), false).await;
    left(&bench, "om_3", b"{}".to_vec(), true).await;
    restore(&bench.chat, &bench.taps.gate).await;
    bench.settled().await;
    assert_eq!(bench.said().len(), 0);
}
