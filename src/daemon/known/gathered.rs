//! Which requests are gathered on one card, and which sessions were told that the
//! terminal answers the rest. In memory only.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

use crate::approvals::request::Request;
use crate::cards::gathered;
use crate::clock::Millis;
use crate::ids::{MessageId, RequestId, SessionId};

/// Gathered requests of one session; the terminal answers what is beyond.
pub(crate) const MAX_GATHERED: usize = 100;
/// Sessions that flood at the same time.
pub(crate) const MAX_GROUPS: usize = 64;
pub(crate) const MAX_TOLD: usize = 1_024;
/// How often a session's owner is told that the terminal answers the rest.
pub(crate) const TOLD_EVERY: Millis = 60 * 1_000;

/// Requests that name no session count as one session's.
pub(crate) type Key = Option<SessionId>;

#[derive(Default)]
pub(crate) struct Flood {
    pub(crate) book: Mutex<Book>,
    pub(crate) stirred: Notify,
}

#[derive(Default)]
pub(crate) struct Book {
    pub(crate) groups: Vec<Group>,
    pub(crate) told: HashMap<Key, Millis>,
}

/// What one card gathers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    /// What its buttons and its message are known by.
    pub(crate) id: RequestId,
    pub(crate) session: Key,
    /// Where it comes from, as the card says it.
    pub(crate) place: String,
    pub(crate) message: Option<MessageId>,
    pub(crate) waiting: Vec<RequestId>,
    pub(crate) tally: gathered::Tally,
    /// Its card does not say all of this yet.
    pub(crate) changed: bool,
    /// The terminal's head start lasts until then.
    pub(crate) not_before: Millis,
}

impl Flood {
    pub(crate) fn has_room(&self, session: &Key) -> bool {
        let book = self.lock();
        match book.groups.iter().find(|group| group.session == *session) {
            Some(group) => group.waiting.len() < MAX_GATHERED,
            None => book.groups.len() < MAX_GROUPS,
        }
    }

    pub(crate) fn is_news(&self, session: &Key, now: Millis) -> bool {
        let mut book = self.lock();
        book.told.retain(|_, at| now - *at < TOLD_EVERY);
        if book.told.len() >= MAX_TOLD || book.told.contains_key(session) {
            return false;
        }
        book.told.insert(session.clone(), now);
        true
    }

    pub(crate) fn gather(&self, request: &Request, place: String, not_before: Millis) -> bool {
        let session = &request.origin.session;
        if !self.has_room(session) {
            return false;
        }
        let mut book = self.lock();
        let known = book.groups.iter().position(|g| g.session == *session);
        let at = known.unwrap_or_else(|| {
            let id = RequestId::parse(&format!("more-{:032x}", rand::random::<u128>()));
            let id = id.expect("hex digits are an id");
            book.groups.push(Group {
                id,
                session: session.clone(),
                place,
                message: None,
                waiting: Vec::new(),
                tally: gathered::Tally::default(),
                changed: true,
                not_before,
            });
            book.groups.len() - 1
        });
        let group = &mut book.groups[at];
        group.waiting.push(request.id.clone());
        group.tally.gathered += 1;
        group.changed = true;
        drop(book);
        self.stirred.notify_one();
        true
    }

    /// A request has ended, in whatever way. The list of its session also says
    /// how many have cards of their own.
    pub(crate) fn ended(&self, request: &Request) {
        if self.leaves(&request.id, |_| {}).is_none() {
            self.changed(&request.origin.session);
        }
    }

    /// The card of this session's list is no longer true.
    fn changed(&self, session: &Key) {
        let mut book = self.lock();
        let mut groups = book.groups.iter_mut();
        let Some(group) = groups.find(|group| group.session == *session) else {
            return;
        };
        group.changed = true;
        drop(book);
        self.stirred.notify_one();
    }

    /// Takes a request off its list; the group as it is then.
    pub(crate) fn leaves(
        &self,
        id: &RequestId,
        how: impl FnOnce(&mut gathered::Tally),
    ) -> Option<Group> {
        let mut book = self.lock();
        let mut groups = book.groups.iter_mut();
        let group = groups.find(|group| group.waiting.contains(id))?;
        group.waiting.retain(|waiting| waiting != id);
        how(&mut group.tally);
        group.changed = true;
        let group = group.clone();
        drop(book);
        self.stirred.notify_one();
        Some(group)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cards::sample;

    fn asked(flood: &Flood, session: usize, n: usize) -> bool {
        let mut request = sample::bash("ls");
        request.id = RequestId::parse(&format!("r{session}-{n}")).unwrap();
        request.origin.session = SessionId::parse(&format!("s{session}")).ok();
        flood.gather(&request, String::new(), 0)
    }

    #[test]
    fn lists_and_sessions_are_bounded() {
        let flood = Flood::default();
        for n in 0..MAX_GATHERED {
            assert!(asked(&flood, 0, n));
        }
        assert!(!asked(&flood, 0, MAX_GATHERED));
        for session in 1..MAX_GROUPS {
            assert!(asked(&flood, session, 0));
        }
        assert!(!asked(&flood, MAX_GROUPS, 0));
        let seventh = RequestId::parse("r0-7").unwrap();
        assert!(flood.leaves(&seventh, |_| {}).is_some());
        assert!(asked(&flood, 0, MAX_GATHERED), "a place is free again");
    }

    #[test]
    fn a_request_that_ends_leaves_the_others_on_their_card() {
        let flood = Flood::default();
        for n in 0..3 {
            assert!(asked(&flood, 0, n));
        }
        let id = |n: usize| RequestId::parse(&format!("r0-{n}")).unwrap();
        let group = flood.leaves(&id(1), |tally| tally.denied += 1).unwrap();
        assert_eq!(group.waiting, [id(0), id(2)]);
        assert_eq!((group.tally.gathered, group.tally.denied), (3, 1));
        assert_eq!(flood.leaves(&id(1), |_| {}), None);
    }

    #[test]
    fn that_the_terminal_answers_is_told_once_a_minute() {
        let flood = Flood::default();
        assert!(flood.is_news(&None, 0));
        assert!(!flood.is_news(&None, 59_999));
        assert!(flood.is_news(&None, 60_000));
        for n in 0..2 * MAX_TOLD {
            flood.is_news(&SessionId::parse(&format!("s{n}")).ok(), TOLD_EVERY);
        }
        assert_eq!(flood.lock().told.len(), MAX_TOLD);
    }
}
