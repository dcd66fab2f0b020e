//! A queue of contiguous words, whose cache look-ups overlap.
//!
//! A look-up waits for memory, and what follows depends on an unpredictable branch. Looked up one at a time, every word
//! would pay for both. So words wait until there are many, and then the owner of the queue and the cache takes three
//! steps:
//! 1. [`WordQueue::look_up`] prefetches the slots of all words, and then collects the ids of words that have few,
//!    without an unpredictable branch. Every other word leaves a gap.
//! 2. The owner may encode the new [`LookedUp`] words together, and cache them.
//! 3. [`LookedUp::push_ids`] pushes all ids in order. A gap is filled from the cache; if the word is still not there,
//!    it is encoded by itself, and cached.

use std::ops::Range;

use super::{INLINE, Probe, WordCache};
use crate::encode::model::segmenter::Segmenter;
use crate::encode::sink::Sink;
use crate::token::TokenId;
use crate::work::interrupt;
use crate::work::memory::push;

/// The most words at a time.
pub(crate) const MAX_WORDS: usize = 256;
/// More ids than the slots of all words can hold; a power of two.
const MAX_IDS: usize = (MAX_WORDS * INLINE).next_power_of_two();

/// Contiguous words that wait to be looked up.
#[derive(Debug)]
pub(crate) struct WordQueue {
    len: usize,
    /// Where the first word starts.
    start: usize,
    ends: [usize; MAX_WORDS],
    probes: [Probe; MAX_WORDS],
    found: Found,
    /// The ids of a new word.
    ids: Vec<TokenId>,
}

/// The ids of all words that have few, concatenated.
#[derive(Debug)]
struct Found {
    /// Has room for [`INLINE`] ids at any index modulo [`MAX_IDS`], so that no index is checked.
    ids: [TokenId; MAX_IDS + INLINE],
    num_ids: usize,
    /// The words without ids here.
    gaps: Vec<Gap>,
    /// The numbers of the words that are not cached.
    new: Vec<u32>,
}

/// A word without ids in [`Found`].
#[derive(Debug, Clone, Copy)]
struct Gap {
    /// The number of the word.
    number: u32,
    /// How many ids come before it.
    num_before: u32,
}

/// Contiguous words that were looked up, and the ids of those that were found.
#[derive(Debug)]
pub(crate) struct LookedUp<'a> {
    text: &'a [u8],
    /// Where the first word starts.
    start: usize,
    ends: &'a [usize],
    probes: &'a [Probe],
    found: &'a Found,
    /// The ids of a new word.
    ids: &'a mut Vec<TokenId>,
}

