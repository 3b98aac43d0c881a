//! A map that never grows past its cap. What is stale counts as gone, and goes
//! when its room is needed; who comes to a full map is turned away, or takes
//! the place of the oldest.

use std::collections::HashMap;
use std::hash::Hash;

#[derive(Debug)]
pub struct Bounded<K, V> {
    most: usize,
    map: HashMap<K, V>,
}

impl<K: Eq + Hash, V> Bounded<K, V> {
    pub fn new(most: usize) -> Self {
        Self {
            most,
            map: HashMap::new(),
        }
    }

    /// The live value of `key`, or a new one. `None` where everything in a
    /// full map is live.
    pub fn live(&mut self, key: K, is_stale: impl Fn(&V) -> bool) -> Option<&mut V>
    where
        V: Default,
    {
        if self.map.get(&key).is_some_and(&is_stale) {
            self.map.remove(&key);
        }
        if self.is_full_for(&key) {
            self.map.retain(|_, value| !is_stale(value));
            if self.is_full_for(&key) {
                return None;
            }
        }
        Some(self.map.entry(key).or_default())
    }

    /// The value of `key`, or a new one in the place of the one that was there
    /// since the smallest `since`.
    pub fn entry<O: Ord>(&mut self, key: K, since: impl Fn(&V) -> O) -> &mut V
    where
        K: Clone,
        V: Default,
    {
        if self.is_full_for(&key) {
            let oldest = self.map.iter().min_by_key(|(_, value)| since(value));
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.map.remove(&oldest);
            }
        }
        self.map.entry(key).or_default()
    }

    /// How many of the values are so.
    pub fn count(&self, is: impl Fn(&V) -> bool) -> usize {
        self.map.values().filter(|value| is(value)).count()
    }

    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.map.get_mut(key)
    }

    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.map.remove(key)
    }

    fn is_full_for(&self, key: &K) -> bool {
        self.map.len() >= self.most && !self.map.contains_key(key)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_full_map_turns_away_until_something_is_stale() {
        let mut map: Bounded<u8, i32> = Bounded::new(2);
        for key in [1, 2] {
            *map.live(key, |_| false).unwrap() = i32::from(key);
        }
        assert_eq!(map.live(3, |_| false), None);
        assert_eq!(map.live(2, |_| false), Some(&mut 2));
        assert_eq!(map.live(3, |age| *age < 2), Some(&mut 0));
        assert_eq!(map.get_mut(&1), None);
        assert_eq!(map.live(2, |age| *age == 2), Some(&mut 0), "stale is gone");
    }

    #[test]
    fn the_oldest_makes_room_only_for_somebody_new() {
        let mut map: Bounded<u8, i32> = Bounded::new(2);
        for (key, since) in [(1, 10), (2, 5), (2, 6)] {
            *map.entry(key, |since| *since) = since;
        }
        assert_eq!(map.len(), 2);
        assert_eq!(map.entry(3, |since| *since), &0);
        assert_eq!((map.remove(&2), map.remove(&1)), (None, Some(10)));
    }

    proptest! {
        #[test]
        fn it_never_grows_past_its_cap(
            most in 1usize..5,
            calls in proptest::collection::vec((0u8..9, any::<bool>(), 0i32..9), 0..60),
        ) {
            let mut map: Bounded<u8, i32> = Bounded::new(most);
            for (key, pushes, value) in calls {
                if pushes {
                    *map.entry(key, |since| *since) = value;
                } else if let Some(kept) = map.live(key, |age| *age < value) {
                    *kept = value;
                }
                prop_assert!(map.len() <= most);
            }
        }
    }
}
