use super::*;

const THREAD: &str = "t-1";

fn sent(told: &[ChatTold]) -> Vec<Value> {
    let sent = told.iter().filter_map(|told| match told {
        ChatTold::Send(text) => Some(serde_json::from_str(text).unwrap()),
        _ => None,
    });
    sent.collect()
}

fn others(told: Vec<ChatTold>) -> Vec<ChatTold> {
    let mut told = told;
    told.retain(|told| !matches!(told, ChatTold::Send(_)));
    told
}

/// A chat, and what it sent last.
struct Stage {
    chat: CodexChat,
    sent: Vec<Value>,
}

impl Stage {
    fn new(opening: ChatOpening) -> Self {
        let mut chat = CodexChat::new(opening);
        let first = chat.start();
        let mut stage = Self {
            chat,
            sent: sent(&first),
        };
        stage.answers("initialize", &json!({"userAgent": "codex"}));
        stage
    }

    fn fresh(manner: CodexManner) -> Self {
        let cwd = "/srv".to_owned();
        Self::new(ChatOpening::Fresh { cwd, manner })
    }

    fn open(manner: CodexManner) -> Self {
        let mut stage = Self::fresh(manner);
        stage.answers("thread/start", &thread());
        stage
    }

    /// Answers the call of this method that was made last.
    fn answers(&mut self, method: &str, result: &Value) -> Vec<ChatTold> {
        let id = self.id(method);
        self.hears(&json!({"id": id, "result": result}))
    }

    fn refuses(&mut self, method: &str, why: &str) -> Vec<ChatTold> {
        let id = self.id(method);
        self.hears(&json!({"id": id, "error": {"code": -1, "message": why}}))
    }

    #[track_caller]
    fn id(&self, method: &str) -> Value {
        let mut calls = self.sent.iter().rev();
        let call = calls.find(|call| call["method"] == method);
        call.expect(method)["id"].clone()
    }

    fn hears(&mut self, message: &Value) -> Vec<ChatTold> {
        let told = self.chat.heard(&message.to_string());
        self.took(told)
    }

    fn took(&mut self, told: Vec<ChatTold>) -> Vec<ChatTold> {
        self.sent.extend(sent(&told));
        others(told)
    }

    fn notes(&mut self, method: &str, params: Value) -> Vec<ChatTold> {
        let mut params = params;
        params["threadId"] = THREAD.into();
        self.hears(&json!({"method": method, "params": params}))
    }

    fn says(&mut self, tag: &str, text: &str) -> Vec<ChatTold> {
        let told = self.chat.say(tag.to_owned(), text.to_owned());
        self.took(told)
    }

    fn last(&self) -> &Value {
        self.sent.last().unwrap()
    }

    fn begins(&mut self) {
        self.says("w", "go");
        self.answers("turn/start", &json!({"turn": {"id": "u-1"}}));
    }

    fn ends(&mut self, status: &str) -> Vec<ChatTold> {
        self.notes(
            "turn/completed",
            json!({"turn": {"id": "u-1", "status": status}}),
        )
    }
}

fn thread() -> Value {
    json!({"thread": {"id": THREAD, "path": "/r", "status": {"type": "idle"}}, "model": "m",
        "reasoningEffort": "high"})
}

fn over(how: How, text: Option<&str>) -> ChatTold {
    ChatTold::TurnOver {
        how,
        text: text.map(str::to_owned),
    }
}

