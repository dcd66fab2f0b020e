//! A queue of short words, anywhere in a text, whose cache look-ups are under way.

use super::{Probe, WordCache};
use crate::lookup::key::Key;
use crate::text::scan::BLOCK;

/// The most words at a time. Callers find words block by block, and empty a queue that is half full, so that it has
/// room for the words of one more block.
const MAX_WORDS: usize = 2 * BLOCK;

/// Short words, each with its start in the text.
#[derive(Debug)]
pub(crate) struct ProbeQueue {
    words: [(Probe, u32); MAX_WORDS],
    len: usize,
}

impl Default for ProbeQueue {
    fn default() -> Self {
        Self { words: [Default::default(); MAX_WORDS], len: 0 }
    }
}

impl ProbeQueue {
    /// Adds a word and prefetches its slot.
    #[inline(always)]
    pub(crate) fn push(&mut self, cache: &WordCache, key: Key, start: usize) {
        self.words[self.len % MAX_WORDS] = (cache.probe(key), start as u32);
        self.len += 1;
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The word with this number, and where it starts.
    #[inline(always)]
    pub(crate) fn get(&self, number: usize) -> (Probe, usize) {
        let (probe, start) = self.words[number % MAX_WORDS];
        (probe, start as usize)
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }
}
