//! Parts of pushes in any order, number and size: a whole is its own parts in
//! their order, comes once, and what waits never exceeds the cap.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use nod::for_tests::feishu::chunks::{Chunks, Fit};
use prost::bytes::Bytes;

const MOST_HELD: usize = 16 << 20;
const MOST_WHOLE: usize = 8 << 20;
const AGE: Duration = Duration::from_secs(10);
const SUMS: [u64; 8] = [0, 1, 2, 3, 4, 9, 256, 257];
const SIZES: [usize; 8] = [0, 1, 2, 40, 40, 4096, 1 << 20, 5 << 20];
const MOST_PARTS: usize = 400;

static TEXT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let bytes = (0..(5 << 20) + 4096_u32).map(|i| i.wrapping_mul(2_654_435_761).to_be_bytes()[1]);
    bytes.collect()
});

/// A part that knows whether somebody still holds it.
struct Part {
    range: Range<usize>,
    held: Arc<AtomicUsize>,
}

impl Part {
    fn held(range: Range<usize>, held: &Arc<AtomicUsize>) -> Bytes {
        held.fetch_add(range.len(), Ordering::Relaxed);
        Bytes::from_owner(Self {
            range,
            held: Arc::clone(held),
        })
    }
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &TEXT[self.range.clone()]
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.held.fetch_sub(self.range.len(), Ordering::Relaxed);
    }
}

/// The parts of one push that were taken, each with when it came.
type Taken = HashMap<u64, (Instant, Range<usize>)>;

pub(crate) fn check(bytes: &[u8]) {
    let held = Arc::new(AtomicUsize::new(0));
    let mut chunks = Chunks::default();
    let mut now = Instant::now();
    let mut taken: HashMap<(String, u64), Taken> = HashMap::new();
    let mut done: HashMap<String, Instant> = HashMap::new();
    for (i, part) in bytes.chunks_exact(4).take(MOST_PARTS).enumerate() {
        let [push, shape, seq, wait] = [part[0], part[1], part[2], part[3]];
        now += Duration::from_millis(u64::from(wait).pow(2) / 8);
        let push = format!("push-{}", push % 80);
        let sum = SUMS[usize::from(shape % 8)];
        let seq = if sum < 9 {
            u64::from(seq) % (sum + 1)
        } else {
            u64::from(seq)
        };
        let size = SIZES[usize::from(shape >> 3) % SIZES.len()];
        let range = i * 7..i * 7 + size;

        let fit = chunks.add(&push, sum, seq, Part::held(range.clone(), &held), now);

        let sound = (1..=256).contains(&sum) && seq < sum;
        assert_eq!(
            sound,
            !matches!(fit, Fit::Rejected("the number of parts is out of range"))
                && !matches!(&fit, Fit::Rejected(why) if why.contains("beyond"))
        );
        if sum == 1 && sound {
            assert_eq!(fit, Fit::Whole(Bytes::copy_from_slice(&TEXT[range])));
            continue;
        }
        let lately = |at: &Instant| now.duration_since(*at) < AGE;
        if sound && done.get(&push).is_some_and(lately) {
            assert_eq!(fit, Fit::Repeated, "a push handed out before");
            continue;
        }
        let set = taken.entry((push.clone(), sum)).or_default();
        match fit {
            Fit::Waiting => {
                set.insert(seq, (now, range));
            }
            Fit::Whole(whole) => {
                set.insert(seq, (now, range));
                let mut expected = Vec::new();
                for seq in 0..sum {
                    let (at, range) = &set[&seq];
                    assert!(lately(at), "a part older than the cap");
                    expected.extend_from_slice(&TEXT[range.clone()]);
                }
                assert!(whole == expected, "a whole that is not its parts");
                assert!(whole.len() <= MOST_WHOLE);
                done.insert(push, now);
            }
            Fit::Repeated => assert!(set.contains_key(&seq), "a repeat of nothing"),
            Fit::Rejected(_) => {}
        }
        assert!(held.load(Ordering::Relaxed) <= MOST_HELD);
    }
    chunks.expire(now + AGE);
    assert_eq!(held.load(Ordering::Relaxed), 0, "kept past its age");
}
