//! What machines say to each other, as JSON: a decision asked for, or a chat
//! message brought, and the answer. The first three fields of each are the
//! reference protocol's and stand alone for services that know nothing else; all
//! of nod's own is under `nod`, sealed.

use serde_json::{Map, Value, json};

use super::seal::Sealer;
use crate::approvals::outcome::{NotTaken, Outcome, Upshot};
use crate::clock::Millis;
use crate::feishu::event::{Click, EventHead, Person};
use crate::ids::{EventId, MachineId, MessageId, RequestId};
use crate::text::{Lang, Text, Tone};
use crate::wording::Toast;
use crate::wording::outcome::relayed;

/// The one path decisions are posted to, and its short name.
pub const PATH: &str = "/callback/decision";
pub const SHORT_PATH: &str = "/cb/decision";
pub const MAX_BODY: usize = 64 * 1024;
/// How far two machines' clocks may be apart.
pub const CLOCK_WINDOW: Millis = 30_000;
/// Asks what became of a request and changes nothing.
pub const QUERY: &str = "query";
/// Asks whether a chat message is for the machine asked.
pub const WHOSE: &str = "whose";
/// Brings a chat message to the machine it is for.
pub const TAKE: &str = "take";

/// A refusal: words for people, and for another nod why, where it may know.
pub fn refusal(why: NotTaken) -> Value {
    let (word, message) = match why {
        NotTaken::Secret | NotTaken::Token => (None, "unauthorized"),
        NotTaken::Clock => (
            Some("clock"),
            "the clock of one machine is off by more than 30 seconds",
        ),
        NotTaken::Version => (
            Some("older"),
            "the call names no machine, as an older nod's: update it there",
        ),
    };
    let mut body = json!({"success": false, "decision": null, "message": message});
    if let Some(word) = word {
        body["nod"] = json!({"refused": word});
    }
    body
}

pub fn why_refused(body: &[u8]) -> NotTaken {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    match body["nod"]["refused"].as_str() {
        Some("clock") => NotTaken::Clock,
        Some("older") => NotTaken::Version,
        _ => NotTaken::Secret,
    }
}

const MAX_NONCE: usize = 64;

/// A decision somebody asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct PeerCall {
    /// The machine it is for, so that it counts on no other. Only [`WHOSE`] is
    /// for whoever hears it; an older nod names none in any call.
    pub to: Option<MachineId>,
    pub action: String,
    pub request: RequestId,
    /// The reference protocol's field; the receiving machine knows better and ignores it.
    pub project_dir: String,
    /// What only nod sends: the click behind a forwarded decision, as Feishu
    /// told it.
    pub click: Option<Click>,
    /// A chat message as Feishu pushed it; never without a seal.
    pub push: Option<String>,
}

/// Makes one sending of a call differ from every other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    pub sent_at: Millis,
    pub nonce: String,
}

/// What a received call proves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    Sealed(Stamp),
    /// Nobody vouches for it.
    None,
}

/// Why a received body is no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnreadCall {
    /// No seal holds, and the body makes no sense either.
    Unproven,
    /// One of ours sealed something this version cannot read.
    Malformed,
}

impl PeerCall {
    /// The body as posted; sealed for machines that share our secret.
    pub fn to_json(&self, seal: Option<(&Sealer, &Stamp)>) -> Value {
        let mut body = json!({
            "action": self.action,
            "request_id": self.request.as_str(),
            "project_dir": self.project_dir,
        });
        let Some((sealer, stamp)) = seal else {
            return body;
        };
        let click = self.click.clone().unwrap_or_default();
        body["nod"] = json!({
            "operator": {
                "open_id": click.by.open,
                "union_id": click.by.union,
                "user_id": click.by.tenant,
            },
            "event_id": click.head.event_id.map(|id| id.to_string()),
            "message_id": click.message.map(|id| id.to_string()),
            "value": click.value,
            "name": click.name,
            "form": click.form,
            "push": self.push,
            "to": self.to.as_ref().map(MachineId::as_str),
            "sent_at": stamp.sent_at,
            "nonce": stamp.nonce,
        });
        let tag = sealer.tag(&sealed_call(&body));
        body["nod"]["seal"] = json!(tag);
        body
    }

