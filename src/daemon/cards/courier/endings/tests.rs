use super::*;
use crate::approvals::outcome::sample;
use crate::approvals::request::{Reach, Request};
use crate::cards::sample::bash;
use crate::daemon::cards::bench::Bench;
use crate::daemon::cards::courier::send_now;
use crate::ids::MessageId;
use desk::Delivery;
use serde_json::json;

fn settled(request: Request, ending: Ending) -> Settled {
    Settled {
        request: Arc::new(request),
        ending,
        at: 1,
    }
}

/// A call whose input says more than its title.
fn long() -> Request {
    let command = format!("echo start\n{}\necho the-very-end", "true\n".repeat(20));
    sample::request("Bash", json!({"command": command}))
}

fn large() -> Request {
    sample::request("Bash", json!({"command": "x".repeat(65 << 10)}))
}

fn allowed() -> Ending {
    sample::allowed(Reach::Once)
}

#[tokio::test]
async fn of_the_input_no_more_than_its_title_is_kept_after_the_end() {
    let bench = Bench::new().await;
    let face = ended_face(
        &bench.cards,
        &settled(long(), allowed()),
        Delivery::Confirmed,
        None,
    );
    assert!(face.shown.contains("the-very-end"), "{}", face.shown);
    assert!(!face.kept.contains("the-very-end"), "{}", face.kept);
    assert!(face.kept.contains("echo start"), "{}", face.kept);
    // Of a large input there is nothing more to show than its title.
    let of_large = settled(large(), allowed());
    let face = ended_face(
        &bench.cards,
        &of_large,
        Delivery::Confirmed,
        Some("its title"),
    );
    assert!(face.kept.contains("its title"));
    assert_eq!(face.shown, face.kept);
}

#[tokio::test]
async fn a_card_says_whether_its_answer_is_known_to_have_come() {
    let bench = Bench::new().await;
    let ended = settled(bash("ls"), allowed());
    let face = |delivery| ended_face(&bench.cards, &ended, delivery, None);
    let sure = face(Delivery::Confirmed);
    assert_eq!(sure, face(Delivery::Written));
    let unsure = face(Delivery::Lost);
    assert_eq!(unsure, face(Delivery::Unconfirmed));
    assert_ne!(sure.shown, unsure.shown);
    assert_ne!(sure.kept, unsure.kept);
}

#[tokio::test]
async fn an_always_can_be_undone_from_the_card_that_is_kept_too() {
    let bench = Bench::new().await;
    let rule = crate::rules::Rule::new("Bash", "npm test");
    let ended = settled(bash("npm test"), sample::allowed(sample::always(rule)));
    let face = ended_face(&bench.cards, &ended, Delivery::Confirmed, None);
    for card in [&face.shown, &face.kept] {
        let card = serde_json::from_str(card).unwrap();
        let offered = crate::daemon::bench::buttons(&card);
        assert_eq!(offered.len(), 1);
        assert_eq!(offered[0]["action"], "undo");
        assert!(bench.cards.buttons.proof(&offered[0]).is_some());
    }
}

#[tokio::test]
async fn an_ending_and_the_edit_that_shows_it_are_kept_together_and_the_card_becomes_true() {
    let bench = Bench::new().await;
    let (_waiting, request, message) = bench.shows(long()).await;
    let ended = Settled {
        request: Arc::clone(&request),
        ending: Ending::TimedOut,
        at: bench.cards.now(),
    };
    close(&bench.cards, &ended).await;
    let kept = bench.kept().await;
    assert_eq!(kept[0].0, CardKey::Message(message.clone()));
    assert!(!kept[0].1.contains("the-very-end"));
    let told = journal::remembered(&bench.cards.journal, &request.id).await;
    assert_eq!(told.unwrap().ending, Ending::TimedOut);
    bench.until(|| !bench.edits_of(&message).is_empty()).await;
    assert!(bench.edits_of(&message)[0].contains("the-very-end"));
    let face = bench.cards.courier.face(&message).unwrap();
    assert_eq!(bench.edits_of(&message), [face.to_string()]);
    // An ending that comes twice changes nothing.
    let other = Settled {
        ending: Ending::HookGone,
        ..ended
    };
    close(&bench.cards, &other).await;
    bench.settled().await;
    assert_eq!(bench.edits_of(&message).len(), 1);
    let told = journal::remembered(&bench.cards.journal, &request.id).await;
    assert_eq!(told.unwrap().ending, Ending::TimedOut);
}

