//! Drives a [`Link`] over a real WebSocket: one task, one loop. Handlers run
//! in tasks of their own, so a slow one never delays a ping or another reply.

use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, SinkExt as _, StreamExt as _};
use prost::bytes::Bytes;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::{mpsc, watch};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

use super::endpoint::{DialError, Dialed, Dialer};
use super::link::{
    Incoming, Link, LinkCounts, LinkStep, Now, Phase, PushAnswer, PushDelivery, PushTicket,
};
use super::outbound::Stream;
use crate::text::{Text, system};

const WRITE_WITHIN: Duration = Duration::from_secs(5);
const DRAIN_WITHIN: Duration = Duration::from_secs(2);
/// How many messages are taken from the socket before replies are flushed: a
/// flush costs a system call, and the peer works on while the next are read.
const BATCH: usize = 16;

fn both() -> Now {
    Now {
        mono: Instant::now(),
        wall: SystemTime::now(),
    }
}

/// Where the connection stands and what went through it, for `status`.
#[derive(Debug, Clone)]
pub struct LinkView {
    pub phase: Phase,
    pub counts: LinkCounts,
}

/// What a connection needs besides its dialer.
pub struct Wiring<H> {
    /// Answers one push; its JSON is given as it came.
    pub handler: H,
    /// Whether somebody waits for a tap.
    pub hot: watch::Receiver<bool>,
    pub view: watch::Sender<LinkView>,
    /// Shown for a click whose handler takes too long.
    pub overdue_answer: Vec<u8>,
    /// Shown for a click whose handler failed.
    pub failed_answer: Vec<u8>,
    pub stop: CancellationToken,
}

/// The view before the first dial.
pub fn first_view() -> LinkView {
    LinkView {
        phase: Phase::Dialing { why: None },
        counts: LinkCounts::default(),
    }
}

/// Holds the connection until `stop`, then answers what is open and closes it.
pub async fn run<H, F>(dialer: Dialer, wiring: Wiring<H>)
where
    H: Fn(PushDelivery) -> F + Send + Sync + 'static,
    F: Future<Output = PushAnswer> + Send + 'static,
{
    let (answers, answered) = mpsc::channel(1_024);
    let driver = LinkDriver {
        link: Link::new(both(), rand::random(), wiring.overdue_answer),
        dialer: Arc::new(dialer),
        dialing: FuturesUnordered::new(),
        socket: None,
        silent: None,
        unflushed: false,
        handler: Arc::new(wiring.handler),
        failed_answer: wiring.failed_answer.into(),
        answers,
        view: wiring.view,
    };
    driver.run(answered, wiring.hot, wiring.stop).await;
}

type Dialing = Pin<Box<dyn Future<Output = Result<Dialed, DialError>> + Send>>;

struct LinkDriver<H> {
    link: Link,
    dialer: Arc<Dialer>,
    /// The first that gets through counts; the others are given up.
    dialing: FuturesUnordered<Dialing>,
    socket: Option<WebSocketStream<Stream>>,
    /// One that fell silent, until another stands. Feishu takes it for alive and
    /// hands taps to it, and a reset gets through only once there is a network.
    silent: Option<WebSocketStream<Stream>>,
    unflushed: bool,
    handler: Arc<H>,
    failed_answer: Arc<[u8]>,
    answers: mpsc::Sender<(PushTicket, PushAnswer)>,
    view: watch::Sender<LinkView>,
}

