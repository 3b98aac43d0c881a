//! Proxies of every kind that is supported, written out here so that they can
//! disagree with ours.

use std::net::SocketAddr;
use std::sync::Mutex;

use super::*;

type Heard = Arc<Mutex<Vec<String>>>;

/// An HTTP proxy that leads every tunnel to `server`, or answers `refusal`.
async fn http_proxy(server: SocketAddr, refusal: Option<&'static str>) -> (Listener, Heard) {
    let heard = Heard::default();
    let log = Arc::clone(&heard);
    let listener = Listener::start(move |stream| {
        let log = Arc::clone(&log);
        async move { tunnel(stream, server, refusal, &log).await }
    })
    .await;
    (listener, heard)
}

async fn tunnel(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    server: SocketAddr,
    refusal: Option<&str>,
    log: &Heard,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    log.lock().expect("no test panicked").push(text);
    let answer = refusal.unwrap_or("HTTP/1.1 200 Established\r\n\r\n");
    if stream.write_all(answer.as_bytes()).await.is_ok() && refusal.is_none() {
        lead(stream, server).await;
    }
}

async fn lead(mut stream: impl AsyncRead + AsyncWrite + Unpin, server: SocketAddr) {
    if let Ok(mut far) = TcpStream::connect(server).await {
        let _ = tokio::io::copy_bidirectional(&mut stream, &mut far).await;
    }
}

#[tokio::test]
async fn both_ways_out_go_through_a_proxy_with_a_password() {
    let ca = Authority::new();
    let fake = Fake::start_encrypted(ca.server(HOST, |_| {}), |_, _| Reply::token("t-1")).await;
    let (proxy, heard) = http_proxy(fake.listener.address, None).await;
    let proxies = proxied(&format!("http://jo:p%40ss@{}", proxy.address), None);
    let outbound = Outbound::new(&proxies, Some(ca.file())).expect("a way out");

    let stream = opened(&outbound, &url(&format!("wss://{HOST}/ws?ticket=1"))).await;
    assert_eq!(stream.as_deref(), Ok("HTTP/1.1 200"));
    let base = url(&format!("https://{HOST}"));
    let api = Api::new(&outbound, base, "cli_1", Secret::new(CANARY)).expect("an API");
    assert_eq!(api.login().await, Ok(()));

    let heard = heard.lock().expect("no test panicked");
    assert_eq!(heard.len(), 2);
    for head in heard.iter() {
        assert!(
            head.starts_with(&format!("CONNECT {HOST}:443 HTTP/1.1\r\n")),
            "{head}"
        );
        let lower = head.to_ascii_lowercase();
        assert!(
            lower.contains("proxy-authorization: basic am86cebzcw=="),
            "{head}"
        );
        assert!(!head.contains("ticket") && !head.contains(CANARY));
    }
}

#[tokio::test]
async fn both_ways_out_go_through_an_encrypted_proxy() {
    let ca = Authority::new();
    let fake = Fake::start_encrypted(ca.server(HOST, |_| {}), |_, _| Reply::token("t-1")).await;
    let server = fake.listener.address;
    let heard = Heard::default();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(ca.server("localhost", |_| {})));
    let log = Arc::clone(&heard);
    let proxy = Listener::start(move |stream| {
        let (acceptor, log) = (acceptor.clone(), Arc::clone(&log));
        async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                tunnel(stream, server, None, &log).await;
            }
        }
    })
    .await;
    let proxies = proxied(&format!("https://localhost:{}", proxy.address.port()), None);
    let outbound = Outbound::new(&proxies, Some(ca.file())).expect("a way out");
    let stream = opened(&outbound, &url(&format!("wss://{HOST}"))).await;
    assert_eq!(stream.as_deref(), Ok("HTTP/1.1 200"));
    let base = url(&format!("https://{HOST}"));
    let api = Api::new(&outbound, base, "cli_1", Secret::new(CANARY)).expect("an API");
    assert_eq!(api.login().await, Ok(()));
    assert_eq!(heard.lock().expect("no test panicked").len(), 2);
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named_without_its_password() {
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 9));
    let cases = [
        (
            "HTTP/1.1 407 Auth\r\n\r\n",
            "wants a user name and password",
        ),
        ("HTTP/1.1 403 No\r\n\r\n", "did not connect to"),
    ];
    for (refusal, words) in cases {
        let (proxy, _) = http_proxy(nowhere, Some(refusal)).await;
        let proxies = proxied(&format!("http://jo:hunter2@{}", proxy.address), None);
        let outbound = Outbound::new(&proxies, None).expect("a way out");
        let base = url(&format!("https://{HOST}/"));
        for error in [
            opened(&outbound, &base).await.expect_err("refused"),
            login_failure(&outbound, base).await,
        ] {
            let shown = format!("{error} {error:?}");
            assert!(shown.contains(words), "{shown}");
            assert!(shown.contains(&proxy.address.to_string()), "{shown}");
            assert!(!shown.contains("hunter2"), "{shown}");
        }
    }
}

#[tokio::test]
async fn the_status_of_a_refusing_proxy_is_told() {
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 9));
    let (proxy, _) = http_proxy(nowhere, Some("HTTP/1.0 502 Bad\r\n\r\n")).await;
    let outbound =
        Outbound::new(&proxied(&proxy.address.to_string(), None), None).expect("a way out");
    let error = opened(&outbound, &url(&format!("wss://{HOST}")))
        .await
        .expect_err("refused");
    assert!(error.to_string().contains("it answered 502"), "{error}");
}

