use crate::daemon::cards::book::bench::*;
use crate::daemon::cards::book::*;

#[test]
fn a_tap_names_its_card_until_the_answer_to_the_send_does() {
    let mut desk = Desk::quiet();
    desk.ask(1);
    desk.effects();
    desk.book.show(&id(1), face("runs"));
    assert_eq!(desk.effects(), []);
    assert!(desk.book.adopt(&id(1), &message(1)));
    let waiting = keep(1, 1, "runs", KeepOf::Waiting);
    assert_eq!(desk.effects(), [CardEffect::Keep(waiting.clone())]);
    assert!(desk.book.adopt(&id(1), &message(2)));
    assert_eq!(desk.book.message_of(&id(1)), Some(&message(1)));
    assert_eq!(desk.book.request_of(&message(1)), Some(&id(1)));
    desk.book.kept(&waiting, Some(1), desk.now);
    assert_eq!(desk.effects(), [patch(1, 1, "runs")]);
    desk.book.sent(&id(1), &message(3), desk.now);
    let there = keep(1, 3, "runs", KeepOf::Waiting);
    assert_eq!(desk.effects(), [CardEffect::Keep(there)]);
    assert_eq!(desk.book.request_of(&message(1)), None);
    assert_eq!(desk.book.request_of(&message(3)), Some(&id(1)));
    let key = desk.book.end(settled(1), &face("ended"), desk.now);
    assert_eq!(key, Some(CardKey::Message(message(3))));
    assert_eq!(desk.book.ending_key(&id(1)), key);
    assert_eq!(desk.book.request_of(&message(3)), None);
    let late = keep(1, 3, "runs", KeepOf::Waiting);
    desk.book.kept(&late, None, desk.now);
    assert_eq!(desk.effects(), [], "it has ended meanwhile");
}

#[test]
fn the_answer_to_the_send_confirms_what_a_tap_said() {
    let mut desk = Desk::quiet();
    desk.ask(1);
    desk.effects();
    desk.book.adopt(&id(1), &message(1));
    desk.book.show(&id(1), face("runs"));
    let waiting = keep(1, 1, "runs", KeepOf::Waiting);
    assert_eq!(desk.effects(), [CardEffect::Keep(waiting)]);
    desk.book.sent(&id(1), &message(1), desk.now);
    assert_eq!(desk.effects(), [], "it shows that already");
    assert_eq!(desk.book.message_of(&id(1)), Some(&message(1)));
}

#[test]
fn an_ending_goes_to_the_name_that_the_send_brings_and_not_to_what_a_tap_said() {
    let mut desk = Desk::quiet();
    desk.ask(1);
    desk.effects();
    desk.book.tapped(&message(8), desk.now);
    desk.book.adopt(&id(1), &message(8));
    let key = desk.book.end(settled(1), &face("ended"), desk.now).unwrap();
    assert_eq!(key, CardKey::Sending(id(1)));
    assert_eq!(desk.book.ending_key(&id(1)), Some(key.clone()));
    assert_eq!(desk.book.request_of(&message(8)), None);
    assert!((desk.book).recorded(&key, "ended".into(), Some(1), SECOND, desk.now));
    desk.book.sent(&id(1), &message(1), desk.now);
    let wait = Duration::ZERO;
    let kept = keep(1, 1, "ended", KeepOf::Ended { wait });
    assert_eq!(desk.effects(), [CardEffect::Keep(kept.clone())]);
    desk.book.kept(&kept, Some(2), desk.now);
    assert_eq!(desk.effects(), [CardEffect::StrikeOff(key, None)]);
    let there = Some(CardKey::Message(message(1)));
    assert_eq!(desk.book.ending_key(&id(1)), there);
    assert_eq!(desk.pass(3 * SECOND), [], "the tap was on this card");
    assert_eq!(desk.pass(SECOND), [patch(1, 2, "ended")]);
}

#[test]
fn a_name_that_is_another_cards_is_nobodys_claim() {
    let mut desk = Desk::quiet();
    desk.restore(&id(1), Some(&message(1)));
    desk.ask(2);
    desk.effects();
    assert!(!desk.book.adopt(&id(2), &message(1)));
    assert_eq!(desk.book.message_of(&id(2)), None);
    assert_eq!(desk.book.request_of(&message(1)), Some(&id(1)));
    // One that is named later keeps its name when the claim is given up.
    desk.ask(3);
    desk.effects();
    desk.book.adopt(&id(2), &message(3));
    desk.book.sent(&id(3), &message(3), desk.now);
    desk.book.sent(&id(2), &message(2), desk.now);
    assert_eq!(desk.book.request_of(&message(3)), Some(&id(3)));
}

