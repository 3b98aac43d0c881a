//! One connection to the bus: greeting, pass, then the text protocol.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prost::bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::rights::BusRefusal;
use super::{Client, MAX_UNSENT, SharedBus, Subscription};

/// The version that the bus says it is.
pub(super) const VERSION: &str = "2.12.6";
const MAX_PAYLOAD: usize = 1024 * 1024;
const MAX_LINE: u64 = 32 * 1024;
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

fn seconds() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(i64::MAX))
}

pub(super) async fn serve(shared: Arc<SharedBus>, stream: TcpStream, end: CancellationToken) {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    let greeting = greet(&shared, &mut read, &mut write, &end);
    let Ok(Some((id, out))) = tokio::time::timeout(CONNECT_WITHIN, greeting).await else {
        return;
    };
    let mut session = BusSession {
        shared: Arc::clone(&shared),
        id,
    };
    let until = session.until();
    tokio::select! {
        () = session.read(&mut read) => {}
        () = pump(out, &mut write, end.clone()) => {}
        () = expiry(until) => {
            let _ = write.write_all(b"-ERR 'User Authentication Expired'\r\n").await;
        }
    }
    shared.lock().clients.remove(&id);
}

/// Writes what is to be sent; what is there when the end comes still goes out.
async fn pump(mut out: mpsc::Receiver<Bytes>, write: &mut OwnedWriteHalf, end: CancellationToken) {
    loop {
        let bytes = tokio::select! {
            bytes = out.recv() => bytes,
            () = end.cancelled() => {
                while let Ok(bytes) = out.try_recv() {
                    let _ = write.write_all(&bytes).await;
                }
                return;
            }
        };
        let Some(bytes) = bytes else { return };
        if write.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

async fn expiry(until: i64) {
    loop {
        let left = until.saturating_sub(seconds());
        if left <= 0 {
            return;
        }
        let left = u64::try_from(left.min(3_600)).unwrap_or(1);
        tokio::time::sleep(Duration::from_secs(left)).await;
    }
}

async fn greet(
    shared: &Arc<SharedBus>,
    read: &mut BufReader<OwnedReadHalf>,
    write: &mut OwnedWriteHalf,
    end: &CancellationToken,
) -> Option<(u64, mpsc::Receiver<Bytes>)> {
    let nonce = format!("{:032x}", rand::random::<u128>());
    let info = json!({
        "server_id": "NOD", "server_name": "nod", "version": VERSION, "go": "none",
        "host": "127.0.0.1", "port": 4222, "headers": true, "auth_required": true,
        "max_payload": MAX_PAYLOAD, "proto": 1, "nonce": nonce,
    });
    let info = format!("INFO {info}\r\n");
    write.write_all(info.as_bytes()).await.ok()?;
    let line = line(read).await?;
    let (verb, rest) = line.split_once(' ')?;
    if !verb.eq_ignore_ascii_case("CONNECT") {
        return None;
    }
    let connect: Value = serde_json::from_str(rest).ok()?;
    let text = |field: &str| connect[field].as_str().unwrap_or_default();
    let admitted = {
        let mut state = shared.lock();
        let rights = state
            .account
            .admit(text("jwt"), text("sig"), &nonce, seconds());
        match rights {
            Err(why) => {
                state.refusals.push(BusRefusal::NotLetIn(why));
                None
            }
            Ok(rights) => {
                let (out, unsent) = mpsc::channel(MAX_UNSENT);
                state.next += 1;
                let id = state.next;
                let client = Client {
                    out,
                    end: end.clone(),
                    rights,
                    subscriptions: HashMap::new(),
                };
                state.clients.insert(id, client);
                Some((id, unsent))
            }
        }
    };
    if admitted.is_none() {
        let _ = write.write_all(b"-ERR 'Authorization Violation'\r\n").await;
    }
    admitted
}

async fn line(read: &mut BufReader<OwnedReadHalf>) -> Option<String> {
    let mut line = String::new();
    let mut limited = read.take(MAX_LINE);
    limited.read_line(&mut line).await.ok()?;
    line.ends_with('\n')
        .then(|| line.trim_end_matches(['\r', '\n']).to_owned())
}

struct BusSession {
    shared: Arc<SharedBus>,
    id: u64,
}

impl BusSession {
    fn until(&self) -> i64 {
        let state = self.shared.lock();
        let client = state.clients.get(&self.id);
        client.map_or(0, |client| client.rights.until)
    }

    async fn read(&mut self, read: &mut BufReader<OwnedReadHalf>) {
        while let Some(line) = line(read).await {
            let mut words = line.split_ascii_whitespace();
            let verb = words.next().unwrap_or_default().to_ascii_uppercase();
            let words: Vec<&str> = words.collect();
            let goes_on = match verb.as_str() {
                "PING" => self.say("PONG\r\n"),
                "PONG" | "" => true,
                "SUB" => self.subscribe(&words),
                "UNSUB" => self.unsubscribe(&words),
                "PUB" | "HPUB" => self.publish(read, &words, verb == "HPUB").await,
                _ => {
                    self.say("-ERR 'Unknown Protocol Operation'\r\n");
                    false
                }
            };
            if !goes_on {
                return;
            }
        }
    }

    fn say(&self, text: &str) -> bool {
        let state = self.shared.lock();
        let client = state.clients.get(&self.id);
        client.is_some_and(|client| client.out.try_send(text.to_owned().into()).is_ok())
    }

    fn subscribe(&self, words: &[&str]) -> bool {
        let (pattern, group, sid) = match words {
            [pattern, sid] => (*pattern, None, *sid),
            [pattern, group, sid] => (*pattern, Some((*group).to_owned()), *sid),
            _ => return false,
        };
        let mut state = self.shared.lock();
        let Some(client) = state.clients.get_mut(&self.id) else {
            return false;
        };
        if client.rights.may_subscribe(pattern) {
            let subscription = Subscription {
                pattern: pattern.to_owned(),
                group,
            };
            client.subscriptions.insert(sid.to_owned(), subscription);
            return true;
        }
        let told = format!("-ERR 'Permissions Violation for Subscription to \"{pattern}\"'\r\n");
        let _ = client.out.try_send(told.into());
        state
            .refusals
            .push(BusRefusal::Subscribe(pattern.to_owned()));
        true
    }

    fn unsubscribe(&self, words: &[&str]) -> bool {
        let mut state = self.shared.lock();
        if let (Some(client), [sid]) = (state.clients.get_mut(&self.id), words) {
            client.subscriptions.remove(*sid);
        }
        true
    }

    async fn publish(
        &self,
        read: &mut BufReader<OwnedReadHalf>,
        words: &[&str],
        headed: bool,
    ) -> bool {
        let (names, sizes) = words.split_at(words.len().saturating_sub(1 + usize::from(headed)));
        let sizes: Vec<usize> = sizes.iter().filter_map(|size| size.parse().ok()).collect();
        let (head, all) = match (headed, sizes.as_slice()) {
            (false, [all]) => (0, *all),
            (true, [head, all]) if head <= all => (*head, *all),
            _ => return false,
        };
        let (subject, reply) = match names {
            [subject] => (*subject, None),
            [subject, reply] => (*subject, Some(*reply)),
            _ => return false,
        };
        if all > MAX_PAYLOAD {
            self.say("-ERR 'Maximum Payload Violation'\r\n");
            return false;
        }
        let mut bytes = vec![0; all + 2];
        if read.read_exact(&mut bytes).await.is_err() {
            return false;
        }
        let (head, body) = bytes[..all].split_at(head);
        if !self.may_publish(subject) {
            return true;
        }
        if self.is_system() {
            self.shared.answer(subject, reply, body);
            return true;
        }
        let arrived = self.shared.route(subject, reply, head, body);
        if let (false, Some(reply)) = (arrived, reply) {
            self.shared.nobody(reply);
        }
        true
    }

    fn is_system(&self) -> bool {
        let state = self.shared.lock();
        let client = state.clients.get(&self.id);
        client.is_some_and(|client| client.rights.system)
    }

    fn may_publish(&self, subject: &str) -> bool {
        let mut state = self.shared.lock();
        let Some(client) = state.clients.get_mut(&self.id) else {
            return false;
        };
        if client.rights.may_publish(subject) {
            return true;
        }
        let told = format!("-ERR 'Permissions Violation for Publish to \"{subject}\"'\r\n");
        let _ = client.out.try_send(told.into());
        state.refusals.push(BusRefusal::Publish(subject.to_owned()));
        false
    }
}

impl SharedBus {
    /// Answers what the server itself was asked.
    fn answer(&self, subject: &str, reply: Option<&str>, body: &[u8]) {
        let mut state = self.lock();
        let said = state.system(subject, body);
        if let (Some(said), Some(reply)) = (said, reply) {
            state.deliver(reply, None, &[], said.as_bytes());
        }
    }

    /// Tells whoever asked that nobody listens.
    fn nobody(&self, reply: &str) {
        let mut state = self.lock();
        state.deliver(reply, None, b"NATS/1.0 503\r\n\r\n", b"");
    }
}
