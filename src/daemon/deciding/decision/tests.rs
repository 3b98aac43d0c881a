use super::*;
use crate::approvals::desk::Waiting;
use crate::approvals::outcome::sample;
use crate::approvals::request::Request;
use crate::daemon::bench::{DaemonBench, OWNER, taps};
use crate::daemon::cards::locking;
use crate::rules::Rule;
use serde_json::{Value, json};
use std::path::Path;

fn deny(interrupt: bool) -> Choice {
    let reason = None;
    Choice::Deny { reason, interrupt }
}

fn always() -> Choice {
    Choice::Allow(sample::always(Rule::new("Bash", "npm test")))
}

fn in_project(project: &Path) -> Request {
    let mut request = sample::request("Bash", json!({"command": "npm test"}));
    request.origin.project = project.to_owned();
    request
}

/// A hook that says this of the answer it got.
fn hears(mut waiting: Waiting, delivery: Option<Delivery>) -> tokio::task::JoinHandle<Ending> {
    tokio::spawn(async move {
        let mut handed = waiting.answered().await.unwrap();
        if let Some(delivery) = delivery {
            handed.report(delivery);
        }
        handed.answer.ending
    })
}

async fn carried(
    bench: &DaemonBench,
    choice: Choice,
    request: Request,
    says: Delivery,
) -> (Carried, Value) {
    let (waiting, request, message) = bench.bench.shows(request).await;
    let decider = &bench.taps.decider;
    let claim = claim(decider, &request.id, choice, sample::by(), Right::Service);
    let claim = claim.await.unwrap();
    let hook = match says {
        Delivery::Lost => {
            drop(waiting);
            None
        }
        says => Some(hears(waiting, Some(says))),
    };
    let click = taps(OWNER, &Value::Null, &message);
    let ruling = carry_out(decider, &click, claim).await;
    if let Some(hook) = hook {
        hook.await.unwrap();
    }
    let Outcome::Decided(carried) = ruling.outcome.clone() else {
        panic!("{:?}", ruling.outcome);
    };
    let card = ruling.told().seen.unwrap().card.unwrap();
    (*carried, card)
}

#[tokio::test]
async fn a_lock_lets_only_a_refusal_pass() {
    let bench = DaemonBench::new().await;
    let (_waiting, request) = bench.bench.asks(sample::request("Bash", json!({})));
    locking::set(&bench.cards, true, None).await;
    let decider = &bench.taps.decider;
    let try_it = |choice| claim(decider, &request.id, choice, sample::by(), Right::Service);
    let answer = Choice::Answer(vec!["yes".to_owned()]);
    for choice in [Choice::Allow(Reach::Once), always(), answer] {
        assert_eq!(try_it(choice).await.unwrap_err(), Refusal::Locked);
    }
    assert!(try_it(deny(false)).await.is_ok());
}

