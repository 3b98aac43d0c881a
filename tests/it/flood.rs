//! A session that asks more than a person can look at: what was answered does
//! not count, what is beyond is gathered on one card, and nothing is silent.

use nod::for_tests::simulator::{Armed, Fault, Press, STRANGER};
use serde_json::{Value, json};

use crate::approve_endings::Held;
use crate::hooks::{Hook, Stage, bash, event, toast, values};

async fn filled(most: usize) -> (Stage, Vec<Hook>) {
    let mut stage = Stage::with(|_, home| home.set("NOD_CARDS_AT_ONCE", &most.to_string())).await;
    let mut hooks = Vec::new();
    for n in 0..most {
        hooks.push(stage.ask_bash(&format!("make {n}")).await.0);
    }
    (stage, hooks)
}

/// Starts a hook beyond the limit and waits until the list names it.
async fn beyond(stage: &Stage, list: &str, command: &str) -> Hook {
    let hook = stage.home.hook(&bash("s1", command));
    stage.shows(list, command).await;
    hook
}

fn button(stage: &Stage, list: &str, label: &str) -> Value {
    fn find(node: &Value, label: &str) -> Option<Value> {
        match node {
            Value::Object(map) => {
                let says = node["text"]["content"].as_str();
                if node["tag"] == "button" && says.is_some_and(|says| says.contains(label)) {
                    return Some(node["behaviors"][0]["value"].clone());
                }
                map.values().find_map(|node| find(node, label))
            }
            Value::Array(all) => all.iter().find_map(|node| find(node, label)),
            _ => None,
        }
    }
    let card = stage.sim.message(list).unwrap().card.unwrap();
    find(&card, label).unwrap_or_else(|| panic!("no button `{label}` on {card}"))
}

