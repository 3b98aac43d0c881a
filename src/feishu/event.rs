//! What a push says: a click on a card, a chat message, or something we leave
//! alone. Reads leniently and judges nothing: every field may be missing, and
//! one of another kind than it should be is one that is missing.

mod wire;

use serde_json::{Map, Value};
use std::borrow::Cow;

use crate::ids::{ChatId, EventId, MessageId, UserId};
use crate::text::replace_mark;
use wire::{Wire, WireEvent, WirePerson};

/// More than anybody pastes into one message.
const MAX_PICTURES: usize = 20;

#[derive(Debug, Clone, PartialEq)]
pub enum Push {
    Click(Box<Click>),
    Message(Box<Message>),
    /// Acknowledged and otherwise ignored.
    Other {
        kind: String,
    },
    /// No event at all.
    Unreadable {
        problem: String,
    },
}

impl Push {
    /// A chat message, if it is one to this app.
    pub fn message_to(self, app: &str) -> Option<Message> {
        match self {
            Self::Message(message) if message.head.is_of(app) => Some(*message),
            _ => None,
        }
    }
}

/// What every push says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventHead {
    pub event_id: Option<EventId>,
    /// When Feishu made it, in milliseconds; callbacks come in microseconds
    /// and are brought to the same scale.
    pub created_ms: Option<i64>,
    pub app_id: Option<String>,
    pub tenant: Option<String>,
}

/// A tap on a button or a submitted form.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Click {
    pub head: EventHead,
    pub by: Person,
    /// The button's own value, verbatim; read where it came as JSON text. Only
    /// objects are ours.
    pub value: Value,
    /// The component's name; some clients drop the value of a form's button.
    pub name: Option<String>,
    pub form: Map<String, Value>,
    pub message: Option<MessageId>,
    pub chat: Option<ChatId>,
    /// Where the card was clicked: `im_message` in a chat.
    pub host: Option<String>,
    /// Set for cards shown outside their message, as in a link preview.
    pub delivery_type: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub head: EventHead,
    pub by: Person,
    pub from_user: bool,
    pub id: Option<MessageId>,
    pub parent: Option<MessageId>,
    pub root: Option<MessageId>,
    pub thread: Option<String>,
    pub chat: Option<ChatId>,
    pub in_private: bool,
    pub sent_ms: Option<i64>,
    pub body: MessageBody,
    /// The keys of pictures that stand between the words of a rich text.
    pub pictures: Vec<String>,
    pub mentions: Vec<Mention>,
    /// A button stood for these words; its card is the message.
    pub tapped: bool,
}

impl Message {
    /// Its words without the marks that stand for whoever is mentioned.
    pub fn without_mentions(&self, text: &str) -> String {
        let all = self.mentions.iter();
        all.fold(text.to_owned(), |text, one| {
            replace_mark(&text, &one.key, "")
        })
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum MessageBody {
    Text(String),
    Image { key: String },
    File { key: String, name: String },
    Other { kind: String },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// The placeholder that stands in the text, `@_user_1`.
    pub key: String,
    pub who: Person,
    /// What the person is called, as Feishu tells it. Never trusted.
    pub name: String,
}

/// A Feishu user under every id the push named.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Person {
    pub open: Option<String>,
    pub union: Option<String>,
    pub tenant: Option<String>,
    pub tenant_key: Option<String>,
}

impl EventHead {
    /// Whether an event is of this app. One that names no app is: only Feishu
    /// speaks on a connection that this app's secret opened, and it sends each
    /// app its own events.
    pub fn is_of(&self, app: &str) -> bool {
        self.app_id.as_ref().is_none_or(|named| *named == app)
    }
}

impl Person {
    pub fn is(&self, id: &UserId) -> bool {
        let named = match id {
            UserId::Open(_) => &self.open,
            UserId::Union(_) => &self.union,
            UserId::Tenant(_) => &self.tenant,
        };
        named.as_deref() == Some(id.as_str())
    }

