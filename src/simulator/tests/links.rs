//! Connections: handshakes, pings, and every way in which one goes wrong.

use futures::SinkExt as _;
use prost::bytes::Bytes;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::client::{Http, Link, discover, refusal};
use super::{LIMIT, once, start, start_with};
use crate::feishu::frame::{Frame, Header};
use crate::simulator::control::faults::At;
use crate::simulator::{Armed, Fault, Options, SERVICE_ID, Simulator};

async fn url(simulator: &Simulator) -> String {
    let answer = discover(simulator).await.json();
    answer["data"]["URL"].as_str().unwrap().to_owned()
}

async fn violated(simulator: &Simulator, rule: &str) {
    let found = simulator.wait_for(LIMIT, |s| {
        s.violations().into_iter().find(|v| v.rule == rule)
    });
    assert!(
        found.await.is_some(),
        "{rule}: {:?}",
        simulator.violations()
    );
}

#[tokio::test]
async fn a_ping_is_answered_with_the_configuration() {
    let simulator = start().await;
    let mut link = Link::connect(&simulator).await;
    link.ping().await;
    let pong = link.frame().await;
    assert_eq!(pong.header("type"), Some("pong"));
    let config: Value = serde_json::from_slice(&pong.payload.unwrap()).unwrap();
    assert_eq!(config["PingInterval"], 120);
    link.socket
        .send(Message::Ping(Bytes::from_static(b"x")))
        .await
        .unwrap();
    let pong = link.message().await.unwrap().unwrap();
    assert_eq!(pong, Message::Pong(Bytes::from_static(b"x")));
    let shown = &simulator.connections()[0];
    assert_eq!((shown.app_pings, shown.websocket_pings), (1, 1));
    assert_eq!(simulator.violations(), []);
}

#[tokio::test]
async fn pongs_can_be_bent_or_swallowed() {
    let simulator = start().await;
    let mut link = Link::connect(&simulator).await;
    for payload in ["", "{}", "{not json", r#"{"PingInterval":10}"#] {
        let fault = Fault::Pong {
            payload: payload.to_owned(),
        };
        simulator.set_fault(once(fault)).unwrap();
        link.ping().await;
        let pong = link.frame().await;
        assert_eq!(pong.payload.unwrap_or_default(), payload.as_bytes());
    }
    simulator
        .set_fault(Armed::times(Fault::SwallowPongs, 2))
        .unwrap();
    link.ping().await;
    link.socket
        .send(Message::Ping(Bytes::from_static(b"lost")))
        .await
        .unwrap();
    link.socket
        .send(Message::Ping(Bytes::from_static(b"seen")))
        .await
        .unwrap();
    let first = link.message().await.unwrap().unwrap();
    assert_eq!(first, Message::Pong(Bytes::from_static(b"seen")));
}

#[tokio::test]
async fn a_ticket_is_for_one_connection() {
    let simulator = start().await;
    let url = url(&simulator).await;
    let _link = Link::dial(&url).await.unwrap();
    let error = Link::dial(&url).await.err().unwrap();
    assert_eq!(refusal(&error).1.as_deref(), Some("514"));
    let foreign = url.replace("ticket=", "ticket=x");
    let error = Link::dial(&foreign).await.err().unwrap();
    assert_eq!(refusal(&error).1.as_deref(), Some("403"));
    assert_eq!(simulator.connections().len(), 1);
}

#[tokio::test]
async fn the_fifty_first_connection_is_refused() {
    let simulator = start().await;
    let mut links = Vec::new();
    for _ in 0..50 {
        links.push(Link::connect(&simulator).await);
    }
    let error = Link::dial(&url(&simulator).await).await.err().unwrap();
    let (_, status, code) = refusal(&error);
    assert_eq!(status.as_deref(), Some("514"));
    assert_eq!(code.as_deref(), Some("1000040350"));
    links.pop();
    assert!(simulator.wait_connections(49, LIMIT).await);
    Link::connect(&simulator).await;
}

#[tokio::test]
async fn handshakes_are_refused_as_told() {
    let simulator = start().await;
    let refuse = |http, status, autherrcode| Fault::RefuseHandshake {
        http,
        status,
        autherrcode,
        msg: "no".to_owned(),
    };
    let text = |number: i64| Some(number.to_string());
    for (fault, expected) in [
        (refuse(403, Some(403), None), (403, text(403), None)),
        (
            refuse(403, Some(514), Some(1_000_040_350)),
            (403, text(514), text(1_000_040_350)),
        ),
        (refuse(502, None, None), (502, None, None)),
        (
            Fault::Redirect {
                location: "http://127.0.0.1:1/".to_owned(),
            },
            (302, None, None),
        ),
    ] {
        simulator.set_fault(once(fault)).unwrap();
        let error = Link::dial(&url(&simulator).await).await.err().unwrap();
        assert_eq!(refusal(&error), expected);
    }
    Link::connect(&simulator).await;
}

