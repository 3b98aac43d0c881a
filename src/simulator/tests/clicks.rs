//! Taps: what is pushed, what the person sees, what happens to the card.

use serde_json::{Value, json};

use super::client::{Link, answer_to, with_data};
use super::{LIMIT, Simulator, card, ready, start, start_with, title};
use crate::simulator::control::faults::At;
use crate::simulator::{APP_ID, Armed, Fault, OWNER, Press, STRANGER, popup};
use std::time::Duration;

fn toast(content: &str) -> Value {
    json!({"toast": {"type": "success", "content": content}})
}

#[tokio::test]
async fn a_tap_brings_back_toast_and_card() {
    let simulator = start().await;
    let (_, mut link, id) = ready(&simulator).await;
    let result = json!({
        "toast": {"type": "success", "content": "已批准运行"},
        "card": {"type": "raw", "data": card("allowed")},
    });
    let (clicked, body) = tokio::join!(
        simulator.click(Press::action(&id, "allow")),
        link.answer_click(&result)
    );
    let clicked = clicked.unwrap();
    assert_eq!(clicked.popup, None);
    assert_eq!(clicked.toast.unwrap().content, "已批准运行");
    assert!(clicked.applied && !clicked.reverted);
    assert!(clicked.latency_us.is_some());
    assert_eq!(
        title(simulator.message(&id).unwrap().card.as_ref()),
        "allowed"
    );
    let event = &body["event"];
    assert_eq!(body["header"]["event_type"], "card.action.trigger");
    assert_eq!(body["header"]["app_id"], APP_ID);
    assert_eq!(body["header"]["create_time"].as_str().unwrap().len(), 16);
    assert_eq!(event["operator"]["open_id"], OWNER);
    assert!(event["token"].as_str().unwrap().starts_with("c-"));
    assert_eq!(
        event["action"],
        json!({"value": {"action": "allow", "request_id": "r1"}, "tag": "button"})
    );
    assert_eq!(event["context"]["open_message_id"], id.as_str());
    assert_eq!(simulator.violations(), []);
}

#[tokio::test]
async fn a_form_brings_what_was_filled_in() {
    let simulator = start().await;
    let (_, mut link, id) = ready(&simulator).await;
    let press = Press::named(&id, "submit_reason").fill("reason", "use the replica");
    let result = toast("ok");
    let (clicked, body) = tokio::join!(simulator.click(press), link.answer_click(&result));
    assert_eq!(clicked.unwrap().popup, None);
    assert_eq!(
        body["event"]["action"]["form_value"],
        json!({"reason": "use the replica"})
    );
    assert_eq!(body["event"]["action"]["name"], "submit_reason");
}

#[tokio::test]
async fn what_is_not_on_the_card_or_not_in_sight_can_not_be_tapped() {
    let simulator = start().await;
    let (http, _link, id) = ready(&simulator).await;
    let error = |press| async {
        let clicked = simulator.click(press).await;
        clicked.map_err(|e| e.to_string()).unwrap_err()
    };
    assert_eq!(
        error(Press::action(&id, "always")).await,
        "nothing on the card matches"
    );
    let stranger = Press::action(&id, "allow").by(STRANGER);
    assert!(error(stranger).await.ends_with("does not see this chat"));
    let nobody = Press::action(&id, "allow").by("ou_nobody");
    assert!(error(nobody).await.starts_with("there is no user"));
    assert!(
        error(Press::action("om_x", "allow"))
            .await
            .starts_with("there is no message")
    );
    let deleted = http
        .call(
            &format!("DELETE /open-apis/im/v1/messages/{id}"),
            &Value::Null,
        )
        .await;
    assert_eq!(deleted.code(), 0);
    assert_eq!(
        error(Press::action(&id, "allow")).await,
        "the message was recalled"
    );
}

