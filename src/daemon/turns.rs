//! When each session's turn began, so that the end of a long one can be told,
//! once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::approvals::request::Millis;
use crate::ids::SessionId;

const MAX_SESSIONS: usize = 1_024;

#[derive(Default)]
pub(super) struct Turns {
    sessions: Mutex<HashMap<SessionId, Turn>>,
}

struct Turn {
    began: Millis,
    told: bool,
}

impl Turns {
    pub(super) fn began(&self, session: &SessionId, now: Millis) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= MAX_SESSIONS && !sessions.contains_key(session) {
            let oldest = sessions
                .iter()
                .min_by_key(|(_, turn)| turn.began)
                .map(|(id, _)| id.clone());
            if let Some(oldest) = oldest {
                sessions.remove(&oldest);
            }
        }
        let turn = Turn {
            began: now,
            told: false,
        };
        sessions.insert(session.clone(), turn);
    }

    /// How long the turn took, if it took at least `least` and nobody was told
    /// of its end yet.
    pub(super) fn tell(&self, session: &SessionId, least: Millis, now: Millis) -> Option<Millis> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = sessions.get_mut(session)?;
        let took = now - turn.began;
        let due = !turn.told && took >= least;
        turn.told |= due;
        due.then_some(took)
    }

    pub(super) fn ended(&self, session: &SessionId) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.remove(session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_turn_is_told_once_and_a_short_one_never() {
        let turns = Turns::default();
        let session = SessionId::parse("s").unwrap();
        assert_eq!(turns.tell(&session, 0, 5), None);
        turns.began(&session, 10);
        assert_eq!(turns.tell(&session, 60, 69), None);
        assert_eq!(turns.tell(&session, 60, 70), Some(60));
        assert_eq!(turns.tell(&session, 60, 90), None);
        turns.began(&session, 100);
        assert_eq!(turns.tell(&session, 60, 200), Some(100));
        turns.ended(&session);
        assert_eq!(turns.tell(&session, 0, 300), None);
    }

    #[test]
    fn the_oldest_session_makes_room() {
        let turns = Turns::default();
        for n in 0..2 * MAX_SESSIONS {
            let id = SessionId::parse(&format!("s{n}")).unwrap();
            turns.began(&id, Millis::try_from(n).unwrap());
        }
        assert_eq!(turns.sessions.lock().unwrap().len(), MAX_SESSIONS);
    }
}
