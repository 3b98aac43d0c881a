//! Dials the long connection: asks Feishu where to connect, opens the
//! WebSocket, and says in one sentence why it could not. The address it gets
//! carries secrets in its query and is never shown.

use prost::bytes::BytesMut;
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;
use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::{HeaderMap, StatusCode};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};
use url::Url;

use super::clock::TheirClock;
use super::domain::{Domain, is_this_machine};
use super::link::{DialRetry, ServerSettings};
use super::outbound::{OPEN_WITHIN, Outbound, OutboundError, Stream};
use super::secret::Secret;
use crate::text::printable;

const MAX_ANSWER: usize = 64 << 10;
/// Events are a few kilobytes; Feishu splits large ones.
const MAX_MESSAGE: usize = 4 << 20;

const BUSY: i64 = 1;
const INTERNAL: i64 = 1_000_040_343;
const NO_CREDENTIAL: i64 = 1_000_040_344;
const BAD_CREDENTIAL: i64 = 1_000_040_345;
const TOO_MANY: i64 = 1_000_040_350;
const WRONG_DOMAIN: i64 = 1_000_040_351;
const FORBIDDEN: i64 = 403;
const AUTH_FAILED: i64 = 514;

#[derive(Debug, Clone)]
pub struct Dialer {
    pub outbound: Outbound,
    pub domain: Domain,
    pub app_id: String,
    pub app_secret: Secret,
    pub limits: DialLimits,
    /// Learns what time it is at Feishu.
    pub clock: TheirClock,
}

/// How long each step of a dial may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DialLimits {
    /// Asking where to connect.
    pub discover: Duration,
    /// Name lookup, proxy, TCP and TLS.
    pub open: Duration,
    /// The WebSocket handshake.
    pub upgrade: Duration,
}

impl Default for DialLimits {
    fn default() -> Self {
        Self {
            discover: Duration::from_secs(10),
            open: OPEN_WITHIN,
            upgrade: Duration::from_secs(5),
        }
    }
}

pub struct Dialed {
    pub socket: WebSocketStream<Stream>,
    pub service: i32,
    pub settings: ServerSettings,
}

