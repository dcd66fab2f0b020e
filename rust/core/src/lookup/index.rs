//! From a hash to a number: open addressing with four bytes a slot, what is numbered kept elsewhere.
//!
//! A slot has a number and, in the bits that numbers leave, a part of the hash, so that hardly anything is compared in
//! vain. At most half of the slots are taken. O(1) expected.

/// As many look-ups as are worth preparing together.
pub(crate) const TOGETHER: usize = 16;

/// A hash table of numbers, keyed by what the caller has under them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    /// The number, counted from 1, in the low bits; the rest of the hash above. A free slot is 0.
    slots: Vec<u32>,
    number_mask: u32,
    len: usize,
}

impl Index {
    /// An empty table with room for the numbers below `count`.
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self::with_slots((count * 2).next_power_of_two().max(16), count)
    }

    /// An empty table with some slots, a power of two, for numbers below `count`. The caller grows it in time.
    pub(crate) fn with_slots(slots: usize, count: usize) -> Self {
        Self { slots: vec![0; slots], number_mask: ((count + 1).next_power_of_two() - 1) as u32, len: 0 }
    }

    /// Puts `number` in, where nothing the same is.
    pub(crate) fn insert(&mut self, hash: u64, number: usize) {
        self.find_or_insert(hash, number, |_| false);
    }

    /// The number under which there is the `same`; where there is none, puts `number` in.
    #[inline]
    pub(crate) fn find_or_insert(&mut self, hash: u64, number: usize, same: impl Fn(usize) -> bool) -> Option<usize> {
        let (mask, tag) = (self.slots.len() - 1, self.tag(hash));
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                self.slots[at] = tag | (number as u32 + 1);
                self.len += 1;
                return None;
            }
            let found = (slot & self.number_mask).wrapping_sub(1) as usize;
            if slot & !self.number_mask == tag && same(found) {
                return Some(found);
            }
            at = (at + 1) & mask;
        }
    }

    /// The number under which there is the `same`.
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

    /// The number that [`Index::find`] would mostly give, and any at all where it would give none: that of the first slot
    /// or, if the part of the hash there is another, of the second. Asked for several hashes before the first answer is
    /// used, the reads of memory overlap.
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

    /// Brings the slots of several hashes near, before they are looked up or put in one after the other: a read that
    /// decides what comes next makes all that follow wait, and these decide nothing.
    #[inline]
    pub(crate) fn prefetch(&self, hashes: &[u64]) {
        std::hint::black_box(hashes.iter().fold(0, |all, &hash| all ^ self.likely(hash)));
    }

    /// Whether half of the slots are taken.
    pub(crate) fn is_full(&self) -> bool {
        self.len * 2 >= self.slots.len()
    }

    /// How many slots there are.
    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Forgets all numbers.
    pub(crate) fn clear(&mut self) {
        self.slots.fill(0);
        self.len = 0;
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u32>()
    }

    /// The part of a hash that stands beside a number.
    #[inline(always)]
    fn tag(&self, hash: u64) -> u32 {
        (hash >> 32) as u32 & !self.number_mask
    }
}

#[cfg(test)]
mod tests {
    use super::Index;

    #[test]
    fn numbers_are_found_by_what_they_stand_for() {
        // Hashes that share their slots, and some their tags too.
        let hashes: Vec<u64> = (0..1000_u64).map(|number| (number % 7) | ((number % 50) << 60)).collect();
        let mut index = Index::with_capacity(hashes.len());
        assert_eq!(index.find(hashes[3], |_| true), None);
        for (number, &hash) in hashes.iter().enumerate() {
            assert_eq!(index.find(hash, |found| found == number), None);
            index.insert(hash, number);
            assert_eq!(index.find(hash, |found| found == number), Some(number));
        }
        assert_eq!(index.likely(hashes[0]), 0);
        assert!(index.heap_bytes() >= 4 * 2000 && !index.is_full());
        index.clear();
        assert_eq!(index.find(hashes[3], |_| true), None);
    }

    #[test]
    fn the_likely_number_is_told_by_the_hash() {
        let mut index = Index::with_capacity(16);
        let hashes = [5, 5 | 1 << 60, 6];
        hashes.iter().zip(0..).for_each(|(&hash, number)| index.insert(hash, number));
        // The third one's first slot is the second one's second.
        assert_eq!([index.likely(hashes[0]), index.likely(hashes[1])], [0, 1]);
        index.prefetch(&hashes);
    }

    #[test]
    fn an_empty_index_finds_nothing() {
        assert_eq!(Index::default().find(7, |_| true), None);
        assert!(Index::default().is_full() && Index::default().likely(7) == usize::MAX);
    }
}
