use super::super::seal::SealPurpose;
use super::*;
use crate::approvals::desk::Delivery;
use crate::approvals::outcome::sample::{decided, denied};
use crate::cards::linked::LINKED;
use crate::feishu::event::Click;
use crate::feishu::secret::Secret;
use crate::gateway::guests::MAX_GUESTS;
use crate::ids::RequestId;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

const NOW: Millis = 1_000_000;

/// This machine.
const HERE: &str = "m1";

fn machine(id: &str) -> MachineId {
    MachineId::parse(id).expect("an id")
}

fn sealer(secret: &str) -> Sealer {
    Sealer::new(&Secret::new(secret), SealPurpose::Call)
}

struct Running {
    address: SocketAddr,
    /// How often anything behind the door was asked.
    asked: Arc<AtomicUsize>,
    stop: CancellationToken,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Counts a call that came as it should, and says that it was denied.
fn taken(sealed: bool, count: impl Fn() -> usize + Send + Sync + 'static) -> Decide {
    Box::new(move |call| {
        count();
        assert_eq!(sealed, call.click.is_some());
        Box::pin(async { CallAnswer::of(&decided(denied(false), Delivery::Confirmed), None) })
    })
}

async fn open(allow_unsealed: bool, pages: bool) -> Running {
    open_as(Some("https://desk.example"), allow_unsealed, pages).await
}

async fn open_as(url: Option<&str>, allow_unsealed: bool, pages: bool) -> Running {
    let terms = DoorTerms {
        url: url.and_then(|url| CallbackUrl::parse(url).ok()),
        sealer: Some(sealer("s")),
        allow_unsealed,
    };
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = bind(address, &terms).await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let count = move || counted.fetch_add(1, Ordering::SeqCst);
    let shows = count.clone();
    let presses = count.clone();
    let page = |text: String| {
        Box::pin(async move {
            WebPage {
                status: 200,
                html: text,
            }
        })
    };
    let inside = Inside {
        machine: machine(HERE),
        decide: taken(true, count.clone()),
        decide_plain: taken(false, count),
        pages: pages.then(|| Pages {
            show: Box::new(move |visit| {
                shows();
                page(format!("{visit:?}"))
            }),
            press: Box::new(move |press| {
                presses();
                page(format!("{press:?}"))
            }),
        }),
        metrics: Box::new(|| "nod_info 1\n".to_owned()),
        now: Box::new(|| NOW),
    };
    let stop = CancellationToken::new();
    tokio::spawn(serve(listener, terms, inside, stop.clone()));
    Running {
        address,
        asked,
        stop,
    }
}

fn body(secret: &str, sent_at: Millis, nonce: &str) -> String {
    sealed(secret, sent_at, nonce, "deny", Some(HERE))
}

fn sealed(secret: &str, sent_at: Millis, nonce: &str, action: &str, to: Option<&str>) -> String {
    let call = PeerCall {
        to: to.map(machine),
        action: action.to_owned(),
        request: RequestId::parse("r").expect("an id"),
        project_dir: String::new(),
        click: Some(Click::default()),
        push: None,
    };
    let stamp = Stamp {
        sent_at,
        nonce: nonce.to_owned(),
    };
    call.to_json(Some((&sealer(secret), &stamp))).to_string()
}

const PLAIN: &str = r#"{"action":"deny","request_id":"r"}"#;

async fn request(at: SocketAddr, line: &str, body: &str) -> (u16, String) {
    let headers = format!("host: {at}\r\ncontent-type: application/json\r\n");
    request_with(at, line, &headers, body).await
}

async fn request_with(at: SocketAddr, line: &str, headers: &str, body: &str) -> (u16, String) {
    let text = format!(
        "{line} HTTP/1.1\r\n{headers}connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    exchange(at, &text).await
}

async fn exchange(at: SocketAddr, text: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(at).await.expect("the door is open");
    // The door may answer and close before it has read everything.
    let _ = stream.write_all(text.as_bytes()).await;
    let mut answer = Vec::new();
    let limit = Duration::from_secs(20);
    let read = tokio::time::timeout(limit, stream.read_to_end(&mut answer)).await;
    let _ = read.expect("the connection ends in time");
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.get(9..12).and_then(|code| code.parse().ok());
    (status.unwrap_or(0), answer)
}

fn content(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

#[tokio::test]
async fn without_proof_everything_is_refused_alike_and_nothing_is_looked_up() {
    let door = open(false, false).await;
    let good = body("s", NOW, "used-nonce");
    let (status, _) = request(door.address, "POST /callback/decision", &good).await;
    assert_eq!(status, 200);
    let mut answers = Vec::new();
    for bad in [
        PLAIN.to_owned(),
        "{".to_owned(),
        String::new(),
        body("t", NOW, "nonce-1234"),
        good.clone(),
        good.replace("deny", "allow"),
        r#"{"action":"deny","request_id":"r","nod":{}}"#.to_owned(),
    ] {
        for path in [call::PATH, call::SHORT_PATH] {
            answers.push(request(door.address, &format!("POST {path}"), &bad).await);
        }
    }
    for (status, answer) in &answers {
        assert_eq!(*status, 401, "{answer}");
        assert_eq!(
            content(answer),
            r#"{"success":false,"decision":null,"message":"unauthorized"}"#
        );
    }
    assert_eq!(door.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_sealed_call_is_answered_under_seal_and_a_late_one_is_told_of_the_clock() {
    let door = open(false, false).await;
    for (sent_at, status) in [
        (NOW - CLOCK_WINDOW, 200),
        (NOW + CLOCK_WINDOW, 200),
        (NOW - CLOCK_WINDOW - 1, 401),
        (NOW + CLOCK_WINDOW + 1, 401),
    ] {
        let nonce = format!("nonce-{sent_at}");
        let sealed = body("s", sent_at, &nonce);
        let (code, answer) = request(door.address, "POST /cb/decision", &sealed).await;
        assert_eq!(code, status, "{answer}");
        let stamp = Stamp { sent_at, nonce };
        let read = CallAnswer::read_sealed(content(&answer).as_bytes(), &sealer("s"), &stamp);
        assert_eq!(read.is_some(), status == 200);
        assert_eq!(answer.contains(r#"{"refused":"clock"}"#), status == 401);
    }
}

#[tokio::test]
async fn the_reference_calls_are_for_loopback_and_who_opted_in() {
    let door = open(true, false).await;
    let (status, answer) = request(door.address, "POST /callback/decision", PLAIN).await;
    assert_eq!(status, 200);
    assert_eq!(
        content(&answer),
        r#"{"success":true,"decision":"deny","message":"已拒绝运行"}"#
    );
    let nothing = r#"{"action":"deny"}"#;
    let (status, answer) = request(door.address, "POST /callback/decision", nothing).await;
    assert_eq!(status, 400);
    assert_eq!(
        content(&answer),
        r#"{"success":false,"decision":null,"message":"无效的回调请求"}"#
    );
}

#[tokio::test]
async fn figures_are_for_a_scraper_on_this_machine() {
    let door = open_as(None, false, false).await;
    let (status, answer) = request(door.address, "GET /metrics", "").await;
    assert_eq!(status, 200);
    assert!(answer.contains("nod_info 1"), "{answer}");
    assert!(answer.contains("version=0.0.4"), "{answer}");
    let own = format!("host: {}\r\n", door.address);
    for passed_on in [
        "x-forwarded-for: 203.0.113.9",
        "via: 1.1 x",
        "forwarded: for=x",
    ] {
        let headers = format!("{own}{passed_on}\r\n");
        let (status, answer) = request_with(door.address, "GET /metrics", &headers, "").await;
        assert_eq!(status, 404, "{passed_on}: {answer}");
    }
    // A proxy that adds nothing looks like a scraper.
    let behind = open(false, false).await;
    let (status, answer) = request(behind.address, "GET /metrics", "").await;
    assert_eq!(status, 404, "{answer}");
}

#[tokio::test]
async fn callers_behind_a_proxy_on_this_machine_have_each_their_own_second() {
    let door = open(false, false).await;
    let call = async |client: &str| {
        let headers = format!("host: desk.example\r\nx-forwarded-for: 1.2.3.4, {client}\r\n");
        request_with(door.address, "GET /status", &headers, "")
            .await
            .0
    };
    // The clock stands still, so all of these are within one second.
    let mut codes = Vec::new();
    for _ in 0..30 {
        codes.push(call("203.0.113.9").await);
    }
    assert_eq!(codes.iter().filter(|code| **code == 200).count(), 20);
    assert_eq!(call("203.0.113.10").await, 200, "another caller");
}

#[tokio::test]
async fn who_is_passed_on_by_a_proxy_gets_nothing_decided_without_a_seal() {
    let door = open(true, false).await;
    let json = "content-type: application/json\r\n";
    let headers = format!("host: desk.example\r\nx-forwarded-for: 203.0.113.9\r\n{json}");
    let line = "POST /callback/decision";
    let (status, answer) = request_with(door.address, line, &headers, PLAIN).await;
    assert_eq!(status, 401, "{answer}");
    assert_eq!(door.asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn sizes_rates_and_slow_heads_are_bounded() {
    let door = open(false, false).await;
    let large = "x".repeat(MAX_BODY + 1);
    let (status, _) = request(door.address, "POST /callback/decision", &large).await;
    assert!(matches!(status, 413 | 0), "{status}");
    // The clock stands still, so all of these are within one second.
    let mut codes = Vec::new();
    for _ in 0..30 {
        codes.push(request(door.address, "GET /status", "").await.0);
    }
    assert_eq!(codes.iter().filter(|code| **code == 200).count(), 19);
    assert_eq!(codes.iter().filter(|code| **code == 429).count(), 11);
    let slow = "POST /callback/decision HTTP/1.1\r\nhost: 127.0.0.1";
    let (status, _) = exchange(door.address, slow).await;
    assert!(matches!(status, 0 | 408), "{status}");
}

#[tokio::test]
async fn pages_are_there_in_webhook_mode_only_and_leak_nothing() {
    let door = open(false, true).await;
    let (status, answer) = request(door.address, "GET /allow?id=r%201&t=tok", "").await;
    assert_eq!(status, 200);
    assert!(answer.contains(r#"id: "r 1", token: "tok""#), "{answer}");
    for header in [
        "cache-control: no-store",
        "referrer-policy: no-referrer",
        "content-security-policy: default-src 'none'",
        "x-frame-options: DENY",
    ] {
        assert!(answer.contains(header), "{header}: {answer}");
    }
    let form = "id=r&t=tok&ticket=tick&reason=+no+";
    let (_, answer) = request(door.address, "POST /deny", form).await;
    assert!(
        answer.contains(r#"ticket: "tick", reason: Some("no")"#),
        "{answer}"
    );
    let (status, _) = request(door.address, "DELETE /deny", "").await;
    assert_eq!(status, 404);
    for action in LINKED.map(Action::as_str) {
        let (status, _) = request(door.address, &format!("GET /{action}?id=r"), "").await;
        assert_eq!(status, 200, "a card's button opens /{action}");
    }
    for action in ["session", "deny_with", "undo"] {
        let (status, _) = request(door.address, &format!("GET /{action}?id=r"), "").await;
        assert_eq!(status, 404, "no card links to /{action}");
    }
    let plain = open(false, false).await;
    let (status, _) = request(plain.address, "GET /allow?id=r&t=tok", "").await;
    assert_eq!(status, 404);
    assert_eq!(plain.asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_door_others_can_reach_needs_a_secret() {
    let everyone = SocketAddr::from(([0, 0, 0, 0], 0));
    let mut terms = DoorTerms {
        url: None,
        sealer: None,
        allow_unsealed: true,
    };
    let refused = bind(everyone, &terms).await.expect_err("no secret");
    assert!(
        refused.to_string().contains("`CALLBACK_SECRET`"),
        "{refused}"
    );
    let here = SocketAddr::from(([127, 0, 0, 1], 0));
    assert!(bind(here, &terms).await.is_ok());
    terms.sealer = Some(sealer("s"));
    assert!(bind(everyone, &terms).await.is_ok());
}

/// A connection from another address of this machine.
async fn caller_from(last: u8, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket
        .bind(SocketAddr::from(([127, 0, 0, last], 0)))
        .expect("a loopback address");
    socket.connect(to).await.expect("the door is open")
}

async fn ends(mut stream: TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    let _ = tokio::time::timeout(Duration::from_secs(20), read)
        .await
        .expect("the connection ends in time");
    answer
}

#[tokio::test]
async fn silent_connections_shut_the_door_for_nobody_else() {
    let door = open(false, false).await;
    let mut silent = Vec::new();
    for n in 0..MAX_GUESTS + 50 {
        let last = if n % 2 == 0 { 1 } else { 3 };
        silent.push(caller_from(last, door.address).await);
    }
    for last in [2, 1] {
        let mut honest = caller_from(last, door.address).await;
        let text = "GET /status HTTP/1.1\r\nconnection: close\r\n\r\n";
        honest.write_all(text.as_bytes()).await.expect("a caller");
        let since = std::time::Instant::now();
        let answer = String::from_utf8(ends(honest).await).expect("text");
        assert!(answer.starts_with("HTTP/1.1 200"), "{last}: {answer}");
        assert!(since.elapsed() < READ_WITHIN, "{:?}", since.elapsed());
    }
    for stream in silent {
        ends(stream).await;
    }
    let (status, _) = request(door.address, "GET /status", "").await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn a_head_that_comes_byte_by_byte_is_not_waited_for() {
    let door = open(false, false).await;
    let (mut read, mut write) = TcpStream::connect(door.address)
        .await
        .expect("open")
        .into_split();
    let drip = tokio::spawn(async move {
        let head = format!("GET /status HTTP/1.1\r\nx-slow: {}", "x".repeat(1_000));
        for byte in head.bytes() {
            if write.write_all(&[byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    let since = std::time::Instant::now();
    let mut answer = Vec::new();
    let _ = read.read_to_end(&mut answer).await;
    assert!(since.elapsed() < READ_WITHIN * 3, "{:?}", since.elapsed());
    drip.abort();
}

#[tokio::test]
async fn a_web_page_elsewhere_can_not_make_a_browser_decide() {
    let door = open(true, true).await;
    let (own, json) = (format!("host: {}\r\n", door.address), "application/json");
    let refused = [
        (own.clone(), "text/plain", 415),
        (own.clone(), "application/x-www-form-urlencoded", 415),
        ("host: evil.example\r\n".to_owned(), json, 403),
        (format!("{own}origin: https://evil.example\r\n"), json, 403),
        (format!("{own}origin: null\r\n"), json, 403),
    ];
    for (headers, kind, expected) in refused {
        let headers = format!("{headers}content-type: {kind}\r\n");
        let line = "POST /callback/decision";
        let (status, answer) = request_with(door.address, line, &headers, PLAIN).await;
        assert_eq!(status, expected, "{headers}: {answer}");
    }
    for path in ["/metrics", "/status", "/allow?id=r&t=tok"] {
        let (line, name) = (format!("GET {path}"), "host: evil.example\r\n");
        let (status, answer) = request_with(door.address, &line, name, "").await;
        assert_eq!(status, 403, "{path}: {answer}");
    }
    let far = format!("{own}origin: https://evil.example\r\n");
    let (status, _) = request_with(door.address, "POST /allow", &far, "id=r&t=t&ticket=x").await;
    assert_eq!(status, 403);
    assert_eq!(door.asked.load(Ordering::SeqCst), 0);
    let origin = format!("origin: http://{}\r\n", door.address);
    for more in [
        String::new(),
        origin,
        "origin: https://desk.example\r\n".to_owned(),
    ] {
        let headers = format!("{own}{more}content-type: {json}\r\n");
        let line = "POST /callback/decision";
        let (status, answer) = request_with(door.address, line, &headers, PLAIN).await;
        assert_eq!(status, 200, "{headers}: {answer}");
    }
    let form = format!("{own}origin: null\r\nsec-fetch-site: same-origin\r\n");
    let (status, _) = request_with(door.address, "POST /allow", &form, "id=r&t=t&ticket=x").await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn a_call_sealed_for_one_machine_counts_on_no_other() {
    let door = open(false, false).await;
    for (n, (action, to, expected)) in [
        (call::TAKE, Some(HERE), 200),
        (call::TAKE, Some("m2"), 401),
        ("allow", Some("m2"), 401),
        (call::QUERY, Some("m2"), 401),
        (call::WHOSE, Some("m2"), 401),
        (call::WHOSE, None, 200),
        (call::TAKE, None, 401),
        ("allow", None, 401),
    ]
    .into_iter()
    .enumerate()
    {
        let body = sealed("s", NOW, &format!("nonce-{n:04}"), action, to);
        let (status, answer) = request(door.address, "POST /cb/decision", &body).await;
        assert_eq!(status, expected, "{action} {to:?}: {answer}");
        let older = to.is_none() && expected == 401;
        assert_eq!(answer.contains(r#"{"refused":"older"}"#), older, "{answer}");
    }
    assert_eq!(door.asked.load(Ordering::SeqCst), 2);
}
