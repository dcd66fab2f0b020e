//! The tokenization algorithms: one file each, behind one trait, [`Model`].

mod adjacency;
pub(crate) mod any;
mod bpe;
mod cache;
mod hashed;
pub(crate) mod lengths;
mod merging;
mod plamo2;
mod rwkv;
mod spm;
mod unigram;
mod wordpiece;

use crate::error::VocabularyError;
use crate::sink::Sink;
use crate::vocabulary::{Definition, Vocabulary};
use lengths::Lengths;

/// A tokenization algorithm: built once from a vocabulary, then immutable and shared between threads.
pub(crate) trait Model: Sized + Send + Sync {
    /// Buffers and caches that calls reuse: one value per thread.
    type Scratch: Default + Send;

    /// Builds the tables of the algorithm from a vocabulary that is declared, but not yet repaired.
    ///
    /// # Errors
    /// [`VocabularyError`] where the vocabulary lacks what the algorithm needs.
    fn new(vocabulary: &Vocabulary, definition: &Definition<'_>) -> Result<Self, VocabularyError>;

    /// Updates the tables that depend on what the loader has repaired in the vocabulary.
    fn apply_repairs(&mut self, _vocabulary: &Vocabulary) {}

    /// Pushes the tokens of one fragment.
    fn encode<S: Sink>(
        &self,
        vocabulary: &Vocabulary,
        fragment: Fragment<'_>,
        scratch: &mut Self::Scratch,
        sink: &mut S,
    );

    /// The least number of bytes that each token stands for, if the tokens of a fragment of UTF-8 tile it.
    fn lengths(&self, _vocabulary: &Vocabulary) -> Option<Lengths> {
        None
    }

    /// Where the first token of a fragment starts, if the tokens tile it: less than 0 where a space is put before it.
    fn first_start(&self, _vocabulary: &Vocabulary, _fragment: Fragment<'_>) -> isize {
        0
    }

    /// Memory held outside the value itself, in bytes.
    fn heap_bytes(&self) -> usize;
}

/// The text between two special tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fragment<'a> {
    /// The fragment's bytes; never empty.
    pub text: &'a [u8],
    /// Where `text` starts in the whole input, in bytes: the offset to add to its spans.
    pub start: usize,
    /// Whether the fragment starts the input or follows a special token.
    pub after_special: bool,
    /// Whether the fragment starts an input that continues an earlier one: nothing is put before its characters.
    pub continues: bool,
    /// Whether the bytes are known to be valid UTF-8.
    pub is_utf8: bool,
}
