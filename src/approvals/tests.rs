//! What must hold whatever order things happen in.

mod interleavings;
mod terminal;

use super::*;
use crate::approvals::request::{Caller, Facts, Origin, Ran, Reach, weight};
use crate::ids::UserId;
use serde_json::json;

const T0: Millis = 1_700_000_000_000;
const TIMEOUT: Millis = 300_000;
const GRACE: Millis = 30_000;

fn id(n: usize) -> RequestId {
    RequestId::parse(&format!("r{n}")).unwrap()
}

fn session(n: usize) -> SessionId {
    SessionId::parse(&format!("s{n}")).unwrap()
}

fn token(n: u8) -> TokenHash {
    token::Token::from_bytes([n; 32]).hash()
}

fn person(name: &str) -> Operator {
    Operator {
        id: UserId::parse(name).unwrap(),
    }
}

fn request(n: usize, s: usize, command: &str, now: Millis) -> Arc<Request> {
    let input = json!({"command": command});
    Arc::new(
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
                session: Some(session(s)),
                agent: None,
                pid: None,
                hosted: false,
                caller: Caller::default(),
            },
            real: request::RealPath::Unasked,
            asked_at: now,
            deadline: now + TIMEOUT,
        }
        .read(),
    )
}

fn allow() -> Choice {
    Choice::Allow(Reach::Once)
}

fn deny(interrupt: bool) -> Choice {
    Choice::Deny {
        reason: None,
        interrupt,
    }
}

const MAIN_TURN: Withdrawal = Withdrawal::Turn {
    agent: None,
    process: None,
};

fn ran(command: &str) -> Withdrawal {
    Withdrawal::Tool {
        call: None,
        fate: None,
        tool: "Bash".into(),
        digest: Digest::of(&json!({"command": command})),
        agent: None,
        took: None,
    }
}

fn asking() -> (Approvals, Attachment) {
    let mut desk = Approvals::new();
    let attachment = desk.register(request(1, 1, "ls", T0), token(1), T0);
    (desk, attachment.unwrap())
}

#[test]
fn late_click_is_refused_even_before_the_sweep() {
    let (mut desk, _) = asking();
    let refused = desk.decide(&id(1), allow(), person("ou_a"), T0 + TIMEOUT);
    let timed_out = Unclaimed::Settled {
        ending: Ending::TimedOut,
        at: T0 + TIMEOUT,
    };
    assert_eq!(refused, Err(timed_out.clone()));
    let swept = desk.expire(T0 + TIMEOUT + 60_000);
    assert_eq!(swept.len(), 1);
    assert_eq!(
        (&swept[0].ending, swept[0].at),
        (&Ending::TimedOut, T0 + TIMEOUT)
    );
    let refused = desk.decide(&id(1), deny(true), person("ou_a"), T0 + TIMEOUT + 60_001);
    assert_eq!(refused, Err(timed_out));
}

#[test]
fn a_second_click_is_told_what_the_first_decided() {
    let table = [
        ("ou_a", allow()),
        ("ou_b", allow()),
        ("ou_a", Choice::Allow(Reach::Session(Vec::new()))),
        ("ou_a", deny(false)),
        ("ou_a", deny(true)),
    ];
    for (who, action) in table {
        let (mut desk, _) = asking();
        let first = desk.decide(&id(1), allow(), person("ou_a"), T0 + 5);
        let ending = first.unwrap().ending;
        let told = Unclaimed::Settled { ending, at: T0 + 5 };
        assert_eq!(
            desk.decide(&id(1), action.clone(), person(who), T0 + 9),
            Err(told),
            "{action:?} by {who}"
        );
    }
}

#[test]
fn an_id_is_used_once() {
    let (mut desk, attachment) = asking();
    let again = request(1, 1, "rm -rf /", T0 + 1);
    assert_eq!(
        desk.register(again.clone(), token(2), T0 + 1),
        Err(RegisterRefusal::Taken)
    );
    desk.hook_gone(&id(1), attachment, T0 + 2).unwrap();
    assert_eq!(
        desk.register(again.clone(), token(2), T0 + 3),
        Err(RegisterRefusal::Taken)
    );
    let a_day_later = T0 + 2 + 86_400_000;
    assert_eq!(
        desk.register(again.clone(), token(2), a_day_later),
        Err(RegisterRefusal::Taken)
    );
    assert!(desk.is_empty());
    assert!(
        desk.register(again, token(2), a_day_later + 1).is_ok(),
        "endings are forgotten after a day"
    );
    assert!(!desk.is_empty());
}

