use super::super::act;
use super::threads::MAX_THREADS;
use super::*;

fn sent(acts: &[CodexAct]) -> Vec<Value> {
    let texts = acts.iter().filter_map(|act| match act {
        CodexAct::Send(text) => Some(serde_json::from_str(text).unwrap()),
        _ => None,
    });
    texts.collect()
}

fn methods(acts: &[CodexAct]) -> Vec<String> {
    let calls = sent(acts).into_iter();
    calls
        .filter_map(|call| Some(call["method"].as_str()?.to_owned()))
        .collect()
}

/// A follower that knows one idle thread.
fn follower() -> Follower {
    let mut follower = Follower::new();
    assert_eq!(methods(&follower.start()), ["initialize"]);
    let acts = follower.heard(r#"{"id":1,"result":{"userAgent":"codex/0.166.0"}}"#);
    assert_eq!(
        methods(&acts),
        ["initialized", "thread/loaded/list", "config/read"]
    );
    let acts = follower.heard(r#"{"id":2,"result":{"data":["T"]}}"#);
    assert_eq!(methods(&acts), ["thread/read"]);
    let thread = json!({"id": "T", "cwd": "/srv", "status": {"type": "idle"}, "ephemeral": false});
    let acts = follower.heard(&json!({"id": 4, "result": {"thread": thread}}).to_string());
    let known = act::ScreenThread {
        id: "T".to_owned(),
        cwd: Some("/srv".to_owned()),
        doing: Doing::Idle,
    };
    assert_eq!(acts, [CodexAct::Thread(known)]);
    follower
}

fn status(follower: &mut Follower, status: &Value) -> Vec<CodexAct> {
    let params = json!({"threadId": "T", "status": status});
    follower.heard(&json!({"method": "thread/status/changed", "params": params}).to_string())
}

fn waits(follower: &mut Follower) -> Vec<CodexAct> {
    status(
        follower,
        &json!({"type": "active", "activeFlags": ["waitingOnApproval"]}),
    )
}

fn request(item: &str) -> String {
    let params = json!({"threadId": "T", "turnId": "U", "itemId": item, "startedAtMs": 1,
        "command": "ls", "cwd": "/srv", "availableDecisions": ["accept", "cancel"]});
    json!({"method": "item/commandExecution/requestApproval", "id": 0, "params": params})
        .to_string()
}

fn name(acts: &[CodexAct]) -> String {
    match acts {
        [CodexAct::Asked(ask)] => ask.name.clone(),
        other => panic!("{other:?}"),
    }
}

const RESOLVED: &str =
    r#"{"method":"serverRequest/resolved","params":{"threadId":"T","requestId":0}}"#;

#[test]
fn a_thread_is_joined_once_while_it_waits_and_left_when_it_is_idle() {
    let mut follower = follower();
    assert_eq!(methods(&waits(&mut follower)), ["thread/resume"]);
    assert_eq!(methods(&waits(&mut follower)), [""; 0]);
    let acts = status(&mut follower, &json!({"type": "idle"}));
    assert_eq!(methods(&acts), ["thread/turns/list", "thread/unsubscribe"]);
}

#[test]
fn the_first_answer_counts_whoever_gives_it() {
    let mut follower = follower();
    waits(&mut follower);
    let name = name(&follower.heard(&request("I")));
    assert_eq!(
        follower.heard(&request("I")),
        [],
        "the same again is no second request"
    );
    assert_eq!(follower.heard(RESOLVED), [CodexAct::Resolved(name.clone())]);
    assert_eq!(
        follower.decide(&name, &CodexDecision::Once, None),
        None,
        "too late"
    );
}

#[test]
fn an_answer_is_sent_once_and_what_became_of_it_is_told() {
    let mut follower = follower();
    waits(&mut follower);
    let name = name(&follower.heard(&request("I")));
    let acts = follower.decide(&name, &CodexDecision::Once, None).unwrap();
    assert_eq!(
        sent(&acts),
        [json!({"id": 0, "result": {"decision": "accept"}})]
    );
    assert_eq!(follower.decide(&name, &CodexDecision::Deny, None), None);
    assert_eq!(follower.heard(RESOLVED), [CodexAct::Taken(name.clone())]);
    let done = json!({"method": "item/completed", "params": {"threadId": "T",
        "item": {"id": "I", "type": "commandExecution", "status": "declined", "durationMs": null}}});
    let became = CodexAct::Became {
        name,
        declined: true,
        took: None,
    };
    assert_eq!(follower.heard(&done.to_string()), [became]);
}

#[test]
fn a_reason_follows_the_refusal_into_the_same_turn() {
    let mut follower = follower();
    waits(&mut follower);
    let name = name(&follower.heard(&request("I")));
    let acts = follower
        .decide(&name, &CodexDecision::Deny, Some("test first"))
        .unwrap();
    let [refusal, steer] = &sent(&acts)[..] else {
        panic!("{acts:?}")
    };
    assert_eq!(refusal["result"]["decision"], "decline");
    assert_eq!(steer["method"], "turn/steer");
    assert_eq!(steer["params"]["expectedTurnId"], "U");
    assert_eq!(steer["params"]["input"][0]["text"], "test first");
}

#[test]
fn a_turn_that_ends_takes_its_requests_with_it() {
    let mut follower = follower();
    waits(&mut follower);
    let name = name(&follower.heard(&request("I")));
    let acts = status(&mut follower, &json!({"type": "idle"}));
    assert!(acts.contains(&CodexAct::Resolved(name)), "{acts:?}");
}

#[test]
fn words_open_a_thread_that_is_not_loaded_and_are_refused_once() {
    let mut follower = follower();
    let acts = follower.say(9, "T", "go on");
    assert_eq!(methods(&acts), ["turn/start"]);
    let refusal =
        |id: &Value| json!({"id": id, "error": {"message": "thread not found"}}).to_string();
    let acts = follower.heard(&refusal(&sent(&acts)[0]["id"]));
    assert_eq!(methods(&acts), ["thread/resume", "turn/start"]);
    let acts = follower.heard(&refusal(&sent(&acts)[1]["id"]));
    let refused = Some("thread not found".to_owned());
    assert_eq!(acts, [CodexAct::Said { tag: 9, refused }]);
}

#[test]
fn the_end_of_a_turn_is_told_and_an_errands_is_not() {
    let mut follower = follower();
    status(&mut follower, &json!({"type": "active", "activeFlags": []}));
    let acts = status(&mut follower, &json!({"type": "idle"}));
    let id = &sent(&acts)[0]["id"];
    let turn = json!({"id": "U", "status": "completed", "durationMs": 7, "items": [
        {"type": "agentMessage", "text": "first"}, {"type": "agentMessage", "text": "last"}]});
    let asked = follower.heard(&json!({"id": id, "result": {"data": [turn]}}).to_string());
    assert_eq!(methods(&asked), ["thread/items/list"]);
    let call = &sent(&asked)[0];
    assert_eq!(call["params"]["turnId"], "U");
    let message = json!({"turnId": "U", "item": {"type": "agentMessage", "text": "last"}});
    let told = json!({"id": call["id"], "result": {"data": [message]}}).to_string();
    let mut over = TurnOver {
        thread: "T".to_owned(),
        cwd: "/srv".to_owned(),
        took: 7,
        failed: false,
        last: Some("last".to_owned()),
        plan: None,
    };
    assert_eq!(follower.heard(&told), [CodexAct::TurnOver(over.clone())]);
    // Its summary does not know of the plan.
    let plan = json!({"turnId": "U", "item": {"type": "plan", "text": "# cut\n"}});
    let told = |items: &Value| json!({"id": 99, "result": {"data": items}}).to_string();
    follower
        .calls
        .insert(99, FollowCall::LastItems(over.clone()));
    over.plan = Some("# cut\n".to_owned());
    let said = follower.heard(&told(&json!([message, plan])));
    assert_eq!(said, [CodexAct::TurnOver(over.clone())]);
    // A Codex that can't tell its items has no plan to show.
    follower.calls.insert(
        99,
        FollowCall::LastItems(TurnOver {
            plan: None,
            ..over.clone()
        }),
    );
    over.plan = None;
    let refused = r#"{"id":99,"error":{"code":-32601,"message":"unknown"}}"#;
    assert_eq!(follower.heard(refused), [CodexAct::TurnOver(over)]);
    let errand = json!({"id": "E", "cwd": "/srv", "ephemeral": true, "threadSource": "thread_title",
        "status": {"type": "active", "activeFlags": []}});
    follower.heard(&json!({"method": "thread/started", "params": {"thread": errand}}).to_string());
    let params = json!({"threadId": "E", "status": {"type": "idle"}});
    let idle = json!({"method": "thread/status/changed", "params": params}).to_string();
    assert_eq!(follower.heard(&idle), []);
}

#[test]
fn who_is_asked_is_told_and_another_protocol_is_named() {
    let mut follower = follower();
    let settings = json!({"approvals_reviewer": "auto_review", "approval_policy": null});
    let told = follower.heard(&json!({"id": 3, "result": {"config": settings}}).to_string());
    let asks = CodexAct::Asks {
        reviewer: Some("auto_review".to_owned()),
        policy: None,
    };
    assert_eq!(told, [asks]);
    for (second, why) in [
        (r#"{"id":2,"result":{"threads":[]}}"#, "no list of threads"),
        (r#"{"id":2,"error":{"message":"unknown"}}"#, "unknown"),
    ] {
        let mut strange = Follower::new();
        strange.start();
        strange.heard(r#"{"id":1,"result":{}}"#);
        assert_eq!(strange.heard(second), [CodexAct::Strange(why.to_owned())]);
    }
}

fn change(item: &str, diff: &str) -> Value {
    json!({"threadId": "T", "itemId": item, "changes":
        [{"path": "/srv/a", "kind": {"type": "add"}, "diff": diff}]})
}

fn change_asked(follower: &mut Follower) -> Vec<CodexAct> {
    let mut started = change("F", "one\n");
    started["item"] = json!({"id": "F", "type": "fileChange", "changes": started["changes"]});
    follower.heard(&json!({"method": "item/started", "params": started}).to_string());
    let params = json!({"threadId": "T", "turnId": "U", "itemId": "F", "startedAtMs": 1});
    let method = "item/fileChange/requestApproval";
    follower.heard(&json!({"method": method, "id": 0, "params": params}).to_string())
}

#[test]
fn a_patch_that_grows_is_asked_anew_and_the_old_yes_counts_no_more() {
    let mut follower = follower();
    waits(&mut follower);
    let before = name(&change_asked(&mut follower));
    let told = |follower: &mut Follower, method: &str, params: &Value| {
        follower.heard(&json!({"method": method, "params": params}).to_string())
    };
    let grown = "item/fileChange/patchUpdated";
    assert_eq!(
        told(&mut follower, grown, &change("F", "one\n")),
        [],
        "no news"
    );
    let acts = told(&mut follower, grown, &change("F", "one\ntwo\n"));
    let [CodexAct::Changed(old), CodexAct::Asked(ask)] = &acts[..] else {
        panic!("{acts:?}")
    };
    assert_eq!(*old, before);
    assert_eq!(ask.input["changes"][0]["diff"], "one\ntwo\n");
    assert_eq!(follower.decide(&before, &CodexDecision::Once, None), None);
    // What nod does not know of is the terminal's.
    let now = ask.name.clone();
    let acts = told(
        &mut follower,
        "item/fileChange/rewritten",
        &json!({"threadId": "T", "itemId": "F"}),
    );
    assert!(
        matches!(&acts[..], [CodexAct::Changed(old), CodexAct::TerminalOnly { known: false, .. }] if *old == now),
        "{acts:?}"
    );
    assert_eq!(follower.decide(&now, &CodexDecision::Once, None), None);
}

#[test]
fn a_call_whose_turn_was_interrupted_is_not_said_to_have_run() {
    for by_summary in [false, true] {
        let mut follower = follower();
        waits(&mut follower);
        let name = name(&follower.heard(&request("I")));
        follower.decide(&name, &CodexDecision::Once, None).unwrap();
        follower.heard(RESOLVED);
        let turn = json!({"id": "U", "status": "interrupted"});
        let acts = if by_summary {
            let acts = status(&mut follower, &json!({"type": "idle"}));
            let id = &sent(&acts)[0]["id"];
            follower.heard(&json!({"id": id, "result": {"data": [turn]}}).to_string())
        } else {
            let params = json!({"threadId": "T", "turn": turn});
            follower.heard(&json!({"method": "turn/completed", "params": params}).to_string())
        };
        assert_eq!(acts, [CodexAct::CutOff(name)]);
    }
}

#[test]
fn a_subagent_is_named() {
    let mut follower = follower();
    let thread = json!({"id": "S", "cwd": "/srv", "parentThreadId": "T", "agentNickname": "Ada",
        "agentRole": "reviewer", "status": {"type": "active", "activeFlags": []}});
    follower.heard(&json!({"method": "thread/started", "params": {"thread": thread}}).to_string());
    let asked = request("I").replace("\"T\"", "\"S\"");
    let acts = follower.heard(&asked);
    let [CodexAct::Asked(ask)] = &acts[..] else {
        panic!("{acts:?}")
    };
    assert_eq!(ask.agent.as_deref(), Some("Ada · reviewer"));
}

#[test]
fn large_items_and_requests_fill_no_memory() {
    let mut follower = follower();
    waits(&mut follower);
    let huge = "x".repeat(3 << 20);
    for n in 0..20 {
        let mut started = change(&format!("F{n}"), &huge);
        started["item"] = json!({"id": format!("F{n}"), "type": "fileChange",
            "changes": started["changes"].take()});
        follower.heard(&json!({"method": "item/started", "params": started}).to_string());
        let params = json!({"threadId": "T", "itemId": format!("i{n}"), "command": huge});
        let method = "item/commandExecution/requestApproval";
        follower.heard(&json!({"method": method, "id": n, "params": params}).to_string());
    }
    let asked: usize = follower.open.iter().map(|open| weight(&open.params)).sum();
    let remembered: usize = follower.threads.values().map(|it| it.changes.bytes()).sum();
    assert!(
        asked <= MAX_ALL_ASKED && remembered < MAX_ASKED,
        "{asked} {remembered}"
    );
    let acts = {
        let params = json!({"threadId": "T", "turnId": "U", "itemId": "F19"});
        let method = "item/fileChange/requestApproval";
        follower.heard(&json!({"method": method, "id": 99, "params": params}).to_string())
    };
    assert!(
        !acts.iter().any(|act| matches!(act, CodexAct::Asked(_))),
        "{acts:?}"
    );
}

#[test]
fn noise_and_floods_are_bounded() {
    let mut follower = follower();
    for text in [
        "",
        "{}",
        "[1]",
        r#"{"id":99,"result":{}}"#,
        r#"{"method":"x","params":[]}"#,
    ] {
        assert_eq!(follower.heard(text), [], "{text}");
    }
    for n in 0..2_000 {
        let thread = json!({"id": format!("t{n}"), "status": {"type": "idle"}});
        follower
            .heard(&json!({"method": "thread/started", "params": {"thread": thread}}).to_string());
        let params = json!({"threadId": "T", "itemId": format!("i{n}"), "command": "ls"});
        let method = "item/commandExecution/requestApproval";
        follower.heard(&json!({"method": method, "id": n, "params": params}).to_string());
    }
    assert!(follower.threads.len() <= MAX_THREADS && follower.open.len() <= MAX_OPEN);
}
