use super::*;
use crate::daemon::cards::book::bench::*;
use crate::daemon::cards::book::*;

#[test]
fn an_edit_waits_for_the_tap_on_its_card_and_the_first_try_does_not() {
    let mut desk = Desk::quiet();
    desk.book.tapped(&message(1), desk.now);
    desk.edit(1, 1, "ended");
    desk.edit(2, 2, "other");
    desk.book.edit_soon(message(1), "first".into(), desk.now);
    assert_eq!(desk.effects(), [patch(2, 2, "other")]);
    let soon = CardEffect::Patch(Patch {
        message: message(1),
        edit: PatchOf::Soon("first".into()),
    });
    assert_eq!(desk.pass(SECOND), [soon]);
    assert_eq!(desk.pass(3 * SECOND), [], "it is under way");
    desk.book
        .patched(&message(1), Patched::Passing(None), desk.now);
    assert_eq!(desk.effects(), [patch(1, 1, "ended")]);
    desk.book.edit_soon(message(1), "late".into(), desk.now);
    assert_eq!(desk.pass(3 * SECOND), []);
    desk.taken(1);
    assert_eq!(desk.pass(SECOND), [made(1, 1)], "too late for a first try");
}

#[test]
fn an_edit_made_while_a_tap_may_be_under_way_is_made_again() {
    let mut desk = Desk::quiet();
    desk.edit(1, 1, "ended");
    desk.book.tapped(&message(1), desk.now);
    desk.taken(1);
    assert_eq!(desk.effects(), [patch(1, 1, "ended"), made(1, 1)]);
    assert_eq!(desk.pass(OVER_AFTER), [patch(1, 1, "ended")]);
    desk.taken(1);
    assert_eq!(desk.pass(SECOND), [made(1, 1)]);
    // Under way before it was heard.
    desk.book.tapped(&message(1), desk.now);
    assert_eq!(desk.pass(OVER_AFTER), [patch(1, 1, "ended")]);
    desk.taken(1);
    assert_eq!(desk.effects(), [made(1, 1), struck(1, 1)], "often enough");
    desk.edit(2, 2, "ended");
    desk.taken(2);
    assert_eq!(desk.pass(4 * SECOND), [patch(2, 2, "ended"), made(2, 2)]);
    desk.book.tapped(&message(2), desk.now);
    assert_eq!(desk.pass(20 * SECOND), [], "the tap saw it");
    assert_eq!(desk.pass(SECOND), [struck(2, 2)], "it stays");
}

#[test]
fn what_a_lost_line_may_have_undone_is_made_again_and_nothing_else() {
    let mut desk = Desk::quiet();
    desk.edit(1, 1, "sure");
    desk.taken(1);
    desk.pass(10 * SECOND);
    let heard = desk.now;
    desk.edit(2, 2, "unsure");
    desk.taken(2);
    desk.effects();
    desk.edit(3, 3, "under way");
    desk.effects();
    desk.book.line(view(2, true, Some(heard)), desk.now);
    desk.taken(3);
    let again = |n: usize, text: &str| patch(n, i64::try_from(n).unwrap(), text);
    assert_eq!(desk.effects(), [made(3, 3)]);
    let both = [again(2, "unsure"), again(3, "under way")];
    assert_eq!(desk.pass(OVER_AFTER), both);
    desk.taken(2);
    desk.taken(3);
    let effects = desk.pass(60 * SECOND);
    assert_eq!(effects[..2], [made(2, 2), made(3, 3)]);
    assert_eq!(effects[2..], [struck(1, 1), struck(2, 2), struck(3, 3)]);
}

#[test]
fn what_the_last_daemon_left_is_made_first_or_made_again() {
    let mut desk = Desk::quiet();
    let mut book = CardBook::<()>::new(view(0, false, None), Lang::En, desk.now);
    let left = |n, made| Left {
        message: message(n),
        version: 1,
        made,
    };
    book.restore_face(message(1), 1, "known".into());
    book.restore_edit(left(1, 1), desk.now);
    book.restore_edit(left(2, 0), desk.now);
    desk.book = book;
    let from_disk = CardEffect::Patch(Patch {
        message: message(2),
        edit: PatchOf::Kept(1, None),
    });
    assert_eq!(desk.effects(), std::slice::from_ref(&from_disk));
    desk.taken(2);
    assert_eq!(desk.effects(), [made(2, 1)]);
    assert_eq!(desk.pass(OVER_AFTER), [patch(1, 1, "known"), from_disk]);
    desk.book.patched(&message(2), Patched::Refused, desk.now);
    assert_eq!(desk.effects(), [struck(2, 1)]);
}

