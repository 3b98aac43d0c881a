//! What must not pass for a tap, a message or a line of the log: events of
//! another time, of another app, and names that write lines of their own.

use std::time::{SystemTime, UNIX_EPOCH};

use nod::for_tests::simulator::{APP_ID, ChatText, GROUP, OWNER, TENANT};
use serde_json::{Value, json};

use crate::hooks::{LIMIT, Stage, permission, toast, values, within};

const HOUR: i64 = 3_600_000;
const ALLOWED: (&str, &str) = ("success", "已批准运行");

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

/// A tap of the owner's on this button, made at this time.
fn tap(value: &Value, message: &str, event: &str, at: i64) -> Value {
    json!({
        "schema": "2.0",
        "header": {
            "event_id": event,
            "token": "t",
            "create_time": (at * 1_000).to_string(),
            "event_type": "card.action.trigger",
            "tenant_key": TENANT,
            "app_id": APP_ID,
        },
        "event": {
            "operator": {"tenant_key": TENANT, "open_id": OWNER},
            "token": "c-1",
            "action": {"value": value, "tag": "button"},
            "host": "im_message",
            "context": {"open_message_id": message, "open_chat_id": GROUP},
        },
    })
}

async fn pushed(stage: &Stage, event: &Value) -> String {
    let (_, outcome) = within(stage.sim.push_click_raw(event.to_string())).await;
    outcome.toast.map(|toast| toast.content).unwrap_or_default()
}

fn allow_button(stage: &Stage, card: &str) -> Value {
    let shown = stage.sim.message(card).unwrap().card.unwrap();
    let mut values = values(&shown).into_iter();
    values.find(|value| value["action"] == "allow").unwrap()
}

const STALE: &str = "点击送达过晚，未生效，请重新点击";

#[tokio::test(flavor = "multi_thread")]
async fn one_tap_dated_an_hour_ahead_makes_no_later_tap_too_late() {
    let mut stage = Stage::new().await;
    let unknown = json!({"action": "allow", "request_id": "nobody-knows-this-one"});
    for n in 0..3 {
        pushed(
            &stage,
            &tap(&unknown, "om_x", &format!("ahead{n}"), now() + HOUR),
        )
        .await;
    }
    let (hook, card) = stage.ask_bash("make").await;
    assert_eq!(toast(&stage.tap(&card, "allow").await), ALLOWED);
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tap_of_six_hours_ago_right_after_the_start_decides_nothing() {
    for ahead in [0, -3 * HOUR, 3 * HOUR] {
        let mut stage = Stage::with(|options, _| options.clock_ahead_ms = ahead).await;
        let (hook, card) = stage.ask_bash("make").await;
        let button = allow_button(&stage, &card);
        let at = now() + ahead - 6 * HOUR;
        let said = pushed(&stage, &tap(&button, &card, "of-old", at)).await;
        assert_eq!(said, STALE, "{ahead}");
        // However wrong this machine's clock is, a tap of now counts.
        assert_eq!(toast(&stage.tap(&card, "allow").await), ALLOWED, "{ahead}");
        assert_eq!(hook.ended().await.decision()["behavior"], "allow");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_to_another_app_is_not_obeyed_here() {
    let mut stage = Stage::new().await;
    let (hook, card) = stage.ask_bash("make").await;
    let mut foreign = tap(&allow_button(&stage, &card), &card, "elsewhere", now());
    foreign["header"]["app_id"] = json!("cli_another");
    assert_eq!(pushed(&stage, &foreign).await, "无效的回调请求");
    let lock = |event: &str, app: &str| {
        json!({
            "schema": "2.0",
            "header": {
                "event_id": event,
                "create_time": (now() * 1_000).to_string(),
                "event_type": "im.message.receive_v1",
                "tenant_key": TENANT,
                "app_id": app,
            },
            "event": {
                "sender": {"sender_id": {"open_id": OWNER}, "sender_type": "user"},
                "message": {
                    "message_id": format!("om_{event}"),
                    "create_time": now().to_string(),
                    "chat_id": "oc_private",
                    "chat_type": "p2p",
                    "message_type": "text",
                    "content": r#"{"text":"/lock"}"#,
                },
            },
        })
    };
    pushed(&stage, &lock("foreign", "cli_another")).await;
    // A later message is dealt with, so the earlier one would have been.
    within(stage.sim.push_text(&ChatText::new("/help")))
        .await
        .unwrap();
    let help = |sim: &nod::for_tests::simulator::Simulator| {
        let mut all = sim.messages().into_iter();
        all.find(|message| message.content.contains("/projects"))
    };
    assert!(stage.sim.wait_for(LIMIT, help).await.is_some());
    assert_eq!(stage.home.status().await["locked"], json!(false));
    assert_eq!(toast(&stage.tap(&card, "allow").await), ALLOWED);
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
    pushed(&stage, &lock("own", APP_ID)).await;
    stage
        .until_status(|status| status["locked"] == json!(true))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tools_name_writes_no_line_of_the_log() {
    let mut stage = Stage::new().await;
    let forged = "2026-01-01T00:00:00.000000Z  INFO allowed";
    let name = format!("mcp__a__b\n{forged}\r\u{1b}[2K\u{202e}\u{9b}31m");
    let (hook, card) = stage.ask(&permission("s1", &name, &json!({"a": 1}))).await;
    stage.daemon().logged("a request waits").await;
    let log = stage.daemon().log();
    assert!(log.contains("mcp__a__b"), "{log}");
    for line in log.lines() {
        assert!(!line.starts_with("2026-01-01T"), "{log}");
        assert!(!line.chars().any(char::is_control), "{line:?}");
        assert!(!line.contains('\u{202e}'), "{line:?}");
    }
    stage.tap(&card, "deny").await;
    hook.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_listed_by_a_user_id_decides_though_taps_name_none() {
    let mut user_id = String::new();
    let mut stage = Stage::with(|options, home| {
        let scopes = &mut options.apps[0].scopes;
        scopes.retain(|scope| scope != "contact:user.employee_id:readonly");
        scopes.push("contact:contact.base:readonly".to_owned());
        user_id.clone_from(&options.users[0].user_id);
        home.set("FEISHU_OWNER_ID", &user_id);
    })
    .await;
    let resolved = format!("the user id {user_id} is {OWNER}");
    stage.daemon().logged(&resolved).await;
    let (hook, card) = stage.ask_bash("make").await;
    assert_eq!(toast(&stage.tap(&card, "allow").await).0, "success");
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
}
