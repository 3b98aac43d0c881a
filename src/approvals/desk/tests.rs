//! Hooks that wait, clicks that race, and what each of them is told.

use super::expiry::run_expiry;
use super::*;
use crate::approvals::request::{Caller, Digest, Ending, Facts, Origin, Reach};
use crate::ids::UserId;
use serde_json::json;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio_util::sync::CancellationToken;

const T0: Millis = 1_700_000_000_000;
const LIMIT: Duration = Duration::from_secs(20);

fn id(n: usize) -> RequestId {
    RequestId::parse(&format!("r{n}")).unwrap()
}

fn request(n: usize, timeout: Millis) -> Request {
    let input = json!({"command": format!("echo {n}")});
    Facts {
        id: id(n),
        tool: "Bash".into(),
        digest: Digest::of(&input),
        input,
        origin: Origin {
            machine: "m".into(),
            user: "u".into(),
            project: "/p".into(),
            cwd: "/p".into(),
            branch: None,
            session: Some(SessionId::parse("s").unwrap()),
            agent: None,
            pid: None,
            hosted: false,
            caller: Caller::default(),
        },
        real: crate::approvals::request::RealPath::Unasked,
        asked_at: T0,
        deadline: T0 + timeout,
    }
    .read()
}

fn desk() -> (Arc<Desk>, Arc<AtomicI64>) {
    let now = Arc::new(AtomicI64::new(T0));
    let clock = Arc::clone(&now);
    (
        Desk::new(Arc::new(move || clock.load(Ordering::SeqCst))),
        now,
    )
}

fn ann() -> Operator {
    Operator {
        id: UserId::parse("ou_ann").unwrap(),
    }
}

fn allow() -> Choice {
    Choice::Allow(Reach::Once)
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future)
        .await
        .expect("the expected thing did not happen in time")
}

#[tokio::test]
async fn a_claim_reaches_the_hook_and_reports_how_far_it_came() {
    for told in [
        Delivery::Confirmed,
        Delivery::Written,
        Delivery::Unconfirmed,
    ] {
        let (desk, _) = desk();
        let mut waiting = desk.register(request(1, 1000)).unwrap();
        let claim = desk.claim(&id(1), allow(), ann()).unwrap();
        let delivery = claim.deliver(Extras::default());
        let mut handover = within(waiting.answered()).await.unwrap();
        assert!(matches!(handover.answer.ending, Ending::Allowed { .. }));
        assert_eq!(handover.answer.patience, Duration::from_secs(1));
        handover.report(told);
        assert_eq!(within(delivery).await, told);
    }
}

#[tokio::test]
async fn a_hook_that_goes_between_claim_and_delivery_is_a_lost_answer() {
    let (desk, _) = desk();
    let waiting = desk.register(request(1, 1000)).unwrap();
    let claim = desk.claim(&id(1), allow(), ann()).unwrap();
    drop(waiting);
    assert_eq!(claim.deliver(Extras::default()).await, Delivery::Lost);

    let mut waiting = desk.register(request(2, 1000)).unwrap();
    let claim = desk.claim(&id(2), allow(), ann()).unwrap();
    let delivery = claim.deliver(Extras::default());
    drop(within(waiting.answered()).await);
    assert_eq!(within(delivery).await, Delivery::Lost);
}

#[tokio::test(start_paused = true)]
async fn a_silent_hook_holds_a_toast_for_a_bounded_time() {
    let (desk, _) = desk();
    let mut waiting = desk.register(request(1, 1000)).unwrap();
    let claim = desk.claim(&id(1), allow(), ann()).unwrap();
    let begun = tokio::time::Instant::now();
    let delivery = claim.deliver(Extras::default());
    let handover = waiting.answered().await;
    assert_eq!(delivery.await, Delivery::Unconfirmed);
    assert!(begun.elapsed() < DELIVERY_LIMIT + Duration::from_millis(5));
    drop(handover);
}

#[tokio::test]
async fn dropping_the_place_ends_the_request_and_is_told() {
    let (desk, _) = desk();
    drop(desk.register(request(1, 1000)).unwrap());
    let settled = within(desk.next_settled()).await;
    assert_eq!(
        (settled.request.id.clone(), settled.ending),
        (id(1), Ending::HookGone)
    );
    assert!(matches!(
        desk.claim(&id(1), allow(), ann()),
        Err(Unclaimed::Settled {
            ending: Ending::HookGone,
            ..
        })
    ));
}

