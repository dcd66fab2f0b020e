//! The word that each token of a text belongs to.
//!
//! The text is encoded once more, without caches, and the model says where words start: BPE's pieces and WordPiece's
//! words. For SPM and Unigram, which cut no words, a word starts with each escaped space. RWKV and PLaMo-2 have neither:
//! there, the text between two special tokens is one word. A special token written in the text is a word by itself.
//!
//! O(n) like encoding with spans.

use std::borrow::Borrow;
use std::ops::Range;

use crate::encode::sink::Sink;
use crate::encoder::Encoder;
use crate::error::EncodeError;
use crate::many::parts::Parts;
use crate::token::TokenId;
use crate::tokenizer::{EncodeOptions, Tokenizer};
use crate::vocabulary::spelling::ESCAPED_SPACE;
use crate::vocabulary::{Kind, Vocabulary};
use crate::work::memory::push;

impl<T: Borrow<Tokenizer>> Encoder<T> {
    /// For each token of a text in parts the number of its word, or -1 for BOS, EOS and SEP that are added.
    ///
    /// # Errors
    /// As [`Encoder::encode`].
    pub fn words(&mut self, parts: &Parts, options: EncodeOptions) -> Result<Vec<i32>, EncodeError> {
        self.work(|tokenizer, scratch| {
            let vocabulary = tokenizer.vocabulary();
            let escaped = matches!(vocabulary.kind(), Kind::Spm | Kind::Unigram).then_some(vocabulary);
            let mut words = WordNumbers { numbers: Vec::new(), last: -1, begins: false, escaped };
            let options = EncodeOptions { parse_special: !parts.allowed.is_empty(), ..options };
            let allowed = Some(&parts.allowed[..]).filter(|_| options.parse_special);
            tokenizer.encode_within(parts.text()?, allowed, options, scratch, &mut words)?;
            if tokenizer.added_tokens(options.add_special)?.1.is_some() {
                words.numbers.pop();
                words.numbers.push(-1);
            }
            Ok(words.numbers)
        })
    }
}

/// Numbers words as they get their first token.
struct WordNumbers<'a> {
    /// For each token the number of its word.
    numbers: Vec<i32>,
    /// The number of the last word; -1 before the first one.
    last: i32,
    /// Whether the next token starts a word.
    begins: bool,
    /// A vocabulary in which words start at escaped spaces.
    escaped: Option<&'a Vocabulary>,
}

impl Sink for WordNumbers<'_> {
    const SPANS: bool = true;
    const WORDS: bool = true;

    fn begin_word(&mut self) {
        self.begins = true;
    }

    fn push(&mut self, id: TokenId, _: Range<usize>) {
        let is_spaced = self.escaped.is_some_and(|vocabulary| vocabulary.text(id).starts_with(ESCAPED_SPACE));
        self.last += i32::from(self.begins || is_spaced);
        self.begins = false;
        push(&mut self.numbers, self.last);
    }
}
