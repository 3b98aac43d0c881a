//! One HTTP request and what comes back: Feishu's envelope, a file, or
//! something that is not Feishu. Decides by the envelope's code, caps what it
//! reads, and tries nothing twice.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::multipart::{Form, Part};
use serde_json::Value;
use url::Url;

use crate::feishu::error::{ApiError, FeishuAnswer, classify, classify_login};
use crate::feishu::outbound::{Outbound, OutboundError, body_within};
use crate::feishu::secret::Secret;
use crate::ids::MessageId;

/// An envelope larger than this is not one.
const MAX_ENVELOPE: u64 = 1024 * 1024;

const PORTAL: &str = "a captive portal or proxy answered in Feishu's place";
const FOREIGN: &str = "something that is not Feishu's API answered";

/// What is asked of Feishu: the path below the base address, by segments.
#[derive(Debug, Clone)]
pub struct ApiCall {
    pub method: reqwest::Method,
    pub path: Vec<String>,
    pub query: Vec<(&'static str, String)>,
    pub body: Option<Value>,
    pub upload: Option<Upload>,
}

/// A file and the fields beside it, sent as a form.
#[derive(Debug, Clone)]
pub struct Upload {
    pub fields: Vec<(&'static str, String)>,
    pub name: String,
    pub bytes: Arc<[u8]>,
}

impl Upload {
    fn form(&self) -> Form {
        let form = self.fields.iter().fold(Form::new(), |form, (name, value)| {
            form.text(*name, value.clone())
        });
        let file = Part::bytes(self.bytes.to_vec()).file_name(self.name.clone());
        form.part("file", file)
    }
}

impl ApiCall {
    fn new(method: reqwest::Method, path: &[&str]) -> Self {
        Self {
            method,
            path: path.iter().map(|&segment| segment.to_owned()).collect(),
            query: Vec::new(),
            body: None,
            upload: None,
        }
    }

    /// The path of a message, and of what belongs to it.
    pub fn of_message<'a>(id: &'a MessageId, rest: &[&'a str]) -> Vec<&'a str> {
        [&["open-apis", "im", "v1", "messages", id.as_str()], rest].concat()
    }

    pub fn upload(path: &[&str], upload: Upload) -> Self {
        Self {
            upload: Some(upload),
            ..Self::new(reqwest::Method::POST, path)
        }
    }

    pub fn get(path: &[&str]) -> Self {
        Self::new(reqwest::Method::GET, path)
    }

    pub fn post(path: &[&str], body: Value) -> Self {
        Self {
            body: Some(body),
            ..Self::new(reqwest::Method::POST, path)
        }
    }

    pub fn patch(path: &[&str], body: Value) -> Self {
        Self {
            body: Some(body),
            ..Self::new(reqwest::Method::PATCH, path)
        }
    }

    #[must_use]
    pub fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }
}

/// What came back, before anybody has judged it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiReply {
    pub status: u16,
    /// The wait that was asked for.
    pub after: Option<Duration>,
    pub log_id: Option<String>,
    /// Whether it is a file and no envelope.
    pub file: bool,
    pub body: Vec<u8>,
}

impl ApiReply {
    /// The envelope, whose code is 0.
    pub fn envelope(&self) -> Result<Value, ApiError> {
        self.envelope_without(&Secret::new(""))
    }

    /// The same; `secret` is kept out of Feishu's words, which may echo what
    /// they dislike.
    pub(super) fn envelope_without(&self, secret: &Secret) -> Result<Value, ApiError> {
        self.open(secret, classify)
    }

    /// The file of at most `max_bytes`.
    pub(super) fn file(self, secret: &Secret, max_bytes: u64) -> Result<Vec<u8>, ApiError> {
        if !self.file {
            self.envelope_without(secret)?;
            return Err(self.malformed(FOREIGN));
        }
        if self.body.len() as u64 > max_bytes {
            return Err(ApiError::TooLarge { limit: max_bytes });
        }
        Ok(self.body)
    }

    pub(super) fn is_of_stale_token(&self) -> bool {
        matches!(self.envelope(), Err(ApiError::StaleToken(_)))
    }

    /// The same for somebody who must not see `secret`.
    pub(super) fn without(mut self, secret: &Secret) -> Self {
        if !self.file {
            self.body = match String::from_utf8(self.body) {
                Ok(text) => secret.scrub(&text).into_bytes(),
                Err(bytes) => bytes.into_bytes(),
            };
        }
        self
    }

    /// What the status line and the headers said. Where no file is wanted,
    /// whatever comes is taken for an envelope.
    fn head(response: &reqwest::Response, wants_file: bool) -> Self {
        let headers = response.headers();
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let seconds = |name: &str| text(name).and_then(|value| value.trim().parse().ok());
        let status = response.status().as_u16();
        Self {
            status,
            after: seconds("x-ogw-ratelimit-reset")
                .or_else(|| seconds(RETRY_AFTER.as_str()))
                .map(Duration::from_secs),
            log_id: text("x-tt-logid").map(str::to_owned),
            file: wants_file && is_file(status, headers),
            body: Vec::new(),
        }
    }