#[tokio::test]
async fn the_second_of_two_learns_how_the_first_decided() {
    let bench = DaemonBench::new().await;
    let (_waiting, request) = bench.bench.asks(sample::request("Bash", json!({})));
    let decider = &bench.taps.decider;
    let try_it = |choice| claim(decider, &request.id, choice, sample::by(), Right::Service);
    assert!(try_it(deny(false)).await.is_ok());
    let second = try_it(Choice::Allow(Reach::Once)).await.unwrap_err();
    match second {
        Refusal::Over { ending, .. } => assert_eq!(ending, sample::denied(false)),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_decision_is_written_down_before_its_hook_hears_of_it() {
    let bench = DaemonBench::new().await;
    let (mut waiting, request, message) =
        bench.bench.shows(sample::request("Bash", json!({}))).await;
    let decider = Arc::clone(&bench.taps.decider);
    let claim = claim(
        &decider,
        &request.id,
        deny(true),
        sample::by(),
        Right::Words,
    );
    let claim = claim.await.unwrap();
    let click = taps(OWNER, &Value::Null, &message);
    let tap = tokio::spawn(async move { carry_out(&decider, &click, claim).await.outcome });
    let mut handed = waiting.answered().await.unwrap();
    let kept = journal::remembered(&bench.cards.journal, &request.id).await;
    assert_eq!(kept.unwrap().ending, sample::denied(true));
    handed.report(Delivery::Confirmed);
    assert!(matches!(tap.await.unwrap(), Outcome::Decided(_)));
}

#[tokio::test]
async fn what_the_person_sees_says_how_far_the_answer_came() {
    for says in [Delivery::Confirmed, Delivery::Written, Delivery::Lost] {
        let bench = DaemonBench::new().await;
        let asked = sample::request("Bash", json!({"command": "ls"}));
        let allow = Choice::Allow(Reach::Once);
        let (carried, card) = carried(&bench, allow, asked, says).await;
        assert_eq!(carried.delivery, says);
        let face = |delivery| courier::ended_face(&bench.cards, &carried.settled, delivery, None);
        assert_eq!(card.to_string(), *face(says).shown, "{says:?}");
        let (sure, lost) = (face(Delivery::Confirmed), face(Delivery::Lost));
        assert_ne!(sure.shown, lost.shown);
    }
}

#[tokio::test]
async fn an_always_leaves_its_rule_unless_the_hook_went_away_without_it() {
    for (says, by_nod, listed) in [
        (Delivery::Written, true, 1),
        // Claude Code writes it itself; the list is for the undo.
        (Delivery::Confirmed, false, 1),
        (Delivery::Unconfirmed, false, 1),
        (Delivery::Lost, false, 0),
    ] {
        let bench = DaemonBench::new().await;
        let project = tempfile::tempdir().unwrap();
        let asked = in_project(project.path());
        let (carried, _) = carried(&bench, always(), asked, says).await;
        assert_eq!(carried.unsaved, None);
        let file = project.path().join(".claude/settings.local.json");
        assert_eq!(file.exists(), by_nod, "{says:?}");
        let id = carried.settled.request.id.clone();
        let rules = bench
            .cards
            .journal
            .store
            .run(move |db| db.rules_left_by(&id));
        assert_eq!(rules.await.unwrap().len(), listed, "{says:?}");
    }
}

#[tokio::test]
async fn a_rule_that_could_not_be_saved_is_told_and_the_call_is_still_allowed() {
    let bench = DaemonBench::new().await;
    let project = tempfile::tempdir().unwrap();
    std::fs::write(project.path().join(".claude"), "no directory").unwrap();
    let asked = in_project(project.path());
    let (carried, _) = carried(&bench, always(), asked, Delivery::Written).await;
    assert!(carried.unsaved.is_some());
    assert!(matches!(carried.settled.ending, Ending::Allowed { .. }));
}

#[tokio::test]
async fn another_agent_keeps_its_rules_itself() {
    let bench = DaemonBench::new().await;
    let project = tempfile::tempdir().unwrap();
    let mut asked = in_project(project.path());
    asked.origin.caller.agent = AskingAgent::Codex(crate::rules::Leaves::default());
    carried(&bench, always(), asked, Delivery::Written).await;
    assert!(!project.path().join(".claude").exists());
}

#[tokio::test]
async fn words_in_the_chat_decide_once() {
    let bench = DaemonBench::new().await;
    let (waiting, request, _) = bench.bench.shows(sample::request("Bash", json!({}))).await;
    let hook = hears(waiting, Some(Delivery::Confirmed));
    let decider = &bench.taps.decider;
    let words = || by_reply(decider, &request.id, deny(false), sample::by(), None);
    let first = words().await;
    assert!(matches!(first, Outcome::Decided(it) if it.delivery == Delivery::Confirmed));
    assert_eq!(hook.await.unwrap(), sample::denied(false));
    let second = words().await;
    assert!(matches!(second, Outcome::Refused(Refusal::Over { .. })));
}

#[tokio::test]
async fn a_tap_waits_a_moment_for_a_hook_on_its_way_back_and_then_refuses() {
    let bench = DaemonBench::new().await;
    tokio::time::pause();
    let mut asked = sample::request("Bash", json!({}));
    asked.deadline = bench.cards.now() + 60_000;
    let (id, token) = (
        asked.id.clone(),
        crate::approvals::token::Token::from_bytes([7; 32]),
    );
    let waiting = [(Arc::new(asked), token.hash())];
    let desk = &bench.cards.desk;
    desk.restore(waiting, [], Duration::from_secs(30));
    let decider = &bench.taps.decider;
    let allow = || {
        claim(
            decider,
            &id,
            Choice::Allow(Reach::Once),
            sample::by(),
            Right::Words,
        )
    };
    let since = tokio::time::Instant::now();
    assert_eq!(allow().await.unwrap_err(), Refusal::Reconnecting);
    let waited = since.elapsed();
    assert!(waited >= RETURN_WITHIN_A_TAP && waited < Duration::from_secs(2));
    let comes_back = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        desk.resume(&id, token).unwrap()
    };
    let (claimed, _back) = tokio::join!(allow(), comes_back);
    assert!(claimed.is_ok());
}
