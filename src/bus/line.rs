//! One connection to the bus, kept up: dials, says why it can't, asks and
//! answers within a time. A connection that is lost takes everything with it
//! that was not written, so nothing leaves late; the NATS client's own
//! reconnecting would keep it.

mod said;
mod turns;

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_nats::{Auth, AuthError, Client, ConnectOptions, Event, StatusCode};
use futures::StreamExt as _;
use prost::bytes::Bytes;
use rand::RngExt as _;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

pub use self::said::BusLineState;
use self::said::{LOST, LineFailure, SILENT, SLEPT_WELL, complaint, not_let_in, unreached};
pub use self::turns::LineTurns;
use self::turns::TakenTurns;
use super::bridge;
use super::nkey::KeyPair;
use super::url::BusUrl;
use crate::clock::{Clock, Millis};
use crate::feishu::backoff;
use crate::feishu::outbound::Outbound;
use crate::text::Text;

/// Two of these unanswered and the connection counts as dead.
const PING_EVERY: Duration = Duration::from_secs(5);
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// The longest pause between dials.
const PAUSE: Duration = Duration::from_secs(10);
/// The pause when only a person can help.
const PAUSE_REFUSED: Duration = Duration::from_secs(30);
/// Questions under way at once.
const MAX_ASKED: usize = 4_096;
/// Messages that were heard and are at work.
const MAX_AT_WORK: usize = 1_024;
const MAX_UNREAD: usize = 4_096;
const MAX_UNWRITTEN: usize = 512;
/// The ticks that compare the clocks, and how far apart two of them mean that
/// the machine slept.
const HEARTBEAT: Duration = Duration::from_secs(1);
const SLEPT: Millis = 5_000;
/// What was said before a stop may take so long to go out.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How long a line that slept is kept to hear what waited for it.
const AFTER_SLEEP: Duration = Duration::from_millis(300);

/// Whom a line is for.
pub struct BusUser {
    pub url: BusUrl,
    pub key: Arc<KeyPair>,
    /// The pass at the time of each dial.
    pub pass: watch::Receiver<String>,
    /// What it hears.
    pub hears: Vec<String>,
    /// What it hears in turn with others.
    pub turns: LineTurns,
}

/// Something that was said on a subject this line hears.
#[derive(Debug, Clone)]
pub struct BusHeard {
    pub subject: String,
    pub reply: Option<String>,
    pub body: Bytes,
}

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BusAnswer {
    Answer(Bytes),
    /// The server knows nobody who listens there.
    Nobody,
    /// Nothing was written.
    Down,
    /// Nobody knows whether it arrived.
    Unknown,
}

/// A line that others may use; cheap to clone.
#[derive(Clone)]
pub struct BusLine {
    shared: Arc<SharedLine>,
}

/// Who waits for answers, by the last part of where they come in. Nothing is
/// an answer that says that nobody listens.
type LineAskers = HashMap<String, mpsc::Sender<Option<Bytes>>>;

struct SharedLine {
    inbox: String,
    client: Mutex<Option<Client>>,
    asked: Mutex<LineAskers>,
    state: watch::Sender<BusLineState>,
    redial: tokio::sync::Notify,
}

/// A question that waits for answers; forgotten when it is dropped.
pub struct LineQuestion<'a> {
    shared: &'a SharedLine,
    token: String,
    answers: mpsc::Receiver<Option<Bytes>>,
}

impl LineQuestion<'_> {
    /// The next answer, in that time.
    pub async fn next(&mut self, within: Duration) -> BusAnswer {
        match tokio::time::timeout(within, self.answers.recv()).await {
            Ok(Some(Some(body))) => BusAnswer::Answer(body),
            Ok(Some(None)) => BusAnswer::Nobody,
            Ok(None) | Err(_) => BusAnswer::Unknown,
        }
    }
}

impl Drop for LineQuestion<'_> {
    fn drop(&mut self) {
        self.shared.asked().remove(&self.token);
    }
}

impl SharedLine {
    fn asked(&self) -> MutexGuard<'_, LineAskers> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn client(&self) -> Option<Client> {
        let client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        let up = |client: &&Client| {
            client.connection_state() == async_nats::connection::State::Connected
        };
        client.as_ref().filter(up).cloned()
    }

    fn set_client(&self, client: Option<Client>) {
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = client;
    }

    /// Whoever asked over a connection that is gone hears nothing any more.
    fn forget_asked(&self) {
        self.asked().clear();
    }
}

impl BusLine {
    /// A line that is not up yet; [`run`] makes it so.
    pub fn new(inbox: &str) -> Self {
        Self {
            shared: Arc::new(SharedLine {
                inbox: inbox.to_owned(),
                client: Mutex::default(),
                asked: Mutex::default(),
                state: watch::channel(BusLineState::Dialing).0,
                redial: tokio::sync::Notify::new(),
            }),
        }
    }

    pub fn state(&self) -> watch::Receiver<BusLineState> {
        self.shared.state.subscribe()
    }