    fn malformed(&self, what: &'static str) -> ApiError {
        ApiError::Malformed {
            status: self.status,
            what,
        }
    }

    fn open(&self, secret: &Secret, sort: Sort) -> Result<Value, ApiError> {
        let envelope = match self.body.trim_ascii_start().first() {
            Some(b'{') => {
                serde_json::from_slice::<Value>(&self.body).map_err(|_| self.malformed(FOREIGN))?
            }
            Some(b'<') => return Err(self.malformed(PORTAL)),
            _ if (300..400).contains(&self.status) => return Err(self.malformed(PORTAL)),
            _ => return Err(self.malformed(FOREIGN)),
        };
        let code = match envelope.get("code") {
            Some(Value::String(digits)) => digits.parse().ok(),
            Some(code) => code.as_i64(),
            None => None,
        };
        match code {
            Some(0) => Ok(envelope),
            Some(code) => {
                let words = envelope.get("msg").and_then(Value::as_str);
                let inner_id = envelope.pointer("/error/log_id").and_then(Value::as_str);
                let log_id = self.log_id.as_deref().or(inner_id);
                let words = secret.scrub(words.unwrap_or_default());
                let answer = FeishuAnswer::new(code, &words, log_id);
                Err(sort(self.status, self.after, answer))
            }
            None => Err(self.malformed(FOREIGN)),
        }
    }
}

/// Carries calls to one base address.
#[derive(Debug, Clone)]
pub struct Exchange {
    outbound: Outbound,
    base: Url,
}

impl Exchange {
    /// Refuses a base address that would carry secrets unencrypted.
    pub fn new(outbound: &Outbound, base: Url) -> Result<Self, OutboundError> {
        Outbound::check(&base)?;
        Ok(Self {
            outbound: outbound.clone(),
            base,
        })
    }

    /// Makes a call whose body carries `secret` and which needs no token.
    pub async fn login(
        &self,
        call: &ApiCall,
        secret: &Secret,
        limit: Duration,
    ) -> Result<Value, ApiError> {
        let response = self.send(call, None, limit).await?;
        self.read(response, 0).await?.open(secret, classify_login)
    }

    /// Makes a call and gives what came back, a file of at most `max_bytes`.
    pub async fn reply(
        &self,
        call: &ApiCall,
        token: &Secret,
        limit: Duration,
        max_bytes: u64,
    ) -> Result<ApiReply, ApiError> {
        let response = self.send(call, Some(token), limit).await?;
        self.read(response, max_bytes).await
    }

    /// The error of a call that ran out of time before it was made.
    pub fn timed_out(&self) -> ApiError {
        ApiError::Network(OutboundError::TimedOut {
            peer: format!("`{}`", self.base.host_str().unwrap_or_default()),
        })
    }

    async fn send(
        &self,
        call: &ApiCall,
        token: Option<&Secret>,
        limit: Duration,
    ) -> Result<reqwest::Response, ApiError> {
        let mut url = self.base.clone();
        url.path_segments_mut()
            .map_err(|()| OutboundError::BadAddress {
                problem: "it cannot have a path",
            })?
            .pop_if_empty()
            .extend(&call.path);
        let mut request = self
            .outbound
            .http_client()
            .request(call.method.clone(), url)
            .timeout(limit);
        if !call.query.is_empty() {
            request = request.query(&call.query);
        }
        if let Some(token) = token {
            request = request.bearer_auth(token.expose());
        }
        if let Some(body) = &call.body {
            request = request
                .header(CONTENT_TYPE, "application/json; charset=utf-8")
                .body(body.to_string());
        }
        if let Some(upload) = &call.upload {
            request = request.multipart(upload.form());
        }
        request.send().await.map_err(|error| self.fault(&error))
    }

    async fn read(
        &self,
        mut response: reqwest::Response,
        max_bytes: u64,
    ) -> Result<ApiReply, ApiError> {
        let mut reply = ApiReply::head(&response, max_bytes > 0);
        let most = if reply.file { max_bytes } else { MAX_ENVELOPE };
        let body = body_within(&mut response, most).await;
        reply.body = match body.map_err(|error| self.fault(&error))? {
            Some(body) => body,
            None if reply.file => return Err(ApiError::TooLarge { limit: max_bytes }),
            None => return Err(reply.malformed(FOREIGN)),
        };
        Ok(reply)
    }

    fn fault(&self, error: &reqwest::Error) -> ApiError {
        ApiError::Network(self.outbound.fault(&self.base, error))
    }
}

/// Files come with a name, or at least as neither JSON nor a web page.
fn is_file(status: u16, headers: &HeaderMap) -> bool {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let envelope_or_page = kind.contains("json") || kind.contains("html");
    status == 200 && (!envelope_or_page || headers.contains_key(CONTENT_DISPOSITION))
}

/// How a refusal is sorted: status, wait asked for, Feishu's answer.
type Sort = fn(u16, Option<Duration>, FeishuAnswer) -> ApiError;
