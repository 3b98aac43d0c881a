//! Questions and plans from end to end: asked by Claude Code through its hook
//! or by a script through `nod ask`, answered by tap, by form and by text.

use nod::for_tests::simulator::{Armed, ChatText, Fault, GROUP, Press, STRANGER};
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::process::Child;

use crate::hooks::{Stage, permission, toast, within};

type Case<'a> = (&'a [&'a str], &'a dyn Fn(&str) -> Press, i32, &'a str);

const TAKEN: (&str, &str) = ("success", "已收到你的回复，继续执行...");

fn questions() -> Value {
    json!({"questions": [
        {
            "question": "Which store?", "header": "Store", "multiSelect": false,
            "options": [
                {"label": "Redis", "description": "shared by all"},
                {"label": "SQLite", "description": "survives restarts"},
            ],
        },
        {
            "question": "Which extras?", "header": "Extras", "multiSelect": true,
            "options": [{"label": "Metrics", "description": ""}, {"label": "Notes", "description": ""}],
        },
    ]})
}

fn one_question() -> Value {
    json!({"questions": [questions()["questions"][0]]})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_claudes_is_answered_by_tap_form_and_text() {
    claude_asks(Stage::new().await).await;
}

/// Also played over a team's bus.
pub(crate) async fn claude_asks(mut stage: Stage) {
    let asks = |input: &Value| permission("s1", "AskUserQuestion", input);
    let decision = |input: &Value, answers: Value| {
        let mut updated = input.clone();
        updated["answers"] = answers;
        json!({"behavior": "allow", "updatedInput": updated})
    };

    let (hook, card) = stage.ask(&asks(&one_question())).await;
    assert!(stage.face(&card).contains("survives restarts"));
    let tapped = stage.press(Press::text(&card, "SQLite")).await;
    assert_eq!(toast(&tapped), TAKEN);
    let expected = decision(&one_question(), json!({"Which store?": "SQLite"}));
    assert_eq!(hook.ended().await.decision(), expected);
    let shown = stage.shows(&card, "已回答").await;
    assert!(shown.contains("SQLite"), "{shown}");

    let (hook, card) = stage.ask(&asks(&questions())).await;
    let empty = stage.press(Press::named(&card, "submit_answer")).await;
    assert_eq!(toast(&empty).0, "warning", "an empty form is no answer");
    let form = Press::named(&card, "submit_answer")
        .fill("q0", "o0")
        .fill("q1", json!(["o0", "o1"]));
    assert_eq!(toast(&stage.press(form).await), TAKEN);
    let expected = decision(
        &questions(),
        json!({"Which store?": "Redis", "Which extras?": "Metrics, Notes"}),
    );
    assert_eq!(hook.ended().await.decision(), expected);

    let (hook, card) = stage.ask(&asks(&one_question())).await;
    let other = ChatText::new("neither, use a file").replying_to(&card);
    within(stage.sim.push_text(&other)).await.unwrap();
    let expected = decision(
        &one_question(),
        json!({"Which store?": "neither, use a file"}),
    );
    assert_eq!(hook.ended().await.decision(), expected);
    stage.no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_can_be_declined_and_a_stranger_cannot_answer() {
    let mut stage = Stage::with(|_, home| home.set("FEISHU_CHAT_ID", GROUP)).await;
    let input = permission("s1", "AskUserQuestion", &one_question());
    let (hook, card) = stage.ask(&input).await;
    let refused = stage.press(Press::text(&card, "Redis").by(STRANGER)).await;
    assert_eq!(toast(&refused).0, "error");
    let words = ChatText::new("Redis").by(STRANGER).replying_to(&card);
    within(stage.sim.push_text(&words)).await.unwrap();
    let reply = stage.sent().await;
    assert_eq!(reply.msg_type, "text", "the stranger is told");
    stage.press(Press::text(&card, "不回答")).await;
    assert_eq!(hook.ended().await.decision()["behavior"], "deny");
    stage.shows(&card, "未作回答").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_approved_with_and_without_edits_or_sent_back() {
    claude_plans(Stage::new().await).await;
}

/// Also played over a team's bus.
pub(crate) async fn claude_plans(mut stage: Stage) {
    let plan = json!({"plan": "1. measure\n2. cut", "planFilePath": "/p/plan.md"});
    let asked = permission("s1", "ExitPlanMode", &plan);
    let mode = json!([{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]);
    for (button, expected) in [
        (
            "批准计划",
            json!({"behavior": "allow", "updatedInput": plan}),
        ),
        (
            "批准并自动接受编辑",
            json!({"behavior": "allow", "updatedInput": plan, "updatedPermissions": mode}),
        ),
    ] {
        let (hook, card) = stage.ask(&asked).await;
        assert!(stage.face(&card).contains("2. cut"));
        stage.press(Press::text(&card, button)).await;
        assert_eq!(hook.ended().await.decision(), expected, "{button}");
        stage.shows(&card, button).await;
    }
    let (hook, card) = stage.ask(&asked).await;
    for yes in ["1", "2", "批准并自动接受编辑", "批准计划", "ok 👍"] {
        let words = ChatText::new(yes).replying_to(&card);
        within(stage.sim.push_text(&words)).await.unwrap();
        let told = stage.sent().await.content;
        assert!(told.contains("「批准计划」"), "{yes}: {told}");
    }
    stage.press(Press::text(&card, "继续完善")).await;
    let expected =
        json!({"behavior": "deny", "message": "Keep planning; the plan is not approved yet."});
    assert_eq!(hook.ended().await.decision(), expected);
    let (hook, card) = stage.ask(&asked).await;
    stage
        .press(Press::text(&card, "按此继续完善").fill("q0", "cut first"))
        .await;
    let expected = json!({"behavior": "deny", "message": "cut first"});
    assert_eq!(hook.ended().await.decision(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_missed_in_a_crash_is_fetched_by_the_returning_hook() {
    let mut stage = Stage::new().await;
    let input = permission("s1", "AskUserQuestion", &one_question());
    let (hook, card) = stage.ask(&input).await;
    stage.kill().await;
    stage.start().await;
    let tapped = stage.press(Press::text(&card, "Redis")).await;
    assert_eq!(toast(&tapped), TAKEN);
    let decision = hook.ended().await.decision();
    assert_eq!(
        decision["updatedInput"]["answers"],
        json!({"Which store?": "Redis"})
    );
}

async fn output(mut child: Child) -> (Option<i32>, String) {
    let mut text = String::new();
    let mut out = child.stdout.take().unwrap();
    let status = within(async {
        out.read_to_string(&mut text).await.unwrap();
        child.wait().await.unwrap()
    });
    (status.await.code(), text)
}

async fn script(stage: &mut Stage, arguments: &[&str]) -> (Child, String) {
    let child = stage
        .home
        .nod(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let card = stage.sent().await;
    (child, card.message_id)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_gets_its_answer_and_an_exit_code_that_tells() {
    a_script_asks(Stage::new().await).await;
}

/// Also played over a team's bus.
pub(crate) async fn a_script_asks(mut stage: Stage) {
    let cases: [Case<'_>; 6] = [
        (
            &["ask", "confirm", "go?"],
            &|c| Press::text(c, "确认"),
            0,
            "yes\n",
        ),
        (
            &["ask", "confirm", "go?"],
            &|c| Press::text(c, "取消"),
            1,
            "no\n",
        ),
        (
            &["ask", "choice", "which?", "a", "b"],
            &|c| Press::text(c, "b"),
            0,
            "b\n",
        ),
        (
            &[
                "ask", "choice", "which?", "a", "b", "c", "--multi", "--json",
            ],
            &|c| Press::named(c, "submit_answer").fill("q0", json!(["o0", "o2"])),
            0,
            "{\"status\":\"answered\",\"answer\":\"a, c\"}\n",
        ),
        (
            &["ask", "text", "name?"],
            &|c| Press::named(c, "submit_answer").fill("q0", "bo"),
            0,
            "bo\n",
        ),
        (
            &["ask", "text", "name?", "--default", "anon"],
            &|c| Press::text(c, "不回答"),
            1,
            "anon\n",
        ),
    ];
    for (arguments, press, code, printed) in cases {
        let (child, card) = script(&mut stage, arguments).await;
        stage.press(press(&card)).await;
        let ended = output(child).await;
        assert_eq!(ended, (Some(code), printed.to_owned()), "{arguments:?}");
    }
    let (child, card) = script(&mut stage, &["ask", "text", "name?", "--timeout", "1"]).await;
    assert_eq!(output(child).await, (Some(3), String::new()));
    stage.shows(&card, "已超时").await;
    stage.stop().await;
    let alone = stage.home.run(&["ask", "text", "anyone?"]).await;
    assert_eq!(alone.code, Some(4));
    stage.no_violations();
}

/// An agent with its owner's login can write in the owner's name, and not tap.
#[tokio::test(flavor = "multi_thread")]
async fn words_do_not_confirm_what_a_script_asks() {
    let mut stage = Stage::new().await;
    let (child, card) = script(&mut stage, &["ask", "confirm", "go?"]).await;
    for yes in ["yes", "确认", "好的", "y", "ok 👍"] {
        let words = ChatText::new(yes).replying_to(&card);
        within(stage.sim.push_text(&words)).await.unwrap();
        let told = stage.sent().await.content;
        assert!(told.contains("「确认」"), "{yes}: {told}");
    }
    stage.press(Press::text(&card, "确认")).await;
    assert_eq!(output(child).await, (Some(0), "yes\n".to_owned()));
    let (child, card) = script(&mut stage, &["ask", "confirm", "go?"]).await;
    let no = ChatText::new("no").replying_to(&card);
    within(stage.sim.push_text(&no)).await.unwrap();
    assert_eq!(output(child).await, (Some(1), "no\n".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_put_to_somebody_else_may_be_answered_by_them_alone_besides_approvers() {
    let mut stage = Stage::new().await;
    let arguments = ["ask", "confirm", "ok?", "--to", STRANGER];
    let (child, card) = script(&mut stage, &arguments).await;
    let face = stage.face(&card);
    assert!(face.contains("提问者：本机的命令"), "{face}");
    assert!(!face.contains("nod_ask"), "{face}");
    let tapped = stage.press(Press::text(&card, "确认").by(STRANGER)).await;
    assert_eq!(toast(&tapped), TAKEN);
    assert_eq!(output(child).await, (Some(0), "yes\n".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_feishu_does_not_carry_ends_with_its_reason() {
    let stage = Stage::new().await;
    let refused = Fault::RestError {
        path: "POST /open-apis/im/v1/messages".to_owned(),
        code: 230_002,
        http: 400,
        msg: "Bot can NOT be out of the chat.".to_owned(),
    };
    stage.sim.set_fault(Armed::always(refused)).unwrap();
    let arguments = ["ask", "confirm", "ok?", "--to", GROUP];
    let ended = within(stage.home.run(&arguments)).await;
    assert_eq!(ended.code, Some(4), "{ended:?}");
    for words in ["no card could be delivered: ", "230002", "out of the chat"] {
        assert!(ended.stderr.contains(words), "{ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_card_of_a_question_put_to_somebody_else_ends_right_after_a_restart() {
    let mut stage = Stage::new().await;
    let asks = |seconds| {
        [
            "ask",
            "confirm",
            "ok?",
            "--to",
            STRANGER,
            "--timeout",
            seconds,
        ]
    };
    let (child, named) = script(&mut stage, &asks("20")).await;
    let lost = || Armed::always(Fault::SendCreatedButReplyLost);
    stage.sim.set_fault(lost()).unwrap();
    let (late, nameless) = script(&mut stage, &asks("20")).await;
    let (ignored, unanswered) = script(&mut stage, &asks("3")).await;
    stage.kill().await;
    stage.sim.clear_faults();
    stage.start().await;
    for (child, card, button, ended) in [
        (child, named, "确认", (0, "yes\n")),
        (late, nameless, "取消", (1, "no\n")),
    ] {
        let tapped = stage.press(Press::text(&card, button).by(STRANGER)).await;
        assert_eq!(toast(&tapped), TAKEN);
        assert_eq!(output(child).await, (Some(ended.0), ended.1.to_owned()));
        let shown = stage.shows(&card, "已回答").await;
        assert!(shown.contains(button), "{shown}");
    }
    assert_eq!(output(ignored).await.0, Some(3));
    stage.shows(&unanswered, "已超时").await;
    assert_eq!(stage.count(), 3, "no second card, and none to the owner");
    stage.sim.set_fault(lost()).unwrap();
    let (asker, over) = script(&mut stage, &asks("1")).await;
    stage.kill().await;
    drop(asker);
    stage.sim.clear_faults();
    // Its time runs out while no daemon is there.
    tokio::time::sleep(Duration::from_secs(1)).await;
    stage.start().await;
    stage.shows(&over, "已超时").await;
    assert_eq!(stage.count(), 4, "again");
}