fn press(list: &str, value: Value) -> Press {
    Press {
        message_id: list.to_owned(),
        value: Some(value),
        ..Press::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answered_requests_do_not_count_as_a_flood() {
    let mut stage = Stage::new().await;
    for n in 0..12 {
        let (hook, card) = stage.ask_bash(&format!("make {n}")).await;
        stage.tap(&card, "allow").await;
        assert_eq!(hook.ended().await.decision()["behavior"], "allow");
    }
    assert_eq!(stage.count(), 12, "a card for each");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_beyond_the_limit_is_gathered_and_can_be_opened_or_denied() {
    let (mut stage, _hooks) = filled(3).await;
    let first = stage.home.hook(&bash("s1", "make beyond-1"));
    let list = stage.sent().await.message_id;
    let second = beyond(&stage, &list, "make beyond-2").await;
    let third = beyond(&stage, &list, "make beyond-3").await;
    assert_eq!(stage.count(), 4, "one card for all of them");
    let (calm, card) = stage.ask(&bash("s2", "make calm")).await;
    stage.tap(&card, "allow").await;
    assert_eq!(calm.ended().await.decision()["behavior"], "allow");

    let open = button(&stage, &list, "make beyond-2");
    let clicked = stage.press(press(&list, open.clone())).await;
    assert_eq!(toast(&clicked), ("success", "已打开"));
    let own = stage.sent().await.message_id;
    assert!(stage.face(&own).contains("make beyond-2"));
    stage.tap(&own, "allow").await;
    assert_eq!(second.ended().await.decision()["behavior"], "allow");
    let shown = stage.shows(&list, "2 个等待中").await;
    assert!(!shown.contains("make beyond-2"), "{shown}");

    // Answered in the terminal: off the list, and nobody refused it.
    let ran = json!({"tool_name": "Bash", "tool_input": {"command": "make beyond-3"}});
    stage
        .home
        .hook(&event("s1", "PostToolUse", &ran))
        .ended()
        .await;
    third.ended().await.left_to_the_terminal();
    stage.shows(&list, "1 个等待中").await;

    let deny = button(&stage, &list, "全部拒绝");
    let clicked = stage.press(press(&list, deny)).await;
    assert_eq!(toast(&clicked), ("success", "正在拒绝 1 个请求"));
    assert_eq!(first.ended().await.decision()["behavior"], "deny");
    let over = stage.shows(&list, "已处理完").await;
    assert!(
        over.contains("共汇集 3 个：打开 1，拒绝 1，以其他方式结束 1"),
        "{over}"
    );
    let card = stage.sim.message(&list).unwrap().card.unwrap();
    assert!(values(&card).is_empty(), "no button is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_says_how_many_others_have_cards_now() {
    let (mut stage, mut hooks) = filled(3).await;
    let _first = stage.home.hook(&bash("s1", "make beyond-1"));
    let list = stage.sent().await.message_id;
    stage.shows(&list, "另有 3 个请求各有卡片").await;
    let _second = beyond(&stage, &list, "make beyond-2").await;
    let ended = hooks.remove(0);
    ended.signal("-TERM");
    stage.shows(&list, "另有 2 个请求各有卡片").await;
    let open = button(&stage, &list, "make beyond-2");
    stage.press(press(&list, open)).await;
    stage.shows(&list, "另有 3 个请求各有卡片").await;
    for hook in &hooks {
        hook.signal("-TERM");
    }
    stage.shows(&list, "另有 1 个请求各有卡片").await;
    let own = stage.sent().await.message_id;
    stage.tap(&own, "deny").await;
    let shown = stage.shows(&list, "该会话的请求列在这里").await;
    assert!(shown.contains("1 个等待中"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_else_and_no_forged_or_lifted_button_opens_or_denies() {
    let (mut stage, _hooks) = filled(1).await;
    let waiting = stage.home.hook(&bash("s1", "make beyond"));
    let list = stage.sent().await.message_id;
    let (deny, open) = (
        button(&stage, &list, "全部拒绝"),
        button(&stage, &list, "make beyond"),
    );
    let held = Held::of(&stage, &list);
    let stranger = Held::with(&held, held.values.clone()).by(STRANGER);
    for action in ["open", "deny_all"] {
        let (_, said) = stranger.tap(&stage, action).await;
        assert_eq!(said, "你不在审批人名单中，操作未生效");
    }
    for (value, action) in [(&deny, "deny_all"), (&open, "open")] {
        let mut forged = value.clone();
        forged["seal"] = json!("0".repeat(64));
        let said = Held::with(&held, vec![forged]).tap(&stage, action).await;
        assert_eq!(said, ("error".to_owned(), "无效的回调请求".to_owned()));
        let mut lifted = Held::with(&held, vec![value.clone()]);
        lifted.lift("om_elsewhere");
        let said = lifted.tap(&stage, action).await;
        assert_eq!(said, ("error".to_owned(), "无效的回调请求".to_owned()));
    }
    // An open button says open, and its value cannot be made to allow.
    let mut allow = open;
    allow["action"] = json!("allow");
    let said = Held::with(&held, vec![allow]).tap(&stage, "allow").await;
    assert_eq!(said.0, "error", "{said:?}");
    assert_eq!(
        stage.home.status().await["pending"],
        2,
        "nothing was decided"
    );
    waiting.signal("-TERM");
    stage.shows(&list, "已处理完").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_keeps_the_list_and_sends_no_flood_of_cards() {
    let (mut stage, _hooks) = filled(2).await;
    let first = stage.home.hook(&bash("s1", "make beyond-1"));
    let list = stage.sent().await.message_id;
    let second = beyond(&stage, &list, "make beyond-2").await;
    stage.kill().await;
    stage.start().await;
    let status = |status: &Value| status["pending"] == 4;
    stage.until_status(status).await;
    let third = beyond(&stage, &list, "make beyond-3").await;
    assert_eq!(stage.count(), 3, "the same list, and no other card");
    let deny = button(&stage, &list, "全部拒绝");
    stage.press(press(&list, deny)).await;
    for hook in [first, second, third] {
        assert_eq!(hook.ended().await.decision()["behavior"], "deny");
    }
    stage.shows(&list, "拒绝 3").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_feishu_did_not_take_is_sent_again() {
    let (mut stage, _hooks) = filled(1).await;
    let refuse = Fault::RestHttp {
        path: "POST".to_owned(),
        status: 503,
        body: String::new(),
    };
    stage.sim.set_fault(Armed::always(refuse)).unwrap();
    let waiting = stage.home.hook(&bash("s1", "make beyond"));
    stage.daemon().logged("a notice could not be sent").await;
    stage.sim.clear_faults();
    let list = stage.sent().await.message_id;
    stage.shows(&list, "make beyond").await;
    waiting.signal("-TERM");
    stage.shows(&list, "已处理完").await;
}
