//! Events: routing, shapes, re-pushes, and the bench.

use prost::bytes::Bytes;
use serde_json::{Value, json};

use super::client::{Link, answer_to};
use super::{LIMIT, once, ready, start, start_with};
use crate::feishu::frame::Frame;
use crate::simulator::{
    Armed, ChatText, Fault, Flaw, FragmentOrder, Fragments, GROUP, OWNER, Options, Simulator,
};
use std::time::Duration;

const QUICK: Duration = Duration::from_millis(500);

fn quick(options: &mut Options) {
    options.answer_limit = QUICK;
}

#[tokio::test]
async fn a_text_arrives_with_the_documented_body() {
    let simulator = start().await;
    let (_, mut link, card_id) = ready(&simulator).await;
    let text = ChatText::new("because").replying_to(&card_id);
    let (pushed, body) = tokio::join!(simulator.push_text(&text), link.acknowledge());
    let pushed = pushed.unwrap();
    assert!(pushed.acknowledged());
    let message = &body["event"]["message"];
    assert_eq!(message["message_id"], pushed.message_id.as_deref().unwrap());
    assert_eq!(message["parent_id"], card_id.as_str());
    assert_eq!(message["root_id"], card_id.as_str());
    assert_eq!(message["chat_type"], "p2p");
    assert_eq!(message["content"], r#"{"text":"because"}"#);
    assert_eq!(message.get("mentions"), None);
    assert_eq!(body["event"]["sender"]["sender_id"]["open_id"], OWNER);
    assert_eq!(body["header"]["create_time"].as_str().unwrap().len(), 13);
    assert_eq!(simulator.unacknowledged(), 0);
}

#[tokio::test]
async fn a_group_text_mentions_the_bot_and_may_be_old() {
    let simulator = start().await;
    let mut link = Link::connect(&simulator).await;
    let text = ChatText {
        mention_bot: true,
        age_ms: 3_600_000,
        thread_id: Some("omt_1".to_owned()),
        ..ChatText::new("run the tests").in_chat(GROUP).by("stranger")
    };
    let (pushed, body) = tokio::join!(simulator.push_text(&text), link.acknowledge());
    assert!(pushed.unwrap().acknowledged());
    let message = &body["event"]["message"];
    assert_eq!(message["chat_type"], "group");
    assert_eq!(message["thread_id"], "omt_1");
    assert_eq!(message["content"], r#"{"text":"@_user_1 run the tests"}"#);
    assert_eq!(message["mentions"][0]["mentioned_type"], "bot");
    let time = |value: &Value| value.as_str().unwrap().parse::<u64>().unwrap();
    let age = time(&body["header"]["create_time"]) - time(&message["create_time"]);
    assert!(age >= 3_600_000, "{age}");
    let outside = ChatText::new("x").in_chat("oc_nowhere");
    assert!(simulator.push_text(&outside).await.is_err());
}

#[tokio::test]
async fn an_unacknowledged_event_climbs_the_ladder() {
    let simulator = start().await;
    let mut link = Link::connect(&simulator).await;
    let text = ChatText::new("hello");
    let refusing = async {
        let (frame, body) = link.event().await;
        link.answer(&frame, &json!({"code": 500})).await;
        body["header"]["event_id"].clone()
    };
    let (first, id) = tokio::join!(simulator.push_text(&text), refusing);
    assert!(!first.unwrap().acknowledged());
    for code in [500, 500] {
        let refusing = async {
            let (frame, body) = link.event().await;
            assert_eq!(body["header"]["event_id"], id);
            link.answer(&frame, &json!({"code": code})).await;
        };
        let (pushed, ()) = tokio::join!(simulator.advance_repush(), refusing);
        assert_eq!(pushed[0].code, Some(code));
        assert_eq!(simulator.unacknowledged(), 1);
    }
    let (pushed, _) = tokio::join!(simulator.advance_repush(), link.acknowledge());
    assert!(pushed[0].acknowledged());
    assert_eq!(simulator.unacknowledged(), 0);
    assert_eq!(simulator.advance_repush().await.len(), 0);
}

#[tokio::test]
async fn the_ladder_has_four_rungs_and_starts_without_a_connection() {
    let simulator = start().await;
    let lost = simulator.push_event("x.y_v1", json!({})).await;
    assert_eq!((lost.connection, lost.code), (None, None));
    for rung in 0..4 {
        assert_eq!(simulator.advance_repush().await.len(), 1, "{rung}");
    }
    assert_eq!(simulator.unacknowledged(), 0);
}

#[tokio::test]
async fn the_ladder_climbs_by_itself() {
    let simulator = start_with(|options| {
        quick(options);
        options.repush = vec![Duration::from_millis(1)];
    })
    .await;
    let mut link = Link::connect(&simulator).await;
    simulator.set_fault(once(Fault::SwallowEvents)).unwrap();
    let pushed = simulator.push_event("x.y_v1", json!({"n": 1})).await;
    let body = link.acknowledge().await;
    assert_eq!(body["header"]["event_id"], pushed.event_id.as_str());
    let done = simulator.wait_for(LIMIT, |s| {
        (s.unacknowledged() == 0 && s.replies() == 1).then_some(())
    });
    assert!(done.await.is_some());
}

#[tokio::test]
async fn events_spread_over_the_connections_of_an_app() {
    let simulator = start().await;
    let mut links = [
        Link::connect(&simulator).await,
        Link::connect(&simulator).await,
    ];
    let [a, b] = &mut links;
    for _ in 0..40 {
        let one = async {
            tokio::select! {
                (frame, _) = a.event() => a.answer(&frame, &json!({"code": 200})).await,
                (frame, _) = b.event() => b.answer(&frame, &json!({"code": 200})).await,
            }
        };
        let (pushed, ()) = tokio::join!(simulator.push_event("x.y_v1", json!({})), one);
        assert!(pushed.acknowledged());
    }
    for connection in simulator.connections() {
        assert!(connection.pushed >= 8, "{connection:?}");
    }
    assert_eq!(simulator.violations(), []);
}

async fn push_shaped(fault: Fault, parts: usize) -> (Simulator, Vec<Frame>, bool) {
    let simulator = start().await;
    let mut link = Link::connect(&simulator).await;
    simulator.set_fault(once(fault)).unwrap();
    let taking = async {
        let mut frames = Vec::new();
        for _ in 0..parts {
            frames.push(link.frame().await);
        }
        let reply = answer_to(frames.last().unwrap(), &json!({"code": 200}));
        link.send(&reply).await;
        frames
    };
    let event = json!({"text": "中文中文中文"});
    let (pushed, frames) = tokio::join!(simulator.push_event("x.y_v1", event), taking);
    (simulator, frames, pushed.acknowledged())
}

#[tokio::test]
async fn fragments_arrive_in_every_order_and_any_part_may_be_echoed() {
    for order in [
        FragmentOrder::InOrder,
        FragmentOrder::Reversed,
        FragmentOrder::Shuffled,
    ] {
        let fault = Fault::Fragments(Fragments {
            count: 4,
            order,
            flaw: None,
        });
        let (simulator, mut frames, acknowledged) = push_shaped(fault, 4).await;
        assert!(acknowledged, "{order:?}");
        assert_eq!(simulator.violations(), []);
        frames.sort_by_key(|frame| frame.header("seq").unwrap().to_owned());
        let joined: Vec<u8> = frames
            .into_iter()
            .flat_map(|f| f.payload.unwrap())
            .collect();
        let body: Value = serde_json::from_slice(&joined).unwrap();
        assert_eq!(body["event"]["text"], "中文中文中文");
    }
}

#[tokio::test]
async fn flawed_fragments_are_really_written() {
    for (flaw, parts) in [
        (Flaw::Missing, 2),
        (Flaw::DuplicateAfter, 4),
        (Flaw::EmptyPart, 4),
        (Flaw::HugeSum, 3),
    ] {
        let fragments = Fragments {
            count: 3,
            order: FragmentOrder::InOrder,
            flaw: Some(flaw),
        };
        let (_, frames, _) = push_shaped(Fault::Fragments(fragments), parts).await;
        assert_eq!(frames.len(), parts, "{flaw:?}");
    }
}

#[tokio::test]
async fn headers_are_bent_and_the_reply_still_found() {
    let card = Fault::TypeHeader {
        value: "card".to_owned(),
    };
    let (simulator, frames, acknowledged) = push_shaped(card, 1).await;
    assert!(acknowledged);
    assert_eq!(frames[0].header("type"), Some("card"));
    assert_eq!(simulator.violations(), []);
    let names = ["message_id", "sum", "seq", "trace_id"]
        .map(str::to_owned)
        .to_vec();
    let (simulator, frames, acknowledged) = push_shaped(Fault::MissingHeaders { names }, 1).await;
    assert!(acknowledged, "matched by SeqID");
    assert_eq!(frames[0].headers.len(), 3);
    assert_eq!(simulator.violations(), []);
}

#[tokio::test]
async fn swallowed_events_are_never_written() {
    let simulator = start_with(quick).await;
    let mut link = Link::connect(&simulator).await;
    simulator.set_fault(once(Fault::SwallowEvents)).unwrap();
    let pushed = simulator.push_event("x.y_v1", json!({"n": 1})).await;
    assert!(!pushed.acknowledged());
    let (pushed, body) = tokio::join!(
        simulator.push_event("x.y_v1", json!({"n": 2})),
        link.acknowledge()
    );
    assert!(pushed.acknowledged());
    assert_eq!(body["event"]["n"], 2);
}

#[tokio::test]
async fn a_bench_matches_every_reply() {
    let simulator = start_with(|options| options.quiet = true).await;
    let mut link = Link::connect(&simulator).await;
    let payloads: Vec<Bytes> = (0..500)
        .map(|n| Bytes::from(json!({"header": {"event_id": n.to_string()}}).to_string()))
        .collect();
    let answering = tokio::spawn(async move {
        for _ in 0..500 {
            link.acknowledge().await;
        }
        link
    });
    let run = simulator.bench_clicks(&payloads, 64).await.unwrap();
    answering.await.unwrap();
    assert_eq!(
        (run.latencies.len(), run.refused, run.unanswered),
        (500, 0, 0)
    );
    assert!(run.per_second() > 0.0);
    assert_eq!(simulator.violations(), []);
    assert_eq!(simulator.history(0), []);
}

#[tokio::test]
async fn faults_of_one_kind_are_used_in_turn() {
    let simulator = start().await;
    let mut link = Link::connect(&simulator).await;
    for value in ["foo", "card"] {
        simulator
            .set_fault(Armed::once(Fault::TypeHeader {
                value: value.to_owned(),
            }))
            .unwrap();
    }
    let mut seen = Vec::new();
    for _ in 0..2 {
        let taking = async {
            let (frame, _) = link.event().await;
            link.answer(&frame, &json!({"code": 200})).await;
            frame.header("type").unwrap().to_owned()
        };
        let (_, kind) = tokio::join!(simulator.push_event("x.y_v1", json!({})), taking);
        seen.push(kind);
    }
    assert_eq!(seen, ["foo", "card"]);
}
