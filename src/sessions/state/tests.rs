//! The seed's scenarios one by one; `model` plays the rest at random.

use super::*;
use crate::claude::stream::parse;
use crate::claude::stream::say::Elicited;
use crate::sessions::questions::{Problem, Reply, Tap};
use serde_json::{Value, json};

mod model;

const MINUTE: Millis = 60_000;

fn session() -> Session {
    let id = SessionId::parse("6b5f").expect("an id");
    Session::new(id, Mode::Default, Limits::default())
}

fn text(uuid: &str) -> Input {
    Input::Text(Text {
        uuid: uuid.to_owned(),
        body: format!("words of {uuid}"),
    })
}

fn line(child: ChildNo, value: &Value) -> Input {
    Input::Child {
        child,
        event: Event::Line(parse(value.to_string().as_bytes()).expect("a line")),
    }
}

fn ended(child: ChildNo, exit: Exit) -> Input {
    Input::Child {
        child,
        event: Event::Ended(exit),
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

fn reply(id: &str, words: &str) -> Input {
    Input::Reply {
        ask: ask(id),
        reply: Reply::Text(words.to_owned()),
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

fn fate(uuid: &str, fate: Fate) -> Effect {
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
    assert_eq!(session.status(), Status::Executing);
    session
}

fn denial(effects: &[Effect]) -> Option<(&str, bool)> {
    effects.iter().find_map(|effect| match effect {
        Effect::Write {
            say:
                Say::Verdict {
                    verdict: Verdict::Deny { message, interrupt },
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
    assert_eq!(effects[0], fate("t1", Fate::Done));
    assert!(
        matches!(&effects[1], Effect::Finished(finish) if finish.how == How::Done && finish.answer.as_deref() == Some("42") && finish.view.elapsed == 5_000)
    );
    assert_eq!(session.status(), Status::Idle);
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
    assert_eq!(session.status(), Status::WaitingForConfirmation);
    let verdict = Verdict::Allow {
        input: json!({"command":"ls"}),
        permissions: Vec::new(),
    };
    let effects = session.on(
        Input::Decided {
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
    assert_eq!(session.status(), Status::Executing);
}

#[test]
fn choice_and_text_are_answered_and_acknowledged() {
    let mut session = running();
    session.on(line(1, &question("q1")), 0);
    assert_eq!(session.status(), Status::WaitingForConfirmation);
    let wrong = session.on(reply("q1", "7"), 1);
    assert_eq!(
        wrong,
        [Effect::Tell(Notice::Invalid(Problem::NoSuchOption {
            number: 7,
            of: 2
        }))]
    );
    let effects = session.on(reply("q1", "2"), 2);
    assert!(
        matches!(&effects[..], [
            Effect::Write { say: Say::Verdict { verdict: Verdict::Allow { input, .. }, .. }, .. },
            Effect::Settle { ending: AskEnding::Answered(_), .. },
            Effect::Tell(Notice::Received),
        ] if input["answers"] == json!({"Which?":"B"})),
        "{effects:?}"
    );
    assert_eq!(
        session.on(reply("q1", "1"), 3),
        [Effect::Tell(Notice::AlreadyAnswered)]
    );
    session.on(
        line(
            1,
            &wants(
                "q2",
                "AskUserQuestion",
                &json!({"questions":[{"question":"File?"}]}),
            ),
        ),
        4,
    );
    assert_eq!(session.status(), Status::WaitingForInput);
    assert!(
        session
            .on(reply("q2", "src/main.rs"), 5)
            .contains(&Effect::Tell(Notice::Received))
    );
}

#[test]
fn a_question_times_out_after_five_minutes_and_ends_the_turn() {
    let mut session = running();
    session.on(line(1, &question("q1")), 0);
    assert!(essential(session.on(Input::Tick, 5 * MINUTE - 1)).is_empty());
    let effects = essential(session.on(Input::Tick, 5 * MINUTE));
    assert!(denial(&effects).is_some_and(|(_, interrupt)| interrupt));
    assert!(effects.contains(&settled("q1", AskEnding::TimedOut)));
    assert!(effects.contains(&Effect::Tell(Notice::QuestionTimedOut)));
    assert_eq!(
        session.on(reply("q1", "A"), 5 * MINUTE + 1),
        [Effect::Tell(Notice::Expired)]
    );
}

#[test]
fn an_answer_after_the_deadline_but_before_the_sweep_is_too_late() {
    let mut session = running();
    session.on(line(1, &question("q1")), 0);
    let effects = session.on(reply("q1", "A"), 5 * MINUTE);
    assert!(effects.contains(&settled("q1", AskEnding::TimedOut)));
    assert_eq!(effects.last(), Some(&Effect::Tell(Notice::Expired)));
}

#[test]
fn an_approval_times_out_as_an_honest_denial_and_the_turn_goes_on() {
    let mut session = running();
    session.on(line(1, &wants("r1", "Bash", &json!({}))), 0);
    let effects = essential(session.on(Input::Tick, 120_000));
    let (message, interrupt) = denial(&effects).expect("a denial");
    assert!(message.contains("120 seconds") && !interrupt, "{message}");
    assert_eq!(session.status(), Status::Executing);
    let late = Input::Decided {
        ask: ask("r1"),
        verdict: Verdict::Allow {
            input: json!({}),
            permissions: Vec::new(),
        },
    };
    assert!(session.on(late, 120_001).is_empty());
}

#[test]
fn a_command_cancels_the_wait_and_is_carried_out() {
    let mut session = running();
    session.on(line(1, &question("q1")), 0);
    let effects = session.on(Input::Command(Order::Mode(Mode::Plan)), 1);
    assert!(denial(&effects).is_some_and(|(_, interrupt)| !interrupt));
    assert!(effects.contains(&settled("q1", AskEnding::Cancelled)));
    assert!(effects.contains(&Effect::Tell(Notice::Mode(Mode::Plan))));
    assert_eq!(session.status(), Status::Executing);

    session.on(line(1, &question("q2")), 2);
    let effects = session.on(Input::Command(Order::Stop), 3);
    assert_eq!(
        effects,
        [
            settled("q2", AskEnding::Cancelled),
            fate("t1", Fate::Failed),
            Effect::Close { child: 1 },
        ]
    );
    assert_eq!(session.status(), Status::Stopping);
    assert_eq!(
        session.on(ended(1, Exit::Finished), 4),
        [Effect::Tell(Notice::Stopped)]
    );
}

#[test]
fn words_while_stopping_wait_and_resume_the_conversation() {
    let mut session = running();
    session.on(Input::Command(Order::Stop), 1);
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
    assert_eq!(effects[0], fate("t1", Fate::Done));
    assert_eq!(session.status(), Status::Executing, "t2 has not begun yet");
    session.on(line(1, &stage("t2", "started")), 3);
    let effects = essential(session.on(line(1, &result("two")), 4));
    assert_eq!(effects[0], fate("t2", Fate::Done));
    assert_eq!(session.status(), Status::Idle);
}

#[test]
fn a_child_that_reports_no_stages_still_ends_its_texts() {
    let mut session = session();
    session.on(text("t1"), 0);
    let effects = essential(session.on(line(1, &result("x")), 1));
    assert_eq!(effects[0], fate("t1", Fate::Done));
}

#[test]
fn thirty_quiet_minutes_end_a_task() {
    let mut session = running();
    session.on(line(1, &json!({"type":"stream_event"})), MINUTE);
    assert!(essential(session.on(Input::Tick, 31 * MINUTE - 1)).is_empty());
    let effects = essential(session.on(Input::Tick, 31 * MINUTE));
    assert!(effects.contains(&Effect::Tell(Notice::NoProgress { minutes: 30 })));
    assert!(effects.contains(&Effect::Close { child: 1 }));
}

#[test]
fn every_bad_end_is_told_and_leaves_the_session_resumable() {
    for (exit, notice, resumes) in [
        (
            Exit::Crashed {
                code: Some(1),
                words: Some("boom".to_owned()),
            },
            Notice::Crashed {
                words: Some("boom".to_owned()),
            },
            true,
        ),
        (Exit::Finished, Notice::Crashed { words: None }, true),
        (Exit::NotInstalled, Notice::NotInstalled, true),
        (Exit::ProjectGone, Notice::ProjectGone, true),
        (Exit::InUse, Notice::InUse, true),
        (Exit::UnknownSession, Notice::Expired, false),
    ] {
        let mut session = running();
        session.on(line(1, &question("q1")), 0);
        let effects = session.on(ended(1, exit), 1);
        assert!(effects.contains(&settled("q1", AskEnding::ChildGone)));
        assert!(effects.contains(&fate("t1", Fate::Failed)));
        assert_eq!(effects.last(), Some(&Effect::Tell(notice)));
        let again = session.on(text("t2"), 2);
        let resumed = matches!(
            &again[0],
            Effect::Start {
                opening: Opening::Resume(_),
                ..
            }
        );
        assert_eq!(resumed, resumes);
    }
}

#[test]
fn an_api_error_ends_the_turn_and_keeps_the_child() {
    let mut session = running();
    let end = json!({"type":"result","subtype":"success","is_error":true,"terminal_reason":"api_error","result":"API Error: refused"});
    let effects = essential(session.on(line(1, &end), 1));
    assert!(
        matches!(&effects[1], Effect::Finished(finish) if finish.how == How::ApiError && finish.answer.as_deref() == Some("API Error: refused"))
    );
    assert!(matches!(
        &session.on(text("t2"), 2)[..],
        [Effect::Write { child: 1, .. }]
    ));
}

#[test]
fn an_unknown_conversation_is_expired_and_begins_anew() {
    let saved = Saved {
        begun: true,
        ..session().saved()
    };
    let (mut session, effects) = Session::restored(saved, Limits::default());
    assert!(effects.is_empty());
    session.on(text("t1"), 0);
    let end = json!({"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found with session ID: 6b5f"]});
    assert_eq!(
        essential(session.on(line(1, &end), 1)),
        [fate("t1", Fate::Failed)]
    );
    assert_eq!(
        session.on(ended(1, Exit::UnknownSession), 2),
        [Effect::Tell(Notice::Expired)]
    );
    assert!(matches!(
        &session.on(text("t2"), 3)[0],
        Effect::Start {
            opening: Opening::Fresh(_),
            ..
        }
    ));
}

#[test]
fn a_restart_closes_open_cards_and_says_so() {
    let mut before = running();
    before.on(line(1, &question("q1")), 0);
    let (mut after, effects) = Session::restored(before.saved(), Limits::default());
    assert_eq!(
        effects,
        [
            settled("q1", AskEnding::Restarted),
            Effect::Tell(Notice::Restarted)
        ]
    );
    assert_eq!(
        after.on(reply("q1", "A"), 1),
        [Effect::Tell(Notice::Expired)]
    );
    assert!(matches!(
        &after.on(text("t2"), 2)[0],
        Effect::Start {
            opening: Opening::Resume(_),
            ..
        }
    ));
}

#[test]
fn reading_passes_and_what_cannot_be_asked_is_refused() {
    let mut session = running();
    for tool in ["Read", "Glob", "Grep"] {
        let effects = session.on(line(1, &wants("r", tool, &json!({"a":1}))), 0);
        assert!(
            matches!(&essential(effects)[..], [Effect::Write { say: Say::Verdict { verdict: Verdict::Allow { input, .. }, .. }, .. }] if *input == json!({"a":1}))
        );
    }
    let effects = session.on(line(1, &wants("r", "AskUserQuestion", &json!(null))), 0);
    assert!(denial(&effects).is_some());
    let strange =
        json!({"type":"control_request","request_id":"r","request":{"subtype":"mcp_message"}});
    let effects = essential(session.on(line(1, &strange), 0));
    assert!(matches!(
        &effects[..],
        [Effect::Write {
            say: Say::Unsupported { .. },
            ..
        }]
    ));
    let nested = json!({"type":"control_request","request_id":"r","request":{"subtype":"elicitation","requested_schema":{"properties":{"x":{"type":"object"}}}}});
    let effects = essential(session.on(line(1, &nested), 0));
    assert!(matches!(
        &effects[..],
        [
            Effect::Write {
                say: Say::Elicited {
                    answer: Elicited::Decline,
                    ..
                },
                ..
            },
            Effect::Tell(Notice::CannotAsk)
        ]
    ));
}

#[test]
fn a_request_over_the_line_cap_is_denied_and_told() {
    let mut session = running();
    let input = Input::Child {
        child: 1,
        event: Event::TooLong {
            bytes: 99,
            request: Some("r9".to_owned()),
        },
    };
    let effects = session.on(input, 0);
    assert!(denial(&effects).is_some());
    assert_eq!(
        effects.last(),
        Some(&Effect::Tell(Notice::LineTooLong { bytes: 99 }))
    );
}

#[test]
fn a_plan_is_answered_by_its_buttons() {
    let mut session = running();
    let plan = json!({"plan":"# do","planFilePath":"/p"});
    session.on(line(1, &wants("p1", "ExitPlanMode", &plan)), 0);
    let effects = session.on(
        Input::Reply {
            ask: ask("p1"),
            reply: Reply::Tap(Tap::ApprovePlanAndEdits),
        },
        1,
    );
    assert!(
        matches!(&effects[0], Effect::Write { say: Say::Verdict { verdict: Verdict::Allow { input, permissions }, .. }, .. } if *input == plan && permissions.len() == 1)
    );
}

#[test]
fn a_resting_child_is_let_go_and_an_order_to_stop_finds_nothing() {
    let mut session = running();
    session.on(line(1, &result("x")), 0);
    assert_eq!(
        session.on(Input::Command(Order::Stop), 1),
        [Effect::Tell(Notice::NothingRuns)]
    );
    assert_eq!(session.wake_at(), Some(10 * MINUTE));
    assert_eq!(
        session.on(Input::Tick, 10 * MINUTE),
        [Effect::Close { child: 1 }]
    );
    assert!(session.on(ended(1, Exit::Finished), 10 * MINUTE).is_empty());
    assert_eq!(session.status(), Status::Idle);
}

#[test]
fn modes_follow_orders_and_the_agent_and_a_refusal_is_told() {
    let mut session = running();
    session.on(Input::Command(Order::Mode(Mode::Plan)), 0);
    session.on(line(1, &init()), 0);
    assert_eq!(session.mode(), Mode::Plan, "an older report does not count");
    let refused = json!({"type":"control_response","response":{"subtype":"error","request_id":"nod-1","error":"no"}});
    let effects = essential(session.on(line(1, &refused), 0));
    assert_eq!(effects, [Effect::Tell(Notice::ModeRefused(Mode::Plan))]);
    let status = json!({"type":"system","subtype":"status","permissionMode":"acceptEdits"});
    session.on(line(1, &status), 0);
    assert_eq!(session.mode(), Mode::AcceptEdits);
}

#[test]
fn more_texts_than_anyone_reads_are_refused_aloud() {
    let mut session = running();
    for i in 0..MAX_TEXTS - 1 {
        assert_eq!(session.on(text(&format!("x{i}")), 0).len(), 1);
    }
    assert_eq!(
        session.on(text("over"), 0),
        [fate("over", Fate::Lost), Effect::Tell(Notice::TooManyTexts)]
    );
}

#[test]
fn a_question_decided_elsewhere_goes_back_in_its_own_form() {
    let mut session = session();
    session.on(text("t1"), 0);
    session.on(line(1, &question("q1")), 1);
    let schema = json!({"type":"object","properties":{"name":{"type":"string"}}});
    let elicits = |id: &str| json!({"type":"control_request","request_id":id,"request":{"subtype":"elicitation","message":"Who?","requested_schema":schema}});
    session.on(line(1, &elicits("e1")), 1);
    session.on(line(1, &elicits("e2")), 1);
    let allow = |input: Value| Verdict::Allow {
        input,
        permissions: Vec::new(),
    };
    let decided = |id: &str, verdict| Input::Decided {
        ask: ask(id),
        verdict,
    };
    let settled = |id: &str| Effect::Settle {
        ask: ask(id),
        ending: AskEnding::Decided,
    };
    let write = |say| Effect::Write { child: 1, say };
    let answers = json!({"answers": {"Which?": "A"}});
    let effects = essential(session.on(decided("q1", allow(answers.clone())), 2));
    let say = Say::Verdict {
        request: "q1".to_owned(),
        verdict: allow(answers),
    };
    assert_eq!(effects, [write(say), settled("q1")]);
    for (id, verdict, answer) in [
        (
            "e1",
            allow(json!({"name": "lin"})),
            Elicited::Accept(json!({"name": "lin"}).as_object().cloned().expect("a map")),
        ),
        ("e2", Verdict::deny("no"), Elicited::Decline),
    ] {
        let effects = essential(session.on(decided(id, verdict), 3));
        let request = id.to_owned();
        let say = Say::Elicited { request, answer };
        assert_eq!(effects, [write(say), settled(id)]);
    }
}

#[test]
fn an_answer_that_will_not_come_is_refused_at_once_and_says_why() {
    let limits = Limits {
        slack: MINUTE,
        ..Limits::default()
    };
    let id = SessionId::parse("6b5f").expect("an id");
    let mut session = Session::new(id, Mode::Default, limits);
    session.on(text("t1"), 0);
    session.on(line(1, &wants("r1", "Bash", &json!({}))), 0);
    session.on(line(1, &wants("r2", "Bash", &json!({}))), 0);
    let late = essential(session.on(Input::Tick, limits.approval));
    assert_eq!(late, [], "an answer may be on its way");
    for (id, why, words) in [
        ("r1", Unanswered::TimedOut, "within 120 seconds"),
        ("r2", Unanswered::NotShown, "could not be shown"),
    ] {
        let ask = ask(id);
        let effects = essential(session.on(Input::Unanswered { ask, why }, limits.approval));
        let Some(Effect::Write {
            say:
                Say::Verdict {
                    verdict: Verdict::Deny { message, .. },
                    ..
                },
            ..
        }) = effects.first()
        else {
            panic!("{effects:?}")
        };
        assert!(message.contains(words), "{message}");
    }
    assert_eq!(session.status(), Status::Executing);
}