    /// The id to remember this person by.
    pub fn id(&self) -> Option<UserId> {
        [&self.open, &self.union, &self.tenant]
            .into_iter()
            .flatten()
            .find_map(|id| UserId::parse(id).ok().filter(|id| self.is(id)))
    }
}

/// Reads one push. Never fails: what is not an event is told apart.
pub fn parse(payload: &[u8]) -> Push {
    // Judged as text once, not string by string.
    let Ok(text) = std::str::from_utf8(payload) else {
        return Push::Unreadable {
            problem: "it is not UTF-8".to_owned(),
        };
    };
    let wire: Wire<'_> = match serde_json::from_str(text) {
        Ok(wire) => wire,
        Err(e) => {
            return Push::Unreadable {
                problem: format!("no event JSON at line {}, column {}", e.line(), e.column()),
            };
        }
    };
    let header = wire.header.unwrap_or_default();
    let head = EventHead {
        event_id: id(header.event_id, EventId::parse),
        created_ms: header.create_time.and_then(|text| millis(&text)),
        app_id: header.app_id.map(Cow::into_owned),
        tenant: header.tenant_key.map(Cow::into_owned),
    };
    let event = wire.event.unwrap_or_default();
    match header.event_type.as_deref() {
        Some("card.action.trigger") => Push::Click(Box::new(click(head, event))),
        Some("im.message.receive_v1") => Push::Message(Box::new(message(head, event))),
        other => Push::Other {
            kind: other
                .or(event.kind.as_deref())
                .unwrap_or("unnamed")
                .chars()
                .map(|c| {
                    if c.is_control() {
                        char::REPLACEMENT_CHARACTER
                    } else {
                        c
                    }
                })
                .take(80)
                .collect(),
        },
    }
}

fn click(head: EventHead, event: WireEvent<'_>) -> Click {
    let context = event.context.unwrap_or_default();
    let action = event.action.unwrap_or_default();
    Click {
        head,
        by: event.operator.unwrap_or_default().into(),
        value: unpacked(action.value),
        name: action.name.map(Cow::into_owned),
        form: action.form_value.unwrap_or_default(),
        message: id(
            context.open_message_id.or(event.open_message_id),
            MessageId::parse,
        ),
        chat: id(context.open_chat_id.or(event.open_chat_id), ChatId::parse),
        host: event.host.map(Cow::into_owned),
        delivery_type: event.delivery_type.map(Cow::into_owned),
    }
}

/// Some clients send an object as its JSON text.
fn unpacked(value: Value) -> Value {
    let object = value.as_str().filter(|text| text.starts_with('{'));
    match object.and_then(|text| serde_json::from_str(text).ok()) {
        Some(object) => object,
        None => value,
    }
}

fn message(head: EventHead, event: WireEvent<'_>) -> Message {
    let wire = event.message.unwrap_or_default();
    let sender = event.sender.unwrap_or_default();
    let content: Value = wire
        .content
        .as_deref()
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let text = |field: &str| content[field].as_str().map(str::to_owned);
    let kind = wire.message_type.unwrap_or_default();
    let pictures = match &*kind {
        "post" => post_pictures(&content),
        _ => Vec::new(),
    };
    let body = match (&*kind, text("text"), text("image_key"), text("file_key")) {
        ("text", Some(text), _, _) => MessageBody::Text(text),
        ("image", _, Some(key), _) => MessageBody::Image { key },
        ("file", _, _, Some(key)) => MessageBody::File {
            key,
            name: text("file_name").unwrap_or_else(|| "file".to_owned()),
        },
        ("post", ..) => MessageBody::Text(post_text(&content)),
        _ => MessageBody::Other {
            kind: kind.into_owned(),
        },
    };
    Message {
        head,
        by: sender.sender_id.unwrap_or_default().into(),
        from_user: sender.sender_type.as_deref() == Some("user"),
        id: id(wire.message_id, MessageId::parse),
        parent: id(wire.parent_id, MessageId::parse),
        root: id(wire.root_id, MessageId::parse),
        thread: wire.thread_id.map(Cow::into_owned),
        chat: id(wire.chat_id, ChatId::parse),
        in_private: wire.chat_type.as_deref() == Some("p2p"),
        sent_ms: wire.create_time.and_then(|text| millis(&text)),
        body,
        pictures,
        mentions: wire
            .mentions
            .into_iter()
            .map(|m| Mention {
                key: m.key.unwrap_or_default().into_owned(),
                who: m.id.unwrap_or_default().into(),
                name: m.name.unwrap_or_default().into_owned(),
            })
            .collect(),
        tapped: false,
    }
}

/// A rich text as it is, or in the first of its languages.
fn post_body(content: &Value) -> &Value {
    if content["content"].is_array() {
        return content;
    }
    content
        .as_object()
        .and_then(|locales| locales.values().find(|v| v["content"].is_array()))
        .unwrap_or(content)
}

