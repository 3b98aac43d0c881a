//! The daemon's end of the hook socket: a task per connection that reads one
//! message, registers it and waits for the answer. Never decides, never holds
//! a lock over I/O, and never lets one slow client cost another its turn.

mod admission;
mod connection;

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::connect;
use super::listen::Listening;
use super::wire::error_word::ErrorWord;
use super::wire::{DaemonOrder, HookNotice, Registration};
use crate::approvals::desk::Waiting;
use admission::Admission;

/// What a client may cost. The defaults are what the daemon runs with.
#[derive(Debug, Clone)]
pub struct ServerLimits {
    /// Whoever connects must be this user.
    pub uid: u32,
    pub request: usize,
    /// From the connection to a complete request.
    pub complete_within: Duration,
    pub unfinished: usize,
    /// A request of more bytes than this is large, and only so many are taken
    /// in at once: each costs several times its size until it is registered.
    pub large: usize,
    pub large_at_once: usize,
    pub register_within: Duration,
    pub write_within: Duration,
    /// A v1 client takes the ack with one read of whatever is there, so the
    /// decision must not be there yet.
    pub after_ack: Duration,
    pub confirm_within: Duration,
    pub stop_within: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            uid: connect::own_uid(),
            request: super::wire::MAX_REQUEST,
            complete_within: Duration::from_secs(5),
            unfinished: 256,
            large: 64 * 1024,
            large_at_once: 4,
            register_within: Duration::from_millis(1500),
            write_within: Duration::from_secs(2),
            after_ack: Duration::from_millis(100),
            confirm_within: Duration::from_secs(2),
            stop_within: Duration::from_secs(2),
        }
    }
}

/// Who is at the other end, as the kernel says. For the card only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookPeer {
    pub pid: Option<i32>,
    /// When it connected: connections are told apart in the order they came,
    /// the tasks that read them run in any.
    pub since: Instant,
}

/// Why a registration was turned down; the terminal decides then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookRefused {
    pub error: ErrorWord,
    pub message: String,
}

/// What the daemon does with each kind of message.
#[derive(Debug)]
pub struct Intake<R, N, O> {
    pub register: R,
    pub notify: N,
    pub order: O,
}

/// Serves until cancelled, then removes the socket and waits a bounded time
/// for the open conversations. A stop calls `Desk::detach_all` as well: only a
/// hook that was let go comes back, any other place dropped here is an ending.
pub async fn serve<R, RF, N, NF, O, OF>(
    listening: Listening,
    intake: Arc<Intake<R, N, O>>,
    limits: ServerLimits,
    cancel: CancellationToken,
) where
    R: Fn(Registration, HookPeer) -> RF + Send + Sync + 'static,
    RF: Future<Output = Result<Waiting, HookRefused>> + Send + 'static,
    N: Fn(HookNotice, HookPeer) -> NF + Send + Sync + 'static,
    NF: Future<Output = Value> + Send + 'static,
    O: Fn(DaemonOrder) -> OF + Send + Sync + 'static,
    OF: Future<Output = Value> + Send + 'static,
{
    let limits = Arc::new(limits);
    let admission = Admission::new(limits.unfinished);
    let large = Arc::new(Semaphore::new(limits.large_at_once));
    let mut tasks = JoinSet::new();
    let mut pause = Pause::default();
    loop {
        let accepted = tokio::select! {
            () = cancel.cancelled() => break,
            Some(ended) = tasks.join_next() => {
                note(ended);
                continue;
            }
            accepted = listening.listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                pause = Pause::default();
                let Some(peer) = identify(&stream, limits.uid) else {
                    continue;
                };
                let slot = tokio::select! {
                    () = cancel.cancelled() => break,
                    slot = admission.admit() => slot,
                };
                let line = connection::HookLine {
                    stream,
                    limits: Arc::clone(&limits),
                    large: Arc::clone(&large),
                };
                tasks.spawn(connection::converse(line, peer, Arc::clone(&intake), slot));
            }
            Err(error) => {
                if pause.is_first() {
                    tracing::warn!(%error, "hooks can't connect for the moment");
                }
                tokio::select! {
                    () = cancel.cancelled() => break,
                    () = tokio::time::sleep(pause.next()) => {}
                }
            }
        }
    }
    drop(listening);
    let finish = async {
        while let Some(ended) = tasks.join_next().await {
            note(ended);
        }
    };
    if tokio::time::timeout(limits.stop_within, finish)
        .await
        .is_err()
    {
        tracing::warn!("some hooks did not let go in time");
        tasks.shutdown().await;
    }
}

/// Without a free file descriptor every accept fails at once; trying again at
/// once would take the processor from whoever could free one.
#[derive(Debug, Default)]
struct Pause(u32);

impl Pause {
    fn is_first(&self) -> bool {
        self.0 == 0
    }

    fn next(&mut self) -> Duration {
        let pause = Duration::from_millis(50 << self.0.min(4));
        self.0 += 1;
        pause
    }
}

fn identify(stream: &UnixStream, uid: u32) -> Option<HookPeer> {
    match stream.peer_cred() {
        Ok(peer) if peer.uid() == uid => Some(HookPeer {
            pid: peer.pid(),
            since: Instant::now(),
        }),
        Ok(peer) => {
            tracing::warn!(
                uid = peer.uid(),
                "peer_uid_mismatch: a connection was closed"
            );
            None
        }
        Err(error) => {
            tracing::warn!(%error, "a connection without credentials was closed");
            None
        }
    }
}

fn note(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!("a conversation with a hook panicked; the terminal decides");
    }
}

#[cfg(test)]
mod tests;
