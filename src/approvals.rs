//! Requests that wait for a person: register, decide, withdraw, expire.
//! Pure: time is an argument, and every call returns what there is to do.
//! Nothing but a person's click in time ever ends a request as allowed.

pub mod answer;
pub mod choice;
pub mod desk;
pub mod outcome;
pub mod record;
pub mod request;
mod terminal;
pub mod token;
mod told;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use crate::clock::Millis;
use crate::ids::{RequestId, SessionId};
use choice::Choice;
use request::{Digest, Dropped, Ending, Operator, Ran, Request};
use token::TokenHash;
use told::ToldEndings;

pub use terminal::Withdrawal;
pub use told::{Correction, ToldCall};

/// More hooks than this never wait on one machine; the rest are told at once.
pub const MAX_PENDING: usize = 10_000;
/// How much input may wait, in bytes of memory: of all requests, and of those
/// of one session. What comes beyond it is for the terminal.
pub const MAX_HELD: usize = 64 << 20;
pub const MAX_HELD_BY_ONE: usize = 32 << 20;
/// How many endings are remembered, so that a late click hears the truth.
const MAX_PAST: usize = 20_000;
const PAST_AGE: Millis = 24 * 3600 * 1000;
/// Allowed calls whose "tool has run" event has not arrived yet.
const MAX_RUNNING: usize = 1024;

/// A request that has just ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Settled {
    pub request: Arc<Request>,
    pub ending: Ending,
    pub at: Millis,
}

/// What is remembered of a request after its end; the tool input is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Past {
    pub ending: Ending,
    pub at: Millis,
    pub digest: Digest,
    pub token: TokenHash,
}

/// Which waiting connection a request belongs to. A later one displaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attachment(u64);

/// Why a click changed nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unclaimed {
    Unknown,
    Settled {
        ending: Ending,
        at: Millis,
    },
    /// The daemon restarted and the hook is not back yet: try again shortly.
    Reconnecting,
}

/// Why a request was not registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RegisterRefusal {
    #[error("too many requests are waiting")]
    Full,
    #[error("a request with this id exists")]
    Taken,
    #[error("the requests that wait hold too much input already")]
    Heavy,
}

/// Why a hook could not take its place again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResumeRefusal {
    #[error("no request with this id is known")]
    Unknown,
    #[error("the resume token is not the one this request was given")]
    WrongToken,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Resumed {
    Waiting(Attachment, Arc<Request>),
    /// It ended while the hook was away.
    Ended(Past),
}

#[derive(Debug)]
struct PendingRequest {
    request: Arc<Request>,
    weight: usize,
    token: TokenHash,
    hook: Hook,
    /// Allowed in the terminal, and since when it runs.
    runs: Option<Millis>,
    /// The agent's own id of the call, once it is known.
    call: Option<Box<str>>,
}

#[derive(Debug, Clone, Copy)]
enum Hook {
    Attached(Attachment),
    Detached { until: Millis },
}

impl PendingRequest {
    fn due(&self) -> Millis {
        match self.hook {
            Hook::Attached(_) => self.request.deadline,
            Hook::Detached { until } => until.min(self.request.deadline),
        }
    }

    /// The ending where nobody chose one: what runs was allowed.
    fn unchosen(&self, otherwise: Ending) -> Ending {
        match self.runs {
            None => otherwise,
            since => Ending::Ran(Ran {
                since,
                ..Ran::default()
            }),
        }
    }
}

/// What one session waits for, oldest first.
#[derive(Debug, Default)]
struct OpenAsks {
    open: BTreeSet<(Millis, RequestId)>,
    /// Bytes of input among it.
    held: usize,
}

#[derive(Debug, Default)]
pub struct Approvals {
    pending: HashMap<RequestId, PendingRequest>,
    due: BTreeSet<(Millis, RequestId)>,
    sessions: HashMap<SessionId, OpenAsks>,
    running: VecDeque<ToldCall>,
    told: ToldEndings,
    corrections: Vec<Correction>,
    past: HashMap<RequestId, Past>,
    past_order: VecDeque<(Millis, RequestId)>,
    attached: u64,
    /// Bytes of input that wait.
    held: usize,
}

impl Approvals {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn len(&self) -> usize {
        self.pending.len()
    }

    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    pub fn pending(&self, id: &RequestId) -> Option<&Arc<Request>> {
        self.pending.get(id).map(|pending| &pending.request)
    }

    pub fn all_pending(&self) -> impl Iterator<Item = &Arc<Request>> {
        self.pending.values().map(|pending| &pending.request)
    }

    /// As they came, also within one millisecond.
    pub fn in_order(&self) -> impl Iterator<Item = &Arc<Request>> {
        let mut all: Vec<_> = self.pending.values().collect();
        all.sort_by_key(|pending| {
            let came = match pending.hook {
                Hook::Attached(attachment) => Some(attachment),
                Hook::Detached { .. } => None,
            };
            (pending.request.asked_at, came)
        });
        all.into_iter().map(|pending| &pending.request)
    }

