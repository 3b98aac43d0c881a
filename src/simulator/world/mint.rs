//! Ids and choices that look random and are the same for the same seed.
//! Not for secrets: everything here can be foretold from the seed.

#[derive(Debug, Clone, Default)]
pub(in crate::simulator) struct Mint {
    state: u64,
}

impl Mint {
    pub(in crate::simulator) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The splitmix64 step: every seed gives a full-period sequence.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number in `0..bound`; 0 for a bound of 0.
    pub(in crate::simulator) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX);
        if bound == 0 {
            return 0;
        }
        usize::try_from(self.next() % bound).unwrap_or(0)
    }

    pub(in crate::simulator) fn hex(&mut self, length: usize) -> String {
        let mut text = String::with_capacity(length);
        let mut bits = 0;
        for n in 0..length {
            if n % 16 == 0 {
                bits = self.next();
            }
            let digit = u32::try_from(bits % 16).unwrap_or(0);
            text.push(char::from_digit(digit, 16).unwrap_or('0'));
            bits /= 16;
        }
        text
    }

    /// Decimal digits that never start with a zero.
    pub(in crate::simulator) fn digits(&mut self, length: usize) -> String {
        let mut text = (1 + self.next() % 9).to_string();
        while text.len() < length {
            text.push_str(&(self.next() % 10).to_string());
        }
        text
    }

    pub(in crate::simulator) fn uuid(&mut self) -> String {
        let hex = self.hex(32);
        format!(
            "{}-{}-{}-{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..]
        )
    }

    pub(in crate::simulator) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_ids() {
        let (mut a, mut b) = (Mint::new(7), Mint::new(7));
        assert_eq!(a.uuid(), b.uuid());
        assert_eq!(a.hex(32), b.hex(32));
        assert_ne!(a.hex(32), a.hex(32));
        assert_eq!(a.digits(19).len(), 19);
        assert_ne!(Mint::new(8).hex(32), Mint::new(9).hex(32));
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..50).collect();
        Mint::new(1).shuffle(&mut items);
        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }
}
