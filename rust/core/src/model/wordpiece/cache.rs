//! What words became: a bounded table from bytes to ids, so that a word that comes again costs one probe.
//!
//! Two ways per set, both in one cache line with keys and ids inside. A new word moves the older of its set out. 1 MiB
//! per scratch space, whatever the text; nothing is allocated before the first word. A caller that knows several words
//! loads their sets first ([`WordCache::probe`]): their cache misses overlap, and none of them waits behind a branch
//! that depends on another.

use crate::sink::TokenId;

/// The longest word that is kept, in bytes.
pub(crate) const MAX_LEN: usize = 15;
/// Bytes that are read for a key.
pub(crate) const KEY_LEN: usize = 16;
/// Sets per table; a power of two.
const SETS: usize = 1 << 14;

/// A word in the form in which it is looked up: its bytes, then zeros, and its length in the last byte.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Key([u64; 2]);

/// By length, which bytes are the word's.
const MASKS: [[u64; 2]; MAX_LEN + 1] = {
    let mut masks = [[0; 2]; MAX_LEN + 1];
    let mut len = 1;
    while len <= MAX_LEN {
        let mask = u128::MAX >> (128 - 8 * len);
        masks[len] = [mask as u64, (mask >> 64) as u64];
        len += 1;
    }
    masks
};

impl Key {
    /// The key of the first `len` of some bytes; `len` is 1 to [`MAX_LEN`].
    #[inline(always)]
    pub(crate) fn new(bytes: &[u8; KEY_LEN], len: usize) -> Self {
        let bytes = u128::from_le_bytes(*bytes);
        let [low, high] = MASKS[len % MASKS.len()];
        Self([bytes as u64 & low, (bytes >> 64) as u64 & high | (len as u64) << 56])
    }

    /// The same bytes with a space before them.
    #[inline(always)]
    pub(crate) fn after_space(self, is_after_space: bool) -> Self {
        let [low, high] = self.0;
        Self([low, high | u64::from(is_after_space) << 63])
    }

    #[inline(always)]
    fn is(self, other: Self) -> bool {
        // Without a branch between the halves.
        (self.0[0] ^ other.0[0]) | (self.0[1] ^ other.0[1]) == 0
    }

    #[inline(always)]
    fn set(self) -> usize {
        let mixed = (self.0[0] ^ self.0[1].rotate_left(29)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> (64 - SETS.trailing_zeros())) as usize
    }
}

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

/// A cache from words to ids.
#[derive(Debug, Default)]
pub(crate) struct WordCache {
    sets: Vec<Set>,
}

/// A word whose set is being loaded.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Probe {
    key: Key,
    set: u32,
    /// What the set holds; keeping it is what makes the load.
    _loaded: u32,
}

impl Probe {
    /// How many bytes the word has.
    #[inline(always)]
    pub(crate) fn word_len(self) -> usize {
        (self.key.0[1] >> 56) as usize % MASKS.len()
    }

    /// Whether the word is one after a space.
    #[inline(always)]
    pub(crate) fn is_after_space(self) -> bool {
        self.key.0[1] >> 63 != 0
    }
}

impl WordCache {
    /// Begins to look for a word.
    #[inline(always)]
    pub(crate) fn probe(&self, key: Key) -> Probe {
        let set = key.set();
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
            self.sets = vec![Set::default(); SETS];
        }
        let Set(slots) = &mut self.sets[probe.set as usize];
        *slots = [(probe.key, ids), slots[0]];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(cache: &WordCache, text: &[u8]) -> Probe {
        let mut bytes = [b'x'; KEY_LEN];
        bytes[..text.len()].copy_from_slice(text);
        cache.probe(Key::new(&bytes, text.len()))
    }

    fn get(cache: &WordCache, text: &[u8]) -> Option<Vec<TokenId>> {
        let mut all = Vec::new();
        cache.get(probe(cache, text))?.for_each(|id| all.push(id));
        Some(all)
    }

    #[test]
    fn words_come_back_with_their_ids() {
        let text = b"abcdefghijklmnopqrstuvwxyz";
        let mut cache = WordCache::default();
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
        let mut cache = WordCache::default();
        for ids in [&[1; 7][..], &[1 << 20], &[1, -1]] {
            let probe = probe(&cache, b"a");
            cache.insert(probe, ids);
            assert_eq!(get(&cache, b"a"), None);
        }
    }

    #[test]
    fn a_zero_byte_is_not_an_empty_slot() {
        let mut cache = WordCache::default();
        let probe = probe(&cache, b"a");
        cache.insert(probe, &[1]);
        assert!(get(&cache, b"\0").is_none() && get(&cache, b"a\0").is_none());
    }

    #[test]
    fn of_three_words_in_a_set_the_last_two_stay() {
        let mut cache = WordCache::default();
        let mut words = (0..u32::MAX).map(u32::to_le_bytes).filter(|word| probe(&WordCache::default(), word).set == 5);
        let words: [_; 3] = std::array::from_fn(|_| words.next().expect("one in 16,384"));
        for (word, id) in words.iter().zip(0..) {
            let probe = probe(&cache, word);
            cache.insert(probe, &[id]);
        }
        assert_eq!(words.map(|word| get(&cache, &word)), [None, Some(vec![1]), Some(vec![2])]);
    }
}
