//! Any bytes as a push, alone and on the link: nobody and nothing is read into
//! it that does not stand there, and it is handed out and answered once.

use std::time::{Duration, Instant, SystemTime};

use nod::for_tests::feishu::event::{self, Click, Message, MessageBody, Person, Push};
use nod::for_tests::feishu::frame::{DATA, Frame, Header};
use nod::for_tests::feishu::link::{Incoming, Link, LinkStep, Now, PushAnswer, ServerSettings};
use nod::for_tests::ids::MessageId;
use prost::bytes::Bytes;
use serde_json::Value;

pub(crate) fn check(bytes: &[u8]) {
    let push = event::parse(bytes);
    if let Push::Other { kind } = &push {
        assert!(kind.chars().count() <= 80 && !kind.contains(char::is_control));
        assert!(kind != "card.action.trigger" && kind != "im.message.receive_v1");
    }
    // A structure may come as a list of its fields; that has no names to look
    // up here, and Feishu does not write it.
    if let Ok(value) = serde_json::from_slice::<Value>(bytes)
        && !any_list(&value)
    {
        match push {
            Push::Click(click) => stands_there(&click, &value["event"]),
            Push::Message(message) => is_said_there(&message, &value["event"]),
            Push::Other { .. } | Push::Unreadable { .. } => {}
        }
    }
    comes_once(bytes);
    is_survived(bytes);
}

fn any_list(value: &Value) -> bool {
    let event = &value["event"];
    let message = &event["message"];
    let mentioned = message["mentions"].as_array();
    let inner = [
        value,
        &value["header"],
        event,
        &event["operator"],
        &event["action"],
        &event["context"],
        &event["sender"],
        &event["sender"]["sender_id"],
        message,
    ];
    inner.into_iter().any(Value::is_array) || mentioned.is_some_and(|all| !all.is_empty())
}

fn is_named(by: &Person, there: &Value) {
    assert_eq!(by.open.as_deref(), there["open_id"].as_str());
    assert_eq!(by.union.as_deref(), there["union_id"].as_str());
    assert_eq!(by.tenant.as_deref(), there["user_id"].as_str());
    if let Some(id) = by.id() {
        assert!(by.is(&id) && !id.as_str().is_empty());
    }
}

fn stands_there(click: &Click, event: &Value) {
    is_named(&click.by, &event["operator"]);
    let action = &event["action"];
    assert_eq!(click.value, action["value"]);
    assert_eq!(click.name.as_deref(), action["name"].as_str());
    match action["form_value"].as_object() {
        Some(form) => assert_eq!(&click.form, form),
        None => assert!(click.form.is_empty()),
    }
    let message = [
        &event["context"]["open_message_id"],
        &event["open_message_id"],
    ];
    let message = message.into_iter().find_map(Value::as_str);
    let message = message.and_then(|id| MessageId::parse(id).ok());
    assert_eq!(click.message, message);
}

fn is_said_there(message: &Message, event: &Value) {
    is_named(&message.by, &event["sender"]["sender_id"]);
    assert_eq!(message.from_user, event["sender"]["sender_type"] == "user");
    let there = &event["message"];
    assert_eq!(message.in_private, there["chat_type"] == "p2p");
    let content = there["content"].as_str().unwrap_or_default();
    let content: Value = serde_json::from_str(content).unwrap_or_default();
    match (&message.body, there["message_type"].as_str()) {
        (MessageBody::Text(text), Some("text")) => assert_eq!(content["text"], text.as_str()),
        (MessageBody::Text(_), kind) => assert_eq!(kind, Some("post")),
        (MessageBody::Image { key }, kind) => {
            assert_eq!(
                (kind, &content["image_key"]),
                (Some("image"), &key.as_str().into())
            );
        }
        (MessageBody::File { key, .. }, kind) => {
            assert_eq!(
                (kind, &content["file_key"]),
                (Some("file"), &key.as_str().into())
            );
        }
        (MessageBody::Other { kind }, there) => assert_eq!(kind, there.unwrap_or_default()),
    }
}

fn up(now: Now) -> Link {
    let mut link = Link::new(now, 1, b"{}".to_vec());
    link.dialed(1, ServerSettings::default(), now);
    while link.step().is_some() {}
    link
}

fn now() -> Now {
    Now {
        mono: Instant::now(),
        wall: SystemTime::UNIX_EPOCH,
    }
}

/// The bytes as the payload of a proper push.
fn comes_once(bytes: &[u8]) {
    let now = now();
    let mut link = up(now);
    let frame = Frame {
        seq_id: 7,
        method: DATA,
        headers: vec![Header::new("type", "event"), Header::new("message_id", "m")],
        payload: Some(Bytes::copy_from_slice(bytes)),
        ..Frame::default()
    };
    link.received(Incoming::Binary(frame.to_bytes()), now);
    let Some(LinkStep::Deliver(push)) = link.step() else {
        panic!("a push that was not handed out");
    };
    assert_eq!(&push.payload[..], bytes);
    assert_eq!(link.step(), None);
    assert!(link.answer(push.ticket, &PushAnswer::Done, now));
    let Some(LinkStep::Send(reply)) = link.step() else {
        panic!("a push that was not answered");
    };
    let reply = Frame::parse(reply).expect("a frame");
    assert_eq!((reply.seq_id, reply.method), (7, DATA));
    assert_eq!(reply.header("message_id"), Some("m"));
    assert!(reply.payload().starts_with(br#"{"code":200"#));
    assert!(
        !link.answer(push.ticket, &PushAnswer::Done, now),
        "answered twice"
    );
    assert_eq!((link.step(), link.unanswered()), (None, 0));
}

/// The bytes as a message on the socket, and again.
fn is_survived(bytes: &[u8]) {
    let mut now = now();
    let mut link = up(now);
    for _ in 0..2 {
        link.received(Incoming::Binary(Bytes::copy_from_slice(bytes)), now);
        while let Some(step) = link.step() {
            match step {
                LinkStep::Deliver(push) => {
                    assert!(link.answer(push.ticket, &PushAnswer::Done, now));
                }
                LinkStep::Send(sent) => assert!(Frame::parse(sent).is_ok()),
                LinkStep::Note(note) => assert!(note.to_string().len() < 600),
                LinkStep::Dial | LinkStep::Ping | LinkStep::HangUp => {
                    panic!("bytes ended the connection")
                }
            }
        }
        assert_eq!(link.unanswered(), 0);
        now.mono += Duration::from_secs(1);
    }
}
