//! Edits that are put off, by name: their cards are on disk. Those that were
//! never made come first and at once; the others are only made sure of, when no
//! tap that was lost can take them back. Pure but for the type of time.

use std::collections::VecDeque;
use tokio::time::Instant;

use crate::ids::MessageId;
use crate::store::CardEdit;

/// As many as the store keeps.
const MAX: usize = 10_000;

/// Whether Feishu has taken an edit already, and from whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::daemon) enum Made {
    NotYet,
    ByThis,
    ByTheLast,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct PutOff {
    pub(super) message: MessageId,
    pub(super) version: i64,
    pub(super) made: Made,
}

impl From<CardEdit> for PutOff {
    fn from(left: CardEdit) -> Self {
        Self {
            message: left.message,
            version: left.version,
            made: if left.made {
                Made::ByTheLast
            } else {
                Made::NotYet
            },
        }
    }
}

#[derive(Default)]
pub(super) struct Later {
    never_made: VecDeque<PutOff>,
    unsure: VecDeque<PutOff>,
}

impl Later {
    /// One too many is left to the next start.
    pub(super) fn put(&mut self, edit: PutOff) {
        let of_its_kind = match edit.made {
            Made::NotYet => &mut self.never_made,
            Made::ByThis | Made::ByTheLast => &mut self.unsure,
        };
        if of_its_kind.len() < MAX {
            of_its_kind.push_back(edit);
        }
    }

    /// When the next one may be made, if there is one.
    pub(super) fn due(&self, now: Instant, losses_over: Instant) -> Option<Instant> {
        if !self.never_made.is_empty() {
            return Some(now);
        }
        (!self.unsure.is_empty()).then_some(losses_over)
    }

    pub(super) fn next(&mut self, now: Instant, losses_over: Instant) -> Option<PutOff> {
        let first = self.never_made.pop_front();
        first.or_else(|| {
            let is_time = now >= losses_over;
            is_time.then(|| self.unsure.pop_front()).flatten()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn edit(n: usize, made: Made) -> PutOff {
        PutOff {
            message: MessageId::parse(&format!("om_{n}")).unwrap(),
            version: 1,
            made,
        }
    }

    #[test]
    fn what_was_never_made_is_due_at_once_and_the_rest_when_losses_are_over() {
        let now = Instant::now();
        let over = now + Duration::from_secs(3);
        let mut later = Later::default();
        assert_eq!(later.due(now, over), None);
        later.put(edit(1, Made::ByTheLast));
        later.put(edit(2, Made::NotYet));
        later.put(edit(3, Made::ByThis));
        assert_eq!(later.due(now, over), Some(now));
        assert_eq!(later.next(now, over), Some(edit(2, Made::NotYet)));
        assert_eq!(later.due(now, over), Some(over));
        assert_eq!(later.next(now, over), None);
        assert_eq!(later.next(over, over), Some(edit(1, Made::ByTheLast)));
        assert_eq!(later.next(over, over), Some(edit(3, Made::ByThis)));
        assert_eq!(later.due(over, over), None);
    }

    #[test]
    fn no_more_are_put_off_than_the_store_keeps() {
        let mut later = Later::default();
        for n in 0..=MAX {
            later.put(edit(n, Made::ByThis));
        }
        assert_eq!(later.unsure.len(), MAX);
    }
}
