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
