//! Text to tokens and back, exactly as llama.cpp does.
//!
//! A text is first split at its `special` tokens. Each fragment then goes through its vocabulary's `normalizer` or
//! `pretokenizer` and one of the algorithms in `model`. `decode` turns ids back into text, and `tokenizer` puts all
//! of this together. Everything derived from a vocabulary is built once, immutable and shared; working memory lives
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

mod decode;
mod encode;
mod error;
mod inspect;
mod lookup;
mod many;
mod text;
mod token;
mod tokenizer;
mod vocabulary;
mod work;

pub use decode::DecodeOptions;
pub use encode::scratch::Scratch;
pub use encode::sink::{Count, Sink, Spans};
pub use error::{EncodeError, TokenIndexError, VocabularyError};
pub use inspect::check::{unreachable_tokens, unused_merges};
pub use inspect::words::count_words;
pub use lookup::trie;
pub use many::batch::{
    Batch, BatchText, DecodeBatchError, DecodedRows, Feed, Padded, Padding, PaddingError, Rows, Side,
};
pub use many::chunks::boundaries::Boundary;
pub use many::chunks::truncate::{Ends, Truncation};
pub use many::chunks::{BudgetError, Chunk, Segmentable, SplitOptions};
pub use many::parts::Parts;
pub use many::stream::decoder::{PrimeError, StreamDecodeOptions, StreamDecoder};
pub use many::stream::encoder::StreamEncoder;
pub use many::stream::stop::{EmptyStopString, StopStrings};
pub use text::unicode;
pub use token::{NULL_TOKEN, TokenId};
pub use tokenizer::{EncodeOptions, Text, Tokenizer};
pub use vocabulary::families::{FAMILIES, Family, PRE_TOKENIZERS, PreTokenizer};
pub use vocabulary::strings::{StringIndex, Strings, StringsError};
pub use vocabulary::{
    Attributes, Definition, FLAGS, Flag, Given, Kind, Repair, SLOTS, Settings, Slot, SpecialIds, SpecialTokens,
    Vocabulary, escaped_name,
};
pub use work::interrupt::{Interrupted, interruptible};
pub use work::memory::OutOfMemory;

/// The examples of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// What `ggtok-chat`, `ggtok-train` and `ggtok-explain` need besides the public names. They depend on exactly this version of the
/// crate, so anything in here may change in any version: do not use it.
#[doc(hidden)]
pub mod internals {
    pub use crate::encode::model::Fragment;
    pub use crate::encode::normalizer::charsmap::{Charsmap, Unit};
    pub use crate::encode::normalizer::rewritten::Rewritten;
    pub use crate::encode::normalizer::wordpiece::{Class, WordPieceNormalizer, is_chinese};
    pub use crate::encode::pretokenizer::{Learned, Splitter};
    pub use crate::error::nearest::nearest;
    pub use crate::lookup::hash::Seed;
    pub use crate::vocabulary::{DNA_MARKER, c_string};
    pub use crate::work::introsort::{Inconsistent, introsort_by};
    pub use crate::work::threads::{Lead, share};

    /// Long loops that can be stopped.
    pub mod interrupt {
        pub use crate::work::interrupt::{Ticker, check, sort_unstable_by};
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
