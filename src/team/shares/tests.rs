use proptest::prelude::*;

use super::*;
use crate::team::seen;

const RATE: usize = 900;

fn person(n: usize) -> Owner {
    Owner::parse(&format!("ou_{n}")).unwrap()
}

const SEND: &str = "send";
const EDIT: &str = "edit";

fn wish<'a>(who: &'a Owner, kind: &'static str, edits: Option<&'a str>) -> CallWish<'a> {
    CallWish {
        who,
        kind,
        writes: None,
        edits,
        bytes: 2_000,
    }
}

/// Asks and is done at once.
fn asks(shares: &mut Shares, wish: &CallWish<'_>, now: Millis) -> Result<(), Millis> {
    let asked = shares.ask(wish, now);
    if asked.is_ok() {
        shares.done(wish);
    }
    asked
}

/// How many of a minute's calls, one each `every` milliseconds, get through.
fn minute(shares: &mut Shares, wish: &CallWish<'_>, every: usize, from: Millis) -> usize {
    let times = (from..from + MINUTE).step_by(every);
    times.filter(|now| asks(shares, wish, *now).is_ok()).count()
}

#[test]
fn a_flood_of_cards_never_keeps_a_colleagues_card_waiting() {
    let (flooder, colleague) = (person(1), person(2));
    let mut shares = Shares::new(RATE, 4);
    let (mut through, mut sent) = (0, 0);
    for now in (0..3 * MINUTE).step_by(5) {
        let flood = wish(&flooder, SEND, None);
        through += usize::from(asks(&mut shares, &flood, now).is_ok());
        if now % 1_500 == 0 {
            let card = wish(&colleague, SEND, None);
            assert_eq!(asks(&mut shares, &card, now), Ok(()), "{now}");
            sent += 1;
        }
    }
    assert_eq!(sent, 120);
    assert!((1_200..=3 * RATE).contains(&through), "{through}");
}

#[test]
fn progress_stands_back_for_endings_and_takes_two_fifths_at_most() {
    let mut shares = Shares::new(RATE, 4);
    let people: Vec<_> = (0..50).map(person).collect();
    let (mut progress, mut endings) = (0, 0);
    // The first edits of each message are taken for endings.
    let from = 15_000;
    for now in (0..from + MINUTE).step_by(10) {
        for (n, who) in people.iter().enumerate() {
            let message = format!("om_{n}");
            let edit = wish(who, EDIT, Some(&message));
            let made = asks(&mut shares, &edit, now).is_ok();
            progress += usize::from(made && now >= from);
        }
        if now >= from && now % 200 == 0 {
            let (who, message) = (person(1_000 + endings % 7), format!("om_end_{endings}"));
            let ending = wish(&who, EDIT, Some(&message));
            // Others may have ended something in this very second.
            match asks(&mut shares, &ending, now) {
                Ok(()) => endings += 1,
                Err(wait) => assert!(wait <= SECOND, "{wait} at {now}"),
            }
        }
    }
    let most = RATE * 2 / 5 + people.len() * ENDINGS;
    assert!((200..=most).contains(&progress), "{progress}");
    assert!(endings > 280, "{endings} of 300");
}

#[test]
fn progress_goes_round_and_never_stops_for_long() {
    let people: Vec<_> = (0..40).map(person).collect();
    let mut shares = Shares::new(RATE, 4);
    let mut last = vec![0; people.len()];
    for now in (0..5 * MINUTE).step_by(50) {
        for (n, who) in people.iter().enumerate() {
            let message = format!("om_{n}");
            let edit = wish(who, EDIT, Some(&message));
            if asks(&mut shares, &edit, now).is_ok() {
                last[n] = now;
            }
            assert!(now - last[n] < MINUTE, "{n} has waited since {}", last[n]);
        }
    }
}

