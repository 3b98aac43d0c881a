//! Whatever becomes of the daemon, a hook prints once or not at all, and what
//! it prints is what the store says a person decided.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use nod::for_tests::simulator::{Armed, ChatText, Fault, Options, Press, Simulator};
use serde_json::Value;

use crate::hooks::{Home, Stage, bash, report, toast, values, within};

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
    // A hook that has not heard yet where it stands can't come back.
    stage.daemon().logged("a request waits").await;
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
async fn cards_that_were_never_named_are_corrected_when_their_time_ran_out_meanwhile() {
    const TIMEOUT: Duration = Duration::from_secs(4);
    let mut stage = Stage::with(|_, home| home.set("PERMISSION_REQUEST_TIMEOUT", "4")).await;
    let lost = Armed::always(Fault::SendCreatedButReplyLost);
    stage.sim.set_fault(lost).unwrap();
    let mut cards = Vec::new();
    let mut hooks = Vec::new();
    for number in 0..8 {
        hooks.push(stage.home.hook(&bash("s1", &format!("make late{number}"))));
        cards.push(stage.sent().await.message_id);
    }
    let asked = Instant::now();
    stage.kill().await;
    stage.sim.clear_faults();
    // The time of each runs out while no daemon is there.
    tokio::time::sleep_until((asked + TIMEOUT).into()).await;
    stage.start().await;
    for card in &cards {
        stage.shows(card, "已超时").await;
    }
    for hook in hooks {
        hook.ended().await.left_to_the_terminal();
    }
    assert_eq!(stage.count(), cards.len(), "no second card");
}

/// A tap that a dead line swallowed puts the card back as it was when it runs
/// out of time; nod never heard of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_card_that_a_lost_tap_put_back_is_corrected_again() {
    // Longer than a new daemon waits for the taps of the one before it, and
    // shorter than it takes to notice that the line is dead.
    let patient = |options: &mut Options, _: &mut Home| {
        options.answer_limit = Duration::from_secs(8);
    };
    let mut stage = Stage::with(patient).await;
    let (hook, card) = stage.ask_bash("make back").await;
    let dead = Fault::HalfOpen { ghost: true };
    stage.sim.set_fault(Armed::once(dead)).unwrap();
    let frozen = |sim: &Simulator| sim.connections().iter().any(|one| one.frozen).then_some(());
    within(stage.sim.wait_for(Duration::from_secs(30), frozen)).await;
    let corrected = async {
        hook.signal("-KILL");
        hook.ended().await;
        stage.shows(&card, "请求已失效").await;
    };
    let (clicked, ()) = tokio::join!(stage.tap(&card, "allow"), corrected);
    assert!(clicked.reverted && clicked.toast.is_none(), "{clicked:?}");
    stage.shows(&card, "请求已失效").await;
}

/// The face is written down before the answer is handed over, and once more
/// when nobody confirmed it.
#[tokio::test(flavor = "multi_thread")]
async fn a_card_says_after_a_crash_too_that_its_answer_was_not_confirmed() {
    const UNCONFIRMED: &str = "没有收到确认";
    let mut stage = Stage::new().await;
    let (hook, card) = stage.ask_bash("make deaf").await;
    hook.signal("-STOP");
    stage.tap(&card, "allow").await;
    stage.shows(&card, UNCONFIRMED).await;
    let header = |sim: &Simulator| sim.message(&card).unwrap().card.unwrap()["header"].clone();
    let told = header(&stage.sim);
    assert_eq!(told["title"]["content"], "✓ make deaf");
    stage.kill().await;
    let faces = |sim: &Simulator| sim.message(&card).map(|shown| shown.earlier_cards.len());
    let before = faces(&stage.sim);
    stage.start().await;
    let made_again = |sim: &Simulator| (faces(sim) > before).then_some(());
    within(stage.sim.wait_for(Duration::from_secs(30), made_again)).await;
    assert!(stage.face(&card).contains(UNCONFIRMED));
    assert_eq!(header(&stage.sim), told, "no poorer than it was");
    hook.signal("-KILL");
    hook.ended().await;
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

/// The clock may have been set back while no daemon ran.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_asked_in_the_future_ends_in_its_own_time() {
    const HOUR: i64 = 3_600_000;
    let mut stage = Stage::with(|_, home| home.set("PERMISSION_REQUEST_TIMEOUT", "3")).await;
    let (hook, card) = stage.ask_bash("make future").await;
    hook.signal("-STOP");
    stage.kill().await;
    hook.signal("-KILL");
    hook.ended().await;
    let (db, _) = nod::for_tests::store::Db::open(&stage.home.state(), 0).unwrap();
    let kept = db.pending_all().unwrap().remove(0);
    let mut request: Value = serde_json::from_str(&kept.request).unwrap();
    let (asked_at, deadline) = (kept.asked_at + HOUR, kept.deadline + HOUR);
    request["asked_at"] = asked_at.into();
    request["deadline"] = deadline.into();
    db.move_pending(&kept.id, asked_at, deadline, &request.to_string())
        .unwrap();
    drop(db);
    stage.start().await;
    stage.shows(&card, "已超时").await;
}

