//! The WebSocket side: upgrades with single-use tickets, and one task per
//! connection that owns its socket, answers pings and hands on replies.

use std::sync::Arc;
use std::time::Duration;

use prost::bytes::{Bytes, BytesMut};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::handshake::machine::TryParse as _;
use tokio_tungstenite::tungstenite::handshake::server::{Request, create_response, write_response};

use super::line::LineOrder;
use super::push::Sink;
use super::ws::{self, Decoder, Opcode, WsMessage};
use crate::feishu::frame::{CONTROL, DATA, Frame, Header};
use crate::simulator::control::faults::{At, Fault};
use crate::simulator::world::core::Core;
use crate::simulator::world::options::SERVICE_ID;

const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
const WRITE_LIMIT: Duration = Duration::from_secs(10);
const MAX_REQUEST: usize = 64 * 1024;
const ORDERS: usize = 1024;
const BATCH: usize = 256;

pub(in crate::simulator) async fn listen(core: Arc<Core>, listener: TcpListener) {
    loop {
        tokio::select! {
            () = core.cancel.cancelled() => return,
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    let served = core.clone();
                    core.tasks.spawn(async move { meet(served, stream).await });
                }
            }
        }
    }
}

async fn meet(core: Arc<Core>, mut stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let mut inbox = BytesMut::with_capacity(16 * 1024);
    let request = tokio::select! {
        () = core.cancel.cancelled() => return,
        read = timeout(HANDSHAKE_LIMIT, read_request(&mut stream, &mut inbox)) => read,
    };
    let Ok(Some(request)) = request else {
        return;
    };
    if let Some(fault) = core.take_fault(None, At::Now, Fault::refuses_handshake) {
        return refuse_by_fault(&core, stream, fault).await;
    }
    let query = request.uri().query().unwrap_or_default();
    let parameter = |name: &str| {
        url::form_urlencoded::parse(query.as_bytes())
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.into_owned())
    };
    let Ok(response) = create_response(&request) else {
        return write_refusal(&core, stream, 400, "", "not a WebSocket upgrade").await;
    };
    if request.uri().path() != "/ws/v2" {
        return write_refusal(&core, stream, 404, "", "no such path").await;
    }
    let (orders, inbound) = mpsc::channel(ORDERS);
    let device = parameter("device_id").unwrap_or_default();
    let admitted = {
        let mut world = core.world();
        let mut lines = core.lines();
        let admitted = world.admit(parameter("ticket").as_deref(), |app| lines.count(app));
        admitted.map(|app| {
            let id = lines.add(app, &world.apps[app].id, &device, core.now(), orders);
            (app, id)
        })
    };
    let (app, id) = match admitted {
        Ok(admitted) => admitted,
        Err(refusal) => {
            let headers = handshake_headers(Some(refusal.status), refusal.autherrcode, refusal.msg);
            return write_refusal(&core, stream, refusal.http, &headers, refusal.msg).await;
        }
    };
    let mut first = Vec::new();
    let why = if write_response(&mut first, &response).is_ok() {
        let mut out = BytesMut::from(&first[..]);
        behind_handshake(&core, app, id, &mut out);
        core.record("connection_up", Some(id), || json!({"device_id": device}));
        let mut link = SocketLink {
            core: core.clone(),
            id,
            stream,
            decoder: Decoder::default(),
            out,
        };
        link.decoder.inbox = inbox;
        link.serve(inbound).await
    } else {
        "the response can't be written".to_owned()
    };
    core.lines().remove(id);
    core.record("connection_down", Some(id), || json!({"why": why}));
}

async fn read_request(stream: &mut TcpStream, inbox: &mut BytesMut) -> Option<Request> {
    loop {
        if stream.read_buf(inbox).await.ok()? == 0 || inbox.len() > MAX_REQUEST {
            return None;
        }
        if let Some((size, request)) = Request::try_parse(inbox).ok()? {
            let _ = inbox.split_to(size);
            return Some(request);
        }
    }
}