/// Why there is no connection, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DialError {
    #[error(transparent)]
    Outbound(#[from] OutboundError),
    #[error("{name} is busy (code {code})")]
    Busy { name: String, code: i64 },
    #[error(
        "{name} does not accept this app id and secret (code {code}): copy both again from the app's credentials page into `FEISHU_APP_ID` and `FEISHU_APP_SECRET`, then restart nod"
    )]
    BadCredentials { name: String, code: i64 },
    #[error("this app does not live on {name}: set `FEISHU_DOMAIN` to `{sibling}` and restart nod")]
    WrongDomain { name: String, sibling: &'static str },
    #[error(
        "the app has as many connections as {name} allows: nod tries again; stop other programs that use this app if this goes on"
    )]
    TooManyConnections { name: String },
    #[error(
        "{name} refuses this app (code {code}): it may be disabled or banned; look at its state in the developer console"
    )]
    Forbidden { name: String, code: i64 },
    #[error(
        "{name} refused the connection with code {code} ({msg}): look at the app in the developer console"
    )]
    Refused {
        name: String,
        code: i64,
        msg: String,
    },
    #[error(
        "a web page answered in place of {name} (HTTP {status}): sign in to this network's portal, or check the proxy"
    )]
    Portal { name: String, status: u16 },
    #[error("{name} answered HTTP {status} and nothing nod can use")]
    Http { name: String, status: u16 },
    #[error("{name} gave no usable address to connect to: {problem}")]
    BadUrl { name: String, problem: &'static str },
    #[error("the WebSocket to {name} was not accepted: {problem}")]
    Upgrade { name: String, problem: String },
    #[error("{name} did not answer {what} in time")]
    TimedOut { name: String, what: &'static str },
}

impl DialError {
    /// When to try again: what only a person can change is tried slowly, but
    /// never given up.
    pub fn retry(&self) -> DialRetry {
        match self {
            Self::BadCredentials { .. } | Self::WrongDomain { .. } | Self::Forbidden { .. } => {
                DialRetry::Slowly(Duration::from_secs(300))
            }
            Self::TooManyConnections { .. } => DialRetry::Crowded,
            Self::Outbound(why) if why.is_setting() => DialRetry::Slowly(Duration::from_secs(300)),
            // Nobody knows what an unknown code waits for.
            Self::Outbound(_)
            | Self::Refused { .. }
            | Self::Busy { .. }
            | Self::Portal { .. }
            | Self::Http { .. }
            | Self::BadUrl { .. }
            | Self::Upgrade { .. }
            | Self::TimedOut { .. } => DialRetry::Soon,
        }
    }
}

impl Dialer {
    /// One dial from discovery to the open WebSocket, every wait limited.
    pub async fn dial(&self) -> Result<Dialed, DialError> {
        let (url, settings) = self.discover_in_time().await?;
        let service = service_id(&url);
        let stream = self.outbound.open(&url, self.limits.open).await?;
        let upgrade = tokio::time::timeout(self.limits.upgrade, self.upgrade(&url, stream)).await;
        let socket = upgrade.map_err(|_| self.timed_out("the WebSocket handshake"))??;
        Ok(Dialed {
            socket,
            service,
            settings,
        })
    }

    /// Sets the clock by Feishu's, and connects to nothing.
    #[cfg(feature = "team")]
    pub async fn learn_time(&self) -> Result<(), DialError> {
        self.discover_in_time().await.map(drop)
    }

    async fn discover_in_time(&self) -> Result<(Url, ServerSettings), DialError> {
        let discovery = tokio::time::timeout(self.limits.discover, self.discover()).await;
        discovery.map_err(|_| self.timed_out("where to connect"))?
    }

    async fn discover(&self) -> Result<(Url, ServerSettings), DialError> {
        let url = self
            .domain
            .base()
            .join("callback/ws/endpoint")
            .expect("a fixed path");
        Outbound::check(&url)?;
        let fault = |e: &reqwest::Error| self.outbound.fault(&url, e);
        let mut response = self
            .outbound
            .http_client()
            .post(url.clone())
            .header("locale", "zh")
            .json(&serde_json::json!({
                "AppID": self.app_id,
                "AppSecret": self.app_secret.expose(),
            }))
            .send()
            .await
            .map_err(|e| fault(&e))?;
        let status = response.status().as_u16();
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(|e| fault(&e))? {
            if body.len() + chunk.len() > MAX_ANSWER {
                break;
            }
            body.extend_from_slice(&chunk);
        }
        let read = self.read_answer(status, &body)?;
        self.clock.learn(response.headers());
        Ok(read)
    }

    fn read_answer(&self, status: u16, body: &[u8]) -> Result<(Url, ServerSettings), DialError> {
        let name = self.name();
        let answer: EndpointAnswer = match serde_json::from_slice(body) {
            Ok(answer) => answer,
            Err(_) if looks_like_a_page(status, body) => {
                return Err(DialError::Portal { name, status });
            }
            Err(_) => return Err(DialError::Http { name, status }),
        };
        match answer.code {
            Some(0) => {}
            Some(code) => return Err(self.refusal(code, &answer.msg)),
            None => return Err(DialError::Http { name, status }),
        }
        let bad = |problem| DialError::BadUrl {
            name: self.name(),
            problem,
        };
        let data = answer.data.unwrap_or_default();
        let url = data.url.filter(|url| !url.is_empty());
        let url =
            Url::parse(&url.ok_or_else(|| bad("it is empty"))?).map_err(|_| bad("it is no URL"))?;
        match url.scheme() {
            "wss" => {}
            "ws" if is_this_machine(&url) => {}
            "ws" => return Err(bad("it is not encrypted")),
            _ => return Err(bad("it is no WebSocket address")),
        }
        if url.host().is_none() || !url.username().is_empty() || url.password().is_some() {
            return Err(bad("it names a user or no host"));
        }
        if url.fragment().is_some() {
            return Err(bad("it has a fragment"));
        }
        let settings = ServerSettings::default().updated(&data.settings);
        Ok((url, settings))
    }

    fn refusal(&self, code: i64, msg: &str) -> DialError {
        let name = self.name();
        match code {
            BUSY | INTERNAL => DialError::Busy { name, code },
            NO_CREDENTIAL | BAD_CREDENTIAL | AUTH_FAILED => {
                DialError::BadCredentials { name, code }
            }
            TOO_MANY => DialError::TooManyConnections { name },
            WRONG_DOMAIN => DialError::WrongDomain {
                name,
                sibling: self.domain.sibling(),
            },
            FORBIDDEN => DialError::Forbidden { name, code },
            _ => DialError::Refused {
                name,
                code,
                msg: self.presentable(msg),
            },
        }
    }

    /// A foreign message made fit for one line, without the secret in it.
    fn presentable(&self, msg: &str) -> String {
        let msg = msg.replace(self.app_secret.expose(), "•••");
        let msg = printable(&msg, 200);
        if msg.is_empty() {
            "no reason given".to_owned()
        } else {
            msg
        }
    }

    async fn upgrade(
        &self,
        url: &Url,
        stream: Stream,
    ) -> Result<WebSocketStream<Stream>, DialError> {
        let refused = |problem: String| DialError::Upgrade {
            name: self.name(),
            problem,
        };
        let request = url
            .as_str()
            .into_client_request()
            .map_err(|_| refused("its address cannot be asked for".to_owned()))?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE))
            .max_frame_size(Some(MAX_MESSAGE));
        match client_async_with_config(request, stream, Some(config)).await {
            Ok((socket, _)) => Ok(socket),
            Err(tungstenite::Error::Http(response)) => {
                Err(self.rejection(response.status(), response.headers()))
            }
            Err(why) => Err(refused(upgrade_problem(&why))),
        }
    }

    fn rejection(&self, status: StatusCode, headers: &HeaderMap) -> DialError {
        let number = |name: &str| -> Option<i64> { headers.get(name)?.to_str().ok()?.parse().ok() };
        let name = self.name();
        match (number("handshake-status"), number("handshake-autherrcode")) {
            (Some(AUTH_FAILED), Some(TOO_MANY)) => DialError::TooManyConnections { name },
            (Some(FORBIDDEN), _) => DialError::Forbidden {
                name,
                code: FORBIDDEN,
            },
            (Some(code), _) => DialError::Busy { name, code },
            (None, _) => DialError::Http {
                name,
                status: status.as_u16(),
            },
        }
    }

    fn timed_out(&self, what: &'static str) -> DialError {
        DialError::TimedOut {
            name: self.name(),
            what,
        }
    }

    fn name(&self) -> String {
        self.domain.name().to_owned()
    }
}

