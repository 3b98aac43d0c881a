//! What each agent is started with, and a session with Codex.

use super::*;

/// Codex in a session of a chat, whose thread is written down in this file.
async fn codex(bench: &DaemonBench, file: &str) -> (SessionOwner, PlayedChild<PipeHeard>) {
    let (wire, mut played) = child(64);
    let opening = ChatOpening::Fresh {
        cwd: bench.shop().to_string_lossy().into_owned(),
        manner: CodexManner::Reads,
    };
    let driver = CodexDriver::over(wire, opening, None);
    let hand = (Agent::Codex, Hand::Codex(Box::new(driver)));
    let (mut owner, _orders) = owner(bench, SessionLimits::default(), hand).await;
    let thread = json!({"id": "t-1", "path": file, "status": {"type": "idle"}});
    for (method, result) in [
        ("initialize", json!({})),
        ("thread/start", json!({"thread": thread})),
        ("turn/start", json!({"turn": {"id": "u-1"}})),
    ] {
        loop {
            let call = tokio::select! {
                call = played.hears() => call,
                (child, event) = next(&mut owner.child) => {
                    owner.feed(SessionInput::Child { child, event }).await;
                    continue;
                }
            };
            if call["method"] == method {
                let answer = json!({"id": call["id"], "result": result});
                let heard = PipeHeard::Text(answer.to_string());
                played.says.send(heard).await.unwrap();
                break;
            }
        }
    }
    (owner, played)
}

#[tokio::test]
async fn codex_runs_what_a_person_allowed_and_knows_what_it_leaves() {
    let bench = DaemonBench::new().await;
    let (owner, mut played) = codex(&bench, "/r").await;
    let number = owner.number;
    let stop = CancellationToken::new();
    let task = tokio::spawn(owner.run(stop.clone()));
    for (id, allows, answer) in [(10, true, "acceptForSession"), (11, false, "decline")] {
        let asked = json!({"id": id, "method": "item/commandExecution/requestApproval",
            "params": {"threadId": "t-1", "turnId": "u-1", "itemId": format!("i-{id}"),
                "command": "ls", "availableDecisions": ["accept", "acceptForSession"]}});
        let heard = PipeHeard::Text(asked.to_string());
        played.says.send(heard).await.unwrap();
        bench.until(|bench| bench.cards.desk.pending() == 1).await;
        let request = bench.cards.desk.all_pending().remove(0);
        assert!(
            request
                .id
                .as_str()
                .starts_with(&format!("s{number}.codex-"))
        );
        let AskingAgent::Codex(leaves) = &request.origin.caller.agent else {
            panic!("{request:?}");
        };
        assert!(leaves.session, "it offers that itself");
        let courier = &bench.cards.courier;
        let shown = |_: &DaemonBench| courier.message_of(&request.id).is_some();
        bench.until(shown).await;
        let choice = if allows {
            Choice::Allow(Reach::Session(Vec::new()))
        } else {
            deny("not now")
        };
        let decider = &bench.taps.decider;
        decision::by_reply(decider, &request.id, choice, sample::by(), None).await;
        let line = played.hears().await;
        assert_eq!(line["id"], id);
        assert_eq!(line["result"]["decision"], answer);
    }
    stop.cancel();
    task.await.unwrap();
}

#[tokio::test]
async fn a_conversation_that_went_on_elsewhere_is_noticed_by_its_file() {
    let bench = DaemonBench::new().await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t-1.jsonl");
    std::fs::write(&file, "one\n").unwrap();
    let (mut owner, _played) = codex(&bench, &file.to_string_lossy()).await;
    assert!(!owner.went_on().await, "its turn runs");
    let event = AgentEvent::Said(turn_end(How::Done, "over"));
    owner.feed(SessionInput::Child { child: 1, event }).await;
    let uuid = "w-1".to_owned();
    let stage = TextStage::Started;
    let event = AgentEvent::Said(AgentSaid::Text { uuid, stage });
    let now = owner.sessions.now();
    owner
        .session
        .on(SessionInput::Child { child: 1, event }, now);
    assert!(owner.session.rests());
    tokio::time::pause();
    for grown in [false, true] {
        owner.note_rest();
        owner.note_rest();
        tokio::time::sleep(Duration::from_secs(10)).await;
        if grown {
            std::fs::write(&file, "one\ntwo\n").unwrap();
        }
        assert_eq!(owner.went_on().await, grown);
    }
    assert!(!owner.went_on().await, "it is told once");
}