    /// Reads a body. Costs the same whether the seal is right, wrong or
    /// missing, and looks nothing up.
    pub fn read(bytes: &[u8], sealer: Option<&Sealer>) -> Result<(Self, Proof), UnreadCall> {
        let mut body: Value = serde_json::from_slice(bytes).map_err(|_| UnreadCall::Unproven)?;
        let tag = body
            .get_mut("nod")
            .and_then(Value::as_object_mut)
            .and_then(|nod| nod.shift_remove("seal"));
        let tag = tag.as_ref().and_then(Value::as_str).unwrap_or_default();
        let holds = sealer.is_some_and(|sealer| sealer.verifies(&sealed_call(&body), tag));
        let Value::Object(body) = body else {
            return Err(UnreadCall::Unproven);
        };
        let nod = body.get("nod").and_then(Value::as_object);
        if !holds && nod.is_some() {
            return Err(UnreadCall::Unproven);
        }
        let problem = if holds {
            UnreadCall::Malformed
        } else {
            UnreadCall::Unproven
        };
        let call = Self::of(&body, nod).ok_or(problem)?;
        let proof = match nod {
            Some(nod) => Proof::Sealed(stamp(nod).ok_or(problem)?),
            None => Proof::None,
        };
        Ok((call, proof))
    }

    fn of(body: &Map<String, Value>, nod: Option<&Map<String, Value>>) -> Option<Self> {
        let text = |field: &str| body.get(field).and_then(Value::as_str);
        let to = nod.and_then(|nod| nod.get("to")?.as_str());
        Some(Self {
            to: to.and_then(|id| MachineId::parse(id).ok()),
            action: text("action")?.to_owned(),
            request: RequestId::parse(text("request_id")?).ok()?,
            project_dir: text("project_dir").unwrap_or_default().to_owned(),
            click: nod.map(click),
            push: nod.and_then(|nod| Some(nod.get("push")?.as_str()?.to_owned())),
        })
    }
}

fn click(nod: &Map<String, Value>) -> Click {
    let text = |field: &str| nod.get(field).and_then(Value::as_str);
    let id = |field: &str| {
        let id = nod.get("operator")?.get(field)?.as_str()?;
        Some(id.to_owned())
    };
    Click {
        head: EventHead {
            event_id: text("event_id").and_then(|id| EventId::parse(id).ok()),
            ..EventHead::default()
        },
        by: Person {
            open: id("open_id"),
            union: id("union_id"),
            tenant: id("user_id"),
            tenant_key: None,
        },
        message: text("message_id").and_then(|id| MessageId::parse(id).ok()),
        value: nod.get("value").cloned().unwrap_or_default(),
        name: text("name").map(str::to_owned),
        form: nod
            .get("form")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default(),
        ..Click::default()
    }
}

fn stamp(nod: &Map<String, Value>) -> Option<Stamp> {
    let nonce = nod.get("nonce")?.as_str()?;
    (8..=MAX_NONCE).contains(&nonce.len()).then_some(())?;
    Some(Stamp {
        sent_at: nod.get("sent_at")?.as_i64()?,
        nonce: nonce.to_owned(),
    })
}

