use crate::daemon::cards::book::bench::*;
use crate::daemon::cards::book::*;

#[test]
fn a_card_that_asks_is_known_while_its_request_waits() {
    let mut desk = Desk::quiet();
    desk.restore(&id(1), Some(&message(1)));
    assert_eq!(desk.book.asks_about(&id(1), &message(2)), Some(false));
    desk.book.asking();
    assert_eq!(desk.book.asks_about(&id(1), &message(2)), None);
    assert!(desk.book.asked_by(&id(1), &message(2)));
    assert!(desk.book.asked_by(&id(1), &message(2)));
    assert!(!desk.book.asked_by(&id(2), &message(2)));
    assert_eq!(desk.book.asks_about(&id(1), &message(2)), Some(true));
    desk.book.asked();
    desk.book.asked();
    assert_eq!(desk.book.asks_about(&id(1), &message(3)), Some(false));
    assert_eq!(desk.book.take_asking(&id(1)), [message(2)]);
    for n in 0..20 {
        desk.book.asked_by(&id(1), &message(n));
    }
    assert_eq!(desk.book.take_asking(&id(1)).len(), MAX_ASKING);
    desk.book.telling();
    assert!(desk.book.any_unnamed());
    desk.book.told();
    assert!(!desk.book.any_unnamed());
    desk.book.forget(&id(1));
    assert!(!desk.book.asked_by(&id(1), &message(2)));
    assert_eq!(desk.book.request_of(&message(1)), None);
}

#[test]
fn what_is_told_of_a_card_follows_it_from_place_to_place() {
    let mut desk = Desk::quiet();
    let of = |desk: &Desk| {
        let (book, id) = (&desk.book, id(1));
        let name = book.message_of(&id).cloned();
        (name, book.is_held(&id), book.any_unnamed())
    };
    assert_eq!(of(&desk), (None, false, false), "never heard of");
    desk.book.line(view(1, false, Some(desk.start)), desk.now);
    desk.ask(1);
    assert_eq!(of(&desk), (None, true, false));
    desk.book.line(view(2, true, Some(desk.start)), desk.now);
    assert_eq!(of(&desk), (None, false, true), "on its way");
    desk.unsent(1, true, true);
    assert_eq!(of(&desk), (None, false, true), "it may be there");
    desk.book.sent(&id(1), &message(1), desk.now);
    assert_eq!(of(&desk), (Some(message(1)), false, false));
    assert_eq!(desk.book.ending_key(&id(1)), None);
    assert_eq!(desk.book.face_to_come(&id(1)), None);
    desk.book.end(settled(1), &face("ended"), desk.now);
    assert_eq!(of(&desk), (None, false, false));
    let key = Some(CardKey::Message(message(1)));
    assert_eq!(desk.book.ending_key(&id(1)), key);
    assert_eq!(desk.book.face(&message(1)), None, "no edit yet");
    desk.edit(1, 1, "ended");
    assert_eq!(desk.book.face(&message(1)), Some(&"ended".into()));
}

#[test]
fn the_face_and_key_of_a_card_that_ended_without_a_name_are_told_until_it_has_one() {
    let mut desk = Desk::quiet();
    desk.ask(1);
    desk.book.end(settled(1), &face("ended"), desk.now);
    assert_eq!(desk.book.face_to_come(&id(1)), Some(&face("ended")));
    let key = Some(CardKey::Sending(id(1)));
    assert_eq!(desk.book.ending_key(&id(1)), key);
    desk.book.redraw(&id(1), &face("ran"));
    assert_eq!(desk.book.face_to_come(&id(1)), Some(&face("ran")));
    desk.book.sent(&id(1), &message(1), desk.now);
    let key = Some(CardKey::Message(message(1)));
    assert_eq!(desk.book.ending_key(&id(1)), key);
}

#[test]
fn what_the_sender_notes_stays_with_the_card() {
    let now = Instant::now();
    let mut book = CardBook::<u8>::new(view(1, true, None), Lang::En, now);
    assert_eq!(book.post_mut(&id(1)), None);
    book.restore(&id(1), None, Duration::ZERO, 7, now);
    *book.post_mut(&id(1)).unwrap() += 1;
    book.sent(&id(1), &message(1), now);
    assert_eq!(book.post(&id(1)), Some(&8));
    book.forget(&id(1));
    assert_eq!(book.post(&id(1)), None);
}
