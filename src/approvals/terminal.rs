//! What the terminal's side of a session tells: that a call runs or ran, or
//! that nobody can answer it any more. Pure.

use std::sync::Arc;

use super::request::{Digest, Ending, Ran, Request};
use super::told::{Correction, ToldCall};
use super::{Approvals, Hook, Settled};
use crate::clock::Millis;
use crate::ids::{RequestId, SessionId};

/// What the terminal's side of the session told us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Withdrawal {
    /// This call has run.
    Tool {
        tool: String,
        digest: Digest,
        agent: Option<String>,
        took: Option<Millis>,
    },
    /// The turn of this subagent, or of the main agent, ended, so nothing it
    /// asked can still be open. What the others asked can.
    Turn {
        agent: Option<String>,
    },
    Session,
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
                took,
            } => {
                let call = ToldCall::new(session, agent.as_ref(), tool, *digest);
                let known = self.running.iter().position(|running| *running == call);
                if let Some(known) = known {
                    self.running.remove(known);
                    return Vec::new();
                }
                let Some(id) = self.oldest(&call, now) else {
                    if let Some(untrue) = self.told.ran(&call, *took, now) {
                        self.correct(untrue);
                    }
                    return Vec::new();
                };
                let since = self.running_since(&id);
                let ran = Ran {
                    since,
                    took: took.or_else(|| Some(now - since?)),
                    corrects: None,
                };
                self.settle(&id, Ending::Ran(ran), now)
                    .into_iter()
                    .collect()
            }
            Withdrawal::Turn { agent } => {
                self.running
                    .retain(|call| call.session != *session || call.agent != *agent);
                self.end_all(session, |r| r.origin.caller.agent_id == *agent, now)
            }
            Withdrawal::Session => {
                self.running.retain(|call| call.session != *session);
                self.end_all(session, |_| true, now)
            }
        }
    }

    fn oldest(&self, call: &ToldCall, now: Millis) -> Option<RequestId> {
        let mut asked = self.sessions.get(&call.session)?.open.iter();
        let oldest = asked.find(|(_, id)| {
            let pending = self.pending.get(id);
            let pending = pending.filter(|p| p.request.asked_at <= now);
            pending.is_some_and(|p| ToldCall::of(&p.request).as_ref() == Some(call))
        });
        oldest.map(|(_, id)| id.clone())
    }

    fn end_all(
        &mut self,
        session: &SessionId,
        which: impl Fn(&Request) -> bool,
        now: Millis,
    ) -> Vec<Settled> {
        let asked = self.sessions.get(session);
        let open = asked.map(|asked| asked.open.clone()).unwrap_or_default();
        open.into_iter()
            .filter_map(|(_, id)| {
                let pending = self.pending.get(&id);
                let meant = |request: &Request| request.asked_at <= now && which(request);
                let pending = pending.filter(|p| meant(&p.request))?;
                let ending = pending.unchosen(Ending::Terminal { allowed: None });
                self.settle(&id, ending, now)
            })
            .collect()
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
