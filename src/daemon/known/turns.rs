//! How long each session's turn takes and whether the phone asked for it, so
//! that the end of a long one, or of one that was asked for, is told once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::bounded::Bounded;
use crate::clock::Millis;
use crate::ids::SessionId;

const MAX_SESSIONS: usize = 1_024;

pub(crate) struct Turns {
    events: AtomicU64,
    sessions: Mutex<Bounded<SessionId, ClaudeTurn>>,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            events: AtomicU64::new(0),
            sessions: Mutex::new(Bounded::new(MAX_SESSIONS)),
        }
    }
}

#[derive(Default)]
struct ClaudeTurn {
    /// The prompt it began with; one that is read on the way has the same id.
    prompt: Option<String>,
    began: Millis,
    /// The last that was heard of it: what comes after is idling.
    stirred: Millis,
    /// Words from the phone are among what it works on.
    asked: bool,
    told: bool,
    /// The newest event of the session, counted over all sessions.
    event: u64,
    /// Its session has ended; only who waits to tell of it asks.
    over: bool,
}

/// Whether a turn that stopped is still as it was then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SinceStop {
    Nothing,
    /// The session ended: the stop was the end.
    SessionOver,
    /// Work went on, or another turn began.
    WentOn,
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, Bounded<SessionId, ClaudeTurn>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session reads a prompt; `asked` says that it came from the phone.
    pub(crate) fn reads(
        &self,
        session: &SessionId,
        prompt: Option<String>,
        asked: bool,
        now: Millis,
    ) {
        let mut sessions = self.lock();
        if let Some(turn) = sessions.get_mut(session)
            && prompt.is_some()
            && turn.prompt == prompt
        {
            turn.asked |= asked;
            turn.told &= !asked;
            turn.stirred = now;
            return;
        }
        *sessions.entry(session.clone(), |turn| turn.began) = ClaudeTurn {
            prompt,
            began: now,
            stirred: now,
            asked,
            told: false,
            event: self.count(),
            over: false,
        };
    }

    fn count(&self) -> u64 {
        self.events.fetch_add(1, Ordering::Relaxed)
    }

    /// The event by which the turn stopped.
    pub(crate) fn stopped(&self, session: &SessionId) -> Option<u64> {
        Some(self.lock().get_mut(session)?.event)
    }

    /// What happened since the turn stopped by `event`.
    pub(crate) fn since_stop(&self, session: &SessionId, event: u64) -> SinceStop {
        match self.lock().get_mut(session) {
            Some(turn) if turn.event == event && turn.over => SinceStop::SessionOver,
            Some(turn) if turn.event == event => SinceStop::Nothing,
            Some(_) | None => SinceStop::WentOn,
        }
    }

    /// Something happened in the turn, its end included.
    pub(crate) fn stirs(&self, session: &SessionId, now: Millis) {
        let event = self.count();
        if let Some(turn) = self.lock().get_mut(session) {
            turn.stirred = now;
            turn.event = event;
            turn.over = false;
        }
    }

    /// How long the turn took, if its end is to be told and nobody was told
    /// yet: it was asked for, or took at least `least`.
    pub(crate) fn tell(&self, session: &SessionId, least: Option<Millis>) -> Option<Millis> {
        let mut sessions = self.lock();
        let turn = sessions.get_mut(session)?;
        let took = turn.stirred - turn.began;
        let due = turn.asked || least.is_some_and(|least| took >= least);
        let due = due && !turn.told;
        turn.told |= due;
        turn.asked = false;
        due.then_some(took)
    }

    /// The session ended; a stop that waits to be told is told by that.
    pub(crate) fn ended(&self, session: &SessionId) {
        if let Some(turn) = self.lock().get_mut(session) {
            turn.over = true;
        }
    }

    /// Nothing more will be told of this session.
    pub(crate) fn forget(&self, session: &SessionId) {
        self.lock().remove(session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> SessionId {
        SessionId::parse("s").unwrap()
    }

    #[test]
    fn a_long_turn_is_told_once_and_a_short_one_never() {
        let (turns, session) = (Turns::default(), session());
        assert_eq!(turns.tell(&session, Some(0)), None);
        turns.reads(&session, Some("1".to_owned()), false, 10);
        turns.stirs(&session, 69);
        assert_eq!(turns.tell(&session, Some(60)), None);
        turns.stirs(&session, 70);
        assert_eq!(turns.tell(&session, None), None, "nobody wants to know");
        assert_eq!(turns.tell(&session, Some(60)), Some(60));
        assert_eq!(turns.tell(&session, Some(60)), None);
        turns.reads(&session, Some("2".to_owned()), false, 100);
        turns.stirs(&session, 200);
        assert_eq!(turns.tell(&session, Some(60)), Some(100));
        turns.reads(&session, Some("3".to_owned()), false, 300);
        turns.forget(&session);
        assert_eq!(turns.tell(&session, Some(0)), None);
    }

    #[test]
    fn idling_after_a_short_turn_does_not_make_it_long() {
        let (turns, session) = (Turns::default(), session());
        turns.reads(&session, Some("1".to_owned()), false, 0);
        turns.stirs(&session, 5_000);
        // The idle prompt comes a minute later and is not a part of the turn.
        assert_eq!(turns.tell(&session, Some(30_000)), None);
    }

    #[test]
    fn what_the_phone_asked_for_is_told_however_short() {
        let (turns, session) = (Turns::default(), session());
        turns.reads(&session, Some("1".to_owned()), true, 0);
        turns.stirs(&session, 40);
        assert_eq!(turns.tell(&session, None), Some(40));
        turns.stirs(&session, 50);
        assert_eq!(turns.tell(&session, None), None);
    }

    #[test]
    fn words_read_on_the_way_do_not_begin_another_turn() {
        let (turns, session) = (Turns::default(), session());
        turns.reads(&session, Some("1".to_owned()), false, 0);
        turns.reads(&session, Some("1".to_owned()), true, 60);
        turns.stirs(&session, 90);
        assert_eq!(turns.tell(&session, None), Some(90));
    }

    #[test]
    fn a_turn_that_was_told_is_told_again_only_for_words_of_the_phone() {
        let (turns, session) = (Turns::default(), session());
        let prompt = || Some("1".to_owned());
        turns.reads(&session, prompt(), false, 0);
        turns.stirs(&session, 70);
        assert_eq!(turns.tell(&session, Some(60)), Some(70));
        turns.reads(&session, prompt(), false, 80);
        assert_eq!(turns.tell(&session, Some(60)), None);
        turns.reads(&session, prompt(), true, 90);
        assert_eq!(turns.tell(&session, Some(60)), Some(90));
    }

    #[test]
    fn what_followed_a_stop_tells_whether_it_was_the_end() {
        let (turns, session) = (Turns::default(), session());
        assert_eq!(turns.stopped(&session), None);
        turns.reads(&session, Some("1".to_owned()), false, 0);
        turns.stirs(&session, 70);
        let first = turns.stopped(&session).unwrap();
        assert_eq!(turns.since_stop(&session, first), SinceStop::Nothing);
        turns.stirs(&session, 80);
        assert_eq!(turns.since_stop(&session, first), SinceStop::WentOn);
        let second = turns.stopped(&session).unwrap();
        turns.ended(&session);
        assert_eq!(turns.since_stop(&session, second), SinceStop::SessionOver);
        assert_eq!(turns.tell(&session, Some(60)), Some(80));
        // A prompt of the same id's next turn is another turn, too.
        turns.reads(&session, Some("2".to_owned()), false, 90);
        assert_eq!(turns.since_stop(&session, second), SinceStop::WentOn);
        turns.forget(&session);
        assert_eq!(turns.since_stop(&session, second), SinceStop::WentOn);
    }

    #[test]
    fn the_oldest_session_makes_room() {
        let turns = Turns::default();
        for n in 0..2 * MAX_SESSIONS {
            let id = SessionId::parse(&format!("s{n}")).unwrap();
            turns.reads(&id, None, false, Millis::try_from(n).unwrap());
        }
        assert_eq!(turns.lock().len(), MAX_SESSIONS);
    }
}
