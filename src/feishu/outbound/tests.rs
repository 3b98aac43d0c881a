//! Certificates, proxies and refusals, each tried on both ways out: the opened
//! stream and the HTTP client. Nothing leaves loopback.

mod proxies;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::*;
use crate::feishu::api::Api;
use crate::feishu::error::ApiError;
use crate::feishu::fake::{Authority, Fake, Listener, Reply, direct};
use crate::feishu::secret::Secret;

const CANARY: &str = "canary-app-secret-31415";
const HOST: &str = "open.feishu.test";

fn url(text: &str) -> Url {
    Url::parse(text).expect("a URL")
}

fn proxied(proxy: &str, no_proxy: Option<&str>) -> Proxies {
    Proxies {
        all: Some(proxy.to_owned()),
        no_proxy: no_proxy.map(str::to_owned),
        ..Proxies::default()
    }
}

/// Sends one HTTP request over an opened stream and gives the status line.
async fn ask(mut stream: Stream) -> String {
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        .await
        .expect("a request");
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.expect("an answer");
    String::from_utf8_lossy(&answer).into_owned()
}

async fn opened(outbound: &Outbound, address: &Url) -> Result<String, OutboundError> {
    match outbound.open(address, OPEN_WITHIN).await {
        Ok(stream) => Ok(ask(stream).await),
        Err(error) => Err(error),
    }
}

/// Logs in at `base` and gives the network failure.
async fn login_failure(outbound: &Outbound, base: Url) -> OutboundError {
    let api = Api::new(outbound, base, "cli_1", Secret::new(CANARY)).expect("an API");
    match api.within(Duration::from_secs(5)).login().await {
        Err(ApiError::Network(error)) => error,
        other => panic!("the network should fail, got {other:?}"),
    }
}

#[test]
fn proxies_serve_every_address_but_loopback_and_the_exempt() {
    let proxies = Proxies {
        https: Some("http://user:hunter2@10.0.0.1:3128".into()),
        http: Some("10.0.0.2:8080".into()),
        all: None,
        no_proxy: Some("intra.test, 192.168.0.0/16".into()),
    };
    let outbound = Outbound::new(&proxies, None).expect("a way out");
    let cases = [
        ("https://open.feishu.cn/x?y", Some("http://10.0.0.1:3128")),
        ("wss://msg.feishu.cn/ws", Some("http://10.0.0.1:3128")),
        ("http://open.feishu.cn/", Some("http://10.0.0.2:8080")),
        ("ws://open.feishu.cn/", Some("http://10.0.0.2:8080")),
        ("https://intra.test/", None),
        ("wss://a.intra.test/", None),
        ("https://192.168.7.7/", None),
        ("http://127.0.0.1:9/", None),
        ("wss://127.8.8.8/", None),
        ("https://localhost/", None),
        ("ws://[::1]:9/", None),
    ];
    for (address, expected) in cases {
        let proxy = outbound.proxy_for(&url(address));
        assert_eq!(proxy.as_deref(), expected, "{address}");
    }
    assert!(!format!("{proxies:?} {outbound:?}").contains("hunter2"));
}

#[test]
fn an_unusable_proxy_is_an_error_and_not_a_direct_connection() {
    for bad in ["ftp://10.0.0.1", "socks4://10.0.0.1", "http://", "ht tp"] {
        let error = Outbound::new(&proxied(bad, None), None).expect_err(bad);
        assert_eq!(
            error,
            OutboundError::BadProxy { name: "ALL_PROXY" },
            "{bad}"
        );
    }
    for empty in ["", "  "] {
        let outbound = Outbound::new(&proxied(empty, None), None).expect("a way out");
        assert_eq!(outbound.proxy_for(&url("https://a.test/")), None);
    }
}

#[tokio::test]
async fn plain_text_stays_on_this_machine() {
    let outbound = direct();
    for address in [
        "http://10.1.2.3/a?secret",
        "ws://open.feishu.cn/ws?ticket=1",
    ] {
        let error = outbound.open(&url(address), OPEN_WITHIN).await.err();
        assert!(
            matches!(error, Some(OutboundError::PlainText { .. })),
            "{address}: {error:?}"
        );
        let api = Api::new(&outbound, url(address), "cli_1", Secret::new(CANARY));
        assert!(api.is_err(), "{address}");
    }
    let error = outbound.open(&url("ftp://a.test"), OPEN_WITHIN).await.err();
    assert!(matches!(error, Some(OutboundError::BadAddress { .. })));
}

#[tokio::test]
async fn loopback_is_reached_directly_whatever_the_proxy() {
    let fake = Fake::start(|_, _| Reply::token("t-1")).await;
    let outbound = Outbound::new(&proxied("http://127.0.0.1:1", None), None).expect("a way out");
    let base = fake.base("localhost");
    assert_eq!(
        opened(&outbound, &base).await.as_deref(),
        Ok("HTTP/1.1 200")
    );
    let api = Api::new(&outbound, base, "cli_1", Secret::new(CANARY)).expect("an API");
    assert_eq!(api.login().await, Ok(()));
}

