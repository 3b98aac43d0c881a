//! The child of a session, whichever agent it is: what it says comes in the
//! same words, and what it is told goes in them.

use std::collections::VecDeque;

use super::codex::CodexDriver;
use crate::agents::codex::ask;
use crate::claude::process::ClaudeChild;
use crate::talk::{AgentEvent, Say};

pub(super) enum Hand {
    Claude {
        child: ClaudeChild,
        /// What it has not been told yet.
        unsaid: VecDeque<Say>,
    },
    Codex(Box<CodexDriver>),
}

impl Hand {
    pub(super) fn claude(child: ClaudeChild) -> Self {
        let unsaid = VecDeque::new();
        Self::Claude { child, unsaid }
    }

    /// The next event; writes what is to be said meanwhile. Nothing is lost
    /// when this is dropped.
    pub(super) async fn next(&mut self) -> AgentEvent {
        match self {
            Self::Codex(driver) => driver.next().await,
            Self::Claude { child, unsaid } => loop {
                tokio::select! {
                    event = child.events.recv() => match event {
                        Some(event) => return event,
                        None => std::future::pending().await,
                    },
                    room = child.say.reserve(), if !unsaid.is_empty() => match room {
                        Ok(room) => {
                            if let Some(say) = unsaid.pop_front() {
                                room.send(say.to_line());
                            }
                        }
                        // It reads no more; its end will tell why.
                        Err(_) => unsaid.clear(),
                    },
                }
            },
        }
    }

    pub(super) fn tell(&mut self, say: Say) {
        match self {
            Self::Claude { unsaid, .. } => unsaid.push_back(say),
            Self::Codex(driver) => driver.tell(say),
        }
    }

    /// Interrupts what it does and ends it.
    pub(super) fn stop(&mut self) {
        match self {
            Self::Claude { child, .. } => child.stop.cancel(),
            Self::Codex(driver) => driver.stop(),
        }
    }

    /// What Codex itself asked under that name.
    pub(super) fn asked(&self, name: &str) -> Option<&ask::CodexAsk> {
        match self {
            Self::Claude { .. } => None,
            Self::Codex(driver) => driver.asked(name),
        }
    }

    /// What a person decided on that request, for when the session passes it on.
    pub(super) fn decided(
        &mut self,
        name: &str,
        decision: ask::CodexDecision,
        reason: Option<String>,
    ) {
        if let Self::Codex(driver) = self {
            driver.decided(name, decision, reason);
        }
    }
}

#[cfg(test)]
mod tests;