#[test]
fn resuming_needs_the_token_and_displaces_the_old_connection() {
    let (mut desk, old) = asking();
    assert_eq!(
        desk.resume(&id(1), token(2)),
        Err(ResumeRefusal::WrongToken)
    );
    assert_eq!(desk.resume(&id(2), token(1)), Err(ResumeRefusal::Unknown));
    let Ok(Resumed::Waiting(new, _)) = desk.resume(&id(1), token(1)) else {
        panic!("the right token did not resume");
    };
    assert_eq!(desk.hook_gone(&id(1), old, T0 + 1), None);
    assert!(desk.decide(&id(1), allow(), person("ou_a"), T0 + 2).is_ok());
    assert_eq!(desk.hook_gone(&id(1), new, T0 + 3), None);
}

#[test]
fn an_ending_that_was_missed_is_given_to_the_token_only() {
    let (mut desk, _) = asking();
    desk.decide(&id(1), deny(false), person("ou_a"), T0 + 2)
        .unwrap();
    assert_eq!(
        desk.resume(&id(1), token(9)),
        Err(ResumeRefusal::WrongToken)
    );
    assert!(matches!(
        desk.resume(&id(1), token(1)),
        Ok(Resumed::Ended(Past {
            ending: Ending::Denied { .. },
            ..
        }))
    ));
}

#[test]
fn after_a_restart_a_click_waits_for_the_hook_and_the_hook_for_grace() {
    let mut desk = Approvals::new();
    desk.restore([(request(1, 1, "ls", T0), token(1))], T0 + 10, GRACE);
    assert_eq!(
        desk.decide(&id(1), allow(), person("ou_a"), T0 + 11),
        Err(Unclaimed::Reconnecting)
    );
    assert_eq!(desk.next_deadline(), Some(T0 + 10 + GRACE));
    desk.resume(&id(1), token(1)).unwrap();
    assert_eq!(desk.next_deadline(), Some(T0 + TIMEOUT));
    assert!(
        desk.decide(&id(1), allow(), person("ou_a"), T0 + 12)
            .is_ok()
    );

    desk.restore([(request(2, 1, "ls", T0), token(1))], T0 + 10, GRACE);
    let settled = desk.expire(T0 + 10 + GRACE);
    assert_eq!(settled[0].ending, Ending::Orphaned);

    desk.restore(
        [(request(3, 1, "ls", T0), token(1))],
        T0 + TIMEOUT - 5,
        GRACE,
    );
    let settled = desk.expire(T0 + TIMEOUT + GRACE);
    assert_eq!(
        (&settled[0].ending, settled[0].at),
        (&Ending::TimedOut, T0 + TIMEOUT)
    );
}

#[test]
fn a_request_asked_in_the_future_is_taken_for_one_asked_now() {
    let mut asked = Arc::unwrap_or_clone(request(1, 1, "ls", T0));
    assert!(!asked.pull_back_to(T0));
    assert_eq!((asked.asked_at, asked.deadline), (T0, T0 + TIMEOUT));
    assert!(asked.pull_back_to(T0 - 5));
    assert_eq!((asked.asked_at, asked.deadline), (T0 - 5, T0 - 5 + TIMEOUT));
    assert!(!asked.pull_back_to(T0 - 5));
}

#[test]
fn restoring_moves_nothing_that_is_known_and_takes_no_more_than_may_wait() {
    let (mut desk, _) = asking();
    let gone = desk.register(request(2, 1, "ls", T0), token(1), T0);
    desk.hook_gone(&id(2), gone.unwrap(), T0 + 1).unwrap();
    let known = [1, 2].map(|n| (request(n, 1, "rm -rf /", T0), token(9)));
    desk.restore(known, T0 + 2, GRACE);
    assert!(desk.is_attached(&id(1)), "its hook is still there");
    assert_eq!(desk.token_of(&id(1)), Some(token(1)));
    assert!(desk.pending(&id(2)).is_none(), "it stays ended");

    let more = (0..=MAX_PENDING).map(|n| (request(10 + n, 1, "ls", T0), token(1)));
    desk.restore(more, T0 + 3, GRACE);
    assert_eq!(desk.len(), MAX_PENDING);
}

#[test]
fn connections_closed_by_our_own_stop_end_nothing() {
    let (mut desk, attachment) = asking();
    desk.detach_all(T0 + 1, GRACE);
    assert_eq!(desk.hook_gone(&id(1), attachment, T0 + 2), None);
    assert!(desk.pending(&id(1)).is_some());
}

