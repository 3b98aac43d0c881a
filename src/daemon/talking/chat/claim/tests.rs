use super::*;
use crate::approvals::outcome::sample;
use crate::daemon::bench::{DaemonBench, OWNER, message, replies, writes};
use crate::ids::MessageId;
use serde_json::{Value, json};

async fn claimed(bench: &DaemonBench, text: &str, more: &Value) -> MessageClaim {
    claim(&bench.chat, &message(OWNER, text, more)).await
}

#[tokio::test]
async fn a_reply_is_for_the_machine_whose_message_it_hangs_on() {
    let bench = DaemonBench::new().await;
    let asked = sample::request("Bash", json!({"command": "ls"}));
    let (_waiting, _, card) = bench.bench.shows(asked).await;
    let reply = replies(OWNER, "no", &card);
    assert_eq!(claim(&bench.chat, &reply).await, MessageClaim::Surely);
    let foreign = MessageId::parse("om_foreign").unwrap();
    let reply = replies(OWNER, "no", &foreign);
    assert_eq!(claim(&bench.chat, &reply).await, MessageClaim::None);
    bench.rests("c1", Some("omt_1")).await;
    let topic = |thread| json!({"thread_id": thread});
    let ours = claimed(&bench, "go on", &topic("omt_1")).await;
    assert_eq!(ours, MessageClaim::Surely);
    let theirs = claimed(&bench, "go on", &topic("omt_2")).await;
    assert_eq!(theirs, MessageClaim::None);
}

#[tokio::test]
async fn words_that_hang_on_nothing_are_claimed_by_what_waits_or_rests_here() {
    let bench = DaemonBench::new().await;
    let words = async |text| claim(&bench.chat, &writes(OWNER, text)).await;
    for (text, expected) in [
        ("go on", MessageClaim::None),
        ("/stop", MessageClaim::None),
        ("/help", MessageClaim::None),
        ("/new tidy up", MessageClaim::None),
        ("/new shop tidy up", MessageClaim::Surely),
    ] {
        assert_eq!(words(text).await, expected, "{text}");
    }
    bench.rests("c1", None).await;
    for (text, expected) in [
        ("go on", MessageClaim::Perhaps),
        ("/stop", MessageClaim::Perhaps),
        ("/sessions", MessageClaim::None),
    ] {
        assert_eq!(words(text).await, expected, "{text}");
    }
    let question = json!({"question": "Go?", "kind": "confirm"});
    let question = sample::request("nod_ask", question);
    let _waiting = bench.bench.shows(question).await;
    assert_eq!(words("yes").await, MessageClaim::Surely);
    assert_eq!(words("/stop").await, MessageClaim::Perhaps);
}

#[tokio::test]
async fn what_is_said_in_a_group_without_the_bot_is_nobodys() {
    let bench = DaemonBench::with(&[("FEISHU_CHAT_ID", "oc_chat")]).await;
    bench.rests("c1", None).await;
    let group = json!({"chat_type": "group"});
    assert_eq!(claimed(&bench, "go on", &group).await, MessageClaim::None);
    bench
        .bench
        .answers(json!({"code": 0, "bot": {"open_id": "ou_bot"}}));
    let mentions = json!([{"key": "@_user_1", "id": {"open_id": "ou_bot"}, "name": "nod"}]);
    let to_us = json!({"chat_type": "group", "mentions": mentions});
    let heard = claimed(&bench, "@_user_1 go on", &to_us).await;
    assert_eq!(heard, MessageClaim::Perhaps);
    let elsewhere = json!({"chat_type": "group", "chat_id": "oc_2", "mentions": mentions});
    let heard = claimed(&bench, "@_user_1 go on", &elsewhere).await;
    assert_eq!(heard, MessageClaim::None, "not the configured group");
}