#[tokio::test]
async fn the_private_ca_is_trusted_when_named() {
    let ca = Authority::new();
    let fake =
        Fake::start_encrypted(ca.server("localhost", |_| {}), |_, _| Reply::token("t-1")).await;
    let outbound = Outbound::new(&Proxies::default(), Some(ca.file())).expect("a way out");
    let mut base = fake.base("localhost");
    let api = Api::new(&outbound, base.clone(), "cli_1", Secret::new(CANARY)).expect("an API");
    assert_eq!(api.login().await, Ok(()));
    assert!(base.set_scheme("wss").is_ok());
    assert_eq!(
        opened(&outbound, &base).await.as_deref(),
        Ok("HTTP/1.1 200")
    );
}

#[tokio::test]
async fn each_bad_certificate_has_its_sentence_and_no_secret_is_sent() {
    let ca = Authority::new();
    let trusting = Outbound::new(&Proxies::default(), Some(ca.file())).expect("a way out");
    let expired = |params: &mut rcgen::CertificateParams| {
        params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    };
    let early = |params: &mut rcgen::CertificateParams| {
        params.not_before = rcgen::date_time_ymd(3020, 1, 1);
        params.not_after = rcgen::date_time_ymd(3021, 1, 1);
    };
    let cases = [
        (
            ca.server("other.test", |_| {}),
            &trusting,
            "for another host",
        ),
        (ca.server("localhost", expired), &trusting, "has expired"),
        (ca.server("localhost", early), &trusting, "not valid yet"),
        (
            ca.server("localhost", |_| {}),
            &direct(),
            "not signed by a CA",
        ),
    ];
    for (server, outbound, words) in cases {
        let fake = Fake::start_encrypted(server, |_, _| Reply::token("t-1")).await;
        let base = fake.base("localhost");
        let by_stream = opened(outbound, &base).await.expect_err(words);
        let by_http = login_failure(outbound, base).await;
        for error in [by_stream, by_http] {
            let text = error.to_string();
            assert!(matches!(error, OutboundError::Tls { .. }), "{error:?}");
            assert!(text.contains(words), "{text}");
            assert!(text.contains("`localhost`"), "{text}");
        }
        assert_eq!(fake.seen().len(), 0, "{words}");
    }
}

#[tokio::test]
async fn a_server_without_tls_is_named_as_such() {
    let portal = Listener::start(|mut stream: TcpStream| async move {
        let _ = stream.write_all(b"HTTP/1.1 302 Found\r\n\r\n").await;
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    })
    .await;
    let address = url(&format!("wss://localhost:{}/", portal.address.port()));
    let error = opened(&direct(), &address).await.expect_err("no TLS");
    assert!(error.to_string().contains("does not speak TLS"), "{error}");
}

#[tokio::test]
async fn refused_and_unknown_hosts_are_told_apart() {
    let outbound = direct();
    let free = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        listener.local_addr().expect("an address").port()
    };
    let closed = url(&format!("http://127.0.0.1:{free}/"));
    for error in [
        opened(&outbound, &closed)
            .await
            .expect_err("nobody listens"),
        login_failure(&outbound, closed).await,
    ] {
        assert!(matches!(error, OutboundError::Refused { .. }), "{error:?}");
    }
    // A label over 63 bytes never reaches a resolver's network, and only as a
    // proxy's name gets past the checks of a certificate's.
    let nowhere = format!("http://{}.invalid:3128", "a".repeat(64));
    let lost = Outbound::new(&proxied(&nowhere, None), None).expect("a way out");
    let base = url(&format!("https://{HOST}/"));
    for error in [
        opened(&lost, &base).await.expect_err("no such name"),
        login_failure(&lost, base).await,
    ] {
        assert!(matches!(error, OutboundError::Unknown { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn opening_ends_at_the_limit() {
    let silent = Listener::start(|mut stream: TcpStream| async move {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    })
    .await;
    let address = url(&format!("wss://127.0.0.1:{}/", silent.address.port()));
    let error = direct()
        .open(&address, Duration::from_millis(50))
        .await
        .err();
    assert!(
        matches!(error, Some(OutboundError::TimedOut { .. })),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_bad_ca_file_is_refused_by_name_with_its_reason() {
    let empty = tempfile::NamedTempFile::new().expect("a file");
    for path in [empty.path(), Path::new("no-such-file.pem")] {
        let error = Outbound::new(&Proxies::default(), Some(path)).expect_err("no CA");
        assert!(
            matches!(error, OutboundError::BadCaFile { .. }),
            "{error:?}"
        );
        let (text, named) = (error.text(), format!("`{}`", path.display()));
        assert!(text.zh.contains(&named), "{}", text.zh);
        assert!(text.en.contains(&named), "{}", text.en);
    }
}
