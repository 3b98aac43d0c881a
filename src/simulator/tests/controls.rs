//! The control interface, as a test in another language uses it.

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::client::{Answer, Link, call};
use super::{LIMIT, card, ready, start, title};
use crate::simulator::{App, Armed, Options, Simulator};

async fn post(simulator: &Simulator, path: &str, body: &Value) -> Answer {
    let request = format!("POST /control/{path}");
    let address = simulator.addresses().control;
    call(address, &request, None, Some(&body.to_string())).await
}

async fn get(simulator: &Simulator, path: &str) -> Answer {
    let address = simulator.addresses().control;
    call(address, &format!("GET /control/{path}"), None, None).await
}

#[tokio::test]
async fn a_card_is_found_tapped_and_seen_again() {
    let simulator = start().await;
    let (_, mut link, id) = ready(&simulator).await;
    let waited = get(&simulator, "wait?messages=1&connections=1&timeout_ms=5000").await;
    assert_eq!(
        (waited.status, waited.json()["done"].clone()),
        (200, json!(true))
    );
    let messages = get(&simulator, "messages").await.json();
    assert_eq!(messages["messages"][0]["message_id"], id.as_str());
    let press = json!({"message_id": id, "value": {"action": "allow"}, "user": "owner"});
    let result = json!({"toast": {"type": "info", "content": "ok"}, "card": {"type": "raw", "data": card("allowed")}});
    let (clicked, _) = tokio::join!(
        post(&simulator, "click", &press),
        link.answer_click(&result)
    );
    let clicked = clicked.json();
    assert_eq!(clicked["toast"]["content"], "ok");
    assert_eq!(clicked["popup"], Value::Null);
    let shown = get(&simulator, &format!("messages/{id}")).await.json();
    assert_eq!(title(shown.get("card")), "allowed");
    let waited = get(
        &simulator,
        &format!("wait?message_id={id}&contains=allowed"),
    )
    .await;
    assert_eq!(waited.status, 200);
    let replies = get(&simulator, "wait?replies=1").await.json();
    assert_eq!(replies["replies"], 1);
}

/// As the page needs it for an app that a scan made.
#[tokio::test]
async fn a_person_has_a_chat_with_the_bot_of_each_app() {
    let second = App {
        id: "cli_5ec00d0000000002".to_owned(),
        ..App::default()
    };
    let options = Options {
        apps: vec![App::default(), second.clone()],
        ..Options::default()
    };
    let simulator = Simulator::start(options).await.unwrap();
    let people = get(&simulator, "people").await.json();
    let chats = people["users"][0]["chats"].as_array().unwrap();
    assert_eq!(chats.len(), 2);
    assert_eq!(chats[0]["chat_id"], people["users"][0]["chat_id"]);
    assert_eq!(chats[1]["app_id"], second.id.as_str());
    assert_ne!(chats[0]["chat_id"], chats[1]["chat_id"]);
    let text = json!({"text": "hi", "user": "owner", "app_id": second.id});
    post(&simulator, "text", &text).await;
    let written = get(&simulator, "messages").await.json();
    assert_eq!(written["messages"][0]["chat_id"], chats[1]["chat_id"]);
}

