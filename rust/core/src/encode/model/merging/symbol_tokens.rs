//! The tokens of merged symbols: a symbol that is not a token is spelled byte by byte.
//!
//! O(1) per token. Space: 3 KiB.

use super::SymbolSpan;
use crate::encode::sink::Sink;
use crate::token::{NULL_TOKEN, TokenId};
use crate::vocabulary::Vocabulary;
use crate::vocabulary::spelling::ESCAPED_SPACE;
use crate::work::memory::collect;

/// The most tokens that spell a byte.
const MOST: usize = 3;

/// Which symbols are tokens, and what stands for the others.
#[derive(Debug)]
pub(crate) struct SymbolTokens {
    /// Lower symbols are tokens.
    num_tokens: usize,
    /// For each byte of a text, the tokens that spell it; [`NULL_TOKEN`] for nothing.
    pub spelled: Vec<[TokenId; MOST]>,
}

heap_bytes!(SymbolTokens: spelled);

impl SymbolTokens {
    /// Bytes are spelled with these tokens. Those that do not exist are left out.
    pub(crate) fn new(vocabulary: &Vocabulary, spell: impl Fn(u8) -> [Option<TokenId>; MOST]) -> Self {
        let spelled = (0..=u8::MAX).map(|byte| spell(byte).map(|id| id.unwrap_or(NULL_TOKEN)));
        Self { num_tokens: vocabulary.len(), spelled: collect(spelled) }
    }

    /// Each byte has a token. If spaces are escaped, those of the bytes of `▁` spell one.
    pub(crate) fn of_bytes(vocabulary: &Vocabulary, escapes: bool, token: impl Fn(u8) -> Option<TokenId>) -> Self {
        Self::new(vocabulary, |byte| match byte {
            b' ' if escapes => [0, 1, 2].map(|at| token(ESCAPED_SPACE[at])),
            byte => [token(byte), None, None],
        })
    }

    /// Pushes the token of a symbol in `text`, which starts at byte `start` of the whole text, or else those that spell
    /// its bytes.
    #[inline]
    pub(crate) fn push<S: Sink>(&self, span: SymbolSpan, text: &[u8], start: usize, sink: &mut S) {
        if (span.symbol as usize) < self.num_tokens {
            return sink.push(span.symbol as TokenId, start + span.start as usize..start + span.end as usize);
        }
        for at in span.range() {
            for id in self.spelled[usize::from(text[at])].into_iter().filter(|&id| id != NULL_TOKEN) {
                sink.push(id, start + at..start + at + 1);
            }
        }
    }
}
