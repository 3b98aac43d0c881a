//! What was said of calls that can still turn out to have run: a person at the
//! terminal may have allowed one a moment before it was refused here. Pure and
//! bounded.

use std::collections::VecDeque;

use super::record;
use super::request::{Digest, Ending, Ran, Request, UntrueEnding};
use crate::clock::Millis;
use crate::ids::{RequestId, SessionId};

/// The oldest are forgotten first.
const MAX_TOLD: usize = 1_024;
const AGE: Millis = 24 * 3600 * 1000;
/// How long after its answer the event of a call that was running by then may
/// seem to say that it began: the event's own way counts as part of it. The
/// model needs longer to ask for the same call again.
const SLACK: Millis = 2_000;

/// A tool call as hook events name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToldCall {
    pub(super) session: SessionId,
    pub(super) agent: Option<String>,
    tool: String,
    digest: Digest,
}

impl ToldCall {
    pub(super) fn new(
        session: &SessionId,
        agent: Option<&String>,
        tool: &str,
        digest: Digest,
    ) -> Self {
        Self {
            session: session.clone(),
            agent: agent.cloned(),
            tool: tool.to_owned(),
            digest,
        }
    }

    pub(super) fn of(request: &Request) -> Option<Self> {
        let origin = &request.origin;
        let session = origin.session.as_ref()?;
        let agent = origin.caller.agent_id.as_ref();
        Some(Self::new(session, agent, &request.tool, request.digest))
    }

    /// Whether both are the same call, whichever agent makes it.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        (&self.session, &self.tool, self.digest) == (&other.session, &other.tool, other.digest)
    }
}

/// An ending that was told and is not the whole truth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correction {
    pub id: RequestId,
    pub ending: Ending,
    pub at: Millis,
}

fn said(ending: &Ending) -> UntrueEnding {
    UntrueEnding {
        kind: record::kind(ending).to_owned(),
        by: match ending {
            Ending::Denied { by, .. } => Some(by.clone()),
            _ => None,
        },
    }
}

#[derive(Debug, Default)]
pub(super) struct ToldEndings {
    endings: VecDeque<(ToldCall, RequestId, Ending, Millis)>,
}

impl ToldEndings {
    /// Remembers an ending that a later "it ran" would contradict or complete.
    pub(super) fn note(&mut self, request: &Request, ending: &Ending, at: Millis) {
        let open = match ending {
            Ending::Ran(ran) => ran.took.is_none(),
            Ending::Denied { .. }
            | Ending::Terminal { .. }
            | Ending::TimedOut
            | Ending::HookGone
            | Ending::Orphaned => true,
            Ending::Allowed { .. }
            | Ending::Answered { .. }
            | Ending::Stopped { .. }
            | Ending::Undeliverable { .. }
            | Ending::Dropped { .. } => false,
        };
        if let (true, Some(call)) = (open, ToldCall::of(request)) {
            if self.endings.len() >= MAX_TOLD {
                self.endings.pop_front();
            }
            let told = (call, request.id.clone(), ending.clone(), at);
            self.endings.push_back(told);
        }
    }

    /// The denial that came after the terminal's yes. How long the call takes
    /// is still to come.
    pub(super) fn was_first(&mut self, id: &RequestId, since: Millis) -> Option<Correction> {
        let mut endings = self.endings.iter_mut();
        let (_, _, ending, at) = endings.find(|(_, of, _, _)| of == id)?;
        let Ending::Denied { .. } = ending else {
            return None;
        };
        let corrects = Some(said(ending));
        *ending = Ending::Ran(Ran {
            since: Some(since),
            took: None,
            corrects,
        });
        let (id, ending, at) = (id.clone(), ending.clone(), *at);
        Some(Correction { id, ending, at })
    }

    /// The ending that this event, which came at `now`, puts right. A call that
    /// began only after the answer is another one.
    pub(super) fn ran(
        &mut self,
        call: &ToldCall,
        took: Option<Millis>,
        now: Millis,
    ) -> Option<Correction> {
        while let Some((_, _, _, at)) = self.endings.front()
            && *at < now - AGE
        {
            self.endings.pop_front();
        }
        let began = now - took.unwrap_or_default();
        let mut told = self.endings.iter();
        let place = told.position(|(told, _, _, at)| told == call && began <= at + SLACK)?;
        let (_, id, ending, at) = self.endings.remove(place)?;
        let ran = match ending {
            Ending::Ran(ran) => Ran { took, ..ran },
            Ending::Terminal { .. } => Ran {
                took,
                ..Ran::default()
            },
            other => Ran {
                took,
                corrects: Some(said(&other)),
                ..Ran::default()
            },
        };
        let ending = Ending::Ran(ran);
        Some(Correction { id, ending, at })
    }
}
