//! Whatever becomes of the daemon, a hook prints once or not at all, and what
//! it prints is what the store says a person decided.

use std::collections::HashMap;
use std::time::Duration;

use nod::simulator::{Armed, Fault, Press};
use serde_json::Value;

use crate::hooks::{Stage, bash, report, toast, values, within};

#[tokio::test(flavor = "multi_thread")]
async fn the_same_card_works_after_a_crash_and_after_a_stop() {
    let mut stage = Stage::new().await;
    let (first, one) = stage.ask_bash("make one").await;
    stage.kill().await;
    stage.start().await;
    let clicked = stage.tap(&one, "allow").await;
    assert_eq!(toast(&clicked), ("success", "已批准运行"));
    assert_eq!(first.ended().await.decision()["behavior"], "allow");

    let (second, two) = stage.ask_bash("make two").await;
    stage.stop().await;
    stage.start().await;
    let clicked = stage.tap(&two, "interrupt").await;
    assert_eq!(toast(&clicked), ("success", "已拒绝并中断"));
    assert_eq!(second.ended().await.decision()["interrupt"], true);
    assert_eq!(stage.count(), 2, "no card was sent twice");
    stage.shows(&one, "已批准").await;
    stage.shows(&two, "已拒绝并中断").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_whose_sending_was_cut_short_is_sent_and_works() {
    let mut stage = Stage::new().await;
    let hang = Fault::RestHang {
        path: "POST /open-apis/im/v1/messages".to_owned(),
    };
    stage.sim.set_fault(Armed::always(hang)).unwrap();
    let hook = stage.home.hook(&bash("s1", "make unsent"));
    stage.until_status(|status| status["pending"] == 1).await;
    stage.kill().await;
    stage.sim.clear_faults();
    stage.start().await;
    let card = stage.sent().await.message_id;
    assert_eq!(toast(&stage.tap(&card, "allow").await).1, "已批准运行");
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
    assert_eq!(stage.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_that_was_never_named_and_whose_request_is_over_is_corrected() {
    let mut stage = Stage::new().await;
    let lost = Armed::always(Fault::SendCreatedButReplyLost);
    stage.sim.set_fault(lost).unwrap();
    let hook = stage.home.hook(&bash("s1", "make nameless"));
    let card = stage.sent().await.message_id;
    hook.signal("-KILL");
    assert_eq!(hook.ended().await.stdout, "");
    stage.until_status(|status| status["pending"] == 0).await;
    stage.kill().await;
    stage.sim.clear_faults();
    stage.start().await;
    stage.shows(&card, "请求已失效").await;
    assert_eq!(stage.count(), 1, "no second card");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_died_with_the_daemon_is_not_waited_for_twice() {
    let mut stage = Stage::with(|_, home| home.set("PERMISSION_REQUEST_TIMEOUT", "3")).await;
    let (hook, card) = stage.ask_bash("make orphan").await;
    let allow = values(&stage.sim.message(&card).unwrap().card.unwrap()).remove(0);
    assert_eq!(allow["action"], "allow");
    hook.signal("-STOP");
    stage.kill().await;
    hook.signal("-KILL");
    assert_eq!(hook.ended().await.stdout, "");
    stage.start().await;
    let clicked = stage.tap(&card, "allow").await;
    assert_ne!(toast(&clicked).0, "success", "{clicked:?}");
    stage.shows(&card, "终端").await;
    let audit = stage.home.audit().await;
    assert!(
        audit.iter().all(|line| line["decision"] != "allow"),
        "{audit:?}"
    );
}

/// A crash at any moment around a tap: what the hook printed is what the store
/// says, a success toast was no lie, and a second tap finds it settled.
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_at_any_moment_around_a_tap_invents_and_loses_nothing() {
    const ROUNDS: u64 = 20;
    let mut stage = Stage::with(|options, _| {
        options.answer_limit = Duration::from_millis(300);
    })
    .await;
    let mut printed = HashMap::new();
    let mut success = 0;
    for round in 0..ROUNDS {
        let input = bash(&format!("s{round}"), &format!("make round{round}"));
        let (hook, card) = stage.ask(&input).await;
        let shown = stage.sim.message(&card).unwrap().card.unwrap();
        let request = values(&shown)[0]["request_id"].as_str().unwrap().to_owned();
        let action = ["allow", "deny"][usize::try_from(round % 2).unwrap()];
        let daemon = stage.take_daemon();
        let crash = async {
            let moment = Duration::from_micros(round * round * 40);
            tokio::time::sleep(moment).await;
            daemon.kill().await;
        };
        let press = Press::action(&card, action);
        let (clicked, ()) = tokio::join!(stage.sim.click(press), crash);
        let clicked = clicked.unwrap();
        assert!(stage.sim.wait_connections(0, crate::hooks::LIMIT).await);
        stage.start().await;
        let told = clicked.toast.as_ref().map(|toast| toast.kind.clone());
        if told.as_deref() == Some("success") {
            success += 1;
        } else {
            // The person saw an error and taps again; it counts, or it had.
            let again = within(stage.sim.click(Press::action(&card, action))).await;
            let known = again.map(|clicked| clicked.toast.expect("a toast").content);
            let known = known.unwrap_or_else(|_| "the card is decided".to_owned());
            let fine = ["已批准运行", "已拒绝运行", "该请求已被处理，请勿重复操作"];
            assert!(
                fine.contains(&known.as_str()) || known == "the card is decided",
                "round {round}: {known}"
            );
        }
        let decision = hook.ended().await.decision();
        assert_eq!(decision["behavior"], action, "round {round}");
        printed.insert(request, action);
        let title = if action == "allow" {
            "已批准"
        } else {
            "已拒绝"
        };
        stage.shows(&card, title).await;
    }
    let audit = stage.home.audit().await;
    let decided: HashMap<String, &Value> = audit
        .iter()
        .map(|line| {
            (
                line["request"].as_str().unwrap().to_owned(),
                &line["decision"],
            )
        })
        .collect();
    assert_eq!(audit.len(), printed.len(), "one ending for each");
    for (request, action) in printed {
        assert_eq!(decided[&request], action);
    }
    report(&format!(
        "{success} of {ROUNDS} taps were answered before the crash"
    ));
}
