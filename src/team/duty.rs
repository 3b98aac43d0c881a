//! Whether this gateway takes its turn with what machines ask for. One that has
//! lost Feishu leaves it to those that have not; where nobody has it, each goes
//! on trying. One that has not had it yet knows neither whether it ever will nor
//! what time it is, and takes no turn.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::Gateway;
use super::beacon::COUNTS_FOR;
use crate::bounded::Bounded;
use crate::clock::Millis;
use crate::feishu::link::Phase;

const MAX_GATEWAYS: usize = 64;
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The other gateways that reach Feishu, and until when their word counts.
pub(super) struct OtherGateways {
    up: Mutex<Bounded<String, Millis>>,
    changed: Notify,
}

impl Default for OtherGateways {
    fn default() -> Self {
        Self {
            up: Mutex::new(Bounded::new(MAX_GATEWAYS)),
            changed: Notify::new(),
        }
    }
}

impl OtherGateways {
    fn up(&self) -> MutexGuard<'_, Bounded<String, Millis>> {
        self.up.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another gateway says that it is there, and whether it reaches Feishu.
    pub(super) fn told(&self, name: &str, feishu: bool, now: Millis) {
        let mut up = self.up();
        if !feishu {
            up.remove(&name.to_owned());
        } else if let Some(until) = up.live(name.to_owned(), |until| *until <= now) {
            *until = now + COUNTS_FOR;
        }
        drop(up);
        self.changed.notify_one();
    }

    fn any_up(&self, now: Millis) -> bool {
        self.up().count(|until| *until > now) > 0
    }
}

fn takes(is_up: bool, was_up: bool, another_is_up: bool) -> bool {
    is_up || was_up && !another_is_up
}

/// Says whether it takes its turn, until `stop`.
pub(super) async fn run(gateway: Arc<Gateway>, duty: watch::Sender<bool>, stop: CancellationToken) {
    let mut link = gateway.link.clone();
    let mut was_up = false;
    loop {
        let is_up = matches!(link.borrow_and_update().phase, Phase::Up { .. });
        was_up |= is_up;
        let another_is_up = gateway.others.any_up(gateway.clock.now());
        let takes = takes(is_up, was_up, another_is_up);
        duty.send_if_modified(|last| std::mem::replace(last, takes) != takes);
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = gateway.others.changed.notified() => {}
            changed = link.changed() => if changed.is_err() { return },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_lost_feishu_leaves_the_work_to_whoever_has_it() {
        for (is_up, was_up, another_is_up, expected) in [
            (false, false, false, false),
            (false, false, true, false),
            (true, true, false, true),
            (true, true, true, true),
            (false, true, true, false),
            (false, true, false, true),
        ] {
            assert_eq!(takes(is_up, was_up, another_is_up), expected);
        }
    }

    #[test]
    fn another_gateway_counts_while_it_says_that_it_reaches_feishu() {
        let others = OtherGateways::default();
        assert!(!others.any_up(0));
        others.told("a", false, 0);
        assert!(!others.any_up(0));
        others.told("b", true, 0);
        assert!(others.any_up(COUNTS_FOR - 1) && !others.any_up(COUNTS_FOR));
        others.told("b", true, 5_000);
        assert!(others.any_up(COUNTS_FOR));
        others.told("b", false, 6_000);
        assert!(!others.any_up(6_000));
        for n in 0..2 * MAX_GATEWAYS {
            others.told(&n.to_string(), true, 7_000);
        }
        assert_eq!(others.up().len(), MAX_GATEWAYS);
    }
}