#[test]
fn words_wait_for_the_thread_then_begin_a_turn_or_go_into_it() {
    let mut stage = Stage::fresh(CodexManner::Reads);
    assert_eq!(stage.says("a", "one"), []);
    assert_eq!(
        stage.last()["method"],
        "thread/start",
        "nothing is said yet"
    );
    let began = stage.answers("thread/start", &thread());
    assert!(matches!(&began[..], [ChatTold::Began { thread, .. }] if thread == THREAD));
    assert_eq!(stage.last()["method"], "turn/start");
    stage.says("b", "two");
    assert_eq!(
        stage.last()["method"],
        "turn/start",
        "the turn has no name yet"
    );
    let taken = stage.answers("turn/start", &json!({"turn": {"id": "u-1"}}));
    assert_eq!(taken, [ChatTold::Taken("a".to_owned())]);
    assert_eq!(stage.last()["method"], "turn/steer");
    assert_eq!(stage.last()["params"]["expectedTurnId"], "u-1");
    // It ended a moment before.
    assert_eq!(stage.ends("completed"), [over(How::Done, None)]);
    assert_eq!(stage.refuses("turn/steer", "no active turn"), []);
    assert_eq!(stage.last()["method"], "turn/start");
    assert_eq!(stage.last()["params"]["input"][0]["text"], "two");
    let told = stage.refuses("turn/start", "not logged in: sk-a1b2c3d4e5f6g7h8i9j0k1l2");
    let why = over(How::Failed, Some("not logged in: ***"));
    assert_eq!(told, [ChatTold::Taken("b".to_owned()), why]);
}

#[test]
fn each_manner_says_how_far_it_goes_and_that_a_person_is_asked() {
    for (manner, policy, sandbox) in [
        (CodexManner::Reads, "on-request", "read-only"),
        (CodexManner::Plans, "on-request", "read-only"),
        (CodexManner::Edits, "on-request", "workspace-write"),
        (CodexManner::Free, "never", "danger-full-access"),
    ] {
        let stage = Stage::fresh(manner);
        let params = &stage.last()["params"];
        assert_eq!(params["approvalPolicy"], policy);
        assert_eq!(params["sandbox"], sandbox);
        assert_eq!(params["approvalsReviewer"], "user");
    }
    let mut stage = Stage::open(CodexManner::Reads);
    let told = stage.chat.order("o".to_owned(), CodexManner::Plans);
    stage.took(told);
    let params = stage.last()["params"].clone();
    assert_eq!(stage.last()["method"], "thread/settings/update");
    assert_eq!(params["collaborationMode"]["mode"], "plan");
    assert_eq!(
        params["collaborationMode"]["settings"]["reasoning_effort"],
        "high"
    );
    assert_eq!(params["sandboxPolicy"], json!({"type": "readOnly"}));
    assert_eq!(params["sandbox"], Value::Null);
    let refused = stage.refuses("thread/settings/update", "no");
    let refused = matches!(
        &refused[..],
        [ChatTold::Ordered {
            refused: Some(_),
            ..
        }]
    );
    assert!(refused);
}

#[test]
fn an_order_during_the_start_is_sent_once_the_thread_is_open() {
    let mut stage = Stage::fresh(CodexManner::Edits);
    let told = stage.chat.order("o".to_owned(), CodexManner::Reads);
    assert_eq!(stage.took(told), [], "nobody has heard it");
    stage.answers("thread/start", &thread());
    assert_eq!(stage.last()["method"], "thread/settings/update");
    let sandbox = &stage.last()["params"]["sandboxPolicy"]["type"];
    assert_eq!(*sandbox, "readOnly");
    let told = stage.answers("thread/settings/update", &json!({}));
    let ordered = ChatTold::Ordered {
        tag: "o".to_owned(),
        refused: None,
    };
    assert_eq!(told, [ordered]);
}

#[test]
fn a_thread_that_is_gone_or_a_codex_that_will_not_begin_is_told() {
    let resume = || ChatOpening::Resume {
        thread: THREAD.to_owned(),
        cwd: "/srv".to_owned(),
        manner: CodexManner::Reads,
    };
    let mut stage = Stage::new(resume());
    let told = stage.refuses("thread/resume", "no rollout found for thread id t-1");
    assert_eq!(told, [ChatTold::Unknown]);
    let mut stage = Stage::new(resume());
    let told = stage.refuses("thread/resume", "disk full");
    assert_eq!(told, [ChatTold::Failed("disk full".to_owned())]);
    let mut stage = Stage::fresh(CodexManner::Plans);
    stage.answers("thread/start", &thread());
    let told = stage.refuses("thread/settings/update", "unknown method");
    assert_eq!(told, [ChatTold::Failed("unknown method".to_owned())]);
}

