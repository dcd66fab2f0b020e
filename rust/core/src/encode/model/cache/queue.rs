//! A queue of words whose cache look-ups overlap.
//!
//! A look-up waits for memory, and what follows depends on a branch that cannot be predicted. One word after the other
//! would wait for all of that. So the queue drains in stages:
//! 1. The look-up of every word starts.
//! 2. The ids of all words that have few are put together, without a branch that is hard to predict. Every other word
//!    leaves a gap.
//! 3. The encoder may learn the new words among them together. Then the gaps are filled, in order.

use std::ops::Range;

use super::{INLINE, Probe, WordCache};
use crate::encode::model::adjacency::Junctions;
use crate::encode::sink::Sink;
use crate::token::TokenId;
use crate::work::interrupt;

/// The most words at a time.
pub(crate) const MAX_WORDS: usize = 512;
/// More ids than the slots of all words have, a power of two.
const MAX_IDS: usize = (MAX_WORDS * INLINE).next_power_of_two();

/// Words of a queue, end to end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batch<'a> {
    text: &'a [u8],
    /// Where the first word starts.
    start: usize,
    ends: &'a [usize],
    pub probes: &'a [Probe],
}

impl<'a> Batch<'a> {
    /// Where the word with this number is in the text.
    #[inline(always)]
    fn range(self, at: usize) -> Range<usize> {
        (if at == 0 { self.start } else { self.ends[at - 1] })..self.ends[at]
    }

    /// The word with this number.
    #[inline(always)]
    pub(crate) fn word(self, at: usize) -> &'a [u8] {
        &self.text[self.range(at)]
    }
}

/// Encodes the words that the queue does not find in its cache.
pub(crate) trait WordEncoder {
    /// Puts new words, of which these are the numbers, into the cache, if encoding several of them together is faster.
    fn learn(&mut self, _words: Batch<'_>, _new: &[u32], _cache: &mut WordCache) {}

    /// Appends the ids of the new word in this range of the text. May cache parts of it.
    fn encode(&mut self, text: &[u8], range: Range<usize>, cache: &mut WordCache, ids: &mut Vec<TokenId>);
}

/// A function that appends the ids of a word is an encoder.
impl<F: FnMut(&[u8], &mut Vec<TokenId>)> WordEncoder for F {
    #[inline(never)]
    fn encode(&mut self, text: &[u8], range: Range<usize>, _: &mut WordCache, ids: &mut Vec<TokenId>) {
        self(&text[range], ids);
    }
}

/// Words end to end on their way through a cache. Always used with the same encoder.
#[derive(Debug)]
pub(crate) struct WordQueue {
    pub cache: WordCache,
    len: usize,
    /// Where the first word starts.
    start: usize,
    ends: [usize; MAX_WORDS],
    probes: [Probe; MAX_WORDS],
    found: Found,
    /// The ids of a new word.
    ids: Vec<TokenId>,
}

/// The ids of words that have few, put together.
#[derive(Debug)]
struct Found {
    /// With room for any number of them modulo a power of two, so that no number is checked.
    ids: [TokenId; MAX_IDS + INLINE],
    /// The words without ids here: the number of each, and of the ids before it.
    gaps: Vec<(u32, u32)>,
    /// The numbers of those that are not cached.
    new: Vec<u32>,
}

impl Default for WordQueue {
    fn default() -> Self {
        Self {
            cache: WordCache::default(),
            len: 0,
            start: 0,
            ends: [0; MAX_WORDS],
            probes: [Probe::default(); MAX_WORDS],
            found: Found { ids: [0; MAX_IDS + INLINE], gaps: Vec::new(), new: Vec::new() },
            ids: Vec::new(),
        }
    }
}

impl WordQueue {
    /// Empties the queue. The next word starts at byte `start`.
    pub(crate) fn start(&mut self, start: usize) {
        (self.len, self.start) = (0, start);
    }

    /// Adds the word that ends at `end`. Returns whether the queue is full.
    #[inline(always)]
    pub(crate) fn push(&mut self, end: usize) -> bool {
        self.ends[self.len % MAX_WORDS] = end;
        self.len += 1;
        self.len == MAX_WORDS
    }

