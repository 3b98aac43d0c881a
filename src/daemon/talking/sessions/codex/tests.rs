mod deciding;

use super::*;
use crate::child::process::ChildEnd;
use crate::daemon::asking::codex::CodexLinks;
use crate::daemon::talking::sessions::bench::{PlayedChild, child};
use crate::talk::How;
use tokio::time::timeout;

const THREAD: &str = "t-1";

/// A driver, Codex at the other end, and what was sent to it so far.
struct Codex {
    driver: CodexDriver,
    played: PlayedChild<PipeHeard>,
    sent: Vec<Value>,
}

impl Codex {
    async fn with(opening: ChatOpening, hosted: Option<Hosted>) -> Self {
        let (wire, played) = child(64);
        let mut codex = Self {
            driver: CodexDriver::over(wire, opening, hosted),
            played,
            sent: Vec::new(),
        };
        assert_eq!(codex.events().await, []);
        codex
    }

    /// A thread of its own that has begun.
    async fn begun(manner: CodexManner) -> Self {
        let mut codex = Self::with(fresh(manner), None).await;
        codex.answers("initialize", &json!({})).await;
        codex.answers("thread/start", &thread()).await;
        if manner == CodexManner::Plans {
            codex.answers("thread/settings/update", &json!({})).await;
        }
        codex
    }

    /// One whose turn `u-1` runs.
    async fn works(manner: CodexManner) -> Self {
        let mut codex = Self::begun(manner).await;
        codex.is_told(text("w-1", "go")).await;
        let turn = json!({"turn": {"id": "u-1"}});
        codex.answers("turn/start", &turn).await;
        codex
    }

    /// All that there is to hear now; what is to be sent is sent meanwhile.
    async fn events(&mut self) -> Vec<AgentEvent> {
        let mut all = Vec::new();
        while let Ok(event) = timeout(Duration::from_millis(2), self.driver.next()).await {
            all.push(event);
        }
        while let Ok(line) = self.played.told.try_recv() {
            self.sent.push(serde_json::from_str(&line).unwrap());
        }
        all
    }

    async fn hears(&mut self, heard: PipeHeard) -> Vec<AgentEvent> {
        self.played.says.send(heard).await.unwrap();
        self.events().await
    }

    async fn says(&mut self, message: &Value) -> Vec<AgentEvent> {
        self.hears(PipeHeard::Text(message.to_string())).await
    }

    async fn notes(&mut self, method: &str, mut params: Value) -> Vec<AgentEvent> {
        params["threadId"] = THREAD.into();
        self.says(&json!({"method": method, "params": params}))
            .await
    }

    /// Answers the call of this method that was made last.
    async fn answers(&mut self, method: &str, result: &Value) -> Vec<AgentEvent> {
        let id = self.call(method)["id"].clone();
        self.says(&json!({"id": id, "result": result})).await
    }

    async fn refuses(&mut self, method: &str, why: &str) -> Vec<AgentEvent> {
        let id = self.call(method)["id"].clone();
        self.says(&json!({"id": id, "error": {"code": -1, "message": why}}))
            .await
    }

    /// It asks for something under this number; the name of the request.
    async fn asks(&mut self, id: i64, method: &str, mut params: Value) -> AgentRequest {
        if params["threadId"].is_null() {
            params["threadId"] = THREAD.into();
        }
        params["turnId"] = "u-1".into();
        let asked = json!({"id": id, "method": method, "params": params});
        let mut events = self.says(&asked).await;
        match events.pop() {
            Some(AgentEvent::Said(AgentSaid::Request(request))) => request,
            other => panic!("{other:?}"),
        }
    }

    async fn asks_to_run(&mut self, id: i64) -> String {
        let params = json!({"itemId": format!("i-{id}"), "command": "ls",
            "availableDecisions": ["accept", "acceptForSession", "cancel"]});
        self.asks(id, "item/commandExecution/requestApproval", params)
            .await
            .id
    }

    async fn is_told(&mut self, say: Say) -> Vec<AgentEvent> {
        self.driver.tell(say);
        self.events().await
    }

