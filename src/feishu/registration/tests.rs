//! Registration against a small server on loopback that answers by script.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use serde_json::json;

use super::*;
use crate::feishu::outbound::Proxies;

/// The facts' encoding of the three scopes that are strictly needed.
const GOLDEN: &str = "H4sIAAAAAAACA2WN2wrCMBBE_2WfS0Af8ysiYZuOIZgb2bUgxX83CkKLr3PmzGzUOgRK9sZJMJH42iBkN1IULgNcKGabIcIBVlAWx-LmqjTtgGnn5rIE28FLLel5pKHXR3Osx8r1NRFWFP3-RUX-Oza_hQ6PuMKtp6ENz3NKM_v7Xr2MtC-GvcZajPYYAvqn_gYdMR145gAAAA";

fn addons(scopes: &[&str]) -> String {
    json!({
        "preset": false,
        "scopes": {"tenant": scopes},
        "events": {"items": {"tenant": [EVENT]}},
        "callbacks": {"items": [CALLBACK]},
    })
    .to_string()
}

#[test]
fn the_addons_unpack_to_what_nod_asks_for() {
    assert_eq!(unpacked(ADDONS), addons(&SCOPES));
    assert_eq!(unpacked(GOLDEN), addons(&SCOPES[..3]));
}

fn unpacked(encoded: &str) -> String {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(encoded).unwrap();
    let (head, rest) = bytes.split_at(10);
    assert_eq!(head, [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3]);
    let (body, tail) = rest.split_at(rest.len() - 8);
    let text = inflate(body);
    assert_eq!(tail[..4], crc32(&text).to_le_bytes());
    assert_eq!(tail[4..], u32::try_from(text.len()).unwrap().to_le_bytes());
    String::from_utf8(text).unwrap()
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & 0_u32.wrapping_sub(crc & 1))
        })
    })
}

struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn take(&mut self, count: usize) -> usize {
        (0..count).fold(0, |value, shift| {
            let bit = self.bytes[self.at / 8] >> (self.at % 8) & 1;
            self.at += 1;
            value | usize::from(bit) << shift
        })
    }

    /// The symbol whose canonical code comes next; `lengths[symbol]` is the
    /// length of its code.
    fn symbol(&mut self, lengths: &[usize]) -> usize {
        let (mut code, mut first) = (0, 0);
        for length in 1..16 {
            code = code << 1 | self.take(1);
            let of_length = || (0..lengths.len()).filter(|s| lengths[*s] == length);
            let count = of_length().count();
            if code < first + count {
                return of_length().nth(code - first).unwrap();
            }
            first = (first + count) << 1;
        }
        panic!("no such code");
    }
}

/// One dynamic block, as gzip makes of a short text.
fn inflate(bytes: &[u8]) -> Vec<u8> {
    const ORDER: [usize; 19] = [
        16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
    ];
    let mut bits = Bits { bytes, at: 0 };
    assert_eq!((bits.take(1), bits.take(2)), (1, 2), "last block, dynamic");
    let (literals, distances) = (bits.take(5) + 257, bits.take(5) + 1);
    let mut of_lengths = [0; 19];
    for place in &ORDER[..bits.take(4) + 4] {
        of_lengths[*place] = bits.take(3);
    }
    let mut lengths = Vec::new();
    while lengths.len() < literals + distances {
        let (value, times) = match bits.symbol(&of_lengths) {
            16 => (*lengths.last().unwrap(), bits.take(2) + 3),
            17 => (0, bits.take(3) + 3),
            18 => (0, bits.take(7) + 11),
            length => (length, 1),
        };
        lengths.extend(std::iter::repeat_n(value, times));
    }
    let (literals, distances) = lengths.split_at(literals);
    let mut out = Vec::new();
    loop {
        match bits.symbol(literals) {
            256 => return out,
            byte @ 0..256 => out.push(u8::try_from(byte).unwrap()),
            symbol => {
                let extra = (symbol.max(261) - 261) / 4;
                let base = match symbol {
                    257..265 => symbol - 254,
                    _ => 3 + ((4 + (symbol - 261) % 4) << extra),
                };
                let length = base + bits.take(extra);
                let symbol = bits.symbol(distances);
                let extra = (symbol.max(2) - 2) / 2;
                let base = match symbol {
                    0..4 => symbol + 1,
                    _ => 1 + ((2 + symbol % 2) << extra),
                };
                let from = out.len() - base - bits.take(extra);
                for at in from..from + length {
                    out.push(out[at]);
                }
            }
        }
    }
}

type Script = Arc<Mutex<VecDeque<(u16, Value)>>>;

