//! The connection as a card on its way sees it: a card that no tap could come
//! back from is not sent, and one that hangs in a dead line is sent anew.

use std::time::Duration;
use tokio::sync::watch;

use super::Cards;
use crate::approvals::request::Request;
use crate::clock::Millis;
use crate::daemon::known::reach::not_connected;
use crate::feishu::connection::LinkView;
use crate::feishu::link::Phase;
use crate::text::Text;

/// The hook is told why no card came, before its time is over.
const BEFORE_END: Millis = 500;
const AGAIN_AFTER: Duration = Duration::from_secs(1);

pub(super) struct Line<'a> {
    cards: &'a Cards,
    link: watch::Receiver<LinkView>,
    latest: Millis,
    connects: u64,
}

impl<'a> Line<'a> {
    pub(super) fn of(cards: &'a Cards, request: &Request) -> Self {
        Self {
            link: cards.link.clone(),
            cards,
            latest: request.deadline - BEFORE_END,
            connects: 0,
        }
    }

    /// Waits for the connection; says why there is none when time is up, or
    /// when only a person can change it.
    pub(super) async fn up(&mut self) -> Result<(), Text> {
        let left = self.left();
        let settled =
            |view: &LinkView| matches!(view.phase, Phase::Up { .. } | Phase::Degraded { .. });
        // Whatever came of the wait stands in the view.
        let _ = tokio::time::timeout(left, self.link.wait_for(settled)).await;
        let view = self.link.borrow();
        self.connects = view.counts.connects;
        not_connected(&view.phase).map_or(Ok(()), Err)
    }

    /// Returns when another connection has taken this one's place.
    pub(super) async fn renewed(&mut self) {
        let connects = self.connects;
        let newer = |view: &LinkView| {
            view.counts.connects > connects && matches!(view.phase, Phase::Up { .. })
        };
        if self.link.wait_for(newer).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits before the next try; false when there is no time for one.
    pub(super) async fn rest(&mut self, asked: Option<Duration>) -> bool {
        let pause = asked.unwrap_or(AGAIN_AFTER);
        if pause > self.left() {
            return false;
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.renewed() => {}
        }
        true
    }

    fn left(&self) -> Duration {
        let left = self.latest.saturating_sub(self.cards.now()).max(0);
        Duration::from_millis(left.unsigned_abs())
    }
}
