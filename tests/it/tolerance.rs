//! Taps in every shape somebody has seen Feishu send them: each means what the
//! person meant, and none means more.

use nod::for_tests::simulator::{Armed, Fault, Press};
use serde_json::{Value, json};

use crate::hooks::{Stage, permission, toast};

const TAKEN: &str = "success";

/// Each way a tap is bent, by what it bends.
fn bends() -> [Fault; 6] {
    [
        Fault::SubmitWithoutValue,
        Fault::NullsDropped,
        Fault::ValueAsText,
        Fault::ChoicesAsText,
        Fault::OperatorNested,
        Fault::Pinned,
    ]
}

fn questions() -> Value {
    json!({"questions": [
        {"question": "Which store?", "header": "Store", "multiSelect": false,
         "options": [{"label": "Redis", "description": ""}, {"label": "SQLite", "description": ""}]},
        {"question": "Which extras?", "header": "Extras", "multiSelect": true,
         "options": [{"label": "Metrics", "description": ""}, {"label": "Notes", "description": ""}]},
    ]})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_of_questions_is_answered_however_feishu_sends_it() {
    let mut stage = Stage::new().await;
    let asked = permission("s1", "AskUserQuestion", &questions());
    for fault in bends() {
        stage.sim.set_fault(Armed::once(fault.clone())).unwrap();
        let (hook, card) = stage.ask(&asked).await;
        let form = Press::named(&card, "submit_answer")
            .fill("q0", "o1")
            .fill("q1", json!(["o0", "o1"]));
        let tapped = stage.press(form).await;
        assert_eq!(toast(&tapped).0, TAKEN, "{fault:?}: {tapped:?}");
        let answers = &hook.ended().await.decision()["updatedInput"]["answers"];
        let expected = json!({"Which store?": "SQLite", "Which extras?": "Metrics, Notes"});
        assert_eq!(*answers, expected, "{fault:?}");
        assert!(stage.sim.faults().is_empty(), "{fault:?} struck");
    }
    stage.no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_approved_or_sent_back_however_feishu_sends_it() {
    let mut stage = Stage::new().await;
    let plan = json!({"plan": "1. measure\n2. cut", "planFilePath": "/p/plan.md"});
    let asked = permission("s1", "ExitPlanMode", &plan);
    let all = [
        ("submit_approve_edits", Fault::SubmitWithoutValue),
        ("submit_revise_plan", Fault::SubmitWithoutValue),
        ("b_approve", Fault::ValueAsText),
        ("b_keep", Fault::ValueAsText),
        ("submit_approve_edits", Fault::OperatorNested),
        ("submit_revise_plan", Fault::Pinned),
    ];
    for (button, fault) in all {
        stage.sim.set_fault(Armed::once(fault.clone())).unwrap();
        let (hook, card) = stage.ask(&asked).await;
        let press = if button.starts_with("b_") {
            Press::element(&card, button)
        } else {
            Press::named(&card, button).fill("q0", "measure twice")
        };
        let tapped = stage.press(press).await;
        assert_eq!(toast(&tapped).0, TAKEN, "{fault:?} {button}: {tapped:?}");
        let decision = hook.ended().await.decision();
        let (behavior, edits) = match button {
            "submit_revise_plan" | "b_keep" => ("deny", false),
            "submit_approve_edits" => ("allow", true),
            _ => ("allow", false),
        };
        assert_eq!(decision["behavior"], behavior, "{fault:?} {button}");
        let updates = decision["updatedPermissions"].is_array();
        assert_eq!(updates, edits, "{fault:?} {button}");
    }
    stage.no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permission_is_decided_however_feishu_sends_the_tap() {
    let mut stage = Stage::new().await;
    let asked = permission("s1", "Bash", &json!({"command": "make"}));
    let actions = ["allow", "deny"].into_iter().cycle();
    for (fault, action) in bends().into_iter().zip(actions) {
        stage.sim.clear_faults();
        stage.sim.set_fault(Armed::once(fault.clone())).unwrap();
        let (hook, card) = stage.ask(&asked).await;
        let tapped = stage.tap(&card, action).await;
        assert_ne!(toast(&tapped).0, "error", "{fault:?} {action}: {tapped:?}");
        let decision = hook.ended().await.decision();
        assert_eq!(decision["behavior"], action, "{fault:?}");
    }
    stage.no_violations();
}

/// The shapes are taken from Feishu alone: a name without a card of ours, and
/// somebody who is not an approver, decide nothing in any of them.
#[tokio::test(flavor = "multi_thread")]
async fn no_shape_of_a_tap_lets_a_stranger_or_a_foreign_card_decide() {
    let mut stage =
        Stage::with(|_, home| home.set("FEISHU_CHAT_ID", nod::for_tests::simulator::GROUP)).await;
    let asked = permission("s1", "AskUserQuestion", &questions());
    let (hook, card) = stage.ask(&asked).await;
    for fault in bends() {
        stage.sim.clear_faults();
        stage.sim.set_fault(Armed::always(fault.clone())).unwrap();
        let form = Press::named(&card, "submit_answer")
            .fill("q0", "o1")
            .fill("q1", json!(["o0"]));
        let tapped = stage
            .press(form.by(nod::for_tests::simulator::STRANGER))
            .await;
        assert_eq!(toast(&tapped).0, "error", "{fault:?}");
    }
    let foreign = json!({
        "schema": "2.0",
        "header": {"event_id": "e-foreign", "event_type": "card.action.trigger"},
        "event": {
            "operator": {"user_id": {"open_id": nod::for_tests::simulator::OWNER}},
            "action": {"tag": "button", "name": "submit_answer", "form_value": {"q0": "o1", "q1": "[\"o0\"]"}},
            "context": {"open_message_id": "om_of_somebody_else"},
        },
    });
    let (_, seen) = stage.sim.push_click_raw(foreign.to_string()).await;
    assert_eq!(seen.toast.unwrap().kind, "error");
    stage.sim.clear_faults();
    let form = Press::named(&card, "submit_answer")
        .fill("q0", "o0")
        .fill("q1", json!(["o1"]));
    assert_eq!(toast(&stage.press(form).await).0, TAKEN, "it still waited");
    hook.ended().await;
}

/// A refusal of the card in an answer is seen by the person alone: nod sends one
/// only if Feishu took such a card in an edit before.
#[tokio::test(flavor = "multi_thread")]
async fn the_answer_to_a_tap_carries_a_card_only_after_an_edit_of_its_making_was_taken() {
    let mut stage = Stage::new().await;
    let refuse = Armed::always(Fault::CallbackCardRefused);
    stage.sim.set_fault(refuse).unwrap();
    let (hook, card) = stage.ask_bash("make first").await;
    let since = std::time::Instant::now();
    let tapped = stage.tap(&card, "allow").await;
    assert_eq!(
        (tapped.popup, toast(&tapped).0),
        (None, TAKEN),
        "{tapped:?}"
    );
    assert!(tapped.card.is_none());
    assert_eq!(hook.ended().await.decision()["behavior"], "allow");
    // Long before a lost answer would be over.
    stage.shows(&card, "已批准").await;
    assert!(
        since.elapsed() < std::time::Duration::from_secs(3),
        "at once"
    );
    stage.sim.clear_faults();

    let (hook, card) = stage.ask_bash("make second").await;
    let tapped = stage.tap(&card, "allow").await;
    assert!(tapped.applied && tapped.card.is_some(), "{tapped:?}");
    hook.ended().await;
    stage.stop().await;
    stage.start().await;
    let (hook, card) = stage.ask_bash("make third").await;
    let tapped = stage.tap(&card, "deny").await;
    assert!(tapped.applied, "known over a restart: {tapped:?}");
    hook.ended().await;
    stage.no_violations();
}

/// A Feishu that stops taking such a card in an edit is told by its edits.
#[tokio::test(flavor = "multi_thread")]
async fn a_layout_refused_in_an_edit_leaves_the_plainest_and_the_next_answer_too() {
    let mut stage = Stage::new().await;
    let (hook, card) = stage.ask_bash("make first").await;
    let refuse = Fault::LayoutRefused {
        component: "collapsible_panel".to_owned(),
    };
    stage.sim.set_fault(Armed::always(refuse)).unwrap();
    stage.tap(&card, "allow").await;
    hook.ended().await;
    stage.shows(&card, "已批准").await;
    let told = stage.sent().await;
    assert!(told.content.contains("230099"), "{}", told.content);
    let (hook, card) = stage.ask_bash("make second").await;
    let tapped = stage.tap(&card, "allow").await;
    assert_eq!(
        (tapped.popup, toast(&tapped).0),
        (None, TAKEN),
        "{tapped:?}"
    );
    hook.ended().await;
    stage.shows(&card, "已批准").await;
}

/// An answer without data shows the person an error.
#[tokio::test(flavor = "multi_thread")]
async fn a_tap_that_cannot_be_read_shows_no_error() {
    let stage = Stage::new().await;
    let broken = r#"{"header":{"event_type":"card.action.trigger"},"event":{"#;
    let (pushed, seen) = stage.sim.push_click_raw(broken).await;
    assert_eq!(pushed.code, Some(200));
    assert_eq!((seen.popup, pushed.data), (None, Some(json!({}))));
}