#[test]
fn whoever_is_alone_has_two_thirds_and_the_others_the_rest() {
    let mut shares = Shares::new(RATE, 4);
    let (one, two) = (person(1), person(2));
    assert_eq!(minute(&mut shares, &wish(&one, SEND, None), 10, 0), 600);
    // Each kind of call is counted for itself, as Feishu does.
    assert_eq!(minute(&mut shares, &wish(&one, "reply", None), 10, 0), 600);
    let mut shares = Shares::new(RATE, 4);
    let (mut first, mut second) = (0, 0);
    for now in (0..2 * MINUTE).step_by(10) {
        first += usize::from(asks(&mut shares, &wish(&one, SEND, None), now).is_ok());
        if now >= MINUTE {
            second += usize::from(asks(&mut shares, &wish(&two, SEND, None), now).is_ok());
        }
    }
    assert!((300..=420).contains(&second), "{second}");
    assert!(first <= 600 + 450, "{first}");
}

#[test]
fn the_wait_that_is_told_is_enough_and_no_longer() {
    let who = person(1);
    let flood = wish(&who, SEND, None);
    let mut shares = Shares::new(RATE, 4);
    let mut now = 0;
    for _ in 0..2_000 {
        if let Err(wait) = asks(&mut shares, &flood, now) {
            assert!((1..=MINUTE).contains(&wait));
            assert!(asks(&mut shares, &flood, now + wait - 1).is_err());
            now += wait;
            assert_eq!(asks(&mut shares, &flood, now), Ok(()));
        }
    }
    assert!(now > MINUTE);
}

#[test]
fn an_edit_is_an_ending_only_while_its_message_is_edited_seldom() {
    let who = person(1);
    let mut shares = Shares::new(RATE, 4);
    let edit = wish(&who, EDIT, Some("om_1"));
    for now in [0, 1_500, 3_000] {
        assert_eq!(shares.rank(&edit, RATE, now), Rank::Ending, "{now}");
        assert_eq!(asks(&mut shares, &edit, now), Ok(()));
    }
    assert_eq!(shares.rank(&edit, RATE, 4_500), Rank::Progress);
    let other = wish(&who, EDIT, Some("om_2"));
    assert_eq!(shares.rank(&other, RATE, 4_500), Rank::Ending);
    assert_eq!(shares.rank(&edit, RATE, MINUTE), Rank::Ending);
    for kind in [SEND, "reply", "upload", "name"] {
        assert_eq!(
            shares.rank(&wish(&who, kind, None), RATE, 4_500),
            Rank::Card
        );
    }
}

/// Endings are told from progress by how often a message is edited: whoever
/// has thousands of messages must gain nothing by going round.
#[test]
fn edits_of_ever_so_many_messages_do_not_pass_for_endings() {
    let (flooders, colleague) = ([person(1), person(2), person(3)], person(9));
    let mut shares = Shares::new(RATE, 4);
    let (mut progress, mut wanted) = (0, 0);
    for now in (0..3 * MINUTE).step_by(20) {
        for (n, who) in flooders.iter().enumerate() {
            let message = format!("om_{n}_{}", now % 5_000);
            // It gets what it gets.
            let _ = asks(&mut shares, &wish(who, EDIT, Some(&message)), now);
        }
        if now % 1_500 == 0 {
            wanted += 1;
            let running = wish(&colleague, EDIT, Some("om_running"));
            progress += usize::from(asks(&mut shares, &running, now).is_ok());
        }
        if now % 5_000 == 0 {
            let message = format!("om_{now}");
            let ending = wish(&colleague, EDIT, Some(&message));
            assert_eq!(asks(&mut shares, &ending, now), Ok(()), "{now}");
        }
    }
    assert!(progress * 2 > wanted, "{progress} of {wanted}");
}

#[test]
fn gateways_share_an_app_and_one_that_is_gone_leaves_its_part() {
    let who = person(1);
    let flood = wish(&who, SEND, None);
    let mut shares = Shares::new(RATE, 4);
    shares.gateway("b", 2 * MINUTE, 0);
    assert_eq!(minute(&mut shares, &flood, 10, 0), 300);
    let alone = 2 * MINUTE + 1;
    assert_eq!(minute(&mut shares, &flood, 10, alone), 600);
    for n in 0..2 * MAX_GATEWAYS {
        shares.gateway(&n.to_string(), 10 * MINUTE, 5 * MINUTE);
    }
    assert_eq!(shares.others.len(), MAX_GATEWAYS);
    assert!(
        asks(&mut shares, &flood, 5 * MINUTE).is_ok(),
        "never nothing"
    );
}

