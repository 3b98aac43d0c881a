//! Calls against a server on loopback: logins, replays, waits, strangers that
//! answer in Feishu's place, and what must never be shown.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::future::join_all;
use serde_json::json;

use super::*;
use crate::feishu::error::{ContentProblem, FeishuAnswer};
use crate::feishu::fake::{Fake, Reply, direct};
use crate::feishu::outbound::OutboundError;

const SECRET: &str = "canary-app-secret-27182";

fn api(fake: &Fake) -> Api {
    let secret = Secret::new(SECRET);
    Api::new(&direct(), fake.base("127.0.0.1"), "cli_1", secret).expect("an API")
}

fn hello() -> ApiCall {
    ApiCall::post(&["open-apis", "hello"], json!({"uuid": "u-1"}))
}

#[test]
fn pauses_double_up_to_a_limit_and_never_vanish() {
    let millis = |tries, chance| pause(tries, None, chance).as_millis();
    assert_eq!(
        [millis(1, 1.0), millis(2, 1.0), millis(3, 1.0)],
        [250, 500, 1000]
    );
    assert_eq!(millis(60, 1.0), 4000);
    assert_eq!(millis(1, 0.0), 125);
}

#[test]
fn a_wait_the_server_asked_for_is_never_cut_short_but_capped() {
    let asked = |secs| pause(1, Some(Duration::from_secs(secs)), 0.0);
    assert_eq!(asked(3), Duration::from_secs(3));
    assert_eq!(asked(4000), MAX_WAIT);
}

#[tokio::test]
async fn a_hundred_callers_share_one_login() {
    let fake = Fake::start(|seen, _| {
        if seen.is_login() {
            Reply::token("t-1")
        } else {
            Reply::ok(&json!({}))
        }
    })
    .await;
    let api = api(&fake);
    let call = hello();
    let answers = join_all((0..100).map(|_| api.call(&call))).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(fake.logins(), 1);
    assert_eq!(fake.calls().len(), 100);
}

#[tokio::test]
async fn a_hundred_callers_share_one_refusal_of_the_credentials() {
    let fake = Fake::start(|_, _| Reply::refusal(200, 10_014)).await;
    let api = api(&fake);
    let call = hello();
    for _ in 0..2 {
        for answer in join_all((0..100).map(|_| api.call(&call))).await {
            assert!(matches!(answer, Err(ApiError::BadCredentials(_))));
        }
    }
    assert_eq!(fake.seen().len(), 1);
}

#[tokio::test]
async fn a_call_looks_as_feishu_wants_it() {
    let fake = Fake::start(|seen, _| {
        if seen.is_login() {
            Reply::token("t-1")
        } else {
            Reply::ok(&json!({}))
        }
    })
    .await;
    let call = hello().query("type", "a b");
    api(&fake).call(&call).await.expect("an answer");
    let [login, call] = &fake.seen()[..] else {
        panic!("a login and a call are due");
    };
    assert_eq!(
        login.line,
        "POST /open-apis/auth/v3/tenant_access_token/internal HTTP/1.1"
    );
    assert_eq!(
        login.json(),
        json!({"app_id": "cli_1", "app_secret": SECRET})
    );
    assert!(!login.head.to_ascii_lowercase().contains("authorization"));
    assert_eq!(call.line, "POST /open-apis/hello?type=a+b HTTP/1.1");
    let head = call.head.to_ascii_lowercase();
    for line in [
        "authorization: bearer t-1\r\n",
        "content-type: application/json; charset=utf-8\r\n",
        concat!("user-agent: nod/", env!("CARGO_PKG_VERSION"), "\r\n"),
    ] {
        assert!(head.contains(line), "{head}");
    }
}

#[tokio::test]
async fn an_expired_token_costs_one_login_and_one_replay() {
    for code in [99_991_663, 99_991_664, 99_991_665, 99_991_671] {
        let logins = AtomicUsize::new(0);
        let fake = Fake::start(move |seen, _| {
            if seen.is_login() {
                let number = logins.fetch_add(1, Ordering::Relaxed);
                return Reply::token(&format!("t-{number}"));
            }
            if seen.head.contains("Bearer t-0") {
                Reply::refusal(400, code)
            } else {
                Reply::ok(&json!({}))
            }
        })
        .await;
        api(&fake).call(&hello()).await.expect("an answer");
        assert_eq!(fake.logins(), 2);
        let calls = fake.calls();
        assert_eq!(calls.len(), 2);
        assert_eq!(calls[0].body, calls[1].body);
    }
}

