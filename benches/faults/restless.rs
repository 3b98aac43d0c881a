//! Restless people: besides whoever decides for a hook, colleagues tap what is
//! not theirs, its owner taps in a rush, and everybody goes on tapping after
//! the end, from screens that still show the question. None of these may have
//! an effect but the one that came first, and each is told the truth.

use futures::future::join_all;
use nod::for_tests::simulator::{OWNER, STRANGER};
use rand::RngExt as _;
use rand::rngs::StdRng;

use crate::people::Card;
use crate::person::{Person, choose};

/// Taps of one burst.
const AT_ONCE: u32 = 4;

impl Person<'_> {
    /// While its request waits: colleagues, and now and then its owner, several
    /// times at once and not always for the same.
    pub(crate) async fn fidget(&self, card: &Card, taps: u32, chance: &mut StdRng) {
        let rush = chance.random_bool(0.3);
        let mut left = taps;
        while left > 0 && self.is_needed() {
            let burst = left.min(AT_ONCE);
            left -= burst;
            let first = rush && left == 0;
            let taps = (0..burst).map(|_| {
                let user = if first { OWNER } else { STRANGER };
                self.stale_tap(card, choose(card, chance), None, user)
            });
            join_all(taps.collect::<Vec<_>>()).await;
        }
    }

    /// After its end: new taps of the owner's, colleagues', and pushes that came
    /// before.
    pub(crate) async fn fidget_on(&self, card: &Card, taps: u32, chance: &mut StdRng) {
        let mut left = taps;
        let mut before = Vec::new();
        while left > 0 && self.is_needed() {
            let burst = left.min(AT_ONCE);
            left -= burst;
            let taps = (0..burst).map(|_| {
                let one = chance.random_range(0..2 * (before.len() + 2));
                let (again, action, user) = match before.get(one).cloned() {
                    Some((event, action)) => (Some(event), action, OWNER),
                    None if chance.random_bool(0.2) => (None, choose(card, chance), STRANGER),
                    None => (None, choose(card, chance), OWNER),
                };
                async move {
                    let event = self.stale_tap(card, action, again, user).await?;
                    (user == OWNER).then_some((event, action))
                }
            });
            let made = join_all(taps.collect::<Vec<_>>()).await;
            before.extend(made.into_iter().flatten());
        }
    }
}
