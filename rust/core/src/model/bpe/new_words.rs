//! New pieces of a batch, encoded together and kept.
//!
//! A read of memory that the near caches do not hold takes as long as some hundred instructions, unless others are on
//! their way. So each stage goes through all new pieces before the next one begins: which are new, which are tokens, what
//! the others merge to.

use super::Bpe;
use crate::lookup::key::Key;
use crate::model::cache::queue::{Batch, WORDS};
use crate::model::cache::words::WordCache;
use crate::model::merging::lanes::{LANES, Lanes, MOST};
use crate::sink::TokenId;
use crate::vocabulary::Vocabulary;

/// Room for what is found out about the pieces of a batch.
#[derive(Debug)]
pub(super) struct NewWords {
    /// Places of new pieces in their batch, each with a token that it may be; and of those that are tokens.
    new: [(u32, u32); WORDS],
    tokens: [(u32, u32); WORDS],
    lanes: Lanes,
    /// The pieces in the lanes, with their places in the batch.
    waiting: [(Key, usize); LANES],
}

impl Default for NewWords {
    fn default() -> Self {
        let (new, waiting) = ([(0, 0); WORDS], [(Key::default(), 0); LANES]);
        Self { new, tokens: new, lanes: Lanes::default(), waiting }
    }
}

impl NewWords {
    /// Encodes the short pieces among `words` that are not in `cache`, and puts them there, except those in which a byte is
    /// no token.
    #[inline(never)]
    pub(super) fn learn(
        &mut self,
        bpe: &Bpe,
        vocabulary: &Vocabulary,
        text: &[u8],
        mut words: Batch<'_>,
        cache: &mut WordCache,
    ) {
        let mut count = 0;
        for ((&key, &place), at) in words.keys.iter().zip(&*words.places).zip(0..) {
            self.new[count % WORDS].0 = at;
            count += usize::from(!cache.is_at(place, key));
        }
        count = self.learn_tokens(bpe, count, &mut words, cache);
        let mut waiting = 0;
        for number in 0..count {
            let at = self.new[number % WORDS].0 as usize;
            let Some(key) = words.keys[at].some() else { continue };
            let begin = if at == 0 { words.begin } else { words.ends[at - 1] };
            let piece = &text[begin..words.ends[at]];
            if cache.get(key).is_some() || bpe.whole_piece(vocabulary, piece, Some(key)).is_some() {
                continue;
            }
            self.waiting[waiting % LANES] = (key, at);
            waiting += 1;
            self.lanes.begin();
            bpe.symbols(vocabulary, piece, |symbol, _, pair| self.lanes.push(&bpe.merges, symbol, pair));
            if self.lanes.end() {
                self.merge(bpe, waiting, &mut words, cache);
                waiting = 0;
            }
        }
        self.merge(bpe, waiting, &mut words, cache);
    }

    /// Keeps those of the `count` pieces that are tokens, and gives the number of the others.
    fn learn_tokens(&mut self, bpe: &Bpe, count: usize, words: &mut Batch<'_>, cache: &mut WordCache) -> usize {
        let Some(whole) = &bpe.whole else { return count };
        for (at, id) in &mut self.new[..count] {
            *id = whole.likely(words.keys[*at as usize]) as u32;
        }
        let (mut tokens, mut others) = (0, 0);
        for number in 0..count {
            let (at, id) = self.new[number];
            let key = words.keys[at as usize];
            let is_token = whole.is_token(id as usize, key) & key.some().is_some();
            self.tokens[tokens % WORDS] = (at, id);
            tokens += usize::from(is_token);
            self.new[others % WORDS] = (at, id);
            others += usize::from(!is_token);
        }
        for &(at, id) in &self.tokens[..tokens] {
            let key = words.keys[at as usize];
            if cache.get(key).is_none() {
                words.places[at as usize] = cache.insert(key, &[id as TokenId]);
            }
        }
        others
    }

    /// Merges what waits, and keeps what it became.
    fn merge(&mut self, bpe: &Bpe, waiting: usize, words: &mut Batch<'_>, cache: &mut WordCache) {
        self.lanes.run(&bpe.merges);
        for (number, &(key, at)) in self.waiting[..waiting].iter().enumerate() {
            let (mut ids, mut count, mut are_tokens) = ([0; MOST], 0, true);
            for symbol in self.lanes.symbols(number) {
                ids[count % MOST] = symbol as TokenId;
                are_tokens &= bpe.merges.is_token(symbol);
                count += 1;
            }
            if are_tokens && cache.get(key).is_none() {
                words.places[at] = cache.insert(key, &ids[..count]);
            }
        }
        self.lanes.clear();
    }
}
