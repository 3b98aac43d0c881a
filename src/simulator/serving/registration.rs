//! `POST /oauth/v1/app/registration`: an app made by one scan. The person who
//! scans is played by the control interface; states that are not final come
//! as HTTP 400 with a JSON body, as on the real service.

use std::collections::{HashMap, VecDeque};

use axum::body::Body;
use axum::http::{HeaderMap, Method, Response};
use axum::response::IntoResponse as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::rest::{self, html};
use crate::simulator::world::core::Core;
use crate::simulator::world::mint::Mint;
use crate::simulator::world::options::App;

pub(super) const PATH: &str = "/oauth/v1/app/registration";
const MAX_OFFERS: usize = 100;
const LIFE_MS: u64 = 600_000;
/// Two clocks and a busy machine; a client that keeps the interval never
/// comes this much too early.
const TOLERANCE_MS: u64 = 200;

/// Where a scan stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ScanState {
    Pending,
    Approved,
    Denied,
    Expired,
}

/// One link somebody can scan.
#[derive(Debug, Clone, Serialize)]
pub struct ScanOffer {
    pub user_code: String,
    pub state: ScanState,
    /// The app it made, once approved.
    pub app_id: Option<String>,
    #[serde(skip)]
    device_code: String,
    #[serde(skip)]
    until: u64,
    #[serde(skip)]
    polled: Option<u64>,
    #[serde(skip)]
    made: Option<MadeApp>,
}

#[derive(Debug, Clone)]
struct MadeApp {
    secret: String,
    open_id: String,
    brand: ScannerBrand,
    /// The platform it was begun on told once that the secret lies elsewhere.
    redirected: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScannerBrand {
    #[default]
    Feishu,
    Lark,
}

/// What the person who scanned does.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScanDecision {
    pub user_code: String,
    pub approve: bool,
    /// Any id or name of theirs; the first user otherwise.
    #[serde(default)]
    pub user: Option<String>,
    /// The platform their tenant lives on.
    #[serde(default)]
    pub brand: ScannerBrand,
}

/// The links handed out, oldest first.
#[derive(Debug, Default)]
pub(in crate::simulator) struct Registrations(VecDeque<ScanOffer>);

impl Registrations {
    pub(in crate::simulator) fn all(&mut self, now: u64) -> Vec<ScanOffer> {
        self.expire(now);
        self.0.iter().cloned().collect()
    }

    fn expire(&mut self, now: u64) {
        let over = |offer: &&mut ScanOffer| offer.state == ScanState::Pending && offer.until <= now;
        for offer in self.0.iter_mut().filter(over) {
            offer.state = ScanState::Expired;
        }
    }

    fn begin(&mut self, mint: &mut Mint, now: u64) -> ScanOffer {
        let code = mint.hex(8).to_uppercase();
        let offer = ScanOffer {
            user_code: format!("{}-{}", &code[..4], &code[4..]),
            state: ScanState::Pending,
            app_id: None,
            device_code: mint.hex(40),
            until: now + LIFE_MS,
            polled: None,
            made: None,
        };
        if self.0.len() == MAX_OFFERS {
            self.0.pop_front();
        }
        self.0.push_back(offer.clone());
        offer
    }

    /// HTTP status and body of a poll.
    fn poll(&mut self, device_code: &str, interval_ms: u64, now: u64) -> (u16, Value) {
        self.expire(now);
        let offer = self
            .0
            .iter_mut()
            .find(|offer| offer.device_code == device_code);
        let Some(offer) = offer else {
            return refused("invalid_grant", "there is no such device code");
        };
        let last = offer.polled.replace(now);
        let early = last.is_some_and(|last| now + TOLERANCE_MS < last + interval_ms);
        match (offer.state, &mut offer.made) {
            (ScanState::Denied, _) => refused("access_denied", "the user declined"),
            (ScanState::Expired, _) => refused("expired_token", "the code has expired"),
            (ScanState::Approved, Some(made))
                if made.brand == ScannerBrand::Lark && !made.redirected =>
            {
                made.redirected = true;
                let (status, mut body) = refused("authorization_pending", "agreed elsewhere");
                body["user_info"] = json!({"tenant_brand": made.brand});
                (status, body)
            }
            (ScanState::Approved, Some(made)) => (
                200,
                json!({
                    "client_id": offer.app_id,
                    "client_secret": made.secret,
                    "user_info": {"open_id": made.open_id, "tenant_brand": made.brand},
                }),
            ),
            _ if early => refused("slow_down", "polled too often"),
            _ => refused("authorization_pending", "nobody has agreed yet"),
        }
    }
}

fn refused(error: &str, description: &str) -> (u16, Value) {
    (
        400,
        json!({"error": error, "error_description": description}),
    )
}

