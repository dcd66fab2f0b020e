//! RWKV: the longest token at each position, from left to right, found by a walk through a trie of all tokens.
//!
//! Token texts are written with escapes (`\n`, `\xff`); the trie has the bytes that they stand for.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llama_unescape_rwkv_token` and `llm_tokenizer_rwkv_session`.
//! Complexity: O(n · m · log v) for n bytes of text, a longest token of m bytes and v tokens.
//!
//! Deviations: those of the core: a byte that starts tokens but completes none is unknown.

use ggtok_core::internals::Fragment;
use ggtok_core::internals::spelling::unescape_rwkv;
use ggtok_core::vocab::Vocabulary;
use ggtok_core::{NULL_TOKEN, TokenId};

use super::limit::Tracing;
use super::texts::SortedTexts;
use super::trace::{Match, Rwkv, Steps, TrieStep};
use super::{Result, Traced};

/// The trie of all tokens.
#[derive(Debug)]
pub(super) struct RwkvTracer(SortedTexts);

impl RwkvTracer {
    pub(super) fn new(vocabulary: &Vocabulary) -> Self {
        let texts = (0..vocabulary.len() as TokenId).map(|id| {
            let mut text = Vec::new();
            unescape_rwkv(vocabulary.text(id), &mut text);
            (text, id)
        });
        Self(SortedTexts::new(texts))
    }

    /// Traces a fragment.
    pub(super) fn trace(&self, fragment: Fragment<'_>, tracing: &mut Tracing<'_>) -> Result<Traced<Steps>> {
        let unknown = tracing.vocabulary.special().unk.unwrap_or(NULL_TOKEN);
        let mut matches = Vec::new();
        let mut start = 0;
        while start < fragment.text.len() {
            let mut walk = Vec::new();
            let mut longest = None;
            for (&byte, end) in fragment.text[start..].iter().zip(start + 1..) {
                tracing.limit.step(0)?;
                let matched = self.0.start_with(&fragment.text[start..end]);
                let token = self.0.token(&fragment.text[start..end]);
                walk.push(TrieStep { byte, token, matched });
                if !matched {
                    break;
                }
                longest = token.map(|token| (token, end)).or(longest);
            }
            let (token, end) = longest.unwrap_or((unknown, start + 1));
            matches.push(Match { start, end, walk, token, is_unknown: longest.is_none() });
            start = end;
        }
        let tokens = matches.iter().map(|found| (found.token, found.start..found.end)).collect();
        Ok(Traced { steps: Steps::Rwkv(Rwkv { matches }), tokens })
    }
}
