//! Encodes the new pieces of a queue together, and caches their ids.
//!
//! A read that misses L2 takes as long as a hundred instructions, unless other reads are in flight. So if pieces that
//! are tokens skip the merges, all new pieces are first looked up as tokens together. All other pieces merge side by
//! side, in [`Lanes`].

use super::ByteTables;
use crate::encode::model::cache::WordCache;
use crate::encode::model::cache::queue::LookedUp;
use crate::encode::model::merging::lanes::{Lanes, MAX_SYMBOLS};
use crate::lookup::key::MAX_LEN;
use crate::token::TokenId;

/// Scratch space for the new pieces of a queue.
#[derive(Debug, Default)]
pub(super) struct NewPieces {
    lanes: Lanes,
    /// The numbers of the pieces in the lanes.
    merging: Vec<u32>,
}

impl NewPieces {
    /// Encodes those of the new pieces that are short, and caches them, except those in which a byte is not a token.
    #[inline(never)]
    pub(super) fn learn(&mut self, tables: &ByteTables, pieces: &LookedUp<'_>, cache: &mut WordCache) {
        let Self { lanes, merging } = self;
        if !cache.reserve(pieces.num_new()) {
            return;
        }
        if let Some(whole_tokens) = &tables.whole_tokens {
            whole_tokens.prefetch((0..pieces.num_new()).map(|new| pieces.new_word(new).1.key));
        }
        merging.clear();
        for new in 0..pieces.num_new() {
            let (piece, probe) = pieces.new_word(new);
            if piece.len() > MAX_LEN {
                continue;
            }
            let id = tables.whole_piece(piece, Some(probe.key));
            // A piece may be queued twice.
            if !cache.claim(probe, id) || id.is_some() {
                continue;
            }
            merging.push(new as u32);
            lanes.start();
            tables.symbols(piece, |symbol, _, merge| lanes.push(&tables.ranks, symbol, merge));
            if lanes.end() {
                merge(tables, lanes, pieces, merging, cache);
            }
        }
        merge(tables, lanes, pieces, merging, cache);
    }
}

/// Merges the pieces in the lanes, and caches their tokens.
fn merge(tables: &ByteTables, lanes: &mut Lanes, pieces: &LookedUp<'_>, merging: &mut Vec<u32>, cache: &mut WordCache) {
    lanes.run(&tables.ranks);
    for (lane, new) in merging.drain(..).enumerate() {
        let mut ids = [0; MAX_SYMBOLS];
        let mut num_ids = 0;
        let mut are_tokens = true;
        for symbol in lanes.symbols(lane) {
            ids[num_ids % MAX_SYMBOLS] = symbol as TokenId;
            are_tokens &= tables.ranks.is_token(symbol);
            num_ids += 1;
        }
        if are_tokens {
            let (piece, probe) = pieces.new_word(new as usize);
            cache.insert(probe, piece, &ids[..num_ids]);
        }
    }
    lanes.clear();
}
