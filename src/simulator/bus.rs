//! A small NATS server: the text protocol, passes under an operator's word for
//! its account, rights filled in from templates, and "nobody listens" told at
//! once. Reads keys and passes by itself, so that it can disagree with those
//! who make them. On request it is hostile: it alters, repeats or keeps back.

mod keys;
mod rights;
mod session;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prost::bytes::Bytes;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::keys::SignedAccount;
pub use self::rights::BusRefusal;
use self::rights::ClientRights;

/// What a hostile bus does with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageFate {
    Pass,
    /// Nobody gets it, and nobody is told.
    Withhold,
    Alter(Vec<u8>),
    Twice,
}

/// Judges each message by its subject and its bytes.
pub type Meddle = Box<dyn FnMut(&str, &[u8]) -> MessageFate + Send>;

/// A message that went through.
#[derive(Debug, Clone)]
pub struct Passed {
    pub subject: String,
    pub reply: Option<String>,
    pub body: Bytes,
}

/// A running bus; stops when dropped.
pub struct Bus {
    address: SocketAddr,
    shared: Arc<SharedBus>,
    stop: CancellationToken,
}

const MAX_PASSED: usize = 10_000;
/// What a client that does not read may leave lying.
const MAX_UNSENT: usize = 8_192;

struct SharedBus {
    state: Mutex<BusState>,
}

struct BusState {
    account: SignedAccount,
    clients: HashMap<u64, Client>,
    next: u64,
    turn: usize,
    passed: Vec<Passed>,
    refusals: Vec<BusRefusal>,
    meddle: Option<Meddle>,
}

struct Client {
    out: mpsc::Sender<Bytes>,
    end: CancellationToken,
    rights: ClientRights,
    subscriptions: HashMap<String, Subscription>,
}

struct Subscription {
    pattern: String,
    group: Option<String>,
}