impl<H, F> LinkDriver<H>
where
    H: Fn(PushDelivery) -> F + Send + Sync + 'static,
    F: Future<Output = PushAnswer> + Send + 'static,
{
    async fn run(
        mut self,
        mut answered: mpsc::Receiver<(PushTicket, PushAnswer)>,
        mut hot: watch::Receiver<bool>,
        stop: CancellationToken,
    ) {
        let mut batch = Vec::with_capacity(BATCH);
        self.link.set_hot(*hot.borrow_and_update(), both());
        loop {
            self.carry_out().await;
            let tick = tokio::time::Instant::from_std(self.link.next_tick());
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                _ = answered.recv_many(&mut batch, BATCH) => {
                    let now = both();
                    for (ticket, answer) in batch.drain(..) {
                        if !self.link.answer(ticket, &answer, now) {
                            debug!("a handler's answer came too late to be shown");
                        }
                    }
                }
                message = next_message(&mut self.socket) => self.take(message),
                Some(dialed) = self.dialing.next(), if !self.dialing.is_empty() => {
                    self.dialed(dialed);
                }
                changed = hot.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    let is_hot = *hot.borrow_and_update();
                    self.link.set_hot(is_hot, both());
                }
                () = tokio::time::sleep_until(tick) => self.link.tick(both()),
            }
        }
        self.close(answered).await;
    }

    /// Does every step the link asks for and flushes once at the end.
    async fn carry_out(&mut self) {
        while let Some(step) = self.link.step() {
            match step {
                LinkStep::Dial => {
                    let dialer = Arc::clone(&self.dialer);
                    let dial = async move { dialer.dial().await };
                    self.dialing.push(Box::pin(dial));
                }
                LinkStep::Send(bytes) => self.write(Message::Binary(bytes)).await,
                LinkStep::Ping => self.write(Message::Ping(Bytes::new())).await,
                LinkStep::Deliver(delivery) => self.deliver(delivery).await,
                LinkStep::HangUp => self.hang_up(),
                LinkStep::Note(note) => warn!("{note}"),
            }
        }
        self.flush().await;
        self.publish();
    }

    /// Hands a push out. Most handlers have nothing to wait for: they are
    /// answered from here, and only the others cost a task of their own.
    async fn deliver(&mut self, delivery: PushDelivery) {
        let handler = Arc::clone(&self.handler);
        let failed = Arc::clone(&self.failed_answer);
        let ticket = delivery.ticket;
        let mut work = Box::pin(async move {
            let work = AssertUnwindSafe(async move { handler(delivery).await });
            work.catch_unwind().await.unwrap_or_else(|_| {
                error!("a handler panicked; its push was answered so that it is not repeated");
                PushAnswer::Show(failed.to_vec())
            })
        });
        if let Poll::Ready(answer) = futures::poll!(&mut work) {
            self.link.answer(ticket, &answer, both());
            return;
        }
        let answers = self.answers.clone();
        tokio::spawn(async move {
            // The receiver lives as long as the connection; after that nobody
            // can be answered any more.
            let _ = answers.send((ticket, work.await)).await;
        });
    }

    async fn write(&mut self, message: Message) {
        let Some(socket) = &mut self.socket else {
            return;
        };
        let written = tokio::time::timeout(WRITE_WITHIN, socket.feed(message)).await;
        self.unflushed = true;
        self.check(written);
    }

    async fn flush(&mut self) {
        if !std::mem::take(&mut self.unflushed) {
            return;
        }
        let Some(socket) = &mut self.socket else {
            return;
        };
        let flushed = tokio::time::timeout(WRITE_WITHIN, socket.flush()).await;
        self.check(flushed);
    }

    fn check(
        &mut self,
        written: Result<Result<(), tungstenite::Error>, tokio::time::error::Elapsed>,
    ) {
        match written {
            Ok(Ok(())) => {}
            Ok(Err(why)) => drop(self.lost(loss(&why))),
            Err(_) => {
                self.silent = self.lost(Text::new(
                    "五秒内没有数据能送出",
                    "the connection took nothing for five seconds",
                ));
            }
        }
    }

    /// Takes what came and whatever else is already there, so that a burst is
    /// answered with one flush.
    fn take(&mut self, first: Option<Result<Message, tungstenite::Error>>) {
        let now = both();
        let mut next = Some(first);
        let mut taken = 0;
        while let Some(message) = next {
            match message {
                Some(Ok(Message::Binary(bytes))) => {
                    self.link.received(Incoming::Binary(bytes), now);
                }
                Some(Ok(Message::Text(_))) => self.link.received(Incoming::Text, now),
                Some(Ok(Message::Ping(_))) => {
                    // tungstenite queues the pong; it leaves with the next flush.
                    self.unflushed = true;
                    self.link.received(Incoming::Ping, now);
                }
                Some(Ok(Message::Pong(_))) => self.link.received(Incoming::Pong, now),
                Some(Ok(Message::Close(frame))) => {
                    let code = frame.map_or(1_005, |f| u16::from(f.code));
                    return drop(self.lost(Text::made(
                        format!("服务器关闭了连接（代码 {code}）"),
                        format!("the server closed the connection (code {code})"),
                    )));
                }
                Some(Ok(Message::Frame(_))) => {}
                Some(Err(why)) => return drop(self.lost(loss(&why))),
                None => return drop(self.lost(ENDED)),
            }
            taken += 1;
            next = match &mut self.socket {
                Some(socket) if taken < BATCH => socket.next().now_or_never(),
                _ => None,
            };
        }
    }

    fn dialed(&mut self, dialed: Result<Dialed, DialError>) {
        match dialed {
            Ok(dialed) => {
                self.dialing.clear();
                info!("connected to {}", self.dialer.domain.name());
                self.socket = Some(dialed.socket);
                if let Some(silent) = self.silent.take() {
                    silent.get_ref().reset_on_close();
                }
                self.link.dialed(dialed.service, dialed.settings, both());
            }
            Err(why) => {
                warn!("not connected: {why}");
                self.link.dial_failed(why.retry(), why.text(), both());
            }
        }
    }

    /// What is left of the connection.
    fn lost(&mut self, why: Text) -> Option<WebSocketStream<Stream>> {
        let socket = self.socket.take()?;
        info!("connection lost: {}", why.en);
        self.dialer.outbound.forget_idle();
        self.link.lost(why, both());
        Some(socket)
    }

    fn hang_up(&mut self) {
        self.silent = self.socket.take();
        self.dialer.outbound.forget_idle();
        if let Phase::Waiting { why, .. } = self.link.phase() {
            info!("connection lost: {}", why.en);
        }
    }

    fn publish(&self) {
        self.view.send_if_modified(|view| {
            let phase = self.link.phase();
            let changed = view.phase != phase;
            view.phase = phase;
            view.counts = self.link.counts;
            changed
        });
    }

    /// Lets running handlers answer, then says goodbye: a peer that is told
    /// stops routing clicks here at once.
    async fn close(mut self, mut answered: mpsc::Receiver<(PushTicket, PushAnswer)>) {
        let until = Instant::now() + DRAIN_WITHIN;
        while self.link.unanswered() > 0 && self.socket.is_some() {
            let left = until.saturating_duration_since(Instant::now());
            match tokio::time::timeout(left, answered.recv()).await {
                Ok(Some((ticket, answer))) => {
                    self.link.answer(ticket, &answer, both());
                    self.carry_out().await;
                }
                Ok(None) | Err(_) => break,
            }
        }
        if let Some(mut socket) = self.socket.take() {
            let goodbye = CloseFrame {
                code: CloseCode::Normal,
                reason: "".into(),
            };
            let closing = async {
                socket.close(Some(goodbye)).await?;
                while socket.next().await.transpose()?.is_some() {}
                Ok::<_, tungstenite::Error>(())
            };
            let _ = tokio::time::timeout(DRAIN_WITHIN, closing).await;
        }
    }
}

async fn next_message(
    socket: &mut Option<WebSocketStream<Stream>>,
) -> Option<Result<Message, tungstenite::Error>> {
    match socket {
        Some(socket) => socket.next().await,
        None => std::future::pending().await,
    }
}

const ENDED: Text = Text::new("连接结束", "the connection ended");

fn loss(why: &tungstenite::Error) -> Text {
    match why {
        tungstenite::Error::Io(e) => {
            let why = system::io(e);
            Text::made(
                format!("连接中断：{}", why.zh),
                format!("the connection broke: {}", why.en),
            )
        }
        tungstenite::Error::Capacity(_) => Text::new(
            "收到的消息大于任何事件",
            "a message was larger than any event can be",
        ),
        tungstenite::Error::Protocol(e) => Text::made(
            "WebSocket 协议出错".to_owned(),
            format!("the WebSocket was misused: {e}"),
        ),
        _ => ENDED,
    }
}
