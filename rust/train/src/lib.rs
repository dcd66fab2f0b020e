//! Training: a corpus in, the tokens of a new vocabulary out, in the order and spelling of GGUF.
//!
//! 1. [`WordCounter`] splits texts into words and counts them (`words`, `split`), spilling to a file if they do not fit
//!    into memory (`spill`).
//! 2. A trainer turns the words into symbols and merges them (`merges`): [`BpeTrainer`], [`SpmTrainer`],
//!    [`WordPieceTrainer`]. [`UnigramTrainer`] instead starts with many pieces and drops most of them.
//! 3. [`Extender`] continues from the tokens of a vocabulary instead, and returns those to add.
//! 4. [`Trained`] has tokens, token types, scores and merges as a file's metadata has them.
//!
//! The result depends on the corpus and the settings, not on the number of threads. It depends on the memory only if
//! that is too small for all distinct words, see [`LeftOut`].

mod bpe;
mod charsmap;
mod extend;
mod merges;
mod pairs;
mod queue;
mod scripts;
mod spill;
mod split;
mod spm;
mod symbols;
mod table;
mod unigram;
mod wordpiece;
mod words;
mod work;

use std::collections::HashMap;
use std::ops::ControlFlow;

use ggtok_core::messages;

pub use bpe::{BpeSettings, BpeTrainer};
pub use charsmap::{NormalizationRules, RulesError, normalizer};
pub use extend::Extender;
pub use spill::Spill;
pub use split::Normalize;
pub use spm::{SpmSettings, SpmTrainer};
pub use unigram::{UnigramSettings, UnigramTrainer};
pub use wordpiece::{Likelihood, WordPieceSettings, WordPieceTrainer};
pub use words::{LeftOut, WordCounter, Words};

/// The example of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// A callback for the progress of training: the phase, how much is done, and the total (0 if unknown). Called often;
/// [`ControlFlow::Break`] ends the training.
pub type Progress<'a> = dyn FnMut(Phase, u64, u64) -> ControlFlow<()> + 'a;

/// What training is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Counting words; progress is in bytes of text.
    Counting,
    /// Merging pairs; progress is in tokens.
    Merging,
    /// Dropping pieces of Unigram; progress is in pieces to drop.
    Dropping,
}

impl Phase {
    /// The phase in one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counting => "counting",
            Self::Merging => "merging",
            Self::Dropping => "dropping",
        }
    }
}

/// A special token for the vocabulary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecialToken {
    /// Its text.
    pub text: String,
    /// `tokenizer.ggml.token_type`: [`CONTROL`], [`USER_DEFINED`], [`UNKNOWN`] or [`UNUSED`].
    pub kind: i32,
}

/// The token type of ordinary tokens.
pub const NORMAL: i32 = 1;
/// The token type of the unknown token.
pub const UNKNOWN: i32 = 2;
/// The token type of control tokens, which are read in text only if the caller allows it.
pub const CONTROL: i32 = 3;
/// The token type of tokens that are always read in text.
pub const USER_DEFINED: i32 = 4;
/// The token type of reserved tokens.
pub const UNUSED: i32 = 5;
/// The token type of bytes in SPM.
pub const BYTE: i32 = 6;

/// A trained vocabulary, as in a GGUF file. If the corpus has too few pairs or pieces, it has fewer tokens than requested.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trained {
    /// `tokenizer.ggml.tokens`.
    pub tokens: Vec<Vec<u8>>,
    /// `tokenizer.ggml.token_type`.
    pub types: Vec<i32>,
    /// `tokenizer.ggml.scores`; empty if the kind has none.
    pub scores: Vec<f32>,
    /// `tokenizer.ggml.merges`; empty if the kind has none.
    pub merges: Vec<Vec<u8>>,
}

/// The result of training.
pub type Result<T, E = TrainError> = std::result::Result<T, E>;

impl Trained {
    fn push(&mut self, text: &[u8], kind: i32) {
        self.tokens.push(text.to_vec());
        self.types.push(kind);
    }