/// Puts an event into the same write as the 101, if such a fault is armed.
fn behind_handshake(core: &Core, app: usize, id: u64, out: &mut BytesMut) {
    let fits = |fault: &Fault| matches!(fault, Fault::EventBehindHandshake { .. });
    let Some(Fault::EventBehindHandshake { payload }) = core.take_fault(Some(id), At::Now, fits)
    else {
        return;
    };
    let payload = payload.unwrap_or_else(|| core.small_talk(app));
    let payload = Bytes::from(payload.to_string());
    let (number, frames) = core.prepare(app, id, &payload, Sink::None, None);
    for frame in frames {
        ws::encode(Opcode::Binary, &frame, out);
    }
    core.record(
        "event_out",
        Some(id),
        || json!({"push": number, "behind_handshake": true}),
    );
}

async fn refuse_by_fault(core: &Core, stream: TcpStream, fault: Fault) {
    match fault {
        Fault::HandshakeHang => {
            core.cancel.cancelled().await;
            drop(stream);
        }
        Fault::Redirect { location } => {
            let headers = format!("Location: {location}\r\n");
            write_refusal(core, stream, 302, &headers, "moved").await;
        }
        Fault::RefuseHandshake {
            http,
            status,
            autherrcode,
            msg,
        } => {
            let headers = handshake_headers(status, autherrcode, &msg);
            write_refusal(core, stream, http, &headers, &msg).await;
        }
        _ => {}
    }
}

fn handshake_headers(status: Option<i64>, autherrcode: Option<i64>, msg: &str) -> String {
    let line = |key: &str, value: Option<String>| {
        value.map_or_else(String::new, |value| format!("Handshake-{key}: {value}\r\n"))
    };
    let number = |number: Option<i64>| number.map(|number| number.to_string());
    line("Status", number(status))
        + &line("Autherrcode", number(autherrcode))
        + &line("Msg", (!msg.is_empty()).then(|| msg.to_owned()))
}

async fn write_refusal(core: &Core, mut stream: TcpStream, http: u16, headers: &str, why: &str) {
    core.record(
        "handshake_refused",
        None,
        || json!({"http": http, "why": why}),
    );
    let text = format!(
        "HTTP/1.1 {http} Refused\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n"
    );
    let _ = timeout(WRITE_LIMIT, stream.write_all(text.as_bytes())).await;
    let _ = stream.shutdown().await;
}

/// One connection's socket and what is still to be read and written.
struct SocketLink {
    core: Arc<Core>,
    id: u64,
    stream: TcpStream,
    decoder: Decoder,
    out: BytesMut,
}

/// Why a connection ends.
type WhyEnded = String;

impl SocketLink {
    async fn serve(&mut self, mut orders: mpsc::Receiver<LineOrder>) -> WhyEnded {
        let mut batch = Vec::with_capacity(BATCH);
        if let Some(fault) = self
            .core
            .take_fault(Some(self.id), At::Now, |f| f.cuts() || f.injects())
        {
            batch.push(if fault.cuts() {
                LineOrder::Cut(fault)
            } else {
                LineOrder::Inject(fault)
            });
        }
        loop {
            for order in std::mem::take(&mut batch) {
                if let Some(end) = self.obey(order, &mut orders).await {
                    return end;
                }
            }
            if let Some(end) = self.take_messages(&mut orders).await {
                return end;
            }
            if !self.flush().await {
                return "the client does not read".to_owned();
            }
            tokio::select! {
                () = self.core.cancel.cancelled() => {
                    return self.close(1001, "the simulator stops").await;
                }
                read = self.stream.read_buf(&mut self.decoder.inbox) => match read {
                    Ok(0) => return "the client ended TCP".to_owned(),
                    Ok(_) => {}
                    Err(error) => return format!("reading failed: {error}"),
                },
                _ = orders.recv_many(&mut batch, BATCH) => {}
            }
        }
    }

    async fn flush(&mut self) -> bool {
        if self.out.is_empty() {
            return true;
        }
        let written = timeout(WRITE_LIMIT, self.stream.write_all(&self.out)).await;
        self.out.clear();
        matches!(written, Ok(Ok(())))
    }

