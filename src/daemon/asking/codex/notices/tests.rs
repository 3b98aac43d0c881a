use super::*;
use crate::daemon::asking::codex::thread_of;
use crate::daemon::bench::DaemonBench;
use crate::ids::MessageId;
use crate::text::Lang;
use crate::wording::card as words;
use serde_json::Value;

fn over(took: Millis) -> TurnOver {
    TurnOver {
        thread: "T".to_owned(),
        cwd: "/p/shop".to_owned(),
        took,
        failed: false,
        last: Some("that is all".to_owned()),
        plan: None,
    }
}

async fn told(bench: &DaemonBench) -> String {
    bench.until(|bench| !bench.sent().is_empty()).await;
    bench.sent().iter().map(Value::to_string).collect()
}

#[tokio::test]
async fn the_end_of_a_long_turn_is_told_and_says_whether_it_failed() {
    for (failed, state) in [(false, &words::FINISHED), (true, &words::FAILED)] {
        let bench = DaemonBench::with(&[("NOD_NOTIFY_STOP_AFTER", "60")]).await;
        turn_over(&bench.codex, over(59_999));
        turn_over(
            &bench.codex,
            TurnOver {
                failed,
                ..over(60_000)
            },
        );
        let card = told(&bench).await;
        assert_eq!(bench.sent().len(), 1, "the short one is nobody's news");
        assert!(card.contains(state.get(Lang::En)), "{card}");
        assert!(card.contains("codex resume T"), "{card}");
        assert!(!card.contains("Claude"), "{card}");
    }
    let off = DaemonBench::with(&[("NOD_NOTIFY_STOP_AFTER", "off")]).await;
    turn_over(&off.codex, over(Millis::MAX));
    tokio::task::yield_now().await;
    assert!(off.bench.calls().is_empty());
}

#[tokio::test]
async fn a_plan_is_told_however_short_its_turn_was() {
    let bench = DaemonBench::with(&[("NOD_NOTIFY_STOP_AFTER", "off")]).await;
    let plan = Some("first this, then that".to_owned());
    turn_over(&bench.codex, TurnOver { plan, ..over(1) });
    assert!(told(&bench).await.contains("first this, then that"));
}

#[tokio::test]
async fn a_reply_to_such_a_card_finds_its_thread() {
    let bench = DaemonBench::new().await;
    terminal_only(&bench.codex, "T", Some("/p/shop".to_owned()), true);
    told(&bench).await;
    let message = MessageId::parse("om_1").unwrap();
    // Whose it is, is told once nothing is on its way.
    assert_eq!(bench.cards.courier.request_soon(&message).await, None);
    let store = &bench.cards.journal.store;
    assert_eq!(thread_of(store, &message).await.as_deref(), Some("T"));
    let other = MessageId::parse("om_2").unwrap();
    assert_eq!(thread_of(store, &other).await, None);
}

#[tokio::test]
async fn what_nod_does_not_know_is_told_otherwise_than_what_it_does() {
    let mut cards = Vec::new();
    for known in [true, false] {
        let bench = DaemonBench::new().await;
        terminal_only(&bench.codex, "T", None, known);
        cards.push(told(&bench).await);
    }
    assert!(cards[0].contains(words::TERMINAL_WAITS_TEXT.get(Lang::En)));
    assert!(cards[1].contains(words::UNKNOWN_WAITS_TEXT.get(Lang::En)));
}