/// A platform that gives the scripted answers in turn, and what it was asked.
struct Platform {
    url: Url,
    asked: Arc<Mutex<Vec<String>>>,
}

async fn platform(answers: &[(u16, Value)]) -> Platform {
    let script: Script = Arc::new(Mutex::new(answers.iter().cloned().collect()));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let app = Router::new()
        .route(
            PATH,
            post(
                async |State((script, asked)): State<(Script, Arc<Mutex<Vec<String>>>)>,
                       body: String| {
                    asked.lock().unwrap().push(body);
                    let (status, answer) = script
                        .lock()
                        .unwrap()
                        .pop_front()
                        .unwrap_or((500, json!({})));
                    (StatusCode::from_u16(status).unwrap(), answer.to_string())
                },
            ),
        )
        .with_state((script, Arc::clone(&asked)));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    Platform {
        url: Url::parse(&url).unwrap(),
        asked,
    }
}

fn begun(url: &Url) -> (u16, Value) {
    let link = format!("{url}page/launcher?user_code=AB-CD");
    (
        200,
        json!({"device_code": "dev 1&2", "user_code": "AB-CD", "verification_uri_complete": link, "expires_in": 600}),
    )
}

fn registration(feishu: &Url, lark: &Url) -> AppRegistration {
    let outbound = Outbound::new(&Proxies::default(), None).unwrap();
    let quick = Duration::from_millis(1);
    AppRegistration {
        feishu: feishu.clone(),
        lark: lark.clone(),
        pacing: Pacing {
            unless_told: quick,
            least: quick,
            slower_by: quick,
        },
        ..AppRegistration::new(&outbound, &Domain::Feishu)
    }
}

fn success() -> (u16, Value) {
    (
        200,
        json!({"client_id": "cli_a1b2c3d4e5", "client_secret": "canary-secret", "user_info": {"open_id": "ou_1", "tenant_brand": "feishu"}}),
    )
}

fn pending(error: &str) -> (u16, Value) {
    (400, json!({"error": error, "error_description": "words"}))
}

async fn waited(polls: &[(u16, Value)]) -> (Result<Registered, RegistrationError>, Vec<String>) {
    let there = platform(polls).await;
    let registration = registration(&there.url, &there.url);
    let (_, answer) = begun(&there.url);
    let offer = offer(&answer, "nod", Brand::Feishu, registration.pacing).unwrap();
    let result = registration.wait(&offer).await;
    let asked = there.asked.lock().unwrap().clone();
    (result, asked)
}

#[tokio::test]
async fn a_scan_makes_an_app() {
    let there = platform(&[]).await;
    let answer = begun(&there.url);
    let there = platform(&[answer]).await;
    let registration = registration(&there.url, &there.url);
    let offer = registration.begin("nod · 小机").await.unwrap();
    assert_eq!(offer.life, Duration::from_secs(600));
    let query: Vec<(String, String)> = offer.link.query_pairs().into_owned().collect();
    let value = |name: &str| {
        query
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    };
    assert_eq!(value("user_code"), Some("AB-CD"));
    assert_eq!(value("name"), Some("nod · 小机"));
    assert_eq!(value("createOnly"), Some("true"));
    assert_eq!(value("addons"), Some(ADDONS));
    let asked = there.asked.lock().unwrap()[0].clone();
    assert!(asked.contains("action=begin") && asked.contains("archetype=PersonalAgent"));

    let (registered, asked) = waited(&[
        pending("authorization_pending"),
        (200, json!({})),
        pending("slow_down"),
        success(),
    ])
    .await;
    let registered = registered.unwrap();
    assert_eq!(registered.app_id, "cli_a1b2c3d4e5");
    assert_eq!(registered.app_secret.expose(), "canary-secret");
    assert_eq!(registered.owner, Some(UserId::Open("ou_1".into())));
    assert_eq!(registered.domain(&Domain::Feishu), Domain::Feishu);
    assert_eq!(asked.len(), 4);
    assert!(
        asked
            .iter()
            .all(|body| body == "action=poll&device_code=dev+1%262")
    );
}

#[tokio::test]
async fn a_refusal_ends_the_wait_and_says_which() {
    let refused = RegistrationError::Refused {
        code: "odd".to_owned(),
        words: ", words".to_owned(),
    };
    for (error, expected) in [
        ("access_denied", RegistrationError::Denied),
        ("expired_token", RegistrationError::Expired),
        ("invalid_grant", RegistrationError::Expired),
        ("odd", refused),
    ] {
        let (result, _) = waited(&[pending("authorization_pending"), pending(error)]).await;
        assert_eq!(result, Err(expected));
    }
}

