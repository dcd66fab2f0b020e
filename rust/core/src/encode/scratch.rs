//! Scratch spaces: the memory that calls write to and reuse, including caches.
//!
//! A call needs a scratch space to itself. A tokenizer keeps those of its calls in a [`pool`]. The caches take most of
//! the memory, so they have a limit.

pub(crate) mod pool;

use crate::encode::model::any::{AnyModel, AnyScratch};
use crate::encode::model::cache::{DEFAULT_LIMIT, WordCache};
use crate::encode::special::SpecialScratch;
use crate::token::TokenId;

/// The memory that calls write to and reuse, including caches: one per thread.
///
/// Any tokenizer can use it. The caches belong to the last one that did, so alternating between two tokenizers starts
/// with an empty cache each time.
#[derive(Debug)]
pub struct Scratch {
    special: SpecialScratch,
    /// The ids of a fragment before their spans are computed.
    ids: Vec<TokenId>,
    cache_limit: usize,
    /// The number of the last tokenizer, and the scratch space of its model.
    model: Option<(u64, AnyScratch)>,
}

impl Default for Scratch {
    fn default() -> Self {
        Self::with_cache_limit(Self::DEFAULT_CACHE_LIMIT)
    }
}

impl Scratch {
    /// The default limit for the memory of the caches, in bytes: 64 MiB.
    pub const DEFAULT_CACHE_LIMIT: usize = DEFAULT_LIMIT;

    /// An empty space whose caches take at most `bytes` of memory. Nothing is allocated until the first text.
    pub fn with_cache_limit(bytes: usize) -> Self {
        Self { special: SpecialScratch::default(), ids: Vec::new(), cache_limit: bytes, model: None }
    }

    /// Sets the limit for the memory of the caches, in bytes. A cache above the limit is emptied.
    pub fn set_cache_limit(&mut self, bytes: usize) {
        if std::mem::replace(&mut self.cache_limit, bytes) != bytes
            && let Some(cache) = self.cache()
        {
            cache.set_limit(bytes);
        }
    }

    /// The memory that the cache has written to, in bytes.
    pub(crate) fn cache_bytes(&mut self) -> usize {
        self.cache().map_or(0, |cache| cache.heap_bytes())
    }

    fn cache(&mut self) -> Option<&mut WordCache> {
        self.model.as_mut().and_then(|(_, model)| model.cache())
    }

    /// Frees all memory except the caches.
    pub(crate) fn release_buffers(&mut self) {
        (self.special, self.ids) = (SpecialScratch::default(), Vec::new());
        if let Some((_, model)) = &mut self.model {
            model.release_buffers();
        }
    }

    /// The scratch space for special tokens, for ids, and for `model`, which belongs to the tokenizer with this number.
    #[inline]
    pub(crate) fn of(
        &mut self,
        number: u64,
        model: &AnyModel,
    ) -> (&mut SpecialScratch, &mut Vec<TokenId>, &mut AnyScratch) {
        let Self { special, ids, cache_limit, model: latest } = self;
        if latest.as_ref().is_none_or(|(owner, _)| *owner != number) {
            *latest = None;
        }
        let (_, scratch) = latest.get_or_insert_with(|| {
            let mut scratch = model.scratch();
            if let Some(cache) = scratch.cache() {
                cache.set_limit(*cache_limit);
            }
            (number, scratch)
        });
        (special, ids, scratch)
    }
}

#[cfg(test)]
mod tests {
    use super::Scratch;
    use crate::{Definition, EncodeOptions, StringIndex, Text, TokenId, Tokenizer};

    pub(super) fn tokenizer() -> Tokenizer {
        let (data, index) = StringIndex::concatenate(&["<unk>", "▁", "b", "a", "c"]).expect("few tokens");
        let definition = Definition {
            model: "llama",
            tokens: Some(index.view(&data)),
            scores: Some(&[0.0; 5]),
            token_types: Some(&[2, 1, 1, 1, 1]),
            add_bos: Some(false),
            ..Definition::default()
        };
        Tokenizer::new(&definition).expect("a vocabulary")
    }

    fn encode(tokenizer: &Tokenizer, text: &str, scratch: &mut Scratch) -> Vec<TokenId> {
        let mut ids = Vec::new();
        tokenizer.encode_into(Text::Str(text), EncodeOptions::default(), scratch, &mut ids).expect("ids");
        ids
    }

    #[test]
    fn no_limit_changes_the_ids() {
        let one = tokenizer();
        let mut scratch = Scratch::with_cache_limit(0);
        for limit in [0, 1, 1 << 14, usize::MAX, 1 << 16] {
            scratch.set_cache_limit(limit);
            for _ in 0..2 {
                assert_eq!(encode(&one, "a b", &mut scratch), [1, 3, 1, 2]);
                scratch.release_buffers();
            }
        }
    }
}
