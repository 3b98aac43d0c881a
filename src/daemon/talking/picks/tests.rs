use super::*;
use crate::approvals::outcome::Outcome;
use crate::daemon::bench::{DaemonBench, OWNER, buttons, taps, writes};
use crate::daemon::cards::locking;
use crate::ids::MessageId;
use serde_json::json;

/// The menu that these words bring: the key, and the message it stands on.
async fn menu(bench: &DaemonBench, text: &str) -> (String, MessageId) {
    chat::take(&bench.chat, &writes(OWNER, text)).await;
    let shown = bench.sent().pop().unwrap();
    let key = buttons(&shown)[0]["request_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let draft = bench.chat.drafts.find(&key, bench.cards.now()).unwrap();
    (key, draft.card.unwrap())
}

fn click(on: &MessageId, words: &str) -> Click {
    let mut click = taps(OWNER, &Value::Null, on);
    let form = json!({WORDS_FIELD: words});
    click.form = form.as_object().unwrap().clone();
    click
}

async fn tap(bench: &DaemonBench, click: &Click, key: &str, number: usize) -> Outcome {
    picked(&bench.chat, click, key, number).await.outcome
}

#[tokio::test]
async fn a_menu_counts_on_its_own_card_and_for_what_it_offered() {
    let bench = DaemonBench::new().await;
    let (key, card) = menu(&bench, "/new").await;
    let there = click(&card, "tidy up");
    assert_eq!(tap(&bench, &there, "d0", 0).await, Refusal::MenuGone.into());
    assert_eq!(tap(&bench, &there, &key, 1).await, Refusal::Invalid.into());
    let other = click(&MessageId::parse("om_other").unwrap(), "tidy up");
    assert_eq!(tap(&bench, &other, &key, 0).await, Refusal::Invalid.into());
    assert!(bench.chat.sessions.list().is_empty());
}

/// A menu that Feishu has while this machine does not know its name: its key,
/// and who sends it.
async fn nameless(bench: &DaemonBench) -> (String, tokio::task::JoinHandle<()>) {
    let chat = Arc::clone(&bench.chat);
    let sends = tokio::spawn(async move { chat::take(&chat, &writes(OWNER, "/new")).await });
    bench.until(|bench| bench.sent().len() == 1).await;
    let shown = bench.sent().pop().unwrap();
    let first = buttons(&shown).remove(0);
    (first["request_id"].as_str().unwrap().to_owned(), sends)
}

#[tokio::test]
async fn a_menu_without_a_name_counts_at_once_outside_of_a_team_alone() {
    let bench = DaemonBench::new().await;
    let _answer = bench.bench.holds();
    let (key, _sends) = nameless(&bench).await;
    let card = MessageId::parse("om_1").unwrap();
    let told = tap(&bench, &click(&card, "tidy up"), &key, 0).await;
    assert_eq!(told, Deed::Starting.into());
}

#[cfg(feature = "team")]
#[tokio::test]
async fn a_lifted_choice_starts_nothing_in_a_team_and_a_quick_one_waits_for_the_name() {
    use crate::daemon::machines::bench::{NOWHERE, keys, membership};
    use std::time::Duration;

    let bench = DaemonBench::in_team(membership(&keys(), OWNER, 1, NOWHERE)).await;
    let answer = bench.bench.holds();
    let (key, sends) = nameless(&bench).await;
    bench.bench.stop_time();
    let lifted = click(&MessageId::parse("om_other").unwrap(), "tidy up");
    let tapped = tap(&bench, &lifted, &key, 0);
    let told = bench.bench.meanwhile(Duration::from_secs(2), tapped).await;
    assert_eq!(told, Refusal::MenuGone.into());
    assert!(bench.chat.sessions.list().is_empty());
    let there = click(&MessageId::parse("om_1").unwrap(), "tidy up");
    let mut tapped = std::pin::pin!(tap(&bench, &there, &key, 0));
    assert!(futures::poll!(&mut tapped).is_pending());
    answer.send(()).unwrap();
    let told = bench.bench.meanwhile(Duration::ZERO, tapped).await;
    assert_eq!(told, Deed::Starting.into());
    sends.await.unwrap();
}

#[tokio::test]
async fn a_project_with_words_starts_one_session_however_often_it_is_tapped() {
    let bench = DaemonBench::new().await;
    let (key, card) = menu(&bench, "/new").await;
    let empty = tap(&bench, &click(&card, "  "), &key, 0).await;
    assert_eq!(empty, Refusal::SayWhat.into());
    let there = click(&card, &"tidy up ".repeat(500));
    assert_eq!(tap(&bench, &there, &key, 0).await, Deed::Starting.into());
    assert_eq!(tap(&bench, &there, &key, 0).await, Refusal::MenuGone.into());
    bench
        .until(|bench| bench.chat.sessions.list().len() == 1)
        .await;
    let one = bench.chat.sessions.list().remove(0).kept;
    assert_eq!(one.project, "shop");
    assert!(one.title.starts_with("tidy up"));
}

#[tokio::test]
async fn a_lock_starts_nothing_and_leaves_the_menu() {
    let bench = DaemonBench::new().await;
    let (key, card) = menu(&bench, "/new").await;
    locking::set(&bench.cards, true, None).await;
    let there = click(&card, "tidy up");
    assert_eq!(tap(&bench, &there, &key, 0).await, Refusal::Locked.into());
    locking::set(&bench.cards, false, None).await;
    assert_eq!(tap(&bench, &there, &key, 0).await, Deed::Starting.into());
}

#[tokio::test]
async fn a_command_of_a_menu_may_be_tapped_again_and_locks_at_once() {
    let bench = DaemonBench::new().await;
    let (key, card) = menu(&bench, "/help").await;
    for _ in 0..2 {
        let told = tap(&bench, &click(&card, ""), &key, 5).await;
        assert_eq!(told, Deed::CarriedOut.into());
    }
    bench.until(|bench| bench.cards.lock.is_closed()).await;
}

#[tokio::test]
async fn words_that_waited_for_a_tap_are_the_ones_that_were_written() {
    let bench = DaemonBench::new().await;
    let shop = bench.shop();
    let two = format!("shop={0},site={0}", shop.display());
    let bench = DaemonBench::with(&[("NOD_PROJECTS", &two)]).await;
    let (key, card) = menu(&bench, "/new tidy up").await;
    let there = click(&card, "delete it all");
    let ruling = picked(&bench.chat, &there, &key, 1).await;
    assert_eq!(ruling.outcome, Deed::Starting.into());
    bench
        .until(|bench| bench.chat.sessions.list().len() == 1)
        .await;
    let one = bench.chat.sessions.list().remove(0).kept;
    assert_eq!(
        (one.project.as_str(), one.title.as_str()),
        ("site", "tidy up")
    );
}
