use super::*;
use crate::approvals::outcome::sample;
use crate::cards::sample::bash;
use crate::daemon::bench::buttons;
use crate::daemon::cards::bench::{Bench, layout_refused, refusal};
use crate::daemon::cards::courier::{needs, send_now};
use crate::daemon::known::lock;
use serde_json::json;

fn hiccup() -> Value {
    refusal(
        230_099,
        "Failed to create card content, ext=Server Internal Error",
    )
}

fn forbidden() -> Value {
    refusal(230_022, "sensitive")
}

fn named(id: &str, mut request: Request) -> Request {
    request.id = RequestId::parse(id).unwrap();
    request
}

/// A call of so many lines, all of which fit its card.
fn lines(count: usize) -> Request {
    let line = format!("echo {}\n", "x".repeat(75));
    sample::request("Bash", json!({"command": line.repeat(count)}))
}

fn size_of(card: &str) -> usize {
    size(&serde_json::from_str(card).unwrap())
}

/// The content of each message so far.
fn contents(bench: &Bench) -> Vec<String> {
    let calls = bench.calls().into_iter();
    let text = |body: &Value| body["content"].as_str().unwrap_or_default().to_owned();
    calls.map(|(_, body)| text(&body)).collect()
}

fn actions(card: &str) -> Vec<String> {
    let card = serde_json::from_str(card).unwrap();
    let action = |value: &Value| value["action"].as_str().unwrap_or_default().to_owned();
    buttons(&card).iter().map(action).collect()
}

async fn until_told(bench: &Bench, calls: usize) {
    bench.until(|| bench.calls().len() == calls).await;
    bench.settled().await;
    assert_eq!(bench.calls().len(), calls);
}

fn keys(bench: &Bench) -> Vec<String> {
    let calls = bench.calls().into_iter();
    let key = |body: &Value| body["uuid"].as_str().unwrap_or_default().to_owned();
    calls.map(|(_, body)| key(&body)).collect()
}

