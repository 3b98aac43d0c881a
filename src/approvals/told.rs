//! What was said of calls that can still turn out to have run: a person at the
//! terminal may have allowed one a moment before it was refused here. Pure and
//! bounded.

use std::collections::VecDeque;

use super::record;
use super::request::{Digest, Ending, Ran, Request, UntrueEnding};
use crate::clock::Millis;
use crate::ids::{RequestId, SessionId};
use crate::talk::{CallFate, DecidedBy};

/// The oldest are forgotten first.
const MAX_TOLD: usize = 1_024;
const AGE: Millis = 24 * 3600 * 1000;
/// How long after its answer the event of a call that was running by then may
/// seem to say that it began: the event's own way counts as part of it. The
/// model needs longer to ask for the same call again.
const SLACK: Millis = 2_000;

/// A tool call as hook events name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldCall {
    pub(super) session: SessionId,
    pub(super) agent: Option<String>,
    tool: String,
    digest: Digest,
}

impl ToldCall {
    pub fn new(session: &SessionId, agent: Option<&String>, tool: &str, digest: Digest) -> Self {
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

    /// Whether both are the same call of the same agent. A subagent goes on
    /// under its own id when its session gets another.
    pub(super) fn is(&self, other: &Self) -> bool {
        let same_place = self.agent.is_some() || self.session == other.session;
        same_place
            && (&self.agent, &self.tool, self.digest) == (&other.agent, &other.tool, other.digest)
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

/// Whether two ids can name the same call; one that nobody knows can.
pub(super) fn may_be(one: Option<&str>, other: Option<&str>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    }
}

/// What has to be told instead, now that the agent wrote down what became of
/// the call; `None` where that was told already.
pub(super) fn corrected(told: &Ending, fate: CallFate) -> Option<Ending> {
    match (told, fate) {
        (
            Ending::Allowed {
                by,
                reach,
                cancelled: false,
            },
            CallFate::Cancelled { .. },
        ) => Some(Ending::Allowed {
            by: by.clone(),
            reach: reach.clone(),
            cancelled: true,
        }),
        (
            Ending::Allowed { .. } | Ending::Ran(_) | Ending::Terminal { allowed: None },
            CallFate::Refused,
        ) => Some(Ending::DeniedElsewhere),
        (
            Ending::Ran(_) | Ending::Terminal { allowed: None } | Ending::HookGone,
            CallFate::Cancelled { before_run: true },
        ) => Some(Ending::Terminal {
            allowed: Some(false),
        }),
        (Ending::Ran(ran), CallFate::Ran(by @ Some(DecidedBy::Other))) if ran.by != by => {
            Some(Ending::Ran(Ran { by, ..ran.clone() }))
        }
        (Ending::Terminal { allowed: None }, CallFate::Ran(by)) => Some(Ending::Ran(Ran {
            by,
            ..Ran::default()
        })),
        (
            Ending::Denied { .. } | Ending::TimedOut | Ending::HookGone | Ending::Orphaned,
            CallFate::Ran(by),
        ) => Some(Ending::Ran(Ran {
            by,
            corrects: Some(said(told)),
            ..Ran::default()
        })),
        _ => None,
    }
}

#[derive(Debug)]
struct ToldEnding {
    call: ToldCall,
    /// The agent's own id of the call, once it is known.
    name: Option<Box<str>>,
    id: RequestId,
    ending: Ending,
    at: Millis,
}

#[derive(Debug, Default)]
pub(super) struct ToldEndings {
    endings: VecDeque<ToldEnding>,
}

impl ToldEndings {
    /// Remembers an ending that a later "it ran" would contradict or complete.
    pub(super) fn note(
        &mut self,
        request: &Request,
        name: Option<Box<str>>,
        ending: &Ending,
        at: Millis,
    ) {
        if let (true, Some(call)) = (is_open(ending), ToldCall::of(request)) {
            if self.endings.len() >= MAX_TOLD {
                self.endings.pop_front();
            }
            self.endings.push_back(ToldEnding {
                call,
                name,
                id: request.id.clone(),
                ending: ending.clone(),
                at,
            });
        }
    }

    pub(super) fn call_is(&mut self, id: &RequestId, name: &str) {
        if let Some(told) = self.endings.iter_mut().find(|told| told.id == *id) {
            told.name = Some(name.into());
        }
    }

    pub(super) fn holds(&self, call: &ToldCall, name: Option<&str>) -> bool {
        let mut told = self.endings.iter();
        told.any(|told| told.call.is(call) && may_be(told.name.as_deref(), name))
    }

    /// What was told of this one is another ending now.
    pub(super) fn replace(&mut self, id: &RequestId, ending: &Ending) {
        self.endings
            .retain(|told| told.id != *id || is_open(ending));
        if let Some(told) = self.endings.iter_mut().find(|told| told.id == *id) {
            told.ending = ending.clone();
        }
    }

    /// The denial that came after the terminal's yes. How long the call takes
    /// is still to come.
    pub(super) fn was_first(&mut self, id: &RequestId, since: Millis) -> Option<Correction> {
        let told = self.endings.iter_mut().find(|told| told.id == *id)?;
        let Ending::Denied { .. } = told.ending else {
            return None;
        };
        told.ending = Ending::Ran(Ran {
            since: Some(since),
            corrects: Some(said(&told.ending)),
            ..Ran::default()
        });
        let (id, ending, at) = (id.clone(), told.ending.clone(), told.at);
        Some(Correction { id, ending, at })
    }

    /// The ending that this event, which came at `now`, puts right. A call of
    /// another id, or that began only after the answer, is another one.
    pub(super) fn ran(
        &mut self,
        call: &ToldCall,
        name: Option<&str>,
        took: Option<Millis>,
        by: Option<DecidedBy>,
        now: Millis,
    ) -> Option<Correction> {
        while let Some(told) = self.endings.front()
            && told.at < now - AGE
        {
            self.endings.pop_front();
        }
        let began = now - took.unwrap_or_default();
        let mut told = self.endings.iter();
        let place = told.position(|told| {
            let is_known = name.is_some() && told.name.as_deref() == name;
            told.call.is(call)
                && may_be(told.name.as_deref(), name)
                && (is_known || began <= told.at + SLACK)
        })?;
        let ToldEnding { id, ending, at, .. } = self.endings.remove(place)?;
        let ran = match ending {
            Ending::Ran(ran) => Ran {
                by: by.or(ran.by),
                took,
                ..ran
            },
            Ending::Terminal { .. } => Ran {
                by,
                took,
                ..Ran::default()
            },
            other => Ran {
                by,
                took,
                corrects: Some(said(&other)),
                ..Ran::default()
            },
        };
        let ending = Ending::Ran(ran);
        Some(Correction { id, ending, at })
    }
}

/// Whether a later "it ran" would contradict or complete it.
fn is_open(ending: &Ending) -> bool {
    match ending {
        Ending::Ran(ran) => ran.took.is_none(),
        Ending::Denied { .. }
        | Ending::Terminal { .. }
        | Ending::TimedOut
        | Ending::HookGone
        | Ending::Orphaned => true,
        Ending::Allowed { .. }
        | Ending::Answered { .. }
        | Ending::DeniedElsewhere
        | Ending::Stopped { .. }
        | Ending::Undeliverable { .. }
        | Ending::Dropped { .. } => false,
    }
}
