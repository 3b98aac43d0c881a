//! What a client answers to a push: the reply frame checked against what was
//! sent, and for a click what the person would see. Does no I/O.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::feishu::frame::Frame;
use crate::simulator::world::card::schema::are_texts_by_locale;
use crate::simulator::world::card::{self, CardVersion};
use popup::{BAD_CARD, MALFORMED, NOT_OK};

/// The codes a person's client pops up after a tap.
pub mod popup {
    /// The callback is not subscribed, or no connection is there.
    pub const NOT_SUBSCRIBED: i64 = 200_340;
    /// No answer within three seconds.
    pub const NO_ANSWER: i64 = 200_341;
    /// The answer's code was not 200.
    pub const NOT_OK: i64 = 200_671;
    /// The answer's data was not what the documentation says.
    pub const MALFORMED: i64 = 200_672;
    /// The answer's card was refused.
    pub const BAD_CARD: i64 = 200_673;
}

/// A reply frame's payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplyFrame {
    pub code: i64,
    /// The decoded `data`, or why it can't be decoded.
    #[serde(skip)]
    pub data: Option<Result<Value, String>>,
    pub biz_rt: Option<String>,
}

/// What the click's callback answered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ClickOutcome {
    /// The error code the person's client pops up.
    pub popup: Option<i64>,
    /// What was wrong, in words.
    pub problem: Option<String>,
    pub toast: Option<ShownToast>,
    pub card: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownToast {
    #[serde(rename = "type")]
    pub kind: String,
    pub content: String,
    pub i18n: Map<String, Value>,
}

/// Reads the payload of a reply frame.
pub(in crate::simulator) fn reply(frame: &Frame) -> Result<ReplyFrame, String> {
    let payload = frame.payload.as_deref().unwrap_or_default();
    let value: Value =
        serde_json::from_slice(payload).map_err(|e| format!("the payload is not JSON: {e}"))?;
    let code = value
        .get("code")
        .and_then(Value::as_i64)
        .ok_or("the payload has no integer `code`")?;
    let data = match value.get("data") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(decode(text)),
        Some(_) => Some(Err("`data` is not a string".to_owned())),
    };
    Ok(ReplyFrame {
        code,
        data,
        biz_rt: frame.header("biz_rt").map(str::to_owned),
    })
}

fn decode(text: &str) -> Result<Value, String> {
    let bytes = STANDARD
        .decode(text)
        .map_err(|e| format!("`data` is not base64: {e}"))?;
    serde_json::from_slice(&bytes).map_err(|e| format!("`data` is not JSON: {e}"))
}

/// Each way in which a reply differs from an echo of one of the `sent` frames.
pub(super) fn echo_violations(sent: &[Frame], reply: &Frame) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let Some(first) = sent.first() else {
        return found;
    };
    for (rule, ours, theirs) in [
        (
            "wrong_service",
            i64::from(first.service),
            i64::from(reply.service),
        ),
        (
            "wrong_method",
            i64::from(first.method),
            i64::from(reply.method),
        ),
    ] {
        if ours != theirs {
            found.push((rule, format!("sent {ours}, got {theirs}")));
        }
    }
    if (first.seq_id, first.log_id) != (reply.seq_id, reply.log_id) {
        found.push((
            "wrong_seq_or_log_id",
            format!("{} {}", reply.seq_id, reply.log_id),
        ));
    }
    let blank = |text: &Option<String>| text.as_deref().unwrap_or_default().to_owned();
    if blank(&first.log_id_new) != blank(&reply.log_id_new)
        || blank(&first.payload_encoding) != blank(&reply.payload_encoding)
        || blank(&first.payload_type) != blank(&reply.payload_type)
    {
        found.push(("optional_field_not_echoed", blank(&reply.log_id_new)));
    }
    if first.header("instance_id").is_some() && reply.header("instance_id").is_none() {
        found.push(("missing_instance_id", String::new()));
    }
    let echoed = match reply.headers.split_last() {
        Some((last, rest)) if last.key == "biz_rt" => {
            if last.value.parse::<u64>().is_err() {
                found.push(("bad_biz_rt", last.value.clone()));
            }
            rest
        }
        _ => {
            found.push((
                "biz_rt_not_last",
                format!("{} headers", reply.headers.len()),
            ));
            &reply.headers[..]
        }
    };
    if !sent.iter().any(|frame| frame.headers == echoed) {
        let keys: Vec<&str> = echoed.iter().map(|h| h.key.as_str()).collect();
        found.push(("headers_not_echoed", keys.join(",")));
    }
    found
}

