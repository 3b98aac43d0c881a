//! The connection as the cards see it: whether a tap could come back, whether
//! another has taken its place, and since when taps may have been lost with one.

use std::time::Instant;

use super::edits::STAYS_AFTER;
use crate::text::Text;

/// The connection as it is now.
#[derive(Debug, Clone, PartialEq)]
pub struct LineView {
    pub state: LineState,
    /// How many connections there have been.
    pub connects: u64,
    /// When the one that was lost last had been heard last.
    pub lost_heard: Option<Instant>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum LineState {
    Up,
    /// It comes back by itself.
    Away(Text),
    /// Only a person can change it.
    ShutOut(Text),
}

#[derive(Debug)]
pub(super) struct Line {
    pub(super) state: LineState,
    pub(super) connects: u64,
}

impl Line {
    pub(super) fn new(view: LineView) -> Self {
        Self {
            state: view.state,
            connects: view.connects,
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.state == LineState::Up
    }

    /// Since when taps may have been lost with a connection; `None` when none
    /// was lost.
    pub(super) fn see(&mut self, view: LineView) -> Option<Instant> {
        let heard = view.lost_heard;
        let before = std::mem::replace(self, Self::new(view));
        let lines = self.connects - before.connects;
        let lost = u64::from(before.is_up()) + lines - u64::from(self.is_up());
        match lost {
            0 => None,
            1 => heard,
            // Each was heard at some time of its own.
            _ => heard.map(|heard| heard.checked_sub(STAYS_AFTER).unwrap_or(heard)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn each_loss_of_a_connection_is_seen_once_with_what_it_may_have_lost() {
        let heard = Instant::now() + Duration::from_secs(60);
        let view = |connects, up, lost_heard| LineView {
            state: if up {
                LineState::Up
            } else {
                LineState::Away(Text::new("断", "cut"))
            },
            connects,
            lost_heard,
        };
        let mut line = Line::new(view(0, false, None));
        assert_eq!(line.see(view(1, true, None)), None, "the first connect");
        assert_eq!(line.see(view(1, false, Some(heard))), Some(heard));
        assert_eq!(line.see(view(1, false, Some(heard))), None, "redialing");
        assert_eq!(line.see(view(2, true, Some(heard))), None, "back");
        // Lost and back between two looks.
        assert_eq!(line.see(view(3, true, Some(heard))), Some(heard));
        let longest_ago = heard.checked_sub(STAYS_AFTER);
        assert_eq!(line.see(view(5, true, Some(heard))), longest_ago);
        assert_eq!(line.see(view(6, false, Some(heard))), longest_ago);
    }
}
