//! One dial at a time against the simulator: what is asked, what every answer
//! means, and that no wait is without an end.

use nod::for_tests::feishu::endpoint::{DialError, DialLimits, Dialer};
use nod::for_tests::feishu::link::{DialRetry, ServerSettings};
use nod::for_tests::simulator::{APP_ID, APP_SECRET, Armed, Fault, Options, SERVICE_ID, Simulator};
use serde_json::{Value, json};
use std::time::Duration;

use super::support::{Tap, dialer, dialer_to, no_violations, within};

async fn start() -> Simulator {
    Simulator::start(Options::default()).await.unwrap()
}

async fn refusal(dialer: &Dialer, case: &str) -> DialError {
    let outcome = within(case, dialer.dial()).await;
    outcome.err().unwrap_or_else(|| panic!("{case}: connected"))
}

#[tokio::test]
async fn the_question_is_the_documented_one_with_and_without_a_slash() {
    for slash in ["", "/"] {
        let simulator = start().await;
        let tap = Tap::before(simulator.addresses().feishu).await;
        let dialed = dialer_to(&format!("{}{slash}", tap.base())).dial().await;
        assert!(dialed.is_ok());
        let exchange = tap.heard();
        let (head, rest) = exchange.split_once("\r\n\r\n").unwrap();
        let head = head.to_ascii_lowercase();
        assert!(head.starts_with("post /callback/ws/endpoint http/1.1\r\n"));
        for line in [
            "content-type: application/json",
            "locale: zh",
            "user-agent: nod/",
        ] {
            assert!(head.contains(&format!("\r\n{line}")), "{line}: {head}");
        }
        assert!(!head.contains("authorization"), "{head}");
        let body = serde_json::Deserializer::from_str(rest)
            .into_iter::<Value>()
            .next();
        let expected = json!({"AppID": APP_ID, "AppSecret": APP_SECRET});
        assert_eq!(body.unwrap().unwrap(), expected);
        no_violations(&simulator);
    }
}

#[tokio::test]
async fn silence_ends_at_the_limit_and_is_tried_again() {
    let limits = DialLimits::default();
    assert!(limits.discover <= Duration::from_secs(10));
    assert!(limits.open + limits.upgrade <= Duration::from_secs(15));
    let simulator = start().await;
    for (fault, words) in [
        (
            Fault::DiscoveryHang,
            "did not answer where to connect in time",
        ),
        (
            Fault::HandshakeHang,
            "did not answer the WebSocket handshake in time",
        ),
    ] {
        simulator.set_fault(Armed::once(fault)).unwrap();
        let short = Duration::from_millis(150);
        let hurried = Dialer {
            limits: DialLimits {
                discover: if words.contains("where") {
                    short
                } else {
                    limits.discover
                },
                upgrade: short,
                ..limits
            },
            ..dialer(&simulator)
        };
        let why = refusal(&hurried, words).await;
        assert!(why.to_string().contains(words), "{why}");
        assert_eq!(why.retry(), DialRetry::Soon);
    }
    assert!(dialer(&simulator).dial().await.is_ok());
}

fn page(status: u16) -> Fault {
    Fault::DiscoveryHttp {
        status,
        body: "<html>hello</html>".to_owned(),
    }
}

fn bad_url(url: &str) -> Fault {
    Fault::DiscoveryBadUrl {
        url: url.to_owned(),
    }
}

