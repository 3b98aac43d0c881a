//! The way to the NATS server under nod's own policy: its proxies, its trust
//! store, its WebSocket. The NATS client knows none of these, so it dials one
//! loopback port that takes one connection and leads there.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};
use tokio_util::task::AbortOnDropHandle;

use super::frames::{self, BadServerFrame, FrameGuard};
use super::url::{BusScheme, BusUrl};
use crate::feishu::outbound::{OPEN_WITHIN, Outbound, OutboundError, Stream};

/// The client dials at once; whoever else does is not waited for.
const DIAL_WITHIN: Duration = Duration::from_secs(5);
const UPGRADE_WITHIN: Duration = Duration::from_secs(5);
/// Several messages may come as one of the WebSocket's.
const MAX_MESSAGE: usize = 8 << 20;
const PIECE: usize = 64 * 1024;

/// A server within reach: where the client dials, for as long as this lives.
pub(super) struct Bridge {
    pub(super) address: String,
    /// The port stays ours for as long: a program of another user could take
    /// it and be dialled.
    way: (Arc<TcpListener>, AbortOnDropHandle<()>),
}

impl Bridge {
    /// Returns once the client has closed its end and all it said was passed on.
    pub(super) async fn ended(self) {
        let (_door, piping) = self.way;
        // One that panicked has ended as well.
        let _ = piping.await;
    }
}

/// Opens the way. What comes back over it is counted, from this machine too.
pub(super) async fn open(url: &BusUrl, outbound: &Outbound) -> Result<Bridge, OutboundError> {
    let web = url.web().ok_or(OutboundError::BadAddress {
        problem: "it is no address of a bus",
    })?;
    let far = match url.kind {
        BusScheme::Plain => Far::Bytes(outbound.open(&web, OPEN_WITHIN).await?, Vec::new()),
        BusScheme::Tls => {
            let (stream, info) = outbound
                .open_late(&web, OPEN_WITHIN, frames::MAX_LINE)
                .await?;
            Far::Bytes(stream, info)
        }
        BusScheme::WebSocket => {
            let stream = outbound.open(&web, OPEN_WITHIN).await?;
            Far::WebSocket(Box::new(upgraded(&web, stream, url).await?))
        }
    };
    let lost = |why: io::Error| OutboundError::Lost {
        peer: "this machine's own loopback address".to_owned(),
        reason: why.kind().to_string(),
    };
    let door = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)));
    let door = Arc::new(door.await.map_err(lost)?);
    let address = format!("nats://{}", door.local_addr().map_err(lost)?);
    let once = Arc::clone(&door);
    let piping = tokio::spawn(async move {
        let Ok(Ok((near, _))) = tokio::time::timeout(DIAL_WITHIN, once.accept()).await else {
            return;
        };
        // Either end tells the client by closing.
        let _ = near.set_nodelay(true);
        if let Err(why) = far.pipe(near).await
            && matches!(why.get_ref(), Some(why) if why.is::<BadServerFrame>())
        {
            tracing::warn!("the connection to the bus was given up: {why}");
        }
    });
    Ok(Bridge {
        address,
        way: (door, AbortOnDropHandle::new(piping)),
    })
}

async fn upgraded(
    web: &url::Url,
    stream: Stream,
    url: &BusUrl,
) -> Result<WebSocketStream<Stream>, OutboundError> {
    let refused = |reason: String| OutboundError::Lost {
        peer: format!("`{}`", url.host()),
        reason,
    };
    let request = web
        .as_str()
        .into_client_request()
        .map_err(|why| refused(why.to_string()))?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE));
    let upgrade = client_async_with_config(request, stream, Some(config));
    match tokio::time::timeout(UPGRADE_WITHIN, upgrade).await {
        Ok(Ok((socket, _))) => Ok(socket),
        Ok(Err(tungstenite::Error::Http(answer))) => Err(refused(format!(
            "it answered HTTP {} in place of a WebSocket",
            answer.status().as_u16()
        ))),
        Ok(Err(why)) => Err(refused(why.to_string())),
        Err(_) => Err(OutboundError::TimedOut {
            peer: format!("`{}`", url.host()),
        }),
    }
}

/// The server's end.
enum Far {
    /// With its first line, where that was read already.
    Bytes(Stream, Vec<u8>),
    WebSocket(Box<WebSocketStream<Stream>>),
}

impl Far {
    async fn pipe(self, mut near: TcpStream) -> io::Result<()> {
        match self {
            Self::Bytes(far, info) => {
                near.write_all(&without_tls(&info)).await?;
                pipe_bytes(near, far).await
            }
            Self::WebSocket(far) => pipe_messages(near, *far).await,
        }
    }
}

/// Until either end closes, or the server sends more than it may.
async fn pipe_bytes(mut near: TcpStream, far: Stream) -> io::Result<()> {
    let (mut from_server, mut to_server) = tokio::io::split(far);
    let (mut from_client, mut to_client) = near.split();
    let back = async {
        let (mut guard, mut piece) = (FrameGuard::default(), vec![0; PIECE]);
        loop {
            let read = from_server.read(&mut piece).await?;
            if read == 0 {
                return Ok(());
            }
            guard.check(&piece[..read]).map_err(io::Error::other)?;
            to_client.write_all(&piece[..read]).await?;
        }
    };
    tokio::select! {
        ended = back => ended,
        ended = tokio::io::copy(&mut from_client, &mut to_server) => {
            ended?;
            to_server.shutdown().await
        }
    }
}

