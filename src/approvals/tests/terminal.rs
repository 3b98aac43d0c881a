//! What the terminal's side tells, and what it does to a request.

use super::*;
use crate::talk::{CallFate, DecidedBy};

fn asked_by(n: usize, agent: Option<&str>, command: &str) -> Arc<Request> {
    let mut request = (*request(n, 1, command, T0)).clone();
    request.origin.caller.agent_id = agent.map(str::to_owned);
    Arc::new(request)
}

#[test]
fn a_turns_end_withdraws_what_its_own_agent_asked_and_nothing_else() {
    let agents = [None, Some("a1"), Some("a2")];
    for (n, ended) in agents.iter().enumerate() {
        let mut desk = Approvals::new();
        for (n, agent) in agents.iter().enumerate() {
            let asked = asked_by(n, *agent, "ls");
            desk.register(asked, token(1), T0).unwrap();
        }
        let agent = ended.map(str::to_owned);
        let closed = desk.withdraw(
            &session(1),
            &Withdrawal::Turn {
                agent,
                process: None,
            },
            T0 + 1,
        );
        let ids: Vec<_> = closed.iter().map(|settled| &settled.request.id).collect();
        assert_eq!(ids, [&id(n)], "the turn of {ended:?}");
        assert_eq!(
            desk.withdraw(
                &session(1),
                &Withdrawal::Session {
                    process: None,
                    cleared: false,
                },
                T0 + 2
            )
            .len(),
            2
        );
    }
}

#[test]
fn a_subagents_event_does_not_close_the_same_call_of_another() {
    let mut desk = Approvals::new();
    desk.register(asked_by(1, None, "ls"), token(1), T0)
        .unwrap();
    desk.register(asked_by(2, Some("a1"), "ls"), token(1), T0)
        .unwrap();
    let event = Withdrawal::Tool {
        call: None,
        fate: None,
        tool: "Bash".into(),
        digest: Digest::of(&json!({"command": "ls"})),
        agent: Some("a1".into()),
        took: Some(5),
    };
    let closed = desk.withdraw(&session(1), &event, T0 + 9);
    let ids: Vec<_> = closed.iter().map(|settled| &settled.request.id).collect();
    assert_eq!(ids, [&id(2)]);
}

#[test]
fn what_runs_in_the_terminal_takes_no_choice_but_a_stop() {
    let running = |since| {
        Ending::Ran(Ran {
            since: Some(since),
            ..Ran::default()
        })
    };
    for action in [
        allow(),
        deny(false),
        Choice::Allow(Reach::Session(Vec::new())),
    ] {
        let (mut desk, _) = asking();
        assert!(desk.runs(&id(1), T0 + 5).is_some());
        assert!(desk.runs(&id(1), T0 + 6).is_none(), "told once");
        let refused = desk.decide(&id(1), action, person("ou_a"), T0 + 10);
        let (ending, at) = (running(T0 + 5), T0 + 5);
        assert_eq!(refused, Err(Unclaimed::Settled { ending, at }));
        assert!(desk.pending(&id(1)).is_some());
        let stopped = desk.decide(&id(1), deny(true), person("ou_a"), T0 + 11);
        let by = person("ou_a");
        let since = T0 + 5;
        assert_eq!(stopped.unwrap().ending, Ending::Stopped { by, since });
    }
}

#[test]
fn what_runs_never_ends_as_unanswered() {
    let ran = |took| {
        Ending::Ran(Ran {
            by: None,
            since: Some(T0 + 5),
            took,
            corrects: None,
        })
    };
    let (mut desk, _) = asking();
    desk.runs(&id(1), T0 + 5);
    assert_eq!(desk.expire(T0 + TIMEOUT)[0].ending, ran(None));
    let event = Withdrawal::Tool {
        call: None,
        fate: None,
        tool: "Bash".into(),
        digest: Digest::of(&json!({"command": "ls"})),
        agent: None,
        took: Some(TIMEOUT + 7),
    };
    assert!(
        desk.withdraw(&session(1), &event, T0 + TIMEOUT + 20)
            .is_empty()
    );
    let corrected = desk.take_corrections();
    assert_eq!(corrected.len(), 1);
    assert_eq!(corrected[0].ending, ran(Some(TIMEOUT + 7)));
    assert_eq!(desk.past(&id(1)).unwrap().ending, ran(Some(TIMEOUT + 7)));

    let (mut desk, attachment) = asking();
    desk.runs(&id(1), T0 + 5);
    let gone = desk.hook_gone(&id(1), attachment, T0 + 9).unwrap();
    assert_eq!(gone.ending, ran(None));
}

