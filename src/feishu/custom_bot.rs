//! A group's custom bot: signed messages to one address. It can say things and
//! nothing else: no reading, no editing, no clicks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use url::Url;

use super::messages::{Content, Previews, plain};
use super::outbound::{Outbound, OutboundError, body_within};
use super::pace::Pace;
use super::secret::Secret;
use crate::text::printable;

/// What a custom bot takes in one message.
pub const MAX_BODY: usize = 20_000;

const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Feishu allows 5 a second; the guide warns of bursts.
const PER_SECOND: usize = 4;
const LONGEST_QUEUE: Duration = Duration::from_secs(20);
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(700);
const MAX_ANSWER: u64 = 64 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum CustomBotError {
    #[error("the message has {0} bytes, and a custom bot takes {MAX_BODY}")]
    TooLarge(usize),
    #[error(
        "the custom bot refused the signature: check `FEISHU_WEBHOOK_SECRET` and this machine's clock"
    )]
    Signature,
    #[error("the custom bot refused the message: code {code}, `{msg}`")]
    Refused { code: i64, msg: String },
    #[error("the custom bot is overloaded: code {0}")]
    Busy(i64),
    #[error("too many messages wait for the custom bot")]
    Crowded,
    #[error("the custom bot gave no answer: HTTP {0}")]
    NoAnswer(u16),
    #[error(transparent)]
    Network(#[from] OutboundError),
}

impl CustomBotError {
    fn is_retryable(&self) -> bool {
        match self {
            Self::Busy(_) | Self::NoAnswer(500..) | Self::Network(_) => true,
            Self::TooLarge(_)
            | Self::Signature
            | Self::Refused { .. }
            | Self::Crowded
            | Self::NoAnswer(_) => false,
        }
    }
}

/// Feishu's signature: the key is made of time and secret, and signs nothing.
pub fn sign(timestamp: i64, secret: &Secret) -> String {
    let key = format!("{timestamp}\n{}", secret.expose());
    let mac = Hmac::<Sha256>::new_from_slice(key.as_bytes());
    let mac = mac.expect("HMAC takes a key of any length");
    STANDARD.encode(mac.finalize().into_bytes())
}

/// One message as posted.
pub fn body(content: &Content, previews: Previews, signed: Option<(i64, &Secret)>) -> Value {
    let mut body = match content {
        Content::Card(card) => {
            json!({"msg_type": "interactive", "card": previews.of_card(card)})
        }
        Content::Text(text) => json!({"msg_type": "text", "content": {"text": plain(text)}}),
        Content::File(key) => json!({"msg_type": "file", "content": {"file_key": key}}),
    };
    if let Some((timestamp, secret)) = signed {
        body["timestamp"] = json!(timestamp.to_string());
        body["sign"] = json!(sign(timestamp, secret));
    }
    body
}

/// Speaks as the custom bot.
pub struct CustomBot {
    outbound: Outbound,
    url: Url,
    secret: Option<Secret>,
    previews: Previews,
    pace: Mutex<Pace<()>>,
}

impl CustomBot {
    /// Refuses an address that would be posted to unencrypted.
    pub fn new(
        outbound: &Outbound,
        url: &Secret,
        secret: Option<Secret>,
        previews: Previews,
    ) -> Result<Self, OutboundError> {
        let url = Url::parse(url.expose()).map_err(|_| OutboundError::BadAddress {
            problem: "it is no URL",
        })?;
        Outbound::check(&url)?;
        Ok(Self {
            outbound: outbound.clone(),
            url,
            secret,
            previews,
            pace: Mutex::new(Pace::new(PER_SECOND, LONGEST_QUEUE)),
        })
    }

    /// Says something, trying again when the bot has a bad moment. `now` is
    /// the Unix time in seconds, for the signature.
    pub async fn say(
        &self,
        content: &Content,
        now: impl Fn() -> i64,
    ) -> Result<(), CustomBotError> {
        let mut tried = 1;
        loop {
            match self.once(content, now()).await {
                Err(why) if why.is_retryable() && tried < TRIES => {
                    tokio::time::sleep(PAUSE * tried).await;
                    tried += 1;
                }
                said => return said,
            }
        }
    }

