//! Scratch spaces: the memory that calls write to and reuse, including caches.
//!
//! A call needs a scratch space to itself, so each thread has its own and no call waits for another. The caches take
//! most of the memory, so they have a limit. A [`ScratchPool`] keeps spaces for threads that come and go.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::encode::model::any::{AnyModel, AnyScratch};
use crate::encode::model::cache::DEFAULT_LIMIT;
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
            && let Some((_, model)) = &mut self.model
        {
            model.set_cache_limit(bytes);
        }
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
            scratch.set_cache_limit(*cache_limit);
            (number, scratch)
        });
        (special, ids, scratch)
    }
}

/// Scratch spaces for threads that come and go, such as those of a batch. It grows to the number of spaces in use at
/// the same time.
#[derive(Debug)]
pub struct ScratchPool {
    spaces: Mutex<Vec<Scratch>>,
    cache_limit: AtomicUsize,
}

impl Default for ScratchPool {
    fn default() -> Self {
        Self { spaces: Mutex::default(), cache_limit: AtomicUsize::new(Scratch::DEFAULT_CACHE_LIMIT) }
    }
}

impl ScratchPool {
    /// Sets the limit for the caches of each space, in bytes, from its next use.
    pub fn set_cache_limit(&self, bytes: usize) {
        self.cache_limit.store(bytes, Ordering::Relaxed);
    }

    /// Takes a space, or makes one if there is none.
    pub(crate) fn take(&self) -> Scratch {
        let mut scratch = self.lock().pop().unwrap_or_default();
        scratch.set_cache_limit(self.cache_limit.load(Ordering::Relaxed));
        scratch
    }

    /// Returns a space.
    pub(crate) fn put(&self, scratch: Scratch) {
        self.lock().push(scratch);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Scratch>> {
        // The lock is held only for a push or a pop, so a panic elsewhere leaves the list intact.
        self.spaces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{Scratch, ScratchPool};
    use crate::{Definition, EncodeOptions, StringIndex, Text, TokenId, Tokenizer};

    fn tokenizer() -> Tokenizer {
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
        let pool = ScratchPool::default();
        pool.set_cache_limit(0);
        for _ in 0..2 {
            let batch = one.encode_batch(&[Text::Str("a"); 3], EncodeOptions::default(), 2, &pool).expect("ids");
            assert_eq!(batch.ids, [1, 3, 1, 3, 1, 3]);
        }
    }
}
