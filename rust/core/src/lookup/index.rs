//! A hash table of numbers: open addressing, four bytes per slot. The numbered values are stored elsewhere.
//!
//! A slot holds a number and, in the spare bits, a tag: some bits of the hash, which avoid most comparisons of
//! different values. At most half of the slots are taken. Complexity: constant expected time per look-up.

use crate::lookup::prefetch::prefetch;
use crate::work::large_vec::LargeVec;

/// How many look-ups to prefetch together.
pub(crate) const LOOKUPS_AT_ONCE: usize = 16;

/// A hash table of numbers. The caller knows the value of each number and compares it.
#[derive(Debug, Default)]
pub struct Index {
    /// The number plus one in the low bits, and the tag above them. A free slot is 0.
    slots: LargeVec<u32>,
    number_mask: u32,
}

heap_bytes!(Index: slots);

impl Index {
    /// An empty table with room for the numbers below `len`.
    pub fn with_capacity(len: usize) -> Self {
        Self::with_slots((len * 2).next_power_of_two().max(16), len)
    }

    /// An empty table with this many slots, a power of two, for numbers below `len`. The caller must replace it with a
    /// larger one before it is full.
    pub(crate) fn with_slots(num_slots: usize, len: usize) -> Self {
        Self { slots: LargeVec::filled(num_slots, 0), number_mask: ((len + 1).next_power_of_two() - 1) as u32 }
    }

    /// Inserts `number`, whose value is not in the table yet.
    pub fn insert(&mut self, hash: u64, number: usize) {
        self.find_or_insert(hash, number, |_| false);
    }

    /// The number for which `same` is true; if there is none, inserts `number` and returns `None`.
    #[inline]
    pub fn find_or_insert(&mut self, hash: u64, number: usize, same: impl Fn(usize) -> bool) -> Option<usize> {
        let mask = self.slots.len() - 1;
        let tag = self.tag(hash);
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                self.slots[at] = tag | (number as u32 + 1);
                return None;
            }
            let found = (slot & self.number_mask).wrapping_sub(1) as usize;
            if slot & !self.number_mask == tag && same(found) {
                return Some(found);
            }
            at = (at + 1) & mask;
        }
    }

    /// The number for which `same` is true.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u64, same: impl Fn(usize) -> bool) -> Option<usize> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = hash as usize & mask;
        loop {
            let slot = *self.slots.get(at)?;
            if slot == 0 {
                return None;
            }
            let number = (slot & self.number_mask).wrapping_sub(1) as usize;
            if slot & !self.number_mask == self.tag(hash) && same(number) {
                return Some(number);
            }
            at = (at + 1) & mask;
        }
    }

    /// A guess at the number that [`Index::find`] would return: the one in the first slot, or in the second if the
    /// first has another tag. It is arbitrary if the value is not in the table. Guesses for several hashes do not wait
    /// for each other's memory reads.
    #[inline(always)]
    pub(crate) fn likely(&self, hash: u64) -> usize {
        let mask = self.slots.len().wrapping_sub(1);
        let at = hash as usize & mask;
        let Some(&first) = self.slots.get(at) else { return usize::MAX };
        let second = self.slots.get((at + 1) & mask).copied().unwrap_or_default();
        let is_first = (first ^ self.tag(hash)) & !self.number_mask == 0;
        let slot = std::hint::select_unpredictable(is_first, first, second);
        (slot & self.number_mask).wrapping_sub(1) as usize
    }

    /// Prefetches the slots of several hashes. Separate look-ups would wait for each memory read; these reads overlap.
    #[inline]
    pub(crate) fn prefetch(&self, hashes: &[u64]) {
        hashes.iter().for_each(|&hash| prefetch(&self.slots, hash as usize & self.slots.len().wrapping_sub(1)));
    }

    /// The bits of a hash that are stored beside a number.
    #[inline(always)]
    fn tag(&self, hash: u64) -> u32 {
        (hash >> 32) as u32 & !self.number_mask
    }
}

#[cfg(test)]
mod tests {
    use super::Index;

    #[test]
    fn numbers_are_found_by_their_values() {
        // Hashes that share slots, and in some cases tags too.
        let hashes: Vec<u64> = (0..1000_u64).map(|number| (number % 7) | ((number % 50) << 60)).collect();
        let mut index = Index::with_capacity(hashes.len());
        assert_eq!(index.find(hashes[3], |_| true), None);
        for (number, &hash) in hashes.iter().enumerate() {
            assert_eq!(index.find(hash, |found| found == number), None);
            index.insert(hash, number);
            assert_eq!(index.find(hash, |found| found == number), Some(number));
        }
        assert_eq!(index.likely(hashes[0]), 0);
    }

    #[test]
    fn the_likely_number_follows_from_the_hash() {
        let mut index = Index::with_capacity(16);
        let hashes = [5, 5 | 1 << 60, 6];
        hashes.iter().zip(0..).for_each(|(&hash, number)| index.insert(hash, number));
        // The third hash's first slot is the second one's second.
        assert_eq!([index.likely(hashes[0]), index.likely(hashes[1])], [0, 1]);
        index.prefetch(&hashes);
    }

    #[test]
    fn an_empty_index_finds_nothing() {
        assert_eq!(Index::default().find(7, |_| true), None);
        assert_eq!(Index::default().likely(7), usize::MAX);
    }
}
