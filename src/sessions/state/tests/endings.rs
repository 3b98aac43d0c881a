//! How tasks, children and sessions end, and what is told then.

use super::*;

#[test]
fn thirty_quiet_minutes_end_a_task() {
    let mut session = running();
    session.on(line(1, &json!({"type":"stream_event"})), MINUTE);
    assert!(essential(session.on(SessionInput::Tick, 31 * MINUTE - 1)).is_empty());
    let effects = essential(session.on(SessionInput::Tick, 31 * MINUTE));
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
        assert!(effects.contains(&fate("t1", TextFate::Failed)));
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
    let (mut session, effects) = Session::restored(saved, SessionLimits::default());
    assert!(effects.is_empty());
    session.on(text("t1"), 0);
    let end = json!({"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found with session ID: 6b5f"]});
    assert_eq!(
        essential(session.on(line(1, &end), 1)),
        [fate("t1", TextFate::Failed)]
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
    let (mut after, effects) = Session::restored(before.saved(), SessionLimits::default());
    assert_eq!(
        effects,
        [
            settled("q1", AskEnding::Restarted),
            Effect::Tell(Notice::Restarted)
        ]
    );
    assert!(after.on(answered("q1"), 1).is_empty());
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
            matches!(&essential(effects)[..], [Effect::Write { say: Say::Verdict { verdict: ToolVerdict::Allow { input, .. }, .. }, .. }] if *input == json!({"a":1}))
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
                say: Say::Filled {
                    answer: Filled::Decline,
                    ..
                },
                ..
            },
            Effect::Tell(Notice::CannotAsk)
        ]
    ));
}

#[test]
fn a_tool_that_wants_a_person_gets_no_allow_that_does_nothing() {
    let mut session = running();
    let mut asked = wants("r", "PickColour", &json!({"colours": ["red"]}));
    let effects = session.on(line(1, &asked), 0);
    assert!(denial(&effects).is_none(), "any other tool gets its card");
    asked["request_id"] = json!("r2");
    asked["request"]["requires_user_interaction"] = json!(true);
    let effects = essential(session.on(line(1, &asked), 0));
    assert!(denial(&effects).is_some());
    assert!(matches!(
        effects.last(),
        Some(Effect::Tell(Notice::CannotAsk))
    ));
}

#[test]
fn a_request_over_the_line_cap_is_denied_and_told() {
    let mut session = running();
    let input = SessionInput::Child {
        child: 1,
        event: AgentEvent::TooLong {
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
fn a_resting_child_is_let_go_and_an_order_to_stop_finds_nothing() {
    let mut session = running();
    session.on(line(1, &result("x")), 0);
    assert_eq!(
        session.on(SessionInput::Command(SessionCommand::Stop), 1),
        [Effect::Tell(Notice::NothingRuns)]
    );
    assert_eq!(session.wake_at(), Some(10 * MINUTE));
    assert_eq!(
        session.on(SessionInput::Tick, 10 * MINUTE),
        [Effect::Close { child: 1 }]
    );
    assert!(session.on(ended(1, Exit::Finished), 10 * MINUTE).is_empty());
    assert_eq!(session.status(), SessionStatus::Idle);
}

#[test]
fn modes_follow_orders_and_the_agent_and_a_refusal_is_told() {
    let mut session = running();
    session.on(SessionInput::Command(SessionCommand::Mode(Mode::Plan)), 0);
    session.on(line(1, &init()), 0);
    assert_eq!(
        session.saved().mode,
        Mode::Plan,
        "an older report does not count"
    );
    let refused = json!({"type":"control_response","response":{"subtype":"error","request_id":"nod-1","error":"no"}});
    let effects = essential(session.on(line(1, &refused), 0));
    assert_eq!(effects, [Effect::Tell(Notice::ModeRefused(Mode::Plan))]);
    let status = json!({"type":"system","subtype":"status","permissionMode":"acceptEdits"});
    session.on(line(1, &status), 0);
    assert_eq!(session.saved().mode, Mode::AcceptEdits);
}

#[test]
fn more_texts_than_anyone_reads_are_refused_aloud() {
    let mut session = running();
    for i in 0..MAX_TEXTS - 1 {
        assert_eq!(session.on(text(&format!("x{i}")), 0).len(), 1);
    }
    assert_eq!(
        session.on(text("over"), 0),
        [
            fate("over", TextFate::Lost),
            Effect::Tell(Notice::TooManyTexts)
        ]
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
    let allow = |input: Value| ToolVerdict::Allow {
        input,
        updates: Vec::new(),
    };
    let decided = |id: &str, verdict| SessionInput::Decided {
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
            Filled::Accept(json!({"name": "lin"}).as_object().cloned().expect("a map")),
        ),
        ("e2", ToolVerdict::deny("no"), Filled::Decline),
    ] {
        let effects = essential(session.on(decided(id, verdict), 3));
        let request = id.to_owned();
        let say = Say::Filled { request, answer };
        assert_eq!(effects, [write(say), settled(id)]);
    }
}

#[test]
fn an_answer_that_will_not_come_is_refused_at_once_and_says_why() {
    let limits = SessionLimits {
        slack: MINUTE,
        ..SessionLimits::default()
    };
    let id = SessionId::parse("6b5f").expect("an id");
    let mut session = Session::new(id, Mode::Default, limits);
    session.on(text("t1"), 0);
    session.on(line(1, &wants("r1", "Bash", &json!({}))), 0);
    session.on(line(1, &wants("r2", "Bash", &json!({}))), 0);
    let late = essential(session.on(SessionInput::Tick, limits.approval));
    assert_eq!(late, [], "an answer may be on its way");
    for (id, why, words) in [
        ("r1", Unanswered::TimedOut, "within 120 seconds"),
        ("r2", Unanswered::NotShown, "could not be shown"),
    ] {
        let ask = ask(id);
        let effects = essential(session.on(SessionInput::Unanswered { ask, why }, limits.approval));
        let Some(Effect::Write {
            say:
                Say::Verdict {
                    verdict: ToolVerdict::Deny { message, .. },
                    ..
                },
            ..
        }) = effects.first()
        else {
            panic!("{effects:?}")
        };
        assert!(message.contains(words), "{message}");
    }
    assert_eq!(session.status(), SessionStatus::Executing);
}