    /// Pushes the ids of all words of `text` in order, and removes the words.
    #[inline(always)]
    pub(crate) fn drain<S: Sink>(&mut self, text: &[u8], encoder: &mut impl WordEncoder, sink: &mut S) {
        interrupt::check();
        let len = std::mem::take(&mut self.len).min(MAX_WORDS);
        let Self { cache, found, .. } = self;
        let (ends, probes) = (&self.ends[..len], &mut self.probes[..len]);
        cache.probe_all(text, self.start, ends, probes);
        let num_ids = found.look_up(cache, probes);

        let words = Batch { text, start: self.start, ends, probes };
        if !found.new.is_empty() {
            encoder.learn(words, &found.new, cache);
        }
        let mut from = 0;
        for &(at, num_before) in &found.gaps {
            let (at, num_before) = (at as usize, num_before as usize);
            sink.push_all(&found.ids[from..num_before]);
            from = num_before;
            if !cache.push_word(probes[at], words.word(at), sink) {
                self.ids.clear();
                encoder.encode(text, words.range(at), cache, &mut self.ids);
                sink.push_all(&self.ids);
                cache.insert_word(probes[at], words.word(at), &self.ids);
            }
        }
        sink.push_all(&found.ids[from..num_ids]);
        self.start = ends.last().copied().unwrap_or(self.start);
    }

    /// Pushes the ids of `text[range]`, which `junctions` cut into segments, each of them a word.
    #[inline]
    pub(crate) fn encode_segments<S: Sink>(
        &mut self,
        junctions: &Junctions,
        text: &[u8],
        range: Range<usize>,
        encoder: &mut impl WordEncoder,
        sink: &mut S,
    ) {
        self.start(range.start);
        junctions.split(text, range, |_, end| {
            if self.push(end) {
                self.drain_segments(text, encoder, sink);
            }
        });
        self.drain_segments(text, encoder, sink);
    }

    #[inline(never)]
    fn drain_segments<S: Sink>(&mut self, text: &[u8], encoder: &mut impl WordEncoder, sink: &mut S) {
        self.drain(text, encoder, sink);
    }
}

impl Found {
    /// Looks up all words. Returns the number of ids.
    #[inline(never)]
    fn look_up(&mut self, cache: &WordCache, probes: &[Probe]) -> usize {
        self.gaps.clear();
        self.new.clear();
        let mut num_ids = 0;
        for (at, &probe) in probes.iter().enumerate() {
            match cache.few(probe) {
                Some((few, len)) => {
                    self.ids[num_ids % MAX_IDS..][..INLINE].copy_from_slice(&few);
                    num_ids += len;
                }
                None => self.add_gap(at, num_ids, cache.contains(probe)),
            }
        }
        num_ids
    }

    #[cold]
    #[inline(never)]
    fn add_gap(&mut self, at: usize, num_ids: usize, is_cached: bool) {
        self.gaps.push((at as u32, num_ids as u32));
        if !is_cached {
            self.new.push(at as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Batch, MAX_WORDS, Range, WordCache, WordEncoder, WordQueue};
    use crate::token::TokenId;

    /// Words whose ids are their first byte as many times as their length says: none, few or many. Learns every other
    /// word.
    struct Numbers {
        learned: usize,
    }

    fn ids(word: &[u8]) -> Vec<TokenId> {
        vec![TokenId::from(word[0]); word.len() % 7]
    }

    impl WordEncoder for Numbers {
        fn learn(&mut self, words: Batch<'_>, new: &[u32], cache: &mut WordCache) {
            for &at in new.iter().step_by(2) {
                let (probe, word) = (words.probes[at as usize], words.word(at as usize));
                if !cache.contains(probe) {
                    cache.insert_word(probe, word, &ids(word));
                    self.learned += 1;
                }
            }
        }

        fn encode(&mut self, text: &[u8], range: Range<usize>, _: &mut WordCache, all: &mut Vec<TokenId>) {
            all.extend(ids(&text[range]));
        }
    }

    #[test]
    fn ids_come_in_the_order_of_the_words() {
        let text: Vec<u8> = (0..40 * MAX_WORDS).map(|at| (at % 251) as u8).collect();
        let mut numbers = Numbers { learned: 0 };
        let (mut queue, mut found, mut expected) = (WordQueue::default(), Vec::new(), Vec::new());
        for round in 0..6 {
            let mut start = round % 3;
            queue.start(start);
            for len in (1..40).cycle().take(MAX_WORDS) {
                let end = start + len;
                assert_eq!(queue.push(end), queue.len == MAX_WORDS);
                expected.extend(ids(&text[start..end]));
                start = end;
            }
            queue.drain(&text, &mut numbers, &mut found);
            assert_eq!(found, expected);
        }
        // The second time round nothing is new.
        assert!((MAX_WORDS / 8..MAX_WORDS * 3).contains(&numbers.learned));
    }
}