fn sealed_call(body: &Value) -> Value {
    json!({"to": format!("POST {PATH}"), "body": body})
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallAnswer {
    pub upshot: Upshot,
    pub message: String,
    pub seen: Option<ClickerSees>,
    /// Who answers, where the caller does not know.
    pub machine: Option<MachineId>,
}

/// What the person who clicked is to see.
#[derive(Debug, Clone, PartialEq)]
pub struct ClickerSees {
    pub toast: Toast,
    pub card: Option<Value>,
}

impl CallAnswer {
    /// The answer to a call that led to `outcome`; the reference protocol's
    /// message is the Chinese text of what the person is told.
    pub fn of(outcome: &Outcome, card: Option<Value>) -> Self {
        let toast = Toast::of(outcome);
        Self {
            upshot: outcome.upshot(),
            message: toast.text.get(Lang::Zh).to_owned(),
            seen: Some(ClickerSees { toast, card }),
            machine: None,
        }
    }

    /// An answer for a machine, not for a person.
    pub fn bare(success: bool, message: &str) -> Self {
        Self {
            upshot: Upshot::told(success, None),
            message: message.to_owned(),
            seen: None,
            machine: None,
        }
    }

    /// The body as answered. Only a sealed call gets more than the
    /// reference protocol's three fields, and a seal that binds the answer to it.
    pub fn to_json(&self, seal: Option<(&Sealer, &Stamp)>) -> Value {
        let mut body = json!({
            "success": self.upshot.is_success(),
            "decision": self.upshot.decision(),
            "message": self.message,
        });
        let Some((sealer, stamp)) = seal else {
            return body;
        };
        body["nod"] = match &self.seen {
            None => json!({"machine": self.machine.as_ref().map(MachineId::as_str)}),
            Some(ClickerSees { toast, card }) => json!({
                "toast": {"type": toast.tone.as_str(), "zh": toast.text.zh, "en": toast.text.en},
                "card": card,
            }),
        };
        let tag = sealer.tag(&sealed_answer(&body, stamp));
        body["nod"]["seal"] = json!(tag);
        body
    }

    /// Reads the answer of a service that knows only the reference protocol.
    pub fn read_plain(bytes: &[u8]) -> Option<Self> {
        let body: Value = serde_json::from_slice(bytes).ok()?;
        let success = body.get("success")?.as_bool()?;
        let decision = body.get("decision").and_then(Value::as_str);
        let message = body.get("message").and_then(Value::as_str);
        Some(Self {
            upshot: Upshot::told(success, decision),
            message: message.unwrap_or_default().to_owned(),
            seen: None,
            machine: None,
        })
    }

    /// Reads the answer of one of ours; `None` unless its seal binds it to
    /// this very call.
    pub fn read_sealed(bytes: &[u8], sealer: &Sealer, stamp: &Stamp) -> Option<Self> {
        let mut body: Value = serde_json::from_slice(bytes).ok()?;
        let tag = body.get_mut("nod")?.as_object_mut()?.shift_remove("seal")?;
        if !sealer.verifies(&sealed_answer(&body, stamp), tag.as_str()?) {
            return None;
        }
        let toast = &body["nod"]["toast"];
        let text = |field: &str| toast[field].as_str().unwrap_or_default().to_owned();
        let seen = toast.is_object().then(|| ClickerSees {
            toast: Toast::said(
                Tone::parse(&text("type")),
                Text::made(text("zh"), text("en")),
            ),
            card: Some(body["nod"]["card"].clone()).filter(Value::is_object),
        });
        let machine = body["nod"]["machine"].as_str();
        Some(Self {
            seen,
            machine: machine.and_then(|id| MachineId::parse(id).ok()),
            ..Self::read_plain(bytes)?
        })
    }

    /// What a call of ours led to there, and the card that shows it. A service
    /// that sends no words for the person is told in its own message.
    pub fn outcome(self) -> (Outcome, Option<Value>) {
        let seen = self.seen.unwrap_or_else(|| ClickerSees {
            toast: relayed(self.upshot, &self.message),
            card: None,
        });
        let outcome = Outcome::Relayed {
            upshot: self.upshot,
            tone: seen.toast.tone,
            said: seen.toast.text,
        };
        (outcome, seen.card)
    }
}

fn sealed_answer(body: &Value, stamp: &Stamp) -> Value {
    json!({"answer_to": stamp.nonce, "body": body})
}

#[cfg(test)]
mod tests {
    use super::super::seal::SealPurpose;
    use super::*;
    use crate::approvals::desk::Delivery;
    use crate::approvals::outcome::Refusal;
    use crate::approvals::outcome::sample::{allowed, always, answered, decided, denied};
    use crate::approvals::request::Reach;
    use crate::feishu::secret::Secret;
    use crate::rules::Rule;

    fn sealer() -> Sealer {
        Sealer::new(&Secret::new("s"), SealPurpose::Call)
    }

    fn stamp() -> Stamp {
        Stamp {
            sent_at: 1_000,
            nonce: "nonce-one".to_owned(),
        }
    }

    fn call() -> PeerCall {
        PeerCall {
            to: MachineId::parse("m1").ok(),
            action: "deny".to_owned(),
            request: RequestId::parse("r1").unwrap(),
            project_dir: "/p".to_owned(),
            click: Some(Click {
                head: EventHead {
                    event_id: EventId::parse("e1").ok(),
                    ..EventHead::default()
                },
                by: Person {
                    open: Some("ou_1".to_owned()),
                    ..Person::default()
                },
                message: MessageId::parse("om_1").ok(),
                value: json!({"action": "deny", "seal": "x"}),
                form: Map::from_iter([("reason".to_owned(), json!("not now"))]),
                ..Click::default()
            }),
            push: Some("{}".to_owned()),
        }
    }

    #[test]
    fn a_sealed_call_reads_back_whole() {
        let body = call().to_json(Some((&sealer(), &stamp()))).to_string();
        let read = PeerCall::read(body.as_bytes(), Some(&sealer()));
        assert_eq!(read, Ok((call(), Proof::Sealed(stamp()))));
    }

    #[test]
    fn the_reference_call_has_three_fields_and_proves_nothing() {
        let body = call().to_json(None);
        assert_eq!(
            body,
            json!({"action": "deny", "request_id": "r1", "project_dir": "/p"})
        );
        let (read, proof) = PeerCall::read(body.to_string().as_bytes(), Some(&sealer())).unwrap();
        assert_eq!((read.action.as_str(), read.click), ("deny", None));
        assert_eq!(proof, Proof::None);
        let least = br#"{"action":"allow","request_id":"x"}"#;
        assert!(PeerCall::read(least, None).is_ok());
    }

    #[test]
    fn any_change_to_a_sealed_call_is_refused() {
        let body = call().to_json(Some((&sealer(), &stamp())));
        for (pointer, change) in [
            ("/action", json!("allow")),
            ("/request_id", json!("r2")),
            ("/project_dir", json!("/q")),
            ("/nod/operator/open_id", json!("ou_2")),
            ("/nod/form/reason", json!(null)),
            ("/nod/push", json!("{ }")),
            ("/nod/to", json!("m2")),
            ("/nod/sent_at", json!(2_000)),
            ("/nod/nonce", json!("nonce-two")),
            ("/nod/seal", json!("")),
        ] {
            let mut forged = body.clone();
            *forged.pointer_mut(pointer).unwrap() = change;
            let read = PeerCall::read(forged.to_string().as_bytes(), Some(&sealer()));
            assert_eq!(read, Err(UnreadCall::Unproven), "{pointer}");
        }
        let other = Sealer::new(&Secret::new("t"), SealPurpose::Call);
        let read = PeerCall::read(body.to_string().as_bytes(), Some(&other));
        assert_eq!(read, Err(UnreadCall::Unproven));
        assert_eq!(
            PeerCall::read(b"{", Some(&sealer())),
            Err(UnreadCall::Unproven)
        );
    }

    #[test]
    fn the_reference_answers_are_exact() {
        let decided = |ending| decided(ending, Delivery::Confirmed);
        let rule = || Rule::new("Bash", "npm test");
        for (outcome, body) in [
            (
                decided(allowed(Reach::Once)),
                json!({"success": true, "decision": "allow", "message": "已批准运行"}),
            ),
            (
                decided(allowed(always(rule()))),
                json!({"success": true, "decision": "allow", "message": "已始终允许，后续相同操作将自动批准"}),
            ),
            (
                decided(denied(false)),
                json!({"success": true, "decision": "deny", "message": "已拒绝运行"}),
            ),
            (
                decided(denied(true)),
                json!({"success": true, "decision": "deny", "message": "已拒绝并中断"}),
            ),
            (
                decided(allowed(Reach::Session(vec![rule()]))),
                json!({"success": true, "decision": "allow", "message": "已批准，本次会话内相同操作将自动批准"}),
            ),
            (
                decided(answered()),
                json!({"success": true, "decision": "allow", "message": "已收到你的回复，继续执行..."}),
            ),
            (
                Refusal::Unknown.into(),
                json!({"success": false, "decision": null, "message": "请求不存在或已过期"}),
            ),
            (
                Refusal::Handled.into(),
                json!({"success": false, "decision": null, "message": "该请求已被处理，请勿重复操作"}),
            ),
        ] {
            assert_eq!(CallAnswer::of(&outcome, None).to_json(None), body);
        }
    }

    #[test]
    fn an_answer_is_bound_to_its_call() {
        let card = json!({"schema": "2.0"});
        let outcome = decided(denied(false), Delivery::Confirmed);
        let answer = CallAnswer::of(&outcome, Some(card.clone()));
        let bytes = answer.to_json(Some((&sealer(), &stamp()))).to_string();
        let read = CallAnswer::read_sealed(bytes.as_bytes(), &sealer(), &stamp()).unwrap();
        let told = Outcome::Relayed {
            upshot: Upshot::Denied,
            tone: Tone::Success,
            said: Toast::DENIED.text,
        };
        assert_eq!(read.outcome(), (told, Some(card)));
        let other = Stamp {
            nonce: "another-one".to_owned(),
            ..stamp()
        };
        assert_eq!(
            CallAnswer::read_sealed(bytes.as_bytes(), &sealer(), &other),
            None
        );
        let forged = bytes.replace("true", "false");
        assert_eq!(
            CallAnswer::read_sealed(forged.as_bytes(), &sealer(), &stamp()),
            None
        );
    }

    #[test]
    fn a_plain_answer_is_what_its_fields_say_whatever_its_words() {
        for (body, upshot, toast) in [
            (
                r#"{"success":true,"decision":"allow","message":"已批准运行"}"#,
                Upshot::Allowed,
                Toast::ALLOWED,
            ),
            (
                r#"{"success":false,"decision":null,"message":"请求不存在或已过期"}"#,
                Upshot::Nothing,
                Toast::UNKNOWN,
            ),
            (
                r#"{"success":false,"decision":"allow","message":""}"#,
                Upshot::Nothing,
                Toast::UNKNOWN,
            ),
        ] {
            let (outcome, card) = CallAnswer::read_plain(body.as_bytes()).unwrap().outcome();
            assert_eq!((outcome.upshot(), card), (upshot, None), "{body}");
            let told = Toast::of(&outcome);
            assert_eq!((told.tone, told.text), (toast.tone, toast.text));
        }
        assert_eq!(CallAnswer::read_plain(b"<html>"), None);
        assert_eq!(CallAnswer::read_plain(b"{}"), None);
    }
}