    async fn close(&mut self, code: u16, reason: &str) -> WhyEnded {
        ws::encode_close(code, reason, &mut self.out);
        self.flush().await;
        let _ = self.stream.shutdown().await;
        format!("closed with {code}")
    }

    async fn obey(
        &mut self,
        order: LineOrder,
        orders: &mut mpsc::Receiver<LineOrder>,
    ) -> Option<WhyEnded> {
        match order {
            LineOrder::Write(frames, then) => {
                for frame in frames {
                    ws::encode(Opcode::Binary, &frame, &mut self.out);
                }
                match then {
                    None => None,
                    Some(fault) => {
                        self.flush().await;
                        Some(self.cut(fault, orders).await)
                    }
                }
            }
            LineOrder::Cut(fault) => {
                self.flush().await;
                Some(self.cut(fault, orders).await)
            }
            LineOrder::Inject(fault) => {
                self.inject(&fault);
                None
            }
        }
    }

    async fn cut(&mut self, fault: Fault, orders: &mut mpsc::Receiver<LineOrder>) -> WhyEnded {
        match fault {
            Fault::Close { code, reason } => self.close(code, &reason).await,
            Fault::Reset => {
                let _ = self.stream.set_zero_linger();
                "reset by a fault".to_owned()
            }
            Fault::HalfOpen { ghost } => self.freeze(ghost, orders).await,
            _ => {
                let _ = self.stream.shutdown().await;
                "dropped by a fault".to_owned()
            }
        }
    }

    /// Answers nothing any more. Orders are thrown away, because a real peer
    /// behind a dead line would never see them.
    async fn freeze(&mut self, ghost: bool, orders: &mut mpsc::Receiver<LineOrder>) -> WhyEnded {
        self.core.lines().update(self.id, |line| line.frozen = true);
        self.core.record(
            "connection_frozen",
            Some(self.id),
            || json!({"ghost": ghost}),
        );
        let mut waste = BytesMut::with_capacity(4096);
        let mut gone = false;
        loop {
            waste.clear();
            tokio::select! {
                () = self.core.cancel.cancelled() => return "the simulator stops".to_owned(),
                order = orders.recv() => match order {
                    Some(LineOrder::Cut(fault)) if !matches!(fault, Fault::HalfOpen { .. }) => {
                        if matches!(fault, Fault::Reset) {
                            let _ = self.stream.set_zero_linger();
                        }
                        return "cut while half-open".to_owned();
                    }
                    Some(_) => {}
                    None => return "the simulator stops".to_owned(),
                },
                read = self.stream.read_buf(&mut waste), if !gone => {
                    gone = !matches!(read, Ok(1..));
                    // A close is lost on a dead line; a reset tells where a
                    // newer connection proves that the network is back.
                    let told = read.is_err() && self.core.lines().has_newer(self.id);
                    if gone && (!ghost || told) {
                        return "the client gave up a half-open connection".to_owned();
                    }
                }
            }
        }
    }

