use super::*;
use crate::daemon::cards::book::bench::*;
use crate::daemon::cards::book::*;

#[test]
fn the_terminal_has_its_head_start() {
    let mut desk = Desk::quiet();
    let sending = Sending {
        not_before: desk.now + SECOND,
        ..desk.sending()
    };
    desk.book.ask(&id(1), sending, (), desk.now);
    assert_eq!(desk.book.next_tick(), Some(sending.not_before));
    desk.book.line(view(2, true, Some(desk.start)), desk.now);
    assert_eq!(desk.effects(), [], "a new line is no reason");
    assert_eq!(desk.pass(SECOND), [CardEffect::Send(id(1))]);
    desk.book.ask(&id(2), sending, (), desk.now);
    assert_eq!(desk.effects(), [CardEffect::Send(id(2))]);
    let held = Sending {
        not_before: desk.now + SECOND,
        ..sending
    };
    desk.book.ask(&id(3), held, (), desk.now);
    assert_eq!(desk.book.end(settled(3), &face("ended"), desk.now), None);
    assert_eq!(desk.pass(SECOND), [], "ended before it was sent");
}

#[test]
fn a_card_that_needs_no_line_is_sent_and_off_the_book() {
    let mut desk = Desk::quiet();
    desk.book.line(view(1, false, Some(desk.start)), desk.now);
    let sending = Sending {
        needs_line: false,
        ..desk.sending()
    };
    desk.book.ask(&id(1), sending, (), desk.now);
    assert_eq!(desk.effects(), [CardEffect::Send(id(1))]);
    assert!(!desk.book.any_unnamed());
    assert_eq!(desk.book.end(settled(1), &face("ended"), desk.now), None);
}

#[test]
fn the_terminal_decides_when_no_card_can_be_sent_in_time() {
    let mut desk = Desk::quiet();
    let cut = LineState::Away(Text::new("cut", "cut"));
    desk.book.line(view(1, false, Some(desk.start)), desk.now);
    desk.ask(1);
    let gave_up = |why: &LineState| match why {
        LineState::Away(why) | LineState::ShutOut(why) => CardEffect::GiveUp(id(1), why.clone()),
        LineState::Up => unreachable!(),
    };
    assert_eq!(desk.pass(59 * SECOND), []);
    assert_eq!(desk.pass(SECOND), [gave_up(&cut)]);
    assert_eq!(desk.book.end(settled(1), &face("ended"), desk.now), None);
    desk.ask(1);
    let shut = LineState::ShutOut(Text::new("密钥", "secret"));
    let view = LineView {
        state: shut.clone(),
        ..view(1, false, Some(desk.start))
    };
    desk.book.line(view, desk.now);
    assert_eq!(desk.effects(), [gave_up(&shut)], "at once");
}

#[test]
fn a_sending_that_failed_is_tried_again_after_a_pause_or_with_the_next_line() {
    let mut desk = Desk::quiet();
    desk.ask(1);
    assert_eq!(desk.effects(), [CardEffect::Send(id(1))]);
    desk.unsent(1, false, true);
    assert!(desk.book.is_held(&id(1)), "it never left");
    assert_eq!(desk.pass(SECOND), [CardEffect::Send(id(1))]);
    desk.unsent(1, true, true);
    assert!(!desk.book.is_held(&id(1)) && desk.book.any_unnamed());
    desk.book.line(view(2, true, Some(desk.start)), desk.now);
    assert_eq!(desk.effects(), [CardEffect::Send(id(1))]);
    assert_eq!(desk.pass(SECOND), [], "it hangs");
    desk.book.line(view(3, true, Some(desk.start)), desk.now);
    assert_eq!(desk.effects(), [CardEffect::Send(id(1))], "a newer line");
    desk.unsent(1, false, false);
    assert_eq!(desk.effects(), [CardEffect::GiveUp(id(1), WHY)]);
    assert!(desk.book.any_unnamed(), "it may be there");
    let key = desk.book.end(settled(1), &face("ended"), desk.now);
    assert_eq!(key, Some(CardKey::Sending(id(1))));
}