#[tokio::test]
async fn a_layout_that_feishu_refuses_is_given_up_for_the_plainest_once_and_for_all() {
    let bench = Bench::new().await;
    bench.answers(layout_refused());
    let (_waiting, request, _) = bench.shows(bash("npm test")).await;
    until_told(&bench, 3).await;
    let said = contents(&bench);
    assert!(said[0].contains(r#""tag":"form""#));
    assert!(!said[1].contains(r#""tag":"form""#), "{}", said[1]);
    assert!(said[1].contains("npm test"));
    assert!(actions(&said[1]).contains(&"allow".to_owned()));
    assert!(said[2].contains("230099"), "the owner hears: {}", said[2]);
    let key = uuid(&request.id);
    assert_eq!(keys(&bench)[..2], [key.clone(), key], "never a second card");
    assert_eq!(needs(&bench.cards)[0]["need"], "plain");
    let (_waiting, _, _) = bench.shows(named("r2", bash("ls"))).await;
    until_told(&bench, 4).await;
    assert!(!contents(&bench)[3].contains(r#""tag":"form""#));
}

#[tokio::test]
async fn a_card_that_is_too_large_shows_less_and_all_of_it_goes_out_before() {
    let bench = Bench::new().await;
    bench.answers(refusal(230_025, "too long"));
    let (_waiting, request, _) = bench.shows(lines(60)).await;
    let told = |said: &String| said.contains("230025");
    bench.until(|| contents(&bench).iter().any(told)).await;
    let said = contents(&bench);
    let cards: Vec<_> = said
        .iter()
        .zip(keys(&bench))
        .filter(|(_, key)| *key == uuid(&request.id))
        .map(|(text, _)| text)
        .collect();
    assert_eq!(cards.len(), 2);
    assert!(size_of(cards[1]) < size_of(cards[0]));
    assert_eq!(bench.cards.courier.went_out(&request.id), WentOut::Whole);
    assert!(actions(cards[1]).contains(&"allow".to_owned()));
    assert!(cards[1].contains(r#""whole":true"#));
    assert_eq!(bench.cards.courier.needs.room(), size_of(cards[0]) - 1);
    // The next of that size is small at once.
    let before = said.len();
    let (_waiting, next, _) = bench.shows(named("r2", lines(60))).await;
    bench.settled().await;
    let sent = keys(&bench).split_off(before);
    let cards = sent.iter().filter(|key| **key == uuid(&next.id));
    assert_eq!(cards.count(), 1);
    assert_eq!(bench.cards.courier.went_out(&next.id), WentOut::Whole);
}

#[tokio::test]
async fn a_small_card_that_is_said_to_be_too_large_is_not_made_smaller() {
    let bench = Bench::new().await;
    bench.answers(refusal(230_025, "too long"));
    let (_waiting, _, _) = bench.shows(lines(20)).await;
    until_told(&bench, 3).await;
    let said = contents(&bench);
    assert!(size_of(&said[0]) < SMALL, "{}", size_of(&said[0]));
    assert!(!said[1].contains("echo"), "withheld: {}", said[1]);
    assert_eq!(bench.cards.courier.needs.room(), crate::cards::MAX_CARD);
}

#[tokio::test]
async fn content_that_feishu_forbids_is_withheld_and_can_only_be_denied() {
    for layout in [false, true] {
        let bench = Bench::new().await;
        bench.answers(forbidden());
        if layout {
            bench.answers(layout_refused());
        }
        let (_waiting, request, _) = bench.shows(bash("cat secrets")).await;
        let cards = 2 + usize::from(layout);
        until_told(&bench, cards + 1).await;
        let said = contents(&bench);
        let bare = &said[cards - 1];
        assert!(!bare.contains("cat secrets"), "{bare}");
        let offered = actions(bare);
        assert!(offered.contains(&"deny".to_owned()));
        assert!(!offered.contains(&"allow".to_owned()), "{offered:?}");
        assert_eq!(bare.contains(r#""tag":"form""#), !layout);
        assert!(said[cards].contains("230022"));
        let keys = keys(&bench);
        assert!(keys[..cards].iter().all(|key| *key == uuid(&request.id)));
        assert_eq!(needs(&bench.cards)[0]["need"], "withheld");
        assert!(!bench.cards.courier.needs.is_plain(), "of that card only");
    }
}

#[tokio::test]
async fn feishus_own_trouble_with_a_card_is_no_reason_to_change_it() {
    let bench = Bench::new().await;
    bench.answers(hiccup());
    let (_waiting, _, _) = bench.shows(bash("npm test")).await;
    until_told(&bench, 2).await;
    let said = contents(&bench);
    assert_eq!(said[0], said[1]);
    assert!(needs(&bench.cards).is_empty());
    // A Feishu that says so again means it.
    bench.answers(hiccup());
    bench.answers(hiccup());
    let (_waiting, _, _) = bench.shows(named("r2", bash("ls"))).await;
    until_told(&bench, 6).await;
    assert_eq!(needs(&bench.cards)[0]["need"], "plain");
}

#[tokio::test]
async fn while_nod_is_locked_a_new_card_has_no_allow() {
    let bench = Bench::new().await;
    lock::set(&bench.cards.lock, &bench.cards.journal, true, None).await;
    let (_waiting, _, _) = bench.shows(bash("npm test")).await;
    let offered = actions(&contents(&bench)[0]);
    assert!(offered.contains(&"deny".to_owned()), "{offered:?}");
    for allow in ["allow", "always", "session"] {
        assert!(!offered.contains(&allow.to_owned()), "{offered:?}");
    }
}

#[tokio::test]
async fn a_question_has_its_answers_on_its_card() {
    let bench = Bench::new().await;
    let asked = json!({"question": "Deploy now?", "kind": "confirm"});
    let (_waiting, _, _) = bench.shows(sample::request("nod_ask", asked)).await;
    let card = &contents(&bench)[0];
    assert!(card.contains("Deploy now?"));
    let offered = actions(card);
    assert!(!offered.is_empty() && offered.iter().all(|it| it == "answer"));
}

#[tokio::test]
async fn a_card_that_asks_for_nothing_is_said_in_words_at_last_each_rung_by_a_key_of_its_own() {
    let bench = Bench::new().await;
    let text = json!({"tag": "plain_text", "content": "All done."});
    let card = json!({"schema": "2.0", "body": {"elements": [{"tag": "div", "text": text}]}});
    let messages = bench.cards.courier.messages().unwrap();
    let (anchor, chat) = (
        MessageId::parse("om_anchor").unwrap(),
        ChatId::parse("oc_chat").unwrap(),
    );
    let to = To::Reply {
        anchor: &anchor,
        chat: &chat,
        in_thread: true,
    };
    for answer in [hiccup(), layout_refused(), forbidden()] {
        bench.answers(answer);
    }
    let sent = say(&bench.cards, messages, to, &card, "turn-1").await;
    assert_eq!(sent.unwrap().message_id.as_str(), "om_4");
    assert_eq!(
        keys(&bench),
        ["turn-1", "turn-1again", "turn-1plain", "turn-1text"]
    );
    let (path, last) = bench.calls().remove(3);
    assert!(path.ends_with("messages/om_anchor/reply"), "{path}");
    assert_eq!(last["reply_in_thread"], true);
    assert_eq!(last["msg_type"], "text");
    assert!(last["content"].as_str().unwrap().contains("All done."));
    assert!(needs(&bench.cards).is_empty(), "the plainest did not help");
    bench.answers(layout_refused());
    say(&bench.cards, messages, to, &card, "turn-2")
        .await
        .unwrap();
    assert_eq!(needs(&bench.cards)[0]["need"], "plain");
    // Who may not be written to is not written to in words either.
    let before = bench.calls().len();
    bench.answers(refusal(230_002, "not in the group"));
    assert!(
        say(&bench.cards, messages, to, &card, "turn-3")
            .await
            .is_err()
    );
    assert_eq!(bench.calls().len(), before + 1);
}

#[tokio::test]
async fn a_lock_leaves_the_card_of_a_call_that_runs_and_what_an_earlier_run_sent_whole() {
    let bench = Bench::new().await;
    let (_waiting, runs, first) = bench.shows(bash("npm test")).await;
    bench.cards.desk.runs(&runs.id, bench.cards.now()).unwrap();
    let command = "echo x\n".repeat(5_000);
    let large = sample::request("Bash", json!({"command": command}));
    let (_waiting, large, second) = bench.shows(named("r2", large)).await;
    let (_waiting, _, third) = bench.shows(named("r3", bash("ls"))).await;
    // As after a restart, when only the seal tells what went out before.
    bench
        .cards
        .courier
        .lock()
        .post_mut(&large.id)
        .unwrap()
        .whole = None;
    lock::set(&bench.cards.lock, &bench.cards.journal, true, None).await;
    redraw_waiting(Arc::clone(&bench.cards)).await;
    bench.until(|| !bench.edits_of(&third).is_empty()).await;
    bench.settled().await;
    assert!(bench.edits_of(&first).is_empty(), "it shows that it runs");
    assert!(bench.edits_of(&second).is_empty(), "its allow is of no use");
    let offered = actions(&bench.edits_of(&third)[0]);
    assert!(!offered.contains(&"allow".to_owned()) && offered.contains(&"deny".to_owned()));
}

#[tokio::test]
async fn a_lock_keeps_what_went_out_before_a_card_of_this_run() {
    let bench = Bench::new().await;
    let command = "echo x\n".repeat(5_000);
    let large = sample::request("Bash", json!({"command": command}));
    let (_waiting, _, message) = bench.shows(large).await;
    redraw_waiting(Arc::clone(&bench.cards)).await;
    bench.until(|| !bench.edits_of(&message).is_empty()).await;
    let face = &bench.edits_of(&message)[0];
    assert!(actions(face).contains(&"allow".to_owned()));
    assert!(face.contains(r#""whole":true"#));
}

#[cfg(feature = "team")]
#[tokio::test]
async fn the_cards_that_wait_can_be_closed_where_they_stand() {
    let bench = Bench::new().await;
    let (_first, _, message) = bench.shows(bash("npm test")).await;
    let (_unnamed, _) = bench.asks(named("r2", bash("ls")));
    let why = crate::text::Text::new("已离开", "this machine left its team");
    let all = closed_waiting(&bench.cards, 10, &why).await;
    assert_eq!(all.len(), 1, "the other has no card");
    assert_eq!(all[0].0, message);
    let card = all[0].1.to_string();
    assert!(card.contains("this machine left its team"), "{card}");
    assert!(!card.contains(r#""action":"allow""#));
    assert!(closed_waiting(&bench.cards, 0, &why).await.is_empty());
}

#[tokio::test]
async fn thousands_wait_for_their_turn_without_a_card() {
    let bench = Bench::new().await;
    let held: Vec<_> = (0..AT_ONCE).map(|_| bench.holds()).collect();
    let mut waits = Vec::new();
    for n in 0..AT_ONCE + 4 {
        let (waiting, request) = bench.asks(named(&format!("r{n}"), bash("ls")));
        send_now(&bench.cards, &request);
        waits.push(waiting);
    }
    bench.until(|| bench.calls().len() == AT_ONCE).await;
    bench.settled().await;
    assert_eq!(bench.calls().len(), AT_ONCE);
    drop(held);
    bench.until(|| bench.calls().len() >= AT_ONCE + 4).await;
}