#[tokio::test]
async fn a_passing_failure_does_not_end_the_wait() {
    let (result, asked) = waited(&[(502, json!("bad gateway")), success()]).await;
    assert!(result.is_ok());
    assert_eq!(asked.len(), 2);
    let (result, _) = waited(&[(404, json!("page"))]).await;
    assert_eq!(result, Err(RegistrationError::Malformed { status: 404 }));
}

#[tokio::test]
async fn a_scan_from_lark_is_fetched_from_lark() {
    let lark = json!({"user_info": {"open_id": "ou_1", "tenant_brand": "lark"}});
    let here = platform(&[(200, lark.clone())]).await;
    let mut done = success();
    done.1["user_info"]["tenant_brand"] = "lark".into();
    let there = platform(&[(200, lark), done]).await;
    let registration = registration(&here.url, &there.url);
    let (_, answer) = begun(&here.url);
    let offer = offer(&answer, "nod", Brand::Feishu, registration.pacing).unwrap();
    let registered = registration.wait(&offer).await.unwrap();
    assert_eq!(registered.brand, Brand::Lark);
    assert_eq!(registered.domain(&Domain::Feishu), Domain::Lark);
    assert_eq!(here.asked.lock().unwrap().len(), 1);
    assert_eq!(there.asked.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_scan_from_lark_that_is_still_pending_is_followed_to_lark() {
    let mut lark = pending("authorization_pending");
    lark.1["user_info"] = json!({"tenant_brand": "lark"});
    let here = platform(&[lark.clone()]).await;
    let there = platform(&[lark, success()]).await;
    let registration = registration(&here.url, &there.url);
    let (_, answer) = begun(&here.url);
    let offer = offer(&answer, "nod", Brand::Feishu, registration.pacing).unwrap();
    assert!(registration.wait(&offer).await.is_ok());
    assert_eq!(here.asked.lock().unwrap().len(), 1, "told once");
    assert_eq!(there.asked.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_link_that_lark_refuses_is_asked_for_on_feishu() {
    for refusal in [(400, json!({"error": "odd"})), (404, json!("page"))] {
        let lark = platform(&[refusal]).await;
        let somewhere = platform(&[]).await;
        let feishu = platform(&[begun(&somewhere.url), success()]).await;
        let begins_on_lark = AppRegistration {
            begun_on: Brand::Lark,
            ..registration(&feishu.url, &lark.url)
        };
        let offer = begins_on_lark.begin("nod").await.unwrap();
        assert!(begins_on_lark.wait(&offer).await.is_ok());
        assert_eq!(lark.asked.lock().unwrap().len(), 1);
        assert_eq!(
            feishu.asked.lock().unwrap().len(),
            2,
            "polled where it began"
        );
    }
}

#[test]
fn offers_are_read_in_every_spelling_and_bounded() {
    let base = json!({"device_code": "d", "verification_uri_complete": "https://open.feishu.cn/page/launcher?user_code=A"});
    for (field, value, life, interval) in [
        ("expires_in", json!(300), 300, 5),
        ("expire_in", json!(300), 300, 5),
        ("other", json!(1), 600, 5),
        ("expires_in", json!(-1), 600, 5),
        ("expires_in", json!(u64::MAX), 3600, 5),
        ("interval", json!(7), 600, 7),
        ("interval", json!(0), 600, 5),
        ("interval", json!(9000), 600, 60),
    ] {
        let mut answer = base.clone();
        answer[field] = value;
        let offer = offer(&answer, "nod", Brand::Feishu, PACING).unwrap();
        assert_eq!(offer.life, Duration::from_secs(life), "{answer}");
        assert_eq!(offer.interval, Duration::from_secs(interval), "{answer}");
        assert!(offer.link.as_str().contains("createOnly=true"));
    }
}

#[test]
fn links_that_could_lead_astray_are_refused() {
    for link in ["", "javascript:1", "http://open.feishu.cn/", "//h"] {
        let answer = json!({"device_code": "d", "verification_uri_complete": link});
        assert!(offer(&answer, "nod", Brand::Feishu, PACING).is_none());
    }
}

#[test]
fn an_offer_and_its_outcome_never_print_their_secrets() {
    let answer = json!({"device_code": "canary", "verification_uri_complete": "https://h/"});
    let offer = offer(&answer, "nod", Brand::Feishu, PACING).unwrap();
    assert!(!format!("{offer:?}").contains("canary"));
    let mut poll = Poll {
        brand: Brand::Feishu,
        interval: PACING.least,
        switched: false,
    };
    let (status, answer) = success();
    let Ok(NextPoll::Done(done)) = poll.next(&answer, status, PACING) else {
        panic!("a success");
    };
    assert!(!format!("{done:?}").contains("canary"));
}
