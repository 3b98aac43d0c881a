//! A session's scenarios one by one; `model` plays the rest at random.

use super::*;
use crate::claude::stream::parse;
use crate::talk::{Exit, Filled, How};
use serde_json::{Value, json};

mod background;
mod endings;
mod model;

const MINUTE: Millis = 60_000;

fn session() -> Session {
    let id = SessionId::parse("6b5f").expect("an id");
    Session::new(id, Mode::Default, SessionLimits::default())
}

fn text(uuid: &str) -> SessionInput {
    SessionInput::Text(PersonText {
        uuid: uuid.to_owned(),
        body: format!("words of {uuid}"),
    })
}

fn line(child: ChildNo, value: &Value) -> SessionInput {
    SessionInput::Child {
        child,
        event: AgentEvent::Said(parse(value.to_string().as_bytes()).expect("a line")),
    }
}

fn ended(child: ChildNo, exit: Exit) -> SessionInput {
    SessionInput::Child {
        child,
        event: AgentEvent::Ended(exit),
    }
}

fn init() -> Value {
    json!({"type":"system","subtype":"init","session_id":"6b5f","permissionMode":"default"})
}

fn stage(uuid: &str, state: &str) -> Value {
    json!({"type":"command_lifecycle","command_uuid":uuid,"state":state})
}

fn wants(id: &str, tool: &str, input: &Value) -> Value {
    json!({"type":"control_request","request_id":id,"request":{"subtype":"can_use_tool","tool_name":tool,"input":input}})
}

fn question(id: &str) -> Value {
    wants(
        id,
        "AskUserQuestion",
        &json!({"questions":[{"question":"Which?","options":[{"label":"A"},{"label":"B"}]}]}),
    )
}

fn result(text: &str) -> Value {
    json!({"type":"result","subtype":"success","is_error":false,"result":text,"terminal_reason":"completed","num_turns":1})
}

fn ask(id: &str) -> RequestId {
    RequestId::parse(id).expect("an id")
}

fn answered(id: &str) -> SessionInput {
    SessionInput::Decided {
        ask: ask(id),
        verdict: ToolVerdict::Allow {
            input: json!({"answers": {"Which?": "B"}}),
            updates: Vec::new(),
        },
    }
}

/// Without the progress card, which has tests of its own.
fn essential(effects: Vec<Effect>) -> Vec<Effect> {
    effects
        .into_iter()
        .filter(|effect| !matches!(effect, Effect::Progress(_)))
        .collect()
}

fn settled(id: &str, ending: AskEnding) -> Effect {
    Effect::Settle {
        ask: ask(id),
        ending,
    }
}

fn fate(uuid: &str, fate: TextFate) -> Effect {
    Effect::Fate {
        uuid: uuid.to_owned(),
        fate,
    }
}

/// A session whose first turn runs.
fn running() -> Session {
    let mut session = session();
    session.on(text("t1"), 0);
    session.on(line(1, &stage("t1", "started")), 0);
    session.on(line(1, &init()), 0);
    assert_eq!(session.status(), SessionStatus::Executing);
    session
}

fn denial(effects: &[Effect]) -> Option<(&str, bool)> {
    effects.iter().find_map(|effect| match effect {
        Effect::Write {
            say:
                Say::Verdict {
                    verdict: ToolVerdict::Deny { message, interrupt },
                    ..
                },
            ..
        } => Some((message.as_str(), *interrupt)),
        _ => None,
    })
}

#[test]
fn words_start_a_child_and_its_answer_ends_the_turn() {
    let mut session = session();
    let effects = session.on(text("t1"), 0);
    assert!(
        matches!(&effects[..], [
            Effect::Start { child: 1, opening: Opening::Fresh(id), mode: Mode::Default },
            Effect::Write { child: 1, say: Say::Text { uuid, .. } },
        ] if id.as_str() == "6b5f" && uuid == "t1"),
        "{effects:?}"
    );
    session.on(line(1, &stage("t1", "started")), 0);
    session.on(line(1, &init()), 0);
    let effects = essential(session.on(line(1, &result("42")), 5_000));
    assert_eq!(effects[0], fate("t1", TextFate::Done));
    assert!(
        matches!(&effects[1], Effect::Finished(finish) if finish.how == How::Done && finish.answer.as_deref() == Some("42") && finish.view.elapsed == 5_000)
    );
    assert_eq!(session.status(), SessionStatus::Idle);
    let effects = session.on(text("t2"), 6_000);
    assert!(
        matches!(&effects[..], [Effect::Write { child: 1, .. }]),
        "the same child goes on: {effects:?}"
    );
}

