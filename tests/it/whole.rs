//! What does not fit one card goes out whole first, and only then can it be
//! allowed; where that fails, it can be denied. And files are shown where they
//! really are.

use nod::for_tests::simulator::{APP_ID, Armed, ChatText, Fault, HeldMessage, Press};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

use crate::approve::event_of;
use crate::hooks::{Stage, bash, face, offered, permission, toast};
use crate::support::until;

const ALLOWED: (&str, &str) = ("success", "已批准运行");
const NOT_OFFERED: &str = "该请求不能在飞书中批准，请在终端处理";
const INVALID: &str = "无效的回调请求";
const SEND: &str = "POST /open-apis/im/v1/messages";

/// The messages up to the card that has buttons, and that card.
async fn until_the_card(stage: &mut Stage) -> (Vec<HeldMessage>, HeldMessage) {
    let mut before = Vec::new();
    loop {
        let message = stage.sent().await;
        let waits = message.card.as_ref().is_some_and(|card| {
            let card = card.to_string();
            card.contains("request_id")
        });
        if waits {
            return (before, message);
        }
        before.push(message);
    }
}

fn seen(messages: &[HeldMessage]) -> String {
    let cards = messages.iter().filter_map(|message| message.card.as_ref());
    cards.map(face).collect()
}

fn lines(count: usize) -> String {
    (0..count).fold(String::new(), |mut text, i| {
        let _ = writeln!(text, "echo line {i}");
        text
    })
}