#[test]
fn a_denied_call_that_ran_is_corrected_and_its_retry_is_not() {
    let event = |took| Withdrawal::Tool {
        call: None,
        fate: None,
        tool: "Bash".into(),
        digest: Digest::of(&json!({"command": "ls"})),
        agent: None,
        took: Some(took),
    };
    let denied = || {
        let (mut desk, _) = asking();
        desk.decide(&id(1), deny(false), person("ou_a"), T0 + 4_000)
            .unwrap();
        desk
    };
    let mut desk = denied();
    desk.withdraw(&session(1), &event(12_000), T0 + 12_100);
    let corrected = desk.take_corrections();
    let Ending::Ran(ran) = &corrected[0].ending else {
        panic!("{corrected:?}")
    };
    let said = ran.corrects.as_ref().unwrap();
    assert_eq!(
        (said.kind.as_str(), &said.by),
        ("deny", &Some(person("ou_a")))
    );
    desk.withdraw(&session(1), &event(12_000), T0 + 12_200);
    assert!(desk.take_corrections().is_empty(), "once");

    let mut desk = denied();
    desk.withdraw(&session(1), &event(10), T0 + 9_000);
    assert!(
        desk.take_corrections().is_empty(),
        "it began after the denial"
    );
}

#[test]
fn a_denial_after_the_terminals_yes_is_corrected_at_once_and_completed_by_the_event() {
    let (mut desk, _) = asking();
    desk.decide(&id(1), deny(true), person("ou_a"), T0 + 500)
        .unwrap();
    desk.terminal_was_first(&id(1), T0 + 490);
    desk.terminal_was_first(&id(1), T0 + 490);
    let corrected = desk.take_corrections();
    assert_eq!(corrected.len(), 1, "once");
    let Ending::Ran(ran) = &corrected[0].ending else {
        panic!("{corrected:?}")
    };
    assert_eq!((ran.since, ran.took), (Some(T0 + 490), None));
    assert_eq!(ran.corrects.as_ref().unwrap().kind, "interrupt");
    let event = Withdrawal::Tool {
        call: None,
        fate: None,
        tool: "Bash".into(),
        digest: Digest::of(&json!({"command": "ls"})),
        agent: None,
        took: Some(70),
    };
    desk.withdraw(&session(1), &event, T0 + 600);
    let completed = desk.take_corrections();
    let expected = Ran {
        took: Some(70),
        ..ran.clone()
    };
    assert_eq!(completed[0].ending, Ending::Ran(expected));
}

#[test]
fn an_event_of_before_ends_nothing_that_was_asked_after_it() {
    let mut desk = Approvals::new();
    let ran = Withdrawal::Tool {
        call: None,
        fate: None,
        tool: "Bash".to_owned(),
        digest: Digest::of(&json!({"command": "ls"})),
        agent: None,
        took: None,
    };
    desk.register(asked_by(1, None, "ls"), token(1), T0)
        .unwrap();
    for event in [
        ran.clone(),
        Withdrawal::Turn {
            agent: None,
            process: None,
        },
        Withdrawal::Session {
            process: None,
            cleared: false,
        },
    ] {
        let closed = desk.withdraw(&session(1), &event, T0 - 1);
        assert!(closed.is_empty(), "{event:?}");
    }
    assert_eq!(desk.withdraw(&session(1), &ran, T0).len(), 1);
}

#[test]
fn how_long_a_call_ran_is_reckoned_where_the_event_does_not_tell() {
    let (mut desk, _) = asking();
    desk.runs(&id(1), T0 + 5);
    let closed = desk.withdraw(&session(1), &ran("ls"), T0 + 9);
    let took = Ran {
        by: None,
        since: Some(T0 + 5),
        took: Some(4),
        corrects: None,
    };
    assert_eq!(closed[0].ending, Ending::Ran(took));
}

#[test]
fn a_call_is_alone_while_no_other_like_it_waits_or_was_allowed_here() {
    let (mut desk, _) = asking();
    let asked = request(1, 1, "ls", T0);
    desk.register(request(2, 1, "pwd", T0), token(1), T0)
        .unwrap();
    desk.register(request(3, 2, "ls", T0), token(1), T0)
        .unwrap();
    assert!(desk.is_alone(&asked), "those are others");
    desk.register(asked_by(4, Some("a1"), "ls"), token(1), T0)
        .unwrap();
    assert!(!desk.is_alone(&asked), "a subagent's is like it");
    desk.decide(&id(4), allow(), person("ou_a"), T0 + 1)
        .unwrap();
    assert!(!desk.is_alone(&asked), "that may be what runs");
    desk.withdraw(
        &session(1),
        &Withdrawal::Turn {
            agent: Some("a1".into()),
            process: None,
        },
        T0 + 2,
    );
    assert!(desk.is_alone(&asked), "it ran");
    let there = Ending::Terminal { allowed: None };
    desk.settle(&id(1), there.clone(), T0 + 3).unwrap();
    assert!(!desk.is_alone(&asked), "it does not wait");
    assert_eq!(desk.settle(&id(1), there, T0 + 4), None);
}