/// A portal redirects, names itself by 511, or answers a page as if all were
/// well. A page with an error's status is the server's own, or its gateway's.
fn looks_like_a_page(status: u16, body: &[u8]) -> bool {
    let markup = body
        .iter()
        .find(|b| !b.is_ascii_whitespace())
        .is_some_and(|b| *b == b'<');
    (300..400).contains(&status) || status == 511 || (markup && status < 300)
}

/// tungstenite's own texts, without anything of the address in them.
fn upgrade_problem(why: &tungstenite::Error) -> String {
    match why {
        tungstenite::Error::Io(e) => e.kind().to_string(),
        tungstenite::Error::Protocol(e) => e.to_string(),
        tungstenite::Error::Capacity(_) => "its answer is too large".to_owned(),
        _ => "the handshake failed".to_owned(),
    }
}

/// The id pings must carry; clients of Feishu's own send 0 when it is missing.
fn service_id(url: &Url) -> i32 {
    url.query_pairs()
        .find(|(key, _)| key == "service_id")
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0)
}

#[derive(Deserialize)]
struct EndpointAnswer {
    code: Option<i64>,
    #[serde(default)]
    msg: String,
    data: Option<AnswerData>,
}

#[derive(Deserialize, Default)]
struct AnswerData {
    #[serde(rename = "URL")]
    url: Option<String>,
    #[serde(rename = "ClientConfig", default)]
    settings: Value,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::feishu::outbound::Proxies;

    fn dialer(domain: &str) -> Dialer {
        Dialer {
            outbound: Outbound::new(&Proxies::default(), None).unwrap(),
            domain: Domain::parse(domain).unwrap(),
            app_id: "cli_x".to_owned(),
            app_secret: Secret::new("canary"),
            limits: DialLimits::default(),
            clock: TheirClock::new(Clock::start()),
        }
    }

    fn answer(status: u16, body: &str) -> Result<(Url, ServerSettings), DialError> {
        dialer("feishu").read_answer(status, body.as_bytes())
    }