#[test]
fn an_edit_that_fails_is_tried_later_and_later_and_when_feishu_is_back() {
    let mut desk = Desk::quiet();
    desk.edit(1, 1, "ended");
    assert_eq!(desk.effects(), [patch(1, 1, "ended")]);
    for wait in [1, 3, 7, 15, 31, 59, 59] {
        desk.book
            .patched(&message(1), Patched::Passing(None), desk.now);
        assert_eq!(desk.pass(wait * SECOND), []);
        assert_eq!(desk.pass(SECOND), [patch(1, 1, "ended")]);
    }
    let asked = Patched::Passing(Some(5 * SECOND));
    desk.book.patched(&message(1), asked, desk.now);
    assert_eq!(desk.pass(5 * SECOND), [patch(1, 1, "ended")]);
    desk.book.patched(&message(1), asked, desk.now);
    desk.edit(2, 2, "not yet");
    desk.book.patched(&message(2), asked, desk.now);
    desk.effects();
    desk.book.line(view(2, true, Some(desk.now)), desk.now);
    assert_eq!(
        desk.effects(),
        [patch(1, 1, "ended"), patch(2, 2, "not yet")]
    );
}

#[test]
fn a_newer_edit_takes_an_older_ones_place_and_an_older_comes_to_nothing() {
    let mut desk = Desk::quiet();
    desk.edit(1, 2, "second");
    desk.edit(1, 1, "first, late");
    assert_eq!(desk.effects(), [patch(1, 2, "second")]);
    desk.edit(1, 3, "third");
    desk.edit(1, 4, "fourth");
    assert_eq!(desk.effects(), [], "one at a time");
    desk.taken(1);
    assert_eq!(desk.effects(), [patch(1, 4, "fourth")]);
    desk.taken(1);
    assert_eq!(desk.effects(), [made(1, 4)]);
    assert!((desk.book).edit(&message(1), "unkept".into(), None, SECOND, desk.now));
    let unkept = CardEffect::Patch(Patch {
        message: message(1),
        edit: PatchOf::Unkept("unkept".into()),
    });
    assert_eq!(desk.pass(SECOND), [unkept]);
    desk.taken(1);
    assert_eq!(desk.pass(60 * SECOND), [], "nothing to strike off");
}

#[test]
fn half_of_the_slots_are_for_new_edits() {
    let mut desk = Desk::quiet();
    let mut book = CardBook::<()>::new(view(0, false, None), Lang::En, desk.now);
    for n in 0..100 {
        let left = Left {
            message: message(n),
            version: 1,
            made: 0,
        };
        book.restore_edit(left, desk.now);
    }
    desk.book = book;
    assert_eq!(desk.effects().len(), 16);
    for n in 200..300 {
        desk.edit(n, 2, "new");
    }
    assert_eq!(desk.effects().len(), 16);
    desk.taken(200);
    assert_eq!(desk.effects(), [made(200, 2), patch(216, 2, "new")]);
    for n in 0..16 {
        desk.taken(n);
    }
    let started = desk.effects();
    let new = |effect: &&CardEffect| matches!(effect, CardEffect::Patch(patch) if patch.edit == PatchOf::Kept(2, Some("new".into())));
    assert_eq!(started.iter().filter(new).count(), 16);
}

#[test]
fn what_is_beyond_a_cap_is_on_disk_or_stays() {
    let mut desk = Desk::quiet();
    for n in 0..=16_384 + 10_000 + 32 {
        let (message, card) = (message(n), CardText::from("ended"));
        let fits = (desk.book).edit(&message, card, Some(1), Duration::ZERO, desk.now);
        assert_eq!(fits, n < 16_384 + 10_000 + 32, "{n}");
    }
    let more = (desk.book).edit(&message(99_999), "x".into(), None, SECOND, desk.now);
    assert!(!more, "it is nowhere else");
    let mut edits = Edits::default();
    for n in 0..=MAX_PUT_OFF {
        let left = Left {
            message: message(n),
            version: 1,
            made: 0,
        };
        edits.restore(left, &HeardTaps::new(desk.now), desk.now);
    }
    assert_eq!(edits.all.len(), MAX_PUT_OFF, "it is left to the next start");
    assert!(edits.queue(&message(99_999), Some(1), "ended".into(), desk.now));
    edits.make_again(&message(99_999), desk.now);
    assert_eq!(edits.all.len(), MAX_PUT_OFF, "and so is a repeat");
    let mut desk = Desk::quiet();
    for n in 0..=4_096 {
        desk.edit(n, 1, "ended");
        desk.taken(n);
    }
    let struck_off = desk.effects().into_iter();
    let struck_off: Vec<_> = struck_off
        .filter(|effect| matches!(effect, CardEffect::StrikeOff(..)))
        .collect();
    assert_eq!(struck_off, [struck(0, 1)], "the oldest has to stay");
}

