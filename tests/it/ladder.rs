//! What becomes of a card that this Feishu refuses: by the cause, the same words
//! and choices in another way, and the owner is told once.

use nod::for_tests::simulator::{Armed, Fault, GROUP, Press, STRANGER};
use serde_json::{Value, json};

use crate::hooks::{Stage, face, offered, permission, toast, values};

fn layout_refused(component: &str) -> Armed {
    Armed::always(Fault::LayoutRefused {
        component: component.to_owned(),
    })
}

fn refuses(path: &str, code: i64) -> Fault {
    Fault::RestError {
        path: path.to_owned(),
        code,
        http: 400,
        msg: "refused".to_owned(),
    }
}

const SEND: &str = "POST /open-apis/im/v1/messages";

/// A stage whose Feishu takes no form, and whose owner has been told.
async fn plain_stage() -> Stage {
    let mut stage = Stage::with(|_, home| home.set("FEISHU_CHAT_ID", GROUP)).await;
    stage.sim.set_fault(layout_refused("form")).unwrap();
    let (hook, card) = stage.ask_bash("echo first").await;
    stage.tap(&card, "allow").await;
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
    let told = stage.sent().await;
    assert!(told.content.contains("230099"), "{}", told.content);
    assert!(told.content.contains("log_id"), "{}", told.content);
    stage
}

