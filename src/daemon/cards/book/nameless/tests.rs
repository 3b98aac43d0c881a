use crate::daemon::cards::book::bench::*;
use crate::daemon::cards::book::*;

#[test]
fn a_name_is_looked_for_in_turn_while_feishu_knows_the_key() {
    let mut desk = Desk::quiet();
    for n in 1..=2 {
        desk.ask(n);
        desk.effects();
        desk.unsent(n, true, false);
        desk.book.end(settled(n), &face("ended"), desk.now);
        desk.effects();
    }
    let look = |n| CardEffect::Look(id(n), face("ended"));
    assert_eq!(desk.pass(4 * SECOND), [], "the sending may bring it");
    assert_eq!(desk.pass(SECOND), [look(1)]);
    assert_eq!(desk.pass(60 * SECOND), [], "one after the other");
    desk.book.found(&id(1), Found::Later, desk.now);
    assert_eq!(desk.effects(), [], "Feishu is away");
    assert_eq!(desk.pass(2 * SECOND), [look(2)]);
    desk.book.found(&id(2), Found::Named(message(2)), desk.now);
    let kept = keep(2, 2, "ended", KeepOf::Ended { wait: OVER_AFTER });
    assert_eq!(desk.effects(), [CardEffect::Keep(kept.clone()), look(1)]);
    desk.book.kept(&kept, Some(7), desk.now);
    let off = |n| CardEffect::StrikeOff(CardKey::Sending(id(n)), None);
    assert_eq!(desk.effects(), [off(2)]);
    assert_eq!(desk.pass(OVER_AFTER), [patch(2, 7, "ended")]);
    desk.book.found(&id(1), Found::Later, desk.now);
    desk.book.seek(&id(1), desk.now);
    assert_eq!(desk.pass(3_240 * SECOND), [look(1)]);
    desk.book.found(&id(1), Found::Later, desk.now);
    assert_eq!(
        desk.pass(60 * SECOND),
        [off(1)],
        "it would make a second card"
    );
    let left = face("of the last run");
    for (n, minutes) in [(4, 55), (3, 54)] {
        let age = minutes * 60 * SECOND;
        desk.book
            .restore_nameless(&id(n), left.clone(), age, desk.now);
    }
    assert_eq!(desk.effects(), [off(4), CardEffect::Look(id(3), left)]);
    desk.book.found(&id(3), Found::Never, desk.now);
    assert_eq!(desk.effects(), [off(3)]);
}

#[test]
fn a_card_of_the_last_run_is_looked_for_while_feishu_knows_its_key() {
    let mut desk = Desk::quiet();
    for (n, minutes) in [(1, 54), (2, 55)] {
        let age = minutes * 60 * SECOND;
        (desk.book).restore(&id(n), None, age, (), desk.now);
        desk.book.end(settled(n), &face("ended"), desk.now);
    }
    let look = CardEffect::Look(id(1), face("ended"));
    assert_eq!(desk.pass(5 * SECOND), [look]);
    desk.book.found(&id(1), Found::Later, desk.now);
    let off = CardEffect::StrikeOff(CardKey::Sending(id(2)), None);
    let again = CardEffect::Look(id(1), face("ended"));
    assert_eq!(desk.pass(2 * SECOND), [off, again]);
}
