//! Tokens by the bytes they spell, for pieces that skip the merges.
//!
//! Short tokens have their bytes inside their slot, so that a look-up costs one probe; a longer piece is spelled out
//! and looked up as a text. Open addressing, 24 bytes a slot, at most half of the slots taken.

use super::byte_level;
use super::word_cache::Key;
use crate::hash::Seed;
use crate::sink::TokenId;
use crate::vocabulary::Vocabulary;

/// Bits in [`WholeWords::long`]: vocabularies have some thousand long tokens.
const LONG_BITS: usize = 1 << 16;

/// The tokens of a vocabulary as whole words.
#[derive(Debug)]
pub(crate) struct WholeWords {
    seed: Seed,
    /// Short tokens; a free slot has the key of no word.
    slots: Vec<(Key, TokenId)>,
    /// A bit by hash for each longer token: nearly all other long pieces are told from tokens by these bits.
    long: Box<[u64; LONG_BITS / 64]>,
    byte_level: bool,
}

impl WholeWords {
    pub(crate) fn new(vocabulary: &Vocabulary, byte_level: bool) -> Self {
        let slots = (vocabulary.len() * 2).next_power_of_two().max(16);
        let seed = Seed::default();
        let mut words =
            Self { seed, slots: vec![(Key::default(), 0); slots], long: Box::new([0; LONG_BITS / 64]), byte_level };
        let mut word = Vec::new();
        for (id, text) in vocabulary.keys().iter().enumerate() {
            word.clear();
            let spelled = match byte_level {
                true if byte_level::unspell_all(text, &mut word) => &word[..],
                true => continue,
                false => text,
            };
            if let Some(key) = Key::new(spelled, 0, spelled.len()) {
                let mut at = key.hash(seed) & (slots - 1);
                while words.slots[at].0 != Key::default() {
                    at = (at + 1) & (slots - 1);
                }
                words.slots[at] = (key, id as TokenId);
            } else {
                let bit = seed.hash(spelled) as usize % LONG_BITS;
                words.long[bit / 64] |= 1 << (bit % 64);
            }
        }
        words
    }

    /// The token that is `text[begin..end]`; `key` is that of the same bytes.
    #[inline]
    pub(crate) fn get(&self, vocabulary: &Vocabulary, piece: &[u8], key: Option<Key>) -> Option<TokenId> {
        let Some(key) = key else { return self.get_long(vocabulary, piece) };
        let mask = self.slots.len() - 1;
        let mut at = key.hash(self.seed) & mask;
        loop {
            let (found, id) = self.slots[at];
            if found == key {
                return Some(id);
            }
            if found == Key::default() {
                return None;
            }
            at = (at + 1) & mask;
        }
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
        self.slots.capacity() * size_of::<(Key, TokenId)>() + size_of_val(&*self.long)
    }
}
