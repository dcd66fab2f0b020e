//! Encodes the new pieces of a batch together, and caches their ids.
//!
//! A read of memory that the near caches do not hold takes as long as a hundred instructions, unless others are under
//! way. So first the look-ups of all new pieces as tokens start, for those that skip the merges. All other pieces merge
//! side by side, in [`Lanes`].

use super::ByteTables;
use crate::encode::model::cache::WordCache;
use crate::encode::model::cache::queue::Batch;
use crate::encode::model::merging::lanes::{Lanes, MAX_SYMBOLS};
use crate::lookup::key::MAX_LEN;
use crate::token::TokenId;

/// Scratch space for the pieces of a batch.
#[derive(Debug, Default)]
pub(super) struct NewPieces {
    lanes: Lanes,
    /// The pieces in the lanes.
    merging: Vec<u32>,
}

/// Learns the pieces of one batch.
struct Pass<'a> {
    tables: &'a ByteTables,
    words: Batch<'a>,
    cache: &'a mut WordCache,
}

impl NewPieces {
    /// Encodes those of the new pieces of a batch that are short, and caches them, except those in which a byte is no
    /// token.
    #[inline(never)]
    pub(super) fn learn(&mut self, tables: &ByteTables, words: Batch<'_>, new: &[u32], cache: &mut WordCache) {
        let Self { lanes, merging } = self;
        let mut pass = Pass { tables, words, cache };
        if let Some(whole_tokens) = &tables.whole_tokens {
            whole_tokens.prefetch(new.iter().map(|&at| words.probes[at as usize].key));
        }

        merging.clear();
        for &at in new {
            let (probe, piece) = (words.probes[at as usize], words.word(at as usize));
            // A piece may be in the batch twice.
            if piece.len() > MAX_LEN || pass.cache.contains(probe) {
                continue;
            }
            if let Some(id) = tables.whole_piece(piece, Some(probe.key)) {
                pass.insert(at, &[id]);
                continue;
            }
            merging.push(at);
            lanes.start();
            tables.symbols(piece, |symbol, _, merge| lanes.push(&tables.ranks, symbol, merge));
            if lanes.end() {
                pass.merge(lanes, merging);
            }
        }
        pass.merge(lanes, merging);
    }
}

impl Pass<'_> {
    /// Merges the pieces in the lanes, and caches their tokens.
    fn merge(&mut self, lanes: &mut Lanes, merging: &mut Vec<u32>) {
        lanes.run(&self.tables.ranks);
        for (number, at) in merging.drain(..).enumerate() {
            let (mut ids, mut num_ids, mut are_tokens) = ([0; MAX_SYMBOLS], 0, true);
            for symbol in lanes.symbols(number) {
                ids[num_ids % MAX_SYMBOLS] = symbol as TokenId;
                are_tokens &= self.tables.ranks.is_token(symbol);
                num_ids += 1;
            }
            if are_tokens {
                self.insert(at, &ids[..num_ids]);
            }
        }
        lanes.clear();
    }

    fn insert(&mut self, at: u32, ids: &[TokenId]) {
        self.cache.insert(self.words.probes[at as usize], ids);
    }
}