    #[test]
    fn a_good_answer_gives_the_address_and_the_pace() {
        let (url, settings) = answer(
            200,
            r#"{"code":0,"data":{"URL":"wss://h/ws/v2?a=1&service_id=5","ClientConfig":{"PingInterval":90}}}"#,
        )
        .unwrap();
        assert_eq!(url.host_str(), Some("h"));
        assert_eq!(settings.ping_every, Duration::from_secs(90));
        let (_, settings) = answer(200, r#"{"code":0,"data":{"URL":"wss://h/"}}"#).unwrap();
        assert_eq!(settings, ServerSettings::default());
    }

    #[test]
    fn the_service_id_is_found_anywhere_in_the_query() {
        for (query, id) in [
            ("service_id=7&a=1", 7),
            ("a=1&service_id=7&b=2", 7),
            ("a=1&service_id=-7", -7),
            ("a=1", 0),
            ("service_id=x", 0),
        ] {
            let url = Url::parse(&format!("wss://h/ws?{query}")).unwrap();
            assert_eq!(service_id(&url), id, "{query}");
        }
    }

    #[test]
    fn addresses_that_would_leak_or_fail_are_refused_and_tried_again() {
        for url in [
            "",
            "x",
            "http://h/",
            "https://h/",
            "ws://h/",
            "wss://user@h/",
            "wss://h/#f",
        ] {
            let body = serde_json::json!({"code": 0, "data": {"URL": url}}).to_string();
            let why = answer(200, &body).unwrap_err();
            assert!(matches!(why, DialError::BadUrl { .. }), "{url}: {why}");
            assert_eq!(why.retry(), DialRetry::Soon);
        }
        let none = answer(200, r#"{"code":0}"#).unwrap_err();
        assert!(matches!(none, DialError::BadUrl { .. }));
    }

    #[test]
    fn each_code_has_its_sentence_and_its_pace() {
        for (code, words, slow) in [
            (1, "busy", false),
            (1_000_040_343, "busy", false),
            (1_000_040_344, "FEISHU_APP_SECRET", true),
            (1_000_040_345, "FEISHU_APP_SECRET", true),
            (514, "FEISHU_APP_SECRET", true),
            (1_000_040_350, "nod tries again", false),
            (1_000_040_351, "`FEISHU_DOMAIN` to `lark`", true),
            (403, "disabled or banned", true),
            (77, "77 (odd)", false),
        ] {
            for data in ["", r#","data":{}"#] {
                let body = format!(r#"{{"code":{code},"msg":"odd"{data}}}"#);
                let why = answer(200, &body).unwrap_err();
                assert!(why.to_string().contains(words), "{code}: {why}");
                assert_eq!(matches!(why.retry(), DialRetry::Slowly(_)), slow, "{code}");
            }
        }
        let lark = dialer("lark").refusal(WRONG_DOMAIN, "");
        assert!(lark.to_string().contains("`feishu`"));
    }

    #[test]
    fn what_is_not_feishu_is_told_apart() {
        for (status, body, portal) in [
            (200, "<html>sign in</html>", true),
            (302, "", true),
            (511, "", true),
            (502, "bad gateway", false),
            (500, "<html>down</html>", false),
            (429, "<html>slower</html>", false),
            (500, "", false),
            (200, "{}", false),
        ] {
            let why = answer(status, body).unwrap_err();
            assert_eq!(
                matches!(why, DialError::Portal { .. }),
                portal,
                "{status} {body}: {why}"
            );
            assert_eq!(why.retry(), DialRetry::Soon);
        }
    }

    #[test]
    fn foreign_words_are_cut_and_never_hold_the_secret() {
        let msg = format!("canary\u{1b}[31m{}", "x".repeat(500));
        let why = dialer("feishu").refusal(77, &msg).to_string();
        assert!(!why.contains("canary") && !why.contains('\u{1b}'), "{why}");
        assert!(why.len() < 400);
    }

    #[test]
    fn rejected_handshakes_are_read_from_their_headers() {
        let reject = |status: &str, auth: &str, http: u16| {
            let mut headers = HeaderMap::new();
            if !status.is_empty() {
                headers.insert("handshake-status", status.parse().unwrap());
            }
            if !auth.is_empty() {
                headers.insert("handshake-autherrcode", auth.parse().unwrap());
            }
            dialer("feishu").rejection(StatusCode::from_u16(http).unwrap(), &headers)
        };
        let limit = reject("514", "1000040350", 200);
        assert!(matches!(limit, DialError::TooManyConnections { .. }));
        assert_eq!(limit.retry(), DialRetry::Crowded);
        assert_eq!(reject("514", "9", 200).retry(), DialRetry::Soon);
        assert_eq!(reject("514", "", 200).retry(), DialRetry::Soon);
        assert!(matches!(
            reject("403", "", 200),
            DialError::Forbidden { .. }
        ));
        assert_eq!(reject("", "", 302).retry(), DialRetry::Soon);
        assert_eq!(reject("x", "", 503).retry(), DialRetry::Soon);
    }
}
