//! The real daemon behind a proxy: discovery, REST calls and the WebSocket all
//! take the same way out, and host names are left to the proxy.

use nod::for_tests::simulator::{APP_ID, APP_SECRET, Armed, Fault, Options, Press, Simulator};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::support::{Asker, Daemon, Door, LIMIT, no_violations, settings, within};
use super::tls::Authority;

const API: &str = "open.feishu.test";
const SOCKET: &str = "msg-frontier.feishu.test";

/// Where each name leads, known to the proxy alone.
pub(crate) type Names = Arc<HashMap<String, SocketAddr>>;
pub(crate) type Asked = Arc<Mutex<Vec<String>>>;

async fn lead(mut near: TcpStream, asked: String, names: &Names, log: &Asked) {
    let server = names[asked.as_str()];
    log.lock().unwrap().push(asked);
    if let Ok(mut far) = TcpStream::connect(server).await {
        let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
    }
}

pub(crate) async fn connect_proxy(mut near: TcpStream, names: Names, log: Asked) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match near.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8(head).unwrap();
    let target = head.strip_prefix("CONNECT ").unwrap();
    let target = target.split(' ').next().unwrap().to_owned();
    let established = b"HTTP/1.1 200 Connection established\r\n\r\n";
    near.write_all(established).await.unwrap();
    lead(near, target, &names, &log).await;
}

pub(crate) async fn socks_proxy(mut near: TcpStream, names: Names, log: Asked) {
    let mut hello = [0; 2];
    near.read_exact(&mut hello).await.unwrap();
    let mut methods = vec![0; usize::from(hello[1])];
    near.read_exact(&mut methods).await.unwrap();
    near.write_all(&[5, 0]).await.unwrap();
    let mut request = [0; 5];
    near.read_exact(&mut request).await.unwrap();
    assert_eq!(request[3], 3, "a name, not an address");
    let mut name = vec![0; usize::from(request[4])];
    near.read_exact(&mut name).await.unwrap();
    let port = near.read_u16().await.unwrap();
    let granted = [5, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    near.write_all(&granted).await.unwrap();
    let target = format!("{}:{port}", String::from_utf8(name).unwrap());
    lead(near, target, &names, &log).await;
}

/// A connection address as discovery gives it, under the made-up name.
async fn address(simulator: &Simulator) -> String {
    let feishu = simulator.addresses().feishu;
    let body = json!({"AppID": APP_ID, "AppSecret": APP_SECRET}).to_string();
    let request = format!(
        "POST /callback/ws/endpoint HTTP/1.1\r\nHost: {feishu}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(feishu).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer);
    within("discovery", read).await.unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    let url = body["data"]["URL"].as_str().unwrap();
    let local = format!("ws://{}", simulator.addresses().socket);
    assert!(url.starts_with(&local), "{url}");
    url.replace(&local, &format!("wss://{SOCKET}"))
}

async fn works_through(variable: &'static str, scheme: &str) {
    let simulator = Simulator::start(Options::default()).await.unwrap();
    let authority = Authority::new();
    let api = authority.front(API, simulator.addresses().feishu).await;
    let socket = authority.front(SOCKET, simulator.addresses().socket).await;
    let names = Names::new(HashMap::from([
        (format!("{API}:443"), api.address),
        (format!("{SOCKET}:443"), socket.address),
    ]));
    let targets = Asked::default();
    let log = Arc::clone(&targets);
    let is_socks = scheme.starts_with("socks");
    let proxy = Door::open(move |near| {
        let (names, log) = (Arc::clone(&names), Arc::clone(&log));
        async move {
            if is_socks {
                socks_proxy(near, names, log).await;
            } else {
                connect_proxy(near, names, log).await;
            }
        }
    })
    .await;
    let url = address(&simulator).await;
    let handed_out = Fault::DiscoveryBadUrl { url };
    simulator.set_fault(Armed::once(handed_out)).unwrap();
    let base = format!("https://{API}");
    let proxy = format!("{scheme}://{}", proxy.address);
    let mut settings = settings(&base);
    settings.push((variable, &proxy));
    settings.push(("NOD_CA_FILE", authority.file().to_str().unwrap()));
    let daemon = Daemon::start(&settings);
    daemon
        .status_where(scheme, super::support::is_connected)
        .await;
    let mut asker = Asker::ask(&daemon.home, 1, "ls").await;
    let card = simulator.wait_messages(1, LIMIT).await.unwrap().remove(0);
    let hook = async {
        let decision = asker.decision().await;
        asker.confirm().await;
        decision
    };
    let (clicked, decision) = tokio::join!(
        simulator.click(Press::action(&card.message_id, "deny")),
        hook
    );
    assert_eq!(clicked.unwrap().popup, None);
    assert_eq!(decision["decision"]["behavior"], "deny");
    let targets = targets.lock().unwrap().clone();
    for name in [API, SOCKET] {
        assert!(targets.contains(&format!("{name}:443")), "{targets:?}");
    }
    no_violations(&simulator);
}

#[tokio::test]
async fn both_legs_go_through_an_http_proxy() {
    works_through("HTTPS_PROXY", "http").await;
}

#[tokio::test]
async fn both_legs_go_through_a_socks_proxy() {
    works_through("ALL_PROXY", "socks5h").await;
}