    fn inject(&mut self, fault: &Fault) {
        match fault {
            Fault::Garbage { hex } => {
                let bytes = crate::simulator::unhex(hex).unwrap_or_default();
                ws::encode(Opcode::Binary, &bytes, &mut self.out);
            }
            Fault::TextMessage { text } => ws::encode(Opcode::Text, text.as_bytes(), &mut self.out),
            Fault::OversizedFrame { bytes } => {
                let payload = Bytes::from(vec![b' '; *bytes]);
                let mut world = self.core.world();
                let frame =
                    super::shape::event(&mut world.mint, SERVICE_ID, 0, "oversized", 0, payload);
                ws::encode(Opcode::Binary, &frame.to_bytes(), &mut self.out);
            }
            Fault::ControlFrame { r#type } => self.control(r#type, None),
            Fault::Method { method } => {
                let frame = Frame {
                    service: SERVICE_ID,
                    method: *method,
                    ..Frame::default()
                };
                ws::encode(Opcode::Binary, &frame.to_bytes(), &mut self.out);
            }
            _ => {}
        }
    }

    fn control(&mut self, kind: &str, payload: Option<Bytes>) {
        let frame = Frame {
            service: SERVICE_ID,
            method: CONTROL,
            headers: vec![Header::new("type", kind)],
            payload,
            ..Frame::default()
        };
        ws::encode(Opcode::Binary, &frame.to_bytes(), &mut self.out);
    }

    async fn take_messages(&mut self, orders: &mut mpsc::Receiver<LineOrder>) -> Option<WhyEnded> {
        loop {
            match self.decoder.next() {
                Ok(None) => return None,
                Ok(Some(message)) => {
                    if let Some(end) = self.take(message, orders).await {
                        return Some(end);
                    }
                }
                Err(problem) => {
                    self.core
                        .violation("websocket", Some(self.id), problem.to_string());
                    return Some(self.close(1002, "protocol error").await);
                }
            }
        }
    }

    async fn take(
        &mut self,
        message: WsMessage,
        orders: &mut mpsc::Receiver<LineOrder>,
    ) -> Option<WhyEnded> {
        match message {
            WsMessage::Binary(bytes) => return self.frame(bytes, orders).await,
            WsMessage::Text(text) => {
                let shown = String::from_utf8_lossy(&text).chars().take(100).collect();
                self.core.violation("text_message", Some(self.id), shown);
            }
            WsMessage::Ping(payload) => {
                self.core
                    .lines()
                    .update(self.id, |line| line.websocket_pings += 1);
                let swallowed = self.swallows_pong();
                if !swallowed {
                    ws::encode(Opcode::Pong, &payload, &mut self.out);
                }
                self.core.record(
                    "websocket_ping",
                    Some(self.id),
                    || json!({"swallowed": swallowed}),
                );
            }
            WsMessage::Pong(_) => {}
            WsMessage::Close { code, reason } => {
                ws::encode_close(code.unwrap_or(1000), "", &mut self.out);
                self.flush().await;
                let _ = self.stream.shutdown().await;
                let code = code.map_or_else(|| "no code".to_owned(), |code| code.to_string());
                return Some(format!("closed by the client with {code} {reason}"));
            }
        }
        None
    }

    async fn frame(
        &mut self,
        bytes: Bytes,
        orders: &mut mpsc::Receiver<LineOrder>,
    ) -> Option<WhyEnded> {
        let frame = match Frame::parse(bytes) {
            Ok(frame) => frame,
            Err(problem) => {
                self.core
                    .violation("malformed_frame", Some(self.id), problem.to_string());
                return None;
            }
        };
        match frame.method {
            DATA => {
                if let Some(fault) = self.core.take_fault(Some(self.id), At::Reply, Fault::cuts) {
                    return Some(self.cut(fault, orders).await);
                }
                self.core.take_reply(self.id, &frame);
            }
            CONTROL if frame.header("type") == Some("ping") => self.ping(&frame),
            _ => {
                let kind = frame.header("type").unwrap_or("none");
                let shown = format!("method {}, type {kind}", frame.method);
                self.core.violation("unknown_frame", Some(self.id), shown);
            }
        }
        None
    }

    fn swallows_pong(&self) -> bool {
        let swallow = |fault: &Fault| *fault == Fault::SwallowPongs;
        let fault = self.core.take_fault(Some(self.id), At::Now, swallow);
        fault.is_some()
    }

    fn ping(&mut self, frame: &Frame) {
        self.core
            .lines()
            .update(self.id, |line| line.app_pings += 1);
        if frame.service != SERVICE_ID {
            let shown = format!("ping with service {}", frame.service);
            self.core.violation("wrong_service", Some(self.id), shown);
        }
        let swallowed = self.swallows_pong();
        self.core
            .record("ping_in", Some(self.id), || json!({"swallowed": swallowed}));
        if swallowed {
            return;
        }
        let bent = |fault: &Fault| matches!(fault, Fault::Pong { .. });
        let payload = match self.core.take_fault(Some(self.id), At::Now, bent) {
            Some(Fault::Pong { payload }) => payload,
            _ => json!(self.core.options.client_config).to_string(),
        };
        let payload = (!payload.is_empty()).then(|| Bytes::from(payload));
        self.control("pong", payload);
    }
}
