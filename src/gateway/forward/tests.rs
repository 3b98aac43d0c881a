use super::super::call;
use super::super::seal::SealPurpose;
use super::*;
use crate::approvals::desk::Delivery;
use crate::approvals::outcome::Upshot;
use crate::approvals::outcome::sample::{allowed, decided};
use crate::approvals::request::Reach;
use crate::feishu::outbound::Proxies;
use crate::feishu::secret::Secret;
use crate::ids::RequestId;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

fn sealer() -> Sealer {
    Sealer::new(&Secret::new("s"), SealPurpose::Call)
}

fn forwarder(peers: &[CallbackUrl]) -> Forwarder {
    // A proxy that would be used for anything else; nobody is there.
    let proxies = Proxies {
        all: Some("http://127.0.0.1:1".to_owned()),
        ..Proxies::default()
    };
    let outbound = Outbound::new(&proxies, None).expect("a way out");
    Forwarder::new(&outbound, peers, &[], Some(sealer())).expect("a client")
}

fn call() -> PeerCall {
    PeerCall {
        to: None,
        action: "allow".to_owned(),
        request: RequestId::parse("r").expect("an id"),
        project_dir: "/p".to_owned(),
        click: None,
        push: None,
    }
}

/// Takes connections, counts them, and answers each with what `say` makes of
/// the request's body; nothing is a closed connection.
async fn peer(
    say: impl Fn(&[u8], usize) -> Option<String> + Send + Sync + 'static,
) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let n = counted.fetch_add(1, Ordering::SeqCst);
            let mut bytes = Vec::new();
            let mut chunk = [0; 4096];
            let body = loop {
                let read = stream.read(&mut chunk).await.unwrap_or(0);
                bytes.extend_from_slice(&chunk[..read]);
                let head = bytes.windows(4).position(|four| four == b"\r\n\r\n");
                let whole = bytes.ends_with(b"}") || read == 0;
                if let (Some(head), true) = (head, whole) {
                    break bytes[head + 4..].to_vec();
                }
                if read == 0 {
                    break Vec::new();
                }
            };
            if let Some(answer) = say(&body, n) {
                // The other side may have given up.
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        }
    });
    (address, count)
}

