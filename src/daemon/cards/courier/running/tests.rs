use super::*;
use crate::cards::sample::bash;
use crate::daemon::bench::buttons;
use crate::daemon::cards::bench::Bench;

#[tokio::test]
async fn the_card_of_a_call_that_runs_says_so_and_can_only_stop_it() {
    let bench = Bench::new().await;
    let (_waiting, request, message) = bench.shows(bash("npm test")).await;
    show_running(&bench.cards, &request, bench.cards.now());
    bench.until(|| !bench.edits_of(&message).is_empty()).await;
    let face = serde_json::from_str(&bench.edits_of(&message)[0]).unwrap();
    let offered = buttons(&face);
    assert_eq!(offered.len(), 1, "{face}");
    assert_eq!(offered[0]["action"], "interrupt");
    assert_eq!(offered[0]["request_id"], request.id.as_str());
    assert!(bench.cards.buttons.proof(&offered[0]).is_some());
    let kept = bench.kept().await;
    assert_eq!(kept.len(), 1, "a restart shows it too");
}

#[tokio::test]
async fn what_has_no_card_shows_nothing() {
    let bench = Bench::new().await;
    let (_waiting, request) = bench.asks(bash("npm test"));
    show_running(&bench.cards, &request, bench.cards.now());
    bench.settled().await;
    assert!(bench.calls().is_empty());
}
