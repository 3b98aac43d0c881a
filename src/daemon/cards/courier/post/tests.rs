use super::*;
use crate::approvals::Settled;
use crate::approvals::desk::Delivery;
use crate::approvals::outcome::sample;
use crate::approvals::request::{Dropped, Ending};
use crate::cards::sample::bash;
use crate::daemon::bench::WEBHOOK;
use crate::daemon::cards::bench::{Bench, config, refusal, unanswered};
use crate::daemon::cards::courier::{close, ended_face, take_down};
use crate::ids::{CardKey, ChatId};
use crate::store::Db;
use serde_json::json;
use std::sync::Arc;

const SECOND: Duration = Duration::from_secs(1);

fn question(to: Option<&str>) -> Request {
    let mut input = json!({"question": "Which port?", "kind": "text"});
    if let Some(to) = to {
        input["to"] = json!(to);
    }
    sample::request("nod_ask", input)
}

fn settled(request: &Arc<Request>) -> Settled {
    Settled {
        request: Arc::clone(request),
        ending: Ending::TimedOut,
        at: 1,
    }
}

/// What the store knows of where the card of the one request that waits is.
async fn noted(bench: &Bench) -> Option<CardPlace> {
    let pending = bench.cards.journal.store.run(Db::pending_all);
    pending.await.unwrap().remove(0).card
}

#[tokio::test]
async fn the_terminal_has_its_head_start_and_what_it_decides_gets_no_card() {
    let bench = Bench::with(config(&[("PERMISSION_NOTIFY_DELAY", "5")])).await;
    bench.stop_time();
    let (_waiting, request) = bench.asks(bash("ls"));
    send_card(&bench.cards, &request);
    assert!(bench.cards.courier.is_held(&request.id));
    bench.pass(4 * SECOND).await;
    assert!(bench.calls().is_empty());
    bench.pass(SECOND).await;
    assert_eq!(bench.calls().len(), 1);
    let mut soon = bash("pwd");
    soon.id = RequestId::parse("r2").unwrap();
    let (_waiting, soon) = bench.asks(soon);
    send_card(&bench.cards, &soon);
    bench.pass(4 * SECOND).await;
    bench.cards.desk.answered_there(&soon.id);
    bench.pass(2 * SECOND).await;
    assert_eq!(bench.calls().len(), 1);
}

#[tokio::test]
async fn a_card_goes_to_the_owner_or_to_whom_a_script_asks() {
    for (to, id, kind) in [
        (None, "ou_owner", "open_id"),
        (Some("oc_team"), "oc_team", "chat_id"),
        (Some("ou_bob"), "ou_bob", "open_id"),
    ] {
        let bench = Bench::new().await;
        let (_waiting, request) = bench.asks(question(to));
        let receiver = receiver_for(&bench.cards, &request).unwrap();
        send_now(&bench.cards, &request);
        bench.call(0).await;
        let (path, body) = bench.calls().remove(0);
        assert!(path.ends_with("im/v1/messages"), "{path}");
        assert_eq!(body["receive_id"], id);
        assert_eq!(body["msg_type"], "interactive");
        assert_eq!(matches!(receiver, Receiver::Chat(_)), kind == "chat_id");
    }
}

#[tokio::test]
async fn a_request_with_nobody_to_ask_goes_back_to_the_terminal_at_once() {
    let bench = Bench::with(config(&[("FEISHU_OWNER_ID", "")])).await;
    let (_waiting, request) = bench.asks(bash("ls"));
    send_card(&bench.cards, &request);
    let ended = bench.ended().await.ending;
    assert_eq!(ended, Ending::Undeliverable { why: None });
    assert_eq!(bench.cards.courier.message_of(&request.id), None);
}

#[tokio::test]
async fn where_a_card_stands_is_known_and_written_down() {
    let bench = Bench::new().await;
    let (_waiting, request, message) = bench.shows(bash("ls")).await;
    bench.settled().await;
    let chat = ChatId::parse("oc_chat").unwrap();
    let place = bench.cards.courier.place_of(&request.id).unwrap();
    assert_eq!((place.chat, place.thread), (chat.clone(), None));
    assert_eq!(noted(&bench).await, Some(CardPlace { message, chat }));
}

