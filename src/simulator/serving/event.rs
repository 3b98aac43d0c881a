//! Event bodies as Feishu writes them: card callbacks and chat messages.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::simulator::world::options::{App, User};

/// The envelope every v2 event has. A plain event's time is in milliseconds.
pub(in crate::simulator) fn envelope(
    app: &App,
    event_id: &str,
    event_type: &str,
    create_time: u64,
    event: &Value,
) -> Value {
    json!({
        "schema": "2.0",
        "header": {
            "event_id": event_id,
            "token": app.verification_token,
            "create_time": create_time.to_string(),
            "event_type": event_type,
            "tenant_key": app.tenant_key,
            "app_id": app.id,
        },
        "event": event,
    })
}

/// A person's tap, with everything its body names.
pub(in crate::simulator) struct PersonTap<'a> {
    pub(in crate::simulator) app: &'a App,
    pub(in crate::simulator) user: &'a User,
    pub(in crate::simulator) event_id: &'a str,
    pub(in crate::simulator) token: &'a str,
    pub(in crate::simulator) now: u64,
    pub(in crate::simulator) message_id: &'a str,
    pub(in crate::simulator) chat_id: &'a str,
    pub(in crate::simulator) action: Value,
}

/// A card callback; its time is in microseconds.
pub(in crate::simulator) fn click(tap: &PersonTap<'_>) -> Value {
    let mut operator = json!({
        "tenant_key": tap.app.tenant_key,
        "open_id": tap.user.open_id,
        "union_id": tap.user.union_id,
    });
    if knows_user_ids(tap.app) {
        operator["user_id"] = json!(tap.user.user_id);
    }
    let event = json!({
        "operator": operator,
        "token": tap.token,
        "action": tap.action,
        "host": "im_message",
        "context": {"open_message_id": tap.message_id, "open_chat_id": tap.chat_id},
    });
    let micros = tap.now * 1000;
    envelope(tap.app, tap.event_id, "card.action.trigger", micros, &event)
}

fn knows_user_ids(app: &App) -> bool {
    app.scopes
        .iter()
        .any(|scope| scope == "contact:user.employee_id:readonly")
}

pub(in crate::simulator) fn ids(app: &App, user: &User) -> Value {
    let user_id = if knows_user_ids(app) {
        user.user_id.as_str()
    } else {
        ""
    };
    json!({"union_id": user.union_id, "user_id": user_id, "open_id": user.open_id})
}

/// What a person writes into a chat.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChatText {
    /// `None` is the first app.
    pub app_id: Option<String>,
    /// Any id of a user, or their name; empty is the first user.
    pub user: String,
    /// A group's chat id; `None` is the private chat with the bot.
    pub chat_id: Option<String>,
    pub text: String,
    /// Puts `@_user_1` for the bot in front of the text.
    pub mention_bot: bool,
    /// The message this one replies to.
    pub parent_id: Option<String>,
    pub thread_id: Option<String>,
    /// How old the message already is, in milliseconds.
    pub age_ms: u64,
    /// Sends an image with these bytes (base64) instead of text.
    pub image: Option<String>,
    /// Sends a file with these bytes (base64) instead of text.
    pub file: Option<String>,
    pub file_name: Option<String>,
    /// Pictures (base64) pasted behind the text: the message is a rich text.
    pub pictures: Vec<String>,
}

impl ChatText {
    pub fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            ..Self::default()
        }
    }

    #[must_use]
    pub fn by(self, user: &str) -> Self {
        Self {
            user: user.to_owned(),
            ..self
        }
    }

    #[must_use]
    pub fn in_chat(self, chat_id: &str) -> Self {
        Self {
            chat_id: Some(chat_id.to_owned()),
            ..self
        }
    }

    #[must_use]
    pub fn replying_to(self, message_id: &str) -> Self {
        Self {
            parent_id: Some(message_id.to_owned()),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::world::options::OWNER;

    #[test]
    fn a_click_has_the_documented_body() {
        let user = User::new("owner", OWNER);
        let body = |app: &App| {
            click(&PersonTap {
                app,
                user: &user,
                event_id: "e1",
                token: "c-1",
                now: 1_700_000_000_123,
                message_id: "om_1",
                chat_id: "oc_1",
                action: json!({"value": {"a": 1}, "tag": "button"}),
            })
        };
        let full = body(&App::default());
        assert_eq!(full["header"]["create_time"], "1700000000123000");
        assert_eq!(full["header"]["event_type"], "card.action.trigger");
        assert_eq!(full["event"]["operator"]["user_id"], user.user_id.as_str());
        assert_eq!(full["event"]["action"]["value"], json!({"a": 1}));
        assert_eq!(
            full["event"]["context"],
            json!({"open_message_id": "om_1", "open_chat_id": "oc_1"})
        );
        let bare = App {
            scopes: Vec::new(),
            ..App::default()
        };
        assert_eq!(body(&bare)["event"]["operator"].get("user_id"), None);
    }

    #[test]
    fn a_plain_event_counts_milliseconds() {
        let body = envelope(
            &App::default(),
            "e1",
            "x.y_v1",
            1_700_000_000_123,
            &json!({}),
        );
        assert_eq!(body["header"]["create_time"], "1700000000123");
    }
}
