//! How a session's child ends: told to, by itself, or because nobody needs it.
//! What ran beside its turns ends with it, and that is said.

use super::{AskEnding, ChildNo, Effect, Notice, Session, SessionState, turn};
use crate::clock::Millis;
use crate::talk::Exit;

impl Session {
    /// Ends what runs. The words it had are told to be lost.
    pub(super) fn stop(&mut self, asked: bool, out: &mut Vec<Effect>) {
        let Some(child) = self.listening() else {
            return;
        };
        self.forget_asks(&AskEnding::Cancelled, out);
        self.end_background(out);
        if let SessionState::Running(run) = std::mem::replace(&mut self.state, SessionState::Idle) {
            turn::abandon(*run, out);
        }
        out.push(Effect::Close { child });
        self.state = SessionState::Stopping {
            child,
            asked,
            then: Vec::new(),
        };
    }

    /// Ends a child that rests with nothing to do, so that the next words start
    /// one that knows the whole conversation.
    pub(super) fn let_go(&mut self, out: &mut Vec<Effect>) {
        if let SessionState::Resting { child, .. } = self.state
            && self.asks.is_empty()
            && self.background.is_empty()
        {
            self.close(child, out);
        }
    }

    pub(super) fn close(&mut self, child: ChildNo, out: &mut Vec<Effect>) {
        out.push(Effect::Close { child });
        self.state = SessionState::Stopping {
            child,
            asked: false,
            then: Vec::new(),
        };
    }

    /// What runs beside the turns ends with the child, and that is said.
    pub(super) fn end_background(&mut self, out: &mut Vec<Effect>) {
        let tasks = std::mem::take(&mut self.background);
        if !tasks.is_empty() {
            out.push(Effect::Tell(Notice::BackgroundEnded { tasks }));
        }
    }

    pub(super) fn ended(&mut self, exit: Exit, now: Millis, out: &mut Vec<Effect>) {
        match &exit {
            Exit::UnknownSession => self.begun = false,
            Exit::InUse => self.begun = true,
            Exit::Finished
            | Exit::Crashed { .. }
            | Exit::Killed
            | Exit::NotInstalled
            | Exit::ProjectGone
            | Exit::NotStarted { .. } => {}
        }
        self.forget_asks(&AskEnding::ChildGone, out);
        self.end_background(out);
        match std::mem::replace(&mut self.state, SessionState::Idle) {
            SessionState::Idle => {}
            // The only sign of an unknown conversation may be an error turn.
            SessionState::Resting { .. } => {
                if exit == Exit::UnknownSession {
                    out.push(Effect::Tell(Notice::Expired));
                }
            }
            SessionState::Stopping { asked, then, .. } => {
                if asked {
                    out.push(Effect::Tell(Notice::Stopped));
                }
                if !then.is_empty() {
                    self.start(then, now, out);
                }
            }
            SessionState::Running(run) => {
                turn::abandon(*run, out);
                out.push(Effect::Tell(match exit {
                    Exit::Finished | Exit::Killed => Notice::Crashed { words: None },
                    Exit::Crashed { words, .. } => Notice::Crashed { words },
                    Exit::NotInstalled => Notice::NotInstalled,
                    Exit::ProjectGone => Notice::ProjectGone,
                    Exit::NotStarted { problem } => Notice::NotStarted { problem },
                    Exit::UnknownSession => Notice::Expired,
                    Exit::InUse => Notice::InUse,
                }));
            }
        }
    }
}
