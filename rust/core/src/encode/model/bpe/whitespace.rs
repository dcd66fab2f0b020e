//! Whitespace BPE: drops whitespace, and applies byte-pair encoding to each word.
//!
//! Words are lowercased if the vocabulary asks for it.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llm_tokenizer_whitespace_session`. Time: one pass, plus what byte-pair
//! encoding takes for the words. Space: O(longest word).
//!
//! Deviations: (1) code points beyond U+10FFFF, on which llama.cpp aborts, become U+FFFD.

use crate::encode::model::bpe::Bpe;
use crate::encode::model::{Fragment, Model, Task};
use crate::encode::normalizer::rewritten::Rewritten;
use crate::encode::sink::Sink;
use crate::error::VocabularyError;
use crate::text::scan::masks::{Classified, Masks};
use crate::text::scan::{BLOCK, padded};
use crate::text::unicode::{self, utf8};
use crate::vocabulary::spelling::ESCAPED_SPACE;
use crate::vocabulary::{Definition, Settings, Vocabulary};
use crate::work::interrupt::Ticker;
use crate::work::memory;

/// Byte-pair encoding of words that whitespace separates.
#[derive(Debug)]
pub(crate) struct Whitespace {
    pub(in crate::encode::model) bpe: Bpe,
}

heap_bytes!(Whitespace: bpe);

impl Model for Whitespace {
    fn new(vocabulary: &Vocabulary, definition: &Definition<'_>) -> Result<Self, VocabularyError> {
        Ok(Self { bpe: Bpe::new(vocabulary, definition)? })
    }

    fn encode<S: Sink>(&self, Task { vocabulary, fragment, scratch, sink }: Task<'_, S>) {
        let Settings { lowercase, escape_whitespaces, .. } = *vocabulary.settings();
        let text = fragment.text;
        let mut words = Words::new(fragment.start, S::SPANS);
        let mut at = 0;
        let mut buffer = [0; 4];
        let mut ticker = Ticker::default();
        while at < text.len() {
            ticker.tick();
            if !escape_whitespaces && text[at] < 0x80 {
                at += words.add_ascii(&text[at..], at, lowercase);
                continue;
            }
            let (code_point, len) = utf8::decode_lossy(text, at);
            if escape_whitespaces && text[at] == b' ' {
                // llama.cpp escapes spaces before it looks for whitespace, also in overlong forms.
                words.text.push(ESCAPED_SPACE, at..at + len);
            } else if unicode::flags(code_point).is_whitespace() {
                words.end();
            } else {
                let code_point = if lowercase { unicode::lowercase(code_point) } else { code_point };
                words.text.push_char(utf8::encode(code_point, &mut buffer), at..at + len);
            }
            at += len;
        }
        words.end();
        self.bpe.encode_words(vocabulary, (&words.text, &words.ends), scratch, sink);
    }

    /// After the last whitespace: each word is encoded by itself.
    fn settled(&self, vocabulary: &Vocabulary, Fragment { text, .. }: Fragment<'_>) -> usize {
        utf8::last_end(text, |at| {
            let (code_point, len) = utf8::decode_lossy(text, at);
            let is_escaped = vocabulary.settings().escape_whitespaces && text[at] == b' ';
            (!is_escaped && unicode::flags(code_point).is_whitespace(), len)
        })
    }
}

/// Words end to end, without the whitespace between them.
struct Words {
    text: Rewritten<'static>,
    ends: Vec<usize>,
}

impl Words {
    fn new(start: usize, keeps_origins: bool) -> Self {
        Self { text: Rewritten::empty(start, keeps_origins), ends: Vec::new() }
    }

    /// Ends the last word. Does nothing after whitespace.
    fn end(&mut self) {
        let len = self.text.text.len();
        if len > self.ends.last().copied().unwrap_or_default() {
            memory::push(&mut self.ends, len);
        }
    }

    /// Adds the ASCII characters that `text` starts with, at most a block, and returns their number. They are at byte
    /// `at` of the original text.
    fn add_ascii(&mut self, text: &[u8], at: usize, lowercase: bool) -> usize {
        let mut block = *padded(text, b' ', &mut [0; BLOCK]);
        let masks = Masks::new(&block);
        let len = (masks.beyond_ascii().trailing_zeros() as usize).min(text.len());
        if lowercase {
            block.make_ascii_lowercase();
        }

        let mut rest = !(masks.space | masks.blank | masks.newline) & u64::MAX >> (BLOCK - len);
        let mut end = 0;
        while rest != 0 {
            let start = rest.trailing_zeros() as usize;
            if start > end {
                self.end();
            }
            end = start + (rest >> start).trailing_ones() as usize;
            self.text.push_kept(&block[start..end], at + start);
            rest = if end < BLOCK { rest & u64::MAX << end } else { 0 };
        }
        if end < len {
            self.end();
        }
        len
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Words;
    use crate::text::unicode;

    proptest! {
        #[test]
        fn words_lie_between_whitespace(text in "[aZ1. \t\n\r\x0B\x0C\x1C]{0,20}|[aZ ]{60,140}") {
            let mut words = Words::new(10, true);
            let mut at = 0;
            while at < text.len() {
                at += words.add_ascii(&text.as_bytes()[at..], at, true);
            }
            words.end();

            let mut start = 0;
            let found = words.ends.iter().map(|&end| {
                let word = start..end;
                start = end;
                let origin = words.text.span(word.clone());
                (words.text.text[word].to_vec(), &text[origin.start - 10..origin.end - 10])
            });
            let expected = text.split(|char: char| unicode::flags(char.into()).is_whitespace()).filter(|word| !word.is_empty());
            let expected = expected.map(|word| (word.to_ascii_lowercase().into_bytes(), word));
            prop_assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        }
    }
}
