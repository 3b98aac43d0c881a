//! What a person decided, in Codex's words.

use super::*;

#[tokio::test(start_paused = true)]
async fn nothing_passes_that_no_person_allowed() {
    let deny = || ToolVerdict::deny("not now");
    let stop = || ToolVerdict::Deny {
        message: "stop it".to_owned(),
        interrupt: true,
    };
    let because = || Some("use make".to_owned());
    let mut codex = Codex::works(CodexManner::Reads).await;
    let cases = [
        (allow(), None, "decline", None),
        (allow(), Some((CodexDecision::Once, None)), "accept", None),
        (
            allow(),
            Some((CodexDecision::Session, None)),
            "acceptForSession",
            None,
        ),
        (
            allow(),
            Some((CodexDecision::Prefix, None)),
            "decline",
            None,
        ),
        (deny(), None, "decline", Some("not now")),
        (stop(), None, "cancel", None),
        (
            deny(),
            Some((CodexDecision::Deny, because())),
            "decline",
            Some("use make"),
        ),
        (
            deny(),
            Some((CodexDecision::Interrupt, None)),
            "cancel",
            None,
        ),
        (
            deny(),
            Some((CodexDecision::Once, None)),
            "decline",
            Some("not now"),
        ),
    ];
    for (id, (told, decided, answer, words)) in (10..).zip(cases) {
        let name = codex.asks_to_run(id).await;
        assert_eq!(codex.driver.asked(&name).unwrap().tool, "Bash");
        if let Some((decision, reason)) = decided {
            codex.driver.decided(&name, decision, reason);
        }
        let steered = codex.calls("turn/steer");
        assert_eq!(codex.is_told(verdict(&name, told)).await, []);
        assert_eq!(codex.result(id)["decision"], answer, "case {id}");
        assert_eq!(
            codex.calls("turn/steer") - steered,
            usize::from(words.is_some())
        );
        if let Some(words) = words {
            let steer = &codex.call("turn/steer")["params"]["input"][0]["text"];
            assert_eq!(steer, words, "the model reads why");
        }
        assert_eq!(codex.driver.asked(&name), None, "it is over");
    }
}

#[tokio::test(start_paused = true)]
async fn a_decision_counts_for_the_request_it_was_made_for_and_once() {
    let mut codex = Codex::works(CodexManner::Reads).await;
    let first = codex.asks_to_run(10).await;
    let second = codex.asks_to_run(11).await;
    codex.driver.decided(&first, CodexDecision::Once, None);
    codex.is_told(verdict(&second, allow())).await;
    assert_eq!(codex.result(11)["decision"], "decline");
    codex.is_told(verdict(&first, allow())).await;
    codex.is_told(verdict(&first, allow())).await;
    assert_eq!(codex.result(10)["decision"], "accept");
}

