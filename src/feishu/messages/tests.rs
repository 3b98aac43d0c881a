//! What messages look like on the wire, and how Feishu's answers are read.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;

use super::*;
use crate::feishu::fake::{Fake, Reply, Seen, direct};
use crate::feishu::pace::PER_SECOND;
use crate::feishu::secret::Secret;

async fn messages(script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> (Fake, Messages) {
    let fake = Fake::start(move |seen, _| {
        if seen.is_login() {
            Reply::token("t-1")
        } else {
            script(seen)
        }
    })
    .await;
    let api = Api::new(&direct(), fake.base("127.0.0.1"), "cli_1", Secret::new("s"));
    let messages = Messages::new(api.expect("an API"), PER_SECOND);
    (fake, messages)
}

fn id(text: &str) -> MessageId {
    MessageId::parse(text).expect("a message id")
}

fn chat(text: &str) -> ChatId {
    ChatId::parse(text).expect("a chat id")
}

fn delivered() -> Reply {
    Reply::ok(&json!({"message_id": "om_9", "chat_id": "oc_9"}))
}

#[tokio::test]
async fn each_kind_of_receiver_is_named_to_feishu() {
    let (fake, messages) = messages(|_| delivered()).await;
    let user = |text| Receiver::User(UserId::parse(text).expect("a user id"));
    let cases = [
        (Receiver::Chat(chat("oc_1")), "chat_id", "oc_1"),
        (user("ou_1"), "open_id", "ou_1"),
        (user("on_1"), "union_id", "on_1"),
        (user("e33g"), "user_id", "e33g"),
    ];
    for (to, kind, receive_id) in cases {
        let content = Content::Text("hi \"there\"\n".to_owned());
        let sent = messages.send(&to, &content, "u-1").await.expect("sent");
        assert_eq!(sent.message_id, id("om_9"));
        assert_eq!(sent.chat_id, Some(chat("oc_9")));
        let last = fake.calls().pop().expect("a call");
        assert_eq!(
            last.line,
            format!("POST /open-apis/im/v1/messages?receive_id_type={kind} HTTP/1.1")
        );
        let body = last.json();
        assert_eq!(body["receive_id"], receive_id);
        assert_eq!(body["msg_type"], "text");
        assert_eq!(body["uuid"], "u-1");
        let content = body["content"].as_str().expect("JSON in a string");
        assert_eq!(
            serde_json::from_str::<Value>(content).expect("JSON"),
            json!({"text": "hi \"there\"\n"})
        );
    }
}

#[tokio::test]
async fn a_reply_names_the_message_and_the_topic() {
    let (fake, messages) = messages(|_| delivered()).await;
    let card = Content::Card(json!({"schema": "2.0"}));
    messages
        .reply(&id("om_1"), Some(&chat("oc_1")), &card, true, "u-2")
        .await
        .expect("sent");
    let seen = fake.calls().pop().expect("a call");
    assert_eq!(
        seen.line,
        "POST /open-apis/im/v1/messages/om_1/reply HTTP/1.1"
    );
    assert_eq!(
        seen.json(),
        json!({
            "msg_type": "interactive",
            "content": "{\"schema\":\"2.0\"}",
            "reply_in_thread": true,
            "uuid": "u-2",
        })
    );
}

#[tokio::test]
async fn an_id_cannot_lead_a_call_elsewhere() {
    let (fake, messages) = messages(|_| delivered()).await;
    let edited = messages.patch(&id("a/../../b?c#d"), "{}".into()).await;
    edited.expect("edited");
    let seen = fake.calls().pop().expect("a call");
    assert_eq!(
        seen.line,
        "PATCH /open-apis/im/v1/messages/a%2F..%2F..%2Fb%3Fc%23d HTTP/1.1"
    );
}

#[tokio::test]
async fn a_send_whose_answer_was_lost_is_repeated_with_the_same_key() {
    let tries = AtomicUsize::new(0);
    let (fake, messages) = messages(move |_| match tries.fetch_add(1, Ordering::Relaxed) {
        0 => Reply::HangUp,
        1 => Reply::refusal(400, 99_991_663),
        2 => Reply::refusal(400, 230_049),
        _ => delivered(),
    })
    .await;
    let to = Receiver::Chat(chat("oc_1"));
    let long = "key-".repeat(20);
    messages
        .send(&to, &Content::Text("hi".to_owned()), &long)
        .await
        .expect("sent");
    let calls = fake.calls();
    assert_eq!(calls.len(), 4);
    let keys: Vec<_> = calls
        .iter()
        .map(|call| call.json()["uuid"].clone())
        .collect();
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    assert!(keys[0].as_str().is_some_and(|key| key.len() <= MAX_UUID));
}

#[tokio::test]
async fn a_burst_to_one_chat_is_slowed_down() {
    let (fake, messages) = messages(|_| delivered()).await;
    let to = Receiver::Chat(chat("oc_1"));
    let content = Content::Text("hi".to_owned());
    let start = Instant::now();
    let sends = (0..=PER_SECOND).map(|_| messages.send(&to, &content, "u"));
    assert!(join_all(sends).await.iter().all(Result::is_ok));
    assert!(start.elapsed() >= Duration::from_secs(1));
    assert_eq!(fake.calls().len(), PER_SECOND + 1);
}

#[tokio::test]
async fn an_answer_without_a_message_id_is_no_success() {
    let (_fake, messages) = messages(|_| Reply::ok(&json!({}))).await;
    let to = Receiver::Chat(chat("oc_1"));
    let answer = messages
        .send(&to, &Content::Text("hi".to_owned()), "u")
        .await;
    assert!(matches!(answer, Err(ApiError::Malformed { .. })));
}

#[tokio::test]
async fn edits_of_one_message_are_joined_and_the_newest_wins() {
    let (fake, messages) = messages(|_| Reply::ok(&json!({}))).await;
    let message = id("om_1");
    let edits = (0..40).map(|number| {
        let card = json!({"n": number}).to_string();
        messages.patch(&message, card.into())
    });
    assert!(join_all(edits).await.iter().all(Result::is_ok));
    let calls = fake.calls();
    assert!(calls.len() <= 2, "{} edits were sent", calls.len());
    let last = calls.last().expect("an edit");
    assert_eq!(last.line, "PATCH /open-apis/im/v1/messages/om_1 HTTP/1.1");
    assert_eq!(last.json(), json!({"content": "{\"n\":39}"}));
}

#[tokio::test]
async fn edits_of_different_messages_do_not_wait_for_each_other() {
    let (fake, messages) = messages(|_| Reply::ok(&json!({}))).await;
    let ids: Vec<_> = (0..8).map(|number| id(&format!("om_{number}"))).collect();
    let edits = ids.iter().map(|id| messages.patch(id, "{}".into()));
    assert!(join_all(edits).await.iter().all(Result::is_ok));
    assert_eq!(fake.calls().len(), 8);
}

#[tokio::test]
async fn a_download_is_capped_and_a_refusal_is_not_a_file() {
    let file = |kind: &str, body: &[u8]| Reply::Answer {
        status: 200,
        headers: vec![("Content-Type", kind.to_owned())],
        body: body.to_vec(),
    };
    let (fake, messages) = messages(move |seen| {
        if seen.line.contains("/bytes") {
            file("application/octet-stream", b"0123456789")
        } else if seen.line.contains("/page") {
            file("text/html", b"<html>blocked</html>")
        } else if seen.line.contains("/named") {
            file("application/json", b"{\"code\":1}")
                .header("Content-Disposition", "attachment; filename=\"a.json\"")
        } else {
            Reply::refusal(400, 230_110)
        }
    })
    .await;
    let message = id("om_1");
    let fetch = |key: &'static str, max| {
        messages.download_resource(&message, key, AttachmentKind::Image, max)
    };
    assert_eq!(fetch("bytes", 10).await, Ok(b"0123456789".to_vec()));
    assert_eq!(
        fetch("bytes", 9).await,
        Err(ApiError::TooLarge { limit: 9 })
    );
    assert_eq!(fetch("named", 99).await, Ok(b"{\"code\":1}".to_vec()));
    assert!(matches!(
        fetch("page", 99).await,
        Err(ApiError::Malformed { .. })
    ));
    assert!(matches!(fetch("gone", 99).await, Err(ApiError::Gone(_))));
    let first = fake.calls().remove(0);
    assert_eq!(
        first.line,
        "GET /open-apis/im/v1/messages/om_1/resources/bytes?type=image HTTP/1.1"
    );
}

