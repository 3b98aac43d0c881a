use super::*;
use crate::approvals::desk::Waiting;
use crate::approvals::outcome::sample;
use crate::approvals::request::Dropped;
use crate::cards::whole::WentOut;
use crate::daemon::cards::bench::{Bench, refusal};
use crate::daemon::cards::courier::{close, send_now};
use serde_json::{Value, json};

/// A call with so many bytes of input.
fn of(kilobytes: usize) -> Request {
    let line = format!("echo {}\n", "x".repeat(58));
    let lines = line.repeat(kilobytes << 4);
    sample::request("Bash", json!({"command": lines}))
}

/// What was sent for a request of so many bytes: all that came before its card,
/// and the card.
async fn sent(bench: &Bench, kilobytes: usize) -> (Waiting, Vec<(String, Value)>, String) {
    let (waiting, request, _) = bench.shows(of(kilobytes)).await;
    let mut calls = bench.calls();
    let card = calls.pop().unwrap().1;
    assert_eq!(card["uuid"], format!("perm-{}", request.id));
    let told = bench.cards.courier.went_out(&request.id);
    let card = card["content"].as_str().unwrap().to_owned();
    assert_eq!(told == WentOut::Whole, allows(&card));
    assert_ne!(told, WentOut::Unknown);
    (waiting, calls, card)
}

/// Whether a card has an allow whose seal says that all went out before it.
fn allows(card: &str) -> bool {
    let card = serde_json::from_str(card).unwrap();
    let buttons = crate::daemon::bench::buttons(&card);
    let mut allows = buttons.iter().filter(|value| value["action"] == "allow");
    allows.any(|value| value["whole"] == true)
}

fn kinds(calls: &[(String, Value)]) -> Vec<&str> {
    let kind = |(path, body): &'_ (String, Value)| match body["msg_type"].as_str() {
        Some("file") => "file",
        Some("interactive") => "card",
        _ if path.ends_with("im/v1/files") => "upload",
        _ => "other",
    };
    calls.iter().map(kind).collect()
}

#[tokio::test]
async fn what_a_few_messages_hold_goes_out_before_the_card_in_order() {
    let bench = Bench::new().await;
    let (_waiting, before, card) = sent(&bench, 40).await;
    assert_eq!(kinds(&before), ["card", "card"]);
    assert!(allows(&card));
    let text = |n: usize| before[n].1["content"].as_str().unwrap();
    assert!(
        text(0).contains("1/2") && text(1).contains("2/2"),
        "{}",
        text(1)
    );
    let keys: Vec<_> = before.iter().map(|(_, body)| &body["uuid"]).collect();
    assert_ne!(keys[0], keys[1]);
}

#[tokio::test]
async fn the_same_text_has_the_same_keys_after_a_restart_and_another_has_others() {
    let bench = Bench::new().await;
    let (_waiting, before, _) = sent(&bench, 40).await;
    let bench = bench.restarted().await;
    let (_waiting, all, _) = sent(&bench, 40).await;
    let keys = |calls: &[(String, Value)]| -> Vec<Value> {
        calls.iter().map(|(_, body)| body["uuid"].clone()).collect()
    };
    assert_eq!(keys(&before), keys(&all[3..]));
    let bench = bench.restarted().await;
    let (_waiting, all, _) = sent(&bench, 41).await;
    assert!(
        keys(&all[6..])
            .iter()
            .all(|key| !keys(&before).contains(key))
    );
}

#[tokio::test]
async fn more_than_a_few_messages_go_as_one_file_that_the_card_names() {
    let bench = Bench::new().await;
    let (_waiting, before, card) = sent(&bench, 110).await;
    assert_eq!(kinds(&before), ["upload", "file"]);
    assert_eq!(before[1].1["content"], r#"{"file_key":"file_1"}"#);
    assert!(allows(&card));
    let text = whole::text(&of(110), bench.cards.config.lang).unwrap();
    let digest = hex::encode(&Sha256::digest(text.as_bytes()));
    assert!(
        card.contains(&format!("nod-{}.txt", &digest[..8])),
        "{card}"
    );
}

#[tokio::test]
async fn where_no_file_can_be_sent_more_messages_are() {
    let bench = Bench::new().await;
    bench.answers(refusal(99_991_672, "no scope"));
    let (_waiting, before, card) = sent(&bench, 110).await;
    assert_eq!(kinds(&before)[0], "upload");
    assert!(kinds(&before)[1..].iter().all(|kind| *kind == "card"));
    assert!((whole::FEW + 1..=whole::MANY).contains(&(before.len() - 1)));
    assert!(allows(&card));
}

#[tokio::test]
async fn what_cannot_be_sent_whole_cannot_be_allowed() {
    // Neither as a file nor as messages.
    let bench = Bench::new().await;
    bench.answers(refusal(99_991_672, "no scope"));
    let (_waiting, before, card) = sent(&bench, 300).await;
    assert_eq!(kinds(&before), ["upload"]);
    assert!(!allows(&card) && card.contains(r#""action":"deny""#));
    // Too long for anybody.
    let bench = Bench::new().await;
    let (_waiting, before, card) = sent(&bench, 1_100).await;
    assert!(before.is_empty() && !allows(&card));
    // A part of it is forbidden.
    let bench = Bench::new().await;
    bench.answers(json!({"code": 0, "data": {"message_id": "om_part"}}));
    bench.answers(refusal(230_028, "data leak"));
    let (_waiting, before, card) = sent(&bench, 40).await;
    assert_eq!(kinds(&before), ["card", "card"]);
    assert!(!allows(&card));
}

#[tokio::test]
async fn nobody_needs_the_rest_of_what_has_ended() {
    for (kilobytes, first) in [(40, "card"), (110, "upload")] {
        let bench = Bench::new().await;
        let told = bench.holds();
        let (_waiting, request) = bench.asks(of(kilobytes));
        send_now(&bench.cards, &request);
        bench.call(0).await;
        let desk = &bench.cards.desk;
        assert!(desk.drop_one(&request.id, Dropped::Restart));
        close(&bench.cards, &bench.ended().await).await;
        told.send(()).unwrap();
        bench.call(1).await;
        bench.settled().await;
        let calls = bench.calls();
        assert_eq!(kinds(&calls)[..2], [first, "card"]);
        let card = &calls[1].1;
        assert_eq!(card["uuid"], format!("perm-{}", request.id));
        let card = card["content"].as_str().unwrap();
        assert!(!card.contains(r#""action":"deny""#), "as it ended: {card}");
    }
}
