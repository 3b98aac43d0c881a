//! What the terminal's side of a session tells: that a call runs or ran, or
//! that nobody can answer it any more. Pure.

use std::sync::Arc;

use super::request::{Digest, Ending, Ran, Request};
use super::told::{self, Correction, ToldCall};
use super::{Approvals, Hook, PendingRequest, Settled};
use crate::clock::Millis;
use crate::ids::{RequestId, SessionId};
use crate::talk::CallFate;

/// What the terminal's side of the session told us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Withdrawal {
    /// This call has ended.
    Tool {
        tool: String,
        digest: Digest,
        agent: Option<String>,
        /// The agent's own id of the call.
        call: Option<String>,
        took: Option<Millis>,
        /// What the agent wrote down of it, if it did so already.
        fate: Option<CallFate>,
    },
    /// The turn of this subagent, or of the main agent, ended, so nothing it
    /// asked can still be open. What the others asked can, and so can what
    /// another process asked that goes on with the same session.
    Turn {
        agent: Option<String>,
        process: Option<u32>,
    },
    Session {
        process: Option<u32>,
        /// Only the conversation ended: subagents in the background go on.
        cleared: bool,
    },
}

impl Approvals {
    /// Closes what the terminal has settled. A tool's event closes one request
    /// at most, the oldest of its kind, and none if it speaks of a call that
    /// was allowed here. `now` is when it was told: what was asked later is not
    /// meant.
    pub fn withdraw(
        &mut self,
        session: &SessionId,
        withdrawal: &Withdrawal,
        now: Millis,
    ) -> Vec<Settled> {
        match withdrawal {
            Withdrawal::Tool {
                tool,
                digest,
                agent,
                call: name,
                took,
                fate,
            } => {
                let call = ToldCall::new(session, agent.as_ref(), tool, *digest);
                let known = self.running.iter().position(|running| running.is(&call));
                if let Some(known) = known {
                    self.running.remove(known);
                    return Vec::new();
                }
                let fate = fate.unwrap_or(CallFate::Ran(None));
                let Some(id) = self.oldest(&call, name.as_deref(), now) else {
                    if let CallFate::Ran(by) = fate
                        && let Some(untrue) =
                            (self.told).ran(&call, name.as_deref(), *took, by, now)
                    {
                        self.correct(untrue);
                    }
                    return Vec::new();
                };
                let settled = self.settle_by(&id, fate, *took, now);
                settled.into_iter().collect()
            }
            Withdrawal::Turn { agent, process } => {
                let of_turn = |of: &SessionId, by: &Option<String>| {
                    *by == *agent && (agent.is_some() || of == session)
                };
                self.running
                    .retain(|call| !of_turn(&call.session, &call.agent));
                let which = |request: &Request| {
                    let origin = &request.origin;
                    let of = origin.session.as_ref();
                    of.is_some_and(|of| of_turn(of, &origin.caller.agent_id))
                        && is_of_process(request, *process)
                };
                self.end_all(which, now)
            }
            Withdrawal::Session { process, cleared } => {
                let stays = |agent: &Option<String>| *cleared && agent.is_some();
                self.running
                    .retain(|call| call.session != *session || stays(&call.agent));
                let which = |request: &Request| {
                    let of_it = request.origin.session.as_ref() == Some(session);
                    // What it asked before its conversation was cleared, too.
                    let same = process.is_some() && request.origin.caller.process == *process;
                    let meant = (of_it && is_of_process(request, *process)) || same;
                    meant && !stays(&request.origin.caller.agent_id)
                };
                self.end_all(which, now)
            }
        }
    }

    /// A subagent keeps its id when its session's conversation is cleared and
    /// gets another id, so its calls are looked for in all.
    fn oldest(&self, call: &ToldCall, name: Option<&str>, now: Millis) -> Option<RequestId> {
        let meant = |pending: &&PendingRequest| {
            let asked = &pending.request;
            asked.asked_at <= now
                && told::may_be(pending.call.as_deref(), name)
                && ToldCall::of(asked).is_some_and(|asked| asked.is(call))
        };
        if call.agent.is_some() {
            let found = self.pending.values().filter(meant);
            let oldest = found.min_by_key(|p| (p.request.asked_at, p.request.id.as_str()));
            return oldest.map(|p| p.request.id.clone());
        }
        let mut open = self.sessions.get(&call.session)?.open.iter();
        let oldest = open.find(|(_, id)| self.pending.get(id).is_some_and(|p| meant(&p)));
        oldest.map(|(_, id)| id.clone())
    }

