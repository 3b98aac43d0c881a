//! Custom bots: an address per bot that takes signed messages and shows them
//! in its group. Strict about signature, time, size and what a custom bot's
//! card may hold; what was said is in the history as `webhook`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::simulator::world::card;
use crate::simulator::world::core::Core;
use crate::simulator::world::state::{Decline, decline};

/// The custom bot every simulator has, and the secret it wants signatures by.
pub const WEBHOOK_ID: &str = "5b1d0c9e-simulated-custom-bot";
pub const WEBHOOK_SECRET: &str = "simulated-webhook-Xy72";

const MAX_BODY: usize = 20 * 1024;
const HOUR: u64 = 60 * 60;

/// Takes a message for the bot of this id.
pub(in crate::simulator) fn post(core: &Core, id: &str, body: &[u8]) -> Result<Value, Decline> {
    if id != WEBHOOK_ID {
        return decline(
            19_001,
            "param invalid: incoming webhook access token invalid",
        );
    }
    if body.len() > MAX_BODY {
        return decline(19_036, "the message is too large");
    }
    let message: Value =
        serde_json::from_slice(body).map_err(|_| Decline::new(9499, "Bad Request"))?;
    let text = |key: &str| message.get(key).and_then(Value::as_str).unwrap_or_default();
    check_signature(text("timestamp"), text("sign"), core.now() / 1000)?;
    let said = match text("msg_type") {
        "text" => message
            .pointer("/content/text")
            .filter(|text| text.is_string()),
        "interactive" => message.get("card"),
        _ => return decline(19_002, "params error, msg_type need"),
    };
    let said = said.ok_or_else(|| Decline::new(9499, "Bad Request: nothing is said"))?;
    if said.is_object() {
        card::check(said).map_err(|bad| Decline::new(9499, bad.to_string()))?;
        if has_callback(said) {
            return decline(9499, "a custom bot's card has no callback");
        }
    }
    core.record(
        "webhook",
        None,
        || json!({"bot": id, "msg_type": text("msg_type"), "said": said}),
    );
    Ok(
        json!({"StatusCode": 0, "StatusMessage": "success", "code": 0, "data": {}, "msg": "success"}),
    )
}

/// Feishu keys the MAC with time and secret, and signs the empty text.
fn check_signature(timestamp: &str, sign: &str, now: u64) -> Result<(), Decline> {
    let refused = || {
        Decline::new(
            19_021,
            "sign match fail or timestamp is not within one hour from current time",
        )
    };
    let at: u64 = timestamp.parse().map_err(|_| refused())?;
    let key = format!("{timestamp}\n{WEBHOOK_SECRET}");
    let mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).map_err(|_| refused())?;
    let given = STANDARD.decode(sign).map_err(|_| refused())?;
    mac.verify_slice(&given).map_err(|_| refused())?;
    if at.abs_diff(now) > HOUR {
        return Err(refused());
    }
    Ok(())
}

fn has_callback(value: &Value) -> bool {
    match value {
        Value::Array(list) => list.iter().any(has_callback),
        Value::Object(map) => {
            map.get("type").and_then(Value::as_str) == Some("callback")
                || map.values().any(has_callback)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::Options;

    fn signed(now: u64, content: &Value) -> Value {
        let timestamp = now.to_string();
        let key = format!("{timestamp}\n{WEBHOOK_SECRET}");
        let mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).unwrap();
        let mut message = content.clone();
        message["timestamp"] = json!(timestamp);
        message["sign"] = json!(STANDARD.encode(mac.finalize().into_bytes()));
        message
    }

    #[test]
    fn only_a_signed_message_a_custom_bot_may_send_is_shown() {
        let core = Core::new(Options::default(), 0);
        let now = core.now() / 1000;
        let say = |id: &str, message: &Value| {
            post(&core, id, message.to_string().as_bytes()).map_err(|refusal| refusal.code)
        };
        let text = json!({"msg_type": "text", "content": {"text": "hi"}});
        let card = |behavior: Value| {
            json!({"msg_type": "interactive", "card": {"schema": "2.0", "body": {"elements": [
                {"tag": "button", "text": {"tag": "plain_text", "content": "x"}, "behaviors": [behavior]},
            ]}}})
        };
        let link = card(json!({"type": "open_url", "default_url": "http://127.0.0.1/"}));
        let callback = card(json!({"type": "callback", "value": {}}));
        let large = json!({"msg_type": "text", "content": {"text": "x".repeat(MAX_BODY)}});
        for (id, message, expected) in [
            (WEBHOOK_ID, signed(now, &text), Ok(())),
            (WEBHOOK_ID, signed(now, &link), Ok(())),
            (WEBHOOK_ID, text.clone(), Err(19_021)),
            (WEBHOOK_ID, signed(now - 2 * HOUR, &text), Err(19_021)),
            (WEBHOOK_ID, signed(now, &callback), Err(9499)),
            (WEBHOOK_ID, signed(now, &large), Err(19_036)),
            (
                WEBHOOK_ID,
                signed(now, &json!({"msg_type": "audio"})),
                Err(19_002),
            ),
            ("another", signed(now, &text), Err(19_001)),
        ] {
            assert_eq!(say(id, &message).map(drop), expected, "{message}");
        }
        let said = core.history.after(0, 100);
        assert_eq!(
            said.iter().filter(|entry| entry.kind == "webhook").count(),
            2
        );
    }
}
