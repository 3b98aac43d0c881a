//! What a push says: a click on a card, a chat message, or something we leave
//! alone. Reads leniently (every field may be missing) and judges nothing.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::ids::{ChatId, EventId, MessageId, UserId};

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

/// What every push says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Head {
    pub event_id: Option<EventId>,
    /// When Feishu made it, in milliseconds; callbacks come in microseconds
    /// and are brought to the same scale.
    pub created_ms: Option<i64>,
    pub app_id: Option<String>,
    pub tenant: Option<String>,
}

/// A tap on a button or a submitted form.
#[derive(Debug, Clone, PartialEq)]
pub struct Click {
    pub head: Head,
    pub by: Person,
    /// The button's own value, verbatim. Only objects are ours.
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
    pub head: Head,
    pub by: Person,
    pub from_user: bool,
    pub id: Option<MessageId>,
    pub parent: Option<MessageId>,
    pub root: Option<MessageId>,
    pub thread: Option<String>,
    pub chat: Option<ChatId>,
    pub in_private: bool,
    pub sent_ms: Option<i64>,
    pub body: Body,
    pub mentions: Vec<Mention>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Body {
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
}

/// A Feishu user under every id the push named.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Person {
    pub open: Option<String>,
    pub union: Option<String>,
    pub tenant: Option<String>,
    pub tenant_key: Option<String>,
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
    let wire: Wire = match serde_json::from_slice(payload) {
        Ok(wire) => wire,
        Err(e) => {
            return Push::Unreadable {
                problem: format!("no event JSON at line {}, column {}", e.line(), e.column()),
            };
        }
    };
    let head = Head {
        event_id: id(wire.header.event_id, EventId::parse),
        created_ms: wire.header.create_time.and_then(|text| millis(&text)),
        app_id: wire.header.app_id,
        tenant: wire.header.tenant_key,
    };
    match wire.header.event_type.as_deref() {
        Some("card.action.trigger") => Push::Click(Box::new(click(head, wire.event))),
        Some("im.message.receive_v1") => Push::Message(Box::new(message(head, wire.event))),
        other => Push::Other {
            kind: other
                .or(wire.event.kind.as_deref())
                .unwrap_or("unnamed")
                .chars()
                .filter(|c| !c.is_control())
                .take(80)
                .collect(),
        },
    }
}

fn click(head: Head, event: WireEvent) -> Click {
    let context = event.context;
    let action = event.action;
    Click {
        head,
        by: event.operator.into(),
        value: action.value,
        name: action.name,
        form: action.form_value,
        message: id(
            context.open_message_id.or(event.open_message_id),
            MessageId::parse,
        ),
        chat: id(context.open_chat_id.or(event.open_chat_id), ChatId::parse),
        host: event.host,
        delivery_type: event.delivery_type,
    }
}

fn message(head: Head, event: WireEvent) -> Message {
    let wire = event.message;
    let content: Value = wire
        .content
        .as_deref()
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let text = |field: &str| content[field].as_str().map(str::to_owned);
    let kind = wire.message_type.unwrap_or_default();
    let body = match (
        kind.as_str(),
        text("text"),
        text("image_key"),
        text("file_key"),
    ) {
        ("text", Some(text), _, _) => Body::Text(text),
        ("image", _, Some(key), _) => Body::Image { key },
        ("file", _, _, Some(key)) => Body::File {
            key,
            name: text("file_name").unwrap_or_else(|| "file".to_owned()),
        },
        ("post", ..) => Body::Text(post_text(&content)),
        _ => Body::Other { kind },
    };
    Message {
        head,
        by: event.sender.sender_id.into(),
        from_user: event.sender.sender_type.as_deref() == Some("user"),
        id: id(wire.message_id, MessageId::parse),
        parent: id(wire.parent_id, MessageId::parse),
        root: id(wire.root_id, MessageId::parse),
        thread: wire.thread_id,
        chat: id(wire.chat_id, ChatId::parse),
        in_private: wire.chat_type.as_deref() == Some("p2p"),
        sent_ms: wire.create_time.and_then(|text| millis(&text)),
        body,
        mentions: wire
            .mentions
            .into_iter()
            .map(|m| Mention {
                key: m.key,
                who: m.id.into(),
            })
            .collect(),
    }
}