#[test]
fn what_feishu_asks_for_is_kept_for_that_kind_of_call_and_not_for_ever() {
    let who = person(1);
    let mut shares = Shares::new(RATE, 4);
    let edit = wish(&who, EDIT, Some("om_1"));
    assert_eq!(asks(&mut shares, &edit, 0), Ok(()));
    shares.pause(EDIT, 5_000, 0);
    assert_eq!(asks(&mut shares, &edit, 1_000), Err(4_000));
    assert_eq!(asks(&mut shares, &wish(&who, SEND, None), 1_000), Ok(()));
    assert_eq!(asks(&mut shares, &edit, 5_000), Ok(()));
    shares.pause(EDIT, Millis::MAX, 5_000);
    assert_eq!(asks(&mut shares, &edit, 5_000 + MINUTE), Ok(()));
    shares.pause(EDIT, -1, 80_000);
    assert_eq!(asks(&mut shares, &edit, 80_000), Ok(()));
}

#[test]
fn calls_that_hang_leave_room_for_colleagues_and_for_cards() {
    let (flooder, colleague) = (person(1), person(2));
    let mut shares = Shares::new(1_000_000, 4);
    let fill = |shares: &mut Shares, wish: &CallWish<'_>| {
        (0..2 * MAX_CALLS)
            .filter(|n| shares.ask(wish, Millis::try_from(*n).unwrap()).is_ok())
            .count()
    };
    let runs = wish(&flooder, EDIT, Some("om_1"));
    let hung = fill(&mut shares, &runs);
    assert!(hung <= MAX_CALLS / 2, "{hung}");
    let ending = wish(&colleague, EDIT, Some("om_2"));
    assert_eq!(shares.ask(&ending, 2_000), Ok(()));
    let hung = hung + fill(&mut shares, &wish(&flooder, SEND, None));
    assert!(hung < MAX_CALLS, "{hung}");
    let card = wish(&colleague, SEND, None);
    assert_eq!(shares.ask(&card, 3_000), Ok(()));
    for _ in 0..hung {
        shares.done(&runs);
    }
    shares.done(&ending);
    shares.done(&card);
    assert_eq!((shares.calls.used, shares.bytes.used), (0, 0));
    assert_eq!((shares.calls.by.len(), shares.bytes.by.len()), (0, 0));
}

#[test]
fn large_calls_are_counted_by_their_bytes() {
    let (flooder, colleague) = (person(1), person(2));
    let mut shares = Shares::new(1_000_000, 4);
    let large = |who| CallWish {
        bytes: 1 << 20,
        ..wish(who, "upload", None)
    };
    let hung = (0..200)
        .filter(|n| shares.ask(&large(&flooder), *n).is_ok())
        .count();
    assert!((32..64).contains(&hung), "{hung}");
    assert_eq!(shares.ask(&large(&colleague), 300), Ok(()));
    let endless = CallWish {
        bytes: usize::MAX / 4,
        ..wish(&colleague, SEND, None)
    };
    assert_eq!(shares.ask(&endless, 300), Err(SOON));
}

#[test]
fn one_persons_files_leave_a_place_for_a_colleagues() {
    let (one, two) = (person(1), person(2));
    let mut shares = Shares::new(RATE, 4);
    let all = |shares: &mut Shares, who: &Owner| (0..9).filter(|_| shares.may_fetch(who)).count();
    assert_eq!(all(&mut shares, &one), MAX_FILES - 1);
    assert_eq!(all(&mut shares, &two), 1);
    shares.fetched(&one);
    assert!(shares.may_fetch(&two));
    let waiting = (0..99).filter(|_| shares.may_wait(&one)).count();
    assert!(waiting < MAX_WAITING && shares.may_wait(&two), "{waiting}");
    shares.waited(&one);
    assert!(shares.may_wait(&two));
}

