//! Codex's requests at the desk. They outlive a connection: one that comes
//! again on the next is the same request, with the same card, and an answer
//! given meanwhile goes to it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::register::{named, put_to_a_person};
use super::{COMEBACK, Codex, CodexOrder};
use crate::agents::codex::act::CodexAct;
use crate::agents::codex::ask::{CodexAsk, CodexDecision};
use crate::agents::codex::follow::Follower;
use crate::approvals::desk::{Delivery, Handover};
use crate::approvals::request::{Digest, Dropped, Ending, Reach};
use crate::approvals::{Correction, Withdrawal};
use crate::clock::Millis;
use crate::daemon::terminals::watching;
use crate::ids::{RequestId, SessionId};

/// Codex says at once that the terminal's no was first; a yes is silent.
const DOUBT: Duration = Duration::from_millis(100);
/// What a tap met that came a moment after the terminal's answer.
const TERMINAL_FIRST: Ending = Ending::Terminal { allowed: None };
/// Requests whose outcome is still of interest.
const MAX_KNOWN: usize = 512;

/// The desk's answer to the request of this name.
#[derive(Debug)]
pub(super) struct CodexAnswered {
    name: String,
    what: AnswerKind,
}

#[derive(Debug)]
pub(super) enum AnswerKind {
    Now(Handover),
    /// Decided in an earlier run of nod's that could not hand it over.
    Before {
        ending: Ending,
        digest: Digest,
    },
    /// The desk waits for nobody any more.
    Nothing,
}

#[derive(Debug)]
struct KnownAsk {
    id: RequestId,
    ask: CodexAsk,
    digest: Digest,
    session: SessionId,
    gone: CancellationToken,
    stage: AskStage,
    /// Not seen since the connection broke.
    missed_since: Option<Instant>,
}

#[derive(Debug)]
enum AskStage {
    Asking,
    /// Decided; Codex is not there to hear it. It may have heard it before,
    /// where it was sent.
    Held {
        handover: Handover,
        sent: bool,
    },
    /// Sent; the receipt waits for Codex's word.
    Sent {
        handover: Option<Handover>,
        allowed: bool,
        /// Until when a "no" of the terminal's may still turn up.
        sure: Option<Instant>,
    },
    /// It asks for something else now.
    Changed,
    /// Over; what became of the call may still be told.
    Over {
        allowed_here: bool,
    },
}

impl AskStage {
    const OVER: Self = Self::Over {
        allowed_here: false,
    };
}

pub(super) struct CodexAsks {
    codex: Arc<Codex>,
    orders: mpsc::Sender<CodexOrder>,
    known: HashMap<String, KnownAsk>,
}

impl CodexAsks {
    pub(super) fn new(codex: Arc<Codex>, orders: mpsc::Sender<CodexOrder>) -> Self {
        Self {
            codex,
            orders,
            known: HashMap::new(),
        }
    }

    /// Codex asks, for the first time or again.
    pub(super) async fn asked(&mut self, follower: &mut Follower, ask: CodexAsk) -> Vec<CodexAct> {
        let name = ask.name.clone();
        if let Some(known) = self.known.get_mut(&name) {
            known.missed_since = None;
            match std::mem::replace(&mut known.stage, AskStage::Asking) {
                AskStage::Held { handover, .. } => {
                    let what = AnswerKind::Now(handover);
                    return self.answer(follower, CodexAnswered { name, what }).await;
                }
                other => known.stage = other,
            }
            return Vec::new();
        }
        let (Ok(id), Ok(session)) = (RequestId::parse(&name), SessionId::parse(&ask.thread)) else {
            return Vec::new();
        };
        if !self.has_room() {
            return Vec::new();
        }
        let gone = CancellationToken::new();
        let known = KnownAsk {
            id: id.clone(),
            digest: Digest::of(&named(ask.clone()).await.input),
            ask: ask.clone(),
            session: session.clone(),
            gone: gone.clone(),
            stage: AskStage::Asking,
            missed_since: None,
        };
        self.known.insert(name.clone(), known);
        let (codex, orders) = (Arc::clone(&self.codex), self.orders.clone());
        tokio::spawn(async move {
            let what = put_to_a_person(&codex, id, session, ask, &gone).await;
            // The home's task ends only with the daemon.
            let _ = orders
                .send(CodexOrder::Answered(CodexAnswered { name, what }))
                .await;
        });
        Vec::new()
    }

