//! Words of a text that are looked up together.
//!
//! A look-up is two reads of memory, one after the other, and what follows depends on branches that cannot be foreseen.
//! One word after the other would wait for all of that. Here the first reads of all words come first, and the ids are
//! put together without a branch.

use crate::lookup::key::Key;
use crate::model::cache::words::{INLINE, WordCache};
use crate::sink::{Sink, TokenId};

/// Words that are looked up together.
pub(crate) const WORDS: usize = 256;
/// More ids than found words can have, a power of two.
const IDS: usize = (WORDS * INLINE).next_power_of_two();

/// A word: its byte range, and its key if it is short.
#[derive(Debug)]
pub(crate) struct Word {
    pub begin: usize,
    pub end: usize,
    pub key: Option<Key>,
}

/// Words that are looked up together, each where the one before it ends.
pub(crate) struct Batch<'a> {
    /// Where the first one begins.
    pub begin: usize,
    pub ends: &'a [usize],
    /// The default for long words.
    pub keys: &'a [Key],
    /// Where their ids mostly are in the cache.
    pub places: &'a mut [usize],
}

/// What words become.
pub(crate) trait Known {
    /// What they became so far.
    fn cache(&self) -> &WordCache;

    /// Puts words into the cache, if it is better to do so for several of them together. The first one is new.
    fn learn(&mut self, _words: Batch<'_>) {}

    /// Hands on the ids of a word that is not where it mostly is.
    fn encode<S: Sink>(&mut self, word: &Word, sink: &mut S);
}

/// Words on their way through a [`WordCache`], each where the one before it ends.
#[derive(Debug)]
pub(crate) struct WordQueue {
    len: usize,
    /// Where the first word begins.
    begin: usize,
    ends: [usize; WORDS],
    /// Once looked up, the key of each word, and where its ids mostly are in the cache.
    keys: [Key; WORDS],
    places: [usize; WORDS],
    /// Ids of found words, with room for any count modulo a power of two, so that no count has to be checked.
    ids: [TokenId; IDS + INLINE],
}

impl Default for WordQueue {
    fn default() -> Self {
        Self {
            len: 0,
            begin: 0,
            ends: [0; WORDS],
            keys: [Key::default(); WORDS],
            places: [0; WORDS],
            ids: [0; IDS + INLINE],
        }
    }
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

    /// Hands on the ids of all words of `text` in order and forgets the words.
    #[inline(always)]
    pub(crate) fn drain<S: Sink>(&mut self, text: &[u8], known: &mut impl Known, sink: &mut S) {
        let len = std::mem::take(&mut self.len).min(WORDS);
        let (ends, keys, places) = (&self.ends[..len], &mut self.keys[..len], &mut self.places[..len]);
        let mut begin = self.begin;
        for ((&end, key), place) in ends.iter().zip(&mut *keys).zip(&mut *places) {
            // No word has the key that stands for a long one.
            *key = Key::new(text, begin, end).unwrap_or_default();
            *place = known.cache().likely(*key);
            begin = end;
        }
        let (mut at, mut is_learned) = (0, false);
        loop {
            let (found, count) = few(known.cache(), &keys[at..], &places[at..], &mut self.ids);
            sink.push_all(&self.ids[..count]);
            at += found;
            let (Some(&key), Some(&end)) = (keys.get(at), ends.get(at)) else { break };
            let begin = if at == 0 { self.begin } else { ends[at - 1] };
            if !is_learned && key.some().is_some_and(|key| known.cache().get(key).is_none()) {
                is_learned = true;
                known.learn(Batch { begin, ends: &ends[at..], keys: &keys[at..], places: &mut places[at..] });
            } else {
                known.encode(&Word { begin, end, key: key.some() }, sink);
                at += 1;
            }
        }
        self.begin = begin;
    }
}

/// Puts the ids of the first words together that are where they mostly are; tells how many words and ids these are.
#[inline(never)]
fn few(cache: &WordCache, keys: &[Key], places: &[usize], ids: &mut [TokenId; IDS + INLINE]) -> (usize, usize) {
    let mut count = 0;
    for (at, (&key, &place)) in keys.iter().zip(places).enumerate() {
        let Some((few, len)) = cache.few_at(place, key) else { return (at, count) };
        // There is room for any count modulo a power of two.
        ids[count % IDS..][..INLINE].copy_from_slice(&few);
        count += len;
    }
    (keys.len(), count)
}

#[cfg(test)]
mod tests {
    use super::{Batch, Known, WORDS, Word, WordCache, WordQueue};
    use crate::sink::{Sink, TokenId};

    /// Words whose ids are their first byte as many times as their length says: none, few or many. Learns every other
    /// word.
    struct Numbers<'a> {
        text: &'a [u8],
        cache: WordCache,
        learned: usize,
    }

    fn ids(text: &[u8], begin: usize, end: usize) -> Vec<TokenId> {
        vec![TokenId::from(text[begin]); (end - begin) % 7]
    }

    impl Known for Numbers<'_> {
        fn cache(&self) -> &WordCache {
            &self.cache
        }

        fn learn(&mut self, words: Batch<'_>) {
            assert!(self.cache.get(words.keys[0]).is_none());
            let mut begin = words.begin;
            for (at, (&end, &key)) in words.ends.iter().zip(words.keys).enumerate() {
                if at % 2 == 0 && key.some().is_some() && self.cache.get(key).is_none() {
                    words.places[at] = self.cache.insert(key, &ids(self.text, begin, end));
                    self.learned += 1;
                }
                begin = end;
            }
        }

        fn encode<S: Sink>(&mut self, word: &Word, sink: &mut S) {
            let ids = ids(self.text, word.begin, word.end);
            if let Some(key) = word.key.filter(|&key| self.cache.get(key).is_none()) {
                self.cache.insert(key, &ids);
            }
            sink.push_all(&ids);
        }
    }

    #[test]
    fn ids_come_in_the_order_of_the_words() {
        let text: Vec<u8> = (0..40 * WORDS).map(|at| (at % 251) as u8).collect();
        let mut numbers = Numbers { text: &text, cache: WordCache::default(), learned: 0 };
        let (mut queue, mut found, mut expected) = (WordQueue::default(), Vec::new(), Vec::new());
        for round in 0..6 {
            let mut begin = round % 3;
            queue.start(begin);
            for len in (1..40).cycle().take(WORDS) {
                let end = begin + len;
                assert_eq!(queue.push(end), queue.len == WORDS);
                expected.extend(ids(&text, begin, end));
                begin = end;
            }
            queue.drain(&text, &mut numbers, &mut found);
            assert_eq!(found, expected);
        }
        // The second time round nothing is new.
        assert!((WORDS / 8..WORDS * 3).contains(&numbers.learned));
    }
}
