//! From a text to its number: open addressing over (hash tag, number) slots, the texts themselves kept elsewhere.
//!
//! 8 bytes a slot, at most half of them taken; a look-up compares 32 hash bits before it touches a text, so it costs
//! one probe into the table and, where it finds something, one into the texts. O(length) expected.

use crate::hash::Seed;

/// Marks a free slot; no number is that large.
const FREE: u64 = u64::MAX;

/// A hash table of numbers, keyed by texts that the caller holds.
#[derive(Debug, Clone)]
pub(crate) struct TextIndex {
    seed: Seed,
    /// High half: the hash's high half. Low half: the number.
    slots: Vec<u64>,
    mask: usize,
}

impl TextIndex {
    /// An empty table with room for `count` texts.
    pub(crate) fn with_capacity(count: usize) -> Self {
        let slots = (count * 2).next_power_of_two().max(16);
        Self { seed: Seed::default(), slots: vec![FREE; slots], mask: slots - 1 }
    }

    /// Puts `number` in for `text`, or gives the number that is there for it already.
    ///
    /// `same(n)` tells whether the text numbered `n` equals `text`. The caller keeps within the capacity.
    pub(crate) fn insert(&mut self, text: &[u8], number: u32, same: impl Fn(u32) -> bool) -> Option<u32> {
        let hash = self.seed.hash(text);
        let mut at = hash as usize & self.mask;
        loop {
            let slot = self.slots[at];
            if slot == FREE {
                self.slots[at] = (hash & !0xFFFF_FFFF) | u64::from(number);
                return None;
            }
            if slot >> 32 == hash >> 32 && same(slot as u32) {
                return Some(slot as u32);
            }
            at = (at + 1) & self.mask;
        }
    }

    /// The number of `text`.
    #[inline]
    pub(crate) fn get(&self, text: &[u8], same: impl Fn(u32) -> bool) -> Option<u32> {
        let hash = self.seed.hash(text);
        let mut at = hash as usize & self.mask;
        loop {
            let slot = self.slots[at];
            if slot == FREE {
                return None;
            }
            if slot >> 32 == hash >> 32 && same(slot as u32) {
                return Some(slot as u32);
            }
            at = (at + 1) & self.mask;
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u64>()
    }
}
