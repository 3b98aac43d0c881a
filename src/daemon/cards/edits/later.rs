//! Edits that are put off, by name: their cards are on disk. Those that were
//! never made come first and at once, the others when what may have taken them
//! back is over. Pure but for the type of time.

use std::collections::VecDeque;
use tokio::time::Instant;

use crate::store::{LeftEdit, MAX_EDITS};

struct PutOff {
    edit: LeftEdit,
    due: Instant,
}

#[derive(Default)]
pub(crate) struct Later {
    never_made: VecDeque<LeftEdit>,
    made: VecDeque<PutOff>,
}

impl Later {
    /// One too many is left to the next start.
    pub(super) fn put(&mut self, edit: LeftEdit, due: Instant) {
        if self.never_made.len() + self.made.len() >= usize::from(MAX_EDITS) {
            return;
        }
        if edit.made == 0 {
            self.never_made.push_back(edit);
        } else {
            self.made.push_back(PutOff { edit, due });
        }
    }

    /// When the next one may be made, if there is one.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        if self.never_made.is_empty() {
            self.made.front().map(|first| first.due)
        } else {
            Some(now)
        }
    }

    pub(super) fn next(&mut self, now: Instant) -> Option<LeftEdit> {
        let never_made = self.never_made.pop_front();
        never_made.or_else(|| {
            let made = self.made.pop_front_if(|first| first.due <= now);
            made.map(|one| one.edit)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::MessageId;
    use std::time::Duration;

    fn edit(n: u16, made: u32) -> LeftEdit {
        LeftEdit {
            message: MessageId::parse(&format!("om_{n}")).unwrap(),
            version: 1,
            made,
        }
    }

    #[test]
    fn what_was_never_made_is_due_at_once_and_the_rest_in_its_time() {
        let now = Instant::now();
        let over = now + Duration::from_secs(3);
        let mut later = Later::default();
        assert_eq!(later.due(now), None);
        later.put(edit(1, 1), over);
        later.put(edit(2, 0), over);
        later.put(edit(3, 2), over);
        assert_eq!(later.due(now), Some(now));
        assert_eq!(later.next(now), Some(edit(2, 0)));
        assert_eq!(later.due(now), Some(over));
        assert_eq!(later.next(now), None);
        assert_eq!(later.next(over), Some(edit(1, 1)));
        assert_eq!(later.next(over), Some(edit(3, 2)));
        assert_eq!(later.due(over), None);
    }

    #[test]
    fn one_too_many_is_not_put_off() {
        let now = Instant::now();
        let mut later = Later::default();
        for n in 0..=MAX_EDITS {
            later.put(edit(n, u32::from(n > 1)), now);
        }
        let put_off = std::iter::from_fn(|| later.next(now)).count();
        assert_eq!(put_off, usize::from(MAX_EDITS));
    }
}
