//! Words of a text that are looked up together.
//!
//! A look-up is two reads of memory, one after the other, and what follows depends on branches that cannot be foreseen.
//! One word after the other would wait for all of that. Here the first reads of all words come first, and the ids are
//! put together without a branch.

use super::key::Key;
use super::word_cache::{INLINE, WordCache};
use crate::sink::Sink;

/// Words that are looked up together.
const WORDS: usize = 32;
/// More ids than found words can have, a power of two.
const IDS: usize = (WORDS * INLINE).next_power_of_two();

/// A word: its byte range, and its key if it is short.
#[derive(Debug)]
pub(crate) struct Word {
    pub begin: usize,
    pub end: usize,
    pub key: Option<Key>,
}

/// Words on their way through a [`WordCache`], each where the one before it ends.
#[derive(Debug, Default)]
pub(crate) struct WordQueue {
    len: usize,
    /// Where the first word begins.
    begin: usize,
    ends: [usize; WORDS],
    /// Once looked up, the key of each word, and where its ids mostly are in the cache.
    keys: [Key; WORDS],
    places: [usize; WORDS],
}

impl WordQueue {
    /// Expects the next word at byte `begin`.
    pub(crate) fn start(&mut self, begin: usize) {
        (self.len, self.begin) = (0, begin);
    }

    /// Adds the word that ends at `end`; tells whether there is no room for another one.
    #[inline(always)]
    pub(crate) fn push(&mut self, end: usize) -> bool {
        self.ends[self.len % WORDS] = end;
        self.len += 1;
        self.len == WORDS
    }

    /// Hands on the ids of all words in order and forgets the words. `encode` does so for a word that is not found at
    /// once; `cache` finds the cache in what `encode` needs.
    #[inline(always)]
    pub(crate) fn drain<S: Sink, C>(
        &mut self,
        text: &[u8],
        context: &mut C,
        cache: impl Fn(&C) -> &WordCache,
        sink: &mut S,
        mut encode: impl FnMut(&mut C, &Word, &mut S),
    ) {
        let len = std::mem::take(&mut self.len).min(WORDS);
        let (ends, keys, places) = (&self.ends[..len], &mut self.keys[..len], &mut self.places[..len]);
        let mut begin = self.begin;
        for ((&end, key), place) in ends.iter().zip(&mut *keys).zip(&mut *places) {
            // No word has the key that stands for a long one.
            *key = Key::new(text, begin, end).unwrap_or_default();
            *place = cache(context).likely(*key);
            begin = end;
        }
        // Room for any count modulo a power of two, so that no count has to be checked.
        let (mut ids, mut count) = ([0; IDS + INLINE], 0);
        let mut begin = self.begin;
        for ((&end, &key), &place) in ends.iter().zip(&*keys).zip(&*places) {
            if let Some((few, len)) = cache(context).few_at(place, key) {
                ids[count % IDS..][..INLINE].copy_from_slice(&few);
                count += len;
            } else {
                sink.push_all(&ids[..count]);
                count = 0;
                encode(context, &Word { begin, end, key: key.some() }, sink);
            }
            begin = end;
        }
        self.begin = begin;
        sink.push_all(&ids[..count]);
    }
}

#[cfg(test)]
mod tests {
    use super::{WORDS, WordCache, WordQueue};
    use crate::sink::TokenId;

    #[test]
    fn ids_come_in_the_order_of_the_words() {
        let text: Vec<u8> = (0..40 * WORDS).map(|at| (at % 251) as u8).collect();
        // The ids of a word: its first byte as many times as its length says, which is none, few or many.
        let ids = |begin: usize, end: usize| vec![TokenId::from(text[begin]); (end - begin) % 7];
        let (mut cache, mut queue, mut found, mut expected) =
            (WordCache::default(), WordQueue::default(), Vec::new(), Vec::new());
        for round in 0..3 {
            let mut begin = round;
            queue.start(begin);
            for len in (1..40).cycle().take(WORDS) {
                let end = begin + len;
                assert_eq!(queue.push(end), queue.len == WORDS);
                expected.extend(ids(begin, end));
                begin = end;
            }
            queue.drain(
                &text,
                &mut cache,
                |cache| cache,
                &mut found,
                |cache, word, found| {
                    let ids = ids(word.begin, word.end);
                    if let Some(key) = word.key.filter(|&key| cache.get(key).is_none()) {
                        cache.insert(key, &ids);
                    }
                    found.extend(ids);
                },
            );
            assert_eq!(found, expected);
        }
    }
}
