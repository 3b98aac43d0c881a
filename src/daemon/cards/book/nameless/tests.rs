use super::*;
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

fn look(n: usize) -> Turn {
    Turn::Look(id(n))
}

fn less(span: Duration, by: Duration) -> Duration {
    span.checked_sub(by).unwrap()
}

#[test]
fn the_sending_itself_has_time_to_bring_the_name_first() {
    let now = Instant::now();
    let mut nameless = Nameless::new(now);
    let none = Duration::ZERO;
    nameless.put(&id(1), none, none, now);
    assert_eq!(nameless.next_tick(), Some(now + FRESH));
    assert_eq!(
        nameless.next(now + less(FRESH, Duration::from_millis(1))),
        None
    );
    assert_eq!(nameless.next(now + FRESH), Some(look(1)));
    nameless.looked();
    nameless.remove(&id(1));
    // One of the last run has had it, or some of it.
    nameless.put(&id(2), none, less(FRESH, SECOND), now);
    assert_eq!(nameless.next_tick(), Some(now + SECOND));
    nameless.put(&id(3), none, 100 * FRESH, now);
    assert_eq!(nameless.next(now), Some(look(3)));
}

#[test]
fn one_is_looked_for_at_a_time_and_nobody_while_feishu_is_away() {
    let now = Instant::now();
    let mut nameless = Nameless::new(now);
    for n in 1..=2 {
        nameless.put(&id(n), Duration::ZERO, FRESH, now);
    }
    assert_eq!(nameless.next(now), Some(look(1)));
    assert_eq!((nameless.next(now), nameless.next_tick()), (None, None));
    nameless.looked();
    nameless.put_back(&id(1), now);
    assert_eq!(nameless.next(now), None, "Feishu is away");
    assert_eq!(nameless.next_tick(), Some(now + EVERY));
    assert_eq!(nameless.next(now + EVERY), Some(look(2)), "the other first");
    nameless.looked();
    nameless.remove(&id(2));
    assert_eq!(nameless.next(now + EVERY), Some(look(1)));
    nameless.looked();
    nameless.remove(&id(1));
    assert_eq!(nameless.next_tick(), None);
    nameless.put_back(&id(1), now + EVERY);
    assert_eq!(nameless.next_tick(), None, "it was found meanwhile");
}

#[test]
fn a_key_that_feishu_may_have_forgotten_is_not_used_again() {
    let now = Instant::now();
    let mut nameless = Nameless::new(now);
    let known_for = less(KNOWN_FOR, FRESH + SECOND);
    nameless.put(&id(1), known_for, Duration::ZERO, now);
    // Told twice, the first counts.
    nameless.put(&id(1), Duration::ZERO, Duration::ZERO, now);
    assert_eq!(nameless.next(now + FRESH), Some(look(1)));
    nameless.looked();
    nameless.put_back(&id(1), now + FRESH);
    let later = now + FRESH + EVERY;
    assert_eq!(nameless.next(later), Some(Turn::TooOld(id(1))));
    assert_eq!(nameless.next(later), None);
}

#[test]
fn a_hint_brings_one_forward_and_one_too_many_is_left_to_the_next_start() {
    let now = Instant::now();
    let mut nameless = Nameless::new(now);
    for n in 0..=MAX {
        nameless.put(&id(n), Duration::ZERO, Duration::ZERO, now);
    }
    assert_eq!(nameless.all.len(), MAX);
    nameless.hasten(&id(MAX), now);
    assert_eq!(nameless.next(now), None);
    nameless.hasten(&id(7), now);
    nameless.hasten(&id(7), now);
    assert_eq!(nameless.next(now), Some(look(7)));
    assert_eq!(nameless.due.len(), MAX - 1, "it has one turn only");
}

#[test]
fn a_card_that_somebody_knows_the_place_of_is_looked_for_at_once() {
    let mut desk = Desk::quiet();
    desk.ask(1);
    desk.book.end(settled(1), &face("ended"), desk.now);
    desk.effects();
    desk.book.seek(&id(1), desk.now);
    let look = CardEffect::Look(id(1), face("ended"));
    assert_eq!(desk.effects(), [look]);
}
