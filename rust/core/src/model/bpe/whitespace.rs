//! Whitespace BPE: whitespace is dropped, what is between goes through byte-pair encoding, in lower case if so set.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llm_tokenizer_whitespace_session`. One pass besides the merging.
//!
//! Deviations: (1) code points beyond U+10FFFF, on which llama.cpp aborts, become U+FFFD.

use super::{self as bpe, Bpe};
use crate::error::VocabularyError;
use crate::model::{Fragment, Model};
use crate::normalizer::rewritten::Rewritten;
use crate::sink::Sink;
use crate::unicode::{self, utf8};
use crate::vocabulary::spelling::ESCAPED_SPACE;
use crate::vocabulary::{Definition, Settings, Vocabulary};

/// Byte-pair encoding between whitespace.
#[derive(Debug)]
pub(crate) struct Whitespace {
    bpe: Bpe,
}

impl Model for Whitespace {
    type Scratch = bpe::Scratch;

    fn new(vocabulary: &Vocabulary, definition: &Definition<'_>) -> Result<Self, VocabularyError> {
        Ok(Self { bpe: Bpe::new(vocabulary, definition)? })
    }

    fn encode<S: Sink>(
        &self,
        vocabulary: &Vocabulary,
        fragment: Fragment<'_>,
        scratch: &mut Self::Scratch,
        sink: &mut S,
    ) {
        let Settings { lowercase, escape_whitespaces, .. } = *vocabulary.settings();
        let mut segment = Rewritten::empty(fragment.start, S::SPANS);
        let mut flush = |segment: &mut Rewritten<'_>| {
            if !segment.text.is_empty() {
                self.bpe.encode_canonical(vocabulary, segment, scratch, sink);
                segment.reset(fragment.start, S::SPANS);
            }
        };
        let (mut at, mut buffer) = (0, [0; 4]);
        while at < fragment.text.len() {
            let (code_point, len) = utf8::decode_lossy(fragment.text, at);
            if escape_whitespaces && code_point == u32::from(b' ') {
                // llama.cpp escapes spaces before anything else.
                segment.push(ESCAPED_SPACE, at..at + len);
            } else if unicode::flags(code_point).is_whitespace() {
                flush(&mut segment);
            } else {
                let code_point = if lowercase { unicode::lowercase(code_point) } else { code_point };
                segment.push_char(utf8::encode(code_point, &mut buffer), at..at + len);
            }
            at += len;
        }
        flush(&mut segment);
    }

    fn heap_bytes(&self) -> usize {
        self.bpe.heap_bytes()
    }
}