#[test]
fn confirmation_goes_through_the_desk() {
    let mut session = running();
    let effects = session.on(line(1, &wants("r1", "Bash", &json!({"command":"ls"}))), 10);
    assert!(
        matches!(&essential(effects)[..], [Effect::AskPermission { deadline, .. }] if *deadline == 10 + 120_000)
    );
    assert_eq!(session.status(), SessionStatus::WaitingForConfirmation);
    let verdict = ToolVerdict::Allow {
        input: json!({"command":"ls"}),
        updates: Vec::new(),
    };
    let effects = session.on(
        SessionInput::Decided {
            ask: ask("r1"),
            verdict: verdict.clone(),
        },
        20,
    );
    assert_eq!(
        effects,
        [
            Effect::Write {
                child: 1,
                say: Say::Verdict {
                    request: "r1".to_owned(),
                    verdict
                }
            },
            settled("r1", AskEnding::Decided),
        ]
    );
    assert_eq!(session.status(), SessionStatus::Executing);
}

#[test]
fn a_question_waits_for_its_answer_and_takes_one() {
    let mut session = running();
    session.on(line(1, &question("q1")), 0);
    assert_eq!(session.status(), SessionStatus::WaitingForConfirmation);
    let effects = session.on(answered("q1"), 2);
    assert!(
        matches!(&effects[..], [
            Effect::Write { say: Say::Verdict { verdict: ToolVerdict::Allow { input, .. }, .. }, .. },
            Effect::Settle { ending: AskEnding::Decided, .. },
        ] if input["answers"] == json!({"Which?":"B"})),
        "{effects:?}"
    );
    assert!(session.on(answered("q1"), 3).is_empty());
    let open = json!({"questions":[{"question":"File?"}]});
    session.on(line(1, &wants("q2", "AskUserQuestion", &open)), 4);
    assert_eq!(session.status(), SessionStatus::WaitingForInput);
}

#[test]
fn a_question_times_out_after_five_minutes_and_ends_the_turn() {
    let mut session = running();
    session.on(line(1, &question("q1")), 0);
    assert!(essential(session.on(SessionInput::Tick, 5 * MINUTE - 1)).is_empty());
    let effects = essential(session.on(SessionInput::Tick, 5 * MINUTE));
    assert!(denial(&effects).is_some_and(|(_, interrupt)| interrupt));
    assert!(effects.contains(&settled("q1", AskEnding::TimedOut)));
    assert!(effects.contains(&Effect::Tell(Notice::QuestionTimedOut)));
    assert!(session.on(answered("q1"), 5 * MINUTE + 1).is_empty());
}

#[test]
fn an_answer_after_the_deadline_but_before_the_sweep_is_too_late() {
    let mut session = running();
    session.on(line(1, &question("q1")), 0);
    let effects = session.on(answered("q1"), 5 * MINUTE);
    assert!(effects.contains(&settled("q1", AskEnding::TimedOut)));
    assert!(!effects.contains(&settled("q1", AskEnding::Decided)));
}

#[test]
fn an_approval_times_out_as_an_honest_denial_and_the_turn_goes_on() {
    let mut session = running();
    session.on(line(1, &wants("r1", "Bash", &json!({}))), 0);
    let effects = essential(session.on(SessionInput::Tick, 120_000));
    let (message, interrupt) = denial(&effects).expect("a denial");
    assert!(message.contains("120 seconds") && !interrupt, "{message}");
    assert_eq!(session.status(), SessionStatus::Executing);
    let late = SessionInput::Decided {
        ask: ask("r1"),
        verdict: ToolVerdict::Allow {
            input: json!({}),
            updates: Vec::new(),
        },
    };
    assert!(session.on(late, 120_001).is_empty());
}

#[test]
fn a_command_cancels_the_wait_and_is_carried_out() {
    let mut session = running();
    session.on(line(1, &question("q1")), 0);
    let effects = session.on(SessionInput::Command(SessionCommand::Mode(Mode::Plan)), 1);
    assert!(denial(&effects).is_some_and(|(_, interrupt)| !interrupt));
    assert!(effects.contains(&settled("q1", AskEnding::Cancelled)));
    assert!(effects.contains(&Effect::Tell(Notice::Mode(Mode::Plan))));
    assert_eq!(session.status(), SessionStatus::Executing);

    session.on(line(1, &question("q2")), 2);
    let effects = session.on(SessionInput::Command(SessionCommand::Stop), 3);
    assert_eq!(
        effects,
        [
            settled("q2", AskEnding::Cancelled),
            fate("t1", TextFate::Failed),
            Effect::Close { child: 1 },
        ]
    );
    assert_eq!(session.status(), SessionStatus::Stopping);
    assert_eq!(
        session.on(ended(1, Exit::Finished), 4),
        [Effect::Tell(Notice::Stopped)]
    );
}

