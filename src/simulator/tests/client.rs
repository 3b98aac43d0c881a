//! The least possible client: HTTP by hand, WebSocket by the library.

use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::{SinkExt as _, StreamExt as _};
use prost::bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::LIMIT;
use crate::feishu::frame::{CONTROL, DATA, Frame, Header};
use crate::simulator::{APP_ID, APP_SECRET, OWNER, SERVICE_ID, Simulator};

/// One HTTP answer; `status` 0 is a connection that ended without one.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub(super) fn code(&self) -> i64 {
        self.json()["code"].as_i64().unwrap_or(-1)
    }

    pub(super) fn header(&self, name: &str) -> Option<String> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then(|| value.to_owned())
        })
    }
}

pub(super) async fn call(
    address: SocketAddr,
    request: &str,
    token: Option<&str>,
    body: Option<&str>,
) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let body = body.unwrap_or_default();
    let authorization = token.map_or_else(String::new, |token| {
        format!("Authorization: Bearer {token}\r\n")
    });
    let text = format!(
        "{request} HTTP/1.1\r\nHost: {address}\r\n{authorization}Content-Type: application/json; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    let read = timeout(LIMIT, stream.read_to_end(&mut bytes)).await;
    read.expect("an answer in time").unwrap_or_default();
    let split = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let Some(split) = split else {
        return Answer {
            status: 0,
            head: String::new(),
            body: Vec::new(),
        };
    };
    let head = String::from_utf8(bytes[..split].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer {
        status,
        head,
        body: bytes[split + 4..].to_vec(),
    }
}

/// The Open API with a token.
pub(super) struct Http {
    pub(super) address: SocketAddr,
    pub(super) token: String,
}

impl Http {
    pub(super) async fn signed_in(simulator: &Simulator) -> Self {
        let address = simulator.addresses().feishu;
        let answer = token(simulator).await;
        Self {
            address,
            token: answer["tenant_access_token"].as_str().unwrap().to_owned(),
        }
    }

    pub(super) async fn call(&self, request: &str, body: &Value) -> Answer {
        let text = (!body.is_null()).then(|| body.to_string());
        call(self.address, request, Some(&self.token), text.as_deref()).await
    }

    pub(super) async fn send(&self, content: &Value, uuid: &str) -> Answer {
        let body = json!({
            "receive_id": OWNER, "msg_type": "interactive", "content": content.to_string(), "uuid": uuid,
        });
        let path = "POST /open-apis/im/v1/messages?receive_id_type=open_id";
        self.call(path, &body).await
    }

    pub(super) async fn send_card(&self, content: &Value) -> String {
        let answer = self.send(content, &content.to_string()[..20]).await;
        let id = answer.json()["data"]["message_id"]
            .as_str()
            .map(str::to_owned);
        id.unwrap_or_else(|| panic!("not sent: {}", answer.json()))
    }

    pub(super) async fn patch(&self, id: &str, content: &Value) -> Answer {
        let body = json!({"content": content.to_string()});
        self.call(&format!("PATCH /open-apis/im/v1/messages/{id}"), &body)
            .await
    }
}

pub(super) async fn token(simulator: &Simulator) -> Value {
    let body = json!({"app_id": APP_ID, "app_secret": APP_SECRET}).to_string();
    let path = "POST /open-apis/auth/v3/tenant_access_token/internal";
    call(simulator.addresses().feishu, path, None, Some(&body))
        .await
        .json()
}

pub(super) async fn discover(simulator: &Simulator) -> Answer {
    let body = json!({"AppID": APP_ID, "AppSecret": APP_SECRET}).to_string();
    let address = simulator.addresses().feishu;
    call(address, "POST /callback/ws/endpoint", None, Some(&body)).await
}

/// A long connection.
pub(super) struct Link {
    pub(super) socket: WebSocketStream<TcpStream>,
}

pub(super) fn refusal(error: &Error) -> (u16, Option<String>, Option<String>) {
    let Error::Http(response) = error else {
        panic!("not refused over HTTP: {error}");
    };
    let header = |name: &str| {
        let value = response.headers().get(name)?;
        Some(value.to_str().unwrap().to_owned())
    };
    (
        response.status().as_u16(),
        header("Handshake-Status"),
        header("Handshake-Autherrcode"),
    )
}

impl Link {
    pub(super) async fn dial(url: &str) -> Result<Self, Error> {
        let parsed = url::Url::parse(url).unwrap();
        let address = (parsed.host_str().unwrap(), parsed.port().unwrap());
        let stream = TcpStream::connect(address).await.unwrap();
        let dialing = tokio_tungstenite::client_async(url, stream);
        let (socket, _) = timeout(LIMIT, dialing)
            .await
            .expect("a handshake in time")?;
        Ok(Self { socket })
    }

    pub(super) async fn connect(simulator: &Simulator) -> Self {
        let answer = discover(simulator).await.json();
        let url = answer["data"]["URL"].as_str().expect("a URL");
        Self::dial(url).await.unwrap()
    }

    pub(super) async fn send(&mut self, frame: &Frame) {
        let message = Message::Binary(frame.to_bytes());
        self.socket.send(message).await.unwrap();
    }

    pub(super) async fn ping(&mut self) {
        self.send(&Frame::ping(SERVICE_ID)).await;
    }

    /// The next message, or `None` once the connection has ended.
    pub(super) async fn message(&mut self) -> Option<Result<Message, Error>> {
        timeout(LIMIT, self.socket.next())
            .await
            .expect("a message in time")
    }

    pub(super) async fn frame(&mut self) -> Frame {
        loop {
            match self.message().await.expect("an open connection").unwrap() {
                Message::Binary(bytes) => return Frame::parse(bytes).unwrap(),
                Message::Pong(_) | Message::Ping(_) => {}
                other => panic!("not a frame: {other:?}"),
            }
        }
    }

    /// The next data frame and its payload.
    pub(super) async fn event(&mut self) -> (Frame, Value) {
        loop {
            let frame = self.frame().await;
            if frame.method == DATA {
                let payload = frame.payload.clone().unwrap_or_default();
                return (frame, serde_json::from_slice(&payload).unwrap_or_default());
            }
            assert_eq!(frame.method, CONTROL);
        }
    }

    pub(super) async fn answer(&mut self, frame: &Frame, payload: &Value) {
        self.send(&answer_to(frame, payload)).await;
    }

    /// Takes one event and acknowledges it.
    pub(super) async fn acknowledge(&mut self) -> Value {
        let (frame, payload) = self.event().await;
        self.answer(&frame, &json!({"code": 200})).await;
        payload
    }

    /// Takes one click and answers it with a result.
    pub(super) async fn answer_click(&mut self, result: &Value) -> Value {
        let (frame, payload) = self.event().await;
        self.answer(&frame, &with_data(result)).await;
        payload
    }
}

pub(super) fn with_data(result: &Value) -> Value {
    json!({"code": 200, "data": STANDARD.encode(result.to_string())})
}

pub(super) fn answer_to(frame: &Frame, payload: &Value) -> Frame {
    let mut reply = frame.clone();
    reply.headers.push(Header::new("biz_rt", "1"));
    reply.payload = Some(Bytes::from(payload.to_string()));
    reply
}
