//! Whitespace BPE: drops whitespace, and applies byte-pair encoding to each word.
//!
//! Words are lowercased if the vocabulary asks for it.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llm_tokenizer_whitespace_session`. Time: one pass, plus what byte-pair
//! encoding takes for the words. Space: O(longest word).
//!
//! Deviations: (1) code points beyond U+10FFFF, on which llama.cpp aborts, become U+FFFD.

use crate::encode::model::bpe::{Bpe, BpeScratch};
use crate::encode::model::{Fragment, Model};
use crate::encode::normalizer::rewritten::Rewritten;
use crate::encode::sink::Sink;
use crate::error::VocabularyError;
use crate::text::unicode::{self, utf8};
use crate::vocabulary::spelling::ESCAPED_SPACE;
use crate::vocabulary::{Definition, Settings, Vocabulary};
use crate::work::interrupt::Ticker;

/// Byte-pair encoding of words that whitespace separates.
#[derive(Debug)]
pub(crate) struct Whitespace {
    bpe: Bpe,
}

impl Model for Whitespace {
    type Scratch = BpeScratch;

    fn new(vocabulary: &Vocabulary, definition: &Definition<'_>) -> Result<Self, VocabularyError> {
        Ok(Self { bpe: Bpe::new(vocabulary, definition)? })
    }

    fn encode<S: Sink>(&self, vocabulary: &Vocabulary, fragment: Fragment<'_>, scratch: &mut BpeScratch, sink: &mut S) {
        let Settings { lowercase, escape_whitespaces, .. } = *vocabulary.settings();
        let mut word = Rewritten::empty(fragment.start, S::SPANS);
        let mut flush = |word: &mut Rewritten<'_>| {
            if !word.text.is_empty() {
                self.bpe.encode_canonical(vocabulary, word, scratch, sink);
                word.reset(fragment.start, S::SPANS);
            }
        };

        let (mut at, mut buffer, mut ticker) = (0, [0; 4], Ticker::default());
        while at < fragment.text.len() {
            ticker.tick();
            let (code_point, len) = utf8::decode_lossy(fragment.text, at);
            if escape_whitespaces && code_point == u32::from(b' ') {
                // llama.cpp escapes spaces before it looks for whitespace.
                word.push(ESCAPED_SPACE, at..at + len);
            } else if unicode::flags(code_point).is_whitespace() {
                flush(&mut word);
            } else {
                let code_point = if lowercase { unicode::lowercase(code_point) } else { code_point };
                word.push_char(utf8::encode(code_point, &mut buffer), at..at + len);
            }
            at += len;
        }
        flush(&mut word);
    }

    /// After the last whitespace: each word is encoded by itself.
    fn settled(&self, vocabulary: &Vocabulary, Fragment { text, .. }: Fragment<'_>) -> usize {
        utf8::last_end(text, |at| {
            let (code_point, len) = utf8::decode_lossy(text, at);
            let is_escaped = vocabulary.settings().escape_whitespaces && code_point == u32::from(b' ');
            (!is_escaped && unicode::flags(code_point).is_whitespace(), len)
        })
    }

    fn heap_bytes(&self) -> usize {
        self.bpe.heap_bytes()
    }
}