impl Bus {
    /// Listens on `address` and trusts whoever the operator's word for the
    /// account names; whoever the `system` account signs for may give it another.
    pub async fn start(
        address: SocketAddr,
        operator: &str,
        system: &str,
        account: &str,
    ) -> io::Result<Self> {
        let account = SignedAccount::read(account, operator, system).map_err(io::Error::other)?;
        let listener = TcpListener::bind(address).await?;
        let bus = Self {
            address: listener.local_addr()?,
            shared: Arc::new(SharedBus {
                state: Mutex::new(BusState {
                    account,
                    clients: HashMap::new(),
                    next: 0,
                    turn: 0,
                    passed: Vec::new(),
                    refusals: Vec::new(),
                    meddle: None,
                }),
            }),
            stop: CancellationToken::new(),
        };
        let (shared, stop) = (Arc::clone(&bus.shared), bus.stop.clone());
        tokio::spawn(async move {
            loop {
                let accepted = tokio::select! {
                    () = stop.cancelled() => return,
                    accepted = listener.accept() => accepted,
                };
                if let Ok((stream, _)) = accepted {
                    let _ = stream.set_nodelay(true);
                    let end = stop.child_token();
                    tokio::spawn(session::serve(Arc::clone(&shared), stream, end));
                }
            }
        });
        Ok(bus)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    /// Whoever is connected.
    pub fn clients(&self) -> usize {
        self.shared.lock().clients.len()
    }

    /// What went through so far, the last of it.
    pub fn passed(&self) -> Vec<Passed> {
        self.shared.lock().passed.clone()
    }

    /// Who was not let in, or not allowed to speak or listen.
    pub fn refusals(&self) -> Vec<BusRefusal> {
        self.shared.lock().refusals.clone()
    }

    pub fn meddle(&self, meddle: Option<Meddle>) {
        self.shared.lock().meddle = meddle;
    }

    /// The operator's word for the account, as it stands.
    pub fn account(&self) -> String {
        self.shared.lock().account.word.clone()
    }

    /// Says something as if `subject` had been said by one of the clients.
    pub fn inject(&self, subject: &str, reply: Option<&str>, body: &[u8]) -> bool {
        self.shared.route(subject, reply, &[], body)
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl SharedBus {
    fn lock(&self) -> MutexGuard<'_, BusState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a message to everybody who listens, and to one of each group.
    /// False where nobody does.
    fn route(&self, subject: &str, reply: Option<&str>, head: &[u8], body: &[u8]) -> bool {
        let mut state = self.lock();
        if state.passed.len() >= MAX_PASSED {
            state.passed.drain(..MAX_PASSED / 2);
        }
        state.passed.push(Passed {
            subject: subject.to_owned(),
            reply: reply.map(str::to_owned),
            body: Bytes::copy_from_slice(body),
        });
        let fate = state
            .meddle
            .as_mut()
            .map_or(MessageFate::Pass, |meddle| meddle(subject, body));
        let (body, times) = match &fate {
            MessageFate::Withhold => return true,
            MessageFate::Pass => (body, 1),
            MessageFate::Twice => (body, 2),
            MessageFate::Alter(other) => (other.as_slice(), 1),
        };
        (0..times).fold(false, |heard, _| {
            state.deliver(subject, reply, head, body) || heard
        })
    }
}

impl BusState {
    /// Takes the operator's newer word for the account; whose pass no longer
    /// counts is cut off.
    fn update(&mut self, word: &str) -> Result<(), String> {
        self.account = self.account.updated(word)?;
        for client in self.clients.values() {
            if self.account.revokes(&client.rights) {
                let _ = client
                    .out
                    .try_send("-ERR 'Authentication Revoked'\r\n".into());
                client.end.cancel();
            }
        }
        Ok(())
    }

    /// What the server itself answers on this subject.
    fn system(&mut self, subject: &str, body: &[u8]) -> Option<String> {
        if subject == "$SYS.REQ.CLAIMS.UPDATE" {
            let told = self.update(&String::from_utf8_lossy(body));
            return Some(match told {
                Ok(()) => json!({"data": {"code": 200, "message": "jwt updated"}}).to_string(),
                Err(why) => json!({"error": {"code": 500, "description": why}}).to_string(),
            });
        }
        let account = subject.strip_prefix("$SYS.REQ.ACCOUNT.")?;
        let account = account.strip_suffix(".CLAIMS.LOOKUP")?;
        let word = self.account.word.as_str();
        Some(if self.account.is(account) { word } else { "" }.to_owned())
    }

    fn deliver(&mut self, subject: &str, reply: Option<&str>, head: &[u8], body: &[u8]) -> bool {
        let mut alone = Vec::new();
        let mut groups: HashMap<String, Vec<(u64, String)>> = HashMap::new();
        for (id, client) in &self.clients {
            for (sid, one) in &client.subscriptions {
                if !rights::covers(&one.pattern, subject) {
                    continue;
                }
                match &one.group {
                    None => alone.push((*id, sid.clone())),
                    Some(group) => {
                        let group = groups.entry(group.clone()).or_default();
                        group.push((*id, sid.clone()));
                    }
                }
            }
        }
        for mut members in groups.into_values() {
            members.sort();
            self.turn = self.turn.wrapping_add(1);
            alone.push(members.swap_remove(self.turn % members.len()));
        }
        for (id, sid) in &alone {
            if let Some(client) = self.clients.get_mut(id) {
                client.rights.was_asked(reply);
                client.send(subject, sid, reply, head, body);
            }
        }
        !alone.is_empty()
    }
}

impl Client {
    fn send(&self, subject: &str, sid: &str, reply: Option<&str>, head: &[u8], body: &[u8]) {
        let reply = reply.map_or(String::new(), |reply| format!("{reply} "));
        let (all, sizes) = if head.is_empty() {
            ("MSG", body.len().to_string())
        } else {
            (
                "HMSG",
                format!("{} {}", head.len(), head.len() + body.len()),
            )
        };
        let mut bytes = format!("{all} {subject} {sid} {reply}{sizes}\r\n").into_bytes();
        bytes.extend_from_slice(head);
        bytes.extend_from_slice(body);
        bytes.extend_from_slice(b"\r\n");
        if self.out.try_send(bytes.into()).is_err() {
            self.end.cancel();
        }
    }
}
