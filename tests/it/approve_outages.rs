//! Feishu out of reach: whoever asks meanwhile waits and gets a card when it is
//! back, and a refusal that stands goes to the terminal at once.

use nod::for_tests::simulator::{Armed, Fault};
use serde_json::json;
use std::time::{Duration, Instant};

use crate::hooks::{Daemon, Stage, bash, event};
use crate::support::faster_than;

/// From now on nothing gets through: calls fail, or hang as in a dead network.
pub(crate) fn cut(stage: &Stage, hangs: bool) {
    let gone = if hangs {
        vec![
            Fault::DiscoveryHang,
            Fault::HandshakeHang,
            Fault::RestHang {
                path: String::new(),
            },
        ]
    } else {
        let unavailable = |path: &str| Fault::RestHttp {
            path: path.to_owned(),
            status: 503,
            body: String::new(),
        };
        vec![
            Fault::DiscoveryHttp {
                status: 503,
                body: String::new(),
            },
            unavailable(""),
        ]
    };
    for fault in gone {
        stage.sim.set_fault(Armed::always(fault)).unwrap();
    }
    let end = if hangs {
        Fault::HalfOpen { ghost: false }
    } else {
        Fault::Reset
    };
    stage.sim.set_fault(Armed::once(end)).unwrap();
}

pub(crate) async fn is_away(stage: &Stage) {
    let away = |status: &serde_json::Value| status["connection"]["state"] != "connected";
    stage.until_status(away).await;
}

/// How long after its return somebody who asked meanwhile has a card. Short
/// outages here; `cargo bench --bench faults -- --outages` has the long ones.
async fn outage(hangs: bool) -> Duration {
    let mut stage = Stage::new().await;
    let (before, first) = stage.ask_bash("make before").await;
    let mut longest = Duration::ZERO;
    for n in 1..=2 {
        cut(&stage, hangs);
        is_away(&stage).await;
        let hook = stage.home.hook(&bash("s1", &format!("make away{n}")));
        stage.until_status(|status| status["pending"] == 2).await;
        assert_eq!(stage.count(), n, "no card while it is away");
        stage.sim.clear_faults();
        let back = Instant::now();
        let card = stage.sent().await.message_id;
        longest = longest.max(back.elapsed());
        stage.tap(&card, "allow").await;
        assert_eq!(hook.ended().await.decision()["behavior"], "allow");
    }
    stage.tap(&first, "allow").await;
    assert_eq!(before.ended().await.decision()["behavior"], "allow");
    longest
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_while_feishu_is_down_has_a_card_two_seconds_after_it_is_back() {
    faster_than(Duration::from_secs(2), || outage(false)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_in_a_dead_network_has_a_card_two_seconds_after_it_is_back() {
    faster_than(Duration::from_secs(2), || outage(true)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_terminal_answered_meanwhile_never_becomes_a_card() {
    let mut stage = Stage::new().await;
    cut(&stage, false);
    is_away(&stage).await;
    let hook = stage.home.hook(&bash("s1", "make gone"));
    stage.until_status(|status| status["pending"] == 1).await;
    let ran = json!({"tool_name": "Bash", "tool_input": {"command": "make gone"}});
    let done = event("s1", "PostToolUse", &ran);
    stage.home.hook(&done).ended().await;
    hook.ended().await.left_to_the_terminal();
    stage.sim.clear_faults();
    let (last, card) = stage.ask_bash("make last").await;
    assert_eq!(stage.count(), 1, "only what is still asked");
    stage.tap(&card, "deny").await;
    last.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_time_passes_in_an_outage_is_not_called_unanswered() {
    let patience = |_: &mut _, home: &mut crate::hooks::Home| {
        home.set("PERMISSION_REQUEST_TIMEOUT", "3");
    };
    let stage = Stage::with(patience).await;
    cut(&stage, false);
    is_away(&stage).await;
    let ended = stage.home.hook(&bash("s1", "make late")).ended().await;
    ended.left_to_the_terminal();
    assert!(ended.stderr.contains("nod 未连接飞书"), "{ended:?}");
    assert_eq!(stage.home.audit().await[0]["decision"], "undeliverable");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_that_stands_leaves_requests_to_the_terminal_at_once() {
    let mut stage = Stage::new().await;
    stage.stop().await;
    let refuse = Fault::DiscoveryError {
        code: 1_000_040_345,
        msg: String::new(),
        with_data: false,
    };
    stage.sim.set_fault(Armed::always(refuse)).unwrap();
    let _daemon = Daemon::start(&stage.home).await;
    stage
        .until_status(|status| status["connection"]["state"] == "degraded")
        .await;
    let ended = stage.home.hook(&bash("s1", "make offline")).ended().await;
    ended.left_to_the_terminal();
    assert!(ended.stderr.contains("nod 未连接飞书"), "{ended:?}");
    assert_eq!(stage.count(), 0);
}
