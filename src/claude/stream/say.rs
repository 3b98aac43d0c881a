//! What nod writes to a Claude Code child, one JSON object a line.

use serde_json::{Value, json};

use crate::talk::{Filled, Say, ToolVerdict};

impl ToolVerdict {
    fn to_json(&self) -> Value {
        match self {
            Self::Allow { input, updates } => {
                let mut out = json!({"behavior": "allow", "updatedInput": input});
                if !updates.is_empty() {
                    out["updatedPermissions"] = Value::Array(updates.clone());
                }
                out
            }
            Self::Deny { message, interrupt } => {
                let mut out = json!({"behavior": "deny", "message": message});
                if *interrupt {
                    out["interrupt"] = Value::Bool(true);
                }
                out
            }
        }
    }
}

impl Say {
    /// The line with its newline.
    pub fn to_line(&self) -> String {
        let mut line = self.to_json().to_string();
        line.push('\n');
        line
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Text { uuid, text } => json!({
                "type": "user",
                "session_id": "",
                "message": {"role": "user", "content": text},
                "parent_tool_use_id": null,
                "uuid": uuid,
                "client_composed": true,
            }),
            Self::Verdict { request, verdict } => answer(request, &verdict.to_json()),
            Self::Filled {
                request,
                answer: said,
            } => {
                let body = match said {
                    Filled::Accept(content) => json!({"action": "accept", "content": content}),
                    Filled::Decline => json!({"action": "decline"}),
                    Filled::Cancel => json!({"action": "cancel"}),
                };
                answer(request, &body)
            }
            Self::Unsupported { request, kind } => json!({
                "type": "control_response",
                "response": {
                    "subtype": "error",
                    "request_id": request,
                    "error": format!("nod does not serve `{kind}` requests"),
                },
            }),
            Self::Interrupt { request } => order(request, &json!({"subtype": "interrupt"})),
            Self::SetMode { request, mode } => order(
                request,
                &json!({"subtype": "set_permission_mode", "mode": mode.as_str()}),
            ),
        }
    }
}

fn order(request: &str, body: &Value) -> Value {
    json!({"type": "control_request", "request_id": request, "request": body})
}

fn answer(request: &str, body: &Value) -> Value {
    json!({
        "type": "control_response",
        "response": {"subtype": "success", "request_id": request, "response": body},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::talk::Mode;

    fn check(say: &Say, expected: &Value) {
        let line = say.to_line();
        assert_eq!(line.matches('\n').count(), 1, "one line: {line:?}");
        assert_eq!(&serde_json::from_str::<Value>(&line).unwrap(), expected);
    }

    #[test]
    fn every_order_has_the_observed_shape() {
        let request = || "nod-1".to_owned();
        check(
            &Say::Text {
                uuid: "u".to_owned(),
                text: "两行\nsecond".to_owned(),
            },
            &json!({"type":"user","session_id":"","message":{"role":"user","content":"两行\nsecond"},"parent_tool_use_id":null,"uuid":"u","client_composed":true}),
        );
        check(
            &Say::Interrupt { request: request() },
            &json!({"type":"control_request","request_id":"nod-1","request":{"subtype":"interrupt"}}),
        );
        check(
            &Say::SetMode {
                request: request(),
                mode: Mode::AcceptEdits,
            },
            &json!({"type":"control_request","request_id":"nod-1","request":{"subtype":"set_permission_mode","mode":"acceptEdits"}}),
        );
        check(
            &Say::Unsupported {
                request: request(),
                kind: "mcp_message".to_owned(),
            },
            &json!({"type":"control_response","response":{"subtype":"error","request_id":"nod-1","error":"nod does not serve `mcp_message` requests"}}),
        );
    }

    #[test]
    fn verdicts_and_elicited_answers_have_the_observed_shape() {
        let verdict = |verdict| Say::Verdict {
            request: "r".to_owned(),
            verdict,
        };
        let wrap = |body: Value| json!({"type":"control_response","response":{"subtype":"success","request_id":"r","response":body}});
        check(
            &verdict(ToolVerdict::Allow {
                input: json!({"command": "ls"}),
                updates: Vec::new(),
            }),
            &wrap(json!({"behavior":"allow","updatedInput":{"command":"ls"}})),
        );
        let mode = json!({"type":"setMode","mode":"acceptEdits","destination":"session"});
        check(
            &verdict(ToolVerdict::Allow {
                input: json!({}),
                updates: vec![mode.clone()],
            }),
            &wrap(json!({"behavior":"allow","updatedInput":{},"updatedPermissions":[mode]})),
        );
        check(
            &verdict(ToolVerdict::deny("no")),
            &wrap(json!({"behavior":"deny","message":"no"})),
        );
        check(
            &verdict(ToolVerdict::Deny {
                message: "no".to_owned(),
                interrupt: true,
            }),
            &wrap(json!({"behavior":"deny","message":"no","interrupt":true})),
        );
        let content = json!({"name": "x"}).as_object().cloned().unwrap();
        for (answer, body) in [
            (
                Filled::Accept(content),
                json!({"action":"accept","content":{"name":"x"}}),
            ),
            (Filled::Decline, json!({"action":"decline"})),
            (Filled::Cancel, json!({"action":"cancel"})),
        ] {
            let say = Say::Filled {
                request: "r".to_owned(),
                answer,
            };
            check(&say, &wrap(body));
        }
    }
}
