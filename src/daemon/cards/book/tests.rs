//! What the book does, one story at a time.

mod model;

use super::bench::*;
use super::*;
use std::sync::Arc;

#[test]
fn a_card_is_sent_when_there_is_a_connection_and_named_once() {
    let mut desk = Desk::quiet();
    desk.book.line(view(1, false, Some(desk.start)), desk.now);
    desk.ask(1);
    assert_eq!(desk.effects(), []);
    assert!(desk.book.is_held(&id(1)) && !desk.book.any_unnamed());
    desk.book.line(view(2, true, Some(desk.start)), desk.now);
    assert_eq!(desk.effects(), [CardEffect::Send(id(1))]);
    assert!(!desk.book.is_held(&id(1)) && desk.book.any_unnamed());
    desk.ask(1);
    assert_eq!(desk.effects(), [], "asked twice");
    desk.book.sent(&id(1), &message(1), desk.now);
    assert_eq!(desk.book.message_of(&id(1)), Some(&message(1)));
    assert_eq!(desk.book.request_of(&message(1)), Some(&id(1)));
    assert!(!desk.book.any_unnamed());
    assert_eq!(desk.pass(120 * SECOND), []);
}

#[test]
fn a_card_that_ended_on_its_way_is_edited_when_it_has_a_name() {
    let mut desk = Desk::quiet();
    desk.ask(1);
    desk.effects();
    let key = desk.book.end(settled(1), &face("ended"), desk.now).unwrap();
    assert_eq!(key, CardKey::Sending(id(1)));
    assert!((desk.book).recorded(&key, "ended".into(), Some(1), SECOND, desk.now));
    assert_eq!(desk.effects(), []);
    desk.book.sent(&id(1), &message(1), desk.now);
    let wait = Duration::ZERO;
    let first = keep(1, 1, "ended", KeepOf::Ended { wait });
    assert_eq!(desk.effects(), [CardEffect::Keep(first.clone())]);
    // It is put right while its edit is written down.
    desk.book.redraw(&id(1), &face("ran"));
    desk.book.kept(&first, Some(2), desk.now);
    let second = keep(1, 1, "ran", KeepOf::Ended { wait });
    let effects = [patch(1, 2, "ended"), CardEffect::Keep(second.clone())];
    assert_eq!(desk.effects(), effects);
    desk.book.kept(&second, Some(3), desk.now);
    let off = CardEffect::StrikeOff(key.clone(), None);
    assert_eq!(desk.effects(), [off]);
    desk.taken(1);
    assert_eq!(desk.effects(), [patch(1, 3, "ran")], "the newer one alone");
    desk.book.sent(&id(1), &message(1), desk.now);
    assert_eq!(desk.effects(), [], "the hanging try tells nothing new");
    assert!((desk.book).recorded(&key, "ended".into(), Some(4), SECOND, desk.now));
    let late = CardEffect::StrikeOff(key, Some(4));
    assert_eq!(desk.effects(), [late], "its key came to the disk too late");
}

#[test]
fn a_card_that_never_left_needs_no_name() {
    let mut desk = Desk::quiet();
    desk.ask(1);
    desk.effects();
    let key = desk.book.end(settled(1), &face("ended"), desk.now).unwrap();
    desk.unsent(1, false, true);
    assert_eq!(desk.effects(), [CardEffect::StrikeOff(key, None)]);
    assert_eq!(desk.pass(60 * SECOND), []);
}

#[test]
fn a_card_with_somebody_else_is_edited_on_arrival_or_looked_for_by_this_run_alone() {
    let mut desk = Desk::quiet();
    let elsewhere = Sending {
        is_findable: false,
        ..desk.sending()
    };
    for (n, arrives) in [(1, true), (2, false)] {
        desk.book.ask(&id(n), elsewhere, (), desk.now);
        desk.effects();
        assert_eq!(desk.book.end(settled(n), &face("ended"), desk.now), None);
        if arrives {
            desk.book.sent(&id(n), &message(n), desk.now);
            let wait = Duration::ZERO;
            let kept = keep(n, n, "ended", KeepOf::Ended { wait });
            assert_eq!(desk.effects(), [CardEffect::Keep(kept.clone())]);
            desk.book.kept(&kept, Some(1), desk.now);
            assert_eq!(desk.effects(), [patch(n, 1, "ended")]);
        } else {
            desk.unsent(n, true, true);
            assert_eq!(desk.effects(), []);
            let look = CardEffect::Look(id(n), face("ended"));
            assert_eq!(desk.pass(5 * SECOND), [look]);
            desk.book.found(&id(n), Found::Never, desk.now);
            assert_eq!(desk.effects(), [], "the disk has no key of it");
        }
        assert!(desk.book.face_to_come(&id(n)).is_none());
    }
    assert!(desk.book.cards.is_empty());
}

#[test]
fn a_card_of_the_last_run_is_sent_again_under_its_key_and_ends_by_it() {
    let mut desk = Desk::quiet();
    for n in 1..=3 {
        desk.restore(&id(n), None);
    }
    assert!(desk.book.any_unnamed() && !desk.book.is_held(&id(1)));
    for (n, sent_before) in [(1, true), (3, false)] {
        let again = Sending {
            sent_before,
            ..desk.sending()
        };
        desk.book.ask(&id(n), again, (), desk.now);
        assert_eq!(desk.effects(), [CardEffect::Send(id(n))]);
        desk.unsent(n, false, true);
    }
    for n in 1..=3 {
        let key = desk.book.end(settled(n), &face("ended"), desk.now);
        assert_eq!(key, Some(CardKey::Sending(id(n))));
        assert_eq!(desk.book.face_to_come(&id(n)), Some(&face("ended")));
    }
}

#[test]
fn how_a_request_ended_is_known_by_the_newest_word_and_large_input_is_let_go() {
    let mut desk = Desk::quiet();
    desk.restore(&id(1), Some(&message(1)));
    desk.book.end(settled(1), &face("ended"), desk.now);
    desk.book.remember_ending(settled(1), Delivery::Lost);
    let known = desk.book.decided(&id(1)).unwrap();
    assert_eq!(known.delivery, Delivery::Lost);
    assert_eq!(known.message, Some(message(1)));
    assert_eq!(known.title, None);
    let mut large = settled(2);
    let text = serde_json::Value::String("x".repeat(65 << 10));
    large.request = Arc::new(large.request.with_input(text));
    desk.book.remember_ending(large, Delivery::Confirmed);
    let known = desk.book.decided(&id(2)).unwrap();
    assert!(known.title.is_some() && known.settled.request.input.is_null());
    for n in 3..=255 {
        desk.book.remember_ending(settled(n), Delivery::Confirmed);
    }
    assert!(desk.book.decided(&id(1)).is_some());
    desk.book.remember_ending(settled(256), Delivery::Confirmed);
    desk.book.remember_ending(settled(257), Delivery::Confirmed);
    assert!(desk.book.decided(&id(1)).is_none());
}
