//! A hash table from words to counts: the concatenated words, and an index of them.
//!
//! A word costs its bytes and 20 more, without a separate allocation. O(length) to count one.

use ggtok_core::internals::interrupt;
use ggtok_core::internals::{Index, Seed};

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
    /// The indices of the words by their hashes.
    index: Index,
    /// How many words the index has room for: a power of two.
    room: usize,
    seed: Seed,
}

impl WordTable {
    /// The number of words.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Memory held, in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        // The index has two slots of four bytes for each word that it has room for.
        self.bytes.capacity() + self.entries.capacity() * size_of::<CountedWord>() + 8 * self.room
    }

    /// The size of a word in bytes, without the index.
    pub(super) fn bytes_of(word: &[u8]) -> u64 {
        (word.len() + size_of::<CountedWord>()) as u64
    }

    /// Counts a word `count` more times.
    #[inline]
    pub(super) fn add(&mut self, word: &[u8], count: u64) {
        if self.len() >= self.room {
            self.grow();
        }
        let Self { bytes, entries, index, seed, .. } = self;
        let same = |index| word_at(bytes, entries, index) == word;
        match index.find_or_insert(seed.hash(word), entries.len(), same) {
            Some(index) => entries[index].count += count,
            None => self.push(word, count),
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
        word_at(&self.bytes, &self.entries, index)
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
        self.room = (2 * self.room).max(1 << 9);
        self.index = Index::with_capacity(self.room);
        for index in interrupt::ticking(0..self.len()) {
            self.index.insert(self.seed.hash(self.word(index)), index);
        }
    }
}

#[inline]
fn word_at<'a>(bytes: &'a [u8], entries: &[CountedWord], index: usize) -> &'a [u8] {
    let end = entries.get(index + 1).map_or(bytes.len(), |next| next.start);
    &bytes[entries[index].start..end]
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