#[test]
fn words_while_stopping_wait_and_resume_the_conversation() {
    let mut session = running();
    session.on(SessionInput::Command(SessionCommand::Stop), 1);
    assert!(session.on(text("t2"), 2).is_empty());
    let effects = session.on(ended(1, Exit::Killed), 3);
    assert!(
        matches!(
            &effects[..],
            [
                Effect::Tell(Notice::Stopped),
                Effect::Start {
                    child: 2,
                    opening: Opening::Resume(_),
                    ..
                },
                Effect::Write { child: 2, .. },
            ]
        ),
        "{effects:?}"
    );
}

#[test]
fn words_that_missed_the_turn_run_in_the_next() {
    let mut session = running();
    session.on(text("t2"), 1);
    let effects = essential(session.on(line(1, &result("one")), 2));
    assert_eq!(effects[0], fate("t1", TextFate::Done));
    assert_eq!(
        session.status(),
        SessionStatus::Executing,
        "t2 has not begun yet"
    );
    session.on(line(1, &stage("t2", "started")), 3);
    let effects = essential(session.on(line(1, &result("two")), 4));
    assert_eq!(effects[0], fate("t2", TextFate::Done));
    assert_eq!(session.status(), SessionStatus::Idle);
}

#[test]
fn a_child_that_reports_no_stages_still_ends_its_texts() {
    let mut session = session();
    session.on(text("t1"), 0);
    let effects = essential(session.on(line(1, &result("x")), 1));
    assert_eq!(effects[0], fate("t1", TextFate::Done));
}

fn subagent_wants(id: &str) -> Value {
    let mut wants = wants(id, "Bash", &json!({"command": "ls"}));
    wants["request"]["agent_id"] = "a1".into();
    wants
}

#[test]
fn a_turns_end_leaves_a_subagents_request_open_and_its_answer_reaches_the_child() {
    let mut session = session();
    session.on(text("a"), 0);
    session.on(line(1, &init()), 1);
    session.on(line(1, &subagent_wants("r1")), 2);
    let after = essential(session.on(line(1, &result("done")), 3));
    let settled = |effect: &Effect| matches!(effect, Effect::Settle { .. });
    assert!(!after.iter().any(settled), "{after:?}");
    assert_eq!(session.status(), SessionStatus::WaitingForConfirmation);
    assert_eq!(session.saved().asks, [ask("r1")]);
    assert!(session.wake_at() <= Some(2 + SessionLimits::default().approval));
    let verdict = essential(session.on(answered("r1"), 4));
    assert!(
        matches!(
            verdict.as_slice(),
            [
                Effect::Write {
                    child: 1,
                    say: Say::Verdict {
                        verdict: ToolVerdict::Allow { .. },
                        ..
                    }
                },
                Effect::Settle {
                    ending: AskEnding::Decided,
                    ..
                }
            ]
        ),
        "{verdict:?}"
    );
    assert_eq!(session.status(), SessionStatus::Idle);
}

#[test]
fn a_request_that_outlives_its_turn_is_refused_in_time_and_ends_with_its_child() {
    let resting = || {
        let mut session = session();
        session.on(text("a"), 0);
        session.on(line(1, &init()), 1);
        session.on(line(1, &subagent_wants("r1")), 2);
        session.on(line(1, &result("done")), 3);
        session
    };
    let mut late = resting();
    let refused = late.on(SessionInput::Tick, 2 + SessionLimits::default().approval);
    assert!(
        refused.iter().any(|effect| matches!(
            effect,
            Effect::Write {
                say: Say::Verdict {
                    verdict: ToolVerdict::Deny { .. },
                    ..
                },
                ..
            }
        )),
        "{refused:?}"
    );
    for (input, ending) in [
        (ended(1, Exit::Finished), AskEnding::ChildGone),
        (
            SessionInput::Command(SessionCommand::Stop),
            AskEnding::Cancelled,
        ),
    ] {
        let over = resting().on(input, 5);
        let settle = Effect::Settle {
            ask: ask("r1"),
            ending,
        };
        assert!(over.contains(&settle), "{over:?}");
    }
}

#[test]
fn what_the_main_agent_asked_gets_its_verdict_when_the_turn_is_over() {
    let mut session = session();
    session.on(text("a"), 0);
    session.on(line(1, &init()), 1);
    session.on(line(1, &wants("r1", "Bash", &json!({"command": "ls"}))), 2);
    let after = session.on(line(1, &result("done")), 3);
    let refused = after.iter().any(|effect| {
        matches!(effect, Effect::Write { say: Say::Verdict { request, verdict: ToolVerdict::Deny { .. } }, .. } if request == "r1")
    });
    assert!(refused, "{after:?}");
}
