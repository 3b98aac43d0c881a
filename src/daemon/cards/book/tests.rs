//! What the book does, one story at a time.

mod edits;
mod model;
mod names;

use super::*;
use crate::approvals::request::{Caller, Digest, Ending, Facts, Origin, RealPath};
use std::path::PathBuf;
use std::sync::Arc;

fn id(n: usize) -> RequestId {
    RequestId::parse(&format!("r{n}")).unwrap()
}

fn message(n: usize) -> MessageId {
    MessageId::parse(&format!("om_{n}")).unwrap()
}

fn face(text: &str) -> Face {
    CardText::from(text).into()
}

fn settled(n: usize) -> Settled {
    let request = Facts {
        id: id(n),
        tool: "Bash".to_owned(),
        digest: Digest::of(&serde_json::Value::Null),
        input: serde_json::Value::Null,
        real: RealPath::Unasked,
        origin: Origin {
            machine: "m".to_owned(),
            user: "u".to_owned(),
            project: PathBuf::from("/p"),
            cwd: PathBuf::from("/p"),
            branch: None,
            session: None,
            agent: None,
            pid: None,
            hosted: false,
            caller: Caller::default(),
        },
        asked_at: 0,
        deadline: 1,
    }
    .read();
    Settled {
        request: Arc::new(request),
        ending: Ending::TimedOut,
        at: 1,
    }
}

fn view(connects: u64, up: bool, lost_heard: Option<Instant>) -> LineView {
    LineView {
        state: if up {
            LineState::Up
        } else {
            LineState::Away(Text::new("断", "cut"))
        },
        connects,
        lost_heard,
    }
}

/// A book, and the time it is.
struct Desk {
    book: CardBook<()>,
    start: Instant,
    now: Instant,
}

impl Desk {
    /// With a connection, long after the start.
    fn quiet() -> Self {
        let start = Instant::now();
        let mut book = CardBook::new(view(0, false, None), Lang::En, start);
        let now = start + Duration::from_secs(100);
        book.line(view(1, true, None), now);
        Self { book, start, now }
    }

    fn effects(&mut self) -> Vec<CardEffect> {
        std::iter::from_fn(|| self.book.step()).collect()
    }

    /// Lets time pass, tick by tick, and says what came of it.
    fn pass(&mut self, span: Duration) -> Vec<CardEffect> {
        let end = self.now + span;
        while let Some(next) = self.book.next_tick().filter(|at| *at <= end) {
            assert!(self.now < next || self.book.next_tick() != Some(self.now));
            self.now = self.now.max(next);
            self.book.tick(self.now);
        }
        self.now = end;
        self.effects()
    }

    fn sending(&self) -> Sending {
        Sending {
            not_before: self.now,
            latest: self.now + Duration::from_secs(60),
            needs_line: true,
            is_findable: true,
            sent_before: false,
        }
    }

    fn ask(&mut self, n: usize) {
        let sending = self.sending();
        self.book.ask(&id(n), sending, (), self.now);
    }

    /// A card of the last run.
    fn restore(&mut self, id: &RequestId, message: Option<&MessageId>) {
        (self.book).restore(id, message, Duration::ZERO, (), self.now);
    }

    fn unsent(&mut self, n: usize, in_doubt: bool, passes: bool) {
        let unsent = Unsent {
            in_doubt,
            passes,
            retry_after: None,
            why: WHY,
        };
        self.book.unsent(&id(n), &unsent, self.now);
    }

    fn edit(&mut self, n: usize, version: i64, text: &str) {
        let (message, card) = (message(n), CardText::from(text));
        let fits = (self.book).edit(&message, card, Some(version), Duration::ZERO, self.now);
        assert!(fits);
    }

    fn taken(&mut self, n: usize) {
        self.book.patched(&message(n), Patched::Taken, self.now);
    }
}

const WHY: Text = Text::new("坏", "bad");
const SECOND: Duration = Duration::from_secs(1);

fn patch(n: usize, version: i64, text: &str) -> CardEffect {
    CardEffect::Patch(Patch {
        message: message(n),
        edit: PatchOf::Kept(version, Some(text.into())),
    })
}

fn made(n: usize, version: i64) -> CardEffect {
    CardEffect::Made(message(n), version)
}

fn struck(n: usize, version: i64) -> CardEffect {
    CardEffect::StrikeOff(CardKey::Message(message(n)), Some(version))
}

fn keep(n: usize, of: usize, text: &str, of_what: KeepOf) -> Keep {
    Keep {
        request: id(n),
        message: message(of),
        face: face(text),
        of: of_what,
    }
}

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
    let cut = LineState::Away(Text::new("断", "cut"));
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
fn a_card_of_the_last_run_is_sent_again_under_its_key_and_ends_by_it() {
    let mut desk = Desk::quiet();
    for n in 1..=2 {
        desk.restore(&id(n), None);
    }
    assert!(desk.book.any_unnamed() && !desk.book.is_held(&id(1)));
    let again = Sending {
        sent_before: true,
        ..desk.sending()
    };
    desk.book.ask(&id(1), again, (), desk.now);
    assert_eq!(desk.effects(), [CardEffect::Send(id(1))]);
    desk.unsent(1, false, true);
    for n in 1..=2 {
        let key = desk.book.end(settled(n), &face("ended"), desk.now);
        assert_eq!(key, Some(CardKey::Sending(id(n))));
        assert_eq!(desk.book.face_to_come(&id(n)), Some(&face("ended")));
    }
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
