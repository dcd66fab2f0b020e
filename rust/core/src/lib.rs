//! Text to tokens and back, exactly as llama.cpp does.
//!
//! A text is first split at its `special` tokens. Each fragment then goes through its vocabulary's `normalizer` or
//! `pretokenizer` and one of the algorithms in `model`. `detokenizer` turns ids back into text, and `tokenizer` puts
//! all of this together. Everything derived from a vocabulary is built once, immutable and shared; working memory lives
//! in a [`Scratch`] that calls reuse.
//!
//! # Examples
//! ```
//! use ggtok_core::{Definition, EncodeOptions, StringIndex, Tokenizer};
//!
//! let (data, index) = StringIndex::concatenate(&["<unk>", "<s>", "</s>", "▁", "a", "▁a"])?;
//! let scores = [0.0, 0.0, 0.0, -1.0, -2.0, -0.5];
//! let types = [2, 3, 3, 1, 1, 1];
//! let tokenizer = Tokenizer::new(&Definition {
//!     model: "llama",
//!     tokens: Some(index.view(&data)),
//!     scores: Some(&scores),
//!     token_types: Some(&types),
//!     ..Definition::default()
//! })?;
//! assert_eq!(tokenizer.encode("a a", EncodeOptions::default())?, [1, 5, 5]);
//! assert_eq!(tokenizer.decode(&[5, 5], Default::default())?, b"a a");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`gguf::open`] makes a tokenizer of a file's bytes. The crate `ggtok-explain` shows every step of an algorithm, and
//! `ggtok-train` makes vocabularies.

pub mod gguf;
pub mod trie;
pub mod unicode;

mod batch;
mod characters;
mod check;
mod chunks;
mod detokenizer;
mod diff;
mod error;
mod interrupt;
mod lookup;
mod memory;
mod model;
mod normalizer;
mod parts;
mod pretokenizer;
mod scan;
mod scratch;
mod sink;
mod special;
#[cfg(test)]
mod steps;
mod stream;
mod threads;
mod tokenizer;
mod vocabulary;
mod words;

pub use batch::{Batch, DecodedBatch, Padded, Padding, PaddingError, Rows, Side};
pub use check::{merges_without_token, tokens_without_merge};
pub use chunks::boundaries::Boundary;
pub use chunks::truncate::Truncation;
pub use chunks::{BudgetError, Chunk, Segmentable, SplitOptions};
pub use detokenizer::DecodeOptions;
pub use diff::{Parting, first_parting};
pub use error::{CharsmapDamage, EncodeError, TokenIndexError, VocabularyError};
pub use interrupt::{Interrupted, interruptible};
pub use memory::OutOfMemory;
pub use parts::Parts;
pub use pretokenizer::{FAMILIES, Family, PRE_TOKENIZERS, PreTokenizer};
pub use scratch::{Scratch, ScratchPool};
pub use sink::{Count, NULL_TOKEN, Sink, Spans, TokenId};
pub use stream::decoder::{PrimeError, StreamDecodeOptions, StreamDecoder};
pub use stream::encoder::StreamEncoder;
pub use stream::stop::{EmptyStopString, StopStrings};
pub use tokenizer::{EncodeOptions, Text, Tokenizer};
pub use vocabulary::strings::{StringIndex, Strings, StringsError};
pub use vocabulary::{
    Attributes, Definition, FLAGS, Flag, Given, Kind, Repair, SLOTS, Settings, Slot, SpecialIds, SpecialTokens,
    Vocabulary, escaped_name,
};
pub use words::count_words;

/// The examples of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// What `ggtok-train` and `ggtok-explain` need besides the public names. They depend on exactly this version of the
/// crate, so anything in here may change in any version: do not use it.
#[doc(hidden)]
pub mod internals {
    pub use crate::batch::with_helpers;
    pub use crate::error::nearest::nearest;
    pub use crate::lookup::hash::Seed;
    pub use crate::model::Fragment;
    pub use crate::normalizer::charsmap::{Charsmap, Unit};
    pub use crate::normalizer::rewritten::Rewritten;
    pub use crate::normalizer::wordpiece::{Class, WordPieceNormalizer, is_chinese};
    pub use crate::pretokenizer::{Learned, Splitter};
    pub use crate::vocabulary::{DNA_MARKER, c_string};

    /// Long loops that can be stopped.
    pub mod interrupt {
        pub use crate::interrupt::{Ticker, check, sort_unstable_by};
    }

    /// How token texts spell bytes.
    pub mod spelling {
        pub use crate::vocabulary::spelling::byte_level;
        pub use crate::vocabulary::spelling::{
            ESCAPED_SPACE, ESCAPED_SPACE_CODE_POINT, byte_of, byte_text, escape_spaces, unescape_rwkv,
        };
    }
}

/// The names and texts that the loader knows, for documentation and for checks against llama.cpp.
pub mod tables {
    use crate::vocabulary::{Kind, SLOTS, defaults, repairs};

    /// All values of `tokenizer.ggml.model` with their algorithms.
    pub fn models() -> impl Iterator<Item = (&'static str, Kind)> {
        defaults::MODELS.iter().map(|row| (row.name, row.kind))
    }

    /// The texts that identify special tokens, per slot: `eot` … `fim_sep`, `eog` and `user_defined`.
    pub fn loader_texts() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
        let found = SLOTS.iter().filter(|slot| !slot.texts.is_empty()).map(|slot| (slot.name, slot.texts));
        found.chain([("eog", repairs::END_OF_GENERATION), ("user_defined", repairs::USER_DEFINED)])
    }
}
