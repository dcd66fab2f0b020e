//! A hash of every five bytes, modulo the number of tokens: the algorithm of llama.cpp's test vocabularies.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llama_vocab::impl::tokenize`, the case `LLAMA_VOCAB_TYPE_TEST`.
//! Time: O(length of the text). Space: O(1).
//!
//! Deviations:
//! 1. A vocabulary without tokens is an error; llama.cpp divides by zero.

use crate::encode::model::{Fragment, Model, Task};
use crate::encode::sink::Sink;
use crate::error::VocabularyError;
use crate::token::TokenId;
use crate::vocabulary::{Definition, Vocabulary};
use crate::work::interrupt;

/// Bytes per token; the last token of a fragment may have fewer.
const CHUNK_LEN: usize = 5;

/// The algorithm. It depends only on the number of tokens.
#[derive(Debug)]
pub(crate) struct Hashed {
    num_tokens: u64,
}

heap_bytes!(Hashed);

impl Model for Hashed {
    fn new(vocabulary: &Vocabulary, _definition: &Definition<'_>) -> Result<Self, VocabularyError> {
        if vocabulary.is_empty() {
            return Err(VocabularyError::MissingTokens);
        }
        Ok(Self { num_tokens: vocabulary.len() as u64 })
    }

    fn encode<S: Sink>(&self, Task { fragment, sink, .. }: Task<'_, S>) {
        let mut start = fragment.start;
        for chunk in interrupt::ticking(fragment.text.chunks(CHUNK_LEN)) {
            let hash = chunk.iter().fold(0, |hash, &byte| hash * 31 + u64::from(byte));
            sink.push((hash % self.num_tokens) as TokenId, start..start + chunk.len());
            start += chunk.len();
        }
    }

    fn settled(&self, _: &Vocabulary, Fragment { text, .. }: Fragment<'_>) -> usize {
        text.len() / CHUNK_LEN * CHUNK_LEN
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::model::ModelScratch;
    use crate::encode::sink::Spans;
    use crate::vocabulary::Definition;
    use crate::vocabulary::strings::StringIndex;

    #[test]
    fn every_five_bytes_are_a_token() -> Result<(), VocabularyError> {
        let texts: Vec<String> = (0..1000).map(|id| format!("t{id}")).collect();
        let (data, index) = StringIndex::concatenate(&texts).unwrap();
        let definition = Definition { model: "test", tokens: Some(index.view(&data)), ..Definition::default() };
        let vocabulary = Vocabulary::declare(&definition)?;
        let fragment =
            Fragment { text: b"abcde\xFF\0", start: 7, after_special: true, continues: false, is_utf8: false };
        let mut out = Spans::default();
        let scratch = &mut ModelScratch::default();
        let task = Task { vocabulary: &vocabulary, fragment, scratch, sink: &mut out };
        Hashed::new(&vocabulary, &definition)?.encode(task);
        // 97·31⁴ + 98·31³ + 99·31² + 100·31 + 101 = 92,599,395 and 255·31 + 0 = 7,905.
        assert_eq!(out.ids, [395, 905]);
        assert_eq!(out.spans, [7..12, 12..14]);
        Ok(())
    }
}
