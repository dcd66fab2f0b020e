//! Tokens by the bytes they spell, for pieces that skip the merges.
//!
//! The bytes of short tokens are keys by id, so that frequent ones, which training makes first, lie close together; a
//! longer piece is spelled out and looked up as a text.

use crate::lookup::hash::Seed;
use crate::lookup::index::{Index, TOGETHER};
use crate::lookup::key::Key;
use crate::sink::TokenId;
use crate::vocabulary::Vocabulary;
use crate::vocabulary::spelling::byte_level;

/// Bits in [`WholeWords::long`]: vocabularies have some thousand long tokens.
const LONG_BITS: usize = 1 << 16;

/// The tokens of a vocabulary as whole words.
#[derive(Debug)]
pub(crate) struct WholeWords {
    seed: Seed,
    index: Index,
    /// For each token its key; that of no word, if it is too long for one.
    keys: Vec<Key>,
    /// A bit by hash for each longer token: nearly all other long pieces are told from tokens by these bits.
    long: Box<[u64; LONG_BITS / 64]>,
    byte_level: bool,
}

impl WholeWords {
    /// Room for `count` tokens.
    pub(crate) fn with_capacity(count: usize, byte_level: bool) -> Self {
        let (seed, keys, index) = (Seed::default(), Vec::with_capacity(count), Index::with_capacity(count));
        Self { seed, index, keys, long: Box::new([0; LONG_BITS / 64]), byte_level }
    }

    /// Adds the next token by the bytes that it spells; none for one that spells no bytes. Changes what is behind them.
    pub(crate) fn push(&mut self, spelled: &mut Vec<u8>) {
        let len = spelled.len();
        // A key is made faster of bytes that others follow.
        spelled.extend([0; 16]);
        let key = Key::new(spelled, 0, len);
        self.keys.push(key.unwrap_or_default());
        if key.is_none() {
            let bit = self.seed.hash(&spelled[..len]) as usize % LONG_BITS;
            self.long[bit / 64] |= 1 << (bit % 64);
        }
    }

    /// Indexes the tokens that were added.
    pub(crate) fn finish(mut self) -> Self {
        for (keys, first) in self.keys.chunks(TOGETHER).zip((0..).step_by(TOGETHER)) {
            let mut hashes = [0; TOGETHER];
            for (hash, key) in hashes.iter_mut().zip(keys) {
                *hash = key.hash(self.seed);
            }
            self.index.bring_near(&hashes);
            for ((key, hash), id) in keys.iter().zip(hashes).zip(first..) {
                if key.some().is_some() {
                    self.index.insert(hash, id);
                }
            }
        }
        self
    }

    /// The token that is `piece`; `key` is that of the same bytes.
    #[inline]
    pub(crate) fn get(&self, vocabulary: &Vocabulary, piece: &[u8], key: Option<Key>) -> Option<TokenId> {
        let Some(key) = key else { return self.get_long(vocabulary, piece) };
        let id = self.index.find(key.hash(self.seed), |id| self.keys.get(id) == Some(&key))?;
        Some(id as TokenId)
    }

    /// The token that [`WholeWords::get`] would mostly give for a short piece, and any number at all where it would give
    /// none; see [`Index::likely`].
    #[inline(always)]
    pub(crate) fn likely(&self, key: Key) -> usize {
        self.index.likely(key.hash(self.seed))
    }

    /// Whether a short piece is the token with this number.
    #[inline(always)]
    pub(crate) fn is_token(&self, number: usize, key: Key) -> bool {
        self.keys.get(number).is_some_and(|token| token.is(key))
    }

    fn get_long(&self, vocabulary: &Vocabulary, piece: &[u8]) -> Option<TokenId> {
        let bit = self.seed.hash(piece) as usize % LONG_BITS;
        if piece.len() > vocabulary.max_token_len() || self.long[bit / 64] >> (bit % 64) & 1 == 0 {
            return None;
        }
        if !self.byte_level {
            return vocabulary.id(piece);
        }
        let spelled = piece.iter().flat_map(|&byte| {
            let (text, len) = byte_level::spell(byte);
            text.into_iter().take(len)
        });
        vocabulary.id(&spelled.collect::<Vec<u8>>())
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.index.heap_bytes() + self.keys.capacity() * size_of::<Key>() + size_of_val(&*self.long)
    }
}
