//! Tokens by the bytes that they spell, for pieces that skip the merges (`ignore_merges`).
//!
//! Two open-addressing indexes, one for short tokens and one for long tokens, into the keys of all tokens by id:
//! training makes frequent tokens first, so their keys are close together. There are few long tokens, so the second
//! index fits in L2; their bytes are end to end in another array. O(1) for a short piece, O(length) for a long one.

use crate::lookup::hash::Seed;
use crate::lookup::index::{Index, LOOKUPS_AT_ONCE};
use crate::lookup::key::Key;
use crate::lookup::prefetch::prefetch;
use crate::token::TokenId;
use crate::work::large_vec::LargeVec;
use crate::work::memory::append;

/// The tokens of a vocabulary as whole pieces.
#[derive(Debug)]
pub(super) struct WholeTokens {
    seed: Seed,
    /// Indexed by id; the default key for a token that spells no bytes.
    keys: LargeVec<Key>,
    short: Index,
    long: Index,
    /// The bytes of the long tokens.
    long_bytes: Vec<u8>,
}

heap_bytes!(WholeTokens: keys, short, long, long_bytes);

impl WholeTokens {
    /// A table with room for `count` tokens.
    pub(super) fn with_capacity(count: usize) -> Self {
        Self {
            seed: Seed::default(),
            keys: LargeVec::filled(count, Key::default()),
            short: Index::with_capacity(count),
            long: Index::default(),
            long_bytes: Vec::new(),
        }
    }

    /// Adds the token with this id, given the bytes that it spells, if any, and their key if they are short.
    #[inline]
    pub(super) fn set(&mut self, id: usize, spelled: &[u8], key: Option<Key>) {
        let len = spelled.len();
        self.keys[id] = key.unwrap_or_else(|| {
            let place = self.long_bytes.len();
            append(&mut self.long_bytes, spelled);
            if len > 0 { Key::of_long(self.seed.hash(spelled), place, len) } else { Key::default() }
        });
    }

    /// Indexes the tokens that were added.
    pub(super) fn finish(mut self) -> Self {
        let num_long = self.keys.iter().filter(|key| key.long().is_some()).count();
        self.long = Index::with_slots((2 * num_long).next_power_of_two().max(16), self.keys.len());
        for (keys, first) in self.keys.chunks(LOOKUPS_AT_ONCE).zip((0..).step_by(LOOKUPS_AT_ONCE)) {
            let mut hashes = [0; LOOKUPS_AT_ONCE];
            for (hash, key) in hashes.iter_mut().zip(keys) {
                *hash = key.long().map_or_else(|| key.hash(self.seed), |(hash, ..)| hash);
            }
            self.short.prefetch(&hashes);
            for ((key, hash), id) in keys.iter().zip(hashes).zip(first..) {
                match key.long() {
                    Some(_) => self.long.insert(hash, id),
                    None if key.some().is_some() => self.short.insert(hash, id),
                    None => {}
                }
            }
        }
        self
    }

    /// The token that spells `piece`, given the key of the piece if it is short.
    #[inline]
    pub(super) fn get(&self, piece: &[u8], key: Option<Key>) -> Option<TokenId> {
        let id = match key {
            Some(key) => self.short.find(key.hash(self.seed), |id| self.keys.get(id) == Some(&key)),
            None => {
                let hash = self.seed.hash(piece);
                let is_piece =
                    |(other, at, len): (u64, usize, usize)| other == hash && &self.long_bytes[at..at + len] == piece;
                self.long.find(hash, |id| self.keys.get(id).and_then(|key| key.long()).is_some_and(is_piece))
            }
        };
        id.map(|id| id as TokenId)
    }

    /// Starts the look-ups of short pieces, given their keys.
    #[inline(always)]
    pub(super) fn prefetch(&self, pieces: impl Iterator<Item = Key>) {
        pieces.for_each(|key| prefetch(&self.keys, self.short.likely(key.hash(self.seed))));
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, WholeTokens};

    #[test]
    fn tokens_of_every_length_are_found() {
        let tokens: Vec<Vec<u8>> = (0..200_u8).map(|len| (0..len).map(|at| at ^ len).collect()).collect();
        let mut table = WholeTokens::with_capacity(tokens.len());
        tokens.iter().enumerate().for_each(|(id, token)| table.set(id, token, Key::new(token, 0, token.len())));
        let table = table.finish();
        let get = |piece: &[u8]| table.get(piece, Key::new(piece, 0, piece.len()));
        for (token, id) in tokens.iter().zip(0..) {
            assert_eq!(get(token), (id > 0).then_some(id));
            assert_eq!(get(&[token, &b"?"[..]].concat()), None);
        }
    }
}
