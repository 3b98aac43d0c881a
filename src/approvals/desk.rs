//! Where hooks wait and clicks arrive: the approvals behind a lock that is
//! never held over an await, and the way an answer reaches its hook.
//! Decides nothing by itself and never waits longer than it says.

mod comeback;
mod crowd;
pub mod expiry;
mod handover;
mod learned;

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot, watch};

use super::answer::{Answer, Extras};
use super::choice::Choice;
use super::request::{Dropped, Ending, Operator, Request};
use super::token::{Token, TokenHash};
use super::{
    Approvals, Attachment, Correction, Past, RegisterRefusal, ResumeRefusal, Resumed, Settled,
    Unclaimed, Withdrawal,
};
use crate::clock::{Millis, millis};
use crate::ids::{RequestId, SessionId};

pub use handover::{Delivery, Handover};

/// How long a toast may wait for the hook to say that it has its answer.
pub const DELIVERY_LIMIT: Duration = Duration::from_millis(500);
/// Endings nobody has fetched; the oldest go first.
const MAX_OUTBOX: usize = 16_384;

pub type DeskClock = Arc<dyn Fn() -> Millis + Send + Sync>;

#[derive(Debug, Default)]
struct DeskState {
    approvals: Approvals,
    hooks: HashMap<RequestId, oneshot::Sender<Handover>>,
    outbox: VecDeque<Settled>,
    /// What the expiry task sleeps towards.
    armed: Option<Millis>,
    /// Set by a stop: whoever still arrives is let go at once, with a token.
    closing: Option<Duration>,
}

pub struct Desk {
    state: Mutex<DeskState>,
    clock: DeskClock,
    earlier: Notify,
    attached: Notify,
    settled: Notify,
    hot: watch::Sender<bool>,
}

/// What came of presenting a resume token.
#[derive(Debug)]
pub enum Return {
    Waiting(Waiting),
    Ended(Past),
}