    /// Those that end by themselves soonest, first.
    pub fn soonest(&self) -> impl Iterator<Item = &Arc<Request>> {
        let pending = self.due.iter().filter_map(|(_, id)| self.pending.get(id));
        pending.map(|pending| &pending.request)
    }

    pub fn token_of(&self, id: &RequestId) -> Option<TokenHash> {
        self.pending.get(id).map(|pending| pending.token)
    }

    pub fn past(&self, id: &RequestId) -> Option<&Past> {
        self.past.get(id)
    }

    pub fn is_attached(&self, id: &RequestId) -> bool {
        let pending = self.pending.get(id);
        pending.is_some_and(|pending| matches!(pending.hook, Hook::Attached(_)))
    }

    /// An id is used once: a second connection with the same id needs
    /// [`Approvals::resume`] and the token.
    pub fn register(
        &mut self,
        request: Arc<Request>,
        token: TokenHash,
        now: Millis,
    ) -> Result<Attachment, RegisterRefusal> {
        self.forget(now);
        if self.knows(&request.id) {
            return Err(RegisterRefusal::Taken);
        }
        if self.pending.len() >= MAX_PENDING {
            return Err(RegisterRefusal::Full);
        }
        let more = request.weight();
        let session = request.origin.session.as_ref();
        let asked = session.and_then(|session| self.sessions.get(session));
        let of_session = asked.map_or(0, |asked| asked.held);
        if self.held + more > MAX_HELD || of_session + more > MAX_HELD_BY_ONE {
            return Err(RegisterRefusal::Heavy);
        }
        let attachment = self.next_attachment();
        self.insert(request, token, Hook::Attached(attachment));
        Ok(attachment)
    }

    /// Gives a hook that lost its connection its place back, or the ending it
    /// missed. The connection it had before is displaced.
    pub fn resume(&mut self, id: &RequestId, token: TokenHash) -> Result<Resumed, ResumeRefusal> {
        if let Some(past) = self.past.get(id) {
            return if past.token == token {
                Ok(Resumed::Ended(past.clone()))
            } else {
                Err(ResumeRefusal::WrongToken)
            };
        }
        let attachment = self.next_attachment();
        let pending = self.pending.get_mut(id).ok_or(ResumeRefusal::Unknown)?;
        if pending.token != token {
            return Err(ResumeRefusal::WrongToken);
        }
        self.due.remove(&(pending.due(), id.clone()));
        pending.hook = Hook::Attached(attachment);
        self.due.insert((pending.due(), id.clone()));
        Ok(Resumed::Waiting(attachment, Arc::clone(&pending.request)))
    }

    /// The one compare-and-set of a click. Checks the deadline itself: the
    /// sweep runs late on a sleeping laptop, so a click can arrive after the
    /// deadline but before the sweep.
    pub fn decide(
        &mut self,
        id: &RequestId,
        action: Choice,
        by: Operator,
        now: Millis,
    ) -> Result<Settled, Unclaimed> {
        if let Some(past) = self.past.get(id) {
            return Err(Unclaimed::Settled {
                ending: past.ending.clone(),
                at: past.at,
            });
        }
        let pending = self.pending.get(id).ok_or(Unclaimed::Unknown)?;
        if let Some((ending, at)) = overdue(pending, now) {
            return Err(Unclaimed::Settled { ending, at });
        }
        if let (Some(at), false) = (pending.runs, action.stops()) {
            let ending = pending.unchosen(Ending::HookGone);
            return Err(Unclaimed::Settled { ending, at });
        }
        if let Hook::Detached { .. } = pending.hook {
            return Err(Unclaimed::Reconnecting);
        }
        let allowed = matches!(action, Choice::Allow(_));
        let ending = match pending.runs {
            Some(since) => Ending::Stopped { by, since },
            None => action.ending(by),
        };
        let settled = self.settle(id, ending, now).ok_or(Unclaimed::Unknown)?;
        if allowed {
            self.expect_run(&settled.request);
        }
        Ok(settled)
    }

    /// Ends a request whose hook closed its connection. A connection that was
    /// displaced, or given up by the daemon itself, ends nothing.
    pub fn hook_gone(
        &mut self,
        id: &RequestId,
        attachment: Attachment,
        now: Millis,
    ) -> Option<Settled> {
        let pending = self.pending.get(id)?;
        let ending = match pending.hook {
            Hook::Attached(current) if current == attachment => pending.unchosen(Ending::HookGone),
            Hook::Attached(_) | Hook::Detached { .. } => return None,
        };
        self.settle(id, ending, now)
    }