#[tokio::test]
async fn the_clock_ends_what_is_due_and_an_earlier_deadline_is_not_overslept() {
    let (desk, now) = desk();
    let cancel = CancellationToken::new();
    let expiry = tokio::spawn(run_expiry(Arc::clone(&desk), cancel.clone()));
    let mut late = desk.register(request(1, 600_000)).unwrap();
    let mut soon = desk.register(request(2, 50)).unwrap();
    now.store(T0 + 60, Ordering::SeqCst);
    let handover = within(soon.answered()).await.unwrap();
    assert_eq!(handover.answer.ending, Ending::TimedOut);
    let settled = within(desk.next_settled()).await;
    assert_eq!((settled.ending, settled.at), (Ending::TimedOut, T0 + 50));
    assert_eq!(desk.pending(), 1);
    assert_eq!(
        desk.withdraw(
            &SessionId::parse("s").unwrap(),
            &Withdrawal::Turn {
                agent: None,
                process: None,
            },
            Duration::ZERO
        )
        .len(),
        1
    );
    let handover = within(late.answered()).await.unwrap();
    assert_eq!(handover.answer.ending, Ending::Terminal { allowed: None });
    cancel.cancel();
    within(expiry).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn expiry_wakes_for_an_earlier_deadline_and_sleeps_in_between() {
    let cancel = CancellationToken::new();
    let reads = Arc::new(AtomicI64::new(0));
    let begun = tokio::time::Instant::now();
    let desk = {
        let reads = Arc::clone(&reads);
        Desk::new(Arc::new(move || {
            reads.fetch_add(1, Ordering::SeqCst);
            T0 + millis(begun.elapsed())
        }))
    };
    let expiry = tokio::spawn(run_expiry(Arc::clone(&desk), cancel.clone()));
    let mut late = desk.register(request(1, 9000)).unwrap();
    for _ in 0..9 {
        tokio::task::yield_now().await;
    }
    assert_eq!(desk.lock().armed, Some(T0 + 9000), "expiry had its turn");
    let mut soon = desk.register(request(2, 50)).unwrap();
    for (waiting, due) in [(&mut soon, 50), (&mut late, 9000)] {
        let handover = within(waiting.answered()).await.unwrap();
        assert_eq!(handover.answer.ending, Ending::TimedOut);
        let late_by = begun.elapsed().saturating_sub(Duration::from_millis(due));
        assert!(late_by < Duration::from_millis(5), "{due}: {late_by:?}");
    }
    assert!(reads.load(Ordering::SeqCst) < 30, "it spins");
    cancel.cancel();
    within(expiry).await.unwrap();
}

#[tokio::test]
async fn what_is_given_up_tells_its_hook_its_reader_and_its_caller_once() {
    type GiveUp = fn(&Desk, &RequestId) -> bool;
    let no_card = Ending::Undeliverable {
        why: Some("no chat".into()),
    };
    let over = Ending::Dropped { why: Dropped::Over };
    let table: [(GiveUp, Ending); 2] = [
        (
            |desk, id| desk.undeliverable(id, Some("no chat".into())),
            no_card,
        ),
        (|desk, id| desk.drop_one(id, Dropped::Over), over),
    ];
    for (give_up, ending) in table {
        let (desk, now) = desk();
        let mut waiting = desk.register(request(1, 1000)).unwrap();
        now.store(T0 + 7, Ordering::SeqCst);
        assert!(!give_up(&desk, &id(9)), "nobody knows that one");
        assert!(give_up(&desk, &id(1)));
        assert!(!give_up(&desk, &id(1)), "it had ended before");
        let handover = within(waiting.answered()).await.unwrap();
        assert_eq!(handover.answer.ending, ending);
        let settled = within(desk.next_settled()).await;
        assert_eq!((settled.ending, settled.at), (ending.clone(), T0 + 7));
        assert_eq!(desk.past(&id(1)).map(|past| past.ending), Some(ending));
    }
}

#[tokio::test]
async fn endings_nobody_fetches_are_bounded_and_the_oldest_go_first() {
    let (desk, _) = desk();
    for n in 0..=MAX_OUTBOX {
        drop(desk.register(request(n, 1000)).unwrap());
    }
    assert_eq!(within(desk.next_settled()).await.request.id, id(1));
    assert_eq!(desk.lock().outbox.len(), MAX_OUTBOX - 1);
}

#[tokio::test]
async fn what_waits_is_listed_soonest_first_with_its_token_and_no_secret_in_a_log() {
    let (desk, _) = desk();
    let places: Vec<_> = [(1, 3000), (2, 1000), (3, 2000)]
        .into_iter()
        .map(|(n, timeout)| desk.register(request(n, timeout)).unwrap())
        .collect();
    let soonest = |most| -> Vec<_> {
        let listed = desk.soonest(most);
        listed.iter().map(|request| request.id.clone()).collect()
    };
    assert_eq!(soonest(2), [id(2), id(3)]);
    assert_eq!(soonest(9), [id(2), id(3), id(1)]);
    assert_eq!(desk.all_pending().len(), 3);
    assert_eq!(desk.token_of(&id(9)), None);
    for (n, waiting) in (1..).zip(&places) {
        let token = waiting.token().unwrap();
        assert_eq!(desk.token_of(&id(n)), Some(token.hash()));
        assert_eq!(
            Some(waiting.deadline()),
            desk.find(&id(n)).map(|r| r.deadline)
        );
        let logged = format!("{waiting:?}");
        assert!(logged.contains(id(n).as_str()), "{logged}");
        assert!(!logged.contains(&token.hex()), "{logged}");
    }
}

#[tokio::test]
async fn a_stop_lets_hooks_go_and_they_come_back_to_the_same_request() {
    let (old, _) = desk();
    let mut waiting = old.register(request(1, 100_000)).unwrap();
    let token = waiting.token().unwrap().clone();
    old.detach_all(Duration::from_secs(30));
    assert!(within(waiting.answered()).await.is_none());
    drop(waiting);
    let mut late = old.register(request(2, 100_000)).unwrap();
    assert!(within(late.answered()).await.is_none());
    drop(late);
    assert!(old.find(&id(2)).is_some(), "nor one that came during it");
    let kept = old.find(&id(1)).expect("a stop must not end it");

    let (new, _) = desk();
    new.restore([(kept, token.hash())], [], Duration::from_secs(30));
    assert_eq!(
        new.claim(&id(1), allow(), ann()).unwrap_err(),
        Unclaimed::Reconnecting
    );
    let clicking = tokio::spawn({
        let new = Arc::clone(&new);
        async move {
            let back = new.wait_attached(&id(1), LIMIT).await;
            (back, new.claim(&id(1), allow(), ann()))
        }
    });
    let Return::Waiting(mut waiting) = new.resume(&id(1), token.clone()).unwrap() else {
        panic!("it had not ended");
    };
    let (back, claim) = within(clicking).await.unwrap();
    assert!(back);
    let delivery = claim.unwrap().deliver(Extras::default());
    within(waiting.answered())
        .await
        .unwrap()
        .report(Delivery::Confirmed);
    assert_eq!(within(delivery).await, Delivery::Confirmed);
    assert!(matches!(
        new.resume(&id(1), token),
        Ok(Return::Ended(Past {
            ending: Ending::Allowed { .. },
            ..
        }))
    ));
}

#[tokio::test]
async fn waiting_for_a_hook_ends_with_its_request() {
    let (desk, now) = desk();
    let token = Token::from_bytes([7; 32]);
    let kept = Arc::new(request(1, 100_000));
    desk.restore([(kept, token.hash())], [], Duration::from_secs(30));
    let clicking = tokio::spawn({
        let desk = Arc::clone(&desk);
        async move { desk.wait_attached(&id(1), LIMIT * 10).await }
    });
    now.store(T0 + 30_000, Ordering::SeqCst);
    assert_eq!(desk.sweep(), 1);
    assert!(!within(clicking).await.unwrap());
    assert!(!desk.wait_attached(&id(9), LIMIT * 10).await);
}

#[tokio::test]
async fn a_displaced_connection_is_closed_without_an_answer() {
    let (desk, _) = desk();
    let mut first = desk.register(request(1, 1000)).unwrap();
    let token = first.token().unwrap().clone();
    let Return::Waiting(mut second) = desk.resume(&id(1), token).unwrap() else {
        panic!("it had not ended");
    };
    assert!(within(first.answered()).await.is_none());
    drop(first);
    let claim = desk.claim(&id(1), allow(), ann()).unwrap();
    let _delivery = claim.deliver(Extras::default());
    assert!(within(second.answered()).await.is_some());
}

#[tokio::test]
async fn hot_follows_whether_anybody_waits() {
    let (desk, _) = desk();
    let mut hot = desk.hot();
    assert!(!*hot.borrow_and_update());
    let waiting = desk.register(request(1, 1000)).unwrap();
    assert!(*hot.borrow_and_update());
    let other = desk.register(request(2, 1000)).unwrap();
    assert!(!hot.has_changed().unwrap());
    drop((waiting, other));
    assert!(!*hot.borrow_and_update());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_clicks_at_once_exactly_one_wins() {
    let (desk, _) = desk();
    for n in 0..200 {
        let mut waiting = desk.register(request(n, 1000)).unwrap();
        let clicks: Vec<_> = (0..8)
            .map(|_| {
                let desk = Arc::clone(&desk);
                tokio::spawn(async move { desk.claim(&id(n), allow(), ann()) })
            })
            .collect();
        let mut claims = Vec::new();
        for click in clicks {
            claims.extend(within(click).await.unwrap());
        }
        assert_eq!(claims.len(), 1);
        let _delivery = claims.remove(0).deliver(Extras::default());
        assert!(within(waiting.answered()).await.is_some());
    }
}

#[tokio::test]
async fn what_the_terminal_tells_reaches_the_request_and_what_was_said_of_it() {
    let (desk, _) = desk();
    let _first = desk.register(request(1, 9_000)).unwrap();
    let asked = desk.find(&id(1)).unwrap();
    assert!(desk.is_alone(&asked));
    let twin = Request {
        id: id(2),
        ..request(1, 9_000)
    };
    let _second = desk.register(twin).unwrap();
    assert!(!desk.is_alone(&asked));
    assert!(desk.answered_there(&id(2)));
    assert!(!desk.answered_there(&id(2)), "it had ended before");
    assert_eq!(desk.running_since(&id(1)), None);
    assert_eq!(desk.runs(&id(1), T0 + 5), Some(asked));
    assert_eq!(desk.running_since(&id(1)), Some(T0 + 5));
    let session = SessionId::parse("s").unwrap();
    let told = |age| {
        desk.withdraw(
            &session,
            &Withdrawal::Session {
                process: None,
                cleared: false,
            },
            Duration::from_millis(age),
        )
    };
    assert_eq!(told(1), [], "it was asked later");
    assert_eq!(told(0), [id(1)]);
    let _third = desk.register(request(3, 9_000)).unwrap();
    let deny = Choice::Deny {
        reason: None,
        interrupt: false,
    };
    desk.claim(&id(3), deny, ann()).unwrap();
    desk.terminal_was_first(&id(3), T0 + 1);
    let corrected: Vec<_> = desk
        .take_corrections()
        .into_iter()
        .map(|it| it.id)
        .collect();
    assert_eq!(corrected, [id(3)]);
    assert_eq!(desk.take_corrections(), []);
}

#[tokio::test]
async fn a_request_of_the_daemons_own_is_taken_back_without_a_token() {
    let (desk, _) = desk();
    let token = Token::from_bytes([7; 32]);
    let kept = Arc::new(request(1, 100_000));
    desk.restore([(kept, token.hash())], [], Duration::from_secs(30));
    assert!(desk.take_back(&id(9)).is_none());
    let mut waiting = desk.take_back(&id(1)).unwrap();
    assert_eq!(waiting.token(), None);
    let _delivery = desk
        .claim(&id(1), allow(), ann())
        .unwrap()
        .deliver(Extras::default());
    assert!(within(waiting.answered()).await.is_some());
    assert!(desk.take_back(&id(1)).is_none(), "it has ended");
}

#[test]
fn those_that_wait_are_counted_by_session_and_those_without_as_one() {
    let (desk, _) = desk();
    let mut nobodys = request(3, 1000);
    nobodys.origin.session = None;
    let asked = [request(1, 1000), request(2, 1000), nobodys];
    let _places = asked.map(|request| desk.register(request).unwrap());
    let count = |session: &str| desk.waiting_of(SessionId::parse(session).ok().as_ref());
    assert_eq!((count("s"), count("t"), desk.waiting_of(None)), (2, 0, 1));
}