#[tokio::test]
async fn what_can_not_be_done_is_said() {
    let simulator = start().await;
    let (_, _link, id) = ready(&simulator).await;
    let gone = post(
        &simulator,
        "click",
        &json!({"message_id": id, "text": "gone"}),
    )
    .await;
    assert_eq!(
        (gone.status, gone.json()["error"].clone()),
        (409, json!("nothing on the card matches"))
    );
    for (path, body, status) in [
        ("click", json!({"message": 1}), 400),
        ("click/raw", json!({}), 400),
        ("click/raw", json!({"hex": "0"}), 400),
        ("fault", json!({"fault": "unheard_of"}), 400),
        ("text", json!({"text": "x", "user": "nobody"}), 409),
        ("nonsense", json!({}), 404),
    ] {
        assert_eq!(
            post(&simulator, path, &body).await.status,
            status,
            "{path} {body}"
        );
    }
    assert_eq!(get(&simulator, "wait").await.status, 400);
    assert_eq!(
        get(&simulator, "wait?messages=9&timeout_ms=1").await.status,
        408
    );
    assert_eq!(get(&simulator, "messages/om_x").await.status, 404);
    let posted = async |host: &str| {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let address = simulator.addresses().control;
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let text = format!(
            "POST /control/repush HTTP/1.1\r\nHost: {host}\r\nContent-Type: text/plain\r\n\
             Content-Length: 0\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let plain = posted("127.0.0.1").await;
    assert!(plain.starts_with("HTTP/1.1 415"), "{plain}");
    let foreign = posted("evil.example").await;
    assert!(foreign.starts_with("HTTP/1.1 403"), "{foreign}");
}

#[tokio::test]
async fn texts_events_and_raw_clicks_are_pushed() {
    let simulator = start().await;
    let mut link = Link::connect(&simulator).await;
    let text = json!({"text": "hi"});
    let (pushed, body) = tokio::join!(post(&simulator, "text", &text), link.acknowledge());
    assert_eq!(pushed.json()["code"], 200);
    assert_eq!(body["event"]["message"]["content"], r#"{"text":"hi"}"#);
    let event = json!({"event_type": "x.y_v1", "event": {"n": 1}});
    let (pushed, body) = tokio::join!(post(&simulator, "event", &event), link.acknowledge());
    assert_eq!(pushed.json()["code"], 200);
    assert_eq!(body["event"]["n"], 1);
    let raw = json!({"payload": {"odd": true}});
    let (pushed, body) = tokio::join!(post(&simulator, "click/raw", &raw), link.acknowledge());
    assert_eq!(pushed.json()["pushed"]["code"], 200);
    assert_eq!(body, json!({"odd": true}));
    let raw = json!({"hex": "00ff"});
    let taking = async {
        let (frame, _) = link.event().await;
        assert_eq!(frame.payload.clone().unwrap(), [0x00, 0xff].as_slice());
        link.answer(&frame, &json!({"code": 500})).await;
    };
    let (pushed, ()) = tokio::join!(post(&simulator, "click/raw", &raw), taking);
    assert_eq!(pushed.json()["outcome"]["popup"], 200_671);
}

#[tokio::test]
async fn faults_are_armed_listed_and_cleared() {
    let simulator = start().await;
    let armed = post(
        &simulator,
        "fault",
        &json!({"fault": "slow_rest", "ms": 5, "times": "always"}),
    )
    .await;
    assert_eq!(armed.json()["faults"][0]["fault"], "slow_rest");
    assert_eq!(
        get(&simulator, "faults").await.json()["faults"][0]["times"],
        Value::Null
    );
    post(&simulator, "faults/clear", &json!({})).await;
    assert_eq!(
        get(&simulator, "faults").await.json(),
        json!({"faults": []})
    );
    let mut link = Link::connect(&simulator).await;
    post(&simulator, "fault", &json!({"fault": "drop"})).await;
    assert!(!matches!(link.message().await, Some(Ok(_))));
    let waited = get(&simulator, "wait?connections=0").await;
    assert_eq!(waited.status, 200);
}

#[tokio::test]
async fn the_feed_waits_for_what_comes_next() {
    let simulator = start().await;
    let last = get(&simulator, "history").await.json()["last"]
        .as_u64()
        .unwrap();
    let path = format!("feed?after={last}&kind=connection_up&timeout_ms=9000");
    let (fed, link) = tokio::join!(get(&simulator, &path), Link::connect(&simulator));
    let fed = fed.json();
    assert_eq!(fed["entries"][0]["kind"], "connection_up");
    assert!(fed["last"].as_u64().unwrap() > last);
    drop(link);
    let down = get(&simulator, "feed?kind=connection_down").await.json();
    assert!(down["entries"][0]["why"].is_string());
    let nothing = get(&simulator, "feed?after=999999&timeout_ms=1")
        .await
        .json();
    assert_eq!(nothing["entries"], json!([]));
}

#[tokio::test]
async fn clock_repush_people_and_violations_answer() {
    let simulator = start().await;
    let clock = post(&simulator, "clock", &json!({"advance_ms": 1000})).await;
    assert!(clock.json()["now"].as_u64().is_some());
    assert_eq!(
        post(&simulator, "repush", &json!({})).await.json(),
        json!({"pushed": []})
    );
    let people = get(&simulator, "people").await.json();
    assert_eq!(people["users"][0]["name"], "owner");
    assert_eq!(
        get(&simulator, "violations").await.json(),
        json!({"violations": []})
    );
    assert_eq!(
        get(&simulator, "connections").await.json(),
        json!({"connections": []})
    );
    assert_eq!(
        post(&simulator, "violations/clear", &json!({}))
            .await
            .status,
        200
    );
    let addresses = get(&simulator, "addresses").await.json();
    assert_eq!(
        addresses["feishu"],
        simulator.addresses().feishu.to_string()
    );
}

#[tokio::test]
async fn run_reports_where_it_listens_and_stops_when_cancelled() {
    let cancel = CancellationToken::new();
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let running = tokio::spawn(crate::simulator::run(
        Options::default(),
        cancel.clone(),
        move |addresses| sender.send(addresses).expect("a listener"),
    ));
    let addresses = receiver.await.unwrap();
    let answer = call(addresses.control, "GET /control/addresses", None, None).await;
    assert_eq!(answer.status, 200);
    cancel.cancel();
    tokio::time::timeout(LIMIT, running)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert!(
        tokio::net::TcpStream::connect(addresses.control)
            .await
            .is_err()
    );
}

#[test]
fn every_documented_fault_can_be_read() {
    let text = include_str!("../../../docs/simulator.md");
    let bodies: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("| `{\"fault\""))
        .filter_map(|rest| rest.split("` |").next())
        .collect();
    assert_eq!(bodies.len(), 41);
    for body in bodies {
        let body = format!("{{\"fault\"{body}");
        let value: Value = serde_json::from_str(&body).expect(&body);
        assert!(Armed::from_json(value).is_ok(), "{body}");
    }
}

#[tokio::test]
async fn the_page_is_served_to_this_machine_only() {
    let sim = start().await;
    let address = sim.addresses().control;
    let local = raw(address, "GET / HTTP/1.1", &address.to_string()).await;
    assert!(local.starts_with("HTTP/1.1 200"), "{local}");
    assert!(local.contains("frame-ancestors 'none'"), "{local}");
    for path in ["/", "/control/people"] {
        let request = format!("GET {path} HTTP/1.1");
        let elsewhere = raw(address, &request, "evil.example:80").await;
        assert!(elsewhere.starts_with("HTTP/1.1 403"), "{elsewhere}");
    }
}

#[tokio::test]
async fn without_the_token_nobody_taps_writes_or_reads() {
    let options = Options {
        control_token: Some("a-token".to_owned()),
        ..Options::default()
    };
    let sim = Simulator::start(options).await.unwrap();
    let address = sim.addresses().control;
    for shown in [
        None,
        Some(""),
        Some("a-tokem"),
        Some("a-toke"),
        Some("a-token2"),
    ] {
        for (request, body) in [
            ("GET /control/people", None),
            ("GET /control/nothing", None),
            ("POST /control/text", Some(r#"{"text": "hi"}"#)),
            ("POST /control/click", Some("{}")),
        ] {
            let answer = call(address, request, shown, body).await;
            assert_eq!(answer.status, 401, "{request} {shown:?}");
        }
    }
    assert_eq!(sim.message_count(), 0);
    let text = r#"{"text": "hi"}"#;
    let answer = call(address, "POST /control/text", Some("a-token"), Some(text)).await;
    assert_eq!(answer.status, 200);
    let page = raw(address, "GET / HTTP/1.1", &address.to_string()).await;
    assert!(
        page.starts_with("HTTP/1.1 200") && !page.contains("a-token"),
        "{page}"
    );
    assert!(sim.page("en").ends_with("/?lang=en#a-token"));
}

async fn raw(address: std::net::SocketAddr, request: &str, host: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("{request}\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_note_goes_into_the_history() {
    let simulator = start().await;
    simulator.note(json!({"from": "inside"}));
    let outside = json!({"from": "outside"});
    assert_eq!(post(&simulator, "note", &outside).await.status, 200);
    let history = get(&simulator, "history?kind=note").await.json();
    let entries = history["entries"].as_array().unwrap();
    let from: Vec<&Value> = entries.iter().map(|note| &note["from"]).collect();
    assert_eq!(from, ["inside", "outside"]);
    let long = json!({"text": "x".repeat(70_000)});
    assert_eq!(post(&simulator, "note", &long).await.status, 413);
    assert_eq!(post(&simulator, "note", &json!(["x"])).await.status, 400);
}
