//! One conversation with one client, from its first byte to its answer.

use std::future::Future;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt as _, Interest};
use tokio::net::UnixStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until, timeout};

use super::admission::RequestSlot;
use super::{HookPeer, HookRefused, Intake, ServerLimits};
use crate::approvals::answer::Answer;
use crate::approvals::desk::{Delivery, Handover, Waiting};
use crate::hook::wire::error_word::ErrorWord;
use crate::hook::wire::scan::Scanner;
use crate::hook::wire::{
    self, Ack, AckAdditions, DaemonOrder, HookMessage, HookNotice, Registration, WireError, answer,
};

/// What a client may say after its request: a word, not a stream.
const MAX_AFTER: usize = 64 * 1024;

/// Ten thousand of these may wait at once. What comes before the wait and what
/// comes after it is on the heap, and gone while it lasts.
pub(super) fn converse<R, RF, N, NF, O, OF>(
    line: HookLine,
    peer: HookPeer,
    intake: Arc<Intake<R, N, O>>,
    slot: RequestSlot,
) -> impl Future<Output = ()>
where
    R: Fn(Registration, HookPeer) -> RF,
    RF: Future<Output = Result<Waiting, HookRefused>>,
    N: Fn(HookNotice, HookPeer) -> NF,
    NF: Future<Output = Value>,
    O: Fn(DaemonOrder) -> OF,
    OF: Future<Output = Value>,
{
    let opening = Box::pin(open(line, peer, intake, slot));
    async move {
        let Some(mut hook) = opening.await else {
            return;
        };
        if let Some(handover) = hook.answered().await {
            Box::pin(hook.hand_over(handover)).await;
        }
    }
}

/// Reads one message and does what it says; a hook that is to wait comes out.
async fn open<R, RF, N, NF, O, OF>(
    mut line: HookLine,
    peer: HookPeer,
    intake: Arc<Intake<R, N, O>>,
    slot: RequestSlot,
) -> Option<SeatedHook>
where
    R: Fn(Registration, HookPeer) -> RF,
    RF: Future<Output = Result<Waiting, HookRefused>>,
    N: Fn(HookNotice, HookPeer) -> NF,
    NF: Future<Output = Value>,
    O: Fn(DaemonOrder) -> OF,
    OF: Future<Output = Value>,
{
    let first = tokio::select! {
        first = line.request() => first,
        () = slot.evicted() => Err(UnreadRequest::Slow),
    };
    drop(slot);
    let decoded = first.and_then(|(bytes, room)| Ok((HookMessage::decode(&bytes)?, room)));
    let (message, room) = match decoded {
        Ok(decoded) => decoded,
        Err(UnreadRequest::Closed) => return None,
        Err(UnreadRequest::Slow) => {
            line.refuse(
                "",
                ErrorWord::SlowRequest,
                "the request did not arrive in time",
            )
            .await;
            return None;
        }
        Err(UnreadRequest::Bad(error)) => {
            tracing::debug!(%error, "a request was refused");
            line.refuse("", ErrorWord::InvalidRequest, &error.to_string())
                .await;
            return None;
        }
    };
    match message {
        HookMessage::Register(registration) => {
            return line.seat(registration, peer, room, &intake.register).await;
        }
        HookMessage::Notify(notice) => {
            let reply = (intake.notify)(notice, peer).await;
            line.write(reply.to_string().as_bytes()).await;
        }
        HookMessage::Order(order) => {
            let done = (intake.order)(order).await;
            let reply = wire::frame(&done).or_else(|error| {
                wire::frame(&json!({"success": false, "error": error.to_string()}))
            });
            if let Ok(reply) = reply {
                line.write(&reply).await;
            }
        }
        HookMessage::Ping => {
            line.write(wire::PONG).await;
        }
        HookMessage::Received | HookMessage::Cancel => {
            line.refuse(
                "",
                ErrorWord::InvalidRequest,
                "nothing waits on this connection",
            )
            .await;
        }
    }
    None
}

/// Why there is no request.
enum UnreadRequest {
    Closed,
    Slow,
    Bad(WireError),
}

impl From<WireError> for UnreadRequest {
    fn from(error: WireError) -> Self {
        Self::Bad(error)
    }
}

/// Held while a large request is taken in; nothing for the others.
type LargeRoom = Option<OwnedSemaphorePermit>;

/// A connection and what it may cost.
pub(super) struct HookLine {
    pub(super) stream: UnixStream,
    pub(super) limits: Arc<ServerLimits>,
    pub(super) large: Arc<Semaphore>,
}

