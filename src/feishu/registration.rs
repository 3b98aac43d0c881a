//! Makes a Feishu app by one scan: asks for a link, shows nothing itself, and
//! polls until the person who scanned it has agreed. Pending answers come with
//! HTTP 400, so the body is read before the status. Never logs a code.

#[cfg(test)]
mod tests;

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use url::Url;

use super::domain::{Domain, is_this_machine};
use super::outbound::{Outbound, OutboundError, body_within};
use super::secret::Secret;
use crate::ids::UserId;
use crate::text::printable;

/// What nod asks the platform to switch on in the new app: these scopes, the
/// event for messages, the callback for taps, and nothing of the default
/// template.
pub const SCOPES: [&str; 8] = [
    SEND,
    PRIVATE,
    GROUP,
    SELF_MANAGE,
    UPLOAD,
    ATTACHMENTS,
    PEOPLE,
    NAMES,
];
pub const SEND: &str = "im:message:send_as_bot";
pub const PRIVATE: &str = "im:message.p2p_msg:readonly";
pub const GROUP: &str = "im:message.group_at_msg:readonly";
/// Without it Feishu tells an app nothing of itself.
pub const SELF_MANAGE: &str = "application:application:self_manage";
/// What does not fit a card goes out as a file; without it, as messages.
pub const UPLOAD: &str = "im:resource:upload";
/// Pictures and files sent to a session; without it, tasks start without them.
pub const ATTACHMENTS: &str = "im:message:readonly";

/// Who an id is, and that person's name; without them the record shows ids.
pub const PEOPLE: &str = "contact:contact.base:readonly";
pub const NAMES: &str = "contact:user.base:readonly";
/// With it taps name their sender's user id, and a person can be sent to and
/// looked up by it. Needed only where somebody is listed by a user id.
pub const USER_IDS: &str = "contact:user.employee_id:readonly";

/// The scopes of which any does the same for an app.
pub fn alternatives(scope: &str) -> &'static [&'static str] {
    match scope {
        SEND => &["im:message", "im:message:send"],
        PRIVATE => &["im:message.p2p_msg"],
        GROUP => &[
            "im:message.group_at_msg",
            "im:message.group_msg",
            "im:message.group_msg:readonly",
            "im:message.group_at_msg.include_bot:readonly",
        ],
        SELF_MANAGE => &["admin:app.info:readonly"],
        UPLOAD => &["im:resource"],
        ATTACHMENTS => &["im:message", "im:message.history:readonly"],
        PEOPLE | NAMES => &[
            "contact:contact:readonly_as_app",
            "contact:contact:access_as_app",
        ],
        _ => &[],
    }
}
pub const EVENT: &str = "im.message.receive_v1";
pub const CALLBACK: &str = "card.action.trigger";

/// The JSON of the above as the page takes it: gzip, base64url, no padding.
/// Made once, because a link without real compression does not fit into a QR
/// code of 80 columns; a test unpacks it and compares.
const ADDONS: &str = "H4sIAAAAAAACA22Q24oDIRBE_8XnQUge_ZWwSI9TEYk3unsGlrD_vu4mgcnlSfFUVXd5NZ0hUOPOlAWTkdA6xLirUVSqA5xMKq5AhCKcoC6exM9NzbQDth-7LxIdg5ZW8_czjdzW7klfJdR7ToE0ter2d0E--0J1eG9BY8m2coBbe260PKXvA0OrSkHd_bQzyUe-CvgFfv1MBhuq_rdPivL2DfbRhxGQNvjtMGzDFyjnmcJlbz2NV17smDYaWeUUI_hP_gt5JDGMdAEAAA";

const PATH: &str = "/oauth/v1/app/registration";
const ANSWER_WITHIN: Duration = Duration::from_secs(15);
const MAX_ANSWER: u64 = 64 << 10;
const MAX_WORDS: usize = 200;

/// One of the two platforms, each with its own accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Brand {
    Feishu,
    Lark,
}