#[tokio::test]
async fn a_card_in_a_sessions_thread_is_a_reply_there() {
    let bench = Bench::new().await;
    let (_waiting, request) = bench.asks(bash("ls"));
    let target = CardTarget::Thread {
        anchor: MessageId::parse("om_anchor").unwrap(),
        place: route::ChatPlace {
            chat: ChatId::parse("oc_topics").unwrap(),
            thread: Some("omt_1".to_owned()),
        },
    };
    send_to(&bench.cards, &request, target);
    let place = bench.cards.courier.place_of(&request.id).unwrap();
    assert_eq!(place.chat.as_str(), "oc_topics", "before it is sent");
    bench.call(0).await;
    let (path, body) = bench.calls().remove(0);
    assert!(path.ends_with("messages/om_anchor/reply"), "{path}");
    assert_eq!(body["reply_in_thread"], true);
    assert_eq!(body["uuid"], format!("perm-{}", request.id));
}

#[tokio::test]
async fn a_limit_of_feishus_is_waited_out() {
    let bench = Bench::new().await;
    bench.stop_time();
    for _ in 0..6 {
        bench.answers(refusal(99_991_400, "request trigger frequency limit"));
    }
    let (_waiting, request) = bench.asks(bash("ls"));
    send_now(&bench.cards, &request);
    bench.pass(3 * SECOND).await;
    assert_eq!(bench.cards.courier.message_of(&request.id), None);
    bench.pass(12 * SECOND).await;
    assert!(bench.cards.courier.message_of(&request.id).is_some());
    assert!(bench.cards.desk.find(&request.id).is_some());
    let keys: Vec<_> = bench
        .calls()
        .into_iter()
        .map(|(_, body)| body["uuid"].clone())
        .collect();
    assert_eq!(keys.len(), 7);
    assert!(keys.windows(2).all(|pair| pair[0] == pair[1]), "one key");
}

#[tokio::test]
async fn a_card_that_got_no_answer_may_be_there_when_the_time_is_over() {
    let bench = Bench::new().await;
    bench.stop_time();
    for _ in 0..200 {
        bench.fails(unanswered());
    }
    let (waiting, request) = bench.asks(bash("ls"));
    bench.keep(&waiting, &request).await;
    send_now(&bench.cards, &request);
    bench.pass(70 * SECOND).await;
    let ended = bench.ended().await.ending;
    let Ending::Undeliverable { why: Some(why) } = ended else {
        panic!("{ended:?}");
    };
    assert!(why.contains("did not answer in time"), "{why}");
    let face = ended_face(&bench.cards, &settled(&request), Delivery::Confirmed, None);
    let key = take_down(&bench.cards, &settled(&request), &face);
    assert_eq!(key, Some(CardKey::Sending(request.id.clone())));
}

#[tokio::test]
async fn a_request_that_ended_before_the_book_knew_of_it_gets_no_card() {
    let bench = Bench::new().await;
    let (_waiting, request) = bench.asks(bash("ls"));
    bench.cards.desk.drop_one(&request.id, Dropped::Restart);
    send_now(&bench.cards, &request);
    bench.settled().await;
    assert!(bench.calls().is_empty());
    assert!(bench.cards.courier.lock().post(&request.id).is_none());
}

/// A request that waits when the next daemon takes over, whose card went out
/// and was never named.
async fn left(request: Request) -> (Bench, Arc<Request>) {
    let bench = Bench::new().await;
    let never_told = bench.holds();
    let (waiting, request) = bench.asks(request);
    bench.keep(&waiting, &request).await;
    send_now(&bench.cards, &request);
    bench.call(0).await;
    let token = waiting.token().unwrap().hash();
    let bench = bench.restarted().await;
    drop(never_told);
    take_over(&bench.cards, &request, None);
    let waiting = [(Arc::clone(&request), token)];
    bench
        .cards
        .desk
        .restore(waiting, [], Duration::from_secs(30));
    bench.settled().await;
    (bench, request)
}

#[tokio::test]
async fn after_a_restart_a_card_is_sent_again_under_its_key() {
    let (bench, request) = left(bash("ls")).await;
    assert!(!bench.cards.courier.is_held(&request.id), "it may be there");
    resend(&bench.cards, &request);
    let named = bench.named(&request.id).await;
    assert_eq!(named.as_str(), "om_1", "Feishu made no second one");
    let calls = bench.calls();
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[1].1["uuid"], format!("perm-{}", request.id));
}

#[tokio::test]
async fn after_a_restart_nothing_is_sent_for_what_has_ended_or_has_no_time_left() {
    let (bench, request) = left(bash("ls")).await;
    let mut late = (*request).clone();
    late.deadline = bench.cards.now() - 1;
    resend(&bench.cards, &late);
    bench.settled().await;
    assert_eq!(bench.calls().len(), 1, "the desk ends it");
    bench.cards.desk.answered_there(&request.id);
    resend(&bench.cards, &request);
    bench.settled().await;
    assert_eq!(bench.calls().len(), 1, "by the last run");
}

