//! Puts the parts of a split push together again. Everything a peer can claim
//! (how many parts, how large, how many pushes at once, how long they take)
//! has a cap, and a push is handed out once however often its parts come.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use prost::bytes::{Bytes, BytesMut};

/// A card of 30 KB arrives in a handful of parts; more than this is a broken
/// or hostile peer.
const MAX_PARTS: u64 = 256;
const MAX_SET_BYTES: usize = 8 << 20;
const MAX_TOTAL_BYTES: usize = 16 << 20;
const MAX_SETS: usize = 64;
/// Counted from the first part, so a slow trickle cannot hold memory for ever.
const MAX_AGE: Duration = Duration::from_secs(10);
const REMEMBERED: usize = 256;

#[derive(Debug, Default)]
pub struct Chunks {
    open: HashMap<String, Set>,
    bytes: usize,
    done: VecDeque<(String, Instant)>,
}

#[derive(Debug)]
struct Set {
    started: Instant,
    parts: Vec<Option<Bytes>>,
    missing: usize,
    bytes: usize,
}

/// What became of one part.
#[derive(Debug, PartialEq, Eq)]
pub enum Fit {
    /// The last missing part: here is the whole payload.
    Whole(Bytes),
    Waiting,
    /// This part, or its whole push, was here before.
    Repeated,
    Rejected(&'static str),
}

impl Chunks {
    pub fn add(&mut self, push: &str, sum: u64, seq: u64, part: Bytes, now: Instant) -> Fit {
        self.expire(now);
        if sum == 0 || sum > MAX_PARTS {
            return Fit::Rejected("the number of parts is out of range");
        }
        if seq >= sum {
            return Fit::Rejected("the part's number is beyond the number of parts");
        }
        if sum == 1 {
            return Fit::Whole(part);
        }
        if self.done.iter().any(|(id, _)| id == push) {
            return Fit::Repeated;
        }
        let (Ok(sum), Ok(seq)) = (usize::try_from(sum), usize::try_from(seq)) else {
            return Fit::Rejected("the number of parts is out of range");
        };
        if !self.open.contains_key(push) {
            self.make_room();
        }
        let set = self.open.entry(push.to_owned()).or_insert_with(|| Set {
            started: now,
            parts: vec![None; sum],
            missing: sum,
            bytes: 0,
        });
        if set.parts.len() != sum {
            return Fit::Rejected("the number of parts changed between parts");
        }
        if set.parts[seq].is_some() {
            return Fit::Repeated;
        }
        if set.bytes + part.len() > MAX_SET_BYTES || self.bytes + part.len() > MAX_TOTAL_BYTES {
            self.drop_set(push);
            return Fit::Rejected("the parts together are too large");
        }
        set.bytes += part.len();
        self.bytes += part.len();
        set.parts[seq] = Some(part);
        set.missing -= 1;
        if set.missing > 0 {
            return Fit::Waiting;
        }
        let mut whole = BytesMut::with_capacity(set.bytes);
        for part in set.parts.iter().flatten() {
            whole.extend_from_slice(part);
        }
        self.drop_set(push);
        if self.done.len() == REMEMBERED {
            self.done.pop_front();
        }
        self.done.push_back((push.to_owned(), now));
        Fit::Whole(whole.freeze())
    }

    /// Forgets what is too old and returns how many pushes were given up.
    pub fn expire(&mut self, now: Instant) -> usize {
        let old = |at: Instant| now.saturating_duration_since(at) >= MAX_AGE;
        while self.done.front().is_some_and(|(_, at)| old(*at)) {
            self.done.pop_front();
        }
        let before = self.open.len();
        let bytes = &mut self.bytes;
        self.open.retain(|_, set| {
            let keep = !old(set.started);
            if !keep {
                *bytes -= set.bytes;
            }
            keep
        });
        before - self.open.len()
    }

    fn make_room(&mut self) {
        if self.open.len() < MAX_SETS {
            return;
        }
        let oldest = self
            .open
            .iter()
            .min_by_key(|(_, set)| set.started)
            .map(|(id, _)| id.clone());
        if let Some(oldest) = oldest {
            self.drop_set(&oldest);
        }
    }