#[test]
fn no_pause_outlasts_the_request() {
    let mut desk = Desk::quiet();
    desk.ask(1);
    let unsent = |seconds: u32| Unsent {
        in_doubt: false,
        passes: true,
        retry_after: Some(seconds * SECOND),
        why: WHY,
    };
    desk.book.unsent(&id(1), &unsent(60), desk.now);
    assert_eq!(desk.effects(), [CardEffect::Send(id(1))]);
    assert_eq!(desk.pass(60 * SECOND), [CardEffect::Send(id(1))]);
    desk.book.unsent(&id(1), &unsent(1), desk.now);
    assert_eq!(desk.effects(), [CardEffect::GiveUp(id(1), WHY)]);
    assert!(!desk.book.any_unnamed());
}

#[test]
fn a_newer_connection_sends_anew_in_order_what_hangs_in_an_older() {
    let mut desk = Desk::quiet();
    for n in [3, 1, 2] {
        desk.ask(n);
    }
    desk.book.sent(&id(2), &message(2), desk.now);
    desk.effects();
    desk.book.line(view(1, true, None), desk.now);
    assert_eq!(desk.effects(), [], "it is the same one");
    desk.book.line(view(2, true, Some(desk.start)), desk.now);
    let sends = [1, 3].map(|n| CardEffect::Send(id(n)));
    assert_eq!(desk.effects(), sends);
    let key = desk.book.end(settled(1), &face("ended"), desk.now);
    assert_eq!(key, Some(CardKey::Sending(id(1))), "the first may be there");
}

#[test]
fn a_pause_is_cut_short_by_a_newer_connection_once_it_is_up() {
    let mut desk = Desk::quiet();
    desk.ask(1);
    desk.effects();
    let unsent = Unsent {
        in_doubt: false,
        passes: true,
        retry_after: Some(30 * SECOND),
        why: WHY,
    };
    desk.book.unsent(&id(1), &unsent, desk.now);
    assert_eq!(desk.pass(SECOND), []);
    desk.book.line(view(1, true, None), desk.now);
    assert_eq!(desk.effects(), [], "the same one");
    desk.book.line(view(2, false, Some(desk.start)), desk.now);
    assert_eq!(desk.effects(), [], "gone again");
    desk.book.line(view(3, true, Some(desk.start)), desk.now);
    assert_eq!(desk.effects(), [CardEffect::Send(id(1))]);
}

#[test]
fn what_may_be_there_keeps_its_place_when_the_terminal_decides() {
    let mut desk = Desk::quiet();
    for (n, in_doubt) in [(1, true), (2, false)] {
        desk.ask(n);
        desk.unsent(n, in_doubt, true);
    }
    desk.effects();
    let why = Text::new("密钥", "secret");
    let shut_out = LineView {
        state: LineState::ShutOut(why.clone()),
        ..view(1, false, Some(desk.start))
    };
    desk.book.line(shut_out, desk.now);
    let given_up = |n| CardEffect::GiveUp(id(n), why.clone());
    assert_eq!(desk.pass(SECOND), [given_up(1), given_up(2)]);
    assert!(desk.book.post(&id(1)).is_some());
    assert!(desk.book.post(&id(2)).is_none(), "it certainly is not");
    assert_eq!(desk.pass(60 * SECOND), [], "nobody sends it any more");
}

#[test]
fn a_card_has_a_name_and_may_be_there_by_its_place() {
    let now = Instant::now();
    let held = || Place::Held {
        not_before: now,
        due: now,
        connects: None,
    };
    let ended = Place::Ended {
        face: face("ended"),
        name: None,
        is_kept: true,
    };
    let sending = || Place::Sending { connects: 1 };
    let (tap, answer) = (Some(message(8)), Some(message(1)));
    for (place, in_doubt, claimed, name, is_unsent) in [
        (held(), false, None, None, false),
        (held(), true, tap.clone(), tap.clone(), true),
        (Place::Left, true, None, None, true),
        (Place::Left, true, tap.clone(), tap.clone(), false),
        (sending(), false, None, None, true),
        (sending(), true, tap.clone(), tap.clone(), true),
        (Place::Sent(message(1)), true, tap.clone(), answer, false),
        (ended, true, tap.clone(), None, false),
    ] {
        let mut card = Card::new(place, in_doubt, ());
        card.claimed = claimed;
        assert_eq!(card.message(), name.as_ref(), "{card:?}");
        assert_eq!(card.is_unsent(), is_unsent, "{card:?}");
    }
}