    async fn once(&self, content: &Content, now: i64) -> Result<(), CustomBotError> {
        let signed = self.secret.as_ref().map(|secret| (now, secret));
        let text = body(content, self.previews, signed).to_string();
        if text.len() > MAX_BODY {
            return Err(CustomBotError::TooLarge(text.len()));
        }
        self.turn().await?;
        let sent = self
            .outbound
            .http_client()
            .post(self.url.clone())
            .timeout(ANSWER_WITHIN)
            .header("content-type", "application/json; charset=utf-8")
            .body(text)
            .send()
            .await;
        let fault = |why: &reqwest::Error| self.outbound.fault(&self.url, why);
        let mut response = sent.map_err(|why| fault(&why))?;
        let status = response.status().as_u16();
        let body = body_within(&mut response, MAX_ANSWER).await;
        match body.map_err(|why| fault(&why))? {
            Some(bytes) => judge(status, &bytes),
            None => Err(CustomBotError::NoAnswer(status)),
        }
    }

    async fn turn(&self) -> Result<(), CustomBotError> {
        let slot = {
            let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
            pace.next_slot((), std::time::Instant::now())
        };
        let wait = slot.map_err(|_| CustomBotError::Crowded)?;
        tokio::time::sleep(wait).await;
        Ok(())
    }
}

fn judge(status: u16, bytes: &[u8]) -> Result<(), CustomBotError> {
    let answer: Value =
        serde_json::from_slice(bytes).map_err(|_| CustomBotError::NoAnswer(status))?;
    let code = answer.get("code").or_else(|| answer.get("StatusCode"));
    let code = code
        .and_then(Value::as_i64)
        .ok_or(CustomBotError::NoAnswer(status))?;
    let msg = answer.get("msg").and_then(Value::as_str);
    match code {
        0 => Ok(()),
        19_021 => Err(CustomBotError::Signature),
        11_232 => Err(CustomBotError::Busy(code)),
        _ => Err(CustomBotError::Refused {
            code,
            msg: printable(msg.unwrap_or_default(), 200),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_feishus() {
        let sign = sign(1_599_360_473, &Secret::new("demo"));
        assert_eq!(sign, "l1N0gAcBjdwBvGm1xMjOF0XSyaLRpR7tuO5dHfhAYc8=");
    }

    #[test]
    fn a_message_is_not_encoded_twice_and_signed_only_if_asked() {
        let card = json!({"schema": "2.0"});
        let plain = body(&Content::Card(card.clone()), Previews::Full, None);
        assert_eq!(plain, json!({"msg_type": "interactive", "card": card}));
        let secret = Secret::new("demo");
        let signed = body(
            &Content::Text("hi".to_owned()),
            Previews::Full,
            Some((1_599_360_473, &secret)),
        );
        assert_eq!(signed["timestamp"], "1599360473");
        assert_eq!(signed["content"]["text"], "hi");
    }

    #[test]
    fn answers_are_told_apart_by_the_next_step() {
        let said = |text: &str| judge(200, text.as_bytes());
        assert!(said(r#"{"StatusCode":0,"code":0,"msg":"success"}"#).is_ok());
        assert!(said(r#"{"StatusCode":0,"StatusMessage":"success"}"#).is_ok());
        let refused = |text: &str| said(text).unwrap_err();
        assert!(matches!(
            refused(r#"{"code":19021}"#),
            CustomBotError::Signature
        ));
        assert!(refused(r#"{"code":11232}"#).is_retryable());
        assert!(!refused(r#"{"code":19024,"msg":"Key Words"}"#).is_retryable());
        assert!(judge(502, b"<html>").unwrap_err().is_retryable());
        assert!(!judge(404, b"<html>").unwrap_err().is_retryable());
    }
}