    fn push_all(&mut self, special: &[SpecialToken]) {
        special.iter().for_each(|token| self.push(token.text.as_bytes(), token.kind));
    }

    /// Checks that no two tokens are equal.
    fn checked(self) -> Result<Self> {
        check_distinct(self.tokens.iter().map(Vec::as_slice))?;
        Ok(self)
    }
}

messages! {
    /// Why a vocabulary cannot be trained.
    #[derive(Debug)]
    #[non_exhaustive]
    #[allow(missing_docs, reason = "fields say what they are")]
    pub enum TrainError {
        /// The corpus has no words.
        EmptyCorpus => "the corpus has no words to train on";
        /// There are more symbols than 32-bit positions.
        TooLarge { symbols: usize } =>
            "the distinct words have {symbols} symbols, more than 32-bit positions can number";
        /// The vocabulary has no room for special tokens and alphabet.
        VocabTooSmall { size: usize, special: usize, alphabet: usize } =>
            "vocab_size {size} is too small: {special} special tokens and {alphabet} of the alphabet need {}",
            special + alphabet;
        /// The texts have nothing for new tokens.
        NothingToAdd => "the texts add no tokens: no two tokens of the base are together twice";
        /// Two tokens have the same text.
        DuplicateToken { text: String, first: usize, second: usize } =>
            "tokens {first} and {second} would share the text {text:?}";
        /// A setting has an invalid value.
        Setting { name: &'static str, value: String, expected: &'static str } =>
            "{name} must be {expected}, not {value}";
        /// A pre-tokenizer that llama.cpp does not have; known names, nearest first.
        UnknownPreTokenizer { name: String, nearest: Vec<&'static str> } =>
            "unknown pre-tokenizer {name:?}; the nearest known are {}", nearest.join(", ");
        /// The most frequent words do not fit into the memory for counted words. Both are in bytes.
        Memory { memory: u64, needed: u64 } =>
            "{memory} bytes of memory have no room for the most frequent words; all words take {needed}";
        /// The file for words that do not fit into memory cannot be used.
        Spill(error: std::io::Error) => "the file for words that do not fit into memory cannot be used: {error}";
        /// `progress` ended the training.
        Stopped => "the training was stopped";
    }
}

impl std::error::Error for TrainError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        if let Self::Spill(error) = self { Some(error) } else { None }
    }
}

impl From<std::io::Error> for TrainError {
    fn from(error: std::io::Error) -> Self {
        Self::Spill(error)
    }
}

/// Checks the texts of special tokens.
fn check_special(special: &[SpecialToken]) -> Result<()> {
    for SpecialToken { text, .. } in special {
        let is_sound = !text.is_empty() && !text.contains('\0');
        check(is_sound, "special_tokens", &format!("{text:?}"), "texts that are not empty and have no NUL byte")?;
    }
    check_distinct(special.iter().map(|token| token.text.as_bytes()))
}

/// Checks that no two tokens have the same text.
fn check_distinct<'t>(texts: impl Iterator<Item = &'t [u8]>) -> Result<()> {
    let mut ids = HashMap::new();
    for (second, text) in texts.enumerate() {
        if let Some(first) = ids.insert(text, second) {
            let text = String::from_utf8_lossy(text).into_owned();
            return Err(TrainError::DuplicateToken { text, first, second });
        }
    }
    Ok(())
}

/// Checks the value of a setting.
fn check(is_sound: bool, name: &'static str, value: &dyn ToString, expected: &'static str) -> Result<()> {
    if is_sound { Ok(()) } else { Err(TrainError::Setting { name, value: value.to_string(), expected }) }
}

/// Checks that a vocabulary has room for special tokens and alphabet.
fn check_size(size: usize, special: usize, alphabet: usize) -> Result<()> {
    if size < special + alphabet { Err(TrainError::VocabTooSmall { size, special, alphabet }) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
