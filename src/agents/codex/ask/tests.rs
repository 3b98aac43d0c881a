use super::*;

fn command(command: &str) -> Value {
    json!({
        "kind": "command", "threadId": "T", "turnId": "U", "itemId": "I", "startedAtMs": 5,
        "environmentId": "local", "reason": "need to write", "command": command, "cwd": "/srv",
        "commandActions": [], "proposedExecpolicyAmendment": ["git", "log"],
        "availableDecisions": ["accept",
            {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["git", "log"]}}, "cancel"],
    })
}

fn asked(method: &str, params: &Value, changes: Option<&Value>) -> CodexAsk {
    match read(&json!(0), method, params, changes) {
        AskReading::Ask(ask) => *ask,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_command_is_shown_as_the_shell_gets_it_and_never_less() {
    for (given, shown) in [
        ("/bin/bash -lc 'touch a1'", "touch a1"),
        (r#"bash -lc "it's \$HOME""#, "it's $HOME"),
        ("/bin/sh -c ls", "ls"),
        ("/usr/bin/zsh -lc 'npm test'", "npm test"),
        ("./bash -lc 'npm test'", "./bash -lc 'npm test'"),
        ("/tmp/bash -lc 'npm test'", "/tmp/bash -lc 'npm test'"),
        ("bin/bash -lc 'npm test'", "bin/bash -lc 'npm test'"),
        (
            "/usr/bin/../../tmp/bash -c a",
            "/usr/bin/../../tmp/bash -c a",
        ),
        ("python3 -c 'print(1)'", "python3 -c 'print(1)'"),
        ("bash -lc 'a' b", "bash -lc 'a' b"),
        ("bash -lc a; rm b", "bash -lc a; rm b"),
        ("bash -lc \"$(rm b)\"", "bash -lc \"$(rm b)\""),
        ("bash -lc 'open", "bash -lc 'open"),
    ] {
        let ask = asked(COMMAND, &command(given), None);
        assert_eq!(ask.input["command"], shown, "{given}");
        assert_eq!(ask.input["description"], "need to write");
        assert_eq!(ask.input.as_object().unwrap().len(), 2, "{}", ask.input);
    }
}

#[test]
fn what_a_newer_codex_adds_to_a_command_stands_on_the_card() {
    let mut params = command("ls");
    params["kind"] = "humanCommand".into();
    params["newField"] = json!([1]);
    let ask = asked(COMMAND, &params, None);
    assert_eq!(ask.input["kind"], "humanCommand");
    assert_eq!(ask.input["newField"], json!([1]));
    params["command"] = Value::Null;
    let unread = read(&json!(0), COMMAND, &params, None);
    assert_eq!(unread, AskReading::TerminalOnly);
}

#[test]
fn what_is_typed_into_a_running_program_is_a_command_of_its_own() {
    let mut params = command("write_stdin --session-id 23786 'rm -rf /srv/data\n'");
    params["kind"] = "writeStdin".into();
    let ask = asked(COMMAND, &params, None);
    assert_eq!(ask.input["command"], "rm -rf /srv/data\n");
    assert_eq!(ask.input["typed_into"], "23786");
    for strange in [
        "write_stdin --session-id 7",
        "rm -rf /",
        "write_stdin 7 'a' 'b'",
    ] {
        params["command"] = strange.into();
        let unread = read(&json!(0), COMMAND, &params, None);
        assert_eq!(unread, AskReading::TerminalOnly, "{strange}");
    }
}

#[test]
fn decisions_are_codexs_own_and_only_those_it_offers() {
    let ask = asked(COMMAND, &command("git log"), None);
    let decided = |decision| {
        ask.result(&decision)
            .map(|result| result["decision"].clone())
    };
    assert_eq!(decided(CodexDecision::Once), Some(json!("accept")));
    assert_eq!(decided(CodexDecision::Deny), Some(json!("decline")));
    assert_eq!(decided(CodexDecision::Interrupt), Some(json!("cancel")));
    assert_eq!(decided(CodexDecision::Session), None, "it was not offered");
    let amended =
        json!({"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["git", "log"]}});
    assert_eq!(decided(CodexDecision::Prefix), Some(amended));
    assert_eq!(
        decided(CodexDecision::Answers(vec!["yes".to_owned()])),
        None
    );
    let mut other = command("git log");
    other["availableDecisions"] = json!(["accept", "cancel"]);
    let ask = asked(COMMAND, &other, None);
    assert_eq!(ask.result(&CodexDecision::Prefix), None);
}

#[test]
fn a_file_change_is_asked_with_its_diff_or_not_at_all() {
    let params = json!({"threadId": "T", "turnId": "U", "itemId": "I", "startedAtMs": 5});
    let unseen = read(&json!(0), FILE_CHANGE, &params, None);
    assert_eq!(unseen, AskReading::NeedsItem("I".to_owned()));
    for broken in [
        json!([]),
        json!([{"path": "/a", "kind": {"type": "add"}}]),
        json!({}),
    ] {
        let unread = read(&json!(0), FILE_CHANGE, &params, Some(&broken));
        assert_eq!(unread, AskReading::TerminalOnly, "{broken}");
    }
    let changes = json!([{"path": "/a", "kind": {"type": "add"}, "diff": "x\n"}]);
    let ask = asked(FILE_CHANGE, &params, Some(&changes));
    assert_eq!(
        (ask.tool.as_str(), &ask.input["changes"]),
        (PATCH, &changes)
    );
}

fn wish(permissions: &Value) -> Value {
    json!({"threadId": "T", "turnId": "U", "itemId": "I", "startedAtMs": 5,
        "environmentId": "local", "cwd": "/srv", "reason": "why not", "permissions": permissions})
}

#[test]
fn permissions_are_granted_as_asked_or_not_at_all() {
    // As Codex 0.169 sends them: each place twice.
    let wanted = json!({"network": {"enabled": true}, "fileSystem": {"read": null,
        "write": ["/"], "entries": [{"path": {"type": "path", "path": "/"}, "access": "write"}]}});
    let ask = asked(PERMISSIONS, &wish(&wanted), None);
    let said = json!({"permissions": {"until": "turn", "write": [{"path": "/"}], "read": [],
        "network": true}, "reason": "why not"});
    assert_eq!(ask.input, said);
    let result = |decision| ask.result(&decision).unwrap();
    assert_eq!(
        result(CodexDecision::Once),
        json!({"permissions": wanted, "scope": "turn"})
    );
    assert_eq!(result(CodexDecision::Session)["scope"], "session");
    assert_eq!(result(CodexDecision::Deny)["permissions"], json!({}));
}

#[test]
fn permissions_that_no_sentence_says_whole_are_the_terminals() {
    let entry = |path: Value, access: &str| json!({"fileSystem": {"entries": [{"path": path, "access": access}]}});
    let path = |path: &str| json!({"type": "path", "path": path});
    let many: Vec<_> = (0..9).map(|n| format!("/p{n}")).collect();
    for wanted in [
        json!({}),
        json!({"network": {"enabled": false}}),
        json!({"network": {"enabled": true, "hosts": ["a"]}}),
        json!({"devices": true, "network": {"enabled": true}}),
        json!({"fileSystem": {"write": ["relative"]}}),
        json!({"fileSystem": {"write": ["/a\u{202e}b"]}}),
        json!({"fileSystem": {"write": many}}),
        json!({"fileSystem": {"write": [format!("/{}", "x".repeat(300))]}}),
        entry(path("/a"), "deny"),
        entry(json!({"type": "glob_pattern", "pattern": "/**"}), "write"),
        entry(
            json!({"type": "special", "value": {"kind": "unknown", "path": "x"}}),
            "write",
        ),
    ] {
        let unread = read(&json!(0), PERMISSIONS, &wish(&wanted), None);
        assert_eq!(unread, AskReading::TerminalOnly, "{wanted}");
        let mut params = command("ls");
        params["additionalPermissions"] = wanted.clone();
        let unread = read(&json!(0), COMMAND, &params, None);
        assert_eq!(unread, AskReading::TerminalOnly, "{wanted}");
    }
    let root = entry(
        json!({"type": "special", "value": {"kind": "root"}}),
        "write",
    );
    let ask = asked(PERMISSIONS, &wish(&root), None);
    assert_eq!(ask.input["permissions"]["write"][0]["path"], "/");
}

#[test]
fn what_a_command_gets_besides_is_named_and_a_root_is_the_terminals() {
    let mut params = command("ls");
    params["additionalPermissions"] = json!({"network": {"enabled": true}});
    params["networkApprovalContext"] = json!({"host": "a.example", "protocol": "https"});
    let ask = asked(COMMAND, &params, None);
    assert_eq!(ask.input["permissions"]["until"], "call");
    assert_eq!(ask.input["permissions"]["network"], true);
    assert_eq!(ask.input["connects_to"], "a.example (https)");
    let params = json!({"threadId": "T", "turnId": "U", "itemId": "I", "grantRoot": "/srv"});
    let changes = json!([{"path": "/a", "kind": {"type": "add"}, "diff": "x\n"}]);
    let unread = read(&json!(0), FILE_CHANGE, &params, Some(&changes));
    assert_eq!(unread, AskReading::TerminalOnly);
}

#[test]
fn questions_go_and_come_back_by_their_ids_and_secrets_stay_in_the_terminal() {
    let question = |id: &str, secret: bool| {
        json!({"id": id, "header": "H", "question": "Q?", "isOther": true, "isSecret": secret,
            "options": [{"label": "a", "description": "x"}, {"label": "b", "description": ""}]})
    };
    let mut params = json!({"threadId": "T", "turnId": "U", "itemId": "I", "isBlocking": true,
        "questions": [question("q1", false), question("q2", false)]});
    let ask = asked(USER_INPUT, &params, None);
    let answers = CodexDecision::Answers(vec!["a".to_owned(), "mine".to_owned()]);
    let expected = json!({"answers": {"q1": {"answers": ["a"]}, "q2": {"answers": ["mine"]}}});
    assert_eq!(ask.result(&answers), Some(expected));
    assert_eq!(
        ask.result(&CodexDecision::Answers(vec!["a".to_owned()])),
        None
    );
    params["questions"][1] = question("q2", true);
    assert_eq!(
        read(&json!(0), USER_INPUT, &params, None),
        AskReading::TerminalOnly
    );
}

#[test]
fn an_elicitation_without_a_form_is_a_yes_or_no() {
    let mut params = json!({"threadId": "T", "turnId": null, "serverName": "files", "mode": "form",
        "message": "Allow the tool?", "_meta": {"tool": "rm", "arguments": {"path": "/x"}},
        "requestedSchema": {"type": "object", "properties": {}}});
    let ask = asked(ELICITATION, &params, None);
    assert_eq!(ask.input["_meta"]["arguments"]["path"], "/x");
    assert_eq!(
        ask.result(&CodexDecision::Once).unwrap()["action"],
        "accept"
    );
    assert_eq!(
        ask.result(&CodexDecision::Deny).unwrap()["action"],
        "decline"
    );
    let again = read(&json!(1), ELICITATION, &params, None);
    let AskReading::Ask(again) = again else {
        panic!("{again:?}")
    };
    assert_ne!(ask.name, again.name);
    params["requestedSchema"]["properties"] = json!({"name": {"type": "string"}});
    assert_eq!(
        read(&json!(0), ELICITATION, &params, None),
        AskReading::TerminalOnly,
        "more than a form"
    );
}

#[test]
fn an_mcp_tool_is_named_with_its_arguments() {
    let meta = json!({"codex_approval_kind": "mcp_tool_call", "persist": ["session"],
        "tool_name": "touch", "tool_description": "Makes a file",
        "tool_params": {"path": "/srv/y"}, "tool_params_display": [{"name": "path"}]});
    let mut params = json!({"threadId": "T", "turnId": "U", "serverName": "slow", "mode": "form",
        "_meta": meta, "message": "Allow the slow MCP server to run tool \"touch\"?",
        "requestedSchema": {"type": "object", "properties": {}}});
    let ask = asked(ELICITATION, &params, None);
    assert_eq!(ask.tool, "mcp__slow__touch");
    let named = json!({"arguments": {"path": "/srv/y"}, "description": "Makes a file",
        "message": "Allow the slow MCP server to run tool \"touch\"?"});
    assert_eq!(ask.input, named);
    assert!(ask.interrupts_apart(), "its no does not stop the turn");
    // What is more than a call of a tool is shown as it came.
    params["_meta"]["tool_name"] = json!(7);
    assert_eq!(asked(ELICITATION, &params, None).tool, "mcp__codex");
}

#[test]
fn a_form_is_filled_in_from_a_persons_words() {
    let mut params = json!({"threadId": "T", "turnId": "U", "serverName": "files", "mode": "form",
        "message": "Who are you?", "_meta": null,
        "requestedSchema": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"}, "sure": {"type": "boolean"}}}});
    let ask = asked(ELICITATION, &params, None);
    assert!(ask.is_question() && ask.is_form() && ask.interrupts_apart());
    let words = ["lin", "yes"].map(str::to_owned).to_vec();
    let filled = json!({"action": "accept", "content": {"name": "lin", "sure": true}});
    assert_eq!(ask.result(&CodexDecision::Answers(words)), Some(filled));
    assert_eq!(
        ask.result(&CodexDecision::Once),
        None,
        "a bare yes fills in nothing"
    );
    assert_eq!(
        ask.result(&CodexDecision::Deny).unwrap()["action"],
        "decline"
    );
    params["requestedSchema"]["properties"]["name"] = json!({"type": "object"});
    let strange = read(&json!(0), ELICITATION, &params, None);
    assert_eq!(strange, AskReading::TerminalOnly);
}

#[test]
fn a_request_has_the_same_name_on_every_connection() {
    let params = command("ls");
    let name = |id, params: &Value| match read(&json!(id), COMMAND, params, None) {
        AskReading::Ask(ask) => ask.name,
        other => panic!("{other:?}"),
    };
    assert_eq!(name(0, &params), name(7, &params));
    let mut later = params.clone();
    later["startedAtMs"] = 6.into();
    assert_ne!(name(0, &params), name(0, &later));
}

#[test]
fn requests_that_are_not_for_a_person_are_unknown() {
    for method in [
        "item/tool/call",
        "account/chatgptAuthTokens/refresh",
        "execCommandApproval",
    ] {
        let found = read(&json!(0), method, &json!({"threadId": "T"}), None);
        assert_eq!(found, AskReading::Unknown, "{method}");
    }
    assert_eq!(
        read(&json!(0), COMMAND, &json!({}), None),
        AskReading::Unknown
    );
}