    /// What the first dial, or the one under way, led to.
    pub async fn settled(&self) -> BusLineState {
        let mut state = self.state();
        let settled = state.wait_for(|state| *state != BusLineState::Dialing);
        settled.await.map_or(BusLineState::Dialing, |it| it.clone())
    }

    /// Leaves this connection for a new one: it looks alive and is not.
    pub fn redial(&self) {
        self.shared.redial.notify_one();
    }

    /// Asks and waits for the answer, no longer than `within`.
    pub async fn ask(&self, subject: &str, body: Vec<u8>, within: Duration) -> BusAnswer {
        let asking = async {
            match self.put(subject, body, 1).await {
                Some(mut asking) => asking.next(within).await,
                None => BusAnswer::Down,
            }
        };
        let answered = tokio::time::timeout(within, asking).await;
        answered.unwrap_or(BusAnswer::Unknown)
    }

    /// Puts a question to which up to `most` answers are heard; `None` where
    /// nothing was written.
    pub async fn put(&self, subject: &str, body: Vec<u8>, most: usize) -> Option<LineQuestion<'_>> {
        let client = self.shared.client()?;
        let token = format!("{:016x}", rand::random::<u64>());
        let (sender, answers) = mpsc::channel(most);
        {
            let mut asked = self.shared.asked();
            if asked.len() >= MAX_ASKED {
                return None;
            }
            asked.insert(token.clone(), sender);
        }
        let reply = format!("{}.{token}", self.shared.inbox);
        let asking = LineQuestion {
            shared: &self.shared,
            token,
            answers,
        };
        let sent = client.publish_with_reply(subject.to_owned(), reply, body.into());
        match sent.await {
            Ok(()) => Some(asking),
            Err(why) => {
                debug!("nothing was sent over the bus: {why}");
                None
            }
        }
    }

    /// Says something that nobody has to answer. False where it was not sent.
    pub async fn tell(&self, subject: &str, body: Vec<u8>) -> bool {
        let Some(client) = self.shared.client() else {
            return false;
        };
        let sent = client.publish(subject.to_owned(), body.into());
        let sent = tokio::time::timeout(Duration::from_secs(1), sent).await;
        matches!(sent, Ok(Ok(())))
    }
}

/// Keeps the line up until `stop`, and hands what it hears to `handler`.
pub async fn run<H, F>(
    line: BusLine,
    member: BusUser,
    outbound: Outbound,
    clock: Clock,
    handler: H,
    stop: CancellationToken,
) where
    H: Fn(BusHeard) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let handler = Arc::new(handler);
    let at_work = Arc::new(Semaphore::new(MAX_AT_WORK));
    let (mut failures, mut connects) = (0, 0);
    let mut passes = member.pass.clone();
    loop {
        line.shared.state.send_replace(BusLineState::Dialing);
        let dialed = tokio::select! {
            () = stop.cancelled() => return,
            dialed = dial(&member, &mut passes, &outbound, line.shared.inbox.as_str()) => dialed,
        };
        let (why, refused) = match dialed {
            Ok(mut up) => {
                failures = 0;
                connects += 1;
                let server = up.client.server_info().version;
                info!("connected to the bus, version {server}");
                line.shared.set_client(Some(up.client.clone()));
                line.shared.state.send_replace(BusLineState::Up {
                    since: Instant::now(),
                    connects,
                    server,
                });
                let why = tokio::select! {
                    () = stop.cancelled() => None,
                    why = up.hear(&line, &member.turns, &handler, &at_work, clock) => Some(why),
                };
                line.shared.set_client(None);
                line.shared.forget_asked();
                let Some(why) = why else {
                    // What was just said still goes out, all the way to the server.
                    let last = async {
                        let _ = up.client.flush().await;
                        up.into_bridge().ended().await;
                    };
                    let _ = tokio::time::timeout(LAST_WORDS, last).await;
                    return;
                };
                info!("the bus was lost: {}", why.en);
                (why, false)
            }
            Err(failed) => {
                warn!("not connected to the bus: {}", failed.why.en);
                failures += 1;
                (failed.why, failed.refused)
            }
        };
        let roll = rand::rng().random();
        let pause = if refused {
            PAUSE_REFUSED
        } else {
            backoff::delay(failures, PAUSE, roll)
        };
        line.shared.state.send_replace(BusLineState::Waiting {
            until: Instant::now() + pause,
            why,
            refused,
        });
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
            () = changed(&mut passes), if refused => {}
        }
    }
}