impl HookLine {
    /// A large one waits for room when it has grown large, and is then given
    /// the same time again: the wait is not its sender's fault.
    async fn request(&self) -> Result<(Vec<u8>, LargeRoom), UnreadRequest> {
        let mut scanner = Scanner::new(self.limits.request);
        let (within, small) = (self.limits.complete_within, self.limits.large);
        let read = timeout(within, self.object(&mut scanner, small)).await;
        if let Some(object) = read.unwrap_or(Err(UnreadRequest::Slow))? {
            return Ok((object, None));
        }
        let room = timeout(within, Arc::clone(&self.large).acquire_owned());
        let room = room.await.map_err(|_| UnreadRequest::Slow)?.ok();
        let read = timeout(within, self.object(&mut scanner, usize::MAX)).await;
        let object = read
            .unwrap_or(Err(UnreadRequest::Slow))?
            .ok_or(UnreadRequest::Slow)?;
        Ok((object, room))
    }

    /// Reads until an object is there; `None` when it is longer than `most`.
    async fn object(
        &self,
        scanner: &mut Scanner,
        most: usize,
    ) -> Result<Option<Vec<u8>>, UnreadRequest> {
        while scanner.buffer().len() <= most {
            match self.take_in(scanner).await {
                Ok(0) | Err(_) => return Err(UnreadRequest::Closed),
                Ok(_) => {}
            }
            if let Some(object) = scanner.next_object()? {
                return Ok(Some(object));
            }
        }
        Ok(None)
    }

    async fn seat<R, RF>(
        mut self,
        registration: Registration,
        peer: HookPeer,
        room: LargeRoom,
        register: &R,
    ) -> Option<SeatedHook>
    where
        R: Fn(Registration, HookPeer) -> RF,
        RF: Future<Output = Result<Waiting, HookRefused>>,
    {
        let session = registration.session();
        let session = session.as_ref().map_or("", |session| session.as_str());
        let session = session.to_owned();
        let for_nod = registration.nod.is_some();
        let presented = registration.nod.as_ref().and_then(|nod| nod.resume.clone());
        let registering = register(registration, peer);
        let registered = timeout(self.limits.register_within, registering).await;
        drop(room);
        let waiting = match registered {
            Ok(Ok(waiting)) => waiting,
            Ok(Err(HookRefused { error, message })) => {
                self.refuse(&session, error, &message).await;
                return None;
            }
            Err(_) => {
                let late = "the request could not be taken in time";
                self.refuse(&session, ErrorWord::Busy, late).await;
                return None;
            }
        };
        let ack = Ack::Registered {
            session: session.clone(),
            nod: for_nod.then(|| AckAdditions {
                resume_token: waiting.token().cloned().or(presented),
                deadline: waiting.deadline(),
                server_version: crate::version::BUILD.to_owned(),
            }),
        };
        self.write(&ack.encode()).await.then(|| SeatedHook {
            earliest: Instant::now() + self.limits.after_ack,
            after: Scanner::new(MAX_AFTER),
            line: self,
            waiting,
            session,
            for_nod,
        })
    }

    /// Waits for nod's own client to say that it has its decision.
    async fn received(&self, after: &mut Scanner) -> Delivery {
        loop {
            match after.next_object() {
                Ok(Some(object)) if HookMessage::decode(&object) == Ok(HookMessage::Received) => {
                    return Delivery::Confirmed;
                }
                Ok(Some(_)) => {}
                Ok(None) => match self.take_in(after).await {
                    Ok(0) | Err(_) => return Delivery::Lost,
                    Ok(_) => {}
                },
                Err(_) => return Delivery::Unconfirmed,
            }
        }
    }

    /// Returns when nobody waits for the answer any more: the client closed
    /// its end, cancelled, or sends what nobody asked for. A client that only
    /// shut down its writing half still waits.
    async fn gone(&self, after: &mut Scanner) {
        loop {
            match self.take_in(after).await {
                Ok(0) => return self.hung_up().await,
                Ok(_) => {}
                Err(_) => return,
            }
            loop {
                match after.next_object() {
                    Ok(Some(object)) if HookMessage::decode(&object) == Ok(HookMessage::Cancel) => {
                        return;
                    }
                    Ok(None) => break,
                    Err(WireError::TooLarge(_)) => return,
                    Ok(Some(_)) | Err(_) => {}
                }
            }
        }
    }