#[test]
fn the_steps_of_a_turn_are_told_and_a_subagents_are_not() {
    let mut stage = Stage::open(CodexManner::Reads);
    stage.begins();
    let tool = |name: &str, summary: &str| ChatTold::Tool {
        id: "i".to_owned(),
        name: name.to_owned(),
        summary: summary.to_owned(),
    };
    for (item, expected) in [
        (
            json!({"type": "commandExecution", "command": "/bin/bash -lc 'make test'"}),
            Some(tool("Bash", "make test")),
        ),
        (
            json!({"type": "fileChange", "changes": [{"path": "/a"}, {"path": "/b"}]}),
            Some(tool("Patch", "/a +1")),
        ),
        (
            json!({"type": "mcpToolCall", "server": "s", "tool": "t"}),
            Some(tool("mcp__s__t", "")),
        ),
        (json!({"type": "reasoning"}), None),
    ] {
        let mut item = item;
        item["id"] = "i".into();
        let told = stage.notes("item/started", json!({"item": item}));
        assert_eq!(told, expected.into_iter().collect::<Vec<_>>(), "{item}");
    }
    let failed =
        json!({"type": "commandExecution", "id": "i", "status": "completed", "exitCode": 2});
    let told = stage.notes("item/completed", json!({"item": failed}));
    assert_eq!(told, [ChatTold::ToolFailed("i".to_owned())]);
    let said = json!({"type": "agentMessage", "id": "m", "text": "hello"});
    let params = json!({"item": said, "threadId": "another"});
    let other = stage.hears(&json!({"method": "item/completed", "params": params}));
    assert_eq!(other, []);
    let told = stage.notes("item/completed", json!({"item": said}));
    assert_eq!(told, [ChatTold::Words("hello".to_owned())]);
    let plan = json!([{"step": "a", "status": "completed"}, {"step": "b", "status": "inProgress"}]);
    let told = stage.notes("turn/plan/updated", json!({"plan": plan}));
    assert!(matches!(&told[..], [ChatTold::Tool { summary, .. }] if summary == "1/2 b"));
    let error = json!({"error": {"message": "Reconnecting... 2/5"}, "willRetry": true});
    let told = stage.notes("error", error);
    assert_eq!(
        told,
        [ChatTold::Retry {
            attempt: 2,
            most: Some(5)
        }]
    );
    assert_eq!(stage.ends("interrupted"), [over(How::Interrupted, None)]);
}

fn asks(stage: &mut Stage) -> Option<CodexAsk> {
    let params = json!({"threadId": THREAD, "turnId": "u-1", "itemId": "i", "command": "touch a",
        "cwd": "/srv", "availableDecisions": ["accept", "cancel"]});
    let method = "item/commandExecution/requestApproval";
    let told = stage.hears(&json!({"id": 7, "method": method, "params": params}));
    match told.into_iter().next() {
        Some(ChatTold::Asked(ask)) => Some(*ask),
        _ => None,
    }
}