#[test]
fn letters_of_one_person_leave_time_to_read_a_colleagues() {
    let (one, two) = (person(1), person(2));
    let mut shares = Shares::new(RATE, 4);
    let read = (0..10_000).filter(|_| shares.reads(&one, 0)).count();
    assert!(read < MIN_LETTERS, "{read}");
    assert!(shares.reads(&two, 0));
    assert!(shares.reads(&one, SECOND));
    // Nobody can say so much that what was said is forgotten too early.
    let seconds = usize::try_from(2 * seen::FRESH / SECOND).unwrap();
    assert!(MIN_LETTERS * seconds <= seen::MAX);
}

proptest! {
    /// Whoever asks for whatever: Feishu's limits are kept, and memory with them.
    #[test]
    fn no_more_goes_out_than_feishu_takes(
        rate in 20usize..200,
        calls in proptest::collection::vec((0usize..30, 0usize..40, 0i64..400), 0..600),
    ) {
        let mut shares = Shares::new(rate, 4);
        let (mut now, mut out) = (0, Vec::new());
        for (n, m, pause) in calls {
            now += pause;
            let (who, message) = (person(n), format!("om_{m}"));
            let edit = wish(&who, EDIT, Some(&message));
            if asks(&mut shares, &edit, now).is_ok() {
                out.push(now);
            }
            for (span, most) in [(MINUTE, rate), (SECOND, rate / 20)] {
                let within = out.iter().filter(|at| **at + span > now).count();
                prop_assert!(within <= most, "{within} in {span}");
            }
            let budget = &shares.budgets[EDIT];
            for window in [&budget.minute, &budget.second, &budget.progress] {
                prop_assert!(window.by.len() <= window.log.len());
                prop_assert!(window.log.len() <= rate);
            }
            prop_assert!(shares.edits.len() <= rate);
        }
    }
}

#[test]
fn what_feishu_has_had_enough_of_is_told_for_as_long_as_it_rests() {
    let mut shares = Shares::new(RATE, 4);
    let one = person(1);
    assert_eq!(shares.pauses(0), []);
    // Another gateway may have heard it before this one ever made such a call.
    shares.pause(EDIT, 5_000, 0);
    assert_eq!(shares.pauses(1_000), [(EDIT, 4_000)]);
    let edit = wish(&one, EDIT, Some("om_1"));
    assert_eq!(asks(&mut shares, &edit, 1_000), Err(4_000));
    assert_eq!(asks(&mut shares, &wish(&one, SEND, None), 1_000), Ok(()));
    // An older word makes it no shorter, and none makes it longer than a minute.
    shares.pause(EDIT, 1_000, 1_000);
    assert_eq!(shares.pauses(4_000), [(EDIT, 1_000)]);
    assert_eq!(asks(&mut shares, &edit, 5_000), Ok(()));
    assert_eq!(shares.pauses(5_000), []);
    shares.pause(EDIT, Millis::MAX, 5_000);
    assert_eq!(shares.pauses(5_000), [(EDIT, MINUTE)]);
    let minute = shares.minute(5_000);
    assert_eq!((minute[SEND], minute[EDIT]), (1, 1));
    assert_eq!(shares.minute(MINUTE + 1_000)[SEND], 0);
}

#[test]
fn whoever_has_several_machines_has_one_chats_pace_for_all() {
    let mut shares = Shares::new(RATE, 4);
    let who = person(1);
    let send = CallWish {
        writes: Some(who.as_str()),
        ..wish(&who, SEND, None)
    };
    let made = (0..10).filter(|_| asks(&mut shares, &send, 0).is_ok());
    assert_eq!(made.count(), 4);
    assert_eq!(asks(&mut shares, &send, 999), Err(1));
    shares.gateway("other", 10_000, 1_000);
    let made = (0..10).filter(|_| asks(&mut shares, &send, 1_000).is_ok());
    assert_eq!(made.count(), 2, "the other gateway has as many");
}