#[test]
fn the_end_of_one_agents_turn_forgets_no_call_that_another_was_allowed() {
    let mut desk = Approvals::new();
    for n in 1..=2 {
        let asked = asked_by(n, Some("a1"), "ls");
        desk.register(asked, token(1), T0).unwrap();
    }
    desk.decide(&id(1), allow(), person("ou_a"), T0 + 1)
        .unwrap();
    desk.withdraw(&session(1), &MAIN_TURN, T0 + 2);
    let event = Withdrawal::Tool {
        call: None,
        fate: None,
        tool: "Bash".into(),
        digest: Digest::of(&json!({"command": "ls"})),
        agent: Some("a1".into()),
        took: None,
    };
    assert!(desk.withdraw(&session(1), &event, T0 + 3).is_empty());
    assert!(desk.pending(&id(2)).is_some(), "the other ran");
}

#[test]
fn what_was_said_is_put_right_for_a_day_and_of_the_last_calls_only() {
    const DAY: Millis = 86_400_000;
    for (age, times) in [(DAY, 1), (DAY + 1, 0)] {
        let (mut desk, _) = asking();
        desk.decide(&id(1), deny(false), person("ou_a"), T0)
            .unwrap();
        let event = Withdrawal::Tool {
            call: None,
            fate: None,
            tool: "Bash".into(),
            digest: Digest::of(&json!({"command": "ls"})),
            agent: None,
            took: Some(age),
        };
        desk.withdraw(&session(1), &event, T0 + age);
        assert_eq!(desk.take_corrections().len(), times, "{age}");
    }
    let mut desk = Approvals::new();
    for n in 0..=1_024 {
        let command = format!("echo {n}");
        desk.register(request(n, 1, &command, T0), token(1), T0)
            .unwrap();
        desk.decide(&id(n), deny(false), person("ou_a"), T0)
            .unwrap();
    }
    for (n, times) in [(0, 0), (1, 1), (1_024, 1)] {
        desk.withdraw(&session(1), &ran(&format!("echo {n}")), T0 + 1);
        assert_eq!(desk.take_corrections().len(), times, "{n}");
    }
}

/// A request that was denied here, and whose call the agent calls `toolu_1`.
fn denied_and_named() -> Approvals {
    let (mut desk, _) = asking();
    desk.call_is(&id(1), "toolu_1");
    desk.decide(&id(1), deny(false), person("ou_a"), T0 + 4_000)
        .unwrap();
    desk
}

fn ended(call: &str, fate: Option<CallFate>) -> Withdrawal {
    Withdrawal::Tool {
        tool: "Bash".into(),
        digest: Digest::of(&json!({"command": "ls"})),
        agent: None,
        call: Some(call.to_owned()),
        took: Some(20),
        fate,
    }
}

#[test]
fn an_identical_call_that_nobody_asked_about_corrects_no_denial() {
    let ran = Some(CallFate::Ran(Some(DecidedBy::Other)));
    let mut desk = denied_and_named();
    desk.withdraw(&session(1), &ended("toolu_2", ran), T0 + 4_500);
    assert!(desk.take_corrections().is_empty());
    let ran = Some(CallFate::Ran(Some(DecidedBy::Terminal)));
    desk.withdraw(&session(1), &ended("toolu_1", ran), T0 + 64_500);
    assert_eq!(
        desk.take_corrections().len(),
        1,
        "its own does, however late"
    );
}

#[test]
fn the_end_of_a_call_that_did_not_run_corrects_no_denial() {
    let mut desk = denied_and_named();
    let refused = Some(CallFate::Refused);
    desk.withdraw(&session(1), &ended("toolu_1", refused), T0 + 4_100);
    assert!(desk.take_corrections().is_empty());
}