#[test]
fn only_the_decision_that_was_made_is_sent_and_once() {
    let mut stage = Stage::open(CodexManner::Reads);
    stage.begins();
    let ask = asks(&mut stage).unwrap();
    let told = stage.chat.decide("codex-other", &CodexDecision::Once, None);
    assert_eq!(told, []);
    // Codex did not offer this, so nothing is allowed.
    let told = stage.chat.decide(&ask.name, &CodexDecision::Prefix, None);
    assert_eq!(
        sent(&told),
        [json!({"id": 7, "result": {"decision": "decline"}})]
    );
    let told = stage.chat.decide(&ask.name, &CodexDecision::Once, None);
    assert_eq!(told, [], "it has its answer");
    let ask = asks(&mut stage).unwrap();
    let told = stage
        .chat
        .decide(&ask.name, &CodexDecision::Deny, Some("not now"));
    let said = sent(&told);
    assert_eq!(said[0]["result"]["decision"], "decline");
    assert_eq!(said[1]["params"]["input"][0]["text"], "not now");
    let ask = asks(&mut stage).unwrap();
    let resolved = stage.notes("serverRequest/resolved", json!({"requestId": 7}));
    assert_eq!(resolved, [ChatTold::Withdrawn(ask.name.clone())]);
    assert_eq!(stage.chat.decide(&ask.name, &CodexDecision::Once, None), []);
    asks(&mut stage).unwrap();
    stage.ends("completed");
    assert_eq!(
        stage.chat.decide(&ask.name, &CodexDecision::Once, None),
        [],
        "its turn is over"
    );
}

#[test]
fn what_cant_be_shown_is_refused_here_and_left_to_a_terminal() {
    let request =
        json!({"id": 9, "method": "item/new/requestApproval", "params": {"threadId": THREAD}});
    let mut stage = Stage::open(CodexManner::Reads);
    stage.begins();
    assert_eq!(stage.hears(&request), [ChatTold::CannotAsk]);
    assert!(stage.last()["error"]["message"].is_string());
    let mut for_a_program = request.clone();
    for_a_program["method"] = "currentTime/read".into();
    assert_eq!(stage.hears(&for_a_program), []);
    assert!(stage.last()["error"]["message"].is_string());
    let thread_id = THREAD.to_owned();
    let mut beside = Stage::new(ChatOpening::Join { thread: thread_id });
    assert_eq!(
        beside.last()["params"],
        json!({"threadId": THREAD}),
        "its settings hold"
    );
    beside.answers("thread/resume", &thread());
    let before = beside.sent.len();
    assert_eq!(beside.hears(&request), []);
    let mut of_another = request;
    of_another["method"] = "item/commandExecution/requestApproval".into();
    of_another["params"] = json!({"threadId": "another", "command": "touch a"});
    assert_eq!(beside.hears(&of_another), []);
    assert_eq!(beside.sent.len(), before, "nothing was answered");
}

#[test]
fn a_plan_waits_for_a_person_and_is_carried_out_or_changed() {
    let planned = |stage: &mut Stage| {
        let plan = json!({"type": "plan", "id": "p", "text": "# Do it"});
        stage.notes("item/completed", json!({"item": plan}));
        match stage.ends("completed").pop() {
            Some(ChatTold::Planned { name, plan }) if plan == "# Do it" => name,
            other => panic!("{other:?}"),
        }
    };
    let begun = || {
        let mut stage = Stage::open(CodexManner::Plans);
        stage.answers("thread/settings/update", &json!({}));
        stage.begins();
        stage
    };
    let mut stage = begun();
    let name = planned(&mut stage);
    let told = stage.chat.carry_out(&name, CodexManner::Edits);
    let said = sent(&told);
    assert_eq!(said[0]["params"]["collaborationMode"]["mode"], "default");
    assert_eq!(said[0]["params"]["sandboxPolicy"]["type"], "workspaceWrite");
    assert_eq!(said[1]["params"]["input"][0]["text"], "Implement the plan.");
    assert_eq!(stage.chat.carry_out(&name, CodexManner::Edits), [], "once");

    let mut stage = begun();
    let name = planned(&mut stage);
    let told = stage
        .chat
        .decide(&name, &CodexDecision::Deny, Some("smaller"));
    assert_eq!(sent(&told)[0]["params"]["input"][0]["text"], "smaller");

    let mut stage = begun();
    let name = planned(&mut stage);
    let told = stage.chat.decide(&name, &CodexDecision::Deny, None);
    assert_eq!(told, [over(How::Done, None)]);
}