/// The pictures of a rich text, in order.
fn post_pictures(content: &Value) -> Vec<String> {
    let lines = post_body(content)["content"]
        .as_array()
        .into_iter()
        .flatten();
    let nodes = lines.flat_map(|line| line.as_array().into_iter().flatten());
    let pictures = nodes.filter(|node| node["tag"] == "img");
    pictures
        .filter_map(|node| node["image_key"].as_str().map(str::to_owned))
        .take(MAX_PICTURES)
        .collect()
}

/// The words of a rich-text message, line by line.
fn post_text(content: &Value) -> String {
    let body = post_body(content);
    let mut lines: Vec<String> = Vec::new();
    if let Some(title) = body["title"].as_str().filter(|t| !t.is_empty()) {
        lines.push(title.to_owned());
    }
    for line in body["content"].as_array().into_iter().flatten() {
        let words = line.as_array().into_iter().flatten();
        lines.push(words.filter_map(|node| node["text"].as_str()).collect());
    }
    lines.join("\n")
}

fn id<T>(
    text: Option<Cow<'_, str>>,
    parse: impl Fn(&str) -> Result<T, crate::ids::BadId>,
) -> Option<T> {
    parse(&text?).ok()
}

impl From<WirePerson<'_>> for Person {
    fn from(wire: WirePerson<'_>) -> Self {
        let (tenant, nested) = match wire.user_id {
            Some(wire::OneOrMore::One(id)) => (Some(id), wire::Ids::default()),
            Some(wire::OneOrMore::More(ids)) => (None, ids),
            None => (None, wire::Ids::default()),
        };
        let owned = |flat: Option<Cow<'_, str>>, nested: Option<Cow<'_, str>>| {
            flat.or(nested).map(Cow::into_owned)
        };
        Self {
            open: owned(wire.open_id, nested.open),
            union: owned(wire.union_id, nested.union),
            tenant: owned(tenant, nested.tenant),
            tenant_key: wire.tenant_key.map(Cow::into_owned),
        }
    }
}