/// What the person sees; `current` is the generation of the clicked card.
impl ClickOutcome {
    /// Nothing but an error the client shows.
    pub(in crate::simulator) fn popup(code: i64) -> Self {
        Self {
            popup: Some(code),
            ..Self::default()
        }
    }
}

pub(in crate::simulator) fn outcome(reply: &ReplyFrame, current: CardVersion) -> ClickOutcome {
    let refuse = |popup, problem: &str| ClickOutcome {
        popup: Some(popup),
        problem: Some(problem.to_owned()),
        ..ClickOutcome::default()
    };
    if reply.code != 200 {
        return refuse(NOT_OK, &format!("the callback answered {}", reply.code));
    }
    let map = match &reply.data {
        None => return ClickOutcome::default(),
        Some(Err(problem)) => return refuse(MALFORMED, problem),
        Some(Ok(Value::Object(map))) => map,
        Some(Ok(_)) => return refuse(MALFORMED, "`data` is not an object"),
    };
    if let Some(key) = map
        .keys()
        .find(|key| !["toast", "card"].contains(&key.as_str()))
    {
        return refuse(MALFORMED, &format!("unknown key `{key}`"));
    }
    let toast = match map.get("toast").map(toast).transpose() {
        Ok(toast) => toast,
        Err(problem) => return refuse(MALFORMED, &problem),
    };
    let card = match map.get("card") {
        None => None,
        Some(wrapped) => match unwrap_card(wrapped, current) {
            Ok(card) => Some(card.clone()),
            Err((popup, problem)) => {
                return ClickOutcome {
                    toast,
                    ..refuse(popup, &problem)
                };
            }
        },
    };
    ClickOutcome {
        toast,
        card,
        ..ClickOutcome::default()
    }
}

fn toast(value: &Value) -> Result<ShownToast, String> {
    let map = value.as_object().ok_or("`toast` is not an object")?;
    if let Some(key) = map
        .keys()
        .find(|key| !["type", "content", "i18n"].contains(&key.as_str()))
    {
        return Err(format!("unknown key `toast.{key}`"));
    }
    let kind = map.get("type").map_or(Some("info"), Value::as_str);
    let kind = kind
        .filter(|kind| ["info", "success", "error", "warning"].contains(kind))
        .ok_or("`toast.type` is none of info, success, error, warning")?;
    let content = map.get("content").map_or(Some(""), Value::as_str);
    let content = content.ok_or("`toast.content` is not a string")?;
    let i18n = match map.get("i18n") {
        None => Map::new(),
        Some(Value::Object(texts)) if are_texts_by_locale(texts) => texts.clone(),
        Some(_) => return Err("`toast.i18n` is not texts by locale".to_owned()),
    };
    Ok(ShownToast {
        kind: kind.to_owned(),
        content: content.to_owned(),
        i18n,
    })
}