#[tokio::test]
async fn after_a_restart_the_card_of_what_ended_is_looked_for_where_it_was_sent() {
    for (to, receiver) in [(None, "ou_owner"), (Some("oc_team"), "oc_team")] {
        let (bench, request) = left(question(to)).await;
        bench.stop_time();
        close(&bench.cards, &settled(&request)).await;
        let kept = bench.kept().await;
        assert_eq!(kept.len(), usize::from(to.is_none()), "{to:?}");
        bench.pass(6 * SECOND).await;
        let (_, looked) = bench.calls().remove(1);
        assert_eq!(looked["receive_id"], receiver);
        assert_eq!(looked["uuid"], format!("perm-{}", request.id));
        bench.pass(4 * SECOND).await;
        let faces = bench.edits_of(&MessageId::parse("om_1").unwrap());
        assert_eq!(faces.len(), 1, "{to:?}");
        assert!(faces[0].contains("Timed out"));
    }
}

#[tokio::test]
async fn a_card_that_was_named_before_the_restart_keeps_its_place() {
    let bench = Bench::new().await;
    let (_waiting, request, message) = bench.shows(bash("ls")).await;
    bench.settled().await;
    let card = noted(&bench).await.unwrap();
    let bench = bench.restarted().await;
    take_over(&bench.cards, &request, Some(&card));
    assert_eq!(bench.cards.courier.message_of(&request.id), Some(message));
    let place = bench.cards.courier.place_of(&request.id).unwrap();
    assert_eq!(place.chat.as_str(), "oc_chat");
}

#[tokio::test]
async fn a_custom_bots_card_is_sent_again_after_a_restart_and_never_looked_for() {
    let bench = Bench::with(config(&WEBHOOK)).await;
    let (_waiting, request) = bench.asks(bash("ls"));
    take_over(&bench.cards, &request, None);
    resend(&bench.cards, &request);
    let known = || bench.cards.courier.lock().post(&request.id).is_some();
    bench.until(|| !known()).await;
}

#[tokio::test]
async fn a_look_that_feishu_refuses_is_the_last_and_one_it_puts_off_is_not() {
    let bench = Bench::new().await;
    let (waiting, request) = bench.asks(bash("ls"));
    bench.keep(&waiting, &request).await;
    bench.stop_time();
    take_over(&bench.cards, &request, None);
    close(&bench.cards, &settled(&request)).await;
    // An app that lost its permission may get it back.
    bench.answers(refusal(99_991_672, "no scope"));
    bench.pass(6 * SECOND).await;
    assert_eq!(bench.calls().len(), 1);
    assert_eq!(bench.kept().await.len(), 1);
    bench.answers(refusal(230_002, "not in the group"));
    bench.pass(3 * SECOND).await;
    assert_eq!(bench.calls().len(), 2);
    assert_eq!(bench.kept().await, [], "it stays as it is");
    bench.pass(60 * SECOND).await;
    assert_eq!(bench.calls().len(), 2);
}

#[tokio::test]
async fn whoever_knows_where_a_card_is_has_it_looked_for_there_at_once() {
    let bench = Bench::new().await;
    let (waiting, request) = bench.asks(bash("ls"));
    bench.keep(&waiting, &request).await;
    bench.stop_time();
    take_over(&bench.cards, &request, None);
    close(&bench.cards, &settled(&request)).await;
    let target = CardTarget::Thread {
        anchor: MessageId::parse("om_anchor").unwrap(),
        place: route::ChatPlace {
            chat: ChatId::parse("oc_topics").unwrap(),
            thread: None,
        },
    };
    seek(&bench.cards, &request.id, target);
    bench.call(0).await;
    let (path, body) = bench.calls().remove(0);
    assert!(path.ends_with("messages/om_anchor/reply"), "{path}");
    assert_eq!(body["reply_in_thread"], false);
    assert!(body["content"].as_str().unwrap().contains("Timed out"));
}

#[tokio::test]
async fn a_look_that_has_nothing_to_show_or_nobody_to_ask_is_none() {
    let bench = Bench::with(config(&[("FEISHU_OWNER_ID", "")])).await;
    let (waiting, request) = bench.asks(bash("ls"));
    bench.keep(&waiting, &request).await;
    bench.stop_time();
    take_over(&bench.cards, &request, None);
    close(&bench.cards, &settled(&request)).await;
    assert_eq!(bench.kept().await.len(), 1);
    bench.pass(6 * SECOND).await;
    assert!(bench.calls().is_empty());
    assert_eq!(bench.kept().await, []);
}