    /// Ends a request whose session wants no answer any more.
    pub fn drop_one(&mut self, id: &RequestId, why: Dropped, now: Millis) -> Option<Settled> {
        self.settle(id, Ending::Dropped { why }, now)
    }

    /// Closes every request due at or before `now`.
    pub fn expire(&mut self, now: Millis) -> Vec<Settled> {
        let mut settled = Vec::new();
        while let Some((_, id)) = self.due.first().filter(|(due, _)| *due <= now).cloned() {
            let Some((ending, at)) = self.pending.get(&id).and_then(|p| overdue(p, now)) else {
                break;
            };
            settled.extend(self.settle(&id, ending, at));
        }
        self.forget(now);
        settled
    }

    pub fn next_deadline(&self) -> Option<Millis> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Before a stop: connections that close from here on are our doing, and
    /// their hooks will come back.
    pub fn detach_all(&mut self, now: Millis, grace: Millis) {
        let until = now.saturating_add(grace);
        self.due.clear();
        for (id, pending) in &mut self.pending {
            pending.hook = Hook::Detached { until };
            self.due.insert((pending.due(), id.clone()));
        }
    }

    /// After a start: what was pending waits `grace` for its hook to come back.
    pub fn restore(
        &mut self,
        requests: impl IntoIterator<Item = (Arc<Request>, TokenHash)>,
        now: Millis,
        grace: Millis,
    ) {
        let until = now.saturating_add(grace);
        for (request, token) in requests {
            if !self.knows(&request.id) && self.pending.len() < MAX_PENDING {
                self.insert(request, token, Hook::Detached { until });
            }
        }
    }

    /// After a start: an ending that was written down before.
    pub fn recall(&mut self, id: RequestId, past: Past) {
        if !self.pending.contains_key(&id) {
            self.remember(id, past);
        }
    }

    fn knows(&self, id: &RequestId) -> bool {
        self.pending.contains_key(id) || self.past.contains_key(id)
    }

    fn next_attachment(&mut self) -> Attachment {
        self.attached += 1;
        Attachment(self.attached)
    }

    fn insert(&mut self, request: Arc<Request>, token: TokenHash, hook: Hook) {
        let id = request.id.clone();
        let weight = request.weight();
        self.held += weight;
        if let Some(session) = &request.origin.session {
            let asked = self.sessions.entry(session.clone()).or_default();
            asked.open.insert((request.asked_at, id.clone()));
            asked.held += weight;
        }
        let pending = PendingRequest {
            request,
            weight,
            token,
            hook,
            runs: None,
            call: None,
        };
        self.due.insert((pending.due(), id.clone()));
        self.pending.insert(id, pending);
    }

    fn settle(&mut self, id: &RequestId, ending: Ending, at: Millis) -> Option<Settled> {
        let pending = self.pending.remove(id)?;
        self.due.remove(&(pending.due(), id.clone()));
        let (request, weight) = (pending.request, pending.weight);
        self.held -= weight;
        if let Some(session) = &request.origin.session
            && let Some(asked) = self.sessions.get_mut(session)
        {
            asked.open.remove(&(request.asked_at, id.clone()));
            asked.held -= weight;
            if asked.open.is_empty() {
                self.sessions.remove(session);
            }
        }
        let past = Past {
            ending: ending.clone(),
            at,
            digest: request.digest,
            token: pending.token,
        };
        self.told.note(&request, pending.call, &ending, at);
        self.remember(id.clone(), past);
        Some(Settled {
            request,
            ending,
            at,
        })
    }

    fn remember(&mut self, id: RequestId, past: Past) {
        let at = past.at;
        if self.past.insert(id.clone(), past).is_none() {
            self.past_order.push_back((at, id));
        }
        while self.past_order.len() > MAX_PAST {
            self.forget_oldest();
        }
    }

    fn forget(&mut self, now: Millis) {
        let horizon = now.saturating_sub(PAST_AGE);
        while self.past_order.front().is_some_and(|(at, _)| *at < horizon) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((_, id)) = self.past_order.pop_front() {
            self.past.remove(&id);
        }
    }

    /// The tool will run and its event will come; it must not be taken for an
    /// answer to an identical call that is still open.
    fn expect_run(&mut self, request: &Request) {
        if let Some(call) = ToldCall::of(request) {
            if self.running.len() >= MAX_RUNNING {
                self.running.pop_front();
            }
            self.running.push_back(call);
        }
    }
}

/// The ending a request has reached by the clock alone, and when.
fn overdue(pending: &PendingRequest, now: Millis) -> Option<(Ending, Millis)> {
    if pending.request.deadline <= now && pending.request.deadline <= pending.due() {
        let ending = pending.unchosen(Ending::TimedOut);
        return Some((ending, pending.request.deadline));
    }
    (pending.due() <= now).then(|| (pending.unchosen(Ending::Orphaned), pending.due()))
}

#[cfg(test)]
mod tests;
