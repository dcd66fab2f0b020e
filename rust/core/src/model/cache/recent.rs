//! A two-way set-associative cache from short words to ids, of fixed size: a word that repeats soon costs one read.
//!
//! A set is one cache line: two words with their keys and ids. A new word evicts the older of the two. A caller that
//! knows several words loads all their sets first ([`RecentWords::probe`]), so the cache misses overlap, and no load
//! waits for a branch that depends on another one.
//!
//! Time: O(1). Space: 1 MiB per scratch space, whatever the text; nothing is allocated before the first word.

use crate::lookup::key::Key;
use crate::sink::TokenId;

/// The cache has 2 to this power sets.
const SET_BITS: u32 = 14;

/// Up to six ids. Each number has three of 20 bits, the first one lowest; the highest four bits of the first number
/// have the count.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PackedIds([u64; 2]);

impl PackedIds {
    const ID_BITS: u32 = 20;
    const NUM_SHIFT: u32 = 60;

    /// Packs ids. `None` where there are too many, or one is too large or negative.
    fn new(ids: &[TokenId]) -> Option<Self> {
        let fit = ids.len() <= 6 && ids.iter().all(|id| (0..1 << Self::ID_BITS).contains(id));
        let pack = |ids: &[TokenId]| ids.iter().rev().fold(0, |packed, &id| packed << Self::ID_BITS | id as u64);
        let (first, second) = ids.split_at(ids.len().min(3));
        fit.then(|| Self([pack(first) | (ids.len() as u64) << Self::NUM_SHIFT, pack(second)]))
    }

    /// Calls `push` with each id, in order.
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

/// Two words, the newer one first. A free slot has the default key, which no word has.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Set([(Key, PackedIds); 2]);

/// A cache of the latest words.
#[derive(Debug, Default)]
pub(crate) struct RecentWords {
    sets: Vec<Set>,
}

/// A look-up under way: its set is being loaded.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RecentProbe {
    pub key: Key,
    set: u32,
    /// Some bytes of the set. Keeping them is what makes the processor load it.
    _loaded: u32,
}

impl RecentWords {
    /// Starts to look a word up.
    #[inline(always)]
    pub(crate) fn probe(&self, key: Key) -> RecentProbe {
        let set = key.cheap_hash(SET_BITS);
        RecentProbe { key, set: set as u32, _loaded: self.sets.get(set).map_or(0, |set| set.0[0].1.0[0] as u32) }
    }

    /// The cached ids of a word.
    #[inline(always)]
    pub(crate) fn get(&self, probe: RecentProbe) -> Option<PackedIds> {
        let Set([first, second]) = self.sets.get(probe.set as usize)?;
        // Which of the two it is cannot be predicted, so there is no branch.
        let slot = std::hint::select_unpredictable(first.0.is(probe.key), first, second);
        slot.0.is(probe.key).then_some(slot.1)
    }

    /// Caches the ids of a word, if they fit into [`PackedIds`].
    pub(crate) fn insert(&mut self, probe: RecentProbe, ids: &[TokenId]) {
        let Some(ids) = PackedIds::new(ids) else { return };
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

    fn probe(cache: &RecentWords, text: &[u8]) -> RecentProbe {
        cache.probe(Key::new(text, 0, text.len()).expect("short enough"))
    }

    fn get(cache: &RecentWords, text: &[u8]) -> Option<Vec<TokenId>> {
        let mut all = Vec::new();
        cache.get(probe(cache, text))?.for_each(|id| all.push(id));
        Some(all)
    }

    #[test]
    fn cached_words_have_their_ids() {
        let text = b"abcdefghijklmnopqrstuvwxyz";
        let mut cache = RecentWords::default();
        for (len, ids) in [(1, &[1][..]), (8, &[]), (15, &[1, 0, 3]), (9, &[1, 2, 3, 4, 5, (1 << 20) - 1])] {
            for start in [0, 3, 26 - len] {
                let text = &text[start..start + len];
                assert_eq!(get(&cache, text), None);
                let probe = probe(&cache, text);
                cache.insert(probe, ids);
                assert_eq!(get(&cache, text).as_deref(), Some(ids));
            }
        }
    }

    #[test]
    fn ids_that_do_not_fit_are_not_cached() {
        let mut cache = RecentWords::default();
        for ids in [&[1; 7][..], &[1 << 20], &[1, -1]] {
            let probe = probe(&cache, b"a");
            cache.insert(probe, ids);
            assert_eq!(get(&cache, b"a"), None);
        }
    }

    #[test]
    fn a_set_keeps_its_latest_two_words() {
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