#[tokio::test]
async fn a_handshake_can_hang_until_the_simulator_stops() {
    let simulator = start().await;
    simulator.set_fault(once(Fault::HandshakeHang)).unwrap();
    let url = url(&simulator).await;
    let dialing = tokio::spawn(async move { Link::dial(&url).await.map(|_| ()) });
    let struck = simulator.wait_for(LIMIT, |s| s.faults().is_empty().then_some(()));
    assert!(struck.await.is_some());
    simulator.shutdown().await;
    assert!(dialing.await.unwrap().is_err());
}

#[tokio::test]
async fn connections_end_as_told() {
    let simulator = start().await;
    for (fault, code) in [
        (Fault::Drop, None),
        (
            Fault::Close {
                code: 1000,
                reason: String::new(),
            },
            Some(1000),
        ),
        (
            Fault::Close {
                code: 1001,
                reason: "away".to_owned(),
            },
            Some(1001),
        ),
        (
            Fault::Close {
                code: 1009,
                reason: String::new(),
            },
            Some(1009),
        ),
        (
            Fault::Close {
                code: 1011,
                reason: String::new(),
            },
            Some(1011),
        ),
    ] {
        let mut link = Link::connect(&simulator).await;
        simulator.set_fault(once(fault.clone())).unwrap();
        let seen = match link.message().await {
            Some(Ok(Message::Close(Some(frame)))) => Some(u16::from(frame.code)),
            Some(Err(Error::Protocol(_))) | None => None,
            other => panic!("{fault:?}: {other:?}"),
        };
        assert_eq!(seen, code, "{fault:?}");
        assert!(simulator.wait_connections(0, LIMIT).await);
    }
    assert_eq!(simulator.faults(), []);
}