#[tokio::test]
async fn a_thread_that_a_terminal_has_left_is_taken_up_anew() {
    let bench = DaemonBench::new().await;
    let (wire, _played) = child(64);
    let thread = "t-1".to_owned();
    let hosted = bench.chat.sessions.codex.host(&thread).await;
    let opening = ChatOpening::Join { thread };
    let driver = CodexDriver::over(wire, opening, Some(hosted));
    let hand = (Agent::Codex, Hand::Codex(Box::new(driver)));
    let (mut owner, _orders) = owner(&bench, SessionLimits::default(), hand).await;
    assert!(!owner.went_on().await, "a turn is never cut off");
    let event = AgentEvent::Said(turn_end(How::Done, "over"));
    let now = owner.sessions.now();
    owner
        .session
        .on(SessionInput::Child { child: 1, event }, now);
    assert!(owner.session.rests());
    owner.note_rest();
    assert!(owner.left.is_none(), "it hears what the terminal does");
    assert!(owner.went_on().await, "no terminal has it open");
}

#[tokio::test]
async fn claude_code_asks_unless_both_settings_say_otherwise() {
    let both = [
        ("TOOL_APPROVAL_ENABLED", "false"),
        ("NOD_ALLOW_BYPASS", "true"),
    ];
    for (settings, permissions) in [
        (&both[..0], Permissions::Ask(Mode::Plan)),
        (&both[..1], Permissions::Ask(Mode::Plan)),
        (&both[1..], Permissions::Ask(Mode::Plan)),
        (&both[..], Permissions::Bypass),
    ] {
        let bench = DaemonBench::with(settings).await;
        let (wire, _played) = child(1);
        let hand = (Agent::Claude, Hand::claude(wire));
        let (owner, _orders) = owner(&bench, SessionLimits::default(), hand).await;
        let opening = Opening::Resume(SessionId::parse("s1").unwrap());
        let launch = owner.claude_launch(&opening, Mode::Plan);
        let asks = arguments(&opening, &permissions);
        assert_eq!(launch.arguments, asks, "{settings:?}");
        assert_eq!(launch.project, bench.shop());
        assert!(launch.guard.is_some(), "it does not outlive nod");
        let (_, codex) = owner.codex_launch(None, Mode::Plan);
        let free = permissions == Permissions::Bypass;
        let manner = if free {
            CodexManner::Free
        } else {
            CodexManner::Plans
        };
        let cwd = bench.shop().to_string_lossy().into_owned();
        assert_eq!(codex, ChatOpening::Fresh { cwd, manner });
    }
}

#[tokio::test]
async fn codex_is_started_in_the_home_that_holds_the_thread() {
    let bench = DaemonBench::with(&[("NOD_CODEX", "/codex/a,/codex/b")]).await;
    let (wire, _played) = child(1);
    let hand = (Agent::Codex, Hand::claude(wire));
    let (owner, _orders) = owner(&bench, SessionLimits::default(), hand).await;
    for (kept, home) in [
        (None, "/codex/a"),
        (Some("/codex/b"), "/codex/b"),
        (Some("/elsewhere"), "/codex/a"),
    ] {
        let sessions = &bench.chat.sessions;
        let kept = kept.map(PathBuf::from);
        sessions.change(owner.number, |entry| entry.kept.home = kept);
        let thread = Some("t-1".to_owned());
        let (launch, opening) = owner.codex_launch(thread.clone(), Mode::Default);
        let homes = launch.environment.iter();
        let homes: Vec<_> = homes.filter(|(name, _)| name == "CODEX_HOME").collect();
        assert_eq!(homes.len(), 1, "once");
        assert_eq!(homes[0].1, home);
        let resumes = matches!(opening, ChatOpening::Resume { thread, .. } if thread == "t-1");
        assert!(resumes);
    }
}