/// Returns when there is another pass to try than at the last dial.
async fn changed(pass: &mut watch::Receiver<String>) {
    if pass.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// A connection that stands.
struct Up {
    client: Client,
    inbox: async_nats::Subscriber,
    heard: Vec<async_nats::Subscriber>,
    turns: TakenTurns,
    events: mpsc::Receiver<Event>,
    bridge: bridge::Bridge,
}

async fn dial(
    member: &BusUser,
    passes: &mut watch::Receiver<String>,
    outbound: &Outbound,
    inbox: &str,
) -> Result<Up, LineFailure> {
    let (key, pass) = (Arc::clone(&member.key), passes.borrow_and_update().clone());
    let bridge = bridge::open(&member.url, outbound)
        .await
        .map_err(|why| unreached(&why))?;
    let (events, heard) = mpsc::channel(64);
    let used = AtomicBool::new(false);
    let options = ConnectOptions::with_auth_callback(move |nonce| {
        // The client signs in once. Its own way back, with all it has kept, is
        // shut; a new one is made instead.
        let first = |_: &Vec<u8>| !used.swap(true, Ordering::SeqCst);
        let auth = key.sign_nonce(&nonce).filter(first).map(|signature| {
            let mut auth = Auth::new();
            auth.jwt = Some(pass.clone());
            auth.signature = Some(signature);
            auth
        });
        let auth = auth.ok_or_else(|| AuthError::new("one connection, and a plain nonce"));
        std::future::ready(auth)
    })
    .name("nod")
    .ping_interval(PING_EVERY)
    .connection_timeout(CONNECT_WITHIN)
    .max_reconnects(1)
    .ignore_discovered_servers()
    .subscription_capacity(MAX_UNREAD)
    .client_capacity(MAX_UNWRITTEN)
    .event_callback(move |event| {
        let events = events.clone();
        async move {
            // The first that tells of the end is enough.
            let _ = events.try_send(event);
        }
    });
    let client = options
        .connect(bridge.address.as_str())
        .await
        .map_err(|why| not_let_in(&why))?;
    let lost = || LineFailure {
        why: LOST,
        refused: false,
    };
    let own = client.subscribe(format!("{inbox}.*"));
    let inbox = own.await.map_err(|_| lost())?;
    let mut subscribed = Vec::with_capacity(member.hears.len());
    for subject in &member.hears {
        let subscription = client.subscribe(subject.clone()).await;
        subscribed.push(subscription.map_err(|_| lost())?);
    }
    let turns = TakenTurns::begin(&client, &member.turns).await;
    Ok(Up {
        turns: turns.ok_or_else(lost)?,
        client,
        inbox,
        heard: subscribed,
        events: heard,
        bridge,
    })
}

impl Up {
    /// The way to the server alone: without the rest the client closes its end.
    fn into_bridge(self) -> bridge::Bridge {
        self.bridge
    }

    /// Hears until the connection ends, and says why it did.
    async fn hear<H, F>(
        &mut self,
        line: &BusLine,
        turns: &LineTurns,
        handler: &Arc<H>,
        at_work: &Arc<Semaphore>,
        clock: Clock,
    ) -> Text
    where
        H: Fn(BusHeard) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let mut heard = futures::stream::select_all(self.heard.drain(..));
        let mut last = clock.now();
        let (mut told, mut woke) = (None, None);
        loop {
            tokio::select! {
                biased;
                event = self.events.recv() => match event {
                    Some(Event::ServerError(why)) => {
                        warn!("the bus complains: {why}");
                        told = Some(complaint(&why.to_string()));
                    }
                    Some(Event::Disconnected | Event::Closed) | None => {
                        return told.unwrap_or(LOST);
                    }
                    Some(Event::SlowConsumer(_)) => warn!("the bus brought more than was read"),
                    Some(_) => {}
                },
                message = self.inbox.next() => match message {
                    Some(message) => answered(&line.shared, message),
                    None => return told.unwrap_or(LOST),
                },
                message = heard.next(), if !heard.is_empty() => match message {
                    Some(message) => work(handler, at_work, message),
                    None => return told.unwrap_or(LOST),
                },
                turn = self.turns.next() => match turn {
                    Some(message) => work(handler, at_work, message),
                    None => if self.turns.follow(turns).await.is_none() {
                        return told.unwrap_or(LOST);
                    },
                },
                () = line.shared.redial.notified() => return SILENT,
                () = tokio::time::sleep(if woke.is_some() { AFTER_SLEEP } else { HEARTBEAT }) => {}
            }
            let now = clock.now();
            if now - last > SLEPT {
                // What waited meanwhile is still heard, and told to be late.
                woke = woke.or(Some(tokio::time::Instant::now()));
            }
            last = now;
            if woke.is_some_and(|at| at.elapsed() >= AFTER_SLEEP) {
                return SLEPT_WELL;
            }
        }
    }
}

/// Has something that was heard dealt with, where that can be done at once.
fn work<H, F>(handler: &Arc<H>, at_work: &Arc<Semaphore>, message: async_nats::Message)
where
    H: Fn(BusHeard) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let Ok(permit) = Arc::clone(at_work).try_acquire_owned() else {
        warn!("the bus brought more than can be dealt with at once");
        return;
    };
    let work = handler(BusHeard {
        subject: message.subject.to_string(),
        reply: message.reply.map(|reply| reply.to_string()),
        body: message.payload,
    });
    tokio::spawn(async move {
        work.await;
        drop(permit);
    });
}

fn answered(shared: &SharedLine, message: async_nats::Message) {
    let token = message.subject.rsplit('.').next().unwrap_or_default();
    let nobody = message.status == Some(StatusCode::NO_RESPONDERS);
    if let Some(sender) = shared.asked().get(token) {
        // Whoever asked has enough, or has gone.
        let _ = sender.try_send((!nobody).then_some(message.payload));
    }
}