#[tokio::test]
async fn a_token_that_is_never_accepted_is_replayed_only_once() {
    let fake = Fake::start(|seen, _| {
        if seen.is_login() {
            Reply::token("t-1")
        } else {
            Reply::refusal(400, 99_991_663)
        }
    })
    .await;
    let answer = api(&fake).call(&hello()).await;
    assert!(matches!(answer, Err(ApiError::StaleToken(_))));
    assert_eq!((fake.logins(), fake.calls().len()), (2, 2));
}

#[tokio::test]
async fn callers_with_the_same_dead_token_share_the_new_one() {
    let logins = AtomicUsize::new(0);
    let fake = Fake::start(move |seen, _| {
        if seen.is_login() {
            let number = logins.fetch_add(1, Ordering::Relaxed);
            return Reply::token(&format!("t-{number}"));
        }
        if seen.head.contains("Bearer t-0") {
            Reply::refusal(400, 99_991_663)
        } else {
            Reply::ok(&json!({}))
        }
    })
    .await;
    let api = api(&fake);
    let call = hello();
    let answers = join_all((0..50).map(|_| api.call(&call))).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(fake.logins(), 2);
}

#[tokio::test]
async fn a_rate_limit_is_waited_out_as_long_as_the_header_says() {
    for header in ["x-ogw-ratelimit-reset", "Retry-After"] {
        let fake = Fake::start(move |seen, before| match before {
            _ if seen.is_login() => Reply::token("t-1"),
            1 => Reply::refusal(429, 99_991_400).header(header, "1"),
            _ => Reply::ok(&json!({})),
        })
        .await;
        let start = Instant::now();
        api(&fake).call(&hello()).await.expect("an answer");
        assert!(start.elapsed() >= Duration::from_secs(1), "{header}");
        assert_eq!(fake.calls().len(), 2);
    }
}

#[tokio::test]
async fn a_wait_beyond_the_budget_is_handed_to_the_caller() {
    let fake = Fake::start(|seen, _| {
        if seen.is_login() {
            Reply::token("t-1")
        } else {
            Reply::refusal(429, 99_991_400).header("x-ogw-ratelimit-reset", "20")
        }
    })
    .await;
    let api = api(&fake).within(Duration::from_secs(5));
    let error = api.call(&hello()).await.expect_err("too long");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(20)));
    assert_eq!(fake.calls().len(), 1);
}

#[tokio::test]
async fn a_connection_lost_after_the_call_is_tried_again_unchanged() {
    let fake = Fake::start(|seen, before| match before {
        _ if seen.is_login() => Reply::token("t-1"),
        1 => Reply::HangUp,
        _ => Reply::ok(&json!({"message_id": "om_1"})),
    })
    .await;
    let answer = api(&fake).call(&hello()).await.expect("an answer");
    assert_eq!(answer["data"]["message_id"], "om_1");
    let calls = fake.calls();
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0].body, calls[1].body);
}

type Answer = Box<dyn Fn() -> Reply + Send + Sync>;

#[tokio::test]
async fn answers_that_are_not_feishu_are_named_and_never_read_as_one() {
    let page = |status| Reply::Answer {
        status,
        headers: vec![("Content-Type", "text/html".to_owned())],
        body: b"\n <html>{\"code\":0}</html>".to_vec(),
    };
    let raw = |status, body: &[u8]| Reply::Answer {
        status,
        headers: Vec::new(),
        body: body.to_vec(),
    };
    let cases: [(Answer, &str); 7] = [
        (Box::new(move || page(200)), "captive portal"),
        (Box::new(move || page(403)), "captive portal"),
        (
            Box::new(move || raw(302, b"").header("Location", "http://login.test/")),
            "captive portal",
        ),
        (Box::new(move || raw(200, b"")), "not Feishu's API"),
        (
            Box::new(move || raw(404, b"404 page not found")),
            "not Feishu's API",
        ),
        (
            Box::new(move || raw(200, b"{\"ok\":true}")),
            "not Feishu's API",
        ),
        (
            Box::new(move || raw(200, &b"{".repeat(1024 * 1024 + 1))),
            "not Feishu's API",
        ),
    ];
    for (reply, words) in cases {
        let fake = Fake::start(move |_, _| reply()).await;
        let error = api(&fake).login().await.expect_err(words);
        assert!(matches!(error, ApiError::Malformed { .. }), "{error:?}");
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(fake.seen().len(), 1, "no redirect, no second try");
    }
}