    fn end_all(&mut self, which: impl Fn(&Request) -> bool, now: Millis) -> Vec<Settled> {
        let meant = |request: &Request| request.asked_at <= now && which(request);
        let open = self.pending.values().map(|pending| &pending.request);
        let mut open: Vec<_> = open.filter(|request| meant(request)).cloned().collect();
        open.sort_by(|a, b| (a.asked_at, a.id.as_str()).cmp(&(b.asked_at, b.id.as_str())));
        let ended = open.into_iter().filter_map(|request| {
            let pending = self.pending.get(&request.id)?;
            let ending = pending.unchosen(Ending::Terminal { allowed: None });
            self.settle(&request.id, ending, now)
        });
        ended.collect()
    }

    /// The agent's own id of the call that this request asks for.
    pub fn call_is(&mut self, id: &RequestId, name: &str) {
        match self.pending.get_mut(id) {
            Some(pending) => pending.call = Some(name.into()),
            None => self.told.call_is(id, name),
        }
    }

    /// Whether what becomes of this call matters: it waits, or what was told of
    /// it may be untrue.
    pub fn concerns(&self, call: &ToldCall, name: Option<&str>, now: Millis) -> bool {
        self.oldest(call, name, now).is_some() || self.told.holds(call, name)
    }

    /// The agent wrote down, at `at`, what became of the call of this request:
    /// one that waits has ended, and what was told of one that had ended is put
    /// right.
    pub fn learned(
        &mut self,
        id: &RequestId,
        fate: CallFate,
        at: Millis,
        now: Millis,
    ) -> Option<Settled> {
        if let Some(pending) = self.pending.get(id) {
            let at = at.min(now).max(pending.request.asked_at);
            return self.settle_by(id, fate, None, at);
        }
        let past = self.past.get(id)?;
        let (ending, at) = (told::corrected(&past.ending, fate)?, past.at);
        self.told.replace(id, &ending);
        let id = id.clone();
        self.correct(Correction { id, ending, at });
        None
    }

    /// Ends a request that waits by what became of its call.
    fn settle_by(
        &mut self,
        id: &RequestId,
        fate: CallFate,
        took: Option<Millis>,
        now: Millis,
    ) -> Option<Settled> {
        let since = self.running_since(id);
        let took = took.or_else(|| Some((now - since?).max(0)));
        let ran = |by| {
            Ending::Ran(Ran {
                by,
                since,
                took,
                corrects: None,
            })
        };
        let ending = match (fate, since) {
            (CallFate::Ran(by), _) => ran(by),
            // It had begun, and was interrupted.
            (CallFate::Cancelled { before_run: false }, Some(_)) => ran(None),
            (CallFate::Cancelled { .. }, _) => Ending::Terminal {
                allowed: Some(false),
            },
            (CallFate::Refused, _) => Ending::DeniedElsewhere,
        };
        self.settle(id, ending, now)
    }

    /// The agent says that this call was allowed in the terminal and runs: a
    /// "no" would have ended the hook. Returns the request when that is new.
    pub fn runs(&mut self, id: &RequestId, since: Millis) -> Option<Arc<Request>> {
        let pending = self.pending.get_mut(id)?;
        if pending.runs.is_some() || !matches!(pending.hook, Hook::Attached(_)) {
            return None;
        }
        pending.runs = Some(since);
        Some(Arc::clone(&pending.request))
    }

    pub fn running_since(&self, id: &RequestId) -> Option<Millis> {
        self.pending.get(id)?.runs
    }

    /// Whether no other call like this one waits or was allowed here, so that
    /// a process that runs it must be this one.
    pub fn is_alone(&self, request: &Request) -> bool {
        let Some(call) = ToldCall::of(request) else {
            return false;
        };
        let same = |other: &ToldCall| other.is_like(&call);
        let asked = self.sessions.get(&call.session).into_iter();
        let open = asked.flat_map(|asked| &asked.open);
        let mut waiting = open.filter_map(|(_, id)| ToldCall::of(&self.pending.get(id)?.request));
        !self.running.iter().any(same) && waiting.by_ref().filter(same).count() == 1
    }

    /// The terminal had said yes before this request was denied here.
    pub fn terminal_was_first(&mut self, id: &RequestId, since: Millis) {
        if let Some(untrue) = self.told.was_first(id, since) {
            self.correct(untrue);
        }
    }

    /// Endings that were told and turned out untrue since the last call.
    pub fn take_corrections(&mut self) -> Vec<Correction> {
        std::mem::take(&mut self.corrections)
    }

    fn correct(&mut self, correction: Correction) {
        if let Some(past) = self.past.get_mut(&correction.id) {
            past.ending = correction.ending.clone();
        }
        self.corrections.push(correction);
    }
}

/// Whether this process can have asked it; one that nobody named can.
fn is_of_process(request: &Request, process: Option<u32>) -> bool {
    match (request.origin.caller.process, process) {
        (Some(asked), Some(told)) => asked == told,
        _ => true,
    }
}