    /// Waits for the client to close both halves. Writable is forgotten each
    /// time it is reported, so that the next report is a change: the hang-up.
    /// On a descriptor of its own, because the answer must still find the
    /// stream writable.
    async fn hung_up(&self) {
        let twin = self.stream.as_fd().try_clone_to_owned();
        let Ok(twin) = twin.and_then(|fd| UnixStream::from_std(fd.into())) else {
            return std::future::pending().await;
        };
        while let Ok(ready) = twin.ready(Interest::WRITABLE).await {
            if ready.is_write_closed() {
                return;
            }
            let forget = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
            // The error is the purpose: it clears the readiness.
            let _ = twin.try_io(Interest::WRITABLE, forget);
        }
    }

    async fn take_in(&self, scanner: &mut Scanner) -> io::Result<usize> {
        loop {
            self.stream.readable().await?;
            match read_some(&self.stream, scanner) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
        }
    }

    async fn refuse(&mut self, session: &str, error: ErrorWord, message: &str) {
        let ack = Ack::Refused {
            session: session.to_owned(),
            error,
            message: message.to_owned(),
        };
        self.write(&ack.encode()).await;
    }

    async fn write(&mut self, bytes: &[u8]) -> bool {
        let write = timeout(self.limits.write_within, self.stream.write_all(bytes));
        matches!(write.await, Ok(Ok(())))
    }
}

/// A hook that has its place, until its answer is with it.
struct SeatedHook {
    waiting: Waiting,
    line: HookLine,
    session: String,
    for_nod: bool,
    /// When an answer may go to a client of the reference protocol.
    earliest: Instant,
    /// What it says while it waits.
    after: Scanner,
}

impl SeatedHook {
    async fn answered(&mut self) -> Option<Handover> {
        tokio::select! {
            handover = self.waiting.answered() => handover,
            () = self.line.gone(&mut self.after) => None,
        }
    }

    async fn hand_over(&mut self, mut handover: Handover) {
        if !self.for_nod {
            sleep_until(self.earliest).await;
        }
        let delivery = self.deliver(&handover.answer).await;
        handover.report(delivery);
    }

    async fn deliver(&mut self, decision: &Answer) -> Delivery {
        let (line, session) = (&mut self.line, self.session.as_str());
        let frame = match answer::encode(decision, session, self.for_nod) {
            Ok(frame) => frame,
            Err(error) => {
                tracing::warn!(%error, "an answer was too large; the terminal decides");
                let text = "the answer is too large, please decide in the terminal";
                if let Ok(frame) = answer::encode_fallback(session, ErrorWord::ReplyTooLarge, text)
                {
                    line.write(&frame).await;
                }
                return Delivery::Lost;
            }
        };
        if !line.write(&frame).await {
            return Delivery::Lost;
        }
        if !self.for_nod {
            return Delivery::Written;
        }
        let confirmed = timeout(line.limits.confirm_within, line.received(&mut self.after));
        confirmed.await.unwrap_or(Delivery::Unconfirmed)
    }
}

/// Apart from the async code, so that ten thousand waiting tasks do not each
/// carry this buffer.
fn read_some(stream: &UnixStream, scanner: &mut Scanner) -> io::Result<usize> {
    let mut chunk = [0; 16 * 1024];
    let room = scanner.room().clamp(1, chunk.len());
    let count = stream.try_read(&mut chunk[..room])?;
    scanner.buffer().extend_from_slice(&chunk[..count]);
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::super::admission::Admission;
    use super::*;

    #[tokio::test]
    async fn a_conversation_holds_no_room_for_what_comes_before_or_after_the_wait() {
        async fn large<T>() -> T {
            let filling = [0_u8; 16 * 1024];
            tokio::task::yield_now().await;
            panic!("{filling:?}");
        }
        let (stream, _other_end) = UnixStream::pair().unwrap();
        let line = HookLine {
            stream,
            limits: Arc::new(ServerLimits::default()),
            large: Arc::new(Semaphore::new(1)),
        };
        let peer = HookPeer {
            pid: None,
            since: std::time::Instant::now(),
        };
        let intake = Arc::new(Intake {
            register: |_, _| large(),
            notify: |_, _| large(),
            order: |_| large(),
        });
        let slot = Admission::new(1).admit().await;
        let conversation = converse(line, peer, intake, slot);
        assert!(
            size_of_val(&conversation) <= 768,
            "ten thousand of {} bytes",
            size_of_val(&conversation)
        );
    }
}
