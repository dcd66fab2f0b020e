//! A tokenizer from the bytes of a GGUF file.
//!
//! [`open`] is all that most callers need. [`Metadata`] reads single keys, and can replace values before it opens a
//! tokenizer, as llama.cpp's `--override-kv` does. Only the metadata at the start of a file is read: the bytes may end
//! there ([`read_header`] loads just enough) or be a memory map of the whole model.
//!
//! Nothing in a file is trusted: every count and length is checked against the remaining bytes before anything of that
//! size is allocated. The error for a damaged file says which key, where, what was expected and what was found.
//!
//! # Examples
//! ```no_run
//! use std::fs::File;
//!
//! use ggtok_core::{EncodeOptions, gguf};
//!
//! let header = gguf::read_header(File::open("model.gguf")?)?;
//! let tokenizer = gguf::open(&header)?;
//! let ids = tokenizer.encode("What is LoRA?", EncodeOptions::default())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod definition;
mod error;
mod header;
mod metadata;
mod value;
mod walk;

pub use error::{Expected, Field, GgufError, OpenError, Problem};
pub use header::read_header;
pub use metadata::{Layout, Metadata};
pub use value::{Array, Override, Type, Value};

use crate::tokenizer::Tokenizer;

/// The tokenizer of a GGUF file: `bytes` from the first byte of the file to the end of its metadata or beyond.
///
/// # Errors
/// - [`OpenError::Gguf`] if the bytes are not valid GGUF, or a key that the tokenizer needs has the wrong type.
/// - [`OpenError::Vocabulary`] if the vocabulary is unknown, incomplete or damaged.
///
/// # Examples
/// ```
/// use ggtok_core::{EncodeOptions, gguf};
///
/// // A file with two keys, written by hand.
/// fn string(text: &str) -> Vec<u8> {
///     [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
/// }
/// let texts = ["<unk>", "<s>", "</s>", "▁", "a", "▁a"];
/// let mut file = [b"GGUF\x03\0\0\0", &0u64.to_le_bytes()[..], &2u64.to_le_bytes()].concat();
/// file.extend([string("tokenizer.ggml.model"), 8u32.to_le_bytes().into(), string("llama")].concat());
/// file.extend([string("tokenizer.ggml.tokens"), 9u32.to_le_bytes().into(), 8u32.to_le_bytes().into()].concat());
/// file.extend((texts.len() as u64).to_le_bytes());
/// file.extend(texts.map(string).concat());
///
/// let tokenizer = gguf::open(&file)?;
/// assert_eq!(tokenizer.encode("aa", EncodeOptions::default())?, [1, 5, 4]);
///
/// let error = gguf::open(&file[..30]).unwrap_err();
/// assert_eq!(error.to_string(), "the file is too short for its keys (byte 16): expected 2 keys, found 6 bytes");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn open(bytes: &[u8]) -> Result<Tokenizer, OpenError> {
    Metadata::read(bytes)?.tokenizer()
}