#[test]
fn an_allow_that_the_terminal_interrupted_is_corrected_and_an_ordinary_one_is_not() {
    for (fate, is_untrue) in [
        (CallFate::Cancelled { before_run: false }, true),
        (CallFate::Cancelled { before_run: true }, true),
        (CallFate::Ran(Some(DecidedBy::Other)), false),
    ] {
        let (mut desk, _) = asking();
        desk.decide(&id(1), allow(), person("ou_a"), T0 + 9)
            .unwrap();
        assert!(desk.learned(&id(1), fate, T0 + 50, T0 + 60).is_none());
        let corrected = desk.take_corrections();
        assert_eq!(corrected.len(), usize::from(is_untrue), "{fate:?}");
        let Ending::Allowed { cancelled, .. } = desk.past(&id(1)).unwrap().ending else {
            panic!("{fate:?}");
        };
        assert_eq!(cancelled, is_untrue);
        desk.learned(&id(1), fate, T0 + 50, T0 + 70);
        assert!(desk.take_corrections().is_empty(), "once");
    }
}

#[test]
fn what_the_agent_wrote_down_ends_what_waits() {
    let by = |by| {
        Ending::Ran(Ran {
            by: Some(by),
            ..Ran::default()
        })
    };
    for (fate, ending) in [
        (
            CallFate::Ran(Some(DecidedBy::Terminal)),
            by(DecidedBy::Terminal),
        ),
        (CallFate::Ran(Some(DecidedBy::Other)), by(DecidedBy::Other)),
        (CallFate::Refused, Ending::DeniedElsewhere),
        (
            CallFate::Cancelled { before_run: true },
            Ending::Terminal {
                allowed: Some(false),
            },
        ),
    ] {
        let (mut desk, _) = asking();
        let settled = desk.learned(&id(1), fate, T0 + 50, T0 + 9_000).unwrap();
        assert_eq!((settled.ending, settled.at), (ending, T0 + 50), "{fate:?}");
        let late = desk.decide(&id(1), deny(false), person("ou_a"), T0 + 9_001);
        assert!(matches!(late, Err(Unclaimed::Settled { .. })));
    }
}

#[test]
fn what_was_thought_to_run_and_was_refused_elsewhere_is_corrected() {
    let (mut desk, _) = asking();
    desk.runs(&id(1), T0 + 5);
    let turn = Withdrawal::Turn {
        agent: None,
        process: None,
    };
    desk.withdraw(&session(1), &turn, T0 + 9);
    desk.learned(&id(1), CallFate::Refused, T0 + 8, T0 + 20);
    let corrected = desk.take_corrections();
    assert_eq!(corrected[0].ending, Ending::DeniedElsewhere);
}

fn asked_in(n: usize, process: Option<u32>, agent: Option<&str>) -> Arc<Request> {
    let mut request = (*asked_by(n, agent, "ls")).clone();
    request.origin.caller.process = process;
    Arc::new(request)
}

#[test]
fn another_process_of_the_same_session_ends_nothing_of_this_one() {
    let turn = |process| Withdrawal::Turn {
        agent: None,
        process,
    };
    let session_end = |process| Withdrawal::Session {
        process,
        cleared: false,
    };
    for (asked, told, is_ended) in [
        (Some(7), Some(8), false),
        (Some(7), Some(7), true),
        (None, Some(8), true),
        (Some(7), None, true),
    ] {
        for event in [turn(told), session_end(told)] {
            let mut desk = Approvals::new();
            desk.register(asked_in(1, asked, None), token(1), T0)
                .unwrap();
            let closed = desk.withdraw(&session(1), &event, T0 + 1);
            assert_eq!(closed.len(), usize::from(is_ended), "{asked:?} {event:?}");
        }
    }
}

#[test]
fn a_cleared_conversation_leaves_its_subagents_waiting_until_their_own_end() {
    let cleared = Withdrawal::Session {
        process: Some(7),
        cleared: true,
    };
    let of_agent = |name: &str| match ended(name, None) {
        Withdrawal::Tool {
            tool,
            digest,
            call,
            took,
            fate,
            ..
        } => Withdrawal::Tool {
            agent: Some("a1".to_owned()),
            tool,
            digest,
            call,
            took,
            fate,
        },
        other => other,
    };
    let turn = Withdrawal::Turn {
        agent: Some("a1".to_owned()),
        process: Some(7),
    };
    let exit = Withdrawal::Session {
        process: Some(7),
        cleared: false,
    };
    // The session has another id from then on.
    for own_end in [of_agent("toolu_1"), turn, exit] {
        let mut desk = Approvals::new();
        for (n, agent) in [(1, None), (2, Some("a1"))] {
            desk.register(asked_in(n, Some(7), agent), token(1), T0)
                .unwrap();
        }
        let closed = desk.withdraw(&session(1), &cleared, T0 + 1);
        assert_eq!(closed.len(), 1, "the main agent's");
        assert!(desk.pending(&id(2)).is_some());
        let closed = desk.withdraw(&session(2), &own_end, T0 + 2);
        assert_eq!(closed.len(), 1, "{own_end:?}");
    }
}
