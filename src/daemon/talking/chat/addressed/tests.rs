use super::*;
use crate::approvals::choice::Choice;
use crate::approvals::desk::Delivery;
use crate::approvals::outcome::sample;
use crate::daemon::bench::{APPROVER, DaemonBench, OWNER, STRANGER, buttons, message, replies};
use crate::daemon::cards::{locking, notices};
use crate::daemon::deciding::decision;
use crate::daemon::talking::chat::take;
use crate::ids::SessionId;
use crate::sessions::agent::Agent;
use crate::sessions::state::Notice;
use crate::wording::session;
use serde_json::json;

/// A card that speaks of a session in a terminal.
async fn notice(bench: &DaemonBench, project: &Path) -> MessageId {
    let about = About {
        session: SessionId::parse("s1").unwrap(),
        project: project.to_string_lossy().into_owned(),
    };
    let card = json!({"schema": "2.0"});
    let sent = notices::send(&bench.cards, card, "turn-1".to_owned(), about).await;
    sent.unwrap()
}

/// A card whose request was denied.
async fn ended(bench: &DaemonBench) -> MessageId {
    let mut asked = sample::request("Bash", json!({"command": "ls"}));
    asked.origin.project = bench.shop();
    asked.origin.session = SessionId::parse("s1").ok();
    let (mut waiting, request, card) = bench.bench.shows(asked).await;
    let deny = Choice::Deny {
        reason: None,
        interrupt: false,
    };
    let hook = tokio::spawn(async move {
        let mut handed = waiting.answered().await.unwrap();
        handed.report(Delivery::Confirmed);
    });
    decision::by_reply(&bench.taps.decider, &request.id, deny, sample::by(), None).await;
    hook.await.unwrap();
    card
}

async fn told(bench: &DaemonBench, by: &str, text: &str, to: &MessageId) -> Vec<String> {
    let before = bench.said().len();
    take(&bench.chat, &replies(by, text, to)).await;
    bench.said().split_off(before)
}

#[tokio::test]
async fn words_for_a_terminal_that_nobody_knows_may_go_on_in_the_chat_by_a_tap() {
    let bench = DaemonBench::new().await;
    let card = notice(&bench, &bench.shop()).await;
    let said = told(&bench, OWNER, "run the tests", &card).await;
    assert_eq!(said, [words::unknown("shop").en]);
    let offer = buttons(bench.sent().last().unwrap());
    assert_eq!(offer.len(), 1);
    assert!(
        bench.chat.sessions.list().is_empty(),
        "nothing starts by itself"
    );
    assert_eq!(bench.audit().await, ["spoken"]);
}

#[tokio::test]
async fn a_directory_that_is_no_project_is_never_offered() {
    let bench = DaemonBench::new().await;
    let elsewhere = tempfile::tempdir().unwrap();
    let card = notice(&bench, elsewhere.path()).await;
    let said = told(&bench, OWNER, "run the tests", &card).await;
    assert!(said[0].contains("claude --resume s1"), "{said:?}");
    assert!(buttons(bench.sent().last().unwrap()).is_empty());
    std::os::unix::fs::symlink(bench.shop(), elsewhere.path().join("link")).unwrap();
    let named = project_named(&bench.chat, &elsewhere.path().join("link"));
    assert_eq!(named.as_deref(), Some("shop"), "the very directory");
}

#[tokio::test]
async fn only_the_owner_speaks_into_a_session() {
    let bench = DaemonBench::new().await;
    let card = notice(&bench, &bench.shop()).await;
    for who in [STRANGER, APPROVER] {
        assert!(told(&bench, who, "run the tests", &card).await.is_empty());
    }
    assert_eq!(bench.audit().await.len(), 2, "both were turned away");
    assert!(bench.audit().await.iter().all(|kind| kind != "spoken"));
    let over = ended(&bench).await;
    let said = told(&bench, APPROVER, "yes", &over).await;
    assert_eq!(said, [in_chat(&Refusal::Handled.into()).en]);
}

#[tokio::test]
async fn a_late_yes_to_a_card_that_is_over_is_no_work() {
    let bench = DaemonBench::new().await;
    let card = ended(&bench).await;
    for yes in ["yes", "好的"] {
        let said = told(&bench, OWNER, yes, &card).await;
        assert_eq!(said, [in_chat(&Refusal::Handled.into()).en]);
    }
    assert!(!bench.audit().await.contains(&"spoken".to_owned()));
    let said = told(&bench, OWNER, "use the other file", &card).await;
    let both = Text::lines(&[in_chat(&Refusal::Handled.into()), words::unknown("shop")]);
    assert_eq!(said, [both.en], "it decides nothing and is work");
}

#[tokio::test]
async fn the_session_of_a_chat_goes_on_by_a_reply_to_what_it_said() {
    let bench = DaemonBench::new().await;
    bench.rests("s1", None).await;
    let over = ended(&bench).await;
    let said = told(&bench, OWNER, "use the other file", &over).await;
    assert_eq!(
        said,
        [in_chat(&Refusal::Handled.into()).en],
        "asked and answered"
    );
    let card = notice(&bench, &bench.shop()).await;
    take(&bench.chat, &replies(OWNER, "run the tests", &card)).await;
    let woken = session::notice(&Notice::NotInstalled, Agent::Claude);
    bench
        .until(|bench| bench.said().iter().any(|it| *it == woken.en))
        .await;
    let spoken = bench.audit().await.contains(&"spoken".to_owned());
    assert!(!spoken, "not into a terminal");
}

#[tokio::test]
async fn what_comes_late_or_is_locked_or_is_no_text_is_told_and_not_said() {
    let bench = DaemonBench::new().await;
    let card = notice(&bench, &bench.shop()).await;
    let sent = bench.chat.their_clock.now() - 6 * 60_000;
    let late = json!({"parent_id": card.as_str(), "create_time": sent.to_string()});
    take(&bench.chat, &message(OWNER, "run the tests", &late)).await;
    let mut picture = replies(OWNER, "", &card);
    picture.body = MessageBody::Image {
        key: "img_1".to_owned(),
    };
    take(&bench.chat, &picture).await;
    locking::set(&bench.cards, true, None).await;
    take(&bench.chat, &replies(OWNER, "run the tests", &card)).await;
    let too_old = crate::wording::task::too_old(6 * 60_000);
    let locked = bench.cards.lock.text();
    assert_eq!(bench.said(), [too_old.en, words::WORDS_ONLY.en, locked.en]);
    assert!(!bench.audit().await.contains(&"spoken".to_owned()));
}
