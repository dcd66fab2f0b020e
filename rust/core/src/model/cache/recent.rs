//! What the latest words became: a small table of fixed size, so that a word that comes again soon costs one probe.
//!
//! Two ways per set, both in one cache line with keys and ids inside. A new word moves the older of its set out. 1 MiB
//! per scratch space, whatever the text; nothing is allocated before the first word. A caller that knows several words
//! loads their sets first ([`RecentWords::probe`]): their cache misses overlap, and none of them waits behind a branch
//! that depends on another.

use crate::lookup::key::Key;
use crate::sink::TokenId;

/// Sets per table, as a power of two.
const SET_BITS: u32 = 14;

/// The ids of a word, three times 20 bits per number from the lowest on, and over the first three how many there are.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ids([u64; 2]);

impl Ids {
    const ID_BITS: u32 = 20;
    const NUM_SHIFT: u32 = 60;

    /// Packs ids, if they are few enough and small enough.
    fn new(ids: &[TokenId]) -> Option<Self> {
        let fit = ids.len() <= 6 && ids.iter().all(|id| (0..1 << Self::ID_BITS).contains(id));
        let pack = |ids: &[TokenId]| ids.iter().rev().fold(0, |packed, &id| packed << Self::ID_BITS | id as u64);
        let (first, second) = ids.split_at(ids.len().min(3));
        fit.then(|| Self([pack(first) | (ids.len() as u64) << Self::NUM_SHIFT, pack(second)]))
    }

    /// Hands the ids on in order.
    #[inline(always)]
    pub(crate) fn for_each(self, mut push: impl FnMut(TokenId)) {
        let [mut rest, second] = self.0;
        for at in 0..rest >> Self::NUM_SHIFT {
            if at == 3 {
                rest = second;
            }
            push(rest as TokenId & ((1 << Self::ID_BITS) - 1));
            rest >>= Self::ID_BITS;
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Set([(Key, Ids); 2]);

/// The latest words and their ids.
#[derive(Debug, Default)]
pub(crate) struct RecentWords {
    sets: Vec<Set>,
}

/// A word whose set is being loaded.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Probe {
    pub key: Key,
    set: u32,
    /// What the set holds; keeping it is what makes the load.
    _loaded: u32,
}

impl RecentWords {
    /// Begins to look for a word.
    #[inline(always)]
    pub(crate) fn probe(&self, key: Key) -> Probe {
        let set = key.cheap_hash(SET_BITS);
        Probe { key, set: set as u32, _loaded: self.sets.get(set).map_or(0, |set| set.0[0].1.0[0] as u32) }
    }

    /// The ids that were kept for a word.
    #[inline(always)]
    pub(crate) fn get(&self, probe: Probe) -> Option<Ids> {
        let Set([first, second]) = self.sets.get(probe.set as usize)?;
        // Which of the two it is cannot be foreseen.
        let slot = std::hint::select_unpredictable(first.0.is(probe.key), first, second);
        slot.0.is(probe.key).then_some(slot.1)
    }

    /// Keeps the ids of a word, if they are few.
    pub(crate) fn insert(&mut self, probe: Probe, ids: &[TokenId]) {
        let Some(ids) = Ids::new(ids) else { return };
        if self.sets.is_empty() {
            self.sets = vec![Set::default(); 1 << SET_BITS];
        }
        let Set(slots) = &mut self.sets[probe.set as usize];
        *slots = [(probe.key, ids), slots[0]];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(cache: &RecentWords, text: &[u8]) -> Probe {
        cache.probe(Key::new(text, 0, text.len()).expect("short enough"))
    }

    fn get(cache: &RecentWords, text: &[u8]) -> Option<Vec<TokenId>> {
        let mut all = Vec::new();
        cache.get(probe(cache, text))?.for_each(|id| all.push(id));
        Some(all)
    }

    #[test]
    fn words_come_back_with_their_ids() {
        let text = b"abcdefghijklmnopqrstuvwxyz";
        let mut cache = RecentWords::default();
        for (len, ids) in [(1, &[1][..]), (8, &[]), (15, &[1, 0, 3]), (9, &[1, 2, 3, 4, 5, (1 << 20) - 1])] {
            for begin in [0, 3, 26 - len] {
                let text = &text[begin..begin + len];
                assert_eq!(get(&cache, text), None);
                let probe = probe(&cache, text);
                cache.insert(probe, ids);
                assert_eq!(get(&cache, text).as_deref(), Some(ids));
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_not_kept() {
        let mut cache = RecentWords::default();
        for ids in [&[1; 7][..], &[1 << 20], &[1, -1]] {
            let probe = probe(&cache, b"a");
            cache.insert(probe, ids);
            assert_eq!(get(&cache, b"a"), None);
        }
    }

    #[test]
    fn of_three_words_in_a_set_the_last_two_stay() {
        let mut cache = RecentWords::default();
        let mut words =
            (0..u32::MAX).map(u32::to_le_bytes).filter(|word| probe(&RecentWords::default(), word).set == 5);
        let words: [_; 3] = std::array::from_fn(|_| words.next().expect("one in 16,384"));
        for (word, id) in words.iter().zip(0..) {
            let probe = probe(&cache, word);
            cache.insert(probe, &[id]);
        }
        assert_eq!(words.map(|word| get(&cache, &word)), [None, Some(vec![1]), Some(vec![2])]);
    }
}