    #[track_caller]
    fn call(&self, method: &str) -> &Value {
        let mut calls = self.sent.iter().rev();
        calls.find(|call| call["method"] == method).expect(method)
    }

    fn calls(&self, method: &str) -> usize {
        let calls = self.sent.iter();
        calls.filter(|call| call["method"] == method).count()
    }

    /// What the request of this number was answered with.
    #[track_caller]
    fn result(&self, id: i64) -> &Value {
        let answers = self.sent.iter().filter(|sent| sent.get("method").is_none());
        let mut answers = answers.filter(|sent| sent["id"] == id);
        let answer = &answers.next().expect("it is answered")["result"];
        assert_eq!(answers.next(), None, "once");
        answer
    }

    fn is_closed(&self) -> bool {
        self.played.stop.is_cancelled()
    }

    async fn ends(&mut self, end: ChildEnd) -> Vec<AgentEvent> {
        self.hears(PipeHeard::Ended(end)).await
    }
}

fn fresh(manner: CodexManner) -> ChatOpening {
    let cwd = "/srv".to_owned();
    ChatOpening::Fresh { cwd, manner }
}

fn thread() -> Value {
    json!({"thread": {"id": THREAD, "path": "/r/t-1.jsonl", "status": {"type": "idle"}},
        "model": "m"})
}

fn text(uuid: &str, text: &str) -> Say {
    Say::Text {
        uuid: uuid.to_owned(),
        text: text.to_owned(),
    }
}

fn said(said: AgentSaid) -> Vec<AgentEvent> {
    vec![AgentEvent::Said(said)]
}

fn message(text: &str, calls: &[(&str, &str)]) -> Vec<AgentEvent> {
    let calls = calls.iter().map(|(tool, summary)| ShownCall {
        id: "i-1".to_owned(),
        tool: (*tool).to_owned(),
        summary: (*summary).to_owned(),
    });
    said(AgentSaid::Message(AgentMessage {
        text: text.to_owned(),
        calls: calls.collect(),
        subagent: false,
    }))
}

fn turn_end(how: How, text: Option<&str>) -> Vec<AgentEvent> {
    said(AgentSaid::TurnEnd(Box::new(TurnEnd {
        how,
        text: text.map(str::to_owned),
        turns: 1,
        ..TurnEnd::default()
    })))
}

fn allow() -> ToolVerdict {
    ToolVerdict::Allow {
        input: json!({}),
        updates: Vec::new(),
    }
}

fn verdict(name: &str, verdict: ToolVerdict) -> Say {
    let request = name.to_owned();
    Say::Verdict { request, verdict }
}

