//! Lines as the real CLI wrote them (ids shortened).

use super::*;
use crate::ids::SessionId;
use crate::talk::*;
use serde_json::json;

fn read(value: &Value) -> AgentSaid {
    parse(value.to_string().as_bytes()).expect("a line")
}

#[test]
fn a_turn_is_read_from_its_lines() {
    let init = read(
        &json!({"type":"system","subtype":"init","cwd":"/p","session_id":"f92a","tools":["Task","Bash"],"mcp_servers":[],"model":"opus","permissionMode":"default","claude_code_version":"2.1.325"}),
    );
    let AgentSaid::Began(init) = init else {
        panic!("{init:?}")
    };
    assert_eq!(init.session, SessionId::parse("f92a").ok());
    assert_eq!(init.mode, Some(Mode::Default));

    let said = read(
        &json!({"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"one"},{"type":"thinking","thinking":"…"},{"type":"text","text":"two"},{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"touch x","description":"a test"}}]},"parent_tool_use_id":null,"session_id":"f92a"}),
    );
    assert_eq!(
        said,
        AgentSaid::Message(AgentMessage {
            text: "one\n\ntwo".to_owned(),
            calls: vec![ShownCall {
                id: "toolu_1".to_owned(),
                tool: "Bash".to_owned(),
                summary: "a test".to_owned(),
            }],
            subagent: false,
        })
    );

    let results = read(
        &json!({"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"no","is_error":true,"tool_use_id":"toolu_1"},{"type":"tool_result","content":[{"type":"text","text":"yes"}],"tool_use_id":"toolu_2"}]},"parent_tool_use_id":null}),
    );
    assert_eq!(
        results,
        AgentSaid::CallEnds(vec![
            CallEnd {
                id: "toolu_1".to_owned(),
                failed: true
            },
            CallEnd {
                id: "toolu_2".to_owned(),
                failed: false
            },
        ])
    );

    let end = read(
        &json!({"duration_api_ms":88,"stop_reason":"end_turn","session_id":"f92a","total_cost_usd":0.00096,"permission_denials":[],"terminal_reason":"completed","is_error":false,"num_turns":4,"subtype":"success","type":"result","result":"DONE","duration_ms":872,"queued_turn_count":1}),
    );
    let AgentSaid::TurnEnd(end) = end else {
        panic!("{end:?}")
    };
    assert_eq!(end.text.as_deref(), Some("DONE"));
    assert_eq!((end.turns, end.queued), (4, 1));
    assert_eq!(end.cost_usd, Some(0.00096));
    assert_eq!((end.how, end.is_unknown_session), (How::Done, false));
}

#[test]
fn ends_are_told_apart() {
    let end = |value: &Value| match read(value) {
        AgentSaid::TurnEnd(end) => end,
        other => panic!("{other:?}"),
    };
    let unknown = end(
        &json!({"type":"result","subtype":"error_during_execution","is_error":true,"num_turns":0,"total_cost_usd":0,"errors":["No conversation found with session ID: 0042"]}),
    );
    assert_eq!(
        (unknown.how, unknown.is_unknown_session),
        (How::Failed, true)
    );
    let api = end(
        &json!({"type":"result","subtype":"success","is_error":true,"terminal_reason":"api_error","result":"API Error: refused"}),
    );
    assert_eq!(api.how, How::ApiError);
    let aborted = end(
        &json!({"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_tools"}),
    );
    assert_eq!(aborted.how, How::Interrupted);
}

#[test]
fn requests_of_the_child_are_typed() {
    let line = read(
        &json!({"type":"control_request","request_id":"8575","request":{"subtype":"can_use_tool","tool_name":"Bash","display_name":"Bash","input":{"command":"touch x"},"description":"a test","permission_suggestions":[{"type":"addRules"}],"blocked_path":"/p/x","tool_use_id":"toolu_4"}}),
    );
    let AgentSaid::Request(AgentRequest {
        id,
        what: AgentWants::Tool(tool),
    }) = line
    else {
        panic!("{line:?}")
    };
    assert_eq!((id.as_str(), tool.tool.as_str()), ("8575", "Bash"));
    assert_eq!(
        (&tool.input, tool.agent, tool.wants_a_person),
        (&json!({"command":"touch x"}), None, false)
    );
    for (said, wants) in [
        (json!(true), true),
        (json!(false), false),
        (json!("yes"), false),
    ] {
        let line = read(
            &json!({"type":"control_request","request_id":"9","request":{"subtype":"can_use_tool","tool_name":"PickColour","requires_user_interaction":said}}),
        );
        assert!(
            matches!(&line, AgentSaid::Request(AgentRequest { what: AgentWants::Tool(tool), .. }) if tool.wants_a_person == wants),
            "{line:?}"
        );
    }

    let line = read(
        &json!({"type":"control_request","request_id":"9","request":{"subtype":"elicitation","mcp_server_name":"srv","message":"Name?","mode":"form","requested_schema":{"type":"object"}}}),
    );
    let AgentSaid::Request(AgentRequest {
        what: AgentWants::Form(asked),
        ..
    }) = line
    else {
        panic!("{line:?}")
    };
    assert_eq!(
        (asked.server.as_deref(), asked.message.as_str()),
        (Some("srv"), "Name?")
    );

    for strange in [
        json!({"type":"control_request","request_id":"9","request":{"subtype":"mcp_message"}}),
        json!({"type":"control_request","request_id":"9","request":{"subtype":"can_use_tool"}}),
        json!({"type":"control_request","request_id":"9","request":7}),
    ] {
        let line = read(&strange);
        assert!(
            matches!(&line, AgentSaid::Request(AgentRequest { id, what: AgentWants::Other { .. } }) if id == "9"),
            "{line:?}"
        );
    }
}

#[test]
fn replies_stages_and_withdrawals_are_read() {
    let reply = read(
        &json!({"type":"control_response","response":{"subtype":"success","request_id":"nod-3","response":{"mode":"plan"}}}),
    );
    assert!(matches!(&reply, AgentSaid::Reply(r) if r.request == "nod-3" && r.error.is_none()));
    let refused = read(
        &json!({"type":"control_response","response":{"subtype":"error","request_id":"nod-4","error":"no","error_code":"bypass_not_launched"}}),
    );
    assert!(matches!(&refused, AgentSaid::Reply(r) if r.error.as_deref() == Some("no")));
    assert_eq!(
        read(&json!({"type":"control_cancel_request","request_id":"9"})),
        AgentSaid::Withdrawn {
            request: "9".to_owned()
        }
    );
    for (state, stage) in [
        ("queued", TextStage::Queued),
        ("started", TextStage::Started),
        ("completed", TextStage::Completed),
        ("cancelled", TextStage::Cancelled),
    ] {
        assert_eq!(
            read(&json!({"type":"command_lifecycle","command_uuid":"u","state":state,"uuid":"x"})),
            AgentSaid::Text {
                uuid: "u".to_owned(),
                stage
            }
        );
    }
    assert_eq!(
        read(&json!({"type":"system","subtype":"status","status":null,"permissionMode":"plan"})),
        AgentSaid::Mode(Mode::Plan)
    );
}

#[test]
fn the_unknown_is_named_and_dropped() {
    for (value, kind) in [
        (
            json!({"type":"stream_event","event":{"huge":"x"}}),
            "stream_event",
        ),
        (
            json!({"type":"system","subtype":"hook_started"}),
            "system/hook_started",
        ),
        (json!({"type":"assistant","message":7}), "assistant"),
        (json!({"type":"a\nb"}), "a b"),
        (
            json!({"type":"system","subtype":"status","permissionMode":"bypassPermissions"}),
            "system/status",
        ),
    ] {
        assert_eq!(
            read(&value),
            AgentSaid::Other {
                kind: kind.to_owned()
            }
        );
    }
    assert!(parse(b"not json").is_err());
    assert!(parse(b"").is_err());
    assert!(parse(b"[]").is_err());
}

#[test]
fn every_prefix_of_a_line_is_unreadable_and_never_a_panic() {
    let line = json!({"type":"result","subtype":"success","result":"é"}).to_string();
    for end in 0..line.len() {
        assert!(parse(&line.as_bytes()[..end]).is_err(), "prefix {end}");
    }
}

#[test]
fn summaries_name_what_a_reader_recognises() {
    for (tool, input, expected) in [
        ("Bash", json!({"command":"ls"}), "ls"),
        (
            "Edit",
            json!({"old_string":"a","file_path":"/p/a.rs"}),
            "/p/a.rs",
        ),
        ("mcp__x__y", json!({"n":1,"name":"z\n z"}), "z  z"),
        ("Bash", json!(null), ""),
    ] {
        assert_eq!(summary(tool, &input), expected);
    }
    let long = summary("Bash", &json!({"command": "长".repeat(500)}));
    assert_eq!(long.chars().count(), MAX_SUMMARY);
    assert!(long.ends_with('…'));
}

#[test]
fn a_request_that_is_too_long_is_still_known_by_its_id() {
    let line = wants_much();
    let head = line.as_bytes()[..256].to_vec();
    assert_eq!(
        event(Cut::TooLong { bytes: 999, head }),
        Some(AgentEvent::TooLong {
            bytes: 999,
            request: Some("8575-x".to_owned())
        })
    );
    let head = b"{\"type\":\"user\"".to_vec();
    assert_eq!(
        event(Cut::TooLong { bytes: 999, head }),
        Some(AgentEvent::TooLong {
            bytes: 999,
            request: None
        })
    );
    assert_eq!(event(Cut::Line(b" \r".to_vec())), None);
    assert_eq!(
        event(Cut::Line(b"oops".to_vec())),
        Some(AgentEvent::Unreadable)
    );
}

fn wants_much() -> String {
    json!({"type":"control_request","request_id":"8575-x","request":{"subtype":"can_use_tool","tool_name":"Write","input":{"content":"x".repeat(500)}}})
        .to_string()
}

#[test]
fn retries_and_background_tasks_are_read_and_what_is_missing_is_not_guessed() {
    let retry = |value| match read(&value) {
        AgentSaid::Retry(retry) => retry,
        other => panic!("{other:?}"),
    };
    let whole = json!({"type":"system","subtype":"api_retry","attempt":2,"max_retries":10,"retry_delay_ms":1235,"error_status":529,"error":"overloaded","session_id":"b0bd"});
    let expected = ModelRetry {
        attempt: 2,
        most: Some(10),
        status: Some(529),
    };
    assert_eq!(retry(whole), expected);
    let bare = json!({"type":"system","subtype":"api_retry","error_status":null,"attempt":"x"});
    let expected = ModelRetry {
        attempt: 1,
        most: None,
        status: None,
    };
    assert_eq!(retry(bare), expected);
    let tasks = json!({"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"b2a0","run_id":"0mwj","task_type":"local_bash","description":"slow\nbuild"},{"task_id":"b3"}],"session_id":"cae6"});
    let names = ["slow build", "b3"].map(str::to_owned).to_vec();
    assert_eq!(read(&tasks), AgentSaid::Background(names));
    let many: Vec<_> = (0..1_000)
        .map(|n| json!({"task_id": format!("b{n}")}))
        .collect();
    let flood = json!({"type":"system","subtype":"background_tasks_changed","tasks":many});
    let AgentSaid::Background(names) = read(&flood) else {
        panic!("no tasks")
    };
    assert_eq!(names.len(), 32);
}
