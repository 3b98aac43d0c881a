//! How requests end without a tap, and what keeps a tap from counting: the
//! card says it each time, and so does the toast of whoever taps too late.

use std::time::{Duration, Instant};

use nod::for_tests::simulator::{App, Armed, ChatText, Fault, GROUP, Press, STRANGER, Simulator};
use serde_json::{Value, json};

use crate::hooks::{Hook, LIMIT, Stage, bash, event, offered, permission, toast, values, within};

/// A button as it was on the screen of somebody who taps it later.
pub(crate) struct Held {
    message: String,
    pub(crate) values: Vec<Value>,
    by: &'static str,
}

impl Held {
    pub(crate) fn of(stage: &Stage, message: &str) -> Self {
        let card = stage.sim.message(message).unwrap().card.unwrap();
        Self {
            message: message.to_owned(),
            values: values(&card),
            by: nod::for_tests::simulator::OWNER,
        }
    }

    /// The same card with other buttons on it.
    pub(crate) fn with(held: &Self, values: Vec<Value>) -> Self {
        Self {
            message: held.message.clone(),
            values,
            by: held.by,
        }
    }

    /// The same in somebody else's hand.
    pub(crate) fn by(mut self, user: &'static str) -> Self {
        self.by = user;
        self
    }

    /// As if the card stood somewhere else.
    pub(crate) fn lift(&mut self, message: &str) {
        message.clone_into(&mut self.message);
    }

    pub(crate) async fn tap(&self, stage: &Stage, action: &str) -> (String, String) {
        let value = self.values.iter().find(|v| v["action"] == action).unwrap();
        let micros = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .as_micros();
        let body = json!({
            "schema": "2.0",
            "header": {
                "event_id": format!("held-{micros}"),
                "create_time": micros.to_string(),
                "event_type": "card.action.trigger",
                "app_id": nod::for_tests::simulator::APP_ID,
            },
            "event": {
                "operator": {"open_id": self.by},
                "action": {"value": value, "tag": "button"},
                "host": "im_message",
                "context": {"open_message_id": self.message},
            },
        });
        let (_, outcome) = stage.sim.push_click_raw(body.to_string()).await;
        let toast = outcome.toast.expect("a toast");
        (toast.kind, toast.content)
    }
}