#[tokio::test]
async fn an_old_card_can_not_be_tapped() {
    let simulator = start().await;
    let (_, _link, id) = ready(&simulator).await;
    simulator.advance_clock(Duration::from_secs(14 * 24 * 60 * 60 + 1));
    let clicked = simulator.click(Press::action(&id, "allow")).await;
    assert_eq!(
        clicked.unwrap_err().to_string(),
        "the card is older than 14 days"
    );
}

#[tokio::test]
async fn popups_are_those_of_a_real_client() {
    let simulator = start().await;
    let (_, mut link, id) = ready(&simulator).await;
    let bad_card = json!({"card": {"type": "raw", "data": {"schema": "2.0", "body": {"elements": [{"tag": "x"}]}}}});
    for (payload, expected) in [
        (json!({"code": 500}), popup::NOT_OK),
        (json!({"code": 200, "data": "???"}), popup::MALFORMED),
        (with_data(&json!("no handler")), popup::MALFORMED),
        (with_data(&bad_card), popup::BAD_CARD),
    ] {
        let answering = async {
            let (frame, _) = link.event().await;
            link.answer(&frame, &payload).await;
        };
        let press = simulator.click(Press::action(&id, "allow"));
        let (clicked, ()) = tokio::join!(press, answering);
        assert_eq!(clicked.unwrap().popup, Some(expected), "{payload}");
    }
    assert_eq!(
        title(simulator.message(&id).unwrap().card.as_ref()),
        "asked"
    );
}

#[tokio::test]
async fn silence_and_absence_have_their_popups() {
    let short = |options: &mut crate::simulator::Options| {
        options.answer_limit = Duration::from_millis(50);
    };
    let simulator = start_with(short).await;
    let (_, mut link, id) = ready(&simulator).await;
    let clicked = simulator.click(Press::action(&id, "allow")).await.unwrap();
    assert_eq!(clicked.popup, Some(popup::NO_ANSWER));
    let (frame, _) = link.event().await;
    link.answer(&frame, &with_data(&toast("late"))).await;
    let late = simulator
        .wait_for(LIMIT, |s: &Simulator| s.violations().first().cloned())
        .await;
    assert_eq!(late.unwrap().rule, "late_reply");
    simulator.edit_app(APP_ID, |app| app.callbacks.clear());
    let clicked = simulator.click(Press::action(&id, "allow")).await.unwrap();
    assert_eq!(clicked.popup, Some(popup::NOT_SUBSCRIBED));
}

#[tokio::test]
async fn without_a_connection_a_tap_fails_at_once() {
    let simulator = start().await;
    let http = super::Http::signed_in(&simulator).await;
    let id = http.send_card(&card("asked")).await;
    let clicked = simulator.click(Press::action(&id, "allow")).await.unwrap();
    assert_eq!(clicked.popup, Some(popup::NOT_SUBSCRIBED));
    assert_eq!(clicked.connection, None);
}

#[tokio::test]
async fn an_edit_before_the_reply_is_taken_back() {
    let simulator = start().await;
    let (http, mut link, id) = ready(&simulator).await;
    let hasty = async {
        let (frame, _) = link.event().await;
        assert_eq!(http.patch(&id, &card("too early")).await.code(), 0);
        link.answer(&frame, &with_data(&toast("ok"))).await;
    };
    let (clicked, ()) = tokio::join!(simulator.click(Press::action(&id, "allow")), hasty);
    assert!(clicked.unwrap().reverted);
    assert_eq!(
        title(simulator.message(&id).unwrap().card.as_ref()),
        "asked"
    );
}

#[tokio::test]
async fn an_edit_after_the_reply_stays() {
    let simulator = start().await;
    let (http, mut link, id) = ready(&simulator).await;
    let proper = async {
        let (frame, _) = link.event().await;
        link.answer(&frame, &with_data(&toast("ok"))).await;
        assert_eq!(http.patch(&id, &card("decided")).await.code(), 0);
    };
    let (clicked, ()) = tokio::join!(simulator.click(Press::action(&id, "allow")), proper);
    assert!(!clicked.unwrap().reverted);
    assert_eq!(
        title(simulator.message(&id).unwrap().card.as_ref()),
        "decided"
    );
}

