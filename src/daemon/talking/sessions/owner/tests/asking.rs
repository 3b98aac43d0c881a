//! What a session's child asks, and what it is answered.

use super::*;

/// What a child was answered.
fn response(line: &Value) -> &Value {
    &line["response"]["response"]
}

#[tokio::test]
async fn a_call_waits_for_a_person_and_runs_exactly_as_it_was_shown() {
    let mut it = Owned::works(SessionLimits::default()).await;
    let id = it.asks("r-1", "Bash", ls()).await;
    assert_eq!(it.status(), SessionStatus::WaitingForConfirmation);
    let asked = it.bench.cards.desk.find(&id).unwrap();
    assert!(asked.origin.hosted, "no terminal has it");
    assert_eq!(asked.origin.session, SessionId::parse("s1").ok());
    let calls = it.bench.bench.calls();
    let (path, body) = calls.last().unwrap();
    assert!(path.ends_with("om_s1/reply"), "in its own thread: {path}");
    assert_eq!(body["reply_in_thread"], true);
    assert!(it.played.told.is_empty(), "nothing is answered yet");
    let decided = it.decides(&id, Choice::Allow(Reach::Once)).await;
    assert!(matches!(decided, Outcome::Decided(it) if it.delivery == Delivery::Confirmed));
    let line = it.played.hears().await;
    assert_eq!(line["response"]["request_id"], "r-1");
    let allow = json!({"behavior": "allow", "updatedInput": ls()});
    assert_eq!(response(&line), &allow);
    it.bench
        .until(|_| it.status() == SessionStatus::Executing)
        .await;
}

#[tokio::test]
async fn a_refusal_goes_to_the_model_in_a_persons_words() {
    let mut it = Owned::works(SessionLimits::default()).await;
    let id = it.asks("r-1", "Bash", ls()).await;
    it.decides(&id, deny("use make")).await;
    let line = it.played.hears().await;
    let wanted = json!({"behavior": "deny", "message": "use make"});
    assert_eq!(response(&line), &wanted);
    let again = it.decides(&id, Choice::Allow(Reach::Once)).await;
    assert!(matches!(again, Outcome::Refused(_)));
    assert!(it.played.told.is_empty(), "decided once");
}

#[tokio::test]
async fn a_request_that_the_child_takes_back_is_over_for_everybody() {
    let it = Owned::works(SessionLimits::default()).await;
    let id = it.asks("r-1", "Bash", ls()).await;
    let request = "r-1".to_owned();
    it.says(AgentSaid::Withdrawn { request }).await;
    it.bench
        .until(|bench| bench.cards.desk.find(&id).is_none())
        .await;
    let late = it.decides(&id, Choice::Allow(Reach::Once)).await;
    assert!(matches!(late, Outcome::Refused(_)));
    assert!(it.played.told.is_empty());
    assert!(it.on_disk().await.saved.asks.is_empty());
}

#[tokio::test]
async fn what_nobody_answers_in_time_is_refused_and_told() {
    for (tool, input, interrupts, notice) in [
        (
            "Bash",
            ls(),
            false,
            Notice::ApprovalTimedOut {
                tool: "Bash".to_owned(),
            },
        ),
        (
            QUESTIONS,
            json!({"questions": [{"question": "Which port?", "header": "Port",
                "options": [{"label": "80", "description": ""},
                    {"label": "8080", "description": ""}], "multiSelect": false}]}),
            true,
            Notice::QuestionTimedOut,
        ),
    ] {
        let mut it = Owned::works(SessionLimits {
            approval: 50,
            question: 50,
            ..SessionLimits::default()
        })
        .await;
        it.says(request("r-1", tool, input)).await;
        let line = it.played.hears().await;
        let answer = response(&line);
        assert_eq!(answer["behavior"], "deny");
        assert_eq!(answer["interrupt"] == true, interrupts, "{tool}");
        let message = answer["message"].as_str().unwrap();
        assert!(message.starts_with("Nobody answered"), "{message}");
        it.told(&notice).await;
        assert_eq!(it.bench.cards.desk.pending(), 0);
    }
}

#[tokio::test]
async fn a_request_that_cannot_be_put_to_anybody_is_refused_and_told() {
    let mut it = Owned::works(SessionLimits::default()).await;
    // Too long a name for the desk, which puts the session's before it.
    let name = "r".repeat(128);
    it.says(request(&name, "Bash", ls())).await;
    let line = it.played.hears().await;
    assert_eq!(line["response"]["request_id"], name);
    assert_eq!(response(&line)["behavior"], "deny");
    let tool = Some("Bash".to_owned());
    it.told(&Notice::NotBrought { tool }).await;
    assert_eq!(it.bench.cards.desk.pending(), 0);
    assert_eq!(it.status(), SessionStatus::Executing, "its turn goes on");
}

#[tokio::test]
async fn a_mode_is_ordered_and_a_refusal_of_it_told() {
    let mut it = Owned::works(SessionLimits::default()).await;
    let id = it.asks("r-1", "Bash", ls()).await;
    it.orders(SessionCommand::Mode(Mode::AcceptEdits)).await;
    let line = it.played.hears().await;
    let denied = response(&line);
    assert_eq!(denied["behavior"], "deny", "a command came instead");
    assert!(it.bench.cards.desk.find(&id).is_none());
    let order = it.played.hears().await;
    assert_eq!(order["request"]["mode"], "acceptEdits");
    it.told(&Notice::Mode(Mode::AcceptEdits)).await;
    assert_eq!(it.on_disk().await.saved.mode, Mode::AcceptEdits);
    it.says(AgentSaid::Reply(crate::talk::AgentReply {
        request: order["request_id"].as_str().unwrap().to_owned(),
        error: Some("no".to_owned()),
    }))
    .await;
    it.told(&Notice::ModeRefused(Mode::AcceptEdits)).await;
}

#[tokio::test]
async fn a_decision_that_came_too_late_for_the_child_is_no_success() {
    let bench = DaemonBench::new().await;
    let (wire, _played) = child(64);
    let hand = (Agent::Claude, Hand::claude(wire));
    let (mut owner, _orders) = owner(&bench, SessionLimits::default(), hand).await;
    let said = AgentEvent::Said(request("r-1", "Bash", ls()));
    let input = SessionInput::Child {
        child: 1,
        event: said,
    };
    owner.feed(input).await;
    let ask = RequestId::parse("r-1").unwrap();
    let id = asks::desk_id(owner.number, &ask).unwrap();
    let (decider, by) = (Arc::clone(&bench.taps), sample::by());
    let allow = tokio::spawn(async move {
        let allow = Choice::Allow(Reach::Once);
        decision::by_reply(&decider.decider, &id, allow, by, None).await
    });
    let (ask, handed) = owner.asks.join_next().await.unwrap().unwrap();
    // The session has given it up a moment ago.
    let withdrawn = AgentSaid::Withdrawn {
        request: "r-1".to_owned(),
    };
    let event = AgentEvent::Said(withdrawn);
    let now = owner.sessions.now();
    owner
        .session
        .on(SessionInput::Child { child: 1, event }, now);
    owner.answered(ask, handed).await;
    let outcome = allow.await.unwrap();
    assert!(matches!(outcome, Outcome::Decided(it) if it.delivery == Delivery::Lost));
}