#[tokio::test]
async fn a_gateway_page_is_tried_again() {
    let fake = Fake::start(|seen, before| match before {
        _ if seen.is_login() => Reply::token("t-1"),
        1 => Reply::Answer {
            status: 502,
            headers: Vec::new(),
            body: b"<html>bad gateway</html>".to_vec(),
        },
        _ => Reply::ok(&json!({})),
    })
    .await;
    api(&fake).call(&hello()).await.expect("an answer");
}

#[tokio::test]
async fn feishus_code_decides_and_its_log_id_is_kept() {
    let fake = Fake::start(|seen, _| {
        if seen.is_login() {
            return Reply::token("t-1");
        }
        Reply::refusal(200, 230_025).header("X-Tt-Logid", "log-77")
    })
    .await;
    let error = api(&fake).call(&hello()).await.expect_err("refused");
    assert!(error.to_string().ends_with("log id log-77"), "{error}");
    let ApiError::Content { problem, .. } = error else {
        panic!("about the content");
    };
    assert_eq!(problem, ContentProblem::TooLong);
}

#[tokio::test]
async fn a_silent_server_ends_at_the_budget() {
    let fake = crate::feishu::fake::Listener::start(|mut stream| async move {
        let mut rest = Vec::new();
        let _ = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut rest).await;
    })
    .await;
    let base = Url::parse(&format!("http://{}", fake.address)).expect("an address");
    let api = Api::new(&direct(), base, "cli_1", Secret::new(SECRET)).expect("an API");
    let answer = api.within(Duration::from_millis(80)).call(&hello()).await;
    assert!(
        matches!(
            answer,
            Err(ApiError::Network(OutboundError::TimedOut { .. }))
        ),
        "{answer:?}"
    );
}

/// Everything logged while it lives, at every level.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl io::Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = self.0.lock().expect("no test panicked");
        all.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn neither_secret_nor_token_is_ever_shown() {
    const TOKEN: &str = "t-canary-token-16180";
    let logged = Logged::default();
    let writer = logged.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    // With a single subscriber alive, tracing asks only the thread that meets a
    // log line first, and that may be another test's.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let guard = tracing::subscriber::set_default(subscriber);

    let codes = [99_991_663, 2200, 230_025, 10_014, 777];
    let mut shown = Vec::new();
    for code in codes {
        // A server that echoes whatever it was sent.
        let fake = Fake::start(move |seen, _| {
            let echo = json!({"code": code, "msg": format!("{} {}", seen.head, seen.body)});
            if seen.is_login() && code != 10_014 {
                Reply::token(TOKEN)
            } else {
                Reply::json(400, &echo)
            }
        })
        .await;
        let api = api(&fake).within(Duration::from_secs(2));
        let error = api.call(&hello()).await.expect_err("refused");
        shown.push(format!("{error} {error:?} {api:?}"));
    }
    let closed = Url::parse("http://127.0.0.1:1/").expect("an address");
    let api = Api::new(&direct(), closed, "cli_1", Secret::new(SECRET)).expect("an API");
    let error = api.login().await.expect_err("nobody listens");
    shown.push(format!("{error} {error:?} {api:?}"));
    drop(guard);
    let shown = shown.join("\n");

    let logs = String::from_utf8_lossy(&logged.0.lock().expect("no test panicked")).into_owned();
    assert!(
        logs.contains("trying again"),
        "the log was captured: {logs}"
    );
    for canary in [SECRET, TOKEN] {
        assert!(!shown.contains(canary), "{shown}");
        assert!(!logs.contains(canary), "{logs}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_try_that_never_left_does_not_hide_that_an_earlier_one_may_have_arrived() {
    let peer = || "somebody".to_owned();
    let slow = || ApiError::Network(OutboundError::TimedOut { peer: peer() });
    let away = || ApiError::Network(OutboundError::Unreachable { peer: peer() });
    let refused = || ApiError::Rejected(FeishuAnswer::new(1, "no", None));
    for (tries, told) in [
        (vec![slow(), away()], slow()),
        (vec![away(), slow(), away()], slow()),
        (vec![away()], away()),
        // Feishu knows what it did with the same key before.
        (vec![slow(), refused()], refused()),
    ] {
        let all = tries.clone();
        let made = Arc::new(AtomicUsize::new(0));
        let errands: Errands = Arc::new(move |_, _, _| {
            let n = made.fetch_add(1, Ordering::SeqCst);
            let error = all.get(n).or(all.last()).cloned().expect("a try");
            Box::pin(async move { Err(error) })
        });
        let answer = Api::by_errand("cli_1", errands).call(&hello()).await;
        assert_eq!(answer, Err(told), "{tries:?}");
    }
}
