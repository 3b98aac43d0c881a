//! The way to the NATS server under nod's own policy: its proxies, its trust
//! store, its WebSocket. The NATS client knows none of these, so it dials one
//! loopback port that takes one connection and leads there.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};
use tokio_util::task::AbortOnDropHandle;

use super::url::{BusScheme, BusUrl};
use crate::feishu::outbound::{OPEN_WITHIN, Outbound, OutboundError, Stream};

/// The client dials at once; whoever else does is not waited for.
const DIAL_WITHIN: Duration = Duration::from_secs(5);
const UPGRADE_WITHIN: Duration = Duration::from_secs(5);
/// A server's first line names the server and its cluster.
pub(super) const MAX_INFO: usize = 32 * 1024;
/// Larger than any message of ours.
const MAX_MESSAGE: usize = 8 << 20;
const PIECE: usize = 64 * 1024;

/// A server within reach: where the client dials, for as long as this lives.
pub(super) struct Bridge {
    pub(super) address: String,
    /// The port stays ours for as long: a program of another user could take
    /// it and be dialled.
    _way: Option<(Arc<TcpListener>, AbortOnDropHandle<()>)>,
}

/// Opens the way. A server on this machine is dialled straight.
pub(super) async fn open(url: &BusUrl, outbound: &Outbound) -> Result<Bridge, OutboundError> {
    let web = url.web().ok_or(OutboundError::BadAddress {
        problem: "it is no address of a bus",
    })?;
    if url.kind == BusScheme::Plain {
        return Ok(Bridge {
            address: format!("nats://{}", url.authority()),
            _way: None,
        });
    }
    let far = match url.kind {
        BusScheme::Tls => {
            let (stream, info) = outbound.open_late(&web, OPEN_WITHIN, MAX_INFO).await?;
            Far::Tls(stream, info)
        }
        BusScheme::Plain | BusScheme::WebSocket => {
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
        let _ = far.pipe(near).await;
    });
    Ok(Bridge {
        address,
        _way: Some((door, AbortOnDropHandle::new(piping))),
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
    Tls(Stream, Vec<u8>),
    WebSocket(Box<WebSocketStream<Stream>>),
}

impl Far {
    async fn pipe(self, mut near: TcpStream) -> io::Result<()> {
        match self {
            Self::Tls(mut far, info) => {
                near.write_all(&without_tls(&info)).await?;
                copy_bidirectional(&mut near, &mut far).await.map(drop)
            }
            Self::WebSocket(far) => pipe_messages(near, *far).await,
        }
    }
}

async fn pipe_messages(mut near: TcpStream, mut far: WebSocketStream<Stream>) -> io::Result<()> {
    let mut first = Some(Vec::new());
    let mut piece = vec![0; PIECE];
    loop {
        tokio::select! {
            message = far.next() => {
                let bytes = match message.transpose().map_err(io::Error::other)? {
                    Some(Message::Binary(bytes)) => bytes,
                    Some(Message::Text(text)) => text.into(),
                    Some(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => continue,
                    Some(Message::Close(_)) | None => return Ok(()),
                };
                let Some(line) = &mut first else {
                    near.write_all(&bytes).await?;
                    continue;
                };
                line.extend_from_slice(&bytes);
                if line.contains(&b'\n') || line.len() > MAX_INFO {
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