#[test]
fn a_waiting_face_that_the_disk_did_not_keep_is_shown_all_the_same() {
    let mut desk = Desk::quiet();
    desk.ask(1);
    desk.book.sent(&id(1), &message(1), desk.now);
    desk.effects();
    let waiting = keep(1, 1, "locked", KeepOf::Waiting);
    desk.book.kept(&waiting, None, desk.now);
    let unkept = CardEffect::Patch(Patch {
        message: message(1),
        edit: PatchOf::Unkept("locked".into()),
    });
    assert_eq!(desk.effects(), [unkept]);
}

fn soon(n: usize, text: &str) -> CardEffect {
    CardEffect::Patch(Patch {
        message: message(n),
        edit: PatchOf::Soon(text.into()),
    })
}

#[test]
fn of_two_first_tries_the_newer_is_made_and_only_so_many_wait() {
    let mut desk = Desk::quiet();
    desk.book.edit_soon(message(1), "first".into(), desk.now);
    desk.book.edit_soon(message(1), "second".into(), desk.now);
    assert_eq!(desk.pass(ANSWERED_BY), [soon(1, "second")]);
    let mut edits = Edits::default();
    for n in 0..=MAX_SOON {
        edits.queue_soon(message(n), "face".into(), desk.now);
    }
    assert_eq!(edits.soon.len(), MAX_SOON);
    assert_eq!(edits.soon[0].message, message(0));
}

#[test]
fn a_first_try_waits_for_the_edit_under_way_and_not_for_long() {
    let mut desk = Desk::quiet();
    desk.edit(1, 1, "under way");
    desk.effects();
    desk.book.edit_soon(message(1), "first".into(), desk.now);
    let given_up = desk.now + ANSWERED_BY + SOON;
    assert_eq!(desk.book.next_tick(), Some(given_up), "nobody wakes before");
    assert_eq!(desk.pass(ANSWERED_BY), []);
    desk.book.tick(desk.now);
    assert_eq!(desk.effects(), [], "nor whoever comes by");
    desk.taken(1);
    assert_eq!(desk.effects(), [made(1, 1), soon(1, "first")]);
    desk.edit(2, 2, "under way");
    desk.book.edit_soon(message(2), "first".into(), desk.now);
    assert_eq!(desk.pass(ANSWERED_BY + SOON), [patch(2, 2, "under way")]);
    desk.taken(2);
    assert_eq!(desk.effects(), [made(2, 2)], "the kept one was sooner");
}

#[test]
fn a_wait_that_feishu_asks_for_is_bounded_and_at_last_an_edit_is_given_up() {
    let mut desk = Desk::quiet();
    desk.edit(1, 1, "ended");
    desk.effects();
    let long = Patched::Passing(Some(3_600 * SECOND));
    desk.book.patched(&message(1), long, desk.now);
    assert_eq!(desk.pass(59 * SECOND), []);
    assert_eq!(desk.pass(SECOND), [patch(1, 1, "ended")]);
    desk.book.edits.all.get_mut(&message(1)).unwrap().tries = MAX_TRIES;
    desk.book.patched(&message(1), long, desk.now);
    assert_eq!(desk.effects(), [struck(1, 1)]);
    assert_eq!(desk.pass(120 * SECOND), []);
}

#[test]
fn what_feishu_will_never_take_is_struck_off_and_the_newer_that_waited_is_made() {
    let mut desk = Desk::quiet();
    desk.edit(1, 1, "first");
    desk.edit(1, 2, "second");
    assert_eq!(desk.effects(), [patch(1, 1, "first")]);
    let refused = Patched::Refused;
    desk.book.patched(&message(1), refused, desk.now);
    assert_eq!(desk.effects(), [patch(1, 2, "second")]);
    desk.book.patched(&message(1), refused, desk.now);
    assert_eq!(desk.effects(), [struck(1, 2)]);
    desk.book.patched(&message(1), refused, desk.now);
    desk.book.patched(&message(9), Patched::Taken, desk.now);
    assert_eq!(desk.effects(), [], "nobody made those");
}

#[test]
fn what_the_last_daemon_left_gives_way_to_this_ones_and_counts_how_often_it_was_made() {
    let mut desk = Desk::quiet();
    desk.edit(1, 2, "of this run");
    let left = |n, made| Left {
        message: message(n),
        version: 1,
        made,
    };
    desk.book.restore_edit(left(1, 0), desk.now);
    assert_eq!(desk.effects(), [patch(1, 2, "of this run")]);
    desk.taken(1);
    assert_eq!(desk.effects(), [made(1, 2)]);
    desk.book.restore_edit(left(2, ENOUGH - 1), desk.now);
    let from_disk = CardEffect::Patch(Patch {
        message: message(2),
        edit: PatchOf::Kept(1, None),
    });
    assert_eq!(desk.effects(), [from_disk]);
    desk.taken(2);
    assert_eq!(desk.effects(), [made(2, 1), struck(2, 1)], "often enough");
}