#[tokio::test(flavor = "multi_thread")]
async fn a_danger_in_the_plainest_layout_is_allowed_by_a_second_card_only() {
    let mut stage = plain_stage().await;
    let (hook, card) = stage.ask_bash("sudo rm -r canary").await;
    let shown = stage.sim.message(&card).unwrap().card.unwrap();
    assert_eq!(offered(&shown), ["deny", "allow", "interrupt"]);
    let tapped = stage.tap(&card, "allow").await;
    assert_eq!(toast(&tapped).0, "info", "{tapped:?}");
    let second = stage.sent().await.message_id;
    let asked = stage.face(&second);
    assert!(asked.contains("sudo rm -r canary"), "{asked}");
    assert!(asked.contains("确认批准？"), "{asked}");
    let shown = stage.sim.message(&second).unwrap().card.unwrap();
    assert_eq!(offered(&shown), ["allow", "deny"]);
    assert_eq!(stage.until_status(|_| true).await["pending"], 1);

    // Tapped again, the first card makes no further one.
    stage.tap(&card, "allow").await;
    let strange = Press::action(&second, "allow").by(STRANGER);
    assert_eq!(toast(&stage.press(strange).await).0, "error");
    assert_eq!(stage.until_status(|_| true).await["pending"], 1);
    let tapped = stage.tap(&second, "allow").await;
    assert_eq!(toast(&tapped).0, "success", "{tapped:?}");
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
    for message in [&card, &second] {
        stage.shows(message, "已批准").await;
    }
    stage.no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_in_the_plainest_layout_is_left_after_a_second_card() {
    let mut stage = plain_stage().await;
    let (hook, card) = stage.ask_bash("npm test").await;
    stage.tap(&card, "always").await;
    let second = stage.sent().await.message_id;
    assert!(stage.face(&second).contains("Bash(npm test)"));
    let tapped = stage.tap(&second, "always").await;
    assert_eq!(toast(&tapped).1, "已始终允许，后续相同操作将自动批准");
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
    stage.shows(&second, "已始终允许").await;

    // The second card refuses too, and the first one does so without asking.
    let (hook, card) = stage.ask_bash("npm run lint").await;
    stage.tap(&card, "always").await;
    let second = stage.sent().await.message_id;
    stage.tap(&second, "deny").await;
    assert_eq!(hook.ended().await.decision()["behavior"], "deny");
    stage.shows(&card, "已拒绝").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_card_of_before_a_restart_decides_nothing() {
    let mut stage = plain_stage().await;
    let (hook, card) = stage.ask_bash("sudo rm -r canary").await;
    stage.tap(&card, "allow").await;
    let second = stage.sent().await.message_id;
    stage.kill().await;
    stage.start().await;
    stage.until_status(|status| status["pending"] == 1).await;
    let tapped = stage.tap(&second, "allow").await;
    assert_eq!(toast(&tapped).0, "warning", "{tapped:?}");
    // The first card still only asks, and brings the second one back to life.
    // Its hook may still be on the way back.
    let thumb = || tokio::time::sleep(std::time::Duration::from_millis(200));
    let asked = async {
        while toast(&stage.tap(&card, "allow").await).0 != "info" {
            thumb().await;
        }
    };
    crate::hooks::within(asked).await;
    let allowed = async {
        loop {
            let tapped = stage.tap(&second, "allow").await;
            if toast(&tapped).0 == "success" {
                break;
            }
            thumb().await;
        }
    };
    crate::hooks::within(allowed).await;
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
}

/// The next run knows neither the card's name nor what this Feishu needs.
#[tokio::test(flavor = "multi_thread")]
async fn a_plain_card_that_was_never_named_is_found_again_and_works() {
    let mut stage = plain_stage().await;
    let lost = Armed::always(Fault::SendCreatedButReplyLost);
    stage.sim.set_fault(lost).unwrap();
    let hook = stage.home.hook(&crate::hooks::bash("s1", "make nameless"));
    let card = stage.sent().await.message_id;
    stage.until_status(|status| status["pending"] == 1).await;
    stage.kill().await;
    stage.sim.clear_faults();
    stage.sim.set_fault(layout_refused("form")).unwrap();
    let before = stage.count();
    stage.start().await;
    // The owner of a new run is told what is needed once its card is out.
    let told = stage.sent().await;
    assert!(told.content.contains("230099"), "{}", told.content);
    assert_eq!(stage.count(), before + 1, "no second card");
    let tapped = stage.tap(&card, "allow").await;
    assert_eq!(toast(&tapped).0, "success", "{tapped:?}");
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_that_is_too_large_comes_with_less_on_it_and_can_be_allowed() {
    let mut stage = Stage::new().await;
    let long = format!("echo {}", "canary ".repeat(600));
    let too_long = Armed::once(refuses(SEND, 230_025));
    stage.sim.set_fault(too_long).unwrap();
    let hook = stage.home.hook(&crate::hooks::bash("s1", &long));
    let whole = stage.sent().await;
    assert!(
        whole.content.matches("canary").count() >= 600,
        "{}",
        whole.content
    );
    let card = stage.sent().await.message_id;
    let shown = stage.sim.message(&card).unwrap().card.unwrap();
    let shown_of_it = face(&shown).matches("canary").count();
    assert!(shown_of_it < 600, "{shown_of_it}");
    assert!(!offered(&shown).contains(&"always".to_owned()), "{shown}");
    assert!(offered(&shown).contains(&"allow".to_owned()), "{shown}");
    let told = stage.sent().await;
    assert!(told.content.contains("230025"), "{}", told.content);
    stage.tap(&card, "allow").await;
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
    let status = stage.until_status(|status| status["pending"] == 0).await;
    assert_eq!(status["needs"][0]["need"], "smaller");

    // The next one starts there.
    let hook = stage.home.hook(&crate::hooks::bash("s1", &long));
    stage.sent().await;
    let card = stage.sent().await.message_id;
    stage.tap(&card, "allow").await;
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
}

#[tokio::test(flavor = "multi_thread")]
async fn status_and_doctor_name_what_was_needed_with_its_code_and_log_id() {
    let stage = plain_stage().await;
    let status = stage.until_status(|_| true).await;
    let log_id = status["needs"][0]["log_id"].as_str().unwrap().to_owned();
    assert!(!log_id.is_empty());
    for command in [["status"].as_slice(), &["doctor"]] {
        let shown = stage.home.run(command).await;
        let all = format!("{}{}", shown.stdout, shown.stderr);
        assert!(all.contains("230099") && all.contains(&log_id), "{all}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ended_card_whose_words_feishu_forbids_ends_without_them() {
    let mut stage = Stage::new().await;
    let (hook, card) = stage.ask_bash("echo canary-content").await;
    stage
        .sim
        .set_fault(Armed::times(refuses("PATCH", 230_028), 3))
        .unwrap();
    stage.tap(&card, "deny").await;
    assert_eq!(hook.ended().await.decision()["behavior"], "deny");
    let ended = stage
        .sim
        .wait_for(crate::hooks::LIMIT, |sim| {
            let card = sim.message(&card)?.card?;
            let shown = face(&card);
            (shown.contains("已拒绝") && !shown.contains("canary-content")).then_some(())
        })
        .await;
    assert!(ended.is_some(), "{}", stage.face(&card));
}

/// A question whose fields are gone is answered by words.
#[tokio::test(flavor = "multi_thread")]
async fn questions_and_plans_keep_their_choices_in_the_plainest_layout() {
    let mut stage = plain_stage().await;
    let asked = json!({"questions": [
        {"question": "Which store?", "header": "Store", "multiSelect": false,
         "options": [{"label": "Redis", "description": ""}, {"label": "SQLite", "description": ""}]},
    ]});
    let (hook, card) = stage
        .ask(&permission("s1", "AskUserQuestion", &asked))
        .await;
    stage.press(Press::text(&card, "SQLite")).await;
    let answers = &hook.ended().await.decision()["updatedInput"]["answers"];
    assert_eq!(*answers, json!({"Which store?": "SQLite"}));
    let plan = json!({"plan": "1. measure\n2. cut", "planFilePath": "/p/plan.md"});
    let (hook, card) = stage.ask(&permission("s1", "ExitPlanMode", &plan)).await;
    let shown = stage.sim.message(&card).unwrap().card.unwrap();
    let taps: Vec<Value> = values(&shown)
        .iter()
        .map(|value| value["tap"].clone())
        .collect();
    assert!(taps.contains(&json!("approve_plan")), "{taps:?}");
    let press = Press {
        value: Some(json!({"tap": "approve_plan"})),
        message_id: card,
        ..Press::default()
    };
    stage.press(press).await;
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
}
