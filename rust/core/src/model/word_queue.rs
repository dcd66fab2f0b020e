//! Words of a text that are looked up together.
//!
//! A look-up is two reads of memory, one after the other, and what follows depends on branches that cannot be foreseen.
//! One word after the other would wait for all of that. Here the first reads of all words come first, and the ids are
//! put together without a branch.

use super::key::Key;
use super::word_cache::{INLINE, WordCache};
use crate::sink::{Sink, TokenId};

/// Words that are looked up together.
const WORDS: usize = 32;

/// A word: its byte range, and its key if it is short.
#[derive(Debug)]
pub(crate) struct Word {
    pub begin: usize,
    pub end: usize,
    pub key: Option<Key>,
}

/// A word in the queue: its byte range and, once looked up, its key and where its ids mostly are in the cache.
#[derive(Debug, Clone, Copy, Default)]
struct Waiting {
    begin: usize,
    end: usize,
    key: Key,
    place: usize,
}

/// Words on their way through a [`WordCache`].
#[derive(Debug, Default)]
pub(crate) struct WordQueue {
    words: [Waiting; WORDS],
    len: usize,
}

impl WordQueue {
    /// Adds `text[begin..end]`; tells whether there is no room for another one.
    #[inline(always)]
    pub(crate) fn push(&mut self, begin: usize, end: usize) -> bool {
        let word = &mut self.words[self.len % WORDS];
        (word.begin, word.end) = (begin, end);
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
        let words = &mut self.words[..std::mem::take(&mut self.len).min(WORDS)];
        if words.is_empty() {
            return;
        }
        for word in words.iter_mut() {
            // No word has the key that stands for a long one.
            word.key = Key::new(text, word.begin, word.end).unwrap_or_default();
            word.place = cache(context).likely(word.key);
        }
        let (mut ids, mut count): ([TokenId; WORDS * INLINE], usize) = ([0; _], 0);
        for word in words {
            if let Some((few, len)) = cache(context).few_at(word.place, word.key)
                && let Some(next) = ids.get_mut(count..count + INLINE)
            {
                next.copy_from_slice(&few);
                count += len;
            } else {
                sink.push_all(&ids[..count]);
                count = 0;
                encode(context, &Word { begin: word.begin, end: word.end, key: word.key.some() }, sink);
            }
        }
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
            for len in (1..40).cycle().take(WORDS) {
                let end = begin + len;
                assert_eq!(queue.push(begin, end), queue.len == WORDS);
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
