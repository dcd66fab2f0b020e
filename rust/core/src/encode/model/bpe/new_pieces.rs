//! Encodes the new pieces of a queue together, and caches their ids.
//!
//! A read that misses L2 takes as long as a hundred instructions, unless other reads are in flight. So if pieces that
//! are tokens skip the merges, all new pieces are first looked up as tokens together. All other pieces merge side by
//! side, in [`Lanes`].

use super::ByteTables;
use crate::encode::model::cache::queue::Words;
use crate::encode::model::cache::{Probe, WordCache};
use crate::encode::model::merging::lanes::{Lanes, MAX_SYMBOLS};
use crate::lookup::key::MAX_LEN;
use crate::token::TokenId;

/// Scratch space for the new pieces of a queue.
#[derive(Debug, Default)]
pub(super) struct NewPieces {
    lanes: Lanes,
    /// The look-ups of the pieces in the lanes.
    merging: Vec<Probe>,
}

impl NewPieces {
    /// Encodes the new pieces that are short, and caches their ids, except for pieces in which a byte is not a token.
    /// `new` has the numbers of the new pieces.
    #[inline(never)]
    pub(super) fn learn(&mut self, tables: &ByteTables, pieces: Words<'_>, new: &[u32], cache: &mut WordCache) {
        let Self { lanes, merging } = self;
        if let Some(whole_tokens) = &tables.whole_tokens {
            whole_tokens.prefetch(new.iter().map(|&number| pieces.probe(number).key));
        }
        merging.clear();
        for &number in new {
            let (piece, probe) = (pieces.word(number), pieces.probe(number));
            // A piece may be queued twice.
            if piece.len() > MAX_LEN || cache.contains(probe) {
                continue;
            }
            if let Some(id) = tables.whole_piece(piece, Some(probe.key)) {
                cache.insert(probe, &[id]);
                continue;
            }
            merging.push(probe);
            lanes.start();
            tables.symbols(piece, |symbol, _, merge| lanes.push(&tables.ranks, symbol, merge));
            if lanes.end() {
                merge(tables, lanes, merging, cache);
            }
        }
        merge(tables, lanes, merging, cache);
    }
}

/// Merges the pieces in the lanes, and caches their tokens.
fn merge(tables: &ByteTables, lanes: &mut Lanes, merging: &mut Vec<Probe>, cache: &mut WordCache) {
    lanes.run(&tables.ranks);
    for (lane, probe) in merging.drain(..).enumerate() {
        let (mut ids, mut num_ids, mut are_tokens) = ([0; MAX_SYMBOLS], 0, true);
        for symbol in lanes.symbols(lane) {
            ids[num_ids % MAX_SYMBOLS] = symbol as TokenId;
            are_tokens &= tables.ranks.is_token(symbol);
            num_ids += 1;
        }
        if are_tokens {
            cache.insert(probe, &ids[..num_ids]);
        }
    }
    lanes.clear();
}