pub(in crate::simulator) fn answer(
    core: &Core,
    method: &Method,
    headers: &HeaderMap,
    body: &[u8],
) -> Response<Body> {
    if method != Method::POST {
        return html(405, String::new());
    }
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let form: HashMap<String, String> = url::form_urlencoded::parse(body).into_owned().collect();
    let field = |name: &str| form.get(name).map(String::as_str);
    let is_form = header("content-type")
        .is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"));
    let (status, value) = match field("action").filter(|_| is_form) {
        Some("init") => (200, json!({"supported_auth_methods": ["client_secret"]})),
        Some("begin")
            if field("archetype") == Some("PersonalAgent")
                && field("auth_method") == Some("client_secret") =>
        {
            begin(core, header("host").unwrap_or("127.0.0.1"))
        }
        Some("poll") => {
            let now = core.now();
            let interval = core.options.scan_interval.as_millis();
            let interval = u64::try_from(interval).unwrap_or(u64::MAX);
            let device = field("device_code").unwrap_or_default();
            core.registrations().poll(device, interval, now)
        }
        _ => {
            let what = "the body is no form with a known `action` and its fields";
            core.violation("registration_body", None, what.to_owned());
            refused("invalid_request", what)
        }
    };
    (rest::status(status), rest::JSON, value.to_string()).into_response()
}

fn begin(core: &Core, host: &str) -> (u16, Value) {
    let now = core.now();
    let offer = core.registrations().begin(&mut core.world().mint, now);
    core.record(
        "registration",
        None,
        || json!({"user_code": offer.user_code, "state": offer.state}),
    );
    let link = format!("http://{host}/page/launcher");
    (
        200,
        json!({
            "device_code": offer.device_code,
            "user_code": offer.user_code,
            "verification_uri": link,
            "verification_uri_complete": format!("{link}?user_code={}", offer.user_code),
            "interval": core.options.scan_interval.as_secs(),
            "expires_in": LIFE_MS / 1_000,
        }),
    )
}

/// The scan itself: makes the app, or declines.
pub(in crate::simulator) fn decide(
    core: &Core,
    decision: &ScanDecision,
) -> Result<ScanOffer, String> {
    let now = core.now();
    let mut offers = core.registrations();
    offers.expire(now);
    let offer = offers
        .0
        .iter_mut()
        .find(|offer| offer.user_code == decision.user_code)
        .ok_or("there is no such user code")?;
    if offer.state != ScanState::Pending {
        return Err("this code is used up".to_owned());
    }
    if decision.approve {
        let mut world = core.world();
        let user = match &decision.user {
            Some(id) => world.users.iter().find(|user| user.is(id)),
            None => world.users.first(),
        };
        let open_id = user.ok_or("there is no such user")?.open_id.clone();
        let app = App {
            id: format!("cli_{}", world.mint.hex(16)),
            secret: world.mint.hex(32),
            bot_open_id: format!("ou_{}", world.mint.hex(32)),
            owner: open_id.clone(),
            ..App::scanned()
        };
        offer.app_id = Some(app.id.clone());
        offer.made = Some(MadeApp {
            secret: app.secret.clone(),
            open_id,
            brand: decision.brand,
            redirected: false,
        });
        offer.state = ScanState::Approved;
        world.apps.push(app);
    } else {
        offer.state = ScanState::Denied;
    }
    let offer = offer.clone();
    drop(offers);
    core.record("registration", None, || json!(offer));
    Ok(offer)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: u64 = 5_000;

    fn error(answer: &(u16, Value)) -> &str {
        assert_eq!(answer.0, 400);
        answer.1["error"].as_str().unwrap()
    }

    #[test]
    fn a_poll_too_early_is_slowed_down_and_a_late_one_has_expired() {
        let mut offers = Registrations::default();
        let offer = offers.begin(&mut Mint::new(1), 0);
        let mut poll = |now| offers.poll(&offer.device_code, EVERY, now);
        assert_eq!(error(&poll(EVERY)), "authorization_pending");
        assert_eq!(error(&poll(EVERY + 100)), "slow_down");
        assert_eq!(error(&poll(EVERY * 3)), "authorization_pending");
        assert_eq!(error(&poll(LIFE_MS)), "expired_token");
        assert_eq!(error(&offers.poll("other", EVERY, 0)), "invalid_grant");
    }

    #[test]
    fn only_the_newest_links_are_kept() {
        let mut offers = Registrations::default();
        let mut mint = Mint::new(1);
        let codes: Vec<String> = (0..MAX_OFFERS + 5)
            .map(|_| offers.begin(&mut mint, 0).user_code)
            .collect();
        let kept: Vec<String> = offers.all(1).into_iter().map(|o| o.user_code).collect();
        assert_eq!(kept, codes[5..]);
    }
}