#[test]
fn a_card_with_somebody_else_ends_by_what_a_tap_said_and_by_what_the_send_says() {
    let mut desk = Desk::quiet();
    let elsewhere = Sending {
        is_findable: false,
        ..desk.sending()
    };
    let wait = Duration::ZERO;
    for n in 1..=2 {
        desk.book.ask(&id(n), elsewhere, (), desk.now);
        desk.effects();
        desk.book.adopt(&id(n), &message(8));
        if n == 2 {
            desk.unsent(n, true, false);
        }
        let key = desk.book.end(settled(n), &face("ended"), desk.now);
        assert_eq!(key, Some(CardKey::Message(message(8))));
        assert_eq!(desk.book.ending_key(&id(n)), key);
        desk.book.sent(&id(n), &message(n), desk.now);
        let there = keep(n, n, "ended", KeepOf::Ended { wait });
        assert_eq!(desk.effects(), [CardEffect::Keep(there)]);
    }
}

#[test]
fn nobody_gives_up_a_card_that_was_tapped() {
    let mut desk = Desk::quiet();
    desk.ask(1);
    desk.effects();
    desk.book.adopt(&id(1), &message(1));
    desk.unsent(1, false, false);
    assert_eq!(desk.effects(), []);
    assert_eq!(desk.book.message_of(&id(1)), Some(&message(1)));
    assert!(!desk.book.any_unnamed());
    let key = desk.book.end(settled(1), &face("ended"), desk.now);
    assert_eq!(key, Some(CardKey::Sending(id(1))));
    let look = CardEffect::Look(id(1), face("ended"));
    assert_eq!(desk.pass(5 * SECOND), [look]);
}

#[test]
fn a_card_of_the_last_run_is_asked_for_also_when_a_tap_named_it() {
    let mut desk = Desk::quiet();
    desk.restore(&id(1), None);
    desk.book.adopt(&id(1), &message(1));
    let again = Sending {
        sent_before: true,
        ..desk.sending()
    };
    desk.book.ask(&id(1), again, (), desk.now);
    assert_eq!(desk.effects(), [CardEffect::Send(id(1))]);
    assert_eq!(desk.book.message_of(&id(1)), Some(&message(1)));
    desk.book.sent(&id(1), &message(2), desk.now);
    assert_eq!(desk.book.message_of(&id(1)), Some(&message(2)));
}

#[test]
fn a_tap_counts_for_the_card_of_its_request_whatever_message_it_names() {
    let mut desk = Desk::quiet();
    desk.restore(&id(1), Some(&message(1)));
    desk.book.tapped_on(&id(1), &message(8), desk.now);
    desk.edit(1, 1, "runs");
    assert_eq!(desk.pass(3 * SECOND), []);
    assert_eq!(desk.pass(SECOND), [patch(1, 1, "runs")]);
    desk.taken(1);
    desk.effects();
    desk.book.end(settled(1), &face("ended"), desk.now);
    desk.book.tapped_on(&id(1), &message(8), desk.now);
    assert_eq!(desk.pass(4 * SECOND), [patch(1, 1, "runs")], "made again");
    desk.book.tapped_on(&id(2), &message(8), desk.now);
    // Of one that ended without a name.
    desk.ask(3);
    desk.effects();
    desk.book.end(settled(3), &face("ended"), desk.now);
    desk.book.tapped(&message(8), desk.now);
    desk.book.tapped_on(&id(3), &message(8), desk.now);
    desk.book.sent(&id(3), &message(3), desk.now);
    let wait = Duration::ZERO;
    let kept = keep(3, 3, "ended", KeepOf::Ended { wait });
    assert_eq!(desk.effects(), [CardEffect::Keep(kept.clone())]);
    desk.book.kept(&kept, Some(2), desk.now);
    desk.effects();
    assert_eq!(desk.pass(3 * SECOND), []);
    assert_eq!(desk.pass(SECOND), [patch(3, 2, "ended")]);
}

#[test]
fn a_card_that_certainly_never_left_is_no_message_whatever_a_tap_says() {
    let mut desk = Desk::quiet();
    desk.book.line(view(1, false, Some(desk.start)), desk.now);
    desk.ask(1);
    assert!(desk.book.adopt(&id(1), &message(8)), "it is nobody else's");
    assert!(desk.book.adopt(&id(2), &message(8)));
    assert_eq!(desk.book.message_of(&id(1)), None);
    assert_eq!(desk.book.request_of(&message(8)), None);
    desk.book.sent(&id(2), &message(2), desk.now);
    assert_eq!(desk.book.request_of(&message(2)), None, "of no card");
}
