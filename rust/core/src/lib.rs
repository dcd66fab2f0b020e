//! Text to tokens and back, exactly as llama.cpp does.
//!
//! # Examples
//! ```
//! # fn main() -> Result<(), ggtok_core::Error> {
//! # // Only the repository has the file.
//! # if std::env::set_current_dir("../../python/ggtok/vocabularies").is_err() {
//! #     return Ok(());
//! # }
//! use ggtok_core::{EncodeOptions, Tokenizer};
//!
//! let tok = Tokenizer::from_file("bpe.gguf")?;
//! let ids = tok.encode("What is LoRA?")?;
//! assert_eq!(tok.count("What is LoRA?")?, ids.len());
//! assert_eq!(tok.decode(&ids)?, "What is LoRA?");
//!
//! let mut encoder = tok.encoder(); // One per thread: its buffers and cache stay warm.
//! for line in "Two lines,\nfor example".lines() {
//!     println!("{:?}", encoder.encode(line)?);
//! }
//!
//! let mut stream = encoder.stream(EncodeOptions::default())?;
//! let mut ids = Vec::new();
//! for part in ["What is", " LoRA?"] {
//!     stream.push(part, &mut ids)?; // Adds the ids that later text cannot change.
//! }
//! stream.finish(&mut ids)?;
//! # Ok(())
//! # }
//! ```
//!
//! A [`Tokenizer`] is immutable, `Send` and `Sync`. Its caches start small and grow; an [`Encoder`] has
//! another one to itself. Options have defaults and setters: `EncodeOptions::default().add_special(false)`.
//! All errors convert into [`Error`], and no input makes a call panic: an allocation that fails is an error, too.
//!
//! Encoding first splits a text at its special tokens. Each fragment then goes through the vocabulary's normalizer or
//! pre-tokenizer and one of the algorithms. Everything derived from a vocabulary is built once, at load.
//!
//! [`vocab::Definition`] makes a tokenizer without a file. The crate `ggtok-chat` renders conversations,
//! `ggtok-explain` shows every step of an algorithm, and `ggtok-train` makes vocabularies.
//!
//! # Features
//! All are on by default.
//! - `gguf`: tokenizers from GGUF files.
//! - `segmentation`: chunks, truncation and counting words, with the crate `unicode-segmentation`.
//! - `threads`: batches on several threads. Without it, one thread does the work of all.
//!
//! The crate needs `std`: an interrupted call, or one without memory, unwinds to its caller, and `core` cannot catch
//! that.

#[macro_use]
mod work;

pub mod gguf;
pub mod inspect;

mod decode;
mod encode;
mod encoder;
mod error;
mod failure;
mod lookup;
mod many;
mod sampling;
mod text;
mod token;
mod tokenizer;
mod vocabulary;

pub use decode::DecodeOptions;
pub use encode::model::sampler::{Sampler, SamplerError};
pub use encode::sink::{Count, Sink, Spans};
pub use encoder::Encoder;
pub use error::{DecodeError, EncodeError, OutOfMemory, VocabularyError};
pub use failure::Error;
pub use gguf::LoadError;
pub use lookup::trie;
pub use many::align::{AlignError, AlignedTokens, align};
pub use many::parts::Parts;
pub use text::unicode;
pub use token::{NULL_TOKEN, TokenId};
pub use tokenizer::{AsText, EncodeOptions, Text, Tokenizer};
pub use work::interrupt::{Interrupted, interruptible};

/// Many texts at once, and rows of ids.
pub mod batch {
    pub use crate::many::batch::{
        Batch, BatchInput, BatchText, DecodeBatchError, DecodedRows, Padded, Padding, PaddingError, Rows, Side,
    };
}

/// Texts that are cut to a budget of tokens.
#[cfg(feature = "segmentation")]
pub mod chunks {
    pub use crate::many::chunks::boundaries::Boundary;
    pub use crate::many::chunks::truncate::{Ends, Truncation};
    pub use crate::many::chunks::{Chunk, Segmentable, SplitOptions};
}

/// Text and ids that arrive part by part.
pub mod stream {
    pub use crate::many::stream::decoder::{StreamDecodeOptions, StreamDecoder};
    pub use crate::many::stream::encoder::StreamEncoder;
    pub use crate::many::stream::stop::{StopStrings, StopStringsError};
}

/// Vocabularies: what a file declares, what it becomes, and the names that llama.cpp knows.
pub mod vocab {
    pub use crate::vocabulary::families::{FAMILIES, Family, PRE_TOKENIZERS, PreTokenizer};
    pub use crate::vocabulary::strings::{StringIndex, Strings, StringsError};
    pub use crate::vocabulary::{
        Attributes, Definition, FLAGS, Flag, Given, Kind, Repair, SLOTS, Settings, Slot, SpecialIds, SpecialTokens,
        Vocabulary, escaped_name,
    };
}

/// The examples of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// What `ggtok-chat`, `ggtok-train` and `ggtok-explain` need besides the public names. They depend on exactly this
/// version of the crate, so anything in here may change in any version: do not use it.
#[doc(hidden)]
pub mod internals {
    pub use crate::encode::model::Fragment;
    pub use crate::encode::normalizer::charsmap::{Charsmap, Unit};
    pub use crate::encode::normalizer::rewritten::Rewritten;
    pub use crate::encode::normalizer::wordpiece::{Class, WordPieceNormalizer};
    pub use crate::encode::pretokenizer::{Learned, Splitter};
    pub use crate::error::nearest::nearest;
    pub use crate::lookup::{hash::Seed, index::Index};
    pub use crate::vocabulary::{DNA_MARKER, c_string, split_rule};
    pub use crate::work::introsort::{Inconsistent, introsort_by};
    pub use crate::work::threads::{Jobs, Producer, share};

    /// Long loops that can be stopped.
    pub mod interrupt {
        pub use crate::work::interrupt::{Ticker, check, sort_unstable_by, ticking};
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
    pub use crate::vocabulary::repairs::loader_texts;
    use crate::vocabulary::{Kind, defaults};

    /// All values of `tokenizer.ggml.model` with their algorithms.
    pub fn models() -> impl Iterator<Item = (&'static str, Kind)> {
        defaults::MODELS.iter().map(|row| (row.name, row.kind))
    }
}