#[tokio::test(start_paused = true)]
async fn questions_and_forms_are_answered_in_a_persons_words() {
    let mut codex = Codex::works(CodexManner::Reads).await;
    let question = json!({"itemId": "i-1", "questions": [{"id": "q", "header": "Port",
        "question": "Which port?", "options": [{"label": "80"}, {"label": "8080"}]}]});
    let asked = codex.asks(10, "item/tool/requestUserInput", question).await;
    let AgentWants::Tool(tool) = &asked.what else {
        panic!("{asked:?}");
    };
    assert_eq!(tool.tool, questions::call::QUESTIONS);
    let words = CodexDecision::Answers(vec!["8080".to_owned()]);
    codex.driver.decided(&asked.id, words, None);
    codex.is_told(verdict(&asked.id, allow())).await;
    let answers = json!({"answers": {"q": {"answers": ["8080"]}}});
    assert_eq!(codex.result(10), &answers);
    let form = || {
        json!({"mode": "form", "serverName": "db", "message": "Which one?",
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}},
                "required": ["name"]}})
    };
    let method = "mcpServer/elicitation/request";
    for (id, filled, decided, action) in [
        (
            11,
            Filled::Accept(serde_json::Map::new()),
            Some("prod"),
            "accept",
        ),
        (12, Filled::Decline, None, "decline"),
        (13, Filled::Cancel, None, "decline"),
        (14, Filled::Accept(serde_json::Map::new()), None, "decline"),
    ] {
        let asked = codex.asks(id, method, form()).await;
        let AgentWants::Form(shown) = &asked.what else {
            panic!("{asked:?}");
        };
        assert_eq!(shown.server.as_deref(), Some("db"));
        if let Some(word) = decided {
            let words = CodexDecision::Answers(vec![word.to_owned()]);
            codex.driver.decided(&asked.id, words, None);
        }
        let request = asked.id.clone();
        let answer = filled;
        codex.is_told(Say::Filled { request, answer }).await;
        assert_eq!(codex.result(id)["action"], action, "case {id}");
        if let Some(word) = decided {
            assert_eq!(codex.result(id)["content"], json!({"name": word}));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_subagents_request_names_it_and_what_cannot_be_shown_is_told() {
    let mut codex = Codex::works(CodexManner::Reads).await;
    let method = "item/commandExecution/requestApproval";
    for (thread, agent) in [(THREAD, None), ("t-2", Some("t-2"))] {
        let params = json!({"threadId": thread, "itemId": thread, "command": "ls"});
        let asked = codex.asks(10, method, params).await;
        let AgentWants::Tool(tool) = asked.what else {
            panic!("{asked:?}");
        };
        assert_eq!(tool.agent.as_deref(), agent);
    }
    let secret = json!({"itemId": "i", "questions": [{"id": "q", "question": "Password?",
        "isSecret": true, "options": []}]});
    let asked = codex.asks(11, "item/tool/requestUserInput", secret).await;
    assert_eq!(asked.id, UNSHOWN);
    let AgentWants::Form(form) = asked.what else {
        panic!("{asked:?}");
    };
    assert_eq!(questions::form::questions(&form), None, "no card holds it");
    assert!(codex.sent.last().unwrap()["error"].is_object(), "refused");
}

/// A plan of the turn `u-1`; the name it is decided under.
async fn plans(codex: &mut Codex) -> String {
    let plan = json!({"item": {"id": "p", "type": "plan", "text": "1. cut"}});
    codex.notes("item/completed", plan).await;
    let turn = json!({"turn": {"id": "u-1", "status": "completed"}});
    let mut events = codex.notes("turn/completed", turn).await;
    let Some(AgentEvent::Said(AgentSaid::Request(request))) = events.pop() else {
        panic!("it asks");
    };
    let AgentWants::Tool(tool) = request.what else {
        panic!("it is a call");
    };
    assert_eq!(tool.tool, questions::call::PLAN);
    assert_eq!(tool.input, json!({"plan": "1. cut"}));
    request.id
}

#[tokio::test(start_paused = true)]
async fn a_plan_is_carried_out_in_the_mode_that_was_chosen_with_it() {
    let edits = questions::QuestionTap::ApprovePlanAndEdits.as_name();
    let plain = questions::QuestionTap::ApprovePlan.as_name();
    for (word, mode) in [(edits, Mode::AcceptEdits), (plain, Mode::Default)] {
        let mut codex = Codex::works(CodexManner::Plans).await;
        let name = plans(&mut codex).await;
        let words = CodexDecision::Answers(vec![word]);
        codex.driver.decided(&name, words, None);
        let heard = codex.is_told(verdict(&name, allow())).await;
        assert_eq!(heard, said(AgentSaid::Mode(mode)));
        let go = &codex.call("turn/start")["params"]["input"][0]["text"];
        assert_eq!(go, "Implement the plan.");
        let update = &codex.call("thread/settings/update")["params"];
        assert_eq!(update["collaborationMode"]["mode"], "default");
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_is_refused_ends_its_turn_or_goes_on_with_a_persons_words() {
    let mut codex = Codex::works(CodexManner::Plans).await;
    let name = plans(&mut codex).await;
    let turns = codex.calls("turn/start");
    let heard = codex
        .is_told(verdict(&name, ToolVerdict::deny("made by nod")))
        .await;
    assert_eq!(heard, turn_end(How::Done, None));
    assert_eq!(codex.calls("turn/start"), turns, "nod's words are no order");
    let mut codex = Codex::works(CodexManner::Plans).await;
    let name = plans(&mut codex).await;
    let because = Some("test first".to_owned());
    codex.driver.decided(&name, CodexDecision::Deny, because);
    let deny = ToolVerdict::deny("made by nod");
    assert_eq!(codex.is_told(verdict(&name, deny)).await, []);
    let words = &codex.call("turn/start")["params"]["input"][0]["text"];
    assert_eq!(words, "test first");
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_a_question_that_is_over_changes_no_mode() {
    let mut codex = Codex::works(CodexManner::Edits).await;
    let question = json!({"itemId": "i-1", "questions": [{"id": "q", "header": "Port",
        "question": "Which port?", "options": [{"label": "80"}, {"label": "8080"}]}]});
    let asked = codex.asks(10, "item/tool/requestUserInput", question).await;
    let resolved = json!({"requestId": 10});
    let heard = codex.notes("serverRequest/resolved", resolved).await;
    let request = asked.id.clone();
    assert_eq!(heard, said(AgentSaid::Withdrawn { request }));
    let sent = codex.sent.len();
    let words = CodexDecision::Answers(vec!["8080".to_owned()]);
    codex.driver.decided(&asked.id, words, None);
    assert_eq!(codex.is_told(verdict(&asked.id, allow())).await, []);
    assert_eq!(codex.sent.len(), sent, "nobody asks any more");
}
