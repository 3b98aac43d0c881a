//! Limits on who may knock how often, and the nonces that were used. Both
//! forget by age and never grow past their cap. The time is an argument.

use core::net::IpAddr;
use std::collections::{HashSet, VecDeque};

use crate::bounded::Bounded;
use crate::clock::Millis;

/// Requests one address may make in any second.
pub const PER_SECOND: u32 = 20;
const WINDOW: Millis = 1_000;
const MAX_ADDRESSES: usize = 1_024;
const MAX_NONCES: usize = 16_384;
const NONCE_AGE: Millis = 5 * 60 * 1_000;

#[derive(Debug)]
pub struct Rate {
    seen: Bounded<IpAddr, (Millis, u32)>,
}

impl Default for Rate {
    fn default() -> Self {
        Self {
            seen: Bounded::new(MAX_ADDRESSES),
        }
    }
}

impl Rate {
    /// Whether this address may make another request now.
    pub fn admits(&mut self, from: IpAddr, now: Millis) -> bool {
        let is_over = |(since, _): &(Millis, u32)| now - since >= WINDOW;
        let Some((since, count)) = self.seen.live(from, is_over) else {
            return false;
        };
        if *count == 0 {
            *since = now;
        }
        *count = count.saturating_add(1);
        *count <= PER_SECOND
    }
}

#[derive(Debug, Default)]
pub struct Nonces {
    known: HashSet<String>,
    order: VecDeque<(Millis, String)>,
}

impl Nonces {
    /// Whether this nonce comes for the first time.
    pub fn first(&mut self, nonce: &str, now: Millis) -> bool {
        while self.order.len() >= MAX_NONCES
            || self
                .order
                .front()
                .is_some_and(|(at, _)| now - *at > NONCE_AGE)
        {
            if let Some((_, old)) = self.order.pop_front() {
                self.known.remove(&old);
            }
        }
        if !self.known.insert(nonce.to_owned()) {
            return false;
        }
        self.order.push_back((now, nonce.to_owned()));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_its_own_second() {
        let mut rate = Rate::default();
        let (a, b) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let admitted = (0..30).filter(|_| rate.admits(a, 5)).count();
        assert_eq!(admitted, 20);
        assert!(rate.admits(b, 5));
        assert!(!rate.admits(a, 1_004));
        assert!(rate.admits(a, 1_005));
    }

    #[test]
    fn a_flood_of_addresses_is_refused_and_forgotten() {
        let mut rate = Rate::default();
        let address = |n: u32| IpAddr::from(n.to_be_bytes());
        let admitted = (0..3_000).filter(|&n| rate.admits(address(n), 0)).count();
        assert_eq!(admitted, MAX_ADDRESSES);
        assert!(rate.admits(address(5_000), 1_000));
        assert!(rate.seen.len() <= MAX_ADDRESSES);
    }

    #[test]
    fn a_nonce_counts_once_for_five_minutes() {
        let mut nonces = Nonces::default();
        assert!(nonces.first("a", 0));
        assert!(!nonces.first("a", NONCE_AGE));
        assert!(nonces.first("a", NONCE_AGE + 1));
        for n in 0..3 * MAX_NONCES {
            nonces.first(&n.to_string(), NONCE_AGE + 2);
        }
        assert!(nonces.known.len() <= MAX_NONCES && nonces.order.len() <= MAX_NONCES);
    }
}
