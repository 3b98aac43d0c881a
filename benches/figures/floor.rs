//! The least client there can be on this stack: one thread, decode the frame,
//! parse the event, encode a fixed toast. What it costs, the protocol costs.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::{SinkExt as _, StreamExt as _};
use nod::for_tests::feishu::frame::{DATA, Frame, Header};
use nod::for_tests::simulator::{APP_ID, APP_SECRET};
use prost::bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

#[derive(Deserialize)]
struct Push<'a> {
    #[serde(borrow)]
    header: Head<'a>,
}

#[derive(Deserialize)]
struct Head<'a> {
    event_type: &'a str,
}

/// Answers until the connection ends.
pub(crate) fn run(host: &str) -> anyhow::Result<()> {
    let url = discover(host)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(answer(&url))
}

fn discover(host: &str) -> anyhow::Result<String> {
    let body = json!({"AppID": APP_ID, "AppSecret": APP_SECRET}).to_string();
    let mut stream = TcpStream::connect(host)?;
    write!(
        stream,
        "POST /callback/ws/endpoint HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    let (_, body) = reply.split_once("\r\n\r\n").context("no body")?;
    let body: Value = serde_json::from_str(body)?;
    Ok(body["data"]["URL"].as_str().context("no URL")?.to_owned())
}

async fn answer(url: &str) -> anyhow::Result<()> {
    let (mut socket, _) = tokio_tungstenite::client_async(
        url,
        tokio::net::TcpStream::connect(url::Url::parse(url)?.socket_addrs(|| None)?[0]).await?,
    )
    .await?;
    socket.get_ref().set_nodelay(true)?;
    let toast = STANDARD.encode(r#"{"toast":{"type":"info","content":"seen"}}"#);
    let payload = Bytes::from(format!(r#"{{"code":200,"data":"{toast}"}}"#));
    while let Some(message) = socket.next().await {
        let Message::Binary(bytes) = message? else {
            continue;
        };
        let mut frame = Frame::parse(bytes)?;
        if frame.method != DATA {
            continue;
        }
        let body = frame.payload.take().unwrap_or_default();
        let push: Push<'_> = serde_json::from_slice(&body)?;
        anyhow::ensure!(push.header.event_type == "card.action.trigger");
        frame.headers.push(Header::new("biz_rt", "0"));
        frame.payload = Some(payload.clone());
        socket.send(Message::Binary(frame.to_bytes())).await?;
    }
    Ok(())
}
