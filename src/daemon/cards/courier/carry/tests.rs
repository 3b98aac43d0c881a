use super::*;
use crate::approvals::Settled;
use crate::approvals::request::{Ending, Request};
use crate::cards::sample::bash;
use crate::daemon::bench::WEBHOOK;
use crate::daemon::cards::bench::{Bench, config, refusal, unanswered};
use crate::daemon::cards::courier::{self, close, send_now, show_running};
use crate::feishu::link::Phase;
use crate::ids::MessageId;

fn settled(request: &Arc<Request>) -> Settled {
    Settled {
        request: Arc::clone(request),
        ending: Ending::TimedOut,
        at: 1,
    }
}

async fn why_undeliverable(bench: &Bench) -> String {
    match bench.ended().await.ending {
        Ending::Undeliverable { why } => why.unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_the_last_daemon_left_is_made_and_looked_for_by_the_next() {
    let bench = Bench::new().await;
    let made = MessageId::parse("om_70").unwrap();
    let new = MessageId::parse("om_71").unwrap();
    let request = bash("ls").id;
    let (of, other, by_key) = (made.clone(), new.clone(), request.clone());
    let now = bench.cards.now();
    let left = bench.cards.journal.store.run(move |db| {
        let key = CardKey::Message(of.clone());
        let version = db.put_edit(&key, r#"{"made":"once"}"#, now)?;
        db.edit_made(&of, version)?;
        db.put_edit(&CardKey::Message(other), r#"{"never":"made"}"#, now)?;
        let long_ago = now - 10_000;
        db.put_edit(&CardKey::Sending(by_key), r#"{"no":"name"}"#, long_ago)
    });
    left.await.unwrap();
    let bench = bench.restarted().await;
    bench.stop_time();
    restore(&bench.cards).await;
    bench.settled().await;
    assert_eq!(bench.edits_of(&new), [r#"{"never":"made"}"#]);
    assert!(bench.edits_of(&made).is_empty(), "a tap may be under way");
    let (path, looked) = bench.calls().remove(1);
    assert!(path.ends_with("im/v1/messages"), "{path}");
    assert_eq!(looked["uuid"], format!("perm-{request}"));
    assert_eq!(looked["content"], r#"{"no":"name"}"#);
    let found = MessageId::parse("om_2").unwrap();
    bench.pass(Duration::from_secs(4)).await;
    assert_eq!(bench.edits_of(&made), [r#"{"made":"once"}"#]);
    assert_eq!(bench.edits_of(&found)[0], r#"{"no":"name"}"#);
    let kept: Vec<_> = bench
        .kept()
        .await
        .into_iter()
        .map(|(key, _, _)| key)
        .collect();
    assert!(!kept.contains(&CardKey::Sending(request)), "it has a name");
    assert!(kept.contains(&CardKey::Message(found)));
    bench.pass(Duration::from_secs(40)).await;
    assert_eq!(bench.kept().await, [], "they stay");
}

#[tokio::test]
async fn a_face_that_a_card_is_to_show_before_it_has_a_name_comes_with_the_name() {
    let bench = Bench::new().await;
    let told = bench.holds();
    let (waiting, request) = bench.asks(bash("ls"));
    bench.keep(&waiting, &request).await;
    send_now(&bench.cards, &request);
    bench.call(0).await;
    show_running(&bench.cards, &request, bench.cards.now());
    bench.settled().await;
    assert_eq!(bench.calls().len(), 1);
    told.send(()).unwrap();
    let of = bench.named(&request.id).await;
    bench.until(|| !bench.edits_of(&of).is_empty()).await;
    assert!(bench.edits_of(&of)[0].contains("interrupt"));
    assert_eq!(bench.kept().await[0].0, CardKey::Message(of));
}

#[tokio::test]
async fn a_face_of_the_waiting_never_takes_the_place_of_the_ending() {
    let bench = Bench::new().await;
    let (_waiting, request, of) = bench.shows(bash("ls")).await;
    close(&bench.cards, &settled(&request)).await;
    let ended = bench.kept().await[0].1.clone();
    let late = Keep {
        request: request.id.clone(),
        message: of.clone(),
        face: CardText::from(r#"{"waits":1}"#).into(),
        of: KeepOf::Waiting,
    };
    keep(&bench.cards, late).await;
    bench.settled().await;
    assert_eq!(bench.kept().await[0].1, ended);
    assert!(
        bench
            .edits_of(&of)
            .iter()
            .all(|face| !face.contains("waits"))
    );
}

#[tokio::test]
async fn the_terminal_decides_what_feishu_will_not_carry_and_is_told_why() {
    let bench = Bench::with(config(&[("NOD_LANG", "zh")])).await;
    bench.answers(refusal(230_053, "stopped"));
    let (_waiting, request) = bench.asks(bash("ls"));
    send_now(&bench.cards, &request);
    let why = why_undeliverable(&bench).await;
    assert!(why.contains("230053"), "{why}");
    assert!(!why.is_ascii(), "in the owner's language: {why}");
    assert_eq!(bench.calls().len(), 1, "nothing else is tried");
}

#[tokio::test]
async fn the_terminal_decides_at_once_while_only_a_person_can_mend_the_line() {
    let bench = Bench::new().await;
    let why = crate::text::Text::new("密钥", "the secret is wrong");
    let until = std::time::Instant::now();
    bench.view.send_modify(|view| {
        view.phase = Phase::Degraded { until, why };
    });
    bench.settled().await;
    let (_waiting, request) = bench.asks(bash("ls"));
    send_now(&bench.cards, &request);
    let why = why_undeliverable(&bench).await;
    assert!(why.ends_with("the secret is wrong"), "{why}");
    assert!(bench.calls().is_empty());
}

#[tokio::test]
async fn what_hangs_in_a_line_that_is_gone_is_sent_anew_by_the_next_and_makes_no_second_card() {
    let bench = Bench::new().await;
    let hangs = bench.holds();
    let (_waiting, request) = bench.asks(bash("ls"));
    send_now(&bench.cards, &request);
    bench.call(0).await;
    bench.connected();
    bench.call(1).await;
    let of = bench.named(&request.id).await;
    let calls = bench.calls();
    assert_eq!(calls[0].1["uuid"], calls[1].1["uuid"]);
    assert_eq!(of.as_str(), "om_1", "by its key the first");
    assert!(hangs.is_closed(), "nobody waits for it any more");
}

#[tokio::test]
async fn a_card_whose_answer_is_lost_is_looked_for_when_its_request_has_ended() {
    let bench = Bench::new().await;
    bench.stop_time();
    bench.pass(courier::AFTER_REPLY).await;
    drop(bench.holds());
    for _ in 0..4 {
        bench.fails(unanswered());
    }
    let (waiting, request) = bench.asks(bash("ls"));
    bench.keep(&waiting, &request).await;
    send_now(&bench.cards, &request);
    bench.pass(Duration::from_secs(1)).await;
    close(&bench.cards, &settled(&request)).await;
    drop(waiting);
    let kept = bench.kept().await;
    assert_eq!(kept[0].0, CardKey::Sending(request.id.clone()));
    bench.pass(Duration::from_secs(20)).await;
    let found = MessageId::parse("om_1").unwrap();
    let faces = bench.edits_of(&found);
    assert!(faces[0].contains("Timed out"), "{faces:?}");
    bench.pass(Duration::from_secs(40)).await;
    assert_eq!(bench.kept().await, []);
}

#[tokio::test]
async fn a_custom_bots_edits_come_to_nothing() {
    let bench = Bench::with(config(&WEBHOOK)).await;
    let of = MessageId::parse("om_7").unwrap();
    let face = CardText::from("{}").into();
    courier::queue_edit(&bench.cards, of, face, Duration::ZERO).await;
    bench.settled().await;
    assert_eq!(bench.kept().await, [], "a custom bot cannot edit");
}

#[tokio::test]
async fn the_book_is_left_as_it_is_when_the_daemon_stops() {
    let bench = Bench::new().await;
    let stop = CancellationToken::new();
    stop.cancel();
    let runs = run(Arc::clone(&bench.cards), stop);
    let limit = Duration::from_secs(20);
    tokio::time::timeout(limit, runs).await.expect("it returns");
}