#[tokio::test]
async fn a_reset_is_a_reset() {
    let simulator = start().await;
    let mut link = Link::connect(&simulator).await;
    simulator.set_fault(once(Fault::Reset)).unwrap();
    let Some(Err(Error::Io(error))) = link.message().await else {
        panic!("not an I/O error");
    };
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_fault_with_more_left_meets_the_next_connections() {
    let simulator = start().await;
    let mut first = Link::connect(&simulator).await;
    simulator.set_fault(Armed::times(Fault::Drop, 3)).unwrap();
    assert!(!matches!(first.message().await, Some(Ok(_))));
    for _ in 0..2 {
        let mut next = Link::connect(&simulator).await;
        assert!(!matches!(next.message().await, Some(Ok(_))));
    }
    let mut last = Link::connect(&simulator).await;
    last.ping().await;
    last.frame().await;
}

#[tokio::test]
async fn a_fault_can_mean_one_connection() {
    let simulator = start().await;
    let mut first = Link::connect(&simulator).await;
    let mut second = Link::connect(&simulator).await;
    let id = simulator.connections()[0].id;
    simulator.set_fault(once(Fault::Drop).on(id)).unwrap();
    assert!(!matches!(first.message().await, Some(Ok(_))));
    second.ping().await;
    second.frame().await;
    assert!(simulator.set_fault(once(Fault::Drop).on(999)).is_err());
}

#[tokio::test]
async fn a_half_open_connection_answers_nothing() {
    let simulator =
        start_with(|o: &mut Options| o.answer_limit = std::time::Duration::from_millis(50)).await;
    let mut link = Link::connect(&simulator).await;
    simulator
        .set_fault(once(Fault::HalfOpen { ghost: false }))
        .unwrap();
    let frozen = simulator.wait_for(LIMIT, |s| s.connections()[0].frozen.then_some(()));
    assert!(frozen.await.is_some());
    link.ping().await;
    link.socket.send(Message::Ping(Bytes::new())).await.unwrap();
    let pushed = simulator.push_event("x.y_v1", json!({})).await;
    assert_eq!(
        (pushed.code, pushed.connection),
        (None, Some(simulator.connections()[0].id))
    );
    assert_eq!(simulator.connections()[0].app_pings, 0);
    drop(link);
    assert!(simulator.wait_connections(0, LIMIT).await);
}

#[tokio::test]
async fn a_ghost_stays_after_its_client_has_gone() {
    let simulator = start().await;
    let http = Http::signed_in(&simulator).await;
    let link = Link::connect(&simulator).await;
    simulator
        .set_fault(once(Fault::HalfOpen { ghost: true }))
        .unwrap();
    let frozen = simulator.wait_for(LIMIT, |s| s.connections()[0].frozen.then_some(()));
    assert!(frozen.await.is_some());
    drop(link);
    let mut next = Link::connect(&simulator).await;
    next.ping().await;
    next.frame().await;
    let online = http
        .call("GET /open-apis/event/v1/connection", &Value::Null)
        .await;
    assert_eq!(online.json()["data"]["online_instance_cnt"], 2);
    let ghost = simulator.connections()[0].id;
    simulator.set_fault(once(Fault::Drop).on(ghost)).unwrap();
    assert!(simulator.wait_connections(1, LIMIT).await);
}

#[tokio::test]
async fn odd_messages_are_written_at_once() {
    let simulator = start().await;
    let mut link = Link::connect(&simulator).await;
    simulator
        .set_fault(once(Fault::Garbage {
            hex: "ffff".to_owned(),
        }))
        .unwrap();
    let garbage = link.message().await.unwrap().unwrap();
    assert_eq!(garbage, Message::Binary(Bytes::from_static(&[0xff, 0xff])));
    simulator
        .set_fault(once(Fault::TextMessage {
            text: "hello".to_owned(),
        }))
        .unwrap();
    let text = link.message().await.unwrap().unwrap();
    assert_eq!(text, Message::Text("hello".into()));
    simulator
        .set_fault(once(Fault::OversizedFrame { bytes: 5 << 20 }))
        .unwrap();
    let large = link.frame().await;
    assert_eq!(large.payload.unwrap().len(), 5 << 20);
    simulator
        .set_fault(once(Fault::ControlFrame {
            r#type: "ping".to_owned(),
        }))
        .unwrap();
    assert_eq!(link.frame().await.header("type"), Some("ping"));
    simulator
        .set_fault(once(Fault::Method { method: 2 }))
        .unwrap();
    assert_eq!(link.frame().await.method, 2);
    assert!(
        simulator
            .set_fault(once(Fault::Garbage {
                hex: "zz".to_owned()
            }))
            .is_err()
    );
}

#[tokio::test]
async fn an_event_can_ride_behind_the_handshake() {
    let simulator = start().await;
    simulator
        .set_fault(once(Fault::EventBehindHandshake { payload: None }))
        .unwrap();
    let mut link = Link::connect(&simulator).await;
    let event = link.acknowledge().await;
    assert_eq!(event["header"]["event_type"], "im.message.receive_v1");
    let answered = simulator.wait_for(LIMIT, |s| (s.replies() == 1).then_some(()));
    assert!(answered.await.is_some());
    assert_eq!(simulator.violations(), []);
}

#[tokio::test]
async fn what_a_client_does_wrong_is_noted() {
    let simulator = start().await;
    let mut link = Link::connect(&simulator).await;
    let proto3 = Bytes::from_static(b"\x18\xf6\x81\x80\x10\x2a\x0c\x0a\x04type\x12\x04ping");
    link.socket.send(Message::Binary(proto3)).await.unwrap();
    violated(&simulator, "malformed_frame").await;
    link.socket.send(Message::Text("hi".into())).await.unwrap();
    violated(&simulator, "text_message").await;
    link.send(&Frame::ping(1)).await;
    violated(&simulator, "wrong_service").await;
    let stray = Frame {
        service: SERVICE_ID,
        method: 1,
        headers: vec![Header::new("type", "event")],
        payload: Some(Bytes::from_static(br#"{"code":200}"#)),
        ..Frame::default()
    };
    link.send(&stray).await;
    violated(&simulator, "reply_to_unknown").await;
    let odd = Frame { method: 7, ..stray };
    link.send(&odd).await;
    violated(&simulator, "unknown_frame").await;
}

#[tokio::test]
async fn a_connection_can_end_right_after_an_event() {
    let simulator =
        start_with(|o: &mut Options| o.answer_limit = std::time::Duration::from_millis(50)).await;
    let mut link = Link::connect(&simulator).await;
    simulator
        .set_fault(once(Fault::Drop).at(At::Event))
        .unwrap();
    let (pushed, (frame, _)) =
        tokio::join!(simulator.push_event("x.y_v1", json!({})), link.event());
    assert_eq!(frame.header("type"), Some("event"));
    assert!(!pushed.acknowledged());
    assert!(simulator.wait_connections(0, LIMIT).await);
}

#[tokio::test]
async fn stopping_closes_every_connection() {
    let simulator = start().await;
    let mut link = Link::connect(&simulator).await;
    let address = simulator.addresses().feishu;
    simulator.shutdown().await;
    let Some(Ok(Message::Close(Some(frame)))) = link.message().await else {
        panic!("no close frame");
    };
    assert_eq!(u16::from(frame.code), 1001);
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