fn over(code: Option<i32>, errors: &str) -> ChildEnd {
    ChildEnd::Over {
        code,
        killed: false,
        errors: errors.to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_told_in_the_words_that_sessions_know() {
    let mut codex = Codex::with(fresh(CodexManner::Reads), None).await;
    codex.is_told(text("w-1", "run the tests")).await;
    codex.answers("initialize", &json!({})).await;
    let began = Began {
        session: SessionId::parse(THREAD).ok(),
        model: Some("m".to_owned()),
        mode: None,
    };
    let heard = codex.answers("thread/start", &thread()).await;
    assert_eq!(heard, said(AgentSaid::Began(began)));
    assert_eq!(codex.driver.path(), Some(Path::new("/r/t-1.jsonl")));
    let words = &codex.call("turn/start")["params"]["input"][0]["text"];
    assert_eq!(words, "run the tests", "they waited for the thread");
    let turn = json!({"turn": {"id": "u-1"}});
    let heard = codex.answers("turn/start", &turn).await;
    let (uuid, stage) = ("w-1".to_owned(), TextStage::Started);
    assert_eq!(heard, said(AgentSaid::Text { uuid, stage }));
    let long = format!("cargo test {}", "x".repeat(MAX_SUMMARY));
    let item = json!({"id": "i-1", "type": "commandExecution", "command": long});
    let heard = codex.notes("item/started", json!({"item": item})).await;
    let cut = clean(&long, MAX_SUMMARY);
    assert!(cut.chars().count() <= MAX_SUMMARY);
    assert_eq!(heard, message("", &[("Bash", &cut)]));
    let failed = json!({"id": "i-1", "type": "commandExecution", "exitCode": 1});
    let heard = codex.notes("item/completed", json!({"item": failed})).await;
    let (id, failed) = ("i-1".to_owned(), true);
    assert_eq!(
        heard,
        said(AgentSaid::CallEnds(vec![CallEnd { id, failed }]))
    );
    let error = json!({"willRetry": true, "error": {"message": "Reconnecting... 2/5"}});
    let heard = codex.notes("error", error).await;
    let (attempt, most, status) = (2, Some(5), None);
    let retry = ModelRetry {
        attempt,
        most,
        status,
    };
    assert_eq!(heard, said(AgentSaid::Retry(retry)));
    let item = json!({"id": "i-2", "type": "agentMessage", "text": "one test fails"});
    let heard = codex.notes("item/completed", json!({"item": item})).await;
    assert_eq!(heard, message("one test fails", &[]));
    let turn = json!({"turn": {"id": "u-1", "status": "completed"}});
    let heard = codex.notes("turn/completed", turn).await;
    assert_eq!(heard, turn_end(How::Done, None));
}

#[tokio::test(start_paused = true)]
async fn a_child_is_written_lines_and_a_daemon_whole_messages() {
    let (wire, mut own) = child(8);
    let mut driver = CodexDriver::over(wire, fresh(CodexManner::Reads), None);
    assert!(!driver.is_beside());
    let line = timeout(INTERRUPT, async {
        tokio::select! {
            line = own.told.recv() => line,
            event = driver.next() => panic!("{event:?}"),
        }
    });
    let line = line.await.unwrap().unwrap();
    assert!(line.ends_with("}\n") && line.matches('\n').count() == 1);
    let (wire, mut daemons) = child(8);
    let join = ChatOpening::Join {
        thread: THREAD.to_owned(),
    };
    let hosted = CodexLinks::default().host(THREAD).await;
    let mut driver = CodexDriver::over(wire, join, Some(hosted));
    assert!(driver.is_beside());
    let message = tokio::select! {
        message = daemons.told.recv() => message.unwrap(),
        event = driver.next() => panic!("{event:?}"),
    };
    assert!(message.ends_with('}'), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_mode_is_an_order_that_codex_may_refuse() {
    let mut codex = Codex::works(CodexManner::Reads).await;
    let order = |mode| Say::SetMode {
        request: "nod-1".to_owned(),
        mode,
    };
    assert_eq!(codex.is_told(order(Mode::Plan)).await, []);
    let update = &codex.call("thread/settings/update")["params"];
    assert_eq!(update["collaborationMode"]["mode"], "plan");
    let heard = codex.refuses("thread/settings/update", "not now").await;
    let (request, error) = ("nod-1".to_owned(), Some("not now".to_owned()));
    assert_eq!(heard, said(AgentSaid::Reply(AgentReply { request, error })));
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_stopped_is_interrupted_by_name_and_has_a_while_to_end() {
    let mut codex = Codex::works(CodexManner::Reads).await;
    codex.driver.stop();
    assert_eq!(codex.events().await, []);
    assert_eq!(codex.call("turn/interrupt")["params"]["turnId"], "u-1");
    assert!(!codex.is_closed(), "it may say how its turn ended");
    let turn = json!({"turn": {"id": "u-1", "status": "interrupted"}});
    let heard = codex.notes("turn/completed", turn).await;
    assert_eq!(heard, turn_end(How::Interrupted, None));
    assert!(codex.is_closed());
    let end = AgentEvent::Ended(Exit::Finished);
    assert_eq!(codex.ends(over(Some(0), "")).await, [end]);
}

#[tokio::test(start_paused = true)]
async fn one_that_does_not_hear_the_interrupt_is_ended_all_the_same() {
    let mut codex = Codex::works(CodexManner::Reads).await;
    codex.driver.stop();
    let since = Instant::now();
    let waits = timeout(INTERRUPT * 9 / 10, codex.driver.next());
    assert!(waits.await.is_err());
    assert!(!codex.is_closed());
    let waits = timeout(INTERRUPT / 5, codex.driver.next());
    assert!(waits.await.is_err());
    assert!(codex.is_closed() && since.elapsed() < 2 * INTERRUPT);
}

#[tokio::test(start_paused = true)]
async fn one_that_rests_or_whose_turn_has_no_name_yet_is_ended_at_once() {
    let mut rests = Codex::begun(CodexManner::Reads).await;
    rests.driver.stop();
    assert_eq!(rests.events().await, []);
    assert!(rests.is_closed());
    assert_eq!(rests.calls("turn/interrupt"), 0);
    let mut begins = Codex::begun(CodexManner::Reads).await;
    begins.is_told(text("w-1", "go")).await;
    begins.driver.stop();
    assert_eq!(begins.events().await, []);
    assert!(begins.is_closed());
}

#[tokio::test(start_paused = true)]
async fn why_a_thread_did_not_begin_is_told_by_its_end() {
    let resume = || ChatOpening::Resume {
        thread: THREAD.to_owned(),
        cwd: "/srv".to_owned(),
        manner: CodexManner::Reads,
    };
    let problem = "bad\u{1b} config".to_owned();
    for (why, exit) in [
        ("no rollout found for t-1", Exit::UnknownSession),
        (
            problem.as_str(),
            Exit::NotStarted {
                problem: clean(&problem, MAX_SUMMARY),
            },
        ),
    ] {
        let mut codex = Codex::with(resume(), None).await;
        codex.answers("initialize", &json!({})).await;
        assert_eq!(codex.refuses("thread/resume", why).await, []);
        assert!(codex.is_closed());
        let heard = codex.ends(over(Some(0), "")).await;
        assert_eq!(heard, [AgentEvent::Ended(exit)]);
    }
}

#[tokio::test(start_paused = true)]
async fn its_end_and_what_was_too_long_are_told() {
    let mut codex = Codex::works(CodexManner::Reads).await;
    let (bytes, request) = (20 << 20, None);
    let heard = codex.hears(PipeHeard::TooLong(bytes)).await;
    assert_eq!(heard, [AgentEvent::TooLong { bytes, request }]);
    let crashed = Exit::Crashed {
        code: Some(2),
        words: Some("no such key".to_owned()),
    };
    let heard = codex.ends(over(Some(2), "no such key")).await;
    assert_eq!(heard, [AgentEvent::Ended(crashed)]);
    for (end, exit) in [
        (ChildEnd::NotInstalled, Exit::NotInstalled),
        (ChildEnd::ProjectGone, Exit::ProjectGone),
    ] {
        let mut codex = Codex::with(fresh(CodexManner::Reads), None).await;
        assert_eq!(codex.ends(end).await, [AgentEvent::Ended(exit)]);
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_reads_no_more_is_still_heard() {
    let mut codex = Codex::works(CodexManner::Reads).await;
    codex.played.told.close();
    codex.is_told(text("w-2", "more")).await;
    let heard = codex.ends(over(None, "")).await;
    let (code, words) = (None, None);
    let end = AgentEvent::Ended(Exit::Crashed { code, words });
    assert_eq!(heard, [end]);
}

#[test]
fn every_mode_has_its_manner_and_none_is_free() {
    for (mode, wanted) in [
        (Mode::Default, CodexManner::Reads),
        (Mode::AcceptEdits, CodexManner::Edits),
        (Mode::Plan, CodexManner::Plans),
    ] {
        assert_eq!(manner(mode), wanted);
    }
}

#[test]
fn a_child_of_its_own_is_codexs_server_in_the_project() {
    let environment = vec![("CODEX_HOME".into(), "/h".into())];
    let made = launch(Path::new("codex"), Path::new("/srv"), environment.clone());
    assert_eq!(made.program, Path::new("codex"));
    assert_eq!(made.arguments, ["app-server"]);
    assert_eq!(made.project, Path::new("/srv"));
    assert_eq!(made.environment, environment);
    assert!(made.guard.is_some(), "it does not outlive nod");
}