fn unwrap_card(wrapped: &Value, current: CardVersion) -> Result<&Value, (i64, String)> {
    let malformed = |problem: &str| (MALFORMED, problem.to_owned());
    let map = wrapped
        .as_object()
        .ok_or_else(|| malformed("`card` is not an object"))?;
    match map.get("type").and_then(Value::as_str) {
        Some("raw") => {}
        Some("template") => return Err((BAD_CARD, "templates do not exist here".to_owned())),
        _ => return Err(malformed("`card` is not wrapped in `type` and `data`")),
    }
    let data = map
        .get("data")
        .filter(|data| data.is_object())
        .ok_or_else(|| malformed("`card.data` is not an object"))?;
    if data.to_string().len() > card::MAX_BYTES {
        return Err((BAD_CARD, "the card is larger than 30 KB".to_owned()));
    }
    match (current, card::check(data)) {
        (CardVersion::Two, Ok(CardVersion::One)) => Err((
            card::DOWNGRADE,
            "a 2.0 card cannot become a 1.0 card".to_owned(),
        )),
        (CardVersion::One, Ok(CardVersion::Two)) => Err((
            BAD_CARD,
            "the card's schema differs from the message's".to_owned(),
        )),
        (_, Ok(_)) => Ok(data),
        (_, Err(bad)) => Err((BAD_CARD, bad.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feishu::frame::Header;
    use crate::simulator::serving::shape;
    use crate::simulator::world::mint::Mint;
    use prost::bytes::Bytes;
    use serde_json::json;

    fn sent() -> Frame {
        shape::event(&mut Mint::new(1), 7, 3, "m", 1, Bytes::new())
    }

    fn answered(payload: &str) -> Frame {
        let mut frame = sent();
        frame.headers.push(Header::new("biz_rt", "4"));
        frame.payload = Some(Bytes::copy_from_slice(payload.as_bytes()));
        frame
    }

    fn with_data(value: &Value) -> ClickOutcome {
        let data = STANDARD.encode(value.to_string());
        let frame = answered(&json!({"code": 200, "data": data}).to_string());
        outcome(&reply(&frame).unwrap(), CardVersion::Two)
    }

    fn two(text: &str) -> Value {
        json!({"schema": "2.0", "body": {"elements": [{"tag": "markdown", "content": text}]}})
    }

    #[test]
    fn a_faithful_echo_violates_nothing() {
        assert_eq!(echo_violations(&[sent()], &answered("{}")), []);
    }

    #[test]
    fn each_unfaithful_echo_is_named() {
        type Change = fn(&mut Frame);
        let cases: [(&str, Change); 9] = [
            ("wrong_service", |f| f.service = 8),
            ("wrong_method", |f| f.method = 0),
            ("wrong_seq_or_log_id", |f| f.seq_id = 99),
            ("wrong_seq_or_log_id", |f| f.log_id = 99),
            ("optional_field_not_echoed", |f| f.log_id_new = None),
            ("missing_instance_id", |f| {
                f.headers.retain(|h| h.key != "instance_id");
            }),
            ("biz_rt_not_last", |f| drop(f.headers.pop())),
            ("bad_biz_rt", |f| {
                f.headers.last_mut().unwrap().value = "-3".to_owned();
            }),
            ("headers_not_echoed", |f| f.headers.swap(0, 1)),
        ];
        for (rule, change) in cases {
            let mut frame = answered("{}");
            change(&mut frame);
            let found = echo_violations(&[sent()], &frame);
            assert!(
                found.iter().any(|(name, _)| *name == rule),
                "{rule}: {found:?}"
            );
        }
    }

    #[test]
    fn an_echo_of_any_fragment_counts() {
        let mut other = sent();
        other.headers[4].value = "1".to_owned();
        assert_eq!(echo_violations(&[other, sent()], &answered("{}")), []);
    }

    #[test]
    fn payloads_that_are_no_reply() {
        for bad in ["", "x", "[]", "{}", r#"{"code":"200"}"#] {
            assert!(reply(&answered(bad)).is_err(), "{bad}");
        }
        let nulls = reply(&answered(r#"{"code":200,"headers":null,"data":null}"#)).unwrap();
        assert_eq!((nulls.code, nulls.data), (200, None));
    }

    #[test]
    fn toast_and_card_are_read() {
        let seen = with_data(&json!({
            "toast": {"type": "success", "content": "已批准运行", "i18n": {"en_us": "Allowed"}},
            "card": {"type": "raw", "data": two("done")},
        }));
        assert_eq!(seen.popup, None);
        let toast = seen.toast.unwrap();
        assert_eq!(
            (toast.kind.as_str(), toast.content.as_str()),
            ("success", "已批准运行")
        );
        assert_eq!(seen.card, Some(two("done")));
        assert_eq!(with_data(&json!({})), ClickOutcome::default());
    }

    #[test]
    fn popups_follow_the_documented_codes() {
        let cases = [
            (json!("no handle"), MALFORMED),
            (json!({"toats": {}}), MALFORMED),
            (json!({"toast": {"type": "great"}}), MALFORMED),
            (json!({"toast": {"content": 5}}), MALFORMED),
            (json!({"toast": {"i18n": {"xx": "y"}}}), MALFORMED),
            (json!({"card": two("bare")}), MALFORMED),
            (json!({"card": {"type": "raw", "data": "{}"}}), MALFORMED),
            (
                json!({"card": {"type": "raw", "data": {"schema": "2.0", "body": {"elements": [{"tag": "note"}]}}}}),
                BAD_CARD,
            ),
            (
                json!({"card": {"type": "raw", "data": two(&"x".repeat(40_000))}}),
                BAD_CARD,
            ),
            (json!({"card": {"type": "template", "data": {}}}), BAD_CARD),
            (
                json!({"card": {"type": "raw", "data": {"elements": []}}}),
                card::DOWNGRADE,
            ),
        ];
        for (data, popup) in cases {
            assert_eq!(with_data(&data).popup, Some(popup), "{data}");
        }
        for (payload, popup) in [
            (r#"{"code":500}"#, NOT_OK),
            (r#"{"code":200,"data":"%%%"}"#, MALFORMED),
            (r#"{"code":200,"data":"eA=="}"#, MALFORMED),
        ] {
            let seen = outcome(&reply(&answered(payload)).unwrap(), CardVersion::Two);
            assert_eq!(seen.popup, Some(popup), "{payload}");
        }
    }
}