    /// What is beyond is answered in the terminal alone.
    fn has_room(&mut self) -> bool {
        if self.known.len() >= MAX_KNOWN {
            self.known
                .retain(|_, known| !matches!(known.stage, AskStage::Over { .. }));
        }
        self.known.len() < MAX_KNOWN
    }

    /// Hands the desk's answer to Codex.
    pub(super) async fn answer(
        &mut self,
        follower: &mut Follower,
        answered: CodexAnswered,
    ) -> Vec<CodexAct> {
        let CodexAnswered { name, what } = answered;
        let Some(known) = self.known.get_mut(&name) else {
            if let AnswerKind::Now(handover) = what {
                self.undone(&name, handover, TERMINAL_FIRST).await;
            }
            return Vec::new();
        };
        let (ending, digest, handover) = match what {
            AnswerKind::Nothing => {
                known.stage = AskStage::OVER;
                return Vec::new();
            }
            AnswerKind::Before { ending, digest } => (ending, digest, None),
            // Codex is back and has not asked this again yet.
            AnswerKind::Now(handover) if known.missed_since.is_some() => {
                known.stage = held(handover);
                return Vec::new();
            }
            AnswerKind::Now(handover) => {
                let answer = &handover.answer;
                (answer.ending.clone(), answer.digest, Some(handover))
            }
        };
        let Some((decision, reason)) = decision(&ending) else {
            known.stage = AskStage::OVER;
            return Vec::new();
        };
        let allowed = !matches!(decision, CodexDecision::Deny | CodexDecision::Interrupt);
        // What was shown is what runs.
        let same = digest == known.digest || !allowed;
        let acts = if same {
            follower.decide(&name, &decision, reason.as_deref())
        } else {
            None
        };
        let Some(acts) = acts else {
            let changed = matches!(known.stage, AskStage::Changed);
            known.stage = AskStage::OVER;
            if let Some(handover) = handover {
                // What is asked now is not what was shown: the terminal still asks.
                let ending = if changed {
                    let why = Dropped::Changed;
                    Ending::Dropped { why }
                } else if same {
                    TERMINAL_FIRST
                } else {
                    Ending::Orphaned
                };
                self.undone(&name, handover, ending).await;
            }
            return Vec::new();
        };
        known.stage = AskStage::Sent {
            handover,
            allowed,
            sure: None,
        };
        acts
    }

    /// What was claimed here did not reach Codex: the card must not say that it
    /// was decided here.
    async fn undone(&self, name: &str, mut handover: Handover, ending: Ending) {
        if let (Some(_), Ok(id)) = (decision(&handover.answer.ending), RequestId::parse(name)) {
            info!(request = %id, "a tap did not reach Codex");
            let at = self.codex.terminals.cards.now();
            watching::correct(&self.codex.terminals, Correction { id, ending, at }).await;
        }
        handover.report(Delivery::Lost);
    }

    /// As [`Self::answer`], while Codex is not there.
    pub(super) fn hold(&mut self, answered: CodexAnswered) {
        let Some(known) = self.known.get_mut(&answered.name) else {
            return;
        };
        match answered.what {
            AnswerKind::Now(handover) if decision(&handover.answer.ending).is_some() => {
                known.stage = held(handover);
            }
            AnswerKind::Now(_) | AnswerKind::Before { .. } | AnswerKind::Nothing => {
                self.known.remove(&answered.name);
            }
        }
    }