fn card(message: &HeldMessage) -> &Value {
    message.card.as_ref().expect("a card")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_in_the_middle_of_26_kilobytes_is_read_before_it_is_allowed() {
    let mut stage = Stage::new().await;
    let long = format!("{}touch hidden-in-the-middle\n{}", lines(900), lines(900));
    let hook = stage.home.hook(&bash("s1", &long));
    let (before, last) = until_the_card(&mut stage).await;
    assert!(before.len() > 1, "{}", before.len());
    assert!(seen(&before).contains("touch hidden-in-the-middle"));
    assert!(!face(card(&last)).contains("touch hidden-in-the-middle"));
    assert!(face(card(&last)).contains(&format!("上方的 {} 条消息", before.len())));
    assert_eq!(
        offered(card(&last)),
        ["deny", "allow", "interrupt", "deny_with"]
    );
    let tapped = stage.tap(&last.message_id, "allow").await;
    assert_eq!(toast(&tapped), ALLOWED);
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
    stage.no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_thousand_leaves_is_read_before_it_is_allowed() {
    let mut stage = Stage::new().await;
    let leaves: serde_json::Map<String, Value> = (0..2_000)
        .map(|i| (format!("key{i}"), json!(format!("value {i}"))))
        .collect();
    let asked = permission("s1", "mcp__x__y", &Value::Object(leaves));
    let hook = stage.home.hook(&asked);
    let (before, last) = until_the_card(&mut stage).await;
    let text = seen(&before);
    for i in 0..2_000 {
        assert!(text.contains(&format!("key{i}: value {i}")), "{i}");
    }
    assert_eq!(
        offered(card(&last)),
        ["deny", "allow", "interrupt", "deny_with"]
    );
    stage.tap(&last.message_id, "deny").await;
    assert_eq!(hook.ended().await.decision()["behavior"], "deny");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_of_fifty_kilobytes_is_read_before_it_is_approved() {
    let mut stage = Stage::new().await;
    let step = |i: usize| format!("{i}. a step of this plan\n");
    let text = (0..1_900).fold(String::new(), |text, i| text + &step(i));
    let plan = json!({"plan": text, "planFilePath": "/p/plan.md"});
    let hook = stage.home.hook(&permission("s1", "ExitPlanMode", &plan));
    let (before, last) = until_the_card(&mut stage).await;
    assert!(seen(&before).contains(&step(950)));
    stage
        .press(Press::text(&last.message_id, "批准并自动接受编辑"))
        .await;
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");

    refuse_messages(&stage, 1);
    let hook = stage.home.hook(&permission("s1", "ExitPlanMode", &plan));
    let (before, last) = until_the_card(&mut stage).await;
    assert!(before.is_empty());
    assert!(face(card(&last)).contains("全文无法送达"));
    assert!(!face(card(&last)).contains("批准计划"));
    let reply = ChatText {
        text: "批准".to_owned(),
        parent_id: Some(last.message_id.clone()),
        ..ChatText::default()
    };
    stage.sim.push_text(&reply).await.unwrap();
    let answer = stage.sent().await;
    assert!(answer.content.contains(NOT_OFFERED), "{}", answer.content);
    stage.press(Press::text(&last.message_id, "不回答")).await;
    assert_eq!(hook.ended().await.decision()["behavior"], "deny");
}

fn refuse_messages(stage: &Stage, times: u32) {
    for _ in 0..times {
        let refuse = Fault::RestError {
            path: SEND.to_owned(),
            code: 230_022,
            http: 400,
            msg: "refused".to_owned(),
        };
        stage.sim.set_fault(Armed::once(refuse)).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_sent_whole_can_only_be_denied() {
    let mut stage = Stage::new().await;
    refuse_messages(&stage, 1);
    let hook = stage.home.hook(&bash("s1", &lines(3_000)));
    let (before, last) = until_the_card(&mut stage).await;
    assert!(before.is_empty());
    assert_eq!(offered(card(&last)), ["deny", "interrupt", "deny_with"]);
    assert!(face(card(&last)).contains("不能在飞书中批准"));
    // A client that drops a form button's value names the button.
    let named = json!({"action": {"value": {}, "tag": "button", "name": "submit_allow"}});
    let mut tries = 0;
    let said = until("the card is named", || {
        tries += 1;
        let event = format!("by-name-{tries}");
        let body = event_of(&json!({}), &last.message_id, &event, &named);
        let click = stage.sim.push_click_raw(body);
        async move {
            let said = click.await.1.toast.unwrap().content;
            (said != INVALID).then_some(said)
        }
    });
    assert_eq!(said.await, NOT_OFFERED);
    stage.tap(&last.message_id, "deny").await;
    assert_eq!(hook.ended().await.decision()["behavior"], "deny");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_very_long_input_is_a_file_whose_digest_is_on_the_card() {
    let mut stage = Stage::new().await;
    let long = lines(7_000);
    let hook = stage.home.hook(&bash("s1", &long));
    let (before, last) = until_the_card(&mut stage).await;
    let [file] = before.as_slice() else {
        panic!("one file: {}", before.len());
    };
    assert_eq!(file.msg_type, "file");
    let bytes = stage.sim.file(&file.message_id).expect("a file");
    assert!(String::from_utf8_lossy(&bytes).contains(&long));
    let digest = Sha256::digest(&bytes);
    let digest = digest.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    assert!(face(card(&last)).contains(&digest), "{}", face(card(&last)));
    stage.tap(&last.message_id, "allow").await;
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");

    stage.sim.edit_app(APP_ID, |app| {
        app.scopes.retain(|scope| !scope.starts_with("im:resource"));
    });
    let hook = stage.home.hook(&bash("s1", &long));
    let (before, last) = until_the_card(&mut stage).await;
    assert!(before.len() > 4, "without the scope as messages");
    assert!(seen(&before).contains("echo line 3500\n"));
    assert_eq!(
        offered(card(&last)),
        ["deny", "allow", "interrupt", "deny_with"]
    );
    stage.tap(&last.message_id, "deny").await;
    hook.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_on_the_way_never_leaves_an_allow_for_what_was_not_sent() {
    let mut stage = Stage::new().await;
    let long = lines(3_000);
    let hang = Fault::RestHang {
        path: SEND.to_owned(),
    };
    stage.sim.set_fault(Armed::always(hang)).unwrap();
    let hook = stage.home.hook(&bash("s1", &long));
    // A hook that has not heard yet where it stands can't come back.
    stage.daemon().logged("a request waits").await;
    stage.until_status(|status| status["pending"] == 1).await;
    assert_eq!(stage.count(), 0);
    stage.kill().await;
    stage.sim.clear_faults();
    stage.start().await;
    let (before, last) = until_the_card(&mut stage).await;
    assert!(seen(&before).contains("echo line 1500\n"));
    assert_eq!(
        offered(card(&last)),
        ["deny", "allow", "interrupt", "deny_with"]
    );
    // The seal on the button outlives the daemon that knew.
    stage.kill().await;
    stage.start().await;
    // Until the hook is back a tap only hears that it is not.
    stage.daemon().logged("a hook came back").await;
    let tapped = stage.tap(&last.message_id, "allow").await;
    assert_eq!(toast(&tapped), ALLOWED);
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_ends_while_it_is_sent_whole_never_waits_on_a_card() {
    let mut stage = Stage::new().await;
    let slow = Fault::SlowRest {
        ms: 500,
        path: SEND.to_owned(),
    };
    stage.sim.set_fault(Armed::always(slow)).unwrap();
    let hook = stage.home.hook(&bash("s1", &lines(3_000)));
    let first = stage.sent().await;
    assert!(face(card(&first)).contains("全文 1/"));
    hook.signal("-TERM");
    hook.ended().await;
    let (_, last) = async {
        let mut before = Vec::new();
        loop {
            let message = stage.sent().await;
            if face(card(&message)).contains("请求已失效") {
                return (before, message);
            }
            assert!(offered(card(&message)).is_empty());
            before.push(message);
        }
    }
    .await;
    assert!(offered(card(&last)).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_in_the_repository_shows_the_file_outside_it() {
    let mut stage = Stage::new().await;
    let outside = stage.home.path().join("home/.ssh");
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::write(outside.join("id_rsa"), "x").unwrap();
    let link = stage.home.project().join("link");
    std::os::unix::fs::symlink(&outside, &link).unwrap();
    let given = link.join("id_rsa");
    let asked = permission("s1", "Read", &json!({"file_path": given}));
    let (hook, shown) = stage.ask(&asked).await;
    let real = outside.canonicalize().unwrap().join("id_rsa");
    let text = stage.face(&shown);
    assert!(text.contains(given.to_str().unwrap()), "{text}");
    assert!(
        text.contains(&format!("实际是：{}", real.display())),
        "{text}"
    );
    assert!(text.contains("在项目之外"), "{text}");
    let now = stage.sim.message(&shown).unwrap().card.unwrap();
    assert_eq!(offered(&now), ["deny", "allow", "interrupt", "deny_with"]);
    stage.tap(&shown, "deny").await;
    hook.ended().await;

    // A link that is put there between the card and the tap leaves no rule.
    let file = stage.home.project().join("notes.txt");
    std::fs::write(&file, "x").unwrap();
    let asked = permission("s1", "Read", &json!({"file_path": file}));
    let (hook, shown) = stage.ask(&asked).await;
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(outside.join("id_rsa"), &file).unwrap();
    let refused = stage.tap(&shown, "always").await;
    assert_ne!(toast(&refused).0, "success");
    stage.tap(&shown, "deny").await;
    assert_eq!(hook.ended().await.decision()["behavior"], "deny");
}
