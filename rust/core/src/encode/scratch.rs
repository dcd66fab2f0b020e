//! Scratch spaces: the memory that calls write to and reuse, including caches.
//!
//! A call needs a scratch space to itself. A tokenizer keeps those of its calls in a [`pool`], and an
//! [`Encoder`](crate::Encoder) has one. The caches take most of the memory, so they have a limit.

pub(crate) mod pool;

use crate::encode::model::ModelScratch;
use crate::encode::model::cache::{DEFAULT_LIMIT, WordCache};
use crate::encode::special::SpecialScratch;
use crate::token::TokenId;
use crate::work::memory;

/// The memory that the calls of one tokenizer write to and reuse, including a cache.
#[derive(Debug)]
pub(crate) struct Scratch {
    pub(crate) special: SpecialScratch,
    /// The ids of a fragment before their spans are computed.
    pub(crate) ids: Vec<TokenId>,
    pub(crate) model: LazyScratch,
}

impl Scratch {
    /// The default limit for the memory of the cache, in bytes: 64 MiB.
    pub(crate) const DEFAULT_CACHE_LIMIT: usize = DEFAULT_LIMIT;

    /// An empty space whose cache takes at most `bytes` of memory. Nothing is allocated until the first text.
    pub(crate) fn with_cache_limit(bytes: usize) -> Self {
        Self { special: SpecialScratch::default(), ids: Vec::new(), model: LazyScratch::new(bytes) }
    }

    /// The memory that the cache has written to, in bytes.
    pub(crate) fn cache_bytes(&mut self) -> usize {
        self.model.cache().map_or(0, |cache| cache.heap_bytes())
    }

    /// Frees all memory except the cache.
    pub(crate) fn release_buffers(&mut self) {
        (self.special, self.ids) = (SpecialScratch::default(), Vec::new());
        self.model.release_buffers();
    }
}

/// A [`ModelScratch`] that is made on first use. It is the only item of a vector: a `Box` would end the process if it
/// found no memory.
#[derive(Debug)]
pub(crate) struct LazyScratch {
    /// The most memory of the cache, in bytes. It is only read from outside.
    pub(crate) cache_limit: usize,
    scratch: Vec<ModelScratch>,
}

impl LazyScratch {
    /// An empty space whose cache takes at most this many bytes.
    pub(crate) fn new(cache_limit: usize) -> Self {
        Self { cache_limit, scratch: Vec::new() }
    }

    #[inline(always)]
    pub(crate) fn get(&mut self) -> &mut ModelScratch {
        if self.scratch.is_empty() {
            self.fill();
        }
        &mut self.scratch[0]
    }

    /// Not inlined, because it needs a large stack frame.
    #[cold]
    #[inline(never)]
    fn fill(&mut self) {
        self.scratch = memory::with_capacity(1);
        self.scratch.push(ModelScratch::default());
        self.scratch[0].cache.set_limit(self.cache_limit);
    }

    /// Sets the limit for the memory of the cache, in bytes. A cache above the limit is emptied.
    pub(crate) fn set_cache_limit(&mut self, bytes: usize) {
        if std::mem::replace(&mut self.cache_limit, bytes) != bytes
            && let Some(cache) = self.cache()
        {
            cache.set_limit(bytes);
        }
    }

    /// The cache, once a text has been encoded.
    pub(crate) fn cache(&mut self) -> Option<&mut WordCache> {
        self.scratch.first_mut().map(|scratch| &mut scratch.cache)
    }

    /// Frees all memory except that of the cache.
    pub(crate) fn release_buffers(&mut self) {
        for scratch in &mut self.scratch {
            let ModelScratch { cache, sampler, .. } = std::mem::take(scratch);
            (scratch.cache, scratch.sampler) = (cache, sampler);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Scratch;
    use crate::vocab::{Definition, StringIndex};
    use crate::{EncodeOptions, Text, TokenId, Tokenizer};

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

    #[test]
    fn no_limit_changes_the_ids() {
        let one = tokenizer();
        let options = EncodeOptions::default();
        let mut scratch = Scratch::with_cache_limit(0);
        for limit in [0, 1, 1 << 14, usize::MAX, 1 << 16] {
            scratch.model.set_cache_limit(limit);
            for _ in 0..2 {
                let mut ids: Vec<TokenId> = Vec::new();
                one.encode_within(Text::Str("a b"), None, options, &mut scratch, &mut ids).expect("ids");
                assert_eq!(ids, [1, 3, 1, 2]);
                scratch.release_buffers();
            }
        }
    }
}