    /// The terminal answered.
    pub(super) fn resolved(&mut self, name: &str) {
        let Some(known) = self.known.get_mut(name) else {
            return;
        };
        known.gone.cancel();
        if self.codex.terminals.cards.desk.answered_there(&known.id) {
            info!(request = %known.id, "answered in the terminal");
        }
        if let AskStage::Held { handover, .. } = &mut known.stage {
            handover.report(Delivery::Lost);
        }
        known.stage = AskStage::OVER;
    }

    /// What was shown is not what is asked any more: nobody's yes counts.
    pub(super) fn changed(&mut self, name: &str) {
        if let Some(known) = self.known.get_mut(name) {
            known.gone.cancel();
            known.stage = AskStage::Changed;
            let desk = &self.codex.terminals.cards.desk;
            desk.drop_one(&known.id, Dropped::Changed);
        }
    }

    /// A session of a chat asks a person what this thread asked.
    pub(super) fn leave(&mut self, thread: &str) {
        let desk = &self.codex.terminals.cards.desk;
        self.known.retain(|_, known| {
            if known.ask.thread != thread || !matches!(known.stage, AskStage::Asking) {
                return true;
            }
            known.gone.cancel();
            desk.drop_one(&known.id, Dropped::Over);
            false
        });
    }

    /// Codex has an answer; ours, unless the terminal's was under way too.
    pub(super) fn taken(&mut self, name: &str) {
        let Some(known) = self.known.get_mut(name) else {
            return;
        };
        if let AskStage::Sent {
            handover,
            allowed,
            sure,
        } = &mut known.stage
        {
            if *allowed && known.ask.item.is_some() && !known.ask.is_question() {
                *sure = Some(Instant::now() + DOUBT);
                return;
            }
            let allowed_here = *allowed;
            if let Some(mut handover) = handover.take() {
                handover.report(Delivery::Confirmed);
            }
            known.stage = AskStage::Over { allowed_here };
        }
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        let due = self.known.values().filter_map(|known| {
            let sure = match &known.stage {
                AskStage::Sent { sure, .. } => *sure,
                _ => None,
            };
            let missed = known.missed_since.map(|since| since + COMEBACK);
            sure.into_iter().chain(missed).min()
        });
        due.min()
    }

    /// Nothing speaks against what was decided here.
    pub(super) fn settle_due(&mut self) {
        let now = Instant::now();
        for known in self.known.values_mut() {
            if let AskStage::Sent {
                handover,
                sure: Some(sure),
                ..
            } = &mut known.stage
                && *sure <= now
            {
                if let Some(mut handover) = handover.take() {
                    handover.report(Delivery::Confirmed);
                }
                known.stage = AskStage::Over { allowed_here: true };
            }
        }
    }

    /// The call is over, or was never let through: the card must not say
    /// otherwise.
    pub(super) async fn became(&mut self, name: &str, declined: bool, took: Option<Millis>) {
        let Some(mut known) = self.known.remove(name) else {
            return;
        };
        let (mut handover, allowed_here) = match &mut known.stage {
            AskStage::Sent {
                handover, allowed, ..
            } => (handover.take(), *allowed),
            AskStage::Over { allowed_here } => (None, *allowed_here),
            AskStage::Asking | AskStage::Held { .. } | AskStage::Changed => return,
        };
        if declined && allowed_here {
            let ending = Ending::Terminal {
                allowed: Some(false),
            };
            let id = known.id;
            let at = self.codex.terminals.cards.now();
            watching::correct(&self.codex.terminals, Correction { id, ending, at }).await;
        } else if !declined {
            let ran = Withdrawal::Tool {
                tool: known.ask.tool.clone(),
                digest: known.digest,
                agent: None,
                call: None,
                took,
                fate: None,
            };
            let desk = &self.codex.terminals.cards.desk;
            desk.withdraw(&known.session, &ran, Duration::ZERO);
            for correction in desk.take_corrections() {
                watching::correct(&self.codex.terminals, correction).await;
            }
        }
        if let Some(handover) = &mut handover {
            handover.report(if declined && allowed_here {
                Delivery::Lost
            } else {
                Delivery::Confirmed
            });
        }
    }

