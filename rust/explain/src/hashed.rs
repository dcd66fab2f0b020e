//! llama.cpp's test vocabulary: a hash of every five bytes, modulo the number of tokens.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llama_vocab::impl::tokenize`, the case `LLAMA_VOCAB_TYPE_TEST`.
//! Complexity: O(length of the text).

use ggtok_core::TokenId;
use ggtok_core::internals::Fragment;

use super::limit::Tracing;
use super::trace::{HashedGroup, Steps, Test};
use super::{Result, Traced};

/// Traces a fragment.
pub(super) fn trace(fragment: Fragment<'_>, tracing: &mut Tracing<'_>) -> Result<Traced<Steps>> {
    let mut groups = Vec::new();
    for (index, bytes) in fragment.text.chunks(5).enumerate() {
        tracing.limit.step(bytes.len())?;
        let start = 5 * index;
        let hash = bytes.iter().fold(0, |hash, &byte| hash * 31 + u64::from(byte));
        let token = (hash % tracing.vocabulary.len() as u64) as TokenId;
        groups.push(HashedGroup { start, end: start + bytes.len(), hash, token });
    }
    let tokens = groups.iter().map(|group| (group.token, group.start..group.end)).collect();
    Ok(Traced { steps: Steps::Test(Test { groups }), tokens })
}