impl Brand {
    fn of(domain: &Domain) -> Self {
        match domain {
            Domain::Lark => Self::Lark,
            Domain::Feishu | Domain::Other(_) => Self::Feishu,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        match text {
            "feishu" => Some(Self::Feishu),
            "lark" => Some(Self::Lark),
            _ => None,
        }
    }
}

/// How long to wait between polls.
#[derive(Debug, Clone, Copy)]
struct Pacing {
    unless_told: Duration,
    least: Duration,
    slower_by: Duration,
}

const PACING: Pacing = Pacing {
    unless_told: Duration::from_secs(5),
    least: Duration::from_secs(1),
    slower_by: Duration::from_secs(5),
};
const LONGEST_INTERVAL: Duration = Duration::from_mins(1);
const LIFE_UNLESS_TOLD: Duration = Duration::from_mins(10);
const LONGEST_LIFE: Duration = Duration::from_hours(1);

/// Why no app came of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistrationError {
    /// Offer another link.
    #[error("nobody scanned the code in time")]
    Expired,
    /// Ask for id and secret instead.
    #[error("the person who scanned the code declined")]
    Denied,
    /// Ask for id and secret instead.
    #[error("the platform refused: `{code}`{words}")]
    Refused { code: String, words: String },
    #[error("somebody answered, but not the registration service (HTTP status {status})")]
    Malformed { status: u16 },
    #[error(transparent)]
    Network(#[from] OutboundError),
}

/// A link that makes an app when somebody scans it and agrees.
#[derive(Debug, Clone)]
pub struct AppOffer {
    pub link: Url,
    /// How long the link is good for.
    pub life: Duration,
    device_code: Secret,
    interval: Duration,
    begun_on: Brand,
}

/// The new app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    pub app_id: String,
    pub app_secret: Secret,
    /// Who scanned, as the new app knows them.
    pub owner: Option<UserId>,
    pub brand: Brand,
}

impl Registered {
    /// The platform the app lives on, begun on `asked`.
    pub fn domain(&self, asked: &Domain) -> Domain {
        match (asked, self.brand) {
            (Domain::Other(url), _) => Domain::Other(url.clone()),
            (_, Brand::Feishu) => Domain::Feishu,
            (_, Brand::Lark) => Domain::Lark,
        }
    }
}

/// The registration service.
#[derive(Debug, Clone)]
pub struct AppRegistration {
    outbound: Outbound,
    feishu: Url,
    lark: Url,
    begun_on: Brand,
    pacing: Pacing,
}

impl AppRegistration {
    /// Another base than the two platforms' is taken to serve registration too.
    pub fn new(outbound: &Outbound, domain: &Domain) -> Self {
        let fixed = |text: &str| Url::parse(text).expect("a fixed URL");
        let (feishu, lark) = match domain {
            Domain::Feishu | Domain::Lark => (
                fixed("https://accounts.feishu.cn/"),
                fixed("https://accounts.larksuite.com/"),
            ),
            Domain::Other(url) => (url.clone(), url.clone()),
        };
        Self {
            outbound: outbound.clone(),
            feishu,
            lark,
            begun_on: Brand::of(domain),
            pacing: PACING,
        }
    }

    /// Asks for a link that makes a new app of this name, never one that there
    /// is: those keep their old way of delivering events.
    pub async fn begin(&self, name: &str) -> Result<AppOffer, RegistrationError> {
        let form = [
            ("action", "begin"),
            ("archetype", "PersonalAgent"),
            ("auth_method", "client_secret"),
            ("request_user_info", "open_id tenant_brand"),
        ];
        let on = async |brand| {
            let (status, answer) = self.post(brand, &form).await?;
            if let Some(refusal) = refusal(&answer) {
                return Err(refusal);
            }
            let offer = offer(&answer, name, brand, self.pacing);
            offer.ok_or(RegistrationError::Malformed { status })
        };
        match on(self.begun_on).await {
            // Not every service begins on Lark's host; a scan leads back there.
            Err(RegistrationError::Refused { .. } | RegistrationError::Malformed { .. })
                if self.begun_on == Brand::Lark =>
            {
                on(Brand::Feishu).await
            }
            begun => begun,
        }
    }

    /// Waits for the scan. Passing network trouble does not end the wait.
    pub async fn wait(&self, offer: &AppOffer) -> Result<Registered, RegistrationError> {
        let end = Instant::now() + offer.life;
        let mut poll = Poll {
            brand: offer.begun_on,
            interval: offer.interval,
            switched: false,
        };
        let mut pause = poll.interval;
        loop {
            if Instant::now() + pause >= end {
                return Err(RegistrationError::Expired);
            }
            tokio::time::sleep(pause).await;
            let form = [
                ("action", "poll"),
                ("device_code", offer.device_code.expose()),
            ];
            let (status, answer) = match self.post(poll.brand, &form).await {
                Ok(answered) => answered,
                Err(RegistrationError::Network(error)) if error.is_passing() => {
                    tracing::debug!(%error, "asking for the scan failed; asking again");
                    pause = poll.interval;
                    continue;
                }
                Err(RegistrationError::Malformed { status }) if status >= 500 => {
                    pause = poll.interval;
                    continue;
                }
                Err(error) => return Err(error),
            };
            match poll.next(&answer, status, self.pacing)? {
                NextPoll::Wait(length) => pause = length,
                NextPoll::Done(registered) => return Ok(registered),
            }
        }
    }

