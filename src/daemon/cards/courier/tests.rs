use super::*;
use crate::approvals::request::Request;
use crate::cards::sample::bash;
use crate::daemon::bench::WEBHOOK;
use crate::daemon::cards::bench::{Bench, config, refusal};
use crate::text::Text;
use serde_json::json;

fn message(name: &str) -> MessageId {
    MessageId::parse(name).unwrap()
}

fn named(id: &str, mut request: Request) -> Request {
    request.id = RequestId::parse(id).unwrap();
    request
}

#[test]
fn a_card_sees_a_line_that_is_up_away_or_shut_out() {
    let until = Instant::now();
    let why = Text::new("断", "cut");
    let view = |phase| LinkView {
        phase,
        ..crate::feishu::connection::first_view()
    };
    let up = view(Phase::Up { since: until });
    assert_eq!(seen(&up).state, LineState::Up);
    let waits = view(Phase::Waiting {
        until,
        why: why.clone(),
    });
    let LineState::Away(told) = seen(&waits).state else {
        panic!("it comes back by itself");
    };
    assert!(told.en.ends_with("cut"), "{}", told.en);
    let mut shut_out = view(Phase::Degraded { until, why });
    shut_out.counts.connects = 3;
    shut_out.counts.lost_heard = Some(until);
    let told = seen(&shut_out);
    assert!(matches!(told.state, LineState::ShutOut(_)));
    assert_eq!((told.connects, told.lost_heard), (3, Some(until)));
}

#[tokio::test]
async fn only_the_app_can_edit_and_only_the_custom_bots_cards_have_links() {
    let app = Bench::new().await;
    let courier = &app.cards.courier;
    assert!(courier.messages().is_some() && courier.has_receiver());
    assert!(courier.webhook().is_none() && courier.links().is_none());
    let bot = Bench::with(config(&WEBHOOK)).await;
    let courier = &bot.cards.courier;
    assert!(courier.messages().is_none() && courier.receiver().is_none());
    assert!(courier.webhook().is_some() && courier.links().is_some());
    assert!(courier.has_receiver());
    let nobody = Bench::with(config(&[("FEISHU_OWNER_ID", "")])).await;
    assert!(!nobody.cards.courier.has_receiver());
}

#[tokio::test]
async fn a_quick_reply_waits_for_the_name_of_a_card_on_its_way() {
    let bench = Bench::new().await;
    bench.stop_time();
    let courier = &bench.cards.courier;
    let unknown = courier.request_soon(&message("om_8")).await;
    assert_eq!(unknown, None, "nothing is on its way");
    let told = bench.holds();
    let (_waiting, request) = bench.asks(bash("ls"));
    send_now(&bench.cards, &request);
    bench.call(0).await;
    let of = message("om_1");
    let mut reply = std::pin::pin!(courier.request_soon(&of));
    assert!(futures::poll!(&mut reply).is_pending());
    told.send(()).unwrap();
    let found = bench.meanwhile(Duration::ZERO, reply).await;
    assert_eq!(found, Some(request.id.clone()));
    // A notice on its way may be what was replied to, but not for ever.
    courier.telling();
    let stranger = message("om_9");
    let mut reply = std::pin::pin!(courier.request_soon(&stranger));
    assert!(futures::poll!(&mut reply).is_pending());
    bench.pass(NAMED_WITHIN).await;
    assert_eq!(reply.await, None);
    let mut reply = std::pin::pin!(courier.request_soon(&stranger));
    assert!(futures::poll!(&mut reply).is_pending());
    courier.told();
    assert_eq!(reply.await, None);
}

#[tokio::test]
async fn a_quick_tap_waits_for_the_card_that_asks_but_no_longer_than_feishu_does() {
    let bench = Bench::new().await;
    bench.stop_time();
    let (_waiting, request, _) = bench.shows(bash("ls")).await;
    let courier = &bench.cards.courier;
    let asks = message("om_7");
    assert!(!courier.asks_about(&request.id, &asks).await);
    courier.asking();
    let mut tap = std::pin::pin!(courier.asks_about(&request.id, &asks));
    assert!(futures::poll!(&mut tap).is_pending());
    assert!(courier.asked_by(&request.id, &asks));
    courier.asked();
    assert!(tap.await);
    courier.asking();
    let other = message("om_6");
    let mut tap = std::pin::pin!(courier.asks_about(&request.id, &other));
    assert!(futures::poll!(&mut tap).is_pending());
    bench.pass(ASKED_WITHIN).await;
    assert!(!tap.await, "Feishu waits three seconds for an answer");
}

