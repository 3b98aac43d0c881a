//! What a child does beside its turns, and turns it never heard of.

use super::*;

fn beside(names: &[&str]) -> Value {
    let tasks: Vec<_> = names
        .iter()
        .map(|name| json!({"task_id": "b1", "task_type": "local_bash", "description": name}))
        .collect();
    json!({"type":"system","subtype":"background_tasks_changed","tasks":tasks})
}

/// A session whose turn has ended while a command runs on.
fn left_running() -> Session {
    let mut session = running();
    session.on(line(1, &beside(&["make all"])), 0);
    session.on(line(1, &result("started it")), MINUTE);
    session
}

fn told(effects: &[Effect]) -> Vec<&Notice> {
    let told = effects.iter().filter_map(|effect| match effect {
        Effect::Tell(notice) => Some(notice),
        _ => None,
    });
    told.collect()
}

fn ended_beside() -> Notice {
    Notice::BackgroundEnded {
        tasks: vec!["make all".to_owned()],
    }
}

#[test]
fn a_background_command_is_not_killed_ten_minutes_after_the_answer() {
    let mut session = left_running();
    assert_eq!(session.on(SessionInput::Tick, 60 * MINUTE), []);
    assert!(session.rests(), "it stays awake");
    // Its end wakes Claude, and what Claude says to it comes as a message.
    session.on(line(1, &beside(&[])), 61 * MINUTE);
    session.on(line(1, &init()), 61 * MINUTE);
    let effects = session.on(line(1, &result("it is built")), 62 * MINUTE);
    let Some(Effect::Finished(finish)) = effects.last() else {
        panic!("{effects:?}")
    };
    assert_eq!(finish.answer.as_deref(), Some("it is built"));
    assert_eq!(finish.view.elapsed, 62 * MINUTE, "the whole task");
    let effects = session.on(SessionInput::Tick, 73 * MINUTE);
    assert_eq!(effects, [Effect::Close { child: 1 }], "nothing runs now");
}

#[test]
fn the_end_of_a_long_background_command_leaves_time_for_the_turn_it_promised() {
    let mut session = left_running();
    assert_eq!(session.on(line(1, &beside(&[])), 61 * MINUTE), []);
    // The turn about it begins a moment later; the child must be there.
    assert_eq!(session.wake_at(), Some(71 * MINUTE));
    assert_eq!(session.on(SessionInput::Tick, 61 * MINUTE + 200), []);
    assert!(session.rests(), "it stays awake");
    session.on(line(1, &init()), 61 * MINUTE + 300);
    let effects = session.on(line(1, &result("it is built")), 62 * MINUTE);
    let Some(Effect::Finished(finish)) = effects.last() else {
        panic!("{effects:?}")
    };
    assert_eq!(finish.answer.as_deref(), Some("it is built"));
    // Where no turn comes, the child is still let go in the end.
    let mut session = left_running();
    session.on(line(1, &beside(&[])), 61 * MINUTE);
    let effects = session.on(SessionInput::Tick, 71 * MINUTE);
    assert_eq!(effects, [Effect::Close { child: 1 }]);
}

#[test]
fn a_background_command_that_must_end_is_said_to_have_ended() {
    let day = 24 * 60 * MINUTE;
    let mut session = left_running();
    let effects = session.on(SessionInput::Tick, MINUTE + day);
    assert_eq!(told(&effects), [&ended_beside()]);
    assert!(effects.contains(&Effect::Close { child: 1 }));
    assert_eq!(
        told(&session.on(ended(1, Exit::Finished), 2 * day)),
        [] as [&Notice; 0]
    );

    let mut session = left_running();
    let effects = session.on(SessionInput::Command(SessionCommand::Stop), 2 * MINUTE);
    assert_eq!(told(&effects), [&ended_beside()]);
    assert!(effects.contains(&Effect::Close { child: 1 }));

    let mut session = left_running();
    let crash = Exit::Crashed {
        code: Some(1),
        words: None,
    };
    assert_eq!(
        told(&session.on(ended(1, crash), 2 * MINUTE)),
        [&ended_beside()]
    );

    let session = left_running();
    let (_, effects) = Session::restored(session.saved(), SessionLimits::default());
    assert_eq!(told(&effects), [&Notice::Restarted]);
}

#[test]
fn a_conversation_that_went_on_elsewhere_is_taken_up_from_there() {
    let mut session = running();
    session.on(line(1, &result("done")), MINUTE);
    let effects = session.on(SessionInput::WentOn, 2 * MINUTE);
    assert_eq!(effects, [Effect::Close { child: 1 }]);
    assert_eq!(session.on(text("t2"), 2 * MINUTE), []);
    let effects = session.on(ended(1, Exit::Finished), 2 * MINUTE);
    let resumes = matches!(
        &effects[..],
        [
            Effect::Start {
                child: 2,
                opening: Opening::Resume(_),
                ..
            },
            Effect::Write { child: 2, .. },
            ..
        ]
    );
    assert!(resumes, "{effects:?}");
    // What runs, asks or has something beside it is never ended for that.
    assert_eq!(running().on(SessionInput::WentOn, 0), []);
    assert_eq!(left_running().on(SessionInput::WentOn, 2 * MINUTE), []);
}

#[test]
fn the_time_a_task_took_counts_every_turn_of_it() {
    let mut session = running();
    session.on(text("t2"), MINUTE);
    session.on(line(1, &stage("t2", "queued")), MINUTE);
    session.on(line(1, &result("one")), 2 * MINUTE);
    session.on(line(1, &stage("t2", "started")), 2 * MINUTE);
    let effects = session.on(line(1, &result("two")), 5 * MINUTE);
    let took = effects.iter().find_map(|effect| match effect {
        Effect::Finished(finish) => Some(finish.view.elapsed),
        _ => None,
    });
    assert_eq!(took, Some(5 * MINUTE));
    session.on(text("t3"), 7 * MINUTE);
    let effects = session.on(line(1, &result("three")), 8 * MINUTE);
    let Some(Effect::Finished(finish)) = effects.last() else {
        panic!("{effects:?}")
    };
    assert_eq!(finish.view.elapsed, MINUTE, "the next task is its own");
}