impl Desk {
    pub fn new(clock: DeskClock) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            clock,
            earlier: Notify::new(),
            attached: Notify::new(),
            settled: Notify::new(),
            hot: watch::Sender::new(false),
        })
    }

    /// Whether anybody waits; the long connection is watched closely then.
    pub fn hot(&self) -> watch::Receiver<bool> {
        self.hot.subscribe()
    }

    pub fn find(&self, id: &RequestId) -> Option<Arc<Request>> {
        self.lock().approvals.pending(id).cloned()
    }

    #[cfg(test)]
    pub fn token_of(&self, id: &RequestId) -> Option<TokenHash> {
        self.lock().approvals.token_of(id)
    }

    pub fn past(&self, id: &RequestId) -> Option<Past> {
        self.lock().approvals.past(id).cloned()
    }

    /// Registers a request with a fresh token. Dropping the [`Waiting`] means
    /// that the hook is gone.
    pub fn register(self: &Arc<Self>, request: Request) -> Result<Waiting, RegisterRefusal> {
        let token = Token::from_bytes(rand::random());
        let request = Arc::new(request);
        let now = (self.clock)();
        let waiting = {
            let mut state = self.lock();
            let attachment = state
                .approvals
                .register(Arc::clone(&request), token.hash(), now)?;
            let waiting = state.seat(self, &request, attachment, Some(token));
            state.let_go_if_closing(now);
            waiting
        };
        self.changed();
        Ok(waiting)
    }

    /// Gives a hook its place back. An answer with its extras for an ended one
    /// is the caller's to build, see [`Waiting::ended`].
    pub fn resume(self: &Arc<Self>, id: &RequestId, token: Token) -> Result<Return, ResumeRefusal> {
        let now = (self.clock)();
        let returned = {
            let mut state = self.lock();
            match state.approvals.resume(id, token.hash())? {
                Resumed::Waiting(attachment, request) => {
                    let waiting = state.seat(self, &request, attachment, Some(token));
                    state.let_go_if_closing(now);
                    Return::Waiting(waiting)
                }
                Resumed::Ended(past) => Return::Ended(past),
            }
        };
        self.changed();
        self.attached.notify_waiters();
        Ok(returned)
    }

    /// The winner of a click gets the [`Claim`]; whatever must be on disk
    /// before the hook hears of it is written between claim and delivery.
    pub fn claim(
        self: &Arc<Self>,
        id: &RequestId,
        action: Choice,
        by: Operator,
    ) -> Result<Claim, Unclaimed> {
        let now = (self.clock)();
        let claim = {
            let mut state = self.lock();
            let settled = state.approvals.decide(id, action, by, now)?;
            let hook = state.hooks.remove(id);
            Claim { settled, hook }
        };
        self.changed();
        Ok(claim)
    }

    /// Waits until a hook holds this request's place, or it has ended, or the
    /// limit is over. True when a claim can succeed.
    pub async fn wait_attached(&self, id: &RequestId, limit: Duration) -> bool {
        let wait = async {
            loop {
                let mut changed = std::pin::pin!(self.attached.notified());
                changed.as_mut().enable();
                {
                    let state = self.lock();
                    if state.approvals.is_attached(id) {
                        return true;
                    }
                    if state.approvals.pending(id).is_none() {
                        return false;
                    }
                }
                changed.await;
            }
        };
        tokio::time::timeout(limit, wait).await.unwrap_or(false)
    }

    /// Closes what the terminal has settled; returns which that were. `age` is
    /// how long ago it was told.
    pub fn withdraw(
        &self,
        session: &SessionId,
        withdrawal: &Withdrawal,
        age: Duration,
    ) -> Vec<RequestId> {
        let told_at = (self.clock)() - millis(age);
        self.end(|approvals| approvals.withdraw(session, withdrawal, told_at))
    }

    /// The call was allowed in the terminal and runs; the request when that is
    /// new.
    pub fn runs(&self, id: &RequestId, since: Millis) -> Option<Arc<Request>> {
        self.lock().approvals.runs(id, since)
    }

    pub fn running_since(&self, id: &RequestId) -> Option<Millis> {
        self.lock().approvals.running_since(id)
    }

    pub fn is_alone(&self, request: &Request) -> bool {
        self.lock().approvals.is_alone(request)
    }

    /// The terminal had said yes before this request was denied here.
    pub fn terminal_was_first(&self, id: &RequestId, since: Millis) {
        self.lock().approvals.terminal_was_first(id, since);
    }

    /// Endings that were told and turned out untrue since the last call.
    pub fn take_corrections(&self) -> Vec<Correction> {
        self.lock().approvals.take_corrections()
    }

    /// Ends a request that was answered in the terminal, nobody knows how.
    pub fn answered_there(&self, id: &RequestId) -> bool {
        self.end_one(id, Ending::Terminal { allowed: None })
    }

    /// Hands a request back to the terminal because its card can't be shown.
    pub fn undeliverable(&self, id: &RequestId, why: Option<String>) -> bool {
        self.end_one(id, Ending::Undeliverable { why })
    }

    /// Ends a request whose session wants no answer any more; false when it
    /// had ended before.
    pub fn drop_one(&self, id: &RequestId, why: Dropped) -> bool {
        let now = (self.clock)();
        !self
            .end(|approvals| approvals.drop_one(id, why, now))
            .is_empty()
    }

    /// Ends a request that nobody here decided.
    pub fn end_one(&self, id: &RequestId, ending: Ending) -> bool {
        let now = (self.clock)();
        !self
            .end(|approvals| approvals.settle(id, ending, now))
            .is_empty()
    }

    pub fn sweep(&self) -> usize {
        let now = (self.clock)();
        self.end(|approvals| approvals.expire(now)).len()
    }

    /// Before a stop: every waiting connection is let go, and its hook comes
    /// back to the next daemon with its token.
    pub fn detach_all(&self, grace: Duration) {
        let now = (self.clock)();
        {
            let mut state = self.lock();
            state.closing = Some(grace);
            state.let_go_if_closing(now);
        }
        self.changed();
    }

    /// After a start: puts back what was pending and what had ended.
    pub fn restore(
        &self,
        pending: impl IntoIterator<Item = (Arc<Request>, TokenHash)>,
        past: impl IntoIterator<Item = (RequestId, Past)>,
        grace: Duration,
    ) {
        let now = (self.clock)();
        {
            let mut state = self.lock();
            for (id, past) in past {
                state.approvals.recall(id, past);
            }
            state.approvals.restore(pending, now, millis(grace));
        }
        self.changed();
    }

    /// The next request that ended without a claim. For one reader.
    pub async fn next_settled(&self) -> Settled {
        loop {
            let changed = self.settled.notified();
            if let Some(settled) = self.lock().outbox.pop_front() {
                return settled;
            }
            changed.await;
        }
    }

    fn hook_gone(&self, id: &RequestId, attachment: Attachment) {
        let now = (self.clock)();
        self.end(|approvals| approvals.hook_gone(id, attachment, now));
    }

    fn end<E: IntoIterator<Item = Settled>>(
        &self,
        by: impl FnOnce(&mut Approvals) -> E,
    ) -> Vec<RequestId> {
        let mut answers = Vec::new();
        let ids: Vec<RequestId> = {
            let mut state = self.lock();
            let ended: Vec<_> = by(&mut state.approvals).into_iter().collect();
            let ids = ended.iter().map(|settled| settled.request.id.clone());
            let ids = ids.collect();
            for settled in &ended {
                if let Some(hook) = state.hooks.remove(&settled.request.id) {
                    answers.push((hook, answer(settled, Extras::default())));
                }
            }
            state.outbox.extend(ended);
            let excess = state.outbox.len().saturating_sub(MAX_OUTBOX);
            if excess > 0 {
                tracing::warn!(excess, "endings were not fetched in time and are dropped");
                state.outbox.drain(..excess);
            }
            ids
        };
        for (hook, answer) in answers {
            // A hook that has just gone away needs no answer.
            let _ = hook.send(Handover {
                answer,
                receipt: None,
            });
        }
        if !ids.is_empty() {
            self.settled.notify_one();
            self.attached.notify_waiters();
            self.changed();
        }
        ids
    }

    fn changed(&self) {
        self.hot.send_if_modified(|hot| {
            let any = self.pending() > 0;
            std::mem::replace(hot, any) != any
        });
        let state = self.lock();
        let earlier = match (state.approvals.next_deadline(), state.armed) {
            (Some(next), Some(armed)) => next < armed,
            (next, armed) => next.is_some() && armed.is_none(),
        };
        if earlier {
            self.earlier.notify_one();
        }
    }

    fn arm(&self) -> Option<Millis> {
        let mut state = self.lock();
        state.armed = state.approvals.next_deadline();
        state.armed
    }

    fn lock(&self) -> MutexGuard<'_, DeskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DeskState {
    /// Dropping a sender wakes its task and runs none of its code, so this is
    /// safe under the lock.
    fn let_go_if_closing(&mut self, now: Millis) {
        if let Some(grace) = self.closing {
            self.approvals.detach_all(now, millis(grace));
            self.hooks.clear();
        }
    }

    fn seat(
        &mut self,
        desk: &Arc<Desk>,
        request: &Request,
        attachment: Attachment,
        token: Option<Token>,
    ) -> Waiting {
        let (answer, answered) = oneshot::channel();
        self.hooks.insert(request.id.clone(), answer);
        Waiting {
            _place: Some(HookPlace {
                desk: Arc::clone(desk),
                id: request.id.clone(),
                attachment,
            }),
            token,
            deadline: request.deadline,
            answered,
        }
    }
}

