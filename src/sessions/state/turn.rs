//! One turn of a session's child: the words it was given, what it waits for,
//! and how it ends.

use super::{ChildNo, Effect, Finish, Notice, PersonText, Session, SessionState, TextFate};
use crate::clock::Millis;
use crate::sessions::progress::Progress;
use crate::talk::{How, Say, TextStage, TurnEnd};

#[derive(Debug)]
pub(super) struct RunningTurn {
    pub(super) child: ChildNo,
    pub(super) texts: Vec<SentText>,
    pub(super) seen: Millis,
    pub(super) progress: Progress,
    /// Whether this child reports how far each text came.
    pub(super) stages: bool,
    pub(super) words: Option<String>,
}

#[derive(Debug)]
pub(super) struct SentText {
    pub(super) uuid: String,
    pub(super) started: bool,
}

pub(super) fn abandon(run: RunningTurn, out: &mut Vec<Effect>) {
    let unread = run.texts.iter().filter(|sent| !sent.started).count();
    for sent in run.texts {
        let fate = if sent.started && run.stages {
            TextFate::Failed
        } else {
            TextFate::Lost
        };
        out.push(Effect::Fate {
            uuid: sent.uuid,
            fate,
        });
    }
    if unread > 0 {
        out.push(Effect::Tell(Notice::NotCarriedOut { texts: unread }));
    }
}

impl Session {
    pub(super) fn turn_end(&mut self, end: &TurnEnd, now: Millis, out: &mut Vec<Effect>) {
        self.end_turns_asks(out);
        let SessionState::Running(run) = std::mem::replace(&mut self.state, SessionState::Idle)
        else {
            return;
        };
        let run = *run;
        let how = end.how;
        let fate = if how == How::Done {
            TextFate::Done
        } else {
            TextFate::Failed
        };
        let (over, waiting): (Vec<_>, Vec<_>) = run
            .texts
            .into_iter()
            .partition(|sent| sent.started || !run.stages);
        out.extend(over.into_iter().map(|sent| Effect::Fate {
            uuid: sent.uuid,
            fate,
        }));
        if !end.is_unknown_session {
            out.push(Effect::Finished(Box::new(Finish {
                how,
                answer: end.text.clone().or(run.words),
                turns: end.turns,
                view: run.progress.view(now),
            })));
        }
        self.state = if waiting.is_empty() && end.queued == 0 {
            SessionState::Resting {
                child: run.child,
                since: now,
            }
        } else {
            SessionState::Running(Box::new(RunningTurn {
                texts: waiting,
                stages: run.stages,
                ..RunningTurn::new(run.child, run.progress.began(), now)
            }))
        };
    }
}

impl RunningTurn {
    /// A turn of the task that began then.
    pub(super) fn new(child: ChildNo, began: Millis, now: Millis) -> Self {
        Self {
            child,
            texts: Vec::new(),
            seen: now,
            progress: Progress::new(began),
            stages: false,
            words: None,
        }
    }

    pub(super) fn send(&mut self, text: PersonText, out: &mut Vec<Effect>) {
        out.push(Effect::Write {
            child: self.child,
            say: Say::Text {
                uuid: text.uuid.clone(),
                text: text.body,
            },
        });
        self.texts.push(SentText {
            uuid: text.uuid,
            started: false,
        });
    }

    pub(super) fn staged(&mut self, uuid: &str, stage: TextStage, out: &mut Vec<Effect>) {
        self.stages = true;
        let Some(at) = self.texts.iter().position(|sent| sent.uuid == uuid) else {
            return;
        };
        match stage {
            TextStage::Queued => {}
            // The end of the turn says how it went.
            TextStage::Started | TextStage::Completed => self.texts[at].started = true,
            TextStage::Cancelled if self.texts[at].started => {}
            TextStage::Cancelled => {
                let sent = self.texts.remove(at);
                out.push(Effect::Fate {
                    uuid: sent.uuid,
                    fate: TextFate::Lost,
                });
                out.push(Effect::Tell(Notice::NotCarriedOut { texts: 1 }));
            }
        }
    }
}
