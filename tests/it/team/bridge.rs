//! The way to the bus: encrypted under a CA of its own, as a WebSocket, through
//! proxies, each with a question there and its answer back. What leads
//! somewhere else, or would carry anything unencrypted, is refused by name.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use futures::{SinkExt as _, StreamExt as _};
use nod::for_tests::bus::line::{BusAnswer, BusLineState};
use nod::for_tests::bus::subjects::ToMachine;
use nod::for_tests::bus::url::BusUrl;
use nod::for_tests::feishu::outbound::{Outbound, Proxies};
use nod::for_tests::simulator::bus::Bus;
use nod::for_tests::simulator::{OWNER, Press};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

use super::rig::{Meeting, Member, Team, connected};
use super::said;
use crate::gateway::rig::{Cards, Hook, LIMIT, Machine, within};
use crate::proxies::{Asked, Names, connect_proxy, socks_proxy};
use crate::support::{Door, until};
use crate::tls::Authority;

/// Known to the proxies alone.
const NAME: &str = "bus.nod.test";

/// Encrypts after the server's first line, as a NATS server does.
async fn tls_front(authority: &Authority, host: &str, server: SocketAddr) -> Door {
    let acceptor = authority.acceptor(host);
    Door::open(move |mut near| {
        let acceptor = acceptor.clone();
        async move {
            let mut far = BufReader::new(TcpStream::connect(server).await.unwrap());
            let mut line = String::new();
            far.read_line(&mut line).await.unwrap();
            let info = line.strip_prefix("INFO ").unwrap();
            let mut info: Value = serde_json::from_str(info).unwrap();
            info["tls_required"] = true.into();
            let line = format!("INFO {info}\r\n");
            near.write_all(line.as_bytes()).await.unwrap();
            // Whoever does not trust it hangs up.
            if let Ok(mut near) = acceptor.accept(near).await {
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            }
        }
    })
    .await
}

/// Speaks WebSocket over TLS, and cuts what the server says where no line ends.
async fn web_front(authority: &Authority, host: &str, server: SocketAddr) -> Door {
    let acceptor = authority.acceptor(host);
    Door::open(move |near| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(near) = acceptor.accept(near).await else {
                return;
            };
            let Ok(mut near) = tokio_tungstenite::accept_async(near).await else {
                return;
            };
            let mut far = TcpStream::connect(server).await.unwrap();
            let mut bytes = vec![0; 50];
            loop {
                tokio::select! {
                    read = far.read(&mut bytes) => {
                        let Ok(read @ 1..) = read else { return };
                        let message = Message::Binary(bytes[..read].to_vec().into());
                        if near.send(message).await.is_err() {
                            return;
                        }
                        bytes.resize(70_000, 0);
                    }
                    message = near.next() => match message {
                        Some(Ok(Message::Binary(bytes))) => far.write_all(&bytes).await.unwrap(),
                        Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                        Some(Ok(_)) => {}
                    },
                }
            }
        }
    })
    .await
}

/// A proxy that knows where the bus is, and what it was asked for.
async fn proxy(is_socks: bool, port: u16, front: SocketAddr) -> (Door, Asked) {
    let names = Names::new(HashMap::from([(format!("{NAME}:{port}"), front)]));
    let asked = Asked::default();
    let log = Arc::clone(&asked);
    let door = Door::open(move |near| {
        let (names, log) = (Arc::clone(&names), Arc::clone(&log));
        async move {
            if is_socks {
                socks_proxy(near, names, log).await;
            } else {
                connect_proxy(near, names, log).await;
            }
        }
    });
    (door.await, asked)
}

fn outbound(proxies: &Proxies, ca: Option<&Path>) -> Outbound {
    Outbound::new(proxies, ca).unwrap()
}

fn by_proxy(url: String) -> Proxies {
    let (all, https) = if url.starts_with("socks") {
        (Some(url), None)
    } else {
        (None, Some(url))
    };
    Proxies {
        all,
        https,
        ..Proxies::default()
    }
}

fn url(text: &str) -> BusUrl {
    BusUrl::parse(text).unwrap()
}