/// The words of a rich-text message, line by line.
fn post_text(content: &Value) -> String {
    let body = if content["content"].is_array() {
        content
    } else {
        content
            .as_object()
            .and_then(|locales| locales.values().find(|v| v["content"].is_array()))
            .unwrap_or(content)
    };
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

fn id<T>(text: Option<String>, parse: impl Fn(&str) -> Result<T, crate::ids::BadId>) -> Option<T> {
    parse(&text?).ok()
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

fn null_is_absent<'de, D, T>(wire: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(wire)?.unwrap_or_default())
}

fn text_or_number<'de, D: Deserializer<'de>>(wire: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(wire)? {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    })
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Wire {
    #[serde(deserialize_with = "null_is_absent")]
    header: WireHeader,
    #[serde(deserialize_with = "null_is_absent")]
    event: WireEvent,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireHeader {
    event_id: Option<String>,
    event_type: Option<String>,
    #[serde(deserialize_with = "text_or_number")]
    create_time: Option<String>,
    app_id: Option<String>,
    tenant_key: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireEvent {
    /// Version 1 events name themselves here.
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(deserialize_with = "null_is_absent")]
    operator: WirePerson,
    #[serde(deserialize_with = "null_is_absent")]
    action: WireAction,
    #[serde(deserialize_with = "null_is_absent")]
    context: WireContext,
    open_message_id: Option<String>,
    open_chat_id: Option<String>,
    host: Option<String>,
    delivery_type: Option<String>,
    #[serde(deserialize_with = "null_is_absent")]
    sender: WireSender,
    #[serde(deserialize_with = "null_is_absent")]
    message: WireMessage,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WirePerson {
    open_id: Option<String>,
    union_id: Option<String>,
    user_id: Option<String>,
    tenant_key: Option<String>,
}

impl From<WirePerson> for Person {
    fn from(wire: WirePerson) -> Self {
        Self {
            open: wire.open_id,
            union: wire.union_id,
            tenant: wire.user_id,
            tenant_key: wire.tenant_key,
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireAction {
    value: Value,
    name: Option<String>,
    #[serde(deserialize_with = "null_is_absent")]
    form_value: Map<String, Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireContext {
    open_message_id: Option<String>,
    open_chat_id: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireSender {
    #[serde(deserialize_with = "null_is_absent")]
    sender_id: WirePerson,
    sender_type: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireMessage {
    message_id: Option<String>,
    root_id: Option<String>,
    parent_id: Option<String>,
    thread_id: Option<String>,
    #[serde(deserialize_with = "text_or_number")]
    create_time: Option<String>,
    chat_id: Option<String>,
    chat_type: Option<String>,
    message_type: Option<String>,
    content: Option<String>,
    #[serde(deserialize_with = "null_is_absent")]
    mentions: Vec<WireMention>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireMention {
    #[serde(deserialize_with = "null_is_absent")]
    key: String,
    #[serde(deserialize_with = "null_is_absent")]
    id: WirePerson,
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
        let old = click_of(&json!({"open_message_id": "om_2", "action": {"value": "text"}}));
        assert_eq!(old.message.unwrap().as_str(), "om_2");
        assert_eq!(old.value, "text");
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
        assert_eq!(message.body, Body::Text("@_user_1 go".to_owned()));
        assert!(message.in_private && message.from_user);
        assert_eq!(message.parent.unwrap().as_str(), "om_0");
        assert_eq!(message.head.created_ms, Some(1_793_922_640_123));
        assert_eq!(message.mentions[0].who.open.as_deref(), Some("ou_bot"));
    }

    #[test]
    fn rich_text_becomes_its_words() {
        let content = json!({"zh_cn": {"title": "T", "content": [
            [{"tag": "text", "text": "a"}, {"tag": "a", "text": "b", "href": "x"}],
            [{"tag": "img", "image_key": "k"}],
        ]}});
        assert_eq!(post_text(&content), "T\nab\n");
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
        for body in ["", "null", "[1", "{\"header\":1}"] {
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