#[tokio::test]
async fn an_absent_proxy_is_blamed_and_not_the_target() {
    let free = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        listener.local_addr().expect("an address")
    };
    let outbound =
        Outbound::new(&proxied(&format!("http://{free}"), None), None).expect("a way out");
    let base = url(&format!("https://{HOST}/"));
    for error in [
        opened(&outbound, &base).await.expect_err("no proxy"),
        login_failure(&outbound, base).await,
    ] {
        let text = error.to_string();
        assert!(text.starts_with("the proxy `http://127.0.0.1:"), "{text}");
    }
}

/// A SOCKS5 proxy that wants `jo` and `pass` and leads to `server`, or says
/// `verdict` to the request.
async fn socks_proxy(server: SocketAddr, verdict: u8) -> (Listener, Heard) {
    let heard = Heard::default();
    let log = Arc::clone(&heard);
    let listener = Listener::start(move |mut stream| {
        let log = Arc::clone(&log);
        async move {
            let _ = socks_session(&mut stream, &log, verdict).await;
            if verdict == 0 {
                lead(stream, server).await;
            }
        }
    })
    .await;
    (listener, heard)
}

async fn socks_session(stream: &mut TcpStream, log: &Heard, verdict: u8) -> std::io::Result<()> {
    let _version = stream.read_u8().await?;
    let mut methods = vec![0; usize::from(stream.read_u8().await?)];
    stream.read_exact(&mut methods).await?;
    if !methods.contains(&2) {
        return stream.write_all(&[5, 255]).await;
    }
    stream.write_all(&[5, 2]).await?;
    let _version = stream.read_u8().await?;
    let user = read_text(stream).await?;
    let password = read_text(stream).await?;
    let accepted = (user.as_str(), password.as_str()) == ("jo", "pass");
    stream.write_all(&[1, u8::from(!accepted)]).await?;
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    let host = match head[3] {
        3 => read_text(stream).await?,
        _ => stream
            .read_u32()
            .await
            .map(std::net::Ipv4Addr::from)?
            .to_string(),
    };
    let port = stream.read_u16().await?;
    let asked = format!("{host}:{port}");
    log.lock().expect("no test panicked").push(asked);
    stream
        .write_all(&[5, verdict, 0, 1, 0, 0, 0, 0, 0, 0])
        .await
}

async fn read_text(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut text = vec![0; usize::from(stream.read_u8().await?)];
    stream.read_exact(&mut text).await?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

#[tokio::test]
async fn both_ways_out_go_through_socks_with_a_password() {
    let ca = Authority::new();
    let fake = Fake::start_encrypted(ca.server(HOST, |_| {}), |_, _| Reply::token("t-1")).await;
    let (proxy, heard) = socks_proxy(fake.listener.address, 0).await;
    let proxies = proxied(&format!("socks5h://jo:pass@{}", proxy.address), None);
    let outbound = Outbound::new(&proxies, Some(ca.file())).expect("a way out");
    let stream = opened(&outbound, &url(&format!("wss://{HOST}"))).await;
    assert_eq!(stream.as_deref(), Ok("HTTP/1.1 200"));
    let base = url(&format!("https://{HOST}"));
    let api = Api::new(&outbound, base, "cli_1", Secret::new(CANARY)).expect("an API");
    assert_eq!(api.login().await, Ok(()));
    let expected = format!("{HOST}:443");
    assert_eq!(
        *heard.lock().expect("no test panicked"),
        [expected.clone(), expected]
    );
}

#[tokio::test]
async fn local_lookup_sends_an_address_and_not_a_name() {
    let ca = Authority::new();
    let fake =
        Fake::start_encrypted(ca.server("192.0.2.7", |_| {}), |_, _| Reply::token("t-1")).await;
    let (proxy, heard) = socks_proxy(fake.listener.address, 0).await;
    let proxies = proxied(&format!("socks5://jo:pass@{}", proxy.address), None);
    let outbound = Outbound::new(&proxies, Some(ca.file())).expect("a way out");
    let stream = opened(&outbound, &url("wss://192.0.2.7:8443")).await;
    assert_eq!(stream.as_deref(), Ok("HTTP/1.1 200"));
    assert_eq!(*heard.lock().expect("no test panicked"), ["192.0.2.7:8443"]);
}

#[tokio::test]
async fn a_socks_proxy_that_refuses_says_why() {
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 9));
    let cases = [
        ("jo:pass", 2, "its rules forbid it"),
        ("jo:wrong", 0, "refused the user name or password"),
        ("", 0, "wants a user name and password"),
    ];
    for (login, verdict, words) in cases {
        let (proxy, _) = socks_proxy(nowhere, verdict).await;
        let at = if login.is_empty() { "" } else { "@" };
        let proxies = proxied(&format!("socks5h://{login}{at}{}", proxy.address), None);
        let outbound = Outbound::new(&proxies, None).expect("a way out");
        let base = url(&format!("https://{HOST}"));
        let error = opened(&outbound, &base).await.expect_err("refused");
        assert!(error.to_string().contains(words), "{error}");
        let error = login_failure(&outbound, base).await;
        assert!(
            matches!(
                error,
                OutboundError::ProxyRefused { .. } | OutboundError::ProxyWantsLogin { .. }
            ),
            "{error:?}"
        );
    }
}
