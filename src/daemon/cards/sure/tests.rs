use super::*;
use crate::approvals::request::Dropped;
use crate::cards::Action;
use crate::cards::sample::bash;
use crate::daemon::bench::{OWNER, buttons, taps};
use crate::daemon::cards::bench::{Bench, refusal};
use crate::daemon::cards::courier::close;
use std::task::Poll;

/// A tap on a button that asks first.
fn tap(bench: &Bench, request: &Request, action: Action, on: &MessageId) -> Click {
    let value = bench.cards.buttons.choice(&request.id, action, false);
    taps(OWNER, &bench.cards.buttons.asking(&value), on)
}

#[tokio::test]
async fn the_second_card_asks_and_its_button_is_the_answer() {
    let bench = Bench::new().await;
    let (_waiting, request, message) = bench.shows(bash("sudo rm -r canary")).await;
    let click = tap(&bench, &request, Action::Allow, &message);
    let outcome = ask(&bench.cards, &click, Arc::clone(&request), WentOut::Unknown);
    assert_eq!(outcome, Outcome::Done(Deed::AskedOnceMore));
    let card = bench.call(1).await;
    let (path, body) = bench.calls().remove(1);
    assert!(
        path.ends_with(&format!("messages/{message}/reply")),
        "{path}"
    );
    assert_eq!(body["reply_in_thread"], false);
    assert_eq!(body["uuid"], format!("sure-allow-{}", request.id));
    assert!(card.contains("sudo rm -r canary"), "{card}");
    let card = serde_json::from_str(&card).unwrap();
    let offered = buttons(&card);
    assert_eq!(offered.len(), 2);
    assert_eq!(offered[0]["action"], "allow");
    assert_eq!(offered[0][SURE], true);
    assert_eq!(offered[0].get(ASK), None, "it does not ask again");
    assert_eq!(offered[1]["action"], "deny");
    for value in &offered {
        assert!(bench.cards.buttons.proof(value).is_some());
    }
    let asked = MessageId::parse("om_2").unwrap();
    assert!(bench.cards.courier.asks_about(&request.id, &asked).await);
    assert!(
        bench.cards.desk.find(&request.id).is_some(),
        "nothing is decided"
    );
}

#[tokio::test]
async fn a_tap_on_no_message_has_nothing_to_reply_to() {
    let bench = Bench::new().await;
    let (_waiting, request, message) = bench.shows(bash("sudo rm -r canary")).await;
    let mut click = tap(&bench, &request, Action::Allow, &message);
    click.message = None;
    let outcome = ask(&bench.cards, &click, Arc::clone(&request), WentOut::Unknown);
    assert_eq!(outcome, Outcome::Refused(Refusal::Invalid));
    bench.settled().await;
    assert_eq!(bench.calls().len(), 1);
}

#[tokio::test]
async fn whoever_tapped_hears_when_the_question_could_not_be_sent() {
    let bench = Bench::new().await;
    let (_waiting, request, message) = bench.shows(bash("sudo rm -r canary")).await;
    bench.answers(refusal(230_011, "recalled"));
    let click = tap(&bench, &request, Action::Allow, &message);
    ask(&bench.cards, &click, Arc::clone(&request), WentOut::Unknown);
    let told = bench.call(2).await;
    assert!(told.contains(&*need::NOT_ASKED.en), "{told}");
    // The same for a button that asks nothing.
    let click = tap(&bench, &request, Action::Interrupt, &message);
    ask(&bench.cards, &click, Arc::clone(&request), WentOut::Unknown);
    let told = bench.call(3).await;
    assert!(told.contains(&*need::NOT_ASKED.en), "{told}");
    let other = MessageId::parse("om_9").unwrap();
    let mut known = std::pin::pin!(bench.cards.courier.asks_about(&request.id, &other));
    let known = futures::poll!(&mut known);
    assert_eq!(known, Poll::Ready(false), "none is on its way any more");
}

#[tokio::test]
async fn a_question_whose_request_ended_meanwhile_becomes_true() {
    let bench = Bench::new().await;
    let (_waiting, request, message) = bench.shows(bash("sudo rm -r canary")).await;
    let told = bench.holds();
    let click = tap(&bench, &request, Action::Allow, &message);
    ask(&bench.cards, &click, Arc::clone(&request), WentOut::Unknown);
    bench.call(1).await;
    bench.stop_time();
    let desk = &bench.cards.desk;
    assert!(desk.drop_one(&request.id, Dropped::Restart));
    close(&bench.cards, &bench.ended().await).await;
    told.send(()).unwrap();
    bench.settled().await;
    bench.pass(courier::AFTER_REPLY).await;
    let asked = MessageId::parse("om_2").unwrap();
    let ended = courier::decided_card(&bench.cards, &request.id).unwrap();
    assert_eq!(bench.edits_of(&asked), [ended.to_string()]);
}
