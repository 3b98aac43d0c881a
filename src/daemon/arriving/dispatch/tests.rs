use serde_json::{Value, json};

use super::*;
use crate::approvals::desk::Delivery;
use crate::approvals::outcome::sample;
use crate::cards::Action;
use crate::daemon::bench::{DaemonBench, OWNER, push, tap_push};
use crate::ids::RequestId;

async fn answered(bench: &DaemonBench, push: Vec<u8>) -> PushAnswer {
    answer(Arc::clone(&bench.taps), push.into()).await
}

fn toast(answer: PushAnswer) -> String {
    let PushAnswer::Show(shown) = answer else {
        panic!("{answer:?}");
    };
    let shown: Value = serde_json::from_slice(&shown).unwrap();
    shown["toast"]["content"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_tap_gets_an_answer_to_show_and_decides_once_when_feishu_repeats_it() {
    let bench = DaemonBench::new().await;
    let asked = sample::request("Bash", json!({"command": "npm test"}));
    let (mut waiting, _, card) = bench.bench.shows(asked).await;
    let hook = tokio::spawn(async move {
        let mut handed = waiting.answered().await.unwrap();
        handed.report(Delivery::Confirmed);
    });
    let id = RequestId::parse("r1").unwrap();
    let value = bench.cards.buttons.choice(&id, Action::Allow, false);
    let push = tap_push(OWNER, &value, card.as_str());
    let first = answered(&bench, push.clone()).await;
    hook.await.unwrap();
    assert_eq!(answered(&bench, push).await, first);
    assert_eq!(toast(first), "Allowed once");
}

#[tokio::test]
async fn a_tap_on_another_apps_card_decides_nothing() {
    let bench = DaemonBench::new().await;
    let asked = sample::request("Bash", json!({"command": "npm test"}));
    let (_waiting, _, card) = bench.bench.shows(asked).await;
    let id = RequestId::parse("r1").unwrap();
    let value = bench.cards.buttons.choice(&id, Action::Allow, false);
    let push = String::from_utf8(tap_push(OWNER, &value, card.as_str())).unwrap();
    for (from, to) in [
        ("cli_1", "cli_2"),
        ("\"host\":\"im_message\"", "\"host\":\"elsewhere\""),
        ("\"host\":", "\"delivery_type\":\"url_preview\",\"host\":"),
    ] {
        let foreign = push
            .replace(from, to)
            .replace("tap-", &format!("{}-", to.len()));
        assert_ne!(foreign, push);
        assert_ne!(
            toast(answered(&bench, foreign.into_bytes()).await),
            "Allowed once"
        );
        assert_eq!(bench.cards.desk.pending(), 1, "{to}");
    }
}

#[tokio::test]
async fn a_message_is_acknowledged_and_carried_out_and_another_apps_is_left_alone() {
    let bench = DaemonBench::new().await;
    let lock = push(OWNER, "om_written", "/lock", &Value::Null);
    let foreign = String::from_utf8(lock.clone()).unwrap();
    let foreign = foreign.replace("cli_1", "cli_2").into_bytes();
    assert_eq!(answered(&bench, foreign).await, PushAnswer::Done);
    assert_eq!(bench.kept().await, 0);
    assert!(!bench.cards.lock.is_closed());
    assert_eq!(answered(&bench, lock).await, PushAnswer::Done);
    bench.until(|bench| bench.cards.lock.is_closed()).await;
}

#[tokio::test]
async fn what_nod_does_not_use_or_cannot_read_is_acknowledged_so_that_it_does_not_come_again() {
    let bench = DaemonBench::new().await;
    let other = json!({"schema": "2.0", "header": {"event_type": "im.chat.updated_v1"}});
    for push in [
        other.to_string().into_bytes(),
        b"{}".to_vec(),
        b"nonsense".to_vec(),
        b"\xff\xfe".to_vec(),
        Vec::new(),
    ] {
        assert_eq!(answered(&bench, push).await, PushAnswer::Done);
    }
    assert_eq!((bench.kept().await, bench.bench.calls().len()), (0, 0));
}

#[tokio::test]
async fn whoever_made_a_tap_that_cannot_be_read_sees_no_error() {
    let bench = DaemonBench::new().await;
    for push in [
        &b"{\"header\":{\"event_type\":\"card.action.trigger\""[..],
        b"\xff card.action.trigger",
    ] {
        let answer = answered(&bench, push.to_vec()).await;
        assert_eq!(answer, PushAnswer::Show(b"{}".to_vec()));
    }
}