async fn pipe_messages(mut near: TcpStream, mut far: WebSocketStream<Stream>) -> io::Result<()> {
    let mut first = Some(Vec::new());
    let mut piece = vec![0; PIECE];
    let mut guard = FrameGuard::default();
    loop {
        tokio::select! {
            message = far.next() => {
                let bytes = match message.transpose().map_err(io::Error::other)? {
                    Some(Message::Binary(bytes)) => bytes,
                    Some(Message::Text(text)) => text.into(),
                    Some(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => continue,
                    Some(Message::Close(_)) | None => return Ok(()),
                };
                guard.check(&bytes).map_err(io::Error::other)?;
                let Some(line) = &mut first else {
                    near.write_all(&bytes).await?;
                    continue;
                };
                line.extend_from_slice(&bytes);
                if line.contains(&b'\n') || line.len() > frames::MAX_LINE {
                    near.write_all(&without_tls(line)).await?;
                    first = None;
                }
            }
            read = near.read(&mut piece) => {
                let read = read?;
                if read == 0 {
                    return far.close(None).await.map_err(io::Error::other);
                }
                let message = Message::Binary(piece[..read].to_vec().into());
                far.send(message).await.map_err(io::Error::other)?;
            }
        }
    }
}

/// The server's first line without its wish for encryption: that is done, one
/// layer below the client.
fn without_tls(info: &[u8]) -> Vec<u8> {
    let end = info.iter().position(|b| *b == b'\n').map_or(0, |at| at + 1);
    let (line, rest) = info.split_at(end);
    let read = line
        .strip_prefix(b"INFO ")
        .and_then(|json| serde_json::from_slice::<Value>(json).ok());
    let Some(mut value) = read else {
        return info.to_vec();
    };
    if let Some(fields) = value.as_object_mut() {
        for wish in ["tls_required", "tls_available", "tls_verify"] {
            fields.remove(wish);
        }
    }
    let mut out = format!("INFO {value}\r\n").into_bytes();
    out.extend_from_slice(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feishu::outbound::Proxies;

    #[tokio::test]
    async fn nobody_else_gets_the_port_while_a_client_may_dial_it() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = BusUrl::parse(&format!("ws://{}", server.local_addr().unwrap())).unwrap();
        let greeting = tokio::spawn(async move {
            let (near, _) = server.accept().await.unwrap();
            let mut near = tokio_tungstenite::accept_async(near).await.unwrap();
            let info = Message::text("INFO {}\r\n");
            near.send(info).await.unwrap();
            near
        });
        let way = Outbound::new(&Proxies::default(), None).unwrap();
        let bridge = open(&url, &way).await.unwrap();
        let door = bridge.address.strip_prefix("nats://").unwrap();
        let mut client = TcpStream::connect(door).await.unwrap();
        assert_eq!(client.read_u8().await.unwrap(), b'I', "it was let in");
        let other = TcpListener::bind(door).await;
        assert!(other.is_err(), "while the connection stands");
        drop(greeting.await.unwrap());
        let _ = client.read_to_end(&mut Vec::new()).await;
        let other = TcpListener::bind(door).await;
        assert!(other.is_err(), "when it was lost, until that is known");
    }

    /// What a client gets of a server that says this and then more and more.
    async fn got(says: &'static str, scheme: &str) -> usize {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("{scheme}://{}", server.local_addr().unwrap());
        let web = scheme == "ws";
        let flooding = tokio::spawn(async move {
            let (mut near, _) = server.accept().await.unwrap();
            let more = vec![b'x'; PIECE];
            if web {
                let mut near = tokio_tungstenite::accept_async(near).await.unwrap();
                let first = near.send(Message::binary(says)).await;
                first.unwrap();
                while near.send(Message::binary(more.clone())).await.is_ok() {}
            } else {
                near.write_all(says.as_bytes()).await.unwrap();
                while near.write_all(&more).await.is_ok() {}
            }
        });
        let way = Outbound::new(&Proxies::default(), None).unwrap();
        let bridge = open(&BusUrl::parse(&url).unwrap(), &way).await.unwrap();
        let door = bridge.address.strip_prefix("nats://").unwrap();
        let mut client = TcpStream::connect(door).await.unwrap();
        let mut got = Vec::new();
        let reading = client.read_to_end(&mut got);
        let ended = tokio::time::timeout(Duration::from_secs(20), reading).await;
        // How it ends does not matter, but it has to.
        let _ = ended.expect("the connection is given up");
        flooding.abort();
        got.len()
    }

    #[tokio::test]
    async fn a_server_that_announces_too_much_or_never_ends_a_line_is_left() {
        for scheme in ["nats", "ws"] {
            for says in [
                "INFO {}\r\nMSG a 1 1500000000\r\n",
                "INFO {}\r\n",
                "INFO {\"x\":\"",
            ] {
                let got = got(says, scheme).await;
                assert!(
                    got <= frames::MAX_LINE + 2 * PIECE,
                    "{scheme}: {says}: {got}"
                );
            }
        }
    }

    #[test]
    fn only_the_first_line_and_only_its_wish_for_encryption_is_changed() {
        let info = b"INFO {\"nonce\":\"n\",\"tls_required\":true}\r\nPING\r\n";
        let out = without_tls(info);
        assert_eq!(out, b"INFO {\"nonce\":\"n\"}\r\nPING\r\n");
        for other in [&b"PING\r\n"[..], b"INFO {", b"INFO x\r\n", b""] {
            assert_eq!(without_tls(other), other);
        }
    }
}