#[test]
fn a_tools_event_closes_the_oldest_call_like_it_and_no_other() {
    let mut desk = Approvals::new();
    for (n, s, command) in [(1, 1, "ls"), (2, 1, "ls"), (3, 1, "pwd"), (4, 2, "ls")] {
        let asked = T0 + Millis::try_from(n).unwrap();
        desk.register(request(n, s, command, asked), token(1), asked)
            .unwrap();
    }
    let closed = desk.withdraw(&session(1), &ran("ls"), T0 + 10);
    assert_eq!(closed.len(), 1);
    assert_eq!(closed[0].request.id, id(1));
    assert_eq!(closed[0].ending, Ending::Ran(Ran::default()));
    assert!(
        desk.withdraw(&session(1), &ran("rm"), T0 + 11).is_empty(),
        "another input"
    );
    let rest: Vec<_> = desk
        .withdraw(&session(1), &MAIN_TURN, T0 + 12)
        .into_iter()
        .map(|settled| settled.request.id.clone())
        .collect();
    assert_eq!(rest, [id(2), id(3)]);
    assert!(desk.pending(&id(4)).is_some(), "another session");
}

#[test]
fn the_event_of_a_call_allowed_here_does_not_close_its_twin() {
    let mut desk = Approvals::new();
    for n in [1, 2] {
        desk.register(request(n, 1, "ls", T0), token(1), T0)
            .unwrap();
    }
    desk.decide(&id(1), allow(), person("ou_a"), T0 + 1)
        .unwrap();
    assert!(
        desk.withdraw(&session(1), &ran("ls"), T0 + 2).is_empty(),
        "that was the first one running"
    );
    assert_eq!(desk.withdraw(&session(1), &ran("ls"), T0 + 3).len(), 1);
}

#[test]
fn the_event_of_another_call_is_not_taken_for_the_one_allowed_here() {
    for (s, tool, command) in [(1, "Bash", "pwd"), (2, "Bash", "ls"), (1, "Write", "ls")] {
        let (mut desk, _) = asking();
        desk.decide(&id(1), allow(), person("ou_a"), T0 + 1)
            .unwrap();
        let mut other = (*request(2, s, command, T0)).clone();
        other.tool = tool.into();
        let event = Withdrawal::Tool {
            tool: tool.into(),
            digest: other.digest,
            agent: None,
            call: None,
            fate: None,
            took: None,
        };
        desk.register(Arc::new(other), token(1), T0 + 1).unwrap();
        let closed = desk.withdraw(&session(s), &event, T0 + 2);
        let ids: Vec<_> = closed.iter().map(|settled| &settled.request.id).collect();
        assert_eq!(ids, [&id(2)], "{tool} {command} in session {s}");
    }
}

#[test]
fn the_end_of_a_turn_forgets_the_events_of_its_own_session_only() {
    for ending in [
        MAIN_TURN,
        Withdrawal::Session {
            process: None,
            cleared: false,
        },
    ] {
        let mut desk = Approvals::new();
        for s in [1, 2] {
            desk.register(request(s, s, "ls", T0), token(1), T0)
                .unwrap();
            desk.decide(&id(s), allow(), person("ou_a"), T0 + 1)
                .unwrap();
        }
        desk.withdraw(&session(1), &ending, T0 + 2);
        for s in [1, 2] {
            desk.register(request(2 + s, s, "ls", T0 + 3), token(1), T0 + 3)
                .unwrap();
        }
        assert_eq!(desk.withdraw(&session(1), &ran("ls"), T0 + 4).len(), 1);
        assert!(desk.withdraw(&session(2), &ran("ls"), T0 + 4).is_empty());
    }
}

#[test]
fn every_allowed_call_is_expected_to_run_and_beyond_a_bound_the_oldest_is_not() {
    let mut desk = Approvals::new();
    for n in 0..=MAX_RUNNING {
        let asked = request(n, 1, &format!("c{n}"), T0);
        desk.register(asked, token(1), T0).unwrap();
        desk.decide(&id(n), allow(), person("ou_a"), T0 + 1)
            .unwrap();
    }
    for (n, closed) in [(0, 1), (1, 0), (MAX_RUNNING / 2, 0), (MAX_RUNNING, 0)] {
        let command = format!("c{n}");
        let twin = request(MAX_RUNNING + 1 + n, 1, &command, T0 + 2);
        desk.register(twin, token(1), T0 + 2).unwrap();
        let ended = desk.withdraw(&session(1), &ran(&command), T0 + 3);
        assert_eq!(ended.len(), closed, "{command}");
    }
}

