//! The app server's messages: JSON-RPC without its version field, one per
//! WebSocket text. Says what a message is and decides nothing.

use serde_json::{Value, json};

/// What nod does not need to hear.
pub(super) const OPT_OUT: &[&str] = &[
    "account/rateLimits/updated",
    "configWarning",
    "item/agentMessage/delta",
    "item/commandExecution/outputDelta",
    "item/fileChange/outputDelta",
    "item/reasoning/summaryPartAdded",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/textDelta",
    "thread/tokenUsage/updated",
    "turn/diff/updated",
];

/// What the daemon sent.
#[derive(Debug, Clone, PartialEq)]
pub enum CodexMessage {
    /// It asks; the id is a number or a text of its own.
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// An answer to a call of ours, or why there is none.
    Answer {
        id: i64,
        result: Result<Value, String>,
    },
}

/// `None` for what is no message of this protocol.
pub fn parse(text: &str) -> Option<CodexMessage> {
    let Value::Object(mut message) = serde_json::from_str(text).ok()? else {
        return None;
    };
    let id = message.remove("id").filter(|id| !id.is_null());
    match (message.remove("method"), id) {
        (Some(Value::String(method)), id) => {
            let params = message.remove("params").unwrap_or(Value::Null);
            Some(match id {
                Some(id) if id.is_i64() || id.is_string() => {
                    CodexMessage::Request { id, method, params }
                }
                Some(_) => return None,
                None => CodexMessage::Notification { method, params },
            })
        }
        (None, Some(id)) => {
            let result = match (message.remove("result"), message.get("error")) {
                (Some(result), None) => Ok(result),
                (_, Some(error)) => Err(error["message"].as_str().unwrap_or_default().to_owned()),
                (None, None) => return None,
            };
            Some(CodexMessage::Answer {
                id: id.as_i64()?,
                result,
            })
        }
        _ => None,
    }
}

/// What a client says of itself first.
pub(super) fn greeting() -> Value {
    json!({
        "clientInfo": {"name": "nod", "title": "nod", "version": env!("CARGO_PKG_VERSION")},
        "capabilities": {"optOutNotificationMethods": OPT_OUT},
    })
}

/// Words for a turn that is under way.
pub(super) fn steering(thread: &str, turn: &str, text: &str) -> Value {
    json!({"threadId": thread, "expectedTurnId": turn, "input": words(text)})
}

pub fn call(id: i64, method: &str, params: &Value) -> String {
    json!({"method": method, "id": id, "params": params}).to_string()
}

/// A person's words as a turn takes them.
pub(super) fn words(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

pub fn notify(method: &str) -> String {
    json!({"method": method}).to_string()
}

/// Nobody can answer this request.
pub fn refuse(id: &Value, why: &str) -> String {
    json!({"id": id, "error": {"code": -32_601, "message": why}}).to_string()
}

pub fn reply(id: &Value, result: &Value) -> String {
    json!({"id": id, "result": result}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_notifications_and_answers_are_told_apart() {
        assert_eq!(
            parse(r#"{"method":"m","id":0,"params":{"a":1}}"#),
            Some(CodexMessage::Request {
                id: json!(0),
                method: "m".to_owned(),
                params: json!({"a": 1}),
            })
        );
        assert_eq!(
            parse(r#"{"method":"m","emittedAtMs":5}"#),
            Some(CodexMessage::Notification {
                method: "m".to_owned(),
                params: Value::Null,
            })
        );
        let answer = |result| Some(CodexMessage::Answer { id: 7, result });
        assert_eq!(parse(r#"{"id":7,"result":{}}"#), answer(Ok(json!({}))));
        assert_eq!(
            parse(r#"{"error":{"code":-1,"message":"no"},"id":7}"#),
            answer(Err("no".to_owned()))
        );
    }

    #[test]
    fn what_is_no_message_is_none() {
        for text in [
            "",
            "[]",
            "7",
            "{}",
            r#"{"id":1}"#,
            r#"{"method":3}"#,
            r#"{"method":"m","id":{}}"#,
            r#"{"id":"x","result":1}"#,
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