    /// The turn was interrupted in the terminal before the call had ended: what
    /// was allowed here may never have run.
    pub(super) async fn cut_off(&mut self, name: &str) {
        let Some(mut known) = self.known.remove(name) else {
            return;
        };
        let (mut handover, allowed_here) = match &mut known.stage {
            AskStage::Sent {
                handover, allowed, ..
            } => (handover.take(), *allowed),
            AskStage::Over { allowed_here } => (None, *allowed_here),
            AskStage::Asking | AskStage::Held { .. } | AskStage::Changed => return,
        };
        if let Some(handover) = &mut handover {
            handover.report(Delivery::Confirmed);
        }
        if allowed_here && known.ask.runs() {
            let (id, at) = (known.id, self.codex.terminals.cards.now());
            let why = Dropped::CutOff;
            let ending = Ending::Dropped { why };
            watching::correct(&self.codex.terminals, Correction { id, ending, at }).await;
        }
    }

    /// The connection broke: what was asked may come again on the next, and then
    /// Codex has not heard an answer.
    pub(super) fn lost(&mut self) {
        let now = Instant::now();
        self.known.retain(|_, known| {
            known.missed_since = Some(now);
            match std::mem::replace(&mut known.stage, AskStage::OVER) {
                AskStage::Sent {
                    handover: Some(handover),
                    ..
                } => {
                    let sent = true;
                    known.stage = AskStage::Held { handover, sent };
                }
                waits @ (AskStage::Asking | AskStage::Held { .. }) => known.stage = waits,
                AskStage::Sent { handover: None, .. }
                | AskStage::Changed
                | AskStage::Over { .. } => return false,
            }
            true
        });
    }

    /// Ends what did not come again: Codex is gone, or its thread is. Nobody
    /// answered it in a terminal.
    pub(super) async fn give_up(&mut self, after: Duration) {
        let missed = self.known.iter().filter(|(_, known)| {
            let since = known.missed_since;
            since.is_some_and(|since| since.elapsed() >= after)
        });
        let missed: Vec<_> = missed.map(|(name, _)| name.clone()).collect();
        for name in missed {
            let Some(known) = self.known.remove(&name) else {
                continue;
            };
            known.gone.cancel();
            let desk = &self.codex.terminals.cards.desk;
            desk.end_one(&known.id, Ending::HookGone);
            // Whether one that was sent was heard, nobody knows: its card says so.
            if let AskStage::Held {
                handover,
                sent: false,
            } = known.stage
            {
                self.undone(&name, handover, Ending::HookGone).await;
            }
        }
    }
}

fn held(handover: Handover) -> AskStage {
    let sent = false;
    AskStage::Held { handover, sent }
}

/// What an ending means to Codex; `None` for one that leaves it to the
/// terminal.
pub(crate) fn decision(ending: &Ending) -> Option<(CodexDecision, Option<String>)> {
    let decision = match ending {
        Ending::Allowed { reach, .. } => match reach {
            Reach::Once | Reach::Unwritten | Reach::Turn(_) => CodexDecision::Once,
            Reach::Session(_) => CodexDecision::Session,
            Reach::Always { .. } => CodexDecision::Prefix,
        },
        Ending::Denied {
            reason, interrupt, ..
        } => {
            let decision = if *interrupt {
                CodexDecision::Interrupt
            } else {
                CodexDecision::Deny
            };
            return Some((decision, reason.clone()));
        }
        Ending::Answered { answers, .. } => CodexDecision::Answers(answers.clone()),
        _ => return None,
    };
    Some((decision, None))
}

#[cfg(test)]
mod tests;