fn http(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

async fn post(forwarder: &Forwarder, to: &str, sealed: bool) -> Posted {
    let to = CallbackUrl::parse(to).expect("an address");
    let call = call();
    if sealed {
        return forwarder.post(&to, &call, || 5, ANSWER_WITHIN).await;
    }
    forwarder.post_plain(&to, &call, || 5, ANSWER_WITHIN).await
}

const BROKEN: Posted = Posted::Unknown(PeerSilence::Broken);

fn sealed_answer(body: &[u8]) -> String {
    let sent: serde_json::Value = serde_json::from_slice(body).expect("a call");
    let stamp = Stamp {
        sent_at: 5,
        nonce: sent["nod"]["nonce"].as_str().expect("a nonce").to_owned(),
    };
    let answer = CallAnswer::of(&decided(allowed(Reach::Once), Delivery::Confirmed), None)
        .to_json(Some((&sealer(), &stamp)));
    http("200 OK", "", &answer.to_string())
}

#[tokio::test]
async fn an_answer_under_seal_is_believed() {
    let (address, _) = peer(|body, _| Some(sealed_answer(body))).await;
    let outcome = post(&forwarder(&[]), &format!("http://{address}"), true).await;
    let Posted::Answered(answer) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(answer.upshot, Upshot::Allowed);
}

#[tokio::test]
async fn a_service_that_knows_only_the_reference_protocol_gets_and_gives_only_those() {
    let (address, _) = peer(|body, _| {
        assert_eq!(
            body,
            br#"{"action":"allow","request_id":"r","project_dir":"/p"}"#
        );
        let said = r#"{"success":true,"decision":"allow","message":"ok"}"#;
        Some(http("200 OK", "", said))
    })
    .await;
    let outcome = post(&forwarder(&[]), &format!("http://{address}"), false).await;
    assert!(matches!(outcome, Posted::Answered(_)), "{outcome:?}");
}

#[tokio::test]
async fn what_may_have_been_done_is_never_called_failed() {
    let unsealed = r#"{"success":false,"decision":null,"message":"no"}"#;
    for (answer, expected) in [
        (None, BROKEN),
        (Some(http("200 OK", "", "<html>")), BROKEN),
        (Some(http("200 OK", "", unsealed)), BROKEN),
        (
            Some(http("500 Oops", "", "")),
            Posted::Unknown(PeerSilence::Status(500)),
        ),
        (Some(http("200 OK", "", &"x".repeat(MAX_BODY + 1))), BROKEN),
        (
            Some(http("401 No", "", r#"{"message":"unauthorized"}"#)),
            Posted::Refused(NotTaken::Secret),
        ),
        (
            Some(http(
                "401 No",
                "",
                &call::refusal(NotTaken::Clock).to_string(),
            )),
            Posted::Refused(NotTaken::Clock),
        ),
        (Some(http("404 No", "", "")), Posted::Status(404)),
    ] {
        let told = answer.clone();
        let (address, _) = peer(move |_, _| told.clone()).await;
        let outcome = post(&forwarder(&[]), &format!("http://{address}"), true).await;
        assert_eq!(outcome, expected, "{answer:?}");
    }
    let closed = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = closed.local_addr().expect("an address");
    drop(closed);
    let outcome = post(&forwarder(&[]), &format!("http://{address}"), true).await;
    assert_eq!(outcome, Posted::Unreachable);
}

#[tokio::test]
async fn a_busy_machine_is_asked_again_because_it_did_nothing() {
    let (address, count) = peer(|body, n| {
        Some(if n < 3 {
            http("429 Slow", "", "{}")
        } else {
            sealed_answer(body)
        })
    })
    .await;
    let outcome = post(&forwarder(&[]), &format!("http://{address}"), true).await;
    assert!(matches!(outcome, Posted::Answered(_)), "{outcome:?}");
    assert_eq!(count.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn a_silent_machine_costs_two_seconds_and_is_unknown() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let began = Instant::now();
    let outcome = post(&forwarder(&[]), &format!("http://{address}"), true).await;
    assert_eq!(outcome, Posted::Unknown(PeerSilence::Slow));
    assert!(began.elapsed() < ANSWER_WITHIN + Duration::from_millis(500));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (trap, touched) = peer(|_, _| None).await;
    let to = format!("location: http://{trap}/callback/decision\r\n");
    for code in ["301 Moved", "302 Found", "307 Again", "308 Always"] {
        let answer = http(code, &to, "");
        let (address, _) = peer(move |_, _| Some(answer.clone())).await;
        let outcome = post(&forwarder(&[]), &format!("http://{address}"), true).await;
        let status = code[..3].parse().expect("a status");
        assert_eq!(outcome, Posted::Status(status), "{code}");
    }
    assert_eq!(touched.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_name_that_leads_to_this_machine_is_dialled_only_when_listed() {
    let (trap, touched) = peer(|body, _| Some(sealed_answer(body))).await;
    // `localhost` stands for any name whose answer changed to a forbidden one:
    // what was looked up is judged, whatever the name was when it was listed.
    let to = format!("http://localhost:{}", trap.port());
    let outcome = post(&forwarder(&[]), &to, true).await;
    assert_eq!(outcome, Posted::Unreachable);
    assert_eq!(touched.load(Ordering::SeqCst), 0);
    let listed = CallbackUrl::parse(&to).expect("an address");
    let outcome = post(&forwarder(&[listed]), &to, true).await;
    assert!(matches!(outcome, Posted::Answered(_)), "{outcome:?}");
}

#[tokio::test]
async fn what_a_foreign_service_answers_is_told_apart() {
    let said = r#"{"success":false,"decision":null,"message":"请求不存在或已过期"}"#;
    let lies = r#"{"success":true,"decision":"allow","message":"ok"}"#;
    for (answer, expected) in [
        (
            http("502 Oops", "", ""),
            Posted::Unknown(PeerSilence::Status(502)),
        ),
        (http("200 OK", "", "<html>"), BROKEN),
        (http("404 No", "", "<html>"), Posted::Status(404)),
        (http("400 No", "", lies), Posted::Status(400)),
        (http("302 Found", "", ""), Posted::Status(302)),
        (http("401 No", "", "{}"), Posted::Refused(NotTaken::Token)),
        (http("403 No", "", "{}"), Posted::Refused(NotTaken::Token)),
        (
            http("400 No", "", said),
            Posted::Answered(CallAnswer::bare(false, "请求不存在或已过期")),
        ),
    ] {
        let told = answer.clone();
        let (address, _) = peer(move |_, _| Some(told.clone())).await;
        let outcome = post(&forwarder(&[]), &format!("http://{address}"), false).await;
        assert_eq!(outcome, expected, "{answer:?}");
    }
}

#[tokio::test]
async fn a_token_goes_to_its_own_service_and_never_with_a_seal() {
    let heard: Arc<std::sync::Mutex<Vec<String>>> = Arc::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let kept = Arc::clone(&heard);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = vec![0; 8192];
            let read = stream.read(&mut bytes).await.unwrap_or(0);
            let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
            kept.lock().expect("no panic").push(text);
            let answer = http("200 OK", "", r#"{"success":true}"#);
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    let with_token = |peer: &str| {
        let outbound = Outbound::new(&Proxies::default(), None).expect("a way out");
        let tokens = [PeerToken {
            peer: CallbackUrl::parse(peer).expect("an address"),
            token: Secret::new("canary-token"),
        }];
        Forwarder::new(&outbound, &[], &tokens, Some(sealer())).expect("a client")
    };
    post(&with_token(&address), &address, false).await;
    post(&with_token(&address), &address, true).await;
    post(&with_token("http://127.0.0.1:1"), &address, false).await;
    let heard = heard.lock().expect("no panic").clone();
    let carried: Vec<bool> = heard
        .iter()
        .map(|text| text.contains("x-auth-token: canary-token\r\n"))
        .collect();
    assert_eq!(carried, [true, false, false], "{heard:?}");
}