/// Feishu writes milliseconds in events and microseconds in callbacks.
fn millis(text: &str) -> Option<i64> {
    let number: i64 = text.parse().ok().filter(|n| *n > 0)?;
    Some(match text.len() {
        0..=10 => number.checked_mul(1_000)?,
        11..=14 => number,
        _ => number / 1_000,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn click_of(event: &Value) -> Click {
        let body = json!({
            "schema": "2.0",
            "header": {
                "event_id": "e1", "event_type": "card.action.trigger",
                "create_time": "1793922640000000", "app_id": "cli_x", "tenant_key": "t",
            },
            "event": event,
        });
        match parse(body.to_string().as_bytes()) {
            Push::Click(click) => *click,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_full_click_is_read() {
        let click = click_of(&json!({
            "operator": {"tenant_key": "t", "user_id": "u", "open_id": "ou_1", "union_id": "on_1"},
            "token": "c-1",
            "action": {
                "value": {"action": "deny", "request_id": "r"}, "tag": "button",
                "name": "submit_deny", "form_value": {"reason": "no"}, "timezone": "x",
            },
            "host": "im_message",
            "context": {"open_message_id": "om_1", "open_chat_id": "oc_1"},
        }));
        assert_eq!(click.head.created_ms, Some(1_793_922_640_000));
        assert_eq!(click.value["action"], "deny");
        assert_eq!(click.form["reason"], "no");
        assert_eq!(click.message.unwrap().as_str(), "om_1");
        for id in ["ou_1", "on_1", "u"] {
            assert!(click.by.is(&UserId::parse(id).unwrap()), "{id}");
        }
        assert!(!click.by.is(&UserId::parse("ou_2").unwrap()));
        assert!(!Person::default().is(&UserId::parse("u").unwrap()));
    }

    #[test]
    fn an_id_that_looks_like_another_kind_names_nobody() {
        for (open, tenant) in [(Some("oq_1"), None), (None, Some("ou_1"))] {
            let person = Person {
                open: open.map(str::to_owned),
                tenant: tenant.map(str::to_owned),
                ..Person::default()
            };
            assert_eq!(person.id(), None);
        }
    }

    #[test]
    fn a_click_with_nothing_in_it_is_still_a_click() {
        let click = click_of(&json!({}));
        assert_eq!(click.value, Value::Null);
        assert_eq!(click.by.id(), None);
        let old = click_of(&json!({"open_message_id": "om_2", "action": {"value": "{text"}}));
        assert_eq!(old.message.unwrap().as_str(), "om_2");
        assert_eq!(old.value, "{text");
        let nulls = click_of(&json!({
            "operator": null, "context": null,
            "action": {"value": {"action": "allow"}, "form_value": null, "name": null},
        }));
        assert_eq!(nulls.value["action"], "allow");
    }

    #[test]
    fn a_message_is_read_with_its_thread_and_mentions() {
        let body = json!({
            "header": {"event_type": "im.message.receive_v1", "create_time": "1793922640123"},
            "event": {
                "sender": {"sender_id": {"open_id": "ou_1"}, "sender_type": "user"},
                "message": {
                    "message_id": "om_1", "parent_id": "om_0", "chat_id": "oc_1",
                    "chat_type": "p2p", "message_type": "text",
                    "content": "{\"text\":\"@_user_1 go\"}",
                    "mentions": [{"key": "@_user_1", "id": {"open_id": "ou_bot"}}],
                },
            },
        });
        let Push::Message(message) = parse(body.to_string().as_bytes()) else {
            panic!("a message");
        };
        assert_eq!(message.body, MessageBody::Text("@_user_1 go".to_owned()));
        assert!(message.in_private && message.from_user);
        assert_eq!(message.parent.unwrap().as_str(), "om_0");
        assert_eq!(message.head.created_ms, Some(1_793_922_640_123));
        assert_eq!(message.mentions[0].who.open.as_deref(), Some("ou_bot"));
    }

    #[test]
    fn the_mark_of_one_person_is_not_the_front_of_anothers() {
        let mention = |key: &str| Mention {
            key: key.to_owned(),
            who: Person::default(),
            name: String::new(),
        };
        let Push::Message(mut message) =
            parse(br#"{"header":{"event_type":"im.message.receive_v1"}}"#)
        else {
            panic!("a message");
        };
        message.mentions = ["@_user_1", "@_user_12", ""].map(mention).to_vec();
        let left = message.without_mentions("@_user_12 @_user_1 /lock @_user_13");
        assert_eq!(left.trim(), "/lock @_user_13");
    }

    #[test]
    fn a_time_of_any_kind_is_read_or_passed_over() {
        let created = |time: Value| {
            let body =
                json!({"header": {"event_type": "card.action.trigger", "create_time": time}});
            match parse(body.to_string().as_bytes()) {
                Push::Click(click) => click.head.created_ms,
                other => panic!("{other:?}"),
            }
        };
        for time in [json!("1793922640123"), json!(1_793_922_640_123_u64)] {
            assert_eq!(created(time), Some(1_793_922_640_123));
        }
        for time in [
            json!(-5),
            json!(1.5),
            json!(null),
            json!(true),
            json!([1]),
            json!({"a": [2]}),
        ] {
            assert_eq!(created(time.clone()), None, "{time}");
        }
    }

    #[test]
    fn escapes_are_read_where_texts_are_borrowed() {
        let body = r#"{"header":{"event_id":"e\u0031","event_type":"card.action\u002etrigger"},
            "event":{"context":{"open_message_id":"om\u005f1"}}}"#;
        let Push::Click(click) = parse(body.as_bytes()) else {
            panic!("a click");
        };
        assert_eq!(click.head.event_id.unwrap().as_str(), "e1");
        assert_eq!(click.message.unwrap().as_str(), "om_1");
    }

    #[test]
    fn rich_text_becomes_its_words() {
        let content = json!({"zh_cn": {"title": "T", "content": [
            [{"tag": "text", "text": "a"}, {"tag": "a", "text": "b", "href": "x"}],
            [{"tag": "img", "image_key": "k"}],
        ]}});
        assert_eq!(post_text(&content), "T\nab\n");
        assert_eq!(post_pictures(&content), ["k"]);
    }

    #[test]
    fn ids_in_an_object_of_their_own_name_the_same_person() {
        let by = |operator: Value| click_of(&json!({"operator": operator})).by;
        let flat =
            by(json!({"tenant_key": "t", "open_id": "ou_1", "union_id": "on_1", "user_id": "u"}));
        let nested = json!({"open_id": "ou_1", "union_id": "on_1", "user_id": "u"});
        assert_eq!(by(json!({"tenant_key": "t", "user_id": nested})), flat);
        let both = json!({"open_id": "ou_2", "user_id": {"open_id": "ou_1"}});
        assert_eq!(
            by(both).open.as_deref(),
            Some("ou_2"),
            "what stands flat counts"
        );
    }

    #[test]
    fn a_value_that_came_as_text_is_read() {
        let click = click_of(&json!({"action": {"value": r#"{"action":"allow"}"#}}));
        assert_eq!(click.value, json!({"action": "allow"}));
    }

    #[test]
    fn a_field_of_the_wrong_kind_is_one_missing_field() {
        let click = json!({
            "operator": {"tenant_key": "t", "open_id": "ou_1"},
            "token": "c-1",
            "action": {"value": {"action": "deny"}, "name": "n", "form_value": {"reason": "no"}},
            "host": "im_message",
            "context": {"open_message_id": "om_1", "open_chat_id": "oc_1"},
        });
        let whole = click_of(&click);
        let wrong = [
            json!(7),
            json!("x"),
            json!(true),
            json!([1, {}]),
            json!({"a": {"b": 1}}),
            json!(1.5),
        ];
        let places = [
            "/operator",
            "/operator/tenant_key",
            "/operator/open_id",
            "/action",
            "/action/name",
            "/action/form_value",
            "/host",
            "/context",
            "/context/open_chat_id",
            "/token",
        ];
        for place in places {
            for value in &wrong {
                let mut bent = click.clone();
                *bent.pointer_mut(place).unwrap() = value.clone();
                let read = click_of(&bent);
                assert_eq!(read.head, whole.head, "{place} {value}");
                if !place.starts_with("/action") {
                    assert_eq!(read.value, whole.value, "{place} {value}");
                }
                if !place.starts_with("/context") {
                    assert_eq!(read.message, whole.message, "{place} {value}");
                }
                if !place.starts_with("/operator") {
                    assert_eq!(read.by, whole.by, "{place} {value}");
                }
            }
        }
    }

    #[test]
    fn a_message_with_a_field_of_the_wrong_kind_is_still_a_message() {
        let message = json!({
            "header": {"event_type": "im.message.receive_v1", "event_id": "e1", "app_id": "cli_x"},
            "event": {
                "sender": {"sender_id": {"open_id": "ou_1"}, "sender_type": "user"},
                "message": {
                    "message_id": "om_1", "root_id": "om_0", "chat_id": "oc_1", "chat_type": "p2p",
                    "thread_id": "omt_1", "message_type": "text", "content": "{\"text\":\"go\"}",
                    "mentions": [{"key": "@_user_1", "id": {"open_id": "ou_bot"}}],
                },
            },
        });
        for place in [
            "/header/app_id",
            "/header/event_id",
            "/event/sender",
            "/event/sender/sender_id",
            "/event/sender/sender_type",
            "/event/message/root_id",
            "/event/message/thread_id",
            "/event/message/chat_type",
            "/event/message/mentions",
            "/event/message/mentions/0",
            "/event/message/mentions/0/id",
            "/event/message/chat_id",
        ] {
            for value in [
                json!(7),
                json!("x"),
                json!(false),
                json!([3]),
                json!({"a": 1}),
            ] {
                let mut bent = message.clone();
                *bent.pointer_mut(place).unwrap() = value.clone();
                let Push::Message(read) = parse(bent.to_string().as_bytes()) else {
                    panic!("{place} {value}");
                };
                assert_eq!(read.id.unwrap().as_str(), "om_1", "{place} {value}");
                assert_eq!(
                    read.body,
                    MessageBody::Text("go".to_owned()),
                    "{place} {value}"
                );
            }
        }
    }

    #[test]
    fn what_we_do_not_know_is_named() {
        for (body, kind) in [
            (
                json!({"header": {"event_type": "im.chat.updated_v1"}}),
                "im.chat.updated_v1",
            ),
            (json!({"event": {"type": "old"}}), "old"),
            (json!({}), "unnamed"),
        ] {
            let expected = Push::Other {
                kind: kind.to_owned(),
            };
            assert_eq!(parse(body.to_string().as_bytes()), expected);
        }
        for body in ["", "null", "[1", "{\"header\":1"] {
            assert!(
                matches!(parse(body.as_bytes()), Push::Unreadable { .. }),
                "{body}"
            );
        }
    }

    #[test]
    fn times_are_told_apart_by_their_length() {
        assert_eq!(millis("1793922640"), Some(1_793_922_640_000));
        assert_eq!(millis("1793922640123"), Some(1_793_922_640_123));
        assert_eq!(millis("1793922640123456"), Some(1_793_922_640_123));
        for bad in ["", "x", "-5", "99999999999999999999"] {
            assert_eq!(millis(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            parse(&bytes);
        }
    }
}