#[tokio::test]
async fn every_answer_of_discovery_has_its_words_and_its_pace() {
    let simulator = start().await;
    let code = |code| Fault::DiscoveryError {
        code,
        msg: "odd".to_owned(),
        with_data: code % 2 == 0,
    };
    for (fault, words, slow) in [
        (page(500), "answered HTTP 500", false),
        (page(429), "answered HTTP 429", false),
        (page(400), "answered HTTP 400", false),
        (page(200), "sign in to this network's portal", false),
        (code(1), "busy", false),
        (code(1_000_040_343), "busy", false),
        (code(1_000_040_344), "`FEISHU_APP_SECRET`", true),
        (code(1_000_040_345), "`FEISHU_APP_SECRET`", true),
        (code(1_000_040_350), "connections", false),
        (code(1_000_040_351), "set `FEISHU_DOMAIN`", true),
        (code(403), "disabled or banned", true),
        (code(514), "`FEISHU_APP_SECRET`", true),
        (code(77), "code 77 (odd)", false),
        (bad_url(""), "it is empty", false),
        (bad_url("http://127.0.0.1/x"), "no WebSocket address", false),
        (bad_url("ws://127.0.0.1/#f"), "fragment", false),
        (bad_url("ws://me@127.0.0.1/"), "names a user", false),
    ] {
        simulator.set_fault(Armed::once(fault)).unwrap();
        let why = refusal(&dialer(&simulator), words).await;
        assert!(why.to_string().contains(words), "{words}: {why}");
        assert_eq!(matches!(why.retry(), DialRetry::Slowly(_)), slow, "{why}");
    }
    assert!(dialer(&simulator).dial().await.is_ok());
}

#[tokio::test]
async fn a_refused_upgrade_is_read_from_its_headers() {
    let simulator = start().await;
    let refuse = |http, status, autherrcode| Fault::RefuseHandshake {
        http,
        status,
        autherrcode,
        msg: "no".to_owned(),
    };
    let redirect = Fault::Redirect {
        location: "http://127.0.0.1:1/".to_owned(),
    };
    let soon = DialRetry::Soon;
    for (fault, words, expected) in [
        (
            refuse(403, Some(514), Some(1_000_040_350)),
            "connections",
            DialRetry::Crowded,
        ),
        (refuse(403, Some(514), Some(9)), "busy (code 514)", soon),
        (refuse(403, Some(514), None), "busy (code 514)", soon),
        (
            refuse(200, Some(403), None),
            "disabled or banned",
            DialRetry::Slowly(Duration::from_secs(300)),
        ),
        (refuse(403, None, None), "answered HTTP 403", soon),
        (refuse(503, None, None), "answered HTTP 503", soon),
        (redirect, "answered HTTP 302", soon),
    ] {
        simulator.set_fault(Armed::once(fault)).unwrap();
        let why = refusal(&dialer(&simulator), words).await;
        assert!(why.to_string().contains(words), "{words}: {why}");
        assert_eq!(why.retry(), expected, "{why}");
    }
}

#[tokio::test]
async fn the_pace_and_the_service_id_are_read_field_by_field() {
    let simulator = start().await;
    for (config, ping, redial) in [
        (Value::Null, 120, 120),
        (json!({}), 120, 120),
        (
            json!({"PingInterval": 0, "ReconnectInterval": -3}),
            120,
            120,
        ),
        (json!({"PingInterval": "9", "ReconnectInterval": 7}), 120, 7),
        (
            json!({"PingInterval": 1, "ReconnectInterval": u64::MAX}),
            10,
            120,
        ),
    ] {
        let fault = Fault::DiscoveryConfig {
            config: config.clone(),
        };
        simulator.set_fault(Armed::once(fault)).unwrap();
        let dialed = dialer(&simulator).dial().await.ok().unwrap();
        let expected = ServerSettings {
            ping_every: Duration::from_secs(ping),
            redial_ceiling: Duration::from_secs(redial),
        };
        assert_eq!(dialed.settings, expected, "{config}");
    }
    for (order, service) in [
        (&["service_id", "device_id", "ticket"][..], SERVICE_ID),
        (&["ticket", "service_id", "device_id"], SERVICE_ID),
        (&["device_id", "ticket", "service_id"], SERVICE_ID),
        (&["device_id", "ticket"], 0),
    ] {
        let fault = Fault::DiscoveryQuery {
            order: order.iter().map(|&name| name.to_owned()).collect(),
        };
        simulator.set_fault(Armed::once(fault)).unwrap();
        let dialed = dialer(&simulator).dial().await.ok().unwrap();
        assert_eq!(dialed.service, service, "{order:?}");
    }
}