#[tokio::test]
async fn a_second_reply_and_a_bad_echo_are_violations() {
    let simulator = start().await;
    let (_, mut link, id) = ready(&simulator).await;
    let twice = async {
        let (frame, _) = link.event().await;
        let mut reply = answer_to(&frame, &with_data(&toast("ok")));
        link.send(&reply).await;
        reply.service = 1;
        reply.headers.retain(|h| h.key != "instance_id");
        link.send(&reply).await;
    };
    let (clicked, ()) = tokio::join!(simulator.click(Press::action(&id, "allow")), twice);
    assert_eq!(clicked.unwrap().popup, None);
    for rule in ["second_reply", "wrong_service", "missing_instance_id"] {
        let found = simulator
            .wait_for(LIMIT, |s: &Simulator| {
                s.violations().into_iter().find(|v| v.rule == rule)
            })
            .await;
        assert!(found.is_some(), "{rule}");
    }
}

#[tokio::test]
async fn a_bare_acknowledgement_of_a_click_is_noted() {
    let simulator = start().await;
    let (_, mut link, id) = ready(&simulator).await;
    let (clicked, _) = tokio::join!(
        simulator.click(Press::action(&id, "allow")),
        link.acknowledge()
    );
    assert_eq!(clicked.unwrap().popup, None);
    assert_eq!(simulator.violations()[0].rule, "click_reply_without_data");
}

#[tokio::test]
async fn a_duplicate_is_the_same_event_in_another_frame() {
    let simulator = start().await;
    let (_, mut link, id) = ready(&simulator).await;
    simulator.set_fault(Armed::once(Fault::Duplicate)).unwrap();
    let both = async {
        let (first, first_body) = link.event().await;
        let (second, second_body) = link.event().await;
        assert_eq!(first_body, second_body);
        assert_ne!(first.header("message_id"), second.header("message_id"));
        link.answer(&first, &with_data(&toast("ok"))).await;
        link.answer(&second, &with_data(&toast("again"))).await;
    };
    let (clicked, ()) = tokio::join!(simulator.click(Press::action(&id, "allow")), both);
    assert_eq!(clicked.unwrap().toast.unwrap().content, "ok");
    let all = simulator.wait_for(LIMIT, |s: &Simulator| (s.replies() == 2).then_some(()));
    assert!(all.await.is_some());
    assert_eq!(simulator.violations(), []);
}

#[tokio::test]
async fn hostile_bodies_can_be_pushed() {
    let simulator = start().await;
    let mut link = Link::connect(&simulator).await;
    let payload = json!({"schema": "2.0", "header": {"event_id": "e9", "event_type": "card.action.trigger"}, "event": []});
    let result = toast("refused");
    let (pushed, body) = tokio::join!(
        simulator.push_click_raw(payload.to_string()),
        link.answer_click(&result)
    );
    let (pushed, outcome) = pushed;
    assert_eq!(body, payload);
    assert_eq!((pushed.event_id.as_str(), pushed.code), ("e9", Some(200)));
    assert_eq!(outcome.toast.unwrap().content, "refused");
}

#[tokio::test]
async fn a_reply_can_be_lost_with_its_connection() {
    let simulator = start_with(|o| o.answer_limit = Duration::from_millis(300)).await;
    let (_, mut link, id) = ready(&simulator).await;
    simulator
        .set_fault(Armed::once(Fault::Reset).at(At::Reply))
        .unwrap();
    let result = toast("ok");
    let (clicked, _) = tokio::join!(
        simulator.click(Press::action(&id, "allow")),
        link.answer_click(&result)
    );
    assert_eq!(clicked.unwrap().popup, Some(popup::NO_ANSWER));
    assert!(simulator.wait_connections(0, LIMIT).await);
    assert_eq!(simulator.replies(), 0);
}