/// A reply to a card that was acknowledged and waits for its hook survives a
/// crash; Feishu would not push it again.
#[tokio::test(flavor = "multi_thread")]
async fn an_acknowledged_reply_takes_effect_after_a_crash() {
    let mut stage = Stage::new().await;
    let (hook, card) = stage.ask_bash("make reply").await;
    hook.signal("-STOP");
    stage.kill().await;
    stage.start().await;
    let pushed = within(stage.sim.push_text(&reply(&card, "not on a Friday"))).await;
    assert!(pushed.unwrap().acknowledged());
    stage.kill().await;
    assert_eq!(stage.sim.unacknowledged(), 0, "Feishu is done with it");
    stage.start().await;
    hook.signal("-CONT");
    let decision = hook.ended().await.decision();
    assert_eq!(decision["behavior"], "deny");
    assert_eq!(decision["message"], "not on a Friday");
    stage.shows(&card, "not on a Friday").await;
    assert_eq!(stage.home.audit().await.len(), 1);
}

fn reply(card: &str, text: &str) -> ChatText {
    ChatText {
        parent_id: Some(card.to_owned()),
        ..ChatText::new(text)
    }
}

/// A crash at any moment around a reply: whether or not Feishu pushes it again,
/// it takes effect once, and nobody is told that they were too late.
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_at_any_moment_around_a_reply_neither_loses_nor_repeats_it() {
    const ROUNDS: u64 = 12;
    let mut stage = Stage::with(|options, _| {
        options.answer_limit = Duration::from_millis(300);
    })
    .await;
    let mut acknowledged = 0;
    for round in 0..ROUNDS {
        let hook = stage.home.hook(&bash("s1", &format!("make reply{round}")));
        // What was said of the round before may come late.
        let card = loop {
            let sent = stage.sent().await;
            if sent.msg_type != "text" {
                break sent.message_id;
            }
        };
        let daemon = stage.take_daemon();
        let crash = async {
            let moment = Duration::from_micros(round * round * 60);
            tokio::time::sleep(moment).await;
            daemon.kill().await;
        };
        let why = format!("because of {round}");
        let text = reply(&card, &why);
        let (pushed, ()) = tokio::join!(stage.sim.push_text(&text), crash);
        let pushed = pushed.unwrap();
        acknowledged += u64::from(pushed.acknowledged());
        assert!(stage.sim.wait_connections(0, crate::hooks::LIMIT).await);
        stage.start().await;
        let again = within(stage.sim.advance_repush()).await;
        assert_eq!(again.len(), usize::from(!pushed.acknowledged()));
        assert!(
            again
                .iter()
                .all(nod::for_tests::simulator::Pushed::acknowledged)
        );
        let decision = hook.ended().await.decision();
        assert_eq!(decision["message"], why, "round {round}");
        stage.shows(&card, &why).await;
    }
    let audit = stage.home.audit().await;
    let rounds = usize::try_from(ROUNDS).unwrap();
    assert_eq!(audit.len(), rounds, "one ending for each");
    let said = stage.sim.messages().into_iter();
    let said = said.filter(|m| m.sender_type == "app" && m.msg_type == "text");
    let said: Vec<_> = said.map(|m| m.content).collect();
    let once = said.len() <= rounds && said.iter().all(|text| text.contains("已拒绝"));
    assert!(once, "each reply is heard once: {said:?}");
    report(&format!(
        "{acknowledged} of {ROUNDS} replies were acknowledged before the crash"
    ));
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
            // The person saw an error and taps until told; it counts, or it had.
            let again = async {
                loop {
                    let clicked = stage.sim.click(Press::action(&card, action)).await;
                    match clicked.map(|clicked| clicked.toast) {
                        Ok(Some(toast)) if toast.content.contains("再点一次") => {}
                        Ok(Some(toast)) => return toast.content,
                        Ok(None) => {}
                        Err(_) => return "the card is decided".to_owned(),
                    }
                }
            };
            let known = within(again).await;
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