/// A question to this machine and its answer, each longer than one piece.
async fn round_trip(meeting: &Meeting, mut machine: Member) {
    let gateway = meeting.gateway();
    gateway.up().await;
    machine.up().await;
    let subject = machine.place().hears(ToMachine::Tap);
    let question: Vec<u8> = (0..200_000_u32).map(|n| (n % 251) as u8).collect();
    let answer: Vec<u8> = question.iter().rev().copied().collect();
    let (asked, replied) = (question.clone(), answer.clone());
    let answering = tokio::spawn(async move {
        let heard = machine.heard.recv().await.unwrap();
        assert!(heard.body[..] == asked, "it came as it was sent");
        let reply = heard.reply.unwrap();
        assert!(machine.line.tell(&reply, replied).await);
        machine
    });
    let told = until("the machine is there", || async {
        let told = gateway.line.ask(&subject, question.clone(), LIMIT).await;
        (told != BusAnswer::Nobody).then_some(told)
    });
    assert!(told.await == BusAnswer::Answer(answer.into()));
    drop(answering.await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bus_is_spoken_to_encrypted_under_a_ca_of_its_own() {
    let (meeting, authority) = (Meeting::start().await, Authority::new());
    let ways = || outbound(&Proxies::default(), Some(authority.file()));
    let tls = tls_front(&authority, "localhost", meeting.at).await;
    let way = url(&format!("tls://localhost:{}", tls.address.port()));
    round_trip(&meeting, meeting.member_by(OWNER, way, ways())).await;
    let web = web_front(&authority, "localhost", meeting.at).await;
    let way = url(&format!("wss://localhost:{}/nats", web.address.port()));
    round_trip(&meeting, meeting.member_by(OWNER, way, ways())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bus_is_reached_through_each_kind_of_proxy_by_its_name() {
    let (meeting, authority) = (Meeting::start().await, Authority::new());
    let tls = tls_front(&authority, NAME, meeting.at).await;
    let web = web_front(&authority, NAME, meeting.at).await;
    for (scheme, port, front) in [("tls", 4_222, &tls), ("wss", 443, &web)] {
        for kind in ["http", "socks5h"] {
            let (door, asked) = proxy(kind == "socks5h", port, front.address).await;
            let proxies = by_proxy(format!("{kind}://{}", door.address));
            let way = outbound(&proxies, Some(authority.file()));
            let to = url(&format!("{scheme}://{NAME}"));
            round_trip(&meeting, meeting.member_by(OWNER, to, way)).await;
            let asked = asked.lock().unwrap().clone();
            assert_eq!(asked, [format!("{NAME}:{port}")], "{scheme} {kind}");
        }
    }
}

/// Why there is no connection.
async fn refusal(member: &Member) -> String {
    let mut state = member.line.state();
    let waiting = state.wait_for(|state| matches!(state, BusLineState::Waiting { .. }));
    let state = within(waiting).await.unwrap().clone();
    let BusLineState::Waiting { why, .. } = state else {
        panic!("{state:?}");
    };
    assert!(!why.zh.is_empty());
    why.en.into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bus_with_a_wrong_certificate_is_refused_and_says_why() {
    let (meeting, authority) = (Meeting::start().await, Authority::new());
    let other = Authority::new();
    for (host, trusted, why) in [
        ("localhost", None, "not signed by a CA this machine trusts"),
        // Another CA of the same name.
        ("localhost", Some(other.file()), "not acceptable"),
        (NAME, Some(authority.file()), "for another host"),
    ] {
        let tls = tls_front(&authority, host, meeting.at).await;
        let web = web_front(&authority, host, meeting.at).await;
        for (scheme, front) in [("tls", &tls), ("wss", &web)] {
            let to = url(&format!("{scheme}://localhost:{}", front.address.port()));
            let way = outbound(&Proxies::default(), trusted);
            let member = meeting.member_by(OWNER, to, way);
            let told = refusal(&member).await;
            let start = "no trusted encrypted connection to `localhost`: its certificate is ";
            assert!(told.starts_with(start) && told.contains(why), "{told}");
        }
    }
    assert_eq!(meeting.small().map_or(0, Bus::clients), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_that_refuses_and_a_web_server_that_is_no_bus_are_named() {
    let (meeting, authority) = (Meeting::start().await, Authority::new());
    for (answer, why) in [
        (
            &b"HTTP/1.1 403 Forbidden\r\n\r\n"[..],
            format!("did not connect to `{NAME}`: it answered 403"),
        ),
        (
            b"HTTP/1.1 407 Who\r\n\r\n",
            "wants a user name and password".to_owned(),
        ),
    ] {
        let door = Door::open(move |mut near| async move {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(near.read_u8().await.unwrap());
            }
            near.write_all(answer).await.unwrap();
        })
        .await;
        let way = || outbound(&by_proxy(format!("http://{}", door.address)), None);
        for scheme in ["tls", "wss"] {
            let to = url(&format!("{scheme}://{NAME}"));
            let told = refusal(&meeting.member_by(OWNER, to, way())).await;
            let proxy = format!("the proxy `http://{}`", door.address);
            assert!(told.starts_with(&proxy) && told.contains(&why), "{told}");
        }
    }
    let door = Door::open(|mut near| async move {
        let mut hello = [0; 3];
        near.read_exact(&mut hello).await.unwrap();
        near.write_all(&[5, 0]).await.unwrap();
        let mut asked = vec![0; 5 + NAME.len() + 2];
        near.read_exact(&mut asked).await.unwrap();
        let forbidden = [5, 2, 0, 1, 0, 0, 0, 0, 0, 0];
        near.write_all(&forbidden).await.unwrap();
    })
    .await;
    let way = outbound(&by_proxy(format!("socks5h://{}", door.address)), None);
    let to = url(&format!("wss://{NAME}"));
    let told = refusal(&meeting.member_by(OWNER, to, way)).await;
    let proxy = format!("the proxy `socks5h://{}` did not connect", door.address);
    assert!(told.starts_with(&proxy), "{told}");
    // Somebody answers there, but with a page.
    let server = Door::open(|mut near| async move {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(near.read_u8().await.unwrap());
        }
        let page = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
        near.write_all(page).await.unwrap();
    })
    .await;
    let front = authority.front("localhost", server.address).await;
    let way = outbound(&Proxies::default(), Some(authority.file()));
    let to = url(&format!("wss://localhost:{}", front.address.port()));
    let told = refusal(&meeting.member_by(OWNER, to, way)).await;
    assert!(told.contains("HTTP 404 in place of a WebSocket"), "{told}");
}

/// As a company has it: the gateway beside the bus, the laptop behind a proxy,
/// both told of the company's CA by their settings.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_card_is_decided_over_tls_and_through_a_proxy() {
    let (team, authority) = (Team::start().await, Authority::new());
    let ca = authority.file().to_string_lossy().into_owned();
    let tls = tls_front(&authority, "localhost", team.meeting.at).await;
    let web = web_front(&authority, NAME, team.meeting.at).await;
    let (door, asked) = proxy(false, 443, web.address).await;
    let _gateway = team.gateway_with(&[
        (
            "NOD_BUS_URL",
            &format!("tls://localhost:{}", tls.address.port()),
        ),
        ("NOD_CA_FILE", &ca),
    ]);
    let machine = team.machine_with(
        OWNER,
        &[
            ("NOD_BUS_URL", &format!("wss://{NAME}")),
            ("NOD_CA_FILE", &ca),
            ("HTTPS_PROXY", &format!("http://{}", door.address)),
        ],
    );
    connected(&machine).await;
    let hook = Hook::ask(&machine, "mine", "ls").await;
    let mut cards = Cards::default();
    cards.wait(&team.feishu, 1).await;
    let press = Press::action(&cards.of["mine"], "allow");
    assert_eq!(said(&team.feishu.click(press).await.unwrap()), "已批准运行");
    assert!(hook.decision().await.is_some());
    let asked = asked.lock().unwrap().clone();
    assert!(
        asked.iter().all(|to| *to == format!("{NAME}:443")),
        "{asked:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unencrypted_bus_elsewhere_is_refused_before_anything_is_dialled() {
    let team = Team::start().await;
    for to in ["nats://192.0.2.1:4222", "ws://bus.nod.test"] {
        let own = [("NOD_BUS_URL", to)];
        let mut both: [Machine; 2] = [team.gateway_with(&own), team.machine_with(OWNER, &own)];
        for one in &mut both {
            assert_eq!(one.ended(), Some(78), "{}", one.log());
            let told = one.log();
            for words in ["NOD_BUS_URL", "unencrypted", "`wss://` or `tls://`"] {
                assert!(told.contains(words), "{words}: {told}");
            }
        }
    }
}