#[test]
fn a_tap_that_was_under_way_for_its_whole_time_takes_an_edit_back_and_a_later_one_does_not() {
    let mut desk = Desk::quiet();
    for n in 1..=2 {
        desk.edit(n, 1, "ended");
        desk.taken(n);
    }
    desk.effects();
    desk.pass(OVER_AFTER);
    desk.book.tapped(&message(1), desk.now);
    desk.now += Duration::from_millis(1);
    desk.book.tapped(&message(2), desk.now);
    let ms = Duration::from_millis(1);
    let until = OVER_AFTER.checked_sub(2 * ms).unwrap();
    assert_eq!(desk.pass(until), [], "it is under way");
    assert_eq!(desk.pass(ms), [patch(1, 1, "ended")]);
    assert_eq!(desk.pass(OVER_AFTER), []);
}

#[test]
fn an_older_edit_comes_to_nothing_also_when_the_newer_face_is_forgotten() {
    let mut desk = Desk::quiet();
    desk.edit(0, 2, "second");
    for n in 1..=usize::from(MAX_FACES) {
        desk.edit(n, 1, "other");
    }
    assert_eq!(desk.book.face(&message(0)), None);
    desk.effects();
    desk.edit(0, 1, "first, late");
    desk.taken(0);
    assert_eq!(desk.effects(), [made(0, 2), patch(32, 1, "other")]);
}

#[test]
fn the_same_connection_is_no_reason_to_try_an_edit_sooner() {
    let mut desk = Desk::quiet();
    desk.edit(1, 1, "ended");
    desk.effects();
    let asked = Patched::Passing(Some(5 * SECOND));
    desk.book.patched(&message(1), asked, desk.now);
    desk.book.line(view(1, true, None), desk.now);
    assert_eq!(desk.pass(4 * SECOND), []);
    assert_eq!(desk.pass(SECOND), [patch(1, 1, "ended")]);
}

#[test]
fn a_lost_tap_may_have_been_under_way_for_its_whole_time_and_no_longer() {
    for (more, again) in [(0, vec![patch(1, 1, "ended")]), (1, vec![])] {
        let mut desk = Desk::quiet();
        desk.edit(1, 1, "ended");
        desk.taken(1);
        desk.effects();
        desk.pass(OVER_AFTER + Duration::from_millis(more));
        desk.book.line(view(2, true, Some(desk.now)), desk.now);
        assert_eq!(desk.pass(OVER_AFTER), again);
    }
}

#[test]
fn of_two_edits_that_are_not_on_disk_the_newer_is_made_when_the_older_is() {
    let mut desk = Desk::quiet();
    let unkept = |text: &str| {
        CardEffect::Patch(Patch {
            message: message(1),
            edit: PatchOf::Unkept(text.into()),
        })
    };
    for text in ["first", "second"] {
        assert!((desk.book).edit(&message(1), text.into(), None, Duration::ZERO, desk.now));
    }
    assert_eq!(desk.effects(), [unkept("first")]);
    desk.taken(1);
    assert_eq!(desk.effects(), [unkept("second")]);
}

#[test]
fn an_edit_that_was_long_under_way_after_a_loss_is_made_again_long_after_its_answer() {
    let mut desk = Desk::quiet();
    desk.book.line(view(2, true, Some(desk.now)), desk.now);
    desk.edit(1, 1, "ended");
    assert_eq!(desk.pass(2 * SECOND), [patch(1, 1, "ended")]);
    desk.taken(1);
    assert_eq!(desk.pass(3 * SECOND), [made(1, 1)]);
    assert_eq!(desk.pass(SECOND), [patch(1, 1, "ended")]);
}

#[test]
fn an_edit_stays_by_the_time_it_was_last_taken_and_not_by_an_earlier_one() {
    let mut desk = Desk::quiet();
    desk.edit(1, 1, "first");
    desk.edit(2, 1, "tapped");
    desk.taken(1);
    desk.taken(2);
    desk.pass(SECOND);
    desk.book.tapped(&message(2), desk.now);
    assert_eq!(desk.pass(9 * SECOND), [patch(2, 1, "tapped")]);
    desk.edit(1, 2, "second");
    desk.taken(1);
    desk.taken(2);
    let twice = [patch(1, 2, "second"), made(1, 2), made(2, 1)];
    assert_eq!(desk.effects(), twice);
    assert_eq!(desk.pass(24 * SECOND), []);
    assert_eq!(desk.pass(SECOND), [struck(1, 2), struck(2, 1)]);
}