async fn asked(stage: &mut Stage, command: &str) -> (Hook, Held) {
    let (hook, card) = stage.ask_bash(command).await;
    let held = Held::of(stage, &card);
    (hook, held)
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_answers_and_the_terminal_decides() {
    let mut stage = Stage::with(|_, home| home.set("PERMISSION_REQUEST_TIMEOUT", "1")).await;
    let (hook, held) = asked(&mut stage, "make late").await;
    let ended = hook.ended().await;
    ended.left_to_the_terminal();
    assert!(ended.stderr.contains("没有人及时回答"), "{ended:?}");
    let shown = stage.shows(&held.message, "已超时").await;
    assert!(shown.contains("这不算拒绝"), "{shown}");
    let (kind, text) = held.tap(&stage, "interrupt").await;
    assert_eq!(kind, "warning");
    assert!(
        text.starts_with("请求已超时（") && text.ends_with("），请在终端处理"),
        "{text}"
    );
    assert_eq!(stage.home.audit().await[0]["decision"], "timeout");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_terminal_answered_is_withdrawn() {
    let mut stage = Stage::new().await;
    let call = |command: &str| json!({"tool_name": "Bash", "tool_input": {"command": command}});
    let none = json!({});
    let cases = [
        ("PostToolUse", call("make t"), "已在终端批准"),
        ("PostToolUseFailure", call("make t"), "已在终端批准"),
        ("Stop", none.clone(), "已在终端处理"),
        ("UserPromptSubmit", none.clone(), "已在终端处理"),
        ("SessionEnd", none, "已在终端处理"),
    ];
    for (name, more, title) in cases {
        let (hook, held) = asked(&mut stage, "make t").await;
        let other = event("other", name, &more);
        within(stage.home.hook(&other).ended())
            .await
            .left_to_the_terminal();
        let elsewhere = event("s1", "PostToolUse", &call("make u"));
        stage
            .home
            .hook(&elsewhere)
            .ended()
            .await
            .left_to_the_terminal();
        assert!(!offered(&stage.sim.message(&held.message).unwrap().card.unwrap()).is_empty());

        let told = Instant::now();
        stage
            .home
            .hook(&event("s1", name, &more))
            .ended()
            .await
            .left_to_the_terminal();
        stage.shows(&held.message, title).await;
        assert!(told.elapsed() < Duration::from_secs(2), "{name}");
        hook.ended().await.left_to_the_terminal();
        let (kind, text) = held.tap(&stage, "interrupt").await;
        assert_eq!(kind, "warning");
        assert!(text.starts_with(title), "{name}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_goes_away_leaves_a_card_that_says_so() {
    let mut stage = Stage::new().await;
    let gone = (
        "error".to_owned(),
        "请求已失效，请返回终端查看状态".to_owned(),
    );
    for signal in ["-TERM", "-KILL"] {
        let (hook, held) = asked(&mut stage, "make gone").await;
        hook.signal(signal);
        let shown = stage.shows(&held.message, "请求已失效").await;
        assert!(shown.contains("请返回终端查看状态"), "{shown}");
        assert_eq!(held.tap(&stage, "allow").await, gone);
        assert_eq!(hook.ended().await.stdout, "");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_terminal_has_a_head_start() {
    let mut stage = Stage::with(|_, home| home.set("PERMISSION_NOTIFY_DELAY", "1")).await;
    for n in 0..12 {
        let command = format!("make quick{n}");
        let hook = stage.home.hook(&bash("s1", &command));
        let count = stage.until_status(|status| status["pending"] == 1).await;
        assert_eq!(count["pending"], 1);
        let ran = json!({"tool_name": "Bash", "tool_input": {"command": command}});
        stage
            .home
            .hook(&event("s1", "PostToolUse", &ran))
            .ended()
            .await;
        hook.ended().await.left_to_the_terminal();
    }
    assert_eq!(stage.count(), 0, "no card at all");
    let (hook, card) = stage.ask_bash("make slow").await;
    assert_eq!(stage.count(), 1, "only what nobody answered");
    stage.tap(&card, "allow").await;
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_answered_in_the_terminal_while_feishu_is_away_is_corrected_when_it_is_back() {
    let mut stage = Stage::new().await;
    let (waiting, held) = asked(&mut stage, "make before").await;
    let refuse = Fault::RestHttp {
        path: "PATCH".to_owned(),
        status: 503,
        body: String::new(),
    };
    stage.sim.set_fault(Armed::always(refuse)).unwrap();
    let ran = json!({"tool_name": "Bash", "tool_input": {"command": "make before"}});
    stage
        .home
        .hook(&event("s1", "PostToolUse", &ran))
        .ended()
        .await;
    waiting.ended().await.left_to_the_terminal();
    stage.sim.clear_faults();
    stage.shows(&held.message, "已在终端批准").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_long_turn_is_told_once() {
    let mut stage = Stage::with(|_, home| home.set("NOD_NOTIFY_STOP_AFTER", "0")).await;
    let begin = event("s1", "UserPromptSubmit", &json!({"prompt": "go"}));
    let stop = event("s1", "Stop", &json!({"last_assistant_message": "全部完成"}));
    let idle = event(
        "s1",
        "Notification",
        &json!({"notification_type": "idle_prompt", "message": "waiting for input"}),
    );
    stage.home.hook(&begin).ended().await;
    for input in [&stop, &stop] {
        stage.home.hook(input).ended().await.left_to_the_terminal();
    }
    let told = stage.sent().await.message_id;
    assert!(stage.face(&told).contains("全部完成"));
    stage.home.hook(&idle).ended().await.left_to_the_terminal();
    stage.home.hook(&begin).ended().await;
    for input in [&idle, &idle, &stop] {
        stage.home.hook(input).ended().await.left_to_the_terminal();
    }
    let told = stage.sent().await.message_id;
    assert!(stage.face(&told).contains("正在等你"));
    let (hook, card) = stage.ask_bash("make last").await;
    assert_eq!(stage.count(), 3, "nothing was told twice");
    stage.tap(&card, "deny").await;
    hook.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_leaves_only_refusals() {
    let mut stage = Stage::new().await;
    let locked = ("warning", "远程批准已锁定，请在终端解锁；仍可拒绝");
    let (hook, card) = stage.ask_bash("npm test").await;
    let plan = json!({"plan": "1. delete everything"});
    let (planner, plan_card) = stage.ask(&permission("s1", "ExitPlanMode", &plan)).await;
    let (held, held_plan) = (Held::of(&stage, &card), Held::of(&stage, &plan_card));
    let said = stage.home.run(&["lock"]).await;
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
    assert!(said.stdout.contains("nod unlock"), "{said:?}");
    for (shown, allows) in [(&card, "allow"), (&plan_card, "approve_plan")] {
        stage.shows(shown, "已锁定").await;
        let face = stage.sim.message(shown).unwrap().card.unwrap();
        assert!(
            !face.to_string().contains(&format!("\"{allows}\"")),
            "{face}"
        );
    }
    let refused = |(kind, text): (String, String)| assert_eq!((&*kind, &*text), locked);
    for action in ["allow", "always", "session"] {
        refused(held.tap(&stage, action).await);
    }
    refused(held_plan.tap(&stage, "answer").await);
    let (later, fresh) = stage.ask_bash("make fresh").await;
    let face = stage.sim.message(&fresh).unwrap().card.unwrap();
    assert!(!offered(&face).contains(&"allow".to_owned()), "{face}");
    stage.tap(&fresh, "deny").await;
    assert_eq!(later.ended().await.decision()["behavior"], "deny");
    planner.signal("-TERM");
    stage.shows(&plan_card, "请求已失效").await;
    stage.kill().await;
    stage.start().await;
    assert_eq!(stage.home.status().await["locked"], true, "over a restart");
    refused(held.tap(&stage, "allow").await);
    assert_eq!(
        toast(&stage.tap(&card, "deny").await),
        ("success", "已拒绝运行")
    );
    assert_eq!(hook.ended().await.decision()["behavior"], "deny");

    assert_eq!(stage.home.run(&["unlock"]).await.code, Some(0));
    let (hook, card) = stage.ask_bash("npm run x").await;
    let held = Held::of(&stage, &card);
    let text = ChatText {
        parent_id: Some(card.clone()),
        ..ChatText::new("/lock")
    };
    stage
        .sim
        .push_text(&ChatText::new("/lock").by(STRANGER))
        .await
        .unwrap();
    let turned_away = stage.sent().await.content;
    assert!(turned_away.contains("名单"), "{turned_away}");
    stage.sim.push_text(&text).await.unwrap();
    let reply = stage.sent().await;
    assert!(reply.content.contains("nod unlock"), "{}", reply.content);
    stage.shows(&card, "已锁定").await;
    refused(held.tap(&stage, "allow").await);
    stage.home.run(&["unlock"]).await;
    let open = |sim: &Simulator| {
        let offers = offered(&sim.message(&card)?.card?);
        offers.contains(&"allow".to_owned()).then_some(())
    };
    assert!(stage.sim.wait_for(LIMIT, open).await.is_some());
    assert_eq!(
        toast(&stage.tap(&card, "allow").await),
        ("success", "已批准运行")
    );
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
    let kinds: Vec<_> = stage
        .home
        .audit()
        .await
        .iter()
        .map(|l| l["kind"].clone())
        .collect();
    let expected = [
        "locked", "settled", "settled", "settled", "unlocked", "locked", "unlocked", "settled",
    ];
    assert_eq!(kinds, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_screen_says_no_more_than_was_set() {
    let mut stage = Stage::with(|_, home| home.set("NOD_PREVIEWS", "state")).await;
    let (hook, id) = stage.ask_bash("make secret").await;
    let preview = |stage: &Stage| {
        let card = stage.sim.message(&id).unwrap().card.unwrap();
        card["config"]["summary"]["content"].clone()
    };
    assert_eq!(preview(&stage), "等待批准");
    assert!(stage.face(&id).contains("make secret"));
    stage.tap(&id, "allow").await;
    hook.ended().await;
    stage.shows(&id, "已批准").await;
    assert_eq!(preview(&stage), "已批准");
    stage.no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_record_names_people_where_the_app_may_know_them() {
    for (app, name) in [
        (App::scanned(), "@stranger"),
        (App::default(), "ou_stranger"),
    ] {
        let mut stage = Stage::with(|options, home| {
            options.apps = vec![app];
            home.set("FEISHU_APPROVERS", STRANGER);
            home.set("FEISHU_CHAT_ID", GROUP);
            home.set("NOD_LANG", "en");
        })
        .await;
        let (hook, id) = stage.ask_bash("make it").await;
        stage.press(Press::action(&id, "allow").by(STRANGER)).await;
        hook.ended().await;
        let said = within(async {
            loop {
                let said = stage.home.run(&["audit"]).await.stdout;
                if said.contains(&format!("by {name}")) {
                    return said;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        assert!(said.await.contains("make it"));
        stage.no_violations();
    }
}