#[tokio::test]
async fn what_ended_before_its_card_set_out_is_written_down_and_needs_no_edit() {
    let bench = Bench::new().await;
    let (waiting, request) = bench.asks(bash("ls"));
    bench.keep(&waiting, &request).await;
    let ended = Settled {
        request: Arc::clone(&request),
        ending: Ending::HookGone,
        at: bench.cards.now(),
    };
    close(&bench.cards, &ended).await;
    assert_eq!(bench.kept().await, []);
    let told = journal::remembered(&bench.cards.journal, &request.id).await;
    assert_eq!(told.unwrap().ending, Ending::HookGone);
}

#[tokio::test]
async fn the_cards_that_asked_about_a_request_become_true_with_it() {
    let bench = Bench::new().await;
    let (_waiting, request, _) = bench.shows(bash("ls")).await;
    let asked = MessageId::parse("om_8").unwrap();
    assert!(bench.cards.courier.asked_by(&request.id, &asked));
    bench.stop_time();
    let ended = Settled {
        request: Arc::clone(&request),
        ending: Ending::TimedOut,
        at: bench.cards.now(),
    };
    close(&bench.cards, &ended).await;
    let kept = bench.kept().await;
    assert!(
        kept.iter()
            .any(|(key, _, _)| *key == CardKey::Message(asked.clone()))
    );
    bench.settled().await;
    assert!(bench.edits_of(&asked).is_empty(), "it was tapped just now");
    bench.pass(AFTER_REPLY).await;
    assert!(bench.edits_of(&asked)[0].contains("Timed out"));
    assert!(bench.cards.courier.take_asking(&request.id).is_empty());
}

#[tokio::test]
async fn what_is_retold_is_remembered_and_reaches_a_card_on_its_way() {
    let bench = Bench::new().await;
    let unknown = retold(&bench.cards, &bash("ls").id, |_| {});
    assert!(unknown.is_none(), "it ended too long ago");
    let told = bench.holds();
    let (waiting, request) = bench.asks(bash("ls"));
    bench.keep(&waiting, &request).await;
    send_now(&bench.cards, &request);
    bench.call(0).await;
    let ended = Settled {
        request: Arc::clone(&request),
        ending: Ending::TimedOut,
        at: bench.cards.now(),
    };
    close(&bench.cards, &ended).await;
    let face = retold(&bench.cards, &request.id, |ending| {
        *ending = Ending::HookGone;
    })
    .unwrap();
    let known = bench.cards.courier.decided(&request.id).unwrap();
    assert_eq!(known.settled.ending, Ending::HookGone);
    assert_eq!(
        decided_card(&bench.cards, &request.id),
        Some(Arc::clone(&face.shown))
    );
    told.send(()).unwrap();
    let message = MessageId::parse("om_1").unwrap();
    bench.until(|| !bench.edits_of(&message).is_empty()).await;
    assert_eq!(bench.edits_of(&message), [face.shown.to_string()]);
}

#[tokio::test]
async fn what_was_too_large_to_be_held_is_retold_by_its_title_alone() {
    let bench = Bench::new().await;
    let ended = settled(large(), Ending::TimedOut);
    let id = ended.request.id.clone();
    bench.cards.courier.remember_ending(ended, Delivery::Lost);
    assert_eq!(decided_card(&bench.cards, &id), None);
    let face = retold(&bench.cards, &id, |ending| *ending = Ending::HookGone).unwrap();
    assert_eq!(face.shown, face.kept);
    let known = bench.cards.courier.decided(&id).unwrap();
    assert_eq!(known.settled.ending, Ending::TimedOut, "as it was held");
}