impl Default for WordQueue {
    fn default() -> Self {
        Self {
            len: 0,
            start: 0,
            ends: [0; MAX_WORDS],
            probes: [Probe::default(); MAX_WORDS],
            found: Found { ids: [0; MAX_IDS + INLINE], num_ids: 0, gaps: Vec::new(), new: Vec::new() },
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

    /// Looks up all words, which are in `text`, and removes them from the queue.
    #[inline(always)]
    pub(crate) fn look_up<'a>(&'a mut self, text: &'a [u8], cache: &WordCache) -> LookedUp<'a> {
        interrupt::check();
        let len = std::mem::take(&mut self.len).min(MAX_WORDS);
        let start = self.start;
        let ends = &self.ends[..len];
        let probes = &mut self.probes[..len];
        self.start = ends.last().copied().unwrap_or(start);
        cache.probe_all(text, start, ends, probes);
        self.found.look_up(cache, probes);
        LookedUp { text, start, ends, probes, found: &self.found, ids: &mut self.ids }
    }

    /// Cuts `text[range]` into segments with `segmenter`, and pushes their ids. Each segment is a word, and `encode`
    /// appends the ids of a new one.
    #[inline]
    pub(crate) fn encode_segments<S: Sink>(
        &mut self,
        cache: &mut WordCache,
        segmenter: &Segmenter,
        text: &[u8],
        range: Range<usize>,
        mut encode: impl FnMut(&[u8], &mut Vec<TokenId>),
        sink: &mut S,
    ) {
        self.start(range.start);
        segmenter.split(text, range, |_, end| {
            if self.push(end) {
                self.encode_queued(cache, text, &mut encode, sink);
            }
        });
        self.encode_queued(cache, text, &mut encode, sink);
    }

    /// Pushes the ids of all words in the queue, which are words of `text`, and removes them. `encode` appends the ids
    /// of a new one.
    #[inline(never)]
    pub(crate) fn encode_queued<S: Sink>(
        &mut self,
        cache: &mut WordCache,
        text: &[u8],
        encode: &mut impl FnMut(&[u8], &mut Vec<TokenId>),
        sink: &mut S,
    ) {
        self.look_up(text, cache).push_ids(cache, |segment, _, ids| encode(&text[segment], ids), sink);
    }
}

impl Found {
    /// Looks up all words.
    #[inline(never)]
    fn look_up(&mut self, cache: &WordCache, probes: &[Probe]) {
        self.gaps.clear();
        self.new.clear();
        let mut num_ids = 0;
        for (at, &probe) in probes.iter().enumerate() {
            match cache.few(probe) {
                Some((few, len)) => {
                    self.ids[num_ids % MAX_IDS..][..INLINE].copy_from_slice(&few);
                    num_ids += len;
                }
                None => num_ids = self.look_further(cache, at, probe, num_ids),
            }
        }
        self.num_ids = num_ids;
    }

    /// Looks up a word that is not in the first line of its window with few ids. Returns the number of ids after it.
    #[cold]
    #[inline(never)]
    fn look_further(&mut self, cache: &WordCache, at: usize, probe: Probe, num_ids: usize) -> usize {
        let slot = cache.slot(probe);
        if let Some(slot) = slot.filter(|slot| slot.is_inline()) {
            self.ids[num_ids % MAX_IDS..][..INLINE].copy_from_slice(&slot.ids);
            return num_ids + slot.num_ids as usize;
        }
        if slot.is_none() {
            push(&mut self.new, at as u32);
        }
        push(&mut self.gaps, Gap { number: at as u32, num_before: num_ids as u32 });
        num_ids
    }
}

impl<'a> LookedUp<'a> {
    /// Where the word with this number is in the text.
    #[inline(always)]
    fn range(&self, number: u32) -> Range<usize> {
        let at = number as usize;
        (if at == 0 { self.start } else { self.ends[at - 1] })..self.ends[at]
    }

    /// The word with this number, and its look-up.
    #[inline(always)]
    fn word(&self, number: u32) -> (&'a [u8], Probe) {
        (&self.text[self.range(number)], self.probes[number as usize])
    }

    /// How many words are not cached. A word that is queued twice counts twice.
    #[inline(always)]
    pub(crate) fn num_new(&self) -> usize {
        self.found.new.len()
    }

    /// A word that is not cached, and its look-up.
    #[inline(always)]
    pub(crate) fn new_word(&self, new: usize) -> (&'a [u8], Probe) {
        self.word(self.found.new[new])
    }

    /// Pushes the ids of all words in order. `encode` appends the ids of a new word, given its range in the text, and
    /// may cache parts of it.
    #[inline(always)]
    pub(crate) fn push_ids<S: Sink>(
        self,
        cache: &mut WordCache,
        mut encode: impl FnMut(Range<usize>, &mut WordCache, &mut Vec<TokenId>),
        sink: &mut S,
    ) {
        let found = self.found;
        let mut from = 0;
        for &Gap { number, num_before } in &found.gaps {
            sink.push_all(&found.ids[from..num_before as usize]);
            from = num_before as usize;
            let (word, probe) = self.word(number);
            if !cache.push(probe, word, sink) {
                self.ids.clear();
                encode(self.range(number), cache, self.ids);
                sink.push_all(self.ids);
                cache.insert(probe, word, self.ids);
            }
        }
        sink.push_all(&found.ids[from..found.num_ids]);
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_WORDS, WordCache, WordQueue};
    use crate::token::TokenId;

    /// The first byte of a word, as many times as its length says: no ids, few or many.
    fn ids(word: &[u8]) -> Vec<TokenId> {
        vec![TokenId::from(word[0]); word.len() % 7]
    }

    #[test]
    fn ids_come_in_the_order_of_the_words() {
        let text: Vec<u8> = (0..40 * MAX_WORDS).map(|at| (at % 251) as u8).collect();
        let mut queue = WordQueue::default();
        let mut cache = WordCache::default();
        cache.set_limit(1 << 20);
        let mut found = Vec::new();
        let mut expected = Vec::new();
        let mut num_learned = 0;
        for round in 0..6 {
            let mut start = round % 3;
            queue.start(start);
            for len in (1..40).cycle().take(MAX_WORDS) {
                let end = start + len;
                assert_eq!(queue.push(end), queue.len == MAX_WORDS);
                expected.extend(ids(&text[start..end]));
                start = end;
            }
            let looked_up = queue.look_up(&text, &cache);
            // Only some words are cached before all are pushed.
            for new in (0..looked_up.num_new()).step_by(3) {
                let (word, probe) = looked_up.new_word(new);
                cache.insert(probe, word, &ids(word));
                num_learned += 1;
            }
            looked_up.push_ids(&mut cache, |range, _, all| all.extend(ids(&text[range])), &mut found);
            assert_eq!(found, expected);
        }
        // The second time round, nothing is new.
        assert!((MAX_WORDS / 8..MAX_WORDS * 3).contains(&num_learned));
    }
}