    fn drop_set(&mut self, push: &str) {
        if let Some(set) = self.open.remove(push) {
            self.bytes -= set.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn part(text: &str) -> Bytes {
        Bytes::copy_from_slice(text.as_bytes())
    }

    fn whole(text: &str) -> Fit {
        Fit::Whole(part(text))
    }

    #[test]
    fn parts_join_in_any_order() {
        let now = Instant::now();
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let mut chunks = Chunks::default();
            let texts = ["a", "", "c"];
            for &seq in &order[..2] {
                assert_eq!(
                    chunks.add("m", 3, seq as u64, part(texts[seq]), now),
                    Fit::Waiting
                );
            }
            let last = order[2];
            assert_eq!(
                chunks.add("m", 3, last as u64, part(texts[last]), now),
                whole("ac"),
                "{order:?}"
            );
        }
    }

    #[test]
    fn a_part_seen_before_changes_nothing() {
        let now = Instant::now();
        let mut chunks = Chunks::default();
        assert_eq!(chunks.add("m", 2, 0, part("a"), now), Fit::Waiting);
        assert_eq!(chunks.add("m", 2, 0, part("x"), now), Fit::Repeated);
        assert_eq!(chunks.add("m", 2, 1, part("b"), now), whole("ab"));
        assert_eq!(chunks.add("m", 2, 1, part("b"), now), Fit::Repeated);
        assert_eq!(chunks.add("m", 2, 0, part("a"), now), Fit::Repeated);
    }

    #[test]
    fn two_pushes_do_not_mix() {
        let now = Instant::now();
        let mut chunks = Chunks::default();
        chunks.add("m", 2, 0, part("a"), now);
        chunks.add("n", 2, 0, part("x"), now);
        assert_eq!(chunks.add("n", 2, 1, part("y"), now), whole("xy"));
        assert_eq!(chunks.add("m", 2, 1, part("b"), now), whole("ab"));
    }

    #[test]
    fn claims_out_of_range_are_rejected() {
        let now = Instant::now();
        let mut chunks = Chunks::default();
        for (sum, seq) in [(0, 0), (1_000_000_000, 0), (2, 2), (2, u64::MAX)] {
            assert!(
                matches!(chunks.add("m", sum, seq, part("a"), now), Fit::Rejected(_)),
                "{sum} {seq}"
            );
        }
        chunks.add("m", 2, 0, part("a"), now);
        assert!(matches!(
            chunks.add("m", 3, 1, part("b"), now),
            Fit::Rejected(_)
        ));
        assert_eq!(chunks.add("m", 2, 1, part("b"), now), whole("ab"));
    }

    #[test]
    fn a_push_that_never_completes_is_forgotten_after_ten_seconds() {
        let now = Instant::now();
        let mut chunks = Chunks::default();
        chunks.add("m", 3, 0, part("a"), now);
        chunks.add("m", 3, 1, part("b"), now + Duration::from_secs(9));
        assert_eq!(chunks.expire(now + Duration::from_secs(9)), 0);
        assert_eq!(chunks.expire(now + Duration::from_secs(10)), 1);
        assert_eq!(chunks.bytes, 0);
        let later = now + Duration::from_secs(11);
        assert_eq!(chunks.add("m", 3, 2, part("c"), later), Fit::Waiting);
    }

    #[test]
    fn memory_stays_bounded_under_a_flood() {
        let now = Instant::now();
        let mut chunks = Chunks::default();
        let mebibyte = Bytes::from(vec![0; 1 << 20]);
        for i in 0..1_000 {
            chunks.add(&format!("m{i}"), 256, i % 256, mebibyte.clone(), now);
            assert!(chunks.open.len() <= MAX_SETS);
            assert!(chunks.bytes <= MAX_TOTAL_BYTES);
        }
        for seq in 0..9 {
            chunks.add("big", 256, seq, mebibyte.clone(), now);
        }
        assert!(chunks.bytes <= MAX_TOTAL_BYTES);
    }

    proptest! {
        #[test]
        fn any_cut_in_any_order_gives_the_payload_back_once(
            text in prop::collection::vec(any::<u8>(), 0..200),
            cuts in prop::collection::vec(0_usize..200, 1..20),
            seed in any::<u64>(),
        ) {
            let mut cuts: Vec<_> = cuts.into_iter().map(|c| c.min(text.len())).collect();
            cuts.push(0);
            cuts.push(text.len());
            cuts.sort_unstable();
            let parts: Vec<_> = cuts.windows(2).map(|w| &text[w[0]..w[1]]).collect();
            let mut order: Vec<_> = (0..parts.len()).chain(0..parts.len()).collect();
            let mut state = seed | 1;
            for i in (1..order.len()).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                order.swap(i, (state >> 33) as usize % (i + 1));
            }
            let now = Instant::now();
            let mut chunks = Chunks::default();
            let mut wholes = 0;
            for seq in order {
                let part = Bytes::copy_from_slice(parts[seq]);
                if let Fit::Whole(bytes) = chunks.add("m", parts.len() as u64, seq as u64, part, now) {
                    prop_assert_eq!(&bytes[..], &text[..]);
                    wholes += 1;
                }
            }
            // A push of one part is whole each time it comes.
            prop_assert_eq!(wholes, if parts.len() == 1 { 2 } else { 1 });
        }
    }
}
