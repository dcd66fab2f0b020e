//! Encodes the new pieces of a batch together, stage by stage, and caches their ids.
//!
//! A read of memory that the near caches do not hold takes as long as a hundred instructions, unless others are under
//! way. So each stage goes through all new pieces before the next one begins:
//! 1. which pieces are new;
//! 2. which of these are tokens that skip the merges;
//! 3. how the others merge, in [`Lanes`].

use super::Tables;
use crate::lookup::key::Key;
use crate::model::cache::queue::{Batch, MAX_WORDS};
use crate::model::cache::words::WordCache;
use crate::model::merging::lanes::{self, Lanes, MAX_SYMBOLS};
use crate::sink::TokenId;

/// Scratch space for the pieces of a batch.
#[derive(Debug)]
pub(super) struct NewWords {
    /// Places of new pieces in their batch, each with the token that it is likely to be.
    new: [(u32, u32); MAX_WORDS],
    /// The same for those that are tokens.
    tokens: [(u32, u32); MAX_WORDS],
    lanes: Lanes,
    /// The pieces in the lanes, with their places in the batch.
    merging: [(Key, usize); lanes::MAX_WORDS],
}

impl Default for NewWords {
    fn default() -> Self {
        let (new, merging) = ([(0, 0); MAX_WORDS], [(Key::default(), 0); lanes::MAX_WORDS]);
        Self { new, tokens: new, lanes: Lanes::default(), merging }
    }
}

impl NewWords {
    /// Encodes the short pieces of a batch that are not cached, and caches them, except those in which a byte is no
    /// token.
    #[inline(never)]
    pub(super) fn learn(&mut self, tables: &Tables, text: &[u8], mut words: Batch<'_>, cache: &mut WordCache) {
        let mut num_new = 0;
        for ((&key, &place), at) in words.keys.iter().zip(&*words.places).zip(0..) {
            self.new[num_new % MAX_WORDS].0 = at;
            num_new += usize::from(!cache.is_at(place, key));
        }

        let num_others = self.learn_tokens(tables, num_new, &mut words, cache);

        let mut num_merging = 0;
        for number in 0..num_others {
            let at = self.new[number % MAX_WORDS].0 as usize;
            let Some(key) = words.keys[at].some() else { continue };
            let start = if at == 0 { words.start } else { words.ends[at - 1] };
            let piece = &text[start..words.ends[at]];
            if cache.get(key).is_some() || tables.whole_piece(piece, Some(key)).is_some() {
                continue;
            }
            self.merging[num_merging % lanes::MAX_WORDS] = (key, at);
            num_merging += 1;
            self.lanes.start();
            tables.symbols(piece, |symbol, _, merge| self.lanes.push(&tables.ranks, symbol, merge));
            if self.lanes.end() {
                self.merge(tables, num_merging, &mut words, cache);
                num_merging = 0;
            }
        }
        self.merge(tables, num_merging, &mut words, cache);
    }

    /// Caches those of the new pieces that are tokens, and keeps the others in [`NewWords::new`]. Returns their number.
    fn learn_tokens(&mut self, tables: &Tables, num_new: usize, words: &mut Batch<'_>, cache: &mut WordCache) -> usize {
        let Some(whole_tokens) = &tables.whole_tokens else { return num_new };
        for (at, id) in &mut self.new[..num_new] {
            *id = whole_tokens.likely(words.keys[*at as usize]) as u32;
        }

        let (mut num_tokens, mut num_others) = (0, 0);
        for number in 0..num_new {
            let (at, id) = self.new[number];
            let key = words.keys[at as usize];
            let is_token = whole_tokens.is_token(id as usize, key) & key.some().is_some();
            self.tokens[num_tokens % MAX_WORDS] = (at, id);
            num_tokens += usize::from(is_token);
            self.new[num_others % MAX_WORDS] = (at, id);
            num_others += usize::from(!is_token);
        }

        for &(at, id) in &self.tokens[..num_tokens] {
            let key = words.keys[at as usize];
            if cache.get(key).is_none() {
                words.places[at as usize] = cache.insert(key, &[id as TokenId]);
            }
        }
        num_others
    }

    /// Merges the pieces in the lanes, and caches their tokens.
    fn merge(&mut self, tables: &Tables, num_merging: usize, words: &mut Batch<'_>, cache: &mut WordCache) {
        self.lanes.run(&tables.ranks);
        for (number, &(key, at)) in self.merging[..num_merging].iter().enumerate() {
            let (mut ids, mut num_ids, mut are_tokens) = ([0; MAX_SYMBOLS], 0, true);
            for symbol in self.lanes.symbols(number) {
                ids[num_ids % MAX_SYMBOLS] = symbol as TokenId;
                are_tokens &= tables.ranks.is_token(symbol);
                num_ids += 1;
            }
            if are_tokens && cache.get(key).is_none() {
                words.places[at] = cache.insert(key, &ids[..num_ids]);
            }
        }
        self.lanes.clear();
    }
}