    async fn post(
        &self,
        brand: Brand,
        form: &[(&str, &str)],
    ) -> Result<(u16, Value), RegistrationError> {
        let mut url = match brand {
            Brand::Feishu => self.feishu.clone(),
            Brand::Lark => self.lark.clone(),
        };
        url.set_path(PATH);
        Outbound::check(&url)?;
        let fault = |error: &reqwest::Error| self.outbound.fault(&url, error);
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        let mut response = self
            .outbound
            .http_client()
            .post(url.clone())
            .header("content-type", "application/x-www-form-urlencoded")
            .timeout(ANSWER_WITHIN)
            .body(body)
            .send()
            .await
            .map_err(|error| fault(&error))?;
        let status = response.status().as_u16();
        let body = body_within(&mut response, MAX_ANSWER).await;
        let body = body.map_err(|error| fault(&error))?.unwrap_or_default();
        match serde_json::from_slice(&body) {
            Ok(answer @ Value::Object(_)) => Ok((status, answer)),
            _ => Err(RegistrationError::Malformed { status }),
        }
    }
}

/// Where a poll stands; decides without a clock or a network.
struct Poll {
    brand: Brand,
    interval: Duration,
    switched: bool,
}

enum NextPoll {
    Wait(Duration),
    Done(Registered),
}

impl Poll {
    fn next(
        &mut self,
        answer: &Value,
        status: u16,
        pacing: Pacing,
    ) -> Result<NextPoll, RegistrationError> {
        let told = answer["user_info"]["tenant_brand"]
            .as_str()
            .and_then(Brand::parse);
        if let Some(error) = answer["error"].as_str().filter(|error| !error.is_empty()) {
            match error {
                // The platform of whoever scanned is told before they agree.
                "authorization_pending" => return Ok(self.switch(told)),
                "slow_down" => {
                    self.interval = (self.interval + pacing.slower_by).min(LONGEST_INTERVAL);
                    return Ok(NextPoll::Wait(self.interval));
                }
                _ => {}
            }
        }
        if let Some(refusal) = refusal(answer) {
            return Err(refusal);
        }
        let text = |name: &str| answer[name].as_str().filter(|text| !text.is_empty());
        match (text("client_id"), text("client_secret")) {
            (Some(id), Some(secret)) if is_plain(id) && is_plain(secret) => {
                Ok(NextPoll::Done(Registered {
                    app_id: id.to_owned(),
                    app_secret: Secret::new(secret),
                    owner: answer["user_info"]["open_id"]
                        .as_str()
                        .and_then(|id| UserId::parse(id).ok()),
                    brand: told.unwrap_or(self.brand),
                }))
            }
            (Some(_), Some(_)) => Err(RegistrationError::Malformed { status }),
            // The secret of an app lies with the platform of whoever scanned.
            _ => Ok(self.switch(told)),
        }
    }

    /// Goes on with the platform that was told, once.
    fn switch(&mut self, told: Option<Brand>) -> NextPoll {
        match told {
            Some(brand) if brand != self.brand && !self.switched => {
                self.brand = brand;
                self.switched = true;
                NextPoll::Wait(Duration::ZERO)
            }
            _ => NextPoll::Wait(self.interval),
        }
    }
}

fn refusal(answer: &Value) -> Option<RegistrationError> {
    let code = answer["error"].as_str().filter(|code| !code.is_empty())?;
    Some(match code {
        "access_denied" => RegistrationError::Denied,
        "expired_token" | "invalid_grant" => RegistrationError::Expired,
        _ => RegistrationError::Refused {
            code: printable(code, MAX_WORDS),
            words: answer["error_description"]
                .as_str()
                .map(|words| format!(", {}", printable(words, MAX_WORDS)))
                .unwrap_or_default(),
        },
    })
}

fn offer(answer: &Value, name: &str, begun_on: Brand, pacing: Pacing) -> Option<AppOffer> {
    let device_code = answer["device_code"].as_str()?;
    let link = Url::parse(answer["verification_uri_complete"].as_str()?).ok()?;
    let safe = link.scheme() == "https" || (link.scheme() == "http" && is_this_machine(&link));
    if device_code.is_empty() || !safe {
        return None;
    }
    let seconds = |name: &str| {
        answer[name]
            .as_u64()
            .filter(|seconds| *seconds > 0)
            .map(Duration::from_secs)
    };
    Some(AppOffer {
        link: decorated(link, name),
        // Two spellings are in use.
        life: seconds("expires_in")
            .or_else(|| seconds("expire_in"))
            .unwrap_or(LIFE_UNLESS_TOLD)
            .min(LONGEST_LIFE),
        device_code: Secret::new(device_code),
        interval: seconds("interval")
            .map_or(pacing.unless_told, |told| told.min(LONGEST_INTERVAL))
            .max(pacing.least),
        begun_on,
    })
}

fn decorated(mut link: Url, name: &str) -> Url {
    link.query_pairs_mut()
        .append_pair("from", "sdk")
        .append_pair("tp", "sdk")
        .append_pair("source", "nod")
        .append_pair("name", name)
        .append_pair("createOnly", "true")
        .append_pair("addons", ADDONS);
    link
}

fn is_plain(text: &str) -> bool {
    text.len() <= 128 && text.bytes().all(|b| b.is_ascii_graphic())
}