#[test]
fn a_late_interrupt_after_a_terminal_answer_changes_nothing() {
    let (mut desk, _) = asking();
    desk.withdraw(&session(1), &ran("ls"), T0 + 1);
    assert_eq!(
        desk.decide(&id(1), deny(true), person("ou_a"), T0 + 2),
        Err(Unclaimed::Settled {
            ending: Ending::Ran(Ran::default()),
            at: T0 + 1
        })
    );
}

#[test]
fn pending_and_past_are_bounded_and_every_index_is_cleared() {
    let mut desk = Approvals::new();
    for n in 0..MAX_PENDING {
        desk.register(request(n, n % 7, "ls", T0), token(1), T0)
            .unwrap();
    }
    assert_eq!(
        desk.register(request(MAX_PENDING, 1, "ls", T0), token(1), T0),
        Err(RegisterRefusal::Full)
    );
    assert_eq!(desk.expire(T0 + TIMEOUT).len(), MAX_PENDING);
    for n in MAX_PENDING..3 * MAX_PENDING {
        let attachment = desk
            .register(request(n, 1, "ls", T0), token(1), T0)
            .unwrap();
        desk.hook_gone(&id(n), attachment, T0);
    }
    assert_eq!(desk.past.len(), MAX_PAST);
    assert_eq!(desk.past_order.len(), MAX_PAST);
    assert!(desk.due.is_empty() && desk.sessions.is_empty() && desk.is_empty());
}

#[test]
fn input_that_weighs_too_much_is_for_the_terminal() {
    let mut desk = Approvals::new();
    // In memory each of these weighs more than six MiB.
    let heavy = json!(vec![0; (6 << 20) / size_of::<serde_json::Value>()]);
    let large = |n: usize, s: usize| {
        let mut request = request(n, s, "", T0).with_input(heavy.clone());
        request.origin.session = Some(session(s));
        Arc::new(request)
    };
    let mut refused = Vec::new();
    for n in 0..30 {
        refused.extend(desk.register(large(n, n % 15), token(1), T0).err());
    }
    assert_eq!(desk.len(), 10, "of six MiB each in 64");
    assert!(refused.iter().all(|why| *why == RegisterRefusal::Heavy));
    let small = desk.register(request(200, 99, "ls", T0), token(1), T0);
    assert!(small.is_ok());
    desk.drop_one(&id(0), Dropped::Over, T0).unwrap();
    let again = desk.register(large(300, 1), token(1), T0);
    assert!(again.is_ok(), "what has ended weighs nothing");
    desk.expire(T0 + TIMEOUT);
    assert!(desk.is_empty());
    assert_eq!(desk.held, 0);
    for n in 400..406 {
        let asked = desk.register(large(n, 7), token(1), T0);
        assert_eq!(asked.is_ok(), n < 405, "one session holds half at most");
    }
}

#[test]
fn many_small_values_weigh_what_they_take() {
    let zeros = json!(vec![0; 1_000]);
    assert!(weight(&zeros) >= 24_000);
    assert!(weight(&json!({"a": {"b": {}}})) > 200);
    let text = json!("x".repeat(1_000));
    assert!((1_000..1_100).contains(&weight(&text)));
}

#[test]
fn input_may_weigh_as_much_as_is_allowed_and_nothing_after_its_end() {
    let more = request(2, 1, "ls -l", T0).weight();
    for (over, refused) in [(0, None), (1, Some(RegisterRefusal::Heavy))] {
        for (of_all, of_one) in [
            (MAX_HELD - more + over, 0),
            (0, MAX_HELD_BY_ONE - more + over),
        ] {
            let (mut desk, _) = asking();
            desk.held = of_all;
            desk.sessions.get_mut(&session(1)).unwrap().held = of_one;
            let asked = desk.register(request(2, 1, "ls -l", T0), token(1), T0);
            assert_eq!(asked.err(), refused);
        }
    }
    let (mut desk, _) = asking();
    desk.register(request(2, 1, "ls -l", T0), token(1), T0)
        .unwrap();
    desk.drop_one(&id(1), Dropped::Over, T0).unwrap();
    assert_eq!((desk.held, desk.sessions[&session(1)].held), (more, more));
}
