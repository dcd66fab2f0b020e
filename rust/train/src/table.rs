//! A hash table from words to counts: the concatenated words, and an open-addressing index into them.
//!
//! A word costs its bytes and 20 more, without a separate allocation. O(length) to count one.

use ggtok_core::internals::Seed;
use ggtok_core::internals::interrupt;

/// A word of the table.
#[derive(Debug, Clone, Copy)]
struct CountedWord {
    /// Where the word starts in the bytes; it ends where the next one starts.
    start: usize,
    count: u64,
}

/// Words and how often each was counted.
#[derive(Debug, Default)]
pub(super) struct WordTable {
    bytes: Vec<u8>,
    entries: Vec<CountedWord>,
    /// The upper half of a word's hash, and its index + 1; 0 for an empty slot. The number of slots is a power of two.
    slots: Vec<(u32, u32)>,
    seed: Seed,
}

impl WordTable {
    /// The number of words.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Memory held, in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        self.bytes.capacity()
            + self.entries.capacity() * size_of::<CountedWord>()
            + self.slots.capacity() * size_of::<(u32, u32)>()
    }

    /// The size of a word in bytes, without the index.
    pub(super) fn bytes_of(word: &[u8]) -> u64 {
        (word.len() + size_of::<CountedWord>()) as u64
    }

    /// Counts a word `count` more times.
    #[inline]
    pub(super) fn add(&mut self, word: &[u8], count: u64) {
        if self.entries.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let hash = self.seed.hash(word);
        let tag = (hash >> 32) as u32;
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            match self.slots[at] {
                (_, 0) => {
                    self.push(word, count);
                    self.slots[at] = (tag, self.entries.len() as u32);
                    return;
                }
                (found, index) if found == tag && self.word(index as usize - 1) == word => {
                    self.entries[index as usize - 1].count += count;
                    return;
                }
                _ => at = (at + 1) & mask,
            }
        }
    }

    /// Adds a new word. After that, [`WordTable::add`] must not be called.
    pub(super) fn push(&mut self, word: &[u8], count: u64) {
        self.entries.push(CountedWord { start: self.bytes.len(), count });
        self.bytes.extend_from_slice(word);
    }

    /// The word at an index.
    #[inline]
    pub(super) fn word(&self, index: usize) -> &[u8] {
        let end = self.entries.get(index + 1).map_or(self.bytes.len(), |next| next.start);
        &self.bytes[self.entries[index].start..end]
    }

    /// How often the word at an index was counted.
    pub(super) fn count(&self, index: usize) -> u64 {
        self.entries[index].count
    }

    /// All words with their counts, in the order of their first occurrence.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        (0..self.len()).map(|index| (self.word(index), self.count(index)))
    }

    /// The indices of the words, ordered by their bytes.
    pub(super) fn sorted(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        interrupt::sort_unstable_by(&mut order, |&one, &other| self.word(one as usize).cmp(self.word(other as usize)));
        order
    }

    #[cold]
    fn grow(&mut self) {
        let len = (self.slots.len() * 2).max(1 << 10);
        self.slots.clear();
        self.slots.resize(len, (0, 0));
        for index in interrupt::ticking(0..self.entries.len()) {
            let hash = self.seed.hash(self.word(index));
            let mut at = hash as usize & (len - 1);
            while self.slots[at].1 != 0 {
                at = (at + 1) & (len - 1);
            }
            self.slots[at] = ((hash >> 32) as u32, index as u32 + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::WordTable;

    proptest! {
        #[test]
        fn words_are_counted(words in prop::collection::vec(("[ab]{0,5}|[a-z]{15,17}", 1..9_u64), 0..1200)) {
            let mut table = WordTable::default();
            let mut expected = HashMap::new();
            for (word, count) in &words {
                table.add(word.as_bytes(), *count);
                *expected.entry(word.as_bytes()).or_insert(0) += *count;
            }
            prop_assert_eq!(table.iter().collect::<HashMap<_, _>>(), expected);
            prop_assert!(table.sorted().windows(2).all(|two| table.word(two[0] as usize) < table.word(two[1] as usize)));
        }
    }
}