fn answer(settled: &Settled, extras: Extras) -> Box<Answer> {
    let request = &settled.request;
    let patience = request.deadline.saturating_sub(request.asked_at).max(0);
    Box::new(Answer {
        ending: settled.ending.clone(),
        digest: request.digest,
        patience: Duration::from_millis(patience.unsigned_abs()),
        extras,
    })
}

/// A hook's place. The server's task holds it while the connection stands.
#[derive(Debug)]
pub struct Waiting {
    _place: Option<HookPlace>,
    token: Option<Token>,
    deadline: Millis,
    answered: oneshot::Receiver<Handover>,
}

/// Ends the request when the hook goes away before its answer.
struct HookPlace {
    desk: Arc<Desk>,
    id: RequestId,
    attachment: Attachment,
}

impl std::fmt::Debug for HookPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Place")
            .field(&self.id)
            .field(&self.attachment)
            .finish()
    }
}

impl Drop for HookPlace {
    fn drop(&mut self) {
        self.desk.hook_gone(&self.id, self.attachment);
    }
}

impl Waiting {
    /// A place whose answer is already there: the request ended while its hook
    /// was away.
    pub fn ended(answer: Answer, deadline: Millis) -> Self {
        let (tx, answered) = oneshot::channel();
        // The receiver is in hand, so this can't fail.
        let _ = tx.send(Handover {
            answer: Box::new(answer),
            receipt: None,
        });
        Self {
            _place: None,
            token: None,
            deadline,
            answered,
        }
    }

    /// For the hook only; the store keeps its hash.
    pub fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    pub fn deadline(&self) -> Millis {
        self.deadline
    }

    /// The answer, or `None` when this connection is to be closed without one:
    /// the daemon stops, or the hook has come back on another connection.
    /// Safe to drop and call again until it returns.
    pub async fn answered(&mut self) -> Option<Handover> {
        (&mut self.answered).await.ok()
    }
}

/// A decision that won. The hook hears of it by [`Claim::deliver`] only.
#[derive(Debug)]
pub struct Claim {
    settled: Settled,
    hook: Option<oneshot::Sender<Handover>>,
}

impl Claim {
    pub fn settled(&self) -> &Settled {
        &self.settled
    }

    /// Hands the answer over and waits a bounded time to learn what became of
    /// it. The hand-over itself happens at once, before the first await.
    pub fn deliver(self, extras: Extras) -> impl Future<Output = Delivery> + Send + 'static {
        let (receipt, received) = oneshot::channel();
        let answer = answer(&self.settled, extras);
        let sent = self.hook.is_some_and(|hook| {
            hook.send(Handover {
                answer,
                receipt: Some(receipt),
            })
            .is_ok()
        });
        async move {
            if !sent {
                return Delivery::Lost;
            }
            match tokio::time::timeout(DELIVERY_LIMIT, received).await {
                Ok(report) => report.unwrap_or(Delivery::Lost),
                Err(_) => Delivery::Unconfirmed,
            }
        }
    }
}

#[cfg(test)]
mod tests;
