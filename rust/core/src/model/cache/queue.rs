//! A queue of words whose cache look-ups overlap.
//!
//! A look-up is two dependent reads of memory, and what follows depends on a branch that cannot be predicted. One word
//! after the other would wait for all of that. So the queue drains in stages:
//! 1. The index slot of every word is read.
//! 2. The entries of all words are read, and their ids are put together without a branch, up to the first word that is
//!    not where it is likely to be.
//! 3. That word is looked up the slow way, or encoded; the first time that a new word is met, the encoder may learn all
//!    new words of the queue together. Then stage 2 goes on.

use super::words::{INLINE, WordCache};
use crate::interrupt;
use crate::lookup::key::Key;
use crate::sink::{Sink, TokenId};

/// The most words at a time.
pub(crate) const MAX_WORDS: usize = 256;
/// More ids than the entries of all words have, a power of two.
const MAX_IDS: usize = (MAX_WORDS * INLINE).next_power_of_two();

/// A word: its byte range in the text, and its key if it is short.
#[derive(Debug)]
pub(crate) struct Word {
    pub start: usize,
    pub end: usize,
    pub key: Option<Key>,
}

/// Words of a queue, end to end.
pub(crate) struct Batch<'a> {
    /// Where the first word starts.
    pub start: usize,
    pub ends: &'a [usize],
    /// The default for long words.
    pub keys: &'a [Key],
    /// Where the words are likely to be in the cache.
    pub places: &'a mut [usize],
}

/// Encodes the words that the queue does not find in its cache.
pub(crate) trait WordEncoder {
    fn cache(&self) -> &WordCache;

    /// Puts new words into the cache, if encoding several of them together is faster. The first word is new.
    fn learn(&mut self, _words: Batch<'_>) {}

    /// Pushes the ids of one word, and caches them.
    fn encode<S: Sink>(&mut self, word: &Word, sink: &mut S);
}

/// Words end to end on their way through a [`WordCache`].
#[derive(Debug)]
pub(crate) struct WordQueue {
    len: usize,
    /// Where the first word starts.
    start: usize,
    ends: [usize; MAX_WORDS],
    /// Once looked up, the key of each word, and where it is likely to be in the cache.
    keys: [Key; MAX_WORDS],
    places: [usize; MAX_WORDS],
    /// Ids of found words, with room for any number of them modulo a power of two, so that no number is checked.
    ids: [TokenId; MAX_IDS + INLINE],
}

impl Default for WordQueue {
    fn default() -> Self {
        Self {
            len: 0,
            start: 0,
            ends: [0; MAX_WORDS],
            keys: [Key::default(); MAX_WORDS],
            places: [0; MAX_WORDS],
            ids: [0; MAX_IDS + INLINE],
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
        let (ends, keys, places) = (&self.ends[..len], &mut self.keys[..len], &mut self.places[..len]);
        let mut start = self.start;
        for ((&end, key), place) in ends.iter().zip(&mut *keys).zip(&mut *places) {
            // No word has the key that stands for a long one.
            *key = Key::new(text, start, end).unwrap_or_default();
            *place = encoder.cache().likely(*key);
            start = end;
        }

        let (mut at, mut has_learned) = (0, false);
        loop {
            let (num_found, num_ids) = likely_ids(encoder.cache(), &keys[at..], &places[at..], &mut self.ids);
            sink.push_all(&self.ids[..num_ids]);
            at += num_found;
            let (Some(&key), Some(&end)) = (keys.get(at), ends.get(at)) else { break };
            let start = if at == 0 { self.start } else { ends[at - 1] };
            if !has_learned && key.some().is_some_and(|key| encoder.cache().get(key).is_none()) {
                has_learned = true;
                encoder.learn(Batch { start, ends: &ends[at..], keys: &keys[at..], places: &mut places[at..] });
            } else {
                encoder.encode(&Word { start, end, key: key.some() }, sink);
                at += 1;
            }
        }
        self.start = start;
    }
}

/// Puts together the ids of the first words, up to one that is not at its likely place. Returns how many words and ids.
#[inline(never)]
fn likely_ids(
    cache: &WordCache,
    keys: &[Key],
    places: &[usize],
    ids: &mut [TokenId; MAX_IDS + INLINE],
) -> (usize, usize) {
    let mut num_ids = 0;
    for (at, (&key, &place)) in keys.iter().zip(places).enumerate() {
        let Some((few, len)) = cache.few_at(place, key) else { return (at, num_ids) };
        ids[num_ids % MAX_IDS..][..INLINE].copy_from_slice(&few);
        num_ids += len;
    }
    (keys.len(), num_ids)
}

#[cfg(test)]
mod tests {
    use super::{Batch, MAX_WORDS, Word, WordCache, WordEncoder, WordQueue};
    use crate::sink::{Sink, TokenId};

    /// Words whose ids are their first byte as many times as their length says: none, few or many. Learns every other
    /// word.
    struct Numbers<'a> {
        text: &'a [u8],
        cache: WordCache,
        learned: usize,
    }

    fn ids(text: &[u8], start: usize, end: usize) -> Vec<TokenId> {
        vec![TokenId::from(text[start]); (end - start) % 7]
    }

    impl WordEncoder for Numbers<'_> {
        fn cache(&self) -> &WordCache {
            &self.cache
        }

        fn learn(&mut self, words: Batch<'_>) {
            assert!(self.cache.get(words.keys[0]).is_none());
            let mut start = words.start;
            for (at, (&end, &key)) in words.ends.iter().zip(words.keys).enumerate() {
                if at % 2 == 0 && key.some().is_some() && self.cache.get(key).is_none() {
                    words.places[at] = self.cache.insert(key, &ids(self.text, start, end));
                    self.learned += 1;
                }
                start = end;
            }
        }

        fn encode<S: Sink>(&mut self, word: &Word, sink: &mut S) {
            let ids = ids(self.text, word.start, word.end);
            if let Some(key) = word.key.filter(|&key| self.cache.get(key).is_none()) {
                self.cache.insert(key, &ids);
            }
            sink.push_all(&ids);
        }
    }

    #[test]
    fn ids_come_in_the_order_of_the_words() {
        let text: Vec<u8> = (0..40 * MAX_WORDS).map(|at| (at % 251) as u8).collect();
        let mut numbers = Numbers { text: &text, cache: WordCache::default(), learned: 0 };
        let (mut queue, mut found, mut expected) = (WordQueue::default(), Vec::new(), Vec::new());
        for round in 0..6 {
            let mut start = round % 3;
            queue.start(start);
            for len in (1..40).cycle().take(MAX_WORDS) {
                let end = start + len;
                assert_eq!(queue.push(end), queue.len == MAX_WORDS);
                expected.extend(ids(&text, start, end));
                start = end;
            }
            queue.drain(&text, &mut numbers, &mut found);
            assert_eq!(found, expected);
        }
        // The second time round nothing is new.
        assert!((MAX_WORDS / 8..MAX_WORDS * 3).contains(&numbers.learned));
    }
}