#[tokio::test]
async fn an_edit_is_on_disk_until_no_tap_can_take_it_back() {
    let bench = Bench::new().await;
    bench.stop_time();
    bench.pass(AFTER_REPLY).await;
    let of = message("om_7");
    let face = Face {
        shown: r#"{"shown":1}"#.into(),
        kept: r#"{"kept":1}"#.into(),
    };
    queue_edit(&bench.cards, of.clone(), face, AFTER_REPLY).await;
    bench.settled().await;
    assert!(bench.calls().is_empty(), "a tap may be under way");
    let key = CardKey::Message(of.clone());
    let kept = |made| vec![(key.clone(), r#"{"kept":1}"#.to_owned(), made)];
    assert_eq!(bench.kept().await, kept(0));
    bench.pass(AFTER_REPLY).await;
    assert_eq!(bench.edits_of(&of), [r#"{"shown":1}"#]);
    assert_eq!(bench.kept().await, kept(1));
    bench.pass(Duration::from_secs(26)).await;
    assert_eq!(bench.kept().await, []);
    assert_eq!(bench.edits_of(&of).len(), 1);
}

#[tokio::test]
async fn the_edit_of_an_ending_goes_by_the_name_that_the_card_has_by_now() {
    let bench = Bench::new().await;
    let (_waiting, request, of) = bench.shows(bash("ls")).await;
    let settled = Settled {
        request: Arc::clone(&request),
        ending: crate::approvals::request::Ending::TimedOut,
        at: 1,
    };
    close(&bench.cards, &settled).await;
    bench.until(|| bench.edits_of(&of).len() == 1).await;
    let right: CardText = r#"{"put":"right"}"#.into();
    let key = CardKey::Sending(request.id.clone());
    queue_ending(&bench.cards, key, right.into(), Duration::ZERO).await;
    bench.until(|| bench.edits_of(&of).len() == 2).await;
    assert_eq!(bench.edits_of(&of)[1], r#"{"put":"right"}"#);
    let kept = bench.kept().await;
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].0, CardKey::Message(of));
}

#[tokio::test]
async fn a_notice_is_told_in_words_where_feishu_forbids_its_card_and_lost_where_it_forbids_both() {
    let bench = Bench::new().await;
    let card = || {
        let body = json!({"elements": [{"tag": "div", "text": {"tag": "plain_text", "content": "Done."}}]});
        Content::Card(json!({"schema": "2.0", "body": body}))
    };
    let sent = tell(&bench.cards, card(), "turn-1").await;
    assert_eq!(sent, Some(message("om_1")));
    bench.answers(refusal(230_028, "data leak"));
    let sent = tell(&bench.cards, card(), "turn-2").await;
    assert_eq!(sent, Some(message("om_3")));
    let calls = bench.calls();
    assert_eq!(calls[0].1["receive_id"], "ou_owner");
    assert_eq!(calls[2].1["msg_type"], "text");
    assert!(calls[2].1["content"].as_str().unwrap().contains("Done."));
    for _ in 0..2 {
        bench.answers(refusal(230_028, "data leak"));
    }
    assert_eq!(tell(&bench.cards, card(), "turn-3").await, None);
    let said = Content::Text("Hello".to_owned());
    let sent = tell(&bench.cards, said, "hello").await;
    assert_eq!(sent, Some(message("om_6")));
    assert_eq!(bench.calls()[5].1["uuid"], "hello");
}

#[tokio::test]
async fn what_is_known_of_a_card_ends_with_its_request() {
    let bench = Bench::new().await;
    let (_waiting, request, of) = bench.shows(bash("ls")).await;
    let courier = &bench.cards.courier;
    assert_eq!(
        courier.place_of(&request.id).unwrap().chat.as_str(),
        "oc_chat"
    );
    assert_eq!(
        courier.went_out(&request.id),
        WentOut::Unknown,
        "it fits its card"
    );
    assert!(courier.adopt(&request.id, &message("om_8")));
    assert_eq!(courier.message_of(&request.id), Some(of.clone()));
    let (_other, other) = bench.asks(named("r2", bash("pwd")));
    assert!(!courier.adopt(&other.id, &of), "it is another's");
    courier.forget(&request.id);
    assert_eq!(courier.message_of(&request.id), None);
    assert_eq!(courier.place_of(&request.id), None);
    assert!(!courier.asked_by(&request.id, &message("om_7")));
}