#[tokio::test]
async fn a_file_is_uploaded_as_a_form_and_named_by_its_key() {
    let (fake, messages) = messages(|seen| {
        if seen.line.contains("/im/v1/files") {
            Reply::ok(&json!({"file_key": "file_v3_1"}))
        } else {
            delivered()
        }
    })
    .await;
    let key = messages.upload("a.txt", b"all of it".to_vec().into()).await;
    assert_eq!(key.as_deref(), Ok("file_v3_1"));
    let call = fake.calls().pop().expect("a call");
    assert_eq!(call.line, "POST /open-apis/im/v1/files HTTP/1.1");
    for part in [
        "stream",
        "name=\"file_name\"",
        "filename=\"a.txt\"",
        "all of it",
    ] {
        assert!(call.body.contains(part), "{part}: {}", call.body);
    }
    let to = Receiver::Chat(chat("oc_1"));
    let content = Content::File("file_v3_1".to_owned());
    messages.send(&to, &content, "u").await.expect("sent");
    let sent = fake.calls().pop().expect("a call").json();
    assert_eq!(sent["msg_type"], "file");
    assert_eq!(sent["content"], "{\"file_key\":\"file_v3_1\"}");
}

#[tokio::test]
async fn doctor_reads_what_feishu_tells_and_bears_what_it_does_not() {
    let (_fake, told) = messages(|seen| {
        if seen.line.contains("/bot/v3/info") {
            let bot = json!({"open_id": "ou_b", "app_name": "nod", "activate_status": 2});
            Reply::json(200, &json!({"code": 0, "bot": bot}))
        } else if seen.line.contains("/event/v1/connection") {
            Reply::ok(&json!({"online_instance_cnt": 2}))
        } else if seen.line.contains("/applications/me?lang=zh_cn") {
            Reply::ok(&json!({"app": {
                "scopes": [{"scope": "im:message"}],
                "callback_info": {"callback_type": "websocket", "subscribed_callbacks": ["card.action.trigger"]},
                "owner": {"type": 2, "owner_id": "ou_o"},
                "creator_id": "ou_c",
            }}))
        } else {
            Reply::ok(&json!({"items": [
                {"version": "1.0.1", "status": 2, "publish_time": ""},
                {"version": "1.0.0", "status": 1, "publish_time": "1700000000",
                 "event_infos": [{"event_type": "im.message.receive_v1"}]},
            ]}))
        }
    })
    .await;
    let bot = told.bot().await.expect("a bot");
    assert_eq!((bot.open_id.as_deref(), bot.enabled), (Some("ou_b"), true));
    assert_eq!(told.online_connections().await, Ok(Some(2)));
    let app = told.application().await.expect("an application");
    assert_eq!(app.scopes, ["im:message"]);
    assert_eq!(app.callback_type.as_deref(), Some("websocket"));
    assert_eq!(app.callbacks, Some(vec!["card.action.trigger".to_owned()]));
    assert_eq!(app.subscription_type, None);
    assert_eq!(app.owner.as_deref(), Some("ou_o"));
    let versions = told.app_versions().await.expect("versions");
    let published: Vec<_> = versions
        .iter()
        .filter(|version| version.published)
        .collect();
    assert_eq!(published.len(), 1);
    assert_eq!(published[0].events, ["im.message.receive_v1"]);

    let (_fake, silent) = messages(|seen| {
        if seen.line.contains("connection") {
            Reply::Answer {
                status: 404,
                headers: Vec::new(),
                body: b"404 page not found".to_vec(),
            }
        } else {
            Reply::ok(&json!(null))
        }
    })
    .await;
    assert_eq!(silent.online_connections().await, Ok(None));
    assert_eq!(silent.app_versions().await, Ok(Vec::new()));
    let app = silent.application().await.expect("an application");
    assert_eq!((app.callbacks, app.owner), (None, None));
    assert!(!silent.bot().await.expect("a bot").enabled);
}

#[test]
fn a_text_mentions_nobody_and_links_nowhere() {
    let text = r#"<at user_id="all">all</at> <i>x</i> [pay](https://evil.example) a < b"#;
    let content = Content::Text(text.to_owned());
    let bot = crate::feishu::custom_bot::body(&content, Previews::Full, None);
    let sent: Value = serde_json::from_str(&content.wrapped(Previews::Full)).unwrap();
    for said in [&sent["text"], &bot["content"]["text"]] {
        assert_eq!(
            said,
            r#"＜at user_id="all">all＜/at> ＜i>x＜/i> [pay] (https://evil.example) a ＜ b"#
        );
    }
}
